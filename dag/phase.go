package dag

import (
	"fmt"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/blockcodec"
	"github.com/plait-dev/plait/internal/lineage"
	"github.com/plait-dev/plait/internal/shared"
	"github.com/plait-dev/plait/node"
)

// phase is an open tool phase that can be continued.
type phase struct {
	lineage.Phase
	edit  *byte // for Slots.Set; nil if no execution is added
	stays bool  // the phase stays open, so its Tally is kept
}

// open returns what is open at the heads.
func (d DAG) open() lineage.Open {
	if d.several != nil && d.several.phase.Caller != nil {
		return lineage.Open{Branches: 1, Phases: []lineage.Phase{d.several.phase}, Unclosed: true}
	}
	return lineage.OpenAt(d.heads())
}

// openPhase returns the open tool phase at the heads: the only head is a message of the assistant with calls, or all
// heads are executions of one message. Heads of several messages are branches, and have none together.
func (d DAG) openPhase() (phase, bool) {
	open := d.open()
	if open.Branches != 1 || len(open.Phases) == 0 {
		return phase{}, false
	}
	return phase{Phase: open.Phases[0], edit: new(byte)}, true
}

// isExecution reports whether n is the execution of a call.
func isExecution(n *node.Node) bool {
	_, ok := n.Payload().(node.ToolExecution)
	return ok
}

// isUnfinished reports whether n is an execution without a result: its call was started, or its sub-agent is paused.
func isUnfinished(n *node.Node) bool {
	e, ok := n.Payload().(node.ToolExecution)
	return ok && e.State.Unfinished()
}

// Call is one tool call of an assistant's message. Package executor passes the same type to tools, hooks and observers.
type Call struct {
	// Name is the tool's name.
	Name string
	// Input holds the arguments. In a call of [DAG.OpenCalls] they are as the model wrote them. In package executor
	// they are a JSON object, {} if the model wrote none.
	Input content.JSON
	// Message is the ID of the message with the call, and Index the index of the call's block in it. Together they
	// identify the call: see Key.
	Message node.ID
	Index   int
	// ID is the provider's ID of the call. It may be empty, reused or used twice.
	ID string
}

// Key returns the call's identity.
func (c Call) Key() node.CallKey { return node.CallKey{Message: c.Message, Index: c.Index} }

// OpenCalls returns the tool calls at the heads without a result, in the order of the heads, and the calls of a message
// in call order. In a partly executed tool phase, these are the calls without an execution, or with an unfinished one
// (node.ExecutionState.Unfinished). A call is open only until another node follows; then [DAG.Validate] reports it.
//
// It leaves out the calls inside paused sub-agents: [DAG.Pending] has those that wait for somebody.
func (d DAG) OpenCalls() []Call {
	// The usual head is a message: no execution has to be matched with its calls.
	if h := d.Head(); h != nil && !isExecution(h) {
		return callsIn(h)
	}

	var open []Call
	for _, p := range d.open().Phases {
		for i := range p.List {
			if p.Done(i) == nil {
				open = append(open, callOf(p.Call(i), p.Caller.ID(), p.At[i]))
			}
		}
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
			calls = append(calls, callOf(use, n.ID(), i))
		}
	}
	return calls
}

func callOf(use content.ToolUse, message node.ID, index int) Call {
	return Call{Name: use.Name, Input: use.Input, Message: message, Index: index, ID: use.ID}
}

// CloseTools ends the tool phase at the head. It appends each execution as a child of the assistant's message, and
// after them one message with every result in call order.
//
// Index selects the call of an execution: it is the index of the call's block in the message. CallID, Tool and Input are taken from the call. A call without an execution
// gets an error result with the text content.NoResult, so that no call stays open. For a started call
// (node.ExecutionStarted) the text is content.OutcomeUnknown, and the execution is marked as in doubt.
//
// Errors of the chain: no call is open, and the Index of an execution is out of range or used twice.
func (d DAG) CloseTools(executions ...node.ToolExecution) DAG {
	if d.err != nil {
		return d
	}
	p, ok := d.openPhase()
	if !ok {
		return d.fail("CloseTools", errNoCalls)
	}
	n, err := p.close(d.Source(), payloadsOf(executions))
	if err != nil {
		return d.fail("CloseTools", err)
	}
	return d.at(n)
}

func init() {
	shared.Rewind = func(d, to any) { d.(*DAG).head, d.(*DAG).several = to.(*DAG).head, to.(*DAG).several }
	shared.OpenAt = func(d any) lineage.Open { return d.(*DAG).open() }
	shared.CloseTools = func(d any, open lineage.Phase, executions []node.Payload) error {
		at := d.(*DAG)
		n, err := phase{Phase: open, edit: new(byte)}.close(at.Source(), executions)
		if err != nil {
			return &buildError{Step: "CloseTools", Err: err}
		}
		*at = at.at(n)
		return nil
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

// close adds executions to the phase and returns the message with the results. Each of the executions is a
// node.ToolExecution.
func (p phase) close(src node.Source, executions []node.Payload) (*node.Node, error) {
	if err := p.executeAll(src, executions); err != nil {
		return nil, err
	}

	// Each call gets a result, in the order of the calls: APIs refuse a call without one.
	results := make([]content.Block, len(p.List))
	for i := range p.List {
		if p.Done(i) == nil {
			if err := p.execute(src, i, p.missing(i)); err != nil {
				return nil, err
			}
		}
		result := p.Done(i).Payload().(node.ToolExecution).Answer()
		result.CallID = p.Call(i).ID
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
	p, ok := d.openPhase()
	if !ok {
		return d.fail("AppendExecutions", errNoCalls)
	}
	p.stays = true
	if err := p.executeAll(d.Source(), payloadsOf(executions)); err != nil {
		return d.fail("AppendExecutions", err)
	}
	return d.atPhase(p)
}

// executeAll adds executions of the calls. Each of them is a node.ToolExecution.
func (p *phase) executeAll(src node.Source, executions []node.Payload) error {
	for _, e := range executions {
		// A started call may get an execution, but a call with a result gets no second one.
		index := e.(node.ToolExecution).Index
		i := p.Number(index)
		switch {
		case i < 0:
			return fmt.Errorf("%w: block %d of the message is no tool call", errNoCalls, index)
		case p.Done(i) != nil:
			return fmt.Errorf("%w: call %d has its result already", errNoCalls, index)
		}
		if err := p.execute(src, i, e); err != nil {
			return err
		}
	}
	return nil
}

// missing returns an execution with an error result for a call without a result.
func (p phase) missing(i int) node.ToolExecution {
	var e node.ToolExecution
	if n := p.Executions.At(i); n != nil {
		e = n.Payload().(node.ToolExecution)
	}

	// Only a started call is in doubt, here or elsewhere. A paused one keeps the executed call and the usage so far.
	if !lineage.InDoubt(e) {
		return node.ToolExecution{
			Index: p.At[i], Result: content.Words(content.NoResult), IsError: true, Ran: e.Ran, Usage: e.Usage,
		}
	}
	return node.ToolExecution{
		Index: p.At[i], State: node.ExecutionInDoubt, Result: content.Words(content.OutcomeUnknown), IsError: true,
		Started: e.Started, Ran: e.Ran,
	}
}

// heads returns the executions so far: first those of the calls in call order, then the spare ones.
func (p phase) heads() []*node.Node {
	heads := make([]*node.Node, 0, len(p.List)+len(p.Spare))
	for i := range p.List {
		if n := p.Executions.At(i); n != nil {
			heads = append(heads, n)
		}
	}
	return append(heads, p.Spare...)
}

// execute adds a node for an execution of the call with that number, which has no result.
func (p *phase) execute(src node.Source, i int, execution node.Payload) error {
	call, given := p.Call(i), execution.(node.ToolExecution)
	e := given
	e.CallID, e.Tool, e.Input, e.Index = call.ID, call.Name, call.Input, p.At[i]
	if before := p.Executions.At(i); before != nil && e.Child.Len() == 0 {
		e.Child = before.Children() // the conversation of a paused sub-agent must not be lost
	}

	// If nothing was changed, use the payload as it is: making a new one allocates.
	if e != given {
		execution = e
	}

	n, err := node.New(src, execution, node.Meta{}, p.Caller)

	// It replaces an earlier execution without a result.
	if p.stays && err == nil {
		p.Count(p.Executions.At(i), n)
	}
	p.Executions.Set(i, n, p.edit)
	return err
}

// resultOf returns the tool result of the execution n. An execution appended by hand may have only an Index: its result
// gets the ID of the call at that index.
func resultOf(n *node.Node) content.ToolResult {
	e := n.Payload().(node.ToolExecution)
	result := e.Answer()

	// A start is sent only if no result can follow any more: see view.inDoubt.
	if e.State.Unfinished() && lineage.InDoubt(e) {
		result.Content, result.IsError = content.Words(content.OutcomeUnknown), true
	}
	if e.CallID != "" || n.NumParents() != 1 {
		return result
	}

	m, _ := n.Parent(0).Message()
	calls := lineage.CallsOf(m.Blocks)
	if i := calls.Number(e.Index); i >= 0 {
		result.CallID = calls.Call(i).ID
	}
	return result
}
