package postgres_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// A short list of values has a parameter for each, a long one is an array. Both store the same, and a record that is
// stored already stays as it is.
func TestAppendOfAnyNumberOfRecords(t *testing.T) {
	db := openNew(t, nil)
	for name, send := range map[string]func(a store.AppendRequest) error{
		"append": func(a store.AppendRequest) error {
			_, err := db.Append(t.Context(), a)
			return err
		},
		"one statement": func(a store.AppendRequest) error {
			_, holds, err := db.AppendIf(t.Context(), a, `SELECT 1 WHERE $1 = 7`, int64(7))
			require.True(t, holds || err != nil)
			return err
		},
		"in a transaction": func(a store.AppendRequest) error {
			return db.Update(t.Context(), func(tx store.Tx) error {
				_, err := tx.Append(context.Background(), a)
				return err
			})
		},
	} {
		for _, count := range []uint64{0, 1, 8, 9, 70} {
			conversation := fmt.Sprint(name, count)

			// All records are heads, so that as many are looked up in the second append.
			const first = 20
			a := store.AppendRequest{Conversation: conversation, Head: store.Main}
			for n := uint64(1); n <= first; n++ {
				a.Records, a.Nodes = append(a.Records, record(n, 10)), append(a.Nodes, id(n))
			}
			_, err := db.Append(t.Context(), a)
			require.NoError(t, err)

			// The first of the new ones may be stored.
			a = store.AppendRequest{Conversation: conversation, Head: store.Main, Expect: 1, Nodes: []node.ID{id(1)}}
			for n := first + 1 - count%2; n < first+1-count%2+count; n++ {
				r := record(n, 10)
				if n > first {
					r = record(n, 10, 1+n%first, n-1)
				}
				a.Records, a.Nodes = append(a.Records, r), append(a.Nodes, id(n))
			}
			require.NoError(t, send(a), conversation)

			stored := 0
			for r, err := range db.Read(t.Context(), conversation, a.Nodes, nil) {
				require.NoError(t, err)
				require.Equal(t, store.SumOf(r.Line), r.Sum)
				stored++
			}
			require.NotZero(t, stored)
			h, err := db.Head(t.Context(), conversation, store.Main)
			require.NoError(t, err)
			require.EqualValues(t, 2, h.Version)
			require.Equal(t, a.Nodes, h.Nodes)

			// Another record with the ID of a stored one is refused, and changes nothing.
			other := record(3, 11)
			a = store.AppendRequest{
				Conversation: conversation, Head: store.Main, Expect: 2, Nodes: []node.ID{id(3)}, Records: []store.Record{other},
			}
			require.ErrorIs(t, send(a), store.ErrRecord, conversation)
			h, err = db.Head(t.Context(), conversation, store.Main)
			require.NoError(t, err)
			require.EqualValues(t, 2, h.Version)
		}
	}
	require.NoError(t, db.Check(t.Context()))
}
