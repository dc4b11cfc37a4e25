package executor_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// What a tool says is its whole output is checked like the rest: it must not make the phase impossible to close.
func TestAWholeOutputThatCannotBeKeptIsThatToolsErrorAlone(t *testing.T) {
	use, err := content.Of(content.ToolUse{ID: "x", Name: "fast", Input: "{}"})
	require.NoError(t, err)
	bad := tool("bad", func(context.Context) (any, error) {
		return executor.Result{Content: content.Words("x"), Full: use}, nil
	})
	d, err := executor.Run(t.Context(), once(call("bad"), call("fast")), ask(fast, bad))
	require.NoError(t, err)
	require.Contains(t, outcomes(t, d)[0], "error: the tool's result: its full output")
	require.Equal(t, "fast", outcomes(t, d)[1])
	require.Equal(t, "Done.", d.Text())
}

// A message must not get past the hooks because the agent, or whoever built the conversation, declares something after it.
func TestInputIsAskedAlsoWhereSomethingIsDeclaredBehindTheMessage(t *testing.T) {
	reject := []executor.Hook{{Input: func(_ context.Context, m content.Message) (content.Message, error) {
		return m, errors.New("no")
	}}}
	warn := []executor.Hook{{Input: func(_ context.Context, m content.Message) (content.Message, error) {
		return executor.Warn(m, "careful")
	}}}
	for name, c := range map[string]struct {
		agent executor.Agent
		d     dag.DAG
	}{
		"nothing":          {executor.Agent{}, dag.New().User("x")},
		"the agent's tool": {executor.Agent{Tools: []dag.Tool{fast}}, dag.New().User("x")},
		"a system prompt":  {executor.Agent{System: "Be brief.", Tools: []dag.Tool{fast}}, dag.New().User("x")},
		"by hand":          {executor.Agent{}, dag.New().User("x").System("Be brief.").Tools(fast)},
	} {
		t.Run(name, func(t *testing.T) {
			model := apitest.NewScript(apitest.Say("y").Always())
			c.agent.Provider, c.agent.Hooks = model, reject
			d, err := c.agent.Run(t.Context(), c.d)
			require.ErrorIs(t, err, executor.ErrRejected)
			require.Empty(t, model.Requests())
			require.Equal(t, c.d.Head(), d.Head())

			c.agent.Hooks = warn
			d, err = c.agent.Run(t.Context(), c.d)
			require.NoError(t, err)
			require.Equal(t, "x\n[Warning: careful]", d.Messages()[0].Blocks.Text())
			require.Equal(t, "x\n[Warning: careful]", model.Requests()[0].Messages[0].Blocks.Text())
			require.Empty(t, d.Validate())
			require.Equal(t, len(c.agent.Tools) > 0 || name == "by hand", len(model.Requests()[0].Tools) == 1)
			require.Equal(t, c.agent.System != "" || name == "by hand", len(model.Requests()[0].System) == 1)
		})
	}
}

// That the context ended is not that a hook rejected the message.
func TestAMessageIsNotRejectedByTheEndOfTheContext(t *testing.T) {
	hangs := []executor.Hook{{Input: func(ctx context.Context, m content.Message) (content.Message, error) {
		<-ctx.Done()
		return m, ctx.Err()
	}}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	model := apitest.NewScript(apitest.Say("y"))
	d, err := executor.Agent{Provider: model, Hooks: hangs}.Run(ctx, dag.New().User("x"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, executor.ErrRejected)
	require.Len(t, d.Nodes(), 1, "the hook may be asked again")
	require.Empty(t, model.Requests())
}

// A run that is cancelled while a hook looks at a message leaves it, and all behind it, in the queue.
func TestACancelledRunRejectsNothingOfItsQueue(t *testing.T) {
	for _, all := range []bool{false, true} {
		for _, first := range []bool{false, true} { // the queue is asked at the beginning, or after an answer
			ctx, cancel := context.WithCancel(t.Context())
			hook := executor.Hook{Input: func(ctx context.Context, m content.Message) (content.Message, error) {
				if m.Blocks.Text() == "two" {
					cancel()
					<-ctx.Done()
				}
				return m, ctx.Err()
			}}
			queue := &executor.Queue{}
			if all {
				queue = executor.NewQueue()
			}
			agent := executor.Agent{Provider: apitest.NewScript(apitest.Say("a").Always()), Hooks: []executor.Hook{hook}, FollowUps: queue}
			if first {
				agent.FollowUps, agent.Steering = nil, queue
			} else {
				require.NoError(t, queue.Add("one"))
			}
			require.NoError(t, queue.Add("two"))
			require.NoError(t, queue.Add("three"))
			for event, err := range agent.Stream(ctx, dag.New().User("x")) {
				_, rejected := event.(executor.Rejected)
				require.False(t, rejected)
				if end, ok := event.(executor.End); ok {
					require.ErrorIs(t, err, context.Canceled)
					require.Equal(t, content.StopCancelled, end.Stop.Reason)
				}
			}
			left := queue.Messages()
			require.GreaterOrEqual(t, len(left), 2)
			require.Equal(t, "two", left[len(left)-2].Blocks.Text())
			require.Equal(t, "three", left[len(left)-1].Blocks.Text())
		}
	}
}

// What a strategy returned belongs to it: it may return the same waves each time, in several runs at once.
func TestAStrategyMayReturnTheSameWavesEachTime(t *testing.T) {
	waves := []executor.Batch{{Calls: []int{0, 1}}}
	agent := executor.Agent{Strategy: func([]executor.Ready) []executor.Batch { return waves }}
	for range 2 {
		agent.Provider = once(call("nope"), call("fast"), call("fast")) // the places of the two that run are 1 and 2
		_, err := agent.Run(t.Context(), ask(fast))
		require.NoError(t, err)
		require.Equal(t, []int{0, 1}, waves[0].Calls)
	}
}

// A timeout that is over before the call's goroutine gets to run is a timeout like any other.
func TestAToolThatIgnoresATinyTimeoutIsAnsweredOnTime(t *testing.T) {
	for range 50 {
		release := make(chan struct{})
		stuck := tool("stuck", func(context.Context) (any, error) { <-release; return "late", nil })
		agent := executor.Agent{ToolTimeout: 1, Grace: -1, Provider: once(call("stuck"), call("stuck"))}

		// A call that is not answered by its timeout is answered as cancelled by this one, so that a failure does not hang.
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		d, err := agent.Run(ctx, ask(stuck))
		cancel()
		close(release)
		require.NoError(t, err)
		require.Equal(t, []string{"error: Tool exceeded timeout of 1ns.", "error: Tool exceeded timeout of 1ns."}, outcomes(t, d))
	}
}

// A hook that returns nothing, or no provider, ends the run, and takes nothing from the conversation.
func TestANextHookThatReturnsNothingLosesNothing(t *testing.T) {
	nothing := executor.Hook{Next: func(context.Context, executor.Turn) (executor.Turn, error) { return executor.Turn{}, nil }}
	d, err := executor.Agent{Provider: once(call("fast")), Hooks: []executor.Hook{nothing}}.Run(t.Context(), ask(fast))
	require.ErrorIs(t, err, executor.ErrNoProvider)
	require.Equal(t, "uar", roles(d))
	require.Equal(t, content.StopError, stopped(t, d).Reason)
	requireValid(t, d)
}

// What an Input hook makes of a message must be one that a user can say.
func TestAnInputHookCannotMakeAMessageThatNoUserSays(t *testing.T) {
	for _, block := range []content.Block{content.ToolUse{ID: "x", Name: "fast", Input: "{}"}, content.ToolResult{CallID: "x"}, content.Thinking{Text: "hm"}} {
		hook := executor.Hook{Input: func(_ context.Context, m content.Message) (made content.Message, err error) {
			made.Blocks, err = content.Of(block)
			return made, err
		}}
		agent := executor.Agent{Provider: apitest.NewScript(apitest.Say("y").Always()), Hooks: []executor.Hook{hook}}
		_, err := agent.Run(t.Context(), dag.New().User("x"))
		require.ErrorIs(t, err, executor.ErrRejected)

		agent.Steering = &executor.Queue{}
		require.NoError(t, agent.Steering.Add("x"))
		d, err := agent.Run(t.Context(), dag.New())
		require.NoError(t, err)
		require.Empty(t, d.Validate())
		require.Equal(t, "a", roles(d))
	}
}

// Ids of 64 bits that differ in their last digit are not the same arguments.
func TestRepeatsCountsEveryDigit(t *testing.T) {
	get := executor.Func("get", "", func(_ context.Context, in struct {
		ID int64 `json:"id"`
	}) (string, error) {
		return strconv.FormatInt(in.ID, 10), nil
	})
	var turns []apitest.Turn
	for i := range 6 {
		turns = append(turns, apitest.Call(apitest.Use("get", map[string]int64{"id": 1234567890123456780 + int64(i)})))
	}
	agent := executor.Agent{Provider: apitest.NewScript(append(turns, apitest.Say("Done."))...), Limits: executor.Limits{Repeats: 2}}
	d, err := agent.Run(t.Context(), ask(get))
	require.NoError(t, err)
	require.Equal(t, content.StopEndTurn, stopped(t, d).Reason)
	require.Equal(t, "uarararararara", roles(d), "and it was told nothing")
}

// A run that reached its limit on calls and paused in the same turn stops there when it is resumed.
func TestTheLimitOnCallsHoldsOverAPause(t *testing.T) {
	for _, strategy := range []executor.Strategy{nil, executor.DeferAll()} {
		model := once(call("fast"), call("fast"))
		agent := executor.Agent{Provider: model, Strategy: strategy, Limits: executor.Limits{Calls: 1}}
		if strategy == nil {
			agent.Hooks = []executor.Hook{executor.RequireApproval()}
		}
		d, err := agent.Run(t.Context(), ask(fast))
		var paused *executor.PausedError
		require.ErrorAs(t, err, &paused)
		require.Len(t, paused.Continuation.Pending, 1)
		reply := executor.Failed("elsewhere")
		if strategy == nil {
			reply = executor.Approved()
		}
		d, err = agent.Resume(t.Context(), d, paused.Continuation, map[string]executor.Reply{paused.Continuation.Pending[0].ID: reply})
		require.NoError(t, err)
		require.Equal(t, content.StopCallLimit, stopped(t, d).Reason)
		require.Equal(t, 2, stopped(t, d).ToolCalls)
		require.Len(t, model.Requests(), 1)
	}
	agent := executor.Agent{Provider: once(call("fast")), Hooks: []executor.Hook{executor.RequireApproval()}, Limits: executor.Limits{Calls: 1}}
	d, err := agent.Run(t.Context(), ask(fast))
	var paused *executor.PausedError
	require.ErrorAs(t, err, &paused)
	d, err = agent.Resume(t.Context(), d, paused.Continuation, map[string]executor.Reply{paused.Continuation.Pending[0].ID: executor.Approved()})
	require.NoError(t, err)
	require.Equal(t, content.StopEndTurn, stopped(t, d).Reason, "none was beyond it")
}

func TestANewlineAtTheEndOfATextIsNoLine(t *testing.T) {
	hook := executor.OutputLimit{MaxLines: 2}.Hook()
	for text, want := range map[string]string{"a\nb": "a\nb", "a\nb\n": "a\nb\n", "a\nb\nc": "a\n[truncated]"} {
		got, err := hook.After(t.Context(), executor.Call{}, executor.Result{Content: content.Words(text)})
		require.NoError(t, err)
		require.Equal(t, want, got.Content.Text())
	}
}

// Whatever is cut says so, and all of it stays inside the limit, however the texts are divided.
func TestOutputLimitSaysSoInsideTheLimitForSeveralTexts(t *testing.T) {
	const marker = "[truncated]"
	words := []string{"a", "0123456789", "one\ntwo", "äöü€𝄞äöü€𝄞", "\n\n\n", "", "0123456789012345678901234567890123456789"}
	for bytes := range 45 {
		for lines := range 5 {
			for _, a := range words {
				for _, b := range words {
					said, err := content.Of(content.Text{Text: a}, content.Text{Text: b})
					require.NoError(t, err)
					hook := executor.OutputLimit{MaxBytes: bytes, MaxLines: lines, KeepFull: true}.Hook()
					got, err := hook.After(t.Context(), executor.Call{}, executor.Result{Content: said})
					require.NoError(t, err)
					n, rows, all := 0, 0, ""
					for _, block := range got.Content.All() {
						text := block.(content.Text).Text
						require.True(t, utf8.ValidString(text))
						n, all = n+len(text), all+text
						rows += strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1
					}
					what := fmt.Sprintf("%d bytes, %d lines: %q, %q: %q", bytes, lines, a, b, all)
					if got.Full.Len() == 0 {
						require.Equal(t, a+b, all, what)
					} else {
						mark := marker
						if bytes > 0 {
							mark = marker[:min(bytes, len(marker))]
						}
						require.True(t, strings.HasSuffix(all, mark), what)
					}
					require.True(t, bytes == 0 || n <= bytes, what)
					require.True(t, lines == 0 || rows <= lines, what)
				}
			}
		}
	}
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
func TestARefusedResumeAsksNoAfterHook(t *testing.T) {
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
func TestAResultFromOutsideIsNotLostWhenTheContextEnds(t *testing.T) {
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
func TestAnAfterHookThatHangsOnAResultFromOutsideIsGivenUp(t *testing.T) {
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

// A Send hook changes one request, however it does it; the next one is made of the conversation again.
func TestWhatASendHookWritesToOneRequestIsNotInTheNext(t *testing.T) {
	hook := executor.Hook{Send: func(_ context.Context, req api.Request) (api.Request, error) {
		last := &req.Messages[len(req.Messages)-1]
		last.Blocks = content.Words("changed: " + last.Blocks.Text())
		req.System[0] += "!"
		req.Tools[0].Description += "!"
		return req, nil
	}}
	model := apitest.NewScript(apitest.Say("a"), apitest.Say("b"))
	agent := executor.Agent{Provider: model, System: "Be brief.", Hooks: []executor.Hook{hook}, FollowUps: &executor.Queue{}}
	require.NoError(t, agent.FollowUps.Add("second"))
	_, err := agent.Run(t.Context(), ask(fast))
	require.NoError(t, err)
	first, second := model.Requests()[0], model.Requests()[1]
	require.Equal(t, "changed: Go.", first.Messages[0].Blocks.Text())
	require.Equal(t, "Go.", second.Messages[0].Blocks.Text())
	require.Equal(t, "changed: second", second.Messages[2].Blocks.Text())
	require.Equal(t, "Be brief.!", second.System[0])
	require.Equal(t, "!", second.Tools[0].Description)
}

// An agent that calls itself by a tool of the program's own, and not by SubAgent, comes to an end as well.
func TestDepthLimitsEveryRunInsideATool(t *testing.T) {
	var agent executor.Agent
	deepest, refused := 0, ""
	nest := executor.Func("nest", "", func(ctx context.Context, _ none) (string, error) {
		deepest++
		d, err := agent.Run(ctx, dag.New().User("Go."))
		if err != nil {
			refused = err.Error()
		}
		return d.Text(), err
	})
	agent.Provider = apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
		if len(req.Messages) > 1 {
			return apitest.Say("Done.")
		}
		return apitest.Call(call("nest"))
	}).Always())
	agent.Tools, agent.Limits = []dag.Tool{nest}, executor.Limits{Depth: 3}
	_, err := agent.Run(t.Context(), dag.New().User("Go."))
	require.NoError(t, err)
	require.Equal(t, 4, deepest, "the fourth is refused")
	require.Equal(t, "sub-agents may nest no deeper than 3", refused)
}

// A sub-agent that is refused has a conversation too: its task.
func TestTheConversationOfASubAgentThatIsRefused(t *testing.T) {
	sub := executor.SubAgent("sub", "", executor.Agent{}) // it has no provider
	for event := range executor.Stream(t.Context(), once(apitest.Use("sub", executor.Task{Task: "The task."})), ask(sub)) {
		if end, ok := event.(executor.ToolEnd); ok {
			require.True(t, end.Execution.IsError)
			require.Equal(t, 1, end.Execution.Child.Len())
		}
	}
}

// A tool may hold its conversation by Agent.Run as well as by SubAgent: it hangs on the call's execution, as Result.Child says.
func TestTheConversationOfARunInsideATool(t *testing.T) {
	inner := executor.Agent{Provider: apitest.NewScript(apitest.Say("inner").Usage(content.Usage{Input: 5}))}
	nest := executor.Func("nest", "", func(ctx context.Context, _ none) (string, error) {
		_, err := inner.Run(ctx, dag.New().User("Go."))
		return "outer", err
	})
	var done node.ToolExecution
	for event := range executor.Stream(t.Context(), once(call("nest")), ask(nest)) {
		if end, ok := event.(executor.ToolEnd); ok {
			done = end.Execution
		}
	}
	require.Equal(t, int64(5), done.Usage.Input)
	require.Equal(t, 1, done.Child.Len())
	require.Equal(t, "inner", dag.New().WithHeads(done.Child.Slice()...).Text())
	require.Equal(t, content.StopEndTurn, done.Child.Slice()[0].Payload().(node.StopReason).Reason)
}

// A strategy is a program's own code like a hook: it must not hang the run, end its goroutine, or tell the model what it panicked with.
func TestAStrategyThatMisbehavesFailsClosed(t *testing.T) {
	for name, c := range map[string]struct {
		strategy executor.Strategy
		want     string
	}{
		"hangs":  {func([]executor.Ready) []executor.Batch { time.Sleep(time.Hour); return nil }, "Operation cancelled before the tool was started."},
		"ends":   {func([]executor.Ready) []executor.Batch { runtime.Goexit(); return nil }, `Tool "fast" failed.`},
		"panics": {func([]executor.Ready) []executor.Batch { panic("secret") }, `Tool "fast" failed.`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				began := time.Now()
				agent := executor.Agent{Provider: once(call("fast"), call("nope"), call("fast")), Strategy: c.strategy, HideErrors: true}
				d, err := agent.Run(ctx, ask(fast))
				require.Equal(t, name == "hangs", errors.Is(err, context.DeadlineExceeded))
				require.LessOrEqual(t, time.Since(began), time.Minute+time.Second)
				requireValid(t, d)
				got := outcomes(t, d)
				require.Equal(t, []string{"error: " + c.want, "error: " + c.want}, []string{got[0], got[2]})
				time.Sleep(2 * time.Hour) // the one that hangs is left behind
			})
		})
	}
}

// An answer to an earlier question, or words beside a call, are not the answer that RunFor was asked for.
func TestRunForTakesNoOtherAnswer(t *testing.T) {
	type answer struct {
		N int `json:"n"`
	}
	for name, turn := range map[string]apitest.Turn{
		"from before":   apitest.Call(call("fast")),
		"beside a call": apitest.Answer(content.Text{Text: `{"n":1}`}).Call(call("fast")),
	} {
		t.Run(name, func(t *testing.T) {
			agent := executor.Agent{Provider: apitest.NewScript(turn), Tools: []dag.Tool{fast}, Limits: executor.Limits{Turns: 1}}
			got, d, err := executor.RunFor[answer](t.Context(), agent, dag.New().User("How many?").Assistant(`{"n":42}`).User("And now?"))
			require.ErrorIs(t, err, api.ErrOutput)
			require.Zero(t, got)
			require.Equal(t, content.StopMaxTurns, stopped(t, d).Reason)
		})
	}
}

// The attributes of a continuation are its own: to change them changes nothing of the run that paused.
func TestTheAttributesOfAContinuationAreItsOwn(t *testing.T) {
	ctx := executor.WithAttributes(t.Context(), map[string]any{"user": "u"})
	_, err := executor.Agent{Provider: once(call("fast")), Strategy: executor.DeferAll()}.Run(ctx, ask(fast))
	var paused *executor.PausedError
	require.ErrorAs(t, err, &paused)
	paused.Continuation.Attributes["user"] = "v"
	require.Equal(t, "u", executor.Attributes(ctx)["user"])
}

func TestAfterHookWhoseErrorSaysNothingIsToldToTheModelAllTheSame(t *testing.T) {
	silent := executor.Hook{After: func(_ context.Context, _ executor.Call, r executor.Result) (executor.Result, error) {
		return r, errors.New("")
	}}
	d, err := executor.Agent{Provider: once(call("fast")), Hooks: []executor.Hook{silent}}.Run(t.Context(), ask(fast))
	require.NoError(t, err)
	require.Equal(t, []string{`error: Tool "fast" failed without saying why.`}, outcomes(t, d))
}

func TestNoQueueIsAnEmptyOne(t *testing.T) {
	var none *executor.Queue
	require.Empty(t, none.Clear())
	require.Empty(t, none.Messages())
	require.Zero(t, none.Len())
}

func TestZeroOutputLimitCutsNothing(t *testing.T) {
	said := content.Words(strings.Repeat("line\n", 10000))
	got, err := executor.OutputLimit{KeepFull: true}.Hook().After(t.Context(), executor.Call{}, executor.Result{Content: said})
	require.NoError(t, err)
	require.Equal(t, said, got.Content)
	require.Zero(t, got.Full.Len(), "nothing was cut")
}
