package dag

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/memo"
	"github.com/plait-dev/plait/node"
)

// seenTag is the first part of the hashed data. It changes when the rule at DAG.Seen changes.
const seenTag = "plait.seen.v1"

// Seen identifies everything in the conversation that a model sees: the system prompts, the tools and the messages.
//
// Some providers accept a model's thinking only after the transcript from which it was produced. Store the value of the
// conversation that was sent in node.Answer.Seen when you append a response, as package executor does. [DAG.Transcript]
// uses it to check whether the thinking is still valid in its position. An earlier message may have been replaced,
// redacted, compacted or merged in since, a tool added or withdrawn, or a system prompt added or replaced.
//
//   - Thinking that is not valid is marked (content.Thinking.Stale). It is not sent, and does not count for the values
//     after it.
//   - Thinking produced after an edit has seen the edited transcript, and is valid.
//   - A response whose Seen is zero counts as valid, unless thinking before it is stale.
//   - A prompt or a tool that is declared again, unchanged, is that of the first node with it.
//
// The value depends on IDs alone, and not on what the nodes say. It is made in steps:
//
//   - It starts as the SHA-256 of "plait.seen.v1", NUL, the number of system prompts, and for each the 16 bytes of its
//     node's ID, a byte that is 1 if the node is redacted, and 4 zero bytes; and then the same of the tools, with the
//     index of the definition in its node in place of the zero bytes. Numbers have 4 bytes, most significant first.
//   - For each message it becomes the SHA-256 of the value so far, the ID of its node, and a byte with the sum of 1 for
//     a redacted node, 2 for a message whose stale thinking was left out, and 4 for the summary of a compaction, which
//     has the ID of the compaction. For a redacted node, a byte follows for each of its tool results: 0 if the result
//     is empty or erased, and 1 if it is kept.
//
// Parts of a request outside the transcript do not count: options, cache markers, changes by executor.Hook.Send.
func (d DAG) Seen() node.Seen {
	p, m := d.lineage()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seenOf(m, m.messages)
}

// origin is the first node with a system prompt or a tool, and the index of the tool's definition in the node.
type origin struct {
	n     *node.Node
	index int
}

// seenFront returns the value before the first message.
func seenFront(system, tools []origin) node.Seen {
	dst := append([]byte(seenTag), 0)
	for _, list := range [][]origin{system, tools} {
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(list)))
		for _, o := range list {
			id := o.n.ID()
			dst = binary.BigEndian.AppendUint32(append(append(dst, id[:]...), flag(o.n.Redacted())), uint32(o.index))
		}
	}
	return sha256.Sum256(dst)
}

// Flags of a message, for seenAfter.
const (
	seenRedacted byte = 1 << iota
	seenWithoutStale
	seenSummary
	seenGoOn // content.GoOn, which has no node
)

// seenAfter returns the value after a message. seen is the value before it, and kept says which results of a redacted
// message were kept.
func seenAfter(seen node.Seen, id node.ID, flags byte, kept ...byte) node.Seen {
	var buffer [len(seen) + len(id) + 1 + 16]byte
	data := append(append(append(buffer[:0], seen[:]...), id[:]...), flags)
	return sha256.Sum256(append(data, kept...))
}

// seenWith returns the value after message i. seen is the value before it. p.mu must be held, unless p is not shared
// yet.
func (p *transcriptCache) seenWith(seen node.Seen, i int) node.Seen {
	n, blocks, flags := p.t.Nodes[i], p.t.Messages[i].Blocks, byte(0)
	if compaction, is := p.summaryAt[i]; is {
		n, flags = compaction, seenSummary
	}
	if isStale(blocks) {
		flags |= seenWithoutStale
	}
	if !n.Redacted() {
		return seenAfter(seen, n.ID(), flags)
	}

	// A node can be redacted several times: each time, further results may be erased.
	var kept []byte
	for _, result := range blocks.ToolResults() {
		erased := result.Content.Len() == 0 || result.Content.Equal(content.Words(node.RedactedText))
		kept = append(kept, flag(!erased))
	}
	return seenAfter(seen, n.ID(), flags|seenRedacted, kept...)
}

// flag returns 1 for true.
func flag(is bool) byte {
	if is {
		return 1
	}
	return 0
}

// staleKey is the key of the blocks of stale, remembered with blocks.
type staleKey struct{}

// unseen is a Seen of no transcript. Thinking with it is always stale.
var unseen = node.Seen(sha256.Sum256([]byte("plait.unseen")))

// thinks reports whether blocks hold thinking.
func thinks(blocks content.Blocks) bool {
	for _, b := range blocks.All() {
		if _, ok := b.(content.Thinking); ok {
			return true
		}
	}
	return false
}

// stale returns the blocks with their thinking marked as stale. It returns the same value each time, because other
// values are remembered with it.
func stale(blocks content.Blocks) content.Blocks {
	if marked, ok := memo.OfBlocks(blocks).Get(staleKey{}).(content.Blocks); ok {
		return marked
	}

	list := blocks.Slice()
	for i, b := range list {
		if t, ok := b.(content.Thinking); ok {
			t.Stale = true
			list[i] = t
		}
	}
	marked, _ := content.Of(list...) // no error: these blocks come from a list
	memo.OfBlocks(blocks).Put(staleKey{}, marked)
	return marked
}
