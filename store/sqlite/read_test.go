package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/sqlstore"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// scanned calls a function before the first query of a Read that walks along the records. After 100 queries it fails
// each further one.
type scanned struct {
	sqlstore.DB
	before  func()
	queries int
}

func (s *scanned) Read(ctx context.Context, f func(sqlstore.Tx) error) error {
	return s.DB.Read(ctx, func(tx sqlstore.Tx) error { return f(scannedTx{tx, s}) })
}

type scannedTx struct {
	sqlstore.Tx
	*scanned
}

func (t scannedTx) Query(ctx context.Context, query string, args ...any) (sqlstore.Rows, error) {
	if t.queries++; t.queries > 100 {
		return nil, errors.New("the walk does not end")
	}
	if before := t.before; before != nil && strings.HasPrefix(query, "SELECT seq, id, links") {
		t.before = nil
		before()
	}
	return t.Tx.Query(ctx, query, args...)
}

// A Read is not a snapshot: a record may be removed between the query for its position and the one for its links.
func TestReadOfRecordThatIsPrunedMeanwhileIsNotStored(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "read.db")
	other, err := Open(ctx, path, nil)
	require.NoError(t, err)
	defer other.Close()

	var database *scanned
	reader, err := openWrapped(ctx, path, func(db sqlstore.DB) sqlstore.DB {
		database = &scanned{DB: db}
		return database
	})
	require.NoError(t, err)
	defer reader.Close()

	record := func() store.Record {
		line := []byte("{}")
		return store.Record{ID: node.Source{}.ID(), Line: line, Sum: store.SumOf(line)}
	}
	first, second := record(), record()
	records := []store.Record{first, second}
	for range 30 {
		records = append(records, record()) // the newest records are read without a walk
	}
	_, err = other.Append(ctx, store.AppendRequest{
		Conversation: "c", Head: "main", Records: records, Nodes: []node.ID{second.ID},
	})
	require.NoError(t, err)

	database.before = func() {
		_, err := other.Append(ctx, store.AppendRequest{Conversation: "c", Head: "main", Expect: 1, Nodes: []node.ID{first.ID}})
		require.NoError(t, err)
		_, err = other.Prune(ctx, "c", false)
		require.NoError(t, err)
	}
	for _, err = range reader.Read(ctx, "c", []node.ID{second.ID}, nil) {
	}
	require.ErrorIs(t, err, store.ErrNotStored)
	require.Nil(t, database.before, "the record was pruned between two queries")
}
