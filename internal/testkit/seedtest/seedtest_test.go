package seedtest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/testkit/seedtest"
)

func TestFirstIsTheSameUnlessTheEnvironmentSetsIt(t *testing.T) {
	t.Setenv("PLAIT_SEED", "")
	require.Equal(t, uint64(1), seedtest.First(t))

	t.Setenv("PLAIT_SEED", "424242")
	require.Equal(t, uint64(424242), seedtest.First(t))
}

func TestRoundsAreManyOnlyIfTheEnvironmentSaysSo(t *testing.T) {
	t.Setenv("PLAIT_LONG", "")
	if testing.Short() {
		require.Equal(t, 2, seedtest.Rounds(8, 1000))
		require.Equal(t, 1, seedtest.Rounds(3, 1000))
	} else {
		require.Equal(t, 8, seedtest.Rounds(8, 1000))
	}

	t.Setenv("PLAIT_LONG", "1")
	require.Equal(t, 1000, seedtest.Rounds(8, 1000))
}

func TestASampleIsEverythingOnlyIfTheEnvironmentSaysSo(t *testing.T) {
	t.Setenv("PLAIT_LONG", "")
	t.Setenv("PLAIT_ALL", "")
	require.Equal(t, []bool{true, false, true}, []bool{seedtest.Sample(0, 3), seedtest.Sample(2, 3), seedtest.Sample(3, 3)})

	t.Setenv("PLAIT_ALL", "1")
	require.True(t, seedtest.Sample(2, 3))

	t.Setenv("PLAIT_ALL", "")
	t.Setenv("PLAIT_LONG", "1")
	require.True(t, seedtest.Sample(2, 3))
}
