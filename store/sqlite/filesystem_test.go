package sqlite

import (
	"database/sql"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNetworkFileSystemIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	opts := &Options{networkOf: func(string) (string, error) { return "nfs", nil }}
	_, err := Open(t.Context(), path, opts)
	var network *networkError
	require.ErrorAs(t, err, &network)
	require.Equal(t, &networkError{Path: path, FileSystem: "nfs"}, network)
	require.ErrorContains(t, err, "open "+path+": it is on a network file system (nfs)")

	// A database that the program has opened is refused before it is changed.
	pool, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer pool.Close()
	_, err = pool.Exec(`CREATE TABLE mine (n INTEGER)`)
	require.NoError(t, err)
	_, err = New(t.Context(), pool, opts)
	require.ErrorAs(t, err, &network)
	var mode string
	require.NoError(t, pool.QueryRow(`PRAGMA journal_mode`).Scan(&mode))
	require.Equal(t, "delete", mode)
}

func TestFileThatDoesNotExistIsOnTheFileSystemOfItsFolder(t *testing.T) {
	dir := t.TempDir()
	find := func(path string) (string, error) {
		if path != dir {
			return "", &fs.PathError{Op: "statfs", Path: path, Err: fs.ErrNotExist}
		}
		return "cifs", nil
	}
	path := filepath.Join(dir, "new.db")
	require.Equal(t, &networkError{path, "cifs"}, checkNetwork(path, find))
}

func TestFileSystemThatCannotBeAskedIsUsed(t *testing.T) {
	openAt(t, filepath.Join(t.TempDir(), "sessions.db"), &Options{
		networkOf: func(string) (string, error) { return "", os.ErrPermission },
	})
}

func TestDatabaseInMemoryHasNoFileSystem(t *testing.T) {
	openAt(t, ":memory:", &Options{networkOf: func(string) (string, error) { return "nfs", nil }})
}
