package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// networkError reports a database on a network file system.
type networkError struct {
	// Path is the path of the file, and FileSystem the name of the file system, such as "nfs".
	Path, FileSystem string
}

// Error returns the path, the file system and the reason.
func (e *networkError) Error() string {
	return fmt.Sprintf("open %s: it is on a network file system (%s), whose locks and shared memory are not reliable enough "+
		"for SQLite in WAL mode: use a local disk, or store/postgres", e.Path, e.FileSystem)
}

// checkNetwork returns a *networkError for a file on a network file system. Find is [networkOf], or another function in
// tests. The file may not exist yet.
func checkNetwork(path string, find func(path string) (string, error)) error {
	name, err := find(path)
	if errors.Is(err, fs.ErrNotExist) {
		name, err = find(filepath.Dir(path))
	}

	// An unknown file system is not refused: SQLite reports it if it cannot use the file.
	if err != nil || name == "" {
		return nil
	}
	return &networkError{path, name}
}
