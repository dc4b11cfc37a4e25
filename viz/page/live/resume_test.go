package live

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/dag"
)

// long is a conversation that is sent in several pieces.
func long(n int) dag.DAG {
	d := start()
	for i := range n {
		d = d.User(fmt.Sprint("message ", i))
	}
	return d
}

// patches reads the events up to the activity after the patches.
func (e *ear) patches() (all []told, last event) {
	e.t.Helper()
	for {
		got, ok := e.next()
		require.True(e.t, ok)
		if got.name != "patch" {
			return all, last
		}
		all, last = append(all, e.take(got.data)), got
		require.Less(e.t, len(got.data), 2<<20, "an event is small")
		require.Equal(e.t, got.id == "", all[len(all)-1].More, "only a page that has all of it can resume")
	}
}

// TestLongConversationArrivesInPieces: the first one shows something by itself, and only the last one can be resumed
// from.
func TestLongConversationArrivesInPieces(t *testing.T) {
	d := long(3_500)
	e := serve(t, d, nil).listen(t)
	pieces, _ := e.patches()
	require.Len(t, pieces, 4)
	for i, p := range pieces {
		require.Equal(t, i == 0, p.Reset)
		require.Equal(t, i < 3, p.More)
	}
	require.Equal(t, []int{pieces[0].Nodes[999].Key}, pieces[0].Heads, "it ends in its last node")
	require.Len(t, e.nodes, 3_500)
	require.Equal(t, []string{d.Head().ID().String()}, e.ends())
}

// TestReturningPageGetsWhatItMissed: not the whole conversation again, except from another server, or where the server
// does not have all of it any more.
func TestReturningPageGetsWhatItMissed(t *testing.T) {
	d := long(2_000)
	s := serve(t, d, nil)
	first := s.listen(t)
	_, last := first.patches()
	require.NotEmpty(t, last.id)
	first.stop()

	d = d.User("new")
	s.Set(d)
	missed, next := s.listenFrom(t, last.id).patches()
	require.Len(t, missed, 1)
	require.False(t, missed[0].Reset)
	require.Len(t, missed[0].Nodes, 1)
	require.Equal(t, d.Head().ID().String(), missed[0].Nodes[0].ID)

	nothing, _ := s.listenFrom(t, next.id).patches()
	require.Empty(t, nothing)

	for _, id := range []string{"", "x", "other-1", last.id + "0", s.id + "-", s.id + "-0", s.id + "--1", s.id + "-99999999999999999999"} {
		whole, _ := s.listenFrom(t, id).patches()
		require.Len(t, whole, 3, id)
		require.True(t, whole[0].Reset, id)
	}

	// More than the server keeps.
	reader := s.listen(t)
	_, before := reader.patches()
	for i := range 6 {
		d = d.User(strings.Repeat("x", maxBytes/4) + fmt.Sprint(i))
		s.Set(d)
		reader.knows(d)
	}
	whole, _ := s.listenFrom(t, before.id).patches()
	require.True(t, whole[0].Reset)
}
