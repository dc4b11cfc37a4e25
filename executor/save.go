package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// hold emits an event with the next call of flush. With Agent.Save, a step and what follows at once are saved together:
// the events of both wait for that. Call flush before anything that may take time, or that looks at what the consumer
// may have done since.
func hold[E Event](r *run, event E) bool {
	if r.agent.Save == nil {
		return emit(r, event)
	}
	r.keepWithCall(event)
	r.held = append(r.held, event)
	return true
}

// flush saves the conversation and emits the events that were held. It returns false if the consumer left.
func (r *run) flush() bool {
	if len(r.held) == 0 {
		return true
	}
	r.save()

	held := r.held
	r.held = nil
	for _, event := range held {
		if !r.yield(event, nil) {
			return false
		}
	}
	return true
}

// save calls Agent.Save if the conversation has changed since the last call. After an error it cancels the run.
func (r *run) save() {
	if r.agent.Save == nil || r.saveErr != nil {
		return
	}
	d := r.d
	if r.beside != nil {
		d = r.beside(d)
	}
	heads := d.Heads()
	if slices.Equal(heads, r.saved) {
		return
	}
	r.saved = heads

	// The last step of a run that was cancelled is saved as well.
	if err := r.agent.Save(context.WithoutCancel(r.ctx), d); err != nil {
		r.failSave(err)
	}
}

// failSave ends the run because a step could not be saved.
func (r *run) failSave(err error) {
	r.saveErr = fmt.Errorf("executor: save: %w", err)
	r.cancel()
}

// withSaveError returns the error of a run, and the error of Agent.Save if it has failed and err does not hold it.
func (r *run) withSaveError(err error) error {
	if r.saveErr == nil || errors.Is(err, r.saveErr) {
		return err
	}
	return errors.Join(err, r.saveErr)
}
