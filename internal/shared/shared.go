// Package shared gives package executor the transcripts of package dag without a copy. The public dag.DAG.Transcript copies, so that a
// program may change what it gets; a run reads the transcript at each turn, and a copy at each turn would be quadratic.
package shared

import (
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
)

// Transcript is a transcript, as dag.Transcript describes it. Its slices are shared and must not be changed; appending to one copies it.
type Transcript struct {
	System   []string
	Tools    []content.Tool
	Messages []content.Message
	Nodes    []*node.Node

	// Summary returns the compaction whose summary message i is; false where the message is Nodes[i]'s own.
	Summary func(i int) (node.ID, bool)
	// Seen returns dag.Transcript.Seen with the messages appended.
	Seen func(after ...content.Message) node.Digest
	// Sum returns the sum of count over the messages, asked about those that are new since the last Sum for the key. Count must be
	// additive, and always the same for a key. A nil key remembers nothing.
	Sum func(key any, count func([]content.Message) int) int
}

// Of returns the transcript of the conversation that ends in the heads, without the tools with these names: what a model sees that is sent
// none of them. Thinking is held against that. It costs no more than the nodes that are new since it was last asked
// about one of their ancestors, as long as that Transcript, or one that goes on from it, is kept. Package dag sets it.
var Of func(heads []*node.Node, without ...string) Transcript
