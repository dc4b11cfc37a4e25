package dag

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/lineage"
	"github.com/plait-dev/plait/node"
)

// TestTallyOfAKeptPhaseIsThatOfItsHeads appends random executions, and compares what the conversation keeps of its open
// phase with what its heads say.
func TestTallyOfAKeptPhaseIsThatOfItsHeads(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		calls := make([]content.Block, 2+random.IntN(40))
		for i := range calls {
			calls[i] = content.ToolUse{Name: "look", Input: "{}"}
		}
		d := New().User("Go.").Assistant("", calls...)
		for step := range 3 * len(calls) {
			open := d.OpenCalls()
			if len(open) == 0 {
				break
			}

			e := node.ToolExecution{Index: open[random.IntN(len(open))].Index}
			states := []node.ExecutionState{
				"", node.ExecutionStarted, node.ExecutionAwaitingApproval, node.ExecutionAwaitingResults,
			}
			if e.State = states[random.IntN(len(states))]; e.State.Unfinished() {
				e.Started = time.Unix(1, 0).UTC()
			}
			if e.State.Paused() {
				e.Spent = node.Spent{Run: "run", Turns: step + 1}
			}
			d = d.AppendExecutions(e)
			require.NoError(t, d.Err())

			kept, read := d.open().Phases[0].Tally, lineage.OpenAt(d.Heads()).Phases[0].Tally
			if kept.Spent == nil {
				read.Spent = nil // it was in the execution that was replaced: see package executor
			}
			require.Equal(t, read, kept, "seed %d, step %d", seed, step)
		}
	}
}
