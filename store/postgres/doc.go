// Package postgres keeps conversations in a PostgreSQL database, for services on more than one machine.
//
//	driver, err := postgres.Open(ctx, "postgres://plait@db.example.com/sessions", nil)
//	if err != nil {
//		return err
//	}
//	defer driver.Close()
//	s := store.New(driver)
//
// [Open] makes a pool of connections; [New] uses a pool of the program. The tables are the same as in store/sqlite.
// Their names begin with plait_. They are in the first schema of the search path.
//
// # What is durable
//
// When a method returns nil, its changes are as durable as the server makes a commit. Leave its settings fsync and
// synchronous_commit on.
//
// If the connection breaks during a commit, the outcome is unknown, and the error comes from the connection. Repeat the
// append: if the first one was stored, the error is a *store.ConflictError, and its Current is the head as requested.
//
// # Stuck programs
//
// A program stopped inside a transaction (a paused virtual machine, a debugger) holds locks, and others wait for them.
// So the server ends a transaction after [Options.IdleTimeout] without a statement. It ends a statement after it has
// waited [Options.LockTimeout] for a lock, or run for [Options.StatementTimeout]. A silent network is the other case:
// after twice the StatementTimeout without a reply to a statement, a call returns an error and gives its connection up.
// A new connection has connect_timeout of the URL instead, by default 2 minutes. The wait for a free connection of the
// pool ends with the context. With [New], set PingTimeout of the pool too.
//
// # Concurrency
//
// A [DB] is safe for concurrent use. A running call holds at most one connection of the pool. An append that continues
// a head is one statement. Appends that arrive while others run share a statement and a connection. Appends to
// different heads do not wait for each other's locks, also in one conversation.
//
// # Errors
//
// The errors are the ones of store.Driver, fs.ErrClosed after [DB.Close], and errors of pgx, such as *pgconn.PgError.
// [SchemaError] and [DamageError] are this package's own.
package postgres
