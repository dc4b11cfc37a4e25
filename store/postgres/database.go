package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/internal/sqlstore"
)

// database runs transactions on a pool.
type database struct {
	pool          *pgxpool.Pool
	owned         bool   // Close closes the pool
	guards        string // statements after BEGIN
	commitTimeout time.Duration
	replyTimeout  time.Duration // how long the reply to a statement may take; 0 is no limit

	mu      sync.Mutex     // guards closed, and running.Add: no call begins after Close
	closed  bool           // set by Close
	running sync.WaitGroup // the calls under way
	closing chan struct{}  // closed by Close

	groups groups // of appends
}

// enter begins a call. End it with db.running.Done.
func (db *database) enter() error {
	db.mu.Lock()
	defer db.mu.Unlock()

	if db.closed {
		return fs.ErrClosed
	}
	db.running.Add(1)
	return nil
}

// Done implements sqlstore.DB.
func (db *database) Done() <-chan struct{} { return db.closing }

// Close waits for running calls.
func (db *database) Close() error {
	db.mu.Lock()
	if !db.closed {
		db.closed = true
		close(db.closing)
	}
	db.mu.Unlock()

	// No call begins any more: wait for those under way.
	db.running.Wait()
	if db.owned {
		db.pool.Close()
	}
	return nil
}

// attempts is how often a transaction is run, the first time included.
const attempts = 10

// Write implements sqlstore.DB. It runs f again after a deadlock or a serialization failure.
func (db *database) Write(ctx context.Context, f func(sqlstore.Tx) error) error {
	if err := db.enter(); err != nil {
		return err
	}
	defer db.running.Done()

	err := db.transaction(ctx, "begin", f)
	for range attempts - 1 {
		if !mayRunAgain(err) {
			break
		}
		err = db.transaction(ctx, "begin", f)
	}
	return err
}

// mayRunAgain reports whether the server has undone a transaction because of others. It may succeed the next time.
func mayRunAgain(err error) bool {
	const serializationFailure, deadlockDetected = "40001", "40P01"
	var server *pgconn.PgError
	return errors.As(err, &server) && (server.Code == serializationFailure || server.Code == deadlockDetected)
}

// Snapshot implements sqlstore.DB.
func (db *database) Snapshot(ctx context.Context, f func(sqlstore.Tx) error) error {
	if err := db.enter(); err != nil {
		return err
	}
	defer db.running.Done()
	return db.transaction(ctx, "begin isolation level repeatable read read only", f)
}

// transaction runs f in a transaction.
func (db *database) transaction(ctx context.Context, begin string, f func(sqlstore.Tx) error) error {
	conn, err := db.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()

	// The guards are in the statement of BEGIN: one round trip for all.
	var tx pgx.Tx
	err = db.await(ctx, func(ctx context.Context) error {
		tx, err = conn.BeginTx(ctx, pgx.TxOptions{BeginQuery: begin + db.guards})
		return err
	})
	if err != nil {
		return err
	}

	// COMMIT and ROLLBACK do not depend on the caller's context: a commit cancelled halfway has an unknown effect.
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), db.commitTimeout)
	defer cancel()
	committed := false
	defer func() {
		if !committed {
			_ = tx.Rollback(ending) // after an error, or a panic of f; the server undoes it in any case
		}
	}()

	if err := f(queries{tx, db}); err != nil {
		return err
	}

	// The last moment to give up without an effect.
	if err := ctx.Err(); err != nil {
		return err
	}

	committed = true // even if Commit fails: its effect is then unknown, and there is nothing to roll back
	return tx.Commit(ending)
}

// Read implements sqlstore.DB.
func (db *database) Read(ctx context.Context, f func(sqlstore.Tx) error) error {
	if err := db.enter(); err != nil {
		return err
	}
	defer db.running.Done()

	conn, err := db.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	return f(queries{conn, db})
}

// limit returns a context for one statement. The server ends a statement after StatementTimeout; if the network is
// silent, nobody hears of it, and only this limit ends the wait.
func (db *database) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if db.replyTimeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, db.replyTimeout)
}

// await runs one statement with the limit.
func (db *database) await(ctx context.Context, statement func(context.Context) error) error {
	limited, cancel := db.limit(ctx)
	defer cancel()
	return db.silent(ctx, limited, statement(limited))
}

// silent returns err. It adds that the server did not reply, if the limit has passed and the caller's context has not
// ended.
func (db *database) silent(ctx, limited context.Context, err error) error {
	if err != nil && ctx.Err() == nil && limited.Err() == context.DeadlineExceeded {
		return fmt.Errorf("postgres: the server did not reply within %v: %w", db.replyTimeout, err)
	}
	return err
}

// queries is a sqlstore.Tx on a transaction or on a connection.
type queries struct {
	on interface {
		Exec(ctx context.Context, query string, args ...any) (pgconn.CommandTag, error)
		Query(ctx context.Context, query string, args ...any) (pgx.Rows, error)
	}
	db *database
}

// Exec implements sqlstore.Tx.
func (q queries) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	var tag pgconn.CommandTag
	err := q.db.await(ctx, func(ctx context.Context) (err error) {
		tag, err = q.on.Exec(ctx, query, armored(args)...)
		return err
	})
	return tag.RowsAffected(), err
}

// Query implements sqlstore.Tx. The limit ends with the rows.
func (q queries) Query(ctx context.Context, query string, args ...any) (sqlstore.Rows, error) {
	limited, cancel := q.db.limit(ctx)
	found, err := q.on.Query(limited, query, armored(args)...)
	if err != nil {
		defer cancel()
		return nil, q.db.silent(ctx, limited, err)
	}
	return rows{found, func(err error) error {
		defer cancel()
		return q.db.silent(ctx, limited, err)
	}}, nil
}

// Handle implements sqlstore.Tx.
func (q queries) Handle() any {
	if tx, ok := q.on.(pgx.Tx); ok {
		return tx
	}
	return nil
}

// armored returns args with each text in a form that PostgreSQL accepts. PostgreSQL refuses NUL and invalid UTF-8, and
// models may write both into the IDs of calls. Scan returns the original texts.
func armored(args []any) []any {
	own := false
	for i, arg := range args {
		text, isText := arg.(string)
		if !isText {
			continue
		}
		if safe := safetext.Armor(text); safe != text {
			if !own {
				args, own = slices.Clone(args), true
			}
			args[i] = safe
		}
	}
	return args
}

// rows are sqlstore.Rows.
type rows struct {
	pgx.Rows
	end func(err error) error // ends the limit, and returns the error with its reason
}

// Next implements sqlstore.Rows. The last row ends the limit.
func (r rows) Next() bool {
	more := r.Rows.Next()
	if !more {
		_ = r.Close() // each later Err and Close returns the error too
	}
	return more
}

// Scan implements sqlstore.Rows.
func (r rows) Scan(dest ...any) error {
	err := r.Rows.Scan(dest...)
	for _, to := range dest {
		if text, isText := to.(*string); isText {
			*text = safetext.Unarmor(*text)
		}
	}
	return err
}

// Err implements sqlstore.Rows.
func (r rows) Err() error { return r.end(r.Rows.Err()) }

// Close implements sqlstore.Rows.
func (r rows) Close() error {
	r.Rows.Close()
	return r.end(r.Rows.Err())
}
