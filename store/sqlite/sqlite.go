package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	_ "modernc.org/libc" // modernc.org/sqlite works only with its required version of libc
	_ "modernc.org/sqlite"

	"github.com/plait-dev/plait/internal/sqlstore"
	"github.com/plait-dev/plait/store"
)

// minVersion is the oldest accepted SQLite. Older ones may damage a database in WAL mode if two connections write and
// checkpoint at the same time.
const minVersion = "3.51.3"

// Options are options of [Open] and [New]. Nil is the same as the zero value.
type Options struct {
	// BusyTimeout is how long a change waits for a writer of another program. Defaults to 10 seconds.
	BusyTimeout time.Duration
	// Readers is the maximum number of connections for reading. Defaults to 4. A *sql.DB limited to one connection, and
	// a database in memory, are read on the connection for writing.
	Readers int
	// Poll is how often Watch looks for heads moved by other programs. Defaults to 500 milliseconds.
	Poll time.Duration

	// ReadOnly opens an existing database for reading alone, also in a folder that cannot be written. Every change is
	// refused with ErrReadOnly. Defaults to false.
	ReadOnly bool

	networkOf func(path string) (string, error) // replaced in tests; see checkNetwork
}

// withDefaults returns the options with each default in place.
func (o *Options) withDefaults() Options {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.BusyTimeout <= 0 {
		opts.BusyTimeout = 10 * time.Second
	}
	if opts.Readers <= 0 {
		opts.Readers = 4
	}
	if opts.Poll <= 0 {
		opts.Poll = 500 * time.Millisecond
	}
	if opts.networkOf == nil {
		opts.networkOf = networkOf
	}
	return opts
}

// Errors of a database opened with Options.ReadOnly.
var (
	// ErrReadOnly is the error of a change.
	ErrReadOnly = errors.New("sqlite: the database is open for reading only")
	// ErrNoTables is the error of opening a database of another program.
	ErrNoTables = sqlstore.ErrNoTables
)

// versionError reports an outdated SQLite.
type versionError struct {
	// Version is the version of SQLite, and Minimum the oldest accepted one.
	Version, Minimum string
}

// Error returns both versions.
func (e *versionError) Error() string {
	return fmt.Sprintf("SQLite %q is too old: versions before %s may damage a database in WAL mode", e.Version, e.Minimum)
}

// SchemaError reports a database written by a newer version of Plait.
type SchemaError = sqlstore.SchemaError

// DamageError lists the findings of [DB.Check].
type DamageError = sqlstore.DamageError

// DB is a store in an SQLite database. It implements store.Transactor. Make one with [Open] or [New].
type DB struct {
	store.Transactor

	sqlstore *sqlstore.Driver
	database *database
}

// Open opens the database in the file at path, and makes it if there is none. ":memory:" is a database in memory. The
// error holds ErrReadOnly if a file cannot be opened for writing: it may be for reading (Options.ReadOnly).
func Open(ctx context.Context, path string, opts *Options) (*DB, error) {
	name, err := dataSource(path)
	if err != nil {
		return nil, err
	}
	var db *DB
	if opts != nil && opts.ReadOnly {
		db, err = openReadOnly(ctx, path, name, opts)
	} else {
		db, err = openFile(ctx, name, opts)
	}

	var network *networkError
	switch {
	case err == nil:
		return db, nil
	case errors.As(err, &network): // it has the path
		return nil, err
	case cannotWrite(err):
		err = &unwritableError{err}
	}
	return nil, &fs.PathError{Op: "open", Path: path, Err: err}
}

func openFile(ctx context.Context, name string, opts *Options) (*DB, error) {
	pool, err := sql.Open("sqlite", name)
	if err != nil {
		return nil, err
	}
	return open(ctx, pool, opts, true)
}

// openReadOnly opens a database for reading. To read it beside its writers, SQLite needs the files that it keeps in the
// same folder. If it can neither open nor make them, and they hold nothing, the database is read without: where nobody
// can write, nothing changes.
func openReadOnly(ctx context.Context, path, name string, opts *Options) (*DB, error) {
	db, err := openFile(ctx, name+"?mode=ro", opts)
	if err == nil || !cannotWrite(err) {
		return db, err
	}
	if log, missing := os.Stat(path + "-wal"); missing == nil && log.Size() > 0 {
		return nil, fmt.Errorf("%w: the folder cannot be written, and %s-wal holds changes: copy both to another folder",
			err, filepath.Base(path))
	}
	return openFile(ctx, name+"?mode=ro&immutable=1", opts)
}

// unwritableError is an error of cannotWrite. It is ErrReadOnly: the database may be opened for reading.
type unwritableError struct{ error }

func (e *unwritableError) Unwrap() []error { return []error{e.error, ErrReadOnly} }

// cannotWrite reports whether SQLite could not open or write one of its files.
func cannotWrite(err error) bool { return hasCode(err, noPermission, readOnly, cannotOpen) }

// Codes of SQLite's errors.
const (
	noPermission = 3
	busy         = 5
	readOnly     = 8
	cannotOpen   = 14
)

// hasCode reports whether err is one of SQLite with one of the codes.
func hasCode(err error, codes ...int) bool {
	var failed interface{ Code() int }
	return errors.As(err, &failed) && slices.Contains(codes, failed.Code()&0xFF)
}

// dataSource returns the name of a file as the driver expects it.
func dataSource(path string) (string, error) {
	if path == ":memory:" {
		return path, nil
	}
	absolute, err := filepath.Abs(path) // the program may change its working directory
	if err != nil {
		return "", err
	}
	// A URL, because the driver would read a "?" in a plain path as the beginning of parameters.
	absolute = filepath.ToSlash(absolute)
	if !strings.HasPrefix(absolute, "/") { // a drive of Windows
		absolute = "/" + absolute
	}
	return (&url.URL{Scheme: "file", Path: absolute}).String(), nil
}

// New uses a database of the program, opened with a driver for SQLite. The names of Plait's tables begin with plait_;
// it does not touch others. New sets the journal mode of the database to WAL. Close does not close pool.
func New(ctx context.Context, pool *sql.DB, opts *Options) (*DB, error) {
	return open(ctx, pool, opts, false)
}

func open(ctx context.Context, pool *sql.DB, opts *Options, owned bool) (*DB, error) {
	o := opts.withDefaults()
	database, err := newDatabase(ctx, pool, o, owned)
	if err != nil {
		return nil, err
	}

	if o.ReadOnly {
		if err := database.requireTables(ctx); err != nil {
			return nil, errors.Join(err, database.Close())
		}
	}
	driver, err := sqlstore.New(ctx, database, dialect, sqlstore.Options{Poll: o.Poll, ReadOnly: o.ReadOnly})
	if err != nil {
		return nil, errors.Join(err, database.Close())
	}
	return &DB{Transactor: driver, sqlstore: driver, database: database}, nil
}

// dialect has no locks: SQLite runs one writing transaction at a time.
var dialect = sqlstore.Dialect{
	Now: `CAST(UNIXEPOCH('subsec') * 1000000 AS INTEGER)`,
	Schema: strings.NewReplacer(
		"BYTES", "BLOB",
		"NUMBER", "INTEGER",
		"RISING", "INTEGER PRIMARY KEY", // AUTOINCREMENT would write one page more for each append
		"SERIAL", "INTEGER PRIMARY KEY AUTOINCREMENT",
		"NAME", "TEXT",
		"TABLE_END", " STRICT",
		"COVER", ", id, links", // the walk does not touch the table
	),
}

// Pool returns a pool of connections to the same file, for other libraries that use the database, such as a job queue.
// It prepares each statement once for each connection, and its transactions begin with the lock for writing. The
// caller closes it. The error holds errors.ErrUnsupported for a database in memory.
func (db *DB) Pool(ctx context.Context) (*sql.DB, error) {
	path := ""
	err := db.database.Read(ctx, func(tx sqlstore.Tx) error {
		rows, err := tx.Query(ctx, `SELECT file FROM pragma_database_list WHERE name = 'main'`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if err := rows.Scan(&path); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	if err != nil {
		return nil, err
	}
	if path == "" {
		return nil, fmt.Errorf("sqlite: a database in memory has no other connections: %w", errors.ErrUnsupported)
	}

	name, err := dataSource(path)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(cachedConnector{
		driver: db.database.pool.Driver(), name: name, wait: db.database.opts.BusyTimeout, check: db.database.checkFile,
	}), nil
}

// Close waits for running calls, and closes the connections. Later calls return fs.ErrClosed. A second Close does
// nothing.
func (db *DB) Close() error { return db.database.Close() }

// Check reads the whole database. It runs SQLite's own integrity check, compares the sum of every record, and
// looks for the target of each link and each head. The error is a *DamageError, or an error of reading.
func (db *DB) Check(ctx context.Context) error {
	var problems []string
	err := db.database.Read(ctx, func(tx sqlstore.Tx) error {
		problems = nil
		rows, err := tx.Query(ctx, `PRAGMA integrity_check`)
		if err != nil {
			return err
		}
		defer rows.Close()

		for rows.Next() {
			var problem string
			if err := rows.Scan(&problem); err != nil {
				return err
			}
			// "ok" is the only row if nothing is wrong.
			if problem != "ok" {
				problems = append(problems, problem)
			}
		}
		return rows.Err()
	})
	if err != nil {
		return err
	}
	if problems != nil {
		return &DamageError{Problems: problems}
	}
	return db.sqlstore.Check(ctx)
}

// Repair removes what Check finds damaged among what is derived from the conversations: outlines, by which a long
// conversation is opened fast. Its next compaction makes another.
func (db *DB) Repair(ctx context.Context) error { return db.sqlstore.Repair(ctx) }

// ErrInUse is the error of [DB.Scrub] while others use the database.
var ErrInUse = errors.New("sqlite: others use the database")

// Scrub removes deleted and redacted content from the files of the database. It writes the database anew (VACUUM):
// SQLite overwrites what it deletes, but a page may have copies of rows that were moved to another page. Then it empties
// the log of changes, the file "-wal". Other writers wait meanwhile, and the disk needs room for two copies.
//
// If others read or write for longer than Options.BusyTimeout, the error is ErrInUse: call it again. Scrub does not reach
// backups and other copies.
func (db *DB) Scrub(ctx context.Context) error {
	if db.database.opts.ReadOnly {
		return ErrReadOnly
	}
	return db.database.alone(ctx, func(c *connection) error {
		if _, err := c.conn.ExecContext(ctx, `VACUUM`); hasCode(err, busy) {
			return fmt.Errorf("%w: %w", ErrInUse, err)
		} else if err != nil {
			return err
		}

		var inUse, log, done int
		err := c.conn.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&inUse, &log, &done)
		if err == nil && inUse != 0 {
			err = ErrInUse
		}
		return err
	})
}

// checkVersion returns an error for an outdated version.
func checkVersion(version string) error {
	have, want := numbers(version), numbers(minVersion)
	for i, n := range want {
		switch {
		case i >= len(have) || have[i] < n:
			return &versionError{version, minVersion}
		case have[i] > n:
			return nil
		}
	}
	return nil
}

// numbers returns the parts of a version up to the first non-number.
func numbers(version string) (list []int) {
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			break
		}
		list = append(list, n)
	}
	return list
}
