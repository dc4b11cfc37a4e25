package content_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
)

func TestAListRemembersByKey(t *testing.T) {
	b := content.Words("Hello")
	require.Nil(t, b.Recall("a"))
	b.Remember("a", 1)
	b.Remember("b", 2)
	b.Remember("a", 3)
	require.Equal(t, 3, b.Recall("a"))
	require.Equal(t, 2, b.Recall("b"))
	require.Nil(t, content.Words("Hello").Recall("a"), "another list that says the same is another list")
}

func TestTheEmptyListRemembersNothing(t *testing.T) {
	content.Blocks{}.Remember("a", 1)
	require.Nil(t, content.Blocks{}.Recall("a"))
}

func TestAListForgetsTheOldestKeys(t *testing.T) {
	b := content.Words("Hello")
	for key := range 100 {
		b.Remember(key, key)
	}
	known := 0
	for key := range 100 {
		if b.Recall(key) != nil {
			known++
		}
	}
	require.Equal(t, 8, known)
	require.Equal(t, 99, b.Recall(99))
}

func TestAListRemembersForManyAtOnce(t *testing.T) {
	b := content.Words("Hello")
	var wg sync.WaitGroup
	for key := range 4 {
		wg.Go(func() {
			for n := range 1000 {
				b.Remember(key, n)
			}
		})
	}
	wg.Wait()
	for key := range 4 {
		require.Equal(t, 999, b.Recall(key))
	}
}

func TestAListForgets(t *testing.T) {
	b := content.Words("x")
	b.Remember("a", 1)
	b.Remember("b", 2)
	b.Forget()
	require.Nil(t, b.Recall("a"))
	require.Nil(t, b.Recall("b"))
	b.Remember("a", 3)
	require.Equal(t, 3, b.Recall("a"))
	content.Blocks{}.Forget()
}
