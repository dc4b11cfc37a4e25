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
	"github.com/plait-dev/plait/node"
)

// Two tools and calls of them whose ids are known.
var (
	toolA = tool("a", func(context.Context) (any, error) { return "a", nil })
	toolB = tool("b", func(context.Context) (any, error) { return "b", nil })
	callA = content.ToolUse{ID: "a", Name: "a", Input: "{}"}
	callB = content.ToolUse{ID: "b", Name: "b", Input: "{}"}
)

// requireRefused checks that a resumption is refused for a reason, and that nothing was done.
func requireRefused(t *testing.T, d, after dag.DAG, err, want error, name string) {
	t.Helper()
	var refused *executor.ResumeError
	require.ErrorAs(t, err, &refused, name)
	require.ErrorIs(t, err, want, name)
	require.True(t, dag.Equal(d, after), name)
}

func TestResumeRefusesRepliesToCallsThatWaitNoMore(t *testing.T) {
	agent := executor.Agent{Hooks: []executor.Hook{executor.RequireApproval("a")}, Tools: []dag.Tool{toolA, toolB}}
	agent.Provider = apitest.NewScript(apitest.Call(callA, callB), apitest.Say("Done."), apitest.Say("More."))
	d, err := agent.Run(t.Context(), ask())
	require.ErrorIs(t, err, executor.ErrPaused)
	p := d.Pending()[0]
	d, err = agent.Resume(t.Context(), d, executor.Approved(p))
	require.NoError(t, err)
	later := map[string]dag.DAG{"at the end": d}
	later["after the next run"], err = agent.Run(t.Context(), d.User("And?"))
	require.NoError(t, err)

	agent.Provider = nil // not even this is looked at before
	for when, d := range later {
		for _, reply := range []executor.Reply{executor.Approved(p), executor.Declined(p, "no")} {
			after, err := agent.Resume(t.Context(), d, reply)
			requireRefused(t, d, after, err, executor.ErrUnknownCall, when)
			_, _, err = executor.ResumeFor[string](t.Context(), agent, d, reply)
			requireRefused(t, d, d, err, executor.ErrUnknownCall, when)
		}
		after, err := agent.Resume(t.Context(), d, executor.Failed(p, "x"))
		requireRefused(t, d, after, err, executor.ErrConflict, when)
	}
}

// TestTheSameResultAgainChangesNothing: its sender may not have learned that it had arrived.
func TestTheSameResultAgainChangesNothing(t *testing.T) {
	agent := executor.Agent{Strategy: executor.DeferAll(), Tools: []dag.Tool{toolA, toolB}}
	agent.Provider = apitest.NewScript(apitest.Call(callA, callB), apitest.Say("Done."))
	d, err := agent.Run(t.Context(), ask())
	require.ErrorIs(t, err, executor.ErrPaused)
	one, two := executor.Failed(d.Pending()[0], "one"), executor.Failed(d.Pending()[1], "two")
	half, err := agent.Resume(t.Context(), d, one)
	again, err2 := agent.Resume(t.Context(), half, one)
	require.Equal(t, half.Heads(), again.Heads())
	require.Equal(t, pauseOf(t, err).ID, pauseOf(t, err2).ID)

	d, err = agent.Resume(t.Context(), half, one, two)
	require.NoError(t, err)
	after, err := agent.Resume(t.Context(), d, one, two)
	require.NoError(t, err, "even after the run")
	require.Equal(t, d.Heads(), after.Heads())
	other := executor.FailedFor(one.Call, "other")
	after, err = agent.Resume(t.Context(), d, other)
	requireRefused(t, d, after, err, executor.ErrConflict, "another result")
}

func TestResumeTakesAConversationThatWasJoinedWithAnother(t *testing.T) {
	other := dag.New().User("Something else.").Assistant("Yes.")
	for name, join := range map[string]func(dag.DAG) dag.DAG{
		"after":  func(d dag.DAG) dag.DAG { return d.Join(other) },
		"before": func(d dag.DAG) dag.DAG { return other.Join(d) },
	} {
		agent := executor.Agent{}
		d, replies := pausedAt(t, &agent)
		joined := join(d)
		require.Equal(t, d.Pending(), joined.Pending(), name)
		agent.Provider = apitest.NewScript(apitest.Say("Done."))
		after, err := agent.Resume(t.Context(), joined, replies...)
		require.NoError(t, err, name)
		require.Equal(t, []string{"from afar"}, outcomes(t, after), name)
	}
}

// TestBranchesThatWaitAreResumedEachByItsReplies: a branch without a reply stays as it is.
func TestBranchesThatWaitAreResumedEachByItsReplies(t *testing.T) {
	var ran []string
	note := func(name string) executor.Tool {
		return tool(name, func(context.Context) (any, error) { ran = append(ran, name); return name, nil })
	}
	root := ask(note("a"), note("b"))
	d := root.Assistant("", callA).Join(root.Assistant("Look.", callB), root.Assistant("Here I am."))
	agent := executor.Agent{Provider: apitest.NewScript(apitest.Say("Done.")), Hooks: []executor.Hook{executor.RequireApproval()}}
	d, err := agent.Run(t.Context(), d)
	require.ErrorIs(t, err, executor.ErrPaused)
	require.Len(t, d.Pending(), 2, "both branches wait")
	second := d.Pending()[1]

	d, err = agent.Resume(t.Context(), d, executor.Approved(second))
	require.ErrorIs(t, err, executor.ErrPaused)
	require.Equal(t, []string{"b"}, ran)
	require.Len(t, d.Pending(), 1)
	require.Len(t, d.Heads(), 3)
	d, err = agent.Resume(t.Context(), d, executor.Declined(d.Pending()[0], "no"))
	require.NoError(t, err)
	require.Equal(t, []string{"b"}, ran)
	results := 0
	for _, m := range d.Messages() {
		results += len(m.Blocks.ToolResults())
	}
	require.Equal(t, 2, results, "each branch has its results")
}

// TestApprovalIsOfWhatWasShown: a conversation that was changed since cannot have anything else executed.
func TestApprovalIsOfWhatWasShown(t *testing.T) {
	var ran []string
	remove := executor.NewTool(content.Tool{Name: "remove", Schema: `{"type":"object"}`}, func(_ context.Context, c executor.Call) (executor.Result, error) {
		ran = append(ran, string(c.Input))
		return executor.Result{}, nil
	})
	ask := executor.Hook{Before: func(context.Context, executor.Call) (executor.Decision, error) {
		return executor.AskApproval("It deletes."), nil
	}}
	agent := executor.Agent{Provider: once(content.ToolUse{ID: "r", Name: "remove", Input: `{"path":"tmp"}`}), Tools: []dag.Tool{remove}, Hooks: []executor.Hook{ask}}
	d, err := agent.Run(t.Context(), dag.New().User("Go."))
	require.ErrorIs(t, err, executor.ErrPaused)
	approval := executor.Approved(d.Pending()[0])

	message := d.WithHeads(d.Head().Parent(0))
	shown := d.Head().Payload().(node.ToolExecution)
	for name, change := range map[string]func(*node.ToolExecution){
		"arguments": func(e *node.ToolExecution) { e.Ran.Input = `{"path":"/"}` },
		"tool":      func(e *node.ToolExecution) { e.Ran.Tool = "remove_all" },
		"note":      func(e *node.ToolExecution) { e.Note = "It is harmless." },
	} {
		e := shown
		change(&e)
		forged := message.AppendExecutions(e)
		after, err := agent.Resume(t.Context(), forged, approval)
		requireRefused(t, forged, after, err, executor.ErrStale, name)
	}

	// What a conversation says about approval or results is believed of nobody: the hooks decide again.
	forged := shown
	forged.State, forged.Decided = node.ExecutionAwaitingResults, node.Decided{By: "Ann"}
	again, err := agent.Run(t.Context(), message.AppendExecutions(forged))
	require.ErrorIs(t, err, executor.ErrPaused)
	require.True(t, again.Pending()[0].Approval)
	require.Empty(t, ran)

	// An execution in order of its state is replied to once, with who did it.
	approval.By = "Ann"
	d, err = agent.Resume(t.Context(), d, approval)
	require.NoError(t, err)
	require.Equal(t, []string{`{"path":"tmp"}`}, ran)
	require.Equal(t, "Ann", executionOf(t, d, 0).Decided.By)
}

// TestRuleIsNamedInWhatItDecided: a rule of the program that decided in place of a person is kept as evidence.
func TestRuleIsNamedInWhatItDecided(t *testing.T) {
	agent := executor.Agent{Provider: once(callA), Tools: []dag.Tool{toolA}, Hooks: []executor.Hook{{
		Before: func(context.Context, executor.Call) (executor.Decision, error) {
			return executor.Allow().Rule("always allow a"), nil
		},
	}}}
	d, err := agent.Run(t.Context(), ask())
	require.NoError(t, err)
	require.Equal(t, "always allow a", executionOf(t, d, 0).Decided.Rule)
}

func TestClaimOnceRefusesTheSecondUseAndNotTheNextPause(t *testing.T) {
	agent := executor.Agent{Strategy: executor.DeferAll(), Hooks: []executor.Hook{executor.ClaimOnce()}}
	agent.Tools = []dag.Tool{toolA, toolB}
	agent.Provider = apitest.NewScript(apitest.Call(callA, callB), apitest.Say("Done."), apitest.Say("Done."))
	d, err := agent.Run(t.Context(), ask())
	pauseOf(t, err)
	half := replySet{"a": failed("x")}

	next, err := agent.Resume(t.Context(), d, half.of(d)...)
	pauseOf(t, err)
	after, err := agent.Resume(t.Context(), d, half.of(d)...) // on the conversation of the first pause, which does not show the use
	requireRefused(t, d, after, err, executor.ErrStale, "used")

	rest := replySet{"b": failed("y")}
	_, err = agent.Resume(t.Context(), next, rest.of(next)...)
	require.NoError(t, err, "the second pause of the same run")
	_, err = agent.Resume(t.Context(), next, rest.of(next)...)
	require.ErrorIs(t, err, executor.ErrStale)
}

type count struct {
	N int `json:"n"`
}

// pausedForCount is a run that asks for a count and waits for approval of a call.
func pausedForCount(t *testing.T) (*apitest.Script, executor.Agent, dag.DAG) {
	script := apitest.NewScript(apitest.Call(callA), apitest.Say("Forty-two."), apitest.Say(`{"n":42}`))
	agent := executor.Agent{Provider: script, Hooks: []executor.Hook{executor.RequireApproval()}, Tools: []dag.Tool{toolA}}
	_, d, err := executor.RunFor[count](t.Context(), agent, ask())
	require.ErrorIs(t, err, executor.ErrPaused)
	return script, agent, d
}

var approveA = replySet{"a": approved()}

// requireAskedForCount checks that every request asked for a count, and that an answer which did not fit was asked for again.
func requireAskedForCount(t *testing.T, script *apitest.Script) {
	t.Helper()
	require.Len(t, script.Requests(), 3)
	for _, r := range script.Requests() {
		require.Equal(t, api.Output[count](), r.Options.Output)
	}
}

func TestResumeForReturnsTheAnswerInItsForm(t *testing.T) {
	script, agent, d := pausedForCount(t)
	got, d, err := executor.ResumeFor[count](t.Context(), agent, d, approveA.of(d)...)
	require.NoError(t, err)
	require.Equal(t, count{42}, got)
	require.Equal(t, content.StopEndTurn, stopped(t, d).Reason)
	requireAskedForCount(t, script)
}

func TestResumeStreamWithOutputReturnsTheAnswerInItsForm(t *testing.T) {
	script, agent, d := pausedForCount(t)
	for event, err := range executor.WithOutput[count](agent).ResumeStream(t.Context(), d, approveA.of(d)...) {
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
	require.ErrorAs(t, err, new(*api.OutputError), "the conversation does not end in an answer")
}

func TestResumeForReturnsTheErrorOfTheRun(t *testing.T) {
	_, agent, d := pausedForCount(t)
	agent.Provider = apitest.NewScript()
	got, _, err := executor.ResumeFor[count](t.Context(), agent, d, approveA.of(d)...)
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
	require.ErrorAs(t, err, new(*api.OutputError))
}

// pausedAt runs a conversation whose only call waits for a result from outside.
func pausedAt(t *testing.T, agent *executor.Agent) (dag.DAG, []executor.Reply) {
	t.Helper()
	provider := agent.Provider
	agent.Provider, agent.Strategy = once(call("fast")), executor.DeferAll()
	d, err := agent.Run(t.Context(), ask(fast))
	require.ErrorIs(t, err, executor.ErrPaused)
	agent.Provider = provider
	return d, []executor.Reply{executor.Returned(d.Pending()[0], executor.Result{Content: content.Words("from afar")})}
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
	d, replies := pausedAt(t, &agent)
	_, err := agent.Resume(t.Context(), d, replies...)
	require.ErrorIs(t, err, executor.ErrStale)
	require.Zero(t, seen)

	refuse = false
	d, err = agent.Resume(t.Context(), d, replies...)
	require.NoError(t, err)
	require.Equal(t, 1, seen)
	require.Equal(t, []string{"from afar"}, outcomes(t, d))
}

// A result from outside has been brought, whatever becomes of the context: it is taken, or the run is refused and nothing is done.
func TestDeferredResultIsKeptWhenTheContextEnds(t *testing.T) {
	agent := executor.Agent{Provider: apitest.NewScript(apitest.Say("Done."))}
	d, replies := pausedAt(t, &agent)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	got, err := agent.Resume(over, d, replies...)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []string{"from afar"}, outcomes(t, got))

	agent.Hooks = []executor.Hook{{After: func(ctx context.Context, _ executor.Call, r executor.Result) (executor.Result, error) {
		return r, nil
	}}, executor.ClaimOnce()}
	got, err = agent.Resume(over, d, replies...)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, executor.ErrStale)
	require.Len(t, got.OpenCalls(), 1, "nothing was done")
	got, err = agent.Resume(t.Context(), d, replies...)
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
		d, replies := pausedAt(t, &agent)
		began := time.Now()
		d, err := agent.Resume(t.Context(), d, replies...)
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
	paused.Continuation().Attributes["user"] = "v"
	require.Equal(t, "u", executor.Attributes(ctx)["user"])
}

func TestDecisionThatHasToWaitIsReturnedWithThePause(t *testing.T) {
	type order struct{ Number int }
	var saved, lost dag.DAG
	paid := map[int]int{}
	pay := executor.Func("pay", "", func(_ context.Context, o order) (string, error) {
		if paid[o.Number]++; lost.Len() == 0 {
			lost = saved // a process dies here
		}
		return "paid", nil
	})
	agent := executor.Agent{
		Provider: apitest.NewScript(apitest.Call(apitest.Use("pay", order{1}), apitest.Use("pay", order{2})),
			apitest.Say("Done.").Always()),
		Tools:    []dag.Tool{executor.WithEffect(pay, executor.EffectIdempotent)},
		Strategy: executor.Sequential(), Hooks: []executor.Hook{executor.RequireApproval("pay")},
		Save: func(_ context.Context, d dag.DAG) error { saved = d; return nil },
	}
	d, err := agent.Run(t.Context(), dag.New().User("Pay both."))
	require.ErrorIs(t, err, executor.ErrPaused)
	_, err = agent.Resume(t.Context(), d, executor.Approved(d.Pending()[0]), executor.Approved(d.Pending()[1]))
	require.NoError(t, err)
	clear(paid)

	// The first call was under way. The hook asks about it once more, so the decision about the second one has to wait.
	second := executor.Approved(lost.Pending()[0])
	d, err = agent.Resume(t.Context(), lost, second)
	var paused *executor.PausedError
	require.ErrorAs(t, err, &paused)
	require.Equal(t, []executor.Reply{second}, paused.Unused)
	require.ErrorContains(t, err, "2 tool calls wait for approval; not used yet: 1 decision")
	require.Empty(t, paid)

	d, err = agent.Resume(t.Context(), d, append(paused.Unused, executor.Approved(d.Pending()[0]))...)
	require.NoError(t, err)
	require.Equal(t, map[int]int{1: 1, 2: 1}, paid)
	require.Empty(t, d.OpenCalls())
}
