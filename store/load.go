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
// during the read, open tries again.
func (c *Conversation) open(ctx context.Context, have []node.ID) error {
	var failed error // of the attempt at version last
	for last := uint64(0); ; {
		h, err := c.store.driver.Head(ctx, c.key, c.name)
		switch {
		case errors.Is(err, ErrNotStored):
			return fmt.Errorf("store: %s: head %s: %w", quoted(c.key), quoted(c.name), errNoHead)
		case err != nil:
			return err
		case failed != nil && h.Version == last:
			// The head has not moved since: the missing record is damage.
			return failed
		}

		d, err := c.load(ctx, h, have)
		if err == nil {
			c.dag, c.head = d, h
			return nil
		}

		// If the head has moved since, its old nodes may have been pruned while they were read.
		if !errors.Is(err, ErrNotStored) {
			return err
		}
		failed, last = err, h.Version
	}
}

// load reads the conversation at a head.
func (c *Conversation) load(ctx context.Context, h Head, have []node.ID) (dag.DAG, error) {
	// The set may have been emptied since the caller read have (see forget). Only nodes still in it may be skipped.
	records, err := all(c.store.driver.Read(ctx, c.key, h.Nodes, c.nodes.known(have)))
	if err != nil {
		return dag.DAG{}, err
	}

	for len(records) > 0 {
		n := few(records)
		if err := c.parse(ctx, records[:n]); err != nil {
			return dag.DAG{}, err
		}
		records = records[n:]
	}

	c.nodes.mu.Lock()
	defer c.nodes.mu.Unlock()
	d, err := c.nodes.set.DAG(h.Header, h.Nodes)
	if err != nil {
		return dag.DAG{}, fmt.Errorf("store: %s: head %s: %w", quoted(c.key), quoted(c.name), err)
	}
	return d, nil
}

// all collects the values of a sequence.
func all[T any](seq iter.Seq2[T, error]) (list []T, err error) {
	for v, err := range seq {
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// few returns how many of the records to parse next. Blobs are in memory twice while their records are parsed, so few
// limits the number of cuts.
func few(records []Record) int {
	const maxCuts = 64
	cuts := 0
	for i, r := range records {
		if cuts += len(r.Cuts); cuts > maxCuts && i > 0 {
			return i
		}
	}
	return len(records)
}

// known returns the IDs of nodes in the set, and leaves out all others.
func (n *nodes) known(ids []node.ID) []node.ID {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(ids), func(id node.ID) bool { return n.set.Node(id) == nil })
}

// parse reads the blobs of records, parses the records, and adds the nodes to the set.
func (c *Conversation) parse(ctx context.Context, records []Record) error {
	// The blobs are read before the lock is taken: other heads need not wait for the database.
	blobs := map[Sum][]byte{}
	if need := sums(records); len(need) > 0 {
		for b, err := range c.store.driver.Blobs(ctx, c.key, need) {
			if err != nil {
				return err
			}
			blobs[b.Sum] = b.Data
		}
	}

	c.nodes.mu.Lock()
	defer c.nodes.mu.Unlock()

	for _, r := range records {
		if c.nodes.set.Node(r.ID) != nil {
			continue // it was read through another head
		}
		n, err := r.node(&c.nodes.set, blobs)
		if err != nil {
			return &RecordError{c.key, r.ID, err}
		}
		c.nodes.set.Add(n)
	}
	return nil
}

// node returns the node of a record. The nodes before it are in the set.
func (r Record) node(set *dag.NodeSet, blobs map[Sum][]byte) (*node.Node, error) {
	line, err := r.restored(blobs)
	if err != nil {
		return nil, err
	}
	n, err := node.Parse(line, set.Node)
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
