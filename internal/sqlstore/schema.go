package sqlstore

import (
	"context"
	"fmt"
)

// SchemaError reports tables of a newer version of Plait.
type SchemaError struct {
	// Version is the version of the tables, and Newest the newest version known to this program.
	Version, Newest int
}

// Error returns both versions.
func (e *SchemaError) Error() string {
	return fmt.Sprintf("the store's tables have version %d, made by a newer Plait; this one knows versions up to %d",
		e.Version, e.Newest)
}

// migrations make each version of the tables from the one before. A released migration is never changed.
var migrations = [][]string{
	{
		// num is never used again: a reader of a deleted conversation must not see a new one of the same name.
		`CREATE TABLE plait_conversations (
			num SERIAL,
			name NAME NOT NULL UNIQUE
		)TABLE_END`,

		// line is the last column: a query without it does not pay for a large line.
		`CREATE TABLE plait_nodes (
			seq RISING,
			conv NUMBER NOT NULL REFERENCES plait_conversations (num),
			id BYTES NOT NULL,
			links BYTES NOT NULL,
			sum BYTES NOT NULL,
			cuts BYTES,
			line BYTES NOT NULL,
			UNIQUE (conv, id)
		)TABLE_END`,

		// A conversation is walked on this index, from its heads to its beginning, before any line is read.
		`CREATE INDEX plait_nodes_walk ON plait_nodes (conv, seqCOVER)`,

		// num distinguishes a head from a removed one of the same name.
		`CREATE TABLE plait_heads (
			num SERIAL,
			conv NUMBER NOT NULL REFERENCES plait_conversations (num),
			name NAME NOT NULL,
			version NUMBER NOT NULL,
			nodes BYTES NOT NULL,
			header BYTES NOT NULL,
			UNIQUE (conv, name)
		)TABLE_END`,

		`CREATE TABLE plait_blobs (
			conv NUMBER NOT NULL REFERENCES plait_conversations (num),
			sum BYTES NOT NULL,
			data BYTES NOT NULL,
			PRIMARY KEY (conv, sum)
		)TABLE_END`,

		`CREATE TABLE plait_uses (
			conv NUMBER NOT NULL,
			sum BYTES NOT NULL,
			id BYTES NOT NULL,
			PRIMARY KEY (conv, sum, id),
			FOREIGN KEY (conv, sum) REFERENCES plait_blobs (conv, sum)
		)TABLE_END`,
		`CREATE INDEX plait_uses_of ON plait_uses (conv, id)`,
	},
	{
		// Times are nanoseconds since 1970, and 0 is none. open is 1 while the run can be claimed, busy while it has
		// not ended. since, total and wait are about wake-ups: see store.Runs.Sweep.
		`CREATE TABLE plait_runs (
			num SERIAL,
			id NAME NOT NULL UNIQUE,
			conversation NAME NOT NULL,
			head NAME NOT NULL,
			agent NAME NOT NULL,
			state NAME NOT NULL,
			reason NAME NOT NULL,
			continuation NAME NOT NULL,
			format NUMBER NOT NULL,
			pending NUMBER NOT NULL CHECK (pending >= 0),
			claim NUMBER NOT NULL,
			claims NUMBER NOT NULL,
			worker NAME NOT NULL,
			lease_until NUMBER NOT NULL,
			began NUMBER NOT NULL,
			changed NUMBER NOT NULL,
			queued NUMBER NOT NULL,
			since NUMBER NOT NULL,
			total NUMBER NOT NULL,
			wait NUMBER NOT NULL,
			open NUMBER NOT NULL,
			busy NUMBER NOT NULL
		)TABLE_END`,
		`CREATE UNIQUE INDEX plait_runs_busy ON plait_runs (conversation, head) WHERE busy = 1`,
		`CREATE INDEX plait_runs_open ON plait_runs (queued, num) WHERE open = 1`,

		`CREATE TABLE plait_pauses (
			num SERIAL,
			run NUMBER NOT NULL REFERENCES plait_runs (num),
			id NAME NOT NULL,
			payload BYTES NOT NULL,
			used NUMBER NOT NULL,
			UNIQUE (run, id)
		)TABLE_END`,

		// A call and its result are one row: no call can have two results. open is 1 while it can be claimed.
		`CREATE TABLE plait_tasks (
			num SERIAL,
			run NUMBER NOT NULL,
			pause NAME NOT NULL,
			call NAME NOT NULL,
			tool NAME NOT NULL,
			agent NAME NOT NULL,
			payload BYTES NOT NULL,
			attempts NUMBER NOT NULL,
			result_timeout NUMBER NOT NULL,
			external NUMBER NOT NULL,
			deadline NUMBER NOT NULL,
			claim NUMBER NOT NULL,
			claims NUMBER NOT NULL,
			worker NAME NOT NULL,
			lease_until NUMBER NOT NULL,
			since NUMBER NOT NULL,
			total NUMBER NOT NULL,
			wait NUMBER NOT NULL,
			done NUMBER NOT NULL,
			open NUMBER NOT NULL,
			outcome NAME NOT NULL,
			result BYTES,
			result_claim NUMBER NOT NULL,
			result_worker NAME NOT NULL,
			accepted NUMBER NOT NULL,
			UNIQUE (run, pause, call),
			FOREIGN KEY (run, pause) REFERENCES plait_pauses (run, id)
		)TABLE_END`,
		`CREATE INDEX plait_tasks_open ON plait_tasks (num) WHERE open = 1`,
	},
	durableTables,
}

// durableTables are the tables of executor/durable. Times are microseconds since 1970.
var durableTables = []string{
	// One row for each run, for lists and counts. It can be made again from the conversations and the jobs. busy is 1
	// until the run has ended. job is the ID of the run's job in River, or 0. start is the ID of the first node of the
	// run. losses counts lost processes since the head had the version.
	`CREATE TABLE plait_index (
		num SERIAL,
		id NAME NOT NULL UNIQUE,
		conversation NAME NOT NULL,
		head NAME NOT NULL,
		agent NAME NOT NULL,
		state NAME NOT NULL,
		reason NAME NOT NULL,
		busy NUMBER NOT NULL,
		job NUMBER NOT NULL,
		start BYTES NOT NULL,
		losses NUMBER NOT NULL,
		version NUMBER NOT NULL,
		began NUMBER NOT NULL,
		changed NUMBER NOT NULL
	)TABLE_END`,
	`CREATE UNIQUE INDEX plait_index_busy ON plait_index (conversation, head) WHERE busy = 1`,
	`CREATE INDEX plait_index_state ON plait_index (state, num)`,
	`CREATE INDEX plait_index_conversation ON plait_index (conversation, num)`,

	// What has arrived for a head and is not yet in the conversation. call is the key of the call of a reply, and empty
	// for a message. taken is 1 while a run adds the row to the conversation.
	`CREATE TABLE plait_inbox (
		num SERIAL,
		conv NUMBER NOT NULL REFERENCES plait_conversations (num) ON DELETE CASCADE,
		head NAME NOT NULL,
		call NAME NOT NULL,
		payload BYTES NOT NULL,
		sum BYTES NOT NULL,
		taken NUMBER NOT NULL,
		arrived NUMBER NOT NULL
	)TABLE_END`,
	`CREATE INDEX plait_inbox_head ON plait_inbox (conv, head, num)`,
	`CREATE UNIQUE INDEX plait_inbox_call ON plait_inbox (conv, head, call) WHERE call <> ''`,

	// One row for each process that serves, renewed every second.
	`CREATE TABLE plait_beats (
		id NAME PRIMARY KEY,
		beat NUMBER NOT NULL
	)TABLE_END`,
}

// migrate makes the tables, or brings them to the newest version.
func migrate(ctx context.Context, tx Tx, dialect Dialect) error {
	return migrateTo(ctx, tx, dialect, migrations)
}

func migrateTo(ctx context.Context, tx Tx, dialect Dialect, migrations [][]string) error {
	run := func(query string, args ...any) error {
		_, err := tx.Exec(ctx, query, args...)
		return err
	}

	// Several processes may start on an empty database at once.
	if dialect.LockSchema != "" {
		if err := run(dialect.LockSchema); err != nil {
			return err
		}
	}

	create := dialect.Schema.Replace(`CREATE TABLE IF NOT EXISTS plait_schema (version NUMBER NOT NULL)TABLE_END`)
	if err := run(create); err != nil {
		return err
	}

	var version int64
	found, err := first(ctx, tx, `SELECT version FROM plait_schema`, nil, &version)
	if err != nil {
		return err
	}
	if !found {
		if err := run(`INSERT INTO plait_schema (version) VALUES (0)`); err != nil {
			return err
		}
	}

	// A newer program may have changed tables in ways unknown to this one. Writing could destroy its data.
	newest := int64(len(migrations))
	if version > newest {
		return &SchemaError{int(version), int(newest)}
	}
	if version == newest {
		return nil
	}

	// All in one transaction, with the new version: a crash leaves the old tables.
	for _, statements := range migrations[version:] {
		for _, s := range statements {
			if err := run(dialect.Schema.Replace(s)); err != nil {
				return err
			}
		}
	}
	return run(`UPDATE plait_schema SET version = $1`, newest)
}
