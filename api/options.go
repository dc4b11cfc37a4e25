package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
)

// Options control a model's response, in one form for all providers. The zero value leaves everything to the provider's
// defaults. A provider is made with Options; those of a [Request] take precedence, field by field (see [Options.Over]).
//
// An option without an equivalent in the API is dropped, with a note of kind "option".
type Options struct {
	// MaxTokens is the maximum number of tokens the model may write, thinking included. Defaults to the provider's own
	// limit, or to the one in the documentation of the provider's package.
	MaxTokens int
	// Temperature is the randomness of the response, from 0 to 1 or 2. Defaults to nil: the model's own.
	Temperature *float64
	// StopSequences are texts that end the response when the model writes one of them. Defaults to none.
	StopSequences []string
	// ToolChoice controls whether the model must call a tool, or one named tool. Defaults to ToolsAuto: the model
	// decides.
	ToolChoice ToolChoice
	// OneCall limits a response to one tool call. Defaults to false: no limit.
	OneCall bool
	// Thinking is how much the model thinks before it responds. Defaults to "": the model's own default.
	Thinking Thinking
	// Output is the form of the response, made by [Output]. Defaults to none: plain text.
	Output Schema
	// Cache is the policy for prompt caching. Defaults to CacheShort.
	Cache Cache
	// Idle limits the time without any data from the provider, keep-alives included. After it, the request fails with
	// ErrStalled. It applies until the first byte of the response, and between any two bytes. Negative is no limit. Defaults
	// to 5 minutes, and to 10 minutes for a response that is not streamed.
	Idle time.Duration
	// Header is added to the request's HTTP header. It replaces fields of the same name. An http.Header can be assigned
	// to it; this package does not import net/http. Defaults to none.
	Header map[string][]string
	// Body is an object with further members of the request's body, in the provider's own form, for options unknown to
	// Plait. It overrides members set by Options. Members for the conversation, the model or streaming are dropped,
	// with a note. Defaults to none.
	Body content.JSON
	// BodyAPI names the API in whose form Body is, such as "anthropic"; Import functions set it. A provider of another
	// API sends the settings that all APIs have (see dialect.Settings), and leaves out the others, with a note. Defaults
	// to "": Body is in the form of the provider's own API.
	BodyAPI string
}

// Over returns o with its zero fields taken from defaults. Header is merged name by name, and Body member by member.
func (o Options) Over(defaults Options) Options {
	o.MaxTokens = cmp.Or(o.MaxTokens, defaults.MaxTokens)
	o.Temperature = cmp.Or(o.Temperature, defaults.Temperature)

	// An empty list that is not nil overrides the defaults.
	if o.StopSequences == nil {
		o.StopSequences = defaults.StopSequences
	}

	o.ToolChoice = cmp.Or(o.ToolChoice, defaults.ToolChoice)

	// False is the zero value, so o cannot turn OneCall off.
	o.OneCall = o.OneCall || defaults.OneCall
	o.Thinking = cmp.Or(o.Thinking, defaults.Thinking)
	o.Output = cmp.Or(o.Output, defaults.Output)
	o.Cache = cmp.Or(o.Cache, defaults.Cache)
	o.Idle = cmp.Or(o.Idle, defaults.Idle)
	o.Header = overHeader(o.Header, defaults.Header)
	if o.BodyAPI == "" || defaults.BodyAPI == "" || o.BodyAPI == defaults.BodyAPI || o.Body == "" {
		o.Body = overBody(o.Body, defaults.Body)
		o.BodyAPI = cmp.Or(o.BodyAPI, defaults.BodyAPI)
	}
	return o
}

// overHeader returns defaults overridden by values. Header names are case-insensitive.
func overHeader(values, defaults map[string][]string) map[string][]string {
	if len(values)+len(defaults) == 0 {
		return nil
	}

	merged := map[string][]string{}
	for _, h := range []map[string][]string{defaults, values} {
		for _, name := range slices.Sorted(maps.Keys(h)) {
			merged[textproto.CanonicalMIMEHeaderKey(name)] = h[name]
		}
	}
	return merged
}

// Check returns an error with the name of the first invalid field of o, and ErrInvalidRequest in its chain.
func (o Options) Check() error {
	why := ""
	switch t, output := o.Temperature, o.Output.problem(); {
	case o.MaxTokens < 0:
		why = fmt.Sprintf("MaxTokens is %d", o.MaxTokens)
	case t != nil && !(*t >= 0 && *t <= 2): // true for NaN, too
		why = fmt.Sprintf("Temperature is %v, not 0 to 2", *t)
	case slices.Contains(o.StopSequences, ""):
		why = "StopSequences contains an empty string"
	case !o.ToolChoice.valid():
		why = fmt.Sprintf("ToolChoice is %q, which is not a tool choice", string(o.ToolChoice))
	case !o.Thinking.valid():
		why = fmt.Sprintf("Thinking is %q: neither a level nor a number of tokens", string(o.Thinking))
	case output != "":
		why = "Output: " + output
	case !isWord(string(o.Cache)):
		why = fmt.Sprintf("Cache is %q, which is not a policy", string(o.Cache))
	case o.Body != "" && !o.Body.IsObject():
		why = "Body is not a JSON object" + reason(o.Body)
	case unsendable(o.Header) != "":
		why = fmt.Sprintf("Header: %q cannot be sent", unsendable(o.Header))
	default:
		return nil
	}

	return &Error{Kind: ErrInvalidRequest, Err: errors.New("Options." + why)}
}

// reason returns the decoder's error about j, after a colon, or "".
func reason(j content.JSON) string {
	if _, err := jsonx.Members(j); err != nil {
		return ": " + err.Error()
	}
	return ""
}

// unsendable returns the name of the first header field with a name or value invalid in HTTP, or "".
func unsendable(h map[string][]string) string {
	// RFC 9110: a name is a token, and a value has no control characters except tabs.
	notToken := func(c rune) bool { return c <= ' ' || c >= 0x7F || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c) }
	control := func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7F }
	hasControl := func(value string) bool { return strings.ContainsFunc(value, control) }

	for _, name := range slices.Sorted(maps.Keys(h)) {
		if name == "" || strings.ContainsFunc(name, notToken) || slices.ContainsFunc(h[name], hasControl) {
			return cmp.Or(name, "a name that is empty")
		}
	}
	return ""
}

// ToolChoice controls whether a model must call a tool. The zero value is ToolsAuto. A run sends the choice with every
// request: with ToolsAny or [OneTool] only a limit ends the run.
type ToolChoice string

// The choices; [OneTool] returns further ones.
const (
	ToolsAuto ToolChoice = ""     // the model decides
	ToolsAny  ToolChoice = "any"  // the model must call some tool
	ToolsNone ToolChoice = "none" // the model must not call a tool
)

// OneTool returns the choice that requires a call of the tool with that name.
func OneTool(name string) ToolChoice { return ToolChoice(onlyTool + name) }

const onlyTool = "tool:"

// Tool returns the name of the required tool for a choice made by OneTool, or "" for other choices.
func (c ToolChoice) Tool() string {
	name, _ := strings.CutPrefix(string(c), onlyTool)
	if len(name) == len(c) {
		return ""
	}
	return name
}

func (c ToolChoice) valid() bool {
	return c == ToolsAuto || c == ToolsAny || c == ToolsNone || c.Tool() != ""
}

// Thinking is the amount of thinking of a model: one of the levels below, another level of the provider, or
// [ThinkTokens]. The zero value leaves it to the model.
type Thinking string

// The levels. Each provider uses its nearest level.
const (
	ThinkOff    Thinking = "off"
	ThinkAuto   Thinking = "auto" // the model decides
	ThinkLow    Thinking = "low"
	ThinkMedium Thinking = "medium"
	ThinkHigh   Thinking = "high"
)

// ThinkTokens returns a Thinking with a budget of n tokens, 1 or more.
func ThinkTokens(n int) Thinking { return Thinking(strconv.Itoa(n)) }

// Tokens returns the budget, or 0 if there is none.
func (t Thinking) Tokens() int {
	n, err := strconv.Atoi(string(t))
	if err != nil || strconv.Itoa(n) != string(t) {
		return 0
	}
	return max(n, 0)
}

// Level returns low, medium, high, or a provider's own level. It returns "" for off, auto, a budget and the zero value.
func (t Thinking) Level() string {
	if t == ThinkOff || t == ThinkAuto || t.Tokens() > 0 {
		return ""
	}
	return string(t)
}

func (t Thinking) valid() bool {
	if t.Tokens() > 0 {
		return t.Tokens() <= maxThinking
	}
	return isWord(string(t))
}

// isWord reports whether s has only small letters and "_", as the names of levels and policies have. An empty s is a
// word too.
func isWord(s string) bool {
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && c != '_' {
			return false
		}
	}
	return true
}

// maxThinking is the largest budget: more than any model has, and small enough to add to without overflow.
const maxThinking = 1 << 30

// Cache is a policy for prompt caching: one of those below, or a provider's own. For an unknown policy, a provider adds
// a note and uses its default.
type Cache string

// The cache policies.
const (
	// CacheShort is the provider's usual caching. For Anthropic, the request marks the conversation's prefix to be kept
	// for 5 minutes after its last use; the others do so without a mark.
	CacheShort Cache = ""
	// CacheLong keeps the prefix for longer, at a higher price: an hour at Anthropic, a day at OpenAI.
	CacheLong Cache = "long"
	// CacheOff requests no caching, as far as the provider lets a request turn it off.
	CacheOff Cache = "off"
)

// overBody returns defaults overridden by body, member by member. A body other than an object is kept, for Check to
// find.
func overBody(body, defaults content.JSON) content.JSON {
	if body == "" || defaults == "" || !body.IsObject() || !defaults.IsObject() {
		return cmp.Or(body, defaults)
	}

	list, _ := jsonx.Members(defaults)
	own, _ := jsonx.Members(body)
	for _, m := range own {
		_, list = jsonx.Take(list, m.Name)
	}
	return jsonx.Object(append(list, own...))
}

// With returns a provider that sends requests to p with the options o. The Options of a request take precedence over o,
// and o over the options of p. If p is a *[Client], With returns a *Client, so that a request is never retried by two
// clients. Both share the client's limits.
func With(p Provider, o Options) Provider {
	if c, ok := p.(*Client); ok && c != nil {
		return &Client{provider: With(c.provider, o), options: c.options, pace: c.pace}
	}
	return with{p, o}
}

// with is the provider returned by With.
type with struct {
	provider Provider
	options  Options
}

func (w with) Stream(ctx context.Context, req Request) iter.Seq2[Event, error] {
	req.Options = req.Options.Over(w.options)
	return (&Client{provider: w.provider}).events(ctx, req)
}
