package dag_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// leftBehind is a file with a conversation, a ref, and two nodes in a row and one alone that nothing reaches.
func leftBehind(t testing.TB) (text string, lost []node.ID) {
	d := counting().System("s").User("kept").WithRef("tag").Assistant("kept too")
	one := d.AtRef("tag").Assistant("dropped").User("dropped too")
	two := d.User("dropped as well")
	d = d.SubGraph("child", counting().WithSource(node.Counting(start.AddDate(1, 0, 0))).User("of a child"))
	ends := d.Join(one, two)
	text = written(t, ends)
	text = strings.Replace(text, `","`+one.Head().ID().String()+`","`+two.Head().ID().String()+`"],"refs"`, `"],"refs"`, 1)
	return text, []node.ID{one.Head().Parent(0).ID(), one.Head().ID(), two.Head().ID()}
}

func TestUnreachableListsNodes(t *testing.T) {
	text, lost := leftBehind(t)
	d := read(t, text)
	require.Equal(t, 4, d.Len())
	u := d.Unreachable()
	require.Equal(t, lost, ids(u.Nodes))
	require.Equal(t, text, written(t, d), "to look changes nothing")

	pruned := d.Prune()
	after := written(t, pruned)
	require.Equal(t, int64(len(text)-len(after)), u.Bytes)
	require.NotContains(t, after, "dropped")
	require.Len(t, lines(after), len(lines(text))-3)
	for _, line := range lines(after) {
		require.Contains(t, text, strings.TrimSuffix(line, ","), "what stays is as it was")
	}
	require.Equal(t, d.Heads(), pruned.Heads())
	require.Equal(t, d.Refs(), pruned.Refs())
	require.Equal(t, after, written(t, read(t, after)))
	require.Empty(t, pruned.Unreachable().Nodes)
	require.Equal(t, pruned, pruned.Prune())
	require.Equal(t, text, written(t, d), "the old value still has them")

	require.Equal(t, "3 nodes out of reach, "+strings.SplitN(u.String(), ", ", 2)[1], u.String())
	require.Contains(t, u.String(), " bytes\n"+u.Nodes[0].String()+"\n")
}

func TestPruneKeepsNodesThatAreHeadsAgain(t *testing.T) {
	text, lost := leftBehind(t)
	d := read(t, text)
	u := d.Unreachable()
	back := d.WithHeads(append(d.Heads(), u.Nodes[1])...)
	require.Equal(t, lost[2:], ids(back.Unreachable().Nodes))
	require.Contains(t, written(t, back.Prune()), "dropped too")
	named := d.WithHeads(u.Nodes[1]).WithRef("mine").WithHeads(d.Heads()...)
	require.Equal(t, lost[2:], ids(named.Unreachable().Nodes))
	require.Contains(t, written(t, named.Prune()), "dropped too")
	require.NotContains(t, written(t, named.Prune()), "dropped as well")

	gone := d.WithoutRef("tag").WithHeads()
	require.Len(t, gone.Unreachable().Nodes, 6, "and what they stand after")
	require.Empty(t, lines(written(t, gone.Prune())))
	require.ErrorIs(t, d.Back(9).Prune().Err(), dag.ErrNoExchange)
	require.Equal(t, sample(t).Len(), sample(t).Prune().Len(), "what is built has nothing to prune")
}

// TestPruneKeepsNodesNamedInUnknownKinds: a node of a kind that is not known may name others in ways that are not known.
func TestPruneKeepsNodesNamedInUnknownKinds(t *testing.T) {
	text := strings.Replace(document(`,"created":"2026-01-02T03:04:05Z","heads":[]`,
		line(1, `"kind":"system","body":{"text":"the parent of what is named"}`),
		line(2, `"kind":"system","parents":[`+ref(1)+`],"body":{"text":"named by a moon"}`),
		line(3, `"kind":"planet","body":{"next":`+ref(2)+`}`),
		line(4, `"kind":"system","body":{"text":"dropped, names `+ref(2)[1:37]+`"}`),
		line(5, `"kind":"moon","body":{"around":[`+ref(3)+`,"00000000-0000-7000-8000-000000000099"]}`),
		line(6, `"kind":"system","body":{"text":"dropped"}`)), `"heads":[]`, `"heads":[`+ref(5)+`]`, 1)
	d := read(t, text)
	require.Equal(t, text, written(t, d))
	u := d.Unreachable()
	require.Len(t, u.Nodes, 2)
	after := written(t, d.Prune())
	require.Len(t, lines(after), 4)
	require.NotContains(t, after, "dropped")
	require.Equal(t, int64(len(text)-len(after)), u.Bytes)
	require.Equal(t, after, written(t, read(t, after)))
	require.Equal(t, after, written(t, d.Prune().Prune()))

	lone := read(t, strings.Replace(text, `"heads":[`+ref(5)+`]`, `"heads":[`+ref(6)+`]`, 1))
	require.Len(t, lone.Unreachable().Nodes, 5, "out of reach itself, it keeps nothing")

	// All nodes before the head are kept, and the one after it is dropped. They come in any order.
	some := read(t, strings.Replace(text, line(4, `"kind":"system","body":{"text":"dropped, names `+ref(2)[1:37]+`"}`)+",\n", "", 1))
	for range 32 {
		require.NotContains(t, written(t, some.Prune()), "dropped")
	}
}

func TestPruneIgnoresIDsInText(t *testing.T) {
	text := strings.Replace(document(`,"heads":[]`, line(1, `"kind":"system","body":{"text":"dropped"}`),
		line(2, `"kind":"system","body":{"text":"kept, names `+ref(1)[1:37]+`"}`)), `"heads":[]`, `"heads":[`+ref(2)+`]`, 1)
	require.Len(t, read(t, text).Unreachable().Nodes, 1)
}

func TestRewriteJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "talk.jsonl")
	j, err := dag.OpenJournal(path, nil)
	require.NoError(t, err)
	d := sample(t)
	require.NoError(t, j.Append(d.User("dropped")))
	require.NoError(t, j.Append(d))
	require.NoError(t, j.Close())
	require.Contains(t, contentOf(t, path), "dropped")
	require.NoError(t, dag.RewriteJournal(path, d))
	require.Equal(t, journalOf(t, d), contentOf(t, path), "as if it had been appended at once")

	require.NoError(t, dag.RewriteJournal(path, dag.New()))
	require.Equal(t, journalOf(t, dag.New()), contentOf(t, path))
	require.ErrorIs(t, dag.RewriteJournal(path, d.Back(99)), dag.ErrNoExchange)
	require.ErrorIs(t, dag.RewriteJournal(filepath.Join(t.TempDir(), "no", "x"), d), os.ErrNotExist)
	require.ErrorIs(t, dag.RewriteJournal(path, repeatedIDs(t)), dag.ErrDuplicateID)
	require.Equal(t, journalOf(t, dag.New()), contentOf(t, path), "and then it is as it was")
}

func repeatedIDs(t testing.TB) dag.DAG {
	d := counting().User("one").SubGraph("x", counting().User("other"))
	require.NoError(t, d.Err())
	return d
}
