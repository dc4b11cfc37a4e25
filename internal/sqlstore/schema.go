package sqlstore

import (
	"context"
	"fmt"
)

// SchemaError reports tables that a newer version of Plait has made.
type SchemaError struct {
	// Version is the version of the tables, and Newest the newest one that this version of Plait knows.
	Version, Newest int
}

// Error returns both versions.
func (e *SchemaError) Error() string {
	return fmt.Sprintf("the store's tables have version %d, made by a newer Plait; this one knows versions up to %d",
		e.Version, e.Newest)
}

// migrations make each version of the tables from the one before. A migration that was released is never changed.
var migrations = [][]string{
	{
		// num is never used again, so that a reader of a deleted conversation cannot see one of the same name.
		`CREATE TABLE plait_conversations (
			num SERIAL,
			name NAME NOT NULL UNIQUE
		)TABLE_END`,

		// The cost of a large line is paid only where it is read: it is the last column.
		`CREATE TABLE plait_nodes (
			seq SERIAL,
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

		// num tells a head from a removed one of the same name.
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

	newest := int64(len(migrations))
	if version > newest {
		return &SchemaError{int(version), int(newest)}
	}
	if version == newest {
		return nil
	}
	for _, statements := range migrations[version:] {
		for _, s := range statements {
			if err := run(dialect.Schema.Replace(s)); err != nil {
				return err
			}
		}
	}
	return run(`UPDATE plait_schema SET version = $1`, newest)
}
