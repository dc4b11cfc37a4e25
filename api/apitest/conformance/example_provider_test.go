package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"regexp"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/conformance"
	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/content"
)

// toy is a whole provider, for an API that accepts a conversation as JSON and responds at once. It keeps all rules of
// api.Provider: TestTheExampleProviderKeepsTheRules runs conformance.Run on it.
type toy struct {
	url     string
	http    *http.Client
	options api.Options
}

const toyAPI = "toy"

// toyTarget is what the API takes: names and ids of plain letters, and no media.
var toyTarget = dialect.Target{API: toyAPI, ToolName: regexp.MustCompile(`^\w{1,64}$`), NameLength: 64, CallID: regexp.MustCompile(`^\w{1,40}$`)}

func (t toy) Stream(ctx context.Context, req api.Request) iter.Seq2[api.Event, error] {
	return api.Once(func(yield func(api.Event, error) bool) {
		o := req.Options.Over(t.options)
		body, notes, err := toyBody(req, o)
		if err != nil {
			yield(nil, err)
			return
		}
		if len(notes) > 0 && !yield(api.Repaired{Repairs: notes}, nil) {
			return
		}

		answer, err := t.ask(ctx, o, body)
		if err != nil {
			yield(nil, err)
			return
		}
		for i, block := range answer.blocks() {
			if !yield(api.BlockEnd{Index: i, Block: block}, nil) {
				return
			}
		}
		yield(answer.finish(), nil)
	})
}

// toyMessage is a message as the API wants it.
type toyMessage struct {
	Role    string            `json:"role"`
	Text    string            `json:"text,omitempty"`
	Calls   []toyCall         `json:"calls,omitempty"`
	Results map[string]string `json:"results,omitempty"`
}

type toyCall struct {
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// toyBody makes the request's body. The notes say what became of blocks and options that the API has no form for.
func toyBody(req api.Request, o api.Options) ([]byte, []api.RepairNote, error) {
	if err := o.Check(); err != nil {
		return nil, nil, err
	}
	messages, notes := dialect.Repair(req.Messages, dialect.Rules{Accept: toyTarget.Accept, ID: toyTarget.FitsID})
	if len(messages) == 0 {
		return nil, nil, &api.Error{Kind: api.ErrNothing, API: toyAPI}
	}
	for name, set := range map[string]bool{
		"ToolChoice": o.ToolChoice != api.ToolsAuto, "OneCall": o.OneCall, "Thinking": o.Thinking != "", "Output": o.Output != api.Schema{},
		"Cache": o.Cache != api.CacheShort, "Body": o.Body != "",
	} {
		if set {
			notes = append(notes, api.RepairNote{Kind: api.RepairOption, Message: -1, Detail: name + " is left out: the API has no such thing"})
		}
	}

	var tools []content.Tool
	for _, def := range req.Tools {
		tool, why, ok := toyTarget.Tool(def)
		if ok {
			tools = append(tools, tool)
		}
		if why != "" {
			notes = append(notes, api.RepairNote{Kind: api.RepairTool, Message: -1, Detail: why})
		}
	}

	var said []toyMessage
	for _, m := range messages {
		said = append(said, toyMessageOf(m))
	}
	body, err := json.Marshal(map[string]any{
		"system": req.System, "tools": tools, "messages": said, "max_tokens": o.MaxTokens, "temperature": o.Temperature, "stop": o.StopSequences,
	})
	if err != nil {
		return nil, nil, &api.Error{Kind: api.ErrInvalidRequest, API: toyAPI, Err: err}
	}
	return body, notes, nil
}

func toyMessageOf(m content.Message) toyMessage {
	said := toyMessage{Role: string(m.Role), Text: m.Blocks.Text()}
	for _, call := range m.Blocks.ToolUses() {
		input := call.Input
		if !input.Valid() { // the call was cut off
			input = "{}"
		}
		said.Calls = append(said.Calls, toyCall{ID: call.ID, Name: call.Name, Input: json.RawMessage(input)})
	}
	for _, result := range m.Blocks.ToolResults() {
		if said.Results == nil {
			said.Results = map[string]string{}
		}
		said.Results[result.CallID] = result.Content.Text()
	}
	return said
}

// toyAnswer is what the API answers.
type toyAnswer struct {
	Model  string    `json:"model"`
	Text   string    `json:"text"`
	Calls  []toyCall `json:"calls"`
	Tokens int64     `json:"tokens"`
}

// ask sends the body and reads the answer.
func (t toy) ask(ctx context.Context, o api.Options, body []byte) (answer toyAnswer, err error) {
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	idle := o.Idle
	if idle == 0 {
		idle = 5 * time.Minute
	}
	if idle > 0 { // an answer that comes at once has one wait: the whole of it
		limited, cancel = context.WithTimeout(limited, idle)
		defer cancel()
	}

	req, err := http.NewRequestWithContext(limited, http.MethodPost, t.url, bytes.NewReader(body))
	if err != nil {
		return answer, &api.Error{Kind: api.ErrInvalidRequest, API: toyAPI, Err: err}
	}
	for name, values := range o.Header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	res, err := t.http.Do(req)
	if err == nil {
		defer res.Body.Close()
		err = toyRead(res, &answer)
	}

	var ours *api.Error
	switch {
	case err == nil:
		return answer, nil
	case ctx.Err() != nil: // the caller's context ended, which is no fault of the API
		return answer, fmt.Errorf("%s: %w", toyAPI, ctx.Err())
	case limited.Err() != nil:
		return answer, &api.Error{Kind: api.ErrStalled, API: toyAPI, Message: fmt.Sprintf("nothing received for %v", idle)}
	case errors.As(err, &ours):
		return answer, err
	}
	return answer, &api.Error{Kind: api.ErrTransport, API: toyAPI, Err: err}
}

// toyRead reads a response.
func toyRead(res *http.Response, answer *toyAnswer) error {
	data, err := io.ReadAll(io.LimitReader(res.Body, 32<<20))
	if err != nil {
		return err
	}
	switch e := (&api.Error{API: toyAPI, Status: res.StatusCode, Message: string(data)}); {
	case res.StatusCode == http.StatusTooManyRequests:
		e.Kind = api.ErrRateLimited
		return e
	case res.StatusCode == http.StatusServiceUnavailable:
		e.Kind = api.ErrOverloaded
		return e
	case res.StatusCode >= 500:
		e.Kind = api.ErrServer
		return e
	case res.StatusCode != http.StatusOK:
		e.Kind = api.ErrInvalidRequest
		return e
	}
	if err := json.Unmarshal(data, answer); err != nil {
		return &api.Error{Kind: api.ErrCut, API: toyAPI, Status: res.StatusCode, Err: err}
	}
	return nil
}

func (a toyAnswer) blocks() (blocks []content.Block) {
	if a.Text != "" {
		blocks = append(blocks, content.Text{Text: a.Text})
	}
	for _, call := range a.Calls {
		blocks = append(blocks, content.ToolUse{ID: call.ID, Name: call.Name, Input: content.JSON(call.Input)})
	}
	return blocks
}

func (a toyAnswer) finish() api.Finish {
	stop := content.StopEndTurn
	if len(a.Calls) > 0 {
		stop = content.StopToolUse
	}
	return api.Finish{API: toyAPI, Model: a.Model, Stop: stop, Usage: content.Usage{Output: a.Tokens}}
}

// toyServer is the API itself, as it behaves in a scenario.
func toyServer(s conformance.Scenario) http.Handler {
	failed := false
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case s == conformance.Hangs:
			<-r.Context().Done()
		case s == conformance.Breaks:
			fmt.Fprint(w, `{"model":"toy-1","text":"Hello`)
		case s == conformance.FailsOnce && !failed:
			failed = true
			http.Error(w, "Come back later.", http.StatusServiceUnavailable)
		case s == conformance.Calls:
			fmt.Fprint(w, `{"model":"toy-1","text":"Let me see.","calls":[{"id":"a","name":"get_weather","input":{"city":"Tokyo"}}],"tokens":9}`)
		default:
			fmt.Fprint(w, `{"model":"toy-1","text":"Hello there.","tokens":3}`)
		}
	})
}

// A provider of your own. This one is for an API that answers at once; Example_streaming has one that streams. The
// suite that checks both is ExampleRun's.
func Example_provider() {
	server := httptest.NewServer(toyServer(conformance.Answers))
	defer server.Close()
	client := api.NewClient(toy{url: server.URL, http: server.Client()}, nil)

	answer, err := client.Send(context.Background(), api.Request{
		Messages: []content.Message{{Role: content.User, Blocks: content.Words("Hello")}},
		Options:  api.Options{MaxTokens: 100, Thinking: api.ThinkHigh},
	})
	fmt.Println(answer.Blocks.Text(), answer.Model, answer.Usage.Output, err)
	fmt.Println(answer.Repairs)
	// Output:
	// Hello there. toy-1 3 <nil>
	// [option: Thinking is left out: the API has no such thing]
}
