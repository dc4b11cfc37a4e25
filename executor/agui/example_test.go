package agui_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/agui"
	"github.com/plait-dev/plait/store"
)

// userOf returns the user of a request, by the program's own sessions.
func userOf(*http.Request) string { return "ann" }

// An agent behind HTTP for web front ends. Here a request of one is written out.
func Example() {
	type place struct{ City string }
	weather := executor.Func("get_weather", "The weather of a city.", func(context.Context, place) (string, error) {
		return "22°C", nil
	})
	model := apitest.NewScript(
		apitest.Call(apitest.Use("get_weather", place{"Tokyo"})),
		apitest.Say("It is 22°C."),
	)
	agent := executor.Agent{Provider: model, Tools: []dag.Tool{weather}}

	sessions := store.New(store.Memory()) // or the driver of a database
	mux := http.NewServeMux()
	mux.Handle("POST /agent", agui.Handler(agent, &agui.Options{
		Store: sessions,
		Thread: func(r *http.Request, id string) (string, error) {
			return userOf(r) + "/" + id, nil // a user has only threads of their own
		},
		Hosts: []string{"app.example.com"}, // the public name; localhost needs none
	}))

	request := httptest.NewRequest(http.MethodPost, "http://localhost/agent", strings.NewReader(`{
		"threadId": "1", "runId": "1", "state": {}, "tools": [], "context": [],
		"messages": [{"id": "a", "role": "user", "content": "How warm is it in Tokyo?"}]
	}`))
	request.Header.Set("Content-Type", "application/json")
	response := httptest.NewRecorder()
	mux.ServeHTTP(response, request)
	for line := range strings.Lines(response.Body.String()) {
		if strings.Contains(line, "TOOL_CALL_RESULT") || strings.Contains(line, "TEXT_MESSAGE_CONTENT") {
			fmt.Print(line)
		}
	}
	// Output:
	// data: {"type":"TOOL_CALL_RESULT","messageId":"plait-1/0/result","role":"tool","toolCallId":"plait-1/0","content":"22°C"}
	// data: {"type":"TEXT_MESSAGE_CONTENT","messageId":"plait-3","delta":"It "}
	// data: {"type":"TEXT_MESSAGE_CONTENT","messageId":"plait-3","delta":"is "}
	// data: {"type":"TEXT_MESSAGE_CONTENT","messageId":"plait-3","delta":"22°C."}
}
