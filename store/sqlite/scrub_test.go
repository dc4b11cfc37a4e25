package sqlite

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/sqlstore"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
)

// TestDeletedContentLeavesNoCopyInPages deletes rows among others, after many inserts have moved rows between pages.
func TestDeletedContentLeavesNoCopyInPages(t *testing.T) {
	t.Parallel()
	db, path := openNew(t, nil)
	r := rand.New(rand.NewPCG(seedtest.First(t), 0))
	write := func(statement string, args ...any) {
		require.NoError(t, db.database.Write(t.Context(), func(tx sqlstore.Tx) error {
			_, err := tx.Exec(t.Context(), statement, args...)
			return err
		}))
	}
	for i := range seedtest.Rounds(1000, 2000) {
		word := []string{"mauve", "other", "words"}[r.IntN(3)]
		write(`INSERT INTO plait_conversations (name) VALUES ($1)`, fmt.Sprint(r.IntN(100_000), " ", word, " ", i))
	}
	write(`DELETE FROM plait_conversations WHERE name LIKE '%mauve%'`)
	require.NoError(t, db.Scrub(t.Context()))

	for _, file := range []string{path, path + "-wal"} {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Zero(t, bytes.Count(data, []byte("mauve")), file)
	}
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Positive(t, bytes.Count(data, []byte("other")))
}

func TestScrubReportsThatOthersReadTheLog(t *testing.T) {
	db, path := openNew(t, &Options{BusyTimeout: time.Millisecond})
	chain(t, db, "talk", "main", 1, 3)
	other := openAt(t, path, nil)
	require.NoError(t, other.database.Snapshot(t.Context(), func(tx sqlstore.Tx) error {
		rows, err := tx.Query(t.Context(), `SELECT COUNT(*) FROM plait_nodes`)
		require.NoError(t, err)
		require.True(t, rows.Next())
		require.NoError(t, rows.Close())
		chain(t, db, "more", "main", 1, 3)
		require.ErrorIs(t, db.Scrub(t.Context()), ErrInUse)
		return nil
	}))
	require.NoError(t, db.Scrub(t.Context()))
}
