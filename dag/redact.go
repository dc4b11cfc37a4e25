package dag

import (
	"fmt"
	"maps"

	"github.com/plait-dev/plait/node"
)

// Redact returns the conversation with the content of the nodes with those ids erased, in it, in its refs, in child
// conversations, and among the nodes of a file that nothing reaches. A redacted node keeps its id, its place, its digest, and
// what has to stay so that everything around it is valid and can be sent: node.Redact says what goes and what stays, and which
// nodes lose along with it what they repeat. [DAG.Verify] says of each that it is redacted, and [node.Node.Redacted] does.
//
// Nodes point to their parents, so all nodes after a redacted one are new values as well, with the ids, digests, content and
// metadata that they had; the others are shared. It takes time in proportion to the conversation, and memory in proportion to
// the nodes after those that are redacted. Redacting twice changes nothing. Errors of the chain: ErrForeign for an id that no
// node has, and node.ErrUnknownKind; then nothing is redacted.
//
// What Redact cannot reach:
//
//   - Values of the conversation from before, and forks that were made of them, stay as they were, and hold the content for as
//     long as they are kept. To the rest of Plait a node and its redacted form are one node: who joins the two conversations may
//     have the content again.
//   - A file holds the content until the conversation is saved to it again, and so do copies of it. A [Journal] is only appended
//     to, and refuses a conversation with nodes that it still holds whole: [RewriteJournal] writes it anew.
//   - The conversation's own metadata, names of refs, and words that other nodes have taken over, are the program's to look for.
//   - What providers, logs and tools were given.
//
// A call whose arguments were erased before it was carried out should be answered and not run: its arguments are {}.
func (d DAG) Redact(ids ...node.ID) DAG {
	if d.err != nil || len(ids) == 0 {
		return d
	}
	missing := make(map[node.ID]bool, len(ids))
	named := make(map[node.ID]bool, len(ids))
	for _, id := range ids {
		missing[id], named[id] = true, true
	}
	nodes := d.saved()
	for _, n := range nodes {
		delete(missing, n.ID())
	}
	for _, id := range ids {
		if missing[id] {
			return d.fail("Redact", fmt.Errorf("%w: %s", ErrForeign, id))
		}
	}
	now, err := node.Redact(nodes, func(n *node.Node) bool { return named[n.ID()] })
	if err != nil {
		return d.fail("Redact", err)
	}
	if len(now) == 0 {
		return d
	}
	forget(nodes)
	return d.with(now)
}

// Forget drops what requests keep with the messages of the conversation, and with those of its child conversations: about as much memory
// as the text for each API (see dialect.Encoding). Use it for a conversation that stays in memory and is not sent for a while. The next
// request is made from the whole conversation, and keeps it again.
func (d DAG) Forget() { forget(d.WithChildren()) }

// forget drops what was made of the conversation to send it, which may hold what is erased in the bytes of any message after it.
func forget(nodes []*node.Node) {
	for _, n := range nodes {
		switch p := n.Payload().(type) {
		case node.Message:
			p.Blocks.Forget()
		case node.Compaction:
			p.Summary.Forget()
		}
	}
}

// with returns the conversation with other nodes in the place of some.
func (d DAG) with(now map[*node.Node]*node.Node) DAG {
	at := func(nodes []*node.Node) []*node.Node {
		placed := make([]*node.Node, len(nodes))
		for i, n := range nodes {
			if placed[i] = now[n]; placed[i] == nil {
				placed[i] = n
			}
		}
		return placed
	}
	d.heads = at(d.heads)
	return d.change(func(e *env) {
		e.refs = refsAt(e.refs, at)
		if e.erased = maps.Clone(e.erased); e.erased == nil {
			e.erased = map[node.ID]*node.Node{}
		}
		for _, n := range now {
			if n.Redacted() {
				e.erased[n.ID()] = n
			}
		}
		if e.file == nil || e.file.loose == nil {
			return
		}
		h := *e.file
		h.loose = make(map[*node.Node][]*node.Node, len(e.file.loose))
		for before, nodes := range e.file.loose {
			if before != nil {
				before = at([]*node.Node{before})[0]
			}
			h.loose[before] = at(nodes)
		}
		e.file = &h
	})
}
