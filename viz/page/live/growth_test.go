package live

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/testkit/growthtest"
	"github.com/plait-dev/plait/node"
)

// TestGrowthOfEdits edits a response with many calls, whose results were sent, or are not all there.
func TestGrowthOfEdits(t *testing.T) {
	var cases []growthtest.Case
	for name, open := range map[string]int{"results that were sent": 0, "an open call": 1} {
		cases = append(cases, growthtest.Case{Name: name, Growth: growthtest.Linear, Setup: func(t testing.TB, n int) func() {
			calls, executions := make([]content.Block, n), make([]node.ToolExecution, n)
			for i := range calls {
				calls[i] = content.ToolUse{ID: fmt.Sprint(i), Name: "look", Input: "{}"}
				executions[i] = node.ToolExecution{Index: i, Result: content.Words("A tree.")}
			}

			d := start().User("Look.").Assistant("", calls...)
			caller := d.Head()
			d = d.AppendExecutions(executions[open:]...)
			if open == 0 {
				d = d.CloseTools()
			}

			return func() {
				_, branch, err := withEdit("I look.", "")(d, caller)
				require.NoError(t, err)
				require.Len(t, executionsAmong(branch.Nodes()), n-open)
			}
		}})
	}
	growthtest.Run(t, cases)
}
