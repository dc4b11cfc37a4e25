package viz

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/goldentest"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// The golden files hold whole drawings, so that a change of any word, line or place is seen. Look at the difference before -update.

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
	changed := node.ToolExecution{Index: 1, Ran: node.Ran{Tool: "peek", Input: `{"days":1}`}}
	d = d.CloseTools(
		ran(0, "It is blue.\n\nAnd \"high\"."), changed,
		node.ToolExecution{Index: 2, Result: content.Words("No."), IsError: true, Child: node.ListOf(child.Heads()...)},
		node.ToolExecution{Index: 3, Result: content.Words("Two answers."), Child: node.ListOf(two.Heads()...)})
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

func TestDrawingsOfEveryKindAreAsWrittenDown(t *testing.T) {
	d := sampleEveryKind()
	goldentest.Require(t, "every_kind.mmd", draw(t, d, nil))
	goldentest.Require(t, "every_kind.dot", dotOf(t, d, nil))
	goldentest.Require(t, "every_kind.svg", svg(t, d, &SVGOptions{Title: "Every kind"}))
	goldentest.Require(t, "every_kind_short.mmd", draw(t, d, &MermaidOptions{LabelLines: 1, LabelChars: 8, Depth: 1}))
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

func TestFoldedDrawingsAreAsWrittenDown(t *testing.T) {
	s := newSketch(sampleWide(), &MermaidOptions{})
	for _, i := range []int{6, len(plans) - 1} {
		_, text, err := s.draw(plans[i], budgetEdges, budgetText)
		require.NoError(t, err)
		goldentest.Require(t, fmt.Sprintf("folded_%d.mmd", i), text)
	}
	goldentest.Require(t, "folded.svg", svg(t, sampleWide(), &SVGOptions{Layout: LayoutOptions{Fold: true}}))
}

func TestDrawingsAroundANodeAndInPartsAreAsWrittenDown(t *testing.T) {
	d := sampleEveryKind()
	around := d.WithHeads(d.Heads()[0]).Nodes()[12]
	var b strings.Builder
	for _, steps := range []int{0, 1} {
		b.WriteString(draw(t, d, &MermaidOptions{Around: around.ID(), Steps: steps}))
	}
	goldentest.Require(t, "around.mmd", b.String())

	b.Reset()
	s := newSketch(d, &MermaidOptions{})
	sheets := s.split(9, 3000)
	for i, sh := range sheets {
		fmt.Fprintf(&b, "%%%% %s\n%s", partTitle(i, len(sheets), sh.boxes), s.write(sh))
	}
	goldentest.Require(t, "parts.mmd", b.String())
}

// TestRandomGraphsAreFoldedAndLaidOutAsWrittenDown writes down which nodes each plan puts into one box, and where a picture has its boxes.
func TestRandomGraphsAreFoldedAndLaidOutAsWrittenDown(t *testing.T) {
	var folds, places strings.Builder
	for seed := range uint64(16) {
		d := randomGraph(rand.New(rand.NewPCG(seed, 7)), 4+2*int(seed), 2)
		s := newSketch(d, &MermaidOptions{})
		fmt.Fprintf(&folds, "seed %d, %d nodes\n", seed, len(s.vertices))
		var before [][]int
		for i, p := range plans {
			if got := members(s.fold(p)); !slices.EqualFunc(before, got, slices.Equal) {
				before = got
				fmt.Fprintf(&folds, "  plan %d:", i)
				for _, in := range got {
					if len(in) > 1 {
						fmt.Fprint(&folds, " ", in)
					}
				}
				folds.WriteString("\n")
			}
		}

		p := layout(t, d, &LayoutOptions{Fold: seed%4 == 3})
		fmt.Fprintf(&places, "seed %d: %dx%d\n", seed, p.Width, p.Height)
		for _, b := range p.Boxes {
			fmt.Fprintf(&places, "  n%d at %d,%d %dx%d nodes %d head %d frame %d\n", b.Number, b.X, b.Y, b.W, b.H, b.Nodes, b.Head, b.Frame)
		}
		for _, e := range p.Edges {
			fmt.Fprintf(&places, "  %d-%d %v\n", e.From, e.To, e.Points)
		}
		for i, f := range p.Frames {
			fmt.Fprintf(&places, "  f%d of %d in %d at %d,%d %dx%d\n", i, f.Owner, f.Outer, f.X, f.Y, f.W, f.H)
		}
	}
	goldentest.Require(t, "folds.txt", folds.String())
	goldentest.Require(t, "layouts.txt", places.String())
}
