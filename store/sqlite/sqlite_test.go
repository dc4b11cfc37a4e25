package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/sqlstore"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

func TestConversationsAreThereAfterOpeningAgain(t *testing.T) {
	db, path := openNew(t, nil)
	chain(t, db, "talk", "main", 1, 301)
	require.NoError(t, db.Close())

	again := openAt(t, path, nil)
	h, err := again.Head(t.Context(), "talk", "main")
	require.NoError(t, err)
	require.Equal(t, store.Head{Name: "main", Version: 3, Nodes: []node.ID{id(300)}}, h)
	require.Equal(t, 300, read(t, again, "talk", 300))
	require.NoError(t, again.Check(t.Context()))
}

func TestConnectionsHaveTheSettings(t *testing.T) {
	db, _ := openNew(t, nil)
	settings := func(run func(context.Context, func(sqlstore.Tx) error) error) map[string]string {
		t.Helper()
		have := map[string]string{}
		require.NoError(t, run(t.Context(), func(tx sqlstore.Tx) error {
			for _, name := range []string{"journal_mode", "synchronous", "foreign_keys", "busy_timeout", "secure_delete", "mmap_size",
				"query_only"} {
				rows, err := tx.Query(t.Context(), `PRAGMA `+name)
				if err != nil {
					return err
				}
				var value string
				rows.Next()
				err = errors.Join(rows.Scan(&value), rows.Close())
				if err != nil {
					return err
				}
				have[name] = value
			}
			return nil
		}))
		return have
	}

	want := map[string]string{
		"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": "10000", "secure_delete": "1", "mmap_size": "0",
		"query_only": "0",
	}
	require.Equal(t, want, settings(db.database.Write))
	want["query_only"] = "1"
	require.Equal(t, want, settings(db.database.Read))

	err := db.database.Read(t.Context(), func(tx sqlstore.Tx) error {
		_, err := tx.Exec(t.Context(), `DELETE FROM plait_heads`)
		return err
	})
	require.ErrorContains(t, err, "readonly")
}

func TestOldSQLiteIsRefused(t *testing.T) {
	for _, old := range []string{"3.51.2", "3.9.9", "3.51", "2.60.0", ""} {
		var version *versionError
		require.ErrorAs(t, checkVersion(old), &version, old)
		require.Equal(t, versionError{old, "3.51.3"}, *version)
	}
	for _, good := range []string{"3.51.3", "3.51.10", "3.54.0", "4.0.0"} {
		require.NoError(t, checkVersion(good), good)
	}
}

func TestNewerSchemaIsRefused(t *testing.T) {
	db, path := openNew(t, nil)
	chain(t, db, "talk", "main", 1, 3)
	err := db.database.Write(t.Context(), func(tx sqlstore.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE plait_schema SET version = 1000`)
		return err
	})
	require.NoError(t, err)
	require.NoError(t, db.Close())

	_, err = Open(t.Context(), path, nil)
	var schema *SchemaError
	require.ErrorAs(t, err, &schema)
	require.Equal(t, 1000, schema.Version)
	var where *fs.PathError
	require.ErrorAs(t, err, &where)
	require.Equal(t, path, where.Path)
}

func TestFileThatIsNoDatabaseIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "talk.json")
	text := strings.Repeat(`{"format":"plait","version":1}`, 200)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))

	_, err := Open(t.Context(), path, nil)
	require.ErrorContains(t, err, "not a database")
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, text, string(after))
}

func TestPathsMayHoldAnyCharacter(t *testing.T) {
	names := []string{"a%20b#c.db", "π é.db"}
	if runtime.GOOS != "windows" { // which has no such names
		names = append(names, "a?mode=ro.db", ":memory:.db")
	}
	for _, name := range names {
		path := filepath.Join(t.TempDir(), name)
		db := openAt(t, path, nil)
		chain(t, db, "talk", "main", 1, 3)
		_, err := os.Stat(path)
		require.NoError(t, err)
	}
}

func TestPoolOfOneConnectionIsEnough(t *testing.T) {
	pools := map[string]string{"memory": ":memory:", "file": "file:" + filepath.Join(t.TempDir(), "one.db")}
	for name, source := range pools {
		t.Run(name, func(t *testing.T) {
			pool, err := sql.Open("sqlite", source)
			require.NoError(t, err)
			defer pool.Close()
			pool.SetMaxOpenConns(1)

			db, err := New(t.Context(), pool, nil)
			require.NoError(t, err)
			chain(t, db, "talk", "main", 1, 301)
			for r, err := range db.Read(t.Context(), "talk", []node.ID{id(300)}, nil) {
				require.NoError(t, err)
				_, err = db.Head(t.Context(), "talk", "main")
				require.NoError(t, err, r.ID)
			}
			require.NoError(t, db.Check(t.Context()))
			require.NoError(t, db.Close())

			// The pool is the program's: it is open, and has its own settings.
			var queryOnly int
			require.NoError(t, pool.QueryRow(`PRAGMA query_only`).Scan(&queryOnly))
			require.Zero(t, queryOnly)
		})
	}
}

func TestMemoryIsADatabaseOfItsOwn(t *testing.T) {
	one, two := openAt(t, ":memory:", nil), openAt(t, ":memory:", nil)
	chain(t, one, "talk", "main", 1, 301)
	require.Equal(t, 300, read(t, one, "talk", 300))
	keys, err := two.Conversations(t.Context(), store.Page{})
	require.NoError(t, err)
	require.Empty(t, keys)
}

func TestCheckFindsDamage(t *testing.T) {
	for name, damage := range map[string]string{
		"another line":     `UPDATE plait_nodes SET line = x'31' WHERE seq = 5`,
		"a missing record": `DELETE FROM plait_nodes WHERE seq = 5`,
		"a missing head":   `DELETE FROM plait_heads`,
		"another head":     `UPDATE plait_heads SET nodes = zeroblob(16)`,
	} {
		t.Run(name, func(t *testing.T) {
			db, _ := openNew(t, nil)
			chain(t, db, "talk", "main", 1, 11)
			require.NoError(t, db.Check(t.Context()))

			require.NoError(t, db.database.Write(t.Context(), func(tx sqlstore.Tx) error {
				changed, err := tx.Exec(t.Context(), damage)
				require.EqualValues(t, 1, changed)
				return err
			}))
			var found *DamageError
			require.ErrorAs(t, db.Check(t.Context()), &found)
			require.NotEmpty(t, found.Problems)
		})
	}
}

func TestWatchEndsAtADamagedHead(t *testing.T) {
	db, _ := openNew(t, nil)
	chain(t, db, "talk", "main", 1, 2)
	require.NoError(t, db.database.Write(t.Context(), func(tx sqlstore.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE plait_heads SET nodes = x'31'`)
		return err
	}))
	for _, err := range db.Watch(t.Context(), "talk") {
		require.Error(t, err)
		break
	}
}

func TestCloseWaitsAndRefusesLaterCalls(t *testing.T) {
	db, _ := openNew(t, nil)
	chain(t, db, "talk", "main", 1, 301)
	watched := make(chan error)
	go func() {
		var last error
		for _, err := range db.Watch(context.Background(), "talk") {
			watched <- err
			last = err
		}
		watched <- last
	}()
	require.NoError(t, <-watched)

	inside, release, done := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		done <- db.database.Read(context.Background(), func(sqlstore.Tx) error {
			close(inside)
			<-release
			return nil
		})
	}()
	<-inside
	closed := make(chan error)
	go func() { closed <- db.Close() }()
	require.ErrorIs(t, <-watched, fs.ErrClosed)
	require.ErrorIs(t, <-watched, fs.ErrClosed)
	close(release)
	require.NoError(t, <-done)
	require.NoError(t, <-closed)
	require.NoError(t, db.Close())

	_, err := db.Head(t.Context(), "talk", "main")
	require.ErrorIs(t, err, fs.ErrClosed)
	_, err = db.Append(t.Context(), store.AppendRequest{Conversation: "talk", Head: "new"})
	require.ErrorIs(t, err, fs.ErrClosed)
}

func TestProgramsSeeEachOther(t *testing.T) {
	one, path := openNew(t, nil)
	two := openAt(t, path, &Options{Poll: 1})
	chain(t, one, "talk", "main", 1, 2)

	ctx, cancel := context.WithCancel(t.Context())
	var versions []uint64
	for h, err := range two.Watch(ctx, "talk") {
		if errors.Is(err, context.Canceled) {
			break
		}
		require.NoError(t, err)
		versions = append(versions, h.Version)
		switch h.Version {
		case 1:
			chain(t, one, "talk", "main", 2, 3)
		case 2:
			require.NoError(t, one.RemoveHead(t.Context(), "talk", "main", 2))
		case 0:
			cancel()
		}
	}
	cancel()
	require.Equal(t, []uint64{1, 2, 0}, versions)
}
