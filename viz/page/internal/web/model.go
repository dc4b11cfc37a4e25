package web

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz"
)

// Model records everything sent to a page, to compute the next changes. It is not safe for concurrent use.
type Model struct {
	// Prices are the models' prices. They must be set before the first Update. Defaults to none.
	Prices api.Prices
	// Cache is the cache policy of the requests, as in promptcache.Options. It holds for the responses added by the
	// next Update. Defaults to api.CacheShort.
	Cache api.Cache

	d    dag.DAG
	next int // the key of the next node or folded box
	sent sent
	// folds holds the keys of folded boxes, by the key of the first node in them and the height of the picture inside.
	folds map[[2]int]int
}

// sent is the content of a page.
type sent struct {
	nodes    map[node.ID]known
	places   map[int]Place
	folds    map[int]Fold
	edges    map[[2]int]Edge
	frames   []Frame
	rooms    []Room
	w, h     int
	note     string
	heads    []int
	refs     []Ref
	problems []Problem
	totals   []Total
}

// known is a node on the page.
type known struct {
	key  int
	node *node.Node
}

// NewModel returns the model of an empty page.
func NewModel() *Model { return &Model{sent: nothing(), folds: map[[2]int]int{}} }

func nothing() sent {
	return sent{nodes: map[node.ID]known{}, places: map[int]Place{}, folds: map[int]Fold{}, edges: map[[2]int]Edge{}}
}

// Update returns the next patch for a page with all former patches: with it, the page shows d. The time is proportional
// to the size of d, and the size of the patch to the size of the changes. Update returns the error of the chain that
// built d, and then leaves the model unchanged.
func (m *Model) Update(d dag.DAG) (Patch, error) {
	drawn, err := viz.Layout(d, &viz.Options{Runs: true, Inside: true})
	if err != nil {
		return Patch{}, err
	}

	// Nodes come first: everything else refers to their keys.
	m.d = d
	var p Patch
	pic := &placed{Picture: drawn, boxes: boxesOf(drawn)}
	pic.keys = m.nodes(&p, pic.boxes)
	pic.findFrames()
	pic.lay(drawn, 0, heights(drawn), m.foldKey)
	m.places(&p, pic)
	m.edges(&p, pic)
	m.leave(&p, pic)
	m.whole(&p, pic)
	return p, nil
}

// Whole returns the conversation of the last Update as a patch for an empty page: Reset is set. Nodes keep their keys.
func (m *Model) Whole() (Patch, error) {
	before := m.sent.nodes
	m.sent = nothing()
	for id, k := range before {
		m.sent.nodes[id] = known{key: k.key}
	}

	p, err := m.Update(m.d)
	p.Reset = true
	return p, err
}

// IsEmpty reports whether nothing has been sent: the next patch is the whole conversation.
func (m *Model) IsEmpty() bool { return len(m.sent.nodes) == 0 }

// Key returns the key of a node, and whether the page has the node.
func (m *Model) Key(id node.ID) (int, bool) {
	k, ok := m.sent.nodes[id]
	return k.key, ok
}

// nodes adds new and changed nodes to the patch. It returns the keys of all drawn nodes.
func (m *Model) nodes(p *Patch, boxes []*viz.Box) map[node.ID]int {
	keys := make(map[node.ID]int, len(boxes))
	var fresh []*node.Node
	for _, b := range boxes {
		k, ok := m.sent.nodes[b.Node.ID()]
		if !ok {
			k.key = m.next
			m.next++
		}

		// A redacted node keeps its ID: only the saved form shows the change. Identical nodes need no comparison.
		if k.node == nil || k.node != b.Node && !bytes.Equal(k.node.Append(nil), b.Node.Append(nil)) {
			fresh = append(fresh, b.Node)
		}

		k.node = b.Node
		m.sent.nodes[b.Node.ID()] = k
		keys[b.Node.ID()] = k.key
	}

	// A node may refer to nodes after it, so all keys must be known first.
	for _, n := range fresh {
		p.Nodes = append(p.Nodes, m.describe(n, keys))
	}
	m.caches(p.Nodes, keys)
	return keys
}

// describe returns a node in the form of the patch.
func (m *Model) describe(n *node.Node, keys map[node.ID]int) Node {
	d := describe.Of(n)
	t := Node{Key: keys[n.ID()], ID: n.ID().String(), Sort: string(d.Sort), Label: d.Label(), Raw: Saved{node: n}}
	t.Call, t.Line = line(d)
	t.Parts = nodeParts(n, d)
	t.Parents = keysOf(n.Parents(), keys)
	t.Opens = keysOf(dag.FromNode(n).Heads(), keys)
	t.State = cmp.Or(d.State, d.Retried)
	t.At = float64(d.Began.UnixMicro()) / 1000

	if d.Sort == describe.Stop {
		return t // its totals repeat the usage of earlier nodes
	}

	t.Usage, t.Least, t.Model, t.MS = counts(d.Usage), d.Usage.Incomplete, d.Model, milliseconds(d.Took)
	if cost, known := m.cost(d); known {
		t.Cost = &cost
	}
	return t
}

// cost returns the cost of a response, and whether it is known.
func (m *Model) cost(d describe.Node) (float64, bool) {
	if d.Sort != describe.Assistant || d.Usage == (content.Usage{}) {
		return 0, false
	}
	return m.Prices.Cost(d.Model, d.Usage)
}

func counts(u content.Usage) [5]int64 {
	return [5]int64{u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Reasoning}
}

// milliseconds returns d in milliseconds, to the microsecond.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// keysOf returns the keys of nodes, without those that are not drawn.
func keysOf(nodes []*node.Node, keys map[node.ID]int) []int {
	var list []int
	for _, n := range nodes {
		if k, ok := keys[n.ID()]; ok {
			list = append(list, k)
		}
	}
	return list
}

// places adds new, moved and changed boxes to the patch.
func (m *Model) places(p *Patch, pic *placed) {
	for _, place := range pic.places {
		if old, ok := m.sent.places[place.Key]; !ok || old != place {
			m.sent.places[place.Key] = place
			p.Places = append(p.Places, place)
		}
	}
	for _, fold := range pic.folds {
		if old, ok := m.sent.folds[fold.Key]; !ok || old != fold {
			m.sent.folds[fold.Key] = fold
			p.Folds = append(p.Folds, fold)
		}
	}
}

// foldKey returns the key of a folded box. A new box gets a new key.
func (m *Model) foldKey(first, height int) int {
	at := [2]int{first, height}
	key, ok := m.folds[at]
	if !ok {
		key = m.next
		m.next++
		m.folds[at] = key
	}
	return key
}

// edges adds new, moved and removed edges.
func (m *Model) edges(p *Patch, pic *placed) {
	drawn := make(map[[2]int]bool, len(pic.edges))
	for _, edge := range pic.edges {
		at := [2]int{edge.From, edge.To}
		drawn[at] = true
		if old, ok := m.sent.edges[at]; !ok || old.Dashed != edge.Dashed || !slices.Equal(old.Points, edge.Points) {
			m.sent.edges[at] = edge
			p.Edges = append(p.Edges, edge)
		}
	}

	// Maps have no order. Sort the edges: the same changes must give the same patch.
	for _, at := range slices.SortedFunc(maps.Keys(m.sent.edges), order) {
		if drawn[at] {
			continue
		}
		delete(m.sent.edges, at)
		p.Cut = append(p.Cut, at)
	}
}

func order(a, b [2]int) int { return slices.Compare(a[:], b[:]) }

// leave adds removed nodes and folded boxes.
func (m *Model) leave(p *Patch, pic *placed) {
	for id, k := range m.sent.nodes {
		if _, ok := pic.keys[id]; !ok {
			delete(m.sent.nodes, id)
			delete(m.sent.places, k.key)
			p.Gone = append(p.Gone, k.key)
		}
	}

	folded := make(map[int]bool, len(pic.folds))
	for _, fold := range pic.folds {
		folded[fold.Key] = true
	}
	for at, key := range m.folds {
		if folded[key] {
			continue
		}

		delete(m.folds, at)
		if _, ok := m.sent.folds[key]; ok {
			delete(m.sent.folds, key)
			p.Gone = append(p.Gone, key)
		}
	}

	// Maps have no order, and the same changes must give the same patch.
	slices.Sort(p.Gone)
}

// whole adds changes that concern the whole conversation.
func (m *Model) whole(p *Patch, pic *placed) {
	if pic.Width != m.sent.w || pic.Height != m.sent.h {
		p.Width, p.Height = pic.Width, pic.Height
		m.sent.w, m.sent.h = pic.Width, pic.Height
	}

	if note := strings.Join(pic.Note, "\n"); note != m.sent.note {
		p.Note, m.sent.note = &note, note
	}

	p.Frames = changed(&m.sent.frames, pic.frames, slices.Equal)
	p.Rooms = changed(&m.sent.rooms, pic.rooms, slices.Equal)
	p.Heads = changed(&m.sent.heads, keysOf(m.d.Heads(), pic.keys), slices.Equal)
	p.Problems = changed(&m.sent.problems, problems(m.d, pic), slices.Equal)
	p.Totals = changed(&m.sent.totals, m.totals(pic), slices.Equal)

	// A ref to nodes that no head reaches is not on the page.
	var refs []Ref
	for _, r := range m.d.Refs() {
		if list := keysOf(r.Heads, pic.keys); len(list) > 0 {
			refs = append(refs, Ref{r.Name, list})
		}
	}

	p.Refs = changed(&m.sent.refs, refs, func(a, b []Ref) bool {
		return slices.EqualFunc(a, b, func(x, y Ref) bool { return x.Name == y.Name && slices.Equal(x.Keys, y.Keys) })
	})
}

// changed replaces the old list by the new one. It returns the new list if they differ, and nil otherwise. A new list
// without items is returned empty, not nil: JSON then contains it.
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
