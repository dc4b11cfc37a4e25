package dag_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/testkit/growthtest"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// conformance is one case of the behaviour of the system that Plait replaces. Where Plait differs on purpose, differs says why,
// and the case shows what Plait does in its place.
type conformance struct {
	name    string
	differs string
	run     func(*testing.T)
}

// reload returns d as it is after it was saved and loaded.
func reload(t *testing.T, d dag.DAG) dag.DAG { return read(t, written(t, d)) }

func says(t *testing.T, parents ...*node.Node) *node.Node {
	n, err := node.New(node.Source{}, speak(t, content.User, content.Text{Text: "x"}), node.Meta{}, parents...)
	require.NoError(t, err)
	return n
}

// saysIn is a saved message whose block is written by hand.
func saysIn(id int, parents, role, block string) string {
	return line(id, `"parents":[`+parents+`],"kind":"message","body":{"role":"`+role+`","blocks":[`+block+`]}`)
}

var hi = `{"type":"text","text":"hi"}`

// phase is a conversation with a tool phase of those results.
func phaseOf(t *testing.T, results ...string) dag.DAG {
	var calls []content.Block
	var done []node.ToolExecution
	for i, r := range results {
		calls = append(calls, use(fmt.Sprint("t", i), "f", "{}"))
		done = append(done, execution(i, r))
	}
	d := dag.New().Tools(declared("f", "")).User("go").Assistant("", calls...).CloseTools(done...)
	require.NoError(t, d.Err())
	return d
}

var conformanceCases = []conformance{
	{"empty", "with no head, or several, Head is nil and the conversation can still be read and extended; it is no error", func(t *testing.T) {
		d := dag.New()
		require.Nil(t, d.Head())
		require.Empty(t, d.Heads())
		require.Equal(t, dag.Transcript{}, d.Transcript())
		require.Equal(t, "(empty conversation)", d.String())
	}},
	{"system", "", func(t *testing.T) {
		d := dag.New().System("X")
		require.Equal(t, 1, d.Len())
		require.Equal(t, []string{"X"}, d.SystemPrompts())
	}},
	{"tools", "", func(t *testing.T) {
		d := dag.New().Tools(declared("Bash", "b"), declared("Read", "r"))
		require.Equal(t, []content.Tool{declared("Bash", "b"), declared("Read", "r")}, d.ToolDefs())
	}},
	{"messages", "", func(t *testing.T) {
		d := dag.New().System("s").Tools(declared("f", "")).User("Hello")
		require.Equal(t, []string{"user:Hello"}, spell(d.Messages()))
		require.Equal(t, []string{"user:Hello", "assistant:Hi"}, spell(d.Assistant("Hi").Messages()))
	}},
	{"chaining_returns_new_values", "", func(t *testing.T) {
		d := dag.New().User("a")
		d.User("b").Assistant("c")
		require.Len(t, d.Messages(), 1)
	}},
	{"fields_cannot_be_reassigned", "", func(t *testing.T) {
		d := dag.New().User("a")
		heads := d.Heads()
		heads[0] = says(t)
		parents := d.User("b").Head().Parents()
		parents[0] = nil
		require.Equal(t, []string{"user:a"}, spell(d.Messages()))
	}},
	{"nothing_handed_in_or_out_changes_a_node", "what is passed in is copied and what is handed out is a copy; there, lists and maps are shared", func(t *testing.T) {
		text := &content.Text{Text: "before"}
		blocks := []content.Block{text, use("a", "f", `{"x":1}`)}
		d := dag.New().User("", blocks...)
		want := written(t, d)
		text.Text, blocks[1] = "after", content.Text{Text: "after"}
		m, _ := d.Head().Message()
		m.Blocks.Slice()[0] = content.Text{Text: "after"}
		d.Messages()[0] = content.Message{}
		require.Equal(t, want, written(t, d))
	}},
	{"parents_keep_their_order", "", func(t *testing.T) {
		a, b := says(t), says(t)
		require.Equal(t, []*node.Node{b, a}, says(t, b, a).Parents())
	}},
	{"chain", "", func(t *testing.T) {
		d := dag.New().System("s").User("u").Assistant("a")
		nodes := d.Nodes()
		require.Equal(t, []string{"system", "message", "message"}, []string{nodes[0].Kind(), nodes[1].Kind(), nodes[2].Kind()})
		require.Same(t, d.Head(), nodes[2])
	}},
	{"diamond", "", func(t *testing.T) { diamond(t, false) }},
	{"diamond_the_other_way_round", "", func(t *testing.T) { diamond(t, true) }},
	{"parent_twice", "", func(t *testing.T) {
		a := says(t)
		require.Equal(t, []*node.Node{a}, says(t, a, a).Parents())
	}},
	{"parent_that_is_an_ancestor_of_another", "", func(t *testing.T) {
		r := says(t)
		a := says(t, r)
		x := says(t, r, a)
		require.Equal(t, []*node.Node{r, a, x}, dag.New().WithHeads(x).Nodes())
	}},
	{"no_parents_is_a_root", "", func(t *testing.T) {
		d, n, err := dag.New().AppendTo(nil, node.System{Text: "s"})
		require.NoError(t, err)
		require.Zero(t, n.NumParents())
		require.Equal(t, 1, d.Len())
	}},
	{"long_chain", "", func(t *testing.T) {
		d := dag.New().System("s")
		for range 6000 {
			d = d.User("x")
		}
		require.Equal(t, 6001, d.Len())
		require.Len(t, d.Messages(), 6000)
	}},
	{"very_long_chain_compares_and_saves", "there, comparing and copying fail at about 1,000 nodes", func(t *testing.T) {
		growthtest.SmallStack(t)
		d := dag.New()
		for range seedtest.Rounds(20_000, 100_000) {
			d = d.User("x")
		}
		loaded := reload(t, d)
		require.True(t, dag.Equal(d, loaded))
		require.Equal(t, d.Head().Digest(), loaded.Head().Digest())
	}},
	{"two_system_prompts", "they stay two; joining them is for the provider's request", func(t *testing.T) {
		d := dag.New().System("S1").User("u").System("S2")
		require.Equal(t, []string{"S1", "S2"}, d.SystemPrompts())
		require.Len(t, d.Messages(), 1)
	}},
	{"tools_twice", "one rule for what is declared and what can run: the union by name, the last holds", func(t *testing.T) {
		d := dag.New().Tools(declared("a", "1"), declared("b", "")).Tools(declared("a", "2"), declared("c", ""))
		require.Equal(t, []content.Tool{declared("a", "2"), declared("b", ""), declared("c", "")}, d.ToolDefs())
		for _, def := range d.ToolDefs() {
			bound, ok := d.Tool(def.Name)
			require.True(t, ok)
			require.Equal(t, def, bound.Definition())
		}
	}},
	{"nothing_said", "a message that says nothing, or holds no block, is refused", func(t *testing.T) {
		require.ErrorIs(t, dag.New().User("").Err(), dag.ErrEmpty)
		require.ErrorIs(t, dag.New().User("x", nil).Err(), content.ErrBlock)
	}},
	{"text_and_blocks", "text and blocks go together; the compiler refuses what is neither", func(t *testing.T) {
		d := dag.New().User("look", content.Text{Text: "here"})
		require.Equal(t, []string{"user:lookhere"}, spell(d.Messages()))
	}},
	{"append_to", "parents may be any nodes of the conversation, not only heads", func(t *testing.T) {
		d := dag.New().User("r").Join(dag.New().User("s"))
		_, _, err := d.AppendTo(nil, node.System{})
		require.ErrorIs(t, err, dag.ErrForeign)
		_, _, err = d.AppendTo([]*node.Node{says(t)}, node.System{})
		require.ErrorIs(t, err, dag.ErrForeign)
		later := d.User("later")
		_, _, err = d.AppendTo(later.Heads(), node.System{})
		require.ErrorIs(t, err, dag.ErrForeign)
		grown, n, err := d.AppendTo(d.Heads()[:1], node.System{Text: "x"})
		require.NoError(t, err)
		require.Equal(t, []*node.Node{n, d.Heads()[1]}, grown.Heads())
		_, _, err = later.AppendTo(d.Heads()[:1], node.System{Text: "x"})
		require.NoError(t, err)
	}},
	{"two_heads", "what is appended to several heads merges them, and several heads linearise", func(t *testing.T) {
		d := dag.New().User("a").Join(dag.New().User("b"))
		require.Equal(t, []string{"user:a", "user:b"}, spell(d.Messages()))
		require.Len(t, d.User("both").Heads(), 1)
		require.Equal(t, d.Heads(), d.User("both").Head().Parents())
	}},
	{"one_tool", "", func(t *testing.T) {
		require.Equal(t, []string{"user:go", "assistant:?t0", "user:!t0=r"}, spell(phaseOf(t, "r").Messages()))
	}},
	{"two_tools", "", func(t *testing.T) {
		require.Equal(t, []string{"user:go", "assistant:?t0?t1", "user:!t0=r0!t1=r1"}, spell(phaseOf(t, "r0", "r1").Messages()))
	}},
	{"no_tools", "closing where no call is open is an error with a sentinel", func(t *testing.T) {
		require.ErrorIs(t, dag.New().User("x").CloseTools().Err(), dag.ErrNoCalls)
	}},
	{"shape_of_a_phase", "", func(t *testing.T) {
		merge := phaseOf(t, "a", "b", "c").Head()
		require.Equal(t, 3, merge.NumParents())
		for i, p := range merge.Parents() {
			require.Equal(t, i, p.Payload().(node.ToolExecution).Index)
			require.Same(t, merge.Parent(0).Parent(0), p.Parent(0))
			require.Equal(t, 1, p.NumParents())
		}
	}},
	{"empty_result", "", func(t *testing.T) {
		m, _ := phaseOf(t, "").Head().Message()
		require.Len(t, m.Blocks.ToolResults(), 1)
		require.Zero(t, m.Blocks.ToolResults()[0].Content.Len())
	}},
	{"failing_step_leaves_the_receiver", "a failing tool is a result with IsError and no error; what fails is a step that cannot be", func(t *testing.T) {
		d := dag.New().User("go").Assistant("", use("a", "f", "{}"))
		before := d.Heads()
		require.Error(t, d.CloseTools(execution(5, "x")).Err())
		require.NoError(t, d.Err())
		require.Equal(t, before, d.Heads())
	}},
	{"duplicate_call_ids", "a call is known by its message and place, so that equal ids pair with the right results; Validate reports them", func(t *testing.T) {
		d := dag.New().Tools(declared("f", "")).User("go").Assistant("", use("a", "f", `{"n":1}`), use("a", "f", `{"n":2}`)).
			CloseTools(execution(0, "one"), execution(1, "two"))
		require.Equal(t, "user:!a=one!a=two", spell(d.Messages())[2])
		require.Equal(t, []dag.FindingKind{dag.FindingKind("duplicate call id")}, kinds(d))
	}},
	{"answer_stays_one_message", "thinking, text and calls of one answer stay one message, because a signature covers them together", func(t *testing.T) {
		d := dag.New().User("go").Assistant("text", content.Thinking{Text: "hm", Signature: "s"}, use("a", "f", "{}")).CloseTools()
		require.Len(t, d.Messages(), 3)
		require.Equal(t, 3, d.Messages()[1].Blocks.Len())
	}},
	{"stop_reason_on_an_empty_conversation", "it is a node like any other, and holds the run's real totals", func(t *testing.T) {
		d := dag.New().Append(node.StopReason{Reason: content.StopEndTurn, Usage: content.Usage{Input: 3}})
		require.NoError(t, d.Err())
		require.EqualValues(t, 3, d.Head().Payload().(node.StopReason).Usage.Input)
	}},
	{"save_and_load", "", func(t *testing.T) {
		d := toldWeather().User("on")
		path := filepath.Join(t.TempDir(), "c.json")
		require.NoError(t, d.Save(path))
		loaded, err := dag.Load(path)
		require.NoError(t, err)
		require.Equal(t, len(d.Heads()), len(loaded.Heads()))
		require.Equal(t, spell(d.Messages()), spell(loaded.Messages()))
		require.Equal(t, d.SystemPrompts(), loaded.SystemPrompts())
	}},
	{"save_and_load_with_tools", "", func(t *testing.T) {
		require.Equal(t, toldWeather().ToolDefs(), reload(t, toldWeather()).ToolDefs())
		require.Len(t, reload(t, toldWeather()).ToolDefs(), 1)
	}},
	{"samples_load_and_save_again", "importing its format is a piece of its own; its three sample conversations, built here, load and save to the same bytes", func(t *testing.T) {
		for name, d := range nanoSamples(t) {
			require.Equal(t, written(t, d), written(t, reload(t, d)), name)
			require.True(t, dag.Equal(d, reload(t, d)), name)
		}
	}},
	{"two_heads_survive", "", func(t *testing.T) {
		d := dag.New().User("r")
		both := d.Assistant("b").Join(d.Assistant("a"))
		loaded := reload(t, both)
		require.Equal(t, both.Heads()[0].ID(), loaded.Heads()[0].ID())
		require.Equal(t, both.Heads()[1].ID(), loaded.Heads()[1].ID())
	}},
	{"children_before_parents", "a saved conversation is in causal order, so that it loads in one pass; another order is an error", func(t *testing.T) {
		_, err := dag.Read(strings.NewReader(document("", saysIn(2, ref(1), "assistant", hi), saysIn(1, "", "user", hi))))
		require.ErrorIs(t, err, node.ErrParent)
	}},
	{"missing_parent_or_cycle", "", func(t *testing.T) {
		for _, text := range []string{
			document("", saysIn(1, ref(9), "user", hi)),
			document("", saysIn(1, ref(2), "user", hi), saysIn(2, ref(1), "user", hi)),
			document("", saysIn(1, ref(1), "user", hi)),
		} {
			_, err := dag.Read(strings.NewReader(text))
			require.ErrorIs(t, err, node.ErrParent)
		}
	}},
	{"no_heads_given", "where heads are left out, they are the leaves; an empty list is a conversation without heads", func(t *testing.T) {
		d := read(t, document("", saysIn(1, "", "user", hi), saysIn(2, ref(1), "user", hi), saysIn(3, ref(1), "user", hi)))
		require.Len(t, d.Heads(), 2)
		require.Equal(t, 3, d.Len())
		require.Empty(t, read(t, document(`,"heads":[]`, saysIn(1, "", "user", hi))).Heads())
	}},
	{"unknown_head", "it is an error: a program must not go on from another place than it was told", func(t *testing.T) {
		_, err := dag.Read(strings.NewReader(document(`,"heads":[`+ref(7)+`]`, saysIn(1, "", "user", hi))))
		require.ErrorIs(t, err, dag.ErrHeads)
	}},
	{"unknown_node_kind", "it is kept byte for byte and never sent; there, it becomes a system prompt", func(t *testing.T) {
		text := document("", line(1, `"parents":[],"kind":"future_thing","body":{"v": 1}`), saysIn(2, ref(1), "user", hi))
		d := read(t, text)
		require.Equal(t, "future_thing", d.Nodes()[0].Kind())
		require.Empty(t, d.SystemPrompts())
		require.Equal(t, []string{"user:hi"}, spell(d.Messages()))
		require.Contains(t, written(t, d), `"kind":"future_thing","body":{"v": 1}`)
	}},
	{"unknown_block", "it is kept byte for byte; there, it is dropped", func(t *testing.T) {
		d := read(t, document("", saysIn(1, "", "user", hi+`,{"type":"hologram","x": 1.0}`)))
		require.Equal(t, content.Unknown{JSON: `{"type":"hologram","x": 1.0}`}, d.Messages()[0].Blocks.At(1))
		require.Contains(t, written(t, d), `{"type":"hologram","x": 1.0}`)
	}},
	{"bad_role", "", func(t *testing.T) {
		_, err := dag.Read(strings.NewReader(document("", saysIn(1, "", "tool", hi))))
		var field *node.FieldError
		require.ErrorAs(t, err, &field)
		require.Equal(t, "body/role", field.Field)
	}},
	{"no_content", "", func(t *testing.T) {
		d := read(t, document("", line(1, `"parents":[],"kind":"message","body":{"role":"user","blocks":null}`)))
		require.Zero(t, d.Messages()[0].Blocks.Len())
		require.Equal(t, []dag.FindingKind{dag.FindingKind("empty message")}, kinds(d))
	}},
	{"result_as_text", "the shorthand is of its old format, which only an importer reads; here a result is a list of blocks, and other things are refused", func(t *testing.T) {
		_, err := dag.Read(strings.NewReader(document("", line(1, `"parents":[],"kind":"tool_execution","body":{"index":0,"result":"text"}`))))
		require.ErrorIs(t, err, node.ErrParse)
	}},
	{"result_content_as_text", "nothing is dropped in silence: what is no list of blocks is an error that names the field", func(t *testing.T) {
		_, err := dag.Read(strings.NewReader(document("", saysIn(1, "", "user", `{"type":"tool_result","call_id":"a","content":"text"}`))))
		require.ErrorIs(t, err, node.ErrParse)
		require.Contains(t, err.Error(), "blocks/0")
	}},
	{"alias_of_a_block_type", "the alias is of its format, which only an importer reads; a provider's compaction block is an opaque block and survives", func(t *testing.T) {
		b := content.Opaque{API: "openai-responses", JSON: `{"type":"compaction_summary","encrypted_content":"x"}`}
		require.Equal(t, b, reload(t, dag.New().Assistant("", b)).Messages()[0].Blocks.At(0))
	}},
	{"providers_fields_survive", "there, item ids, thought signatures and encrypted thinking are lost", func(t *testing.T) {
		call := use("a", "f", "{}")
		call.Extra = content.Extra{API: "gemini", JSON: `{"thought_signature":"s"}`}
		thought := content.Thinking{Text: "t", Signature: "sig", Redacted: "enc", Extra: content.Extra{API: "openai-responses", JSON: `{"id":"rs_1","summary":[]}`}}
		d := reload(t, dag.New().Assistant("", thought, call))
		require.Equal(t, thought, d.Messages()[0].Blocks.At(0))
		require.Equal(t, call, d.Messages()[0].Blocks.At(1))
	}},
	{"metadata_survives", "there, a second save forgets the session, the time and the metadata", func(t *testing.T) {
		d := fresh().WithMetadata("session", "s1").User("x")
		once := reload(t, d)
		twice := reload(t, once.Assistant("y"))
		require.Equal(t, content.JSON(`"s1"`), twice.Metadata().Get("session"))
		require.Equal(t, once.Created(), twice.Created())
	}},
	{"what_no_file_can_hold", "", func(t *testing.T) {
		require.ErrorIs(t, dag.New().Custom("x", func() {}).Err(), content.ErrJSON)
		_, err := dag.Read(strings.NewReader(document("", saysIn(1, "", "user", `{"type":"text","text":"\ud800"}`))))
		require.ErrorIs(t, err, node.ErrParse)
		_, err = dag.Read(strings.NewReader(document("", saysIn(1, "", "user", `{"type":"text","text":NaN}`))))
		require.ErrorIs(t, err, node.ErrParse)
		require.Equal(t, []string{"user:a\uFFFD"}, spell(reload(t, dag.New().User("a\xff")).Messages()), "bytes that are no text are replaced when they are taken")
	}},
	{"conversation_hung_on_another", "nodes are shared and saved once, not copied as JSON inside JSON", func(t *testing.T) {
		child := toldWeather()
		d := reload(t, dag.New().User("go").SubGraph("weather", child))
		back := dag.FromNode(d.Head())
		require.Equal(t, spell(child.Messages()), spell(back.Messages()))
		require.Equal(t, child.SystemPrompts(), back.SystemPrompts())
		require.True(t, dag.Equal(child, back))
	}},
	{"sub_graph_fields", "nodes, heads and depth are the graph itself; a title may be empty, because nothing depends on it", func(t *testing.T) {
		p := node.SubGraph{Title: "t", CallID: "c", Heads: node.ListOf(toldWeather().Heads()...), Summary: "s"}
		got := reload(t, dag.New().Append(p)).Head().Payload().(node.SubGraph)
		require.Equal(t, []string{"t", "c", "s"}, []string{got.Title, got.CallID, got.Summary})
		require.Equal(t, 1, got.Heads.Len())
		_, err := dag.Read(strings.NewReader(document("", line(1, `"parents":[],"kind":"sub_graph","body":[]`))))
		require.ErrorIs(t, err, node.ErrParse)
	}},
	{"one_sub_graph", "", func(t *testing.T) {
		count := 0
		for _, n := range dag.New().User("x").SubGraph("s", toldWeather()).Assistant("y").Nodes() {
			if n.Kind() == "sub_graph" {
				count++
			}
		}
		require.Equal(t, 1, count)
	}},
	{"sub_graphs_are_not_messages", "", func(t *testing.T) {
		require.Equal(t, []string{"user:x", "assistant:y"}, spell(dag.New().User("x").SubGraph("s", toldWeather()).Assistant("y").Messages()))
	}},
}

func diamond(t *testing.T, swap bool) {
	r := says(t)
	a, b := says(t, r), says(t, r)
	a2 := says(t, a)
	m, want := says(t, b, a2), []*node.Node{r, b, a, a2}
	if swap {
		m, want = says(t, a2, b), []*node.Node{r, a, a2, b}
	}
	require.Equal(t, append(want, m), dag.New().WithHeads(m).Nodes())
}

// nanoSamples is that system's three sample conversations, as they are built here.
func nanoSamples(t *testing.T) map[string]dag.DAG {
	base := dag.New().System("You are helpful.").Tools(declared("get_weather", "Weather."), declared("fail", "Fails.")).User("Weather?")
	failed := execution(2, "Tool error: boom")
	failed.IsError = true
	unknown := execution(3, "Unknown tool: nope")
	unknown.IsError = true
	inner := dag.New().System("inner").User("deep").Assistant("bottom")
	outer := dag.New().System("outer").User("go").Assistant("", use("s1", "sub", "{}")).
		CloseTools(node.ToolExecution{Index: 0, Result: content.Words("bottom"), Child: node.ListOf(inner.Heads()...)}).Assistant("done")
	image := content.Image{Source: content.Source{MediaType: "image/png", Data: "iVBORw0KGgo="}}
	pictures := dag.New().System("one").System("two").User("look", image).
		Assistant("", content.Opaque{API: "openai-responses", JSON: `{"type":"reasoning","encrypted_content":"x","summary":[]}`},
			use("a", "sub", "{}"), use("b", "draw", "{}")).
		CloseTools(node.ToolExecution{Index: 1, Result: content.Words("done"), Child: node.ListOf(outer.Heads()...)},
			node.ToolExecution{Index: 2, Result: mustOf(t, image)})
	samples := map[string]dag.DAG{
		"single tool": base.Assistant("I'll look.", use("t1", "get_weather", `{"city":"Tokyo"}`)).CloseTools(execution(1, "22 °C")).
			Assistant("22 °C.").Stop(content.StopEndTurn),
		"parallel": base.Assistant("", content.Thinking{Text: "hm", Signature: "s"}, use("t1", "get_weather", "{}"), use("t2", "fail", "{}"), use("t3", "nope", "{}")).
			CloseTools(execution(1, "22 °C"), failed, unknown).Assistant("Partly.").Stop(content.StopEndTurn),
		"sub-agents, images, branch": pictures.Assistant("fine").Stop(content.StopEndTurn).Join(pictures.Assistant("other")),
	}
	for name, d := range samples {
		require.NoError(t, d.Err(), name)
	}
	return samples
}

func TestConformanceWithTheSystemThatPlaitReplaces(t *testing.T) {
	require.Len(t, conformanceCases, 53)
	for i, c := range conformanceCases {
		t.Run(fmt.Sprintf("case_%02d_%s", i+1, c.name), func(t *testing.T) {
			if c.differs != "" {
				t.Logf("Plait differs on purpose: %s", c.differs)
			}
			c.run(t)
		})
	}
}
