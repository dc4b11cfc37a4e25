package anthropic

import (
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/batch"
	"github.com/plait-dev/plait/api/compatible"
	"github.com/plait-dev/plait/api/dialect"
)

// API is the name of Anthropic's Messages API in blocks, definitions, responses and errors.
const API = "anthropic"

// Options are the options of [New]. Nil is the same as the zero value. Of those in api.Options,
//
//   - MaxTokens defaults to 16,384. With a thinking budget, it defaults to 16,384 more than the budget.
//   - Temperature is 0 to 1; a higher one is sent as 1. It is left out while the model thinks.
//   - Thinking: ThinkAuto and the levels are adaptive thinking, a level as the "effort" of output_config. A budget is
//     1,024 tokens or more, and less than MaxTokens. Thinking is disabled if the API would refuse it: in a turn that
//     began without it, and if ToolChoice forces a call.
//   - Output is a format of output_config.
//   - Cache: CacheShort and CacheLong set at most three cache_control markers: at the end of the constant part (tools
//     and system prompts), and on the last two user messages. They move as the conversation grows, without changing the
//     cached content. CacheOff sets none. So does any other policy, which is noted, and a "cache_control" in Body: the API
//     then caches by itself. See platform.claude.com/docs/en/build-with-claude/prompt-caching.
//   - Stale thinking (content.Thinking.Stale) is left out, because the newest models refuse it. This does not depend on
//     the "block_binding" of "thinking" in Body, which is sent as it is.
//   - Header may hold "anthropic-beta".
type Options struct {
	api.Options
	// Server is the server behind the base URL, such as compatible.LlamaCPP, if it is not Anthropic's. Requests then
	// have the server's own form: see package compatible. The base URL itself is set in SDK. Defaults to Anthropic's.
	Server compatible.Server
	// Prefill allows a conversation to end with a message of the assistant, for the model to continue. Newer models
	// refuse this. Defaults to false: a user message with the text content.GoOn is added.
	Prefill bool
	// TextOnly declares that the model reads only text. A text takes the place of each image, document and recording,
	// and names it. Defaults to false.
	TextOnly bool
	// NoStream requests the whole response at once. Defaults to false.
	NoStream bool
	// Batches sends each request in a batch, at half the price: see package batch. Responses are then not streamed, and
	// Idle does not apply. Prices of an agent are those of batches: see api.Prices.Times. Defaults to nil.
	Batches *batch.Batches
	// SDK is options of the official SDK: a key, a base URL, an HTTP client, bedrock.WithConfig, vertex.WithGoogleAuth.
	// They are applied after those of the environment (ANTHROPIC_API_KEY and others). The SDK's own retries are always
	// off. Defaults to none.
	SDK []option.RequestOption
}

const (
	defaultMaxTokens = 16384
	leastThinking    = 1024
)

// over returns the options for one request, and notes about them. Those of the request take precedence.
func (o *Options) over(request api.Options) (Options, []api.RepairNote) {
	var c Options
	if o != nil {
		c = *o
	}
	var notes []api.RepairNote
	c.Options, notes = dialect.Target{API: API}.Options(request, c.Options)
	if c.Batches != nil {
		c.NoStream, c.Idle = true, -1
	}
	return c, notes
}
