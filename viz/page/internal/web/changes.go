package web

import (
	"iter"
	"slices"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/node"
)

// pieceNodes is the number of nodes in a piece: a browser reads one in a few milliseconds.
const pieceNodes = 1000

// Changes are changes of a page. Described, the nodes of a long conversation are many times as large as the
// conversation, so each is described when it is written. Changes are safe for concurrent use, also with their Model.
type Changes struct {
	view         *view
	fresh, moved []int // the numbers of nodes: new and changed ones, and those with a new or changed place
	rest         Patch // without nodes and places
	prices       api.Prices
	cache        api.Cache
}

// Empty reports whether there are no changes.
func (c Changes) Empty() bool { return len(c.fresh) == 0 && len(c.moved) == 0 && c.rest.isEmpty() }

// IsLong reports whether there are more new nodes than in a piece.
func (c Changes) IsLong() bool { return len(c.fresh) > pieceNodes }

// Patch returns all changes.
func (c Changes) Patch() Patch {
	p := c.rest
	p.Nodes, p.Places = slices.Collect(c.nodes(c.fresh, c.caches())), slices.Collect(c.places(c.moved))
	return p
}

// Pieces cuts a whole conversation, changes with Reset, into patches that a page receives one after the other. All but
// the last have More set. The first one shows the beginning of the conversation by itself: its head is the last of its
// nodes. Other changes, and short conversations, are one piece.
func (c Changes) Pieces() iter.Seq[Patch] {
	return func(yield func(Patch) bool) {
		if !c.rest.Reset || !c.IsLong() {
			yield(c.Patch())
			return
		}

		caches := c.caches()
		for some := range slices.Chunk(c.fresh, pieceNodes) {
			piece := Patch{More: true}
			last := some[len(some)-1]
			if last == c.fresh[len(c.fresh)-1] {
				// Everything else refers to nodes of all pieces.
				piece = c.rest
				piece.Reset, piece.Folds = false, nil
			}

			piece.Nodes, piece.Places = slices.Collect(c.nodes(some, caches)), slices.Collect(c.places(some))
			if some[0] == c.fresh[0] {
				piece.Reset, piece.Folds, piece.Heads = true, c.rest.Folds, []int{c.view.nodes[last].place.Key}
			}
			if !yield(piece) {
				return
			}
		}
	}
}

// nodes describes nodes by number.
func (c Changes) nodes(numbers []int, caches map[node.ID]*Cache) iter.Seq[Node] {
	return func(yield func(Node) bool) {
		for _, i := range numbers {
			n := c.view.nodes[i].node
			described := c.describe(n)
			described.Cache = caches[n.ID()]
			if !yield(described) {
				return
			}
		}
	}
}

// places returns the places of nodes by number.
func (c Changes) places(numbers []int) iter.Seq[Place] {
	return func(yield func(Place) bool) {
		for _, i := range numbers {
			if !yield(c.view.nodes[i].place) {
				return
			}
		}
	}
}
