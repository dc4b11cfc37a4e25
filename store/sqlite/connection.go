package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"time"

	"github.com/plait-dev/plait/internal/sqlstore"
)

// connection is a connection with its own settings and prepared statements. One goroutine uses it at a time.
type connection struct {
	conn       *sql.Conn
	statements map[string]*sql.Stmt // by query
	broken     bool                 // it must not be used again

	shared *sql.DB // on this same connection; nil until the first call of handle
	tx     *sql.Tx // of shared; nil outside a job that called handle
}

// settings returns the statements for setting up a connection.
func settings(busy time.Duration) []string {
	return []string{
		busyTimeout(max(busy, time.Millisecond)),
		`PRAGMA synchronous = FULL`,
		`PRAGMA fullfsync = ON`, // macOS: without it, a sync does not reach the disk
		`PRAGMA checkpoint_fullfsync = ON`,
		`PRAGMA foreign_keys = ON`,
		`PRAGMA secure_delete = ON`, // redacted and deleted content is overwritten
		`PRAGMA mmap_size = 0`,      // an I/O error on mapped memory would end the program
	}
}

// connect takes a connection out of the pool and executes the settings on it.
func connect(ctx context.Context, pool *sql.DB, settings ...string) (*connection, error) {
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, err
	}

	c := &connection{conn: conn, statements: map[string]*sql.Stmt{}}
	for _, s := range settings {
		if _, err := conn.ExecContext(ctx, s); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	return c, nil
}

// close closes the connection. It is not given back to the pool, because of its settings.
func (c *connection) close() error {
	var errs []error
	for _, s := range c.statements {
		errs = append(errs, s.Close())
	}
	c.statements = nil
	if c.shared != nil {
		errs = append(errs, c.shared.Close())
	}

	// A bad connection is closed by the pool, not used again.
	err := c.conn.Raw(func(any) error { return driver.ErrBadConn })
	if err != nil && !errors.Is(err, driver.ErrBadConn) && !errors.Is(err, sql.ErrConnDone) {
		errs = append(errs, err)
	}
	if err := c.conn.Close(); err != nil && !errors.Is(err, sql.ErrConnDone) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// prepare returns the prepared statement of a query. It keeps all statements, because there are few different queries.
func (c *connection) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	if s := c.statements[query]; s != nil {
		return s, nil
	}

	s, err := c.conn.PrepareContext(ctx, query)
	if err != nil {
		return nil, c.noted(err)
	}
	c.statements[query] = s
	return s, nil
}

// noted returns err. It marks the connection as broken if the error means its loss.
func (c *connection) noted(err error) error {
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) {
		c.broken = true
	}
	return err
}

// Exec implements sqlstore.Tx.
func (c *connection) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	s, err := c.prepare(ctx, query)
	if err != nil {
		return 0, err
	}
	result, err := s.ExecContext(ctx, args...)
	if err != nil {
		return 0, c.noted(err)
	}
	return result.RowsAffected()
}

// Query implements sqlstore.Tx.
func (c *connection) Query(ctx context.Context, query string, args ...any) (sqlstore.Rows, error) {
	s, err := c.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	rows, err := s.QueryContext(ctx, args...)
	if err != nil {
		return nil, c.noted(err)
	}
	return rows, nil
}

// handle returns the running transaction as a *sql.Tx, for libraries that take one. Its statements run on this
// connection, and its Commit and Rollback do nothing. It is valid until release.
func (c *connection) handle() (*sql.Tx, error) {
	if c.tx != nil {
		return c.tx, nil
	}

	if c.shared == nil {
		var raw driver.Conn
		if err := c.conn.Raw(func(conn any) error { raw = conn.(driver.Conn); return nil }); err != nil {
			return nil, err
		}
		conn := cached(raw)
		conn.shared = true
		c.shared = sql.OpenDB(sharedConnector{conn})
		c.shared.SetMaxOpenConns(1)
	}

	tx, err := c.shared.BeginTx(context.Background(), nil)
	c.tx = tx
	return tx, err
}

// release ends the *sql.Tx of handle, if there is one.
func (c *connection) release() {
	if c.tx != nil {
		_ = c.tx.Rollback() // it does nothing in the database
		c.tx = nil
	}
}

// Handle implements sqlstore.Tx. Only a writing transaction has one.
func (c *connection) Handle() any { return nil }

// run executes a statement without parameters, such as BEGIN.
func (c *connection) run(statement string) error {
	_, err := c.Exec(context.Background(), statement)
	return err
}

// steady is a Tx that ignores the end of a context. If a statement were interrupted, SQLite would undo the whole
// transaction, with the writes of other jobs in it.
type steady struct{ *connection }

// Handle implements sqlstore.Tx. It returns a *sql.Tx, or nil if the connection was lost.
func (s steady) Handle() any {
	tx, err := s.handle()
	if err != nil {
		return nil
	}
	return tx
}

// Exec implements sqlstore.Tx.
func (s steady) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	return s.connection.Exec(context.WithoutCancel(ctx), query, args...)
}

// Query implements sqlstore.Tx.
func (s steady) Query(ctx context.Context, query string, args ...any) (sqlstore.Rows, error) {
	return s.connection.Query(context.WithoutCancel(ctx), query, args...)
}
