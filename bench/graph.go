package main

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/google/uuid"
	"gonum.org/v1/gonum/graph"
	"gonum.org/v1/gonum/graph/simple"
	"gonum.org/v1/gonum/graph/topo"

	"github.com/plait-dev/plait/bench/internal/corpus"
	"github.com/plait-dev/plait/bench/internal/pair"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// appendNode compares an append, its UUIDv7 included, with google/uuid and a plain struct.
func appendNode() pair.Case {
	type plain struct {
		id     uuid.UUID
		parent *plain
		text   string
	}

	return pair.Case{Name: "append", Per: "node", Variants: func() ([]pair.Variant, error) {
		short, long := corpus.Chain(10), corpus.Chain(100_000)
		blocks := content.Words("and one more thing")

		// Each node follows the one before, as in a program. Each sample starts again with the same conversation.
		ours := func(from dag.DAG) func(*pair.Sample) error {
			return func(s *pair.Sample) error {
				d := from
				for range s.N {
					d = d.Append(node.Message{Role: content.User, Blocks: blocks})
				}
				kept = d
				return d.Err()
			}
		}
		return []pair.Variant{
			{Name: "Append", Run: ours(short), Max: 100_000},
			{Name: "uuid.NewV7 and a struct", Max: 100_000, Run: func(s *pair.Sample) error {
				var last *plain
				for range s.N {
					id, err := uuid.NewV7()
					if err != nil {
						return err
					}
					last = &plain{id, last, "and one more thing"}
				}
				sinkAny = last
				return nil
			}},
			{Name: "after 100k", Run: ours(long), Max: 100_000},
		}, nil
	}, Goals: []pair.Goal{
		{Number: 8, Name: "time", Kind: pair.Value, Limit: 250},
		{Number: 8, Name: "allocs", Kind: pair.Allocs, Limit: 2},
		{Number: 8, Name: "bytes", Kind: pair.Bytes},
		{Number: 8, Name: "struct", Kind: pair.AtMost},
		{Name: "100k beside 10", Kind: pair.AtMost, Ours: "after 100k", Beside: "Append", Limit: 1.15},
	}}
}

// depthFirst orders a graph in the usual way: depth-first search with a set of visited nodes. It has a stack of its own
// in place of recursion.
func depthFirst(head *node.Node) []*node.Node {
	type frame struct {
		n       *node.Node
		parents []*node.Node
	}
	seen := map[*node.Node]bool{head: true}
	stack := []frame{{head, head.Parents()}}
	var out []*node.Node
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		// All parents are in out: the node comes after them.
		if len(top.parents) == 0 {
			out = append(out, top.n)
			stack = stack[:len(stack)-1]
			continue
		}

		p := top.parents[0]
		top.parents = top.parents[1:]
		if !seen[p] {
			seen[p] = true
			stack = append(stack, frame{p, p.Parents()})
		}
	}
	return out
}

// order compares the ordering of a conversation with depth-first search and a map, and with a copy of the result.
func order(shape string, build func(int) dag.DAG, nodes int, limit, copies float64) pair.Case {
	return pair.Case{Name: "order/" + shape + "/" + short(nodes), Per: "node", Units: nodes, Full: nodes > 100_000, Variants: func() ([]pair.Variant, error) {
		d := build(nodes)
		flat := d.Nodes()
		head := d.Head()

		// A baseline with another result would be no baseline.
		if !slices.Equal(flat, depthFirst(head)) {
			return nil, fmt.Errorf("the baseline gives another order")
		}

		repeat := func(do func()) func(*pair.Sample) error {
			return func(s *pair.Sample) error {
				for range s.N {
					do()
				}
				return nil
			}
		}
		return []pair.Variant{
			{Name: "Nodes", Run: repeat(func() { keptNodes = d.Nodes() })},
			{Name: "depth-first with a map", Run: repeat(func() { keptNodes = depthFirst(head) })},
			{Name: "copy of the slice", Run: repeat(func() { keptNodes = slices.Clone(flat) })},
			{Name: "Transcript", Run: repeat(func() { keptTranscript = d.Transcript() })},
		}, nil
	}, Goals: []pair.Goal{
		{Number: 9, Kind: pair.Faster, Limit: limit},
		{Number: 9, Name: "copy", Kind: pair.AtMost, Beside: "copy of the slice", Limit: copies},
		{Number: 9, Name: "Transcript", Kind: pair.Faster, Ours: "Transcript"},
	}}
}

// orderGonum compares the ordering of a conversation with gonum. Gonum has to build its own graph of the IDs first.
func orderGonum(nodes int) pair.Case {
	return pair.Case{Name: "order/gonum/" + short(nodes), Per: "node", Units: nodes, Full: nodes > 10_000, Variants: func() ([]pair.Variant, error) {
		d := corpus.Phases(nodes)

		// Gonum gets the nodes in no useful order, the same at each run.
		shuffled := slices.Clone(d.Nodes())
		rand.New(rand.NewPCG(1, 2)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })

		return []pair.Variant{
			{Name: "Nodes", Run: func(s *pair.Sample) error {
				for range s.N {
					keptNodes = d.Nodes()
				}
				return nil
			}},
			{Name: "gonum build and SortStabilized", Run: func(s *pair.Sample) error {
				for range s.N {
					if _, err := sortGonum(shuffled); err != nil {
						return err
					}
				}
				return nil
			}},
		}, nil
	}, Goals: []pair.Goal{{Number: 10, Kind: pair.Faster, Limit: 10}}}
}

// sortGonum orders nodes with gonum.
func sortGonum(nodes []*node.Node) ([]graph.Node, error) {
	// All nodes first: a parent may come after its child in the list.
	ids := make(map[node.ID]int64, len(nodes))
	g := simple.NewDirectedGraph()
	for i, n := range nodes {
		ids[n.ID()] = int64(i)
		g.AddNode(simple.Node(i))
	}

	for i, n := range nodes {
		for p := range n.NumParents() {
			g.SetEdge(simple.Edge{F: simple.Node(ids[n.Parent(p).ID()]), T: simple.Node(i)})
		}
	}
	return topo.SortStabilized(g, nil)
}
