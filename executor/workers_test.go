package executor

import (
	"bytes"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// testWork is work of a test. It notes its goroutine.
type testWork struct {
	do        func()
	goroutine string
	ended     chan struct{} // closed by over
}

func (w *testWork) run() {
	stack := make([]byte, 64)
	w.goroutine = string(bytes.Fields(stack[:runtime.Stack(stack, false)])[1])
	w.do()
}

func (w *testWork) over() { close(w.ended) }

func startWork(w *workers, do func()) *testWork {
	j := &testWork{do: do, ended: make(chan struct{})}
	w.start(j)
	return j
}

func TestOneGoroutineRunsTheJobsOfARunThatFollowEachOther(t *testing.T) {
	var w workers
	defer w.join(time.Second)

	first := startWork(&w, func() {})
	<-first.ended
	for range 3 {
		next := startWork(&w, func() {})
		<-next.ended
		require.Equal(t, first.goroutine, next.goroutine)
	}

	beside := startWork(&w, func() { <-startWork(&w, func() {}).ended })
	<-beside.ended
}

func TestGoroutineThatAJobEndedIsReplaced(t *testing.T) {
	var w workers
	ended := startWork(&w, runtime.Goexit)
	<-ended.ended
	next := startWork(&w, func() {})
	<-next.ended
	require.NotEqual(t, ended.goroutine, next.goroutine)
	w.join(time.Hour) // returns at once: none is counted as busy
}

func TestJoinWaitsForJobsAsLongAsTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w workers
		startWork(&w, func() { time.Sleep(time.Minute) })
		start := time.Now()
		w.join(time.Second)
		require.Equal(t, time.Second, time.Since(start))

		var idle workers
		<-startWork(&idle, func() {}).ended
		startWork(&idle, func() { time.Sleep(time.Minute) })
		start = time.Now()
		idle.join(time.Hour)
		require.Equal(t, time.Minute, time.Since(start))
	})
}
