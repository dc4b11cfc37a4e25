package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/plait-dev/plait/internal/sqlstore"
)

// Patient are options for tests that are not about the guards. On a busy machine a process may be paused in a
// transaction for longer than the defaults allow, and another one waits for its locks.
var Patient = &Options{IdleTimeout: Patience, LockTimeout: Patience, StatementTimeout: Patience}

// Patience is how long tests wait for what must happen. Only a test that hangs waits for so long.
const Patience = 5 * time.Minute

// NewWrapped is New with something around the transactions.
func NewWrapped(ctx context.Context, pool *pgxpool.Pool, wrap func(sqlstore.DB) sqlstore.DB) (*DB, error) {
	return openWrapped(ctx, &database{pool: pool}, Patient.withDefaults(), wrap)
}

func openWrapped(ctx context.Context, db *database, o Options, wrap func(sqlstore.DB) sqlstore.DB) (*DB, error) {
	db.commitTimeout = o.StatementTimeout
	db.closing = make(chan struct{})
	driver, err := sqlstore.New(ctx, wrap(db), dialect, sqlstore.Options{Poll: o.Poll})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &DB{Transactor: driver, sqlstore: driver, database: db}, nil
}

// Waiting returns the number of appends that wait for the next group.
func (db *DB) Waiting() int {
	db.database.groups.mu.Lock()
	defer db.database.groups.mu.Unlock()
	return len(db.database.groups.waiting)
}

// Began returns the number of appends that have a statement or a group.
func (db *DB) Began() int {
	g := &db.database.groups
	g.mu.Lock()
	defer g.mu.Unlock()

	n := g.running
	if g.alone {
		n++
	}
	return n
}
