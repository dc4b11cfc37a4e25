package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
)

// Recorder records the requests of a provider under test, for [Run] to check. It is the http.Handler of the test's
// server:
//
//	sent := &conformance.Recorder{Next: fake.Anthropic(…)} // or any other handler
//	server := httptest.NewServer(sent)
//	return sent.Of(anthropic.New("claude-test", …))
//
// A provider without HTTP calls Record itself, in its test. A Recorder is safe for concurrent use.
type Recorder struct {
	// Next handles the requests. Defaults to a handler that responds with status 404.
	Next http.Handler

	mu     sync.Mutex  // guards the fields below
	body   []byte      // of the last request
	header http.Header // of the last request
}

// Record records a request: its JSON body and its header.
func (r *Recorder) Record(body []byte, header http.Header) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.body, r.header = slices.Clone(body), header.Clone()
}

// ServeHTTP records the request and passes it to Next.
func (r *Recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the client is gone
	}
	r.Record(body, req.Header)

	if r.Next == nil {
		http.NotFound(w, req)
		return
	}

	req.Body = io.NopCloser(bytes.NewReader(body))
	r.Next.ServeHTTP(w, req)
}

// Of returns p for [Run], with the requests of p recorded in r. Run then checks them.
func (r *Recorder) Of(p api.Provider) api.Provider { return recorded{p, r} }

type recorded struct {
	api.Provider
	recorder *Recorder
}

// errNotRecorded skips a rule that needs a Recorder.
var errNotRecorded = errors.New("the provider has no Recorder to see what it sends")

// sent is a request as the provider sent it, with the events of the response.
type sent struct {
	body   content.JSON
	header http.Header
	events []api.Event
}

// send makes the request and returns it as sent by the provider. If mustTake is set, a failed stream is an error.
func send(ctx context.Context, p api.Provider, req api.Request, mustTake bool) (sent, error) {
	r, ok := p.(recorded)
	if !ok {
		return sent{}, errNotRecorded
	}

	// Forget the request before this one, to notice if nothing is sent.
	r.recorder.Record(nil, nil)
	events, failure, wrong := take(r.Stream(ctx, req))
	if wrong != nil || mustTake && failure != nil {
		return sent{}, errors.Join(wrong, failure)
	}

	r.recorder.mu.Lock()
	defer r.recorder.mu.Unlock()
	if len(r.recorder.body) == 0 {
		return sent{}, errors.Join(errors.New("the provider sent no request to the server behind the Recorder"), failure)
	}
	return sent{body: content.JSON(r.recorder.body), header: r.recorder.header, events: events}, nil
}

// noted reports whether a note mentions a changed or missing option.
func (s sent) noted() bool {
	if len(s.events) == 0 {
		return false
	}
	r, _ := s.events[0].(api.Repaired)
	return slices.ContainsFunc(r.Repairs, func(n api.RepairNote) bool { return n.Kind == "option" })
}

// holds reports whether the body contains the value: a number, or a text in a string or in a member name.
func (s sent) holds(value any) bool {
	var body any
	if s.body.Decode(&body) != nil {
		return strings.Contains(string(s.body), fmt.Sprint(value))
	}
	return holds(body, value)
}

func holds(in, value any) bool {
	switch in := in.(type) {
	case string:
		text, ok := value.(string)
		return ok && strings.Contains(in, text)
	case float64:
		return in == value
	case []any:
		return slices.ContainsFunc(in, func(item any) bool { return holds(item, value) })
	case map[string]any:
		// A name counts, too: in a schema, the name of a property is one.
		for name, item := range in {
			if holds(name, value) || holds(item, value) {
				return true
			}
		}
	}
	return false
}

// optionRule describes the effect of an option on a request. Without a value and a header, the body must only differ
// from the body without the option, because each API has its own form.
type optionRule struct {
	name   string
	set    func(*api.Options)
	value  any    // a string or a float64 found nowhere else in the request
	header string // a header with the value
	extra  bool   // the API may refuse the request
}

// report is the structured output for the Output rule.
type report struct {
	Celsius int `json:"celsius_q7"`
}

var optionRules = []optionRule{
	{name: "MaxTokens", set: func(o *api.Options) { o.MaxTokens = 3917 }, value: 3917.0},
	{name: "Temperature", set: func(o *api.Options) { t := 0.375; o.Temperature = &t }, value: 0.375},
	{name: "StopSequences", set: func(o *api.Options) { o.StopSequences = []string{"<<stop-q7>>"} },
		value: "<<stop-q7>>"},
	{name: "ToolChoice any", set: func(o *api.Options) { o.ToolChoice = api.ToolsAny }},
	{name: "ToolChoice none", set: func(o *api.Options) { o.ToolChoice = api.ToolsNone }},
	{name: "ToolChoice one tool", set: func(o *api.Options) { o.ToolChoice = api.OneTool("get_weather") }},
	{name: "OneCall", set: func(o *api.Options) { o.OneCall = true }},
	{name: "Thinking", set: func(o *api.Options) { o.Thinking = api.ThinkHigh }},
	{name: "Thinking tokens", set: func(o *api.Options) { o.Thinking = api.ThinkTokens(2917) }, value: 2917.0},
	{name: "Output", set: func(o *api.Options) { o.Output = api.Output[report]() }, value: "celsius_q7"},
	{name: "Cache", set: func(o *api.Options) { o.Cache = api.CacheLong }},
	{name: "Header", set: func(o *api.Options) { o.Header = http.Header{"X-Plait-Test": {"q7"}} }, value: "q7",
		header: "X-Plait-Test"},
	{name: "Body", set: func(o *api.Options) { o.Body = `{"plait_test":"body-q7"}` }, value: "body-q7", extra: true},
}

const sendOrNote = "send it, or report with an api.RepairNote of the kind option that it is left out; the body is"

// arrives checks that the provider sends the option, or notes that it is missing.
func (o optionRule) arrives(ctx context.Context, p api.Provider) error {
	without, err := send(ctx, p, greeting(), true)
	if err != nil {
		return err
	}

	req := greeting()
	o.set(&req.Options)
	with, err := send(ctx, p, req, !o.extra)
	if err != nil {
		return err
	}

	// A note is enough: not every API has every option.
	switch {
	case with.noted():
		return nil
	case o.header != "":
		if with.header.Get(o.header) != o.value {
			return fmt.Errorf("Options.Header is not sent: the header %s is %q, not %q", o.header, with.header.Get(o.header), o.value)
		}
	case o.value != nil:
		if !with.holds(o.value) {
			return fmt.Errorf("%v of Options.%s is not in the body: %s: %s", o.value, o.name, sendOrNote, with.body)
		}
	case with.body.Canonical() == without.body.Canonical():
		return fmt.Errorf("the option %s changes nothing: %s: %s", o.name, sendOrNote, with.body)
	}
	return nil
}

// conversationArrives checks that the provider sends the system prompt, the tool, and all parts of the messages.
func conversationArrives(ctx context.Context, p api.Provider) error {
	req := greeting()
	call, _ := content.Of(content.Text{Text: "I will look."}, content.ToolUse{ID: "callOslo1", Name: "get_weather", Input: `{"city":"Oslo"}`})
	result, _ := content.Of(content.ToolResult{CallID: "callOslo1", Content: content.Words("rain")}, content.Text{Text: "And now?"})
	req.Messages = append(req.Messages, content.Message{Role: content.Assistant, Blocks: call},
		content.Message{Role: content.User, Blocks: result})
	with, err := send(ctx, p, req, true)
	if err != nil {
		return err
	}

	for _, part := range []struct{ what, text string }{
		{"Request.System", "Answer briefly."}, {"the name of a tool", "get_weather"},
		{"the description of a tool", "The weather."}, {"the schema of a tool", "city"},
		{"a text of the user", "Hello"}, {"a text of the assistant", "I will look."}, {"the input of a call", "Oslo"},
		{"a tool result", "rain"}, {"a text beside a tool result", "And now?"},
	} {
		if !with.holds(part.text) {
			return fmt.Errorf("%s is not in the body: send %q: %s", part.what, part.text, with.body)
		}
	}
	if n := strings.Count(string(with.body), "callOslo1"); n < 2 {
		return fmt.Errorf("the ID %q is in the body %d times: send it with the call and with its result: %s", "callOslo1", n, with.body)
	}
	return nil
}
