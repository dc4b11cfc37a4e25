package executor_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

// A run that is cancelled while a hook looks at a message leaves it, and all behind it, in the queue.
func TestCancelledRunKeepsQueuedMessages(t *testing.T) {
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

func TestNilQueueIsEmpty(t *testing.T) {
	var none *executor.Queue
	require.Empty(t, none.Clear())
	require.Empty(t, none.Messages())
	require.Zero(t, none.Len())
}

func TestQueuedMessageIsKeptWhenTheConsumerLeaves(t *testing.T) {
	for _, leaveAt := range []executor.Event{executor.TurnStart{}, executor.MessageStart{}} {
		q := executor.NewQueue()
		require.NoError(t, q.Add("one"))
		require.NoError(t, q.Add("two"))
		agent := executor.Agent{Provider: apitest.NewScript(apitest.Say("Done.")), Steering: q}
		for event := range agent.Stream(t.Context(), ask()) {
			_, turn := event.(executor.TurnStart)
			_, message := event.(executor.MessageStart)
			if _, atTurn := leaveAt.(executor.TurnStart); atTurn && turn || !atTurn && message {
				break
			}
		}
		require.Equal(t, 2, q.Len())
		require.Equal(t, "one", q.Messages()[0].Blocks.Text())
	}
}

func TestFilledIsClosedWhenTheQueueHasAMessage(t *testing.T) {
	var none *executor.Queue
	require.Nil(t, none.Filled())

	queue := executor.NewQueue()
	filled := queue.Filled()
	select {
	case <-filled:
		t.Fatal("the queue is empty")
	default:
	}
	require.NoError(t, queue.Add("one"))
	<-filled
	<-queue.Filled()

	queue.Clear()
	select {
	case <-queue.Filled():
		t.Fatal("the queue is empty again")
	default:
	}
}
