package dag

import (
	"fmt"

	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/node"
)

// Edited is what an edit has made.
type Edited struct {
	// DAG is the conversation after the edit. It shares every node that does not follow the one that was replaced, and keeps
	// refs where they were: a ref that was set before the edit is the way back.
	DAG DAG
	// Node is the replacement.
	Node *node.Node
	// Remade is the nodes that followed the one that was replaced, in the order of [DAG.Nodes].
	Remade []Remade
}

// Remade is a node that was made anew because it follows something else now.
type Remade struct {
	// Old is the node as it was, and New the one that stands for it: with the same payload and metadata, a new id and a new time.
	Old, New *node.Node
	// Stale says that Old was said in the light of what was replaced: it is an answer of a model, what came of a tool call, a
	// result, or a summary of other nodes. New repeats it, and nobody has said it there.
	Stale bool
}

// Stale returns the new nodes that repeat what was said in the light of what was replaced.
func (e Edited) Stale() []*node.Node {
	var stale []*node.Node
	for _, r := range e.Remade {
		if r.Stale {
			stale = append(stale, r.New)
		}
	}
	return stale
}

// Edit returns the conversation with a node that says p, and has n's metadata, in the place of n. It is a fork: everything after n
// follows the replacement, over all heads, fans and merges, and what does not follow n is shared. A compaction that replaces nodes
// which are made anew replaces the new ones. Nothing is said anew, and it can be that what followed n does not fit any more, such as
// results of calls that p does not have: [DAG.Validate] finds that, and sending repairs it.
//
// To drop what followed instead, and to ask again, go back to before n: d.WithHeads(n.Parents()...).Append(p), or
// d.Back(1).User(…) for the last turn.
//
// Errors: ErrForeign for an n that is not in the conversation, those of node.New, and the chain's own. Edited is empty beside an
// error.
func (d DAG) Edit(n *node.Node, p node.Payload) (Edited, error) {
	if d.err != nil {
		return Edited{}, d.err
	}
	e := editing{d: d, new: map[node.ID]*node.Node{}}
	for _, old := range d.Nodes() {
		var err error
		switch {
		case n != nil && old.ID() == n.ID():
			e.Node, err = node.New(d.Source(), p, old.Meta(), e.parents(old)...)
			e.new[old.ID()] = e.Node
		case e.follows(old):
			err = e.again(old)
		}
		if err != nil {
			return Edited{}, &BuildError{Step: "Edit", Err: err}
		}
	}
	if e.Node == nil {
		return Edited{}, &BuildError{Step: "Edit", Err: fmt.Errorf("%w: %v", ErrForeign, n)}
	}
	heads := d.Heads()
	for i, h := range heads {
		heads[i] = e.now(h)
	}
	e.DAG = d.WithHeads(heads...)
	return e.Edited, nil
}

// editing is an edit while it is made.
type editing struct {
	Edited
	d   DAG
	new map[node.ID]*node.Node // by the id of the old one
}

// now returns what stands for n.
func (e *editing) now(n *node.Node) *node.Node {
	if made := e.new[n.ID()]; made != nil {
		return made
	}
	return n
}

func (e *editing) follows(n *node.Node) bool {
	for i := range n.NumParents() {
		if e.new[n.Parent(i).ID()] != nil {
			return true
		}
	}
	return false
}

// parents returns what n's parents are now.
func (e *editing) parents(n *node.Node) []*node.Node {
	parents := n.Parents()
	for i, p := range parents {
		parents[i] = e.now(p)
	}
	return parents
}

// again makes a node anew that follows what was replaced.
func (e *editing) again(old *node.Node) (err error) {
	r := Remade{Old: old, Stale: inLightOfThePast(old)}
	if c, ok := old.Payload().(node.Compaction); ok {
		r.New, err = node.New(e.d.Source(), e.compaction(c), old.Meta(), e.parents(old)...)
	} else {
		r.New, err = old.Again(e.d.Source(), e.parents(old)...)
	}
	e.new[old.ID()] = r.New
	e.Remade = append(e.Remade, r)
	return err
}

func (e *editing) compaction(c node.Compaction) node.Compaction {
	ids := c.Replaced.Slice()
	for i, id := range ids {
		if made := e.new[id]; made != nil {
			ids[i] = made.ID()
		}
	}
	c.Replaced = node.ListOf(ids...)
	return c
}

// inLightOfThePast reports whether what n says depends on what was said before.
func inLightOfThePast(n *node.Node) bool {
	switch describe.Of(n).Sort {
	case describe.Assistant, describe.Results, describe.Call, describe.Compaction:
		return true
	}
	return false
}
