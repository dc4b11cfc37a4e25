package dag

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
)

// ownWords returns a conversation whose texts, names, arguments, results and blocks of unknown types are made of the
// words of the saved form.
func ownWords(t *testing.T) DAG {
	t.Helper()
	const words = `"digest":"sha256:00","redacted":true}]},"info":{"model":"x"},"child":["`
	object := func(value string) content.JSON {
		return content.JSON(strings.ReplaceAll(`{"type":"tool_result","result_of":VALUE,"result_of ":{"result_of":VALUE},`+
			`"id":"x","parents":["x"],"kind":"message","body":{"blocks":[{"type":"tool_result","result_of":VALUE}]},`+
			`"info":{},"meta":{},"heads":["x"],"child":["x"],"replaced":["x"],"redacted":true,"digest":"x",`+
			`"input_text":"{","json_text":"{","a.b":1,"":2}`, "VALUE", value))
	}
	values := []string{`0`, `1`, `-1`, `1.5`, `"x"`, `null`, `[0]`, `{"result_of":0}`}

	// A block of an unknown type may have the name of anything else.
	var unknown []content.Block
	for i, kind := range []string{
		"result_of", "message", "system", "tools", "tool", "tool_execution", "sub_graph", "compaction", "stop_reason",
		"custom", "source", "extra", "node", "a.b", "tool_result ", "tool_result\\u0000",
	} {
		json := strings.Replace(string(object(values[i%len(values)])), "tool_result", kind, 1)
		unknown = append(unknown, content.Unknown{JSON: content.JSON(json)})
	}

	meta, err := node.Meta{}.With("result_of", object(`0`))
	require.NoError(t, err)
	meta, err = meta.With("a.b", words)
	require.NoError(t, err)

	schema := content.JSON(`{"type":"object","properties":{"result_of":{"type":"string"},"a.b":{}}}`)
	d := New().System(words).Tools(content.Tool{Name: "result_of", Description: words, Schema: schema})
	d = d.WithMetadata("nodes", words).WithMetadata("a.b", "x")
	for _, value := range values {
		calls := node.Message{Role: content.Assistant, Answer: node.Answer{Model: words, Details: object(value)}}
		calls.Blocks = mustBlocks(append([]content.Block{
			content.ToolUse{ID: "result_of", Name: "result_of", Input: object(value)},
			content.ToolUse{ID: "a.b\x00", Name: "a.b\x00" + words, Input: object(value) + "}"},
			content.Opaque{API: "x", JSON: object(value)},
		}, unknown...)...)
		d = d.User(words, append(unknown, content.Text{Text: string(object(value))})...).AppendMeta(calls, meta)

		result := mustBlocks(append([]content.Block{content.Text{Text: words}}, unknown...)...)
		ran := node.Ran{Tool: "result_of", Input: object(value)}
		child := node.ListOf(New().User(words).Heads()...)
		d = d.CloseTools(
			node.ToolExecution{Index: 0, Result: result, Details: object(value), Ran: ran},
			node.ToolExecution{Index: 1, Result: content.Words(words), Full: result, Child: child})
		d = d.Custom("result_of", object(value)).Custom("a.b\x00", words)
	}

	d = d.SubGraph(words, New().User(words)).Assistant("", unknown...)
	require.NoError(t, d.Err())
	return d
}

func mustBlocks(list ...content.Block) content.Blocks {
	blocks, err := content.Of(list...)
	if err != nil {
		panic(err)
	}
	return blocks
}

func TestWordsOfTheSavedFormInContentAreContent(t *testing.T) {
	d := ownWords(t)
	var saved strings.Builder
	require.NoError(t, d.Write(&saved))

	// A line with a space in it is read by another decoder.
	spaced := strings.ReplaceAll(saved.String(), `,"kind":"`, `, "kind":"`)
	for _, c := range []struct {
		name, text string
	}{{"as written", saved.String()}, {"with spaces", spaced}} {
		got, err := Read(strings.NewReader(c.text))
		require.NoError(t, err, c.name)
		require.True(t, got.Verify().OK(), c.name)
		require.True(t, Equal(d, got), c.name)
		require.NoError(t, got.Err(), c.name)

		var again strings.Builder
		require.NoError(t, got.Write(&again))
		require.True(t, c.text == again.String(), "%s: it is written back byte for byte", c.name)
	}
}

func TestRedactionKeepsContentWithWordsOfTheSavedForm(t *testing.T) {
	d := ownWords(t)
	redacted := d.Redact(d.Nodes()[0].ID())
	var saved strings.Builder
	require.NoError(t, redacted.Write(&saved))
	got, err := Read(strings.NewReader(saved.String()))
	require.NoError(t, err)

	before := d.Nodes()
	for i, n := range got.Nodes() {
		require.Equal(t, i == 0, n.Redacted(), "node %d", i)
		require.Equal(t, i > 0, string(before[i].Append(nil)) == string(n.Append(nil)), "node %d", i)
	}
}
