package conformance_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/conformance"
	"github.com/plait-dev/plait/content"
)

// brook is a provider for an API that accepts the requests of toy and streams its responses, one line of JSON after the
// other.
type brook struct{ toy }

// brookLine is a line of a response. Each has one of the fields.
type brookLine struct {
	Text  string     `json:"text,omitempty"`  // a piece of a text
	Call  *toyCall   `json:"call,omitempty"`  // a call begins: its ID and its name
	Input string     `json:"input,omitempty"` // a piece of the call's arguments
	End   *toyAnswer `json:"end,omitempty"`   // the end of the response: the model and the tokens
}

func (b brook) Stream(ctx context.Context, req api.Request) iter.Seq2[api.Event, error] {
	return api.Once(func(yield func(api.Event, error) bool) {
		o := req.Options.Over(b.options)
		body, notes, err := toyBody(req, o)
		if err != nil {
			yield(nil, err)
			return
		}
		if len(notes) > 0 && !yield(api.Repaired{Repairs: notes}, nil) {
			return
		}

		if err := b.ask(ctx, o, body, func(e api.Event) bool { return yield(e, nil) }); err != nil {
			yield(nil, err)
		}
	})
}

// ask sends the body and yields the events of the response. It returns nil if the consumer stops.
func (b brook) ask(ctx context.Context, o api.Options, body []byte, yield func(api.Event) bool) error {
	limited, cancel := context.WithCancel(ctx)
	defer cancel()

	// The time limit is not one for the whole response: each line restarts it.
	idle := cmp.Or(o.Idle, 5*time.Minute)
	var stalled atomic.Bool
	restart := func() {}
	if idle > 0 {
		timer := time.AfterFunc(idle, func() { stalled.Store(true); cancel() })
		defer timer.Stop()
		restart = func() { timer.Reset(idle) }
	}

	err := b.read(limited, o, body, restart, yield)
	var ours *api.Error
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil: // the caller's context ended, which is no fault of the API
		return fmt.Errorf("%s: %w", toyAPI, ctx.Err())
	case stalled.Load():
		return &api.Error{Kind: api.ErrStalled, API: toyAPI, Message: fmt.Sprintf("nothing received for %v", idle)}
	case errors.As(err, &ours):
		return err
	}
	return &api.Error{Kind: api.ErrTransport, API: toyAPI, Err: err}
}

// read sends the body and yields an event for each line.
func (b brook) read(ctx context.Context, o api.Options, body []byte, restart func(), yield func(api.Event) bool) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url, bytes.NewReader(body))
	if err != nil {
		return &api.Error{Kind: api.ErrInvalidRequest, API: toyAPI, Err: err}
	}
	for name, values := range o.Header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	res, err := b.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return toyRead(res, nil)
	}

	block := brookBlock{yield: yield}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		restart()
		var line brookLine
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return &api.Error{Kind: api.ErrCut, API: toyAPI, Status: res.StatusCode, Err: err}
		}
		if !block.add(line) || line.End != nil {
			return nil
		}
	}

	// A connection that closes without the last line is an error, even if every line before it was whole.
	return &api.Error{Kind: api.ErrCut, API: toyAPI, Status: res.StatusCode, Err: cmp.Or(lines.Err(), io.ErrUnexpectedEOF)}
}

// brookBlock is the block that is being written.
type brookBlock struct {
	yield func(api.Event) bool
	index int
	text  string
	call  *content.ToolUse // nil while a text is being written
	calls bool             // the response has a call
}

// add yields what a line brings, and reports whether the consumer wants more.
func (b *brookBlock) add(line brookLine) bool {
	switch {
	case line.Text != "":
		if b.call != nil && !b.end() {
			return false
		}
		b.text += line.Text
		return b.yield(api.Delta{Index: b.index, Kind: api.DeltaText, Text: line.Text})

	case line.Call != nil:
		if !b.end() {
			return false
		}
		b.call, b.calls = &content.ToolUse{ID: line.Call.ID, Name: line.Call.Name}, true

	case line.Input != "" && b.call != nil:
		b.call.Input += content.JSON(line.Input)
		return b.yield(api.Delta{Index: b.index, Kind: api.DeltaInput, Tool: b.call.Name, Text: line.Input})

	case line.End != nil:
		if !b.end() {
			return false
		}
		finish := line.End.finish()
		if b.calls {
			finish.Stop = content.StopToolUse
		}
		return b.yield(finish)
	}
	return true
}

// end yields the whole block, if there is one, and begins the next.
func (b *brookBlock) end() bool {
	var whole content.Block
	switch {
	case b.call != nil:
		whole = *b.call
	case b.text != "":
		whole = content.Text{Text: b.text}
	default:
		return true
	}

	more := b.yield(api.BlockEnd{Index: b.index, Block: whole})
	b.index, b.text, b.call = b.index+1, "", nil
	return more
}

// brookServer is the API itself, as it behaves in a scenario.
func brookServer(s conformance.Scenario) http.Handler {
	refused := false
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lines := `{"text":"Hello "}` + "\n" + `{"text":"there."}` + "\n"
		switch {
		case s == conformance.Hangs:
			<-r.Context().Done()
			return
		case s == conformance.Breaks:
			fmt.Fprint(w, `{"text":"Hello "}`+"\n")
			return
		case s == conformance.FailsOnce && !refused:
			refused = true
			http.Error(w, "Come back later.", http.StatusServiceUnavailable)
			return
		case s == conformance.Calls:
			lines = `{"text":"Let me see."}` + "\n" + `{"call":{"id":"a","name":"get_weather"}}` + "\n" +
				`{"input":"{\"city\":"}` + "\n" + `{"input":"\"Tokyo\"}"}` + "\n"
		}
		fmt.Fprint(w, lines+`{"end":{"model":"brook-1","tokens":3}}`+"\n")
	})
}

// brookScenario returns the provider of Example_streaming with a server behind it.
func brookScenario(t *testing.T, s conformance.Scenario) api.Provider {
	sent := &conformance.Recorder{Next: brookServer(s)}
	server := httptest.NewServer(sent)
	t.Cleanup(server.Close)
	return sent.Of(brook{toy{url: server.URL, http: server.Client()}})
}

func TestTheStreamingExampleProviderKeepsTheRules(t *testing.T) { conformance.Run(t, brookScenario) }

// A provider for an API that streams. Deltas show the response while it arrives; the whole blocks are what is kept.
func Example_streaming() {
	server := httptest.NewServer(brookServer(conformance.Calls))
	defer server.Close()
	model := brook{toy{url: server.URL, http: server.Client()}}

	hello := content.Message{Role: content.User, Blocks: content.Words("Hello")}
	for event, err := range model.Stream(context.Background(), api.Request{Messages: []content.Message{hello}}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		switch e := event.(type) {
		case api.Delta:
			fmt.Printf("%d %s %q\n", e.Index, e.Kind, e.Text)
		case api.BlockEnd:
			fmt.Printf("%d %T\n", e.Index, e.Block)
		case api.Finish:
			fmt.Println(e.Model, e.Stop)
		}
	}
	// Output:
	// 0 text "Let me see."
	// 0 content.Text
	// 1 input "{\"city\":"
	// 1 input "\"Tokyo\"}"
	// 1 content.ToolUse
	// brook-1 tool_use
}
