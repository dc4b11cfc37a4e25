package anthropic

import (
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/plait-dev/plait/api"
)

// API is the name of Anthropic's Messages API in blocks, definitions, answers and errors.
const API = "anthropic"

// CacheOwn, as api.Options.Cache, sets no cache_control but what the conversation holds itself, in the Extra of its blocks and
// tools; those that the API would refuse are left out, and noted. Markers of system prompts, which have no Extra, are the member
// "system" of Options.Body: a list with one object for each prompt, {"cache_control":…} or {}.
const CacheOwn api.Cache = "own"

// Options are the options of a [Provider]. Nil is the same as the zero value. Of those in api.Options,
//
//   - MaxTokens defaults to 16,384, and with a thinking budget to that many beyond the budget.
//   - Temperature is 0 to 1; a higher one is sent as 1. It is left out while the model thinks.
//   - Thinking: ThinkAuto and the levels are adaptive thinking, a level as the "effort" of output_config; a budget is 1,024 tokens
//     or more, and less than MaxTokens. The model does not think where the API would refuse it: in a turn that began without, and
//     where ToolChoice forces a call.
//   - Output is a format of output_config.
//   - Of Metadata, "user_id" is sent.
//   - Cache: with CacheShort and CacheLong, at most three cache_control markers are set: at the end of what never changes (tools
//     and system prompts), and on the last two messages of the user's side. They move as the conversation grows, which does not
//     change what is cached. With CacheOff there are none. CacheOwn is this provider's own. Another
//     policy is noted, and there are none.
//   - Thinking that is marked as stale (content.Thinking.Stale) is left out, because the newest models refuse it, unless Body holds
//     {"thinking":{"block_binding":{"prefix_mismatch_behavior":"drop_block"}}}: then it is sent, and the API drops it itself.
//   - Header may hold "anthropic-beta".
type Options struct {
	api.Options
	// Prefill lets a conversation end with a message of the assistant, which the model then goes on with. Newer models refuse
	// that. Defaults to false: the user's side is made to say dialect.GoOn.
	Prefill bool
	// NoStream asks for the whole answer at once. Defaults to false.
	NoStream bool
	// SDK is options of the official SDK: a key, a base URL, an HTTP client, bedrock.WithConfig, vertex.WithGoogleAuth. They are
	// applied after what the environment says (ANTHROPIC_API_KEY and others); the SDK's own retries are always off. Defaults to
	// none.
	SDK []option.RequestOption
}

const (
	defaultMaxTokens = 16384
	leastThinking    = 1024
)

// over returns the options for one request.
func (o *Options) over(request api.Options) Options {
	var c Options
	if o != nil {
		c = *o
	}
	c.Options = request.Over(c.Options)
	return c
}
