//go:build unix

package durable

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/store"
)

// rounds returns how many kills a test makes. PLAIT_KILLS=1000 kills a thousand times.
func rounds(few int) int {
	if n, err := strconv.Atoi(os.Getenv("PLAIT_KILLS")); err == nil {
		return n
	}
	return few
}

// TestKilledProcessesLoseNothing kills and freezes processes at random moments under load. Meanwhile some runs are
// cancelled, and some conversations deleted.
func TestKilledProcessesLoseNothing(t *testing.T) {
	for _, defers := range []bool{true, false} {
		t.Run(map[bool]string{true: "calls as jobs", false: "calls in the run"}[defers], func(t *testing.T) {
			killAtRandom(t, defers)
		})
	}
}

func killAtRandom(t *testing.T, defers bool) {
	onEach(t, func(w *world) {
		seed := rand.Uint64()
		w.Log("seed", seed)
		random := rand.New(rand.NewPCG(seed, 0))
		c := &children{w: w, history: filepath.Join(w.TempDir(), "history"), slots: 8, slow: 5 * time.Millisecond, defers: defers}
		defer c.killAll()
		for range 3 {
			c.add()
		}

		e := w.engine(func(o *Options) { o.Heartbeat = childBeat })
		kills, running, ended := rounds(3), map[string]string{}, 0
		removed := map[string]bool{}
		for n := 0; kills > 0 || len(running) > 0; {
			// Keep some runs under way.
			for kills > 0 && len(running) < 60 {
				conversation := fmt.Sprint("c", n)
				running[w.start(e, StartRequest{Conversation: conversation, Text: "Pay."})] = conversation
				n++
			}

			if kills > 0 {
				kills--
				w.harm(c, random)
				w.interfere(e, random, running, removed)
			}

			// Look at what has ended. A run that does not end is lost: the limit is far above what a hand-back takes.
			ended += w.collect(e, running, removed, kills == 0)
		}
		require.Positive(w, ended)
		c.killAll()
		checkKilled(w, c)
	})
}

// harm kills or freezes a child at a random moment.
func (w *world) harm(c *children, random *rand.Rand) {
	time.Sleep(time.Duration(random.IntN(400)) * time.Millisecond)
	i := random.IntN(len(c.running))
	if random.IntN(4) > 0 {
		c.kill(i)
		c.add()
		return
	}

	// A frozen process wakes up after others have its jobs.
	frozen := c.running[i].Process
	require.NoError(w, frozen.Signal(syscall.SIGSTOP))
	time.Sleep(4500 * time.Millisecond)
	require.NoError(w, frozen.Signal(syscall.SIGCONT))
}

// interfere cancels a run, or deletes its conversation.
func (w *world) interfere(e *Engine, random *rand.Rand, running map[string]string, removed map[string]bool) {
	for run, conversation := range running {
		switch random.IntN(2) {
		case 0:
			if err := e.Cancel(w.Context(), run, "no more"); err != nil {
				require.ErrorIs(w, err, ErrRunEnded)
			}
		default:
			require.NoError(w, w.db.Delete(w.Context(), conversation))
			removed[conversation] = true
		}
		return
	}
}

// collect removes ended runs from running, and returns their number. At the end it waits for all of them.
func (w *world) collect(e *Engine, running map[string]string, removed map[string]bool, all bool) (ended int) {
	for run, conversation := range running {
		r, err := e.Run(w.Context(), run)
		require.NoError(w, err)
		if all && !r.State.Ended() {
			r = w.wait(e, run)
		}
		if !r.State.Ended() {
			continue
		}
		require.Contains(w, []State{Done, Cancelled}, r.State, "%+v", r)
		if r.State == Done && !removed[conversation] {
			d := w.load(conversation)
			require.Equal(w, "Done.", d.Text())
			require.Empty(w, d.OpenCalls())
		}
		delete(running, run)
		ended++
	}
	return ended
}

// checkKilled checks what the killed processes have left.
func checkKilled(w *world, c *children) {
	for key, times := range c.starts("pay") {
		require.Equal(w, 1, times, "call %s of unknown effect", key)
	}
	w.Log(len(c.starts("pay")), "calls")
	checker, ok := w.db.(interface {
		store.Driver
		checks
	})
	require.True(w, ok)
	require.NoError(w, checker.Check(w.Context()))
}

// TestJobsOfAKilledProcessAreHandedBackSoon measures the time from a kill until another process has the run.
func TestJobsOfAKilledProcessAreHandedBackSoon(t *testing.T) {
	onEach(t, func(w *world) {
		c := &children{w: w, history: filepath.Join(w.TempDir(), "history"), slots: 4, slow: time.Hour, defers: true}
		defer c.killAll()
		e := w.engine(func(o *Options) { o.Heartbeat = childBeat })
		c.add()
		run := w.start(e, StartRequest{Text: "Pay."})
		require.Eventually(w, func() bool {
			_, err := os.Stat(c.history)
			return err == nil && len(c.starts("pay")) == 2
		}, 20*time.Second, 10*time.Millisecond)

		// The other process has served for a while.
		c.slow = 0
		c.add()
		time.Sleep(2500 * time.Millisecond)
		killed := time.Now()
		c.kill(0)
		r := w.wait(e, run)
		require.Equal(w, Done, r.State, r.Reason)
		w.Log("stall", time.Since(killed))
		require.Less(w, time.Since(killed), 5*time.Second)
		for _, times := range c.starts("pay") {
			require.Equal(w, 1, times) // it was under way: in doubt, and not repeated
		}
		for _, times := range c.starts("look") {
			require.Equal(w, 2, times)
		}
	})
}
