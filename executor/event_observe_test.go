package executor_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

type pathKey struct{}

// pathIn returns the events that the contexts around ctx were made for.
func pathIn(ctx context.Context) string {
	path, _ := ctx.Value(pathKey{}).(string)
	return path
}

func kindOf(event executor.Event) string {
	return strings.TrimPrefix(fmt.Sprintf("%T", event), "executor.")
}

// traced returns a hook that appends each event with the path of its context to seen, and adds the event to the path.
func traced(seen *[]string) executor.Hook {
	// The runs of sub-agents call the hook at the same time as the run around them.
	var mu sync.Mutex
	return executor.Hook{Observe: func(ctx context.Context, event executor.Event, err error) context.Context {
		line := pathIn(ctx) + "/" + kindOf(event)
		if err != nil {
			line += ": " + err.Error()
		}
		mu.Lock()
		defer mu.Unlock()
		*seen = append(*seen, line)
		return context.WithValue(ctx, pathKey{}, pathIn(ctx)+"/"+kindOf(event))
	}}
}

// withContext is a model that also reports the path of each request's context.
type withContext struct {
	api.Provider
	paths *[]string
}

func (m withContext) Stream(ctx context.Context, req api.Request) iter.Seq2[api.Event, error] {
	*m.paths = append(*m.paths, pathIn(ctx))
	return m.Provider.Stream(ctx, req)
}

func TestObserveGetsTheEventsOfEachRun(t *testing.T) {
	save := func(context.Context, dag.DAG) error { return nil }
	for name, agent := range map[string]executor.Agent{"plain": {}, "saved": {Save: save}} {
		t.Run(name, func(t *testing.T) {
			var streamed, watched, alone []string
			agent.Provider, agent.Hooks = once(call("fast"), call("none")), []executor.Hook{traced(&watched)}
			for event := range agent.Stream(t.Context(), ask(fast)) {
				streamed = append(streamed, kindOf(event))
			}

			agent.Provider, agent.Hooks = once(call("fast"), call("none")), []executor.Hook{traced(&alone)}
			_, err := agent.Run(t.Context(), ask(fast))
			require.NoError(t, err)

			require.Equal(t, "/RunStart", watched[0])
			for i, kind := range streamed[1:] {
				require.Equal(t, "/RunStart/"+kind, watched[1+i])
			}
			require.Len(t, watched, len(streamed))
			require.Equal(t, watched, alone, "without a consumer")
		})
	}
}

func TestObserveMakesTheContexts(t *testing.T) {
	var seen, requests, tools, after []string
	tool := executor.Func("tool", "", func(ctx context.Context, _ none) (string, error) {
		tools = append(tools, pathIn(ctx))
		return "", nil
	})
	hooks := []executor.Hook{
		traced(&seen),
		{After: func(ctx context.Context, _ executor.Call, r executor.Result) (executor.Result, error) {
			after = append(after, pathIn(ctx))
			return r, nil
		}},
	}
	for _, timeout := range []executor.Tool{tool, executor.WithTimeout(tool, 0)} {
		agent := executor.Agent{Provider: withContext{once(call("tool")), &requests}, Hooks: hooks}
		_, err := agent.Run(t.Context(), ask(timeout))
		require.NoError(t, err)
	}
	require.Equal(t, []string{"/RunStart/ToolStart", "/RunStart/ToolStart"}, tools)
	require.Equal(t, tools, after)
	require.Len(t, requests, 4)
	for _, path := range requests {
		require.Equal(t, "/RunStart/MessageStart", path)
	}
}

func TestObserveGetsTheEventsOfASubAgentWithTheContextOfItsCall(t *testing.T) {
	var seen, requests []string
	sub := executor.SubAgent("sub", "", executor.Agent{Provider: withContext{once(), &requests}})
	model := once(apitest.Use("sub", executor.Task{Task: "Go."}))
	agent := executor.Agent{Provider: model, Hooks: []executor.Hook{traced(&seen)}}
	_, err := agent.Run(t.Context(), ask(sub))
	require.NoError(t, err)
	require.Equal(t, []string{"/RunStart/ToolStart/RunStart/MessageStart"}, requests)
	require.Contains(t, seen, "/RunStart/ToolStart/RunStart")
	require.Contains(t, seen, "/RunStart/ToolStart/RunStart/End")
	require.Equal(t, "/RunStart/End", seen[len(seen)-1])
}

func TestObserveGetsAnEndWithAnErrorWhereTheRunHasNone(t *testing.T) {
	var seen []string
	hooks := []executor.Hook{traced(&seen)}
	for range (executor.Agent{Provider: once(call("fast")), Hooks: hooks}).Stream(t.Context(), ask(fast)) {
		break
	}
	require.Equal(t, []string{"/RunStart", "/RunStart/End: executor: the consumer left"}, seen)

	seen = nil
	panics := apitest.NewScript(apitest.Func(func(api.Request) apitest.Turn { panic("broken") }))
	require.Panics(t, func() { _, _ = executor.Agent{Provider: panics, Hooks: hooks}.Run(t.Context(), ask(fast)) })
	require.Equal(t, "/RunStart/End: executor: the consumer left", seen[len(seen)-1])

	seen = nil
	_, err := executor.Agent{Hooks: hooks}.Run(t.Context(), ask(fast))
	require.ErrorContains(t, err, "the agent has no provider")
	require.Empty(t, seen, "a refused run")
}

func TestObserveThatPanicsOrReturnsNoContextChangesNothing(t *testing.T) {
	var seen, requests []string
	hooks := []executor.Hook{
		{Observe: func(context.Context, executor.Event, error) context.Context { panic("broken") }},
		traced(&seen),
		{Observe: func(context.Context, executor.Event, error) context.Context { return nil }},
	}
	agent := executor.Agent{Provider: withContext{once(call("fast")), &requests}, Hooks: hooks}
	d, err := agent.Run(t.Context(), ask(fast))
	require.NoError(t, err)
	require.Equal(t, content.StopEndTurn, stopped(t, d).Reason)
	require.Equal(t, "/RunStart/MessageStart", requests[0])
}

func TestObserveGetsTheErrorOfARun(t *testing.T) {
	var got error
	hook := executor.Hook{Observe: func(ctx context.Context, event executor.Event, err error) context.Context {
		if _, ends := event.(executor.End); ends {
			got = err
		}
		return ctx
	}}
	broken := errors.New("broken")
	refuse := func(context.Context, api.Request) (api.Request, error) { return api.Request{}, broken }
	agent := executor.Agent{Provider: once(), Hooks: []executor.Hook{hook, {Send: refuse}}}
	_, err := agent.Run(t.Context(), ask(fast))
	require.ErrorIs(t, err, broken)
	require.ErrorIs(t, got, broken)
}
