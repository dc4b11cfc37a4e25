package dag

import (
	"fmt"
	"slices"
	"sync"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
)

// phase is a tool phase that is not closed: the assistant's node, and the executions that are there already, by index.
type phase struct {
	said  *node.Node
	calls []content.ToolUse
	done  []*node.Node // the execution of each call, or nil
	spare []*node.Node // executions of no call, or of one that was executed before
}

// openPhase returns the tool phase that the heads stand in: the only head is an assistant's message with calls, or all heads
// are executions of one.
func (d DAG) openPhase() (phase, bool) {
	var p phase
	for _, h := range d.heads {
		said := h
		if h.NumParents() == 1 && isExecution(h) {
			said = h.Parent(0)
		}
		if p.said != nil && p.said.ID() != said.ID() {
			return phase{}, false
		}
		p.said = said
	}
	if p.said == nil {
		return phase{}, false
	}
	if m, ok := p.said.Message(); ok && m.Role == content.Assistant {
		p.calls = m.Blocks.ToolUses()
		p.done = make([]*node.Node, len(p.calls))
	}
	named := callsByID{calls: p.calls}
	for _, h := range d.heads {
		e, ok := h.Payload().(node.ToolExecution)
		if !ok {
			continue
		}
		if i := named.of(e); i >= 0 && p.done[i] == nil {
			p.done[i] = h
		} else {
			p.spare = append(p.spare, h)
		}
	}
	return p, len(p.calls) > 0
}

func isExecution(n *node.Node) bool {
	_, ok := n.Payload().(node.ToolExecution)
	return ok
}

// callsByID finds calls of a message.
type callsByID struct {
	calls []content.ToolUse

	once  sync.Once
	first map[string]int // the first call with each id; made when an execution does not name its call by Index
}

// callsKey is the key under which a message's blocks remember callsOf.
type callsKey struct{}

// callsOf returns the calls of a message. They are remembered with it: each of its executions may ask for them.
func callsOf(blocks content.Blocks) *callsByID {
	if calls, ok := blocks.Recall(callsKey{}).(*callsByID); ok {
		return calls
	}
	calls := &callsByID{calls: blocks.ToolUses()}
	blocks.Remember(callsKey{}, calls)
	return calls
}

// of returns which of the calls e executes: the one at its Index, unless it names another by CallID; -1 where there is none.
func (c *callsByID) of(e node.ToolExecution) int {
	if e.Index >= 0 && e.Index < len(c.calls) && (e.CallID == "" || e.CallID == c.calls[e.Index].ID) {
		return e.Index
	}
	if e.CallID == "" {
		return -1
	}

	c.once.Do(func() {
		c.first = make(map[string]int, len(c.calls))
		for i, call := range slices.Backward(c.calls) {
			c.first[call.ID] = i
		}
	})
	if i, has := c.first[e.CallID]; has {
		return i
	}
	return -1
}

// OpenCall is a tool call that waits for its result.
type OpenCall struct {
	// Index is the call's place among the calls of the assistant's message.
	Index int
	content.ToolUse
}

// OpenCalls returns the tool calls that wait for a result at the head of the conversation, in call order. After a tool phase
// that was cut in half it returns those that have no execution yet. Calls are open only while nothing else follows them: behind
// any other node they stay unanswered for good, and [DAG.Validate] reports them.
func (d DAG) OpenCalls() []OpenCall {
	p, ok := d.openPhase()
	if !ok {
		return nil
	}
	var open []OpenCall
	for i, call := range p.calls {
		if p.done[i] == nil {
			open = append(open, OpenCall{Index: i, ToolUse: call})
		}
	}
	return open
}

// CloseTools ends the tool phase at the head: it adds each execution as a child of the assistant's message, and one message
// after all of them that holds every result in call order. Index says which call an execution is of; its CallID, Tool and
// Input are taken from the call. A call that is neither given nor was executed before is answered by an error result that says
// content.NoResult, so that no call stays open. Errors: ErrNoCalls where no call is open, and an execution whose Index is no
// call's or is there twice.
func (d DAG) CloseTools(executions ...node.ToolExecution) DAG {
	if d.err != nil {
		return d
	}
	p, err := d.executed(executions)
	if err != nil {
		return d.fail("CloseTools", err)
	}
	results := make([]content.Block, len(p.calls))
	for i := range p.calls {
		if p.done[i] == nil {
			missing := node.ToolExecution{Index: i, Result: content.Words(content.NoResult), IsError: true}
			if err := p.execute(d.Source(), missing); err != nil {
				return d.fail("CloseTools", err)
			}
		}
		answer := p.done[i].Payload().(node.ToolExecution).Answer()
		answer.CallID = p.calls[i].ID
		results[i] = answer
	}
	return d.WithHeads(p.heads()...).say("CloseTools", content.User, "", results)
}

// AppendExecutions appends each execution as a child of the assistant's message at the head, as [DAG.CloseTools] does, and leaves
// the tool phase open. It is for results that arrive one by one, in several runs or from outside. The heads are then the executions
// so far, in call order. When every call has its execution, CloseTools without arguments appends the message with the results.
// Without executions d is returned unchanged. The errors are those of CloseTools.
func (d DAG) AppendExecutions(executions ...node.ToolExecution) DAG {
	if d.err != nil || len(executions) == 0 {
		return d
	}
	p, err := d.executed(executions)
	if err != nil {
		return d.fail("AppendExecutions", err)
	}
	return d.WithHeads(p.heads()...)
}

// executed returns the open phase with the executions of its calls added.
func (d DAG) executed(executions []node.ToolExecution) (phase, error) {
	p, ok := d.openPhase()
	if !ok {
		return phase{}, ErrNoCalls
	}
	for _, e := range executions {
		if e.Index < 0 || e.Index >= len(p.calls) || p.done[e.Index] != nil {
			return phase{}, fmt.Errorf("%w: execution of call %d, and the message has %d calls (each once)",
				ErrNoCalls, e.Index, len(p.calls))
		}
		if err := p.execute(d.Source(), e); err != nil {
			return phase{}, err
		}
	}
	return p, nil
}

// heads returns the executions there are: those of the calls in call order, then the spare ones.
func (p phase) heads() []*node.Node {
	heads := make([]*node.Node, 0, len(p.calls)+len(p.spare))
	for i := range p.calls {
		if p.done[i] != nil {
			heads = append(heads, p.done[i])
		}
	}
	return append(heads, p.spare...)
}

func (p phase) execute(src node.Source, e node.ToolExecution) error {
	call := p.calls[e.Index]
	e.CallID, e.Tool, e.Input = call.ID, call.Name, call.Input
	n, err := node.New(src, e, node.Meta{}, p.said)
	p.done[e.Index] = n
	return err
}

// answerOf returns the result of the execution n. One that was appended by hand and names its call by Index alone gets the
// call's id.
func answerOf(n *node.Node) content.ToolResult {
	e := n.Payload().(node.ToolExecution)
	answer := e.Answer()
	if e.CallID != "" || n.NumParents() != 1 {
		return answer
	}
	m, _ := n.Parent(0).Message()
	if calls := callsOf(m.Blocks).calls; e.Index >= 0 && e.Index < len(calls) {
		answer.CallID = calls[e.Index].ID
	}
	return answer
}
