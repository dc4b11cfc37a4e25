package main

import (
	"slices"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/node"
)

// failures returns a row for each failed node of d and of its sub-agents, or for the last of them. Before it comes a
// row for each of its causes.
func failures(d dag.DAG, last int) []row {
	nodes := d.WithChildren()
	var failed []*node.Node
	for _, n := range nodes {
		if n.Failed() {
			failed = append(failed, n)
		}
	}
	if last > 0 {
		failed = failed[max(len(failed)-last, 0):]
	}

	c := causesOf(nodes)
	var list []*node.Node
	shown := map[node.ID]bool{}
	// Follow each failure to its causes, up to a node in the list.
	for _, n := range failed {
		var chain []*node.Node
		for ; n != nil && !shown[n.ID()]; n = c.of(n) {
			shown[n.ID()] = true
			chain = append(chain, n)
		}
		slices.Reverse(chain)
		list = append(list, chain...)
	}
	return rowsOf(d, list)
}

// causes holds the cause of each node, along first parents.
type causes struct {
	user  map[node.ID]*node.Node // the last user's message up to the node; nil for none
	root  map[node.ID]node.ID    // the first node of its conversation
	owner map[node.ID]*node.Node // by first node: the call of the sub-agent; nil for the outermost conversation
}

// causesOf returns the causes of nodes in the order of dag.DAG.WithChildren.
func causesOf(nodes []*node.Node) causes {
	c := causes{map[node.ID]*node.Node{}, map[node.ID]node.ID{}, map[node.ID]*node.Node{}}
	for _, n := range nodes {
		if n.NumParents() == 0 {
			c.root[n.ID()] = n.ID()
		} else {
			p := n.Parent(0).ID()
			c.root[n.ID()], c.user[n.ID()] = c.root[p], c.user[p]
		}
		if describe.Of(n).Sort == describe.User {
			c.user[n.ID()] = n
		}

		// The nodes of a sub-agent precede its call. Nodes shared with the surrounding conversation are not its own.
		for _, h := range n.Children().Slice() {
			root := c.root[h.ID()]
			if c.owner[root] == nil && root != c.root[n.ID()] {
				c.owner[root] = n
			}
		}
	}
	return c
}

// of returns the cause of n, or nil. The cause of a call is the response, of a response the user's message, and of the
// first message in a sub-agent the call of the sub-agent.
func (c causes) of(n *node.Node) *node.Node {
	if describe.Of(n).Sort == describe.Call && n.NumParents() > 0 {
		return n.Parent(0)
	}
	if user := c.user[n.ID()]; user != nil && user != n {
		return user
	}
	return c.owner[c.root[n.ID()]]
}
