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
//   - One RunStart comes first, and one End last, always. The run's error comes beside the End. A run that is refused
//     before it begins has only an End.
//   - Each request is a turn. It begins with one TurnStart. A MessageStart and a MessageEnd follow for each message
//     from a [Queue], then MessageStart and MessageEnd of the response, with MessageDelta, Repaired and Retry events
//     between them. If a Hook.TooLong shortened the conversation, a MessageStart and a MessageEnd of the refused
//     request come before.
//   - If the response has calls, each call has a ToolStart and, unless the run pauses in between, exactly one ToolEnd
//     after it. Calls that run together start in call order, before any of them runs, and end in the order in which
//     they finish. A call that is not executed ends before the next one starts. ToolUpdate and Child events of a call
//     come between its start and its end, never later. Then comes the message with the results, as MessageStart and
//     MessageEnd.
//   - Then one TurnEnd, with the conversation so far. Every call in it has its result.
//   - Calls that an earlier run left open are executed first, as turn 0, with its tool events, its message and its
//     TurnEnd.
//   - A Rejected comes between turns: after the RunStart or a TurnEnd.
//   - Every MessageStart has a MessageEnd, and every TurnStart a TurnEnd, even if the model fails or the run is
//     cancelled. Only a pause ends a run inside a turn: with a Paused, and the End. Pending calls have no ToolStart
//     until the run is resumed, and the TurnEnd comes from the resumed run.
//   - If a sub-agent pauses, its call has a ToolStart and no ToolEnd before the Paused. The last of its Child events
//     are the sub-agent's own Paused and End. When the sub-agent continues, the call has another ToolStart, further
//     Child events, beginning with a RunStart of the same run, and finally its one ToolEnd. If the sub-agent's run was
//     over when the program crashed, there is only the End.
//   - A response that broke off is a message like any other, with the part that arrived: its MessageEnd and the TurnEnd
//     hold its node. A consumer that breaks off gets no conversation and no part of a response.
//
// Less formally: there is one timeline, on the goroutine that ranges over the events. The loop's body may add to the
// queues and cancel the run's context.
type Event interface{ event() }

// RunStart is the beginning of a run.
type RunStart struct {
	// Run is the run's ID. A resumed run keeps it.
	Run string
	// DAG is the conversation that the run begins with.
	DAG dag.DAG
	// Unbound lists the names of declared tools without a function. They are left out of the requests.
	Unbound []string
}

// TurnStart is the beginning of a turn.
type TurnStart struct {
	// Turn counts the requests of the run, from 1, including those before its pauses.
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
	// Request is the request for a message of the model, and otherwise zero. It must not be changed.
	Request api.Request
	// Model is the name of the requested model: see [api.ModelOf]. It may be "".
	Model string
}

// MessageDelta is a piece of the model's message, for display.
type MessageDelta struct {
	Turn int
	// Event is an api.Delta, or an api.BlockEnd with a whole block.
	Event api.Event
}

// Text returns the text of a delta of a text block, for printing it as it arrives. It returns "" for every other piece,
// such as thinking or the arguments of a tool call. It also returns "" for a whole block, because its text came in
// pieces before.
func (e MessageDelta) Text() string {
	if d, ok := e.Event.(api.Delta); ok && d.Kind == api.DeltaText {
		return d.Text
	}
	return ""
}

// Repaired lists the changes made to a request to comply with the provider's rules.
type Repaired struct {
	Turn    int
	Repairs []api.RepairNote
}

// Retry reports that a request failed and will be sent again. The MessageDelta events of the failed request are void,
// and nothing of them is kept. Its tokens (Cut.Usage) count in the run's totals.
type Retry struct {
	Turn int
	api.Retry
}

// MessageEnd reports that a message is part of the conversation now.
type MessageEnd struct {
	Turn int
	// Node is the message; nil if nothing arrived. For a response that broke off, its Answer.Stop is content.StopCut.
	Node *node.Node
}

// ToolStart is the beginning of a tool call.
type ToolStart struct {
	Turn int
	// Call is the call as the model made it.
	Call Call
	// Ran is the call as it is executed. It equals Call if no hook and no repair changed it.
	Ran Call
	// Repair describes the repair of arguments that were not a JSON object; "" if there was none.
	Repair string
	// Repeated reports that the call was started before, and that the program ended before it had the result. The
	// ToolEnd's Execution.State reports whether it stays in doubt.
	Repeated bool
}

// ToolUpdate is a tool's progress, as reported by [Progress].
type ToolUpdate struct {
	Turn int
	// Call is the call as the model made it, as in the call's ToolStart.
	Call    Call
	Content content.Blocks
}

// Child is an event of a run inside a tool call: of a sub-agent.
type Child struct {
	Turn int
	// Path leads to the inner run: a call of this run, a call of its sub-agent, and so on. Each is the call as the
	// model made it, as in its ToolStart.
	Path  []Call
	Event Event
}

// ToolEnd is the end of a tool call. Index, CallID, Tool and Input of the execution identify the call. The model reads
// its Result, a content.Blocks. IsError reports whether the call failed.
type ToolEnd struct {
	Turn      int
	Execution node.ToolExecution
}

// TurnEnd is the end of a turn: every call of its message has a result.
type TurnEnd struct {
	Turn int
	// Message is the model's response, or the part of it that arrived; nil if that is empty.
	Message *node.Node
	// Executions lists the executions of its calls, in call order.
	Executions []node.ToolExecution
	// Usage counts the tokens of the request and its response. It includes failed attempts, unless the turn has paused.
	// ToolUsage counts the tokens used by tools.
	Usage, ToolUsage content.Usage
	// DAG is the conversation so far. It is valid and can be saved.
	DAG dag.DAG
}

// Paused reports that calls are pending.
type Paused struct {
	Continuation Continuation
	// DAG is the conversation with the pending calls: see dag.DAG.Pending.
	DAG dag.DAG
}

// End is the end of the run.
type End struct {
	// DAG is the conversation, with the StopReason node at its end. After a pause, the calls are open and there is no
	// such node. After a refusal, it is the conversation as it was, without the chain's error (dag.DAG.WithoutErr).
	DAG dag.DAG
	// Stop is the run's stop reason with its totals. It is zero if the run was refused.
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
