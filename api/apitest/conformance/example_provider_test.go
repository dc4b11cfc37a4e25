package conformance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/conformance"
	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/content"
)

// begin provider

// newToy returns a provider for an API that accepts a conversation as JSON and responds at once. It keeps all rules of
// api.Provider: TestTheExampleProviderKeepsTheRules runs conformance.Run on it.
func newToy(url string, client *http.Client) api.Provider {
	return dialect.Provider{Target: dialect.Target{API: "toy"}, URL: url, Client: client, Body: toyBody, Read: toyRead}
}

// toyMessage is a message in the form of the API.
type toyMessage struct {
	Role    string            `json:"role"`
	Text    string            `json:"text,omitempty"`
	Calls   []toyCall         `json:"calls,omitempty"`
	Results map[string]string `json:"results,omitempty"`
}

type toyCall struct {
	ID    string       `json:"id"`
	Name  string       `json:"name"`
	Input content.JSON `json:"input"`
}

func toyBody(req api.Request) any {
	var tools []map[string]any
	for _, t := range req.Tools {
		tools = append(tools, map[string]any{"name": t.Name, "description": t.Description, "schema": t.Schema})
	}
	var messages []toyMessage
	for _, m := range req.Messages {
		message := toyMessage{Role: string(m.Role), Text: m.Blocks.Text(), Results: map[string]string{}}
		for _, call := range m.Blocks.ToolUses() {
			message.Calls = append(message.Calls, toyCall{call.ID, call.Name, call.Input})
		}
		for _, result := range m.Blocks.ToolResults() {
			message.Results[result.CallID] = result.Content.Text()
		}
		messages = append(messages, message)
	}
	return map[string]any{
		"system": req.System, "tools": tools, "messages": messages,
		"max_tokens": req.Options.MaxTokens, "temperature": req.Options.Temperature, "stop": req.Options.StopSequences,
	}
}

func toyRead(body io.Reader, yield func(api.Event) bool) error {
	var response struct {
		Model, Text string
		Calls       []toyCall
		Tokens      int64
	}
	if err := json.NewDecoder(body).Decode(&response); err != nil {
		return err
	}

	stop, index := content.StopEndTurn, 0
	if response.Text != "" {
		yield(api.BlockEnd{Block: content.Text{Text: response.Text}})
		index++
	}
	for i, call := range response.Calls {
		stop = content.StopToolUse
		yield(api.BlockEnd{Index: index + i, Block: content.ToolUse{ID: call.ID, Name: call.Name, Input: call.Input}})
	}
	yield(api.Finish{Model: response.Model, Stop: stop, Usage: content.Usage{Output: response.Tokens}})
	return nil
}

// end provider

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
	client := api.NewClient(newToy(server.URL, server.Client()), nil)

	answer, err := client.Send(context.Background(), api.Request{
		Messages: []content.Message{{Role: content.User, Blocks: content.Words("Hello")}},
		Options:  api.Options{MaxTokens: 100, Thinking: api.ThinkHigh},
	})
	fmt.Println(answer.Blocks.Text(), answer.Model, answer.Usage.Output, err)
	fmt.Println(answer.Repairs)
	// Output:
	// Hello there. toy-1 3 <nil>
	// [option: Thinking is left out: the API has no such option]
}
