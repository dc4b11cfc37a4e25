package openai

import (
	"github.com/openai/openai-go/v3/option"
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/internal/roundtrip"
)

// The names of OpenAI's APIs in blocks, definitions, answers and errors. Servers that are compatible with one of them go by its name.
const (
	ChatAPI      = "openai-chat"
	ResponsesAPI = "openai-responses"
)

// Options are the options of a [Chat] and of a [Responses]. Nil is the same as the zero value. Of those in api.Options,
//
//   - MaxTokens is "max_completion_tokens" in Chat (see MaxTokensName), and "max_output_tokens" in Responses, where OpenAI's own
//     servers take 16 or more. There is no default.
//   - Temperature is sent as it is; models that reason may refuse it.
//   - StopSequences are "stop" in Chat, the first four. Responses has none.
//   - ToolChoice is sent where there are tools, and the one it names is among them; OneCall as "parallel_tool_calls", where there
//     are tools.
//   - Thinking: a level is "reasoning_effort" in Chat, and in Responses "reasoning", with a summary; ThinkOff is the effort "none".
//     ThinkAuto is nothing in Chat, and asks for a summary in Responses. A budget is left out, and so is all of it for OpenAI's
//     models that do not reason (gpt-3, gpt-4, chatgpt, gpt-5-chat), and noted.
//   - Output is "response_format" in Chat and the format of "text" in Responses, strict where its schema can be.
//   - Metadata is sent as it is, the first 16 pairs by their keys, without keys of more than 64 and values of more than 512 letters;
//     in Chat only with "store": true in Body, without which the API refuses it.
//   - Cache: CacheLong is "prompt_cache_retention": "24h". The APIs cache by themselves, so that the others are nothing.
//   - Idle and Header are as in api.Options.
//   - Body may hold all but "model", "messages", "tools" and "stream" in Chat. [ResponsesBody] says what it may hold in Responses,
//     where the members of "reasoning" and "text" go over those made of the options one by one.
type Options struct {
	// Options say how the model is to answer, where a request does not. Defaults to what the API does by itself.
	api.Options
	// SystemRole is the role that a Chat's system prompts have: "system", which OpenAI's models and nearly all compatible servers
	// take; "developer"; or "user", for a model that takes neither. Defaults to "system".
	SystemRole string
	// MaxTokensName is the name that a Chat's MaxTokens are sent under: "max_tokens" is what older compatible servers know.
	// Defaults to "max_completion_tokens".
	MaxTokensName string
	// OmitThinking leaves the thinking of earlier answers out of a Chat's requests. Otherwise it goes back to compatible servers
	// under the name it came under, such as "reasoning_content"; some of them refuse that of others, and OpenAI's own models, which
	// are told by their names, are never sent any. Defaults to false.
	OmitThinking bool
	// Audio says that a Chat's model hears. Otherwise sound is sent only to models with "audio" in their names, such as OpenAI's
	// that hear, and others get a text in its place. Defaults to false.
	Audio bool
	// NoStream asks for the whole answer at once. Defaults to false.
	NoStream bool
	// SDK is options of the official SDK: a key, a base URL (with its version, as in "http://127.0.0.1:8080/v1"), an HTTP client,
	// azure.WithEndpoint. They are applied after what the environment says (OPENAI_API_KEY and others); the SDK's own retries are
	// always off. Defaults to none.
	SDK []option.RequestOption
}

func (o *Options) orNone() Options {
	if o == nil {
		return Options{}
	}
	return *o
}

// resolve returns o with the options of a request before its own, or why no request can be made with them.
func (o *Options) resolve(req api.Request, name string) (Options, error) {
	c := o.orNone()
	c.Options = req.Options.Over(c.Options)
	_, err := roundtrip.Checked(name, c.Options)
	return c, err
}
