package apitest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
)

func ExampleCheckAnthropic() {
	err := apitest.CheckAnthropic([]byte(`{"model":"claude-test","max_tokens":100,"messages":[
		{"role":"user","content":"Weather in Tokyo?"},
		{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"get_weather","input":{"city":"Tokyo"}}]},
		{"role":"user","content":"Never mind."}]}`))
	fmt.Println(err)
	// Output: anthropic: invalid request (400 invalid_request_error): messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1. Each `tool_use` block must have a corresponding `tool_result` block in the next message.
}

func ExampleNewAnthropic() {
	fake := apitest.NewAnthropic(apitest.AnthropicMessage(content.Text{Text: "Hello."}))
	server := httptest.NewServer(fake)
	defer server.Close()
	req, err := http.NewRequestWithContext(context.Background(), "POST", server.URL+"/v1/messages",
		strings.NewReader(`{"model":"claude-test","max_tokens":100,"messages":[{"role":"user","content":"Hi"}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	req.Header.Set("x-api-key", "none")
	req.Header.Set("anthropic-version", "2023-06-01")
	res, err := server.Client().Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	fmt.Println(string(answer), err)
	fmt.Println(len(fake.Bodies()), fake.Refused())
	// Output:
	// {"id":"msg_fake","type":"message","role":"assistant","model":"claude-fake","content":[{"type":"text","text":"Hello."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":5}} <nil>
	// 1 []
}

// A provider's own test needs no more than this.
func ExampleRun() {
	_ = func(t *testing.T) {
		apitest.Run(t, func(t *testing.T, s apitest.Scenario) api.Provider {
			switch s {
			case apitest.Answers:
				return apitest.NewScript(apitest.Say("Hello there.").Always())
			default:
				return nil // skipped
			}
		})
	}
}
