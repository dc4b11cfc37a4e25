package node

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/plait-dev/plait/internal/memo"
	"github.com/plait-dev/plait/internal/safetext"
)

// ErrPayload marks an invalid payload or parent of a new node.
var ErrPayload = errors.New("invalid node")

// ID is the unique name of a node: a UUIDv7, so that IDs sort by time.
type ID = uuid.UUID

// Source provides IDs and times for new nodes. The zero value uses the system's clock and random UUIDv7s. Set both
// fields to make runs reproducible to the byte. The functions must be safe for concurrent use.
type Source struct {
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
	// NewID returns a new unique ID. Defaults to a random UUIDv7 of the system's clock, whatever Now is.
	NewID func() ID
}

// Time returns the current time in UTC, without a monotonic reading.
func (s Source) Time() time.Time { return s.now().UTC().Round(0) }

// ID returns a new ID.
func (s Source) ID() ID {
	if s.NewID == nil {
		return newIDs.next(time.Now())
	}
	return s.NewID()
}

func (s Source) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}

// stamp sets the ID and the time of a new node. The zero Source reads the clock once for both.
func (s Source) stamp(n *Node) error {
	if s.NewID == nil && s.Now == nil {
		now := time.Now()
		n.id = newIDs.next(now)
		return n.setTime(now)
	}
	n.id = s.ID()
	return n.setTime(s.now())
}

// Counting returns a Source with reproducible IDs and times, for tests and examples. The clock begins at start and
// advances one second at each reading. IDs are UUIDv7s made of start and a counter. Two Sources with the same start
// return the same IDs: a conversation built with both cannot be saved.
func Counting(start time.Time) Source {
	var ticks, ids atomic.Int64
	return Source{
		Now: func() time.Time { return start.Add(time.Duration(ticks.Add(1)-1) * time.Second) },
		NewID: func() ID {
			// A UUIDv7 has 48 bits of time, the version and the variant. The counter takes the place of its random
			// bits.
			var id ID
			ms, n := uint64(start.UnixMilli()), uint64(ids.Add(1))
			for i := range 6 {
				id[i] = byte(ms >> (40 - 8*i))
			}
			for i := range 8 {
				id[8+i] = byte(n >> (56 - 8*i))
			}
			id[6], id[8] = 0x70, id[8]&0x3f|0x80
			return id
		},
	}
}

// Node is one immutable vertex of a conversation. Use it as *Node. [New] and [Parse] make nodes. The zero value is not
// a valid node: it has no payload and cannot be saved.
//
// The fields fit into 96 bytes, one allocation: a conversation has many nodes.
type Node struct {
	id      ID
	payload Payload  // nil only in the zero value; see Payload
	seconds int64    // the time, since 1970
	nanos   int32    // the time within the second
	depth   int32    // see Depth
	first   [1]*Node // the first parent, nil for a root
	rare    *rare    // nil for a node with at most one parent, and none of its other fields
	line    line
	hashes  atomic.Pointer[hashes] // nil for none
	memo    memo.Memo
	self    [1]*Node // the node, as the list of heads of a conversation that ends in it
}

// rare holds fields that few nodes have.
type rare struct {
	parents []*Node // distinct, if there are several; else nil
	meta    Meta
	claimed bool // the JSON is marked as redacted, rightly or not; see ErrRedaction
	erased  bool // the node is redacted
}

// newNode returns a node without content.
func newNode() *Node {
	n := &Node{}
	n.self[0] = n
	return n
}

// seldom returns the rare fields for reading.
func (n *Node) seldom() rare {
	if n = n.whole(); n.rare == nil {
		return rare{}
	}
	return *n.rare
}

// add returns the rare fields of a new node, for writing.
func (n *Node) add() *rare {
	if n.rare == nil {
		n.rare = &rare{}
	}
	return n.rare
}

// parents returns the distinct parents, in order. The slice is shared.
func (n *Node) parents() []*Node {
	switch {
	case n.first[0] == nil:
		if whole := n.whole(); whole != n {
			return whole.parents()
		}
		return nil
	case n.rare != nil && n.rare.parents != nil:
		return n.rare.parents
	}
	return n.first[:]
}

// New returns a node with payload p and the given parents, in order. A repeated parent counts once. An error about p or
// a parent has ErrPayload in its chain.
func New(src Source, p Payload, meta Meta, parents ...*Node) (*Node, error) {
	p, err := checked(p)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPayload, err)
	}

	n := newNode()
	n.payload = p
	n.setMeta(meta)
	if err := errors.Join(src.stamp(n), n.adopt(parents)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPayload, err)
	}
	return n, nil
}

// setTime sets the time of a new node. It returns an error if the time cannot be saved.
func (n *Node) setTime(t time.Time) error {
	n.seconds, n.nanos = t.Unix(), int32(t.Nanosecond())
	return checkTime(t)
}

// setMeta sets the metadata of a new node.
func (n *Node) setMeta(m Meta) {
	if m.Len() > 0 {
		n.add().meta = m
	}
}

// adopt sets the parents and the depth of a new node.
func (n *Node) adopt(parents []*Node) error {
	if i := slices.Index(parents, nil); i >= 0 {
		return fmt.Errorf("parent %d is nil", i)
	}

	// Do not pass on a single parent as a slice: the caller's list then stays on the stack.
	if len(parents) == 1 {
		n.first[0] = parents[0]
	} else {
		n.setParents(Distinct(parents))
	}
	for _, p := range parents {
		n.depth = max(n.depth, p.depth+1)
	}
	return nil
}

// setParents sets the parents of a new node. They must be distinct. The slice is not kept for a single parent.
func (n *Node) setParents(parents []*Node) {
	switch len(parents) {
	case 0:
	case 1:
		n.first[0] = parents[0]
	default:
		n.first[0], n.add().parents = parents[0], parents
	}
}

// Distinct returns nodes without nil and repeated nodes, in order, as a new slice. Nodes with the same ID count as the
// same, because a conversation may hold both a new node and its copy read from a file.
func Distinct(nodes []*Node) []*Node {
	kept := make([]*Node, 0, len(nodes))

	// For a few nodes, comparing them is faster than a map.
	if len(nodes) <= 8 {
		for _, n := range nodes {
			if n != nil && !slices.ContainsFunc(kept, func(k *Node) bool { return k.id == n.id }) {
				kept = append(kept, n)
			}
		}
		return kept
	}

	// Nodes in the order of their creation have ascending IDs, and so are distinct. A map takes 20 times as long.
	if ascending(nodes) {
		return append(kept, nodes...)
	}

	seen := make(map[ID]bool, len(nodes))
	for _, n := range nodes {
		if n != nil && !seen[n.id] {
			seen[n.id] = true
			kept = append(kept, n)
		}
	}
	return kept
}

// ascending reports whether no node is nil and each has a higher ID than the one before it.
func ascending(nodes []*Node) bool {
	for i, n := range nodes {
		if n == nil || i > 0 && bytes.Compare(nodes[i-1].id[:], n.id[:]) >= 0 {
			return false
		}
	}
	return true
}

// ID returns the node's unique name.
func (n *Node) ID() ID { return n.id }

// Parents returns the parents in their declared order, as a new slice.
func (n *Node) Parents() []*Node { return append([]*Node{}, n.parents()...) }

// NumParents returns the number of parents.
func (n *Node) NumParents() int { return len(n.parents()) }

// Parent returns parent i. It panics if i is out of range.
func (n *Node) Parent(i int) *Node { return n.parents()[i] }

// Payload returns the content of the node. Use a type switch over the variants of [Payload].
func (n *Node) Payload() Payload {
	return n.whole().payload
}

// Kind returns the kind of the payload, as in a saved file: "message", "tool_execution" and so on.
func (n *Node) Kind() string {
	p := n.Payload()
	if p == nil {
		return "" // the zero Node
	}
	return p.kind()
}

// Time returns the time at which the node was made, in UTC.
func (n *Node) Time() time.Time {
	n = n.whole()
	return time.Unix(n.seconds, int64(n.nanos)).UTC()
}

// Meta returns the node's metadata.
func (n *Node) Meta() Meta { return n.seldom().meta }

// Depth returns the number of edges on the longest path from a root: 0 for a node without parents.
func (n *Node) Depth() int { return int(n.depth) }

// Failed reports whether n is a failed tool execution, or a response or a run with an abnormal stop reason
// ([content.Stop.Normal]).
func (n *Node) Failed() bool {
	switch p := n.Payload().(type) {
	case ToolExecution:
		return p.IsError && p.State != ExecutionDenied
	case StopReason:
		return !p.Reason.Normal()
	case Message:
		return !p.Answer.Stop.Normal()
	}
	return false
}

// Message returns the payload if it is a message, and whether it is one.
func (n *Node) Message() (Message, bool) {
	m, ok := n.Payload().(Message)
	return m, ok
}

// String returns the kind and the end of the ID, for error messages and debugging. It is safe to print.
func (n *Node) String() string {
	if n == nil || n.payload == nil {
		return "no node"
	}
	return safetext.Escape(n.Kind(), 80) + " " + ShortID(n.id)
}

// ShortID returns the last 8 digits of an ID: enough to find a node within one conversation.
func ShortID(id ID) string { return id.String()[28:] }

func init() {
	memo.OfNode = func(n any) *memo.Memo { return &n.(*Node).memo }
	memo.AloneOf = func(n any) any { return &n.(*Node).self }
	memo.SameNode = func(a, b any) bool { return a.(*Node).same(b.(*Node)) }
	memo.AppendPortable = func(n any, dst []byte) []byte { return n.(*Node).appendPortable(dst) }
	memo.AppendNode = func(n any, dst []byte) []byte { return n.(*Node).appendUnkept(dst) }
}
