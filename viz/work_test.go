package viz_test

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz"
)

func TestOpenBackgroundWorkIsShownUntilItsMessage(t *testing.T) {
	d := dag.New().User("Go.").Assistant("", content.ToolUse{ID: "1", Name: "build", Input: `{}`})
	call := d.OpenCalls()[0].Key()
	d = d.AppendExecutions(node.ToolExecution{
		CallID: "1", Tool: "build", Result: content.Words("was started"), Details: `{"plait.background":1}`,
	}).CloseTools().Assistant("I wait.")
	meta, err := node.Meta{}.With("plait.background", call.String())
	require.NoError(t, err)
	ended := d.AppendMeta(node.Message{Role: content.User, Blocks: content.Words("done")}, meta)

	for _, draw := range []func(io.Writer, dag.DAG, *viz.Options) error{viz.Mermaid, viz.DOT, viz.SVG} {
		var open, done strings.Builder
		require.NoError(t, draw(&open, d, nil))
		require.Contains(t, open.String(), "in the background: was started")
		require.NoError(t, draw(&done, ended, nil))
		require.NotContains(t, done.String(), "in the background")
		require.Contains(t, done.String(), "was started")
	}
}
