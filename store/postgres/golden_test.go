package postgres_test

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/crashtest"
	"github.com/plait-dev/plait/internal/pgtest"
	"github.com/plait-dev/plait/store/postgres"
)

var update = flag.Bool("update", false, "write the golden database of the current version of the tables")

// writeGolden makes a database with a run in each state, and writes it as SQL that makes it in any schema.
func writeGolden(t *testing.T) {
	address := pgtest.Database(t)
	db, err := postgres.Open(context.Background(), address, postgres.Patient)
	require.NoError(t, err)
	crashtest.WriteGolden(t, db)
	require.NoError(t, db.Close())

	var schema string
	var version int
	pool := newPool(t, address, func(*pgxpool.Config) {})
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT current_schema(), version FROM plait_schema`).Scan(&schema, &version))
	at, err := url.Parse(address)
	require.NoError(t, err)
	dump, err := exec.Command("pg_dump", "--inserts", "--no-owner", "--no-privileges", "--schema="+schema,
		"--host="+at.Query().Get("host"), "--username=postgres", "postgres").Output()
	require.NoError(t, err)

	// Without commands of psql, settings, comments and the schema: the one of the reader is used.
	var kept strings.Builder
	for line := range strings.Lines(string(dump)) {
		other := false
		for _, start := range []string{"--", `\`, "SET ", "SELECT pg_catalog.set_config", "CREATE SCHEMA", "\n"} {
			other = other || strings.HasPrefix(line, start)
		}
		if !other {
			kept.WriteString(strings.ReplaceAll(line, schema+".", ""))
		}
	}
	name := filepath.Join("testdata", fmt.Sprintf("runs-%d.sql", version))
	require.NoError(t, os.MkdirAll("testdata", 0o755))
	require.NoError(t, os.WriteFile(name, []byte(kept.String()), 0o644))
}

// A database that a former version has left opens, and its runs finish. -update writes one for the current version of
// the tables; the file of a version that was released is never changed.
func TestRunsOfFormerVersionsFinish(t *testing.T) {
	if *update {
		writeGolden(t)
	}
	files, err := filepath.Glob("testdata/runs-*.sql")
	require.NoError(t, err)
	require.NotEmpty(t, files)

	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			address := pgtest.Database(t)
			dump, err := os.ReadFile(file)
			require.NoError(t, err)
			_, err = newPool(t, address, func(*pgxpool.Config) {}).Exec(t.Context(), string(dump))
			require.NoError(t, err)
			crashtest.FinishGolden(t, openAt(t, address, nil))
		})
	}
}
