package executor_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

type none = struct{}

// tool returns a tool without arguments.
func tool(name string, fn func(ctx context.Context) (any, error)) executor.Tool {
	return executor.Func(name, "", func(ctx context.Context, _ none) (any, error) { return fn(ctx) })
}

// The tools that tests call.
var (
	fast   = tool("fast", func(context.Context) (any, error) { return "fast", nil })
	broken = tool("broken", func(context.Context) (any, error) { return nil, fmt.Errorf("it is broken") })
	panics = tool("panics", func(context.Context) (any, error) { panic("oh no") })
	slow   = tool("slow", func(ctx context.Context) (any, error) { return nil, wait(ctx, time.Hour) })
	deaf   = tool("deaf", func(context.Context) (any, error) { time.Sleep(time.Hour); return "much too late", nil })
	echo   = executor.Func("echo", "", func(_ context.Context, in struct {
		Text string `json:"text"`
	}) (string, error) {
		return in.Text, nil
	})
)

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// call is a call of a tool without arguments.
func call(name string) content.ToolUse { return apitest.Use(name, content.JSON("{}")) }

// ask is a conversation that declares tools and asks something.
func ask(tools ...dag.Tool) dag.DAG { return dag.New().Tools(tools...).User("Go.") }

// once is a model that calls tools and then answers "Done.".
func once(calls ...content.ToolUse) *apitest.Script {
	return apitest.NewScript(apitest.Call(calls...), apitest.Say("Done."))
}

// results are the results of the last message that has any.
func results(t *testing.T, d dag.DAG) []content.ToolResult {
	t.Helper()
	messages := d.Messages()
	for i := len(messages) - 1; i >= 0; i-- {
		if found := messages[i].Blocks.ToolResults(); len(found) > 0 {
			return found
		}
	}
	t.Fatal("the conversation holds no tool result")
	return nil
}

// outcome is a result in one line.
func outcome(r content.ToolResult) string {
	if r.IsError {
		return "error: " + r.Content.Text()
	}
	return r.Content.Text()
}

func outcomes(t *testing.T, d dag.DAG) []string {
	t.Helper()
	var list []string
	for _, r := range results(t, d) {
		require.NotContains(t, outcome(r), "%!(EXTRA", "a value without its words")
		list = append(list, outcome(r))
	}
	return list
}

// stopped returns the StopReason at the end of d.
func stopped(t *testing.T, d dag.DAG) node.StopReason {
	t.Helper()
	require.NotNil(t, d.Head())
	stop, ok := d.Head().Payload().(node.StopReason)
	require.True(t, ok, "the conversation ends in a %s", d.Head().Kind())
	return stop
}

// requireValid fails unless d can be sent as it is: every call answered once, in order, directly after it, and nothing else
// that a provider would refuse. Ids are the provider's and may be repaired.
func requireValid(t testing.TB, d dag.DAG) {
	t.Helper()
	require.NoError(t, d.Err())
	_, notes := dialect.Repair(d.Messages(), dialect.Rules{EndsOpen: func(content.Message) bool { return true }})
	for _, note := range notes {
		require.True(t, expected(note), "%v\n%v", note, d)
	}
}

// roles are who speaks, message by message: u for the user, r for results, a for the assistant.
func roles(d dag.DAG) (r string) {
	for _, m := range d.Messages() {
		switch {
		case m.Role == content.Assistant:
			r += "a"
		case len(m.Blocks.ToolResults()) > 0:
			r += "r"
		default:
			r += "u"
		}
	}
	return r
}
