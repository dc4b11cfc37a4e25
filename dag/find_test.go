package dag_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

func TestFindAcceptsEveryNameOfANode(t *testing.T) {
	d := sample(t)
	for _, n := range d.WithChildren() {
		id := n.ID().String()
		for _, name := range []string{id, strings.ToUpper(id), strings.ReplaceAll(id, "-", ""), id[9:], d.ShortIDs()(n)} {
			got, err := d.Find(name)
			require.NoError(t, err, name)
			require.Same(t, n, got, name)
			require.Same(t, n, d.AtName(name).Head())
		}
	}

	random := dag.New().User("one").Assistant("two")
	for _, n := range random.Nodes() {
		got, err := random.Find(node.ShortID(n.ID()))
		require.NoError(t, err)
		require.Same(t, n, got)
	}
}

// named is a conversation of nodes with those ids.
func named(t *testing.T, ids ...string) dag.DAG {
	t.Helper()
	var lines []string
	for _, id := range ids {
		lines = append(lines, `{"id":"`+id+`","parents":[],"kind":"message","body":{"role":"user","blocks":[{"type":"text","text":"`+id+`"}]}}`)
	}
	return read(t, document("", lines...))
}

func TestFindErrorListsCandidates(t *testing.T) {
	d := named(t, "11112222-0000-7000-8000-0000aaaaaaaa", "11112223-0000-7000-8000-0000bbbbbbbb", "11110000-0000-7000-8000-0000cccccccc",
		"99999999-0000-7000-8000-000011112222")
	for _, c := range []struct {
		name       string
		err        error
		candidates string
		more       int
	}{
		{"1111222", dag.ErrAmbiguous, "aaaaaaaa bbbbbbbb", 0},
		{"1111", dag.ErrAmbiguous, "aaaaaaaa bbbbbbbb cccccccc", 0},
		{"11112222", dag.ErrAmbiguous, "aaaaaaaa 11112222", 0}, // the beginning of one, and the end of another
		{"111122ff", dag.ErrForeign, "aaaaaaaa bbbbbbbb", 0},
		{"11112222-1", dag.ErrForeign, "aaaaaaaa", 0},
		{"ffff-2222", dag.ErrForeign, "11112222", 0},
		{"22225ccccc", dag.ErrForeign, "cccccccc", 0},
		{"sha256:11112222", dag.ErrPrefix, "", 0},
		{"111", dag.ErrPrefix, "", 0},
		{"", dag.ErrPrefix, "", 0},
		{"main", dag.ErrPrefix, "", 0},
		{"\x1b[2J1111", dag.ErrPrefix, "", 0},
		{strings.Repeat("1", 33), dag.ErrPrefix, "", 0},
		{strings.Repeat("1", 1<<20), dag.ErrPrefix, "", 0},
	} {
		n, err := d.Find(c.name)
		require.Nil(t, n)
		require.ErrorIs(t, err, c.err, c.name)
		var find *dag.FindError
		require.ErrorAs(t, err, &find)
		require.Equal(t, c.name, find.Name)
		var ends []string
		for _, n := range find.Candidates {
			ends = append(ends, node.ShortID(n.ID()))
			require.Contains(t, err.Error(), n.ID().String())
		}
		require.Equal(t, c.candidates, strings.Join(ends, " "), c.name)
		require.NotContains(t, err.Error(), "\x1b")
		require.Less(t, len(err.Error()), 1000)
		at := d.AtName(c.name).Err()
		require.ErrorIs(t, at, c.err)
		require.ErrorIs(t, at, dag.ErrNoRef)
	}
	n, err := d.Find("11112222-0")
	require.NoError(t, err)
	require.Equal(t, "aaaaaaaa", node.ShortID(n.ID()))
}

func TestFindErrorListsFiveCandidates(t *testing.T) {
	var ids []string
	for i := range 12 {
		ids = append(ids, fmt.Sprintf("abcdabcd-0000-7000-8000-%012d", i))
	}
	_, err := named(t, ids...).Find("abcdab")
	var find *dag.FindError
	require.ErrorAs(t, err, &find)
	require.Len(t, find.Candidates, 5)
	require.Equal(t, 7, find.More)
	require.ErrorContains(t, err, "7 more")
}

func TestShortIDsAreAsLongAsTheConversationNeeds(t *testing.T) {
	d := named(t, "11111111-0000-7000-8000-0000aaaaaaaa", "22222222-0000-7000-8000-0010aaaaaaaa", "33333333-0000-7000-8000-0001bbbbbbbb")
	name := d.ShortIDs()
	require.Equal(t, []string{"00aaaaaaaa", "10aaaaaaaa", "01bbbbbbbb"}, []string{name(d.Nodes()[0]), name(d.Nodes()[1]), name(d.Nodes()[2])})
	for _, n := range d.Nodes() {
		found, err := d.Find(name(n))
		require.NoError(t, err)
		require.Same(t, n, found)
	}

	// The length does not depend on which nodes a log draws.
	for _, o := range []*dag.LogOptions{{IDs: true}, {IDs: true, Last: 1}} {
		require.Contains(t, logOf(t, d, o), " 01bbbbbbbb ")
	}
	require.Contains(t, dag.Diff(d, d.User("four")).String(), "+ user")
	require.Contains(t, dag.Diff(dag.New(), d).String(), "+ user      00aaaaaaaa\n")
}

func TestAtNamePrefersRefs(t *testing.T) {
	d := counting().User("one").Assistant("two")
	name := node.ShortID(d.Nodes()[0].ID())
	named := d.WithRef(name)
	require.Len(t, d.AtName(name).Nodes(), 1)
	require.Len(t, named.AtName(name).Nodes(), 2)
	require.Len(t, named.AtName(d.Nodes()[0].ID().String()).Nodes(), 1)
	require.ErrorIs(t, d.User("").AtName(name).Err(), dag.ErrEmpty)
}

func TestFindSearchesUnreachableNodes(t *testing.T) {
	child := dag.New().User("inner")
	d := dag.New().User("one").SubGraph("sub", child).WithRef("r").WithHeads()
	n, err := d.Find(child.Head().ID().String())
	require.NoError(t, err)
	require.Same(t, child.Head(), n)
	require.Equal(t, []string{"user:inner"}, spell(d.AtName(node.ShortID(n.ID())).Messages()))
	_, err = dag.New().Find("abcd")
	require.ErrorIs(t, err, dag.ErrForeign)
}

func TestFindInALongConversation(t *testing.T) {
	d := dag.New()
	for range 20_000 {
		d = d.Append(node.Message{Role: content.User, Blocks: content.Words("x")})
	}
	first := d.Nodes()[0]
	n, err := d.Find(first.ID().String()[24:])
	require.NoError(t, err)
	require.Same(t, first, n)
}
