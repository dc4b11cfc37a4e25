package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"sync"

	"github.com/plait-dev/plait/internal/sqlstore"
)

// database runs transactions: one writer at a time, and several readers.
type database struct {
	pool  *sql.DB
	owned bool // Close closes the pool
	opts  Options

	path string      // of the file; "" if there is none, or if it cannot be watched
	file os.FileInfo // the file at the path when it was opened

	turn    chan struct{}    // a lock for writer: it holds an element while writer is in use
	writer  writer           // guarded by turn
	jobs    chan *job        // to the writing goroutine; not buffered: none is left in it at the end
	readers chan *connection // the free connections for reading; nil is not open yet

	closing chan struct{}  // closed by Close
	once    sync.Once      // of Close
	running sync.WaitGroup // the writing goroutine
	closed  error          // result of Close; set by the writing goroutine, then by Close

	commits func(jobs int) // for tests: called after each commit, with the number of jobs in it
}

func newDatabase(ctx context.Context, pool *sql.DB, opts Options, owned bool) (*database, error) {
	db := &database{pool: pool, owned: owned, opts: opts, turn: make(chan struct{}, 1), jobs: make(chan *job),
		closing: make(chan struct{}), commits: func(int) {}}
	conn, memory, err := db.connectWriter(ctx)
	if err != nil {
		if owned {
			err = errors.Join(err, pool.Close())
		}
		return nil, err
	}

	if err := db.watchFile(ctx, conn); err != nil {
		err = errors.Join(err, conn.close())
		if owned {
			err = errors.Join(err, pool.Close())
		}
		return nil, err
	}

	// The writer keeps one connection of the pool for good.
	readers := opts.Readers
	if limit := pool.Stats().MaxOpenConnections; limit > 0 {
		readers = min(readers, limit-1)
	}
	if memory { // another connection would have a database of its own
		readers = 0
	}

	// Each is opened at its first use.
	db.readers = make(chan *connection, readers)
	for range readers {
		db.readers <- nil
	}

	db.writer = writer{db: db, conn: conn}
	db.running.Go(db.write)
	return db, nil
}

// connectWriter opens the connection for writing, and reports whether the database is in memory.
func (db *database) connectWriter(ctx context.Context) (c *connection, memory bool, err error) {
	c, err = connect(ctx, db.pool, settings(db.opts.BusyTimeout)...)
	if err != nil {
		return nil, false, err
	}

	memory, err = c.examine(ctx, db.opts)
	if err != nil {
		return nil, false, errors.Join(err, c.close())
	}
	return c, memory, nil
}

// examine checks the version of SQLite and the file system, and switches the database to WAL. It reports whether the
// database is in memory.
func (c *connection) examine(ctx context.Context, opts Options) (memory bool, err error) {
	var version, file, mode string
	if err := c.conn.QueryRowContext(ctx, `SELECT sqlite_version()`).Scan(&version); err != nil {
		return false, err
	}
	if err := checkVersion(version); err != nil {
		return false, err
	}

	// Before the switch to WAL: a refused database stays as it is.
	err = c.conn.QueryRowContext(ctx, `SELECT file FROM pragma_database_list WHERE name = 'main'`).Scan(&file)
	if err != nil {
		return false, err
	}
	if file != "" {
		if err := checkNetwork(file, opts.networkOf); err != nil {
			return false, err
		}
	}

	if opts.ReadOnly {
		return false, nil
	}
	if err := c.conn.QueryRowContext(ctx, `PRAGMA journal_mode = WAL`).Scan(&mode); err != nil {
		return false, err
	}

	// A database in memory has no WAL, and needs none: it has one connection.
	if memory = mode == "memory" && file == ""; mode != "wal" && !memory {
		return false, fmt.Errorf("the journal mode stays %q instead of WAL", mode)
	}
	return memory, nil
}

// requireTables returns ErrNoTables for a database without tables of Plait.
func (db *database) requireTables(ctx context.Context) error {
	return db.read(ctx, func(c *connection) error {
		var tables int
		query := `SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = 'plait_schema'`
		err := c.conn.QueryRowContext(ctx, query).Scan(&tables)
		if err == nil && tables == 0 {
			err = ErrNoTables
		}
		return err
	})
}

// watchFile stores the identity of the open file for checkFile. A database in memory, or outside the machine's file
// system, has none. On Windows an open file cannot be deleted.
func (db *database) watchFile(ctx context.Context, c *connection) error {
	var path string
	err := c.conn.QueryRowContext(ctx, `SELECT file FROM pragma_database_list WHERE name = 'main'`).Scan(&path)
	if err != nil || path == "" || runtime.GOOS == "windows" {
		return err
	}
	if file, err := os.Stat(path); err == nil {
		db.path, db.file = path, file
	}
	return nil
}

// errReplaced: another file has the path of the opened one.
var errReplaced = errors.New("another file has taken its place since it was opened")

// checkFile returns an error if the file was deleted or replaced since it was opened. Later writes to it would be
// acknowledged, and lost when it is closed; a new connection would open the other file.
func (db *database) checkFile() error {
	if db.path == "" {
		return nil
	}
	file, err := os.Stat(db.path)
	if err == nil && !os.SameFile(file, db.file) {
		err = &fs.PathError{Op: "write", Path: db.path, Err: errReplaced}
	}
	return err
}

// Done implements sqlstore.DB.
func (db *database) Done() <-chan struct{} { return db.closing }

// Read implements sqlstore.DB.
func (db *database) Read(ctx context.Context, f func(sqlstore.Tx) error) error {
	return db.read(ctx, func(c *connection) error { return f(c) })
}

// Snapshot implements sqlstore.DB.
func (db *database) Snapshot(ctx context.Context, f func(sqlstore.Tx) error) error {
	return db.read(ctx, func(c *connection) error {
		if err := c.run(`BEGIN`); err != nil {
			return err
		}

		err := f(c)

		// With its transaction still open, the connection would read the same state forever.
		if undo := c.run(`ROLLBACK`); undo != nil {
			c.broken = true
			err = errors.Join(err, undo)
		}
		return err
	})
}

// read runs f with a connection for reading, or as a job of the writer if there is none.
func (db *database) read(ctx context.Context, f func(*connection) error) error {
	if cap(db.readers) == 0 {
		return db.do(&job{ctx: ctx, read: f})
	}

	// The select below chooses at random if a reader is free and the database is closed.
	select {
	case <-db.closing:
		return fs.ErrClosed
	default:
	}

	select {
	case c := <-db.readers:
		defer func() { db.readers <- c }()
		return db.readOn(ctx, &c, f)
	case <-ctx.Done():
		return ctx.Err()
	case <-db.closing:
		return fs.ErrClosed
	}
}

// readOn runs f with *c. It opens *c first if it is nil, and sets it to nil if it is broken.
func (db *database) readOn(ctx context.Context, c **connection, f func(*connection) error) (err error) {
	if *c == nil {
		// A new connection opens whatever file has the path now.
		if err := db.checkFile(); err != nil {
			return err
		}
		*c, err = connect(ctx, db.pool, append(settings(db.opts.BusyTimeout), `PRAGMA query_only = ON`)...)
		if err != nil {
			*c = nil
			return err
		}
	}

	// The next reader opens another connection in place of a broken one.
	err = f(*c)
	if (*c).broken {
		err = errors.Join(err, (*c).close())
		*c = nil
	}
	return err
}

// alone runs f with a connection of its own.
func (db *database) alone(ctx context.Context, f func(*connection) error) error {
	if cap(db.readers) == 0 {
		return db.do(&job{ctx: ctx, read: f})
	}

	// The reader is not used. To hold it lets Close wait for f.
	return db.read(ctx, func(*connection) error {
		if err := db.checkFile(); err != nil {
			return err
		}
		c, err := connect(ctx, db.pool, settings(db.opts.BusyTimeout)...)
		if err != nil {
			return err
		}
		return errors.Join(f(c), c.close())
	})
}

// Close waits for running jobs and readers, and closes the connections.
func (db *database) Close() error {
	db.once.Do(func() {
		close(db.closing)
		db.running.Wait()

		// Every reader comes back, so this waits for all of them.
		errs := []error{db.closed}
		for range cap(db.readers) {
			if c := <-db.readers; c != nil {
				errs = append(errs, c.close())
			}
		}
		if db.owned {
			errs = append(errs, db.pool.Close())
		}
		db.closed = errors.Join(errs...)
	})
	return db.closed
}
