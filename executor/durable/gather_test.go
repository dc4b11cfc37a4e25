package durable

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Values that come together are one group. Those that come while it is under way are the next, and keys have groups of
// their own.
func TestGatherRunsTogetherWhatComesTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var groups []string
		var g gather[string, int]
		g.run = func(key string, group []int) {
			mu.Lock()
			groups = append(groups, fmt.Sprint(key, len(group)))
			mu.Unlock()
			time.Sleep(time.Second)
		}

		var all sync.WaitGroup
		add := func(key string, n int) {
			for i := range n {
				all.Go(func() { g.do(key, i) })
			}
		}
		add("a", 3)
		add("b", 1)
		time.Sleep(time.Second / 2)
		add("a", maxGroup+2)
		all.Wait()
		slices.Sort(groups)
		require.Equal(t, []string{"a16", "a2", "a3", "b1"}, groups)
		require.Empty(t, g.waiting)
	})
}

// A panic ends its own group, and not those that follow.
func TestGatherGoesOnAfterAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gather[string, int]
		runs := 0
		g.run = func(string, []int) {
			if runs++; runs == 1 {
				time.Sleep(time.Second)
				panic("first")
			}
		}
		var all sync.WaitGroup
		all.Go(func() { require.Panics(t, func() { g.do("a", 1) }) })
		time.Sleep(time.Second / 2)
		all.Go(func() { g.do("a", 2) })
		all.Wait()
		require.Equal(t, 2, runs)
	})
}
