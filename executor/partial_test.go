package executor_test

import (
	"context"
	"errors"
	"iter"
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
	"github.com/plait-dev/plait/node"
)

// eventsOf is a provider that yields the events and then the error.
type eventsOf struct {
	events []api.Event
	err    error
}

func (p eventsOf) Stream(context.Context, api.Request) iter.Seq2[api.Event, error] {
	return api.Once(func(yield func(api.Event, error) bool) {
		for _, e := range p.events {
			if !yield(e, nil) {
				return
			}
		}
		yield(nil, p.err)
	})
}

// partOf returns the answer that was cut off in the conversation, of which there must be one, and its node.
func partOf(t *testing.T, d dag.DAG) (node.Message, *node.Node) {
	t.Helper()
	var found *node.Node
	for _, n := range d.Nodes() {
		if m, ok := n.Message(); ok && m.Answer.Stop == content.StopCut {
			require.Nil(t, found, "two answers that were cut off")
			found = n
		}
	}
	require.NotNil(t, found, "no answer that was cut off")
	m, _ := found.Message()
	return m, found
}

func TestAnAnswerThatBreaksOffIsKept(t *testing.T) {
	known := api.Cut{Finish: api.Finish{
		API: "own", Model: "model-1", ResponseID: "r1", Usage: content.Usage{Input: 100, Output: 3},
	}}
	signed := content.Thinking{Text: "Hm.", Signature: "sig"}
	broken := eventsOf{err: &api.Error{Kind: api.ErrProtocol}, events: []api.Event{
		api.Delta{Index: 0, Kind: api.DeltaThinking, Text: "Hm."},
		api.BlockEnd{Index: 0, Block: signed},
		api.BlockEnd{Index: 1, Block: call("fast")},
		api.Delta{Index: 2, Kind: api.DeltaText, Text: "Once upon"},
		api.Delta{Index: 2, Kind: api.DeltaText, Text: " a ti"},
		api.Delta{Index: 3, Kind: api.DeltaThinking, Text: "And th"},
		api.Delta{Index: 4, Kind: api.DeltaInput, Tool: "fast", Text: `{"ci`},
		known,
	}}
	agent := executor.Agent{
		Provider: broken, Prices: api.Prices{"model-1": {Input: 1e6, Output: 1e6}},
	}
	var ended []executor.MessageEnd
	var turn executor.TurnEnd
	var end executor.End
	var failure error
	for event, err := range agent.Stream(t.Context(), ask(fast)) {
		switch e := event.(type) {
		case executor.MessageEnd:
			ended = append(ended, e)
		case executor.TurnEnd:
			turn = e
		case executor.End:
			end, failure = e, err
		}
	}

	require.ErrorIs(t, failure, api.ErrProtocol)
	m, n := partOf(t, end.DAG)
	require.Equal(t, []content.Block{
		signed, content.CutToolUse{Name: "fast", Input: "{}"},
		content.Text{Text: "Once upon a ti"}, content.Thinking{Text: "And th"}, content.CutToolUse{Name: "fast", Input: `{"ci`},
	}, m.Blocks.Slice())
	require.Equal(t, "own model-1 r1", m.Answer.API+" "+m.Answer.Model+" "+m.Answer.ResponseID)
	usage := content.Usage{Input: 100, Output: 3, Incomplete: true}
	require.Equal(t, usage, m.Answer.Usage)
	require.Equal(t, []executor.MessageEnd{{Turn: 1, Node: n}}, ended)
	require.Equal(t, n, turn.Message)
	require.Equal(t, usage, turn.Usage)
	require.Equal(t, usage, end.Stop.Usage)
	require.InDelta(t, 103, end.Stop.Cost, 1e-9)
	require.Empty(t, end.DAG.OpenCalls())
	require.True(t, n.Failed())
}

func TestARunGoesOnFromAnAnswerThatBrokeOff(t *testing.T) {
	broken := apitest.NewScript(apitest.Say("Half").Call(call("fast")).Fail(&api.Error{Kind: api.ErrAuth}), apitest.Say(" and whole."))
	d, err := executor.Run(t.Context(), broken, ask(fast))
	require.ErrorIs(t, err, api.ErrAuth)

	d, err = executor.Run(t.Context(), broken, d.Tools(fast))
	require.NoError(t, err)
	require.Equal(t, "uaa", roles(d))
	_, part := partOf(t, d)
	require.Equal(t, part, lastAnswerBefore(d))
	require.Len(t, broken.Requests(), 2)

	// The call is not in what an API is sent, and needs no result.
	sent, _ := dialect.Repair(broken.Requests()[1].Messages, dialect.Rules{})
	require.Len(t, sent, 3)
	require.Equal(t, []content.Block{content.Text{Text: "Half"}}, sent[1].Blocks.Slice())
	require.Equal(t, content.GoOn, sent[2].Blocks.Text())
}

// lastAnswerBefore returns the answer before the last one.
func lastAnswerBefore(d dag.DAG) *node.Node {
	var answers []*node.Node
	for _, n := range d.Nodes() {
		if m, ok := n.Message(); ok && m.Role == content.Assistant {
			answers = append(answers, n)
		}
	}
	return answers[len(answers)-2]
}

func TestAnAttemptThatIsRepeatedIsNotKeptButCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		overloaded := &api.Error{Kind: api.ErrOverloaded}
		model := apitest.NewScript(
			apitest.Say("First.").Usage(content.Usage{Input: 10, Output: 1}).Fail(overloaded),
			apitest.Say("Second.").Usage(content.Usage{Input: 10, Output: 5}),
		)
		agent := executor.Agent{Provider: model, Prices: api.Prices{"script": {Input: 1e6, Output: 1e6}}}
		d, err := agent.Run(t.Context(), ask())
		require.NoError(t, err)
		require.Equal(t, "ua", roles(d))
		require.Equal(t, "Second.", d.Messages()[1].Blocks.Text())
		require.Equal(t, content.Usage{Input: 20, Output: 6, Incomplete: true}, stopped(t, d).Usage)
		require.InDelta(t, 26, stopped(t, d).Cost, 1e-9)

		// The last attempt is kept.
		model = apitest.NewScript(apitest.Say("Broken.").Usage(content.Usage{Input: 10}).Fail(overloaded).Always())
		d, err = executor.Run(t.Context(), model, ask())
		require.ErrorIs(t, err, api.ErrOverloaded)
		m, _ := partOf(t, d)
		require.Equal(t, "Broken.", m.Blocks.Text())
		require.Equal(t, content.Usage{Input: 40, Incomplete: true}, stopped(t, d).Usage)
	})
}

// TestACancelBetweenTwoAttemptsHasTheFailureInItsError cancels a run that waits to send a request again.
func TestACancelBetweenTwoAttemptsHasTheFailureInItsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		model := apitest.NewScript(apitest.Say("Half").Fail(&api.Error{Kind: api.ErrOverloaded, API: "script"}).Always())
		d, err := executor.Run(ctx, model, ask())
		require.ErrorIs(t, err, context.Canceled)
		require.EqualError(t, err, "context canceled, while waiting to retry (attempt 1: script: overloaded)")
		require.Equal(t, content.StopCancelled, stopped(t, d).Reason)
		m, _ := partOf(t, d)
		require.Equal(t, "Half", m.Blocks.Text())
	})
}

func TestEveryEndOfARunKeepsWhatArrived(t *testing.T) {
	for name, how := range map[string]struct {
		agent  executor.Agent
		ctx    func(context.Context) (context.Context, context.CancelFunc)
		reason content.Stop
		err    error
	}{
		"cancelled": {
			reason: content.StopCancelled, err: context.Canceled,
			ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(time.Second, cancel)
				return ctx, cancel
			},
		},
		"deadline": {
			reason: content.StopDeadline, err: context.DeadlineExceeded,
			ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, time.Second)
			},
		},
		"time limit": {reason: content.StopTimeLimit, agent: executor.Agent{Limits: executor.Limits{Time: time.Second}}},
		"stalled": {
			reason: content.StopError, err: api.ErrStalled, agent: executor.Agent{Options: api.Options{Idle: time.Second}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if how.ctx != nil {
					var cancel context.CancelFunc
					ctx, cancel = how.ctx(ctx)
					defer cancel()
				}
				model := apitest.NewScript(apitest.Say("Half").Usage(content.Usage{Input: 7}).Hang().Always())
				how.agent.Provider = api.NewClient(model, &api.ClientOptions{Attempts: 1})
				d, err := how.agent.Run(ctx, ask())
				require.ErrorIs(t, err, how.err)
				require.Equal(t, how.reason, stopped(t, d).Reason)
				m, _ := partOf(t, d)
				require.Equal(t, "Half", m.Blocks.Text())
				require.Equal(t, content.Usage{Input: 7, Incomplete: true}, m.Answer.Usage)
				require.NotZero(t, m.Answer.Latency)
			})
		})
	}
}

func TestAnAnswerOfNothingLeavesItsUsage(t *testing.T) {
	broken := eventsOf{err: errors.New("gone"), events: []api.Event{
		api.Cut{Finish: api.Finish{API: "own", Model: "m", Usage: content.Usage{Input: 100}}},
	}}
	d, err := executor.Run(t.Context(), broken, ask())
	require.ErrorContains(t, err, "gone")
	require.Equal(t, "u", roles(d))
	require.Equal(t, content.Usage{Input: 100, Incomplete: true}, stopped(t, d).Usage)

	d, err = executor.Run(t.Context(), eventsOf{err: errors.New("gone")}, ask())
	require.ErrorContains(t, err, "gone")
	require.Zero(t, stopped(t, d).Usage)
}

func TestAChildKeepsItsPartialAnswer(t *testing.T) {
	inner := apitest.NewScript(apitest.Say("Half of the child").Usage(content.Usage{Input: 9}).Fail(&api.Error{Kind: api.ErrAuth}))
	child := executor.SubAgent("child", "", executor.Agent{Provider: inner})
	model := apitest.NewScript(apitest.Call(apitest.Use("child", executor.Task{Task: "go"})), apitest.Say("Done."))
	d, err := executor.Agent{Provider: model, Tools: []dag.Tool{child}}.Run(t.Context(), ask())
	require.NoError(t, err)
	for _, n := range d.Nodes() {
		if e, ok := n.Payload().(node.ToolExecution); ok {
			require.True(t, e.IsError)
			m, _ := partOf(t, dag.New().WithHeads(e.Child.Slice()...))
			require.Equal(t, "Half of the child", m.Blocks.Text())
			require.Equal(t, content.Usage{Input: 9, Incomplete: true}, e.Usage)
			return
		}
	}
	t.Fatal("the child did not run")
}

// TestThinkingAfterAnUnsentPartIsKept: where nothing of the cut answer is sent, the next answer was not asked to go on with it, so that its
// thinking holds.
func TestThinkingAfterAnUnsentPartIsKept(t *testing.T) {
	for said, stale := range map[string]bool{"": false, "Half": true} {
		events := []api.Event{api.Delta{Kind: api.DeltaInput, Tool: "fast", Text: "{"}}
		if said != "" {
			events = []api.Event{api.Delta{Kind: api.DeltaText, Text: said}}
		}
		d, err := executor.Run(t.Context(), eventsOf{events: events, err: errors.New("gone")}, ask())
		require.ErrorContains(t, err, "gone")
		d, err = executor.Run(t.Context(), apitest.NewScript(apitest.Say("Yes.").Think("Hm.", "sig")), d)
		require.NoError(t, err)
		messages := d.Transcript().Messages
		require.Equal(t, stale, messages[len(messages)-1].Blocks.At(0).(content.Thinking).Stale, said)
	}
}
