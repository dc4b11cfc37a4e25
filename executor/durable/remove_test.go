package durable

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/store"
)

// A new head of the same name reads nothing that was sent to the removed one.
func TestRemovedHeadTakesItsInboxWithIt(t *testing.T) {
	onEach(t, func(w *world) {
		e := w.engine(nil)
		w.start(e, StartRequest{Run: "main", Text: "Hi."})
		c, err := e.Store().Conversation(w.Context(), "c")
		require.NoError(w, err)
		side, err := c.Fork(w.Context(), "side")
		require.NoError(w, err)
		w.start(e, StartRequest{Run: "side", Head: "side", Text: "Hi."})
		for _, head := range []string{"main", "side"} {
			_, err := e.Send(w.Context(), "c", head, "to "+head)
			require.NoError(w, err)
		}

		side, err = side.Head(w.Context(), "side")
		require.NoError(w, err)
		require.NoError(w, w.db.RemoveHead(w.Context(), "c", "side", side.Version()))
		require.Equal(w, map[string]int{"to main": 1}, w.inbox())
		r, err := e.Run(w.Context(), "side")
		require.NoError(w, err)
		require.Equal(w, Cancelled, r.State)
		found, err := e.CheckIndex(w.Context())
		require.NoError(w, err)
		require.Empty(w, found)
	})
}

// inbox returns the texts of all messages in the inbox, with their number.
func (w *world) inbox() map[string]int {
	w.Helper()
	rows := map[string]int{}
	require.NoError(w, w.db.View(context.Background(), func(tx store.Tx) error {
		list, err := rowsOfInbox(w.Context(), tx, `call = ''`)
		for _, m := range list {
			s, err := m.sent()
			require.NoError(w, err)
			rows[s.Blocks.Text()]++
		}
		return err
	}))
	return rows
}

// A service may be stopped before it has begun.
func TestServeThatEndsAtOnceIsNoError(t *testing.T) {
	onOne(t, func(w *world) {
		e := w.engine(func(o *Options) {
			says(apitest.Say("Hello.").Always())(o)
			o.wrap = func(db store.Transactor) store.Transactor { return db } // the tables of River are not there
		})
		ctx, cancel := context.WithCancel(w.Context())
		cancel()
		require.NoError(w, e.Serve(ctx))
	})
}
