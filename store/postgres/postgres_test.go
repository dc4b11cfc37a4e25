package postgres_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/sqlstore"
	"github.com/plait-dev/plait/internal/testkit/pgtest"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/postgres"
)

// record returns the record number n, whose line has a size, with links to other numbers.
func record(n uint64, size int, links ...uint64) store.Record {
	r := store.Record{ID: id(n), Line: fmt.Appendf(nil, "%0*d", size, n)}
	for _, l := range links {
		r.Links = append(r.Links, id(l))
	}
	r.Sum = store.SumOf(r.Line)
	return r
}

func id(n uint64) (id node.ID) {
	binary.BigEndian.PutUint64(id[8:], n)
	return id
}

// next returns the append of record n, linked to the one before, to head "main" of conversation "talk".
func next(n uint64) store.AppendRequest {
	a := store.AppendRequest{Conversation: "talk", Head: "main", Expect: n - 1, Nodes: []node.ID{id(n)}}
	if n == 1 {
		a.Records = []store.Record{record(n, 1000)}
	} else {
		a.Records = []store.Record{record(n, 1000, n-1)}
	}
	return a
}

func appendAll(t testing.TB, db store.Driver, from, to uint64) {
	t.Helper()
	for n := from; n < to; n++ {
		_, err := db.Append(t.Context(), next(n))
		require.NoError(t, err)
	}
}

// newPool returns a pool that belongs to the test.
func newPool(t testing.TB, url string, change func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	require.NoError(t, err)
	change(config)
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

func TestProgramsMakeTheTablesAtTheSameTime(t *testing.T) {
	url := pgtest.Database(t)
	var all sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		all.Go(func() {
			db, err := postgres.Open(context.Background(), url, postgres.Patient)
			if err == nil {
				err = db.Close()
			}
			errs[i] = err
		})
	}
	all.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
}

func TestNewerSchemaIsRefused(t *testing.T) {
	url := pgtest.Database(t)
	openAt(t, url, nil)
	pool := newPool(t, url, func(*pgxpool.Config) {})
	_, err := pool.Exec(t.Context(), `UPDATE plait_schema SET version = 1000`)
	require.NoError(t, err)

	var schema *postgres.SchemaError
	_, err = postgres.Open(t.Context(), url, nil)
	require.ErrorAs(t, err, &schema)
	require.Equal(t, 1000, schema.Version)
	_, err = postgres.New(t.Context(), pool, nil)
	require.ErrorAs(t, err, &schema)
}

// The statements of a job queue on a pool of the program.
func TestConfiguredPoolLimitsStatementsOfOthers(t *testing.T) {
	var tracer pgx.QueryTracer
	pool := newPool(t, pgtest.Database(t), func(c *pgxpool.Config) {
		postgres.Configure(c, &postgres.Options{StatementTimeout: 100 * time.Millisecond})
		tracer = c.ConnConfig.Tracer
	})
	var server *pgconn.PgError
	_, err := pool.Exec(t.Context(), `SELECT pg_sleep(60)`)
	require.ErrorAs(t, err, &server)
	require.Equal(t, "57014", server.Code, "it is the server that ends a statement")

	// In a silent network, nothing but the end of this context ends a statement.
	ctx := tracer.TraceQueryStart(t.Context(), nil, pgx.TraceQueryStartData{})
	_, limited := ctx.Deadline()
	require.True(t, limited)
	tracer.TraceQueryEnd(ctx, nil, pgx.TraceQueryEndData{})
}

// guards is a tracer that asks for the guards in every transaction.
type guards struct{ begins []string }

func (g *guards) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if strings.HasPrefix(data.SQL, "begin") {
		g.begins = append(g.begins, data.SQL)
	}
	return ctx
}

func (g *guards) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func TestTransactionsOnAPoolOfTheProgramHaveTheGuards(t *testing.T) {
	g := &guards{}
	pool := newPool(t, pgtest.Database(t), func(c *pgxpool.Config) { c.ConnConfig.Tracer = g })
	db, err := postgres.New(t.Context(), pool, &postgres.Options{LockTimeout: 1234 * time.Millisecond})
	require.NoError(t, err)
	appendAll(t, db, 1, 3)
	require.NotEmpty(t, g.begins)
	for _, begin := range g.begins {
		require.Contains(t, begin, "set local idle_in_transaction_session_timeout = 5000")
		require.Contains(t, begin, "set local lock_timeout = 1234")
		require.Contains(t, begin, "set local statement_timeout = 30000")
	}

	// Outside of them, the connections are as the program has made them.
	var timeout string
	require.NoError(t, pool.QueryRow(t.Context(), `SHOW lock_timeout`).Scan(&timeout))
	require.Equal(t, "0", timeout)
	require.NoError(t, db.Close())
	require.NoError(t, pool.Ping(t.Context()))
}

func TestAppendDoesNotWaitForAStuckProgram(t *testing.T) {
	url := pgtest.Database(t)
	db := openAt(t, url, noWait)
	appendAll(t, db, 1, 3)

	pool := newPool(t, url, func(*pgxpool.Config) {})
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT num FROM plait_heads FOR UPDATE`)
	require.NoError(t, err)

	_, err = db.Append(t.Context(), next(3))
	var server *pgconn.PgError
	require.ErrorAs(t, err, &server)
	require.Equal(t, "55P03", server.Code, "lock not available")
	require.NoError(t, tx.Rollback(t.Context()))
	appendAll(t, db, 3, 4)
}

// statements is a tracer that counts statements.
type statements struct{ atomic.Int64 }

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	s.Add(1)
	return ctx
}

func (s *statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func TestAppendThatContinuesAHeadIsOneStatement(t *testing.T) {
	s := &statements{}
	pool := newPool(t, pgtest.Database(t), func(c *pgxpool.Config) { c.ConnConfig.Tracer = s })
	db, err := postgres.New(t.Context(), pool, postgres.Patient)
	require.NoError(t, err)
	defer db.Close()
	appendAll(t, db, 1, 10)

	for _, n := range []uint64{10, 500} {
		s.Store(0)
		appendAll(t, db, n, n+1)
		require.EqualValues(t, 1, s.Load(), "after %d records", n)
		appendAll(t, db, n+1, 500)
	}

	// A tool phase: two nodes behind one, then one behind both.
	s.Store(0)
	_, err = db.Append(t.Context(), store.AppendRequest{Conversation: "talk", Head: "main", Expect: 500,
		Records: []store.Record{record(501, 10, 500), record(502, 10, 500)}, Nodes: []node.ID{id(501), id(502)}})
	require.NoError(t, err)
	_, err = db.Append(t.Context(), store.AppendRequest{Conversation: "talk", Head: "main", Expect: 501,
		Records: []store.Record{record(503, 10, 501, 502)}, Nodes: []node.ID{id(503)}})
	require.NoError(t, err)
	require.EqualValues(t, 2, s.Load())
	require.NoError(t, db.Check(t.Context()))
}

func TestForksCopyNoRecords(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	db := openAt(t, url, nil)
	appendAll(t, db, 1, 101)
	for i := range 100 {
		_, err := db.Append(t.Context(), store.AppendRequest{
			Conversation: "talk", Head: fmt.Sprint("fork", i), Nodes: []node.ID{id(50)},
		})
		require.NoError(t, err)
	}

	var nodes, heads int
	pool := newPool(t, url, func(*pgxpool.Config) {})
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT COUNT(*) FROM plait_nodes`).Scan(&nodes))
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT COUNT(*) FROM plait_heads`).Scan(&heads))
	require.Equal(t, []int{100, 101}, []int{nodes, heads})
}

// beforeCommit calls a function at the end of each transaction, before its commit. It hides the append of one
// statement.
type beforeCommit struct {
	sqlstore.DB
	call func()
}

func (db beforeCommit) Write(ctx context.Context, f func(sqlstore.Tx) error) error {
	return db.DB.Write(ctx, func(tx sqlstore.Tx) error {
		err := f(tx)
		db.call()
		return err
	})
}

func TestPruneWaitsForAnAppendOfStoredRecords(t *testing.T) {
	url := pgtest.Database(t)
	pruner := openAt(t, url, noWait)
	appendAll(t, pruner, 1, 4)

	// Back to the second record: no head reaches the third one any more, and it is still stored.
	_, err := pruner.Append(t.Context(), store.AppendRequest{Conversation: "talk", Head: "main", Expect: 3, Nodes: []node.ID{id(2)}})
	require.NoError(t, err)

	prune := func() {}
	pool := newPool(t, url, func(*pgxpool.Config) {})
	db, err := postgres.NewWrapped(t.Context(), pool, func(db sqlstore.DB) sqlstore.DB {
		return beforeCommit{db, func() { prune() }}
	})
	require.NoError(t, err)
	defer db.Close()

	var pruned error
	prune = func() { _, pruned = pruner.Prune(t.Context(), "talk", false) }
	_, err = db.Append(t.Context(), store.AppendRequest{Conversation: "talk", Head: "main", Expect: 4,
		Records: []store.Record{record(3, 1000, 2)}, Nodes: []node.ID{id(3)}})
	require.NoError(t, err)
	require.NoError(t, pruner.Check(t.Context()))

	var server *pgconn.PgError
	require.ErrorAs(t, pruned, &server)
	require.Equal(t, "55P03", server.Code, "lock not available")
}

// lossy is a proxy that can lose the reply to a commit. Its pool has one connection.
type lossy struct {
	armed atomic.Bool // the next reply that ends a transaction is lost, with its connection
	pool  *pgxpool.Pool
}

func newLossy(t *testing.T) *lossy {
	t.Helper()
	l := &lossy{}
	url := pgtest.Database(t)
	l.pool = newPool(t, url, func(c *pgxpool.Config) {
		c.MaxConns = 1
		c.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
		dial := c.ConnConfig.DialFunc
		c.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			return lossyConn{conn, l}, err
		}
	})
	return l
}

// lossyConn is a connection that loses a reply.
type lossyConn struct {
	net.Conn
	lossy *lossy
}

func (c lossyConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)

	// The last message of a reply: ready for a query, outside of a transaction.
	if bytes.HasSuffix(p[:n], []byte("Z\x00\x00\x00\x05I")) && c.lossy.armed.CompareAndSwap(true, false) {
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

func TestAppendWhoseReplyIsLostCanBeRepeated(t *testing.T) {
	for name, from := range map[string]uint64{"in a transaction": 1, "in one statement": 3} {
		t.Run(name, func(t *testing.T) {
			l := newLossy(t)
			db, err := postgres.New(t.Context(), l.pool, postgres.Patient)
			require.NoError(t, err)
			defer db.Close()
			appendAll(t, db, 1, from)

			l.armed.Store(true)
			_, err = db.Append(t.Context(), next(from))
			require.Error(t, err)
			require.NotErrorIs(t, err, store.ErrMoved)
			require.False(t, l.armed.Load())

			_, err = db.Append(t.Context(), next(from))
			var conflict *store.ConflictError
			require.ErrorAs(t, err, &conflict)
			require.Equal(t, store.Head{Name: "main", Version: from, Nodes: []node.ID{id(from)}}, conflict.Current)
			appendAll(t, db, from+1, from+2)
			require.NoError(t, db.Check(t.Context()))
		})
	}
}

func TestAppendsOfTheSameRecordsInAnyOrderSucceed(t *testing.T) {
	t.Parallel()
	db := openNew(t, nil)

	// Two appends with the same records in opposite order, each in a head of its own. The one that inserts a record
	// first makes the other wait.
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range uint64(5) {
				a := store.AppendRequest{Conversation: "talk", Head: fmt.Sprint("head", i), Expect: n}
				for k := range uint64(300) {
					if i%2 == 1 {
						k = 299 - k
					}
					a.Records = append(a.Records, record(1000*n+k+1, 10))
				}
				if _, err := db.Append(context.Background(), a); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	require.NoError(t, db.Check(t.Context()))
}

func TestCloseRefusesLaterCalls(t *testing.T) {
	db := openNew(t, nil)
	appendAll(t, db, 1, 3)
	require.NoError(t, db.Close())
	_, err := db.Head(t.Context(), "talk", "main")
	require.ErrorIs(t, err, fs.ErrClosed)
	_, err = db.Append(t.Context(), next(3))
	require.ErrorIs(t, err, fs.ErrClosed)
	for _, err := range db.Watch(t.Context(), "talk") {
		require.ErrorIs(t, err, fs.ErrClosed)
	}
}

// surviveACrash crashes the server under an open program.
func surviveACrash(t *testing.T, cluster *pgtest.Cluster) {
	url, err := cluster.Database()
	require.NoError(t, err)
	db := openAt(t, url, nil)
	appendAll(t, db, 1, 50)

	require.NoError(t, cluster.Stop(true))
	_, err = db.Append(t.Context(), next(50))
	require.Error(t, err)
	require.NoError(t, cluster.Restart())

	// The first statement may get a connection that the server has closed.
	for range 100 {
		if _, err = db.Append(t.Context(), next(50)); err == nil {
			break
		}
	}
	require.NoError(t, err)
	require.NoError(t, db.Check(t.Context()))
	h, err := db.Head(t.Context(), "talk", "main")
	require.NoError(t, err)
	require.EqualValues(t, 50, h.Version)
}
