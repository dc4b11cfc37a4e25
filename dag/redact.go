package dag

import (
	"fmt"
	"maps"

	"github.com/plait-dev/plait/internal/memo"
	"github.com/plait-dev/plait/node"
)

// Redact returns the conversation with the content of the given nodes erased. They may be nodes of the conversation, of
// its refs and of child conversations, and unreachable nodes of the file. A redacted node keeps its ID, its position,
// and the parts needed to keep the nodes around it valid and sendable. No hash of the content is kept. The same content
// in other nodes is erased too: node.Redact has the rules. [DAG.Verify] and [node.Node.Redacted] report redacted nodes.
//
// Nodes point to their parents. All nodes after a redacted one are therefore copied, with the same IDs, content and
// metadata; their lines in a file do not change. The others are shared. Redact takes time in proportion to the
// conversation, and memory in proportion to the nodes after the redacted ones. Redacting twice changes nothing.
//
// Errors of the chain: ErrForeign for an ID that is not in the conversation, and node.ErrPayload for an unknown kind. After an error
// nothing is redacted.
//
// Redact cannot erase:
//
//   - Earlier values of the conversation, and forks of them. They hold the content for as long as they are kept. A node
//     and its redacted form count as the same node, so joining both conversations may bring the content back. Saving
//     the joined conversation erases it again: a node that is redacted in either conversation is redacted in the file,
//     the journal or the store. A journal or store that holds the content already returns ErrNotErased.
//   - Files, and copies of files. A file holds the content until the conversation is saved to it again. A [Journal]
//     with the content of a redacted node refuses the conversation: use [RewriteJournal].
//   - The conversation's own metadata, names of refs, and quotations in other nodes.
//   - Data received by providers, logs and tools.
//
// If the arguments of a call were erased before it was executed, its arguments are {}. Answer such a call; do not
// execute it.
func (d DAG) Redact(ids ...node.ID) DAG {
	if d.err != nil || len(ids) == 0 {
		return d
	}

	missing := make(map[node.ID]bool, len(ids))
	named := make(map[node.ID]bool, len(ids))
	for _, id := range ids {
		missing[id], named[id] = true, true
	}

	// Check all IDs first: after an error nothing is redacted.
	nodes := d.saved()
	for _, n := range nodes {
		delete(missing, n.ID())
	}
	for _, id := range ids {
		if missing[id] {
			return d.fail("Redact", fmt.Errorf("%w: %s", ErrForeign, id))
		}
	}

	redacted, err := node.Redact(nodes, func(n *node.Node) bool { return named[n.ID()] })
	if err != nil {
		return d.fail("Redact", err)
	}
	if len(redacted) == 0 {
		return d
	}

	// Remembered values may hold the erased content.
	forget(nodes)
	return d.replaceNodes(redacted)
}

// redactAlike redacts each node that is redacted in another part of the conversation. After a join, two parts may hold
// the same node, one with its content and one redacted. A file has each node only once.
//
// It also redacts the nodes with the given IDs.
func (d DAG) redactAlike(ids ...node.ID) DAG {
	for _, n := range d.saved() {
		if !n.Redacted() {
			continue
		}

		// Skip a node that lost only a repetition of another node's content: redacting that other node has the same
		// effect, and this one keeps the rest.
		more, err := node.Redact([]*node.Node{n}, func(*node.Node) bool { return true })
		if err == nil && len(more) == 0 {
			ids = append(ids, n.ID())
		}
	}
	return d.Redact(ids...)
}

// forget drops all values remembered with the content of nodes. The encoded request of a message may hold erased
// content of earlier nodes.
func forget(nodes []*node.Node) {
	for _, n := range nodes {
		switch p := n.Payload().(type) {
		case node.Message:
			memo.OfBlocks(p.Blocks).Clear()
		case node.Compaction:
			memo.OfBlocks(p.Summary).Clear()
		}
	}
}

// replaceNodes returns the conversation with each key of replacements replaced by its value.
func (d DAG) replaceNodes(replacements map[*node.Node]*node.Node) DAG {
	replace := func(n *node.Node) *node.Node {
		if r := replacements[n]; r != nil {
			return r
		}
		return n // or nil: loose has it as a key
	}

	replaceAll := func(nodes []*node.Node) []*node.Node {
		replaced := make([]*node.Node, len(nodes))
		for i, n := range nodes {
			replaced[i] = replace(n)
		}
		return replaced
	}

	return d.atAll(replaceAll(d.heads())).change(func(e *env) {
		e.refs = refsAt(e.refs, replaceAll)

		// Remember the erased nodes: a journal with their content must refuse the conversation, also after a join.
		if e.erased = maps.Clone(e.erased); e.erased == nil {
			e.erased = map[node.ID]*node.Node{}
		}
		for _, n := range replacements {
			if n.Redacted() {
				e.erased[n.ID()] = n
			}
		}

		if e.file == nil || e.file.loose == nil {
			return
		}

		// The header is shared with other values of the conversation.
		h := *e.file
		h.loose = make(map[*node.Node][]*node.Node, len(e.file.loose))
		for before, nodes := range e.file.loose {
			h.loose[replace(before)] = replaceAll(nodes)
		}
		e.file = &h
	})
}
