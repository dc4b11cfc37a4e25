package providertest

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/node"
)

// NeverInvalid builds, forks, cuts, joins and loads random conversations. The strict fake of the API must accept the
// request for each. It makes 500 sequences, or 25,000 with PLAIT_LONG=1. A failure prints the shortest
// failing list of steps found.
func NeverInvalid(t *testing.T, d *Dialect) {
	first, sequences := seedtest.First(t), seedtest.Rounds(500, 25_000)

	workers := uint64(runtime.GOMAXPROCS(0))

	// The workers share the seeds: worker n tries each one with the same remainder.
	for n := range workers {
		t.Run(fmt.Sprintf("worker %d", n), func(t *testing.T) {
			t.Parallel()
			for seed := first + n; seed < first+uint64(sequences); seed += workers {
				if err := d.Try(seed); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
		})
	}
	t.Logf("%d sequences from seed %d", sequences, first)
}

// Try plays the steps of a seed. On failure it shrinks the steps and appends them to the error.
func (d *Dialect) Try(seed uint64) error {
	steps := randomSteps(seed)
	err := d.play(steps, nil)
	if err == nil {
		return nil
	}

	// Play the shortest list once more, for the log.
	steps, err = d.shrink(steps, err)
	var log strings.Builder
	_ = d.play(steps, &log)
	return fmt.Errorf("%w\n%s", err, log.String())
}

// step is one operation. It depends on its seed alone: it does the same if other steps are left out.
type step struct {
	op   int
	seed uint64
}

func randomSteps(seed uint64) []step {
	r := rand.New(rand.NewPCG(seed, 7))
	steps := make([]step, 2+r.IntN(11))
	for i := range steps {
		steps[i] = step{op: r.IntN(len(operations)), seed: r.Uint64()}
	}
	return steps
}

// shrink removes steps as long as the rest still fails.
func (d *Dialect) shrink(steps []step, failure error) ([]step, error) {
	for again := true; again; {
		again = false
		for i := range steps {
			fewer := append(append([]step(nil), steps[:i]...), steps[i+1:]...)
			if err := d.play(fewer, nil); err != nil {
				steps, failure, again = fewer, err, true
				break
			}
		}
	}
	return steps, failure
}

// play does the steps. It returns an error if a conversation on the way has no valid request.
func (d *Dialect) play(steps []step, log *strings.Builder) (failure error) {
	// A panic is a failure like any other, so that shrink finds the steps to it.
	defer func() {
		if p := recover(); p != nil {
			failure = fmt.Errorf("panic: %v", p)
		}
	}()

	w := d.newWorld(log)
	for i, s := range steps {
		w.do(i, s)
		if i < len(steps)-1 && !w.One(4) {
			continue // check after one step in four; most are the end of a shorter sequence anyway
		}
		if err := w.check(); err != nil {
			return fmt.Errorf("after step %d: %w", i+1, err)
		}
	}
	return nil
}

func (d *Dialect) newWorld(log *strings.Builder) *World {
	w := &World{dialect: d, d: dag.New().WithSource(node.Counting(time.Unix(1_800_000_000, 0))), log: log}
	if d.Model != nil {
		w.turn = d.Model()
	}
	return w
}

// do does step i. A refused step changes nothing.
func (w *World) do(i int, s step) {
	w.Rand = rand.New(rand.NewPCG(s.seed, 1))
	op := operations[s.op]
	w.Logf("%d. %s", i+1, op.name)
	if next := op.do(w); next.Err() == nil {
		w.d = next
	} else {
		w.Logf("   refused: %v", next.Err())
	}
}
