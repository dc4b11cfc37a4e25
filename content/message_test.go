package content_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
)

func TestUsageSaturates(t *testing.T) {
	const most, least = math.MaxInt64, math.MinInt64
	all := func(n int64) content.Usage {
		return content.Usage{Input: n, Output: n, CacheRead: n, CacheWrite: n, Reasoning: n}
	}
	for _, c := range []struct{ a, b, sum, difference int64 }{
		{1, 2, 3, -1},
		{1 << 62, 1 << 62, most, 0},
		{most, 1, most, most - 1},
		{most, -1, most - 1, most},
		{least, -1, least, least + 1},
		{least, 1, least + 1, least},
		{0, least, least, most},
		{-1, least, least, most},
		{least, least, least, 0},
		{most, least, -1, most},
	} {
		require.Equal(t, all(c.sum), all(c.a).Plus(all(c.b)), "%d + %d", c.a, c.b)
		require.Equal(t, all(c.difference), all(c.a).Minus(all(c.b)), "%d - %d", c.a, c.b)
	}
	require.Equal(t, int64(most), all(1<<62).Total())
	require.Equal(t, int64(least), all(-1<<62).Total())
	require.Equal(t, int64(10), content.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Reasoning: 2}.Total())
}
