package dag

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/blockcodec"
	"github.com/plait-dev/plait/internal/memo"
	"github.com/plait-dev/plait/internal/shared"
	"github.com/plait-dev/plait/node"
)

// phase is an open tool phase: the message with the calls, and the executions at the heads.
type phase struct {
	caller *node.Node      // the message of the assistant
	calls  []content.Block // each a content.ToolUse

	// By call; nil for a call without one. A call in done is not in started.
	done    []*node.Node // executions with a result
	started []*node.Node // executions without a result

	spare []*node.Node // executions of no call, or further ones of a call in done
}

// openPhase returns the open tool phase at the heads: the only head is a message of the assistant with calls, or all
// heads are executions of one message.
func (d DAG) openPhase() (phase, bool) {
	var p phase

	// All heads must belong to one caller, or they are branches and not a fan.
	for _, h := range d.heads {
		caller := callerOf(h)
		if p.caller != nil && p.caller.ID() != caller.ID() {
			return phase{}, false
		}
		p.caller = caller
	}
	if p.caller == nil {
		return phase{}, false
	}

	m, ok := p.caller.Message()
	if !ok || m.Role != content.Assistant {
		return p, false
	}
	p.calls = callBlocks(m.Blocks)
	slots := make([]*node.Node, 2*len(p.calls))
	p.done, p.started = slots[:len(p.calls):len(p.calls)], slots[len(p.calls):]
	if len(d.heads) == 1 && p.caller == d.heads[0] {
		return p, len(p.calls) > 0 // no call was executed yet
	}

	// Sort the executions at the heads into the slots of their calls.
	calls := callsByID{calls: m.Blocks.ToolUses()}
	for _, h := range d.heads {
		e, ok := h.Payload().(node.ToolExecution)
		if !ok {
			continue
		}
		switch i := calls.of(e); {
		case i >= 0 && isUnfinished(h):
			p.started[i] = h // two starts of a call are no more than one
		case i >= 0 && p.done[i] == nil:
			p.done[i] = h
		default:
			p.spare = append(p.spare, h)
		}
	}

	// A call with a result is no longer in doubt, even if its start is a head too.
	for i := range p.calls {
		if p.done[i] != nil {
			p.started[i] = nil
		}
	}
	return p, len(p.calls) > 0
}

// callBlocks returns the tool calls among blocks. Unlike content.Blocks.ToolUses it does not copy them, because a phase
// is opened several times.
func callBlocks(blocks content.Blocks) []content.Block {
	calls := make([]content.Block, 0, blocks.Len())
	for _, b := range blocks.All() {
		if _, is := b.(content.ToolUse); is {
			calls = append(calls, b)
		}
	}
	return calls
}

// call returns the tool call with an index.
func (p phase) call(i int) content.ToolUse { return p.calls[i].(content.ToolUse) }

// callerOf returns the message with the calls of the head h: the parent of an execution, and h itself for any other
// node.
func callerOf(h *node.Node) *node.Node {
	if h.NumParents() == 1 && isExecution(h) {
		return h.Parent(0)
	}
	return h
}

// byCaller groups heads by their callerOf. It returns the callers in the order of their first heads, and the heads by
// the caller's ID.
func byCaller(heads []*node.Node) (callers []*node.Node, phases map[node.ID][]*node.Node) {
	phases = map[node.ID][]*node.Node{}
	for _, h := range heads {
		caller := callerOf(h)
		if phases[caller.ID()] == nil {
			callers = append(callers, caller)
		}
		phases[caller.ID()] = append(phases[caller.ID()], h)
	}
	return callers, phases
}

func isExecution(n *node.Node) bool {
	_, ok := n.Payload().(node.ToolExecution)
	return ok
}

// isUnfinished reports whether n is an execution without a result: its call was started, or its sub-agent is paused.
func isUnfinished(n *node.Node) bool {
	e, ok := n.Payload().(node.ToolExecution)
	return ok && e.State.Unfinished()
}

// callsByID holds the calls of a message, with an index by call ID.
type callsByID struct {
	calls []content.ToolUse

	once  sync.Once
	first map[string]int // index of the first call with each ID; made by once
}

// callsKey is the key under which a message's blocks remember callsOf.
type callsKey struct{}

// callsOf returns the calls of a message. They are remembered with the blocks, because each execution of the message
// needs them.
func callsOf(blocks content.Blocks) *callsByID {
	if calls, ok := memo.OfBlocks(blocks).Get(callsKey{}).(*callsByID); ok {
		return calls
	}
	calls := &callsByID{calls: blocks.ToolUses()}
	memo.OfBlocks(blocks).Put(callsKey{}, calls)
	return calls
}

// of returns the index of the call executed by e: the call at e.Index or, if CallID does not match, the first call with
// that ID. It returns -1 if there is none.
func (c *callsByID) of(e node.ToolExecution) int {
	if e.Index >= 0 && e.Index < len(c.calls) && (e.CallID == "" || e.CallID == c.calls[e.Index].ID) {
		return e.Index
	}
	if e.CallID == "" {
		return -1
	}

	// Most executions have the right index, so the map is made for the first one that has not. Going backward, the
	// first call with an ID is set last and counts.
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

// Call is one tool call of an assistant's message, with its index among the message's calls. Package executor passes
// the same type to tools, hooks and observers.
type Call struct {
	// Name is the tool's name.
	Name string
	// Input holds the arguments. In a call of [DAG.OpenCalls] they are as the model wrote them. In package executor
	// they are a JSON object, {} if the model wrote none.
	Input content.JSON
	// Index is the index of the call among the calls of its message.
	Index int
	// ID is the provider's ID of the call. It may be empty or used twice; Index is unique.
	ID string
}

// OpenCalls returns the tool calls at the head without a result, in call order. In a partly executed tool phase, these
// are the calls without an execution, or with an unfinished one (node.ExecutionState.Unfinished). A call is open only
// until another node follows; then [DAG.Validate] reports it.
func (d DAG) OpenCalls() []Call {
	// The usual head is a message: no execution has to be matched with its calls.
	if h := d.Head(); h != nil && !isExecution(h) {
		return callsIn(h)
	}
	p, ok := d.openPhase()
	if !ok {
		return nil
	}

	open := make([]Call, 0, len(p.calls))
	for i := range p.calls {
		if p.done[i] == nil {
			open = append(open, callOf(p.call(i), i))
		}
	}
	if len(open) == 0 {
		return nil
	}
	return open
}

// callsIn returns the tool calls of n, a head without executions. It returns nil unless n is a message of the
// assistant.
func callsIn(n *node.Node) []Call {
	m, _ := n.Message()
	if m.Role != content.Assistant {
		return nil
	}

	var calls []Call
	for i, b := range m.Blocks.All() {
		if use, is := b.(content.ToolUse); is {
			if calls == nil {
				// At most all remaining blocks are calls.
				calls = make([]Call, 0, m.Blocks.Len()-i)
			}
			calls = append(calls, callOf(use, len(calls)))
		}
	}
	return calls
}

func callOf(use content.ToolUse, index int) Call {
	return Call{Name: use.Name, Input: use.Input, Index: index, ID: use.ID}
}

// CloseTools ends the tool phase at the head. It appends each execution as a child of the assistant's message, and
// after them one message with every result in call order.
//
// Index selects the call of an execution. CallID, Tool and Input are taken from the call. A call without an execution
// gets an error result with the text content.NoResult, so that no call stays open. For a started call
// (node.ExecutionStarted) the text is content.OutcomeUnknown, and the execution is marked as in doubt.
//
// Errors of the chain: ErrNoCalls if no call is open, and for an execution whose Index is out of range or used twice.
func (d DAG) CloseTools(executions ...node.ToolExecution) DAG {
	if d.err != nil {
		return d
	}
	n, err := closeTools(d.Source(), d.heads, payloadsOf(executions))
	if err != nil {
		return d.fail("CloseTools", err)
	}
	d.heads = alone(n)
	return d
}

func init() {
	shared.CloseTools = func(src node.Source, heads []*node.Node, executions []node.Payload) (*node.Node, error) {
		n, err := closeTools(src, heads, executions)
		if err != nil {
			return nil, &BuildError{Step: "CloseTools", Err: err}
		}
		return n, nil
	}
}

// payloadsOf returns executions as payloads.
func payloadsOf(executions []node.ToolExecution) []node.Payload {
	payloads := make([]node.Payload, len(executions))
	for i, e := range executions {
		payloads[i] = e
	}
	return payloads
}

// closeTools executes the open phase at the heads and returns the message with the results. Each of the executions is a
// node.ToolExecution.
func closeTools(src node.Source, heads []*node.Node, executions []node.Payload) (*node.Node, error) {
	p, err := DAG{heads: heads}.executed(src, executions)
	if err != nil {
		return nil, err
	}

	// Each call gets a result, in the order of the calls: APIs refuse a call without one.
	results := make([]content.Block, len(p.calls))
	for i := range p.calls {
		if p.done[i] == nil {
			if err := p.execute(src, i, p.missing(i)); err != nil {
				return nil, err
			}
		}
		result := p.done[i].Payload().(node.ToolExecution).Answer()
		result.CallID = p.call(i).ID
		results[i] = result
	}

	// The results come from nodes and the IDs from a message, so both are valid and not checked again.
	message := node.Message{Role: content.User, Blocks: blockList(results)}
	return node.New(src, message, node.Meta{}, p.heads()...)
}

// blockList returns a list of blocks without checking them.
var blockList = blockcodec.List.(func([]content.Block) content.Blocks)

// AppendExecutions appends each execution as a child of the assistant's message at the head, as [DAG.CloseTools] does,
// and leaves the tool phase open. It is for results that arrive one by one, in several runs or from outside.
//
// The heads are then the executions so far, in call order. Once every call has an execution, CloseTools without
// arguments appends the results message. Without executions, AppendExecutions returns d. The errors are those of
// CloseTools.
//
// The state node.ExecutionStarted records that the call is about to be executed. The states
// node.ExecutionAwaitingApproval and node.ExecutionAwaitingResults record that its sub-agent is paused. In these states
// the call stays open, and its next execution replaces this one as a head. The next one takes over the Child unless it
// has its own.
func (d DAG) AppendExecutions(executions ...node.ToolExecution) DAG {
	if d.err != nil || len(executions) == 0 {
		return d
	}
	p, err := d.executed(d.Source(), payloadsOf(executions))
	if err != nil {
		return d.fail("AppendExecutions", err)
	}
	return d.WithHeads(p.heads()...)
}

// executed returns the open phase with the executions of its calls added.
func (d DAG) executed(src node.Source, executions []node.Payload) (phase, error) {
	p, ok := d.openPhase()
	if !ok {
		return phase{}, ErrNoCalls
	}

	for _, e := range executions {
		// A started call may get an execution, but a call with a result gets no second one.
		index := e.(node.ToolExecution).Index
		switch {
		case index < 0 || index >= len(p.calls):
			return phase{}, fmt.Errorf("%w %d: the message has %s, counted from 0", ErrNoCalls, index, count(len(p.calls), "call"))
		case p.done[index] != nil:
			return phase{}, fmt.Errorf("%w %d: it has an execution already", ErrNoCalls, index)
		}
		if err := p.execute(src, index, e); err != nil {
			return phase{}, err
		}
	}
	return p, nil
}

// missing returns an execution with an error result for a call without a result.
func (p phase) missing(i int) node.ToolExecution {
	var e node.ToolExecution
	if p.started[i] != nil {
		e = p.started[i].Payload().(node.ToolExecution)
	}

	// Only a started call is in doubt. A paused one keeps the executed call and the usage so far.
	if e.State != node.ExecutionStarted {
		return node.ToolExecution{Index: i, Result: content.Words(content.NoResult), IsError: true, Ran: e.Ran, Usage: e.Usage}
	}
	return node.ToolExecution{
		Index: i, State: node.ExecutionInDoubt, Result: content.Words(content.OutcomeUnknown), IsError: true,
		Started: e.Started, Ran: e.Ran,
	}
}

// heads returns the executions so far: first those of the calls in call order, then the spare ones.
func (p phase) heads() []*node.Node {
	heads := make([]*node.Node, 0, len(p.calls)+len(p.spare))
	for i := range p.calls {
		if n := cmp.Or(p.done[i], p.started[i]); n != nil {
			heads = append(heads, n)
		}
	}
	return append(heads, p.spare...)
}

// execute adds a node for an execution of the call with that index.
func (p phase) execute(src node.Source, index int, execution node.Payload) error {
	call, given := p.call(index), execution.(node.ToolExecution)
	e := given
	e.CallID, e.Tool, e.Input = call.ID, call.Name, call.Input
	if before := p.started[index]; before != nil && e.Child.Len() == 0 {
		e.Child = before.Children() // the conversation of a paused sub-agent must not be lost
	}

	// If nothing was changed, use the payload as it is: making a new one allocates.
	if e != given {
		execution = e
	}

	n, err := node.New(src, execution, node.Meta{}, p.caller)

	// An execution without a result leaves the call open, and replaces an earlier one of this kind.
	if err == nil && isUnfinished(n) {
		p.started[index] = n
		return nil
	}
	p.done[index], p.started[index] = n, nil
	return err
}

// resultOf returns the tool result of the execution n. An execution appended by hand may have only an Index: its result
// gets the ID of the call at that index.
func resultOf(n *node.Node) content.ToolResult {
	e := n.Payload().(node.ToolExecution)
	result := e.Answer()

	// A start is sent only if no result can follow any more: see view.inDoubt.
	if e.State == node.ExecutionStarted {
		result.Content, result.IsError = content.Words(content.OutcomeUnknown), true
	}
	if e.CallID != "" || n.NumParents() != 1 {
		return result
	}

	m, _ := n.Parent(0).Message()
	if calls := callsOf(m.Blocks).calls; e.Index >= 0 && e.Index < len(calls) {
		result.CallID = calls[e.Index].ID
	}
	return result
}
