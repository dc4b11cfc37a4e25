// Package sqlstore implements store.Driver on a database with SQL. It is one implementation for all databases: a
// package such as store/sqlite adds the transactions ([DB]) and the differences in the language ([Dialect]).
//
// # Tables
//
//   - plait_conversations gives each conversation a number. A number is never used again. All other tables have it too,
//     and can be partitioned by it.
//   - plait_nodes has one row for each record. A row is only inserted and deleted, except for redaction
//     (store.AppendRequest.Replace). Its seq rises: a record comes after all records in its links.
//   - plait_heads has one row for each head, with the IDs of its nodes. A head of the same name, made after a removal,
//     is another row.
//   - plait_index, plait_inbox and plait_beats belong to executor/durable.
//   - plait_schema has one row, with the version of these tables.
//
// IDs are 16 bytes, sums 32. A list of IDs is one value, the IDs one after the other.
package sqlstore

import (
	"context"
	"strings"
	"time"

	"github.com/plait-dev/plait/internal/bell"
	"github.com/plait-dev/plait/store"
)

// DB runs transactions.
type DB interface {
	// Write runs f in a transaction for writing, and commits it if f returns nil. It returns f's error as it is.
	// Several calls may share one commit; if the f of one call fails, only its own writes are undone. f may be run more
	// than once, because the transaction may fail for another reason.
	Write(ctx context.Context, f func(tx Tx) error) error
	// Read runs f with a read-only connection. Each query sees the state committed when it begins.
	Read(ctx context.Context, f func(tx Tx) error) error
	// Snapshot is Read with all queries seeing the same state.
	Snapshot(ctx context.Context, f func(tx Tx) error) error
	// Done is closed when the database is closed.
	Done() <-chan struct{}
}

// Tx runs statements. Parameters are $1, $2 and so on, in the order in which they first occur. An argument is an int64,
// a string, a []byte, or nil. A Tx is used by one goroutine. It reads each Rows to its end, or closes it, before the
// next statement.
type Tx interface {
	// Exec runs a statement and returns the number of changed rows.
	Exec(ctx context.Context, query string, args ...any) (int64, error)
	// Query runs a query.
	Query(ctx context.Context, query string, args ...any) (Rows, error)
	// Handle returns the transaction as other libraries on the same database take it; nil outside a transaction for
	// writing.
	Handle() any
}

// Rows are the rows of a query, as those of database/sql.
type Rows = store.Rows

// Dialect holds the differences between databases.
type Dialect struct {
	// Share locks the rows of a query against removal, until the transaction ends. Empty if a writing transaction is
	// alone anyway.
	Share string
	// ShareUnpruned is Share for a query for the conversation with the name $3. The query has no row if Prune has removed
	// records that the statement may see: it can begin before the end of Prune, and get the lock after it.
	ShareUnpruned string
	// Lock locks the rows of a query against Share and Lock of others.
	Lock string
	// Now is an expression for the database's clock, in microseconds since 1970.
	Now string
	// LockSchema is a statement that keeps others from making the tables at the same time. Empty if none is needed.
	LockSchema string
	// Schema replaces words in the statements for making tables: BYTES, NUMBER, RISING (a primary key, larger than all
	// others), SERIAL (the same, and never used again), NAME (text, compared byte by byte), TABLE_END and COVER.
	Schema *strings.Replacer
}

// Options are options of [New].
type Options struct {
	// Poll is the time between two looks of Watch for heads moved by other programs.
	Poll time.Duration
	// ReadOnly makes no tables. The tables must be there.
	ReadOnly bool
}

// Driver is a store.Transactor on a DB.
type Driver struct {
	db      DB
	dialect Dialect
	poll    time.Duration
	news    bell.Bells // by conversation: its heads have moved
	polls   polls
}

var _ store.Transactor = (*Driver)(nil)

// New returns a driver on db. It makes the tables, or brings them to the current version. The error is a *SchemaError
// if another version of Plait made them.
func New(ctx context.Context, db DB, dialect Dialect, opts Options) (*Driver, error) {
	d := &Driver{db: db, dialect: dialect, poll: opts.Poll}
	prepare, run := db.Write, func(tx Tx) error { return migrate(ctx, tx, dialect) }
	if opts.ReadOnly {
		prepare, run = db.Read, func(tx Tx) error { return checkVersion(ctx, tx) }
	}
	if err := prepare(ctx, run); err != nil {
		return nil, err
	}
	return d, nil
}

// each runs a query and calls f for every row.
func each(ctx context.Context, tx Tx, query string, args []any, f func(scan func(dest ...any) error) error) (err error) {
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	// Close even after an error of f: open rows would block the next statement of the Tx.
	defer func() {
		if closed := rows.Close(); err == nil {
			err = closed
		}
	}()

	for rows.Next() {
		if err := f(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// first scans the first row of a query, and reports whether there is one.
func first(ctx context.Context, tx Tx, query string, args []any, dest ...any) (found bool, err error) {
	err = each(ctx, tx, query, args, func(scan func(dest ...any) error) error {
		found = true
		return scan(dest...)
	})
	return found, err
}
