package web

import (
	"bytes"
	"cmp"
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

// Model records what a page shows, to compute the next changes. It is not safe for concurrent use.
type Model struct {
	// Prices are the models' prices. They must be set before the first Update. Defaults to none.
	Prices api.Prices
	// Cache is the cache policy of the requests, as in promptcache.Options. It holds for the responses added by the
	// next Update. Defaults to api.CacheShort.
	Cache api.Cache

	next  int // the key of the next node or folded box
	shown *view
}

// NewModel returns the model of an empty page.
func NewModel() *Model { return &Model{shown: &view{}} }

// Update returns the changes for a page with all former changes: with them, the page shows d. The time is proportional
// to the size of d, and the size of the changes to what has changed. Update returns the error of the chain that built d,
// and then leaves the model unchanged.
func (m *Model) Update(d dag.DAG) (Changes, error) {
	if err := d.Err(); err != nil {
		return Changes{}, err
	}

	// Both need much memory for a long conversation, so one comes after the other.
	findings := d.Validate()
	drawn, err := viz.Layout(d, &viz.Options{Runs: true, Inside: true})
	if err != nil {
		return Changes{}, err
	}

	before := m.shown
	m.shown = m.view(d, drawn, findings)
	return m.changes(before), nil
}

// Whole returns the conversation of the last Update as changes of an empty page: Reset is set. Nodes keep their keys.
func (m *Model) Whole() Changes {
	c := m.changes(&view{})
	c.rest.Reset = true
	return c
}

// Key returns the key of a node, and whether the page has the node.
func (m *Model) Key(id node.ID) (int, bool) { return m.shown.key(id) }

// changes returns the changes from an earlier view to the present one.
func (m *Model) changes(old *view) Changes {
	v := m.shown
	c := Changes{view: v, prices: m.Prices, cache: m.Cache}

	for i := range v.nodes {
		now := &v.nodes[i]
		k, ok := old.index[now.node.ID()]
		if !ok || isChanged(old.nodes[k].node, now.node) {
			c.fresh = append(c.fresh, i)
		}
		if !ok || old.nodes[k].place != now.place {
			c.moved = append(c.moved, i)
		}
	}
	for i := range old.nodes {
		if _, ok := v.index[old.nodes[i].node.ID()]; !ok {
			c.rest.Gone = append(c.rest.Gone, old.nodes[i].place.Key)
		}
	}

	var gone []int
	c.rest.Folds, gone = differences(old.folds, v.folds, func(f Fold) int { return f.Key }, func(a, b Fold) bool { return a == b })
	c.rest.Gone = append(c.rest.Gone, gone...)
	slices.Sort(c.rest.Gone)

	c.rest.Edges, c.rest.Cut = differences(old.edges, v.edges, func(e Edge) [2]int { return [2]int{e.From, e.To} },
		func(a, b Edge) bool { return a.Dashed == b.Dashed && slices.Equal(a.Points, b.Points) })
	slices.SortFunc(c.rest.Cut, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })

	v.whole(&c.rest, old)
	return c
}

// isChanged reports whether a node has another saved form than before. A redacted node keeps its ID: only the saved form
// shows the change.
func isChanged(before, now *node.Node) bool {
	return before != now && !bytes.Equal(before.Append(nil), now.Append(nil))
}

// differences returns the items that are not in old, or that were different there, and the keys of the items that are
// only in old, in any order.
func differences[T any, K comparable](old, items []T, key func(T) K, equal func(a, b T) bool) (fresh []T, gone []K) {
	if len(old) == 0 {
		return items, nil
	}

	before := make(map[K]T, len(old))
	for _, item := range old {
		before[key(item)] = item
	}
	for _, item := range items {
		if was, ok := before[key(item)]; !ok || !equal(was, item) {
			fresh = append(fresh, item)
		}
	}

	for _, item := range items {
		delete(before, key(item))
	}
	for k := range before {
		gone = append(gone, k)
	}
	return fresh, gone
}

// whole adds changes that concern the whole conversation.
func (v *view) whole(p *Patch, old *view) {
	if v.width != old.width || v.height != old.height {
		p.Width, p.Height = v.width, v.height
	}
	if v.note != old.note {
		p.Note = &v.note
	}

	p.Frames = changed(old.frames, v.frames, slices.Equal)
	p.Rooms = changed(old.rooms, v.rooms, slices.Equal)
	p.Heads = changed(old.heads, v.heads, slices.Equal)
	p.Problems = changed(old.problems, v.problems, slices.Equal)
	p.Totals = changed(old.totals, v.totals, slices.Equal)
	p.Refs = changed(old.refs, v.refs, func(a, b []Ref) bool {
		return slices.EqualFunc(a, b, func(x, y Ref) bool { return x.Name == y.Name && slices.Equal(x.Keys, y.Keys) })
	})
}

// changed returns the new list if it differs from the old one, and nil otherwise. A new list without items is returned
// empty, not nil: JSON then contains it.
func changed[T any](old, list []T, equal func(a, b []T) bool) []T {
	switch {
	case equal(old, list):
		return nil
	case list == nil:
		return []T{}
	}
	return list
}

// describe returns a node in the form of the patch.
func (c *Changes) describe(n *node.Node) Node {
	d := describe.Of(n)
	key, _ := c.view.key(n.ID())
	t := Node{Key: key, ID: n.ID().String(), Sort: string(d.Sort), Label: d.Label(), Raw: Saved{node: n}}
	t.Call, t.Line = line(d)
	t.Parts = nodeParts(n, d)
	t.Parents = c.view.keysOf(n.Parents())
	t.Opens = c.view.keysOf(dag.FromNode(n).Heads())
	t.State = cmp.Or(d.State, d.Retried)
	t.At = float64(d.Began.UnixMicro()) / 1000

	if d.Sort == describe.Stop {
		return t // its totals repeat the usage of earlier nodes
	}

	t.Usage, t.Least, t.Model, t.MS = counts(d.Usage), d.Usage.Incomplete, d.Model, milliseconds(d.Took)
	if cost, known := costOf(c.prices, d); known {
		t.Cost = &cost
	}
	return t
}

// costOf returns the cost of a response, and whether it is known.
func costOf(prices api.Prices, d describe.Node) (float64, bool) {
	if d.Sort != describe.Assistant || d.Usage == (content.Usage{}) {
		return 0, false
	}
	return prices.Cost(d.Model, d.Usage)
}

func counts(u content.Usage) [5]int64 {
	return [5]int64{u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Reasoning}
}

// milliseconds returns d in milliseconds, to the microsecond.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// view returns a conversation as the page shows it, from its drawing and what [dag.DAG.Validate] found. Nodes and folded
// boxes of the view before keep their keys.
func (m *Model) view(d dag.DAG, drawn *viz.Picture, findings []dag.Finding) *view {
	v := &view{d: d, width: drawn.Width, height: drawn.Height, note: strings.Join(drawn.Note, "\n"), foldKeys: map[[2]int]int{}}

	// Nodes come first: everything else refers to their keys.
	owners := v.take(drawn)
	v.index = make(map[node.ID]int, len(v.nodes))
	for i := range v.nodes {
		id := v.nodes[i].node.ID()
		v.index[id] = i
		key, ok := m.shown.key(id)
		if !ok {
			key = m.next
			m.next++
		}
		v.nodes[i].place.Key, v.nodes[i].place.N = key, i
	}

	v.findFrames(owners)
	v.lay(drawn, 0, m.foldKey(v))
	v.heads = v.keysOf(d.Heads())
	v.problems = problems(v, findings)
	v.totals = totals(v, m.Prices)

	// A ref to nodes that no head reaches is not on the page.
	for _, r := range d.Refs() {
		if list := v.keysOf(r.Heads); len(list) > 0 {
			v.refs = append(v.refs, Ref{r.Name, list})
		}
	}
	return v
}

// foldKey returns the function with the keys of the folded boxes of v, from the key of the first node in a box and the
// height of the picture inside. A new box gets a new key.
func (m *Model) foldKey(v *view) func(first, height int) int {
	return func(first, height int) int {
		at := [2]int{first, height}
		key, ok := m.shown.foldKeys[at]
		if !ok {
			key = m.next
			m.next++
		}
		v.foldKeys[at] = key
		return key
	}
}
