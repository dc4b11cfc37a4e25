//go:build unix

package durable

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/testkit/pgtest"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
)

// rounds returns how many kills a test makes. PLAIT_KILLS=1000 kills a thousand times.
func rounds(few int) int {
	if n, err := strconv.Atoi(os.Getenv("PLAIT_KILLS")); err == nil {
		return n
	}
	return few
}

// TestKilledProcessesLoseNothing kills and freezes processes at random moments under load. Meanwhile programs reply twice
// and late, send messages, cancel runs, redact and delete conversations. The history of all processes is checked.
func TestKilledProcessesLoseNothing(t *testing.T) {
	t.Parallel()
	for _, defers := range []bool{true, false} {
		t.Run(map[bool]string{true: "calls as jobs", false: "calls in the run"}[defers], func(t *testing.T) {
			killAtRandom(t, defers)
		})
	}
}

func killAtRandom(t *testing.T, defers bool) {
	test := func(w *world) {
		seed := rand.Uint64()
		w.Log("seed", seed)
		history := filepath.Join(w.TempDir(), "history")
		c := &children{w: w, history: history, slots: 8, slow: 5 * time.Millisecond, defers: defers, asks: true}
		defer c.killAll()
		for range 3 {
			c.add()
		}

		programs := newCrowd(w, history, seed, func(o *Options) { o.Heartbeat = childBeat })
		few := 2
		if seedtest.All() {
			few = 7
		}
		all := rounds(few)
		for range all {
			for len(programs.running) < min(6*all, 40) {
				programs.start()
			}
			for range 3 {
				programs.act(true)
			}
			w.harm(c, programs.random)
			programs.answer()
			programs.collect()
		}

		// A run that does not end is lost: the limit is far above what a hand-back takes.
		require.Empty(w, programs.finish(2*time.Minute))
		c.killAll()
		require.Empty(w, programs.faults(history))
		checker, ok := w.db.(checks)
		require.True(w, ok)
		require.NoError(w, checker.Check(w.Context()))
	}

	// Every day, each kind of database has one kind of calls.
	switch {
	case seedtest.All():
		onEach(t, test)
	case defers && !pgtest.Missing():
		t.Parallel()
		t.Run("postgres", func(t *testing.T) { onPostgres(t, test) })
	default:
		t.Parallel()
		t.Run("sqlite", func(t *testing.T) { onSQLite(t, test) })
	}
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
