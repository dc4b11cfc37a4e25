// Package sqlite keeps conversations in an SQLite database: one file, no server, no C compiler.
//
//	driver, err := sqlite.Open(ctx, "sessions.db", nil)
//	if err != nil {
//		return err
//	}
//	defer driver.Close()
//	s := store.New(driver)
//
// [Open] uses the driver modernc.org/sqlite. [New] takes any *sql.DB, and so any other driver for SQLite.
//
// # What is durable
//
// When a method returns nil, its changes are on disk: a crash of the program or of the machine does not lose them. The
// database is in WAL mode with synchronous=FULL. Appends waiting at the same time share one commit, and so one write to
// the disk. A conflict of one does not touch the others.
//
// A file deleted or replaced while open accepts no more writes, because they would be lost: the error is a
// *fs.PathError. Open the database again.
//
// The file must be on a local disk. The locks of network file systems are not reliable enough for SQLite. On Linux and
// macOS, one on NFS, SMB, sshfs or the like is refused; elsewhere they are not recognized.
//
// # Several programs
//
// Programs on one machine may open the same file. A program stopped inside a transaction (SIGSTOP, a debugger) blocks
// all other writers: their changes fail after [Options.BusyTimeout].
//
// # Concurrency
//
// A [DB] is safe for concurrent use. It holds one connection for writing, and up to [Options.Readers] for reading.
// Readers never wait for the writer. Transactions on connections of your own may run beside it.
//
// # Errors
//
// The errors are the ones of store.Driver, fs.ErrClosed after [DB.Close], and errors of the database as its driver
// returns them, such as a full disk. [SchemaError] and [DamageError] are this package's
// own.
package sqlite
