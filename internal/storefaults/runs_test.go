package storefaults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/crashtest"
	"github.com/plait-dev/plait/internal/seedtest"
	"github.com/plait-dev/plait/internal/sqlstore"
	"github.com/plait-dev/plait/store"
)

// closing is a session as crashtest closes it.
type closing struct{ *session }

// Close closes the store, and the driver's connections.
func (c closing) Close() error { return c.close() }

// errorsIn lets a process with durable runs live on a disk of which operation n fails, and another one finish its runs,
// after a power loss if there is a random source. It returns the number of operations that can fail, and what is wrong.
func errorsIn(
	t *testing.T, f fault, n int, powerLoss *rand.Rand, change func(crashtest.Store) crashtest.Store,
) (operations int, faults []string) {
	t.Helper()
	d := newDisk()
	first, err := d.open(8)
	require.NoError(t, err)

	active := true
	d.mu.Lock()
	d.before = func(_ *disk, op operation) error {
		if !active || f.hits != nil && !f.hits(op) {
			return nil
		}
		if operations++; operations-1 == n {
			return f.err
		}
		return nil
	}
	d.mu.Unlock()

	// The next process opens the disk after the first one has closed it, or an image of the disk of that moment.
	p := crashtest.Points{Open: func(context.Context, string, func(sqlstore.DB) sqlstore.DB) (crashtest.Store, error) {
		left := d
		if powerLoss != nil {
			d.mu.Lock()
			left = d.crash(powerLoss)
			d.mu.Unlock()
			left = left.settled()
		}
		_ = first.close() // an earlier error may be repeated
		second, err := left.open(8)
		return closing{second}, err
	}}
	faults = p.Survive(t, "", change(closing{first}), func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		active = false
	})
	return operations, faults
}

func unchanged(db crashtest.Store) crashtest.Store { return db }

// PLAIT_LONG tests more operations.
func TestEveryOperationOfDurableRunsMayFail(t *testing.T) {
	samples := seedtest.Rounds(8, 200)

	for _, f := range faults {
		if !f.once {
			continue // a process would repeat its transactions until the disk is repaired
		}
		for _, end := range []string{"", ", then a power loss"} {
			t.Run(f.name+end, func(t *testing.T) {
				operations, faults := errorsIn(t, f, -1, nil, unchanged)
				require.Empty(t, faults)
				require.NotZero(t, operations)

				// Renewals, which a busy machine causes, change the number of operations. So the first operation that
				// is not reached is the end.
				stride := max(1, operations/samples)
				n := stride / 2
				for ; ; n += stride {
					var powerLoss *rand.Rand
					if end != "" {
						powerLoss = rand.New(rand.NewPCG(seedtest.First(t), uint64(n)))
					}

					reached, faults := errorsIn(t, f, n, powerLoss, unchanged)
					require.Empty(t, faults, "operation %d of about %d", n, operations)
					if reached <= n {
						break
					}
				}
				require.Greater(t, n, operations*3/4)
			})
		}
	}
}

// promising takes an error of the disk for a success: the negative control.
type promising struct{ crashtest.Store }

func (p promising) Accept(ctx context.Context, r store.Result) (bool, error) {
	ready, err := p.Store.Accept(ctx, r)
	var refused *store.RunError
	if errors.As(err, &refused) {
		return ready, err
	}
	return ready, nil
}

func TestErrorsShowAResultThatWasNotStored(t *testing.T) {
	f := fault{"a full disk", grows, faults[2].err, true}
	change := func(db crashtest.Store) crashtest.Store { return promising{db} }
	operations, _ := errorsIn(t, f, -1, nil, change)
	found := ""
	for n := operations / 5; n < operations && !strings.Contains(found, "accepted twice"); n++ {
		_, faults := errorsIn(t, f, n, nil, change)
		found += fmt.Sprint(faults)
	}
	require.Contains(t, found, "accepted twice")
}
