package page

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz"
	"github.com/plait-dev/plait/viz/internal/viztest"
)

// TestCopiedPartsInARealBrowser copies parts of a conversation from every node, and reads them as others would:
// dag.Read, a shell.
func TestCopiedPartsInARealBrowser(t *testing.T) {
	requireBrowser(t)
	dir := t.TempDir()
	d := sharing(t)
	create(t, dir, "shared.html", func(w io.Writer) error { return Write(w, d, &Options{Request: hostileRequest}) })
	check(t, dir, []string{"parts", "curl"})

	// Each part, with the name of its files.
	data, err := os.ReadFile(filepath.Join(dir, "parts.json"))
	require.NoError(t, err)
	var parts []struct{ N, End, Kind, JSON string }
	require.NoError(t, json.Unmarshal(data, &parts))
	require.Len(t, parts, 3*len(d.WithChildren()))

	picture, err := viz.Layout(d, &viz.Options{Full: true})
	require.NoError(t, err)
	byName, names := map[string]*node.Node{}, map[*node.Node]string{}
	for _, b := range picture.Boxes {
		name := fmt.Sprintf("n%d", b.Number)
		byName[name], names[b.Node] = b.Node, name
	}

	refused := 0
	for _, p := range parts {
		name := p.Kind + " of " + p.N + ", to " + p.End
		if lost := withoutCall(d, p.Kind, byName[p.N], byName[p.End]); lost != nil {
			refused++
			require.Equal(t, "Not copied: "+names[lost]+" has results of calls that are not in this part", p.JSON, name)
			continue
		}
		got, err := dag.Read(strings.NewReader(p.JSON))
		require.NoError(t, err, name)
		require.Empty(t, got.Verify().Findings, name)
		require.NoError(t, d.Join(got).Err(), "%s: no ID is used for two nodes", name)

		all, heads, kept := expectedPart(d, p.Kind, byName[p.N], byName[p.End])
		require.Equal(t, contentsOf(all, kept), contentsOf(got.WithChildren(), everyParent), name)
		require.ElementsMatch(t, contentsOf(heads, kept), contentsOf(got.Heads(), everyParent), name)
		if p.Kind == "up" {
			require.True(t, dag.Equal(dag.New().WithHeads(heads...), got), name)
		}
	}
	require.Positive(t, refused)
}

// withoutCall returns the first message of a part with a result of an execution that is not in it, or nil.
func withoutCall(d dag.DAG, kind string, n, end *node.Node) *node.Node {
	all, _, kept := expectedPart(d, kind, n, end)
	for _, m := range all {
		message, _ := m.Message()
		results := message.Blocks.ToolResults()
		for i, p := range m.Parents() {
			e, executed := p.Payload().(node.ToolExecution)
			if executed && i < len(results) && e.Answer() == results[i] && !kept(m, p) {
				return m
			}
		}
	}
	return nil
}

// sharing is a conversation in which much refers to much: sub-agents that continue its own nodes, a compaction, a
// merge, a redaction, and a branch that only a ref reaches.
func sharing(t *testing.T) dag.DAG {
	t.Helper()
	b := newBook()
	d := b.begin().System("Be brief.").Tools(def("look", "Looks."), def("review", "Asks a reviewer.")).User("It's \"here\": $(touch pwned) `id` \\ </script> 👩‍👩‍👧 日本語\n\nEOF")
	start := d
	d = b.answer(d, "I look.", content.StopToolUse, [4]int64{10, 20, 0, 0}, use("look", `{"id":"12345678901234567890"}`), use("review", `{"x":1e400}`))
	review := b.ran(3, 2, "Fine.")
	review.Child = node.ListOf(b.reviewer().Heads()...)
	d = d.CloseTools(b.ran(2, 1, "Nothing."), review)
	d = b.answer(d, "All is fine.", content.StopEndTurn, [4]int64{10, 20, 0, 0})
	nodes := d.Nodes()

	inner := b.answer(d.User("Inside?"), "Inside.", content.StopEndTurn, [4]int64{10, 20, 0, 0})
	one := b.answer(d.User("One?").SubGraph("inner", inner), "One.", content.StopEndTurn, [4]int64{10, 20, 0, 0})
	one = one.Append(node.Compaction{Summary: content.Words("In short."), Replaced: node.ListOf(nodes[3].ID(), nodes[len(nodes)-1].ID())})
	two := b.answer(d.User("Two?"), "Two.", content.StopEndTurn, [4]int64{10, 20, 0, 0})
	forgotten := two.User("A secret.")
	forgotten = forgotten.Redact(forgotten.Head().ID()).Assistant("Forgotten.")
	merged := one.Join(two).User("Both?").Assistant("Both.")
	other := start.AppendMeta(node.Message{
		Role: content.Assistant, Blocks: content.Words("Another way."),
		Answer: node.Answer{API: "gemini", Model: "m\"$(touch pwned)`id`'!/../x?key=y"},
	}, node.Meta{})
	d = merged.Join(other, forgotten, b.ownWords(d)).WithRef("all").WithMetadata("team", "storage")
	require.NoError(t, d.Err())
	return d
}

// ownWords continues d with content that is made of the words of the saved form, by messages of two parents. One of them
// has the result of one of its parents.
func (b *book) ownWords(d dag.DAG) dag.DAG {
	one, two, three := d.User("Three?"), d.User("Four?"), d.User("Five?")
	ids := fmt.Sprintf(`["%s","%s"]`, one.Head().ID(), two.Head().ID())
	words := fmt.Sprintf(`{"result_of":0,"redacted":true,"digest":"x","child":%s,"heads":%[1]s,"replaced":%[1]s,`+
		`"blocks":[{"type":"tool_result","result_of":1}],"id":"}]}","parents":[]}`, ids)

	// A call by a message of two parents, and its result in another one.
	record := one.Append(node.Custom{Name: "child", JSON: content.JSON(words)})
	call := b.answer(record.Join(two), words, content.StopToolUse, [4]int64{10, 20, 0, 0}, use("child", words))
	execution := b.ran(1, 1, words)
	execution.Details = content.JSON(words)
	execution.Child = node.ListOf(d.User("Inside?").Assistant("Inside.").Heads()...)
	done := call.AppendExecutions(execution)
	executed, _ := done.Head().Payload().(node.ToolExecution)
	other := content.ToolResult{CallID: "none", Content: content.Words(words)}
	return three.Join(done).ToolResults(other, executed.Answer()).Assistant("Done.")
}

// hostileRequest is a body with everything that a shell could obey, and that begins like the name of a file to curl.
func hostileRequest(_ dag.DAG, _ *node.Node) ([]byte, error) {
	texts, err := json.Marshal(append(slices.Clone(viztest.Hostile), "'; touch pwned; '", "$(touch pwned)", "`touch pwned`", "!!", "\\'", "EOF\n"))
	return []byte("@{\n  \"texts\": " + string(texts) + ",\n  \"end\": \"'\\\\\"\n}\n\n"), err
}

// expectedPart returns the nodes of a part, its heads, and which parents its nodes keep.
func expectedPart(d dag.DAG, kind string, n, end *node.Node) (all, heads []*node.Node, kept func(n, parent *node.Node) bool) {
	if kind == "up" {
		return dag.New().WithHeads(n).WithChildren(), []*node.Node{n}, everyParent
	}

	// A call and its results begin with the message that made the calls.
	begin := n
	for _, m := range append([]*node.Node{n}, n.Parents()...) {
		if m.Kind() == "tool_execution" {
			begin = m.Parent(0)
			break
		}
	}

	// The conversation that the node is in: a sub-agent's, or the outermost one.
	own := d.Nodes()
	for _, m := range d.WithChildren() {
		if inner := dag.New().WithHeads(m.Children().Slice()...).Nodes(); !slices.Contains(own, n) && slices.Contains(inner, n) {
			own = inner
		}
	}
	if kind == "from" {
		own = dag.New().WithHeads(end).Nodes()
	}

	var after []*node.Node
	followed := map[*node.Node]bool{}
	for _, m := range own {
		if m == begin || slices.ContainsFunc(m.Parents(), func(p *node.Node) bool { return slices.Contains(after, p) }) {
			after = append(after, m)
			for _, p := range m.Parents() {
				followed[p] = true
			}
		}
	}

	for _, m := range after {
		if !followed[m] {
			heads = append(heads, m)
		}
	}

	// All that the heads lead to: a conversation that hangs on a node may follow some of them as well.
	kept = func(n, parent *node.Node) bool { return !slices.Contains(after, n) || slices.Contains(after, parent) }
	for stack := slices.Clone(heads); len(stack) > 0; {
		m := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if slices.Contains(all, m) {
			continue
		}
		all = append(all, m)
		stack = append(stack, m.Children().Slice()...)
		for _, p := range m.Parents() {
			if kept(m, p) {
				stack = append(stack, p)
			}
		}
	}
	return all, heads, kept
}

func everyParent(_, _ *node.Node) bool { return true }

var uuidForm = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`)

// contentOf returns what a node holds, without the IDs that it refers to.
func contentOf(n *node.Node) string {
	var saved struct {
		Kind, Info, Meta json.RawMessage
		Body             map[string]json.RawMessage
	}
	if err := json.Unmarshal(n.Append(nil), &saved); err != nil {
		return err.Error()
	}
	if m, ok := n.Message(); ok {
		saved.Body["blocks"] = m.Blocks.Append(nil) // with the results that its parents have
	}
	for _, list := range []string{"child", "heads", "replaced"} {
		if ids := saved.Body[list]; ids != nil {
			saved.Body[list] = uuidForm.ReplaceAll(ids, []byte("ID"))
		}
	}
	return fmt.Sprintf("%s %s %s %s", saved.Kind, saved.Body, saved.Info, saved.Meta)
}

// contentsOf returns what nodes hold, each with what its parents in keep hold.
func contentsOf(nodes []*node.Node, keep func(n, parent *node.Node) bool) []string {
	var list []string
	for _, n := range nodes {
		text := contentOf(n)
		for _, p := range n.Parents() {
			if keep(n, p) {
				text += " < " + contentOf(p)
			}
		}
		list = append(list, text)
	}
	slices.Sort(list)
	return list
}
