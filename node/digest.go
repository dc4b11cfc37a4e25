package node

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strconv"
	"sync"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx/write"
)

// Digest identifies the content of a node together with everything before it, for comparing in memory. Never save and
// never show it: whoever has the digest of erased content can find the content by guessing.
type Digest [sha256.Size]byte

// hashes holds hashes of a node. It is never changed.
type hashes struct {
	digest *Digest // nil until Digest computes it
	sum    *sum    // the checksum of the node's line, as it was read; nil for a node that was not read, or without one
}

// hash returns the hashes of n that are known.
func (n *Node) hash() hashes {
	if h := n.hashes.Load(); h != nil {
		return *h
	}
	return hashes{}
}

// digestTag is the first part of the hashed data. It changes when the rule at Node.Digest changes.
const digestTag = "plait.node.v1"

// redactedTag is the first part of the hashed data of a redacted node.
const redactedTag = "plait.redacted.v1"

// Digest returns the digest of the node's content. It is the SHA-256 of
//
//	"plait.node.v1" NUL kind NUL
//	the number of parents, 4 bytes, most significant first, and each parent's digest, 32 bytes, in order
//	the content in canonical form
//
// The content is the body of the saved form, as JSON without spaces, with the members in the order of the saved form,
// and with these differences:
//
//   - JSON values inside it (arguments, schemas, a provider's own fields) have the form of content.JSON.Canonical. A
//     value without that form is a string, under its name with "_text".
//   - A message of the assistant has no call IDs.
//   - The call ID of a result is replaced by "#" and the index of its call among the calls of the message before it. If
//     the result answers no call, it is replaced by "=" and the call ID.
//   - A child conversation is the list of the digests of its heads.
//   - A compaction does not have the replaced nodes, because IDs are not content.
//   - A member omitted in the saved form is omitted here too: the name of a system prompt without one, the withdrawn
//     tools of a node that withdraws none, the state of a finished execution.
//
// The digest does not cover time, metadata, usage, model, latency, the ID, limits and totals of a run, the version of
// its agent, and the fields of a tool execution beside the call and its result (the executed call, the program's
// details, the full output). Of an unfinished execution it covers the call to execute and the note: they are what a
// person is shown. Two runs with the same content have the same digests, whatever their IDs. Fields of a newer version
// in a body are kept, but not covered.
//
// The digest of a redacted node is the SHA-256 of "plait.redacted.v1", NUL and its ID: it equals only itself.
//
// A digest is computed once, without recursion, together with the digests it depends on. It is in no saved form.
func (n *Node) Digest() Digest {
	if d := n.hash().digest; d != nil {
		return *d
	}

	// A conversation may be too long for recursion: compute dependencies first, with a stack.
	stack := []*Node{n}
	for len(stack) > 0 {
		top, pending := stack[len(stack)-1], len(stack)
		for dep := range top.dependencies {
			if dep.hash().digest == nil {
				stack = append(stack, dep)
			}
		}

		// Nothing was added, so all dependencies have their digests. A node may be on the stack several times.
		if len(stack) == pending {
			stack = stack[:pending-1]
			top.keepDigest()
		}
	}
	return *n.hash().digest
}

// keepDigest computes the digest, unless it is known. The digests of n.dependencies must be known.
func (n *Node) keepDigest() {
	held := n.hash()
	if held.digest != nil {
		return
	}

	// Another goroutine may have set the same digest. The checksum never changes after the node was made.
	d := n.compute()
	n.hashes.Store(&hashes{&d, held.sum})
}

// same reports whether n and other are values of one node: with the same ID, kind, parents, child conversation and
// content, or one of them redacted. The nodes before them are compared by ID alone.
func (n *Node) same(other *Node) bool {
	sameIDs := func(a, b []*Node) bool {
		return slices.EqualFunc(a, b, func(x, y *Node) bool { return x.id == y.id })
	}
	switch {
	case n == other:
		return true
	case n.id != other.id, n.Kind() != other.Kind(), !sameIDs(n.parents(), other.parents()),
		!sameIDs(n.Children().shared(), other.Children().shared()):
		return false
	case n.Redacted() || other.Redacted():
		return true
	}

	// Shared and repeated results, and JSON in other forms, are the same content.
	canonical := form{write.Form{Canonical: true}, func(_ bool, id string, _ int) string { return id }, true}
	return bytes.Equal(n.appendBody(nil, canonical), other.appendBody(nil, canonical))
}

// dependencies yields the nodes whose digests are part of the node's digest.
func (n *Node) dependencies(yield func(*Node) bool) {
	for _, p := range n.parents() {
		if !yield(p) {
			return
		}
	}
	for _, head := range n.Children().shared() {
		if !yield(head) {
			return
		}
	}
}

// Children returns the heads of the node's child conversation: the conversation of a sub-agent, or a sub-graph. It is
// empty for most nodes.
func (n *Node) Children() List[*Node] {
	switch p := n.Payload().(type) {
	case ToolExecution:
		return p.Child
	case SubGraph:
		return p.Heads
	}
	return List[*Node]{}
}

// compute computes the digest by the rule at Digest. The digests of n.dependencies must be known.
func (n *Node) compute() Digest {
	if n.Redacted() {
		return sha256.Sum256(append([]byte(redactedTag+"\x00"), n.id[:]...))
	}

	scratch := scratches.Get().(*[]byte)
	buf := append(append((*scratch)[:0], digestTag...), 0)
	buf = append(append(buf, n.Kind()...), 0)
	buf = binary.BigEndian.AppendUint32(buf, uint32(n.NumParents()))
	for _, p := range n.parents() {
		d := p.hash().digest
		buf = append(buf, d[:]...)
	}
	buf = n.appendBody(buf, form{write.Form{Canonical: true}, n.callRef(), false})

	d := sha256.Sum256(buf)
	if cap(buf) <= maxScratch {
		*scratch = buf
		scratches.Put(scratch)
	}
	return d
}

// scratches holds buffers for the hashed data, up to maxScratch bytes each. The buffer of a larger node is not kept.
var scratches = sync.Pool{New: func() any { return new([]byte) }}

const maxScratch = 1 << 20

// callRef returns the function that writes the IDs of calls and results in the canonical form.
func (n *Node) callRef() func(result bool, id string, earlier int) string {
	var places map[string][]int
	for i, call := range n.answered() {
		if places == nil {
			places = map[string][]int{}
		}

		// A call ID may be used twice: its results belong to its calls in order.
		places[call.ID] = append(places[call.ID], i)
	}
	if places == nil {
		return refToNoCall
	}

	return func(result bool, id string, earlier int) string {
		switch {
		case !result:
			// IDs of calls differ in each run, so a digest leaves them out.
			return ""
		case earlier < len(places[id]):
			return "#" + strconv.Itoa(places[id][earlier])
		}
		return refToNoCall(result, id, earlier)
	}
}

// refToNoCall is the function of callRef for a result that answers no call.
func refToNoCall(result bool, id string, _ int) string {
	if !result {
		return ""
	}
	return "=" + id
}

// answered returns the calls for the results in the node: the calls of the nearest message of the assistant, with or
// without executions in between.
func (n *Node) answered() []content.ToolUse {
	m, ok := n.Payload().(Message)
	if !ok || m.Role != content.User || len(m.Blocks.ToolResults()) == 0 {
		return nil
	}

	for _, p := range n.parents() {
		if _, execution := p.Payload().(ToolExecution); execution && p.NumParents() == 1 {
			p = p.Parent(0)
		}
		if said, ok := p.Payload().(Message); ok && said.Role == content.Assistant {
			return said.Blocks.ToolUses()
		}
	}
	return nil
}
