package dag_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// refsOf is the refs of a conversation with the ids of their heads, in a line each.
func refsOf(d dag.DAG) string {
	var lines []string
	for _, r := range d.Refs() {
		line := r.Name + ":"
		for _, h := range r.Heads {
			line += " " + h.ID().String()
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func TestRefDoesNotMove(t *testing.T) {
	d := counting().User("one").WithRef("first")
	on := d.Assistant("two").WithRef("second").User("three")
	require.Len(t, d.Refs(), 1, "d is untouched")
	require.Equal(t, []string{"first", "second"}, []string{on.Refs()[0].Name, on.Refs()[1].Name})
	require.True(t, dag.Equal(d, on.AtRef("first")))
	require.Same(t, d.Head(), on.AtRef("first").Head(), "nodes are shared")
	require.Equal(t, refsOf(on), refsOf(on.AtRef("first")), "the refs come along")
	moved := on.WithRef("first")
	require.Same(t, on.Head(), moved.AtRef("first").Head())
	require.Same(t, d.Head(), on.AtRef("first").Head())
	require.True(t, dag.Equal(on, on.WithRef("x")), "refs are no part of what is said")

	gone := moved.WithoutRef("first")
	require.ErrorIs(t, gone.AtRef("first").Err(), dag.ErrNoRef)
	require.Len(t, moved.Refs(), 2)
	require.Equal(t, refsOf(gone), refsOf(gone.WithoutRef("first")))
	require.NoError(t, gone.WithoutRef("\x00").Err())
	list := on.Refs()
	list[0].Heads[0] = nil
	require.NotNil(t, on.Refs()[0].Heads[0], "what is handed out is a copy")
}

func TestRefsSurviveMovedHeads(t *testing.T) {
	d := counting().User("one").Assistant("two").WithRef("long").Back(1)
	for name, moved := range map[string]dag.DAG{
		"Back": d, "WithHeads": d.WithHeads(), "append": d.User("x"), "WithMetadata": d.WithMetadata("k", 1),
		"Join": d.Join(counting().User("y")), "At": d.AtRef("long").At(d.AtRef("long").Nodes()[0].ID()), "SubGraph": d.SubGraph("s", d),
	} {
		require.NoError(t, moved.Err(), name)
		require.Len(t, moved.AtRef("long").Nodes(), 2, name)
	}
}

func TestJoinAddsRefsWithFreeNames(t *testing.T) {
	a := dag.New().User("a").WithRef("same").WithRef("of a")
	b := dag.New().User("b").WithRef("same").WithRef("of b")
	both := a.Join(b)
	require.Same(t, a.Head(), both.AtRef("same").Head())
	require.Same(t, b.Head(), both.AtRef("of b").Head())
	require.Len(t, both.Refs(), 3)
	require.Len(t, a.Refs(), 2)
}

func TestJoinReplacesNoneOfManyRefs(t *testing.T) {
	a, b := counting().User("a"), dag.New().User("b")
	for i := range 200 {
		if i%3 != 0 {
			a = a.WithRef(fmt.Sprint("ref ", i))
		}
		if i%2 == 0 {
			b = b.WithRef(fmt.Sprint("ref ", i))
		}
	}

	both := a.Join(b)
	for i := range 200 {
		switch found := both.AtRef(fmt.Sprint("ref ", i)); {
		case i%3 != 0:
			require.Same(t, a.Head(), found.Head(), i)
		case i%2 == 0:
			require.Same(t, b.Head(), found.Head(), i)
		default:
			require.ErrorIs(t, found.Err(), dag.ErrNoRef, i)
		}
	}
}

func TestInvalidRefNames(t *testing.T) {
	d := dag.New().User("x")
	for _, name := range []string{"", strings.Repeat("x", 201), "a\nb", "\x1b[2J", "a\x7f", "\u0085", "a\u2028", "\xff"} {
		err := d.WithRef(name).Err()
		require.ErrorIs(t, err, dag.ErrRefName, "%q", name)
		require.NotContains(t, err.Error(), "\x1b")
		require.Less(t, len(err.Error()), 300)
		require.Empty(t, d.WithRef(name).Refs())
		require.ErrorIs(t, d.AtRef(name).Err(), dag.ErrNoRef)
	}
	for _, name := range []string{"x", strings.Repeat("x", 200), "a b/c", "日本", `"\`, "<&>"} {
		got := read(t, written(t, d.WithRef(name)))
		require.Equal(t, name, got.Refs()[0].Name)
	}
	failed := d.User("")
	require.ErrorIs(t, failed.WithRef("x").AtRef("x").WithoutRef("x").Err(), dag.ErrEmpty)
}

func TestRefsAreSavedWithTheirNodes(t *testing.T) {
	d := counting().User("one").Assistant("two")
	require.NotContains(t, written(t, d), "refs")
	plain := written(t, d)
	d = d.WithRef("old").Back(1).WithRef("nothing").User("other").WithRef("new")
	text := written(t, d)
	require.Contains(t, text, `"],"refs":{"new":["`)
	require.Contains(t, text, `"nothing":[],"old":["`)
	got := read(t, text)
	require.Equal(t, text, written(t, got))
	require.Equal(t, refsOf(d), refsOf(got))
	require.Len(t, got.AtRef("old").Nodes(), 2)
	require.Zero(t, got.AtRef("nothing").Len())
	require.Equal(t, 1, got.Len())

	first := d.AtRef("old")
	for _, r := range d.Refs() {
		first = first.WithoutRef(r.Name)
	}
	require.Equal(t, plain, written(t, first), "a file without refs is as it ever was")

	rewound := got.AtRef("nothing")
	text = written(t, rewound)
	require.Equal(t, 3, strings.Count(text, `"kind"`), "nodes are saved that no head reaches")
	require.Equal(t, text, written(t, read(t, text)))
	require.Equal(t, rewound.Created(), read(t, text).Created())
}

func TestLooseNodesStayBesideRefs(t *testing.T) {
	d := counting().System("s").User("kept")
	lost := d.User("nobody names me")
	named := d.User("a ref names me").WithRef("r")
	text := written(t, named.WithHeads(append(named.Heads(), lost.Heads()...)...))
	heads := fmt.Sprintf(`"heads":["%s","%s"]`, named.Head().ID(), lost.Head().ID())
	text = strings.Replace(text, heads, fmt.Sprintf(`"heads":["%s"]`, d.Head().ID()), 1)
	got := read(t, text)
	require.Equal(t, 4, strings.Count(written(t, got), `"kind"`))
	again := written(t, got)
	require.Equal(t, again, written(t, read(t, again)))
	require.Equal(t, 3, strings.Count(written(t, got.WithoutRef("r")), `"kind"`), "what a ref reached is let go with it")
}

func TestLoadErrorsOfRefs(t *testing.T) {
	good := line(1, said)
	for name, c := range map[string]struct {
		text string
		err  error
		says string
	}{
		"no object":        {document(`,"refs":[]`, good), dag.ErrFormat, "refs: "},
		"no list":          {document(`,"refs":{"a":"b"}`, good), dag.ErrFormat, "refs: "},
		"the same twice":   {document(`,"refs":{"a":[],"a":[]}`, good), dag.ErrFormat, "refs: "},
		"member twice":     {document(`,"refs":{},"refs":{}`, good), dag.ErrFormat, "refs: duplicate member"},
		"empty name":       {document(`,"refs":{"":[]}`, good), dag.ErrRefName, "refs: not a name for a ref"},
		"escape sequence":  {document(`,"refs":{"\u001b[2J":[]}`, good), dag.ErrRefName, "refs: not a name for a ref"},
		"no such node":     {document(`,"refs":{"a":[`+ref(2)+`]}`, good), dag.ErrHeads, "refs/a/0: a head is not a node"},
		"in a journal":     {`{"format":"plait-journal","version":1,"refs":{}}` + "\n", dag.ErrFormat, "first line"},
		"journal, unknown": {`{"format":"plait-journal","version":1}` + "\n" + `{"heads":[],"at":39,"refs":{"a":[` + ref(2) + `]}}` + "\n", dag.ErrHeads, "refs/a/0"},
		"journal, name":    {`{"format":"plait-journal","version":1}` + "\n" + `{"heads":[],"at":39,"refs":{"\n":[]}}` + "\n", dag.ErrRefName, "control"},
	} {
		_, err := dag.Read(strings.NewReader(c.text))
		require.ErrorIs(t, err, c.err, name)
		require.ErrorContains(t, err, c.says, name)
		require.NotContains(t, err.Error(), "\x1b")
	}
	d := read(t, document(`,"refs":{"a":[`+ref(1)+`]},"heads":[]`, good))
	require.Equal(t, 1, d.AtRef("a").Len())
	require.Contains(t, written(t, d), `"refs":{"a":[`+ref(1)+`]},"heads":[]`, "members keep their order")
}

func TestAJournalHoldsRefs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := openJournal(t, path)
	a := counting().User("one").Assistant("two")
	d := a.WithRef("a")
	steps := []dag.DAG{a, d, d.Back(1), d.Back(1).User("x").WithRef("b"), d.WithRef("b"), d.WithRef("b").WithoutRef("a"),
		d.WithMetadata("k", 1), a.Back(1), a.Back(1).User("only a ref").WithRef("c").AtRef("c").Back(1)}
	for i, s := range steps {
		require.NoError(t, j.Append(s))
		loaded, err := dag.Load(path)
		require.NoError(t, err)
		for _, got := range []dag.DAG{j.DAG(), loaded, openCopy(t, path).DAG()} {
			require.Equal(t, refsOf(s), refsOf(got), "step %d", i)
			require.Equal(t, written(t, s), written(t, got), "step %d", i)
		}
		size := len(contentOf(t, path))
		require.NoError(t, j.Append(s))
		require.Len(t, contentOf(t, path), size, "nothing new writes nothing")
	}
	require.Contains(t, contentOf(t, path), `"refs":{"a":null}`, "what is removed is said, and nothing else")
	require.Equal(t, 4, strings.Count(contentOf(t, path), `"kind"`))
}

// A journal's line says what has changed, so that naming a fork costs the same after a thousand of them.
func TestNamingAForkWritesOneNameToAJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := openJournal(t, path)
	d := counting().User("start")
	size := 0
	for i := range 300 {
		d = d.User("x").WithRef(fmt.Sprintf("fork %03d", i)).WithHeads(d.Nodes()[0])
		before := len(contentOf(t, path))
		require.NoError(t, j.Append(d))
		if i == 1 {
			size = len(contentOf(t, path)) - before
		}
		if i > 1 {
			require.InDelta(t, size, len(contentOf(t, path))-before, 8)
		}
	}
}

// TestRefsAgreeWithAMap does random changes to a set and to a map, and to older versions of both.
func TestRefsAgreeWithAMap(t *testing.T) {
	seed := seedtest.First(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	type version struct {
		d dag.DAG
		m map[string]node.ID
	}
	base := counting().User("x")
	versions := []version{{base, map[string]node.ID{}}}
	for step := range 2000 {
		v := versions[max(0, len(versions)-1-rnd.IntN(5))]
		now := version{v.d, map[string]node.ID{}}
		for name, id := range v.m {
			now.m[name] = id
		}
		name := fmt.Sprintf("n%02d", rnd.IntN(60))
		if rnd.IntN(3) == 0 {
			now.d = now.d.WithoutRef(name)
			delete(now.m, name)
		} else {
			now.d = now.d.User("y").WithRef(name)
			now.m[name] = now.d.Head().ID()
		}
		versions = append(versions, now)
		var want []string
		for name, id := range now.m {
			want = append(want, name+": "+id.String())
		}
		slices.Sort(want)
		require.Equal(t, strings.Join(want, "\n"), refsOf(now.d), "step %d, seed %d", step, seed)
		if step%100 == 0 { // a journal that goes from any version to any other has the refs of the last
			path := filepath.Join(t.TempDir(), "j")
			j := openJournal(t, path)
			for range 5 {
				v := versions[rnd.IntN(len(versions))]
				require.NoError(t, j.Append(v.d))
				require.Equal(t, refsOf(v.d), refsOf(openCopy(t, path).DAG()), "seed %d", seed)
			}
		}
	}
}

func TestManyRefs(t *testing.T) {
	refs := seedtest.Rounds(10_000, 100_000)
	d := dag.New().User("x")
	for i := range refs {
		d = d.WithRef(fmt.Sprint("ref ", i))
	}
	got := read(t, written(t, d))
	require.Len(t, got.Refs(), refs)
	require.Equal(t, content.User, got.AtRef("ref 77").Messages()[0].Role)
}
