package viz

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// The three conversations that nano-agent's samples hold, built in Plait: a single tool, three parallel calls of which two
// fail, and sub-agents inside sub-agents beside images and a branch.

func sampleStart() dag.DAG {
	return dag.New().WithSource(node.Counting(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
}

func tool(name string) content.Tool {
	return content.Tool{Name: name, Description: name, Schema: `{"type":"object"}`}
}

func use(id, name, input string) content.ToolUse {
	return content.ToolUse{ID: id, Name: name, Input: content.JSON(input)}
}

func ran(i int, result string) node.ToolExecution {
	return node.ToolExecution{Index: i, Result: content.Words(result)}
}

func failing(i int, result string) node.ToolExecution {
	return node.ToolExecution{Index: i, Result: content.Words(result), IsError: true}
}

func sampleSingle() dag.DAG {
	return sampleStart().
		System("You are a weather assistant.").
		Tools(tool("get_weather")).
		User("What's the weather in Tokyo?").
		Assistant("Let me check.", use("toolu_01", "get_weather", `{"city":"Tokyo"}`)).
		CloseTools(ran(1, "Tokyo: 22°C")).
		Assistant("It is 22°C in Tokyo.").
		Stop(content.StopEndTurn)
}

func sampleParallel() dag.DAG {
	return sampleStart().
		System("You help with weather. Call tools in parallel when possible.").
		Tools(tool("get_weather"), tool("boom")).
		User("What's the weather in Tokyo, Paris and NYC?").
		Assistant("", content.Thinking{Text: "Three cities.", Signature: "c2ln"},
			use("t1", "get_weather", `{"city":"Tokyo"}`), use("t2", "boom", `{}`), use("t3", "nope", `{"x":1}`)).
		CloseTools(ran(1, "Tokyo: 22°C"), failing(2, "Tool error: boom <went> \"off\""), failing(3, "Unknown tool: nope")).
		Assistant("Tokyo has 22°C; the other two calls failed.").
		Stop(content.StopEndTurn)
}

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="

func sampleSubAgents() dag.DAG {
	image := content.Image{Source: content.Source{MediaType: "image/png", Data: pixel}}
	leaf := dag.New().System("You are a leaf.").User("deep?").Assistant("Very deep.").Stop(content.StopEndTurn)
	researcher := dag.New().System("You are a researcher.").Tools(tool("Leaf")).User("Why DAGs?").
		Assistant("", use("s1", "Leaf", `{"question":"deep?"}`)).
		CloseTools(node.ToolExecution{Index: 0, Result: content.Words("Very deep."), Child: node.ListOf(leaf.Heads()...)}).
		Assistant("Because history forks.").Stop(content.StopEndTurn)
	shot, err := content.Of(image)
	if err != nil {
		panic(err)
	}
	d := sampleStart().
		System("Main system").System("Second system").
		Tools(tool("Research"), tool("Screenshot")).
		User("look:", image).
		Assistant("", content.Thinking{Text: "plan"}, use("c1", "Research", `{"question":"Why DAGs?"}`), use("c2", "Screenshot", `{"path":"/tmp/x"}`)).
		CloseTools(
			node.ToolExecution{Index: 1, Result: content.Words("Because history forks."), Child: node.ListOf(researcher.Heads()...)},
			node.ToolExecution{Index: 2, Result: shot})
	return d.Assistant("DAGs let history fork.").Stop(content.StopEndTurn).Join(d.User("And a tree?"))
}

func draw(t testing.TB, d dag.DAG, o *Options) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, Mermaid(&b, d, o))
	return b.String()
}

// sampleEveryKind returns a conversation with every kind of node and of block, each in the forms that drawings tell apart.
func sampleEveryKind() dag.DAG {
	source := func(mediaType, url, file string) content.Source {
		return content.Source{MediaType: mediaType, URL: url, FileID: file}
	}
	blocks := func(list ...content.Block) content.Blocks {
		b, err := content.Of(list...)
		if err != nil {
			panic(err)
		}
		return b
	}
	said := func(model string, stop content.Stop, list ...content.Block) node.Message {
		return node.Message{Role: content.Assistant, Blocks: blocks(list...), Answer: node.Answer{Model: model, Stop: stop}}
	}

	d := sampleStart().
		System("Be brief.").SetSystem("style", "Rhyme.").SetSystem("style", "").
		Tools(tool("look"), tool("ask")).WithdrawTools("look").Tools(tool("look")).
		User("Look at these:",
			content.Image{Source: source("image/png", "https://example.org/a.png", "")},
			content.Document{Title: "Report", Source: source("application/pdf", "", "file-1")},
			content.Document{Source: content.Source{MediaType: "text/plain", Text: "A text."}}).
		Append(said("m-1", content.StopToolUse, content.Thinking{Text: "Let me think."}, content.Text{Text: "I look & ask <both>."},
			content.Opaque{API: "anthropic", JSON: `{}`},
			use("1", "look", `{"at":"the sky","deep":true}`), use("2", "look", `{}`), use("3", "ask", `[1]`), use("4", "ask", `{"q":"why?"}`)))

	sub := func(day int) dag.DAG { // with IDs of its own
		return dag.New().WithSource(node.Counting(time.Date(2026, 2, day, 0, 0, 0, 0, time.UTC)))
	}
	child := sub(1).User("Why?").Assistant("Because.").Stop(content.StopEndTurn)
	two := child.Join(child.Back(1).User("Really?").Assistant("", use("x", "look", `{"at":"it"}`)))
	changed := node.ToolExecution{Index: 4, Ran: node.Ran{Tool: "peek", Input: `{"days":1}`}}
	d = d.CloseTools(
		ran(3, "It is blue.\n\nAnd \"high\"."), changed,
		node.ToolExecution{Index: 5, Result: content.Words("No."), IsError: true, Child: node.ListOf(child.Heads()...)},
		node.ToolExecution{Index: 6, Result: content.Words("Two answers."), Child: node.ListOf(two.Heads()...)})
	d = d.Append(said("m-2", content.StopMaxTokens, content.Text{Text: "One line.\nTwo lines.\nThree lines.\nFour lines."}))
	fork := d

	d = d.User("By hand.").
		Append(said("m-2", content.StopCut, use("h", "look", `{"at":"me"}`), content.CutToolUse{Name: "ask", Input: `{"q":`})).
		ToolResults(content.ToolResult{CallID: "h", Content: content.Words("You."), IsError: true}).
		SubGraph("review", sub(2).User("Fine?").Assistant("Fine.")).
		Append(node.SubGraph{Title: "empty"}).
		Custom("acme.x", map[string]int{"a": 1})
	d = d.Append(node.Compaction{Summary: content.Words("In short."), Replaced: node.ListOf(d.Nodes()[0].ID())}).
		Append(node.Compaction{Summary: content.Words("A model's own.")}).
		Append(node.StopReason{
			Reason: content.StopMaxTurns, Detail: "at most 2", Turns: 2, ToolCalls: 1, Usage: content.Usage{Input: 1200},
			ToolUsage: content.Usage{Output: 7}, Elapsed: 1500 * time.Millisecond, Cost: 0.25, CostKnown: true,
		})
	d = d.Join(fork.User("Another way.").Assistant("", use("w", "wait", `{"for":"me"}`)), fork.Stop(content.StopApproval))
	if d.Err() != nil {
		panic(d.Err())
	}
	return d
}

// sampleWide is what folding has to do with: wide fans with failures and sub-agents, long runs with a head inside, and branches.
func sampleWide() dag.DAG {
	var calls []content.Block
	var runs []node.ToolExecution
	for i := range 14 {
		e := ran(i, fmt.Sprint("done ", i))
		e.IsError = i == 2 || i == 11
		if i == 6 {
			inside := dag.New().WithSource(node.Counting(time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)))
			e.Child = node.ListOf(inside.User("inside").Assistant("yes").Heads()...)
		}
		calls = append(calls, use(fmt.Sprint(i), []string{"step", "stride"}[i/8], "{}"))
		runs = append(runs, e)
	}
	d := longRun(9, 2).User("fan").Assistant("", calls...).CloseTools(runs...)
	branch := d.User("Another way?").Assistant("Yes.")
	return d.User("On.").Assistant("Done.").Stop(content.StopEndTurn).Join(branch, d.Back(2))
}

// layout returns the picture of d. Without options it is not folded, and so are those of dotOf and svg.
func layout(t testing.TB, d dag.DAG, o *Options) *Picture {
	t.Helper()
	if o == nil {
		o = &Options{Full: true}
	}
	p, err := Layout(d, o)
	require.NoError(t, err)
	return p
}

// grown builds a graph of users' words from "child: parent parent …" lines, in which words name nodes.
func grown(t *testing.T, lines ...string) (dag.DAG, map[string]*node.Node) {
	t.Helper()
	d, made := sampleStart(), map[string]*node.Node{}
	for _, line := range lines {
		words := strings.Fields(line)
		var parents []*node.Node
		for _, w := range words[1:] {
			parents = append(parents, made[w])
		}
		var err error
		d, made[words[0]], err = d.AppendTo(parents, node.Message{Role: content.User, Blocks: content.Words(words[0])})
		require.NoError(t, err)
	}
	return d, made
}

// longConversation has about n nodes: turns with phases of three calls, a sub-agent in each tenth, a branch from each eighth.
func longConversation(n int) dag.DAG {
	d := sampleStart().System("Go on.").Tools(tool("step"))
	var branches []dag.DAG
	leaf := func() dag.DAG {
		return dag.New().System("You are a leaf.").User("deep?").Assistant("Very deep.").Stop(content.StopEndTurn)
	}
	made := 2
	for i := 0; made < n; i++ {
		runs := []node.ToolExecution{ran(1, "done"), ran(2, "done too, and more was said here than there"), failing(3, "no")}
		if i%10 == 9 {
			runs[0].Child = node.ListOf(leaf().Heads()...)
			made += 4
		}
		d = d.User(fmt.Sprint("step ", i)).
			Assistant("I shall call tools now.", use("1", "step", `{"i":1}`), use("2", "step", `{"i":2}`), use("3", "step", `{"i":3}`)).
			CloseTools(runs...)
		if i%8 == 7 {
			branches = append(branches, d.User("Or else?").Assistant("Nothing else."))
			made += 2
		}
		d = d.Assistant("ok")
		made += 7
	}
	return d.Join(branches...)
}

func longRun(turns, fan int) dag.DAG {
	d := sampleStart().System("Go on.").Tools(tool("step"))
	for i := range turns {
		var calls []content.Block
		var runs []node.ToolExecution
		for j := range fan {
			calls = append(calls, use(fmt.Sprint(j), "step", fmt.Sprintf(`{"i":%d}`, i)))
			e := ran(j, fmt.Sprint("done ", i))
			e.IsError = i == turns/2 && j == 0
			runs = append(runs, e)
		}
		d = d.User(fmt.Sprint("step ", i)).Assistant("", calls...).CloseTools(runs...).Assistant("ok")
	}
	return d.Stop(content.StopEndTurn)
}

// branches returns n branches of one node after d.
func branches(d dag.DAG, n int) dag.DAG {
	all := d.User("a branch")
	for range n - 1 {
		all = all.Join(d.User("a branch"))
	}
	return all
}

func must(d dag.DAG, _ *node.Node, err error) dag.DAG {
	if err != nil {
		panic(err)
	}
	return d
}

func dotOf(t testing.TB, d dag.DAG, o *Options) string {
	t.Helper()
	var b strings.Builder
	if o == nil {
		o = &Options{Full: true}
	}
	require.NoError(t, DOT(&b, d, o))
	return b.String()
}

func svg(t testing.TB, d dag.DAG, o *Options) string {
	t.Helper()
	var b strings.Builder
	if o == nil {
		o = &Options{Full: true}
	}
	require.NoError(t, SVG(&b, d, o))
	return b.String()
}

// titled returns o with a title.
func titled(o Options, title string) *Options {
	o.Title = title
	return &o
}
