package seedtest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/seedtest"
)

func TestFirstIsTheSameUnlessTheEnvironmentSetsIt(t *testing.T) {
	t.Setenv("PLAIT_SEED", "")
	require.Equal(t, uint64(1), seedtest.First(t))

	t.Setenv("PLAIT_SEED", "424242")
	require.Equal(t, uint64(424242), seedtest.First(t))
}
