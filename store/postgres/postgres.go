package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/plait-dev/plait/internal/sqlstore"
	"github.com/plait-dev/plait/store"
)

// Options are options of [Open] and [New]. Nil is the same as the zero value.
type Options struct {
	// IdleTimeout is how long a transaction may be idle before the server ends it with its connection. Defaults to 5
	// seconds.
	IdleTimeout time.Duration
	// LockTimeout is how long a statement waits for a lock. Defaults to 5 seconds.
	LockTimeout time.Duration
	// StatementTimeout is how long one statement may run. If there is no reply after twice this time, the connection is
	// given up: the network is silent. Defaults to 30 seconds.
	StatementTimeout time.Duration
	// Poll is how often Watch looks for heads moved by other programs. Defaults to 500 milliseconds.
	Poll time.Duration
	// NoTables makes no tables: if the database has none, Open returns ErrNoTables. Defaults to false.
	NoTables bool
}

// ErrNoTables is the error of opening a database without tables, with Options.NoTables.
var ErrNoTables = sqlstore.ErrNoTables

// withDefaults returns the options with each default in place.
func (o *Options) withDefaults() Options {
	var opts Options
	if o != nil {
		opts = *o
	}
	for _, d := range []struct {
		value    *time.Duration
		standard time.Duration
	}{
		{&opts.IdleTimeout, 5 * time.Second},
		{&opts.LockTimeout, 5 * time.Second},
		{&opts.StatementTimeout, 30 * time.Second},
		{&opts.Poll, 500 * time.Millisecond},
	} {
		if *d.value <= 0 {
			*d.value = d.standard
		}
	}
	return opts
}

// guards returns the server's settings for ending stuck transactions, in milliseconds.
func (o Options) guards() map[string]string {
	ms := func(d time.Duration) string { return strconv.FormatInt(max(1, d.Milliseconds()), 10) }
	return map[string]string{
		"idle_in_transaction_session_timeout": ms(o.IdleTimeout),
		"lock_timeout":                        ms(o.LockTimeout),
		"statement_timeout":                   ms(o.StatementTimeout),
	}
}

// SchemaError reports a database written by a newer version of Plait.
type SchemaError = sqlstore.SchemaError

// DamageError lists the findings of [DB.Check].
type DamageError = sqlstore.DamageError

// DB is a store in a PostgreSQL database. It implements store.Transactor. Make one with [Open] or [New].
type DB struct {
	store.Transactor

	sqlstore *sqlstore.Driver
	database *database
}

// Open connects to the database with this URL or connection string, as pgxpool.ParseConfig reads it, and makes the
// tables if they are not there. A guard in the URL, such as lock_timeout, is kept.
func Open(ctx context.Context, url string, opts *Options) (*DB, error) {
	o := opts.withDefaults()
	db, err := connect(ctx, url, o)
	if err != nil {
		return nil, err
	}
	return open(ctx, db, o)
}

// connect returns a database with a pool of its own.
func connect(ctx context.Context, url string, o Options) (*database, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	replies := o.configure(config)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	return &database{pool: pool, owned: true, replyTimeout: replies}, nil
}

// Configure sets on the configuration of a pool what [Open] sets on its own, except what it sets already. Use it for a
// pool for [New] that others use too: the statements of a job queue then have a time limit, and end in a silent network.
// It replaces the Tracer of the connections. Do not use it behind a pooler that refuses settings of a connection.
func Configure(config *pgxpool.Config, opts *Options) { opts.withDefaults().configure(config) }

// configure is Configure. It returns how long a reply may take; 0 is no limit.
func (o Options) configure(config *pgxpool.Config) (replies time.Duration) {
	params := config.ConnConfig.RuntimeParams
	for name, value := range o.guards() {
		if _, set := params[name]; !set {
			params[name] = value
		}
	}

	// The URL may set a limit of its own for statements. In another unit, or as 0, it is no limit here.
	statement, _ := strconv.Atoi(params["statement_timeout"])
	replies = replyTimeout(time.Duration(statement) * time.Millisecond)
	if replies > 0 {
		// The pool connects, and pings idle connections. A silent network must not block these either.
		config.PingTimeout = replies
		config.ConnConfig.ConnectTimeout = min(config.ConnConfig.ConnectTimeout, replies)
		config.ConnConfig.Tracer = replyLimit(replies)
	}
	return replies
}

// replyLimit limits how long each statement of a pool may take. Statements of others, such as those of a job queue on
// the same pool, have no limit of their own, and a silent network would hold them forever.
type replyLimit time.Duration

type cancelKey struct{}

// TraceQueryStart implements pgx.QueryTracer.
func (l replyLimit) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(l))
	return context.WithValue(ctx, cancelKey{}, cancel)
}

// TraceQueryEnd implements pgx.QueryTracer. A query of a batch ends without a start.
func (replyLimit) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	if cancel, is := ctx.Value(cancelKey{}).(context.CancelFunc); is {
		cancel()
	}
}

// replyTimeout returns how long to wait for the reply to a statement. The server ends the statement after the given
// time, so its own error comes first, unless the network is silent.
func replyTimeout(statement time.Duration) time.Duration { return 2 * statement }

// New uses a pool of the program. The timeouts of opts apply to the transactions of Plait alone. New changes no setting
// of a connection: statements of others on the pool, such as those of a job queue, have a limit only after [Configure].
// Close does not close the pool.
func New(ctx context.Context, pool *pgxpool.Pool, opts *Options) (*DB, error) {
	o := opts.withDefaults()
	var set strings.Builder
	for name, value := range o.guards() {
		fmt.Fprintf(&set, "; set local %s = %s", name, value)
	}
	return open(ctx, &database{pool: pool, guards: set.String(), replyTimeout: replyTimeout(o.StatementTimeout)}, o)
}

func open(ctx context.Context, db *database, opts Options) (*DB, error) {
	db.commitTimeout = opts.StatementTimeout
	db.closing = make(chan struct{})

	options := sqlstore.Options{Poll: opts.Poll, ReadOnly: opts.NoTables}
	driver, err := sqlstore.New(ctx, db, dialect, options)
	if opts.NoTables && isUndefined(err) {
		err = ErrNoTables
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &DB{Transactor: driver, sqlstore: driver, database: db}, nil
}

// Scrub runs VACUUM on the tables of Plait, and on others such as the one of a job queue, so that the server uses the space
// of deleted and redacted content again. The content stays in that space until it is overwritten. With full, it runs
// VACUUM FULL: the tables are written anew, and the old files are removed; nobody can use a table meanwhile.
//
// Scrub does not reach the log of changes (pg_wal) before the server recycles it, replicas, backups, and the server's
// text logs. It needs no transaction, and runs no statement within one.
func (db *DB) Scrub(ctx context.Context, full bool, others ...string) error {
	if err := db.database.enter(); err != nil {
		return err
	}
	defer db.database.running.Done()
	conn, err := db.database.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()

	// It may take as long as it needs. The connection is closed, because its setting stays changed.
	if _, err := conn.Exec(ctx, `SET statement_timeout = 0`); err != nil {
		return err
	}
	defer func() { _ = conn.Conn().Close(context.WithoutCancel(ctx)) }()

	statement := `VACUUM `
	if full {
		statement = `VACUUM (FULL) `
	}
	tables := append(slices.Clone(sqlstore.Tables), others...)
	for _, table := range tables {
		// The simple protocol prepares nothing: VACUUM cannot be prepared behind a pooler.
		if _, err := conn.Exec(ctx, statement+table, pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
	}
	return nil
}

// isUndefined reports whether a table does not exist.
func isUndefined(err error) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && server.Code == "42P01"
}

// dialect has the row locks, the clock and the types of PostgreSQL.
var dialect = sqlstore.Dialect{
	Share: " FOR KEY SHARE",
	// The row that is locked may be newer than the one that the statement sees.
	ShareUnpruned: " AND xmin = (SELECT xmin FROM plait_conversations WHERE name = $3) FOR KEY SHARE",
	Lock:          " FOR UPDATE",
	Now:           `(EXTRACT(EPOCH FROM CLOCK_TIMESTAMP()) * 1000000)::BIGINT`,
	LockSchema:    `SELECT pg_advisory_xact_lock(7163373128412)`, // any number without another use
	Schema: strings.NewReplacer(
		"BYTES", "BYTEA",
		"NUMBER", "BIGINT",
		"RISING", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
		"SERIAL", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
		"NAME", `TEXT COLLATE "C"`,
		"TABLE_END", "",
		"COVER", "", // an entry of an index is limited to 2.7 kB, a list of links is not
	),
}

// Pool returns the pool of connections, for other libraries that use the same database. Close waits for its connections
// to be released, unless the pool is the program's own.
func (db *DB) Pool() *pgxpool.Pool { return db.database.pool }

// Close waits for running calls, and closes the connections. Later calls return fs.ErrClosed. A second Close does
// nothing.
func (db *DB) Close() error { return db.database.Close() }

// Check reads all conversations. It compares the sum of every record and blob, and looks for the target of each link
// and each head. The error is a *DamageError, or an error of reading. It runs in one long read-only transaction.
func (db *DB) Check(ctx context.Context) error { return db.sqlstore.Check(ctx) }

// Repair removes what Check finds damaged among what is derived from the conversations: outlines, by which a long
// conversation is opened fast. Its next compaction makes another.
func (db *DB) Repair(ctx context.Context) error { return db.sqlstore.Repair(ctx) }
