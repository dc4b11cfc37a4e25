package dag_test

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"testing"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/testkit/growthtest"
	"github.com/plait-dev/plait/node"
)

// shapes are conversations of about n nodes.
var shapes = []struct {
	name  string
	build func(n int) dag.DAG
}{
	{"chain", chain}, {"fan", fan}, {"ladder", ladder}, {"comb", comb}, {"many heads", manyHeads}, {"many refs", manyRefs}, {"nested", nested},
	{"forked helpers", forkedHelpers}, {"continued helpers", continuedHelpers},
}

// chain is turns one after the other, each with two tool calls.
func chain(n int) dag.DAG { return small(n) }

// fan is one message with n calls, executed and answered.
func fan(n int) dag.DAG {
	d := calls(n)
	results := make([]node.ToolExecution, n)
	for i := range results {
		results[i] = node.ToolExecution{Index: i, Result: content.Words("18 °C")}
	}
	return d.CloseTools(results...)
}

func calls(n int) dag.DAG {
	uses := make([]content.Block, n)
	for i := range uses {
		uses[i] = use(fmt.Sprint("call_", i), "f", `{"x":1}`)
	}
	return counting().User("All of them.").Assistant("", uses...)
}

// ladder is forks that are joined again, one after the other.
func ladder(n int) dag.DAG {
	d := counting().User("Start")
	for i := 0; i < n; i += 3 {
		d = d.Assistant("left").Join(d.Assistant("right")).User("both")
	}
	return d
}

// comb is a chain with a fork that is kept as a head at each node.
func comb(n int) dag.DAG {
	spine := counting().User("Start")
	heads := []*node.Node{}
	for i := 0; i < n; i += 2 {
		heads = append(heads, spine.Assistant("tooth").Head())
		spine = spine.User("on")
	}
	return spine.WithHeads(append(heads, spine.Head())...)
}

// manyHeads is n answers to one question.
func manyHeads(n int) dag.DAG {
	d := counting().User("Start")
	heads := make([]*node.Node, n)
	for i := range heads {
		heads[i] = d.Assistant("answer").Head()
	}
	return d.WithHeads(heads...)
}

func manyRefs(n int) dag.DAG {
	d := counting().User("Start")
	for i := range n {
		d = d.Assistant("answer").WithRef(fmt.Sprint("ref ", i))
	}
	return d
}

// nested is sub-graphs in sub-graphs.
func nested(n int) dag.DAG {
	d := counting().User("Innermost")
	for range n {
		d = counting().WithSource(d.Source()).SubGraph("outer", d)
	}
	return d
}

// forkedHelpers is n sub-agents that go on from the end of one conversation.
func forkedHelpers(n int) dag.DAG {
	helper := small(n)
	d := counting().WithSource(helper.Source())
	for range n {
		d = d.SubGraph("helper", helper.User("on").Assistant("answer"))
	}
	return d
}

// continuedHelpers is n sub-agents, each of which continues the conversation of the one before.
func continuedHelpers(n int) dag.DAG {
	helper := small(5)
	d := counting().WithSource(helper.Source())
	for range n {
		helper = helper.User("on").Assistant("So.", use("a", "f", "{}")).CloseTools()
		d = d.SubGraph("helper", helper)
	}
	return d
}

// faulty is a message with n findings, and n calls that are passed over.
func faulty(n int) dag.DAG {
	return calls(n).User("", slices.Repeat([]content.Block{content.Text{}}, n)...).Assistant("So.")
}

// TestGrowth checks how the cost of each operation grows with the conversation.
func TestGrowth(t *testing.T) {
	const flat, linear, copies = growthtest.Flat, growthtest.Linear, growthtest.FlatButCopies
	var cases []growthtest.Case
	path := filepath.Join(t.TempDir(), "conversation.plait")

	// Operations that read or make a whole conversation.
	for _, whole := range []struct {
		name string
		do   func(d dag.DAG)
	}{
		{"Nodes", func(d dag.DAG) { d.Nodes() }},
		{"WithChildren", func(d dag.DAG) { d.WithChildren() }},
		{"Transcript", func(d dag.DAG) { d.Transcript() }},
		{"Messages", func(d dag.DAG) { d.Messages() }},
		{"Validate", func(d dag.DAG) { d.Validate() }},
		{"Verify", func(d dag.DAG) { d.Verify() }},
		{"Write", func(d dag.DAG) { check(d.Write(io.Discard)) }},
		{"Read", func(d dag.DAG) {
			var b bytes.Buffer
			check(d.Write(&b))
			_, err := dag.Read(&b)
			check(err)
		}},
		{"Save, Load", func(d dag.DAG) {
			check(d.Save(path))
			_, err := dag.Load(path)
			check(err)
		}},
		{"Diff", func(d dag.DAG) { check(dag.Diff(d, d.User("more")).Write(io.Discard, nil)) }},
		{"String", func(d dag.DAG) { _ = d.String() }},
		{"Graph", func(d dag.DAG) { d.Graph() }},
		{"Prune", func(d dag.DAG) { check(d.WithHeads(d.Nodes()[0]).Prune().Err()) }},
		{"FromTranscript", func(d dag.DAG) { check(dag.FromTranscript(d.Transcript()).Err()) }},
		{"Back", func(d dag.DAG) { check(d.User("more").Back(1).Err()) }},
		{"Node, Contains", func(d dag.DAG) {
			n := d.Nodes()[0]
			d.Contains(n)
			d.Node(n.ID())
		}},
		{"Join", func(d dag.DAG) { check(d.Join(d.WithHeads(d.Nodes()[0]).User("other")).Err()) }},
		{"Merge", func(d dag.DAG) {
			dag.Merge(dag.Branch{DAG: d}, dag.Branch{DAG: d.WithHeads(d.Nodes()[0]).User("other")})
		}},
		{"Refs", func(d dag.DAG) { d.Refs() }},
		{"Redact", func(d dag.DAG) { check(d.Redact(d.Nodes()[0].ID()).Err()) }},
		{"Redact, all", func(d dag.DAG) { check(d.Redact(ids(d.Nodes())...).Err()) }},
		{"Find", func(d dag.DAG) {
			_, err := d.Find(d.Nodes()[0].ID().String())
			check(err)
		}},
		{"Unreachable", func(d dag.DAG) { d.Unreachable() }},
		{"WriteLog", func(d dag.DAG) { check(d.WriteLog(io.Discard, nil)) }},
		{"Equal", func(d dag.DAG) { dag.Equal(d, d.WithHeads(d.Heads()...)) }},
	} {
		for _, shape := range shapes {
			small, large := 0, 0
			if whole.name == "Write" && shape.name == "fan" {
				small, large = 10_000, 50_000 // below, the two long messages fit into the buffer that is kept
			}
			cases = append(cases, growthtest.Case{Name: whole.name + "/" + shape.name, Growth: linear, Small: small, Large: large, Setup: func(_ testing.TB, n int) func() {
				d := shape.build(n)
				return func() { whole.do(d) }
			}})
		}
	}

	// Operations that add one thing.
	for _, one := range []struct {
		name   string
		shape  func(n int) dag.DAG
		growth growthtest.Growth
		do     func(d dag.DAG)
	}{
		{"Append", chain, flat, func(d dag.DAG) { check(d.User("more").Err()) }},
		{"Append, many refs", manyRefs, flat, func(d dag.DAG) { check(d.User("more").Err()) }},
		{"AppendTo, head", manyHeads, copies, func(d dag.DAG) { appended(d.AppendTo(d.Heads()[:1], saying("more"))) }},
		{"AppendTo, inner node", chain, flat, func(d dag.DAG) { appended(d.AppendTo([]*node.Node{d.Head().Parent(0)}, saying("more"))) }},
		{"AppendTo, all heads", manyHeads, linear, func(d dag.DAG) { appended(d.AppendTo(d.Heads(), saying("more"))) }},
		{"AppendTo, all nodes", comb, linear, func(d dag.DAG) { appended(d.AppendTo(d.Nodes(), saying("more"))) }},
		{"WithRef", manyRefs, flat, func(d dag.DAG) { check(d.WithRef("one more").Err()) }},
		{"WithoutRef", manyRefs, flat, func(d dag.DAG) { check(d.WithoutRef("ref 500").Err()) }},
		{"AtRef", manyRefs, flat, func(d dag.DAG) { d.AtRef("ref 500") }},
		{"Back", chain, flat, func(d dag.DAG) { d.Back(1) }},
		{"Text", chain, flat, func(d dag.DAG) { _ = d.Text() }},
		{"OpenCalls", chain, flat, func(d dag.DAG) { d.OpenCalls() }},
		{"CloseTools", calls, linear, func(d dag.DAG) { check(d.CloseTools().Err()) }},
		{"AppendExecutions", calls, linear, func(d dag.DAG) { check(d.AppendExecutions(node.ToolExecution{Result: content.Words("1")}).Err()) }},
		{"AppendExecutions, others recorded", recorded, linear, func(d dag.DAG) { check(d.AppendExecutions(node.ToolExecution{Result: content.Words("1")}).Err()) }},
		{"OpenCalls, wrong indexes", misnumbered, linear, func(d dag.DAG) { d.OpenCalls() }},
		{"Redact, results by hand", answeredByHand, linear, func(d dag.DAG) { check(d.Redact(d.Head().ID()).Err()) }},
		{"Validate, wrong indexes", misnumbered, linear, func(d dag.DAG) { d.Validate() }},
		{"Validate, many findings", faulty, linear, func(d dag.DAG) { d.Validate() }},
		{"Merge, many open calls", calls, linear, func(d dag.DAG) { joinedWith(d, d.At(d.Nodes()[1].ID()).User("other")) }},
		{"Merge, many findings", faulty, linear, func(d dag.DAG) { joinedWith(d, d.User("other")) }},
		{"WriteLog, wrong indexes", misnumbered, linear, func(d dag.DAG) { check(d.WriteLog(io.Discard, nil)) }},
		{"Tools, many", tooled, growthtest.LogLinear, func(d dag.DAG) { check(d.Tools(tools(len(d.ToolDefs()), "again")...).Err()) }},
		{"Tools, one more", tooled, flat, func(d dag.DAG) { check(d.Tools(declared("one_more", "")).Err()) }},
		{"Tools, the same again", tooled, flat, func(d dag.DAG) { check(d.Tools(declared("tool_5", "")).Err()) }},
		{"WithdrawTools, unknown", tooled, flat, func(d dag.DAG) { check(d.WithdrawTools("none").Err()) }},
		{"Tool", tooled, flat, func(d dag.DAG) { d.Tool("tool_5") }},
		{"SetSystem", chain, flat, func(d dag.DAG) { check(d.SetSystem("agent", "prompt").Err()) }},
		{"Custom", chain, flat, func(d dag.DAG) { check(d.Custom("acme.x", 1).Err()) }},
		{"SubGraph", chain, flat, func(d dag.DAG) { check(d.SubGraph("title", d).Err()) }},
		{"WithMetadata", chain, flat, func(d dag.DAG) { check(d.WithMetadata("key", 1).Err()) }},
		{"SystemPrompts, ToolDefs", chain, flat, func(d dag.DAG) { d.SystemPrompts(); d.ToolDefs() }},
	} {
		cases = append(cases, growthtest.Case{Name: one.name, Growth: one.growth, Setup: func(_ testing.TB, n int) func() {
			d := one.shape(n)
			d.Transcript()
			return func() { one.do(d) }
		}})
	}

	// Many branches of one conversation.
	cases = append(cases,
		growthtest.Case{Name: "Join of many", Growth: growthtest.LogLinear, Setup: func(_ testing.TB, n int) func() {
			start, others := counting().User("Start").WithRef("a"), []dag.DAG(nil)
			for i := range n {
				others = append(others, start.Assistant("branch").WithRef(fmt.Sprint(i)))
			}
			return func() { check(start.Join(others...).Err()) }
		}},
		growthtest.Case{Name: "Merge of many", Growth: linear, Setup: func(_ testing.TB, n int) func() {
			// No call is open in what they share, so nothing is found in the merged conversation, and no branch has to be read.
			start, branches := ladder(n), []dag.Branch(nil)
			for range n {
				branches = append(branches, dag.Branch{DAG: start.Assistant("branch")})
			}
			return func() { dag.Merge(branches...) }
		}},
		growthtest.Case{Name: "Merge of many, with findings", Growth: growthtest.LogLinear, Setup: func(_ testing.TB, n int) func() {
			start, branches := faulty(n).User("on"), []dag.Branch(nil)
			for range n {
				branches = append(branches, dag.Branch{DAG: start.Assistant("branch")})
			}
			return func() { check(dag.Merge(branches...).Err()) }
		}},
		growthtest.Case{Name: "Merge of many open calls", Growth: growthtest.LogLinear, Setup: func(_ testing.TB, n int) func() {
			start, branches := counting().User("Start"), []dag.Branch(nil)
			for range n {
				branches = append(branches, dag.Branch{DAG: start.Assistant("", use("a", "f", "{}"))})
			}
			return func() { check(dag.Merge(branches...).Err()) }
		}},
		growthtest.Case{Name: "FromTranscript of many calls", Growth: linear, Setup: func(_ testing.TB, n int) func() {
			said := fan(n).Transcript()
			return func() { check(dag.FromTranscript(said).Err()) }
		}},
		growthtest.Case{Name: "Transcript of the next turns", Growth: copies, Setup: func(_ testing.TB, n int) func() {
			d := chain(n)
			d.Transcript()
			return func() { d.User("more").Transcript() }
		}},
		growthtest.Case{Name: "Journal.Append, chain", Growth: flat, Setup: journaled(chain)},
		growthtest.Case{Name: "Journal.Append, many refs", Growth: flat, Setup: journaled(manyRefs)},
		growthtest.Case{Name: "Journal.Append, many heads", Growth: copies, Setup: journaled(manyHeads)},
		// To make n forks is quadratic, because each copies the list of heads: the sizes are no larger with PLAIT_LONG.
		growthtest.Case{Name: "OpenJournal", Growth: linear, Small: 100, Large: 1000, Fixed: true, Setup: func(t testing.TB, n int) func() {
			path, d := filepath.Join(t.TempDir(), "journal.plait"), counting().User("Start")
			j, err := dag.OpenJournal(path, &dag.JournalOptions{NoSync: true})
			check(err)
			first := d.Heads()
			for range n {
				d, _, err = d.AppendTo(first, saying("fork"))
				check(err)
				check(j.Append(d))
			}
			check(j.Close())
			return func() {
				_, err := dag.Load(path)
				check(err)
			}
		}},
	)

	// A journal as a person cleans it up: with the whole conversation, and after everything was undone but the first node.
	for _, shape := range shapes {
		for name, keep := range map[string]func(d dag.DAG) dag.DAG{
			"all":            func(d dag.DAG) dag.DAG { return d },
			"the first node": func(d dag.DAG) dag.DAG { return d.WithHeads(d.Nodes()[0]).Prune() },
		} {
			cases = append(cases, growthtest.Case{Name: "RewriteJournal, " + name + "/" + shape.name, Growth: linear, Setup: func(t testing.TB, n int) func() {
				path, d := filepath.Join(t.TempDir(), "journal.plait"), shape.build(n)
				j, err := dag.OpenJournal(path, &dag.JournalOptions{NoSync: true})
				check(err)
				check(j.Append(d))
				check(j.Close())
				kept := keep(d)
				check(kept.Err())
				return func() { check(dag.RewriteJournal(path, kept)) }
			}})
		}
	}
	growthtest.Run(t, cases)
}

// journaled appends one node to a journal of the shape, as a fork where that has many heads.
func journaled(shape func(n int) dag.DAG) func(t testing.TB, n int) func() {
	return func(t testing.TB, n int) func() {
		d := shape(n)
		j, err := dag.OpenJournal(filepath.Join(t.TempDir(), "journal.plait"), &dag.JournalOptions{NoSync: true})
		check(err)
		t.Cleanup(func() { check(j.Close()) })
		check(j.Append(d))
		next, _, err := d.AppendTo(d.Heads()[:1], saying("more"))
		check(err)
		return func() { check(j.Append(next)) }
	}
}

// recorded is a message with n calls of which all but the first are executed.
func recorded(n int) dag.DAG {
	d := calls(n)
	for i := 1; i < n; i += 100 {
		var results []node.ToolExecution
		for j := i; j < min(i+100, n); j++ {
			results = append(results, node.ToolExecution{Index: j, Result: content.Words("18 °C")})
		}
		d = d.AppendExecutions(results...)
	}
	return d
}

// misnumbered is a message with n calls and executions that name their call by its ID alone.
func misnumbered(n int) dag.DAG {
	d := calls(n)
	said, heads := d.Head(), make([]*node.Node, n)
	for i := range heads {
		e := node.ToolExecution{Index: n + i, CallID: fmt.Sprint("call_", i), Result: content.Words("18 °C")}
		heads[i] = d.WithHeads(said).Append(e).Head()
	}
	return d.WithHeads(heads[:n-1]...)
}

// answeredByHand is misnumbered with a message that has results of its own for the same calls.
func answeredByHand(n int) dag.DAG {
	results := make([]content.ToolResult, n)
	for i := range results {
		results[i] = content.ToolResult{CallID: fmt.Sprint("call_", i), Content: content.Words("about 18 °C")}
	}
	return misnumbered(n).ToolResults(results...)
}

// tools returns n tools.
func tools(n int, description string) []dag.Tool {
	list := make([]dag.Tool, n)
	for i := range list {
		list[i] = declared(fmt.Sprint("tool_", i), description)
	}
	return list
}

// tooled declares n tools.
func tooled(n int) dag.DAG { return counting().Tools(tools(n, "")...) }

func saying(text string) node.Message {
	return node.Message{Role: content.User, Blocks: content.Words(text)}
}

func joinedWith(d, other dag.DAG) {
	check(dag.Merge(dag.Branch{DAG: d}, dag.Branch{DAG: other}).Err())
}

func appended(_ dag.DAG, _ *node.Node, err error) { check(err) }

func check(err error) {
	if err != nil {
		panic(err)
	}
}
