package dag

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/google/uuid"
	"github.com/plait-dev/plait/internal/jsonx/write"
	"github.com/plait-dev/plait/node"
)

// NodeSet is the set of stored nodes of a conversation, for a store such as a database. It finds the nodes to store in
// an append, and builds a conversation from stored nodes. Package store uses it; other programs need it only to write a
// store of their own.
//
// To store a conversation, store the nodes of [NodeSet.Missing], then [DAG.Header] and the IDs of the heads, and call
// [NodeSet.Add]. To load one, parse each stored node with node.Parse and [NodeSet.Node], add it, and call [NodeSet.DAG].
//
// The zero value is empty. A NodeSet is not safe for concurrent use.
type NodeSet struct {
	nodes   map[node.ID]*node.Node
	unknown []*node.Node // the nodes of unknown kinds
	later   *later       // the nodes that are loaded later; nil for none

	// In the set given to the load of Expect: the nodes behind those of node.Later, nil until they are added.
	absent map[node.ID]*node.Node
}

// Has reports whether the set has the node with that ID, or in the load of [NodeSet.Expect] whether it is loaded.
func (s *NodeSet) Has(id node.ID) bool {
	if n, later := s.absent[id]; later {
		return n != nil
	}
	return s.Node(id) != nil
}

// Node returns the node with that ID, or nil. A node that is loaded later (see [NodeSet.Expect]) is found once it is
// loaded.
func (s *NodeSet) Node(id node.ID) *node.Node {
	if n := s.nodes[id]; n != nil || s.later == nil {
		return n
	}
	return s.later.found(id)
}

// Add adds stored nodes. A node replaces an earlier node with its ID.
func (s *NodeSet) Add(nodes ...*node.Node) {
	if s.nodes == nil {
		s.nodes = make(map[node.ID]*node.Node, len(nodes))
	}
	for _, n := range nodes {
		if _, later := s.absent[n.ID()]; later {
			s.absent[n.ID()] = n // references are to the node of node.Later
			continue
		}
		s.nodes[n.ID()] = n
		if _, unknown := n.Payload().(node.Unknown); unknown {
			s.unknown = append(s.unknown, n)
		}
	}
}

// Missing returns the nodes of d that are not in the set: nodes reachable from the heads and the refs, and nodes of
// child conversations. Every node comes after all nodes it refers to. The cost does not grow with the size of the set.
//
// If a node is redacted in a part of d or in the set, the returned copy is redacted, even if d also has its content.
// Errors:
//
//   - the chain's own;
//   - ErrDuplicateID for a node with the ID of another node in the set;
//   - ErrNotErased for a redacted node whose content is in the set.
func (s *NodeSet) Missing(d DAG) ([]*node.Node, error) {
	if d.err != nil {
		return nil, d.err
	}
	if err := s.checkErased(d); err != nil {
		return nil, err
	}

	_, nodes, err := d.missingAlike(s.missingFrom)
	return nodes, err
}

// missingAlike returns the nodes found by find for d. If find reports a mixture, missingAlike redacts d and calls find
// again. It also returns the d of the last call.
func (d DAG) missingAlike(find func(DAG) ([]*node.Node, mixture, error)) (DAG, []*node.Node, error) {
	nodes, mixed, err := find(d)
	if mixed.is && err == nil {
		if d = d.redactAlike(mixed.ids...); d.err != nil {
			return d, nil, d.err
		}
		nodes, _, err = find(d)
	}
	return d, nodes, cmp.Or(err, d.Err()) // the walk may have loaded what was not loaded yet
}

func (s *NodeSet) missingFrom(d DAG) ([]*node.Node, mixture, error) {
	loose := d.header().loose
	roots := d.roots()
	if len(loose[nil]) > 0 {
		roots = append(roots[:len(roots):len(roots)], loose[nil]...)
	}
	return s.missing(d, roots, loose)
}

// mixture reports that a conversation and a set may have a node both redacted and with its content. ids lists nodes
// that are redacted only in the set.
type mixture struct {
	is  bool
	ids []node.ID
}

// missing returns the nodes reachable from the roots of d, also through extra nodes (see walk), that are not in the
// set. It also reports a mixture of redacted nodes and nodes with their content.
func (s *NodeSet) missing(
	d DAG, roots []*node.Node, extra map[*node.Node][]*node.Node,
) (nodes []*node.Node, mixed mixture, err error) {
	w := walk{extra: extra}
	erased := len(d.environment().erased) > 0
	w.known = func(n *node.Node) bool {
		// A node of the set is stored together with all nodes before it: the walk ends there.
		old := s.Node(n.ID())
		if old == nil || old == n {
			return old != nil
		}

		// Another value with the same ID: a copy from a file, a redacted form, or another node.
		w.clashes(old, n)
		mixed.is = mixed.is || erased || old.Redacted() != n.Redacted()
		if old.Redacted() && !n.Redacted() {
			// d must not bring back content that was erased from the set.
			mixed.ids = append(mixed.ids, n.ID())
		}
		return true
	}
	nodes = w.from(roots)
	mixed.is = mixed.is || w.twins
	return nodes, mixed, w.clash
}

// checkErased returns ErrNotErased if the set holds the content of a node that is redacted in d.
func (s *NodeSet) checkErased(d DAG) error {
	for id, erased := range d.environment().erased {
		// The set may have the redacted node as another value, read from storage: compare the saved forms.
		if n := s.Node(id); n != nil && n != erased && string(n.Append(nil)) != string(erased.Append(nil)) {
			return &node.FieldError{ID: id.String(), Field: "redacted", Err: ErrNotErased}
		}
	}
	return nil
}

// Header returns the saved form of the conversation without the nodes: the other members written by [DAG.Write]. The
// IDs of the heads are included only if there are refs, to distinguish the conversation's heads from those of refs.
func (d DAG) Header() []byte {
	h, refs := d.header(), d.environment().refs
	dst := []byte{'{'}
	for _, m := range h.layout() {
		if m.name == "nodes" || m.name == "heads" && refs == nil {
			continue
		}
		if text := h.member(m, d, nil); len(text) > 0 {
			dst = append(write.Comma(dst), text...)
		}
	}
	return append(dst, '}')
}

// DAG returns the conversation with a header that [DAG.Header] returned, and with the given heads unless the header has
// some. An empty header is that of an empty conversation. Nodes of the set that the conversation does not reach do
// not belong to it.
//
// Errors are those of [Load] about a header, and one for a head that is not in the set.
func (s *NodeSet) DAG(header []byte, heads []node.ID) (DAG, error) {
	h, err := readHeader(header)
	if err != nil {
		return DAG{}, err
	}

	// A header of a conversation with refs names the heads itself.
	named := h.heads
	if named == nil {
		for _, id := range heads {
			named = append(named, id.String())
		}
	}

	d := DAG{env: &env{}}
	if s.later != nil {
		d.env.later = []*later{s.later}
	}
	ends, err := namedNodes("heads", named, s.Node)
	if err != nil {
		return DAG{}, err
	}
	d = d.atAll(ends)
	if d.env.refs, err = namedRefs(nil, h.refs, s.Node); err != nil {
		return DAG{}, err
	}
	h.header.loose = s.loose()
	d.env.file = &h.header
	return d, nil
}

// readHeader reads the result of DAG.Header.
func readHeader(text []byte) (headReader, error) {
	var h headReader
	if len(text) == 0 {
		return h, nil
	}

	in := newScanner(bytes.NewReader(text), len(text))

	// A store keeps the nodes beside the header, and not in it.
	noNodes := func() error { return fmt.Errorf("%w: nodes in a header", ErrFormat) }
	if err := in.members(&h, noNodes); err != nil {
		return h, err
	}
	if _, err := in.peek(); !errors.Is(err, io.ErrUnexpectedEOF) {
		return h, fmt.Errorf("%w: more after the header", ErrFormat)
	}
	if h.format != documentFormat || h.version == 0 {
		return h, fmt.Errorf("%w: a header without a format", ErrFormat)
	}
	return h, nil
}

// loose returns the nodes of the set whose IDs occur in a node of an unknown kind, by that node: a newer version may
// need them.
func (s *NodeSet) loose() map[*node.Node][]*node.Node {
	if len(s.unknown) == 0 {
		return nil
	}

	loose := map[*node.Node][]*node.Node{}
	for _, n := range s.unknown {
		// The links begin with the parents, which are reached without this.
		for _, id := range Links(n, func(id node.ID) bool { return s.Node(id) != nil })[n.NumParents():] {
			loose[n] = append(loose[n], s.Node(id))
		}
	}
	return loose
}

// Links returns the IDs of the nodes referred to by n, each once: its parents, in order, and the heads of its child
// conversation. A node of an unknown kind may refer to any node by an ID in its saved form: Links returns those for
// which stored returns true.
func Links(n *node.Node, stored func(node.ID) bool) []node.ID {
	var links []node.ID
	add := func(id node.ID) {
		if !slices.Contains(links, id) {
			links = append(links, id)
		}
	}

	// Parents are distinct, and always come first.
	for i := range n.NumParents() {
		links = append(links, n.Parent(i).ID())
	}
	for _, head := range n.Children().Slice() {
		add(head.ID())
	}

	if _, unknown := n.Payload().(node.Unknown); unknown {
		for _, text := range idText().FindAll(n.Append(nil), -1) {
			if id := uuid.MustParse(string(text)); id != n.ID() && stored(id) {
				add(id)
			}
		}
	}
	return links
}
