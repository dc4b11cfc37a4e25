package compatible

// Server names a server with its own implementation of the API of OpenAI or Anthropic. It is the value of
// Options.Server in packages openai and anthropic. The zero value is no particular server.
type Server string

// The servers. The comment of each lists its differences and their sources. "Read" is the month the page was read.
const (
	// LlamaCPP is llama-server of llama.cpp. Chat is its complete API:
	//
	//   - Chat: the name of one tool as a tool choice is ignored. Reasoning is read from "reasoning_content" alone.
	//   - Responses: the same name is ignored, and so is the form of a response (Output). Reasoning is read as its
	//     text.
	//   - Messages: the same name is ignored, and so are the choice of no tool and the form of a response. Thinking is
	//     read without a signature.
	//   - OneCall is ignored in all three.
	//   - All three know messages, functions and their calls alone. Documents and uploaded files become texts, and so do
	//     blocks of the API's own. Tools of other types are left out.
	//   - Chat: if a conversation ends with the assistant, the response repeats the text at its end, so the user
	//     message content.GoOn is added.
	//   - A model without a projector reads only text, and every image is refused: see Options.TextOnly.
	//
	// Source: its tools/server/README.md, read in November 2026, and tests of this project with llama-server 0.5.0.
	LlamaCPP Server = "llama.cpp"

	// VLLM is vLLM. Over Chat, it accepts each tool choice, and names reasoning "reasoning"; its older versions said
	// "reasoning_content".
	//
	// Source: docs.vllm.ai, "Tool Calling" of v0.33.0 and "Reasoning Outputs" of v0.26.0.
	VLLM Server = "vllm"

	// Ollama is Ollama.
	//
	//   - Chat: the limit of tokens is "max_tokens". Reasoning is "reasoning". A tool choice and OneCall are ignored.
	//   - Responses: a tool choice, OneCall and the form of a response are ignored.
	//   - Messages: the same are ignored. Thinking is read without a signature.
	//
	// Source: the tables of supported fields in docs.ollama.com, "OpenAI compatibility" and "Anthropic compatibility",
	// read in November 2026.
	Ollama Server = "ollama"

	// LMStudio is LM Studio. Over Chat, the limit of tokens is "max_tokens", and a tool choice is a word: it refuses
	// the name of one tool.
	//
	// Source: lmstudio.ai/docs, "Chat Completions", read in November 2026; issue 670 of lmstudio-bug-tracker, and issue
	// 177 of lmstudio-ai/docs of February 2026.
	LMStudio Server = "lmstudio"

	// OpenRouter is openrouter.ai. Over Chat, the limit of tokens is "max_tokens". The amount of thinking is the object
	// "reasoning", with levels and budgets. Reasoning goes back unchanged, as "reasoning_details". A model that does
	// not support an option ignores it, unless Options.Body holds {"provider":{"require_parameters":true}}.
	//
	// Source: openrouter.ai/docs, "Reasoning Tokens" and "API Reference", read in November 2026.
	OpenRouter Server = "openrouter"

	// DeepSeek is api.deepseek.com. Over Chat,
	//
	//   - the limit of tokens is "max_tokens",
	//   - reasoning is "reasoning_content", and has to go back with tool calls,
	//   - models think unless "thinking" disables it, and a tool choice that forces a call is refused while they do,
	//   - a response can be any JSON object, but has no schema.
	//
	// Source: api-docs.deepseek.com, "Thinking Mode" and "Create Chat Completion", read in November 2026; issue 1376 of
	// deepseek-ai/DeepSeek-V3 of August 2026.
	DeepSeek Server = "deepseek"

	// Groq is api.groq.com. Over Chat, it returns reasoning as "reasoning", and refuses it in requests.
	//
	// Source: console.groq.com/docs, "OpenAI Compatibility" and "Reasoning", read in November 2026; issue 774 of
	// karthink/gptel of April 2025.
	Groq Server = "groq"

	// Mistral is api.mistral.ai. Over Chat, it refuses unknown members: the limit of tokens is "max_tokens", there are
	// no "stream_options", and only thinking received as a part of the content goes back. The ID of a call has nine
	// letters and digits; others are replaced, for models with a name of Mistral's on every server.
	//
	// Source: issue 7 of mistralai/platform-docs-public; pull request 24668 of langchain-ai/langchain and issue 57672 of
	// openclaw/openclaw for the IDs; issues 231 of editor-code-assistant/eca and 1590 of
	// charmbracelet/crush, both of December 2025.
	Mistral Server = "mistral"
)
