package wire

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestACacheMakesAValueOnceAndStaysSmall(t *testing.T) {
	var c Cache[int, string]
	made := 0
	itoa := func(n int) string {
		made++
		return strconv.Itoa(n)
	}
	for range 3 {
		require.Equal(t, "7", c.Get(7, itoa))
	}
	require.Equal(t, 1, made)
	for range 3 {
		for n := range maxCached {
			c.Get(n, itoa)
		}
	}
	require.Equal(t, maxCached, made, "as many keys as are remembered")
	for n := range 10 * maxCached {
		require.Equal(t, strconv.Itoa(n), c.Get(n, itoa))
		require.LessOrEqual(t, len(c.made), maxCached)
	}
}
