package storetest

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// RunTransactor tests a store.Transactor, with a case for each sentence of its comments. open returns an empty store
// each time.
func RunTransactor(t *testing.T, open func(t *testing.T) store.Transactor) {
	t.Run("names that are not allowed are refused", func(t *testing.T) {
		(&driverTest{T: t, Driver: open(t), ctx: t.Context()}).badNames()
	})

	t.Run("an append and other rows commit together", func(t *testing.T) {
		s := openNotes(t, open)
		require.NoError(t, s.Update(t.Context(), func(tx store.Tx) error {
			if err := s.write(t, tx, "a"); err != nil {
				return err
			}
			return s.note(t, tx, "a")
		}))
		require.Equal(t, []string{"a"}, s.notes(t))
		_, err := s.Head(t.Context(), "a", store.Main)
		require.NoError(t, err)
	})

	t.Run("an error undoes both, and is returned as it is", func(t *testing.T) {
		s := openNotes(t, open)
		failed := errors.New("no")
		err := s.Update(t.Context(), func(tx store.Tx) error {
			require.NoError(t, s.write(t, tx, "a"))
			require.NoError(t, s.note(t, tx, "a"))
			return failed
		})
		require.Same(t, failed, err)
		require.Empty(t, s.notes(t))
		_, err = s.Head(t.Context(), "a", store.Main)
		require.ErrorIs(t, err, store.ErrNotStored)
	})

	t.Run("a transaction reads its own writes", func(t *testing.T) {
		s := openNotes(t, open)
		require.NoError(t, s.Update(t.Context(), func(tx store.Tx) error {
			_, err := tx.Head(t.Context(), "a", store.Main)
			require.ErrorIs(t, err, store.ErrNotStored)
			require.NoError(t, s.write(t, tx, "a"))
			h, err := tx.Head(t.Context(), "a", store.Main)
			require.Equal(t, uint64(1), h.Version)
			return err
		}))
	})

	t.Run("an append in it has the errors of Driver", func(t *testing.T) {
		s := openNotes(t, open)
		write := func(tx store.Tx) error { return s.write(t, tx, "a") }
		require.NoError(t, s.Update(t.Context(), write))
		var conflict *store.ConflictError
		require.ErrorAs(t, s.Update(t.Context(), write), &conflict)
		require.Equal(t, uint64(1), conflict.Current.Version)
		require.ErrorIs(t, s.Update(t.Context(), func(tx store.Tx) error {
			_, err := tx.Append(t.Context(), store.AppendRequest{})
			return err
		}), store.ErrName)
	})

	t.Run("transactions that wait at the same time do not touch each other", func(t *testing.T) {
		s := openNotes(t, open)
		const writers = 16
		ended := make(chan error, writers)
		for i := range writers {
			go func() {
				ended <- s.Update(t.Context(), func(tx store.Tx) error {
					name := string(rune('a' + i))
					if err := s.note(t, tx, name); err != nil {
						return err
					}
					if i%2 == 1 {
						return errUndo
					}
					return s.write(t, tx, name)
				})
			}()
		}

		undone := 0
		for range writers {
			if err := <-ended; err != nil {
				require.ErrorIs(t, err, errUndo)
				undone++
			}
		}
		require.Equal(t, writers/2, undone)
		require.Len(t, s.notes(t), writers/2)
	})

	t.Run("only a transaction for writing has a handle", func(t *testing.T) {
		s := openNotes(t, open)
		require.NoError(t, s.Update(t.Context(), func(tx store.Tx) error {
			require.NotNil(t, tx.Handle())
			require.Equal(t, tx.Handle(), tx.Handle())
			return nil
		}))
		require.NoError(t, s.View(t.Context(), func(tx store.Tx) error {
			require.Nil(t, tx.Handle())
			return nil
		}))
	})

	t.Run("the database has a clock", func(t *testing.T) {
		s := openNotes(t, open)
		require.NoError(t, s.View(t.Context(), func(tx store.Tx) error {
			rows, err := tx.Query(t.Context(), `SELECT `+tx.Now())
			require.NoError(t, err)
			defer rows.Close()
			require.True(t, rows.Next())
			var now int64
			require.NoError(t, rows.Scan(&now))
			require.Greater(t, now, int64(1_600_000_000_000_000))
			return rows.Err()
		}))
	})
}

var errUndo = errors.New("undo")

// notes is a store with a table of the test's own.
type notes struct{ store.Transactor }

func openNotes(t *testing.T, open func(t *testing.T) store.Transactor) notes {
	s := notes{open(t)}
	require.NoError(t, s.Update(t.Context(), func(tx store.Tx) error {
		_, err := tx.Exec(t.Context(), `CREATE TABLE test_notes (text TEXT NOT NULL)`)
		return err
	}))
	return s
}

// write appends a first record to a conversation.
func (s notes) write(t *testing.T, tx store.Tx, conversation string) error {
	r := store.Record{ID: node.ID{1}, Line: []byte(conversation)}
	r.Sum = store.SumOf(r.Line)
	_, err := tx.Append(t.Context(), store.AppendRequest{
		Conversation: conversation, Head: store.Main, Records: []store.Record{r}, Nodes: []node.ID{r.ID},
	})
	return err
}

// note writes a row to the test's table.
func (s notes) note(t *testing.T, tx store.Tx, text string) error {
	_, err := tx.Exec(t.Context(), `INSERT INTO test_notes (text) VALUES ($1)`, text)
	return err
}

// notes returns the rows of the test's table, sorted.
func (s notes) notes(t *testing.T) (list []string) {
	require.NoError(t, s.View(t.Context(), func(tx store.Tx) error {
		list = nil
		rows, err := tx.Query(t.Context(), `SELECT text FROM test_notes ORDER BY text`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var text string
			if err := rows.Scan(&text); err != nil {
				return err
			}
			list = append(list, text)
		}
		return rows.Err()
	}))
	return list
}

func (t *driverTest) badNames() {
	long := strings.Repeat("n", 201)
	for _, bad := range []string{"", "\x00", "a\x00b", "a\nb", "\t", "\x7f", "\u0085", "\u2028", "\xff", "a\xc3", long} {
		refused := func(err error) {
			t.Helper()
			require.ErrorIs(t, err, store.ErrName, "%q", bad)
		}

		r := record()
		_, err := t.Append(t.ctx, store.AppendRequest{
			Conversation: bad, Head: "main", Records: []store.Record{r}, Nodes: idsOf(r),
		})
		refused(err)

		_, err = t.Append(t.ctx, store.AppendRequest{
			Conversation: "c", Head: bad, Records: []store.Record{r}, Nodes: idsOf(r),
		})
		refused(err)

		_, err = t.Head(t.ctx, bad, "main")
		refused(err)
		_, err = t.Head(t.ctx, "c", bad)
		refused(err)
		_, err = t.Heads(t.ctx, bad, store.Page{})
		refused(err)

		// The name is checked even if there is nothing to read.
		_, err = collect(t.Read(t.ctx, bad, nil, nil))
		refused(err)

		refused(t.RemoveHead(t.ctx, bad, "main", 1))
		refused(t.RemoveHead(t.ctx, "c", bad, 1))
		refused(t.Delete(t.ctx, bad))

		_, err = t.Prune(t.ctx, bad, false)
		refused(err)
		_, err = collect(t.Watch(t.ctx, bad))
		refused(err)

		// An empty prefix is valid: it selects all names.
		if bad == "" {
			continue
		}
		for _, page := range []store.Page{{Prefix: bad}, {After: bad}} {
			_, err = t.Conversations(t.ctx, page)
			refused(err)
			_, err = t.Heads(t.ctx, "c", page)
			refused(err)
		}
	}

	require.Empty(t, t.all())
}
