package executor_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

// TestRobustness asks what was asked of six other engines. None of them passed every row.
func TestRobustness(t *testing.T) {
	t.Run("one_of_three_parallel_tools_fails_and_the_others_results_stay", func(t *testing.T) {
		d, err := executor.Run(t.Context(), once(call("fast"), call("broken"), call("fast")), ask(fast, broken))
		require.NoError(t, err)
		require.Equal(t, []string{"fast", "error: it is broken", "fast"}, outcomes(t, d))
		require.Equal(t, "Done.", d.Text())
		requireValid(t, d)
	})
	t.Run("a_tool_panics", func(t *testing.T) {
		d, err := executor.Run(t.Context(), once(call("panics"), call("fast")), ask(fast, panics))
		require.NoError(t, err)
		require.Equal(t, []string{`error: Tool "panics" panicked: oh no`, "fast"}, outcomes(t, d))
	})
	t.Run("an_unknown_tool_is_called", func(t *testing.T) {
		d, err := executor.Run(t.Context(), once(call("fasst"), call("fast")), ask(fast))
		require.NoError(t, err)
		require.Equal(t, []string{`error: Tool "fasst" not found. Available tools: fast`, "fast"}, outcomes(t, d))
	})
	t.Run("arguments_are_not_JSON", func(t *testing.T) {
		d, err := executor.Run(t.Context(), once(apitest.Use("echo", content.JSON(`{"text": "hel`)), call("fast")), ask(echo, fast))
		require.NoError(t, err)
		require.Contains(t, outcomes(t, d)[0], "error: Validation failed for tool \"echo\":\n  - root: not valid JSON")
		require.Contains(t, outcomes(t, d)[0], "Received arguments:\n{\"text\": \"hel")
		require.Equal(t, "fast", outcomes(t, d)[1])
		require.Equal(t, content.JSON(`{"text": "hel`), d.Messages()[1].Blocks.ToolUses()[0].Input, "the call stays as the model wrote it")
		require.Equal(t, "uara", roles(d))
	})
	t.Run("a_required_argument_is_missing", func(t *testing.T) {
		d, err := executor.Run(t.Context(), once(call("echo")), ask(echo))
		require.NoError(t, err)
		require.Equal(t, []string{"error: Validation failed for tool \"echo\":\n  - text: is required\n\nReceived arguments:\n{}"}, outcomes(t, d))
	})
	t.Run("one_call_id_is_used_twice", func(t *testing.T) {
		a, b := apitest.Use("echo", map[string]string{"text": "a"}), apitest.Use("echo", map[string]string{"text": "b"})
		a.ID, b.ID = "twice", "twice"
		model := once(a, b)
		d, err := executor.Run(t.Context(), model, ask(echo))
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b"}, outcomes(t, d))
		sent, _ := dialect.Repair(model.Requests()[1].Messages, dialect.Rules{})
		first, second := sent[1].Blocks.ToolUses(), sent[2].Blocks.ToolResults()
		require.NotEqual(t, first[0].ID, first[1].ID, "what is sent has two ids")
		require.Equal(t, []string{first[0].ID, first[1].ID}, []string{second[0].CallID, second[1].CallID})
	})
	t.Run("history_with_an_orphan_call_and_then_text", func(t *testing.T) {
		d := ask(fast).Assistant("", content.ToolUse{ID: "lost", Name: "fast", Input: "{}"}).User("Never mind. And now?")
		model := apitest.NewScript(apitest.Say("Done."))
		_, err := executor.Run(t.Context(), model, d)
		require.NoError(t, err)
		sent, notes := dialect.Repair(model.Requests()[0].Messages, dialect.Rules{})
		require.Equal(t, "answered", notes[0].Kind)
		require.Equal(t, content.NoResult, sent[2].Blocks.ToolResults()[0].Content.Text())
	})
	t.Run("a_cancel_inside_a_tool_and_then_a_new_turn", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			model := apitest.NewScript(apitest.Call(call("fast"), call("slow")), apitest.Say("Done."))
			d, err := executor.Run(ctx, model, ask(fast, slow))
			require.ErrorIs(t, err, context.DeadlineExceeded)
			requireValid(t, d)
			d, err = executor.Run(t.Context(), model, d.User("Go on."))
			require.NoError(t, err)
			requireValid(t, d)
			require.Equal(t, "uarua", roles(d))
		})
	})
	t.Run("the_consumer_breaks_off_and_then_a_new_turn", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			model := apitest.NewScript(apitest.Call(call("slow")), apitest.Call(call("fast")), apitest.Say("Done."))
			d := ask(fast, slow)
			for event := range executor.Stream(t.Context(), model, d) {
				if end, ok := event.(executor.MessageEnd); ok {
					d = d.WithHeads(end.Node) // all that the consumer saw: a call without a result
				}
				if _, ok := event.(executor.ToolStart); ok {
					break
				}
			}
			d, err := executor.Run(t.Context(), model, d.User("Something else."))
			require.NoError(t, err)
			sent, _ := dialect.Repair(model.Requests()[2].Messages, dialect.Rules{})
			require.Len(t, sent[2].Blocks.ToolResults(), 1)
			require.Equal(t, "Done.", d.Text())
		})
	})
	t.Run("one_agent_runs_eight_conversations_at_once", func(t *testing.T) {
		answer := apitest.Func(func(req api.Request) apitest.Turn {
			last := req.Messages[len(req.Messages)-1]
			if said := last.Blocks.ToolResults(); len(said) > 0 {
				return apitest.Say(said[0].Content.Text() + said[1].Content.Text())
			}
			same := apitest.Use("echo", map[string]string{"text": last.Blocks.Text()})
			return apitest.Call(same, same)
		})
		agent := executor.Agent{Provider: apitest.NewScript(answer.Always()), Tools: []dag.Tool{echo}}
		shared := dag.New().System("All eight begin here.")
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				d := shared
				for turn := range 20 {
					name := fmt.Sprintf("<%d.%d>", i, turn)
					next, err := agent.Run(context.Background(), d.User(name))
					if err != nil || next.Text() != name+name {
						t.Errorf("run %s answered %q, %v", name, next.Text(), err)
					}
					d = next
				}
				requireValid(t, d)
			})
		}
		all.Wait()
		require.Equal(t, 1, shared.Len())
	})
}
