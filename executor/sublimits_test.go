package executor_test

import (
	"context"
	"slices"
	"sync/atomic"
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

// family counts the requests and the executed calls of an agent and its sub-agents.
type family struct {
	tally
	requests atomic.Int64
}

// model is a model that sends calls in each of the first turns, and then its text. It keeps no state.
func (f *family) model(turns int, calls ...content.ToolUse) api.Provider {
	return apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
		f.requests.Add(1)
		answered := 0
		for _, m := range req.Messages {
			if len(m.Blocks.ToolResults()) > 0 {
				answered++
			}
		}
		if answered >= turns {
			return apitest.Say("Done.")
		}
		return apitest.Call(calls...)
	}).Always())
}

// works is an agent that calls tools in each of the first turns.
func (f *family) works(turns int, names ...string) executor.Agent {
	var agent executor.Agent
	var calls []content.ToolUse
	for _, name := range names {
		agent.Tools, calls = append(agent.Tools, f.tool(name)), append(calls, plainCall(name))
	}
	agent.Provider = f.model(turns, calls...)
	return agent
}

// delegates is an agent that calls each sub-agent once, all at the same time.
func (f *family) delegates(limits executor.Limits, subs ...executor.Agent) executor.Agent {
	agent := executor.Agent{Limits: limits}
	var calls []content.ToolUse
	for i, sub := range subs {
		name := "sub" + string(rune('a'+i))
		agent.Tools, calls = append(agent.Tools, executor.SubAgent(name, "", sub)), append(calls, toSub(name, name))
	}
	agent.Provider = f.model(1, calls...)
	return agent
}

// ends returns the stop reasons of the runs in a conversation, those inside calls first, and checks that every call has
// its result.
func ends(t *testing.T, d dag.DAG) (list []content.Stop) {
	t.Helper()
	requireValid(t, d)
	require.Empty(t, d.OpenCalls())
	for _, n := range d.Nodes() {
		if e, ok := n.Payload().(node.ToolExecution); ok && e.Child.Len() > 0 {
			list = append(list, ends(t, dag.New().WithHeads(e.Child.Slice()...))...)
		}
	}
	return append(list, stopped(t, d).Reason)
}

func TestTurnsOfSubAgentsCountInALimitThatTheProgramSet(t *testing.T) {
	turns := func(n int) executor.Limits { return executor.Limits{Turns: n} }

	for name, c := range map[string]struct {
		build    func(*family) executor.Agent
		requests int
		ran      int
		ends     []content.Stop
	}{
		"used up in the sub-agent": {
			func(f *family) executor.Agent { return f.delegates(turns(4), f.works(9, "look")) },
			4, 3, []content.Stop{content.StopMaxTurns, content.StopMaxTurns},
		},
		"used up before the sub-agent": {
			func(f *family) executor.Agent { return f.delegates(turns(1), f.works(9, "look")) },
			1, 0, []content.Stop{content.StopMaxTurns, content.StopMaxTurns},
		},
		"used up by the sub-agent's last turn": {
			func(f *family) executor.Agent { return f.delegates(turns(4), f.works(2, "look")) },
			4, 2, []content.Stop{content.StopEndTurn, content.StopMaxTurns},
		},
		"enough for all": {
			func(f *family) executor.Agent { return f.delegates(turns(5), f.works(2, "look")) },
			5, 2, []content.Stop{content.StopEndTurn, content.StopEndTurn},
		},
		"used up two sub-agents deep": {
			func(f *family) executor.Agent {
				return f.delegates(turns(4), f.delegates(executor.Limits{}, f.works(9, "look")))
			},
			4, 2, []content.Stop{content.StopMaxTurns, content.StopMaxTurns, content.StopMaxTurns},
		},
		"only that of the run between": {
			func(f *family) executor.Agent {
				return f.delegates(turns(9), f.delegates(turns(3), f.works(9, "look")))
			},
			5, 2, []content.Stop{content.StopMaxTurns, content.StopMaxTurns, content.StopEndTurn},
		},
		"only that of the sub-agent": {
			func(f *family) executor.Agent {
				sub := f.works(9, "look")
				sub.Limits = turns(2)
				return f.delegates(turns(9), sub)
			},
			4, 2, []content.Stop{content.StopMaxTurns, content.StopEndTurn},
		},
		"the default is that of each run": {
			func(f *family) executor.Agent {
				sub := f.works(60, "look")
				sub.Limits = turns(-1)
				return f.delegates(executor.Limits{}, sub)
			},
			63, 60, []content.Stop{content.StopEndTurn, content.StopEndTurn},
		},
		"a run in a function of the program": {
			func(f *family) executor.Agent {
				inner := f.works(9, "look")
				nest := tool("nest", func(ctx context.Context) (any, error) {
					d, err := inner.Run(ctx, dag.New().User("Go."))
					return d.Text(), err
				})
				return executor.Agent{Provider: f.model(1, plainCall("nest")), Tools: []dag.Tool{nest}, Limits: turns(4)}
			},
			4, 3, []content.Stop{content.StopMaxTurns, content.StopMaxTurns},
		},
	} {
		var f family
		d, err := c.build(&f).Run(t.Context(), dag.New().User("Go."))
		require.NoError(t, err, name)

		require.EqualValues(t, c.requests, f.requests.Load(), name)
		require.Len(t, f.ran(), c.ran, name)
		require.Equal(t, c.ends, ends(t, d), name)
	}
}

func TestCallsOfSubAgentsCountInTheLimitOfTheRunAround(t *testing.T) {
	calls := func(n int) executor.Limits { return executor.Limits{Calls: n} }

	for name, c := range map[string]struct {
		build    func(*family) executor.Agent
		requests int
		ran      []string
		ends     []content.Stop
	}{
		"beyond it in one message": {
			func(f *family) executor.Agent { return f.delegates(calls(3), f.works(1, "one", "two", "three")) },
			2, []string{"one", "two"}, []content.Stop{content.StopCallLimit, content.StopCallLimit},
		},
		"beyond it in several messages": {
			func(f *family) executor.Agent { return f.delegates(calls(3), f.works(9, "look")) },
			4, []string{"look", "look"}, []content.Stop{content.StopCallLimit, content.StopCallLimit},
		},
		"no call beyond it": {
			func(f *family) executor.Agent { return f.delegates(calls(3), f.works(1, "one", "two")) },
			4, []string{"one", "two"}, []content.Stop{content.StopEndTurn, content.StopEndTurn},
		},
		"two sub-agents deep": {
			func(f *family) executor.Agent {
				return f.delegates(calls(3), f.delegates(executor.Limits{}, f.works(1, "one", "two")))
			},
			3, []string{"one"}, []content.Stop{content.StopCallLimit, content.StopCallLimit, content.StopCallLimit},
		},
		"only that of the sub-agent": {
			func(f *family) executor.Agent {
				sub := f.works(1, "one", "two")
				sub.Limits = calls(1)
				return f.delegates(calls(2), sub)
			},
			3, []string{"one"}, []content.Stop{content.StopCallLimit, content.StopEndTurn},
		},
		"what the sub-agent's own limit refuses does not count": {
			func(f *family) executor.Agent {
				sub := f.works(1, "one", "two", "three")
				sub.Limits = calls(1)
				agent := f.delegates(calls(3), sub)
				agent.Tools = append(agent.Tools, f.tool("last"))
				agent.Provider = apitest.NewScript(apitest.Call(toSub("suba", "suba")), apitest.Call(plainCall("last")), apitest.Say("Done."))
				return agent
			},
			1, []string{"last", "one"}, []content.Stop{content.StopCallLimit, content.StopEndTurn},
		},
	} {
		var f family
		d, err := c.build(&f).Run(t.Context(), dag.New().User("Go."))
		require.NoError(t, err, name)

		require.EqualValues(t, c.requests, f.requests.Load(), name)
		require.Equal(t, c.ran, f.ran(), name)
		require.Equal(t, c.ends, ends(t, d), name)
	}
}

func TestResultOfASubAgentNamesTheLimitOfTheRunAround(t *testing.T) {
	for limits, want := range map[executor.Limits]string{
		{Turns: 2}: "[Agent stopped: max_turns]",
		{Calls: 1}: "[Agent stopped: tool_call_limit]",
	} {
		var f family
		d, err := f.delegates(limits, f.works(9, "look")).Run(t.Context(), dag.New().User("Go."))
		require.NoError(t, err)
		require.Equal(t, []string{want}, outcomes(t, d))
	}
}

func TestStopReasonNamesTheLimitOfTheRunAround(t *testing.T) {
	const outer = "the limit is that of a run around this one"
	limits := map[content.Stop]executor.Limits{
		content.StopMaxTurns:   {Turns: 2},
		content.StopCallLimit:  {Calls: 1},
		content.StopTokenLimit: {Tokens: 22},
		content.StopTimeLimit:  {Time: time.Minute},
	}
	for want, limit := range limits {
		t.Run(string(want), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var count tally
				inner := executor.Agent{Provider: calling(plainCall("look")), Tools: []dag.Tool{count.tool("look")}}
				if limit.Time > 0 {
					inner.Tools = []dag.Tool{tool("look", func(ctx context.Context) (any, error) { <-ctx.Done(); return "", ctx.Err() })}
					inner.ToolTimeout = -1
				}
				var ended dag.DAG
				nest := executor.WithTimeout(tool("nest", func(ctx context.Context) (any, error) {
					d, err := inner.Run(ctx, dag.New().User("Go."))
					ended = d
					return d.Text(), err
				}), 0)

				d, err := executor.Agent{Provider: calling(plainCall("nest")), Tools: []dag.Tool{nest}, Limits: limit}.
					Run(t.Context(), dag.New().User("Go."))
				require.NoError(t, err)
				require.Equal(t, want, stopped(t, d).Reason)
				require.Empty(t, stopped(t, d).Detail)
				require.Equal(t, want, stopped(t, ended).Reason)
				require.Equal(t, outer, stopped(t, ended).Detail)

				// The same limit, of the run itself.
				inner.Limits = limit
				switch want {
				case content.StopMaxTurns:
					inner.Limits.Turns = 1
				case content.StopCallLimit:
					inner.Limits.Calls, inner.Provider = 1, calling(plainCall("look"), plainCall("look"))
				case content.StopTokenLimit:
					inner.Limits.Tokens = 11
				}
				_, err = executor.Agent{Provider: calling(plainCall("nest")), Tools: []dag.Tool{nest}}.Run(t.Context(), dag.New().User("Go."))
				require.NoError(t, err)
				require.Equal(t, want, stopped(t, ended).Reason)
				require.Empty(t, stopped(t, ended).Detail)
			})
		})
	}
}

func TestSubAgentAtTheTurnLimitOfTheRunAroundLeavesItsQueue(t *testing.T) {
	var f family
	sub := f.works(0)
	sub.FollowUps = queued("And then?")
	d, err := f.delegates(executor.Limits{Turns: 2}, sub).Run(t.Context(), dag.New().User("Go."))
	require.NoError(t, err)
	require.Equal(t, []content.Stop{content.StopEndTurn, content.StopMaxTurns}, ends(t, d))
	require.Equal(t, 1, sub.FollowUps.Len())
}

func TestSubAgentsAtTheSameTimeShareTheLimitsOfTheRunAround(t *testing.T) {
	const turns, calls, subs = 20, 31, 6
	for _, limits := range []executor.Limits{{Turns: turns}, {Calls: calls}, {Turns: turns, Calls: calls}} {
		var f family
		var agents []executor.Agent
		for range subs {
			agents = append(agents, f.works(99, "one", "two"))
		}
		d, err := f.delegates(limits, agents...).Run(t.Context(), dag.New().User("Go."))
		require.NoError(t, err)
		reasons := ends(t, d)

		if limits.Turns > 0 && limits.Calls == 0 {
			require.EqualValues(t, turns, f.requests.Load(), "every turn was used, and none twice")
			require.Len(t, f.ran(), 2*(turns-1))
			require.Equal(t, slices.Repeat([]content.Stop{content.StopMaxTurns}, subs+1), reasons)
		}
		if limits.Calls > 0 {
			require.Len(t, f.ran(), calls-subs, "every call was used, and none twice")
			require.Equal(t, content.StopCallLimit, reasons[subs])
			require.LessOrEqual(t, f.requests.Load(), int64(turns+calls))
		}
	}
}

// TestLimitsOfTheRunAroundHoldOverPauses compares runs that pause for each approval, and are resumed in another process,
// with the same runs without a pause.
func TestLimitsOfTheRunAroundHoldOverPauses(t *testing.T) {
	// Inside the first sub-agent is another one, which needs approval. The second sub-agent ends before the pause.
	build := func(f *family, limits, between executor.Limits, approve bool) executor.Agent {
		inner := f.works(3, "one", "two")
		if approve {
			inner.Hooks = []executor.Hook{executor.RequireApproval()}
		}
		return f.delegates(limits, f.delegates(between, inner), f.works(2, "look"))
	}
	for limit := 1; limit <= 14; limit++ {
		for _, c := range [][2]executor.Limits{
			{{Turns: limit}, {}}, {{Calls: limit}, {}}, {{}, {Turns: limit}}, {{}, {Calls: limit}}, {{Turns: 10, Calls: limit}, {Turns: 4}},
		} {
			// One call after the other, so that the sub-agents use the limits in the same order in both runs.
			var straight, pausing family
			one := build(&straight, c[0], c[1], false)
			one.Strategy = backwards
			want, err := one.Run(t.Context(), dag.New().User("Go."))
			require.NoError(t, err)

			agent := build(&pausing, c[0], c[1], true)
			agent.Strategy = backwards
			d, err := agent.Run(t.Context(), dag.New().User("Go."))
			for pauses := 0; err != nil; pauses++ {
				require.Less(t, pauses, 9)
				loaded, _ := saveAndLoad(t, d, err)
				d, err = agent.Resume(t.Context(), loaded, approvedAll(loaded)...)
			}

			require.Equal(t, straight.ran(), pausing.ran(), "%+v", c)
			require.Equal(t, straight.requests.Load(), pausing.requests.Load(), "%+v", c)
			require.Equal(t, ends(t, want), ends(t, d), "%+v", c)
		}
	}
}

// backwards executes the calls of a message one after the other, the last one first.
var backwards = executor.Strategy(func(calls []executor.Ready) []executor.Batch {
	var batches []executor.Batch
	for i := range slices.Backward(calls) {
		batches = append(batches, executor.Batch{Calls: []int{i}})
	}
	return batches
})

func TestPauseHoldsTheTurnsAndCallsInsideTools(t *testing.T) {
	var f family
	inner := f.works(1, "one", "two")
	inner.Hooks = []executor.Hook{executor.RequireApproval()}
	agent := f.delegates(executor.Limits{}, f.delegates(executor.Limits{}, inner), f.works(2, "look"))
	d, err := agent.Run(t.Context(), dag.New().User("Go."))
	loaded, _ := saveAndLoad(t, d, err)

	spent := func(d dag.DAG) node.Spent {
		for _, h := range d.Heads() {
			if e, ok := h.Payload().(node.ToolExecution); ok && e.Spent.Run != "" {
				return e.Spent
			}
		}
		return node.Spent{}
	}
	outer := spent(loaded)
	require.Equal(t, []int{1, 1 + 1 + 3, 1 + 2 + 2}, []int{outer.Turns, outer.InnerTurns, outer.InnerCalls})
	middle := dag.FromNode(loaded.Heads()[0])
	require.Equal(t, []int{1, 2}, []int{spent(middle).InnerTurns, spent(middle).InnerCalls})
	inside := spent(dag.FromNode(middle.Head()))
	require.Equal(t, []int{0, 0}, []int{inside.InnerTurns, inside.InnerCalls})
	require.NotEqual(t, outer.Run, inside.Run)
}

func TestCallRefusedBeforeAPauseStopsTheRunsAround(t *testing.T) {
	var f family
	inner := f.works(1, "one", "two")
	inner.Hooks = []executor.Hook{executor.RequireApproval("one")}
	agent := f.delegates(executor.Limits{Calls: 3}, f.delegates(executor.Limits{}, inner))
	d, err := agent.Run(t.Context(), dag.New().User("Go."))
	loaded, _ := saveAndLoad(t, d, err)
	require.Equal(t, []string{"suba/suba/one"}, idsOf(loaded))

	d, err = agent.Resume(t.Context(), loaded, replySet{"suba/suba/one": approved()}.of(loaded)...)
	require.NoError(t, err)
	require.Equal(t, []string{"one"}, f.ran())
	require.EqualValues(t, 3, f.requests.Load(), "no run asks its model again")
	require.Equal(t, slices.Repeat([]content.Stop{content.StopCallLimit}, 3), ends(t, d))
	require.Contains(t, outcomes(t, d)[0], "[Agent stopped: tool_call_limit]")
}
