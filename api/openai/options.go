package openai

import (
	"fmt"
	"strings"

	"github.com/openai/openai-go/v3/option"
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/batch"
	"github.com/plait-dev/plait/api/compatible"
	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/api/internal/roundtrip"
	"github.com/plait-dev/plait/internal/servers"
)

// The names of OpenAI's APIs in blocks, tool definitions, responses and errors. Compatible servers have the name of the
// API they implement.
const (
	ChatAPI      = "openai-chat"
	ResponsesAPI = "openai-responses"
)

// Options are the options of a [Chat] and of a [Responses]. Nil is the same as the zero value. The options in
// api.Options are sent as follows:
//
//   - MaxTokens is "max_completion_tokens" in Chat (see MaxTokensName), and "max_output_tokens" in Responses. OpenAI's
//     own servers accept 16 or more for the latter. There is no default.
//   - Temperature is sent as it is. Models that reason may refuse it.
//   - StopSequences are "stop" in Chat, the first four only. Responses has none.
//   - ToolChoice is sent if there are tools. A choice of one tool is sent only if the tool is among them.
//   - OneCall is "parallel_tool_calls", if there are tools.
//   - Thinking: a level is "reasoning_effort" in Chat, and in Responses "reasoning", with a summary. ThinkOff is the
//     effort "none". ThinkAuto sends nothing in Chat, and requests a summary in Responses. A budget is left out and
//     noted. For OpenAI's models that do not reason (gpt-3, gpt-4, chatgpt, gpt-5-chat), Thinking is left out entirely
//     and noted.
//   - Output is "response_format" in Chat and the format of "text" in Responses. It is strict if its schema can be. A
//     Chat's conversation must then end with the user: content.GoOn is added after a text of the assistant.
//   - Cache: the APIs cache by themselves. CacheLong is "prompt_cache_retention": "24h". CacheOff turns caching off for
//     GPT-5.6 and later models, because these charge for writing to the cache ("prompt_cache_options"). Earlier models
//     always cache. Body may hold "prompt_cache_key", the same for requests with a common beginning: OpenAI sends them
//     to the machine with the cached beginning. See developers.openai.com/api/docs/guides/prompt-caching.
//   - Idle and Header are as in api.Options.
//   - Body may hold all members except "model", "messages", "tools" and "stream" in Chat. For Responses see
//     [ResponsesBody]. There, members of "reasoning" and "text" override, one by one, those made of the options.
type Options struct {
	// Options control the response; a request's own options take precedence. Defaults to the API's own defaults.
	api.Options
	// Server is the server behind the base URL, such as compatible.LlamaCPP, if it is neither OpenAI's nor Azure's.
	// Requests then have the server's own form: see package compatible. The base URL itself is set in SDK. Defaults to
	// the server recognized from the base URL.
	Server compatible.Server
	// SystemRole is the role of a Chat's system prompts: "system", accepted by OpenAI's models and nearly all
	// compatible servers; "developer"; or "user", for a model that accepts neither. Defaults to "system".
	SystemRole string
	// MaxTokensName is the name of a Chat's MaxTokens in the request. Older compatible servers know only "max_tokens".
	// Defaults to the Server's name for it, and to "max_completion_tokens".
	MaxTokensName string
	// OmitThinking leaves the thinking of earlier responses out of a Chat's requests. Otherwise a compatible server
	// receives it under the Server's name for it, or under its original name, such as "reasoning_content". OpenAI's own
	// models, recognized by their names, never receive any. Defaults to false.
	OmitThinking bool
	// Audio declares that a Chat's model accepts audio. Otherwise audio is sent only to models with "audio" in their
	// names, such as OpenAI's audio models. Other models receive a text in its place. Defaults to false.
	Audio bool
	// TextOnly declares that the model reads only text. A text takes the place of each image, document and recording,
	// and names it. Defaults to false.
	TextOnly bool
	// NoStream requests the whole response at once. Defaults to false.
	NoStream bool
	// Batches sends each request in a batch, at half the price: see package batch. Responses are then not streamed, and
	// Idle does not apply. Prices of an agent are those of batches: see api.Prices.Times. Defaults to nil.
	Batches *batch.Batches
	// SDK holds options of the official SDK: a key, a base URL (with its version, as in "http://127.0.0.1:8080/v1"), an
	// HTTP client, azure.WithEndpoint. They are applied after the environment (OPENAI_API_KEY and others). The SDK's
	// own retries are always off. Defaults to none.
	SDK []option.RequestOption
}

// orNone returns *o, or the zero value if o is nil.
func (o *Options) orNone() Options {
	if o == nil {
		return Options{}
	}
	return *o
}

// resolve returns o with the options of the request over its own and notes about them, or an error if no request can be
// made with them.
func (o *Options) resolve(req api.Request, name string) (Options, []api.RepairNote, error) {
	c := o.orNone()
	var notes []api.RepairNote
	c.Options, notes = dialect.Target{API: name}.Options(req.Options, c.Options)
	if _, known := servers.Of(c.Server); !known {
		return c, nil, badServer(name, "%q is not a known server; known are %s", c.Server, strings.Join(servers.Names(), ", "))
	}
	_, err := roundtrip.Checked(name, c.Options)
	if c.Batches != nil {
		c.NoStream, c.Idle = true, -1
	}
	return c, notes, err
}

// badServer returns the error for an Options.Server unusable for requests.
func badServer(name, format string, args ...any) error {
	return &api.Error{Kind: api.ErrInvalidRequest, API: name, Err: fmt.Errorf("Options.Server: "+format, args...)}
}
