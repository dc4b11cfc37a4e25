package web

import (
	"bytes"
	"encoding/json"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/plait-dev/plait/internal/testkit/goldentest"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// shown returns patches as indented JSON. The saved form of a node is left out: other tests hold that. Costs are
// rounded: their last digits depend on the processor.
func shown(t *testing.T, patches ...Patch) string {
	t.Helper()
	var b bytes.Buffer
	for _, p := range patches {
		for i := range p.Nodes {
			require.Contains(t, p.Nodes[i].Raw.String(), p.Nodes[i].ID)
			p.Nodes[i].Raw = Saved{}
			if cost := p.Nodes[i].Cost; cost != nil {
				*cost = math.Round(*cost*1e9) / 1e9
			}
		}
		for i := range p.Totals {
			p.Totals[i].Cost = math.Round(p.Totals[i].Cost*1e9) / 1e9
		}
		out := json.NewEncoder(&b)
		out.SetEscapeHTML(false)
		out.SetIndent("", " ")
		require.NoError(t, out.Encode(p))
	}
	return b.String()
}

// everyKind returns a conversation in which each member of each part of a patch has a value of its own.
func everyKind() dag.DAG {
	sub := func(day int) dag.DAG { // with IDs of its own
		return dag.New().WithSource(node.Counting(time.Date(2026, 2, day, 0, 0, 0, 0, time.UTC)))
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	usage := content.Usage{Input: 1000, Output: 200, CacheRead: 30, CacheWrite: 4, Reasoning: 50}
	call := func(id, tool string) content.ToolUse { return content.ToolUse{ID: id, Name: tool, Input: `{"x":1}`} }
	answer := func(stop content.Stop, list ...content.Block) node.Message {
		blocks, err := content.Of(list...)
		if err != nil {
			panic(err)
		}
		return node.Message{Role: content.Assistant, Blocks: blocks, Answer: node.Answer{Model: "dear", Stop: stop, Usage: usage, Latency: 1234567 * time.Nanosecond}}
	}
	leaf := sub(2).User("Deep?").Assistant("Very.")
	child := sub(1).User("Why?").Append(answer(content.StopRefusal, content.Text{Text: "No."})).SubGraph("inner", leaf)

	d := start().System("Be brief.").
		Tools(content.Tool{Name: "look", Schema: `{"type":"object"}`}, content.Tool{Name: "ask", Schema: `{"type":"object"}`}).
		User("Look.").Append(answer(content.StopToolUse, content.Text{Text: "I look."}, call("1", "look"), call("2", "ask"), call("3", "look"))).
		CloseTools(
			node.ToolExecution{Index: 1, Result: content.Words("Blue."), Started: at, Ended: at.Add(1500 * time.Microsecond), Usage: content.Usage{Output: 7}},
			node.ToolExecution{Index: 2, Result: content.Words("No."), IsError: true, Child: node.ListOf(child.Heads()...), Ended: at},
			node.ToolExecution{Index: 3, Result: content.Words("Same."), Started: at, Ended: at})
	done := d.Append(answer(content.StopEndTurn, content.Text{Text: "It is blue."})).Stop(content.StopEndTurn).WithRef("done")
	cut := d.Append(answer(content.StopMaxTokens, content.Text{Text: "It is"}))
	waits := d.User("Go on.").Append(answer(content.StopToolUse, call("4", "look"), call("5", "unheard")))
	return done.Join(cut, waits, d.Stop(content.StopApproval)).WithRef("all")
}

func TestPatchesAreAsWrittenDown(t *testing.T) {
	d := everyKind()
	require.NoError(t, d.Err())
	m := NewModel()
	m.Prices = api.Prices{"dear": {Input: 2, Output: 10, CacheRead: 1, CacheWrite: 4}}
	first := update(t, m, d.WithHeads(d.Nodes()[2]))
	all := update(t, m, d)
	less := update(t, m, d.WithHeads(d.Heads()[1:]...).WithoutRef("done"))
	goldentest.Require(t, "patches.json", shown(t, first, all, less))
}

func TestFoldedPatchesAreAsWrittenDown(t *testing.T) {
	uses, results := make([]content.Block, 10), make([]node.ToolExecution, 10)
	for i := range uses {
		uses[i] = content.ToolUse{ID: string(rune('a' + i)), Name: "look", Input: `{}`}
		results[i] = node.ToolExecution{Index: i, Result: content.Words("Blue."), IsError: i == 7}
	}
	m := NewModel()
	d := start().Assistant("", uses...).CloseTools(results...)
	folded := update(t, m, d)
	require.Len(t, folded.Folds, 1)
	longer := update(t, m, d.User("And?"))
	require.Empty(t, longer.Folds, "it keeps its key and its place")
	gone := update(t, m, d.WithHeads(d.Nodes()[0]))
	for _, p := range []*Patch{&folded, &longer, &gone} { // the rest is in patches.json
		p.Nodes, p.Problems, p.Totals = nil, nil, nil
	}
	goldentest.Require(t, "folds.json", shown(t, folded, longer, gone))
}

func TestAPageIsAsWrittenDown(t *testing.T) {
	var b strings.Builder
	require.NoError(t, WritePage(&b, Config{}, Changes{}))
	full := Config{
		Title: "A & B", Live: true, CanRun: true,
		Static: &Static{
			Requests:   []Request{{Key: 1, Base: -1, Middle: "{}"}, {Key: 3, Base: 1, Prefix: 1, Suffix: 2, Middle: "x"}, {Key: 5, Base: -1, Missing: "not known"}},
			NoRequests: "some are missing", Mermaid: "flowchart", NoFile: "too long",
			File: []any{"{", 0, "}"},
		},
	}
	whole, err := NewModel().Update(start().User("<b>"))
	require.NoError(t, err)
	require.NoError(t, WritePage(&b, full, whole))

	text := regexp.MustCompile(`(?s)  <select id="heads".*?</section>\n<article`).ReplaceAllString(b.String(), "(the rest of the body)\n<article")
	for name, asset := range map[string]string{"style": parts().style, "script": parts().script} {
		require.NotEmpty(t, asset)
		text = strings.ReplaceAll(text, asset, "(the "+name+")")
		text = strings.ReplaceAll(text, hash(asset), "(the hash of the "+name+")")
	}
	goldentest.Require(t, "pages.html", text)
}
