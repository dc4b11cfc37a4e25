// Package shared gives other packages some functions of package dag that make fewer copies. Programs cannot use them.
//
// The public dag.DAG.Transcript copies, because a program may change the returned slices. A run reads the transcript at
// each turn, and a copy at each turn would be quadratic. The public dag.DAG.CloseTools takes executions as values, of
// 264 bytes each, and a run has made payloads of them already.
package shared

import (
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/lineage"
	"github.com/plait-dev/plait/node"
)

// Transcript is a transcript as dag.Transcript describes it. Its slices are shared and must not be changed; appending
// to one copies it.
type Transcript struct {
	System   []string
	Tools    []content.Tool
	Messages []content.Message
	Nodes    []*node.Node
	Facts
}

// Facts are facts about a transcript beside its messages.
type Facts interface {
	// Summary returns the compaction with message i as its summary, or false if the message comes from Nodes[i] itself.
	Summary(i int) (node.ID, bool)
	// Seen returns dag.DAG.Seen; with goOn, that of the conversation with the message content.GoOn at its end.
	Seen(goOn bool) node.Seen
	// Sum returns the sum of count over the messages. It calls count only for new messages since the last Sum with the
	// key. Count must be additive, and always the same for a key. With a nil key nothing is remembered.
	Sum(key any, count func([]content.Message) int) int
}

// Of returns the transcript of the conversation with the given heads, for a model without the named tools. Thinking is
// checked against this transcript. The cost is proportional to the number of nodes since the last call for an ancestor,
// as long as the caller keeps the earlier Transcript or a later one. Package dag sets Of.
var Of func(heads []*node.Node, without ...string) Transcript

// OpenAt returns what is open at the heads of a *dag.DAG. It copies nothing after dag.DAG.AppendExecutions, which keeps the
// open phase with the conversation. Package dag sets OpenAt.
var OpenAt func(d any) lineage.Open

// Rewind gives a *dag.DAG the heads of another one, as dag.DAG.WithHeads does, without a copy. Package dag sets Rewind.
var Rewind func(d, to any)

// CloseTools is dag.DAG.CloseTools for an open tool phase of a *dag.DAG, whose head is then the message with the results.
// Each of the executions is a node.ToolExecution; its CallID, Tool and Input are taken from the model's call. After an
// error the DAG is unchanged. Package dag sets CloseTools.
var CloseTools func(d any, open lineage.Phase, executions []node.Payload) error

// OpenCall is a call without a result.
type OpenCall struct {
	Caller  *node.Node // the message with the call
	Index   int        // of the call's block in the message
	Use     content.ToolUse
	Started *node.Node // the execution without a result; nil for none
}

// OpenCalls returns the open calls at the heads, and in the conversations of paused sub-agents. The call of a paused
// sub-agent precedes the calls in its conversation. Package dag sets OpenCalls.
var OpenCalls func(heads []*node.Node) []OpenCall

// Waiting returns how many calls of each message OpenCalls returns, by the message's ID.
func Waiting(heads []*node.Node) map[node.ID]int {
	waiting := map[node.ID]int{}
	for _, c := range OpenCalls(heads) {
		waiting[c.Caller.ID()]++
	}
	return waiting
}
