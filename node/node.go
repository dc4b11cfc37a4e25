package node

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/plait-dev/plait/internal/memo"
	"github.com/plait-dev/plait/internal/safetext"
)

// ErrPayload is in the chain of every error about a payload or parent that cannot make a node.
var ErrPayload = errors.New("invalid node")

// ID is a node's unique name: a UUIDv7, so that ids sort by the time they were made.
type ID = uuid.UUID

// Source gives nodes their ids and times. The zero value uses the system's clock and random UUIDv7s; a program that wants runs
// to be reproducible to the byte sets both. The functions must be safe for concurrent use.
type Source struct {
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
	// NewID returns an id that was never returned before. Defaults to a random UUIDv7.
	NewID func() ID
}

// Time returns the present time in UTC, without a monotonic reading.
func (s Source) Time() time.Time {
	if s.Now == nil {
		return time.Now().UTC().Round(0)
	}
	return s.Now().UTC().Round(0)
}

// ID returns a new id.
func (s Source) ID() ID {
	if s.NewID == nil {
		return uuid.Must(uuid.NewV7())
	}
	return s.NewID()
}

// Counting returns a Source whose ids and times depend on nothing but how often it was asked: the clock begins at start and
// moves a second forward at each reading, the ids are UUIDv7s of start and a counter. For tests and examples. Two Sources with
// one start give the same ids: a conversation that is built with both cannot be saved.
func Counting(start time.Time) Source {
	var ticks, ids atomic.Int64
	return Source{
		Now: func() time.Time { return start.Add(time.Duration(ticks.Add(1)-1) * time.Second) },
		NewID: func() ID {
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

// Node is one immutable vertex. Use it as *Node; nodes are made by [New] and [Parse]. The zero value is no node: it says nothing, and
// cannot be saved.
type Node struct {
	id      ID
	parents []*Node
	payload Payload
	time    time.Time
	meta    Meta
	depth   int
	saved   string // the bytes it was read from, if it was read
	claimed bool   // it says of itself that it is redacted, as a forged line may do too
	erased  bool   // it says it and is
	digest  atomic.Pointer[Digest]
	memo    memo.Memo
}

// New returns a node that says p after its parents, in their order. A parent given twice counts once. Blocks and definitions in
// p are checked; an error has ErrPayload in its chain.
func New(src Source, p Payload, meta Meta, parents ...*Node) (*Node, error) {
	p, err := checked(p)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPayload, err)
	}
	n := &Node{id: src.ID(), payload: p, time: src.Time(), meta: meta}
	if err := errors.Join(checkTime(n.time), n.adopt(parents)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPayload, err)
	}
	return n, nil
}

func (n *Node) adopt(parents []*Node) error {
	if i := slices.Index(parents, nil); i >= 0 {
		return fmt.Errorf("parent %d is nil", i)
	}
	n.parents = Distinct(parents)
	for _, p := range n.parents {
		n.depth = max(n.depth, p.depth+1)
	}
	return nil
}

// Distinct returns nodes without nils and repeats, in order, as a new slice. Nodes with the same id are the same: a
// conversation may hold a node as it was built and as it was read from a file.
func Distinct(nodes []*Node) []*Node {
	kept := make([]*Node, 0, len(nodes))
	if len(nodes) <= 8 {
		for _, n := range nodes {
			if n != nil && !slices.ContainsFunc(kept, func(k *Node) bool { return k.id == n.id }) {
				kept = append(kept, n)
			}
		}
		return kept
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

// ID returns the node's unique name.
func (n *Node) ID() ID { return n.id }

// Parents returns the parents in their declared order, as a new slice.
func (n *Node) Parents() []*Node { return slices.Clone(n.parents) }

// NumParents returns how many parents the node has.
func (n *Node) NumParents() int { return len(n.parents) }

// Parent returns parent i. It panics when i is out of range, as indexing does.
func (n *Node) Parent(i int) *Node { return n.parents[i] }

// Payload returns what the node says. A type switch over the variants of [Payload] tells them apart.
func (n *Node) Payload() Payload { return n.payload }

// Kind returns the kind of the payload, as in a saved file: "message", "tool_execution" and so on.
func (n *Node) Kind() string {
	if n.payload == nil {
		return "" // the zero Node
	}
	return n.payload.Kind()
}

// Time returns when the node was made, in UTC.
func (n *Node) Time() time.Time { return n.time }

// Meta returns the node's metadata.
func (n *Node) Meta() Meta { return n.meta }

// Depth returns the number of edges on the longest path from a root: 0 for a node without parents.
func (n *Node) Depth() int { return n.depth }

// Failed reports whether n says that something went wrong: a tool call that failed, or an answer or a run that did not stop in the course of
// things ([content.Stop.Normal]).
func (n *Node) Failed() bool {
	switch p := n.payload.(type) {
	case ToolExecution:
		return p.IsError
	case StopReason:
		return !p.Reason.Normal()
	case Message:
		return !p.Answer.Stop.Normal()
	}
	return false
}

// Message returns the message that the node says, and whether it says one.
func (n *Node) Message() (Message, bool) {
	m, ok := n.payload.(Message)
	return m, ok
}

// String returns the kind and the end of the id, for error messages and debugging. It is safe to print.
func (n *Node) String() string {
	if n == nil || n.payload == nil {
		return "no node"
	}
	return safetext.Escape(n.Kind(), 80) + " " + ShortID(n.id)
}

// ShortID returns the last 8 digits of an id: enough to find a node within one conversation.
func ShortID(id ID) string { return id.String()[28:] }

// Remember keeps a value that was computed from the node and its ancestors beside the node, for as long as the node is kept. A node
// keeps values for a few keys only, the latest ones, so a value must be one that can be computed again. Keys are compared as those of a
// map. It is safe for concurrent use.
func (n *Node) Remember(key, value any) { n.memo.Put(key, value) }

// Recall returns what is remembered for the key, or nil. It is safe for concurrent use.
func (n *Node) Recall(key any) any { return n.memo.Get(key) }
