package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/wire"
)

// Options say how a model is to answer, in one form for all providers. The zero value leaves everything to the provider's own
// defaults. A provider is made with Options; those of a [Request] go before them, field by field (see [Options.Over]).
//
// What an API has no form for is left out of the request, and noted as RepairOption.
type Options struct {
	// MaxTokens is the most tokens the model may write, thinking included. Defaults to the provider's own limit, or to what the
	// provider's documentation here says.
	MaxTokens int
	// Temperature is the randomness of the answer, from 0 to 1 or 2. Defaults to nil: the model's own.
	Temperature *float64
	// StopSequences end the answer where the model writes one of them. Defaults to none.
	StopSequences []string
	// ToolChoice says whether the model has to call a tool, and which. Defaults to ToolsAuto: as it likes.
	ToolChoice ToolChoice
	// OneCall lets the model call one tool at most in one answer. Defaults to false: as many as it likes.
	OneCall bool
	// Thinking is how much the model thinks before it answers. Defaults to "": the model's own way.
	Thinking Thinking
	// Output is the form of the answer, made by [Output]. Defaults to none: words.
	Output Schema
	// Metadata goes beside the request, for the provider's own records; which keys it takes is the provider's affair. Defaults
	// to none.
	Metadata map[string]string
	// Cache is how prompt caching is asked for. Defaults to CacheShort.
	Cache Cache
	// Idle is how long the provider may send nothing at all, not even a sign of life, before the request fails with ErrStalled: until
	// the first byte of the answer, and between any two. Negative is no limit. Defaults to 5 minutes, and to 10 minutes for an answer
	// that is not streamed.
	Idle time.Duration
	// Header is added to the request's HTTP header, in place of what stands there under the same name. Defaults to none.
	Header http.Header
	// Body is an object with further members of the request's body, in the provider's own form, for what Plait does not know. A
	// member that Options sets as well is taken from Body; those that carry the conversation, its model and whether it streams
	// are left out of it, and noted. Defaults to none.
	Body content.JSON
}

// Over returns o with the fields that it leaves open taken from defaults. Metadata and Header are merged key by key, and Body
// member by member.
func (o Options) Over(defaults Options) Options {
	o.MaxTokens = cmp.Or(o.MaxTokens, defaults.MaxTokens)
	o.Temperature = cmp.Or(o.Temperature, defaults.Temperature)
	if o.StopSequences == nil {
		o.StopSequences = defaults.StopSequences
	}
	o.ToolChoice = cmp.Or(o.ToolChoice, defaults.ToolChoice)
	o.OneCall = o.OneCall || defaults.OneCall
	o.Thinking = cmp.Or(o.Thinking, defaults.Thinking)
	o.Output = cmp.Or(o.Output, defaults.Output)
	o.Metadata = overMap(o.Metadata, defaults.Metadata)
	o.Cache = cmp.Or(o.Cache, defaults.Cache)
	o.Idle = cmp.Or(o.Idle, defaults.Idle)
	o.Header = overHeader(o.Header, defaults.Header)
	o.Body = overBody(o.Body, defaults.Body)
	return o
}

// overHeader merges headers, whose names are the same in every spelling.
func overHeader(values, otherwise http.Header) http.Header {
	if len(values)+len(otherwise) == 0 {
		return nil
	}
	merged := http.Header{}
	for _, h := range []http.Header{otherwise, values} {
		for _, name := range slices.Sorted(maps.Keys(h)) {
			merged[http.CanonicalHeaderKey(name)] = h[name]
		}
	}
	return merged
}

func overMap[M ~map[string]V, V any](values, otherwise M) M {
	if len(values) == 0 {
		return otherwise
	}
	merged := maps.Clone(otherwise)
	if merged == nil {
		return values
	}
	maps.Copy(merged, values)
	return merged
}

// Check returns why no request can be made with o; its chain holds ErrInvalidRequest, and it names the field.
func (o Options) Check() error {
	why := ""
	switch t, output := o.Temperature, o.Output.problem(); {
	case o.MaxTokens < 0:
		why = fmt.Sprintf("MaxTokens is %d", o.MaxTokens)
	case t != nil && !(*t >= 0 && *t <= 2): // NaN, too
		why = fmt.Sprintf("Temperature is %v, not 0 to 2", *t)
	case slices.Contains(o.StopSequences, ""):
		why = "StopSequences holds an empty one"
	case !o.ToolChoice.valid():
		why = fmt.Sprintf("ToolChoice is %q, which is no choice", string(o.ToolChoice))
	case !o.Thinking.valid():
		why = fmt.Sprintf("Thinking is %q: neither a level nor a number of tokens", string(o.Thinking))
	case output != "":
		why = "Output: " + output
	case !isWord(string(o.Cache)):
		why = fmt.Sprintf("Cache is %q, which is no policy", string(o.Cache))
	case o.Body != "" && !o.Body.IsObject():
		why = "Body is not a JSON object" + reason(o.Body)
	case unsendable(o.Header) != "":
		why = fmt.Sprintf("Header: %q cannot be sent", unsendable(o.Header))
	default:
		return nil
	}
	return &Error{Kind: ErrInvalidRequest, Err: errors.New("Options." + why)}
}

// reason says why j is no object, where a decoder can say it.
func reason(j content.JSON) string {
	if _, err := wire.Members(j); err != nil {
		return ": " + err.Error()
	}
	return ""
}

// unsendable finds a header that HTTP cannot carry; "" when there is none.
func unsendable(h http.Header) string {
	for _, name := range slices.Sorted(maps.Keys(h)) {
		outside := func(c rune) bool { return c <= ' ' || c >= 0x7F || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c) }
		control := func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7F }
		if name == "" || strings.ContainsFunc(name, outside) || slices.ContainsFunc(h[name], func(v string) bool { return strings.ContainsFunc(v, control) }) {
			return cmp.Or(name, "a name that is empty")
		}
	}
	return ""
}

// ToolChoice says whether a model has to call a tool. The zero value is ToolsAuto. A run asks again after each call: with
// ToolsAny, or one tool, it ends only where a limit ends it.
type ToolChoice string

// The choices; [OneTool] makes the others.
const (
	ToolsAuto ToolChoice = ""     // as it likes
	ToolsAny  ToolChoice = "any"  // some tool
	ToolsNone ToolChoice = "none" // no tool
)

// OneTool is the choice of the tool of that name.
func OneTool(name string) ToolChoice { return ToolChoice(onlyTool + name) }

const onlyTool = "tool:"

// Tool returns the name of the one tool that has to be called; "" when the choice is another one.
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

// Forced reports whether the choice makes the model call a tool.
func (c ToolChoice) Forced() bool { return c == ToolsAny || c.Tool() != "" }

// Thinking says how much a model thinks: one of the levels below, another word that the provider knows, or [ThinkTokens]. The
// zero value leaves it to the model.
type Thinking string

// The levels. Each provider takes the nearest that it has.
const (
	ThinkOff    Thinking = "off"
	ThinkAuto   Thinking = "auto" // as much as the model finds fit
	ThinkLow    Thinking = "low"
	ThinkMedium Thinking = "medium"
	ThinkHigh   Thinking = "high"
)

// ThinkTokens is thinking with a budget of n tokens, 1 or more.
func ThinkTokens(n int) Thinking { return Thinking(strconv.Itoa(n)) }

// Tokens returns the budget; 0 when there is none.
func (t Thinking) Tokens() int {
	n, err := strconv.Atoi(string(t))
	if err != nil || strconv.Itoa(n) != string(t) {
		return 0
	}
	return max(n, 0)
}

// Level returns the word that says how much: low, medium, high, or another of a provider's; "" for off, auto, a budget and the
// zero value.
func (t Thinking) Level() string {
	if t == ThinkOff || t == ThinkAuto || t.Tokens() > 0 {
		return ""
	}
	return string(t)
}

func (t Thinking) valid() bool {
	if t.Tokens() > 0 {
		return t.Tokens() <= mostThinking
	}
	return isWord(string(t))
}

// isWord reports whether s is a word in small letters, or nothing: a level or a policy, perhaps one of a single provider.
func isWord(s string) bool {
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && c != '_' {
			return false
		}
	}
	return true
}

// mostThinking is the largest budget: more than any model has, and small enough to be added to.
const mostThinking = 1 << 30

// Cache says how a request asks for prompt caching: one of the policies below, or another that a provider has. A provider that does
// not know a policy notes it, and does what it does by itself.
type Cache string

// The cache policies.
const (
	// CacheShort is the provider's usual caching: Anthropic is asked to keep the conversation's prefix for 5 minutes after its
	// last use, the others do so by themselves.
	CacheShort Cache = ""
	// CacheLong keeps it for longer, at a higher price: an hour at Anthropic, a day at OpenAI.
	CacheLong Cache = "long"
	// CacheOff asks for no caching.
	CacheOff Cache = "off"
)

// overBody merges objects. What is no object is kept, for Check to find.
func overBody(body, defaults content.JSON) content.JSON {
	if body == "" || defaults == "" || !body.IsObject() || !defaults.IsObject() {
		return cmp.Or(body, defaults)
	}
	list, _ := wire.Members(defaults)
	own, _ := wire.Members(body)
	for _, m := range own {
		_, list = wire.Take(list, m.Name)
	}
	return wire.Object(append(list, own...))
}

// With returns the provider p for requests that are made with o: the Options of a request go before o, and o before those that
// p was made with. With a *[Client] it returns a *Client, so that nothing is retried twice over; both share the client's limits.
func With(p Provider, o Options) Provider {
	if c, ok := p.(*Client); ok && c != nil {
		return &Client{provider: With(c.provider, o), options: c.options, pace: c.pace}
	}
	return with{p, o}
}

type with struct {
	provider Provider
	options  Options
}

func (w with) Stream(ctx context.Context, req Request) iter.Seq2[Event, error] {
	req.Options = req.Options.Over(w.options)
	return (&Client{provider: w.provider}).events(ctx, req)
}
