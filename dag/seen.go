package dag

import (
	"crypto/sha256"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
)

// seenTag begins what is hashed first. It changes when the rule at Transcript.Seen does.
const seenTag = "plait.seen.v1"

// Seen returns the digest of what a model sees that is sent t. Some providers bind a model's thinking to it: to the system prompts, the
// tools and every message before. Whoever appends an answer puts it into node.Answer.Seen, as package executor does, so that
// [DAG.Transcript] can tell later whether the answer's thinking still holds where it stands: an earlier message may have been edited,
// compacted or merged in, a tool added or withdrawn, a system prompt added or replaced. What does not hold any more is marked (content.Thinking.Stale), and
// counts as not there for what comes after it, because that is how it is sent. So all that holds is kept, and it is an unbroken run: what
// is thought after an edit saw what is left, and holds from there on.
//
// An answer whose Seen is zero is taken to hold, unless thinking before it does not.
//
// The digest is the SHA-256 of "plait.seen.v1" NUL and the object {"system":…,"tools":…}, an array of {"text":…} for each prompt of System,
// and an array of the definitions in Tools in their saved form; and then, for each message, the SHA-256 of the
// digest up to there, the role, NUL, and the SHA-256 of the saved form of its blocks without stale thinking. Everything in the blocks
// counts, a provider's own fields (content.Extra) with them. How a request is made of the transcript does not: options, markers for a
// cache, what executor.Hook.Send changes.
func (t Transcript) Seen() node.Digest {
	seen := t.front()
	for _, m := range t.Messages {
		seen = goOn(seen, m)
	}
	return seen
}

// front is the digest before the first message.
func (t Transcript) front() node.Digest {
	dst := append([]byte(seenTag+"\x00{"), `"system":[`...)
	for i, text := range t.System {
		dst = append(content.AppendString(append(comma(dst, i), '{'), "text", text), '}')
	}
	dst = append(dst, `],"tools":[`...)
	for i, def := range t.Tools {
		dst = content.AppendString(append(comma(dst, i), '{'), "name", def.Name)
		dst = content.AppendJSON(content.AppendString(dst, "description", def.Description), "schema", def.Schema)
		if def.Extra != (content.Extra{}) {
			dst = content.AppendString(append(content.AppendRaw(dst, "extra"), '{'), "api", def.Extra.API)
			dst = append(content.AppendJSON(dst, "json", def.Extra.JSON), '}')
		}
		dst = append(dst, '}')
	}
	return sha256.Sum256(append(dst, "]}"...))
}

func comma(dst []byte, i int) []byte {
	if i > 0 {
		dst = append(dst, ',')
	}
	return dst
}

// goOn is the digest after m, where seen is the one before it.
func goOn(seen node.Digest, m content.Message) node.Digest {
	said := sumOf(m.Blocks)
	dst := make([]byte, 0, 2*len(seen)+len(content.Assistant)+1)
	dst = append(append(append(dst, seen[:]...), m.Role...), 0)
	return sha256.Sum256(append(dst, said[:]...))
}

// The keys of what is remembered with blocks.
type (
	sumKey   struct{} // the digest of their saved form without stale thinking
	staleKey struct{} // the same blocks with stale thinking
)

func sumOf(blocks content.Blocks) node.Digest {
	if sum, ok := blocks.Recall(sumKey{}).(node.Digest); ok {
		return sum
	}
	dst := []byte{'['}
	for _, b := range blocks.All() {
		if t, ok := b.(content.Thinking); !ok || !t.Stale {
			dst = content.AppendBlock(comma(dst, len(dst)-1), b)
		}
	}
	sum := node.Digest(sha256.Sum256(append(dst, ']')))
	blocks.Remember(sumKey{}, sum)
	return sum
}

// unseen is a Seen that nothing has.
var unseen = node.Digest(sha256.Sum256([]byte("plait.unseen")))

func thinks(blocks content.Blocks) bool {
	for _, b := range blocks.All() {
		if _, ok := b.(content.Thinking); ok {
			return true
		}
	}
	return false
}

// stale returns the blocks with their thinking marked. They are the same ones each time, so that what is remembered with them is found.
func stale(blocks content.Blocks) content.Blocks {
	if marked, ok := blocks.Recall(staleKey{}).(content.Blocks); ok {
		return marked
	}
	list := blocks.Slice()
	for i, b := range list {
		if t, ok := b.(content.Thinking); ok {
			t.Stale = true
			list[i] = t
		}
	}
	marked, _ := content.Of(list...) // each was part of a list before
	blocks.Remember(staleKey{}, marked)
	return marked
}
