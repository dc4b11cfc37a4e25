package crashtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/seedtest"
	"github.com/plait-dev/plait/internal/sqlstore"
)

// Points stops a process at every point of every transaction of its durable runs: after BEGIN, after each statement,
// and after COMMIT. The points are found by counting the statements, so a new statement is a new point.
type Points struct {
	// Open opens the database at an address. Wrap, unless it is nil, goes around its transactions.
	Open func(ctx context.Context, address string, wrap func(sqlstore.DB) sqlstore.DB) (Store, error)
	// Database returns the address of a new, empty database.
	Database func() string
	// Crash is the death, at this moment, of the process with the open database. It returns the address for the next
	// process.
	Crash func(address string) string
	// Dump returns all rows of the database.
	Dump func(address string) string
}

// A stop is an event at a point.
type stop string

const (
	nothing stop = ""                      // the points are counted
	killed  stop = "the process is killed" // its connections are closed
	failing stop = "a statement fails"     // or the reply to COMMIT is lost; the process continues
	halfway stop = "half is committed"     // a negative control: commits the writes so far; the process is killed
)

// Test fails if a point leaves anything but all or nothing of its transaction, if an invariant does not hold then, or
// if the next process does not finish the runs. With PLAIT_LONG each point is tested, otherwise only some are.
func (p Points) Test(t *testing.T) {
	t.Helper()
	transactions, _ := p.play(t, nothing, 0, nil)
	for _, what := range []stop{killed, failing} {
		t.Run(string(what), func(t *testing.T) {
			// The number of points differs: on a busy machine, repetitions add some. So the first point not reached is
			// the end.
			at, tested := 1, 0
			for reached := true; reached; at += stride() {
				if _, reached = p.play(t, what, at, transactions); reached {
					tested++
				}
			}
			require.Greater(t, at, len(transactions))
			t.Logf("%d of about %d points in %d transactions", tested, at, len(transactions))
		})
	}
}

// stride is the distance of two points. It is no divisor of a usual number of statements.
func stride() int {
	switch {
	case seedtest.Long():
		return 1
	case testing.Short():
		return 41
	}
	return 23
}

// TestControl fails if half-committed transactions are not found, by the rows and by the invariants.
func (p Points) TestControl(t *testing.T) {
	t.Helper()
	transactions, _ := p.play(t, nothing, 0, nil)

	// Each kind of fault is enough once: inspect finds one by comparing rows, the other by the invariants.
	found := map[string]int{}
	last := transactions[len(transactions)-1].last
	for at := 1; at <= last && (found["differs"] == 0 || found["invariant"] == 0); at += 7 {
		l := p.begin(t, halfway, at, transactions)
		l.live()
		l.inspect()
		for _, fault := range l.faults {
			found[strings.SplitN(fault, ":", 2)[0]]++
		}
		l.close()
	}
	t.Log(found)
	require.NotZero(t, found["differs"])
	require.NotZero(t, found["invariant"])
}

// play lets a process live, stops it at a point, and lets another one finish its runs. It returns the transactions, and
// whether the point was reached.
func (p Points) play(t *testing.T, what stop, at int, transactions []span) (found []span, reached bool) {
	t.Helper()
	l := p.begin(t, what, at, transactions)
	defer l.close()
	l.live()
	l.stopper.armed.Store(false) // inspect and finish are not stopped, even if the point was not reached

	l.inspect()
	if len(l.faults) == 0 {
		l.finish()
	}
	require.Empty(t, l.faults, "%s at point %d, %s", what, at, l.stopper.where)
	return l.stopper.transactions, l.stopper.happened
}

// Survive lets a process live on db, with failing transactions, and another process finish its runs. It returns the
// faults. Repaired is called between the two.
func (p Points) Survive(t *testing.T, address string, db Store, repaired func()) []string {
	t.Helper()
	l := &life{Points: p, t: t, address: address, db: db}
	l.ctx, l.cancel = context.WithTimeout(context.Background(), patience)
	defer l.close()
	l.live()
	require.NoError(t, l.ctx.Err(), "the process hangs")
	repaired()
	l.open(nil)
	l.invariants()
	l.finish()
	return l.faults
}

// span is the points of a transaction.
type span struct{ first, last int }

// errStopped is the error of a stopped process, and of a failing statement.
var errStopped = errors.New("the connection is lost")

// stopper stops the transactions of a database at a point.
type stopper struct {
	sqlstore.DB
	what stop
	at   int
	die  func()        // the process is gone
	dump func() string // the rows

	armed        atomic.Bool // the store is open
	mu           sync.Mutex  // guards all fields below
	points       int         // passed so far
	known        []span      // the transactions, from a life without a stop
	transactions []span
	happened     bool
	where        string // the point reached
	want         string // the rows required after the stop
}

// Write implements sqlstore.DB.
func (s *stopper) Write(ctx context.Context, f func(sqlstore.Tx) error) error {
	if !s.armed.Load() {
		return s.DB.Write(ctx, f)
	}
	if s.gone() {
		return errStopped
	}

	s.begin()
	half := false
	err := s.DB.Write(ctx, func(tx sqlstore.Tx) error {
		err := s.stopped()
		if !s.reached("after BEGIN") {
			err = f(&stoppedTx{tx, s})
		}
		if errors.Is(err, errHalfway) {
			half = true
			return nil // commit the writes so far
		}
		return err
	})

	switch {
	case half:
		s.die()
		return errStopped
	case err == nil && s.committed(): // everything is stored, and the caller does not hear of it
		return errStopped
	}
	s.end()
	return err
}

// errHalfway ends a transaction early. Its writes so far are committed.
var errHalfway = fmt.Errorf("%w halfway", errStopped)

// Read implements sqlstore.DB.
func (s *stopper) Read(ctx context.Context, f func(sqlstore.Tx) error) error {
	if s.gone() {
		return errStopped
	}
	return s.DB.Read(ctx, f)
}

// Snapshot implements sqlstore.DB.
func (s *stopper) Snapshot(ctx context.Context, f func(sqlstore.Tx) error) error {
	if s.gone() {
		return errStopped
	}
	return s.DB.Snapshot(ctx, f)
}

// gone reports whether the process is stopped for good.
func (s *stopper) gone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.happened && s.what != failing
}

// begin records the rows at the beginning of a transaction, in case it is stopped.
func (s *stopper) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.transactions = append(s.transactions, span{first: s.points + 1})

	// This point may be in another transaction than when the points were counted: on a busy machine, repetitions shift
	// the points.
	longest := 0
	for _, known := range s.known {
		longest = max(longest, known.last-known.first+1)
	}
	if ahead := s.at - s.points; 0 < ahead && ahead <= longest+3 {
		s.want = s.dump()
	}
}

// reached counts a point within a transaction. It reports whether the transaction fails there.
func (s *stopper) reached(where string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.happened {
		return s.what != failing
	}
	if s.points++; s.points != s.at {
		return false
	}

	// Halfway, the process dies in Write, after the commit.
	s.happened, s.where = true, where
	if s.what == killed {
		s.die()
	}
	return true
}

// committed counts the point after COMMIT. It reports whether the reply is lost.
func (s *stopper) committed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.happened {
		return s.what != failing
	}
	if s.points++; s.points != s.at {
		return false
	}

	// The transaction is stored: the database must have all of it.
	s.happened, s.where, s.want = true, "after COMMIT", s.dump()
	if s.what != failing {
		s.die()
	}
	return true
}

// end records the last point of a transaction.
func (s *stopper) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.transactions[len(s.transactions)-1].last = s.points
}

// stoppedTx is a transaction of a stopper.
type stoppedTx struct {
	sqlstore.Tx
	s *stopper
}

// Exec implements sqlstore.Tx.
func (t *stoppedTx) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	n, err := t.Tx.Exec(ctx, query, args...)
	if err == nil && t.s.reached("after "+query) {
		return 0, t.s.stopped()
	}
	return n, err
}

// Query implements sqlstore.Tx. The rows come before the point: nothing is between them.
func (t *stoppedTx) Query(ctx context.Context, query string, args ...any) (sqlstore.Rows, error) {
	if t.s.reached("before " + query) {
		return nil, t.s.stopped()
	}
	return t.Tx.Query(ctx, query, args...)
}

// stopped returns the error of a statement in a stopped transaction.
func (s *stopper) stopped() error {
	if s.what == halfway {
		return errHalfway
	}
	return errStopped
}

// life is the processes of one point.
type life struct {
	Points
	t       *testing.T
	ctx     context.Context
	cancel  context.CancelFunc // the death of the process
	address string
	db      Store // opened by the process, or by the next one
	opened  []Store
	stopper *stopper
	history history
	mu      sync.Mutex // guards history and faults
	faults  []string
}

// begin opens a database for a process that will be stopped.
func (p Points) begin(t *testing.T, what stop, at int, transactions []span) *life {
	t.Helper()
	l := &life{Points: p, t: t, address: p.Database()}
	l.ctx, l.cancel = context.WithCancel(context.Background())

	db, err := p.Open(context.Background(), l.address, nil) // makes the tables
	require.NoError(t, err)
	require.NoError(t, db.Close())
	l.open(func(db sqlstore.DB) sqlstore.DB {
		l.stopper = &stopper{DB: db, what: what, at: at, known: transactions}
		l.stopper.dump = func() string { return l.Dump(l.address) }
		l.stopper.die = func() {
			l.address = l.Crash(l.address)
			l.cancel()
		}
		return l.stopper
	})

	l.stopper.armed.Store(true)
	return l
}

func (l *life) open(wrap func(sqlstore.DB) sqlstore.DB) {
	l.t.Helper()
	db, err := l.Open(context.Background(), l.address, wrap)
	require.NoError(l.t, err)
	l.db, l.opened = db, append(l.opened, db)
}

func (l *life) close() {
	l.cancel()
	for _, db := range l.opened {
		_ = db.Close() // the connections of a dead process are gone
	}
}

func (l *life) fault(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = append(l.faults, fmt.Sprintf(format, args...))
}

// inspect checks the database after the stop: it must have all of the transaction or nothing, and keep the invariants.
func (l *life) inspect() {
	l.t.Helper()

	// A process with a failing statement lives on and repeats it: later transactions have changed the rows.
	s := l.stopper
	if s.what != failing && s.happened {
		if is := l.Dump(l.address); is != s.want {
			l.fault("differs: the database has\n%s\nand must have\n%s", is, s.want)
		}
		l.open(nil)
	}
	l.invariants()
}
