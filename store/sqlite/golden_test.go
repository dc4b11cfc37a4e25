package sqlite_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/crashtest"
	"github.com/plait-dev/plait/store/sqlite"
)

var update = flag.Bool("update", false, "write the golden database of the current version of the tables")

// writeGolden makes a database with a run in each state.
func writeGolden(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	path := filepath.Join(dir, "runs.db")
	db, err := sqlite.Open(ctx, path, nil)
	require.NoError(t, err)
	crashtest.WriteGolden(t, db)

	// One small file, named for the version of its tables.
	single := filepath.Join(dir, "single.db")
	require.NoError(t, db.Backup(ctx, single))
	require.NoError(t, db.Close())
	data, err := os.ReadFile(single)
	require.NoError(t, err)
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	require.NoError(t, err)
	_, err = w.Write(data)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	name := filepath.Join("testdata", fmt.Sprintf("runs-%d.db.gz", schemaOf(t, single)))
	require.NoError(t, os.WriteFile(name, packed.Bytes(), 0o644))
}

func schemaOf(t *testing.T, path string) (version int) {
	t.Helper()
	pool, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer pool.Close()
	require.NoError(t, pool.QueryRow(`SELECT version FROM plait_schema`).Scan(&version))
	return version
}

// unpack returns the path of a copy of a golden database.
func unpack(t *testing.T, golden string) string {
	t.Helper()
	f, err := os.Open(golden)
	require.NoError(t, err)
	defer f.Close()
	r, err := gzip.NewReader(f)
	require.NoError(t, err)
	data, err := io.ReadAll(r)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "runs.db")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}

// A database that a former version has left opens, and its runs finish. -update writes one for the current version of
// the tables; the file of a version that was released is never changed.
func TestRunsOfFormerVersionsFinish(t *testing.T) {
	if *update {
		writeGolden(t)
	}
	files, err := filepath.Glob("testdata/runs-*.db.gz")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { finishGolden(t, unpack(t, file)) })
	}
}

func finishGolden(t *testing.T, path string) {
	db, err := sqlite.Open(t.Context(), path, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	crashtest.FinishGolden(t, db)
}
