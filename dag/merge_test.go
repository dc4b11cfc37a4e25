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
	d := dag.Merge(dag.MergeJoin, dag.Branch{Name: "lisbon", DAG: lisbon}, dag.Branch{DAG: oslo}, dag.Branch{Name: "rome", DAG: asked})
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

func TestMergePickKeepsOtherBranchesUnsent(t *testing.T) {
	_, lisbon, oslo, open, asked := branches()
	for _, how := range []dag.MergeStrategy{dag.MergePick, dag.MergeAnswer} {
		d := dag.Merge(how, dag.Branch{DAG: lisbon}, dag.Branch{Name: "oslo", DAG: oslo.WithRef("north")}, dag.Branch{Name: "rome", DAG: asked})
		needsNoRepair(t, d)
		want := spell(lisbon.Messages())
		if how == dag.MergeAnswer {
			want = append(want, `user:From the branch "oslo":`+"\n\nOslo."+`From the branch "rome":`+"\n\nRome.")
		}
		require.Equal(t, want, spell(d.Messages()), how)
		require.Equal(t, []string{"s"}, d.SystemPrompts(), "nor are its system prompts")
		require.Len(t, d.ToolDefs(), 1, "nor its tools")
		require.NotNil(t, d.Head())
		require.True(t, dag.Equal(oslo, d.AtRef("north")))

		got := read(t, written(t, d))
		for _, n := range append(oslo.Nodes(), asked.Nodes()...) {
			found, err := got.Find(n.ID().String())
			require.NoError(t, err)
			require.Equal(t, n.Digest(), found.Digest())
		}
		require.Equal(t, d.String(), got.String())
		require.Contains(t, d.String(), "Oslo.")
		require.Contains(t, d.String(), "Sure?")
		var titles []string
		for _, n := range d.Nodes() {
			if g, ok := n.Payload().(node.SubGraph); ok {
				titles = append(titles, g.Title)
				require.Equal(t, map[string]string{"oslo": "Oslo.", "rome": "Rome."}[g.Title], g.Summary)
				require.Equal(t, g.Summary, dag.FromNode(n).Text())
			}
		}
		require.Equal(t, []string{"oslo", "rome"}, titles)
	}
	waiting := dag.Merge(dag.MergePick, dag.Branch{DAG: lisbon}, dag.Branch{DAG: open})
	needsNoRepair(t, waiting)
	require.Len(t, dag.FromNode(waiting.Head()).OpenCalls(), 2, "what is not sent may wait")
}

func TestMergeAnswerSendsTheSummary(t *testing.T) {
	_, lisbon, oslo, open, _ := branches()
	d := dag.Merge(dag.MergeAnswer, dag.Branch{DAG: lisbon}, dag.Branch{Name: "a \"b\"\n", DAG: oslo, Summary: "Cold, and far."}, dag.Branch{DAG: open, Summary: "Nothing."})
	needsNoRepair(t, d)
	require.Equal(t, `From the branch "a \"b\"\n":`+"\n\nCold, and far.\n"+`From the branch "branch 3":`+"\n\nNothing.", d.Messages()[len(d.Messages())-1].Blocks.Text())
	fails := dag.Merge(dag.MergeAnswer, dag.Branch{DAG: lisbon}, dag.Branch{DAG: fresh().User("only a question")})
	require.ErrorIs(t, fails.Err(), dag.ErrEmpty)
	require.ErrorContains(t, fails.Err(), "branch 2")
}

func TestOpenCallsAreClosedBeforeAMerge(t *testing.T) {
	_, lisbon, _, open, _ := branches()
	half := open.AppendExecutions(execution(1, "half"))
	noResult := "x1=" + content.NoResult
	for _, how := range []dag.MergeStrategy{dag.MergeJoin, dag.MergePick, dag.MergeAnswer} {
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
			d := dag.Merge(how, dag.Branch{DAG: c.d}, dag.Branch{DAG: lisbon})
			needsNoRepair(t, d)
			require.Contains(t, spell(d.Messages()), c.want, "%s %s", how, name)
			require.Empty(t, d.OpenCalls())
		}
	}
	both := open.AppendExecutions(execution(0, "first"))
	d := dag.Merge(dag.MergeJoin, dag.Branch{DAG: both}, dag.Branch{DAG: half})
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
		d := dag.Merge(dag.MergeJoin, dag.Branch{DAG: pair[0]}, dag.Branch{DAG: pair[1]})
		require.ErrorIs(t, d.Err(), dag.ErrMerge, name)
		require.True(t, dag.Equal(pair[0], d), "what is beside the error is the first branch")
		sendsAsItIs(t, dag.Merge(dag.MergePick, dag.Branch{DAG: pair[0]}, dag.Branch{DAG: pair[1]}))
	}
	require.ErrorContains(t, dag.Merge(dag.MergeJoin, dag.Branch{DAG: one}, dag.Branch{DAG: two}).Err(), string(dag.ResultWithoutCall))
	needsNoRepair(t, dag.Merge(dag.MergeJoin, dag.Branch{DAG: open}, dag.Branch{DAG: one}))
	needsNoRepair(t, dag.Merge(dag.MergeJoin, dag.Branch{DAG: one}, dag.Branch{DAG: open}))
}

func TestFindingsOfABranchAllowAMerge(t *testing.T) {
	broken := fresh().User("q").Assistant("", use("a", "nobody", "{}")).User("never mind")
	d := dag.Merge(dag.MergeJoin, dag.Branch{DAG: broken}, dag.Branch{DAG: dag.New().User("x")})
	require.NoError(t, d.Err())
	require.Equal(t, kinds(broken), kinds(d))
}

func TestMergeErrors(t *testing.T) {
	d := fresh().User("x")
	require.ErrorIs(t, dag.Merge("squash\x1b", dag.Branch{DAG: d}).Err(), dag.ErrMerge)
	require.NotContains(t, dag.Merge("squash\x1b").Err().Error(), "\x1b")
	for _, how := range []dag.MergeStrategy{dag.MergeJoin, dag.MergePick, dag.MergeAnswer} {
		require.ErrorIs(t, dag.Merge(how, dag.Branch{DAG: d}, dag.Branch{DAG: d.User("")}).Err(), dag.ErrEmpty)
		require.Zero(t, dag.Merge(how).Len())
		require.NoError(t, dag.Merge(how).Err())
		alone := dag.Merge(how, dag.Branch{DAG: d})
		require.Equal(t, spell(d.Messages()), spell(alone.Messages()))
	}
	require.ErrorIs(t, dag.Merge(dag.MergeJoin, dag.Branch{DAG: d}, dag.Branch{DAG: fresh().User("the same id")}).Err(), dag.ErrDuplicateID)
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
			list = append(list, dag.Branch{DAG: grow(start), Summary: "s"})
		}
		for _, how := range []dag.MergeStrategy{dag.MergeJoin, dag.MergePick, dag.MergeAnswer} {
			d := dag.Merge(how, list...)
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
}
