package postgres

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/plait-dev/plait/internal/sqlstore"
)

// database runs transactions on a pool.
type database struct {
	pool          *pgxpool.Pool
	owned         bool   // Close closes the pool
	guards        string // statements that follow BEGIN
	commitTimeout time.Duration

	mu      sync.Mutex     // guards closed, and running.Add: no call begins after Close
	closed  bool           // set by Close
	running sync.WaitGroup // the calls under way
	closing chan struct{}  // closed by Close
}

// enter begins a call, which ends with db.running.Done.
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

// Close waits for calls that are running.
func (db *database) Close() error {
	db.mu.Lock()
	if !db.closed {
		db.closed = true
		close(db.closing)
	}
	db.mu.Unlock()

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

// mayRunAgain reports whether the server has undone a transaction because of others, so that it can succeed the next
// time.
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
	tx, err := db.pool.BeginTx(ctx, pgx.TxOptions{BeginQuery: begin + db.guards})
	if err != nil {
		return err
	}

	// COMMIT and ROLLBACK do not depend on the caller's context: a commit that is cancelled halfway has an unknown
	// effect.
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), db.commitTimeout)
	defer cancel()
	committed := false
	defer func() {
		if !committed {
			_ = tx.Rollback(ending) // after an error, or a panic of f; the server undoes it in any case
		}
	}()

	if err := f(queries{tx}); err != nil {
		return err
	}
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
	return f(queries{db.pool})
}

// queries is a sqlstore.Tx on a transaction or on the pool.
type queries struct {
	on interface {
		Exec(ctx context.Context, query string, args ...any) (pgconn.CommandTag, error)
		Query(ctx context.Context, query string, args ...any) (pgx.Rows, error)
	}
}

// Exec implements sqlstore.Tx.
func (q queries) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	tag, err := q.on.Exec(ctx, query, args...)
	return tag.RowsAffected(), err
}

// Query implements sqlstore.Tx.
func (q queries) Query(ctx context.Context, query string, args ...any) (sqlstore.Rows, error) {
	found, err := q.on.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return rows{found}, nil
}

// rows are sqlstore.Rows.
type rows struct{ pgx.Rows }

// Close implements sqlstore.Rows.
func (r rows) Close() error {
	r.Rows.Close()
	return r.Err()
}
