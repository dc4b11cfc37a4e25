// Package compatible names the servers that implement the API of OpenAI or Anthropic in their own ways: llama.cpp,
// vLLM, Ollama and others.
//
//	model := openai.NewChat("qwen3", &openai.Options{
//		Server: compatible.LlamaCPP,
//		SDK:    []option.RequestOption{option.WithBaseURL("http://127.0.0.1:8080/v1"), option.WithAPIKey("none")},
//	})
//
// A provider that knows its server sends requests in the form that the server reads:
//
//   - Members have the names that the server knows.
//   - Reasoning goes back where the server reads it, and nowhere else.
//   - What the server would ignore is enforced in another way if there is one. A tool choice of one tool declares that
//     tool alone. The choice of no tool declares none. The schema of a response becomes a system prompt.
//   - What cannot be enforced, and what the server would refuse, is left out.
//   - Each such change is a note of kind api.RepairOption. What was asked for still holds in package executor: a call
//     that a request forbade is not executed.
//
// Servers on the network are recognized by the host in the base URL, and Ollama by its port, 11434. For others,
// Options.Server names them. A server without a name here gets the members of OpenAI's API. Options in package openai
// change some of them.
//
// For models on your own machine, prefer Chat Completions (openai.NewChat): it is the API that these servers implement
// most completely.
package compatible
