package node_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
)

// TestModelOfANodeThatIsNotDecoded compares the model that is found in the line with that of the decoded node.
func TestModelOfANodeThatIsNotDecoded(t *testing.T) {
	src := node.Counting(time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC))
	tag, err := node.Meta{}.With("tags", []string{"x"})
	require.NoError(t, err)
	call := func(input content.JSON) content.Blocks {
		blocks, err := content.Of(content.ToolUse{ID: "1", Name: "f", Input: input})
		require.NoError(t, err)
		return blocks
	}
	text := content.Words(`"model":"not this"`)

	response := func(blocks content.Blocks, a node.Answer) node.Message {
		return node.Message{Role: content.Assistant, Blocks: blocks, Answer: a}
	}
	whole := node.Answer{API: "a", Model: "m-1", Stop: "end_turn", Usage: content.Usage{Input: 1}}
	withInfo := call(`{"a":{"b":[]},"info":{"model":"no"}}`)

	for name, c := range map[string]struct {
		message node.Message
		meta    node.Meta
		want    string
	}{
		"a response":              {message: response(text, whole), want: "m-1"},
		"without an answer":       {message: response(text, node.Answer{})},
		"without a model":         {message: response(text, node.Answer{API: "a"})},
		"with metadata":           {message: response(text, node.Answer{Model: "m-2"}), meta: tag, want: "m-2"},
		"arguments with an info":  {message: response(withInfo, node.Answer{})},
		"arguments and an answer": {message: response(withInfo, node.Answer{Model: `m"3`}), want: `m"3`},
	} {
		t.Run(name, func(t *testing.T) {
			n, err := node.New(src, c.message, c.meta)
			require.NoError(t, err)
			require.Equal(t, c.want, n.Model())

			lazy, err := node.ParseLazy(n.Append(nil), nil, func(*node.Node, error) { t.Error("it is broken") })
			require.NoError(t, err)
			require.Equal(t, c.want, lazy.Model())
			require.Equal(t, n.Payload(), lazy.Payload())
			require.Equal(t, c.want, lazy.Model(), "decoded")
			require.Equal(t, n.Meta().Len(), lazy.Meta().Len())
		})
	}
}
