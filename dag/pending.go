package dag

import (
	"cmp"
	"slices"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/lineage"
	"github.com/plait-dev/plait/node"
)

// Pending is a call that waits for somebody: for a person's approval, or for its result from outside. It is an
// unfinished execution at a head. A person is shown Call, Tool and Note; package executor makes replies from it.
//
// What a conversation says about a pending call is a claim of its writer. A program that executes a call does so
// because of a job or a reply, not because of a Pending.
type Pending struct {
	// Key identifies the call.
	Key node.CallKey
	// Call is the call to execute, after all hooks.
	Call Call
	// Tool is the tool's name, and Input the arguments, as the model wrote them.
	Tool  string
	Input content.JSON
	// Approval reports that a person has to approve the call.
	Approval bool
	// Deferred reports that the call is executed outside the run. With Approval, the run pauses again for its result
	// once it is approved.
	Deferred bool
	// Note is the reason given by a hook; it may be empty.
	Note string
	// Started is the time at which the call was started without getting its result: by a worker that executes it
	// elsewhere, or by an earlier run. Such a call is in doubt. It is zero for every other call.
	Started time.Time
	// Path leads to the sub-agent with the call: the calls of the sub-agents on the way, the outermost first. It is
	// empty for a call of the conversation itself.
	Path []node.CallKey
}

// Pending returns the calls that wait for somebody, at every head and at any depth inside paused sub-agents. They are in
// the order of the heads, and the calls of a message in call order; those of a sub-agent stand in place of its own call.
// An open call without an execution is not pending: the next run decides about it. It takes time in proportion to the
// open calls.
func (d DAG) Pending() []Pending {
	var list []Pending
	for w := range lineage.Pending(d.open().Phases) {
		list = append(list, PendingOf(w.Node, w.Path...))
	}
	return list
}

// PendingOf returns the unfinished execution n as a pending call. path leads to the sub-agent around it.
func PendingOf(n *node.Node, path ...node.CallKey) Pending {
	e, _ := n.Payload().(node.ToolExecution)
	key, _ := n.Call()
	input := cmp.Or(e.Ran.Input, e.Input)
	if input == "" || input == "null" {
		input = "{}" // a model may write none; a tool gets an object
	}
	return Pending{
		Key: key, Tool: e.Tool, Input: e.Input, Note: e.Note, Path: slices.Clone(path), Started: e.Started,
		Call: Call{
			Name: cmp.Or(e.Ran.Tool, e.Tool), Input: input, Message: key.Message, Index: key.Index, ID: e.CallID,
		},
		Approval: e.State == node.ExecutionAwaitingApproval,
		Deferred: e.State == node.ExecutionAwaitingResults || e.Deferred,
	}
}
