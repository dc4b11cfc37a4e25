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
	"github.com/plait-dev/plait/internal/jsonx/write"
	"github.com/plait-dev/plait/internal/safetext"
)

// Digest identifies the content of a node together with everything before it.
type Digest [sha256.Size]byte

// digestPrefix names the algorithm in a digest's text.
const digestPrefix = "sha256:"

// digestTag is the first part of the hashed data. It changes when the rule at Node.Digest changes.
const digestTag = "plait.node.v1"

// ErrDigest marks a text that is not a digest, and a node whose digest does not match its content.
var ErrDigest = errors.New("digest mismatch")

// String returns "sha256:" and 64 hexadecimal digits.
func (d Digest) String() string { return string(d.append(make([]byte, 0, len(digestPrefix)+2*len(d)))) }

func (d Digest) append(dst []byte) []byte {
	return hex.AppendEncode(append(dst, digestPrefix...), d[:])
}

// quote appends the digest as a JSON string.
func (d Digest) quote(dst []byte) []byte { return append(d.append(append(dst, '"')), '"') }

// ParseDigest parses the form returned by String.
func ParseDigest(text string) (Digest, error) {
	var d Digest
	digits, ok := strings.CutPrefix(text, digestPrefix)
	if ok = ok && len(digits) == 2*len(d) && digits == strings.ToLower(digits); ok {
		_, err := hex.Decode(d[:], []byte(digits))
		ok = err == nil
	}
	if !ok {
		return Digest{}, fmt.Errorf("%w: %q is not %s and %d lower-case digits", ErrDigest, safetext.UTF8(text), digestPrefix, 2*len(d))
	}
	return d, nil
}

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
// The digest does not cover time, metadata, usage, model, latency, the totals of a run, and the fields of a tool
// execution beside the call and its result (the executed call, the program's details, the full output). Of an unfinished
// execution it covers the call to execute and the note: they are what a person is shown. Two runs with
// the same content have the same digests, whatever their IDs. Fields of a newer version in a body are kept, but not
// covered.
//
// A node from a file has the digest claimed by the file; [Node.Verify] recomputes it. A node erased by [Redact] keeps
// its digest. A digest is computed once, without recursion, together with the digests it depends on.
func (n *Node) Digest() Digest {
	if d := n.digest.Load(); d != nil {
		return *d
	}

	// A conversation may be too long for recursion: compute dependencies first, with a stack.
	stack := []*Node{n}
	for len(stack) > 0 {
		top, pending := stack[len(stack)-1], len(stack)
		for dep := range top.dependencies {
			if dep.digest.Load() == nil {
				stack = append(stack, dep)
			}
		}

		// Nothing was added, so all dependencies have their digests. A node may be on the stack several times.
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

// Verify recomputes the node's digest from its content and its parents' digests. It returns an error with ErrDigest in
// its chain if the node has another digest. If the node is marked as redacted and still has content, it verifies the
// digest too, and returns an error with ErrRedaction in its chain. Verify returns nil for a node that it cannot check:
// a redacted node, or one of an unknown kind.
func (n *Node) Verify() error {
	if _, unknown := n.Payload().(Unknown); unknown || n.Redacted() {
		return nil
	}
	err := n.verify()
	switch {
	case !n.seldom().claimed:
		return err
	case err == nil:
		return fmt.Errorf("%w: %s", ErrRedaction, n)
	}
	return fmt.Errorf("%w; %w", err, ErrRedaction)
}

func (n *Node) verify() error {
	held := n.digest.Load()
	if held == nil {
		n.Digest() // nothing to compare: a digest computed now is correct
		return nil
	}

	// compute needs the digests of the nodes before n.
	for dep := range n.dependencies {
		dep.Digest()
	}
	if now := n.compute(); now != *held {
		return fmt.Errorf("%w: %s has %s, recorded is %s", ErrDigest, n, now, *held)
	}
	return nil
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
	switch p := n.payload.(type) { // a node that is not decoded has none
	case ToolExecution:
		return p.Child
	case SubGraph:
		return p.Heads
	}
	return List[*Node]{}
}

// compute computes the digest by the rule at Digest. The digests of n.dependencies must be known.
func (n *Node) compute() Digest {
	scratch := scratches.Get().(*[]byte)
	buf := append(append((*scratch)[:0], digestTag...), 0)
	buf = append(append(buf, n.Kind()...), 0)
	buf = binary.BigEndian.AppendUint32(buf, uint32(n.NumParents()))
	for _, p := range n.parents() {
		d := p.digest.Load()
		buf = append(buf, d[:]...)
	}
	buf = n.appendBody(buf, form{write.Form{Canonical: true}, n.callRef()})

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
			p = p.first[0]
		}
		if said, ok := p.Payload().(Message); ok && said.Role == content.Assistant {
			return said.Blocks.ToolUses()
		}
	}
	return nil
}
