package executor

import (
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// Event is what happens in a run. It is sealed: the variants are [TurnStart], [Model], [MessageEnd], [ToolStart], [ToolEnd],
// [TurnEnd] and [End]. Their order:
//
//   - Each model call is a turn: one TurnStart, then its Model events, then one MessageEnd if the model said anything.
//   - Where the message calls tools: one ToolStart for each call, in call order, and exactly one ToolEnd for each, after its
//     ToolStart, in the order in which the calls end. A call that cannot be run at all ends before the next one starts.
//   - Then one TurnEnd, with the conversation so far: every call in it is answered.
//   - A conversation that begins with open calls has their ToolStart and ToolEnd events and a TurnEnd first, as turn 0.
//   - One End comes last, always, with the conversation; the run's error, if there is one, comes beside it.
//   - A turn that fails or is cancelled in the model call has no MessageEnd and no TurnEnd; one that is cancelled in its tools
//     has both.
//
// Less formally: events tell one story, in one order, on the goroutine of whoever ranges over them.
type Event interface{ event() }

// TurnStart says that the model is about to be asked.
type TurnStart struct {
	// Turn counts the model calls of the run, from 1.
	Turn int
	// Request is what the model is asked. It must not be changed.
	Request api.Request
}

// Model is an event of the model's answer: a piece of it, a whole block, a repair of the request, a retry, its end.
type Model struct {
	Turn  int
	Event api.Event
}

// MessageEnd says that the model's answer is part of the conversation now.
type MessageEnd struct {
	Turn int
	// Node is the assistant's message.
	Node *node.Node
}

// ToolStart says that a tool is called, with the arguments as the model wrote them.
type ToolStart struct {
	Turn int
	Call Call
}

// ToolEnd says what a tool call came to. Index, CallID, Tool and Input say which call it was.
type ToolEnd struct {
	Turn      int
	Execution node.ToolExecution
}

// TurnEnd says that a turn is over: every call of its message is answered.
type TurnEnd struct {
	Turn int
	// DAG is the conversation so far. It is valid and can be saved.
	DAG dag.DAG
}

// End is the end of the run.
type End struct {
	// DAG is the conversation, with the StopReason node at its end; the conversation as it was where the run was refused.
	DAG dag.DAG
	// Stop is why the run ended, and its totals. It is zero where the run was refused.
	Stop node.StopReason
}

func (TurnStart) event()  {}
func (Model) event()      {}
func (MessageEnd) event() {}
func (ToolStart) event()  {}
func (ToolEnd) event()    {}
func (TurnEnd) event()    {}
func (End) event()        {}
