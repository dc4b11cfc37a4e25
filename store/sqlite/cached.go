package sqlite

import (
	"context"
	"database/sql/driver"
	"strings"
	"time"
)

// cachedConn is a connection of a driver that prepares each statement once. It is for libraries that prepare none, such
// as a job queue: preparing the same statements takes them half of their time. The driver must have the methods with a
// context, as every current driver of SQLite does.
type cachedConn struct {
	driver.Conn
	statements map[string]driver.Stmt // by query; without those in use by open rows
	wait       time.Duration          // how long a statement waits for another writer
	shared     bool                   // another owner runs the transaction: see sharedConn
}

func cached(conn driver.Conn) *cachedConn {
	return &cachedConn{Conn: conn, statements: map[string]driver.Stmt{}}
}

// take takes the statement of a query out of the cache, or prepares it.
func (c *cachedConn) take(ctx context.Context, query string) (driver.Stmt, error) {
	if s := c.statements[query]; s != nil {
		delete(c.statements, query)
		return s, nil
	}
	return c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
}

// put gives a statement back to the cache.
func (c *cachedConn) put(query string, s driver.Stmt) {
	if c.statements[query] != nil {
		_ = s.Close()
		return
	}
	c.statements[query] = s
}

// ExecContext implements driver.ExecerContext.
func (c *cachedConn) ExecContext(
	ctx context.Context, query string, args []driver.NamedValue,
) (result driver.Result, err error) {
	ctx = c.steady(ctx)
	if several(query) {
		return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
	}
	err = untilFree(ctx, c.wait, func() error {
		s, err := c.take(ctx, query)
		if err != nil {
			return err
		}
		defer c.put(query, s)
		result, err = s.(driver.StmtExecContext).ExecContext(ctx, args)
		return err
	})
	return result, err
}

// several reports whether a query may be several statements, as those of migrations are. Not every driver prepares them.
func several(query string) bool { return strings.Contains(strings.TrimRight(query, "; \t\r\n"), ";") }

// QueryContext implements driver.QueryerContext.
func (c *cachedConn) QueryContext(
	ctx context.Context, query string, args []driver.NamedValue,
) (rows driver.Rows, err error) {
	ctx = c.steady(ctx)
	err = untilFree(ctx, c.wait, func() error {
		s, err := c.take(ctx, query)
		if err != nil {
			return err
		}
		found, err := s.(driver.StmtQueryContext).QueryContext(ctx, args)
		if err != nil {
			c.put(query, s)
			return err
		}
		rows = cachedRows{found, func() { c.put(query, s) }}
		return nil
	})
	return rows, err
}

// steady returns the context for a statement. In a shared transaction no statement is interrupted: SQLite would undo
// the whole transaction.
func (c *cachedConn) steady(ctx context.Context) context.Context {
	if c.shared {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// BeginTx implements driver.ConnBeginTx. Transactions begin with the lock for writing: one that reads first could not
// get it later if another program has written meanwhile.
func (c *cachedConn) BeginTx(ctx context.Context, _ driver.TxOptions) (driver.Tx, error) {
	if c.shared {
		return sharedTx{}, nil
	}
	if _, err := c.ExecContext(ctx, `BEGIN IMMEDIATE`, nil); err != nil {
		return nil, err
	}
	return cachedTx{c}, nil
}

// CheckNamedValue implements driver.NamedValueChecker.
func (c *cachedConn) CheckNamedValue(v *driver.NamedValue) error {
	checker, ok := c.Conn.(driver.NamedValueChecker)
	if !ok {
		return driver.ErrSkip
	}
	if err := checker.CheckNamedValue(v); err != nil || driver.IsValue(v.Value) {
		return err
	}

	// The driver leaves a value such as a pointer to its statements, which are not asked here.
	if value, err := driver.DefaultParameterConverter.ConvertValue(v.Value); err == nil {
		v.Value = value
	}
	return nil
}

// ResetSession implements driver.SessionResetter.
func (c *cachedConn) ResetSession(ctx context.Context) error {
	if r, ok := c.Conn.(driver.SessionResetter); ok {
		return r.ResetSession(ctx)
	}
	return nil
}

// IsValid implements driver.Validator.
func (c *cachedConn) IsValid() bool {
	v, ok := c.Conn.(driver.Validator)
	return !ok || v.IsValid()
}

// Close closes the statements, and the connection unless it is shared.
func (c *cachedConn) Close() error {
	for _, s := range c.statements {
		_ = s.Close()
	}
	clear(c.statements)
	if c.shared {
		return nil
	}
	return c.Conn.Close()
}

// cachedTx is a transaction on a connection of its own.
type cachedTx struct{ conn *cachedConn }

// Commit implements driver.Tx.
func (t cachedTx) Commit() error {
	_, err := t.conn.ExecContext(context.Background(), `COMMIT`, nil)
	if err != nil {
		_ = t.Rollback()
	}
	return err
}

// Rollback implements driver.Tx.
func (t cachedTx) Rollback() error {
	_, err := t.conn.ExecContext(context.Background(), `ROLLBACK`, nil)
	return err
}

// sharedTx is a transaction run by another owner.
type sharedTx struct{}

// Commit implements driver.Tx. It does nothing.
func (sharedTx) Commit() error { return nil }

// Rollback implements driver.Tx. It does nothing.
func (sharedTx) Rollback() error { return nil }

// cachedRows give their statement back when they are closed.
type cachedRows struct {
	driver.Rows
	end func()
}

// Close implements driver.Rows.
func (r cachedRows) Close() error {
	err := r.Rows.Close()
	r.end()
	return err
}

// ColumnTypeDatabaseTypeName implements driver.RowsColumnTypeDatabaseTypeName.
func (r cachedRows) ColumnTypeDatabaseTypeName(index int) string {
	if t, ok := r.Rows.(driver.RowsColumnTypeDatabaseTypeName); ok {
		return t.ColumnTypeDatabaseTypeName(index)
	}
	return ""
}

// cachedConnector opens connections of a driver, with the settings of this package.
type cachedConnector struct {
	driver driver.Driver
	name   string
	wait   time.Duration // for another writer
	check  func() error  // run before each connection
}

// Connect implements driver.Connector.
func (c cachedConnector) Connect(ctx context.Context) (driver.Conn, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	conn, err := c.driver.Open(c.name)
	if err != nil {
		return nil, err
	}

	opened := cached(conn)
	for _, s := range append(settings(c.wait), busyTimeout(0)) {
		if _, err := opened.ExecContext(ctx, s, nil); err != nil {
			_ = opened.Close()
			return nil, err
		}
	}
	opened.wait = c.wait
	return opened, nil
}

// Driver implements driver.Connector.
func (c cachedConnector) Driver() driver.Driver { return c.driver }

// sharedConnector has one connection: that of the writer, inside the writer's transaction.
type sharedConnector struct{ conn *cachedConn }

// Connect implements driver.Connector.
func (c sharedConnector) Connect(context.Context) (driver.Conn, error) { return c.conn, nil }

// Driver implements driver.Connector.
func (c sharedConnector) Driver() driver.Driver { return nil }
