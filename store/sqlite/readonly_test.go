package sqlite

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadOnlyDatabaseRefusesChanges(t *testing.T) {
	db, path := openNew(t, nil)
	chain(t, db, "talk", "main", 1, 11)

	// Beside a writer, it sees what is written.
	reader := openAt(t, path, &Options{ReadOnly: true})
	require.Equal(t, 10, read(t, reader, "talk", 10))
	chain(t, db, "more", "main", 1, 3)
	require.Equal(t, 2, read(t, reader, "more", 2))
	require.NoError(t, reader.Check(t.Context()))
	require.ErrorIs(t, reader.Delete(t.Context(), "talk"), ErrReadOnly)
	_, err := reader.Prune(t.Context(), "talk", true)
	require.NoError(t, err, "counting changes nothing")

	_, err = Open(t.Context(), path+".none", &Options{ReadOnly: true})
	require.Error(t, err)
	require.NoFileExists(t, path+".none")
}

func TestDatabaseInAReadOnlyFolderIsRead(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("SKIPPED: root can write everywhere")
	}
	path := filepath.Join(t.TempDir(), "sessions.db")
	db, err := Open(context.Background(), path, nil)
	require.NoError(t, err)
	chain(t, db, "talk", "main", 1, 11)
	require.NoError(t, db.Close())

	folder := filepath.Dir(path)
	require.NoError(t, os.Chmod(folder, 0o500))
	t.Cleanup(func() { _ = os.Chmod(folder, 0o700) })
	_, err = Open(t.Context(), path, nil)
	require.Error(t, err)
	reader := openAt(t, path, &Options{ReadOnly: true})
	require.Equal(t, 10, read(t, reader, "talk", 10))
	require.NoError(t, reader.Check(t.Context()))
}

func TestReadOnlyDatabaseOfAnotherProgramIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "other.db")
	other, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	_, err = other.Exec(`CREATE TABLE mine (a)`)
	require.NoError(t, err)
	require.NoError(t, other.Close())
	_, err = Open(t.Context(), path, &Options{ReadOnly: true})
	require.ErrorIs(t, err, ErrNoTables)
}
