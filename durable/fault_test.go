package durable

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/seedtest"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// points are the points of all transactions at which a process can die.
var points = []string{
	"begin before", "begin after", "claim run before", "claim run after", "append before", "append after",
	"pause before", "pause after", "claim task before", "claim task after", "renew before", "renew after",
	"tool before", "tool after", "accept before", "accept after", "consume before", "consume after",
	"end before", "end after", "sweep before", "sweep after",
}

func TestEveryCrashPointOfOneProcess(t *testing.T) {
	for _, point := range points {
		for _, what := range []fault{kill, lose, freeze} {
			if what == lose && strings.HasPrefix(point, "tool") {
				continue // a tool has no reply to lose
			}
			t.Run(point+" "+string(what), func(t *testing.T) {
				require.Empty(t, within(t, func(w *world) {
					first := w.add(func(p *process) { p.plan = at(point, what, 1) })
					runs := w.start(first, 3)
					w.until(point)
					w.add(nil)
					w.add(nil)
					w.finish(runs)
				}))
			})
		}
	}
}

func TestEveryCrashPointOfAllProcesses(t *testing.T) {
	for _, point := range points {
		t.Run(point, func(t *testing.T) {
			require.Empty(t, within(t, func(w *world) {
				first := w.add(func(p *process) { p.plan = at(point, kill, 1) })
				for range 2 {
					w.add(func(p *process) { p.plan = at(point, kill, 1) })
				}
				runs := w.start(first, 6)
				w.until(point)
				time.Sleep(5 * time.Minute)
				w.add(nil)
				w.finish(runs)
			}))
		})
	}
}

func TestCallThatMayNotBeRepeatedIsInDoubt(t *testing.T) {
	for _, point := range points {
		for _, what := range []fault{kill, freeze} {
			t.Run(point+" "+string(what), func(t *testing.T) {
				require.Empty(t, within(t, func(w *world) {
					w.options = CallOptions{} // one attempt
					first := w.add(func(p *process) { p.plan = at(point, what, 1) })
					runs := w.start(first, 3)
					w.until(point)
					w.add(nil)
					w.finish(runs)
					w.history.once()
				}))
			})
		}
	}
}

func TestWakeUpsMayBeLostDoubledAndReversed(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var mu sync.Mutex
	var kept []func()

	for name, wakes := range map[string]func(fn func(store.Wake)) func(store.Wake){
		"30 % lost": func(fn func(store.Wake)) func(store.Wake) {
			return func(w store.Wake) {
				mu.Lock()
				lost := random.IntN(10) < 3
				mu.Unlock()

				if !lost {
					fn(w)
				}
			}
		},
		"all lost": func(func(store.Wake)) func(store.Wake) { return func(store.Wake) {} },
		"tripled": func(fn func(store.Wake)) func(store.Wake) {
			return func(w store.Wake) {
				fn(w)
				fn(w)
				fn(w)
			}
		},
		"reversed": func(fn func(store.Wake)) func(store.Wake) {
			return func(w store.Wake) {
				mu.Lock()
				defer mu.Unlock()

				if kept = append(kept, func() { fn(w) }); len(kept) == 10 {
					for len(kept) > 0 {
						kept[len(kept)-1]()
						kept = kept[:len(kept)-1]
					}
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			kept = nil
			require.Empty(t, within(t, func(w *world) {
				var first *process
				for range 3 {
					first = w.add(func(p *process) { p.wakes = wakes })
				}

				w.finish(w.start(first, 20))
			}))
		})
	}
}

func TestSixteenWorkers(t *testing.T) {
	require.Empty(t, within(t, func(w *world) {
		var first *process
		for range 16 {
			first = w.add(nil)
		}
		w.finish(w.start(first, 100))
		w.history.once()
	}))
}

// outside is a time with a monotonic clock. Times inside a world have none.
var outside = time.Now()

// jumping returns a clock that jumps by a day, forward and back, at each reading. As when somebody sets the clock of a
// machine, the monotonic clock goes on.
func jumping() func() time.Time {
	const day = 24 * 60 * 60 // seconds
	var readings atomic.Int64
	began := time.Now()
	return func() time.Time {
		now := outside.Add(time.Since(began))

		// With a monotonic clock, the first word of a time is a flag, 33 bits of seconds and 30 bits of nanoseconds.
		wall := (*uint64)(unsafe.Pointer(&now))
		if readings.Add(1)%2 == 0 {
			*wall += day << 30
		} else {
			*wall -= day << 30
		}
		return now
	}
}

func TestJumpingClockHasAMonotonicClockThatDoesNotJump(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := jumping()
		before, after := clock(), clock()
		require.Zero(t, after.Sub(before))
		require.Equal(t, 48*time.Hour, after.Round(0).Sub(before.Round(0)))
	})
}

// A process whose clock jumps neither loses a lease nor takes one of another process: each call begins once, and each run is
// claimed twice, before its pause and after it.
func TestClockOfAProcessDoesNotMatter(t *testing.T) {
	require.Empty(t, within(t, func(w *world) {
		w.slow = 3 * lease
		w.options.ResultTimeout = time.Hour
		var mu sync.Mutex
		claims := map[string]int{} // by run
		jump := func(p *process) {
			clock := jumping()
			p.engine.Source, p.engine.now, p.worker.now = node.Source{Now: clock}, clock, clock
		}
		count := func(p *process) {
			p.claimed = func(run string) {
				mu.Lock()
				defer mu.Unlock()
				claims[run]++
			}
		}

		first := w.add(func(p *process) { jump(p); count(p) })
		w.add(count)
		runs := w.start(first, 40) // more than one process has slots for
		w.finish(runs)
		w.history.once()
		for _, run := range runs {
			require.Equal(t, 2, claims[run])
		}
	}))
}

// The clock of the store is that of another machine. All times of a claim are in it.
func TestClocksOfProcessAndStoreMayDiffer(t *testing.T) {
	for _, ahead := range []time.Duration{-time.Hour, time.Hour} {
		t.Run(ahead.String(), func(t *testing.T) {
			require.Empty(t, within(t, func(w *world) {
				w.options.ResultTimeout = 5 * time.Minute
				first := w.add(func(p *process) { p.ahead = ahead })
				runs := w.start(first, 10)
				w.finish(runs)
				w.history.once()
				for _, run := range runs {
					tasks, err := w.runs.Tasks(context.Background(), run)
					require.NoError(t, err)
					for _, task := range tasks {
						require.Equal(t, store.OutcomeOK, task.Result.Outcome, "no call is late")
					}
				}
			}))
		})
	}
}

func TestFrozenProcessDoesNotBegin(t *testing.T) {
	require.Empty(t, within(t, func(w *world) {
		w.slow = time.Second
		first := w.add(func(p *process) { p.plan = at("claim task after", freeze, 1) })
		runs := w.start(first, 3)
		w.until("claim task after")
		w.add(nil)
		w.finish(runs)
	}))
}

// TestRandomFaults does random things to random processes. PLAIT_LONG runs many.
func TestRandomFaults(t *testing.T) {
	first := seedtest.First(t)
	for seed := first; seed < first+uint64(seedtest.Rounds(20, 1000)); seed++ {
		require.Empty(t, randomWorld(t, seed), "PLAIT_SEED=%d", seed)
	}
}

func randomWorld(t *testing.T, seed uint64) []string {
	return within(t, func(w *world) {
		random := rand.New(rand.NewPCG(seed, 0))
		var mu sync.Mutex
		dice := func(n int) int {
			mu.Lock()
			defer mu.Unlock()
			return random.IntN(n)
		}
		unlucky := func(p *process) {
			p.plan = func(point string) fault {
				switch n := dice(1000); {
				case n < 4:
					return kill
				case n < 8:
					return freeze
				case n < 40 && !strings.HasPrefix(point, "tool"):
					return lose
				}
				return ""
			}
			p.wakes = func(fn func(store.Wake)) func(store.Wake) {
				return func(wake store.Wake) {
					for range dice(3) {
						fn(wake)
					}
				}
			}
		}

		first := w.add(unlucky)
		runs := w.start(first, 10)
		for range 10 {
			w.add(unlucky)
			time.Sleep(time.Duration(dice(60)) * time.Second)
		}
		w.add(nil)
		w.finish(runs)
	})
}

// Negative controls: with a rule broken, the history must show it.

func TestHistoryShowsALeaseThatIsNotChecked(t *testing.T) {
	faults := within(t, func(w *world) {
		first := w.add(func(p *process) {
			p.worker.unchecked = true
			p.plan = at("claim task after", freeze, 1)
		})
		runs := w.start(first, 3)
		w.until("claim task after")
		w.add(nil)
		w.finish(runs)
	})
	require.NotEmpty(t, faults)
	require.Contains(t, fmt.Sprint(faults), "started after acceptance")
}

func TestHistoryShowsAResultThatReplacesAnother(t *testing.T) {
	faults := within(t, func(w *world) {
		first := w.add(func(p *process) {
			p.plan = at("accept before", freeze, 1)
			p.broken = func(_ string, err error) error {
				if errors.Is(err, store.ErrResultConflict) {
					return nil
				}
				return err
			}
		})
		runs := w.start(first, 3)
		w.until("accept before")
		w.add(nil)
		w.finish(runs)
	})
	require.Contains(t, fmt.Sprint(faults), "accepted twice")
}

func TestHistoryShowsAContinuationThatIsConsumedTwice(t *testing.T) {
	faults := within(t, func(w *world) {
		first := w.add(func(p *process) {
			p.plan = at("consume before", freeze, 1)
			p.broken = func(_ string, err error) error {
				if errors.Is(err, store.ErrLeaseLost) || errors.Is(err, store.ErrRunEnded) {
					return nil
				}
				return err
			}
		})
		runs := w.start(first, 3)
		w.until("consume before")
		w.add(nil)
		w.finish(runs)
	})
	require.Contains(t, fmt.Sprint(faults), "consumed twice")
}

func TestHistoryShowsARunThatIsNeverClaimed(t *testing.T) {
	faults := within(t, func(w *world) {
		deaf := func(p *process) {
			p.wakes = func(func(store.Wake)) func(store.Wake) { return func(store.Wake) {} }
			p.engine.Poll, p.worker.Poll = 10_000*time.Hour, 10_000*time.Hour
		}
		first := w.add(deaf)
		w.finish(w.start(first, 1))
	})
	require.Contains(t, fmt.Sprint(faults), "lost")
}

func TestHistoryShowsACallThatIsRepeated(t *testing.T) {
	faults := within(t, func(w *world) {
		first := w.add(func(p *process) { p.plan = at("tool after", kill, 1) })
		runs := w.start(first, 3)
		w.until("tool after")
		w.add(nil)
		w.finish(runs)
		w.history.once()
	})
	require.Contains(t, fmt.Sprint(faults), "started 2 times")
}

// An approved call that the engine itself executes is stored as started first, and its approval as used.
func TestApprovedCallIsNotRepeatedAfterACrash(t *testing.T) {
	for _, point := range []string{"tool before", "tool after"} {
		t.Run(point, func(t *testing.T) {
			began := 0
			faults := within(t, func(w *world) {
				approving := func(p *process) {
					tool := counter("count", func(context.Context, string) (string, error) {
						w.mu.Lock()
						began++
						w.mu.Unlock()
						err := p.happens("tool before")
						time.Sleep(time.Second)
						return "many", errors.Join(err, p.happens("tool after"))
					})
					p.engine.Agents["a"] = executor.Agent{
						Provider: twoCalls("count"), Tools: []dag.Tool{tool},
						Hooks: []executor.Hook{executor.RequireApproval("count")}, Strategy: executor.Sequential(),
					}
				}
				first := w.add(func(p *process) {
					approving(p)
					p.plan = at(point, kill, 1)
				})
				runs := w.start(first, 1)

				time.Sleep(time.Minute)
				approve := func() {
					states, err := w.runs.Tasks(context.Background(), runs[0])
					require.NoError(t, err)
					for _, state := range states {
						require.NoError(t, (&Engine{Store: w.runs}).Reply(context.Background(), state.Task.Key, executor.Approved(shown(t, state))))
					}
				}
				approve()
				w.until(point)
				w.add(approving)
				time.Sleep(10 * time.Minute)
				approve() // of the call that had not begun
				r, err := (&Engine{Store: w.runs}).Wait(context.Background(), runs[0])
				require.NoError(t, err)
				require.Equal(t, store.RunDone, r.State, r.Reason)

				c, err := open(context.Background(), w.runs, "of "+runs[0], store.Main)
				require.NoError(t, err)
				require.Empty(t, c.DAG().Validate())
				require.Contains(t, c.DAG().Text(), content.OutcomeUnknown)
				require.Contains(t, c.DAG().Text(), "many")
			})
			require.Empty(t, faults)
			require.Equal(t, 2, began, "each of the two calls once")
		})
	}
}
