package executor_test

import (
	"context"
	"errors"
	"iter"
	"sync"
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

// The tests of this file are the conformance cases 23 to 31 and 54 to 72 of nano-agent, by their numbers. Where Plait differs on
// purpose, the case says so:
//
//   - 28: a handler that fails is told to the model; nano-agent drops everything.
//   - 29: calls with the same id are each run and each answered; nano-agent cannot tell their results apart.
//   - 30: an answer stays one message; nano-agent splits thinking from the calls that it signs.
//   - 31: a stop reason can be added to an empty conversation.
//   - 56: the second wait is doubled and a little random; nano-agent waits 1 s and 2 s sharp.
//   - 59: an unknown tool is answered with the names of those that exist.
//   - 60: the model reads the error's own words, without "Tool error:" before them.
//   - 66: the text of a cancelled call says whether the tool had been started.
//   - 72: permissions come with the whole tool loop; here a handler is asked for every tool, and its refusal is an error
//     result.

func TestNanoAgentCase23ExecutingACallAddsItsResult(t *testing.T) {
	d, err := executor.ExecuteTools(t.Context(), called(in("Tokyo")))
	require.NoError(t, err)
	require.Equal(t, "uar", roles(d))
}

func TestNanoAgentCase24TwoCallsAreTwoResultsOfOneMessageInCallOrder(t *testing.T) {
	d, err := executor.ExecuteTools(t.Context(), called(in("Tokyo"), in("Paris")))
	require.NoError(t, err)
	require.Equal(t, []string{"Tokyo: 22°C", "Paris: 18°C"}, outcomes(t, d))
}

func TestNanoAgentCase25NoCallsChangeNothing(t *testing.T) {
	before := ask(weather)
	d, err := executor.ExecuteTools(t.Context(), before)
	require.NoError(t, err)
	require.True(t, dag.Equal(before, d))
	require.Equal(t, before.Head(), d.Head())
}

func TestNanoAgentCase26TheMergedMessageFollowsExecutionsThatFollowTheAnswer(t *testing.T) {
	before := called(in("Tokyo"), in("Paris"))
	d, err := executor.ExecuteTools(t.Context(), before)
	require.NoError(t, err)
	require.Equal(t, 2, d.Head().NumParents())
	for i, branch := range d.Head().Parents() {
		require.Equal(t, i, branch.Payload().(node.ToolExecution).Index)
		require.Equal(t, before.Head(), branch.Parent(0))
		require.Equal(t, 1, branch.NumParents())
	}
}

func TestNanoAgentCase27AHandlerThatReturnsNothingGivesAnEmptyResult(t *testing.T) {
	d, err := executor.ExecuteToolsFunc(t.Context(), called(in("Tokyo")), func(context.Context, executor.Call) (any, error) {
		return []content.Block{}, nil
	})
	require.NoError(t, err)
	require.Zero(t, results(t, d)[0].Content.Len())
	require.False(t, results(t, d)[0].IsError)
}

func TestNanoAgentCase28AHandlerThatFailsLeavesTheOthersResultsAlone(t *testing.T) {
	before := called(in("Tokyo"), in("Paris"))
	n := before.Len()
	d, err := executor.ExecuteToolsFunc(t.Context(), before, func(_ context.Context, c executor.Call) (any, error) {
		if c.Index == 0 {
			return nil, errors.New("no")
		}
		return "yes", nil
	})
	require.NoError(t, err)
	require.Equal(t, []string{"error: no", "yes"}, outcomes(t, d))
	require.Equal(t, n, before.Len(), "the receiver is unchanged")
}

func TestNanoAgentCase29CallsWithOneIdAreEachRunAndEachAnswered(t *testing.T) {
	calls := []content.ToolUse{in("Tokyo"), in("Paris")}
	calls[0].ID, calls[1].ID = "same", "same"
	d, err := executor.Run(t.Context(), once(calls...), ask(weather))
	require.NoError(t, err)
	require.Equal(t, []string{"Tokyo: 22°C", "Paris: 18°C"}, outcomes(t, d))
}

func TestNanoAgentCase30AnAnswerStaysOneMessage(t *testing.T) {
	d, err := executor.Run(t.Context(), apitest.NewScript(apitest.Say("So.").Think("hm", "sig").Call(call("fast")), apitest.Say("Done.")), ask(fast))
	require.NoError(t, err)
	require.Equal(t, "uara", roles(d))
	require.Equal(t, 3, d.Messages()[1].Blocks.Len())
}

func TestNanoAgentCase31AnEmptyConversationCanStop(t *testing.T) {
	d, err := executor.Run(t.Context(), apitest.NewScript(apitest.Say("Hello?")), dag.New())
	require.NoError(t, err)
	require.Equal(t, content.StopEndTurn, stopped(t, d).Reason)
}

func TestNanoAgentCase54CallsThatWaitForEachOtherFinish(t *testing.T) {
	var both sync.WaitGroup
	both.Add(2)
	meet := func(said string) func(context.Context) (any, error) {
		return func(context.Context) (any, error) { both.Done(); both.Wait(); return said, nil }
	}
	d, err := executor.Run(t.Context(), once(call("first"), call("second")), ask(tool("first", meet("first")), tool("second", meet("second"))))
	require.NoError(t, err)
	require.Equal(t, []string{"first", "second"}, outcomes(t, d))
	require.Equal(t, "uara", roles(d))
}

func TestNanoAgentCase55ATransportFailureIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := apitest.NewScript(apitest.Fail(&api.Error{Kind: api.ErrTransport}), apitest.Say("Done."))
		_, err := executor.Run(t.Context(), model, ask())
		require.NoError(t, err)
		require.Len(t, model.Requests(), 2)
	})
}

func TestNanoAgentCase56429And503AreWaitedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := apitest.NewScript(
			apitest.Fail(&api.Error{Kind: api.ErrRateLimited, Status: 429}), apitest.Fail(&api.Error{Kind: api.ErrServer, Status: 503}),
			apitest.Say("Done."),
		)
		start := time.Now()
		_, err := executor.Run(t.Context(), model, ask())
		require.NoError(t, err)
		require.Len(t, model.Requests(), 3)
		require.GreaterOrEqual(t, time.Since(start), 2250*time.Millisecond)
		require.LessOrEqual(t, time.Since(start), 3*time.Second)
	})
}

func TestNanoAgentCase57400IsSentOnceAndIsAnError(t *testing.T) {
	model := apitest.NewScript(apitest.Fail(&api.Error{Kind: api.ErrInvalidRequest, Status: 400}), apitest.Say("never"))
	_, err := executor.Run(t.Context(), model, ask())
	require.ErrorIs(t, err, api.ErrInvalidRequest)
	require.Len(t, model.Requests(), 1)
}

func TestNanoAgentCase58529IsRetriedAndRetryAfterIsHonoured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := apitest.NewScript(
			apitest.Fail(&api.Error{Kind: api.ErrOverloaded, Status: 529, RetryAfter: 7 * time.Second}), apitest.Say("Done."),
		)
		start := time.Now()
		_, err := executor.Run(t.Context(), model, ask())
		require.NoError(t, err)
		require.Equal(t, 7*time.Second, time.Since(start))
	})
}

func TestNanoAgentCase59AnUnknownToolIsAnErrorResult(t *testing.T) {
	d, err := executor.Run(t.Context(), once(call("Teleport")), ask(fast, echo))
	require.NoError(t, err)
	require.Equal(t, []string{`error: Tool "Teleport" not found. Available tools: fast, echo`}, outcomes(t, d))
}

func TestNanoAgentCase60AToolThatFailsOrPanicsIsAnErrorResultAndOthersGoOn(t *testing.T) {
	d, err := executor.Run(t.Context(), once(call("broken"), call("fast"), call("panics")), ask(broken, fast, panics))
	require.NoError(t, err)
	require.Equal(t, []string{"error: it is broken", "fast", `error: Tool "panics" panicked: oh no`}, outcomes(t, d))
	require.Equal(t, "Done.", d.Text())
}

func TestNanoAgentCase61CallsDecideNotTheStopReason(t *testing.T) {
	model := apitest.NewScript(apitest.Call(call("fast")).Stop(content.StopEndTurn), apitest.Say("Done."))
	d, err := executor.Run(t.Context(), model, ask(fast))
	require.NoError(t, err)
	require.Equal(t, []string{"fast"}, outcomes(t, d))
}

func TestNanoAgentCase62TheModelsReasonIsKept(t *testing.T) {
	for reason, want := range map[content.Stop]content.Stop{"": content.StopEndTurn, "max_tokens": content.StopMaxTokens, "weird": "weird"} {
		d, err := executor.Run(t.Context(), apitest.NewScript(apitest.Say("Hm").Stop(reason)), ask())
		require.NoError(t, err)
		require.Equal(t, want, stopped(t, d).Reason)
	}
	d, err := executor.Run(t.Context(), reasonless{}, ask())
	require.NoError(t, err)
	require.Equal(t, content.StopUnknown, stopped(t, d).Reason)
}

func TestNanoAgentCase63UsageIsSummed(t *testing.T) {
	u := content.Usage{Input: 100, Output: 20, CacheRead: 7, CacheWrite: 3, Reasoning: 5}
	model := apitest.NewScript(apitest.Call(call("fast")).Usage(u), apitest.Say("Done.").Usage(u))
	d, err := executor.Run(t.Context(), model, ask(fast))
	require.NoError(t, err)
	stop := stopped(t, d)
	require.Equal(t, u.Plus(u), stop.Usage)
	require.Equal(t, 2, stop.Turns)
	require.Equal(t, 1, stop.ToolCalls)
}

func TestNanoAgentCase64ARunThatIsCancelledBeforeAsksNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	model := apitest.NewScript()
	d, err := executor.Run(ctx, model, ask())
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, model.Requests())
	require.Equal(t, content.StopCancelled, stopped(t, d).Reason)
}

func TestNanoAgentCase65ACancelInTheModelCallKeepsWhatArrivedAndReturnsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("the user had enough")
		time.AfterFunc(time.Second, func() { cancel(enough) })
		start, before := time.Now(), ask()
		d, err := executor.Run(ctx, apitest.NewScript(apitest.Say("Half an").Hang()), before)
		require.ErrorIs(t, err, enough)
		require.Equal(t, time.Second, time.Since(start))
		require.Equal(t, before.Messages(), d.Messages()[:1])
		require.Equal(t, "Half an", d.Messages()[1].Blocks.Text())
		require.Equal(t, content.StopCancelled, stopped(t, d).Reason)
	})
}

func TestNanoAgentCase66ACancelDuringToolsKeepsResultsAndAnswersEveryCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		told := 0
		listens := tool("listens", func(ctx context.Context) (any, error) {
			<-ctx.Done()
			told++
			return nil, ctx.Err()
		})
		d, err := executor.Agent{Provider: once(call("fast"), call("listens"), call("slow")), Strategy: executor.Parallel(3)}.Run(ctx, ask(fast, slow, listens))
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, []string{
			"fast",
			"error: Operation cancelled while the tool was running; it may have had effects.",
			"error: Operation cancelled while the tool was running; it may have had effects.",
		}, outcomes(t, d))
		require.Equal(t, 1, told)
		require.Equal(t, content.StopCancelled, stopped(t, d).Reason)
		requireValid(t, d)
	})
}

func TestNanoAgentCase67ASecondRunGoesOnAfterTheFirst(t *testing.T) {
	model := apitest.NewScript(apitest.Say("One."), apitest.Say("Two."))
	d, err := executor.Run(t.Context(), model, ask())
	require.NoError(t, err)
	d, err = executor.Run(t.Context(), model, d.User("And?"))
	require.NoError(t, err)
	require.Equal(t, "uaua", roles(d))
	var kinds []string
	for _, n := range d.Nodes() {
		kinds = append(kinds, n.Kind())
	}
	require.Equal(t, []string{"message", "run_start", "message", "stop_reason", "message", "run_start", "message", "stop_reason"}, kinds)
	require.Equal(t, 1, stopped(t, d).Turns, "totals are of one run")
}

func TestNanoAgentCase68ACancelReachesRunsInsideToolsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		child := tool("child", func(ctx context.Context) (any, error) {
			d, err := executor.Run(ctx, apitest.NewScript(apitest.Hang()), ask())
			return d.Text(), err
		})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(300*time.Millisecond, cancel)
		start := time.Now()
		_, err := executor.Run(ctx, once(call("child"), call("child")), ask(child))
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, 300*time.Millisecond, time.Since(start))
	})
}

func TestNanoAgentCase69ADeadlineFromOutsideIsAnErrorBesideWhatWasReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		d, err := executor.Run(ctx, apitest.NewScript(apitest.Call(call("fast")), apitest.Hang()), ask(fast))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, "uar", roles(d))
		require.Equal(t, content.StopDeadline, stopped(t, d).Reason)
	})
}

func TestNanoAgentCase70AnErrorAfterProgressComesWithTheProgress(t *testing.T) {
	failure := &api.Error{Kind: api.ErrAuth, API: "script", Message: "key revoked"}
	d, err := executor.Run(t.Context(), apitest.NewScript(apitest.Call(call("fast")), apitest.Fail(failure)), ask(fast))
	require.ErrorIs(t, err, api.ErrAuth)
	require.Equal(t, "uar", roles(d))
	require.Equal(t, content.StopError, stopped(t, d).Reason)
	require.Equal(t, failure.Error(), stopped(t, d).Detail)
	requireValid(t, d)
}

func TestNanoAgentCase71TheLimitOnTurnsHasItsOwnReason(t *testing.T) {
	model := apitest.NewScript(apitest.Call(call("fast")).Always())
	d, err := executor.Agent{Provider: model, Limits: executor.Limits{Turns: 4}}.Run(t.Context(), ask(fast))
	require.NoError(t, err)
	require.Len(t, model.Requests(), 4)
	require.Equal(t, content.StopMaxTurns, stopped(t, d).Reason)
	requireValid(t, d)
}

func TestNanoAgentCase72AHandlerIsAskedForEveryCallAndMayRefuse(t *testing.T) {
	var asked sync.Map
	agent := executor.Agent{Provider: once(call("fast"), call("broken")), Handler: func(_ context.Context, c executor.Call) (any, error) {
		asked.Store(c.Name, true)
		if c.Name == "broken" {
			return nil, errors.New("Edit rejected by user.")
		}
		return "allowed", nil
	}}
	d, err := agent.Run(t.Context(), ask(fast, broken))
	require.NoError(t, err)
	require.Equal(t, []string{"allowed", "error: Edit rejected by user."}, outcomes(t, d))
}

// reasonless ends its answer without a reason.
type reasonless struct{}

func (reasonless) Stream(context.Context, api.Request) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		if yield(api.BlockEnd{Block: content.Text{Text: "Hm"}}, nil) {
			yield(api.Finish{}, nil)
		}
	}
}
