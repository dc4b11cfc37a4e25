package anthropic

import (
	"errors"
	"fmt"
	"math"

	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/plait-dev/plait/content"
)

// API is the name of Anthropic's Messages API in blocks, definitions, answers and errors.
const API = "anthropic"

// Adaptive, as Options.Thinking, lets the model decide whether and how long it thinks.
const Adaptive = -1

// Cache says how a request asks for prompt caching.
type Cache string

// The cache policies.
const (
	// CacheShort keeps the prefix of the conversation for 5 minutes after its last use.
	CacheShort Cache = ""
	// CacheLong keeps it for an hour, at a higher price.
	CacheLong Cache = "1h"
	// CacheOff asks for no caching.
	CacheOff Cache = "off"
)

// Options are the options of a [Provider]. Nil is the same as the zero value.
type Options struct {
	// MaxTokens is the most tokens the model may write, thinking included. Defaults to 16,384, and with a thinking budget to
	// that many beyond the budget.
	MaxTokens int
	// Temperature is the randomness of the answer, 0 to 1. It is left out, here and in Body, and noted, while the model thinks.
	// Defaults to nil: the API's own.
	Temperature *float64
	// StopSequences end the answer where the model writes one of them. Defaults to none.
	StopSequences []string
	// Thinking is how many tokens the model may think before it answers (1,024 or more), or Adaptive. Defaults to 0: nothing is
	// said of thinking, and the API decides.
	Thinking int
	// Cache is how prompt caching is asked for. With CacheShort and CacheLong, at most three cache_control markers are set: at the
	// end of what never changes (tools and system prompts), and on the last two messages of the user's side. They move as the
	// conversation grows, which does not change what is cached; with CacheOff the bytes of a message never change. A
	// conversation that holds cache_control itself, in an Extra or in Body, gets no others. Defaults to CacheShort.
	Cache Cache
	// Prefill lets a conversation end with a message of the assistant, which the model then goes on with. Newer models refuse
	// that. Defaults to false: the user's side is made to say api.GoOn.
	Prefill bool
	// Betas are values of the anthropic-beta header. Defaults to none.
	Betas []string
	// Body is an object with further members of the request's body, such as "tool_choice" or "metadata". A member that Options
	// sets as well is taken from Body; "model", "system", "tools", "messages" and "stream" are left out of it, and noted. Defaults to
	// none.
	Body content.JSON
	// NoStream asks for the whole answer at once. Defaults to false.
	NoStream bool
	// SDK is options of the official SDK: a key, a base URL, an HTTP client, bedrock.WithConfig, vertex.WithGoogleAuth. They are
	// applied after what the environment says (ANTHROPIC_API_KEY and others); the SDK's own retries are always off. Defaults to
	// none.
	SDK []option.RequestOption
}

const defaultMaxTokens = 16384

func (o *Options) withDefaults() Options {
	var c Options
	if o != nil {
		c = *o
	}
	if c.MaxTokens <= 0 {
		c.MaxTokens = defaultMaxTokens + max(c.Thinking, 0)
	}
	return c
}

// check says which option no request can be made of.
func (o *Options) check() error {
	switch t := o.Temperature; {
	case t != nil && !(*t >= 0 && *t <= 1): // NaN, too
		return fmt.Errorf("Options.Temperature is %v, not 0 to 1", *t)
	case o.Thinking < 0 && o.Thinking != Adaptive:
		return fmt.Errorf("Options.Thinking is %d: neither a number of tokens nor Adaptive", o.Thinking)
	case o.Thinking > math.MaxInt-defaultMaxTokens:
		return fmt.Errorf("Options.Thinking is %d: too many tokens", o.Thinking)
	case o.Cache != CacheShort && o.Cache != CacheLong && o.Cache != CacheOff:
		return fmt.Errorf("Options.Cache is %q, which is no policy", string(o.Cache))
	case o.Body == "":
		return nil
	}
	if _, err := members(o.Body); err != nil {
		return fmt.Errorf("Options.Body is not a JSON object: %w", err)
	}
	if !o.Body.IsObject() {
		return errors.New("Options.Body is more than one JSON object")
	}
	return nil
}
