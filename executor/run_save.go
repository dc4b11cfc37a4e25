package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// record is the conversation of a run, and who gets it: the consumer of its events, its observers, and Agent.Save.
type record struct {
	d     dag.DAG
	yield func(Event, error) bool // nil if there is no consumer and nothing to save

	heard       bool // somebody reads the events: the consumer of the run or, of a sub-agent, of the runs around it
	showsPhases bool // somebody reads the executions and results of a closed tool phase

	observers []observer
	observing bool            // the observers have had the RunStart, and not the End
	observed  context.Context // the observers' context for the last event; nil if there are no observers

	saved   []*node.Node   // the heads that Agent.Save was last called with
	saveErr error          // the error of Agent.Save; the run ends with it
	held    []Event        // wait for the next flush; see emit
	waiting []chan<- error // of sub-agents' steps that wait for the next save; each has room for its error

	// beside adds the other heads to a conversation while one of several branches is executed. It is nil at any other
	// time.
	beside func(dag.DAG) dag.DAG
}

// flush saves the conversation, releases the sub-agents that wait for this save, and emits the held events. It returns
// false if the consumer left.
func (r *run) flush() bool {
	if len(r.held) == 0 && len(r.waiting) == 0 {
		return true
	}
	r.save()

	for _, saved := range r.waiting {
		saved <- r.saveErr
	}
	r.waiting = nil

	// Events are held only with Agent.Save. newRun then sets a yield, even without a consumer.
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

	// The last step of a cancelled run is saved as well.
	if err := r.agent.Save(context.WithoutCancel(r.ctx), d); err != nil {
		r.failSave(err)
	}
}

// failSave ends the run because a step could not be saved.
func (r *run) failSave(err error) {
	r.saveErr = fmt.Errorf("executor: save: %w", err)
	r.cancel()
}

// withSaveError returns err joined with the error of Agent.Save, unless there is none or err has it already.
func (r *run) withSaveError(err error) error {
	if r.saveErr == nil || errors.Is(err, r.saveErr) {
		return err
	}
	return errors.Join(err, r.saveErr)
}

// agentStep is the conversation of a call's sub-agent after a step, to be saved with that of the run.
type agentStep struct {
	dag   dag.DAG
	saved chan<- error // receives the error of the save; has room for it
}

// savesAgent reports whether the steps of the call's sub-agent are saved with the run, one by one.
func (c *toolCall) savesAgent() bool { return c != nil && c.resumes && c.phase.r.agent.Save != nil }

// saveAgent returns the Save of the call's sub-agent. It calls own, which may be nil, and then has the run save the
// step.
func (c *toolCall) saveAgent(own func(context.Context, dag.DAG) error) func(context.Context, dag.DAG) error {
	return func(ctx context.Context, d dag.DAG) error {
		if own != nil {
			if err := own(ctx, d); err != nil {
				return err
			}
		}

		saved := make(chan error, 1)
		if !c.sendStep(agentStep{d, saved}) {
			return nil // the call was given up: it keeps the sub-agent's conversation from before this step
		}
		select {
		case err := <-saved:
			return err
		case <-c.ctx.Done():
			return errorOf(&c.ctx)
		}
	}
}

// sendStep sends a step of the call's sub-agent to the run's goroutine, unless the call is over.
func (c *toolCall) sendStep(step agentStep) bool {
	c.phase.mu.Lock()
	defer c.phase.mu.Unlock()

	if c.state != running {
		return false
	}
	c.innerRun().child = step.dag
	c.phase.notify(queuedEvent{call: c, step: &step})
	return true
}

// addAgentStep adds a step of a sub-agent to the conversation of the run, for the next save: an execution of the call
// in state started, with the sub-agent's conversation as its Child.
func (p *toolPhase) addAgentStep(c *toolCall, step agentStep) {
	// The tool's goroutine may still change the call. As a head, the new execution replaces the one of the last step.
	p.mu.Lock()
	e := node.ToolExecution{
		Index: c.call.Index, State: node.ExecutionStarted, Started: c.started, Ran: c.changes(),
		Usage: c.innerRun().usage,
		Child: node.ListOf(step.dag.Heads()...),
	}
	p.mu.Unlock()

	d := p.r.d.AppendExecutions(e)
	if err := d.Err(); err != nil {
		step.saved <- err
		return
	}
	p.r.d = d
	p.r.waiting = append(p.r.waiting, step.saved)
}
