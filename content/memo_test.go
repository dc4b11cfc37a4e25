package content_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/memo"
)

func TestAListRemembersByKey(t *testing.T) {
	b := content.Words("Hello")
	require.Nil(t, memo.OfBlocks(b).Get("a"))
	memo.OfBlocks(b).Put("a", 1)
	memo.OfBlocks(b).Put("b", 2)
	memo.OfBlocks(b).Put("a", 3)
	require.Equal(t, 3, memo.OfBlocks(b).Get("a"))
	require.Equal(t, 2, memo.OfBlocks(b).Get("b"))
	require.Nil(t, memo.OfBlocks(content.Words("Hello")).Get("a"), "another list that says the same is another list")
}

func TestTheEmptyListRemembersNothing(t *testing.T) {
	memo.OfBlocks(content.Blocks{}).Put("a", 1)
	require.Nil(t, memo.OfBlocks(content.Blocks{}).Get("a"))
}

func TestAListForgetsTheOldestKeys(t *testing.T) {
	b := content.Words("Hello")
	for key := range 100 {
		memo.OfBlocks(b).Put(key, key)
	}
	known := 0
	for key := range 100 {
		if memo.OfBlocks(b).Get(key) != nil {
			known++
		}
	}
	require.Equal(t, 8, known)
	require.Equal(t, 99, memo.OfBlocks(b).Get(99))
}

func TestAListRemembersForManyAtOnce(t *testing.T) {
	b := content.Words("Hello")
	var wg sync.WaitGroup
	for key := range 4 {
		wg.Go(func() {
			for n := range 1000 {
				memo.OfBlocks(b).Put(key, n)
			}
		})
	}
	wg.Wait()
	for key := range 4 {
		require.Equal(t, 999, memo.OfBlocks(b).Get(key))
	}
}

func TestAListForgets(t *testing.T) {
	b := content.Words("x")
	memo.OfBlocks(b).Put("a", 1)
	memo.OfBlocks(b).Put("b", 2)
	memo.OfBlocks(b).Clear()
	require.Nil(t, memo.OfBlocks(b).Get("a"))
	require.Nil(t, memo.OfBlocks(b).Get("b"))
	memo.OfBlocks(b).Put("a", 3)
	require.Equal(t, 3, memo.OfBlocks(b).Get("a"))
	memo.OfBlocks(content.Blocks{}).Clear()
}
