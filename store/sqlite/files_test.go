//go:build linux

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// smallDisk mounts a file system of 1 MiB. Where that is not permitted the test is skipped.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("SKIPPED: a small file system cannot be mounted: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	return dir
}

func TestFullDiskLosesNothingAcknowledged(t *testing.T) {
	ctx := context.Background()
	dir := smallDisk(t)
	filler := filepath.Join(dir, "filler")
	require.NoError(t, os.WriteFile(filler, make([]byte, 200<<10), 0o600))
	path := filepath.Join(dir, "sessions.db")
	db, err := Open(ctx, path, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()

	// Appends and transactions, until there is no room.
	grow := func(n uint64) error {
		if n%4 == 0 {
			return db.Update(ctx, func(tx store.Tx) error {
				_, err := tx.Append(ctx, store.AppendRequest{Conversation: fmt.Sprint("empty ", n), Head: "main"})
				return err
			})
		}
		_, err := db.Append(ctx, store.AppendRequest{
			Conversation: fmt.Sprint("talk ", n), Head: "main", Records: []store.Record{record(1, 8000)}, Nodes: []node.ID{id(1)},
		})
		return err
	}
	var stored []uint64
	n, failures := uint64(1), 0
	for ; failures < 5; n++ {
		if err := grow(n); err != nil {
			require.ErrorContains(t, err, "full")
			failures++
			continue
		}
		stored = append(stored, n)
	}
	require.Greater(t, len(stored), 10)

	// What was acknowledged is there, the rest is not, and with room again all goes on.
	check := func(db *DB) {
		t.Helper()
		require.NoError(t, db.Check(ctx))
		conversations, err := db.Conversations(ctx, store.Page{})
		require.NoError(t, err)
		require.Len(t, conversations, len(stored))
		for _, n := range stored {
			if n%4 == 0 {
				_, err := db.Head(ctx, fmt.Sprint("empty ", n), "main")
				require.NoError(t, err)
				continue
			}
			require.Equal(t, 1, read(t, db, fmt.Sprint("talk ", n), 1))
		}
	}
	check(db)
	require.NoError(t, os.Remove(filler))
	require.NoError(t, grow(n))
	stored = append(stored, n)
	check(db)
	second := openAt(t, path, nil)
	check(second)
}

func TestDatabaseThatCannotBeWrittenIsNotChanged(t *testing.T) {
	ctx := context.Background()
	dir := smallDisk(t)
	path := filepath.Join(dir, "sessions.db")
	db, err := Open(ctx, path, nil)
	require.NoError(t, err)
	chain(t, db, "talk", "main", 1, 4)
	require.NoError(t, db.Close())
	before, err := os.ReadFile(path)
	require.NoError(t, err)

	require.NoError(t, syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	_, err = Open(ctx, path, nil)
	var file *os.PathError
	require.ErrorAs(t, err, &file)
	require.Equal(t, path, file.Path)
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, after)

	require.NoError(t, syscall.Mount("", dir, "", syscall.MS_REMOUNT, ""))
	require.Equal(t, 3, read(t, openAt(t, path, nil), "talk", 3))
}

// leftBy returns a database as a killed process leaves it: with appends that are only in the log.
func leftBy(t *testing.T, appends uint64) string {
	t.Helper()
	db, path := openNew(t, nil)
	for n := uint64(1); n <= appends; n++ {
		chain(t, db, "talk", "main", n, n+1)
	}
	left := filepath.Join(t.TempDir(), "left.db")
	for _, suffix := range []string{"", "-wal", "-shm"} {
		data, err := os.ReadFile(path + suffix)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(left+suffix, data, 0o600))
	}
	return left
}

// A log that was cut is a disk that has lost what it had synced. What is left is whole, and begins at the beginning.
func TestDatabaseWithACutLogIsWhole(t *testing.T) {
	const appends = 12
	left := leftBy(t, appends)
	log, err := os.ReadFile(left + "-wal")
	require.NoError(t, err)
	data, err := os.ReadFile(left)
	require.NoError(t, err)

	last := uint64(appends)
	for size := len(log); size >= 0; size -= len(log)/20 + 7 {
		path := filepath.Join(t.TempDir(), "cut.db")
		require.NoError(t, os.WriteFile(path, data, 0o600))
		require.NoError(t, os.WriteFile(path+"-wal", log[:size], 0o600))
		db, err := Open(t.Context(), path, nil)
		require.NoError(t, err)
		require.NoError(t, db.Check(t.Context()))
		version := uint64(0)
		head, err := db.Head(t.Context(), "talk", "main")
		if !errors.Is(err, store.ErrNotStored) {
			require.NoError(t, err)
			version = head.Version
			require.Equal(t, int(version), read(t, db, "talk", version))
		}
		require.LessOrEqual(t, version, last)
		require.True(t, size < len(log) || version == appends)
		last = version
		require.NoError(t, db.Close())
	}
	require.Less(t, last, uint64(appends), "no cut has taken anything")
}

// The index of the log can be made again from the log.
func TestDatabaseWithADamagedIndexOfTheLogLosesNothing(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"removed": os.Remove,
		"empty":   func(path string) error { return os.Truncate(path, 0) },
		"cut":     func(path string) error { return os.Truncate(path, 100) },
		"garbage": func(path string) error {
			data, err := os.ReadFile(path)
			for i := range data {
				data[i] = byte(i * 7)
			}
			return errors.Join(err, os.WriteFile(path, data, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			left := leftBy(t, 12)
			require.NoError(t, damage(left+"-shm"))
			db := openAt(t, left, nil)
			require.NoError(t, db.Check(t.Context()))
			require.Equal(t, 12, read(t, db, "talk", 12))
		})
	}
}

// What is written to a deleted file would be acknowledged, and lost.
func TestFileThatIsDeletedOrReplacedTakesNoWrites(t *testing.T) {
	other, otherPath := openNew(t, nil)
	chain(t, other, "other", "main", 1, 2)
	for name, replace := range map[string]func(path string) error{
		"deleted":  os.Remove,
		"replaced": func(path string) error { return errors.Join(os.Remove(path), os.Link(otherPath, path)) },
	} {
		t.Run(name, func(t *testing.T) {
			db, path := openNew(t, nil)
			chain(t, db, "talk", "main", 1, 4)
			for range cap(db.database.readers) { // each is open, so that none checks the file any more
				require.Equal(t, 3, read(t, db, "talk", 3))
			}
			require.NoError(t, replace(path))

			// Nothing is acknowledged.
			head := store.AppendRequest{Conversation: "talk", Head: "fork", Nodes: []node.ID{id(3)}}
			_, err := db.Append(t.Context(), head)
			var file *os.PathError
			require.ErrorAs(t, err, &file)
			require.Equal(t, path, file.Path)
			require.Equal(t, name == "deleted", errors.Is(err, os.ErrNotExist))

			// A lost connection is not opened again, which would make a file or change the other one.
			err = db.database.do(&job{ctx: t.Context(), read: func(c *connection) error {
				c.broken = true
				return nil
			}})
			require.NoError(t, err)
			_, err = db.Append(t.Context(), head)
			require.Equal(t, name == "deleted", errors.Is(err, os.ErrNotExist), "%v", err)
			require.Nil(t, db.database.writer.conn)
			if name == "deleted" {
				require.NoFileExists(t, path)
			}
		})
	}
	require.NoError(t, other.Check(t.Context()))
}
