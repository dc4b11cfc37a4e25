package executor_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// deferredCalls returns a conversation in which n calls wait for their results, and its agent.
func deferredCalls(t *testing.T, n int) (executor.Agent, dag.DAG) {
	t.Helper()
	far := executor.DeferredTool(content.Tool{Name: "far", Schema: `{"type":"object"}`})
	var calls []content.Block
	for range n {
		calls = append(calls, call("far"))
	}
	agent := executor.Agent{Provider: apitest.NewScript(apitest.Say("Done.")), Tools: []dag.Tool{far}, Log: quiet}
	d, err := agent.ExecuteTools(t.Context(), ask(far).Assistant("", calls...))
	require.ErrorIs(t, err, executor.ErrPaused)
	require.Len(t, d.Pending(), n)
	return agent, d
}

// The approval may end the run: the deferred calls beside it are handed out after it.
func TestDeferredCallWaitsForTheApprovalBesideIt(t *testing.T) {
	agent := executor.Agent{
		Provider: modelOf(withID("a", "far", "1"), withID("b", "echo", "2"))(), Tools: []dag.Tool{far, echo},
		Hooks: []executor.Hook{executor.RequireApproval("echo")},
	}
	d, err := agent.Run(t.Context(), ask(far, echo))
	require.ErrorIs(t, err, executor.ErrPaused)
	require.Len(t, d.Pending(), 1)
	require.True(t, d.Pending()[0].Approval)

	d, err = agent.Resume(t.Context(), d, executor.Approved(d.Pending()[0]))
	require.ErrorIs(t, err, executor.ErrPaused)
	require.Len(t, d.Pending(), 1)
	require.True(t, d.Pending()[0].Deferred)
}

// A call that a worker has begun may have done its work: nobody asks for it again as if nothing had happened.
func TestBegunCallIsInDoubtForEverybody(t *testing.T) {
	agent, d := deferredCalls(t, 2)
	waits := d.Pending()
	begun, err := executor.Begin(d, waits[0].Key)
	require.NoError(t, err)
	require.False(t, begun.Pending()[0].Started.IsZero())
	require.True(t, begun.Pending()[1].Started.IsZero())

	// Another worker does not begin it too, and nobody begins what does not wait.
	_, err = executor.Begin(begun, waits[0].Key)
	require.ErrorIs(t, err, executor.ErrConflict)
	_, err = executor.Begin(begun, node.CallKey{Message: waits[0].Key.Message, Index: 9})
	require.ErrorIs(t, err, executor.ErrUnknownCall)

	// Who gives up the pause, by a run or by closing the calls, leaves a call in doubt and one without a result.
	require.Contains(t, outcomesOf(begun.CloseTools()), string(node.ExecutionInDoubt))
	asked := 0
	agent.Hooks = []executor.Hook{{InDoubt: func(context.Context, executor.Call) (executor.Decision, error) {
		asked++
		return executor.Decision{}, nil
	}}}
	_, err = agent.Run(t.Context(), begun)
	require.ErrorIs(t, err, executor.ErrPaused, "the other call still waits")
	require.Equal(t, 1, asked)
}

func TestAcceptedResultIsKeptOnce(t *testing.T) {
	agent, d := deferredCalls(t, 2)
	waits := d.Pending()
	begun, err := executor.Begin(d, waits[1].Key)
	require.NoError(t, err)
	_, err = executor.Accept(begun, executor.ReturnedFor(waits[1].Key, executor.Result{Child: d}))
	require.ErrorIs(t, err, executor.ErrReply, "a conversation cannot be sent")
	result := executor.ReturnedFor(waits[1].Key, executor.Result{Content: content.Words("two")})
	kept, err := executor.Accept(begun, result)
	require.NoError(t, err)
	require.Len(t, kept.Pending(), 1)

	again, err := executor.Accept(kept, result)
	require.NoError(t, err)
	require.True(t, dag.Equal(kept, again), "the same result again changes nothing")
	_, err = executor.Accept(kept, executor.FailedFor(waits[1].Key, "no"))
	require.ErrorIs(t, err, executor.ErrConflict)

	// The run continues with the last one.
	done, err := agent.Resume(t.Context(), kept, executor.Returned(waits[0], executor.Result{Content: content.Words("one")}))
	require.NoError(t, err)
	require.Equal(t, []string{"one", "two"}, outcomes(t, done))
	requireValid(t, done)
}

// A worker and the program that defers show a service the same key for the same arguments, and another for others.
func TestIdempotencyKeyIsTheSameOnAWorker(t *testing.T) {
	var keys []string
	pay := executor.Func("far", "", func(ctx context.Context, _ map[string]bool) (string, error) {
		keys = append(keys, executor.IdempotencyKey(ctx))
		return "paid", nil
	})
	_, d := deferredCalls(t, 1)
	waits := d.Pending()[0]
	worker := executor.Agent{Tools: []dag.Tool{pay}, Log: quiet}
	for range 2 {
		_, err := worker.Work(t.Context(), waits)
		require.NoError(t, err)
	}
	require.Equal(t, []string{waits.Key.String(), waits.Key.String()}, keys)

	waits.Call.Input = `{"changed":true}`
	_, err := worker.Work(t.Context(), waits)
	require.NoError(t, err)
	require.Regexp(t, "^"+waits.Key.String()+"-[0-9a-f]{12}$", keys[2])
}
