package executor_test

import (
	"context"
	"errors"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// million is a million tokens of input.
var million = content.Usage{Input: 1_000_000}

func TestCostLimitRefusesModelsWithoutPrice(t *testing.T) {
	model := apitest.NewScript(apitest.Call(call("fast")).As("acme", "acme-2").Usage(million).Always())
	agent := executor.Agent{Provider: model, Limits: executor.Limits{Cost: 100}, Prices: api.Prices{"acme-1": {Input: 1, Output: 1}}}
	all, end, err := watch(t, agent.Stream(t.Context(), ask(fast)))
	require.NoError(t, err)
	require.Len(t, only[executor.TurnStart](all), 1)
	require.Equal(t, content.StopCostLimit, end.Stop.Reason)
	require.Equal(t, "the price of acme-2 is not known", end.Stop.Detail)
	require.False(t, end.Stop.CostKnown)
	require.Equal(t, []string{`error: Tool call "fast" was not executed: the run reached its cost limit.`}, outcomes(t, end.DAG))

	_, end, err = watch(t, executor.Agent{Provider: model, Limits: executor.Limits{Turns: 2, Cost: 100}}.Stream(t.Context(), ask(fast)))
	require.NoError(t, err)
	require.Equal(t, content.StopCostLimit, end.Stop.Reason, "without prices no cost is known")

	model = apitest.NewScript(apitest.Call(call("fast")).As("acme", "acme-1").Usage(content.Usage{Output: 1}).Always())
	agent = executor.Agent{Provider: model, Limits: executor.Limits{Cost: 100}, Prices: api.Prices{"acme-1": {Input: 1}}}
	_, end, err = watch(t, agent.Stream(t.Context(), ask(fast)))
	require.NoError(t, err)
	require.Equal(t, content.StopCostLimit, end.Stop.Reason, "what is written has no price")
}

func TestCostIsKnownWhereEveryTokenHasAPrice(t *testing.T) {
	answer := func(model string, u content.Usage) apitest.Turn {
		return apitest.Call(call("fast")).As("acme", model).Usage(u)
	}
	reports := tool("fast", nil)
	reports = executor.NewTool(reports.Definition(), func(_ context.Context, _ executor.Call) (executor.Result, error) {
		return executor.Result{Content: content.Words("ok"), Usage: content.Usage{Input: 1}}, nil
	})
	prices := api.Prices{"paid": {Input: 2}, "free": {}}

	for name, c := range map[string]struct {
		model  *apitest.Script
		tool   dag.Tool
		prices api.Prices
		cost   float64
		known  bool
	}{
		"every price":                  {apitest.NewScript(answer("paid", million), answer("paid", million).Always()), fast, prices, 4, true},
		"an estimate for the cache":    {apitest.NewScript(answer("paid", content.Usage{CacheRead: 1_000_000}).Always()), fast, prices, 4, false},
		"no price for the output":      {apitest.NewScript(answer("paid", content.Usage{Output: 1_000_000}).Always()), fast, prices, 0, false},
		"a free model":                 {apitest.NewScript(answer("free", million).Always()), fast, prices, 0, true},
		"no price table":               {apitest.NewScript(answer("paid", million).Always()), fast, nil, 0, false},
		"one model without price":      {apitest.NewScript(answer("paid", million), answer("other", million).Always()), fast, prices, 2, false},
		"one that reports no tokens":   {apitest.NewScript(answer("paid", million), answer("other", content.Usage{}).Always()), fast, prices, 2, true},
		"tools that report tokens":     {apitest.NewScript(answer("paid", million), answer("paid", million).Always()), reports, prices, 4, false},
		"a server that miscounts":      {apitest.NewScript(answer("paid", content.Usage{Input: -5}).Always()), fast, prices, 0, true},
		"more than a number can count": {apitest.NewScript(answer("huge", million).Always()), fast, api.Prices{"huge": {Input: math.MaxFloat64, Output: 1}}, math.MaxFloat64, true},
	} {
		agent := executor.Agent{Provider: c.model, Limits: executor.Limits{Turns: 2}, Prices: c.prices}
		_, end, err := watch(t, agent.Stream(t.Context(), ask(c.tool)))
		require.NoError(t, err, name)
		require.Equal(t, c.cost, end.Stop.Cost, name)
		require.Equal(t, c.known, end.Stop.CostKnown, name)
		require.Equal(t, end.Stop, end.DAG.Head().Payload(), name, "what is saved")
	}
}

func TestResumedRunKnowsThatItsCostIsPartial(t *testing.T) {
	model := apitest.NewScript(apitest.Call(call("fast")).As("acme", "other").Usage(million), apitest.Say("Done.").As("acme", "paid").Usage(million))
	agent := executor.Agent{Provider: model, Hooks: []executor.Hook{executor.RequireApproval()}, Prices: api.Prices{"paid": {Input: 2, Output: 1}}}
	d, err := agent.Run(t.Context(), ask(fast))
	var paused *executor.PausedError
	require.ErrorAs(t, err, &paused)
	loaded, _ := saveAndLoad(t, d, err)
	for _, d := range []dag.DAG{d, loaded} {
		require.False(t, d.Head().Payload().(node.ToolExecution).Spent.CostKnown)
		_, end, err := watch(t, agent.ResumeStream(t.Context(), d, executor.Approved(d.Pending()[0])))
		if errors.Is(err, apitest.ErrScriptOver) {
			continue // the second resume has no answer left
		}
		require.NoError(t, err)
		require.Equal(t, 2.0, end.Stop.Cost)
		require.False(t, end.Stop.CostKnown)
	}
}

func TestRunRefusesPricesAndLimitsThatAreNoAmounts(t *testing.T) {
	for _, wrong := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -0.5} {
		for name, agent := range map[string]executor.Agent{
			"cost":  {Limits: executor.Limits{Cost: wrong}},
			"price": {Prices: api.Prices{"a": {}, "m": {Input: wrong, Output: 1}}},
		} {
			model := apitest.NewScript(apitest.Say("Hi.").Always())
			d := dag.New().User("Go.")
			running := agent
			running.Provider = model
			all, end, err := watch(t, running.Stream(t.Context(), d))
			if name == "cost" {
				require.ErrorContains(t, err, "is negative or not finite")
				require.ErrorContains(t, err, "Limits.Cost")
			} else {
				require.ErrorContains(t, err, `of model "m"`)
			}
			require.Len(t, all, 1, "nothing was begun")
			require.Empty(t, model.Requests())
			require.True(t, dag.Equal(d, end.DAG))

			_, err = agent.ExecuteTools(t.Context(), ask(fast).Assistant("", call("fast")))
			require.Error(t, err)
		}
	}
}

// TestRunReportsAStopReasonThatCannotBeKept: a clock that breaks during the run makes the last node impossible.
func TestRunReportsAStopReasonThatCannotBeKept(t *testing.T) {
	broken := false
	source := node.Counting(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	clock := source.Now
	source.Now = func() time.Time {
		if broken {
			return time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)
		}
		return clock()
	}
	hook := executor.Hook{Next: func(_ context.Context, turn executor.Turn) (executor.Turn, error) {
		broken = true
		return turn, nil
	}}
	agent := executor.Agent{Provider: apitest.NewScript(apitest.Say("Hi.")), Hooks: []executor.Hook{hook}}
	d, err := agent.Run(t.Context(), dag.New().WithSource(source).User("Go."))
	require.ErrorIs(t, err, node.ErrPayload)
	require.Equal(t, "Hi.", d.Text())
	require.NoError(t, d.Err())
}

func TestTotalsSaturate(t *testing.T) {
	model := apitest.NewScript(apitest.Call(call("fast")).Usage(content.Usage{Input: 1 << 62, Output: 1 << 62}).Always())
	_, end, err := watch(t, executor.Agent{Provider: model, Limits: executor.Limits{Turns: 3}}.Stream(t.Context(), ask(fast)))
	require.NoError(t, err)
	require.Equal(t, int64(math.MaxInt64), end.Stop.Usage.Input)
	require.Equal(t, int64(math.MaxInt64), end.Stop.Usage.Total())

	_, end, err = watch(t, executor.Agent{Provider: model, Limits: executor.Limits{Tokens: math.MaxInt64, Turns: 9}}.Stream(t.Context(), ask(fast)))
	require.NoError(t, err)
	require.Equal(t, content.StopTokenLimit, end.Stop.Reason)
}

// Ids of 64 bits that differ in their last digit are not the same arguments.
func TestRepeatLimitComparesEveryDigitOfArguments(t *testing.T) {
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
func TestCallLimitHoldsAcrossAPause(t *testing.T) {
	for _, strategy := range []executor.Strategy{nil, executor.DeferAll()} {
		model := once(call("fast"), call("fast"))
		agent := executor.Agent{Provider: model, Strategy: strategy, Limits: executor.Limits{Calls: 1}}
		if strategy == nil {
			agent.Hooks = []executor.Hook{executor.RequireApproval()}
		}
		d, err := agent.Run(t.Context(), ask(fast))
		var paused *executor.PausedError
		require.ErrorAs(t, err, &paused)
		require.Len(t, d.Pending(), 1)
		reply := executor.Failed(d.Pending()[0], "elsewhere")
		if strategy == nil {
			reply = executor.Approved(d.Pending()[0])
		}
		d, err = agent.Resume(t.Context(), d, reply)
		require.NoError(t, err)
		require.Equal(t, content.StopCallLimit, stopped(t, d).Reason)
		require.Equal(t, 2, stopped(t, d).ToolCalls)
		require.Len(t, model.Requests(), 1)
	}
	agent := executor.Agent{Provider: once(call("fast")), Hooks: []executor.Hook{executor.RequireApproval()}, Limits: executor.Limits{Calls: 1}}
	d, err := agent.Run(t.Context(), ask(fast))
	var paused *executor.PausedError
	require.ErrorAs(t, err, &paused)
	d, err = agent.Resume(t.Context(), d, executor.Approved(d.Pending()[0]))
	require.NoError(t, err)
	require.Equal(t, content.StopEndTurn, stopped(t, d).Reason, "none was beyond it")
}
