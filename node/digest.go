package node

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/plait-dev/plait/content"
)

// Digest names what a node says, together with everything before it.
type Digest [sha256.Size]byte

// digestPrefix names the algorithm in a digest's text.
const digestPrefix = "sha256:"

// digestTag begins everything that is hashed. It changes when the rule at Node.Digest does.
const digestTag = "plait.node.v1"

// ErrDigest is in the chain of every error about a digest: text that is none, or a node that does not have the one it
// claims.
var ErrDigest = errors.New("digest mismatch")

// String returns "sha256:" and 64 hexadecimal digits.
func (d Digest) String() string { return digestPrefix + hex.EncodeToString(d[:]) }

// ParseDigest reads what String writes.
func ParseDigest(text string) (Digest, error) {
	var d Digest
	digits, ok := strings.CutPrefix(text, digestPrefix)
	b, err := hex.DecodeString(digits)
	if !ok || err != nil || len(b) != len(d) || digits != strings.ToLower(digits) {
		return d, fmt.Errorf("%w: %q is not %s and %d lower-case digits", ErrDigest, content.Clean(text), digestPrefix, 2*len(d))
	}
	return Digest(b), nil
}

// Digest returns the name of what the node says. It is the SHA-256 of
//
//	"plait.node.v1" NUL kind NUL
//	the number of parents, 4 bytes, most significant first, and each parent's digest, 32 bytes, in order
//	the content in canonical form
//
// The content is what the body of the saved form holds, as JSON without spaces, its members in the order in which they
// are saved, with these differences: JSON values inside it (arguments, schemas, a provider's own fields) are as
// content.AppendCanonicalJSON writes them; the ids of a provider's calls are left out of an assistant's message, and a
// result has in its place "#" and the place of the call it answers among the calls of the message before it, or "=" and
// its id where it answers none; a child conversation is the list of its heads' digests. Replaced nodes of a compaction
// are not a part of it, because ids say nothing. A member that the saved form leaves out is left out here too: the name
// of a system prompt without one, the withdrawn tools of a node that withdraws none.
//
// Time, metadata, usage, model, latency, a run's totals, and what a tool execution keeps beside the call and its result
// (what ran in fact, the program's details, the whole output) are outside. Two runs that said the same thing have the
// same digests whatever their ids. Fields that a newer version wrote into a body are kept, but are not covered.
//
// A node that was read from a file has the digest that the file claims; [Node.Verify] recomputes it. A node whose
// content was erased by [Redact] keeps the one it had. Computing is done once, without recursion, for all ancestors
// that need it.
func (n *Node) Digest() Digest {
	if d := n.digest.Load(); d != nil {
		return *d
	}
	stack := []*Node{n}
	for len(stack) > 0 {
		top, pending := stack[len(stack)-1], len(stack)
		for dep := range top.dependencies {
			if dep.digest.Load() == nil {
				stack = append(stack, dep)
			}
		}
		if len(stack) == pending {
			stack = stack[:pending-1]
			if top.digest.Load() == nil {
				d := top.compute()
				top.digest.Store(&d)
			}
		}
	}
	return *n.digest.Load()
}

// Verify recomputes the node's digest from its content and its parents' digests, and returns an error with ErrDigest in
// its chain when it is not the one the node has. A node that was read and says falsely that it is redacted is an error
// with ErrRedaction in its chain; it is verified all the same. What cannot be checked passes: a node that is redacted,
// and one of a kind this version does not know.
func (n *Node) Verify() error {
	if _, unknown := n.payload.(Unknown); unknown || n.erased {
		return nil
	}
	err := n.verify()
	switch {
	case !n.claimed:
		return err
	case err == nil:
		return fmt.Errorf("%w: %s", ErrRedaction, n)
	}
	return fmt.Errorf("%w; %w", err, ErrRedaction)
}

func (n *Node) verify() error {
	held := n.digest.Load()
	if held == nil {
		n.Digest() // computed now, so that it is right
		return nil
	}
	for dep := range n.dependencies {
		dep.Digest()
	}
	if now := n.compute(); now != *held {
		return fmt.Errorf("%w: %s has %s and claims %s", ErrDigest, n, now, *held)
	}
	return nil
}

// dependencies yields the nodes whose digests the node's digest is made of.
func (n *Node) dependencies(yield func(*Node) bool) {
	for _, p := range n.parents {
		if !yield(p) {
			return
		}
	}
	for _, head := range n.Children().Slice() {
		if !yield(head) {
			return
		}
	}
}

// Children returns the heads of the conversation that hangs on the node: a sub-agent's, or a sub-graph's. It is empty
// for most nodes.
func (n *Node) Children() List[*Node] {
	switch p := n.payload.(type) {
	case ToolExecution:
		return p.Child
	case SubGraph:
		return p.Heads
	}
	return List[*Node]{}
}

// compute applies the rule at Digest. The digests it is made of are known.
func (n *Node) compute() Digest {
	scratch := scratches.Get().(*[]byte)
	buf := append(append((*scratch)[:0], digestTag...), 0)
	buf = append(append(buf, n.Kind()...), 0)
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(n.parents)))
	for _, p := range n.parents {
		d := p.digest.Load()
		buf = append(buf, d[:]...)
	}
	buf = n.appendBody(buf, form{canonical: true, ref: n.callRef()})
	d := sha256.Sum256(buf)
	if cap(buf) <= maxScratch {
		*scratch = buf
		scratches.Put(scratch)
	}
	return d
}

// scratches is buffers for what is hashed. One that a large node needed is not kept.
var scratches = sync.Pool{New: func() any { return new([]byte) }}

const maxScratch = 1 << 20

// callRef returns the rule by which ids of calls and results are written into the canonical form.
func (n *Node) callRef() func(result bool, id string, earlier int) string {
	var places map[string][]int
	for i, call := range n.answered() {
		if places == nil {
			places = map[string][]int{}
		}
		places[call.ID] = append(places[call.ID], i)
	}
	return func(result bool, id string, earlier int) string {
		switch {
		case !result:
			return ""
		case earlier < len(places[id]):
			return "#" + strconv.Itoa(places[id][earlier])
		}
		return "=" + id
	}
}

// answered returns the calls that results in the node answer: those of the nearest assistant's messages, with or
// without the executions in between.
func (n *Node) answered() []content.ToolUse {
	m, ok := n.payload.(Message)
	if !ok || m.Role != content.User || len(m.Blocks.ToolResults()) == 0 {
		return nil
	}
	for _, p := range n.parents {
		if _, execution := p.payload.(ToolExecution); execution && len(p.parents) == 1 {
			p = p.parents[0]
		}
		if said, ok := p.payload.(Message); ok && said.Role == content.Assistant {
			return said.Blocks.ToolUses()
		}
	}
	return nil
}
