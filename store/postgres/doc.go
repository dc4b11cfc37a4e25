// Package postgres keeps conversations in a PostgreSQL database, for services that run on more than one machine.
//
//	driver, err := postgres.Open(ctx, "postgres://plait@db.example.com/sessions", nil)
//	if err != nil {
//		return err
//	}
//	defer driver.Close()
//	s := store.New(driver, nil)
//
// [Open] makes a pool of connections; [New] uses a pool that the program has. The tables are those of store/sqlite.
// Their names begin with plait_. They are in the first schema of the search path.
//
// # What is durable
//
// When a method that changes something returns nil, its effect is as durable as the server makes a commit. Leave its
// settings fsync and synchronous_commit on.
//
// If the connection breaks during a commit, the outcome is unknown, and the error is that of the connection. Repeat the
// append: if the first one was stored, the error is a *store.ConflictError, and its Current is the head as requested.
//
// # Stuck programs
//
// A program that is stopped inside a transaction (a paused virtual machine, a debugger) holds locks that others wait
// for. So the server ends a transaction that is idle for [Options.IdleTimeout], and a statement that waits for a lock
// longer than [Options.LockTimeout], or runs longer than [Options.StatementTimeout]. A network that goes silent is the
// other case: after twice the StatementTimeout without a reply to a statement, a call returns an error and gives its
// connection up. A new connection has connect_timeout of the URL instead, by default 2 minutes. The wait for a free
// connection of the pool ends with the context. With [New], set PingTimeout of the pool too.
//
// # Concurrency
//
// A [DB] is safe for concurrent use. A call that runs holds at most one connection of the pool. An append that
// continues a head is one statement. Appends that arrive while others run share a statement and a connection. Appends
// to different heads do not wait for each other's locks, also in one conversation.
//
// # Errors
//
// The errors are those of store.Driver, fs.ErrClosed after [DB.Close], and those of pgx, such as *pgconn.PgError.
// [SchemaError] and [DamageError] are this package's own.
package postgres
