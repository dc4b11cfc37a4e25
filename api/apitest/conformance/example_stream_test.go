package conformance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/conformance"
	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/content"
)

// begin provider

// newBrook returns a provider for an API that accepts the requests of toy and streams its responses, one JSON value
// after the other.
func newBrook(url string, client *http.Client) api.Provider {
	return dialect.Provider{Target: dialect.Target{API: "brook"}, URL: url, Client: client, Body: toyBody, Read: brookRead}
}

// brookLine is a line of a response. Each has one of the fields.
type brookLine struct {
	Text  string   `json:"text"`  // a piece of a text
	Call  *toyCall `json:"call"`  // a call begins: its ID and its name
	Input string   `json:"input"` // a piece of the call's arguments
	End   *struct {
		Model  string `json:"model"`
		Tokens int64  `json:"tokens"`
	} `json:"end"`
}

// brookRead shows the pieces of a block while it arrives, and keeps the whole block.
func brookRead(body io.Reader, yield func(api.Event) bool) error {
	finish := api.Finish{Stop: content.StopEndTurn}
	index, text, call := 0, "", content.ToolUse{}
	end := func() { // the block that is being written, if there is one
		switch {
		case call.ID != "":
			finish.Stop = content.StopToolUse
			yield(api.BlockEnd{Index: index, Block: call})
		case text != "":
			yield(api.BlockEnd{Index: index, Block: content.Text{Text: text}})
		default:
			return
		}
		index, text, call = index+1, "", content.ToolUse{}
	}

	for lines := json.NewDecoder(body); ; {
		var line brookLine
		if err := lines.Decode(&line); err != nil {
			return err
		}
		more := true
		switch {
		case line.Text != "":
			text += line.Text
			more = yield(api.Delta{Index: index, Kind: api.DeltaText, Text: line.Text})
		case line.Input != "":
			call.Input += content.JSON(line.Input)
			more = yield(api.Delta{Index: index, Kind: api.DeltaInput, Tool: call.Name, Text: line.Input})
		case line.Call != nil:
			end()
			call = content.ToolUse{ID: line.Call.ID, Name: line.Call.Name}
		case line.End != nil:
			end()
			finish.Model, finish.Usage.Output = line.End.Model, line.End.Tokens
			more = yield(finish)
		}
		if !more {
			return nil
		}
	}
}

// end provider

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
	return sent.Of(newBrook(server.URL, server.Client()))
}

func TestTheStreamingExampleProviderKeepsTheRules(t *testing.T) { conformance.Run(t, brookScenario) }

// A provider for an API that streams. Deltas show the response while it arrives; the whole blocks are what is kept.
func Example_streaming() {
	server := httptest.NewServer(brookServer(conformance.Calls))
	defer server.Close()
	model := newBrook(server.URL, server.Client())

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
