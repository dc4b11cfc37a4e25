package dialect_test

import (
	"fmt"

	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/content"
)

// A tool loop was cut in half, and the user went on talking. What is sent is a conversation that every model's API takes.
func ExampleRepair() {
	calls, err := content.Of(
		content.ToolUse{ID: "call", Name: "get_weather", Input: `{"city":"Tokyo"}`},
		content.ToolUse{ID: "call", Name: "get_weather", Input: `{"city":"Paris"}`},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	messages, notes := dialect.Repair([]content.Message{
		{Role: content.User, Blocks: content.Words("Weather in Tokyo and Paris?")},
		{Role: content.Assistant, Blocks: calls},
		{Role: content.User, Blocks: content.Words("Never mind.")},
	}, dialect.Rules{})
	for _, m := range messages {
		fmt.Printf("%s %s\n", m.Role, m.Blocks.Append(nil))
	}
	for _, n := range notes {
		fmt.Println(n)
	}
	// Output:
	// user [{"type":"text","text":"Weather in Tokyo and Paris?"}]
	// assistant [{"type":"tool_use","id":"call","name":"get_weather","input":{"city":"Tokyo"}},{"type":"tool_use","id":"call_2","name":"get_weather","input":{"city":"Paris"}}]
	// user [{"type":"tool_result","call_id":"call","content":[{"type":"text","text":"No result: the tool call was not completed."}],"is_error":true},{"type":"tool_result","call_id":"call_2","content":[{"type":"text","text":"No result: the tool call was not completed."}],"is_error":true},{"type":"text","text":"Never mind."}]
	// message 1: id: the call ID "call" became "call_2"
	// message 2: answered: call 0 (get_weather) had no result
	// message 2: answered: call 1 (get_weather) had no result
}
