package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/sqlstore"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// concurrently runs f(0) to f(n-1) at once, and waits for all.
func concurrently(n int, f func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

// together gives the writer jobs that wait at the same time. It returns their errors, and the number of jobs in each
// commit.
func together(t *testing.T, db *DB, jobs ...func(tx sqlstore.Tx) error) (errs []error, commits []int) {
	t.Helper()
	waiting := make([]*job, len(jobs))
	for i, f := range jobs {
		waiting[i] = &job{ctx: t.Context(), done: make(chan struct{}), write: f}
	}

	// A job that reads runs on the goroutine of the writer, between two transactions.
	err := db.database.do(&job{ctx: t.Context(), read: func(c *connection) error {
		db.database.commits = func(jobs int) { commits = append(commits, jobs) }
		w := writer{db: db.database, conn: c}
		w.run(waiting)
		db.database.commits = func(int) {}
		return nil
	}})
	require.NoError(t, err)
	for _, j := range waiting {
		<-j.done
		errs = append(errs, j.err)
	}
	return errs, commits
}

func insert(value int) func(tx sqlstore.Tx) error {
	return func(tx sqlstore.Tx) error {
		_, err := tx.Exec(context.Background(), `INSERT INTO probe (value) VALUES ($1)`, int64(value))
		return err
	}
}

// probe makes a table for tests, and returns a function that reads it.
func probe(t *testing.T, db *DB) func() (values []int64) {
	t.Helper()
	require.NoError(t, db.database.Write(t.Context(), func(tx sqlstore.Tx) error {
		_, err := tx.Exec(t.Context(), `CREATE TABLE probe (value INTEGER UNIQUE)`)
		return err
	}))
	return func() (values []int64) {
		require.NoError(t, db.database.Read(t.Context(), func(tx sqlstore.Tx) error {
			rows, err := tx.Query(t.Context(), `SELECT value FROM probe ORDER BY value`)
			require.NoError(t, err)
			defer rows.Close()
			for rows.Next() {
				var v int64
				require.NoError(t, rows.Scan(&v))
				values = append(values, v)
			}
			return rows.Err()
		}))
		return values
	}
}

func TestWaitingJobsShareOneCommit(t *testing.T) {
	db, _ := openNew(t, nil)
	values := probe(t, db)
	var jobs []func(tx sqlstore.Tx) error
	var want []int64
	for i := range 64 {
		jobs = append(jobs, insert(i))
		want = append(want, int64(i))
	}

	errs, commits := together(t, db, jobs...)
	require.NoError(t, errors.Join(errs...))
	require.Equal(t, []int{64}, commits)
	require.Equal(t, want, values())
}

func TestFailedJobDoesNotFailTheOthers(t *testing.T) {
	db, _ := openNew(t, nil)
	values := probe(t, db)
	own := errors.New("its own")
	errs, commits := together(t, db, insert(1), insert(1), insert(2),
		func(tx sqlstore.Tx) error { return errors.Join(insert(3)(tx), own) }, insert(4))
	require.NoError(t, errs[0])
	require.ErrorContains(t, errs[1], "UNIQUE")
	require.NoError(t, errs[2])
	require.ErrorIs(t, errs[3], own)
	require.NoError(t, errs[4])
	require.Equal(t, []int{5}, commits)
	require.Equal(t, []int64{1, 2, 4}, values())
}

func TestJobsRunAloneAfterTheirTransactionHasFailed(t *testing.T) {
	db, _ := openNew(t, nil)
	values := probe(t, db)

	// What SQLite does when the disk is full.
	undone := func(tx sqlstore.Tx) error {
		_, err := tx.Exec(t.Context(), `ROLLBACK`)
		return errors.Join(err, errors.New("no space"))
	}
	errs, commits := together(t, db, insert(1), undone, insert(2))
	require.NoError(t, errs[0])
	require.ErrorContains(t, errs[1], "no space")
	require.NoError(t, errs[2])
	require.Equal(t, []int{1, 1}, commits)
	require.Equal(t, []int64{1, 2}, values())
}

func TestPanicOfAJobComesOutOfItsCall(t *testing.T) {
	db, _ := openNew(t, nil)
	values := probe(t, db)
	require.PanicsWithValue(t, "oh", func() {
		_ = db.database.Write(t.Context(), func(tx sqlstore.Tx) error {
			_ = insert(1)(tx)
			panic("oh")
		})
	})
	require.NoError(t, db.database.Write(t.Context(), insert(2)))
	require.Equal(t, []int64{2}, values())
}

func TestJobThatWasGivenUpIsNotRun(t *testing.T) {
	db, _ := openNew(t, nil)
	values := probe(t, db)
	ctx, cancel := context.WithCancel(t.Context())

	// The first job gives up the second one, which waits behind it in the same batch.
	given := &job{ctx: ctx, done: make(chan struct{}), write: insert(2)}
	first := &job{ctx: t.Context(), done: make(chan struct{}), read: func(*connection) error {
		cancel()
		require.True(t, given.taken.CompareAndSwap(false, true))
		return nil
	}}
	require.NoError(t, db.database.do(&job{ctx: t.Context(), read: func(c *connection) error {
		w := writer{db: db.database, conn: c}
		w.run([]*job{first, given})
		return nil
	}}))
	require.Empty(t, values())

	require.ErrorIs(t, db.database.Write(ctx, insert(3)), context.Canceled)
	require.Empty(t, values())
}

func TestLostConnectionsAreReplaced(t *testing.T) {
	db, _ := openNew(t, nil)
	chain(t, db, "talk", "main", 1, 3)
	lose := func(c *connection) error {
		c.broken = true
		return nil
	}
	require.NoError(t, db.database.do(&job{ctx: t.Context(), read: lose}))
	for range cap(db.database.readers) {
		require.NoError(t, db.database.read(t.Context(), lose))
	}
	chain(t, db, "talk", "main", 3, 5)
	require.Equal(t, 4, read(t, db, "talk", 4))
}

func TestConcurrentAppendsAreAllStored(t *testing.T) {
	db, _ := openNew(t, nil)
	commits, jobs := 0, 0
	require.NoError(t, db.database.do(&job{ctx: t.Context(), read: func(*connection) error {
		db.database.commits = func(n int) { commits, jobs = commits+1, jobs+n }
		return nil
	}}))

	const writers, appends = 64, 10
	concurrently(writers, func(i int) {
		for n := range uint64(appends) {
			chain(t, db, fmt.Sprint("talk", i), "main", n+1, n+2)
		}
	})
	var counted [2]int
	require.NoError(t, db.database.do(&job{ctx: t.Context(), read: func(*connection) error {
		counted = [2]int{commits, jobs}
		return nil
	}}))
	require.Equal(t, writers*appends, counted[1])
	if runtime.GOMAXPROCS(0) > 1 { // with one processor, appends seldom wait for each other
		require.Less(t, counted[0], counted[1]/2)
	}
	for i := range writers {
		h, err := db.Head(t.Context(), fmt.Sprint("talk", i), "main")
		require.NoError(t, err)
		require.EqualValues(t, appends, h.Version)
	}
}

// counted counts the statements of a Tx.
type counted struct {
	*database
	statements, rows *int
}

func (c counted) Write(ctx context.Context, f func(sqlstore.Tx) error) error {
	return c.database.Write(ctx, func(tx sqlstore.Tx) error { return f(countedTx{tx, c}) })
}

func (c counted) Read(ctx context.Context, f func(sqlstore.Tx) error) error {
	return c.database.Read(ctx, func(tx sqlstore.Tx) error { return f(countedTx{tx, c}) })
}

type countedTx struct {
	sqlstore.Tx
	counted counted
}

func (c countedTx) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	*c.counted.statements++
	return c.Tx.Exec(ctx, query, args...)
}

func (c countedTx) Query(ctx context.Context, query string, args ...any) (sqlstore.Rows, error) {
	*c.counted.statements++
	rows, err := c.Tx.Query(ctx, query, args...)
	return countedRows{rows, c.counted}, err
}

type countedRows struct {
	sqlstore.Rows
	counted counted
}

func (r countedRows) Next() bool {
	*r.counted.rows++
	return r.Rows.Next()
}

// newCounted returns a driver and the numbers of statements and rows since the last call.
func newCounted(t *testing.T) (*sqlstore.Driver, func() (statements, rows int)) {
	t.Helper()
	db, _ := openNew(t, nil)
	c := counted{db.database, new(int), new(int)}
	driver, err := sqlstore.New(t.Context(), c, dialect, sqlstore.Options{Poll: 1})
	require.NoError(t, err)
	return driver, func() (statements, rows int) {
		statements, rows = *c.statements, *c.rows
		*c.statements, *c.rows = 0, 0
		return statements, rows
	}
}

func TestAppendRunsTwoStatementsAfterAnyNumberOfNodes(t *testing.T) {
	driver, count := newCounted(t)
	next := uint64(1)
	for _, nodes := range []uint64{10, 1000, 5000} {
		chain(t, driver, "talk", "main", next, nodes)
		next = nodes + 1
		h, err := driver.Head(t.Context(), "talk", "main")
		require.NoError(t, err)

		count()
		_, err = driver.Append(t.Context(), store.AppendRequest{Conversation: "talk", Head: "main", Expect: h.Version,
			Records: []store.Record{record(nodes, 1000, nodes-1)}, Nodes: []node.ID{id(nodes)}})
		require.NoError(t, err)
		statements, rows := count()
		require.Equal(t, 2, statements, "the head is moved, the record is inserted")
		require.LessOrEqual(t, rows, 4)
	}
}

func TestForksCopyNoRecords(t *testing.T) {
	t.Parallel()
	driver, count := newCounted(t)
	chain(t, driver, "talk", "main", 1, 101)
	count()
	for i := range 100 {
		_, err := driver.Append(t.Context(), store.AppendRequest{
			Conversation: "talk", Head: fmt.Sprint("fork", i), Nodes: []node.ID{id(50)},
		})
		require.NoError(t, err)
	}
	statements, _ := count()
	require.Equal(t, 300, statements, "the head is read, the record is looked up, the head is inserted")

	pruned, err := driver.Prune(t.Context(), "talk", true)
	require.NoError(t, err)
	require.Zero(t, pruned)
	require.Equal(t, 100, read(t, driver, "talk", 100))
}

// moving moves a head before each of the next transactions.
type moving struct {
	counted
	times *int // how often
	move  func()
}

func (m moving) Write(ctx context.Context, f func(sqlstore.Tx) error) error {
	if *m.times > 0 {
		*m.times--
		m.move()
	}
	return m.counted.Write(ctx, f)
}

func TestPruneLooksAtAllNodesWithoutALock(t *testing.T) {
	for _, c := range []struct {
		moves  int
		locked bool
	}{{0, false}, {2, false}, {3, true}, {1000, true}} {
		t.Run(fmt.Sprintf("moves=%d", c.moves), func(t *testing.T) {
			db, _ := openNew(t, nil)
			chain(t, db, "talk", "main", 1, 101)
			fork := store.AppendRequest{Conversation: "talk", Head: "fork", Nodes: []node.ID{id(100)}}
			move := func() {
				_, err := db.Append(t.Context(), fork)
				require.NoError(t, err)
				fork.Expect++
			}
			move()
			chain(t, db, "talk", "main", 101, 111)
			require.NoError(t, db.RemoveHead(t.Context(), "talk", "main", 2))

			m := moving{counted{db.database, new(int), new(int)}, new(int), move}
			driver, err := sqlstore.New(t.Context(), m, dialect, sqlstore.Options{Poll: 1})
			require.NoError(t, err)
			*m.rows, *m.times = 0, c.moves
			pruned, err := driver.Prune(t.Context(), "talk", false)
			require.NoError(t, err)
			require.Equal(t, 10, pruned.Records)
			require.Equal(t, c.locked, *m.rows > 110, "%d rows", *m.rows)
			require.NoError(t, db.Check(t.Context()))
		})
	}
}

// slowly lets each transaction take a second.
type slowly struct {
	sqlstore.DB
	writes *int
}

func (s slowly) Write(ctx context.Context, f func(sqlstore.Tx) error) error {
	*s.writes++
	time.Sleep(time.Second)
	return s.DB.Write(ctx, f)
}

// TestPruneRestsAfterEachTransaction in a bubble: no time passes but that of the transactions and the rests.
func TestPruneRestsAfterEachTransaction(t *testing.T) {
	path := newFiles(t)()
	synctest.Test(t, func(t *testing.T) {
		db, err := Open(t.Context(), path, nil)
		require.NoError(t, err)
		defer db.Close()
		fill := func() {
			chain(t, db, "talk", "main", 1, 2501)
			h, err := db.Head(t.Context(), "talk", "main")
			require.NoError(t, err)
			require.NoError(t, db.RemoveHead(t.Context(), "talk", "main", h.Version))
		}
		_, err = db.Append(t.Context(), store.AppendRequest{Conversation: "talk", Head: "kept"})
		require.NoError(t, err)

		fill()
		writes := 0
		slow, err := sqlstore.New(t.Context(), slowly{db.database, &writes}, dialect, sqlstore.Options{Poll: 1})
		require.NoError(t, err)
		writes = 0
		began := time.Now()
		pruned, err := slow.Prune(t.Context(), "talk", false)
		require.NoError(t, err)
		require.Equal(t, 2500, pruned.Records)
		require.Equal(t, 3, writes)
		require.Equal(t, 6*time.Second, time.Since(began), "a rest after each")

		// A rest ends with the context, and the records of the transaction before are removed.
		fill()
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		_, err = slow.Prune(ctx, "talk", false)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		pruned, err = slow.Prune(t.Context(), "talk", true)
		require.NoError(t, err)
		require.Equal(t, 1500, pruned.Records)
	})
}

func TestPruneOfNothingWritesNothing(t *testing.T) {
	db, _ := openNew(t, nil)
	chain(t, db, "talk", "main", 1, 4)
	commits := 0
	require.NoError(t, db.database.do(&job{ctx: t.Context(), read: func(*connection) error {
		db.database.commits = func(int) { commits++ }
		return nil
	}}))

	pruned, err := db.Prune(t.Context(), "talk", false)
	require.NoError(t, err)
	require.Zero(t, pruned)
	require.Zero(t, commits)
}

func TestReadSkipsOtherBranches(t *testing.T) {
	driver, count := newCounted(t)

	// A common beginning of 100 records, and 200 branches of 20 records that grow at the same time.
	const common, branches, length = 100, 200, 20
	chain(t, driver, "talk", "main", 1, common+1)
	name := func(branch int, n uint64) uint64 { return 1000*uint64(branch+1) + n }
	a := store.AppendRequest{Conversation: "talk", Head: "branches"}
	for n := range uint64(length) {
		for b := range branches {
			parent := uint64(common)
			if n > 0 {
				parent = name(b, n-1)
			}
			a.Records = append(a.Records, record(name(b, n), 100, parent))
		}
	}
	for b := range branches {
		a.Nodes = append(a.Nodes, id(name(b, length-1)))
	}
	_, err := driver.Append(t.Context(), a)
	require.NoError(t, err)

	count()
	require.Equal(t, common+length, read(t, driver, "talk", name(0, length-1)))
	statements, rows := count()
	require.Less(t, rows, 24*(common+length), "of %d records", common+branches*length)
	require.Less(t, statements, 4*(common+length))
}

func TestReadReadsNoLinesOfOtherBranches(t *testing.T) {
	driver, count := newCounted(t)
	a := store.AppendRequest{Conversation: "talk", Head: "both"}
	const length = 200
	for n := range uint64(length) {
		for _, branch := range []uint64{1, 2} {
			r := record(1000*branch+n, 100)
			if n > 0 {
				r.Links = []node.ID{id(1000*branch + n - 1)}
			}
			a.Records = append(a.Records, r)
		}
	}
	a.Nodes = []node.ID{id(1000 + length - 1), id(2000 + length - 1)}
	_, err := driver.Append(t.Context(), a)
	require.NoError(t, err)

	count()
	require.Equal(t, length, read(t, driver, "talk", 1000+length-1))
	statements, rows := count()
	newest, first, walked, ends := 16, 1, 2*length, statements
	require.LessOrEqual(t, rows, newest+first+walked+length+ends)
}
