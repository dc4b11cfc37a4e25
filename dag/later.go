package dag

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/plait-dev/plait/node"
)

// later is the part of a stored conversation that is loaded when it is first used: the nodes before an outline. It is a
// node.Loader, safe for concurrent use.
type later struct {
	outline  outline
	load     func(rest *NodeSet, from []node.ID) error
	ready    atomic.Bool // the fields below are set, and never changed; it can load
	early    atomic.Bool // a node was used before it was ready
	known    map[node.ID]*node.Node
	before   []*node.Node // the nodes of the outline before the boundary, in order
	boundary *node.Node
	end      *node.Node // the compaction

	once sync.Once
	done atomic.Pointer[loaded] // nil until the nodes were loaded
}

// loaded is the result of loading.
type loaded struct {
	set NodeSet // with the nodes of known too
	err error
}

// Expect prepares an empty set for a conversation that is loaded in part, by the [Outline] of its compaction. ids are
// the nodes of the outline, and absent those that they refer to and that are loaded later. Parse and add the nodes of
// the outline, then the nodes after its compaction, and call [NodeSet.Ready]. The error is one about an outline that is
// damaged, or of a newer version: load everything.
//
// When another node is first used, load is called, once, on the goroutine that uses it. It parses all nodes within reach
// of from that rest does not have, in order, and adds them to rest. If it fails, [DAG.Err] returns its error, and the
// conversation ends where the loaded part does: load it anew.
func (s *NodeSet) Expect(
	text []byte, load func(rest *NodeSet, from []node.ID) error,
) (ids, absent []node.ID, err error) {
	o, err := parseOutline(text)
	if err != nil {
		return nil, nil, err
	}
	s.later = &later{outline: o, load: load}
	s.nodes = make(map[node.ID]*node.Node, len(o.ids)+len(o.absent))
	for _, a := range o.absent {
		s.nodes[a.id] = node.Later(a.id, a.depth, s.later)
	}
	return slices.Clone(o.ids), o.later(), nil
}

// Ready ends what Expect began. It returns an error if nodes of the outline are missing, or need others. The set is then
// of no use: load everything.
func (s *NodeSet) Ready() error {
	l := s.later
	for i, id := range l.outline.ids {
		n := s.nodes[id]
		if n == nil || n.Loader() != nil {
			return fmt.Errorf("%w: node %s", errOutline, id)
		}
		if i < l.outline.before {
			l.before = append(l.before, n)
		}
		l.end = n
	}
	if _, is := l.end.Payload().(node.Compaction); !is || l.early.Load() {
		return errOutline
	}

	l.boundary, l.known = s.nodes[l.outline.absent[0].id], maps.Clone(s.nodes)
	l.ready.Store(true)
	return nil
}

// Load implements node.Loader.
func (l *later) Load(id node.ID) *node.Node {
	if !l.ready.Load() {
		l.early.Store(true)
		return nil
	}
	return l.all().set.absent[id]
}

// all loads the nodes, if that was not done yet.
func (l *later) all() *loaded {
	l.once.Do(func() {
		rest := loaded{set: NodeSet{nodes: maps.Clone(l.known), absent: map[node.ID]*node.Node{}}}
		for _, a := range l.outline.absent {
			rest.set.absent[a.id] = nil
		}
		rest.err = l.load(&rest.set, l.outline.later())
		for _, a := range l.outline.absent {
			if n := rest.set.absent[a.id]; rest.err == nil && (n == nil || n.Depth() != a.depth) {
				rest.err = fmt.Errorf("%w: node %s", errOutline, a.id)
			}
		}

		// All or nothing: a part of the nodes would pass for the conversation.
		if rest.err != nil {
			rest.set, rest.err = NodeSet{}, fmt.Errorf("dag: load the rest of the conversation: %w", rest.err)
		}
		l.done.Store(&rest)
	})
	return l.done.Load()
}

// found returns the loaded node with that ID, or nil.
func (l *later) found(id node.ID) *node.Node {
	if done := l.done.Load(); done != nil {
		return done.set.nodes[id]
	}
	return nil
}

// failure returns the error of loading.
func (l *later) failure() error {
	if done := l.done.Load(); done != nil {
		return done.err
	}
	return nil
}

// covers reports whether the outline has all that the compactions after its own ones replace. index holds the nodes.
func (l *later) covers(own, after []*node.Node, index map[node.ID]int) bool {
	if len(after) == 0 {
		return true
	}

	// If one replaces the node in whose place a summary is sent, the summary moves to a node that may be missing.
	replaced := map[node.ID]bool{}
	for _, n := range own {
		for _, id := range n.Payload().(node.Compaction).Replaced.Slice() {
			replaced[id] = true
		}
	}
	for _, n := range after {
		for _, id := range n.Payload().(node.Compaction).Replaced.Slice() {
			if _, here := index[id]; !here || replaced[id] {
				return false
			}
		}
	}
	return true
}

// sent returns the nodes that decide what is sent, in order: all nodes; or, if the conversation is loaded in part, those
// of the outline and the nodes after it. rest is then what is loaded later, and otherwise nil.
func (d DAG) sent() (nodes []*node.Node, rest *later) {
	nodes = make([]*node.Node, 0, min(d.sizeHint(), 4096))
	for n := range d.backward {
		// Before the compaction, the nodes that it replaces are sent.
		if l, is := n.Loader().(*later); is && n == l.boundary && slices.Contains(nodes, l.end) {
			rest = l
			break
		}
		nodes = append(nodes, n)
	}

	if rest != nil {
		for _, n := range slices.Backward(rest.before) {
			nodes = append(nodes, n)
		}
	}
	slices.Reverse(nodes)
	return nodes, rest
}

// LoadAll loads what was not loaded yet of a conversation that was loaded in part, and returns the same error as
// [DAG.Err]. Without it, the rest is loaded when it is first used.
func (d DAG) LoadAll() error {
	for _, l := range d.environment().later {
		l.all()
	}
	return d.Err()
}

// LoadFrom loads what was not loaded yet (see [NodeSet.Expect]) if a node at this depth may be among it, and reports
// whether it did. The error is the one of its load.
func (s *NodeSet) LoadFrom(depth int) (loaded bool, err error) {
	l := s.later
	if l == nil || !l.ready.Load() || l.done.Load() != nil || depth > l.outline.absent[0].depth {
		return false, nil
	}
	return true, l.all().err
}

// takeLater returns d with the parts of o that are loaded later.
func (d DAG) takeLater(o DAG) DAG {
	for _, l := range o.environment().later {
		if !slices.Contains(d.environment().later, l) {
			// The list is shared: Clip makes append copy it.
			d = d.change(func(e *env) { e.later = append(slices.Clip(e.later), l) })
		}
	}
	return d
}
