package dag

import (
	"math/rand/v2"
	"testing"

	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/stretchr/testify/require"
)

// inCommon checks that an alignment is one, and returns how many pairs it has.
func inCommon(t *testing.T, a, b []int) int {
	t.Helper()
	to := align(a, b)
	require.Len(t, to, len(a))
	pairs, last := 0, -1
	for i, j := range to {
		if j < 0 {
			continue
		}
		require.Greater(t, j, last, "the order is kept")
		require.Equal(t, a[i], b[j], "what is aligned is equal")
		pairs, last = pairs+1, j
	}
	return pairs
}

// longest is the length of the longest common subsequence, by the textbook.
func longest(a, b []int) int {
	row := make([]int, len(b)+1)
	for _, x := range a {
		corner := 0
		for j, y := range b {
			above := row[j+1]
			if x == y {
				row[j+1] = corner + 1
			} else {
				row[j+1] = max(above, row[j])
			}
			corner = above
		}
	}
	return row[len(b)]
}

func TestAlignFindsLongestCommonSubsequence(t *testing.T) {
	seed := seedtest.First(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 3000 {
		a, b := make([]int, rnd.IntN(40)), make([]int, rnd.IntN(40))
		letters := 1 + rnd.IntN(8)
		for i := range a {
			a[i] = rnd.IntN(letters)
		}
		for i := range b {
			b[i] = rnd.IntN(letters)
		}
		require.Equal(t, longest(a, b), inCommon(t, a, b), "%v %v", a, b)
	}
}

// What takes the square of their length does not end before the tests' own deadline.
func TestAlignOfLongListsEnds(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 0))
	size := seedtest.Rounds(20_000, 100_000)
	random := func(letters int) []int {
		out := make([]int, size)
		for i := range out {
			out[i] = rnd.IntN(letters)
		}
		return out
	}
	own := make([]int, size) // each number once
	for i := range own {
		own[i] = i
	}
	changed := append([]int(nil), own...)
	for i := 0; i < size; i += 10 {
		changed[i] = -i - 1
	}
	shuffled := append([]int(nil), own...)
	rnd.Shuffle(size, func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	swapped := append([]int(nil), own...)
	for i := 0; i+1 < size; i += 2 {
		swapped[i], swapped[i+1] = swapped[i+1], swapped[i]
	}
	ones := make([]int, size)
	for name, c := range map[string]struct {
		a, b  []int
		least int
	}{
		"the same":           {own, own, size},
		"every tenth":        {own, changed, size * 9 / 10},
		"shuffled":           {own, shuffled, 100},
		"swapped":            {own, swapped, size / 2},
		"nothing in common":  {own, random(5), 0},
		"few letters":        {random(2), random(2), 0},
		"many letters":       {random(size), random(size), 10},
		"one letter, longer": {ones, ones[:size/2], size / 2},
	} {
		require.GreaterOrEqual(t, inCommon(t, c.a, c.b), c.least, name)
	}
}
