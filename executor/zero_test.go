package executor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/replay"
)

func TestZeroRecordingMissesEveryCall(t *testing.T) {
	var tape replay.Recording
	call := executor.Call{Name: "look", Input: "{}"}
	_, err := tape.Handle(t.Context(), call)
	require.ErrorAs(t, err, new(*replay.NotRecordedError))
	require.Len(t, tape.Missed(), 1)
	require.Zero(t, tape.Start().Len())
}

func TestZeroQueueHoldsMessages(t *testing.T) {
	var q executor.Queue
	require.NoError(t, q.Add("first"))
	require.NoError(t, q.Add("second"))
	require.Equal(t, 2, q.Len())
	require.Len(t, q.Messages(), 2)
}

func TestZeroDecisionAllows(t *testing.T) {
	require.Equal(t, executor.Allow(), executor.Decision{})
}

func TestZeroReplyCannotBeSaved(t *testing.T) {
	_, err := executor.Reply{}.MarshalJSON()
	require.ErrorAs(t, err, new(*executor.CodecError))
}

func TestZeroResultIsASuccessWithoutContent(t *testing.T) {
	result, err := executor.ResultOf(executor.Result{})
	require.NoError(t, err)
	require.False(t, result.IsError)
	require.Equal(t, content.Blocks{}, result.Content)
}
