package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/plait-dev/plait/node"
)

// save calls Agent.Save if the conversation has changed since the last call. After an error it cancels the run.
func (r *run) save() {
	if r.agent.Save == nil || r.saveErr != nil {
		return
	}
	heads := r.d.Heads()
	if slices.Equal(heads, r.saved) {
		return
	}
	r.saved = heads

	// The last step of a run that was cancelled is saved as well.
	if err := r.agent.Save(context.WithoutCancel(r.ctx), r.d); err != nil {
		r.saveErr = fmt.Errorf("executor: save: %w", err)
		r.cancel()
	}
}

// withSaveError returns the error of a run, and the error of Agent.Save if it has failed and err does not hold it.
func (r *run) withSaveError(err error) error {
	if r.saveErr == nil || errors.Is(err, r.saveErr) {
		return err
	}
	return errors.Join(err, r.saveErr)
}

// end reports the end of a call. With Agent.Save its result becomes part of the conversation at once, and not with all
// others.
func (b *batch) end(s *slot) bool {
	execution := s.execution()
	if b.r.agent.Save != nil {
		if d := b.r.d.AppendExecutions(execution); d.Err() == nil {
			b.r.d, s.saved = d, true
		}
	}
	return b.r.tell(ToolEnd{Turn: b.turn, Execution: execution})
}

// unsaved returns what became of the calls that have a result, and whose result is not part of the conversation yet.
func (b *batch) unsaved() []node.ToolExecution {
	list := make([]node.ToolExecution, 0, len(b.slots))
	for i := range b.slots {
		if s := &b.slots[i]; s.state == done && !s.saved {
			list = append(list, s.execution())
		}
	}
	return list
}
