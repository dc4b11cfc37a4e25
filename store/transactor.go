package store

import "context"

// Transactor is a [Driver] on a database with transactions. Appends and rows of a program's own tables commit together.
// A program calls it without a Store, so its methods return the errors of [CheckName] and [Page.Check].
type Transactor interface {
	Driver

	// Update runs f in a transaction for writing, and commits it if f returns nil. It returns f's error as it is.
	//
	//   - f may be run more than once, because the database may undo the transaction for another reason. It has no
	//     effect outside the transaction.
	//   - f uses tx alone: another method of the driver could wait for the transaction.
	//   - After an error of a method of tx, f returns an error.
	//   - Several calls may share one commit. If the f of one call fails, only its own writes are undone.
	Update(ctx context.Context, f func(tx Tx) error) error

	// AppendIf appends as [Driver.Append] does, if a query has a row. Both are one transaction, and often one statement:
	// it is faster than an Update. It reports false, and does nothing, if the query has no row. The query may lock its
	// rows; its parameters are as in [Tx].
	AppendIf(ctx context.Context, a AppendRequest, query string, args ...any) (Head, bool, error)

	// View runs f with a read-only Tx. Each query sees the state committed when it begins.
	View(ctx context.Context, f func(tx Tx) error) error
}

// Tx is a transaction of a [Transactor]. One goroutine uses it, until its function returns.
type Tx interface {
	// Append appends as [Driver.Append] does, with the same errors.
	Append(ctx context.Context, a AppendRequest) (Head, error)
	// Head returns a head, as [Driver.Head] does.
	Head(ctx context.Context, conversation, name string) (Head, error)

	// Exec runs a statement and returns the number of changed rows. Parameters are $1, $2 and so on, in the order in
	// which they first occur. An argument is an int64, a string, a []byte, or nil.
	Exec(ctx context.Context, query string, args ...any) (int64, error)
	// Query runs a query. Its Rows are read to their end, or closed, before the next statement.
	Query(ctx context.Context, query string, args ...any) (Rows, error)
	// Now is an expression for the database's clock in statements, in microseconds since 1970.
	Now() string

	// Handle returns the transaction for other libraries that write to the same database, such as a job queue: a
	// *sql.Tx of SQLite, or a pgx.Tx. It must not be committed or rolled back. It is nil in a View.
	Handle() any
}

// Rows are the rows of a query, as those of database/sql.
type Rows interface {
	Next() bool
	Scan(dest ...any) error
	Err() error
	Close() error
}
