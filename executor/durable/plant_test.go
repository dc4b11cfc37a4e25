package durable

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/store"
)

// planted is a database with a fault of its own, which the history has to show. It is between the recorder and the
// database, so that the recorder sees what the engine is told.
type planted struct {
	store.Transactor
	plant
}

// plant is a fault. Each function may be nil.
type plant struct {
	name string
	// finds is a part of what the history shows.
	finds string
	// inRun reports that calls are executed in the run, and take some time.
	inRun bool
	// update replaces Update.
	update func(ctx context.Context, db store.Transactor, f func(store.Tx) error) error
	// appended replaces an append, also in a transaction.
	appended func(f func(store.AppendRequest) (store.Head, bool, error), a store.AppendRequest) (store.Head, bool, error)
	// exec replaces a statement. It returns false for one that it leaves alone.
	exec func(ctx context.Context, tx store.Tx, query string, args []any) (n int64, done bool, err error)
	// query replaces the text of a query.
	query func(query string) string
}

// errUndone undoes a transaction of which the engine is told that it was committed.
var errUndone = errors.New("undone")

// undoes returns a plant that undoes acknowledged transactions with a statement that begins in a certain way.
func undoes(name, statement, finds string) plant {
	return plant{name: name, finds: finds,
		update: func(ctx context.Context, db store.Transactor, f func(store.Tx) error) error {
			err := db.Update(ctx, func(tx store.Tx) error {
				watched := &watchedTx{Tx: tx, prefix: statement}
				err := f(watched)
				if err == nil && watched.seen {
					err = errUndone
				}
				return err
			})
			if errors.Is(err, errUndone) {
				err = nil
			}
			return err
		}}
}

// watchedTx notes whether a statement begins with a prefix.
type watchedTx struct {
	store.Tx
	prefix string
	seen   bool
}

// Exec implements store.Tx.
func (t *watchedTx) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	t.seen = t.seen || strings.HasPrefix(query, t.prefix)
	return t.Tx.Exec(ctx, query, args...)
}

// plants are the faults that the history has to show.
var plants = []plant{
	undoes("a start is acknowledged and undone", `INSERT INTO plait_index`, "an acknowledged start is lost"),
	{
		name: "a head moves from any version", finds: "has led to version",
		appended: func(f func(store.AppendRequest) (store.Head, bool, error), a store.AppendRequest) (store.Head, bool, error) {
			h, held, err := f(a)
			if err == nil && held && a.Expect == 3 { // as if another writer had been quicker
				h, held, err = f(a)
			}
			var conflict *store.ConflictError
			if errors.As(err, &conflict) {
				a.Expect = conflict.Current.Version
				h, held, err = f(a)
			}
			return h, held, err
		},
	},
	{
		name: "an append is acknowledged and not made", finds: "is lost: the head has version",
		appended: func(f func(store.AppendRequest) (store.Head, bool, error), a store.AppendRequest) (store.Head, bool, error) {
			if a.Expect == 3 {
				return store.Head{Name: a.Head, Version: a.Expect + 1, Nodes: a.Nodes}, true, nil
			}
			return f(a)
		},
	},
	{
		name: "jobs are not checked", finds: "after an acknowledged cancel", inRun: true,
		query: func(query string) string {
			return strings.Replace(query, `WHERE id = $1 AND attempt = $2 AND state = 'running'`,
				`WHERE id = $1 AND attempt >= $2 * 0`, 1)
		},
		// The last step looks at the row of the run too.
		exec: func(ctx context.Context, tx store.Tx, query string, args []any) (int64, bool, error) {
			finishes := strings.HasSuffix(query, `WHERE id = $1 AND attempt = $2 AND state = 'running'`)
			if !finishes && !strings.HasPrefix(query, `UPDATE plait_index SET state = $1`) {
				return 0, false, nil
			}
			_, err := tx.Exec(ctx, strings.Replace(query, ` AND busy = 1`, ``, 1), args...)
			return 1, true, err
		},
	},
	{
		name: "a second reply replaces the first", finds: "two acknowledged replies",
		query: func(query string) string {
			if !accepts(query) {
				return query
			}
			query = strings.Replace(query, `ON CONFLICT DO NOTHING`, `ON CONFLICT (conv, head, call) WHERE call <> ''
				DO UPDATE SET payload = excluded.payload, sum = excluded.sum, arrived = excluded.arrived`, 1)
			return strings.Replace(query, `WHERE name = $6`, `WHERE name = $6 AND true`, 1)
		},
	},
	{
		// A run takes such a message again and again: it is there twice, or a hundred times.
		name: "a message that a run has taken stays in the inbox", finds: " times",
		appended: func(f func(store.AppendRequest) (store.Head, bool, error), a store.AppendRequest) (store.Head, bool, error) {
			a.Taken = nil
			return f(a)
		},
	},
	{
		name: "messages are acknowledged and dropped", finds: "acknowledged send",
		update: func(ctx context.Context, db store.Transactor, f func(store.Tx) error) error {
			return db.Update(ctx, func(tx store.Tx) error {
				if err := f(tx); err != nil {
					return err
				}
				_, err := tx.Exec(ctx, `DELETE FROM plait_inbox WHERE call = '' AND taken = 0`)
				return err
			})
		},
	},
	{
		name: "cancels are acknowledged and undone", finds: "an acknowledged cancel is lost",
		exec: func(_ context.Context, _ store.Tx, query string, args []any) (int64, bool, error) {
			cancels := strings.Contains(query, `state = 'cancelled'`) ||
				strings.HasPrefix(query, `UPDATE plait_index SET state = $1`) && args[0] == string(Cancelled)
			return 1, cancels, nil
		},
	},
}

// Update implements store.Transactor.
func (p planted) Update(ctx context.Context, f func(store.Tx) error) error {
	g := func(tx store.Tx) error { return f(plantedTx{tx, p.plant}) }
	if p.update != nil {
		return p.update(ctx, p.Transactor, g)
	}
	return p.Transactor.Update(ctx, g)
}

// AppendIf implements store.Transactor.
func (p planted) AppendIf(ctx context.Context, a store.AppendRequest, query string, args ...any) (store.Head, bool, error) {
	if p.query != nil {
		query = p.query(query)
	}
	f := func(a store.AppendRequest) (store.Head, bool, error) {
		return p.Transactor.AppendIf(ctx, a, query, args...)
	}
	if p.appended != nil {
		return p.appended(f, a)
	}
	return f(a)
}

// plantedTx is a transaction of a planted database.
type plantedTx struct {
	store.Tx
	plant
}

// Append implements store.Tx.
func (t plantedTx) Append(ctx context.Context, a store.AppendRequest) (store.Head, error) {
	f := func(a store.AppendRequest) (store.Head, bool, error) {
		h, err := t.Tx.Append(ctx, a)
		return h, err == nil, err
	}
	if t.appended == nil {
		h, _, err := f(a)
		return h, err
	}
	h, _, err := t.appended(f, a)
	return h, err
}

// Exec implements store.Tx.
func (t plantedTx) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	if t.exec != nil {
		if n, done, err := t.exec(ctx, t.Tx, query, args); done || err != nil {
			return n, err
		}
	}
	return t.Tx.Exec(ctx, query, args...)
}

// Query implements store.Tx.
func (t plantedTx) Query(ctx context.Context, query string, args ...any) (store.Rows, error) {
	if t.plant.query != nil {
		query = t.plant.query(query)
	}
	return t.Tx.Query(ctx, query, args...)
}

// flaky is a database with one failing point among so many. They are at random: a process that repeats the same statements
// would fail at the same one for ever.
func flaky(every int, seed uint64) func(store.Transactor) store.Transactor {
	return func(db store.Transactor) store.Transactor {
		seed++
		return &faulty{Transactor: db, what: failing, every: every, random: rand.New(rand.NewPCG(seed, 0))}
	}
}

// day opens a world in which two processes serve runs on the database that wrap returns, and programs use them.
func day(w *world, inRun bool, wrap func(store.Transactor) store.Transactor) (programs *crowd, history string) {
	w.Helper()
	history = filepath.Join(w.TempDir(), "history")
	r, err := openRecorder(history)
	require.NoError(w, err)
	w.stubborn, w.impatient = true, true
	serve := func(o *Options) {
		o.Agents = map[string]executor.Agent{"a": childAgent(r.file, 100*time.Millisecond, true)}
		if !inRun {
			o.Agents["a"], o.Workers = byWorkers(childAgent(r.file, 2*time.Millisecond, true))
		}
		o.Heartbeat = time.Second
		o.ShutdownTimeout = -1
	}
	programs = newCrowd(w, history, seedtest.First(w.T), func(o *Options) { o.wrap = wrap })
	for range 2 {
		w.serve(w.engine(func(o *Options) {
			serve(o)
			o.wrap = func(db store.Transactor) store.Transactor { return recorded{wrap(db), r} }
		}))
	}
	return programs, history
}

// hour lets the programs use some runs.
func (c *crowd) hour(runs int) {
	for range runs {
		c.start()
		c.act(true)
		c.answer()
		c.act(false)
	}
}

// PLAIT_LONG tests more.
func TestHistoryShowsNoFaultWhileConnectionsFail(t *testing.T) {
	onEach(t, func(w *world) {
		for _, every := range []int{19, 83}[:seedtest.Rounds(1, 2)] {
			w.again(fmt.Sprint("one in ", every), func(w *world) {
				programs, history := day(w, false, flaky(every, seedtest.First(w.T)))
				programs.hour(seedtest.Rounds(8, 400))
				require.Empty(w, programs.finish(time.Minute))
				require.Empty(w, programs.faults(history))
			})
		}
	})
}

// The negative controls: the history shows each of these faults.
func TestHistoryShowsPlantedFaults(t *testing.T) {
	t.Parallel()
	for i, p := range plants {
		if !seedtest.Sample(i, 3) {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			w := openWorld(t, newFile(t))
			programs, history := day(w, p.inRun, func(db store.Transactor) store.Transactor { return planted{db, p} })
			found := ""
			for began := time.Now(); !strings.Contains(found, p.finds) && time.Since(began) < time.Minute; {
				programs.hour(4)
				programs.finish(200 * time.Millisecond)
				found = strings.Join(programs.faults(history), "\n")
			}
			require.Contains(t, found, p.finds)
		})
	}
}
