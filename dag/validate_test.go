package dag_test

import (
	"strings"
	"testing"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/testkit/goldentest"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

func kinds(d dag.DAG) []dag.FindingKind {
	var out []dag.FindingKind
	for _, f := range d.Validate() {
		out = append(out, f.Kind)
	}
	return out
}

// speak returns a node payload that says blocks.
func speak(t *testing.T, role content.Role, blocks ...content.Block) node.Payload {
	return node.Message{Role: role, Blocks: mustOf(t, blocks...)}
}

func TestFluentBuilderMakesNoFindings(t *testing.T) {
	helped := execution(1, "ok")
	helped.Child = node.ListOf(toldWeather().WithSource(node.Source{}).User("more").Heads()...)
	for name, d := range map[string]dag.DAG{
		"empty":               dag.New(),
		"told":                toldWeather(),
		"open at the head":    askWeather(),
		"paused, in part":     askWeather().AppendExecutions(execution(1, "x")),
		"paused, all":         askWeather().AppendExecutions(execution(0, "x"), execution(1, "y"), execution(2, "z")),
		"two users in a row":  fresh().User("a").User("b"),
		"two assistants":      fresh().Assistant("a").Assistant("b"),
		"closed with nothing": askWeather().CloseTools().User("x"),
		"with a sub-agent":    askWeather().WithSource(node.Source{}).CloseTools(execution(0, "x"), helped).Assistant("y"),
		"results by hand":     askWeather().ToolResults(result("t1", "1"), result("t2", "2"), result("t3", "3")),
		"one message for each result": askWeather().ToolResults(result("t2", "2")).ToolResults(result("t1", "1")).
			ToolResults(result("t3", "3")),
		"forks joined": toldWeather().Join(toldWeather().WithSource(node.Source{}).Back(1).User("x").Assistant("y")).User("z"),
		"no arguments": fresh().Tools(declared("f", "")).Assistant("", use("a", "f", "")).CloseTools(execution(0, "x")),
		"compacted":    compact(toldWeather(), "sum", 2, 3, 4, 5, 6, 7).User("on"),
		"custom, stop": fresh().Custom("x", 1).Stop(content.StopEndTurn).SubGraph("s", dag.New().User("q")),
		"image": fresh().User("", content.Image{Source: content.Source{MediaType: "image/png", Data: "iVBORw0KGgo="}},
			content.Image{Source: content.Source{URL: "https://example.com/x.tiff"}}),
	} {
		require.NoError(t, d.Err(), name)
		require.Empty(t, d.Validate(), name)
	}
}

func TestEveryKindOfFinding(t *testing.T) {
	asked := func(calls ...content.Block) dag.DAG {
		return fresh().Tools(declared("f", "")).User("q").Assistant("", calls...)
	}
	a := use("a", "f", "{}")
	b := use("b", "f", "{}")
	half, _, err := asked(a, b).AppendTo(asked(a, b).Heads(), execution(0, "x"))
	require.NoError(t, err)
	strayed, _, err := asked(a).AppendTo(asked(a).Heads(), node.ToolExecution{Index: 3, Result: content.Words("x")})
	require.NoError(t, err)
	child := dag.New().WithSource(node.Counting(start.Add(time.Hour))).User("y").Append(node.Message{Role: content.User})
	var all strings.Builder
	twins := fresh().User("one").Assistant("1").Join(fresh().User("another")) // the same source twice
	for _, c := range []struct {
		name string
		d    dag.DAG
		want []dag.FindingKind
		says string
	}{
		{"call without result", asked(a, b).ToolResults(result("a", "x")).Assistant("done"), []dag.FindingKind{dag.CallWithoutResult}, `call 1, "b" of "f"`},
		{"calls passed over", asked(a).User("never mind"), []dag.FindingKind{dag.CallWithoutResult}, `"a"`},
		{"left out at the end", asked(a, b).ToolResults(result("a", "x")), []dag.FindingKind{dag.CallWithoutResult}, `"b"`},
		{"result without call", fresh().User("q").ToolResults(result("z", "x")), []dag.FindingKind{dag.ResultWithoutCall}, `"z"`},
		{"result of an older call", asked(a).ToolResults(result("a", "x")).Assistant("m").ToolResults(result("a", "x")), []dag.FindingKind{dag.ResultWithoutCall}, `"a"`},
		{"answered twice", asked(a).ToolResults(result("a", "x"), result("a", "y")), []dag.FindingKind{dag.FindingKind("call has two results")}, `"a"`},
		{"answered twice by retry", asked(a).CloseTools().ToolResults(result("a", "y")), []dag.FindingKind{dag.FindingKind("call has two results")}, `"a"`},
		{"late", asked(a).User("hm").ToolResults(result("a", "y")), []dag.FindingKind{dag.FindingKind("result comes late")}, `"a"`},
		{"cut in half", half.User("go on"), []dag.FindingKind{dag.FindingKind("incomplete tool phase"), dag.CallWithoutResult}, "1 of 2 calls have results"},
		{"all executed and passed over", asked(a, b).AppendExecutions(execution(0, "x"), execution(1, "y")).User("go on"),
			[]dag.FindingKind{dag.FindingKind("incomplete tool phase")}, "2 of 2 calls have results"},
		{"stray execution", strayed, []dag.FindingKind{dag.CallWithoutResult, dag.FindingKind("execution without call"), dag.ResultWithoutCall}, ""},
		{"execution of nothing", fresh().Append(execution(0, "x")), []dag.FindingKind{dag.FindingKind("execution without call"), dag.ResultWithoutCall}, "0 parents"},
		{"duplicate ids", asked(a, a).CloseTools(), []dag.FindingKind{dag.FindingKind("duplicate call id")}, `"a"`},
		{"empty id", asked(use("", "f", "{}")).CloseTools(), []dag.FindingKind{dag.FindingKind("empty call id")}, `"f"`},
		{"undeclared", asked(use("x", "g", "{}")).CloseTools(), []dag.FindingKind{dag.UndeclaredTool}, `"g"`},
		{"arguments", asked(use("x", "f", `[1]`)).CloseTools(), []dag.FindingKind{dag.FindingKind("arguments are not an object")}, "[1]"},
		{"arguments cut off", asked(use("x", "f", `{"a":`)).CloseTools(), []dag.FindingKind{dag.FindingKind("arguments are not an object")}, `{"a":`},
		{"empty message", fresh().Append(node.Message{Role: content.Assistant}), []dag.FindingKind{dag.FindingKind("empty message")}, ""},
		{"empty text", fresh().User("x", content.Text{}), []dag.FindingKind{dag.FindingKind("empty text")}, "block 1"},
		{"blank text", fresh().User(" \n"), []dag.FindingKind{dag.FindingKind("empty text")}, "block 0"},
		{"empty text in a result", asked(a).ToolResults(content.ToolResult{CallID: "a", Content: mustOf(t, content.Text{})}), []dag.FindingKind{dag.FindingKind("empty text")}, "block 0, result 0"},
		{"call of the user", fresh().Tools(declared("f", "")).User("", a), []dag.FindingKind{dag.FindingKind("block of the other role")}, "user"},
		{"thinking of the user", fresh().User("", content.Thinking{Text: "x"}), []dag.FindingKind{dag.FindingKind("block of the other role")}, "thinking"},
		{"result of the assistant", fresh().Assistant("", result("a", "x")), []dag.FindingKind{dag.FindingKind("block of the other role")}, "assistant"},
		{"base64", fresh().User("", content.Image{Source: content.Source{MediaType: "image/png", Data: "not base64!"}}), []dag.FindingKind{dag.FindingKind("data is not base64")}, "block 0"},
		{"document", fresh().User("", content.Document{Source: content.Source{MediaType: "application/pdf", Data: "AAA"}}), []dag.FindingKind{dag.FindingKind("data is not base64")}, "block 0"},
		{"media type", fresh().User("", content.Image{Source: content.Source{MediaType: "image/tiff", Data: "AAAA"}}), []dag.FindingKind{dag.FindingKind("image type is not supported")}, "image/tiff"},
		{"unknown block", fresh().User("x", content.Unknown{JSON: `{"type":"hologram"}`}), []dag.FindingKind{dag.FindingKind("unknown block")}, "block 1"},
		{"duplicate id", twins, []dag.FindingKind{dag.FindingKind("duplicate node id")}, "another node"},
		{"nothing replaced", fresh().User("x").Append(node.Compaction{Summary: content.Words("s"), Replaced: node.ListOf(node.ID{1})}), []dag.FindingKind{dag.FindingKind("nothing is replaced")}, ""},
		{"in a sub-agent", fresh().User("x").SubGraph("s", child), []dag.FindingKind{dag.FindingKind("empty message")}, ""},
		{"compaction cuts a phase", compact(toldWeather(), "sum", 2, 3).User("on"), []dag.FindingKind{dag.ResultWithoutCall, dag.ResultWithoutCall, dag.ResultWithoutCall}, ""},
	} {
		require.NoError(t, c.d.Err(), c.name)
		require.Equal(t, c.want, kinds(c.d), "%s: %v", c.name, c.d.Validate())
		require.Contains(t, c.d.Validate()[0].String(), c.says, c.name)
		require.Contains(t, c.d.Validate()[0].String(), string(c.want[0]))
		for _, f := range c.d.Validate() {
			all.WriteString(c.name + ": " + f.String() + "\n")
		}
	}
	goldentest.Require(t, "findings.golden", all.String())
}

func TestEveryFindingIsReportedAtOnceInOrder(t *testing.T) {
	d := fresh().User(" ").Assistant("x", content.Text{}, use("", "f", "[]"), use("", "f", "{}")).User("on")
	require.Equal(t, []dag.FindingKind{dag.FindingKind("empty text"), dag.FindingKind("empty text"), dag.FindingKind("empty call id"), dag.FindingKind("arguments are not an object"), dag.FindingKind("empty call id"),
		dag.UndeclaredTool, dag.CallWithoutResult, dag.CallWithoutResult}, kinds(d))
	nodes := d.Nodes()
	require.Equal(t, nodes[0], d.Validate()[0].Node)
	require.Equal(t, nodes[1], d.Validate()[2].Node)
	require.Equal(t, d.Validate(), d.Validate())
}

func TestValidateReportsAChangedFile(t *testing.T) {
	var saved strings.Builder
	require.NoError(t, toldWeather().Write(&saved))
	d, err := dag.Read(strings.NewReader(strings.Replace(saved.String(), "Answer briefly", "Answer at length", 1)))
	require.NoError(t, err)
	findings := d.Validate()
	require.Len(t, findings, 1)
	require.Equal(t, dag.FindingKind("wrong checksum"), findings[0].Kind)
	require.Equal(t, "system", findings[0].Node.Kind())
}

func TestSharedSubAgentIsValidatedOnce(t *testing.T) {
	child := dag.New().User("x").Append(node.Message{Role: content.User})
	d := fresh().User("q").SubGraph("a", child).SubGraph("b", child).SubGraph("c", child.User("more"))
	require.Equal(t, []dag.FindingKind{dag.FindingKind("empty message")}, kinds(d))
}

func TestDuplicateIDIsReportedOnce(t *testing.T) {
	require.NotPanics(t, func() { _ = repeated().String() })
	seen := map[dag.Finding]int{}
	for _, f := range repeated().Validate() {
		seen[f]++
	}
	require.NotEmpty(t, seen)
	for f, times := range seen {
		require.Equal(t, 1, times, f.String())
	}
}

func TestValidateReportsCallsThatAreNoLongerOpen(t *testing.T) {
	said := fresh().Tools(declared("f", "")).User("q").Assistant("", use("a", "f", "{}"))
	require.Empty(t, said.Validate(), "the call is open")
	for name, d := range map[string]dag.DAG{"said more": said.Assistant("done"), "stopped": said.Stop("x")} {
		require.NoError(t, d.Err(), name)
		require.Nil(t, d.OpenCalls(), name)
		require.Equal(t, []dag.FindingKind{dag.CallWithoutResult}, kinds(d), name)
	}
}
