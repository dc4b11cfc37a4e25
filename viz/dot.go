package viz

import (
	"cmp"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/viz/internal/ink"
)

// DOT writes d to w in the language of Graphviz: every node with the same label as in other drawings, every edge, and a
// cluster for the conversation of each sub-agent. It is folded like the drawing of [Mermaid], unless Options.Full is
// set.
//
//   - IDs are n0, n1 …, the numbers of the nodes in reading order. Folding does not change them. Clusters are
//     cluster_s0, cluster_s1 …. Clusters are nested up to eight deep. Deeper conversations are in the cluster around
//     them.
//   - Graphviz shows every text letter for letter. No label is read as HTML, a link or a record.
//   - The same graph gives the same bytes.
//
// DOT returns the error of d or of w.
func DOT(w io.Writer, d dag.DAG, o *Options) error {
	m, _, err := plotOf(d, o)
	if err != nil {
		return err
	}

	_, err = io.WriteString(w, m.dot())
	return err
}

// dotWriter writes lines, indented by two spaces for each level.
type dotWriter struct {
	strings.Builder
	level int
}

func (w *dotWriter) line(parts ...string) {
	w.WriteString(strings.Repeat("  ", w.level))
	for _, part := range parts {
		w.WriteString(part)
	}
	w.WriteByte('\n')
}

// attributes writes the attributes of what, each as key=value. A single one is on the same line.
func (w *dotWriter) attributes(what string, list ...string) {
	if len(list) == 1 {
		w.line(what, " [", list[0], "];")
		return
	}
	w.line(what, " [")
	w.level++
	for _, each := range list {
		w.line(each)
	}
	w.level--
	w.line("];")
}

// dot returns the drawing. Clusters only list their nodes. The attributes of nodes and all edges are outside: Graphviz
// pulls both ends of an edge into the cluster with the edge.
func (m *plot) dot() string {
	w := &dotWriter{}
	w.line("digraph conversation {")
	w.level++

	look := []string{"fontname=monospace", "fontsize=10"}
	if len(m.note) > 0 {
		look = append([]string{"label=" + dotQuote(strings.Join(m.note, "\n")), "labelloc=t", "labeljust=l"}, look...)
	}
	w.attributes("graph", look...)
	w.attributes("node", "fontname=monospace", "fontsize=10", "style=filled")
	w.attributes("edge", "color="+dotQuote(ink.Light.Line), "arrowsize=0.7")
	w.WriteByte('\n')

	for _, c := range m.clusters() {
		c.write(w, m)
	}
	w.line("// Node definitions.")
	for i := range m.items {
		w.attributes(m.dotName(i), m.items[i].dot(m.outline)...)
	}

	// Without a node, the picture of an empty conversation would be blank.
	if len(m.items) == 0 {
		w.attributes("n0", "label="+dotQuote(ink.Empty))
	}

	// Edges are in the order of the boxes.
	edges := slices.Clone(m.edges)
	slices.SortStableFunc(edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(m.at[a.from], m.at[b.from]), cmp.Compare(m.at[a.to], m.at[b.to]))
	})
	for i, e := range edges {
		if i == 0 {
			w.WriteByte('\n')
			w.line("// Edge definitions.")
		}
		style := ";"
		if e.arrow != "-->" {
			style = " [style=dashed];"
		}
		w.line(m.dotName(m.at[e.from]), " -> ", m.dotName(m.at[e.to]), style)
	}

	w.level--
	w.line("}")
	return w.String()
}

// dotName returns the ID of an item.
func (m *plot) dotName(item int) string { return "n" + strconv.Itoa(m.items[item].vertex) }

// maxClusters limits the nesting of clusters.
const maxClusters = 8

// cluster is the frame around a conversation inside another.
type cluster struct {
	room  int
	inner []*cluster
}

// clusters returns the outermost clusters.
func (m *plot) clusters() []*cluster {
	in := make([]*cluster, len(m.rooms)) // the cluster of each room, or the one around it
	depth := make([]int, len(m.rooms))
	in[0] = &cluster{}
	for i := 1; i < len(m.rooms); i++ {
		// A conversation without boxes has no cluster: those inside it go into the cluster around it.
		outer := m.groups[i-1].outer + 1
		in[i], depth[i] = in[outer], depth[outer]
		if len(m.rooms[i].items) == 0 {
			continue
		}
		c := &cluster{room: i}
		in[outer].inner = append(in[outer].inner, c)

		// Beyond the limit, conversations inside this one are clusters beside it.
		if depth[outer] < maxClusters {
			in[i], depth[i] = c, depth[outer]+1
		}
	}
	return in[0].inner
}

// write writes a cluster with those inside it.
func (c *cluster) write(w *dotWriter, m *plot) {
	w.line("subgraph cluster_s", strconv.Itoa(c.room-1), " {")
	w.level++
	l := ink.Light.Frame
	w.attributes("graph", "label="+dotQuote(m.groups[c.room-1].title), "labeljust=l", `style="rounded,filled"`,
		"fillcolor="+dotQuote(l.Fill), "color="+dotQuote(l.Stroke), "fontcolor="+dotQuote(l.Text))
	w.WriteByte('\n')

	for _, inner := range c.inner {
		inner.write(w, m)
	}
	w.line("// Node definitions.")
	for _, k := range m.rooms[c.room].items {
		w.line(m.dotName(k), ";")
	}
	w.level--
	w.line("}")
}

// dotQuote quotes plain text for Graphviz. Graphviz does not read quoted text as HTML, but decodes entities and escape
// sequences in it. These are escaped.
func dotQuote(text string) string { return `"` + dotText.Replace(text) + `"` }

var dotText = strings.NewReplacer("&", "&amp;", `\`, `\\`, `"`, `\"`, "\n", `\n`)

var dotShapes = map[string]string{
	shapeTurn: "box", shapeSetup: "box", shapeCall: "component", shapeMerge: "invtrapezium", shapeStop: "oval",
	shapeStore: "cylinder", shapeNote: "note",
}

// dot returns the attributes of a box.
func (it *item) dot(o *outline) []string {
	l := ink.Light.Boxes[it.face.style]
	list := []string{
		"label=" + dotQuote(strings.Join(it.lines, "\n")),
		"tooltip=" + dotQuote("n"+strconv.Itoa(it.vertex)+": "+it.lines[0]),
		"shape=" + dotShapes[it.face.shape],
		"fillcolor=" + dotQuote(l.Fill), "color=" + dotQuote(l.Stroke), "fontcolor=" + dotQuote(l.Text),
	}

	// A style of a node replaces the default, so "filled" is repeated.
	switch {
	case !o.isSingle(it.members):
		list = append(list, `style="rounded,filled,dashed"`)
	case it.face.shape == shapeTurn:
		list = append(list, `style="rounded,filled"`)
	}
	if o.isSingle(it.members) && o.vertices[it.vertex].head > 0 {
		list = append(list, "penwidth=3")
	}
	return list
}
