package durable

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/postgres"
	"github.com/plait-dev/plait/store/sqlite"
)

// queue is River on one kind of database.
type queue interface {
	// migrate makes River's tables, or brings them to the version of this program.
	migrate(ctx context.Context, db store.Transactor) error
	// insert inserts jobs in a transaction, and returns their IDs.
	insert(ctx context.Context, tx store.Tx, jobs []river.InsertManyParams) ([]int64, error)
	// client returns a client that works jobs.
	client(config *river.Config) (client, error)
	// dialect returns the differences in the language of the database.
	dialect() *dialect
	close() error
}

// client is a river.Client, for any kind of transaction.
type client interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
	StopAndCancel(ctx context.Context) error
}

// dialect holds the differences between databases in statements about River's tables.
type dialect struct {
	// jobs is the table of jobs.
	jobs string
	// now is the current time as River stores it.
	now string
	// worker is an expression for the client that works a running job.
	worker string
	// args and metadata are expressions for both as text.
	args, metadata string
	// run and conversation are expressions for those of a job.
	run, conversation string
	// merged is an expression for the metadata with the members of a JSON text, its parameter.
	merged func(parameter string) string
	// exists is a query with a row if the table of jobs is there. Its parameter is the name in jobs.
	exists string
	// listed is a condition for the IDs of jobs. Its parameter is a list with commas.
	listed func(parameter string) string
	// texts is the columns and the table of a query for the texts in a JSON list, its parameter.
	texts func(parameter string) string
	// lock locks the rows of a query, and lockInbox those of rowsOfInbox.
	lock, lockInbox string
	// writesInWith reports that a WITH may change rows: a beat is then one statement, and needs no transaction.
	writesInWith bool
	// poll is how often a client looks for jobs without a notification. Each queue of each process does so.
	poll time.Duration
}

// riverQueue is a queue on transactions of type T.
type riverQueue[T any] struct {
	driver    riverdriver.Driver[T]
	inserters [inserters]*river.Client[T]
	inserted  atomic.Uint32 // the number of insertions
	words     dialect
	schema    string
	tx        bool // migrate in one transaction
	closing   func() error
}

// inserters is the number of clients that insert jobs in turn. A client notifies a queue at most once in each
// millisecond, and a job without a notification waits until somebody polls.
const inserters = 32

// newRiverQueue returns a queue on the database of a driver.
func newRiverQueue[T any](driver riverdriver.Driver[T], words dialect, e *Engine) (*riverQueue[T], error) {
	config := &river.Config{
		FetchCooldown: river.FetchCooldownMin, Schema: e.Schema, Logger: slog.New(slog.DiscardHandler),
		Test: river.TestConfig{Time: e.time},
	}
	q := &riverQueue[T]{driver: driver, words: words, schema: e.Schema, closing: func() error { return nil }}
	for i := range q.inserters {
		inserter, err := river.NewClient(driver, config)
		if err != nil {
			return nil, err
		}
		q.inserters[i] = inserter
	}
	return q, nil
}

// newPostgresQueue returns the queue of a PostgreSQL database.
func newPostgresQueue(db *postgres.DB, e *Engine) (queue, error) {
	jobs := "river_job"
	if e.Schema != "" {
		jobs = pgx.Identifier{e.Schema, jobs}.Sanitize()
	}
	q, err := newRiverQueue[pgx.Tx](pgDriver{riverpgxv5.New(db.Pool())}, dialect{
		jobs: jobs, now: `NOW()`, lock: ` FOR UPDATE`, lockInbox: ` FOR UPDATE OF i`, writesInWith: true, poll: 30 * time.Second,
		worker: `attempted_by[array_length(attempted_by, 1)]`, args: `args::TEXT`, metadata: `metadata::TEXT`,
		run: `args->>'run'`, conversation: `args->>'conversation'`,
		merged: func(p string) string { return `metadata || CAST(` + p + ` AS TEXT)::JSONB` },
		exists: `SELECT 1 WHERE TO_REGCLASS($1) IS NOT NULL`,
		texts:  func(p string) string { return `t FROM jsonb_array_elements_text(CAST(` + p + ` AS TEXT)::JSONB) AS t` },
		listed: func(p string) string { return `id = ANY(string_to_array(` + p + `, ',')::BIGINT[])` },
	}, e)
	if err != nil {
		return nil, err
	}
	return q, nil
}

// newSQLiteQueue returns the queue of an SQLite database. River gets one connection of its own.
func newSQLiteQueue(ctx context.Context, db *sqlite.DB, e *Engine) (queue, error) {
	pool, err := db.Pool(ctx)
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(1)

	q, err := newRiverQueue[*sql.Tx](riversqlite.New(pool), dialect{
		jobs: `river_job`, now: `DATETIME('now', 'subsec')`, poll: 5 * time.Second,
		worker: `JSON_EXTRACT(attempted_by, '$[#-1]')`, args: `JSON(args)`, metadata: `JSON(metadata)`,
		run: `JSON_EXTRACT(args, '$.run')`, conversation: `JSON_EXTRACT(args, '$.conversation')`,
		merged: func(p string) string { return `JSONB_PATCH(metadata, ` + p + `)` },
		exists: `SELECT 1 FROM sqlite_master WHERE name = $1`,
		texts:  func(p string) string { return `value FROM JSON_EACH(` + p + `)` },
		listed: func(p string) string { return `id IN (SELECT value FROM JSON_EACH('[' || ` + p + ` || ']'))` },
	}, e)
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	q.closing, q.tx = pool.Close, true
	return q, nil
}

func (q *riverQueue[T]) dialect() *dialect { return &q.words }

func (q *riverQueue[T]) close() error { return q.closing() }

func (q *riverQueue[T]) client(config *river.Config) (client, error) {
	c, err := river.NewClient(q.driver, config)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (q *riverQueue[T]) insert(ctx context.Context, tx store.Tx, jobs []river.InsertManyParams) ([]int64, error) {
	handle, ok := tx.Handle().(T)
	if !ok {
		return nil, errors.New("durable: the transaction has no handle for River")
	}
	inserter := q.inserters[q.inserted.Add(1)%inserters]
	inserted, err := inserter.InsertManyTx(ctx, handle, jobs)
	if err != nil {
		return nil, err
	}

	ids := make([]int64, len(inserted))
	for i, j := range inserted {
		ids[i] = j.Job.ID
	}
	return ids, nil
}

// migrationLock is the number of the advisory lock around migrations: any number without another use.
const migrationLock = `SELECT PG_ADVISORY_XACT_LOCK(7163373128413)`

// migrate runs River's migrations alone: the migrator itself takes no lock, and two at once fail.
func (q *riverQueue[T]) migrate(ctx context.Context, db store.Transactor) error {
	migrator, err := rivermigrate.New(q.driver, &rivermigrate.Config{
		Schema: q.schema, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}

	return db.Update(ctx, func(tx store.Tx) error {
		// SQLite: the transaction itself is the lock, so the migrations run inside it.
		if q.tx {
			//lint:ignore SA1019 those that cannot share a transaction are PostgreSQL's
			_, err := migrator.MigrateTx(ctx, tx.Handle().(T), rivermigrate.DirectionUp, nil)
			return err
		}

		// PostgreSQL: some migrations cannot share a transaction. They run on another connection, and this one holds
		// the lock meanwhile.
		for _, statement := range []string{`SET LOCAL idle_in_transaction_session_timeout = 0`,
			`SET LOCAL lock_timeout = '1min'`, migrationLock} {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
		_, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
		return err
	})
}
