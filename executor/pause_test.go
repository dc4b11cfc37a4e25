package executor_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

// Two tools and calls of them whose ids are known.
var (
	toolA = tool("a", func(context.Context) (any, error) { return "a", nil })
	toolB = tool("b", func(context.Context) (any, error) { return "b", nil })
	callA = content.ToolUse{ID: "a", Name: "a", Input: "{}"}
	callB = content.ToolUse{ID: "b", Name: "b", Input: "{}"}
)

// requireStale checks that a continuation is refused as a used one is, and that nothing was done.
func requireStale(t *testing.T, d, after dag.DAG, err error, c executor.Continuation, name string) {
	t.Helper()
	var refused *executor.ResumeError
	require.ErrorAs(t, err, &refused, name)
	require.ErrorIs(t, err, executor.ErrStale, name)
	require.Equal(t, c.ID, refused.ID, name)
	require.True(t, dag.Equal(d, after), name)
}

func TestResumeRefusesAUsedContinuation(t *testing.T) {
	result := func(text string) executor.Reply {
		return executor.Returned(executor.Result{Content: content.Words(text)})
	}
	for name, c := range map[string]struct {
		agent       executor.Agent
		first, then map[string]executor.Reply
		again       []map[string]executor.Reply
	}{
		"results": {
			executor.Agent{Strategy: executor.DeferAll()},
			map[string]executor.Reply{"a": result("one")}, map[string]executor.Reply{"b": result("two")},
			[]map[string]executor.Reply{
				{"a": result("one"), "b": result("two")}, {"a": result("other")}, {"b": result("two")}, {}, {"nobody": result("x")},
			},
		},
		"approval": {
			executor.Agent{Hooks: []executor.Hook{executor.RequireApproval("a")}},
			map[string]executor.Reply{"a": executor.Approved()}, nil,
			[]map[string]executor.Reply{{"a": executor.Approved()}, {"a": executor.Declined("no")}, {"a": result("x")}, nil},
		},
	} {
		t.Run(name, func(t *testing.T) {
			agent := c.agent
			agent.Tools = []dag.Tool{toolA, toolB}
			agent.Provider = apitest.NewScript(apitest.Call(callA, callB), apitest.Say("Done."), apitest.Say("More."))
			d, err := agent.Run(t.Context(), ask())
			used := pauseOf(t, err)
			later := map[string]dag.DAG{}

			d, err = agent.Resume(t.Context(), d, used, c.first)
			for err != nil { // it waits for the rest
				later["in the middle"] = d
				d, err = agent.Resume(t.Context(), d, pauseOf(t, err), c.then)
			}
			later["at the end"] = d
			d, err = agent.Run(t.Context(), d.User("And?"))
			require.NoError(t, err)
			later["after the next run"] = d

			agent.Provider = nil // not even this is looked at before
			for when, d := range later {
				for _, replies := range c.again {
					after, err := agent.Resume(t.Context(), d, used, replies)
					requireStale(t, d, after, err, used, when)
					_, _, err = executor.ResumeFor[string](t.Context(), agent, d, used, replies)
					requireStale(t, d, d, err, used, when)
				}
			}
		})
	}
}

func TestResumeRefusesAConversationThatWasJoinedWithAnother(t *testing.T) {
	agent := executor.Agent{Provider: apitest.NewScript(apitest.Say("Done."))}
	d, c, replies := pausedAt(t, agent)
	other := dag.New().User("Something else.")
	for name, joined := range map[string]dag.DAG{"after": d.Join(other), "before": other.Join(d)} {
		after, err := agent.Resume(t.Context(), joined, c, replies)
		requireStale(t, joined, after, err, c, name)
		require.ErrorContains(t, err, "1 other heads")
	}

	d, err := agent.Resume(t.Context(), d, c, replies)
	require.NoError(t, err)
	require.Equal(t, []string{"from afar"}, outcomes(t, d), "the refusals have used nothing up")
}

func TestResumeRefusesAContinuationWithoutAnOpenCall(t *testing.T) {
	agent := executor.Agent{Strategy: executor.DeferAll(), Provider: once(callA, callB)}
	agent.Tools = []dag.Tool{toolA, toolB}
	d, err := agent.Run(t.Context(), ask())
	c := pauseOf(t, err)
	c.Pending = c.Pending[:1]
	after, err := agent.Resume(t.Context(), d, c, map[string]executor.Reply{"a": executor.Failed("x")})
	requireStale(t, d, after, err, c, "call b is left out")
}

func TestClaimOnceRefusesTheSecondUseAndNotTheNextPause(t *testing.T) {
	agent := executor.Agent{Strategy: executor.DeferAll(), Hooks: []executor.Hook{executor.ClaimOnce()}}
	agent.Tools = []dag.Tool{toolA, toolB}
	agent.Provider = apitest.NewScript(apitest.Call(callA, callB), apitest.Say("Done."), apitest.Say("Done."))
	d, err := agent.Run(t.Context(), ask())
	first := pauseOf(t, err)
	half := map[string]executor.Reply{"a": executor.Failed("x")}

	next, err := agent.Resume(t.Context(), d, first, half)
	second := pauseOf(t, err)
	after, err := agent.Resume(t.Context(), d, first, half) // on the conversation of the first pause, which does not show the use
	requireStale(t, d, after, err, first, "used")

	rest := map[string]executor.Reply{"b": executor.Failed("y")}
	_, err = agent.Resume(t.Context(), next, second, rest)
	require.NoError(t, err, "the second pause of the same run")
	_, err = agent.Resume(t.Context(), next, second, rest)
	require.ErrorIs(t, err, executor.ErrStale)
}

type count struct {
	N int `json:"n"`
}

// pausedForCount is a run that asks for a count and waits for approval of a call.
func pausedForCount(t *testing.T) (*apitest.Script, executor.Agent, dag.DAG, executor.Continuation) {
	script := apitest.NewScript(apitest.Call(callA), apitest.Say("Forty-two."), apitest.Say(`{"n":42}`))
	agent := executor.Agent{Provider: script, Hooks: []executor.Hook{executor.RequireApproval()}, Tools: []dag.Tool{toolA}}
	_, d, err := executor.RunFor[count](t.Context(), agent, ask())
	return script, agent, d, pauseOf(t, err)
}

var approveA = map[string]executor.Reply{"a": executor.Approved()}

// requireAskedForCount checks that every request asked for a count, and that an answer which did not fit was asked for again.
func requireAskedForCount(t *testing.T, script *apitest.Script) {
	t.Helper()
	require.Len(t, script.Requests(), 3)
	for _, r := range script.Requests() {
		require.Equal(t, api.Output[count](), r.Options.Output)
	}
}

func TestResumeForReturnsTheAnswerInItsForm(t *testing.T) {
	script, agent, d, c := pausedForCount(t)
	got, d, err := executor.ResumeFor[count](t.Context(), agent, d, c, approveA)
	require.NoError(t, err)
	require.Equal(t, count{42}, got)
	require.Equal(t, content.StopEndTurn, stopped(t, d).Reason)
	requireAskedForCount(t, script)
}

func TestResumeStreamWithOutputReturnsTheAnswerInItsForm(t *testing.T) {
	script, agent, d, c := pausedForCount(t)
	for event, err := range executor.WithOutput[count](agent).ResumeStream(t.Context(), d, c, approveA) {
		require.NoError(t, err)
		if end, ok := event.(executor.End); ok {
			d = end.DAG
		}
	}
	got, err := executor.FinalOutput[count](d)
	require.NoError(t, err)
	require.Equal(t, count{42}, got)
	requireAskedForCount(t, script)

	_, err = executor.FinalOutput[count](d.User("And?"))
	require.ErrorIs(t, err, api.ErrOutput, "the conversation does not end in an answer")
}

func TestResumeForReturnsTheErrorOfTheRun(t *testing.T) {
	_, agent, d, c := pausedForCount(t)
	agent.Provider = apitest.NewScript()
	got, _, err := executor.ResumeFor[count](t.Context(), agent, d, c, approveA)
	require.ErrorIs(t, err, apitest.ErrScriptOver)
	require.Zero(t, got)
}

func TestFinalOutputRefusesAnAnswerThatWasCutOff(t *testing.T) {
	agent := executor.Agent{Provider: eventsOf{err: &api.Error{Kind: api.ErrProtocol}, events: []api.Event{
		api.Delta{Kind: api.DeltaText, Text: `{"n":4}`}, // what might have followed is not known
	}}}
	_, d, err := executor.RunFor[count](t.Context(), agent, ask())
	require.ErrorIs(t, err, api.ErrProtocol)
	partOf(t, d)

	_, err = executor.FinalOutput[count](d)
	require.ErrorIs(t, err, api.ErrOutput)
}

// pausedAt runs a conversation whose only call waits for a result from outside.
func pausedAt(t *testing.T, agent executor.Agent) (dag.DAG, executor.Continuation, map[string]executor.Reply) {
	t.Helper()
	agent.Provider, agent.Strategy = once(call("fast")), executor.DeferAll()
	d, err := agent.Run(t.Context(), ask(fast))
	var paused *executor.PausedError
	require.ErrorAs(t, err, &paused)
	replies := map[string]executor.Reply{paused.Continuation.Pending[0].ID: executor.Returned(executor.Result{Content: content.Words("from afar")})}
	return d, paused.Continuation, replies
}

// A resume that is refused has shown the results to nobody.
func TestRefusedResumeRunsNoAfterHook(t *testing.T) {
	refuse := true
	agent := executor.Agent{Provider: apitest.NewScript(apitest.Say("Done."))}
	seen := 0
	agent.Hooks = []executor.Hook{
		{After: func(_ context.Context, _ executor.Call, r executor.Result) (executor.Result, error) {
			seen++
			return r, nil
		}},
		{Resume: func(context.Context, executor.Continuation) error {
			if refuse {
				return errors.New("not now")
			}
			return nil
		}},
	}
	d, c, replies := pausedAt(t, agent)
	_, err := agent.Resume(t.Context(), d, c, replies)
	require.ErrorIs(t, err, executor.ErrStale)
	require.Zero(t, seen)

	refuse = false
	d, err = agent.Resume(t.Context(), d, c, replies)
	require.NoError(t, err)
	require.Equal(t, 1, seen)
	require.Equal(t, []string{"from afar"}, outcomes(t, d))
}

// A result from outside has been brought, whatever becomes of the context: it is taken, or the run is refused and nothing is done.
func TestDeferredResultIsKeptWhenTheContextEnds(t *testing.T) {
	agent := executor.Agent{Provider: apitest.NewScript(apitest.Say("Done."))}
	d, c, replies := pausedAt(t, agent)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	got, err := agent.Resume(over, d, c, replies)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []string{"from afar"}, outcomes(t, got))

	agent.Hooks = []executor.Hook{{After: func(ctx context.Context, _ executor.Call, r executor.Result) (executor.Result, error) {
		return r, nil
	}}, executor.ClaimOnce()}
	got, err = agent.Resume(over, d, c, replies)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, executor.ErrStale)
	require.Len(t, got.OpenCalls(), 1, "nothing was done")
	got, err = agent.Resume(t.Context(), d, c, replies)
	require.NoError(t, err)
	require.Equal(t, []string{"from afar"}, outcomes(t, got))
}

// An After hook has as long for a result from outside as for any other.
func TestAfterHookThatHangsOnADeferredResultTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := executor.Agent{Provider: apitest.NewScript(apitest.Say("Done."))}
		agent.Hooks = []executor.Hook{{After: func(ctx context.Context, _ executor.Call, r executor.Result) (executor.Result, error) {
			<-ctx.Done()
			return r, nil
		}}}
		d, c, replies := pausedAt(t, agent)
		began := time.Now()
		d, err := agent.Resume(t.Context(), d, c, replies)
		require.NoError(t, err)
		require.Equal(t, 30*time.Second, time.Since(began))
		require.Equal(t, []string{"error: Tool exceeded timeout of 30s."}, outcomes(t, d))
	})
}

// The attributes of a continuation are its own: to change them changes nothing of the run that paused.
func TestContinuationHasItsOwnAttributes(t *testing.T) {
	ctx := executor.WithAttributes(t.Context(), map[string]any{"user": "u"})
	_, err := executor.Agent{Provider: once(call("fast")), Strategy: executor.DeferAll()}.Run(ctx, ask(fast))
	var paused *executor.PausedError
	require.ErrorAs(t, err, &paused)
	paused.Continuation.Attributes["user"] = "v"
	require.Equal(t, "u", executor.Attributes(ctx)["user"])
}
