package executor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
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

// What several cases have to say about where Plait differs.
const (
	oneMessage = "one message owns all results of an answer, in call order, where pi has a message for each"
	noAnswer   = "a failed model leaves no message behind, because half an answer can neither be sent nor trusted: the reason stands in " +
		"the StopReason node, and the error comes beside the End"
	values = "an Agent is a value, and what runs is a function call: there is no agent that could be busy, and no state to wait for"
)

// highest is the cases that say the most about a tool loop.
var highest = []conform{
	{id: "H1", says: "calls end as they are over, and results are told in call order",
		differs: oneMessage,
		shownBy: "P8 P9"},
	{id: "H2", says: "steering waits for the whole batch, or skips the rest of it where that is wanted",
		shownBy: "P10 P11"},
	{id: "H3", says: "a hook that stops after a turn ends the run at once, and no queue is asked",
		shownBy: "P16"},
	{id: "H4", says: "a run ends without another model call where all results ask for it, not where one does",
		shownBy: "P17 P18 P19", test: bothOfTwoTerminate},
	{id: "H5", says: "calls of an answer that was cut off are not carried out",
		shownBy: "P5"},
	{id: "H6", says: "arguments that a hook changed are not checked again",
		shownBy: "P6"},
	{id: "H7", says: "arguments are prepared before they are checked",
		shownBy: "P7"},
	{id: "H8", says: "an update of a call that is over is dropped, also while another call runs",
		shownBy: "P27 P28"},
	{id: "H9", says: "a conversation that ends with an answer goes on from steering, one message at a time",
		shownBy: "P31"},
	{id: "H10", says: "every start has its end when the provider fails, and the conversation stays good",
		differs: noAnswer,
		shownBy: "P23"},
	{id: "H11", says: "calls that run together all start before one ends, and take as long as the longest",
		shownBy: "T3 T5"},
	{id: "H12", says: "a tool's own cancel is its error; the caller's cancel ends the run with every call answered",
		shownBy: "T9 T11"},
	{id: "H13", says: "batches and sequences run one after another",
		test: func(t *testing.T) {
			call := call("step")
			for _, test := range []struct {
				strategy executor.Strategy
				calls    []content.ToolUse
				want     time.Duration
			}{
				{executor.Batched(2), []content.ToolUse{call, call, call, call}, 100 * time.Millisecond},
				{executor.Batched(3), []content.ToolUse{call, call, call, call}, 100 * time.Millisecond},
				{executor.Sequential(), []content.ToolUse{call, call}, 100 * time.Millisecond},
				{executor.Parallel(0), []content.ToolUse{call, call, call, call}, 50 * time.Millisecond},
			} {
				synctest.Test(t, func(t *testing.T) {
					start := time.Now()
					_, err := executor.Agent{Provider: once(test.calls...), Strategy: test.strategy}.Run(t.Context(), ask(taking("step", 50*time.Millisecond)))
					require.NoError(t, err)
					require.Equal(t, test.want, time.Since(start))
				})
			}
		}},
	{id: "H14", says: "a tool that takes too long is answered on time, and its own limit goes before the run's",
		test: func(t *testing.T) {
			for limit, agent := range map[time.Duration]executor.Agent{
				100 * time.Millisecond: {ToolTimeout: 100 * time.Millisecond, Tools: []dag.Tool{taking("long", 30*time.Second)}},
				50 * time.Millisecond:  {ToolTimeout: 5 * time.Second, Tools: []dag.Tool{executor.WithTimeout(taking("long", 30*time.Second), 50*time.Millisecond)}},
			} {
				synctest.Test(t, func(t *testing.T) {
					start := time.Now()
					agent.Provider = once(call("long"))
					d, err := agent.Run(t.Context(), ask())
					require.NoError(t, err)
					require.Equal(t, limit, time.Since(start))
					require.Equal(t, []string{"error: Tool exceeded timeout of " + limit.String() + "."}, outcomes(t, d))
					require.Equal(t, "Done.", d.Text())
				})
			}
		}},
	{id: "H15", says: "a hook sees the arguments that one before it changed, and what it denies is not run",
		differs: "ToolStart shows both: the call as the model made it, and as it would have been carried out",
		test: func(t *testing.T) {
			var seen []content.JSON
			var got []any
			hooks := []executor.Hook{
				{Before: func(_ context.Context, c executor.Call) (executor.Decision, error) {
					return executor.Modify(`{"value":"changed"}`), nil
				}},
				{Before: func(_ context.Context, c executor.Call) (executor.Decision, error) {
					seen = append(seen, c.Input)
					return executor.Deny("not this one"), nil
				}},
			}
			agent := executor.Agent{Provider: once(echoes("raw")), Hooks: hooks}
			events := collect(agent.Stream(t.Context(), ask(anyValue(&got))))
			require.Equal(t, []content.JSON{`{"value":"changed"}`}, seen)
			require.Empty(t, got)
			started, ended := only[executor.ToolStart](events), only[executor.ToolEnd](events)
			require.Len(t, started, 1)
			require.Len(t, ended, 1)
			require.Equal(t, content.JSON(`{"value":"raw"}`), started[0].Call.Input)
			require.Equal(t, content.JSON(`{"value":"changed"}`), started[0].Ran.Input)
			require.True(t, ended[0].Execution.IsError)
			require.Equal(t, "Tool call denied: not this one", ended[0].Execution.Result.Text())
		}},
	{id: "H16", says: "a model that repeats a call is told so, and then stopped, with every call answered first",
		test: func(t *testing.T) {
			same := func(t *testing.T, limit int, answers ...apitest.Turn) (d dag.DAG, asked int) {
				model := apitest.NewScript(answers...)
				d, err := executor.Agent{Provider: model, Limits: executor.Limits{Repeats: limit}}.Run(t.Context(), ask(fast))
				require.NoError(t, err)
				requireValid(t, d)
				return d, len(model.Requests())
			}
			twelve := append(slices.Repeat([]apitest.Turn{apitest.Call(call("fast"))}, 12), apitest.Say("Done."))

			d, asked := same(t, 3, twelve...)
			require.Equal(t, 6, asked)
			require.Equal(t, "uarararuararar", roles(d), "what the model is told stands behind the result of the third call")
			require.Equal(t, content.StopLoop, stopped(t, d).Reason)
			require.Equal(t, []string{"error: Not executed: the run was stopped for repeating this call with identical arguments."}, outcomes(t, d))

			d, asked = same(t, 3, apitest.Call(call("fast"), call("fast"), call("fast")), apitest.Say("Done."))
			require.Equal(t, 2, asked)
			require.Equal(t, "uarua", roles(d), "three in one answer count as well")
			require.Equal(t, []string{"fast", "fast", "fast"}, outcomes(t, d))

			for _, off := range []int{0, -1} {
				d, asked = same(t, off, twelve...)
				require.Equal(t, 13, asked)
				require.Equal(t, "Done.", d.Text())
			}
		}},
	{id: "H17", says: "who breaks off or cancels does not wait for a tool that ignores it",
		test: func(t *testing.T) {
			t.Run("break", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					start := time.Now()
					for event := range (executor.Agent{Provider: once(call("deaf")), Grace: -1}).Stream(t.Context(), ask(deaf)) {
						if _, ok := event.(executor.ToolStart); ok {
							break
						}
					}
					require.Zero(t, time.Since(start))
					time.Sleep(2 * time.Hour) // the tool returns at last
				})
			})
			t.Run("cancel", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					start := time.Now()
					ctx, cancel := context.WithCancel(t.Context())
					time.AfterFunc(time.Second, cancel)
					told, end, err := story(executor.Agent{Provider: once(call("deaf")), Grace: -1}.Stream(ctx, ask(deaf)))
					require.ErrorIs(t, err, context.Canceled)
					require.Equal(t, time.Second, time.Since(start))
					require.Equal(t, []string{"end 0", "(user", ")", "turn end 1", "end: cancelled"}, told[len(told)-5:])
					requireValid(t, end.DAG)
					time.Sleep(2 * time.Hour)
				})
			})
		}},
	{id: "H18", says: "a deferred call is not carried out, and the run goes on when its result is brought",
		test: func(t *testing.T) {
			agent, model := deferring(t)
			d, err := agent.Run(t.Context(), dag.New().User("Go."))
			c := paused(t, err)
			require.Len(t, model.Requests(), 1)
			require.Equal(t, content.StopResults, c.Reason)
			require.Equal(t, []string{"tc_1"}, waiting(d))
			require.Equal(t, executor.Call{Name: "echo", Input: `{"value":"a"}`, ID: "tc_1", Message: c.Calls[0].Message}, d.Pending()[0].Call)

			events := collect(agent.ResumeStream(t.Context(), d, replySet{"tc_1": returned(text("ok"))}.of(d)...))
			require.Equal(t, c.Run, only[executor.RunStart](events)[0].Run)
			d = only[executor.End](events)[0].DAG
			require.Equal(t, "Done.", d.Text())
			require.Equal(t, []string{"ok"}, outcomes(t, d))
			require.Len(t, model.Requests(), 2)
		}},
	{id: "H19", says: "results may be brought in parts: the run pauses again until it has all of them",
		test: func(t *testing.T) {
			for name, moved := range map[string]func(*testing.T, dag.DAG, executor.Continuation) (dag.DAG, executor.Continuation){
				"in memory": func(_ *testing.T, d dag.DAG, c executor.Continuation) (dag.DAG, executor.Continuation) { return d, c },
				"by JSON": func(t *testing.T, d dag.DAG, c executor.Continuation) (dag.DAG, executor.Continuation) {
					var codec executor.ContinuationCodec
					written, err := codec.Encode(c)
					require.NoError(t, err)
					read, err := codec.Decode(written)
					require.NoError(t, err)
					return reloaded(t, d), read
				},
			} {
				t.Run(name, func(t *testing.T) {
					agent, model := deferring(t, "b")
					d, err := agent.Run(t.Context(), dag.New().User("Go."))
					c1 := paused(t, err)
					require.Equal(t, []string{"tc_1", "tc_2"}, waiting(d))
					require.Empty(t, c1.Parent)

					d, c1 = moved(t, d, c1)
					d, err = agent.Resume(t.Context(), d, replySet{"tc_1": returned(text("r1"))}.of(d)...)
					c2 := paused(t, err)
					require.Equal(t, []string{"tc_2"}, waiting(d))
					require.Equal(t, c1.ID, c2.Parent)
					require.NotEqual(t, c1.ID, c2.ID)
					require.Equal(t, c1.Run, c2.Run)
					require.Equal(t, 2, messageNodes(d), "no message yet")
					require.Len(t, model.Requests(), 1)

					d, c2 = moved(t, d, c2)
					d, err = agent.Resume(t.Context(), d, replySet{"tc_2": returned(text("r2"))}.of(d)...)
					require.NoError(t, err)
					require.Equal(t, []string{"r1", "r2"}, outcomes(t, d))
					require.Equal(t, "Done.", d.Text())
				})
			}
		}},
	{id: "H20", says: "what is approved may wait for its result next, and what is declined is answered",
		test: func(t *testing.T) {
			agent, model := deferring(t, "b")
			agent.Hooks = []executor.Hook{executor.RequireApproval()}
			d, err := agent.Run(t.Context(), dag.New().User("Go."))
			c := paused(t, err)
			require.Equal(t, content.StopApproval, c.Reason)

			d, err = agent.Resume(t.Context(), d, replySet{"tc_1": declined(""), "tc_2": approved()}.of(d)...)
			c = paused(t, err)
			require.Equal(t, content.StopResults, c.Reason)
			require.Equal(t, []string{"tc_2"}, waiting(d))
			done := executed(d)[:1]
			require.Equal(t, "tc_1", done[0].CallID)
			require.Equal(t, "Tool call denied: denied by user", done[0].Result.Text())
			require.Len(t, model.Requests(), 1)
		}},
	{id: "H21", says: "a continuation of another version is refused, and only attributes that are allowed are written",
		test: func(t *testing.T) {
			agent, _ := deferring(t)
			ctx := executor.WithAttributes(t.Context(), map[string]any{"tenant_id": strings.Repeat("t", 300), "api_key": "SECRET"})
			_, err := agent.Run(ctx, dag.New().User("Go."))
			c := paused(t, err)
			written, err := executor.ContinuationCodec{Keys: []string{"tenant_id"}}.Encode(c)
			require.NoError(t, err)
			require.NotContains(t, string(written), "SECRET")

			var codec executor.ContinuationCodec
			read, err := codec.Decode(written)
			require.NoError(t, err)
			require.Equal(t, map[string]any{"tenant_id": strings.Repeat("t", 200)}, read.Attributes)
			read.Attributes, c.Attributes = nil, nil
			require.Equal(t, c, read)

			later := bytes.Replace(written, []byte(`"schema_version":2,`), []byte(`"schema_version":999,`), 1)
			_, err = codec.Decode(later)
			require.ErrorIs(t, err, dag.ErrVersion)
			require.ErrorContains(t, err, "version 999")
		}},
	{id: "H22", says: "an output beyond the limit is cut, and says so inside of the limit",
		test: func(t *testing.T) {
			long := tool("long", func(context.Context) (any, error) { return strings.Repeat("x", 1000), nil })
			d, err := executor.Agent{Provider: once(call("long")), Hooks: []executor.Hook{executor.OutputLimit{MaxBytes: 100, KeepFull: true}.Hook()}}.Run(t.Context(), ask(long))
			require.NoError(t, err)
			short := results(t, d)[0].Content.Text()
			require.Len(t, short, 100)
			require.Contains(t, short, "[truncated]")
			require.Len(t, executed(d)[0].Full.Text(), 1000)
		}},
	{id: "H23", says: "the text of an error stays from the model where it is to be hidden",
		test: func(t *testing.T) {
			fails := tool("fails", func(context.Context) (any, error) { return nil, errors.New("the key is SECRET") })
			d, err := executor.Agent{Provider: once(call("fails")), HideErrors: true}.Run(t.Context(), ask(fails))
			require.NoError(t, err)
			require.Equal(t, []string{`error: Tool "fails" failed.`}, outcomes(t, d))
			require.NotContains(t, saved(t, d), "SECRET")

			d, err = executor.Agent{Provider: once(call("fails"))}.Run(t.Context(), ask(fails))
			require.NoError(t, err)
			require.Equal(t, []string{"error: the key is SECRET"}, outcomes(t, d))
		}},
	{id: "H24", says: "a call of foo.bar runs foo_bar, and the record keeps both names",
		test: func(t *testing.T) {
			var asked []string
			agent := executor.Agent{Provider: once(call("foo.bar")), Hooks: []executor.Hook{
				executor.Underscores(),
				{Before: func(_ context.Context, c executor.Call) (executor.Decision, error) {
					asked = append(asked, c.Name)
					return executor.Allow(), nil
				}},
			}}
			d, err := agent.Run(t.Context(), ask(taking("foo_bar", 0)))
			require.NoError(t, err)
			require.Equal(t, []string{"foo_bar"}, outcomes(t, d))
			require.Equal(t, []string{"foo_bar"}, asked)
			require.Equal(t, "foo.bar", executed(d)[0].Tool)
			require.Equal(t, "foo_bar", executed(d)[0].Ran.Tool)
		}},
	{id: "H25", says: "calls beyond the cap are not carried out",
		differs: "calls are never taken out of what the model said; those beyond the cap are answered with an error",
		test: func(t *testing.T) {
			agent := executor.Agent{Provider: once(call("a"), call("b")), Limits: executor.Limits{CallsPerTurn: 1}}
			d, err := agent.Run(t.Context(), ask(taking("a", 0), taking("b", 0)))
			require.NoError(t, err)
			require.Equal(t, []string{"a", `error: Tool call "b" was not executed: the limit of calls in one response is 1. Call it again if it is still needed.`}, outcomes(t, d))
			require.Len(t, d.Messages()[1].Blocks.ToolUses(), 2)
			require.Equal(t, "Done.", d.Text())
		}},
	{id: "H26", says: "a call that waits has no start, and the stream ends once",
		test: func(t *testing.T) {
			for reason, agent := range map[content.Stop]executor.Agent{
				content.StopApproval: {Hooks: []executor.Hook{executor.RequireApproval()}},
				content.StopResults:  {Strategy: executor.DeferAll()},
			} {
				agent.Provider = once(call("fast"))
				told, _, err := lifecycle(agent.Stream(t.Context(), ask(fast)))
				require.ErrorIs(t, err, executor.ErrPaused)
				require.Equal(t, []string{"run", "turn 1", "(assistant", ")", "paused", "end: " + string(reason)}, told)
				require.True(t, strings.HasPrefix(string(reason), "awaiting_"))
			}
		}},
}

// pi is the cases of the pi agent.
var pi = []conform{
	{id: "P1", says: "a prompt is answered, and each message and turn has a start and an end",
		test: func(t *testing.T) {
			model := apitest.NewScript(apitest.Say("Hi."))
			told, end, err := lifecycle(executor.Agent{Provider: model, Steering: queued("Hello")}.Stream(t.Context(), dag.New()))
			require.NoError(t, err)
			require.Equal(t, []string{"run", "turn 1", "(user", ")", "(assistant", ")", "turn end 1", "end: end_turn"}, told)
			require.Equal(t, "ua", roles(end.DAG))
		}},
	{id: "P2", says: "records of the program are not shown to the model",
		test: func(t *testing.T) {
			model := apitest.NewScript(apitest.Say("Hi."))
			d, err := executor.Run(t.Context(), model, dag.New().Custom("app.notice", "not for the model").User("Hello"))
			require.NoError(t, err)
			require.Equal(t, []string{"Hello"}, asked(model.Requests()[0]))
			require.Equal(t, "custom", d.Nodes()[0].Kind())
		}},
	{id: "P3", says: "a hook may send less than the conversation holds",
		test: func(t *testing.T) {
			last := executor.Hook{Send: func(_ context.Context, req api.Request) (api.Request, error) {
				req.Messages = req.Messages[len(req.Messages)-2:]
				return req, nil
			}}
			model := apitest.NewScript(apitest.Say("5"))
			d := dag.New().User("1").Assistant("2").User("3").Assistant("4").User("?")
			d, err := executor.Agent{Provider: model, Hooks: []executor.Hook{last}}.Run(t.Context(), d)
			require.NoError(t, err)
			require.Len(t, model.Requests()[0].Messages, 2)
			require.Equal(t, "uauaua", roles(d))
		}},
	{id: "P4", says: "a tool's own usage is seen by the hook after it, which may replace it",
		test: func(t *testing.T) {
			var ran []string
			var saw content.Usage
			tool := executor.Func("echo", "", func(_ context.Context, in struct {
				Value string `json:"value"`
			}) (executor.Result, error) {
				ran = append(ran, in.Value)
				return executor.Result{Content: content.Words(in.Value), Usage: content.Usage{Input: 1, Output: 2}}, nil
			})
			after := executor.Hook{After: func(_ context.Context, _ executor.Call, r executor.Result) (executor.Result, error) {
				saw, r.Usage = r.Usage, content.Usage{Input: 30, Output: 40}
				return r, nil
			}}
			events := collect(executor.Agent{Provider: once(echoes("hello")), Hooks: []executor.Hook{after}}.Stream(t.Context(), ask(tool)))
			require.Equal(t, []string{"hello"}, ran)
			require.Len(t, only[executor.ToolStart](events), 1)
			require.Len(t, only[executor.ToolEnd](events), 1)
			require.False(t, only[executor.ToolEnd](events)[0].Execution.IsError)
			require.Equal(t, content.Usage{Input: 1, Output: 2}, saw)
			end := only[executor.End](events)[0]
			require.Equal(t, content.Usage{Input: 30, Output: 40}, executed(end.DAG)[0].Usage)
			require.Equal(t, content.Usage{Input: 30, Output: 40}, end.Stop.ToolUsage)
			require.Zero(t, end.Stop.Usage, "it is kept apart from the model's")
		}},
	{id: "P5", says: "calls of an answer that was cut off are not carried out, and the loop goes on",
		test: cutOffCallsAreNotCarriedOut},
	{id: "P6", says: "arguments that the hook before a call changed are not checked again",
		test: hookChangesArgumentsUnchecked},
	{id: "P7", says: "arguments of another shape are prepared before they are checked",
		test: argumentsArePreparedBeforeTheyAreChecked},
	{id: "P8", says: "calls that run together end as they are over, and their results stand in call order",
		differs: oneMessage,
		test:    endsComeAsCallsAreOver},
	{id: "P9", says: "of old, calls that run together ended in call order",
		differs: "they end as they are over, as in today's pi; executor.Ordered tells them in call order",
		test:    orderedEndsComeInCallOrder},
	{id: "P10", says: "steering does not skip calls: it comes after all results",
		test: steeringComesAfterTheBatch},
	{id: "P11", says: "of old, steering skipped the calls that had not begun",
		differs: "it is said after the batch, as in today's pi; Agent.SkipOnSteering skips the rest",
		test:    steeringSkipsTheRest},
	{id: "P12", says: "a tool that must run alone makes its batch run in sequence",
		test: inBubble(func(t *testing.T) {
			alone := executor.WithMode(taking("alone", time.Second), executor.ModeSequential)
			start := time.Now()
			told, end, err := lifecycle(executor.Stream(t.Context(), once(call("alone"), call("alone")), ask(alone)))
			require.NoError(t, err)
			require.Equal(t, []string{"start 0", "end 0", "start 1", "end 1"}, told[4:8])
			require.Equal(t, 2*time.Second, time.Since(start))
			require.Equal(t, []string{"alone", "alone"}, outcomes(t, end.DAG))
		})},
	{id: "P13", says: "beside a tool that must run alone, one that need not waits too",
		test: inBubble(func(t *testing.T) {
			alone := executor.WithMode(taking("slow_one", time.Second), executor.ModeSequential)
			d, err := executor.Run(t.Context(), once(call("slow_one"), call("fast")), ask(alone, fast))
			require.NoError(t, err)
			done := executed(d)
			require.Equal(t, time.Second, done[0].Ended.Sub(done[0].Started))
			require.Equal(t, done[0].Ended, done[1].Started)
		})},
	{id: "P14", says: "tools that may run together do",
		test: inBubble(func(t *testing.T) {
			both := executor.WithMode(taking("both", time.Second), executor.ModeParallel)
			start := time.Now()
			_, err := executor.Run(t.Context(), once(call("both"), call("both")), ask(both))
			require.NoError(t, err)
			require.Equal(t, time.Second, time.Since(start))
		})},
	{id: "P15", says: "the next turn may have another system prompt and another model",
		differs: "a conversation only grows, so that a prompt that a hook adds stands behind the first; what is sent can be replaced by Hook.Send",
		test: func(t *testing.T) {
			first, second := apitest.NewScript(apitest.Call(call("fast"))), apitest.NewScript(apitest.Say("Done."))
			next := executor.Hook{Next: func(_ context.Context, turn executor.Turn) (executor.Turn, error) {
				if turn.Stop == "" {
					turn.DAG, turn.Provider = turn.DAG.System("second prompt"), second
				}
				return turn, nil
			}}
			agent := executor.Agent{Provider: first, System: "first prompt", Hooks: []executor.Hook{next}}
			_, err := agent.Run(t.Context(), ask(fast))
			require.NoError(t, err)
			require.Len(t, first.Requests(), 1)
			require.Len(t, second.Requests(), 1)
			require.Equal(t, []string{"first prompt"}, first.Requests()[0].System)
			require.Equal(t, []string{"first prompt", "second prompt"}, second.Requests()[0].System)

			model := once(call("fast"))
			agent = executor.Agent{Provider: model, System: "first prompt", Hooks: []executor.Hook{{
				Send: func(_ context.Context, req api.Request) (api.Request, error) {
					if len(req.Messages) > 1 {
						req.System = []string{"second prompt"}
					}
					return req, nil
				},
			}}}
			_, err = agent.Run(t.Context(), ask(fast))
			require.NoError(t, err)
			require.Len(t, model.Requests(), 2)
			require.Equal(t, []string{"first prompt"}, model.Requests()[0].System)
			require.Equal(t, []string{"second prompt"}, model.Requests()[1].System)
		}},
	{id: "P16", says: "a run that is stopped after its turn asks no queue, and tells the turn to whoever stops it",
		test: stopAfterTurn},
	{id: "P17", says: "a single result that asks for it ends the run",
		test: oneResultTerminates},
	{id: "P18", says: "one of two results that asks for it does not end the run",
		differs: oneMessage,
		test:    oneOfTwoTerminates},
	{id: "P19", says: "a hook after the call may ask to end the run",
		test: afterHookTerminates},
	{id: "P20", says: "there must be something to go on from",
		differs: "a conversation that ends with a model's answer is refused before anything is done, but one whose last words a program put in " +
			"the model's mouth goes on from them; an empty one is refused by the provider, because a hook may still put a message in",
		test: func(t *testing.T) {
			model := apitest.NewScript(apitest.Say("Hi."))
			told, _, err := story(executor.Stream(t.Context(), model, answered(t)))
			require.ErrorIs(t, err, executor.ErrAnswered)
			require.Equal(t, []string{"end: "}, told)
			require.Empty(t, model.Requests())
			begun, err := executor.Run(t.Context(), model, dag.New().User("Hello").Assistant("I say:"))
			require.NoError(t, err)
			require.Equal(t, "Hi.", begun.Text())

			strict := apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
				if len(req.Messages) == 0 {
					return apitest.Fail(&api.Error{Kind: api.ErrNothing}) // every provider does
				}
				return apitest.Say("Hi.")
			}).Always())
			d, err := executor.Run(t.Context(), strict, dag.New())
			require.ErrorIs(t, err, api.ErrNothing)
			require.Empty(t, d.Messages())
			putting := executor.Hook{Send: func(_ context.Context, req api.Request) (api.Request, error) {
				req.Messages = append(req.Messages, content.Message{Role: content.User, Blocks: content.Words("Hello")})
				return req, nil
			}}
			d, err = executor.Agent{Provider: strict, Hooks: []executor.Hook{putting}}.Run(t.Context(), dag.New())
			require.NoError(t, err)
			require.Equal(t, "Hi.", d.Text())
		}},
	{id: "P21", says: "going on from a user's message tells only what is new",
		test: func(t *testing.T) {
			before := dag.New().User("Hello")
			events := collect(executor.Stream(t.Context(), apitest.NewScript(apitest.Say("Hi.")), before))
			told := only[executor.MessageEnd](events)
			require.Len(t, told, 1)
			said, _ := told[0].Node.Message()
			require.Equal(t, content.Assistant, said.Role)
			require.Len(t, only[executor.End](events)[0].DAG.Messages(), len(before.Messages())+1)
		}},
	{id: "P22", says: "a conversation may end in a record of the program",
		differs: "such a record is never sent by itself: a hook makes a message of it where the model is to see it",
		test: func(t *testing.T) {
			model := apitest.NewScript(apitest.Say("Hi.").Always())
			_, err := executor.Run(t.Context(), model, dag.New().User("Hello").Custom("app.notice", "Look!"))
			require.NoError(t, err)
			require.Equal(t, []string{"Hello"}, asked(model.Requests()[0]))

			var d dag.DAG
			shown := executor.Hook{Send: func(_ context.Context, req api.Request) (api.Request, error) {
				record := d.Head().Payload().(node.Custom)
				req.Messages = append(req.Messages, content.Message{Role: content.User, Blocks: content.Words(string(record.JSON))})
				return req, nil
			}}
			d = dag.New().Custom("app.notice", "Look!")
			_, err = executor.Agent{Provider: model, Hooks: []executor.Hook{shown}}.Run(t.Context(), d)
			require.NoError(t, err)
			require.Equal(t, []string{`"Look!"`}, asked(model.Requests()[1]))
		}},
	{id: "P23", says: "a provider that fails closes the message, the turn and the run",
		differs: noAnswer,
		test:    providerFails},
	{id: "P24", says: "a run is over when those who listen to its end are",
		test: inBubble(func(t *testing.T) {
			start, released := time.Now(), false
			listens := func(event executor.Event, _ error) {
				if _, ok := event.(executor.End); ok {
					time.Sleep(time.Hour)
					released = true
				}
			}
			_, end, err := story(executor.Tee(executor.Stream(t.Context(), apitest.NewScript(apitest.Say("Hi.")), ask()), nil, listens))
			require.NoError(t, err)
			require.True(t, released)
			require.Equal(t, time.Hour, time.Since(start))
			require.Equal(t, "Hi.", end.DAG.Text())
		})},
	{id: "P25", says: "a run waits for those who listen to a message's end",
		test: inBubble(func(t *testing.T) {
			model, ran, start := once(call("touch")), false, time.Now()
			var early bool
			touch := tool("touch", func(context.Context) (any, error) { ran = true; return "", nil })
			listens := func(event executor.Event, _ error) {
				if _, ok := event.(executor.MessageEnd); ok && !ran {
					time.Sleep(time.Hour)
					early = ran || len(model.Requests()) > 1
				}
			}
			_, _, err := story(executor.Tee(executor.Stream(t.Context(), model, ask(touch)), nil, listens))
			require.NoError(t, err)
			require.Equal(t, time.Hour, time.Since(start))
			require.False(t, early)
			require.True(t, ran)
		})},
	{id: "P26", says: "who listens can see, and bring about, that the run is cancelled",
		differs: "no signal is handed out: the context is that of whoever runs the agent, and tools have one made of it",
		test: inBubble(func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			tools := make(chan context.Context, 1)
			waits := tool("waits", func(ctx context.Context) (any, error) { tools <- ctx; return nil, wait(ctx, time.Hour) })
			start := time.Now()
			for event, err := range executor.Stream(ctx, once(call("waits")), ask(waits)) {
				switch e := event.(type) {
				case executor.ToolStart:
					require.NoError(t, ctx.Err())
					time.AfterFunc(time.Second, cancel)
				case executor.ToolEnd:
					require.Error(t, ctx.Err())
					<-(<-tools).Done()
				case executor.End:
					require.ErrorIs(t, err, context.Canceled)
					require.Equal(t, content.StopCancelled, e.Stop.Reason)
				}
			}
			require.Equal(t, time.Second, time.Since(start))
		})},
	{id: "P27", says: "an update that comes when the run is over is dropped",
		test: lateUpdateIsDropped},
	{id: "P28", says: "an update of a call that is over is dropped while another call runs",
		test: lateUpdateBesideASiblingIsDropped},
	{id: "P29", says: "an agent that runs takes no other prompt",
		differs: values + ". Another run of the same conversation is a branch of it",
		test: func(t *testing.T) {
			agent := executor.Agent{Provider: apitest.NewScript(apitest.Say("Hi.").Always())}
			shared := dag.New().User("Hello")
			var other dag.DAG
			for event, err := range agent.Stream(t.Context(), shared) {
				require.NoError(t, err)
				switch e := event.(type) {
				case executor.MessageStart:
					var err error
					other, err = agent.Run(t.Context(), shared.User("And you?"))
					require.NoError(t, err)
				case executor.End:
					require.Equal(t, "ua", roles(e.DAG))
					require.Equal(t, "uua", roles(other))
					require.True(t, other.Contains(shared.Head()) && e.DAG.Contains(shared.Head()))
				}
			}
		}},
	{id: "P30", says: "a conversation that ends with an answer goes on from a follow-up",
		test: func(t *testing.T) {
			model := apitest.NewScript(apitest.Say("Fine."))
			d, err := executor.Agent{Provider: model, FollowUps: queued("How are you?")}.Run(t.Context(), answered(t))
			require.NoError(t, err)
			require.Equal(t, "uaua", roles(d))
			require.Equal(t, "Fine.", d.Text())

			model = apitest.NewScript(apitest.Call(call("fast")), apitest.Say("One."), apitest.Say("Two."))
			d, err = executor.Agent{Provider: model, FollowUps: queued("1", "2")}.Run(t.Context(), answered(t).Tools(fast))
			require.NoError(t, err)
			require.Equal(t, "uauaraua", roles(d), "a turn with calls is no end to follow up")
		}},
	{id: "P31", says: "a conversation that ends with an answer goes on from steering, one message at a time",
		test: steeringGoesOnFromAnAnswer},
	{id: "P32", says: "steering that comes while the model answers is said one message a turn",
		differs: "what waits is asked of the queue, by whoever wants to know, and no event",
		test: func(t *testing.T) {
			oneMessageATurn(t, func(a *executor.Agent) **executor.Queue { return &a.Steering })
		}},
	{id: "P33", says: "follow-ups that come while the model answers are said one message a turn",
		differs: "what waits is asked of the queue, by whoever wants to know, and no event",
		test: func(t *testing.T) {
			oneMessageATurn(t, func(a *executor.Agent) **executor.Queue { return &a.FollowUps })
		}},
	{id: "P34", says: "who aborts gets back what waited, and what was meant for the next turn is said there",
		differs: "a cancel leaves the queues as they are, and Clear returns what waited; what is meant for later stands in a queue of its own, " +
			"which the next run is given",
		test: func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			steering, followUps, next := queued(), queued(), executor.NewQueue()
			model := apitest.NewScript(apitest.Hang(), apitest.Say("Well."))
			agent := executor.Agent{Provider: model, Steering: steering, FollowUps: followUps}
			var d dag.DAG
			for event, err := range agent.Stream(ctx, dag.New().User("first")) {
				switch e := event.(type) {
				case executor.MessageStart:
					require.NoError(t, steering.Add("steer"))
					require.NoError(t, followUps.Add("later"))
					require.NoError(t, next.Add("next"))
					cancel()
				case executor.End:
					require.ErrorIs(t, err, context.Canceled)
					d = e.DAG
				}
			}
			require.Len(t, steering.Clear(), 1)
			require.Len(t, followUps.Clear(), 1)
			require.Zero(t, steering.Len()+followUps.Len())

			require.NoError(t, next.Add("second"))
			agent.Provider, agent.Steering = apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
				require.Equal(t, []string{"first", "next", "second"}, asked(req))
				return apitest.Say("Well.")
			})), next
			d, err := agent.Run(t.Context(), d)
			require.NoError(t, err)
			require.Equal(t, "Well.", d.Text())
		}},
	{id: "P35", says: "a hook that fails ends the run, and a later one works",
		differs: noAnswer,
		test: func(t *testing.T) {
			broken := true
			send := executor.Hook{Send: func(_ context.Context, req api.Request) (api.Request, error) {
				if broken {
					return req, errors.New("the hook is broken")
				}
				return req, nil
			}}
			model := apitest.NewScript(apitest.Say("Hi."))
			agent := executor.Agent{Provider: model, Hooks: []executor.Hook{send}}
			told, end, err := lifecycle(agent.Stream(t.Context(), dag.New().User("Hello")))
			require.EqualError(t, err, "the hook is broken")
			require.Equal(t, []string{"run", "turn 1", "turn end 1", "end: error"}, told)
			require.Equal(t, "the hook is broken", stopped(t, reloaded(t, end.DAG)).Detail)
			require.Empty(t, model.Requests())

			broken = false
			d, err := agent.Run(t.Context(), end.DAG.User("Again."))
			require.NoError(t, err)
			require.Equal(t, "Hi.", d.Text())
		}},
	{id: "P36", says: "what a hook makes of a result is what is kept",
		test: func(t *testing.T) {
			after := executor.Hook{After: func(_ context.Context, _ executor.Call, r executor.Result) (executor.Result, error) {
				r.Content, r.Details, r.Usage, r.Terminate = content.Words("patched"), `{"by":"hook"}`, content.Usage{Output: 9}, true
				return r, nil
			}}
			model := once(call("fast"))
			d, err := executor.Agent{Provider: model, Hooks: []executor.Hook{after}}.Run(t.Context(), ask(fast))
			require.NoError(t, err)
			require.Len(t, model.Requests(), 1)
			kept := executed(reloaded(t, d))[0]
			require.Equal(t, "patched", kept.Result.Text())
			require.Equal(t, content.JSON(`{"by":"hook"}`), kept.Details)
			require.Equal(t, content.Usage{Output: 9}, kept.Usage)
		}},
}

// tinyAgent is the cases of tinyAgent.
var tinyAgent = []conform{
	{id: "T1", says: "one call has one result, with the tool's name",
		test: func(t *testing.T) {
			d, err := executor.Run(t.Context(), once(call("fast")), ask(fast))
			require.NoError(t, err)
			require.Len(t, executed(d), 1)
			require.Equal(t, "fast", executed(d)[0].Tool)
			require.Len(t, results(t, d), 1)
		}},
	{id: "T2", says: "results stand in the order of the calls",
		test: func(t *testing.T) {
			model := abc()
			d, err := executor.Run(t.Context(), model, ask(taking("a", 0), taking("b", 0), taking("c", 0)))
			require.NoError(t, err)
			require.Equal(t, []string{"a", "b", "c"}, outcomes(t, d))
			require.Equal(t, d.Messages()[:3], model.Requests()[1].Messages)
		}},
	{id: "T3", says: "calls run together",
		test: callsRunTogether},
	{id: "T4", says: "an answer without a call has no result",
		test: func(t *testing.T) {
			steering := queued()
			told, end, err := lifecycle(executor.Agent{Provider: apitest.NewScript(apitest.Say("Hi.")), Steering: steering}.Stream(t.Context(), ask(fast)))
			require.NoError(t, err)
			require.Equal(t, []string{"run", "turn 1", "(assistant", ")", "turn end 1", "end: end_turn"}, told)
			require.Empty(t, executed(end.DAG))

			before := answered(t)
			same, err := executor.ExecuteTools(t.Context(), before)
			require.NoError(t, err)
			require.Equal(t, before.Heads(), same.Heads())
		}},
	{id: "T5", says: "every call has started before one ends",
		test: allStartBeforeOneEnds},
	{id: "T6", says: "calls end in the order of the calls",
		differs: "they end as they are over, so that whoever watches sees it; executor.Ordered tells them in call order",
		test: inBubble(func(t *testing.T) {
			d := ask(taking("a", 3*time.Second), taking("b", 2*time.Second), taking("c", time.Second))
			told, _, err := lifecycle(executor.Stream(t.Context(), abc(), d))
			require.NoError(t, err)
			require.Equal(t, []string{"end 2", "end 1", "end 0"}, told[7:10])
			told, _, err = lifecycle(executor.Ordered(executor.Stream(t.Context(), abc(), d)))
			require.NoError(t, err)
			require.Equal(t, []string{"end 0", "end 1", "end 2"}, told[7:10])
		})},
	{id: "T7", says: "one call is exactly a start, an end, and a message",
		test: func(t *testing.T) {
			told, _, err := lifecycle(executor.Stream(t.Context(), once(call("fast")), ask(fast)))
			require.NoError(t, err)
			require.Equal(t, []string{
				"run", "turn 1", "(assistant", ")", "start 0", "end 0", "(user", ")", "turn end 1",
				"turn 2", "(assistant", ")", "turn end 2", "end: end_turn",
			}, told)
		}},
	{id: "T8", says: "a tool that fails leaves the other's result alone",
		test: func(t *testing.T) {
			d, err := executor.Run(t.Context(), once(call("fast"), call("broken")), ask(fast, broken))
			require.NoError(t, err)
			require.Equal(t, []string{"fast", "error: it is broken"}, outcomes(t, d))
		}},
	{id: "T9", says: "a tool that cancels fails alone",
		test: toolThatCancelsFailsAlone},
	{id: "T10", says: "a tool that ends its own goroutine fails alone",
		test: inBubble(func(t *testing.T) {
			quits := tool("quits", func(context.Context) (any, error) { runtime.Goexit(); return nil, nil })
			d, err := executor.Run(t.Context(), once(call("quits"), call("good")), ask(quits, taking("good", 10*time.Millisecond)))
			require.NoError(t, err)
			require.Equal(t, []string{`error: Tool "quits" ended without a result.`, "good"}, outcomes(t, d))
			require.Equal(t, "Done.", d.Text())
		})},
	{id: "T11", says: "the caller's cancel ends the run, with every call answered",
		test: callersCancelPropagates},
	{id: "T12", says: "a call of a tool that is not there is answered with an error",
		test: func(t *testing.T) {
			told, end, err := lifecycle(executor.Stream(t.Context(), once(call("nonexistent")), ask()))
			require.NoError(t, err)
			require.Equal(t, []string{`error: Tool "nonexistent" not found. There are no tools.`}, outcomes(t, end.DAG))
			require.Equal(t, []string{"start 0", "end 0"}, told[4:6])
		}},
	{id: "T13", says: "a tool without a function cannot be called",
		differs: "it is found before the model is asked: where it is declared, or where the run begins",
		test: func(t *testing.T) {
			model := once(call("hollow"))
			_, err := executor.Run(t.Context(), model, ask(content.Tool{Name: "hollow", Schema: `{"type":"object"}`}))
			require.ErrorAs(t, err, new(*executor.UnboundError))
			require.Empty(t, model.Requests())
			require.ErrorIs(t, ask(executor.Func[none, string]("hollow", "", nil)).Err(), content.ErrTool)
		}},
	{id: "T14", says: "a hook before a call may answer in its place, and end the run",
		test: func(t *testing.T) {
			ran := false
			edit := executor.Func("edit", "", func(context.Context, struct {
				Path string `json:"path"`
			}) (string, error) {
				ran = true
				return "", nil
			})
			before := executor.Hook{Before: func(_ context.Context, c executor.Call) (executor.Decision, error) {
				return executor.UseResult(executor.Result{
					Content: content.Words("not in this directory"), IsError: true, Terminate: true, Details: `{"blocked":"a.py"}`,
				}), nil
			}}
			model := once(apitest.Use("edit", map[string]string{"path": "a.py"}))
			d, err := executor.Agent{Provider: model, Hooks: []executor.Hook{before}}.Run(t.Context(), ask(edit))
			require.NoError(t, err)
			require.False(t, ran)
			require.Len(t, model.Requests(), 1)
			require.Equal(t, content.StopTerminated, stopped(t, d).Reason)
			require.Equal(t, []string{"error: not in this directory"}, outcomes(t, d))
			require.Equal(t, content.JSON(`{"blocked":"a.py"}`), executed(d)[0].Details)
		}},
	{id: "T15", says: "where a batch ends the run, no steering is asked for",
		differs: "the queues are asked, as in pi, because a message of the user would be lost otherwise; a hook ends the run without",
		test: func(t *testing.T) {
			run := func(hooks ...executor.Hook) (d dag.DAG, asked, waiting int) {
				steering := queued()
				steers := tool("steers", func(context.Context) (any, error) { return "real", steering.Add("And this.") })
				hooks = append(hooks, executor.Hook{After: func(_ context.Context, _ executor.Call, r executor.Result) (executor.Result, error) {
					return executor.Result{Content: content.Words("replaced"), IsError: true, Terminate: true}, nil
				}})
				model := once(call("steers"))
				d, err := executor.Agent{Provider: model, Steering: steering, Hooks: hooks}.Run(t.Context(), ask(steers))
				require.NoError(t, err)
				return d, len(model.Requests()), steering.Len()
			}
			d, asked, waiting := run()
			require.Equal(t, []string{"error: replaced"}, outcomes(t, d))
			require.Equal(t, "uarua", roles(d))
			require.Equal(t, 2, asked)
			require.Zero(t, waiting)

			d, asked, waiting = run(executor.Hook{Next: func(_ context.Context, turn executor.Turn) (executor.Turn, error) {
				if turn.Stop == content.StopTerminated {
					turn.Stop = content.StopHook
				}
				return turn, nil
			}})
			require.Equal(t, []string{"error: replaced"}, outcomes(t, d))
			require.Equal(t, 1, asked)
			require.Equal(t, 1, waiting)
		}},
	{id: "T16", says: "steering is asked for once, after all calls, and every result is real",
		test: func(t *testing.T) {
			steering := queued()
			steers := tool("steers", func(context.Context) (any, error) {
				return "real", errors.Join(steering.Add("stop"), steering.Add("stop"))
			})
			var waits []int
			for event, err := range (executor.Agent{Provider: once(call("steers"), call("fast")), Steering: steering}).Stream(t.Context(), ask(steers, fast)) {
				switch e := event.(type) {
				case executor.TurnStart:
					if waits = append(waits, steering.Len()); e.Turn == 2 {
						steering.Clear()
					}
				case executor.End:
					require.NoError(t, err)
					require.Equal(t, []string{"real", "fast"}, outcomes(t, e.DAG))
					require.Equal(t, "uarua", roles(e.DAG))
				}
			}
			require.Equal(t, []int{0, 1}, waits)
		}},
	{id: "T17", says: "where nothing steers, the loop goes on without",
		test: func(t *testing.T) {
			d, err := executor.Agent{Provider: once(call("fast")), Steering: queued()}.Run(t.Context(), ask(fast))
			require.NoError(t, err)
			require.Equal(t, "uara", roles(d))
		}},
	{id: "T18", says: "where there is no steering, the loop goes on without",
		test: func(t *testing.T) {
			d, err := executor.Agent{Provider: once(call("fast"))}.Run(t.Context(), ask(fast))
			require.NoError(t, err)
			require.Equal(t, "uara", roles(d))
		}},
	{id: "T19", says: "where there are no results, the model is not asked again",
		test: func(t *testing.T) {
			model := apitest.NewScript(apitest.Say("I would call a tool.").Stop(content.StopToolUse), apitest.Say("never"))
			d, err := executor.Run(t.Context(), model, ask(fast))
			require.NoError(t, err)
			require.Len(t, model.Requests(), 1)
			require.Equal(t, "ua", roles(d))
		}},
	{id: "T20", says: "a batch that ends the run is the last one",
		differs: "all results have to ask for it, as in pi; a hook ends the run where any of them does",
		shownBy: "P17 P18",
		test: func(t *testing.T) {
			anyOf := executor.Hook{Next: func(_ context.Context, turn executor.Turn) (executor.Turn, error) {
				if slices.ContainsFunc(turn.Results, func(r executor.Result) bool { return r.Terminate }) {
					turn.Stop = content.StopTerminated
				}
				return turn, nil
			}}
			model := once(call("last"), call("fast"))
			d, err := executor.Agent{Provider: model, Hooks: []executor.Hook{anyOf}}.Run(t.Context(), ask(last, fast))
			require.NoError(t, err)
			require.Len(t, model.Requests(), 1)
			require.Equal(t, []string{"last", "fast"}, outcomes(t, d))
			require.Equal(t, content.StopTerminated, stopped(t, d).Reason)
		}},
	{id: "T21", says: "a hook that stops after a turn makes it the last one",
		shownBy: "P16"},
	{id: "T22", says: "steering is asked for once a turn",
		test: func(t *testing.T) {
			var waits []int
			steering := queued("1", "2", "3", "4")
			model := apitest.NewScript(apitest.Call(call("fast")), apitest.Call(call("fast")), apitest.Say("Done."), apitest.Say("Done."))
			for event, err := range (executor.Agent{Provider: model, Steering: steering}).Stream(t.Context(), ask(fast)) {
				require.NoError(t, err)
				if _, ok := event.(executor.TurnStart); ok {
					waits = append(waits, steering.Len())
				}
			}
			require.Equal(t, []int{3, 2, 1, 0}, waits)
		}},
	{id: "T23", says: "that a result asked to end the run is not told to the model",
		test: func(t *testing.T) {
			model := once(call("last"), call("fast"))
			d, err := executor.Run(t.Context(), model, ask(last, fast))
			require.NoError(t, err)
			require.NotContains(t, strings.ToLower(saved(t, d)), "terminate")
			require.NotContains(t, strings.ToLower(fmt.Sprintf("%+v", model.Requests()[1].Messages)), "terminate")
		}},
	{id: "T24", says: "a stream tells what happened before its error, and the result has the error too",
		test: func(t *testing.T) {
			half := func() *apitest.Script {
				return apitest.NewScript(apitest.Say("Half").Fail(&api.Error{Kind: api.ErrAuth}))
			}
			told, end, err := story(executor.Stream(t.Context(), half(), ask()))
			require.ErrorIs(t, err, api.ErrAuth)
			require.Equal(t, []string{"run", "turn 1", "(assistant", "block", ")", "turn end 1", "end: error"}, told)
			d, err := executor.Run(t.Context(), half(), ask())
			require.ErrorIs(t, err, api.ErrAuth)
			require.Equal(t, end.DAG.Head().Payload().(node.StopReason).Detail, stopped(t, d).Detail)

			events := collect(executor.Stream(t.Context(), apitest.NewScript(apitest.Say("Whole.")), ask()))
			require.IsType(t, executor.End{}, events[len(events)-1])
			require.Equal(t, "Whole.", events[len(events)-1].(executor.End).DAG.Text())
		}},
}

// What several cases show.

func endsComeAsCallsAreOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := collect(executor.Stream(t.Context(), once(call("tool-1"), call("tool-2")), ask(taking("tool-1", 20*time.Millisecond), taking("tool-2", 0))))
		var ended []string
		for _, e := range only[executor.ToolEnd](events) {
			ended = append(ended, e.Execution.Tool)
		}
		require.Equal(t, []string{"tool-2", "tool-1"}, ended)
		turn := only[executor.TurnEnd](events)[0]
		require.Equal(t, "tool-1", turn.Executions[0].Tool)
		require.Equal(t, "tool-2", turn.Executions[1].Tool)
		require.True(t, turn.Executions[1].Ended.Before(turn.Executions[0].Ended), "the second ran while the first was blocked")
		require.Equal(t, []string{"tool-1", "tool-2"}, outcomes(t, turn.DAG))
		require.Equal(t, "uar", roles(turn.DAG))
		told, _, _ := lifecycle(yielding(events))
		require.Equal(t, []string{"start 0", "start 1", "end 1", "end 0", "(user", ")", "turn end 1"}, told[4:11])
	})
}

func orderedEndsComeInCallOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := ask(taking("tool-1", 20*time.Millisecond), taking("tool-2", 0))
		told, end, err := lifecycle(executor.Ordered(executor.Stream(t.Context(), once(call("tool-1"), call("tool-2")), d)))
		require.NoError(t, err)
		require.Equal(t, []string{"start 0", "start 1", "end 0", "end 1", "(user", ")", "turn end 1"}, told[4:11])
		require.Equal(t, []string{"tool-1", "tool-2"}, outcomes(t, end.DAG))
	})
}

// interrupted runs two calls one after the other, of which the first brings steering.
func interrupted(t *testing.T, skip bool) (told []string, d dag.DAG, ran []string) {
	steering := queued()
	work := executor.Func("work", "", func(_ context.Context, in struct {
		Value string `json:"value"`
	}) (string, error) {
		if ran = append(ran, in.Value); in.Value == "first" {
			return in.Value, steering.Add("interrupt")
		}
		return in.Value, nil
	})
	model := once(apitest.Use("work", map[string]string{"value": "first"}), apitest.Use("work", map[string]string{"value": "second"}))
	agent := executor.Agent{Provider: model, Strategy: executor.Sequential(), Steering: steering, SkipOnSteering: skip}
	told, end, err := lifecycle(agent.Stream(t.Context(), ask(work)))
	require.NoError(t, err)
	require.Len(t, model.Requests(), 2)
	require.Equal(t, []string{"Go.", "interrupt"}, asked(model.Requests()[1]))
	require.Equal(t, "uarua", roles(end.DAG), "it stands behind the results")
	require.Equal(t, []string{
		"run", "turn 1", "(assistant", ")", "start 0", "end 0", "start 1", "end 1", "(user", ")", "turn end 1",
		"turn 2", "(user", ")", "(assistant", ")", "turn end 2", "end: end_turn",
	}, told)
	return told, end.DAG, ran
}

func steeringComesAfterTheBatch(t *testing.T) {
	_, d, ran := interrupted(t, false)
	require.Equal(t, []string{"first", "second"}, ran)
	require.Equal(t, []string{"first", "second"}, outcomes(t, d))
}

func steeringSkipsTheRest(t *testing.T) {
	_, d, ran := interrupted(t, true)
	require.Equal(t, []string{"first"}, ran)
	require.Equal(t, []string{"first", "error: Skipped due to queued user message."}, outcomes(t, d))
	require.Equal(t, content.JSON(`{"value":"second"}`), executed(d)[1].Input)
}

func stopAfterTurn(t *testing.T) {
	var turns []executor.Turn
	stops := executor.Hook{Next: func(_ context.Context, turn executor.Turn) (executor.Turn, error) {
		turns = append(turns, turn)
		turn.Stop = content.StopHook
		return turn, nil
	}}
	model, steering, followUps := once(echoes("hello")), queued("Go.", "not asked for"), queued("nor this")
	var got []any
	agent := executor.Agent{Provider: model, Hooks: []executor.Hook{stops}, Steering: steering, FollowUps: followUps}
	told, end, err := lifecycle(agent.Stream(t.Context(), dag.New().Tools(anyValue(&got))))
	require.NoError(t, err)
	require.Equal(t, []string{
		"run", "turn 1", "(user", ")", "(assistant", ")", "start 0", "end 0", "(user", ")", "turn end 1", "end: stopped",
	}, told)
	require.Len(t, model.Requests(), 1)
	require.Equal(t, []any{"hello"}, got)
	require.Equal(t, 1, steering.Len(), "it was asked once, when the run began")
	require.Equal(t, 1, followUps.Len())
	require.Len(t, turns, 1)
	require.Equal(t, "uar", roles(turns[0].DAG))
	require.Len(t, turns[0].Results, 1)
	require.Equal(t, "got hello", turns[0].Results[0].Content.Text())
	require.Equal(t, content.StopHook, stopped(t, end.DAG).Reason)
}

// last is a tool whose result asks to end the run.
var last = tool("last", func(context.Context) (any, error) {
	return executor.Result{Content: content.Words("last"), Terminate: true}, nil
})

// terminates runs calls of an answer, and expects that the model is asked so often, and who spoke.
func terminates(t *testing.T, asked int, spoken string, agent executor.Agent, calls ...content.ToolUse) {
	t.Helper()
	model := once(calls...)
	agent.Provider = model
	events := collect(agent.Stream(t.Context(), ask(last, fast)))
	end := only[executor.End](events)[0]
	require.Len(t, model.Requests(), asked)
	require.Len(t, only[executor.TurnEnd](events), asked)
	require.Equal(t, spoken, roles(end.DAG))
	want := content.StopEndTurn
	if asked == 1 {
		want = content.StopTerminated
	}
	require.Equal(t, want, end.Stop.Reason)
}

func oneResultTerminates(t *testing.T) { terminates(t, 1, "uar", executor.Agent{}, call("last")) }

func oneOfTwoTerminates(t *testing.T) {
	terminates(t, 2, "uara", executor.Agent{}, call("last"), call("fast"))
}

func bothOfTwoTerminate(t *testing.T) {
	terminates(t, 1, "uar", executor.Agent{}, call("last"), call("last"))
}

func afterHookTerminates(t *testing.T) {
	after := executor.Hook{After: func(_ context.Context, _ executor.Call, r executor.Result) (executor.Result, error) {
		r.Terminate = true
		return r, nil
	}}
	terminates(t, 1, "uar", executor.Agent{Hooks: []executor.Hook{after}}, call("fast"))
}

func cutOffCallsAreNotCarriedOut(t *testing.T) {
	var got []any
	model := apitest.NewScript(apitest.Call(echoes("hel")).Stop(content.StopMaxTokens), apitest.Say("Done."))
	told, end, err := lifecycle(executor.Stream(t.Context(), model, ask(anyValue(&got))))
	require.NoError(t, err)
	require.Empty(t, got)
	require.Equal(t, []string{"start 0", "end 0", "(user", ")"}, told[4:8])
	require.Equal(t, []string{`error: Tool call "echo" was not executed: the response hit the output token limit, so its arguments may be ` +
		`truncated. Re-issue the tool call with complete arguments.`}, outcomes(t, end.DAG))
	require.Len(t, model.Requests(), 2)
	require.Equal(t, "uara", roles(end.DAG))
}

func hookChangesArgumentsUnchecked(t *testing.T) {
	var got []any
	before := executor.Hook{Before: func(_ context.Context, c executor.Call) (executor.Decision, error) {
		return executor.Modify(`{"value":123}`), nil
	}}
	d, err := executor.Agent{Provider: once(echoes("hello")), Hooks: []executor.Hook{before}}.Run(t.Context(), ask(anyValue(&got)))
	require.NoError(t, err)
	require.Equal(t, []any{123.0}, got)
	require.Equal(t, content.JSON(`{"value":"hello"}`), executed(d)[0].Input)
	require.Equal(t, content.JSON(`{"value":123}`), executed(d)[0].Ran.Input)

	d, err = executor.Run(t.Context(), once(apitest.Use("echo", map[string]int{"value": 123})), ask(anyValue(&got)))
	require.NoError(t, err)
	require.True(t, results(t, d)[0].IsError, "what the model itself writes is checked")
	require.Len(t, got, 1)
}

func argumentsArePreparedBeforeTheyAreChecked(t *testing.T) {
	type Edit struct {
		Old string `json:"oldText"`
		New string `json:"newText"`
	}
	var edits []Edit
	edit := executor.Func("edit", "", func(_ context.Context, in struct {
		Edits []Edit `json:"edits"`
	}) (string, error) {
		edits = append(edits, in.Edits...)
		return "edited", nil
	})
	prepare := executor.Hook{Prepare: func(_ context.Context, c executor.Call) (executor.Call, error) {
		var flat Edit
		if err := c.Input.Decode(&flat); err != nil {
			return c, err
		}
		var err error
		c.Input, err = content.ToJSON(map[string][]Edit{"edits": {flat}})
		return c, err
	}}
	model := once(apitest.Use("edit", Edit{"before", "after"}))
	d, err := executor.Agent{Provider: model, Hooks: []executor.Hook{prepare}}.Run(t.Context(), ask(edit))
	require.NoError(t, err)
	require.Equal(t, []string{"edited"}, outcomes(t, d))
	require.Equal(t, []Edit{{"before", "after"}}, edits)
}

func lateUpdateIsDropped(t *testing.T) {
	var late context.Context
	tells := tool("tells", func(ctx context.Context) (any, error) {
		late = ctx
		return "", executor.Progress(ctx, "now")
	})
	events := collect(executor.Stream(t.Context(), once(call("tells")), ask(tells)))
	n := len(events)
	require.NoError(t, executor.Progress(late, "later"))
	require.Len(t, events, n)
	updates := only[executor.ToolUpdate](events)
	require.Len(t, updates, 1)
	require.Equal(t, "now", updates[0].Content.Text())
}

func lateUpdateBesideASiblingIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settled := make(chan context.Context, 1)
		quick := tool("quick", func(ctx context.Context) (any, error) { settled <- ctx; return "", nil })
		sibling := tool("sibling", func(ctx context.Context) (any, error) {
			time.Sleep(20 * time.Millisecond)
			return "", executor.Progress(<-settled, "too late")
		})
		events := collect(executor.Stream(t.Context(), once(call("quick"), call("sibling")), ask(quick, sibling)))
		require.Empty(t, only[executor.ToolUpdate](events))
		require.Equal(t, []string{"", ""}, outcomes(t, only[executor.End](events)[0].DAG))
	})
}

func steeringGoesOnFromAnAnswer(t *testing.T) {
	model := apitest.NewScript(apitest.Say("One."), apitest.Say("Two."))
	d, err := executor.Agent{Provider: model, Steering: queued("1", "2")}.Run(t.Context(), answered(t))
	require.NoError(t, err)
	require.Equal(t, "uauaua", roles(d))
	require.Len(t, model.Requests(), 2)
	require.Equal(t, "Two.", d.Text())
}

func providerFails(t *testing.T) {
	exploded := errors.New("provider exploded")
	agent := executor.Agent{Provider: apitest.NewScript(apitest.Fail(exploded), apitest.Say("Hi.")), Steering: queued("Hello")}
	told, end, err := lifecycle(agent.Stream(t.Context(), dag.New()))
	require.ErrorIs(t, err, exploded)
	require.Equal(t, []string{"run", "turn 1", "(user", ")", "(assistant", "nothing)", "turn end 1", "end: error"}, told)
	require.Equal(t, "u", roles(end.DAG))
	require.Equal(t, content.StopError, stopped(t, end.DAG).Reason)
	require.Equal(t, "provider exploded", stopped(t, end.DAG).Detail)
	requireValid(t, end.DAG)

	d, err := agent.Run(t.Context(), end.DAG)
	require.NoError(t, err)
	require.Equal(t, "Hi.", d.Text(), "a later run goes on from it")
}

func allStartBeforeOneEnds(t *testing.T) {
	told, _, err := lifecycle(executor.Ordered(executor.Stream(t.Context(), abc(), ask(taking("a", 0), taking("b", 0), taking("c", 0)))))
	require.NoError(t, err)
	require.Equal(t, []string{"start 0", "start 1", "start 2", "end 0", "end 1", "end 2"}, told[4:10])
	told, _, err = lifecycle(executor.Stream(t.Context(), abc(), ask(taking("a", 0), taking("b", 0), taking("c", 0))))
	require.NoError(t, err)
	require.Equal(t, []string{"start 0", "start 1", "start 2"}, told[4:7])
}

func callsRunTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		tenth := 100 * time.Millisecond
		_, err := executor.Run(t.Context(), abc(), ask(taking("a", tenth), taking("b", tenth), taking("c", tenth)))
		require.NoError(t, err)
		require.Equal(t, tenth, time.Since(start))
	})
}

func toolThatCancelsFailsAlone(t *testing.T) {
	cancels := tool("cancels", func(context.Context) (any, error) { return nil, context.Canceled })
	d, err := executor.Run(t.Context(), once(call("fast"), call("cancels")), ask(fast, cancels))
	require.NoError(t, err)
	require.Equal(t, []string{"fast", "error: context canceled"}, outcomes(t, d))
	require.Equal(t, "Done.", d.Text())
}

func callersCancelPropagates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, cancel)
		start := time.Now()
		d, err := executor.Run(ctx, once(call("slow"), call("fast")), ask(slow, fast))
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, 10*time.Millisecond, time.Since(start))
		require.Equal(t, []string{"error: Operation cancelled while the tool was running; it may have had effects.", "fast"}, outcomes(t, d))
		requireValid(t, d)
	})
}

// oneMessageATurn adds two messages to a queue while the model answers for the first time.
func oneMessageATurn(t *testing.T, which func(*executor.Agent) **executor.Queue) {
	model := apitest.NewScript(apitest.Say("a"), apitest.Say("b"), apitest.Say("c"))
	agent, queue := executor.Agent{Provider: model}, queued()
	*which(&agent) = queue
	var waits []int
	for event, err := range agent.Stream(t.Context(), dag.New().User("Hello")) {
		require.NoError(t, err)
		switch e := event.(type) {
		case executor.MessageStart:
			if e.Turn == 1 {
				require.NoError(t, queue.Add("one"))
				waits = append(waits, queue.Len())
				require.NoError(t, queue.Add("two"))
				waits = append(waits, queue.Len())
			}
		case executor.TurnStart:
			if e.Turn > 1 {
				waits = append(waits, queue.Len())
			}
		case executor.End:
			require.Equal(t, "uauaua", roles(e.DAG))
		}
	}
	var counts []int
	for _, req := range model.Requests() {
		counts = append(counts, len(asked(req)))
	}
	require.Equal(t, []int{1, 2, 3}, counts)
	require.Equal(t, []int{1, 2, 1, 0}, waits)
	require.Equal(t, []string{"Hello", "one", "two"}, asked(model.Requests()[2]))
}

// inBubble runs a test with a clock of its own.
func inBubble(test func(*testing.T)) func(*testing.T) {
	return func(t *testing.T) { synctest.Test(t, test) }
}

// lifecycle is the story of a run without the pieces of its messages.
func lifecycle(events iter.Seq2[executor.Event, error]) ([]string, executor.End, error) {
	told, end, err := story(events)
	return slices.DeleteFunc(told, func(word string) bool { return word == "block" }), end, err
}

func collect(events iter.Seq2[executor.Event, error]) (list []executor.Event) {
	for event := range events {
		list = append(list, event)
	}
	return list
}

func yielding(events []executor.Event) iter.Seq2[executor.Event, error] {
	return func(yield func(executor.Event, error) bool) {
		for _, event := range events {
			if !yield(event, nil) {
				return
			}
		}
	}
}

// only is the events of one type.
func only[T executor.Event](events []executor.Event) (list []T) {
	for _, event := range events {
		if e, ok := event.(T); ok {
			list = append(list, e)
		}
	}
	return list
}

// queued is a queue that gives the texts one at a time.
func queued(texts ...string) *executor.Queue {
	q := &executor.Queue{}
	for _, text := range texts {
		if err := q.Add(text); err != nil {
			panic(err)
		}
	}
	return q
}

// asked is what a request holds in the user's words.
func asked(req api.Request) (texts []string) {
	for _, m := range req.Messages {
		if m.Role == content.User && len(m.Blocks.ToolResults()) == 0 {
			texts = append(texts, m.Blocks.Text())
		}
	}
	return texts
}

// executed is what became of the calls of a conversation, in call order.
func executed(d dag.DAG) (list []node.ToolExecution) {
	for _, n := range d.Nodes() {
		if e, ok := n.Payload().(node.ToolExecution); ok {
			list = append(list, e)
		}
	}
	slices.SortStableFunc(list, func(a, b node.ToolExecution) int { return a.Index - b.Index })
	return list
}

// messageNodes is how many messages a conversation holds, without those that results which wait for others will become.
func messageNodes(d dag.DAG) (n int) {
	for _, each := range d.Nodes() {
		if _, ok := each.Message(); ok {
			n++
		}
	}
	return n
}

// answered is a conversation that ends with a model's answer.
func answered(t *testing.T) dag.DAG {
	t.Helper()
	d, err := executor.Run(t.Context(), apitest.NewScript(apitest.Say("Hi.")), dag.New().User("Hello"))
	require.NoError(t, err)
	return d
}

func saved(t *testing.T, d dag.DAG) string {
	t.Helper()
	var file bytes.Buffer
	require.NoError(t, d.Write(&file))
	return file.String()
}

func reloaded(t *testing.T, d dag.DAG) dag.DAG {
	t.Helper()
	read, err := dag.Read(strings.NewReader(saved(t, d)))
	require.NoError(t, err)
	return read
}

// paused returns the continuation of a run that paused.
func paused(t *testing.T, err error) executor.Continuation {
	t.Helper()
	var p *executor.PausedError
	require.ErrorAs(t, err, &p)
	return p.Continuation()
}

// waiting is the ids of the calls that wait.
func waiting(d dag.DAG) (ids []string) {
	for _, p := range d.Pending() {
		ids = append(ids, nameOf(d, p))
	}
	return ids
}

func text(words string) executor.Result { return executor.Result{Content: content.Words(words)} }

// deferring is an agent whose calls, tc_1 with "a" and tc_2 and so on with more, all wait for results.
func deferring(t *testing.T, more ...string) (executor.Agent, *apitest.Script) {
	var calls []content.ToolUse
	for i, value := range append([]string{"a"}, more...) {
		call := echoes(value)
		call.ID = fmt.Sprintf("tc_%d", i+1)
		calls = append(calls, call)
	}
	model := once(calls...)
	echo := executor.NewTool(content.Tool{Name: "echo", Schema: `{"type":"object"}`}, func(context.Context, executor.Call) (executor.Result, error) {
		t.Error("a deferred call was carried out")
		return executor.Result{}, nil
	})
	return executor.Agent{Provider: model, Strategy: executor.DeferAll(), Tools: []dag.Tool{echo}}, model
}

// taking is a tool that takes d and returns its name.
func taking(name string, d time.Duration) executor.Tool {
	return tool(name, func(ctx context.Context) (any, error) { return name, wait(ctx, d) })
}

// abc is a model that calls a, b and c.
func abc() *apitest.Script { return once(call("a"), call("b"), call("c")) }

// echoes is a call of anyValue.
func echoes(value string) content.ToolUse {
	return apitest.Use("echo", map[string]string{"value": value})
}

// anyValue is a tool that takes a string by its schema, and whatever comes by its function.
func anyValue(got *[]any) executor.Tool {
	return executor.NewTool(content.Tool{
		Name: "echo", Schema: `{"type":"object","properties":{"value":{"type":"string"}},"required":["value"]}`,
	}, func(_ context.Context, c executor.Call) (executor.Result, error) {
		var in struct {
			Value any `json:"value"`
		}
		if err := c.Input.Decode(&in); err != nil {
			return executor.Result{}, err
		}
		*got = append(*got, in.Value)
		return executor.ResultOf(fmt.Sprint("got ", in.Value))
	})
}
