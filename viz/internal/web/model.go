package web

import (
	"maps"
	"slices"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz"
)

// Model knows what a page was told of a conversation. It is not safe for concurrent use.
type Model struct {
	// Prices is what models cost, which Plait does not know. It is set before the first Update. Defaults to none.
	Prices api.Prices

	d    dag.DAG
	next int // the key of the next node
	told told
}

// told is what a page knows.
type told struct {
	nodes    map[node.ID]known
	places   map[int]Place
	edges    map[[2]int]Edge
	frames   []Frame
	w, h     int
	heads    []int
	refs     []Ref
	problems []Problem
}

// known is a node that the page was told of.
type known struct {
	key  int
	node *node.Node
}

// NewModel returns a model of which no page was told anything.
func NewModel() *Model { return &Model{told: nothing()} }

func nothing() told {
	return told{nodes: map[node.ID]known{}, places: map[int]Place{}, edges: map[[2]int]Edge{}}
}

// Update returns what a page that has seen the former patches has to learn to show d. It takes time in proportion to the whole of
// d; the patch is as large as what has changed. The error is that of the chain that built d, and then nothing is told.
func (m *Model) Update(d dag.DAG) (Patch, error) {
	drawn, err := viz.Layout(d, nil)
	if err != nil {
		return Patch{}, err
	}
	m.d = d
	var p Patch
	pic := placed{drawn, m.nodes(&p, drawn)}
	m.places(&p, pic)
	m.edges(&p, pic)
	m.leave(&p, pic.keys)
	m.whole(&p, pic)
	return p, nil
}

// Whole returns everything, for a page that has to begin anew: Reset is set. It is the conversation of the last Update. Nodes keep
// their keys.
func (m *Model) Whole() (Patch, error) {
	before := m.told.nodes
	m.told = nothing()
	for id, k := range before {
		m.told.nodes[id] = known{key: k.key}
	}
	p, err := m.Update(m.d)
	p.Reset = true
	return p, err
}

// Key returns the key of a node that the page was told of, and whether it was.
func (m *Model) Key(id node.ID) (int, bool) {
	k, ok := m.told.nodes[id]
	return k.key, ok
}

// nodes tells of the nodes that are new or say something else, and returns the key of every node that is drawn.
func (m *Model) nodes(p *Patch, pic *viz.Picture) map[node.ID]int {
	keys := make(map[node.ID]int, len(pic.Boxes))
	var fresh []*node.Node
	for _, b := range pic.Boxes {
		k, ok := m.told.nodes[b.Node.ID()]
		if !ok {
			k.key = m.next
			m.next++
		}
		if k.node == nil || k.node != b.Node && string(k.node.Append(nil)) != string(b.Node.Append(nil)) {
			fresh = append(fresh, b.Node)
		}
		k.node = b.Node
		m.told.nodes[b.Node.ID()] = k
		keys[b.Node.ID()] = k.key
	}
	for _, n := range fresh {
		p.Nodes = append(p.Nodes, m.tell(n, keys))
	}
	return keys
}

// tell says what there is to know of n.
func (m *Model) tell(n *node.Node, keys map[node.ID]int) Node {
	d := describe.Of(n)
	t := Node{Key: keys[n.ID()], ID: n.ID().String(), Sort: string(d.Sort), Label: d.Label(), Raw: string(n.Append(nil))}
	t.Parents = keysOf(n.Parents(), keys)
	t.Opens = keysOf(dag.FromNode(n).Heads(), keys)
	if d.Sort == describe.Stop {
		return t // its totals are those of the nodes before it
	}
	t.Usage, t.MS = counts(d.Usage), milliseconds(d.Took)
	if cost, known := m.Prices.Cost(d.Model, d.Usage); known && d.Sort == describe.Assistant && d.Usage != (content.Usage{}) {
		t.Cost = &cost
	}
	return t
}

func counts(u content.Usage) [5]int64 {
	return [5]int64{u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Reasoning}
}

// milliseconds is d to the microsecond.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// keysOf returns the keys of those of the nodes that are drawn.
func keysOf(nodes []*node.Node, keys map[node.ID]int) []int {
	var list []int
	for _, n := range nodes {
		if k, ok := keys[n.ID()]; ok {
			list = append(list, k)
		}
	}
	return list
}

// places tells of boxes that are new, have moved or look different.
func (m *Model) places(p *Patch, pic placed) {
	for i := range pic.Boxes {
		place := pic.place(i)
		if old, ok := m.told.places[place.Key]; !ok || old != place {
			m.told.places[place.Key] = place
			p.Places = append(p.Places, place)
		}
	}
}

// edges tells of edges that are new or lie elsewhere, and of those that are gone although their nodes are not.
func (m *Model) edges(p *Patch, pic placed) {
	drawn := make(map[[2]int]bool, len(pic.Edges))
	for _, e := range pic.Edges {
		edge := pic.edge(e)
		at := [2]int{edge.From, edge.To}
		drawn[at] = true
		if old, ok := m.told.edges[at]; !ok || old.Dashed != edge.Dashed || !slices.Equal(old.Points, edge.Points) {
			m.told.edges[at] = edge
			p.Edges = append(p.Edges, edge)
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(m.told.edges), order) {
		if drawn[at] {
			continue
		}
		delete(m.told.edges, at)
		p.Cut = append(p.Cut, at)
	}
}

func order(a, b [2]int) int { return slices.Compare(a[:], b[:]) }

// leave tells of nodes that are gone.
func (m *Model) leave(p *Patch, keys map[node.ID]int) {
	for id, k := range m.told.nodes {
		if _, ok := keys[id]; !ok {
			delete(m.told.nodes, id)
			delete(m.told.places, k.key)
			p.Gone = append(p.Gone, k.key)
		}
	}
	slices.Sort(p.Gone)
}

// whole tells of what belongs to the conversation as a whole.
func (m *Model) whole(p *Patch, pic placed) {
	if pic.Width != m.told.w || pic.Height != m.told.h {
		p.Width, p.Height = pic.Width, pic.Height
		m.told.w, m.told.h = pic.Width, pic.Height
	}
	p.Frames = changed(&m.told.frames, pic.frames(), slices.Equal)
	p.Heads = changed(&m.told.heads, keysOf(m.d.Heads(), pic.keys), slices.Equal)
	p.Problems = changed(&m.told.problems, problems(m.d, pic), slices.Equal)
	var refs []Ref
	for _, r := range m.d.Refs() {
		if list := keysOf(r.Heads, pic.keys); len(list) > 0 {
			refs = append(refs, Ref{r.Name, list})
		}
	}
	p.Refs = changed(&m.told.refs, refs, func(a, b []Ref) bool {
		return slices.EqualFunc(a, b, func(x, y Ref) bool { return x.Name == y.Name && slices.Equal(x.Keys, y.Keys) })
	})
}

// changed remembers the new list in place of the old one, and returns it where they differ: empty, not nil, where nothing is left.
func changed[T any](old *[]T, list []T, equal func(a, b []T) bool) []T {
	if equal(*old, list) {
		return nil
	}
	*old = list
	if list == nil {
		return []T{}
	}
	return list
}
