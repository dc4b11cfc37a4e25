package durable

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/store"
)

// steps is a store that records what the parts of each step are.
type steps struct {
	store.Runs
	list []string
}

func (s *steps) Commit(ctx context.Context, step store.Step) (store.Head, error) {
	var parts []string
	add := func(name string, has bool) {
		if has {
			parts = append(parts, name)
		}
	}
	add("consume", step.Consume != "")
	add("append", step.Append != nil && len(step.Append.Records) > 0)
	add("pause", step.Pause != nil)
	add("end", step.End != "")
	s.list = append(s.list, strings.Join(parts, ", "))
	return s.Runs.Commit(ctx, step)
}

// After the beginning of the run, with what the agent declares, a response is committed with the pause for its calls.
func TestPauseIsCommittedWithTheResponse(t *testing.T) {
	var s *steps
	record := func(sc *scene) {
		s = &steps{Runs: sc.runs}
		sc.engine.Store = s
	}
	play(t, counter("count", has), record, func(sc *scene) {
		require.Equal(t, store.RunDone, sc.wait(sc.start()).State)
		require.Equal(t, []string{"append", "append, pause", "consume, append", "append, end"}, s.list)
	})
}

// A Save of the program is called after the commit of the nodes that it gets, so the pause is a commit of its own.
func TestSaveOfTheProgramGetsWhatIsStored(t *testing.T) {
	var s *steps
	stored := func(sc *scene) {
		s = &steps{Runs: sc.runs}
		sc.engine.Store = s
		a := sc.engine.Agents["a"]
		a.Save = func(ctx context.Context, d dag.DAG) error {
			c, err := open(ctx, sc.runs, "c", store.Main)
			if err != nil {
				return err
			}
			require.Equal(t, d.Len(), c.DAG().Len())
			return nil
		}
		sc.engine.Agents["a"] = a
	}
	play(t, counter("count", has), stored, func(sc *scene) {
		require.Equal(t, store.RunDone, sc.wait(sc.start()).State)
		require.Equal(t, []string{"append", "append", "pause", "consume, append", "append, end"}, s.list)
	})
}
