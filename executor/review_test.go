package executor_test

import (
	"testing"

	"context"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/executor"
)

// What a tool says is its whole output is checked like the rest: it must not make the phase impossible to close.
func TestAWholeOutputThatCannotBeKeptIsThatToolsErrorAlone(t *testing.T) {
	use, err := content.Of(content.ToolUse{ID: "x", Name: "fast", Input: "{}"})
	require.NoError(t, err)
	bad := tool("bad", func(context.Context) (any, error) {
		return executor.Result{Content: content.Words("x"), Full: use}, nil
	})
	d, err := executor.Run(t.Context(), once(call("bad"), call("fast")), ask(fast, bad))
	require.NoError(t, err)
	require.Contains(t, outcomes(t, d)[0], "error: the tool's result: its full output")
	require.Equal(t, "fast", outcomes(t, d)[1])
	require.Equal(t, "Done.", d.Text())
}
