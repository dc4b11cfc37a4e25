package bell_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/bell"
)

func TestRingWakesAllWhoListenToTheName(t *testing.T) {
	var b bell.Bells
	first, stopFirst := b.Listen("a")
	second, stopSecond := b.Listen("a")
	other, stopOther := b.Listen("b")
	require.ElementsMatch(t, []string{"a", "b"}, b.Names())

	b.Ring("a")
	b.Ring("a") // the channels are full, and nobody waits
	require.Len(t, first, 1)
	require.Len(t, second, 1)
	require.Empty(t, other)

	<-first
	stopFirst()
	b.Ring("a")
	require.Empty(t, first, "it was stopped")

	stopSecond()
	stopOther()
	require.Empty(t, b.Names())
	b.Ring("a")
}
