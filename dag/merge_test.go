package dag_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// needsNoRepair checks that a conversation can be sent as it is, but that messages of one side in a row become one.
func needsNoRepair(t testing.TB, d dag.DAG) {
	t.Helper()
	require.NoError(t, d.Err())
	for _, f := range d.Validate() {
		require.False(t, d.Contains(f.Node), "%v", f) // what hangs on it may be in the middle of a tool phase
	}
	sendsAsItIs(t, d)
}

func sendsAsItIs(t testing.TB, d dag.DAG) {
	t.Helper()
	require.NoError(t, d.Err())
	_, notes := dialect.Repair(d.Messages(), dialect.Rules{EndsOpen: func(content.Message) bool { return true }})
	for _, note := range notes {
		require.Equal(t, "merged", note.Kind, "%v in\n%s", note, d)
	}
}

// branches is a question and three ways on from it: one with other tools and a system prompt of its own, one that waits for a
// tool, and one that ends in a question.
func branches() (start, lisbon, oslo, open, asked dag.DAG) {
	start = fresh().WithSource(node.Source{}).System("s").Tools(declared("f", "")).User("Where to?")
	lisbon = start.Assistant("", use("l1", "f", "{}")).CloseTools(execution(0, "warm")).Assistant("Lisbon.")
	oslo = start.System("Pirate.").Tools(declared("g", "")).Assistant("", use("o1", "g", "{}")).CloseTools(execution(0, "cold")).Assistant("Oslo.")
	open = start.Assistant("", use("x1", "f", "{}"), use("x2", "f", "{}"), content.Text{Text: "Let me see."})
	return start, lisbon, oslo, open, start.Assistant("Rome.").User("Sure?")
}

func TestJoinedBranchesAreSentInOrder(t *testing.T) {
	start, lisbon, oslo, _, asked := branches()
	d := dag.Merge(dag.Branch{Name: "lisbon", DAG: lisbon}, dag.Branch{DAG: oslo}, dag.Branch{Name: "rome", DAG: asked})
	needsNoRepair(t, d)
	require.Equal(t, []string{"user:Where to?",
		"assistant:?l1", "user:!l1=warm", "assistant:Lisbon.",
		"assistant:?o1", "user:!o1=cold", "assistant:Oslo.",
		"assistant:Rome.", "user:Sure?"}, spell(d.Messages()))
	require.Equal(t, []string{"s", "Pirate."}, d.SystemPrompts())
	require.Equal(t, []*node.Node{lisbon.Head(), oslo.Head(), asked.Head()}, d.Head().Parents())
	record := d.Head().Payload().(node.Custom)
	require.Equal(t, "plait.merge", record.Name)
	for _, want := range []string{`"name":"lisbon"`, `"name":"branch 2"`, lisbon.Head().ID().String(), asked.Head().ID().String()} {
		require.Contains(t, string(record.JSON), want)
	}
	require.Equal(t, start.Head().ID(), d.Nodes()[2].ID())
	needsNoRepair(t, d.User("So?"))
}

func TestOpenCallsAreClosedBeforeAMerge(t *testing.T) {
	_, lisbon, _, open, _ := branches()
	half := open.AppendExecutions(execution(1, "half"))
	noResult := "x1=" + content.NoResult
	for name, c := range map[string]struct {
		d    dag.DAG
		want string
	}{
		"open":    {open, "user:!" + noResult + "!x2=" + content.NoResult},
		"half":    {half, "user:!" + noResult + "!x2=half"},
		"twice":   {open.Join(open), "user:!" + noResult + "!x2=" + content.NoResult},
		"gone on": {open.Join(open.CloseTools()), "user:!" + noResult + "!x2=" + content.NoResult},
		"beside":  {lisbon.Join(half), "user:!" + noResult + "!x2=half"},
	} {
		d := dag.Merge(dag.Branch{DAG: c.d}, dag.Branch{DAG: lisbon})
		needsNoRepair(t, d)
		require.Contains(t, spell(d.Messages()), c.want, name)
		require.Empty(t, d.OpenCalls())
	}
	both := open.AppendExecutions(execution(0, "first"))
	d := dag.Merge(dag.Branch{DAG: both}, dag.Branch{DAG: half})
	needsNoRepair(t, d)
	require.Contains(t, spell(d.Messages()), "user:!x1=first!x2=half", "executions of one message that branches share are one phase")
}

func TestBranchesThatAnswerTheSameCallsAreNotJoined(t *testing.T) {
	_, _, _, open, _ := branches()
	one := open.CloseTools(execution(0, "a"), execution(1, "a")).Assistant("A.")
	two := open.CloseTools(execution(0, "b"), execution(1, "b")).Assistant("B.")
	for name, pair := range map[string][2]dag.DAG{
		"closed twice":   {one, two},
		"executed twice": {open.AppendExecutions(execution(0, "a")), open.AppendExecutions(execution(0, "b"))},
		"one is open":    {one, open.AppendExecutions(execution(0, "a"))},
	} {
		d := dag.Merge(dag.Branch{DAG: pair[0]}, dag.Branch{DAG: pair[1]})
		require.ErrorIs(t, d.Err(), dag.ErrMerge, name)
		require.True(t, dag.Equal(pair[0], d), "what is beside the error is the first branch")
	}
	require.ErrorContains(t, dag.Merge(dag.Branch{DAG: one}, dag.Branch{DAG: two}).Err(), string(dag.ResultWithoutCall))
	needsNoRepair(t, dag.Merge(dag.Branch{DAG: open}, dag.Branch{DAG: one}))
	needsNoRepair(t, dag.Merge(dag.Branch{DAG: one}, dag.Branch{DAG: open}))
}

func TestFindingsOfABranchAllowAMerge(t *testing.T) {
	broken := fresh().User("q").Assistant("", use("a", "nobody", "{}")).User("never mind")
	d := dag.Merge(dag.Branch{DAG: broken}, dag.Branch{DAG: dag.New().User("x")})
	require.NoError(t, d.Err())
	require.Equal(t, kinds(broken), kinds(d))
}

func TestMergeErrors(t *testing.T) {
	d := fresh().User("x")
	require.ErrorIs(t, dag.Merge(dag.Branch{DAG: d}, dag.Branch{DAG: d.User("")}).Err(), dag.ErrEmpty)
	require.Zero(t, dag.Merge().Len())
	require.NoError(t, dag.Merge().Err())
	alone := dag.Merge(dag.Branch{DAG: d})
	require.Equal(t, spell(d.Messages()), spell(alone.Messages()))
	require.ErrorIs(t, dag.Merge(dag.Branch{DAG: d}, dag.Branch{DAG: fresh().User("the same id")}).Err(), dag.ErrDuplicateID)
}

// TestRandomBranchesMerge merges branches of random conversations that are valid: what comes out is valid, sends what the first
// one sends, and holds every node.
func TestRandomBranchesMerge(t *testing.T) {
	seed := seedtest.First(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	grow := func(d dag.DAG) dag.DAG {
		for range rnd.IntN(6) {
			id := fmt.Sprint("c", rnd.Int64())
			switch rnd.IntN(4) {
			case 0:
				d = d.User("u" + id)
			case 1:
				d = d.Assistant("a" + id)
			case 2:
				d = d.Assistant("", use(id+"a", "f", "{}"), use(id+"b", "f", "{}")).CloseTools()
			default:
				d = d.System(id)
			}
		}
		if id := fmt.Sprint("o", rnd.Int64()); rnd.IntN(4) == 0 {
			d = d.Assistant("", use(id, "f", "{}"), use(id+"2", "f", "{}"))
			if rnd.IntN(2) == 0 {
				d = d.AppendExecutions(node.ToolExecution{Index: 1})
			}
		}
		return d
	}
	for range 300 {
		start := dag.New().Tools(declared("f", "")).User("q")
		var list []dag.Branch
		for range 1 + rnd.IntN(4) {
			list = append(list, dag.Branch{DAG: grow(start)})
		}
		d := dag.Merge(list...)
		needsNoRepair(t, d)
		sent, first := spell(d.Messages()), spell(list[0].DAG.Messages())
		if len(list[0].DAG.OpenCalls()) == 0 {
			require.Equal(t, first, sent[:len(first)], "seed %d", seed)
		}
		text := written(t, d)
		for _, b := range list {
			for _, n := range b.DAG.Nodes() {
				require.True(t, strings.Contains(text, n.ID().String()), "seed %d", seed)
			}
		}
		require.Equal(t, text, written(t, read(t, text)))
	}
}
