package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/crashtest"
	"github.com/plait-dev/plait/internal/sqlstore"
)

// points stops a process at all points of its transactions. Its death leaves the files as they are at that moment.
func points(t *testing.T) crashtest.Points {
	files := newFiles(t)
	return crashtest.Points{
		Open: openWrapped, Database: files,
		Crash: func(path string) string {
			left := files()
			for _, suffix := range []string{"", "-wal"} {
				data, err := os.ReadFile(path + suffix)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(left+suffix, data, 0o600))
			}
			return left
		},
		Dump: func(path string) string { return dump(t, path) },
	}
}

// openWrapped is Open with something around the transactions.
func openWrapped(ctx context.Context, path string, wrap func(sqlstore.DB) sqlstore.DB) (crashtest.Store, error) {
	if wrap == nil {
		return Open(ctx, path, nil)
	}
	return openClock(ctx, path, wrap, time.Now)
}

// openClock is openWrapped with a clock for leases and deadlines.
func openClock(
	ctx context.Context, path string, wrap func(sqlstore.DB) sqlstore.DB, now func() time.Time,
) (crashtest.Store, error) {
	name, err := dataSource(path)
	if err != nil {
		return nil, err
	}
	pool, err := sql.Open("sqlite", name)
	if err != nil {
		return nil, err
	}
	opts := (*Options)(nil).withDefaults()
	database, err := newDatabase(ctx, pool, opts, true)
	if err != nil {
		return nil, err
	}
	driver, err := sqlstore.New(ctx, wrap(database), dialect, sqlstore.Options{Poll: opts.Poll, Now: now})
	if err != nil {
		return nil, err
	}
	return &DB{Runs: driver, sqlstore: driver, database: database}, nil
}

// dump returns all rows of Plait's tables in a file.
func dump(t *testing.T, path string) string {
	t.Helper()
	name, err := dataSource(path)
	require.NoError(t, err)
	pool, err := sql.Open("sqlite", name)
	require.NoError(t, err)
	defer pool.Close()

	var all strings.Builder
	const tables = `SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'plait%' ORDER BY 1`
	for _, table := range column(t, pool, tables) {
		columns := column(t, pool, `SELECT 'quote(' || name || ')' FROM pragma_table_info($1)`, table)
		query := fmt.Sprintf(`SELECT %s FROM %s ORDER BY 1`, strings.Join(columns, `||','||`), table)
		for _, row := range column(t, pool, query) {
			fmt.Fprintln(&all, table, row)
		}
	}
	return all.String()
}

// column returns the values of a query with one column.
func column(t *testing.T, pool *sql.DB, query string, args ...any) (values []string) {
	t.Helper()
	rows, err := pool.Query(query, args...)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var value string
		require.NoError(t, rows.Scan(&value))
		values = append(values, value)
	}
	require.NoError(t, rows.Err())
	return values
}

func TestEveryPointOfEveryTransactionMayBeTheLast(t *testing.T) {
	points(t).Test(t)
}

func TestPointsShowATransactionThatIsCommittedHalfway(t *testing.T) {
	points(t).TestControl(t)
}

func TestFilesLeftByAKillHaveTheCommittedRows(t *testing.T) {
	p := points(t)
	path := p.Database()
	db, err := Open(t.Context(), path, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	chain(t, db, "talk", "main", 1, 4)
	require.Equal(t, 3, strings.Count(dump(t, p.Crash(path)), "plait_nodes"))
}
