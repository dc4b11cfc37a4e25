package dag

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/google/uuid"
	"github.com/plait-dev/plait/internal/jsonx/write"
	"github.com/plait-dev/plait/node"
)

// NodeSet is the set of nodes of a conversation that are stored in another place than one file, such as a database. It
// finds the nodes that an append has to store, and builds a conversation from stored nodes. Package store is made of
// it; other programs need it only to write a store of their own.
//
// To store a conversation, store what [NodeSet.Missing] returns, then [DAG.Header] and the IDs of the heads, and call
// [NodeSet.Add]. To load one, call [NodeSet.Parse] for each stored node, and [NodeSet.DAG].
//
// The zero value is empty. A NodeSet is not safe for concurrent use.
type NodeSet struct {
	nodes   map[node.ID]*node.Node
	unknown []*node.Node // those of kinds that this version does not know
}

// Node returns the node with that ID, or nil.
func (s *NodeSet) Node(id node.ID) *node.Node { return s.nodes[id] }

// Add adds nodes that are stored. A node whose ID is there replaces the one of before.
func (s *NodeSet) Add(nodes ...*node.Node) {
	if s.nodes == nil {
		s.nodes = make(map[node.ID]*node.Node, len(nodes))
	}
	for _, n := range nodes {
		s.nodes[n.ID()] = n
		if _, unknown := n.Payload().(node.Unknown); unknown {
			s.unknown = append(s.unknown, n)
		}
	}
}

// Parse reads the saved form of a node, as node.Parse does, and adds the node. The nodes that it refers to must have
// been added before. If its ID is there already, the error is ErrDuplicateID.
func (s *NodeSet) Parse(line []byte) (*node.Node, error) {
	n, err := node.Parse(line, s.Node)
	if err != nil {
		return nil, err
	}
	if s.nodes[n.ID()] != nil {
		return nil, &node.FieldError{ID: n.ID().String(), Field: "id", Err: ErrDuplicateID}
	}
	s.Add(n)
	return n, nil
}

// Missing returns the nodes of d that are not in the set: nodes that the heads and the refs reach, and of child
// conversations. Every node comes after all nodes that it refers to. The cost does not grow with the number of nodes
// that are in the set.
//
// If a node is redacted in a part of d or in the set, the copy that is returned is redacted, also where d has its
// content. Errors:
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

// missingAlike returns the nodes that find returns for d. It redacts d first if find reports a mixture, and returns d
// as find saw it last.
func (d DAG) missingAlike(find func(DAG) ([]*node.Node, mixture, error)) (DAG, []*node.Node, error) {
	nodes, mixed, err := find(d)
	if mixed.is && err == nil {
		if d = d.redactAlike(mixed.ids...); d.err != nil {
			return d, nil, d.err
		}
		nodes, _, err = find(d)
	}
	return d, nodes, err
}

func (s *NodeSet) missingFrom(d DAG) ([]*node.Node, mixture, error) {
	loose := d.header().loose
	roots := d.roots()
	if len(loose[nil]) > 0 {
		roots = append(roots[:len(roots):len(roots)], loose[nil]...)
	}
	return s.missing(d, roots, loose)
}

// mixture reports that a conversation and a set may have some nodes with their content and without. It holds the
// IDs of nodes that the set has redacted, and the conversation has not.
type mixture struct {
	is  bool
	ids []node.ID
}

// missing returns the nodes that are not in the set and that the roots, of d, reach, also through extra nodes (see
// walk). It also reports whether nodes that were redacted are mixed with others.
func (s *NodeSet) missing(
	d DAG, roots []*node.Node, extra map[*node.Node][]*node.Node,
) (nodes []*node.Node, mixed mixture, err error) {
	w := walk{extra: extra}
	erased := len(d.environment().erased) > 0
	w.known = func(n *node.Node) bool {
		old := s.nodes[n.ID()]
		if old == nil || old == n {
			return old != nil
		}

		w.clashes(old, n)
		mixed.is = mixed.is || erased || old.Redacted() != n.Redacted()
		if old.Redacted() && !n.Redacted() {
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
		if n := s.nodes[id]; n != nil && n != erased && string(n.Append(nil)) != string(erased.Append(nil)) {
			return &node.FieldError{ID: id.String(), Field: "redacted", Err: ErrNotErased}
		}
	}
	return nil
}

// Header returns the conversation in its saved form without the nodes: the members that [DAG.Write] writes beside them.
// The IDs of the heads are left out unless there are refs. Then they are there, to tell the heads of the conversation
// from those of refs.
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
// Errors are those of [Load] about a header, and ErrHeads for a head that is not in the set.
func (s *NodeSet) DAG(header []byte, heads []node.ID) (DAG, error) {
	h, err := readHeader(header)
	if err != nil {
		return DAG{}, err
	}
	named := h.heads
	if named == nil {
		for _, id := range heads {
			named = append(named, id.String())
		}
	}

	d := DAG{env: &env{}}
	if d.heads, err = namedNodes("heads", named, s.Node); err != nil {
		return DAG{}, err
	}
	if d.env.refs, err = namedRefs(nil, h.refs, s.Node); err != nil {
		return DAG{}, err
	}
	h.header.loose = s.loose()
	d.env.file = &h.header
	return d, nil
}

// readHeader reads what DAG.Header returned.
func readHeader(text []byte) (headReader, error) {
	var h headReader
	if len(text) == 0 {
		return h, nil
	}

	in := newScanner(bytes.NewReader(text), len(text))
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

// loose returns the nodes of the set whose IDs occur in nodes of unknown kinds, by the node that names them: a
// newer version may need them.
func (s *NodeSet) loose() map[*node.Node][]*node.Node {
	if len(s.unknown) == 0 {
		return nil
	}

	loose := map[*node.Node][]*node.Node{}
	for _, n := range s.unknown {
		for _, id := range Links(n, func(id node.ID) bool { return s.nodes[id] != nil })[n.NumParents():] {
			loose[n] = append(loose[n], s.nodes[id])
		}
	}
	return loose
}

// Links returns the IDs of the nodes that n refers to, each once: its parents, in order, and the heads of its child
// conversation. A node of a kind that this version does not know may refer to any node whose ID occurs in its saved
// form: of these, Links returns those that stored reports.
func Links(n *node.Node, stored func(node.ID) bool) []node.ID {
	var links []node.ID
	add := func(id node.ID) {
		if !slices.Contains(links, id) {
			links = append(links, id)
		}
	}
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
