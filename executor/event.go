package executor

import (
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// Event is something that happened in a run. It is sealed: the variants are [RunStart], [TurnStart], [Rejected],
// [MessageStart], [MessageDelta], [Repaired], [Retry], [MessageEnd], [ToolStart], [ToolUpdate], [Child], [ToolEnd],
// [TurnEnd], [Paused] and [End]. Their order:
//
//   - One RunStart comes first, and one End last, always; the run's error, if there is one, comes beside the End. A run
//     that is refused before it begins is an End alone.
//   - Each model call is a turn: one TurnStart, then a MessageStart and a MessageEnd for each message that waited in a
//     [Queue], then MessageStart and MessageEnd of the answer with its MessageDelta, Repaired and Retry events between
//     them. Where a Hook.TooLong shortened the conversation, a MessageStart and a MessageEnd of the refused request
//     come before.
//   - Where the answer calls tools: a ToolStart for each call and exactly one ToolEnd for each, after its ToolStart, if
//     the run does not pause in between.
//     Calls that run together start in call order, before any of them runs, and end in the order in which they are
//     over. A call that is not executed ends before the next one starts. ToolUpdate and Child events of a call come
//     between its start and its end, never later. Then comes the message with the results, as MessageStart and
//     MessageEnd.
//   - Then one TurnEnd, with the conversation so far: every call in it is answered.
//   - Calls that an earlier run left open are executed first, as turn 0, with its tool events, its message and its
//     TurnEnd.
//   - A Rejected comes between turns: after the RunStart or a TurnEnd.
//   - Every MessageStart has a MessageEnd, and every TurnStart a TurnEnd, also where the model failed or the run was
//     cancelled. Only a pause ends a run inside a turn: a Paused, and the End. Pending calls have no ToolStart until
//     the run is resumed, and the TurnEnd comes from the run that resumes it.
//   - A call whose sub-agent pauses has a ToolStart and no ToolEnd before the Paused; the last of its Child events are
//     the sub-agent's own Paused and End. When the sub-agent continues, the call has another ToolStart, further Child
//     events, beginning with a RunStart of the same run, and in the end its one ToolEnd. A sub-agent whose run was over
//     when the program crashed has only the End.
//   - An answer that broke off is a message like others, with what arrived of it: its MessageEnd and the TurnEnd hold
//     its node. A consumer that breaks off gets no conversation and no part of a response.
//
// Less formally: there is one timeline, on the goroutine that ranges over the events. The loop's body may add to the
// queues and cancel the run's context.
type Event interface{ event() }

// RunStart is the beginning of a run.
type RunStart struct {
	// Run is the run's id. A run that is resumed keeps it.
	Run string
	// DAG is the conversation that the run begins with.
	DAG dag.DAG
	// Unbound is the names of the tools that it declares and that nothing can run: they are left out of the requests.
	Unbound []string
}

// TurnStart is the beginning of a turn.
type TurnStart struct {
	// Turn counts the model calls of the run, from 1; over its pauses too.
	Turn int
}

// Rejected reports a message of a [Queue] that a hook rejected. It is not part of the conversation.
type Rejected struct {
	Message content.Message
	// Err is the hook's error.
	Err error
}

// MessageStart is the beginning of a message.
type MessageStart struct {
	Turn int
	// Role is the role of the message. Tool results are a message of the user.
	Role content.Role
	// Request is the request that the message answers, if it is the model's. It must not be changed.
	Request api.Request
	// Model is the name of the model that the request goes to: see [api.ModelOf]. It may be "".
	Model string
}

// MessageDelta is a piece of the model's message, for display.
type MessageDelta struct {
	Turn int
	// Event is an api.Delta, or an api.BlockEnd with a whole block.
	Event api.Event
}

// Text returns the piece of text that a program prints as it arrives: that of a delta of a text block. It is "" for
// every other piece, such as thinking or the arguments of a tool call, and for a whole block, whose text came in pieces
// before.
func (e MessageDelta) Text() string {
	if d, ok := e.Event.(api.Delta); ok && d.Kind == api.DeltaText {
		return d.Text
	}
	return ""
}

// Repaired lists how a request was changed to keep the provider's rules.
type Repaired struct {
	Turn    int
	Repairs []api.RepairNote
}

// Retry reports that a request failed and will be sent again. The MessageDelta events until now are void, and nothing
// of them is kept; the tokens of the failed call (Cut.Usage) count in the run's totals.
type Retry struct {
	Turn int
	api.Retry
}

// MessageEnd reports that a message is part of the conversation now.
type MessageEnd struct {
	Turn int
	// Node is the message. An answer that broke off is one too: its Answer.Stop is content.StopCut. It is nil where
	// nothing arrived.
	Node *node.Node
}

// ToolStart is the beginning of a tool call.
type ToolStart struct {
	Turn int
	// Call is the call as the model made it.
	Call Call
	// Ran is the call as it is executed. It is Call where no hook and no repair changed it.
	Ran Call
	// Repair is how the arguments were repaired because they were no JSON object; "" if they were one.
	Repair string
	// Repeated reports that the call was started before, and that the program ended before it had the result. The
	// ToolEnd's Execution.State reports whether it stays in doubt.
	Repeated bool
}

// ToolUpdate is what a tool reported by [Progress].
type ToolUpdate struct {
	Turn int
	// Call is the call as the model made it, as in the call's ToolStart.
	Call    Call
	Content content.Blocks
}

// Child is an event of a run inside a tool call: of a sub-agent.
type Child struct {
	Turn int
	// Path is the calls that lead to the run: one of this run's, one of its sub-agent's, and so on. Each is as the
	// model made it, as in its ToolStart.
	Path  []Call
	Event Event
}

// ToolEnd is the end of a tool call. Index, CallID, Tool and Input of the execution identify the call. Its Result, a
// content.Blocks, is what the model reads, and IsError reports whether the call failed.
type ToolEnd struct {
	Turn      int
	Execution node.ToolExecution
}

// TurnEnd is the end of a turn: every call of its message has a result.
type TurnEnd struct {
	Turn int
	// Message is the model's response, or the part of it that arrived; nil if that is empty.
	Message *node.Node
	// Executions is the executions of its calls, in call order.
	Executions []node.ToolExecution
	// Usage is what the model call took, failed attempts included unless the turn paused since, and ToolUsage what
	// tools took themselves.
	Usage, ToolUsage content.Usage
	// DAG is the conversation so far. It is valid and can be saved.
	DAG dag.DAG
}

// Paused reports that calls are pending: see [Continuation].
type Paused struct {
	Continuation Continuation
}

// End is the end of the run.
type End struct {
	// DAG is the conversation, with the StopReason node at its end. Where the run paused, its calls are open and there
	// is no such node; where it was refused, it is the conversation as it was, without the chain's error
	// (dag.DAG.WithoutErr).
	DAG dag.DAG
	// Stop is why the run ended, and its totals. It is zero where the run was refused.
	Stop node.StopReason
}

func (RunStart) event()     {}
func (TurnStart) event()    {}
func (Rejected) event()     {}
func (MessageStart) event() {}
func (MessageDelta) event() {}
func (Repaired) event()     {}
func (Retry) event()        {}
func (MessageEnd) event()   {}
func (ToolStart) event()    {}
func (ToolUpdate) event()   {}
func (Child) event()        {}
func (ToolEnd) event()      {}
func (TurnEnd) event()      {}
func (Paused) event()       {}
func (End) event()          {}
