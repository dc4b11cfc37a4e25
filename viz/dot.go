package viz

import (
	"cmp"
	"io"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/viz/internal/ink"
	gonum "gonum.org/v1/gonum/graph"
	"gonum.org/v1/gonum/graph/encoding"
	"gonum.org/v1/gonum/graph/encoding/dot"
	"gonum.org/v1/gonum/graph/iterator"
)

// DOTOptions configures the output of [DOT]. The zero value and nil are the defaults.
type DOTOptions struct {
	// Layout determines the text in the boxes. Defaults to the defaults of LayoutOptions.
	Layout LayoutOptions
}

// DOT writes d to w in the language of Graphviz: every node with the same label as in other drawings, every edge, and a
// cluster for the conversation of each sub-agent. It is folded like the drawing of [Mermaid], unless Layout.Full is
// set.
//
//   - IDs are n0, n1 …, the numbers of the nodes in reading order. Folding does not change them. Clusters are
//     cluster_s0, cluster_s1 …. Clusters are nested up to eight deep. Deeper conversations are in the cluster around
//     them.
//   - Graphviz shows every text letter for letter. No label is read as HTML, a link or a record.
//   - The same graph gives the same bytes.
//
// DOT returns the error of d or of w.
func DOT(w io.Writer, d dag.DAG, o *DOTOptions) error {
	if o == nil {
		o = &DOTOptions{}
	}
	m, _, err := plotOf(d, &o.Layout)
	if err != nil {
		return err
	}

	text, err := dot.MarshalMulti(m.dot(), "conversation", "", "  ")
	if err != nil {
		return err
	}

	_, err = w.Write(append(text, '\n'))
	return err
}

// maxClusters limits the nesting of clusters.
const maxClusters = 8

// dot returns the plot in gonum's types. Clusters only list their nodes. The attributes of nodes and all edges are
// outside: Graphviz pulls both ends of an edge into the cluster with the edge.
func (m *plot) dot() *dotGraph {
	g := &dotGraph{attributes: dotStart, lines: make([][]dotLine, len(m.items))}
	// Build a new list: all drawings share the lists of dotStart.
	if len(m.note) > 0 {
		g.attributes[0] = append(attributes{{Key: "label", Value: dotQuote(strings.Join(m.note, "\n"))},
			{Key: "labelloc", Value: "t"}, {Key: "labeljust", Value: "l"}}, g.attributes[0]...)
	}

	for i := range m.items {
		g.nodes = append(g.nodes, dotNode{
			id: int64(i), name: "n" + strconv.Itoa(m.items[i].vertex), attributes: m.items[i].dot(m.outline),
		})
	}

	// Without a node, the picture of an empty conversation would be blank.
	if len(g.nodes) == 0 {
		g.nodes = []gonum.Node{dotNode{name: "n0", attributes: attributes{{Key: "label", Value: dotQuote(ink.Empty)}}}}
	}

	for i, e := range m.edges {
		from, to := m.at[e.from], m.at[e.to]
		l := dotLine{id: int64(i), from: g.nodes[from], to: g.nodes[to]}
		if e.arrow != "-->" {
			l.attributes = attributes{{Key: "style", Value: "dashed"}}
		}
		g.lines[from] = append(g.lines[from], l)
	}

	// The methods between and From rely on this order.
	for _, lines := range g.lines {
		slices.SortStableFunc(lines, func(a, b dotLine) int { return cmp.Compare(a.to.ID(), b.to.ID()) })
	}

	m.clusters(g)
	return g
}

// clusters adds a cluster to g for each conversation inside another.
func (m *plot) clusters(g *dotGraph) {
	in := make([]*dotGraph, len(m.rooms)) // the cluster of each room, or the one around it
	depth := make([]int, len(m.rooms))
	in[0] = g
	for i := range m.rooms[1:] {
		// A conversation without boxes has no cluster: those inside it go into the cluster around it.
		outer := m.groups[i].outer + 1
		in[i+1], depth[i+1] = in[outer], depth[outer]
		if r := &m.rooms[i+1]; len(r.items) == 0 {
			continue
		}

		c := &dotGraph{name: "cluster_s" + strconv.Itoa(i), attributes: frameLook(m.groups[i].title)}
		for _, k := range m.rooms[i+1].items {
			c.nodes = append(c.nodes, dotNode{id: int64(k), name: "n" + strconv.Itoa(m.items[k].vertex)})
		}
		in[outer].clusters = append(in[outer].clusters, c)

		// Beyond the limit, conversations inside this one are clusters beside it.
		if depth[outer] < maxClusters {
			in[i+1], depth[i+1] = c, depth[outer]+1
		}
	}
}

// dotQuote quotes plain text for Graphviz. Graphviz does not read quoted text as HTML, but decodes entities and escape
// sequences in it. These are escaped.
func dotQuote(text string) string { return `"` + dotText.Replace(text) + `"` }

var dotText = strings.NewReplacer("&", "&amp;", `\`, `\\`, `"`, `\"`, "\n", `\n`)

var (
	dotStart = [3]attributes{
		{{Key: "fontname", Value: "monospace"}, {Key: "fontsize", Value: "10"}},
		{{Key: "fontname", Value: "monospace"}, {Key: "fontsize", Value: "10"}, {Key: "style", Value: "filled"}},
		{{Key: "color", Value: dotQuote(ink.Light.Line)}, {Key: "arrowsize", Value: "0.7"}},
	}
	dotShapes = map[Shape]string{
		ShapeTurn: "box", ShapeSetup: "box", ShapeCall: "component", ShapeMerge: "invtrapezium", ShapeStop: "oval", ShapeStore: "cylinder",
		ShapeNote: "note",
	}
)

// frameLook returns the attributes of the frame around a conversation.
func frameLook(title string) [3]attributes {
	l := ink.Light.Frame
	return [3]attributes{{
		{Key: "label", Value: dotQuote(title)}, {Key: "labeljust", Value: "l"}, {Key: "style", Value: `"rounded,filled"`},
		{Key: "fillcolor", Value: dotQuote(l.Fill)}, {Key: "color", Value: dotQuote(l.Stroke)}, {Key: "fontcolor", Value: dotQuote(l.Text)},
	}}
}

// dot returns the attributes of a box.
func (it *item) dot(o *outline) attributes {
	l := ink.Light.Boxes[string(it.face.style)]
	list := attributes{
		{Key: "label", Value: dotQuote(strings.Join(it.lines, "\n"))},
		{Key: "tooltip", Value: dotQuote("n" + strconv.Itoa(it.vertex) + ": " + it.lines[0])},
		{Key: "shape", Value: dotShapes[it.face.shape]},
		{Key: "fillcolor", Value: dotQuote(l.Fill)}, {Key: "color", Value: dotQuote(l.Stroke)}, {Key: "fontcolor", Value: dotQuote(l.Text)},
	}

	// A style of a node replaces the default, so "filled" is repeated.
	switch {
	case !o.isSingle(it.members):
		list = append(list, encoding.Attribute{Key: "style", Value: `"rounded,filled,dashed"`})
	case it.face.shape == ShapeTurn:
		list = append(list, encoding.Attribute{Key: "style", Value: `"rounded,filled"`})
	}
	if o.isSingle(it.members) && o.vertices[it.vertex].head > 0 {
		list = append(list, encoding.Attribute{Key: "penwidth", Value: "3"})
	}
	return list
}

// attributes are written in this order.
type attributes []encoding.Attribute

func (a attributes) Attributes() []encoding.Attribute { return a }

// dotNode is a node for gonum.
type dotNode struct {
	id   int64
	name string
	attributes
}

func (n dotNode) ID() int64     { return n.id }
func (n dotNode) DOTID() string { return n.name }

// dotLine is an edge for gonum.
type dotLine struct {
	id       int64
	from, to gonum.Node
	attributes
}

func (l dotLine) ID() int64        { return l.id }
func (l dotLine) From() gonum.Node { return l.from }
func (l dotLine) To() gonum.Node   { return l.to }

// ReversedLine and ReversedEdge return the line itself, as gonum requires of a line that cannot be reversed.
func (l dotLine) ReversedLine() gonum.Line { return l }
func (l dotLine) ReversedEdge() gonum.Edge { return l }

// dotGraph is the whole graph, or a cluster without lines. It is directed, for edges with arrows, and a multigraph:
// otherwise gonum would make Graphviz merge edges.
type dotGraph struct {
	name       string
	attributes [3]attributes // of the graph, its nodes, its edges
	nodes      []gonum.Node
	lines      [][]dotLine // by source node, sorted by target
	clusters   []dot.Multigraph
}

var (
	_ dot.Multigraph      = (*dotGraph)(nil)
	_ dot.MultiStructurer = (*dotGraph)(nil)
	_ gonum.Directed      = (*dotGraph)(nil)
)

func (g *dotGraph) DOTID() string               { return g.name }
func (g *dotGraph) Structure() []dot.Multigraph { return g.clusters }
func (g *dotGraph) Nodes() gonum.Nodes          { return iterator.NewOrderedNodes(g.nodes) }
func (g *dotGraph) HasEdgeBetween(x, y int64) bool {
	return g.HasEdgeFromTo(x, y) || g.HasEdgeFromTo(y, x)
}
func (g *dotGraph) HasEdgeFromTo(u, v int64) bool { return len(g.between(u, v)) > 0 }

// DOTAttributers returns the attributes of the graph, of all its nodes and of all its edges.
func (g *dotGraph) DOTAttributers() (graph, node, edge encoding.Attributer) {
	return g.attributes[0], g.attributes[1], g.attributes[2]
}

func (g *dotGraph) Node(id int64) gonum.Node {
	i := slices.IndexFunc(g.nodes, func(n gonum.Node) bool { return n.ID() == id })
	if i < 0 {
		return nil
	}
	return g.nodes[i]
}

func (g *dotGraph) From(id int64) gonum.Nodes {
	var to []gonum.Node
	for _, l := range g.out(id) {
		if n := len(to); n == 0 || to[n-1].ID() != l.to.ID() {
			to = append(to, l.to)
		}
	}
	return iterator.NewOrderedNodes(to)
}

func (g *dotGraph) To(id int64) gonum.Nodes {
	var from []gonum.Node
	for _, n := range g.nodes {
		if g.HasEdgeFromTo(n.ID(), id) {
			from = append(from, n)
		}
	}
	return iterator.NewOrderedNodes(from)
}

func (g *dotGraph) Edge(u, v int64) gonum.Edge {
	if list := g.between(u, v); len(list) > 0 {
		return list[0]
	}
	return nil
}

func (g *dotGraph) Lines(u, v int64) gonum.Lines {
	list := g.between(u, v)
	lines := make([]gonum.Line, len(list))
	for i, l := range list {
		lines[i] = l
	}
	return iterator.NewOrderedLines(lines)
}

func (g *dotGraph) out(id int64) []dotLine {
	if id < 0 || id >= int64(len(g.lines)) {
		return nil
	}
	return g.lines[id]
}

func (g *dotGraph) between(u, v int64) []dotLine {
	list := g.out(u)
	from := sort.Search(len(list), func(i int) bool { return list[i].to.ID() >= v })
	to := from
	for to < len(list) && list[to].to.ID() == v {
		to++
	}
	return list[from:to]
}
