package viz_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz"
)

// TestDrawingsSayWhichCallsWait draws a pause: in a short and a long conversation, and on one of many branches.
func TestDrawingsSayWhichCallsWait(t *testing.T) {
	pause := func(d dag.DAG) dag.DAG {
		var calls []content.Block
		var done []node.ToolExecution
		for i := range 12 {
			calls = append(calls, content.ToolUse{ID: string(rune('a' + i)), Name: "erase", Input: "{}"})
			if i > 1 {
				done = append(done, node.ToolExecution{Index: i, Result: content.Words("ok")})
			}
		}
		return d.User("Erase it.").Assistant("", calls...).AppendExecutions(done...)
	}

	short := dag.New().User("Hi.")
	long := short
	for range 300 {
		long = long.Assistant("Yes.").User("Go on.")
	}
	wide := short
	for range 300 {
		wide = wide.Join(long.Back(1).User("Elsewhere."))
	}
	wide = wide.Join(pause(short)) // beyond the heads that are drawn

	for name, d := range map[string]dag.DAG{"short": pause(short), "long": pause(long), "wide": wide} {
		for format, draw := range map[string]func(io.Writer) error{
			"mermaid": func(w io.Writer) error { return viz.Mermaid(w, d, nil) },
			"dot":     func(w io.Writer) error { return viz.DOT(w, d, nil) },
			"svg":     func(w io.Writer) error { return viz.SVG(w, d, nil) },
		} {
			var b bytes.Buffer
			require.NoError(t, draw(&b))
			require.Contains(t, b.String(), "calls wait", "%s, %s: lines may wrap", name, format)
		}
	}

	var b bytes.Buffer
	require.NoError(t, viz.Mermaid(&b, pause(short).CloseTools(), nil))
	require.NotContains(t, b.String(), "wait")
}
