// Package sqlite keeps conversations in an SQLite database: one file, no server, no C compiler.
//
//	driver, err := sqlite.Open(ctx, "sessions.db", nil)
//	if err != nil {
//		return err
//	}
//	defer driver.Close()
//	s := store.New(driver, nil)
//
// [Open] uses the driver modernc.org/sqlite. [New] takes any *sql.DB, and so any other driver for SQLite.
//
// # What is durable
//
// When a method that changes something returns nil, its effect is on disk: a crash of the program or of the machine
// does not lose it. The database is in WAL mode with synchronous=FULL. Appends that wait at the same time share one
// commit, and so one write to the disk. A conflict of one does not touch the others.
//
// A file that is deleted or replaced while it is open takes no more writes, because they would be lost: the error is a
// *fs.PathError. Open the database again.
//
// The file must be on a local disk. The locks of network file systems are not reliable enough for SQLite. On Linux and
// macOS, one on NFS, SMB, sshfs or the like is refused with a [NetworkError]; elsewhere they are not recognized.
//
// # Several programs
//
// Programs on one machine may open the same file. A program that is stopped inside a transaction (SIGSTOP, a debugger)
// keeps all others from writing: their changes fail when [Options.BusyTimeout] is over.
//
// # Concurrency
//
// A [DB] is safe for concurrent use. It holds one connection for writing, and up to [Options.Readers] for reading,
// which never wait for the writer. Transactions on connections of your own may run beside it.
//
// # Errors
//
// The errors are those of store.Driver, fs.ErrClosed after [DB.Close], and those of the database as its driver returns
// them, such as a full disk. [VersionError], [NetworkError], [SchemaError] and [DamageError] are this package's own.
package sqlite
