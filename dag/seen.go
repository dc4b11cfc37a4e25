package dag

import (
	"crypto/sha256"
	"slices"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx/write"
	"github.com/plait-dev/plait/internal/memo"
	"github.com/plait-dev/plait/node"
)

// seenTag is the first part of the hashed data. It changes when the rule at Transcript.Seen changes.
const seenTag = "plait.seen.v1"

// Seen returns the digest of everything in t that a model sees: the system prompts, the tools and the messages.
//
// Some providers accept a model's thinking only after the transcript from which it was produced. Store the digest of
// that transcript in node.Answer.Seen when you append a response, as package executor does. [DAG.Transcript] uses it to
// check whether the thinking is still valid in its position. An earlier message may have been edited, compacted or
// merged in since, a tool added or withdrawn, or a system prompt added or replaced.
//
//   - Thinking that is not valid is marked (content.Thinking.Stale). It is not sent, and does not count for the digests
//     after it.
//   - Thinking produced after an edit has seen the edited transcript, and is valid.
//   - A response whose Seen is zero counts as valid, unless thinking before it is stale.
//
// The digest is made in steps:
//
//   - It starts as the SHA-256 of "plait.seen.v1", NUL and the object {"system":…,"tools":…}: an array of {"text":…}
//     for each prompt of System, and an array of the definitions in Tools in their saved form.
//   - For each message it becomes the SHA-256 of the digest so far, the role, NUL, and the SHA-256 of the saved form of
//     the message's blocks without stale thinking.
//
// All fields of the blocks count, including a provider's own (content.Extra). Parts of a request outside the transcript
// do not count: options, cache markers, changes by executor.Hook.Send.
func (t Transcript) Seen() node.Digest {
	seen := t.front()
	for _, m := range t.Messages {
		seen = seenAfter(seen, m)
	}
	return seen
}

// front returns the digest before the first message.
func (t Transcript) front() node.Digest {
	// The rule at Seen fixes every byte of this form.
	dst := append([]byte(seenTag+"\x00{"), `"system":[`...)
	for _, text := range t.System {
		dst = append(write.OptString(append(write.Comma(dst), '{'), "text", text), '}')
	}
	dst = append(dst, `],"tools":[`...)
	for _, def := range t.Tools {
		dst = write.OptString(append(write.Comma(dst), '{'), "name", def.Name)
		dst = write.JSON(write.OptString(dst, "description", def.Description), "schema", def.Schema)
		dst = append(write.Form{}.Extra(dst, def.Extra.API, string(def.Extra.JSON)), '}')
	}
	return sha256.Sum256(append(dst, "]}"...))
}

// seenAfter returns the digest after m. seen is the digest before it.
func seenAfter(seen node.Digest, m content.Message) node.Digest {
	// The digest of the blocks is remembered with them, so a long conversation is not hashed again at each request.
	blocks := sumOf(m.Blocks)
	dst := make([]byte, 0, 2*len(seen)+len(content.Assistant)+1)
	dst = append(append(append(dst, seen[:]...), m.Role...), 0)
	return sha256.Sum256(append(dst, blocks[:]...))
}

// Keys of values remembered with blocks.
type (
	sumKey   struct{} // the digest of sumOf
	staleKey struct{} // the blocks of stale
)

// sumOf returns the SHA-256 of the saved form of the blocks without stale thinking.
func sumOf(blocks content.Blocks) node.Digest {
	if sum, ok := memo.OfBlocks(blocks).Get(sumKey{}).(node.Digest); ok {
		return sum
	}

	// Stale thinking is not sent, so it does not count for the thinking after it.
	kept := blocks
	if thinks(blocks) {
		fresh := slices.DeleteFunc(blocks.Slice(), func(b content.Block) bool {
			t, ok := b.(content.Thinking)
			return ok && t.Stale
		})
		kept, _ = content.Of(fresh...) // no error: these blocks come from a list
	}

	sum := node.Digest(sha256.Sum256(kept.Append(nil)))
	memo.OfBlocks(blocks).Put(sumKey{}, sum)
	return sum
}

// unseen is a Seen of no transcript. Thinking with it is always stale.
var unseen = node.Digest(sha256.Sum256([]byte("plait.unseen")))

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
