package background

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/lineage"
	"github.com/plait-dev/plait/node"
)

// Add returns an agent that executes the calls of these tools in the background. It has them beside its own tools, with
// the tools "wait_for_work" and "stop_work", and a hook that appends the results. Set everything else of the agent
// before, and call Add once.
//
// Outside a run, as in executor.ExecuteTools, the tools are executed in the foreground.
func Add(a executor.Agent, tools ...executor.Tool) executor.Agent {
	m := &manager{
		agent: a, grace: cmp.Or(a.Grace, time.Second), tools: map[string]executor.Tool{}, jobs: map[node.CallKey]*job{},
	}
	a.Tools = slices.Clip(a.Tools)
	for _, t := range tools {
		if t == nil {
			a.Tools = append(a.Tools, nil) // the beginning of a run reports it
			continue
		}
		m.tools[t.Definition().Name] = t
		a.Tools = append(a.Tools, background{t, m})
	}
	a.Tools = append(a.Tools, m.waitTool(), m.stopTool())
	a.Hooks = append(slices.Clip(a.Hooks), executor.Hook{Observe: m.observe, Next: m.next})
	return a
}

// manager has the work of an agent in this process.
type manager struct {
	agent executor.Agent // as it was before Add
	grace time.Duration
	tools map[string]executor.Tool

	mu     sync.Mutex            // guards the fields below, and those of the runs
	jobs   map[node.CallKey]*job // the work of runs that are executed or paused
	paused []*job                // the work of paused runs, in the order of the pauses
}

// run is a run of the agent. The context of the run has it, with the manager as the key.
type run struct {
	last  int     // the greatest ID of any work
	begun []begun // calls without a result
	open  []*job  // in the order of the IDs
}

// begun is a call that has begun. Its work begins when the call has the result "started" in the conversation.
type begun struct {
	Work
	ctx context.Context // of the call; nil until the tool is called
}

// maxPaused is the maximum number of jobs of paused runs. Beyond it the oldest are stopped: their runs may have been
// resumed in another process.
const maxPaused = 1000

func (m *manager) runOf(ctx context.Context) *run {
	r, _ := ctx.Value(m).(*run)
	return r
}

// observe is the Hook.Observe.
func (m *manager) observe(ctx context.Context, event executor.Event, err error) context.Context {
	if e, begins := event.(executor.RunStart); begins {
		return context.WithValue(ctx, m, m.begin(ctx, e.DAG))
	}
	r := m.runOf(ctx)
	if r == nil {
		return ctx
	}

	switch e := event.(type) {
	case executor.ToolStart:
		if m.tools[e.Ran.Name] == nil {
			break
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		r.last++
		r.begun = append(r.begun, begun{Work: Work{
			ID: r.last, Call: e.Call.Key(), Tool: e.Ran.Name, Input: e.Ran.Input,
			asked: content.ToolUse{Name: e.Call.Name, Input: e.Call.Input},
		}})
	case executor.ToolEnd:
		m.start(r, e.Execution)
	case executor.TurnEnd:
		m.mu.Lock()
		defer m.mu.Unlock()
		r.begun = nil
	case executor.End:
		m.end(r, errors.Is(err, executor.ErrPaused))
	}
	return ctx
}

// begin returns the state of a run of d. Open work that this process does not execute is stopped, started again or lost.
func (m *manager) begin(ctx context.Context, d dag.DAG) *run {
	open, last := openIn(d)
	r := &run{last: last}
	if len(open) == 0 {
		return r
	}

	before, _ := d.LastRun()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range open {
		j := m.jobs[w.Call]
		if j == nil {
			j = newJob(w)
			switch tool := m.tools[w.Tool]; {
			case before.Final:
				j.end(textRunOver, content.Blocks{}, nil)
			case tool == nil || effectOf(tool) == executor.EffectUnknown:
				j.end(textUnknown, content.Blocks{}, nil)
			default:
				j.start(ctx, m.worker(true), tool, true)
			}
			m.jobs[w.Call] = j
		}
		m.paused = slices.DeleteFunc(m.paused, func(p *job) bool { return p == j })
		r.open = append(r.open, j)
	}
	return r
}

// worker returns the agent that executes work. With decides, it has the hooks that decide about a call.
func (m *manager) worker(decides bool) executor.Agent {
	a := executor.Agent{ToolTimeout: -1, Grace: m.agent.Grace, HideErrors: m.agent.HideErrors, Log: m.agent.Log}
	for _, h := range m.agent.Hooks {
		own := executor.Hook{After: h.After}
		if decides {
			own.Prepare, own.Before = h.Prepare, h.Before
		}
		a.Hooks = append(a.Hooks, own)
	}
	return a
}

// start starts the work that an execution holds.
func (m *manager) start(r *run, e node.ToolExecution) {
	id := lineage.WorkID(e)
	if id == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range r.begun {
		if b.ID == id && b.ctx != nil {
			b.Started = e.Started
			j := newJob(b.Work)
			j.start(b.ctx, m.worker(false), m.tools[b.Tool], false)
			m.jobs[b.Call] = j
			r.open = append(r.open, j)
		}
	}
	slices.SortFunc(r.open, func(a, b *job) int { return cmp.Compare(a.ID, b.ID) })
}

// end ends a run. Its open work is stopped, unless it pauses.
func (m *manager) end(r *run, pauses bool) {
	m.mu.Lock()
	stopped := r.open
	if pauses {
		m.paused = append(m.paused, r.open...)
		stopped = slices.Clone(m.paused[:max(len(m.paused)-maxPaused, 0)])
		m.paused = slices.Delete(m.paused, 0, len(stopped))
	}
	for _, j := range stopped {
		delete(m.jobs, j.Call)
	}
	m.mu.Unlock()

	// All at once: the tools have the time of grace together.
	var all sync.WaitGroup
	for _, j := range stopped {
		all.Go(func() { j.stop(textRunOver, m.grace) })
	}
	all.Wait()
}

// next is the Hook.Next. It appends the results that have come since. A run that would end waits for the next one.
func (m *manager) next(ctx context.Context, turn executor.Turn) (executor.Turn, error) {
	r := m.runOf(ctx)
	if r == nil {
		return turn, nil
	}
	d, came := m.deliver(r, turn.DAG)
	if open := m.openOf(r); !came && len(open) > 0 && waits(turn.Stop) {
		if err := await(ctx, open, m.agent.Steering.Filled()); err != nil {
			return turn, err
		}
		d, came = m.deliver(r, turn.DAG)
	}

	turn.DAG = d
	if came && waits(turn.Stop) {
		turn.Stop = ""
	}
	return turn, d.Err()
}

// waits reports whether a run that would end for this reason waits for its work: the model has finished, and nobody has
// asked for an end.
func waits(stop content.Stop) bool {
	switch stop {
	case content.StopEndTurn, content.StopMaxTokens, content.StopSequence, content.StopRefusal, content.StopUnknown:
		return true
	}
	return false
}

// openOf returns the open work of a run.
func (m *manager) openOf(r *run) []*job {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(r.open)
}

// deliver appends a message for each piece of work that is done, and reports whether there was one.
func (m *manager) deliver(r *run, d dag.DAG) (dag.DAG, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := len(r.open)
	r.open = slices.DeleteFunc(r.open, func(j *job) bool {
		if !j.isDone() {
			return false
		}
		d = j.append(d)
		delete(m.jobs, j.Call)
		return true
	})
	return d, len(r.open) < before
}
