package dag

import (
	"slices"
	"sync/atomic"

	"github.com/plait-dev/plait/node"
)

// unread is a file with nodes decoded on first use. It is safe for concurrent use.
type unread struct {
	file  string
	nodes []*node.Node // the nodes read so far, in their order in the file
	lines []int        // the first line of each node, and of the one that is being read
	err   atomic.Pointer[LoadError]

	failed func(*node.Node, error) // the method fail, allocated once
}

func newUnread(file string) *unread {
	u := &unread{file: file}
	u.failed = u.fail
	return u
}

// fail records the error of decoding n, unless there is one already.
func (u *unread) fail(n *node.Node, err error) {
	at := slices.Index(u.nodes, n)
	if at < 0 {
		at = len(u.lines) - 1 // it is being read
	}
	u.err.CompareAndSwap(nil, &LoadError{File: u.file, Line: u.lines[at], Node: at + 1, Err: err})
}

// unreadErr returns the first error found in nodes of lazily loaded files, or nil.
func (e env) unreadErr() error {
	for _, u := range e.unread {
		if err := u.err.Load(); err != nil {
			return err
		}
	}
	return nil
}

// takeUnread returns d with the lazily loaded files of o.
func (d DAG) takeUnread(o DAG) DAG {
	for _, u := range o.environment().unread {
		if !slices.Contains(d.environment().unread, u) {
			// The list is shared: Clip makes append copy it.
			d = d.change(func(e *env) { e.unread = append(slices.Clip(e.unread), u) })
		}
	}
	return d
}
