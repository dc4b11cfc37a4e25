package executor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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
	"github.com/plait-dev/plait/executor/registry"
	"github.com/plait-dev/plait/internal/testkit/tooltest"
	"github.com/plait-dev/plait/node"
)

// watch runs a stream to its end and returns every event.
func watch(t *testing.T, events func(func(executor.Event, error) bool)) (all []executor.Event, end executor.End, failure error) {
	t.Helper()
	for event, err := range events {
		all = append(all, event)
		if last, ok := event.(executor.End); ok {
			end, failure = last, err
		}
	}
	require.IsType(t, executor.End{}, all[len(all)-1])
	require.Len(t, only[executor.End](all), 1)
	return all, end, failure
}

// named is a call with an id.
func named(id, tool string, input content.JSON) content.ToolUse {
	return content.ToolUse{ID: id, Name: tool, Input: input}
}

// brought is a result from outside.
func brought(words string) answer { return returned(text(words)) }

// said is the texts of the user's side, results left out.
func said(d dag.DAG) (list []string) {
	for _, m := range d.Messages() {
		if m.Role == content.User && len(m.Blocks.ToolResults()) == 0 {
			list = append(list, m.Blocks.Text())
		}
	}
	return list
}

// spy returns a tool that says what it was called with, and the list of what it was called with.
func spy(name string) (executor.Tool, func() []content.JSON) {
	var mu sync.Mutex
	var ran []content.JSON
	t := tooltest.Func(name, func(_ context.Context, c executor.Call) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		ran = append(ran, c.Input)
		return "ran " + string(c.Input), nil
	})
	return t, func() []content.JSON {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(ran)
	}
}

// before is a hook that decides.
func before(decide func(executor.Call) executor.Decision) executor.Hook {
	return executor.Hook{Before: func(_ context.Context, c executor.Call) (executor.Decision, error) { return decide(c), nil }}
}

// refusing is a filter of input that rejects what holds a word.
func refusing(word string) executor.Hook {
	return executor.Hook{Input: func(_ context.Context, m content.Message) (content.Message, error) {
		if strings.Contains(m.Blocks.Text(), word) {
			return m, errors.New("no " + word + " here")
		}
		return m, nil
	}}
}

// warned returns a message with a warning behind it.
func warned(m content.Message, words string) (content.Message, error) {
	blocks, err := content.Of(append(m.Blocks.Slice(), content.Text{Text: "[Warning: " + words + "]"})...)
	m.Blocks = blocks
	return m, err
}

// warning is a filter of input that warns.
func warning(words string) executor.Hook {
	return executor.Hook{Input: func(_ context.Context, m content.Message) (content.Message, error) { return warned(m, words) }}
}

// Phi-core and yoagent.
var phi = []conform{
	{id: "R1", says: "an answer in words is the whole run", test: func(t *testing.T) {
		d, err := executor.Run(t.Context(), apitest.NewScript(apitest.Say("Hello!")), ask())
		require.NoError(t, err)
		require.Equal(t, "ua", roles(d))
		require.Equal(t, "Hello!", d.Text())
	}},
	{id: "R2", says: "a tool's result stands between the call and the answer, and the tool starts and ends", test: func(t *testing.T) {
		all, end, err := watch(t, executor.Stream(t.Context(), once(call("fast")), ask(fast)))
		require.NoError(t, err)
		require.Equal(t, "uara", roles(end.DAG))
		require.Len(t, only[executor.ToolStart](all), 1)
		require.Len(t, only[executor.ToolEnd](all), 1)
	}},
	{id: "R3", says: "a run that is cancelled before it begins says nothing", test: func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		model := apitest.NewScript(apitest.Say("never"))
		d, err := executor.Run(ctx, model, ask())
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, "u", roles(d))
		require.Empty(t, model.Requests())
		require.Equal(t, content.StopCancelled, stopped(t, d).Reason)
	}},
	{id: "R4", says: "a run that goes on from results begins with the model", test: func(t *testing.T) {
		d, err := executor.ExecuteTools(t.Context(), ask(fast).Assistant("", call("fast")))
		require.NoError(t, err)
		require.Equal(t, "uar", roles(d))
		d, err = executor.Run(t.Context(), apitest.NewScript(apitest.Say("Done.")), d)
		require.NoError(t, err)
		require.Equal(t, "uara", roles(d))
	}},
	{id: "R5", says: "a tool that fails ends once, as an error, and the model goes on", test: func(t *testing.T) {
		all, end, err := watch(t, executor.Stream(t.Context(), once(call("broken")), ask(broken)))
		require.NoError(t, err)
		ends := only[executor.ToolEnd](all)
		require.Len(t, ends, 1)
		require.True(t, ends[0].Execution.IsError)
		require.Equal(t, "it is broken", ends[0].Execution.Result.Text())
		require.Equal(t, "uara", roles(end.DAG))
	}},
	{id: "R6", says: "a tool that is not there ends once, as an error", test: func(t *testing.T) {
		all, end, err := watch(t, executor.Stream(t.Context(), once(call("missing")), ask(fast)))
		require.NoError(t, err)
		ends := only[executor.ToolEnd](all)
		require.Len(t, ends, 1)
		require.True(t, ends[0].Execution.IsError)
		require.Equal(t, "uara", roles(end.DAG))
	}},
	{id: "R7", says: "three tools in parallel take as long as one", test: func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			s := call("sleep")
			all, _, err := watch(t, executor.Stream(t.Context(), once(s, s, s), ask(taking("sleep", 50*time.Millisecond))))
			require.NoError(t, err)
			require.Equal(t, 50*time.Millisecond, time.Since(begun))
			require.Len(t, only[executor.ToolStart](all), 3)
			require.Len(t, only[executor.ToolEnd](all), 3)
		})
	}},
	{id: "R8", says: "two tools in sequence take as long as two", test: func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			agent := executor.Agent{Provider: once(call("sleep"), call("sleep")), Strategy: executor.Sequential()}
			_, err := agent.Run(t.Context(), ask(taking("sleep", 50*time.Millisecond)))
			require.NoError(t, err)
			require.Equal(t, 100*time.Millisecond, time.Since(begun))
		})
	}},
	{id: "R9", says: "four tools in batches of two take as long as two", test: func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			s := call("sleep")
			agent := executor.Agent{Provider: once(s, s, s, s), Strategy: executor.Batched(2)}
			all, _, err := watch(t, agent.Stream(t.Context(), ask(taking("sleep", 50*time.Millisecond))))
			require.NoError(t, err)
			require.Equal(t, 100*time.Millisecond, time.Since(begun))
			for _, e := range only[executor.ToolEnd](all) {
				require.Equal(t, time.Duration(e.Execution.Index/2)*50*time.Millisecond, e.Execution.Started.Sub(begun))
			}
		})
	}},
	{id: "R10", says: "updates of a tool come in its order, between its start and its end", test: func(t *testing.T) {
		steps := tool("steps", func(ctx context.Context) (any, error) {
			for i := range 3 {
				require.NoError(t, executor.Progress(ctx, fmt.Sprintf("step %d/3", i+1)))
			}
			return "ready", nil
		})
		told, _, err := story(executor.Stream(t.Context(), once(call("steps")), ask(steps)))
		require.NoError(t, err)
		at := slices.Index(told, "start 0")
		require.Equal(t, []string{"start 0", "update 0 step 1/3", "update 0 step 2/3", "update 0 step 3/3", "end 0"}, told[at:at+5])
	}},
	{id: "R11", says: "a rate limit is waited out, twice as long the second time", test: func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			busy := apitest.Fail(&api.Error{Kind: api.ErrRateLimited})
			model := apitest.NewScript(busy, busy, apitest.Say("Done."))
			d, err := executor.Run(t.Context(), model, ask())
			require.NoError(t, err)
			require.Equal(t, "Done.", d.Text())
			require.Len(t, model.Requests(), 3)
			require.GreaterOrEqual(t, time.Since(begun), 2250*time.Millisecond)
			require.LessOrEqual(t, time.Since(begun), 3*time.Second)
		})
	}},
	{id: "R12", says: "two retries are three attempts, and then an error", test: func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			model := apitest.NewScript(apitest.Fail(&api.Error{Kind: api.ErrRateLimited}).Always())
			_, err := executor.Run(t.Context(), api.NewClient(model, &api.ClientOptions{Attempts: 3}), ask())
			require.ErrorIs(t, err, api.ErrRateLimited)
			require.Len(t, model.Requests(), 3)
		})
	}},
	{id: "R13", says: "a key that is refused is not tried again", test: func(t *testing.T) {
		model := apitest.NewScript(apitest.Fail(&api.Error{Kind: api.ErrAuth}), apitest.Say("never"))
		_, err := executor.Run(t.Context(), model, ask())
		require.ErrorIs(t, err, api.ErrAuth)
		require.Len(t, model.Requests(), 1)
	}},
	{id: "R14", says: "without retries there is one attempt", test: func(t *testing.T) {
		model := apitest.NewScript(apitest.Fail(&api.Error{Kind: api.ErrRateLimited}), apitest.Say("never"))
		_, err := executor.Run(t.Context(), api.NewClient(model, &api.ClientOptions{Attempts: 1}), ask())
		require.ErrorIs(t, err, api.ErrRateLimited)
		require.Len(t, model.Requests(), 1)
	}},
	{
		id: "R15", says: "a hook allows two turns and no third",
		differs: "The hook is asked after each turn what comes next, and not before the third: so it is asked twice in place of three times.",
		test: func(t *testing.T) {
			asked := 0
			two := executor.Hook{Next: func(_ context.Context, turn executor.Turn) (executor.Turn, error) {
				if asked++; turn.Number == 2 {
					turn.Stop = content.StopHook
				}
				return turn, nil
			}}
			model := apitest.NewScript(apitest.Call(call("fast")).Always())
			d, err := executor.Agent{Provider: model, Hooks: []executor.Hook{two}}.Run(t.Context(), ask(fast))
			require.NoError(t, err)
			require.Equal(t, 2, asked)
			require.Equal(t, "uarar", roles(d), "the calls of the last answer are answered")
			require.Equal(t, content.StopHook, stopped(t, d).Reason)
			require.Len(t, model.Requests(), 2)
		},
	},
	{id: "R16", says: "a hook hears of every turn that is over", test: func(t *testing.T) {
		var heard []int
		listens := executor.Hook{Next: func(_ context.Context, turn executor.Turn) (executor.Turn, error) {
			heard = append(heard, turn.Number)
			return turn, nil
		}}
		_, err := executor.Agent{Provider: once(call("fast")), Hooks: []executor.Hook{listens}}.Run(t.Context(), ask(fast))
		require.NoError(t, err)
		require.Equal(t, []int{1, 2}, heard)
	}},
	{id: "R17", says: "whoever watches hears of the model's failure, beside the last event", test: func(t *testing.T) {
		model := apitest.NewScript(apitest.Fail(&api.Error{Kind: api.ErrInvalidRequest, Message: "provider exploded"}))
		all, end, err := watch(t, executor.Stream(t.Context(), model, ask()))
		require.ErrorIs(t, err, api.ErrInvalidRequest)
		require.Equal(t, content.StopError, end.Stop.Reason)
		require.Contains(t, end.Stop.Detail, "provider exploded")
		require.Len(t, only[executor.TurnEnd](all), 1, "the turn is closed")
	}},
	{id: "R18", says: "every function of a hook may be missing", test: func(t *testing.T) {
		agent := executor.Agent{Provider: once(call("fast")), Hooks: []executor.Hook{{}, {}}, Steering: queued("Now.")}
		d, err := agent.Run(t.Context(), ask(fast))
		require.NoError(t, err)
		require.Equal(t, "uuara", roles(d))
	}},
	{id: "R19", says: "progress of parallel tools is told apart by their calls, and harms nobody who does not watch", test: func(t *testing.T) {
		says := tool("says", func(ctx context.Context) (any, error) {
			c, _ := executor.CallOf(ctx)
			return "ready", executor.Progress(ctx, "I am "+c.ID)
		})
		d := ask(says)
		calls := []content.ToolUse{named("a", "says", "{}"), named("b", "says", "{}")}
		all, _, err := watch(t, executor.Stream(t.Context(), once(calls...), d))
		require.NoError(t, err)
		updates := only[executor.ToolUpdate](all)
		require.Len(t, updates, 2)
		for _, u := range updates {
			require.Equal(t, "I am "+u.Call.ID, u.Content.Text())
			require.Equal(t, calls[u.Call.Index].ID, u.Call.ID)
		}
		d, err = executor.ExecuteTools(t.Context(), d.Assistant("", calls[0], calls[1]))
		require.NoError(t, err)
		require.Equal(t, []string{"ready", "ready"}, outcomes(t, d))
	}},
	{
		id: "R20", says: "updates can be kept from being seen, and the result stays whole",
		differs: "There is no hook that suppresses an update: whoever watches passes over what they do not want.",
		test: func(t *testing.T) {
			steps := tool("steps", func(ctx context.Context) (any, error) {
				for range 3 {
					require.NoError(t, executor.Progress(ctx, "step"))
				}
				return "ready", nil
			})
			seen, passedOver := 0, 0
			var end executor.End
			for event, err := range executor.Stream(t.Context(), once(call("steps")), ask(steps)) {
				require.NoError(t, err)
				switch e := event.(type) {
				case executor.ToolUpdate:
					passedOver++
					continue
				case executor.End:
					end = e
				}
				seen++
			}
			require.Equal(t, 3, passedOver)
			require.Positive(t, seen)
			require.Equal(t, []string{"ready"}, outcomes(t, end.DAG))
		},
	},
	{id: "R21", says: "a filter lets a message pass as it is", test: func(t *testing.T) {
		model := apitest.NewScript(apitest.Say("Done."))
		before := ask()
		d, err := executor.Agent{Provider: model, Hooks: []executor.Hook{refusing("tea")}}.Run(t.Context(), before)
		require.NoError(t, err)
		require.Equal(t, []string{"Go."}, said(d))
		require.True(t, d.Contains(before.Head()), "it is the same node")
	}},
	{id: "R22", says: "a filter adds its warning to the message", test: func(t *testing.T) {
		model := apitest.NewScript(apitest.Say("Done."))
		d, err := executor.Agent{Provider: model, Hooks: []executor.Hook{warning("hot")}}.Run(t.Context(), ask())
		require.NoError(t, err)
		require.Equal(t, []string{"Go.\n[Warning: hot]"}, said(d))
		require.Equal(t, d.Messages()[:1], model.Requests()[0].Messages)
	}},
	{
		id: "R23", says: "a prompt that a filter rejects is not said",
		differs: "Who wrote the prompt made the call, so the run is refused with an error and tells no event but its End; a message of a queue " +
			"that is rejected is told as an event (R27).",
		test: func(t *testing.T) {
			model := apitest.NewScript(apitest.Say("never"))
			before := dag.New().User("Make tea.")
			all, end, err := watch(t, executor.Agent{Provider: model, Hooks: []executor.Hook{refusing("tea")}}.Stream(t.Context(), before))
			require.ErrorIs(t, err, executor.ErrRejected)
			require.ErrorContains(t, err, "no tea here")
			require.Len(t, all, 1)
			require.True(t, dag.Equal(before, end.DAG))
			require.Empty(t, model.Requests())
		},
	},
	{id: "R24", says: "the first filter that rejects decides", test: func(t *testing.T) {
		agent := executor.Agent{
			Provider: apitest.NewScript(apitest.Say("never")), Hooks: []executor.Hook{refusing("milk"), refusing("tea"), refusing("Make")},
		}
		_, err := agent.Run(t.Context(), dag.New().User("Make tea."))
		require.ErrorContains(t, err, "no tea here")
		require.NotContains(t, err.Error(), "no Make here")
	}},
	{id: "R25", says: "warnings of several filters stand one below the other", test: func(t *testing.T) {
		agent := executor.Agent{Provider: apitest.NewScript(apitest.Say("Done.")), Hooks: []executor.Hook{warning("hot"), warning("heavy")}}
		d, err := agent.Run(t.Context(), ask())
		require.NoError(t, err)
		require.Equal(t, []string{"Go.\n[Warning: hot]\n[Warning: heavy]"}, said(d))
	}},
	{id: "R26", says: "a filter of words lets an image pass, and the image stays", test: func(t *testing.T) {
		tea := content.Image{Source: content.Source{URL: "https://example.com/tea.png"}}
		agent := executor.Agent{Provider: apitest.NewScript(apitest.Say("Done.")), Hooks: []executor.Hook{refusing("tea"), warning("hot")}}
		d, err := agent.Run(t.Context(), dag.New().User("", tea))
		require.NoError(t, err)
		require.Equal(t, []content.Block{tea, content.Text{Text: "[Warning: hot]"}}, d.Messages()[0].Blocks.Slice())
	}},
	{id: "R27", says: "a steering message that is rejected is told before the turn, and not said", test: func(t *testing.T) {
		steering := queued("Make tea.")
		agent := executor.Agent{Provider: once(call("fast")), Steering: steering, Hooks: []executor.Hook{refusing("tea")}}
		var told []string
		for event, err := range agent.Stream(t.Context(), ask(fast)) {
			require.NoError(t, err)
			switch e := event.(type) {
			case executor.TurnStart:
				told = append(told, fmt.Sprint("turn ", e.Turn))
			case executor.TurnEnd:
				told = append(told, "over")
			case executor.Rejected:
				told = append(told, e.Message.Blocks.Text()+" "+e.Err.Error())
			case executor.ToolEnd:
				require.NoError(t, steering.Add("More tea."))
			case executor.End:
				require.Equal(t, []string{"Go."}, said(e.DAG))
			}
		}
		require.Equal(t, []string{"Make tea. no tea here", "turn 1", "over", "More tea. no tea here", "turn 2", "over"}, told)
	}},
	{id: "R28", says: "a steering message takes a warning along", test: func(t *testing.T) {
		agent := executor.Agent{Provider: apitest.NewScript(apitest.Say("Done.")), Steering: queued("Faster."), Hooks: []executor.Hook{warning("hot")}}
		d, err := agent.Run(t.Context(), ask())
		require.NoError(t, err)
		require.Equal(t, []string{"Go.\n[Warning: hot]", "Faster.\n[Warning: hot]"}, said(d))
	}},
	{id: "R29", says: "a follow-up that is rejected makes no turn", test: func(t *testing.T) {
		model := apitest.NewScript(apitest.Say("Done."), apitest.Say("never"))
		agent := executor.Agent{Provider: model, FollowUps: queued("Make tea."), Hooks: []executor.Hook{refusing("tea")}}
		told, end, err := story(agent.Stream(t.Context(), ask()))
		require.NoError(t, err)
		require.Equal(t, []string{"run", "turn 1", "(assistant", "block", ")", "turn end 1", "rejected", "end: end_turn"}, told)
		require.Equal(t, "ua", roles(end.DAG))
	}},
	{id: "R30", says: "a follow-up takes a warning along", test: func(t *testing.T) {
		model := apitest.NewScript(apitest.Say("Done."), apitest.Say("That too."))
		agent := executor.Agent{Provider: model, FollowUps: queued("And now?"), Hooks: []executor.Hook{warning("hot")}}
		d, err := agent.Run(t.Context(), ask())
		require.NoError(t, err)
		require.Equal(t, "uaua", roles(d))
		require.Equal(t, "And now?\n[Warning: hot]", said(d)[1])
	}},
	{id: "R31", says: "a turn says what it took, and the end what all took, thinking included", test: func(t *testing.T) {
		first := content.Usage{Input: 10, Output: 5, CacheRead: 2, Reasoning: 3}
		second := content.Usage{Input: 20, Output: 7, CacheWrite: 1, Reasoning: 4}
		model := apitest.NewScript(apitest.Call(call("fast")).Usage(first), apitest.Say("Done.").Usage(second))
		all, end, err := watch(t, executor.Stream(t.Context(), model, ask(fast)))
		require.NoError(t, err)
		turns := only[executor.TurnEnd](all)
		require.Len(t, turns, 2)
		require.Equal(t, first, turns[0].Usage)
		require.Equal(t, second, turns[1].Usage)
		require.Equal(t, content.Usage{Input: 30, Output: 12, CacheRead: 2, CacheWrite: 1, Reasoning: 7}, end.Stop.Usage)
	}},
	{id: "R32", says: "a run that has cost what it may has no second turn", test: func(t *testing.T) {
		model := apitest.NewScript(apitest.Call(call("fast")).As("acme", "acme-1").Usage(content.Usage{Input: 100_000, Output: 200_000}).Always())
		agent := executor.Agent{Provider: model, Limits: executor.Limits{Cost: 0.5}, Prices: api.Prices{"acme-1": {Input: 1, Output: 2}}}
		all, end, err := watch(t, agent.Stream(t.Context(), ask(fast)))
		require.NoError(t, err)
		require.Len(t, only[executor.TurnStart](all), 1)
		require.Equal(t, content.StopCostLimit, end.Stop.Reason)
		require.InDelta(t, 0.5, end.Stop.Cost, 1e-9)
		requireValid(t, end.DAG)
	}},
	{id: "R33", says: "a tool is given up at the run's timeout, and the model goes on", test: func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			agent := executor.Agent{Provider: once(call("sleep")), ToolTimeout: 100 * time.Millisecond}
			d, err := agent.Run(t.Context(), ask(taking("sleep", 30*time.Second)))
			require.NoError(t, err)
			require.Equal(t, 100*time.Millisecond, time.Since(begun))
			require.Equal(t, []string{"error: Tool exceeded timeout of 100ms."}, outcomes(t, d))
			require.Equal(t, "uara", roles(d))
		})
	}},
	{id: "R34", says: "a tool's own timeout goes before the run's", test: func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			agent := executor.Agent{Provider: once(call("sleep")), ToolTimeout: 5 * time.Second}
			d, err := agent.Run(t.Context(), ask(executor.WithTimeout(taking("sleep", 30*time.Second), 50*time.Millisecond)))
			require.NoError(t, err)
			require.Equal(t, 50*time.Millisecond, time.Since(begun))
			require.Equal(t, []string{"error: Tool exceeded timeout of 50ms."}, outcomes(t, d))
		})
	}},
	{id: "R35", says: "a tool that is in time is not disturbed", test: func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			agent := executor.Agent{Provider: once(call("sleep")), ToolTimeout: time.Second}
			d, err := agent.Run(t.Context(), ask(taking("sleep", 10*time.Millisecond)))
			require.NoError(t, err)
			require.Equal(t, []string{"sleep"}, outcomes(t, d))
		})
	}},
	{
		id: "R36", says: "without a timeout a tool may take as long as it likes",
		differs: "No timeout has to be asked for, by a negative one: the default is 30 seconds, because a tool that hangs would hold the run for ever.",
		test: func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				agent := executor.Agent{Provider: once(call("sleep")), ToolTimeout: -1}
				d, err := agent.Run(t.Context(), ask(taking("sleep", 24*time.Hour)))
				require.NoError(t, err)
				require.Equal(t, []string{"sleep"}, outcomes(t, d))
				d, err = executor.Run(t.Context(), once(call("sleep")), ask(taking("sleep", 24*time.Hour)))
				require.NoError(t, err)
				require.Equal(t, []string{"error: Tool exceeded timeout of 30s."}, outcomes(t, d))
			})
		},
	},
	{
		id: "R37", says: "a sub-agent does a task in a conversation of its own, and its last words are the result",
		differs: "In place of details with a count of turns, the sub-agent's whole conversation hangs on the execution, with its totals; its " +
			"events come out whole, and not as words about them; a task that is missing is told as any missing argument is.",
		test: subAgents,
	},
	{
		id: "R38", says: "a hook allows, denies or changes a call, and one that fails denies it",
		differs: "ToolStart shows the call as the model made it and, beside it, as it is carried out. A hook that panics fails closed, in its own " +
			"words: it has denied nothing.",
		test: func(t *testing.T) {
			for _, strategy := range []executor.Strategy{nil, executor.Sequential(), executor.Batched(1)} {
				deciding(t, strategy)
			}
		},
	},
	{
		id: "R39", says: "a call that is made again and again is told so, and then stopped, with every call answered",
		differs: "It is off unless Limits.Repeats is set, because some programs poll. The model is told at n calls in a row, and the run stops at 2n.",
		test:    repeating,
	},
	{
		id: "R40", says: "whoever leaves is not held up by a tool that ignores it",
		differs: "Go cannot end a goroutine: the end of the run waits for the tool as long as Agent.Grace, and then leaves it behind; what it " +
			"returns later is dropped.",
		test: func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				var returned atomic.Bool
				ignores := tool("ignores", func(ctx context.Context) (any, error) {
					require.NoError(t, executor.Progress(ctx, "I am at it"))
					time.Sleep(time.Hour)
					returned.Store(true)
					return "much too late", nil
				})
				agent := executor.Agent{Provider: once(call("ignores")), Grace: 2 * time.Second}
				for event := range agent.Stream(t.Context(), ask(ignores)) {
					if _, running := event.(executor.ToolUpdate); running {
						break
					}
				}
				require.Equal(t, 2*time.Second, time.Since(begun))
				require.False(t, returned.Load())
				time.Sleep(2 * time.Hour)
				require.True(t, returned.Load())
			})
		},
	},
	{
		id: "R41", says: "what was saved is read again, and what an older version saved too",
		differs: "The conversation is what is saved. An agent, with its strategy and its limits, is a value of the program's and is not.",
		test: func(t *testing.T) {
			cut := executor.OutputLimit{MaxBytes: 20, KeepFull: true}.Hook()
			d, err := executor.Agent{Provider: once(call("long")), Hooks: []executor.Hook{cut}}.
				Run(t.Context(), ask(tool("long", func(context.Context) (any, error) { return strings.Repeat("long ", 20), nil })))
			require.NoError(t, err)
			var saved bytes.Buffer
			require.NoError(t, d.Write(&saved))
			again, err := dag.Read(bytes.NewReader(saved.Bytes()))
			require.NoError(t, err)
			require.True(t, dag.Equal(d, again))
			require.Equal(t, stopped(t, d), stopped(t, again))

			old := regexp.MustCompile(`,"info":\{([^{}]|\{[^{}]*\})*\}`).ReplaceAllString(saved.String(), "")
			require.NotContains(t, old, `"info"`)
			again, err = dag.Read(strings.NewReader(old))
			require.NoError(t, err)
			require.Equal(t, d.Messages(), again.Messages())
			require.Zero(t, stopped(t, again).Turns)
			requireValid(t, again)
		},
	},
}

// subAgents is R37.
func subAgents(t *testing.T) {
	task := func(words string) content.ToolUse { return named("c1", "helper", content.JSON(`{"task":"`+words+`"}`)) }
	helper := func(a executor.Agent) executor.Tool { return executor.SubAgent("helper", "Helps.", a) }
	t.Run("its last words come back, and its conversation hangs on the execution", func(t *testing.T) {
		sub := helper(executor.Agent{Provider: once(call("fast")), Tools: []dag.Tool{fast}})
		d, err := executor.Run(t.Context(), once(task("Look it up.")), ask(sub))
		require.NoError(t, err)
		require.Equal(t, "uara", roles(d), "none of it is in the conversation of the one that called it")
		require.Equal(t, []string{"Done."}, outcomes(t, d))
		nodes := d.Nodes()
		ran := slices.IndexFunc(nodes, func(n *node.Node) bool { return n.Kind() == "tool_execution" })
		child := dag.FromNode(nodes[ran])
		require.Equal(t, "uara", roles(child))
		require.Equal(t, []string{"Look it up."}, said(child))
		require.Equal(t, 2, stopped(t, child).Turns)
	})
	t.Run("its events come out of the run that called it", func(t *testing.T) {
		sub := helper(executor.Agent{Provider: once(call("fast")), Tools: []dag.Tool{fast}})
		all, _, err := watch(t, executor.Stream(t.Context(), once(task("Look it up.")), ask(sub)))
		require.NoError(t, err)
		var inside []executor.Event
		for _, c := range only[executor.Child](all) {
			require.Len(t, c.Path, 1)
			require.Equal(t, "c1", c.Path[0].ID)
			inside = append(inside, c.Event)
		}
		require.IsType(t, executor.RunStart{}, inside[0])
		require.IsType(t, executor.End{}, inside[len(inside)-1])
		require.Equal(t, "fast", only[executor.ToolStart](inside)[0].Call.Name)
		require.NotEmpty(t, only[executor.MessageDelta](inside))
	})
	t.Run("one that is cancelled before it begins says nothing", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		model := apitest.NewScript(apitest.Say("never"))
		_, err := helper(executor.Agent{Provider: model}).Call(ctx, executor.Call{Name: "helper", Input: `{"task":"Go."}`})
		require.ErrorIs(t, err, context.Canceled)
		require.Empty(t, model.Requests())
	})
	t.Run("one that reaches its limit gives what it said until then", func(t *testing.T) {
		model := apitest.NewScript(apitest.Say("Half.").Call(call("fast")), apitest.Say("never"))
		sub := helper(executor.Agent{Provider: model, Tools: []dag.Tool{fast}, Limits: executor.Limits{Turns: 1}})
		d, err := executor.Run(t.Context(), once(task("Go.")), ask(sub))
		require.NoError(t, err)
		require.Equal(t, []string{"Half.\n\n[Agent stopped: max_turns]"}, outcomes(t, d))
	})
	t.Run("one that says nothing is said to have said nothing", func(t *testing.T) {
		sub := helper(executor.Agent{Provider: apitest.NewScript(apitest.Answer())})
		d, err := executor.Run(t.Context(), once(task("Go.")), ask(sub))
		require.NoError(t, err)
		require.Equal(t, []string{"(sub-agent produced no text output)"}, outcomes(t, d))
	})
	t.Run("two of them run at the same time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			model := apitest.NewScript(apitest.Say("Done.").Wait(50 * time.Millisecond).Always())
			_, err := executor.Run(t.Context(), once(task("This."), task("That.")), ask(helper(executor.Agent{Provider: model})))
			require.NoError(t, err)
			require.Equal(t, 50*time.Millisecond, time.Since(begun))
		})
	})
	t.Run("without a task there is nothing to do", func(t *testing.T) {
		model := apitest.NewScript(apitest.Say("never"))
		d, err := executor.Run(t.Context(), once(call("helper"), task(" ")), ask(helper(executor.Agent{Provider: model})))
		require.NoError(t, err)
		require.Contains(t, outcomes(t, d)[0], "error: Validation failed for tool \"helper\":\n  - task: is required")
		require.Equal(t, "error: Missing required 'task' parameter", outcomes(t, d)[1])
		require.Empty(t, model.Requests())
	})
	t.Run("it ends with the one that called it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := executor.Run(ctx, once(task("Go.")), ask(helper(executor.Agent{Provider: apitest.NewScript(apitest.Hang())})))
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, time.Second, time.Since(begun))
		})
	})
}

// deciding is R38 under one strategy.
func deciding(t *testing.T, strategy executor.Strategy) {
	run := func(t *testing.T, hooks ...executor.Hook) (all []executor.Event, d dag.DAG, ran []content.JSON) {
		t.Helper()
		act, ranWith := spy("act")
		agent := executor.Agent{Provider: once(named("c1", "act", `{"n":1}`), named("c2", "act", `{"n":2}`)), Strategy: strategy, Hooks: hooks}
		all, end, err := watch(t, agent.Stream(t.Context(), ask(act)))
		require.NoError(t, err)
		require.Equal(t, "uara", roles(end.DAG), "the loop goes on")
		require.Len(t, only[executor.ToolStart](all), 2)
		require.Len(t, only[executor.ToolEnd](all), 2)
		return all, end.DAG, ranWith()
	}
	first := func(d executor.Decision) executor.Hook {
		return before(func(c executor.Call) executor.Decision {
			if c.Index == 0 {
				return d
			}
			return executor.Allow()
		})
	}
	t.Run("deny", func(t *testing.T) {
		_, d, ran := run(t, first(executor.Deny("not today")))
		require.Equal(t, []content.JSON{`{"n":2}`}, ran)
		require.Equal(t, []string{"error: Tool call denied: not today", `ran {"n":2}`}, outcomes(t, d))

		// The model sees an error, and the node is denied, and not failed.
		var states []node.ExecutionState
		for _, n := range d.Nodes() {
			if e, ok := n.Payload().(node.ToolExecution); ok {
				states = append(states, e.State)
				require.Equal(t, e.State == node.ExecutionDenied, e.IsError)
				require.False(t, n.Failed())
			}
		}
		require.ElementsMatch(t, []node.ExecutionState{node.ExecutionDenied, node.ExecutionFinished}, states)
	})
	t.Run("modify", func(t *testing.T) {
		all, d, ran := run(t, first(executor.Modify(`{"n":10}`)))
		require.ElementsMatch(t, []content.JSON{`{"n":10}`, `{"n":2}`}, ran)
		require.Equal(t, []string{`ran {"n":10}`, `ran {"n":2}`}, outcomes(t, d))
		start := only[executor.ToolStart](all)[0]
		require.Equal(t, content.JSON(`{"n":1}`), start.Call.Input)
		require.Equal(t, content.JSON(`{"n":10}`), start.Ran.Input)
	})
	t.Run("modify and then deny", func(t *testing.T) {
		var seen []content.JSON
		_, d, ran := run(t, first(executor.Modify(`{"n":10}`)), before(func(c executor.Call) executor.Decision {
			seen = append(seen, c.Input)
			return executor.Deny("not today")
		}), before(func(executor.Call) executor.Decision {
			t.Error("a hook was asked about a call that was denied")
			return executor.Allow()
		}))
		require.Equal(t, []content.JSON{`{"n":10}`, `{"n":2}`}, seen)
		require.Empty(t, ran)
		denied := "error: Tool call denied: not today"
		require.Equal(t, []string{denied, denied}, outcomes(t, d))
	})
	t.Run("panic", func(t *testing.T) {
		_, d, ran := run(t, before(func(c executor.Call) executor.Decision {
			if c.Index == 0 {
				panic("oh no")
			}
			return executor.Allow()
		}))
		require.Equal(t, []content.JSON{`{"n":2}`}, ran)
		require.Equal(t, []string{"error: a hook panicked: oh no", `ran {"n":2}`}, outcomes(t, d))
	})
}

// repeating is R39.
func repeating(t *testing.T) {
	input := func(n int) content.ToolUse { return named("", "act", content.JSON(fmt.Sprintf(`{"a":1,"n":%d}`, n))) }
	const nudge = `You have called "act" with identical arguments %d times in a row. Its result will not change: go on with what you have, ` +
		`or try something else.`
	const last = "error: Not executed: the run was stopped for repeating this call with identical arguments."
	// run lets the model make the calls, answer by answer, and returns how many were carried out.
	run := func(t *testing.T, limit int, answers ...[]content.ToolUse) (dag.DAG, int) {
		t.Helper()
		var turns []apitest.Turn
		for _, calls := range answers {
			turns = append(turns, apitest.Call(calls...))
		}
		act, ran := spy("act")
		agent := executor.Agent{Provider: apitest.NewScript(append(turns, apitest.Say("Done."))...), Limits: executor.Limits{Repeats: limit}}
		d, err := agent.Run(t.Context(), ask(act))
		require.NoError(t, err)
		requireValid(t, d)
		return d, len(ran())
	}
	times := func(n int, calls func(i int) content.ToolUse) (answers [][]content.ToolUse) {
		for i := range n {
			answers = append(answers, []content.ToolUse{calls(i)})
		}
		return answers
	}
	same := func(int) content.ToolUse { return input(7) }
	t.Run("the third is told, behind its result, and the sixth is not carried out", func(t *testing.T) {
		d, ran := run(t, 3, times(12, same)...)
		require.Equal(t, 5, ran)
		require.Equal(t, "uararar"+"uararar", roles(d))
		require.Equal(t, []string{"Go.", fmt.Sprintf(nudge, 3)}, said(d))
		require.Equal(t, []string{last}, outcomes(t, d))
		require.Equal(t, content.StopLoop, stopped(t, d).Reason)
		require.Equal(t, 6, stopped(t, d).Turns)
	})
	t.Run("other arguments are another call", func(t *testing.T) {
		d, ran := run(t, 3, times(12, input)...)
		require.Equal(t, 12, ran)
		require.Len(t, said(d), 1)
	})
	t.Run("two of a kind and then another are never too many", func(t *testing.T) {
		d, ran := run(t, 3, times(12, func(i int) content.ToolUse { return input(i / 2) })...)
		require.Equal(t, 12, ran)
		require.Len(t, said(d), 1)
		d, ran = run(t, 3, times(12, func(i int) content.ToolUse { return input(i % 2) })...)
		require.Equal(t, 12, ran, "calls that take turns are not found, by design")
		require.Len(t, said(d), 1)
	})
	t.Run("calls of one answer count one by one", func(t *testing.T) {
		d, ran := run(t, 3, []content.ToolUse{input(7), input(7), input(7)})
		require.Equal(t, 3, ran)
		require.Equal(t, "uarua", roles(d))
		require.Equal(t, fmt.Sprintf(nudge, 3), said(d)[1])
		d, _ = run(t, 3, []content.ToolUse{input(7), input(7), input(7), input(7), input(8)})
		require.Equal(t, fmt.Sprintf(nudge, 4), said(d)[1], "whatever comes after them")
	})
	t.Run("an answer that repeats one call too often is stopped, whatever else it repeats", func(t *testing.T) {
		one, other := input(1), input(2)
		for _, calls := range [][]content.ToolUse{
			{one, one, one, one, one, one, other, other, other},
			{other, other, other, one, one, one, one, one, one},
		} {
			d, ran := run(t, 3, calls)
			require.Zero(t, ran)
			require.Equal(t, "uar", roles(d))
			require.Equal(t, slices.Repeat([]string{last}, 9), outcomes(t, d))
			require.Equal(t, content.StopLoop, stopped(t, d).Reason)
		}
	})
	t.Run("the order of members does not count", func(t *testing.T) {
		d, ran := run(t, 3, times(12, func(i int) content.ToolUse {
			return named("", "act", []content.JSON{`{"a":1,"n":7}`, `{ "n":7, "a":1 }`}[i%2])
		})...)
		require.Equal(t, 5, ran)
		require.Equal(t, content.StopLoop, stopped(t, d).Reason)
	})
	t.Run("a message of the user begins the count anew", func(t *testing.T) {
		steering := queued()
		act, ran := spy("act")
		agent := executor.Agent{Provider: apitest.NewScript(apitest.Call(input(7)).Always()), Steering: steering, Limits: executor.Limits{Repeats: 3}}
		turns := 0
		for event, err := range agent.Stream(t.Context(), ask(act)) {
			require.NoError(t, err)
			if _, ok := event.(executor.ToolEnd); ok {
				if turns++; turns == 5 {
					require.NoError(t, steering.Add("Go on."))
				}
			}
		}
		require.Len(t, ran(), 5+5)
	})
	t.Run("a pause does not", func(t *testing.T) {
		agent := executor.Agent{
			Provider: apitest.NewScript(apitest.Call(named("tc_1", "act", `{"n":7}`)).Always()), Strategy: executor.DeferAll(),
			Limits: executor.Limits{Repeats: 3},
		}
		d, err := agent.Run(t.Context(), ask(tooltest.Returning("act", "")))
		for range 5 {
			d, err = agent.Resume(t.Context(), d, replySet{"tc_1": brought("ok")}.of(d)...)
		}
		require.NoError(t, err)
		require.Equal(t, []string{"Go.", fmt.Sprintf(nudge, 3)}, said(d))
		require.Equal(t, []string{last}, outcomes(t, d))
		require.Equal(t, content.StopLoop, stopped(t, d).Reason)
	})
	t.Run("it is off unless it is asked for", func(t *testing.T) {
		for _, limit := range []int{0, -1} {
			d, ran := run(t, limit, times(40, same)...)
			require.Equal(t, 40, ran)
			require.Len(t, said(d), 1)
		}
	})
}

// AgentCore.
var agentCore = []conform{
	{id: "A1", says: "one call makes two turns and one execution", test: func(t *testing.T) {
		model := apitest.NewScript(apitest.Call(named("tc_1", "echo", `{"text":"hello"}`)), apitest.Func(func(req api.Request) apitest.Turn {
			return apitest.Say("Echo result: " + req.Messages[2].Blocks.ToolResults()[0].Content.Text())
		}))
		all, end, err := watch(t, executor.Stream(t.Context(), model, ask(echo)))
		require.NoError(t, err)
		require.Equal(t, "Echo result: hello", end.DAG.Text())
		require.Equal(t, 2, end.Stop.Turns)
		require.Equal(t, 1, end.Stop.ToolCalls)
		require.Equal(t, "echo", only[executor.ToolEnd](all)[0].Execution.Tool)
	}},
	{id: "A2", says: "a deferred call is not carried out: the run waits for its result", test: func(t *testing.T) {
		act, ran := spy("echo")
		model := apitest.NewScript(apitest.Call(named("tc_1", "echo", `{"text":"hello"}`)))
		d, err := executor.Agent{Provider: model, Strategy: executor.DeferAll()}.Run(t.Context(), ask(act))
		c := paused(t, err)
		require.Equal(t, content.StopResults, c.Reason)
		message := d.Heads()[0].Parent(0).ID()
		require.Equal(t, []dag.Pending{{
			Key: node.CallKey{Message: message}, Tool: "echo", Input: `{"text":"hello"}`, Deferred: true,
			Call: executor.Call{ID: "tc_1", Name: "echo", Input: `{"text":"hello"}`, Message: message},
		}}, d.Pending())
		require.Equal(t, []node.CallKey{{Message: message}}, c.Calls)
		require.Empty(t, ran())
		require.Len(t, model.Requests(), 1)
		require.Len(t, d.OpenCalls(), 1)
		require.Empty(t, d.Head().Payload().(node.ToolExecution).Result.Text())
	}},
	{
		id: "A3", says: "a result from outside lets the same run go on",
		differs: "An execution does not say that somebody else carried it out: the model cannot tell either, and the program knows what it replied.",
		test: func(t *testing.T) {
			agent, d, c, model := deferredEcho(t, "tc_1")
			all, end, err := watch(t, agent.ResumeStream(t.Context(), d, replySet{"tc_1": brought("ok")}.of(d)...))
			require.NoError(t, err)
			require.Equal(t, "Done.", end.DAG.Text())
			require.Equal(t, c.Run, only[executor.RunStart](all)[0].Run)
			require.Len(t, model.Requests(), 2)
			require.Equal(t, []string{"ok"}, outcomes(t, end.DAG))
			require.Equal(t, "tc_1", results(t, end.DAG)[0].CallID)
			require.Equal(t, 1, end.Stop.ToolCalls)
			require.Empty(t, end.DAG.OpenCalls())
		},
	},
	{id: "A4", says: "a continuation that was JSON on the way is resumed as one that was not", test: func(t *testing.T) {
		agent, d, _, _ := deferredEcho(t, "tc_1")
		d, err := agent.Resume(t.Context(), reloaded(t, d), replySet{"tc_1": brought("ok")}.of(reloaded(t, d))...)
		require.NoError(t, err)
		require.Equal(t, "Done.", d.Text())
		require.Equal(t, []string{"ok"}, outcomes(t, d))
	}},
	{
		id: "A5", says: "results may come in parts, in any order: the run pauses again until the last one",
		differs: "A part may always be given, without a flag for it. What came is an execution of the conversation, in place of a buffer in the " +
			"continuation.",
		test: func(t *testing.T) {
			agent, d, c1, model := deferredEcho(t, "tc_1", "tc_2")
			var resumed []string
			agent.Hooks = []executor.Hook{{Resume: func(_ context.Context, c executor.Continuation) error {
				resumed = append(resumed, c.ID)
				return nil
			}}}
			require.Empty(t, c1.Parent)

			all, end, err := watch(t, agent.ResumeStream(t.Context(), d, replySet{"tc_2": brought("r2")}.of(d)...))
			c2 := paused(t, err)
			d = end.DAG
			require.Equal(t, content.StopResults, c2.Reason)
			require.NotEqual(t, c1.ID, c2.ID)
			require.Equal(t, c1.ID, c2.Parent)
			require.Equal(t, c1.Run, c2.Run)
			require.Equal(t, []string{"tc_1"}, waiting(d))
			require.Empty(t, only[executor.MessageStart](all), "nothing is said")
			require.Equal(t, "r2", d.Heads()[1].Payload().(node.ToolExecution).Result.Text())
			require.Len(t, model.Requests(), 1)

			_, err = agent.Resume(t.Context(), d, replySet{"tc_2": brought("other"), "tc_1": brought("r1")}.of(d)...)
			require.ErrorIs(t, err, executor.ErrConflict)
			_, err = agent.Resume(t.Context(), d, replySet{"tc_3": brought("r3"), "tc_1": brought("r1")}.of(d)...)
			require.ErrorIs(t, err, executor.ErrUnknownCall)

			d, err = agent.Resume(t.Context(), reloaded(t, d), replySet{"tc_2": brought("r2"), "tc_1": brought("r1")}.of(reloaded(t, d))...)
			require.NoError(t, err, "the same result again changes nothing")
			require.Equal(t, "Done.", d.Text())
			require.Equal(t, []string{"r1", "r2"}, outcomes(t, d))
			require.Equal(t, []string{"tc_1", "tc_2"}, []string{results(t, d)[0].CallID, results(t, d)[1].CallID})
			require.Equal(t, []string{c1.ID, c2.ID}, resumed)
		},
	},
	{
		id: "A6", says: "what is written about a call for operators holds no arguments",
		differs: "Events are for the program itself and hold the call whole; what goes into a log is for the program to choose. What Plait itself " +
			"logs holds no arguments.",
		test: func(t *testing.T) {
			var log bytes.Buffer
			agent := executor.Agent{
				Provider: apitest.NewScript(apitest.Call(named("tc_1", "missing", `{"key":"SECRET"}`), named("tc_2", "act", `{"key":"SECRET"}`))),
				Strategy: executor.DeferAll(), Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			}
			_, end, err := watch(t, agent.Stream(t.Context(), ask(tooltest.Returning("act", ""))))
			require.ErrorIs(t, err, executor.ErrPaused)
			require.NotContains(t, err.Error(), "SECRET")
			require.Contains(t, log.String(), "missing")
			require.NotContains(t, log.String(), "SECRET")
			require.Equal(t, content.JSON(`{"key":"SECRET"}`), end.DAG.Pending()[0].Call.Input)
		},
	},
	{id: "A7", says: "a pause says which turn it is, why, and for how many calls of which kind; and who resumes it learns the same", test: func(t *testing.T) {
		resumed := executor.Continuation{}
		agent := executor.Agent{
			Provider: apitest.NewScript(apitest.Call(named("tc_1", "echo", `{"text":"hello"}`)), apitest.Say("Done.")), Strategy: executor.DeferAll(),
			Hooks: []executor.Hook{{Resume: func(_ context.Context, c executor.Continuation) error { resumed = c; return nil }}},
		}
		all, end, err := watch(t, agent.Stream(t.Context(), ask(echo)))
		require.ErrorIs(t, err, executor.ErrPaused)
		c := only[executor.Paused](all)[0].Continuation
		require.Equal(t, 1, end.Stop.Turns)
		require.Equal(t, content.StopResults, c.Reason)
		require.NotEmpty(t, c.ID)
		require.Len(t, end.DAG.Pending(), 1)
		require.False(t, end.DAG.Pending()[0].Approval)
		require.True(t, end.DAG.Pending()[0].Deferred)

		all, _, err = watch(t, agent.ResumeStream(t.Context(), end.DAG, replySet{"tc_1": brought("ok")}.of(end.DAG)...))
		require.NoError(t, err)
		require.Equal(t, c, resumed)
		turns := only[executor.TurnEnd](all)
		require.Equal(t, []int{1, 2}, []int{turns[0].Turn, turns[1].Turn}, "the turn that paused ends where it is resumed")
	}},
	{
		id: "A8", says: "arguments that are no JSON are not carried out",
		differs: "The model is told where its JSON breaks and what it wrote, in the form of every other mistake in arguments.",
		test: func(t *testing.T) {
			act, ran := spy("act")
			d, err := executor.Run(t.Context(), once(named("tc_1", "act", `{"a": oops`), named("tc_2", "act", `[1]`)), ask(act))
			require.NoError(t, err)
			require.Empty(t, ran())
			require.Contains(t, outcomes(t, d)[0], "error: Validation failed for tool \"act\":\n  - root: not valid JSON")
			require.Contains(t, outcomes(t, d)[0], `{"a": oops`)
			require.Contains(t, outcomes(t, d)[1], "root: must be object, is array")
		},
	},
	{id: "A9", says: "a result over the limit is cut, the marker inside the limit", test: func(t *testing.T) {
		long := tool("long", func(context.Context) (any, error) { return strings.Repeat("ä", 500), nil })
		agent := executor.Agent{Provider: once(call("long")), Hooks: []executor.Hook{executor.OutputLimit{MaxBytes: 100, KeepFull: true}.Hook()}}
		all, end, err := watch(t, agent.Stream(t.Context(), ask(long)))
		require.NoError(t, err)
		short := outcomes(t, end.DAG)[0]
		require.LessOrEqual(t, len(short), 100)
		require.Contains(t, short, "[truncated]")
		require.Equal(t, strings.ToValidUTF8(short, "?"), short)
		require.Equal(t, strings.Repeat("ä", 500), only[executor.ToolEnd](all)[0].Execution.Full.Text(), "the whole stays on the execution")
	}},
	{
		id: "A10", says: "foo.bar calls foo_bar, and the record has both names",
		differs: "A hook does it that has to be asked for, executor.Underscores: a name that fits no tool is an error otherwise.",
		test: func(t *testing.T) {
			act, ran := spy("foo_bar")
			agent := executor.Agent{Provider: once(named("tc_1", "foo.bar", `{}`)), Hooks: []executor.Hook{executor.Underscores()}}
			all, _, err := watch(t, agent.Stream(t.Context(), ask(act)))
			require.NoError(t, err)
			require.Len(t, ran(), 1)
			done := only[executor.ToolEnd](all)[0].Execution
			require.Equal(t, "foo.bar", done.Tool)
			require.Equal(t, "foo_bar", done.Ran.Tool)

			agent = executor.Agent{Provider: once(named("tc_1", "foo.bar", `{}`))}
			d, err := agent.Run(t.Context(), ask(act))
			require.NoError(t, err)
			require.Equal(t, []string{`error: Tool "foo.bar" not found. Available tools: foo_bar`}, outcomes(t, d))
			require.Len(t, ran(), 1)
		},
	},
	{id: "A11", says: "whoever decides about a call sees only the name that is carried out", test: func(t *testing.T) {
		var asked []string
		agent := executor.Agent{Provider: once(named("tc_1", "foo.bar", `{}`)), Hooks: []executor.Hook{
			before(func(c executor.Call) executor.Decision { asked = append(asked, c.Name); return executor.Allow() }), executor.Underscores(),
		}}
		_, err := agent.Run(t.Context(), ask(tooltest.Returning("foo_bar", "")))
		require.NoError(t, err)
		require.Equal(t, []string{"foo_bar"}, asked)
	}},
	{
		id: "A12", says: "the text of a tool's error can be kept from the model",
		differs: "The model is told the text unless Agent.HideErrors says not to: most tools' errors are written for it.",
		test: func(t *testing.T) {
			leaks := tool("leaks", func(context.Context) (any, error) { return nil, errors.New("SECRET") })
			throws := tool("throws", func(context.Context) (any, error) { panic("SECRET") })
			for _, hide := range []bool{true, false} {
				agent := executor.Agent{Provider: once(call("leaks"), call("throws")), HideErrors: hide}
				d, err := agent.Run(t.Context(), ask(leaks, throws))
				require.NoError(t, err)
				var saved bytes.Buffer
				require.NoError(t, d.Write(&saved))
				require.Equal(t, !hide, strings.Contains(saved.String(), "SECRET"))
				if hide {
					require.Equal(t, []string{`error: Tool "leaks" failed.`, `error: Tool "throws" failed.`}, outcomes(t, d))
				} else {
					require.Equal(t, []string{"error: SECRET", `error: Tool "throws" panicked: SECRET`}, outcomes(t, d))
				}
			}
		},
	},
	{
		id: "A13", says: "of two calls, where one is allowed, the first is carried out",
		differs: "The model's message is never edited: the call beyond the limit stays in it and gets an error result, in call order, that says so.",
		test: func(t *testing.T) {
			a, ranA := spy("a")
			b, ranB := spy("b")
			agent := executor.Agent{Provider: once(call("a"), call("b")), Limits: executor.Limits{CallsPerTurn: 1}}
			all, end, err := watch(t, agent.Stream(t.Context(), ask(a, b)))
			require.NoError(t, err)
			require.Len(t, ranA(), 1)
			require.Empty(t, ranB())
			require.Len(t, end.DAG.Messages()[1].Blocks.ToolUses(), 2)
			require.Equal(t, "ran {}", outcomes(t, end.DAG)[0])
			require.Contains(t, outcomes(t, end.DAG)[1], "error: ")
			require.Contains(t, outcomes(t, end.DAG)[1], "the limit of calls in one response is 1. Call it again if it is still needed.")
			done := only[executor.TurnEnd](all)[0].Executions
			require.Equal(t, []string{"a", "b"}, []string{done[0].Tool, done[1].Tool})
			require.Equal(t, "Done.", end.DAG.Text())

			half := ask(a, b).Assistant("", call("a"), call("b")).AppendExecutions(node.ToolExecution{Tool: "a", Result: content.Words("before the crash")})
			agent.Provider = apitest.NewScript(apitest.Say("Done."))
			d, err := agent.Run(t.Context(), half)
			require.NoError(t, err)
			require.Contains(t, outcomes(t, d)[1], "the limit of calls in one response is 1. Call it again if it is still needed.")
			require.Empty(t, ranB(), "what was carried out before counts")
		},
	},
	{
		id: "A14", says: "a model that used tools and then says nothing is asked for its answer once, without tools",
		differs: "A hook does it that has to be asked for, executor.AskAgain. The tools stay declared and are switched off by the options, so that a " +
			"prompt cache survives.",
		test: func(t *testing.T) {
			model := apitest.NewScript(apitest.Call(call("fast")), apitest.Say(""), apitest.Say("At last."))
			d, err := executor.Agent{Provider: model, Hooks: []executor.Hook{executor.AskAgain()}}.Run(t.Context(), ask(fast))
			requireAskedAgain(t, model, d, err)

			model = apitest.NewScript(apitest.Call(call("fast")), apitest.Say(""), apitest.Say(" "), apitest.Say("never"))
			_, err = executor.Agent{Provider: model, Hooks: []executor.Hook{executor.AskAgain()}}.Run(t.Context(), ask(fast))
			require.NoError(t, err)
			require.Len(t, model.Requests(), 3, "once")

			model = apitest.NewScript(apitest.Say(""), apitest.Say("never"))
			_, err = executor.Agent{Provider: model, Hooks: []executor.Hook{executor.AskAgain()}}.Run(t.Context(), ask(fast))
			require.NoError(t, err)
			require.Len(t, model.Requests(), 1, "only after tools")
		},
	},
	{
		id: "A15", says: "so is one that is watched",
		differs: "As A14.",
		test: func(t *testing.T) {
			model := apitest.NewScript(apitest.Call(call("fast")), apitest.Say(""), apitest.Say("At last."))
			agent := executor.Agent{Provider: model, Hooks: []executor.Hook{executor.AskAgain()}}
			all, end, err := watch(t, agent.Stream(t.Context(), ask(fast)))
			requireAskedAgain(t, model, end.DAG, err)
			require.Len(t, only[executor.TurnStart](all), 3)
			require.Equal(t, content.StopEndTurn, end.Stop.Reason)
		},
	},
	{
		id: "A16", says: "a tool that is not there is an error that the model can recover from",
		differs: "The text is another one, and names the tools that there are.",
		test: func(t *testing.T) {
			model := apitest.NewScript(apitest.Call(call("missing")), apitest.Say("Recovered."))
			d, err := executor.Run(t.Context(), model, ask(fast, echo))
			require.NoError(t, err)
			require.Equal(t, "Recovered.", d.Text())
			require.Equal(t, []string{`error: Tool "missing" not found. Available tools: fast, echo`}, outcomes(t, d))
		},
	},
	{id: "A17", says: "a run stops at its limit of turns", test: func(t *testing.T) {
		model := apitest.NewScript(apitest.Call(call("fast")).Always())
		d, err := executor.Agent{Provider: model, Limits: executor.Limits{Turns: 3}}.Run(t.Context(), ask(fast))
		require.NoError(t, err)
		require.Equal(t, content.StopMaxTurns, stopped(t, d).Reason)
		require.Len(t, model.Requests(), 3)
		require.Equal(t, "uararar", roles(d))
	}},
	{
		id: "A18", says: "a limit of no turns, or fewer, is no limit that a run could keep",
		differs: "It is no error: 0 is the default of 50, as every zero value is a default, and a negative limit is none.",
		test: func(t *testing.T) {
			for limit, turns := range map[int]int{0: 50, -1: 60} {
				left := 60
				model := apitest.NewScript(apitest.Func(func(api.Request) apitest.Turn {
					if left--; left == 0 {
						return apitest.Say("Done.")
					}
					return apitest.Call(call("fast"))
				}).Always())
				d, err := executor.Agent{Provider: model, Limits: executor.Limits{Turns: limit}}.Run(t.Context(), ask(fast))
				require.NoError(t, err)
				require.Equal(t, turns, stopped(t, d).Turns)
			}
		},
	},
	{
		id: "A19", says: "a call that is denied is not carried out, and the record says why",
		differs: "The record is what the model is told, so the reason stands behind \"Tool call denied: \" in it.",
		test: func(t *testing.T) {
			act, ran := spy("act")
			risky := before(func(executor.Call) executor.Decision { return executor.Deny("too risky") })
			all, end, err := watch(t, executor.Agent{Provider: once(call("act")), Hooks: []executor.Hook{risky}}.Stream(t.Context(), ask(act)))
			require.NoError(t, err)
			require.Empty(t, ran())
			require.Equal(t, "Tool call denied: too risky", only[executor.ToolEnd](all)[0].Execution.Result.Text())
			require.Equal(t, []string{"error: Tool call denied: too risky"}, outcomes(t, end.DAG))

			d, err := executor.Agent{Provider: once(call("act"), call("fast")), Hooks: []executor.Hook{executor.Only("fast")}}.Run(t.Context(), ask(act, fast))
			require.NoError(t, err)
			require.Equal(t, []string{"error: Tool call denied: tool access denied by default", "fast"}, outcomes(t, d))
		},
	},
	{id: "A20", says: "a call that needs approval waits for it, and is carried out once it has it", test: func(t *testing.T) {
		act, ran := spy("act")
		asked := 0
		model := once(named("tc_1", "act", `{}`))
		agent := executor.Agent{Provider: model, Hooks: []executor.Hook{before(func(executor.Call) executor.Decision {
			asked++
			return executor.AskApproval("it is risky")
		})}}
		d, err := agent.Run(t.Context(), ask(act))
		c := paused(t, err)
		require.Equal(t, content.StopApproval, c.Reason)
		require.Equal(t, []string{"tc_1"}, waiting(d))
		require.Equal(t, "it is risky", d.Pending()[0].Note)
		require.Len(t, model.Requests(), 1)
		require.Empty(t, ran())

		_, err = agent.Resume(t.Context(), d)
		require.ErrorIs(t, err, executor.ErrMissingReply)
		all, end, err := watch(t, agent.ResumeStream(t.Context(), d, replySet{"tc_1": approved()}.of(d)...))
		require.NoError(t, err)
		require.Len(t, ran(), 1)
		require.Equal(t, c.Run, only[executor.RunStart](all)[0].Run)
		require.Equal(t, "Done.", end.DAG.Text())
		require.Equal(t, 1, asked, "no hook is asked again")

		strict := executor.NewTool(content.Tool{Name: "strict", Schema: `{"type":"object","properties":{"value":{"type":"string"}}}`},
			func(_ context.Context, c executor.Call) (executor.Result, error) {
				return executor.ResultOf(string(c.Input))
			})
		change := before(func(executor.Call) executor.Decision { return executor.Modify(`{"value":123}`) })
		wrong := "error: Validation failed for tool \"strict\":\n  - value: must be string, is integer\n\nReceived arguments:\n"
		for want, reply := range map[string]answer{
			`{"value":123}`: approved(), wrong + `{"value":4}`: approvedWith(`{"value":4}`),
		} {
			agent = executor.Agent{Provider: once(named("tc_1", "strict", `{}`)), Hooks: []executor.Hook{change, executor.RequireApproval()}}
			d, err = agent.Run(t.Context(), ask(strict))
			require.ErrorIs(t, err, executor.ErrPaused)
			d, err = agent.Resume(t.Context(), d, replySet{"tc_1": reply}.of(d)...)
			require.NoError(t, err)
			require.Equal(t, []string{want}, outcomes(t, d), "only what a person made of the arguments is checked")
		}
	}},
	{
		id: "A21", says: "of two calls that need approval one is denied and one allowed, and then waits for its result",
		test: func(t *testing.T) {
			act, ran := spy("act")
			model := once(named("tc_1", "act", `{}`), named("tc_2", "act", `{}`))
			agent := executor.Agent{Provider: model, Strategy: executor.DeferAll(), Hooks: []executor.Hook{executor.RequireApproval()}}
			d, err := agent.Run(t.Context(), ask(act))
			c1 := paused(t, err)
			require.Equal(t, content.StopApproval, c1.Reason)
			require.Len(t, d.Pending(), 2)

			d, err = agent.Resume(t.Context(), d, replySet{"tc_1": declined(""), "tc_2": approved()}.of(d)...)
			c2 := paused(t, err)
			require.Equal(t, content.StopResults, c2.Reason)
			require.Equal(t, []string{"tc_2"}, waiting(d))
			require.Equal(t, []string{"error: Tool call denied: denied by user"}, outcomes(t, d))
			require.Len(t, model.Requests(), 1)
			require.Empty(t, ran())

			d, err = agent.Resume(t.Context(), d, replySet{"tc_2": brought("ok")}.of(d)...)
			require.NoError(t, err)
			require.Equal(t, []string{"error: Tool call denied: denied by user", "ok"}, outcomes(t, d))
		},
	},
	{id: "A22", says: "a call that waits for approval has not started, and the stream ends once", test: func(t *testing.T) {
		agent := executor.Agent{Provider: once(call("fast")), Hooks: []executor.Hook{executor.RequireApproval()}}
		told, _, err := story(agent.Stream(t.Context(), ask(fast)))
		require.ErrorIs(t, err, executor.ErrPaused)
		require.Equal(t, []string{"run", "turn 1", "(assistant", "block", ")", "paused", "end: awaiting_approval"}, told)
	}},
	{id: "A23", says: "a call that waits for its result has not started, and the stream ends once", test: func(t *testing.T) {
		agent := executor.Agent{Provider: once(call("fast")), Strategy: executor.DeferAll()}
		told, _, err := story(agent.Stream(t.Context(), ask(fast)))
		require.ErrorIs(t, err, executor.ErrPaused)
		require.Equal(t, []string{"run", "turn 1", "(assistant", "block", ")", "paused", "end: awaiting_tool_results"}, told)
	}},
	{id: "A24", says: "where a run is resumed, the call starts and ends, the model speaks, and the stream ends", test: func(t *testing.T) {
		agent, d, _, _ := deferredEcho(t, "tc_1")
		told, _, err := story(agent.ResumeStream(t.Context(), d, replySet{"tc_1": brought("ok")}.of(d)...))
		require.NoError(t, err)
		require.Equal(t, []string{
			"run", "start 0", "end 0", "(user", ")", "turn end 1", "turn 2", "(assistant", "block", ")", "turn end 2", "end: end_turn",
		}, told)
	}},
	{id: "A25", says: "a stream with a tool ends once", test: func(t *testing.T) {
		all, end, err := watch(t, executor.Stream(t.Context(), once(call("fast")), ask(fast)))
		require.NoError(t, err)
		require.Len(t, only[executor.End](all), 1)
		require.Equal(t, content.StopEndTurn, end.Stop.Reason)
	}},
	{id: "A26", says: "a result of words and an image stays two blocks", test: func(t *testing.T) {
		blocks := []content.Block{content.Text{Text: "Here:"}, content.Image{Source: content.Source{URL: "https://example.com/a.png"}}}
		d, err := executor.Run(t.Context(), once(call("draw")), ask(tool("draw", func(context.Context) (any, error) { return blocks, nil })))
		require.NoError(t, err)
		require.Equal(t, blocks, results(t, d)[0].Content.Slice())
	}},
	{
		id: "A27", says: "a result of words stays words",
		differs: "It is a list of one text: content is a list of blocks everywhere, and how it is written on the wire is for the provider to say.",
		test: func(t *testing.T) {
			d, err := executor.Run(t.Context(), once(call("fast")), ask(fast))
			require.NoError(t, err)
			require.Equal(t, []content.Block{content.Text{Text: "fast"}}, results(t, d)[0].Content.Slice())
		},
	},
	{
		id: "A28", says: "an image that cannot be sent does not reach the model as one",
		differs: "An image without bytes or an address is an error, in words that name the block. One without a type is kept: when it is sent, its " +
			"bytes say what it is, and where they do not, it becomes words.",
		test: func(t *testing.T) {
			draw := func(image content.Image) content.ToolResult {
				d, err := executor.Run(t.Context(), once(call("draw")), ask(tool("draw", func(context.Context) (any, error) { return image, nil })))
				require.NoError(t, err)
				return results(t, d)[0]
			}
			require.Equal(t, "error: block 0 (image): its source needs exactly one of data, text, URL and file ID; it has 0", outcome(draw(content.Image{})))
			for data, want := range map[string]bool{"R0lGODlhAQABAAAAACw=": true, "AAAA": false} {
				kept := draw(content.Image{Source: content.Source{Data: data}})
				require.False(t, kept.IsError)
				target, _ := dialect.TargetOf("anthropic")
				sent, why := target.Accept(content.User, kept.Content.At(0), true)
				image, isImage := sent.(content.Image)
				require.Equal(t, want, isImage, why)
				require.NotEmpty(t, why)
				if isImage {
					require.Equal(t, "image/gif", image.Source.MediaType)
				}
			}
		},
	},
	{id: "A29", says: "a provider that gives no answer at all is an error, and the run ends", test: func(t *testing.T) {
		all, end, err := watch(t, executor.Stream(t.Context(), noSequence{}, ask()))
		require.ErrorIs(t, err, api.ErrProtocol)
		require.Equal(t, content.StopError, end.Stop.Reason)
		require.Len(t, only[executor.TurnEnd](all), 1)
	}},
	{
		id: "A30", says: "a request over the budget is not sent, and the error comes after the events",
		differs: "Plait counts no tokens before a request is made, because only the provider knows them: a Hook.Send that does may refuse it, " +
			"what is reserved for the answer included.",
		test: func(t *testing.T) {
			tooLong := errors.New("the request is too long")
			budget := func(tokens int) executor.Hook {
				return executor.Hook{Send: func(_ context.Context, req api.Request) (api.Request, error) {
					counted := req.Options.MaxTokens
					for _, m := range req.Messages {
						counted += len(m.Blocks.Text()) / 4
					}
					if counted > tokens {
						return req, tooLong
					}
					return req, nil
				}}
			}
			for tokens, fits := range map[int]bool{90: false, 100: false, 150: true} {
				model := apitest.NewScript(apitest.Say("Done."))
				agent := executor.Agent{Provider: model, Options: api.Options{MaxTokens: 50}, Hooks: []executor.Hook{budget(tokens)}}
				told, end, err := story(agent.Stream(t.Context(), dag.New().User(strings.Repeat("word", 100))))
				if fits {
					require.NoError(t, err)
					continue
				}
				require.ErrorIs(t, err, tooLong)
				require.Equal(t, []string{"run", "turn 1", "turn end 1", "end: error"}, told)
				require.Equal(t, "u", roles(end.DAG))
				require.Empty(t, model.Requests())
			}
		},
	},
	{id: "A31", says: "what each turn took is kept, and the run has the sum", test: func(t *testing.T) {
		model := apitest.NewScript(
			apitest.Call(call("fast")).Usage(content.Usage{Input: 10, Output: 2}), apitest.Say("Done.").Usage(content.Usage{Input: 6, Output: 4}),
		)
		d, err := executor.Run(t.Context(), model, ask(fast))
		require.NoError(t, err)
		require.EqualValues(t, 22, stopped(t, d).Usage.Total())
		var each []int64
		for _, n := range d.Nodes() {
			if m, ok := n.Message(); ok && m.Role == content.Assistant {
				each = append(each, m.Answer.Usage.Total())
			}
		}
		require.Equal(t, []int64{12, 10}, each)

		spends := tool("spends", func(context.Context) (any, error) { return executor.Result{Usage: content.Usage{Input: 5}}, nil })
		far := executor.DeferredTool(content.Tool{Name: "far", Schema: `{"type":"object"}`})
		agent := executor.Agent{Provider: apitest.NewScript(
			apitest.Call(call("spends")), apitest.Call(call("spends"), named("tc_1", "far", "{}")).Usage(content.Usage{Input: 9}), apitest.Say("Done."),
		)}
		all, end, err := watch(t, agent.Stream(t.Context(), ask(spends, far)))
		require.ErrorIs(t, err, executor.ErrPaused)
		require.EqualValues(t, 5, only[executor.TurnEnd](all)[0].ToolUsage.Total(), "what tools take is counted once, and apart")
		require.Len(t, only[executor.TurnEnd](all), 1)
		require.EqualValues(t, 10, end.Stop.ToolUsage.Total())
		bill := returned(executor.Result{Usage: content.Usage{Output: 2}})
		all, end, err = watch(t, agent.ResumeStream(t.Context(), end.DAG, replySet{"tc_1": bill}.of(end.DAG)...))
		require.NoError(t, err)
		require.EqualValues(t, 12, end.Stop.ToolUsage.Total())
		require.EqualValues(t, 9, only[executor.TurnEnd](all)[0].Usage.Total(), "a turn that paused has its usage too")
	}},
	{
		id: "A32", says: "a continuation is written with the attributes that are named, cut, and read in one version only",
		differs: "There are no traces to leave out: what happened stands in the conversation, which is saved beside it.",
		test: func(t *testing.T) {
			ctx := executor.WithAttributes(t.Context(), map[string]any{"tenant_id": strings.Repeat("ä", 200), "api_key": "SECRET"})
			_, err := executor.Agent{Provider: once(call("fast")), Strategy: executor.DeferAll()}.Run(ctx, ask(fast))
			c := paused(t, err)

			data, err := executor.ContinuationCodec{}.Encode(c)
			require.NoError(t, err)
			require.NotContains(t, string(data), "tenant_id")

			codec := executor.ContinuationCodec{Keys: []string{"tenant_id"}}
			data, err = codec.Encode(c)
			require.NoError(t, err)
			require.NotContains(t, string(data), "SECRET")
			read, err := codec.Decode(data)
			require.NoError(t, err)
			require.Equal(t, map[string]any{"tenant_id": strings.Repeat("ä", 100)}, read.Attributes, "200 bytes")
			read.Attributes = c.Attributes
			require.Equal(t, c, read)

			newer := bytes.Replace(data, []byte(`"schema_version":2`), []byte(`"schema_version":999`), 1)
			_, err = codec.Decode(newer)
			require.ErrorIs(t, err, dag.ErrVersion)
		},
	},
	{
		id: "A33", says: "the calls that wait are written as tasks, with their ids and arguments",
		differs: "Each call is a task of its own, as a worker gets it, in place of one list for all.",
		test: func(t *testing.T) {
			act, _ := spy("foo_bar")
			model := apitest.NewScript(apitest.Call(named("tc_1", "foo.bar", `{"text":"hello"}`), named("tc_2", "foo_bar", `{}`)))
			agent := executor.Agent{Provider: model, Strategy: executor.DeferAll(), Hooks: []executor.Hook{executor.Underscores()}}
			d, err := agent.Run(executor.WithAttributes(t.Context(), map[string]any{"tenant_id": 7, "api_key": "SECRET"}), ask(act))
			c := paused(t, err)
			codec := executor.ToolTaskCodec{Keys: []string{"tenant_id"}}
			tasks, err := codec.Encode(d, c.Attributes)
			require.NoError(t, err)
			require.Len(t, tasks, 2)
			first, err := codec.Decode(tasks[0])
			require.NoError(t, err)
			require.Equal(t, executor.ToolTask{
				Run: c.Run, Continuation: c.ID, Pending: d.Pending()[0], Attributes: map[string]string{"tenant_id": "7"},
			}, first)
			require.Equal(t, "foo_bar", first.Pending.Call.Name)

			d, err = executor.Agent{Provider: once(call("foo_bar")), Hooks: []executor.Hook{executor.RequireApproval()}}.Run(t.Context(), ask(act))
			require.ErrorIs(t, err, executor.ErrPaused)
			_, err = codec.Encode(d, nil)
			require.Error(t, err, "nobody is to carry out yet what waits for approval")
		},
	},
	{id: "A34", says: "a pool runs only those tools together that are marked for it, and all others before them", test: func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			at := map[string]time.Duration{}
			var mu sync.Mutex
			notes := func(name string) executor.Tool {
				return tool(name, func(ctx context.Context) (any, error) {
					mu.Lock()
					at[name] = time.Since(begun)
					mu.Unlock()
					return name, wait(ctx, time.Second)
				})
			}
			marked := func(name string) executor.Tool { return executor.WithMode(notes(name), executor.ModeParallel) }
			agent := executor.Agent{Provider: once(call("a"), call("x"), call("b"), call("c"), call("y")), Strategy: executor.Pool(2)}
			d, err := agent.Run(t.Context(), ask(marked("a"), notes("x"), marked("b"), marked("c"), notes("y")))
			require.NoError(t, err)
			require.Equal(t, map[string]time.Duration{"x": 0, "y": time.Second, "a": 2 * time.Second, "b": 2 * time.Second, "c": 3 * time.Second}, at)
			require.Equal(t, []string{"a", "x", "b", "c", "y"}, outcomes(t, d))
		})
	}},
	{
		id: "A35", says: "a tool that throws what no tool should throw does not hang the run",
		differs: "It is not thrown again: whatever a tool panics with is an error result, as every other failure is.",
		test: func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				throws := executor.WithMode(tool("throws", func(context.Context) (any, error) { panic(struct{ code int }{7}) }), executor.ModeParallel)
				agent := executor.Agent{Provider: once(call("throws"), call("throws"), call("fast")), Strategy: executor.Pool(1)}
				d, err := agent.Run(t.Context(), ask(throws, fast))
				require.NoError(t, err)
				thrown := `error: Tool "throws" panicked: {7}`
				require.Equal(t, []string{thrown, thrown, "fast"}, outcomes(t, d))
				require.Zero(t, time.Since(begun))
			})
		},
	},
	{id: "A36", says: "an observer that fails disturbs neither the run nor the other observers", test: func(t *testing.T) {
		var seen int
		var failed []string
		events := executor.Tee(executor.Stream(t.Context(), once(call("fast")), ask(fast)),
			func(observer int, err error) { failed = append(failed, fmt.Sprint(observer, ": ", err)) },
			func(executor.Event, error) { panic("oh no") },
			func(executor.Event, error) { seen++ },
		)
		all, end, err := watch(t, events)
		require.NoError(t, err)
		require.Equal(t, "Done.", end.DAG.Text())
		require.Len(t, all, seen)
		require.Equal(t, []string{"0: executor: an observer panicked: oh no"}, failed)
	}},
}

// deferredEcho is a run that waits for the results of calls from outside.
func deferredEcho(t *testing.T, ids ...string) (executor.Agent, dag.DAG, executor.Continuation, *apitest.Script) {
	t.Helper()
	var calls []content.ToolUse
	for _, id := range ids {
		calls = append(calls, named(id, "echo", `{"text":"hello"}`))
	}
	model := once(calls...)
	agent := executor.Agent{Provider: model, Tools: []dag.Tool{echo}, Strategy: executor.DeferAll()}
	d, err := agent.Run(t.Context(), ask())
	return agent, d, paused(t, err), model
}

// requireAskedAgain fails unless the model's third request asked for an answer, without tools, and got one.
func requireAskedAgain(t *testing.T, model *apitest.Script, d dag.DAG, err error) {
	t.Helper()
	require.NoError(t, err)
	require.Equal(t, "At last.", d.Text())
	require.Equal(t, []string{"Go.", "Please provide your final answer."}, said(d))
	requests := model.Requests()
	require.Len(t, requests, 3)
	require.Equal(t, api.ToolsNone, requests[2].Options.ToolChoice)
	require.Equal(t, requests[0].Tools, requests[2].Tools)
	require.Empty(t, requests[1].Options.ToolChoice)
}

// CorteX.
var cortex = []conform{
	{id: "C1", says: "a tool that is not registered is blocked, logged and not looked for anywhere else", test: func(t *testing.T) {
		var log bytes.Buffer
		act, ran := spy("act")
		r := registry.Registry{Log: slog.New(slog.NewTextHandler(&log, nil))}
		require.NoError(t, r.Register(act))
		rec := r.Execute(t.Context(), "rm_rf", map[string]string{"path": "/"})
		require.False(t, rec.Success)
		require.Empty(t, rec.Output)
		require.True(t, strings.HasPrefix(rec.Error, "Tool not registered: rm_rf"), rec.Error)
		require.Contains(t, log.String(), "level=WARN")
		require.Contains(t, log.String(), "rm_rf")
		require.Empty(t, ran())
	}},
	{id: "C2", says: "a tool is given up at its timeout, and took about that long", test: func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := tooltest.Registry(t, taking("sleep", time.Minute))
			r.Timeout = 100 * time.Millisecond
			rec := r.Execute(t.Context(), "sleep", nil)
			require.False(t, rec.Success)
			require.Equal(t, "Tool exceeded timeout of 100ms.", rec.Error)
			require.Equal(t, 100*time.Millisecond, rec.Latency)

			r = tooltest.Registry(t, taking("sleep", time.Minute))
			require.Equal(t, 30*time.Second, r.Execute(t.Context(), "sleep", nil).Latency, "by default")
		})
	}},
	{id: "C3", says: "a tool that fails is a failed result with its text", test: func(t *testing.T) {
		r := tooltest.Registry(t, broken, panics)
		rec := r.Execute(t.Context(), "broken", nil)
		require.Equal(t, registry.Record{Tool: "broken", Error: "it is broken", Latency: rec.Latency}, rec)
		rec = r.Execute(t.Context(), "panics", nil)
		require.False(t, rec.Success)
		require.Contains(t, rec.Error, "oh no")
	}},
	{id: "C4", says: "a long output is cut where it is logged, and whole in the result", test: func(t *testing.T) {
		rec := tooltest.Registry(t, tooltest.Returning("long", strings.Repeat("ä", 5000))).Execute(t.Context(), "long", nil)
		require.Equal(t, strings.Repeat("ä", 5000), rec.Output)
		data, err := json.Marshal(rec)
		require.NoError(t, err)
		var logged struct{ Output string }
		require.NoError(t, json.Unmarshal(data, &logged))
		require.Equal(t, strings.Repeat("ä", 2000), logged.Output)
	}},
	{id: "C5", says: "arguments that are no JSON are a failed result, and nothing is carried out", test: func(t *testing.T) {
		act, ran := spy("act")
		r := tooltest.Registry(t, act)
		rec := r.ExecuteCall(t.Context(), []byte(`{"function":{"name":"act","arguments":"{\"city\": oops"}}`))
		require.False(t, rec.Success)
		require.Equal(t, "act", rec.Tool)
		require.Contains(t, rec.Error, "function.arguments are not a JSON object")
		require.Empty(t, ran())
		rec = r.ExecuteCall(t.Context(), []byte(`{"function":{"name":"act","arguments":"{\"city\":\"London\"}"}}`))
		require.True(t, rec.Success, rec.Error)
		require.Equal(t, []content.JSON{`{"city":"London"}`}, ran())
	}},
	{id: "C6", says: "a success has its output, no error and how long it took", test: func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			rec := tooltest.Registry(t, taking("sleep", time.Second)).Execute(t.Context(), "sleep", nil)
			require.Equal(t, registry.Record{Tool: "sleep", Success: true, Output: "sleep", Latency: time.Second}, rec)
		})
	}},
}
