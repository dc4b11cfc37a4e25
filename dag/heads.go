package dag

import (
	"sync"

	"github.com/plait-dev/plait/internal/lineage"
	"github.com/plait-dev/plait/internal/memo"
	"github.com/plait-dev/plait/node"
)

// several are the heads of a conversation with more than one.
type several struct {
	// phase is the open tool phase whose executions are the heads. It is zero if the heads came as a list. The next
	// execution then costs no copy of the heads, of which a message with many deferred calls has as many.
	phase lineage.Phase

	once sync.Once    // makes list of the phase, for the first one who reads it
	list []*node.Node // never written after it is set
}

// heads returns the heads, in order. The list is shared and must not be written.
func (d DAG) heads() []*node.Node {
	s := d.several
	switch {
	case d.head != nil:
		return alone(d.head)
	case s == nil:
		return nil
	}
	s.once.Do(func() {
		if s.list == nil {
			s.list = phase{Phase: s.phase}.heads()
		}
	})
	return s.list
}

// alone returns the list of one node. The list is part of the node: reading the head then allocates none.
func alone(n *node.Node) []*node.Node { return memo.AloneOf(n).(*[1]*node.Node)[:] }

// at returns the conversation with n as its only head.
func (d DAG) at(n *node.Node) DAG {
	d.head, d.several = n, nil
	return d
}

// atAll returns the conversation with these heads, each of them once. It keeps the list.
func (d DAG) atAll(heads []*node.Node) DAG {
	d.head, d.several = nil, nil
	switch len(heads) {
	case 0:
	case 1:
		d.head = heads[0]
	default:
		d.several = &several{list: heads}
	}
	return d
}

// atPhase returns the conversation with the executions of an open phase as its heads.
func (d DAG) atPhase(p phase) DAG {
	executed := len(p.Spare)
	for i := range p.List {
		if p.Executions.At(i) != nil {
			executed++
		}
		if executed > 1 {
			p.Heads = nil
			d.head, d.several = nil, &several{phase: p.Phase}
			return d
		}
	}
	return d.atAll(p.heads())
}
