package dag_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/dag"
)

func TestWithoutErrReturnsTheConversationBeforeTheFailedStep(t *testing.T) {
	before := dag.New().User("Hi.").Assistant("Yes?")
	failed := before.User("").User("This was not added.")
	require.ErrorIs(t, failed.Err(), dag.ErrEmpty)

	d := failed.WithoutErr()
	require.NoError(t, d.Err())
	require.True(t, dag.Equal(before, d))
	require.NoError(t, d.User("Again.").Err())
	require.ErrorIs(t, failed.Err(), dag.ErrEmpty, "the conversation with the error is left as it was")
}
