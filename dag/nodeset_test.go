package dag_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/testkit/growthtest"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// stored is what a store keeps of a conversation.
type stored struct {
	archive dag.NodeSet
	lines   []string
}

// add stores the nodes that are missing.
func (s *stored) add(t testing.TB, d dag.DAG) (added int) {
	nodes, err := s.archive.Missing(d)
	require.NoError(t, err)
	for _, n := range nodes {
		s.lines = append(s.lines, string(n.Append(nil)))
	}
	s.archive.Add(nodes...)
	return len(nodes)
}

// parseInto parses a line and adds its node to a set.
func parseInto(s *dag.NodeSet, line []byte) (*node.Node, error) {
	n, err := node.Parse(line, s.Node)
	if err == nil {
		s.Add(n)
	}
	return n, err
}

// load returns the conversation with the header and the heads of d, from the lines alone.
func (s *stored) load(t testing.TB, d dag.DAG) dag.DAG {
	var a dag.NodeSet
	for _, line := range s.lines {
		_, err := parseInto(&a, []byte(line))
		require.NoError(t, err)
	}
	got, err := a.DAG(d.Header(), idsOf(d.Heads()))
	require.NoError(t, err)
	return got
}

func idsOf(nodes []*node.Node) (ids []node.ID) {
	for _, n := range nodes {
		ids = append(ids, n.ID())
	}
	return ids
}

func TestArchiveReturnsTheConversationThatWasStored(t *testing.T) {
	named := strings.Replace(document(`,"heads":[]`,
		line(1, `"kind":"system","body":{"text":"the parent of what is named"}`),
		line(2, `"kind":"system","parents":[`+ref(1)+`],"body":{"text":"named by a planet"}`),
		line(3, `"kind":"planet","body":{"next":`+ref(2)+`}`),
		line(4, `"kind":"moon","body":{"around":[`+ref(3)+`,"00000000-0000-7000-8000-000000000099"]}`)),
		`"heads":[]`, `"heads":[`+ref(4)+`]`, 1)
	for name, d := range map[string]dag.DAG{
		"empty":             {},
		"metadata alone":    dag.New().WithMetadata("a", 1),
		"every kind":        sample(t),
		"refs":              sample(t).WithRef("end").Back(1).WithRef("a \"b\"").User("on"),
		"refs and no heads": sample(t).WithRef("end").WithHeads(),
		"many heads":        manyHeads(20),
		"named by unknown":  read(t, named),
	} {
		t.Run(name, func(t *testing.T) {
			var s stored
			s.add(t, d)
			got := s.load(t, d)

			require.True(t, dag.Equal(d, got))
			require.Equal(t, written(t, d), written(t, got))
			require.Equal(t, string(d.Header()), string(got.Header()))
			require.Zero(t, s.add(t, got), "a loaded node is the one that was stored")
		})
	}
}

func TestAHeaderHasTheHeadsOnlyBesideRefs(t *testing.T) {
	d := counting().User("one").User("two")
	require.NotContains(t, string(d.Header()), "heads")
	require.Contains(t, string(d.WithRef("here").Header()), `"heads":["`+d.Head().ID().String()+`"]`)
}

func TestArchiveKeepsUnknownMembersAndDropsUnreachableNodes(t *testing.T) {
	var s stored
	d := read(t, foreign(t))
	s.add(t, d)
	got := s.load(t, d)
	require.Equal(t, string(d.Header()), string(got.Header()))
	require.Contains(t, string(got.Header()), `"theme":{"b" : 1.0,"a":[ ]}`)
	require.Equal(t, d.Len(), got.Len())
	require.NotEmpty(t, d.Unreachable().Nodes)
	require.Empty(t, got.Unreachable().Nodes)
}

func TestArchiveMissesOnlyNewNodes(t *testing.T) {
	var s stored
	d := sample(t)
	require.Positive(t, s.add(t, d))
	require.Zero(t, s.add(t, d))
	require.Zero(t, s.add(t, d.Back(1)))
	require.Equal(t, 1, s.add(t, d.User("more")))
	require.Equal(t, 3, s.add(t, d.Back(1).SubGraph("child", counting().WithSource(node.Source{}).User("a").User("b"))))
}

func TestArchiveRefusesWhatItCannotKeep(t *testing.T) {
	var a dag.NodeSet
	d := counting().User("one").User("SECRET")
	a.Add(d.Nodes()...)
	missing := func(d dag.DAG) error {
		_, err := a.Missing(d)
		return err
	}
	require.ErrorIs(t, missing(dag.New().User("")), dag.ErrEmpty)
	require.ErrorIs(t, missing(counting().User("another node with the ID of the first")), dag.ErrDuplicateID)
	require.ErrorIs(t, missing(d.Redact(d.Head().ID())), dag.ErrNotErased)

	_, err := parseInto(&a, []byte(line(9, `"kind":"system","parents":[`+ref(8)+`],"body":{"text":"x"}`)))
	require.ErrorIs(t, err, node.ErrParent)
}

func TestArchiveRefusesABrokenHeader(t *testing.T) {
	good := string(counting().WithMetadata("k", "v").User("x").WithRef("main").Header())
	for header, want := range map[string]error{
		`{`:                              dag.ErrFormat,
		`{}`:                             dag.ErrFormat,
		`[]`:                             dag.ErrFormat,
		good + `{}`:                      dag.ErrFormat,
		good[:40]:                        dag.ErrFormat,
		good:                             dag.ErrHeads,
		`{"format":"plait","version":2}`: dag.ErrVersion,
		`{"format":"plait","version":1,"nodes":[]}`:          dag.ErrFormat,
		`{"format":"plait","version":1,"metadata":1}`:        dag.ErrFormat,
		`{"format":"plait","version":1,"refs":{"a\n":[]}}`:   dag.ErrRefName,
		`{"format":"plait-journal","version":1}`:             dag.ErrFormat,
		`{"format":"plait","version":1,"heads":["x"]}`:       dag.ErrHeads,
		`{"format":"plait","version":1,"heads":["x"]} {"a"}`: dag.ErrFormat,
	} {
		d, err := new(dag.NodeSet).DAG([]byte(header), nil)
		require.ErrorIs(t, err, want, header)
		require.Zero(t, d.Len())
	}
	_, err := new(dag.NodeSet).DAG(nil, []node.ID{counting().User("x").Head().ID()})
	require.ErrorIs(t, err, dag.ErrHeads)
	d, err := new(dag.NodeSet).DAG(nil, nil)
	require.NoError(t, err)
	require.True(t, dag.Equal(dag.New(), d))
}

func TestLinksNameEveryNodeThatANodeRefersTo(t *testing.T) {
	child := dag.New().User("inside")
	d := dag.New().User("a").SubGraph("sub", child)
	none := func(node.ID) bool { return false }
	require.Equal(t, []node.ID{d.Back(0).Nodes()[0].ID(), child.Head().ID()}, dag.Links(d.Head(), none))
	require.Empty(t, dag.Links(child.Head(), none))
}

func TestGrowthOfAnArchivesMissing(t *testing.T) {
	var cases []growthtest.Case
	for _, s := range shapes {
		growth := growthtest.Flat
		if s.name == "many heads" || s.name == "comb" || s.name == "many refs" {
			growth = growthtest.Linear // every head and ref is looked up
		}
		cases = append(cases, growthtest.Case{Name: s.name, Growth: growth, Setup: func(t testing.TB, n int) func() {
			var a dag.NodeSet
			d := s.build(n)
			nodes, err := a.Missing(d)
			require.NoError(t, err)
			a.Add(nodes...)
			next := d.Assistant(fmt.Sprint(n), content.Text{Text: "more"})
			return func() { _, _ = a.Missing(next) }
		}})
	}
	growthtest.Run(t, cases)
}
