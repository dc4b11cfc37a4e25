package background

import (
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

// job is work that this process executes, or the outcome of work that it does not.
type job struct {
	Work
	cancel context.CancelFunc // nil if the work is not executed here
	done   chan struct{}      // closed when there is an outcome
	left   chan struct{}      // closed when the tool has returned

	mu      sync.Mutex     // guards the fields below until done is closed
	stopped string         // the outcome of work that is being stopped, or ""
	text    string         // one of the texts of outcomes
	found   content.Blocks // the result or error, if any
	child   []*node.Node   // the heads of the conversation of a sub-agent
}

func newJob(w Work) *job { return &job{Work: w, done: make(chan struct{}), left: make(chan struct{})} }

// end sets the outcome, unless there is one.
func (j *job) end(text string, found content.Blocks, child []*node.Node) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.isDone():
		return
	case j.stopped != "":
		text, found = j.stopped, content.Blocks{}
	}
	j.text, j.found, j.child = text, found, child
	close(j.done)
}

// stop cancels the work with an outcome, unless it has one. The tool has the time of grace to return: until then the
// conversation of a sub-agent is not complete.
func (j *job) stop(text string, grace time.Duration) {
	j.mu.Lock()
	j.stopped = text
	j.mu.Unlock()
	if j.cancel != nil {
		j.cancel()
		late := time.NewTimer(max(grace, 0))
		defer late.Stop()
		select {
		case <-j.left:
		case <-late.C:
		}
	}
	j.end(text, content.Blocks{}, nil)
}

// isDone reports whether there is an outcome.
func (j *job) isDone() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// The texts of the outcomes. Each follows the label of the work.
const (
	textDone    = " is done. The result of the tool, not a message of the user:"
	textNothing = " is done. It returned nothing."
	textFailed  = " failed. The error of the tool, not a message of the user:"
	textStopped = " was stopped."
	textRunOver = " was stopped, because the run that started it had ended."
	textUnknown = " is lost. " + content.OutcomeUnknown
)

// start executes the work with the tool, as executor.Agent.Work does. With again, it was started before, by a program
// that has ended: the hooks of the agent decide about the call of the model once more.
func (j *job) start(ctx context.Context, agent executor.Agent, tool executor.Tool, again bool) {
	ctx, j.cancel = context.WithCancel(context.WithoutCancel(ctx))
	call := dag.Call{Name: j.Tool, Input: j.Input, Message: j.Call.Message, Index: j.Call.Index}
	if again {
		call.Name, call.Input = j.asked.Name, j.asked.Input
	}
	own := &once{Tool: tool, input: j.Input}
	agent.Tools = []dag.Tool{own}
	agent.Hooks = append(slices.Clip(agent.Hooks), executor.Hook{After: own.keepChild})

	go func() {
		defer close(j.left)
		defer j.cancel()
		reply, _ := agent.Work(ctx, dag.Pending{Key: j.Call, Tool: j.asked.Name, Input: j.asked.Input, Call: call})
		called, child := own.outcome()
		switch found := reply.Result().Content; {
		case !called && again:
			j.end(textUnknown, content.Blocks{}, nil)
		case reply.Result().IsError:
			j.end(textFailed, found, child)
		case found.Len() == 0:
			j.end(textNothing, found, child)
		default:
			j.end(textDone, found, child)
		}
	}()
}

// append appends the message that ends the work.
func (j *job) append(d dag.DAG) dag.DAG {
	if len(j.child) > 0 {
		d = d.Append(node.SubGraph{Title: j.Tool, Heads: node.ListOf(j.child...), Summary: j.label()})
	}
	blocks := []content.Block{content.Text{Text: j.label() + j.text}}
	for _, b := range j.found.All() {
		blocks = append(blocks, b)
	}
	made, err := content.Of(blocks...)
	if err != nil {
		made = content.Words(j.label() + " failed: " + err.Error())
	}
	meta, _ := node.Meta{}.With(lineage.WorkKey, j.Call.String()) // a string can be encoded
	return d.AppendMeta(node.Message{Role: content.User, Blocks: made}, meta)
}

// once is the tool of a job. It refuses other arguments than those that were started, and notes what happens.
type once struct {
	executor.Tool
	input content.JSON

	mu     sync.Mutex // the tool may return after it was given up
	called bool
	child  []*node.Node
}

// Unwrap returns the tool.
func (t *once) Unwrap() executor.Tool { return t.Tool }

// Call implements executor.Tool.
func (t *once) Call(ctx context.Context, call executor.Call) (executor.Result, error) {
	if call.Input.Canonical() != t.input.Canonical() {
		return executor.Result{}, errors.New("the arguments are not those of the call that was started")
	}
	t.mu.Lock()
	t.called = true
	t.mu.Unlock()
	return t.Tool.Call(ctx, call)
}

// keepChild is a Hook.After that keeps the conversation of a sub-agent. An executor.Reply has none.
func (t *once) keepChild(_ context.Context, _ executor.Call, result executor.Result) (executor.Result, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.child = result.Child.Heads()
	return result, nil
}

func (t *once) outcome() (called bool, child []*node.Node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.called, t.child
}
