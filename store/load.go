package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

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
	if !alone || !c.loadPart(ctx, o) {
		records := o.Records
		if records == nil {
			var err error
			records, err = all(c.store.driver.Read(ctx, c.key, o.Head.Nodes, c.nodes.known(have)))
			if err != nil {
				return dag.DAG{}, err
			}
		}
		if err := c.parse(ctx, records, &c.nodes.set, &c.nodes.mu); err != nil {
			return dag.DAG{}, err
		}
	}

	c.nodes.mu.Lock()
	defer c.nodes.mu.Unlock()
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

// parse reads the blobs of records, parses the records, and adds the nodes to a set. The lock guards the set.
func (c *Conversation) parse(ctx context.Context, records []Record, set *dag.NodeSet, lock sync.Locker) error {
	for n := 0; len(records) > 0; records = records[n:] {
		n = few(records)

		// The blobs are read before the lock is taken: other heads need not wait for the database.
		blobs := map[Sum][]byte{}
		if need := sums(records[:n]); len(need) > 0 {
			for b, err := range c.store.driver.Blobs(ctx, c.key, need) {
				if err != nil {
					return err
				}
				blobs[b.Sum] = b.Data
			}
		}

		lock.Lock()
		err := c.add(set, records[:n], blobs)
		lock.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// add parses records and adds the nodes to a set.
func (c *Conversation) add(set *dag.NodeSet, records []Record, blobs map[Sum][]byte) error {
	for _, r := range records {
		if set.Has(r.ID) {
			continue // it was read through another head
		}

		// A node that is not loaded yet must not become two: load it, with all others.
		n, err := r.node(set, blobs)
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
				n, err = r.node(set, blobs)
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
