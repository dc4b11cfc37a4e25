package dag_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/testkit/growthtest"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// edit replaces the node at a place by a message of the user's.
func edit(t testing.TB, d dag.DAG, place int, text string) dag.Edited {
	t.Helper()
	e, err := d.Edit(d.Nodes()[place], node.Message{Role: content.User, Blocks: content.Words(text)})
	require.NoError(t, err)
	return e
}

func TestEditCopiesTheNodesAfterIt(t *testing.T) {
	d := fresh().System("s").User("1").Assistant("2").User("3").Assistant("4").Stop("x").WithRef("before")
	e := edit(t, d, 1, "one")
	require.Equal(t, []string{"user:one", "assistant:2", "user:3", "assistant:4"}, spell(e.DAG.Messages()))
	require.Equal(t, []string{"user:1", "assistant:2", "user:3", "assistant:4"}, spell(d.Messages()), "d is untouched")
	require.True(t, dag.Equal(d, e.DAG.AtRef("before")), "the way back")
	require.Same(t, d.Nodes()[0], e.DAG.Nodes()[0])
	require.Same(t, e.Node, e.DAG.Nodes()[1])
	require.Len(t, e.Remade, 4)
	for i, r := range e.Remade {
		require.Same(t, d.Nodes()[i+2], r.Old)
		require.Same(t, e.DAG.Nodes()[i+2], r.New)
		require.NotEqual(t, r.Old.ID(), r.New.ID())
		require.Equal(t, r.Old.Payload(), r.New.Payload())
		require.Equal(t, i == 0 || i == 2, r.Stale, "answers are stale; what the user said, and a stop, are not")
	}
	require.Equal(t, []*node.Node{e.DAG.Nodes()[2], e.DAG.Nodes()[4]}, e.Stale())
	require.Equal(t, []string{"changed"}, complete(t, d, e.DAG))
	require.Empty(t, e.DAG.Validate())

	last := edit(t, d.Back(1).User("3"), 3, "three")
	require.Empty(t, last.Remade)
	require.Empty(t, last.Stale())
	same := edit(t, d, 1, "1")
	require.True(t, dag.Equal(d, same.DAG), "an edit that changes nothing says the same")
}

func TestEditFollowsFansMergesAndAllHeads(t *testing.T) {
	start := fresh().Tools(declared("f", ""), declared("g", "")).User("go")
	phase := start.Assistant("", use("a", "f", "{}"), use("b", "g", "{}")).CloseTools(execution(0, "r"), execution(1, "r"))
	left, right := phase.Assistant("left"), phase.Assistant("right")
	side := start.User("aside") // another line from the same question
	merged := left.Join(right).User("both")
	d := merged.Assistant("end").Join(side, dag.New().User("elsewhere"))
	require.Empty(t, d.Validate())

	e := edit(t, d, 1, "start")
	require.Empty(t, e.DAG.Validate())
	want := strings.Replace(strings.Join(spell(d.Messages()), "\n"), "user:go", "user:start", 1)
	require.Equal(t, want, strings.Join(spell(e.DAG.Messages()), "\n"))
	require.Len(t, e.DAG.Heads(), 3)
	require.Same(t, d.Heads()[2], e.DAG.Heads()[2], "a line that does not follow is shared")
	require.Equal(t, d.Len(), e.DAG.Len())
	require.Len(t, e.Remade, d.Len()-3)
	stale := 0
	for _, r := range e.Remade {
		if r.Stale {
			stale++
		}
	}
	require.Equal(t, 1+2+1+2+1, stale, "answers, executions and their results")

	half := edit(t, d, 6, "instead of left") // one line of a merge
	require.Len(t, half.Remade, 2)
	require.Contains(t, half.DAG.Nodes(), right.Head(), "the other is shared")
	require.Empty(t, half.DAG.Validate())

	other, err := d.Edit(right.Head(), speak(t, content.Assistant, content.Text{Text: "instead of right"})) // the second parent of the merge
	require.NoError(t, err)
	require.Len(t, other.Remade, 2)
	require.Contains(t, other.DAG.Nodes(), left.Head(), "the other is shared")
	require.NotContains(t, other.DAG.Nodes(), right.Head())
}

func TestEditKeepsMetadata(t *testing.T) {
	meta, err := node.Meta{}.With("k", "v")
	require.NoError(t, err)
	d := counting().AppendMeta(node.System{Text: "s"}, meta).AppendMeta(node.System{Text: "t"}, meta).
		Append(node.Message{Role: content.Assistant, Blocks: content.Words("x"), Answer: node.Answer{Model: "m"}})
	e := edit(t, d, 0, "u")
	require.Equal(t, meta, e.Node.Meta())
	require.Equal(t, meta, e.Remade[0].New.Meta())
	m, _ := e.Remade[1].New.Message()
	require.Equal(t, "m", m.Answer.Model)
	require.True(t, e.Remade[0].New.Time().After(d.Head().Time()), "it was made now")
}

func TestCopiedCompactionReplacesTheCopies(t *testing.T) {
	d := compact(fresh().User("1").Assistant("2").User("3").Assistant("4"), "sum", 0, 1, 3).User("5")
	require.Equal(t, []string{"user:sum", "user:3", "user:5"}, spell(d.Messages()))
	e := edit(t, d, 1, "two")
	require.Equal(t, []string{"user:sum", "user:3", "user:5"}, spell(e.DAG.Messages()))
	require.Empty(t, e.DAG.Validate())
	var stale []string
	for _, n := range e.Stale() {
		stale = append(stale, n.Kind())
	}
	require.Equal(t, []string{"message", "compaction"}, stale)
}

func TestEditKeepsUnknownKinds(t *testing.T) {
	d := read(t, document("", line(1, said), line(2, `"parents":[`+ref(1)+`],"kind":"moon","body":{"b":1.0}`),
		line(3, `"parents":[`+ref(2)+`],`+said)))
	e := edit(t, d.WithSource(node.Counting(start)), 0, "y")
	require.Contains(t, written(t, e.DAG), `"kind":"moon","time":"2026-01-02T03:04:06.000000678Z","body":{"b":1.0}`)
	require.True(t, dag.Equal(e.DAG, read(t, written(t, e.DAG))))
}

func TestEditErrors(t *testing.T) {
	d := fresh().User("1").Assistant("2")
	words := node.Message{Role: content.User, Blocks: content.Words("x")}
	for name, c := range map[string]struct {
		d   dag.DAG
		n   *node.Node
		p   node.Payload
		err error
	}{
		"no node":      {d, nil, words, dag.ErrForeign},
		"foreign node": {d, fresh().WithSource(node.Source{}).User("1").Head(), words, dag.ErrForeign},
		"no payload":   {d, d.Head(), nil, node.ErrPayload},
		"no role":      {d, d.Head(), node.Message{}, node.ErrPayload},
		"a chain's":    {d.User(""), d.Head(), words, dag.ErrEmpty},
		"a later node": {d.WithSource(node.Source{Now: func() time.Time { return time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }}), d.Nodes()[0], words, node.ErrPayload},
	} {
		e, err := c.d.Edit(c.n, c.p)
		require.ErrorIs(t, err, c.err, name)
		require.ErrorContains(t, err, "dag: ", name)
		require.Equal(t, dag.Edited{}, e, name)
	}
}

func TestAnEditOfTheFirstOfManyNodes(t *testing.T) {
	growthtest.SmallStack(t)
	size := seedtest.Rounds(20_000, 1_000_000)
	d := dag.New()
	p := node.Message{Role: content.User, Blocks: content.Words("x")}
	for range size {
		d = d.Append(p)
	}
	e := edit(t, d, 0, "y")
	require.Len(t, e.Remade, size-1)
	require.Equal(t, size-1, e.DAG.Head().Depth())
}

func TestValidateReportsCallsThatAnEditRemoved(t *testing.T) {
	d := fresh().Tools(declared("f", "")).User("q").Assistant("", use("a", "f", "{}")).CloseTools(execution(0, "r")).Assistant("x")
	e, err := d.Edit(d.Nodes()[2], node.Message{Role: content.Assistant, Blocks: content.Words("no call")})
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(kinds(e.DAG)), string(dag.ResultWithoutCall))
}
