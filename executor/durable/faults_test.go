package durable

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/testkit/pgtest"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/postgres"
)

// A fault is what happens at one point of the transactions of an engine: before the transaction, at each statement, and
// after its commit.
type fault string

const (
	none    fault = ""                  // the points are counted
	failing fault = "a statement fails" // or the reply to COMMIT is lost; the process continues
	halfway fault = "half is committed" // a negative control: the writes so far are committed
	dying   fault = "the process dies"
)

// errFault is the error of a statement in a test.
var errFault = errors.New("the connection is lost")

// faulty is a database with a fault at one point.
type faulty struct {
	store.Transactor
	what fault

	mu       sync.Mutex // guards the fields below
	at       int        // the number of the point, from 1
	every    int        // if not 0, one of so many points
	random   *rand.Rand // set with every
	reached  int        // so far
	happened bool
}

// next counts a point, and reports whether the fault happens there.
func (f *faulty) next() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reached++
	hit := f.reached == f.at
	if f.every > 0 {
		hit = f.random.IntN(f.every) == 0
	}
	if f.what == none || !hit {
		return false
	}
	f.happened = true
	if f.what == dying {
		self, _ := os.FindProcess(os.Getpid())
		_ = self.Kill()
		select {}
	}
	return true
}

func (f *faulty) points() (reached int, happened bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reached, f.happened
}

// Update implements store.Transactor.
func (f *faulty) Update(ctx context.Context, fn func(store.Tx) error) error {
	if f.next() {
		return errFault
	}
	half := false
	err := f.Transactor.Update(ctx, func(tx store.Tx) error {
		err := fn(faultyTx{tx, f})
		if half = f.what == halfway && errors.Is(err, errFault); half {
			return nil
		}
		return err
	})
	if half || err == nil && f.next() {
		return errFault
	}
	return err
}

// AppendIf implements store.Transactor.
func (f *faulty) AppendIf(ctx context.Context, a store.AppendRequest, query string, args ...any) (store.Head, bool, error) {
	if f.next() {
		return store.Head{}, false, errFault
	}
	h, holds, err := f.Transactor.AppendIf(ctx, a, query, args...)
	if err == nil && f.next() {
		return store.Head{}, false, errFault
	}
	return h, holds, err
}

// faultyTx is a transaction of a faulty database.
type faultyTx struct {
	store.Tx
	faulty *faulty
}

// Append implements store.Tx.
func (t faultyTx) Append(ctx context.Context, a store.AppendRequest) (store.Head, error) {
	if t.faulty.next() {
		return store.Head{}, errFault
	}
	return t.Tx.Append(ctx, a)
}

// Exec implements store.Tx.
func (t faultyTx) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	if t.faulty.next() {
		return 0, errFault
	}
	return t.Tx.Exec(ctx, query, args...)
}

// Query implements store.Tx.
func (t faultyTx) Query(ctx context.Context, query string, args ...any) (store.Rows, error) {
	if t.faulty.next() {
		return nil, errFault
	}
	return t.Tx.Query(ctx, query, args...)
}

// dieAt returns a wrapper whose process dies at a point.
func dieAt(at int) func(store.Transactor) store.Transactor {
	return func(db store.Transactor) store.Transactor { return &faulty{Transactor: db, what: dying, at: at} }
}

// life is the life of a run with two deferred calls, and then a call that needs approval.
type life struct {
	*world
	c      counting
	limit  time.Duration
	ending func() // called before the engine stops; nil is none
}

// agent is the agent of a life. Its tools have unknown effects.
func (l *life) agent() executor.Agent {
	model := apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
		turns := 0
		for _, m := range req.Messages {
			if len(m.Blocks.ToolResults()) > 0 {
				turns++
			}
		}
		switch turns {
		case 0:
			return apitest.Call(apitest.Use("pay", item{"rent"}), apitest.Use("pay", item{"tax"}))
		case 1:
			return apitest.Call(apitest.Use("sign", item{"letter"}))
		}
		return apitest.Say("Done.")
	}).Always())
	return executor.Agent{
		Provider: model, Hooks: []executor.Hook{executor.RequireApproval("sign")},
		Tools: []dag.Tool{executor.DeferredTool(l.c.tool("pay").Definition()), l.c.tool("sign")},
	}
}

// live plays the life on a database, and returns what is wrong.
func (l *life) live(wrap func(store.Transactor) store.Transactor) (faults []string) {
	l.Helper()
	e := l.engine(func(o *Options) {
		o.Agents = map[string]executor.Agent{"a": l.agent()}
		works(l.c.tool("pay"))(o)
		o.wrap = wrap
	})
	stop := l.serve(e)
	defer func() {
		if l.ending != nil {
			l.ending()
		}
		stop()
	}()
	ctx, cancel := context.WithTimeout(l.Context(), l.limit)
	defer cancel()

	// A program repeats what has failed.
	repeat := func(f func() error) {
		for ctx.Err() == nil && f() != nil {
			time.Sleep(5 * time.Millisecond)
		}
	}
	repeat(func() error {
		_, err := e.Start(ctx, StartRequest{Run: "r", Agent: "a", Conversation: "c", Text: "Pay."})
		return err
	})
	var r Run
	repeat(func() error { return l.approve(ctx, e) })
	repeat(func() (err error) {
		r, err = e.Wait(ctx, "r")
		return err
	})

	if r.State != Done {
		faults = append(faults, fmt.Sprintf("it does not end: %+v\n%s", r, l.jobsOf(e, "r")))
	}
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	for key, times := range l.c.times {
		if times > 1 {
			faults = append(faults, fmt.Sprintf("call %s was executed %d times", key, times))
		}
	}
	if len(faults) == 0 {
		d := l.load("c")
		if text := d.Text(); text != "Done." || len(d.OpenCalls()) > 0 {
			faults = append(faults, "it ended with "+text)
		}
		if len(l.c.times) != 3 {
			faults = append(faults, fmt.Sprint(len(l.c.times), " calls were executed"))
		}
	}
	return faults
}

// approve approves the call that needs it, as soon as it waits.
func (l *life) approve(ctx context.Context, e *Engine) error {
	c, err := store.New(l.db).Conversation(ctx, "c")
	if err != nil {
		return err
	}
	for _, p := range c.DAG().Pending() {
		if p.Approval {
			return e.Reply(ctx, "c", "", executor.Approved(p))
		}
	}
	r, err := e.Run(ctx, "r")
	if err != nil || r.State.Ended() {
		return err
	}
	return errors.New("not yet")
}

// stride is the distance of two points. It is no divisor of a usual number of statements.
func stride() int {
	if seedtest.Long() {
		return 1
	}
	return 17
}

// PLAIT_LONG tests each point.
func TestEveryStatementMayFail(t *testing.T) {
	onEach(t, func(w *world) {
		at := 1
		for happened := true; happened && !w.Failed(); at += stride() {
			f := &faulty{what: failing, at: at}
			w.again(fmt.Sprint("point ", at), func(w *world) {
				l := &life{world: w, limit: time.Minute}
				l.stubborn = true // the fault may be in the first statements of Serve
				require.Empty(w, l.live(func(db store.Transactor) store.Transactor {
					f.Transactor = db
					return f
				}))
			})
			_, happened = f.points()
		}
		require.Greater(w, at, 50)
	})
}

// The negative control: a transaction that is no transaction is noticed. The points before are in the start of the run.
func TestHalfCommittedTransactionsAreNoticed(t *testing.T) {
	onOne(t, func(w *world) {
		for at := 18; at < 120; at++ {
			var faults []string
			w.again(fmt.Sprint("point ", at), func(w *world) {
				l := &life{world: w, limit: 3 * time.Second}
				l.stubborn = true // on a busy machine the limit may end while Serve begins
				faults = l.live(func(db store.Transactor) store.Transactor {
					return &faulty{Transactor: db, what: halfway, at: at}
				})
			})
			if len(faults) > 0 {
				return
			}
		}
		w.Error("nothing was noticed")
	})
}

// PLAIT_LONG tests each point.
func TestProcessMayDieAtEveryPoint(t *testing.T) {
	onOne(t, func(w *world) {
		for at, died := 3, true; died && !w.Failed(); at += stride() {
			w.again(fmt.Sprint("point ", at), func(w *world) { died = dieAtPoint(w, at) })
		}
	})
}

// dieAtPoint lets a process die at a point, and another one finish its run. It reports whether the point was reached.
func dieAtPoint(w *world, at int) (died bool) {
	e := w.engine(nil)
	run := w.start(e, StartRequest{Text: "Pay."})
	c := &children{
		w: w, history: filepath.Join(w.TempDir(), "history"), slots: 4, defers: true, point: at, beat: 250 * time.Millisecond,
	}
	defer c.killAll()
	c.add()
	dies, ended := c.running[0], make(chan struct{})
	c.running = nil // it is waited for here
	go func() {
		defer close(ended)
		_ = dies.Wait()
	}()
	defer func() {
		_ = dies.Process.Kill()
		<-ended
	}()
	for !died {
		r, err := e.Run(w.Context(), run)
		require.NoError(w, err)
		if r.State.Ended() {
			break
		}
		select {
		case <-ended:
			died = true
		case <-time.After(10 * time.Millisecond):
		}
	}
	if !died {
		return false
	}

	c.point = 0
	c.add()
	r := w.wait(e, run)
	require.Equal(w, Done, r.State, r.Reason)
	require.Equal(w, "Done.", w.text("c"))
	for key, times := range c.starts("pay") {
		require.Equal(w, 1, times, "call %s of unknown effect, point %d", key, at)
	}
	return true
}

// River's statements have no limit of their own, and run on the pool of the store.
func TestStatementsOfRiverEndInASilentNetwork(t *testing.T) {
	if pgtest.Missing() {
		t.Skip("SKIPPED: no PostgreSQL server is installed")
	}
	t.Parallel()
	p, through := startProxy(t, pgtest.Database(t))
	db := openPatiently(t, through, &postgres.Options{StatementTimeout: time.Second})
	defer func() {
		p.cut() // as below
		require.NoError(t, db.Close())
	}()

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p.arm(silentAfter, "", 1)
	_, err := db.Pool().Exec(ctx, `SELECT 1`)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, ctx.Err(), "the limit is that of the statement")
	require.Eventually(t, func() bool {
		_, err := db.Pool().Exec(ctx, `SELECT 1`)
		return err == nil
	}, time.Minute, time.Millisecond)
}

// openPatiently opens a database whose statements have short limits: on a busy machine a statement may take longer.
func openPatiently(t *testing.T, url string, opts *postgres.Options) (db *postgres.DB) {
	require.Eventually(t, func() bool {
		var err error
		db, err = postgres.Open(t.Context(), url, opts)
		return err == nil
	}, time.Minute, time.Millisecond)
	return db
}

// A process whose connection fails at any request, in any way, loses nothing and repeats nothing. PLAIT_LONG tests more.
func TestConnectionsMayFailAtAnyRequest(t *testing.T) {
	if pgtest.Missing() {
		t.Skip("SKIPPED: no PostgreSQL server is installed")
	}
	t.Parallel()
	live := func(t *testing.T, what trouble, at int) (requests int, happened bool) {
		url := pgtest.Database(t)
		p, through := startProxy(t, url)
		w := openWorld(t, url)

		// Where a connection falls silent, the process waits for no longer than this.
		const limit = time.Second
		w.engine(nil) // it makes the tables
		opts := &postgres.Options{IdleTimeout: limit, LockTimeout: limit, StatementTimeout: limit}
		db := openPatiently(t, through+"&pool_max_conns=8", opts)
		defer func() {
			p.cut() // the driver waits up to 15 seconds for the end of a connection that it has given up
			require.NoError(t, db.Close())
		}()
		near := w.db
		w = &world{T: t, url: url, db: db, stubborn: true}
		w.impatient = true // a notification may be lost: River's next look would be 30 seconds later
		l := &life{world: w, limit: time.Minute, ending: p.cut}
		p.arm(what, "", at)
		faults := l.live(func(store.Transactor) store.Transactor { w.db = near; return db })
		require.Empty(t, faults, "request %d", at)
		return p.disarm()
	}

	requests, _ := live(t, calm, 0)
	samples := seedtest.Rounds(1, 50)
	for _, what := range []trouble{cutBefore, cutAfter, silentBefore, silentAfter} {
		t.Run(string(what), func(t *testing.T) {
			t.Parallel()
			happened := 0
			for i := range samples {
				if _, is := live(t, what, requests/3+i*requests/samples/2); is {
					happened++
				}
			}
			require.NotZero(t, happened)
		})
	}
}

// River ends a queue quietly for an error with this end; TestConnectionsMayFailAtAnyRequest meets it about once in 500
// lives.
func TestConnectionLostWhileAQueueStartsIsAnError(t *testing.T) {
	closed := errors.New("conn closed")
	require.NoError(t, retold(nil))
	require.ErrorIs(t, retold(closed), closed)
	require.NotRegexp(t, "conn closed$", retold(closed).Error())
}
