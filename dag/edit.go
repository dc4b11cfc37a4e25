package dag

import (
	"fmt"

	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/node"
)

// Edited is the result of [DAG.Edit].
type Edited struct {
	// DAG is the conversation after the edit. It shares all nodes except those after the replaced node. Refs do not
	// move: an earlier ref leads back to the original.
	DAG DAG
	// Node is the replacement.
	Node *node.Node
	// Remade lists the nodes that followed the replaced node, in the order of [DAG.Nodes].
	Remade []Remade
}

// Remade is a node that was copied because an ancestor was replaced.
type Remade struct {
	// Old is the node before the edit. New is its copy, with the same payload and metadata, a new ID and a new time.
	Old, New *node.Node
	// Stale reports that the content depends on earlier nodes: a message of a model, a tool execution, a tool result,
	// or a summary of other nodes. New repeats it, although it was produced from a different history.
	Stale bool
}

// Stale returns the copies whose content depends on the replaced node (see [Remade]).
func (e Edited) Stale() []*node.Node {
	var stale []*node.Node
	for _, r := range e.Remade {
		if r.Stale {
			stale = append(stale, r.New)
		}
	}
	return stale
}

// Edit returns the conversation with n replaced by a node with payload p and n's metadata. It is a fork: all nodes
// after n, through all heads, fans and merges, are copied to follow the replacement. All other nodes are shared. A
// compaction of copied nodes replaces the copies.
//
// No model is asked again. Nodes after n may not fit p, such as the results of calls that p does not have.
// [DAG.Validate] reports them, and sending repairs them. Thinking after the replacement is not sent, even if p says
// what n says: the model saw another node. To drop the nodes after n instead, go back:
// d.WithHeads(n.Parents()...).Append(p), or d.Back(1).User(…) for the last exchange.
//
// Errors: ErrForeign for an n that is not in the conversation, those of node.New, and the chain's own. The Edited
// returned with an error is empty.
func (d DAG) Edit(n *node.Node, p node.Payload) (Edited, error) {
	if d.err != nil {
		return Edited{}, d.err
	}

	// Nodes come after their parents, so a replaced or copied parent is known when its child is reached.
	e := edit{d: d, copies: map[node.ID]*node.Node{}}
	for _, old := range d.Nodes() {
		var err error
		switch {
		case n != nil && old.ID() == n.ID():
			// The replacement is a new node with a new ID: n stays in the original.
			e.Node, err = node.New(d.Source(), p, old.Meta(), e.parents(old)...)
			e.copies[old.ID()] = e.Node
		case e.follows(old):
			err = e.remake(old)
		}
		if err != nil {
			return Edited{}, &buildError{Step: "Edit", Err: err}
		}
	}

	if e.Node == nil {
		return Edited{}, &buildError{Step: "Edit", Err: fmt.Errorf("%w: %v", ErrForeign, n)}
	}

	// Heads that do not follow n are kept.
	heads := d.Heads()
	for i, h := range heads {
		heads[i] = e.current(h)
	}
	e.DAG = d.WithHeads(heads...)
	return e.Edited, nil
}

// edit is an Edit in progress.
type edit struct {
	Edited
	d      DAG
	copies map[node.ID]*node.Node // the replacement and the copies, by the ID of the old node
}

// current returns the replacement or the copy of n, or n itself if there is none.
func (e *edit) current(n *node.Node) *node.Node {
	if made := e.copies[n.ID()]; made != nil {
		return made
	}
	return n
}

// follows reports whether a parent of n was replaced or copied.
func (e *edit) follows(n *node.Node) bool {
	for i := range n.NumParents() {
		if e.copies[n.Parent(i).ID()] != nil {
			return true
		}
	}
	return false
}

func (e *edit) parents(n *node.Node) []*node.Node {
	parents := n.Parents()
	for i, p := range parents {
		parents[i] = e.current(p)
	}
	return parents
}

// remake copies a node that comes after the replaced one.
func (e *edit) remake(old *node.Node) (err error) {
	r := Remade{Old: old, Stale: dependsOnHistory(old)}

	// A compaction refers to nodes by ID, so it must refer to the copies. Again also copies nodes of unknown kinds,
	// which node.New refuses.
	if c, ok := old.Payload().(node.Compaction); ok {
		r.New, err = node.New(e.d.Source(), e.compaction(c), old.Meta(), e.parents(old)...)
	} else {
		r.New, err = old.Again(e.d.Source(), e.parents(old)...)
	}

	e.copies[old.ID()] = r.New
	e.Remade = append(e.Remade, r)
	return err
}

// compaction returns c with the copies of its replaced nodes.
func (e *edit) compaction(c node.Compaction) node.Compaction {
	ids := c.Replaced.Slice()
	for i, id := range ids {
		if made := e.copies[id]; made != nil {
			ids[i] = made.ID()
		}
	}
	c.Replaced = node.ListOf(ids...)
	return c
}

// dependsOnHistory reports whether the content of n was produced from the nodes before it.
func dependsOnHistory(n *node.Node) bool {
	switch describe.Of(n).Sort {
	case describe.Assistant, describe.Results, describe.Call, describe.Compaction:
		return true
	}
	return false
}
