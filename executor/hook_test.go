package executor_test

import (
	"context"
	"errors"
	"iter"
	"runtime"
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

func TestAfterHooksRunInOrder(t *testing.T) {
	appends := func(text string) executor.Hook {
		return executor.Hook{After: func(_ context.Context, _ executor.Call, r executor.Result) (executor.Result, error) {
			r.Content = content.Words(r.Content.Text() + text)
			return r, nil
		}}
	}
	agent := executor.Agent{Provider: once(call("fast")), Hooks: []executor.Hook{appends(" 1"), appends(" 2"), appends(" 3")}}
	d, err := agent.Run(t.Context(), ask(fast))
	require.NoError(t, err)
	require.Equal(t, []string{"fast 1 2 3"}, outcomes(t, d))
}

func TestCallsThatANextHookLeavesOpenAreAnswered(t *testing.T) {
	calls := executor.Hook{Next: func(_ context.Context, turn executor.Turn) (executor.Turn, error) {
		if turn.Number == 1 {
			turn.DAG = turn.DAG.Assistant("", apitest.Use("fast", `{}`))
		}
		return turn, nil
	}}
	model := once(call("fast"))
	d, err := executor.Agent{Provider: model, Hooks: []executor.Hook{calls}}.Run(t.Context(), ask(fast))
	require.NoError(t, err)
	sent := model.Requests()[1].Messages
	require.Equal(t, content.NoResult, sent[len(sent)-1].Blocks.ToolResults()[0].Content.Text())
	requireValid(t, d)
}

// tooLong is a model that refuses what takes more than so many messages, and counts its requests.
type tooLong struct {
	limit    int
	requests []int
	model    api.Provider
}

func (m *tooLong) Stream(ctx context.Context, req api.Request) iter.Seq2[api.Event, error] {
	m.requests = append(m.requests, len(req.Messages))
	if len(req.Messages) > m.limit {
		return apitest.NewScript(apitest.Fail(&api.Error{Kind: api.ErrContextTooLong})).Stream(ctx, req)
	}
	return m.model.Stream(ctx, req)
}

// talk is a conversation of so many questions, each but the last with its answer.
func talk(questions int) dag.DAG {
	d := dag.New()
	for i := range questions {
		if i > 0 {
			d = d.Assistant(strings.Repeat("answer ", 20))
		}
		d = d.User(strings.Repeat("question ", 20))
	}
	return d
}

func TestCompactionShortensWhatTheProviderRefuses(t *testing.T) {
	model := &tooLong{limit: 12, model: apitest.NewScript(apitest.Say("Done.").Always())}
	agent := executor.Agent{Provider: model, Hooks: []executor.Hook{executor.Compaction{Budget: 1 << 30}.Hook()}}
	all, end, err := watch(t, agent.Stream(t.Context(), talk(10)))
	require.NoError(t, err)
	require.Len(t, model.requests, 2)
	require.Equal(t, 19, model.requests[0])
	require.Less(t, model.requests[1], 13)
	require.Equal(t, "Done.", end.DAG.Text())
	require.Equal(t, 1, end.Stop.Turns, "it is one turn")
	require.Len(t, only[executor.TurnEnd](all), 1)
	require.Len(t, only[executor.MessageEnd](all), len(only[executor.MessageStart](all)))
	compacted := 0
	for _, n := range end.DAG.Nodes() {
		if _, ok := n.Payload().(node.Compaction); ok {
			compacted++
		}
	}
	require.Equal(t, 1, compacted)
	requireValid(t, end.DAG)
}

func TestContextThatIsTooLongIsAskedOnceMoreOnly(t *testing.T) {
	model := &tooLong{limit: 1}
	agent := executor.Agent{Provider: model, Hooks: []executor.Hook{executor.Compaction{Budget: 1 << 30}.Hook()}}
	_, err := agent.Run(t.Context(), talk(10))
	require.ErrorIs(t, err, api.ErrContextTooLong)
	require.Len(t, model.requests, 2)

}

func TestContextThatNoHookShortensIsAnError(t *testing.T) {
	failed := errors.New("no summary")
	for name, hooks := range map[string][]executor.Hook{
		"no hook":        nil,
		"nothing to cut": {executor.Compaction{Budget: 1 << 30}.Hook()},
		"one that fails": {{TooLong: func(_ context.Context, d dag.DAG) (dag.DAG, error) { return d, failed }}},
	} {
		model := &tooLong{limit: 0}
		d, err := executor.Agent{Provider: model, Hooks: hooks}.Run(t.Context(), talk(1))
		require.ErrorIs(t, err, api.ErrContextTooLong, name)
		if name == "one that fails" {
			require.ErrorIs(t, err, failed)
		}
		require.Len(t, model.requests, 1, name)
		requireValid(t, d)
	}
}

// A message must not get past the hooks because the agent, or whoever built the conversation, declares something after it.
func TestInputHookRunsWhenDeclarationsFollowTheMessage(t *testing.T) {
	reject := []executor.Hook{{Input: func(_ context.Context, m content.Message) (content.Message, error) {
		return m, errors.New("no")
	}}}
	warn := []executor.Hook{{Input: func(_ context.Context, m content.Message) (content.Message, error) {
		return warned(m, "careful")
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
func TestEndOfContextDoesNotRejectTheMessage(t *testing.T) {
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

// A hook that returns nothing, or no provider, ends the run, and takes nothing from the conversation.
func TestNextHookThatReturnsNothingKeepsTheRequest(t *testing.T) {
	nothing := executor.Hook{Next: func(context.Context, executor.Turn) (executor.Turn, error) { return executor.Turn{}, nil }}
	d, err := executor.Agent{Provider: once(call("fast")), Hooks: []executor.Hook{nothing}}.Run(t.Context(), ask(fast))
	require.ErrorContains(t, err, "the agent has no provider")
	require.Equal(t, "uar", roles(d))
	require.Equal(t, content.StopError, stopped(t, d).Reason)
	requireValid(t, d)
}

// What an Input hook makes of a message must be one that a user can say.
func TestInputHookMayOnlyReturnAUserMessage(t *testing.T) {
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

// A Send hook changes one request, however it does it; the next one is made of the conversation again.
func TestSendHookChangesOnlyItsRequest(t *testing.T) {
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

func TestAfterHookErrorWithoutTextReachesTheModel(t *testing.T) {
	silent := executor.Hook{After: func(_ context.Context, _ executor.Call, r executor.Result) (executor.Result, error) {
		return r, errors.New("")
	}}
	d, err := executor.Agent{Provider: once(call("fast")), Hooks: []executor.Hook{silent}}.Run(t.Context(), ask(fast))
	require.NoError(t, err)
	require.Equal(t, []string{`error: Tool "fast" failed without saying why.`}, outcomes(t, d))
}

func TestHookMayEndTheGoroutineOfAToolThatPanicked(t *testing.T) {
	exits := executor.Hook{After: func(_ context.Context, c executor.Call, r executor.Result) (executor.Result, error) {
		if c.Name == "panics" {
			runtime.Goexit()
		}
		return r, nil
	}}
	agent := executor.Agent{Provider: once(call("panics"), call("fast")), Hooks: []executor.Hook{exits}, ToolTimeout: -1}
	synctest.Test(t, func(t *testing.T) {
		d, err := agent.Run(t.Context(), ask(panics, fast))
		require.NoError(t, err)
		require.Equal(t, []string{`error: Tool "panics" ended without a result.`, "fast"}, outcomes(t, d))
	})
}

func TestHookThatFailsAfterTheDeadlineIsATimeout(t *testing.T) {
	late := executor.Hook{After: func(ctx context.Context, _ executor.Call, r executor.Result) (executor.Result, error) {
		<-ctx.Done()
		return r, errors.New("the hook gave up")
	}}
	for range 300 {
		synctest.Test(t, func(t *testing.T) {
			agent := executor.Agent{Provider: once(call("fast"), call("fast")), Hooks: []executor.Hook{late}, ToolTimeout: time.Second}
			d, err := agent.Run(t.Context(), ask(fast))
			require.NoError(t, err)
			over := "error: Tool exceeded timeout of 1s."
			require.Equal(t, []string{over, over}, outcomes(t, d))
		})
	}
}
