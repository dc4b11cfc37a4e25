package sqlstore

import (
	"context"
	"errors"
	"fmt"
)

// ErrNoTables is the error of opening a database without tables, if they are not to be made.
var ErrNoTables = errors.New("a database without conversations of Plait")

// SchemaError reports tables of another version of Plait.
type SchemaError struct {
	// Version is the version of the tables. Oldest and Newest are the versions known to this program.
	Version, Oldest, Newest int
}

// Error returns the versions, and what to do.
func (e *SchemaError) Error() string {
	if e.Version < e.Oldest {
		return fmt.Sprintf("the store's tables have version %d, of a Plait before its first release, and this one reads none "+
			"before %d: save the conversations to files with the program that wrote them, and append them to a new database",
			e.Version, e.Oldest)
	}
	return fmt.Sprintf("the store's tables have version %d, made by a newer Plait; this one knows versions up to %d: "+
		"use the newer program", e.Version, e.Newest)
}

// Tables are the tables with rows of conversations, or of their runs.
var Tables = []string{
	"plait_conversations", "plait_nodes", "plait_heads", "plait_inbox", "plait_index",
}

// oldest is the version of the tables that the first of the migrations makes. Those before it were never released.
const oldest = 6

// newest is the version of the tables of this program.
func newest() int64 { return int64(oldest - 1 + len(migrations)) }

// migrations make each version of the tables from the one before. A released migration is never changed. If programs of
// the version before must not write to the new tables, a migration renames a table: their statements then fail.
var migrations = [][]string{
	append([]string{
		// num is never used again: a reader of a deleted conversation must not see a new one of the same name.
		`CREATE TABLE plait_conversations (
			num SERIAL,
			name NAME NOT NULL UNIQUE
		)TABLE_END`,

		// line is the last column: a query without it does not pay for a large line. outline is that of store.Record. It
		// is derived from the records, and may be removed.
		`CREATE TABLE plait_nodes (
			seq RISING,
			conv NUMBER NOT NULL REFERENCES plait_conversations (num),
			id BYTES NOT NULL,
			links BYTES NOT NULL,
			sum BYTES NOT NULL,
			outline BYTES,
			line BYTES NOT NULL,
			UNIQUE (conv, id)
		)TABLE_END`,

		// A conversation is walked on this index, from its heads to its beginning, before any line is read.
		`CREATE INDEX plait_nodes_walk ON plait_nodes (conv, seqCOVER)`,
		`CREATE INDEX plait_nodes_outlined ON plait_nodes (conv, id) WHERE outline IS NOT NULL`,

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
	}, durableTables...),
}

// durableTables are the tables of executor/durable. Times are microseconds since 1970.
var durableTables = []string{
	// One row for each run, for lists and counts. It can be made again from the conversations and the jobs. busy is 1
	// until the run has ended. job is the ID of the run's unfinished job in River, or 0. start is the ID of the message
	// that the run began with.
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
		began NUMBER NOT NULL,
		changed NUMBER NOT NULL
	)TABLE_END`,
	`CREATE UNIQUE INDEX plait_index_busy ON plait_index (conversation, head) WHERE busy = 1`,
	`CREATE INDEX plait_index_open ON plait_index (num) WHERE busy = 1`,
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

	version, err := schemaVersion(ctx, tx)
	if err != nil {
		return err
	}
	made := version - (oldest - 1) // the number of migrations that were run
	switch {
	case version == 0:
		made = 0
		if err := run(`INSERT INTO plait_schema (version) VALUES (0)`); err != nil {
			return err
		}
	case version < oldest, version > newest():
		// Writing to tables that another program has changed in unknown ways could destroy its data.
		return schemaError(version)
	case version == newest():
		return nil
	}

	// All in one transaction, with the new version: a crash leaves the old tables.
	for _, statements := range migrations[made:] {
		for _, s := range statements {
			if err := run(dialect.Schema.Replace(s)); err != nil {
				return err
			}
		}
	}
	return run(`UPDATE plait_schema SET version = $1`, newest())
}

// schemaVersion returns the version of the tables; 0 if there are none.
func schemaVersion(ctx context.Context, tx Tx) (version int64, err error) {
	_, err = first(ctx, tx, `SELECT version FROM plait_schema`, nil, &version)
	return version, err
}

func schemaError(version int64) error { return &SchemaError{int(version), oldest, int(newest())} }

// checkVersion returns an error for tables of another version.
func checkVersion(ctx context.Context, tx Tx) error {
	version, err := schemaVersion(ctx, tx)
	if err == nil && version != newest() {
		err = schemaError(version)
	}
	return err
}
