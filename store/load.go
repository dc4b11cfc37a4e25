package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// errNoHead marks a missing head. ErrNotStored alone would not do: it also marks a missing record, and so damage.
var errNoHead = fmt.Errorf("there is no such head: %w", ErrNotStored)

// open reads the head as it is now. It may skip all nodes within reach of have: they are known. If the head moves
// during the read, open tries again. alone reports that no other conversation uses c.nodes.
func (c *Conversation) open(ctx context.Context, have []node.ID, alone bool) error {
	if err := checkNames(c.key, c.name); err != nil {
		return err
	}
	var failed error // of the attempt at version last
	for last := uint64(0); ; {
		// The set may have been emptied since the caller read have (see forget). Only nodes still in it may be skipped.
		o, err := c.store.driver.Open(ctx, c.key, c.name, c.nodes.known(have))
		switch {
		case errors.Is(err, ErrNotStored):
			return fmt.Errorf("store: %s: head %s: %w", quoted(c.key), quoted(c.name), errNoHead)
		case err != nil:
			return err
		case failed != nil && o.Head.Version == last:
			// The head has not moved since: the missing record is damage.
			return failed
		}

		d, err := c.load(ctx, o, have, alone)
		if err == nil {
			c.dag, c.head = d, o.Head
			return nil
		}

		// If the head has moved since, its old nodes may have been pruned while they were read.
		if !errors.Is(err, ErrNotStored) {
			return err
		}
		failed, last = err, o.Head.Version
	}
}

// load reads the conversation at a head.
func (c *Conversation) load(ctx context.Context, o Opened, have []node.ID, alone bool) (dag.DAG, error) {
	whole := !alone || !c.loadPart(ctx, o)
	records := o.Records
	if whole && records == nil {
		var err error
		records, err = all(c.store.driver.Read(ctx, c.key, o.Head.Nodes, c.nodes.known(have)))
		if err != nil {
			return dag.DAG{}, err
		}
	}

	c.nodes.mu.Lock()
	defer c.nodes.mu.Unlock()
	if whole {
		if err := c.parse(&c.nodes.set, records); err != nil {
			return dag.DAG{}, err
		}
	}
	d, err := c.nodes.set.DAG(o.Head.Header, o.Head.Nodes)
	if err != nil {
		return dag.DAG{}, fmt.Errorf("store: %s: head %s: %w", quoted(c.key), quoted(c.name), err)
	}
	return d, nil
}

// all collects the values of a sequence.
func all[T any](seq iter.Seq2[T, error]) (list []T, err error) {
	if seq == nil { // the driver has no such method, and has returned all there is from Open
		return nil, nil
	}
	for v, err := range seq {
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// known returns the IDs of nodes in the set, and leaves out all others.
func (n *nodes) known(ids []node.ID) []node.ID {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(ids), func(id node.ID) bool { return n.set.Node(id) == nil })
}

// parse parses records and adds the nodes to a set.
func (c *Conversation) parse(set *dag.NodeSet, records []Record) error {
	for _, r := range records {
		if set.Has(r.ID) {
			continue // it was read through another head
		}

		// A node that is not loaded yet must not become two: load it, with all others.
		n, err := r.node(set)
		if n != nil || errors.Is(err, node.ErrParent) {
			depth := 0
			if n != nil {
				depth = n.Depth()
			}
			loaded, failed := set.LoadFrom(depth)
			switch {
			case failed != nil:
				return failed
			case loaded && set.Has(r.ID):
				continue
			case loaded:
				n, err = r.node(set)
			}
		}
		if err != nil {
			return &RecordError{c.key, r.ID, err}
		}
		set.Add(n)
	}
	return nil
}

// node returns the node of a record. The nodes before it are in the set.
func (r Record) node(set *dag.NodeSet) (*node.Node, error) {
	if sum := SumOf(r.Line); sum != r.Sum {
		return nil, fmt.Errorf("its sum is %s instead of %s: it was changed", sum, r.Sum)
	}
	n, err := node.Parse(r.Line, set.Node)
	if err != nil {
		return nil, err
	}
	if n.ID() != r.ID {
		return nil, fmt.Errorf("its line is that of node %s", n.ID())
	}

	// Without one of its links, Prune could remove a node needed by this one. Extra links are fine: a newer version of
	// Plait may have stored them.
	links := dag.Links(n, func(node.ID) bool { return false })
	if len(links) > len(r.Links) || !slices.Equal(links, r.Links[:len(links)]) {
		return nil, fmt.Errorf("%w: its links are not those of its line", node.ErrParent)
	}
	return n, nil
}
