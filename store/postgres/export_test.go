package postgres

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/plait-dev/plait/internal/sqlstore"
)

// OpenWrapped is Open with a pool that the caller closes, and with something around the transactions.
func OpenWrapped(ctx context.Context, pool *pgxpool.Pool, wrap func(sqlstore.DB) sqlstore.DB) (*DB, error) {
	opts := (*Options)(nil).withDefaults()
	db := &database{pool: pool, commitTimeout: opts.StatementTimeout, closing: make(chan struct{})}
	driver, err := sqlstore.New(ctx, wrap(db), dialect, sqlstore.Options{Poll: opts.Poll})
	if err != nil {
		return nil, err
	}
	return &DB{Runs: driver, sqlstore: driver, database: db}, nil
}
