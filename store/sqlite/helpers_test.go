package sqlite

import (
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/plait-dev/plait/internal/sqlstore"
	"github.com/plait-dev/plait/internal/testkit/crashtest"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

func TestMain(m *testing.M) {
	crashtest.Main(openStore)
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("database/sql.(*DB).connectionOpener"))
}

// openStore opens a database for tests with processes.
func openStore(ctx context.Context, path string) (crashtest.Store, error) {
	return Open(ctx, path, nil)
}

// newFiles returns a function that returns the path of a new file each time.
func newFiles(t *testing.T) func() string {
	dir, n := t.TempDir(), 0
	return func() string {
		n++
		return filepath.Join(dir, fmt.Sprint(n, ".db"))
	}
}

// openNew opens a database in a new file, and closes it when the test ends.
func openNew(t testing.TB, opts *Options) (db *DB, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "sessions.db")
	return openAt(t, path, opts), path
}

func openAt(t testing.TB, path string, opts *Options) *DB {
	t.Helper()
	db, err := Open(context.Background(), path, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// record returns the record number n, whose line has a size, with links to other numbers.
func record(n uint64, size int, links ...uint64) store.Record {
	r := store.Record{ID: id(n), Line: fmt.Appendf(nil, "%0*d", size, n)}
	for _, l := range links {
		r.Links = append(r.Links, id(l))
	}
	r.Sum = store.SumOf(r.Line)
	return r
}

func id(n uint64) (id node.ID) {
	binary.BigEndian.PutUint64(id[8:], n)
	return id
}

// chain appends the records from to to-1 to a head, each linked to the one before, in steps of 100.
func chain(t testing.TB, db store.Driver, conversation, head string, from, to uint64) {
	t.Helper()
	var version uint64
	if h, err := db.Head(t.Context(), conversation, head); err == nil {
		version = h.Version
	}
	for from < to {
		a := store.AppendRequest{Conversation: conversation, Head: head, Expect: version}
		for ; from < to && len(a.Records) < 100; from++ {
			if from == 1 {
				a.Records = append(a.Records, record(from, 1000))
			} else {
				a.Records = append(a.Records, record(from, 1000, from-1))
			}
		}
		a.Nodes = []node.ID{id(from - 1)}
		h, err := db.Append(t.Context(), a)
		require.NoError(t, err)
		version = h.Version
	}
}

// read returns how many records are reached from a record.
func read(t testing.TB, db store.Driver, conversation string, from uint64) (records int) {
	t.Helper()
	for _, err := range db.Read(t.Context(), conversation, []node.ID{id(from)}, nil) {
		if err != nil {
			t.Fatal(err)
		}
		records++
	}
	return records
}

// openWrapped is Open with something around the transactions.
func openWrapped(ctx context.Context, path string, wrap func(sqlstore.DB) sqlstore.DB) (*DB, error) {
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
	driver, err := sqlstore.New(ctx, wrap(database), dialect, sqlstore.Options{Poll: opts.Poll})
	if err != nil {
		return nil, err
	}
	return &DB{Transactor: driver, sqlstore: driver, database: database}, nil
}
