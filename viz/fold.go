package viz

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plait-dev/plait/internal/describe"
)

// plan determines how much of an outline is folded into boxes with a summary. Branch points, merges of branches, and
// roots that lead to a drawn head are never folded.
type plan struct {
	fans   bool // of more than wideFan calls side by side, draw the first few and count the others
	depth  int  // fold conversations nested deeper than this into the box of their call; 0: none
	keep   int  // draw this many turns at each end of a run of turns; negative: all of them
	failed int  // always draw the first failed nodes, up to this number; 0: all of them
	heads  int  // draw the first heads, up to this number, and what leads to them; 0: all of them
}

// plans are tried in this order until a drawing fits. The first draws everything.
var plans = []plan{
	{keep: -1},
	{fans: true, keep: -1},
	{fans: true, depth: 1, keep: -1},
	{fans: true, depth: 1, keep: 24},
	{fans: true, depth: 1, keep: 12},
	{fans: true, depth: 1, keep: 6},
	{fans: true, depth: 1, keep: 3},
	{fans: true, depth: 1, keep: 1},
	{fans: true, depth: 1, keep: 1, failed: 16},
	{fans: true, depth: 1, keep: 1, failed: 8},
	{fans: true, depth: 1, keep: 0, failed: 3},
	{fans: true, depth: 1, keep: 1, failed: 8, heads: 12},
	{fans: true, depth: 1, keep: 0, failed: 3, heads: 3},
}

// tightest is the index of the first plan that folds long runs as far as possible and still draws every failure.
const tightest = 7

const (
	wideFan = 8 // more calls than this side by side are folded
	showFan = 3 // how many of them are then drawn
	minRun  = 3 // the fewest nodes that are folded into one box
)

// fold returns, for each vertex, the vertex in whose box it is drawn. For most vertices that is the vertex itself.
func (o *outline) fold(p plan) []int {
	box := make([]int, len(o.vertices))
	for i := range box {
		box[i] = i
	}

	// A vertex that is left out is drawn in the box of its piece.
	for i := range o.left {
		if o.isLeftOut(i) {
			box[i] = o.left[i].box
		}
	}

	// A conversation that is nested deeper is drawn inside the call that it belongs to.
	if p.depth > 0 {
		home := o.homes(p.depth)
		for i, v := range o.vertices {
			if v.group != none && home[v.group] != none {
				box[i] = home[v.group]
			}
		}
	}

	// Some vertices must stay visible, so a box with one of them is not folded further.
	pinned := o.pins(p, box)
	hidden := o.hide(p, box, pinned)

	if p.fans || p.keep >= 0 {
		for _, chain := range o.chains(hidden) {
			o.foldChain(chain, p, pinned, box)
		}
	}

	if hidden != nil {
		o.foldHidden(hidden, box)
	}

	// The box of a call may itself be folded. The conversation of its sub-agent goes with it.
	for i := range box {
		box[i] = box[box[i]]
	}
	return box
}

// pins reports, for each vertex, whether it must be drawn because it failed or is a head.
func (o *outline) pins(p plan, box []int) []bool {
	pinned, failed := make([]bool, len(o.vertices)), 0
	for i, v := range o.vertices {
		if v.head > 0 && (p.heads == 0 || v.head <= p.heads) {
			pinned[i] = true
		}

		if box[i] == i && v.node.Failed() {
			failed++
			pinned[i] = pinned[i] || p.failed == 0 || failed <= p.failed
		}
	}
	return pinned
}

// hide reports, for each vertex, whether it leads to no pinned vertex. The result overrules the other ways of folding.
// It is nil if the plan does not limit the heads.
func (o *outline) hide(p plan, box []int, pinned []bool) []bool {
	if p.heads == 0 || o.left != nil {
		return nil
	}
	up, _ := o.neighbors()
	shown := make([]bool, len(o.vertices))

	// add shows a vertex and everything that leads to it.
	add := func(i int) {
		for stack := []int{i}; len(stack) > 0; {
			i, stack = stack[len(stack)-1], stack[:len(stack)-1]
			if !shown[i] {
				shown[i] = true
				stack = append(stack, up[i]...)
			}
		}
	}

	// In the main conversation everything pinned counts. Inside a sub-agent only failures do.
	for i, v := range o.vertices {
		if pinned[i] && (v.group == none || v.node.Failed()) {
			add(i)
		}
	}

	// A conversation that hangs on a shown call, and is not folded into it, is shown with it.
	hidden := make([]bool, len(o.vertices))
	for i, v := range o.vertices {
		if v.group != none && box[i] == i && shown[o.groups[v.group].owner] {
			add(i)
		}
	}

	for i := range hidden {
		hidden[i] = !shown[box[i]]
	}
	return hidden
}

// foldHidden folds hidden vertices into one box for each vertex that they branch off from.
func (o *outline) foldHidden(hidden []bool, box []int) {
	size := len(o.vertices)

	// A union-find structure. An entry below size is a vertex, size+u stands for what branches off from the box u, and
	// 2*size for what has no parent.
	class := make([]int, 2*size+1)
	for i := range class {
		class[i] = i
	}

	find := func(i int) int {
		for class[i] != i {
			class[i] = class[class[i]]
			i = class[i]
		}
		return i
	}

	up, _ := o.neighbors()
	for i := range o.vertices {
		if !hidden[i] || box[i] != i {
			continue
		}
		if len(up[i]) == 0 {
			class[find(i)] = find(2 * size)
		}

		for _, u := range up[i] {
			if u = box[u]; hidden[u] {
				class[find(i)] = find(u)
			} else {
				class[find(i)] = find(size + u)
			}
		}
	}

	// The box of a class is that of its outermost vertex, and of the first of them.
	levels, face := o.levels(), make([]int, len(class))
	level := func(i int) int {
		if g := o.vertices[i].group; g != none {
			return levels[g]
		}
		return 1
	}

	for i := range face {
		face[i] = none
	}
	for i := range o.vertices {

		if c := find(i); hidden[i] && box[i] == i && (face[c] == none || level(i) < level(face[c])) {
			face[c] = i
		}
	}

	// Find all classes before any box changes.
	for i := range o.vertices {
		if hidden[i] && box[i] == i {
			class[i] = find(i)
		}
	}
	for i := range o.vertices {
		if hidden[i] && box[i] == i {
			box[i] = face[class[i]]
		}
	}
}

// homes returns, for each group, the vertex in whose box it is drawn if conversations deeper than depth are folded.
// This is the owner of the outermost such group around it that can be folded, or none.
func (o *outline) homes(depth int) []int {
	home, levels := make([]int, len(o.groups)), o.levels()
	for i, g := range o.groups { // an outer group precedes the groups in it
		home[i] = none
		if g.outer != none {
			home[i] = home[g.outer]
		}
		if home[i] == none && levels[i] > depth && !o.mustOpen(g) {
			home[i] = g.owner
		}
	}
	return home
}

// mustOpen reports whether g cannot be folded into the box of its call: nodes outside have edges to its nodes, the call
// itself is left out, or the drawing is around one of its nodes.
func (o *outline) mustOpen(g group) bool {
	return g.shared || o.isLeftOut(g.owner) || o.focus >= g.first && o.focus <= g.last
}

// link is a vertex with a single edge into it, or a tool phase with one: the calls side by side and the results
// message.
type link struct {
	calls []int
	last  int
}

func (l link) members() []int { return append(l.calls[:len(l.calls):len(l.calls)], l.last) }

// chains cuts the outline into its longest chains of links, in which each link follows only the link before it.
func (o *outline) chains(hidden []bool) [][]link {
	next := make([]link, len(o.vertices))
	led := make([]bool, len(o.vertices))
	for i := range o.vertices {
		if hidden != nil && hidden[i] {
			next[i].last = none
			continue
		}

		l, ok := o.next(i, hidden)
		if !ok {
			l.last = none
		}
		next[i] = l

		// Everything inside a link is passed by it and begins no chain of its own.
		for _, m := range l.members() {
			if m != none {
				led[m] = true
			}
		}
	}

	// A vertex that no link leads to begins a chain.
	var chains [][]link
	for i := range o.vertices {
		if led[i] || hidden != nil && hidden[i] {
			continue
		}

		chain := []link{{last: i}}
		for l := next[i]; l.last != none; l = next[l.last] {
			chain = append(chain, l)
		}
		chains = append(chains, chain)
	}
	return chains
}

// next returns the only link that follows vertex i, and whether there is exactly one.
func (o *outline) next(i int, hidden []bool) (link, bool) {
	v := &o.vertices[i]
	kids := without(v.kids, hidden)
	if len(kids) == 0 || o.isLeftOut(i) || slices.ContainsFunc(kids, o.isLeftOut) {
		return link{}, false
	}
	if len(kids) == 1 {
		kid := &o.vertices[kids[0]]
		return link{last: kids[0]}, len(kid.parents) == 1 && kid.group == v.group
	}

	// Several kids are one link if they all lead to the same merge and to nothing else.
	var merge int
	for n, k := range kids {
		kid := &o.vertices[k]
		after := without(kid.kids, hidden)
		if len(kid.parents) != 1 || len(after) != 1 || kid.group != v.group || n > 0 && after[0] != merge {
			return link{}, false
		}
		merge = after[0]
	}

	end := &o.vertices[merge]
	return link{calls: kids, last: merge}, !o.isLeftOut(merge) && len(end.parents) == len(kids) && end.group == v.group
}

// without returns the vertices that are not hidden.
func without(vertices []int, hidden []bool) []int {
	if hidden == nil || !slices.ContainsFunc(vertices, func(i int) bool { return hidden[i] }) {
		return vertices
	}
	var shown []int
	for _, i := range vertices {
		if !hidden[i] {
			shown = append(shown, i)
		}
	}
	return shown
}

// foldChain folds wide fans, and then the runs of links between two that must be drawn. The ends of a chain are always
// drawn.
func (o *outline) foldChain(chain []link, p plan, pinned []bool, box []int) {
	if p.fans {
		for _, l := range chain {
			o.foldFan(l.calls, pinned, box)
		}
	}

	if p.keep < 0 {
		return
	}

	for from := 1; from < len(chain); from++ {
		to := from
		for to < len(chain)-1 && !o.pinned(chain[to], pinned) {
			to++
		}

		if run := chain[from:to]; len(run) > 2*p.keep {
			join(run[p.keep:len(run)-p.keep], box)
		}
		from = to
	}
}

// foldFan folds the calls of a wide fan beyond the first few into one box. Failed calls keep their own.
func (o *outline) foldFan(calls []int, pinned []bool, box []int) {
	if len(calls) <= wideFan || !o.all(calls, isCall) {
		return
	}

	rep := none
	for _, c := range calls[showFan:] {
		switch {
		case !o.foldable(c), pinned[c]:
		case rep == none:
			rep = c
		default:
			box[c] = rep
		}
	}
}

// join folds a run into the box of its first vertex.
func join(run []link, box []int) {
	var all []int
	for _, l := range run {
		all = append(all, l.members()...)
	}
	if len(all) < minRun {
		return
	}

	for _, m := range all {
		box[m] = all[0]
	}
}

// pinned reports whether the link must be drawn.
func (o *outline) pinned(l link, pinned []bool) bool {
	return slices.ContainsFunc(l.members(), func(m int) bool { return pinned[m] || !o.foldable(m) })
}

// foldable reports whether vertex i may be drawn in the box of another. It may not if the drawing is around it, or if
// nodes outside have edges to the conversation of its sub-agent.
func (o *outline) foldable(i int) bool {
	v := &o.vertices[i]
	return i != o.focus && len(v.also) == 0 && (v.hangs == none || !o.groups[v.hangs].shared)
}

// isOwn reports whether the box of members is that of the first member, with no other content than its sub-agent's
// conversation.
func (o *outline) isOwn(members []int) bool {
	if len(members) == 1 {
		return true
	}

	first := &o.vertices[members[0]]
	return first.hangs != none && members[len(members)-1] == o.groups[first.hangs].last && members[1] == members[0]+1
}

// foldedFace returns the look of a box with several vertices.
func (l labeller) foldedFace(members []int) face {
	if l.o.isLeftOut(members[0]) {
		return l.summary(members, string(l.o.left[members[0]].where))
	}

	first := &l.o.vertices[members[0]]
	if l.o.isOwn(members) {
		f := l.face(members[0])
		inside := fmt.Sprintf("… %s inside (n%d to n%d)", count(len(members)-1, "node"), members[1], members[len(members)-1])
		f.label = lines(f.label, listed(inside, l.failures(members[1:])))
		return f
	}

	for _, m := range members {
		if v := &l.o.vertices[m]; v.group == first.group && !isCall(v.node) {
			return l.summary(members, "")
		}
	}
	return l.moreCalls(members)
}

// moreCalls returns the look of a box with the calls beyond the first few of a fan, and the conversations in them.
func (l labeller) moreCalls(members []int) face {
	var tools []string
	calls, seen := 0, map[string]bool{}
	for _, m := range members {
		v := &l.o.vertices[m]
		if d := describe.Of(v.node); d.Sort == describe.Call && v.group == l.o.vertices[members[0]].group {
			calls++
			if !seen[d.Called.Tool] {
				seen[d.Called.Tool] = true
				tools = append(tools, name(d.Called.Tool))
			}
		}
	}

	head := listed("+ "+count(calls, "more call"), l.failures(members))
	return face{lines(head, l.body(strings.Join(tools, ", "))), ShapeCall, l.foldedStyle(members)}
}

// summary returns the look of a box with several vertices: their number, their position, and their kinds.
func (l labeller) summary(members []int, where string) face {
	var users, answers, calls, heads int
	for _, m := range members {
		v := &l.o.vertices[m]
		switch describe.Of(v.node).Sort {
		case describe.Call:
			calls++
		case describe.Assistant:
			answers++
		case describe.User:
			users++
		}

		if v.group == none && v.head > 0 {
			heads++
		}
	}

	last := members[len(members)-1]
	head := "… " + count(len(members), "node")
	if where != "" {
		head += " " + where
	}

	// The numbers of the nodes are shown only where they have no gap.
	switch {
	case len(members) == 1:
		head += fmt.Sprintf(" (n%d)", last)
	case last-members[0] == len(members)-1:
		head += fmt.Sprintf(" (n%d to n%d)", members[0], last)
	}

	body := listed(some(users, "user turn"), some(answers, "answer"), some(calls, "tool call"), some(heads, "head"),
		l.failures(members))
	return face{lines(head, body), ShapeTurn, l.foldedStyle(members)}
}

// foldedStyle returns the style of a box with these members. A failure among them stays visible, however much is
// folded.
func (l labeller) foldedStyle(members []int) Style {
	if l.failures(members) != "" {
		return StyleFailed
	}
	return StyleFolded
}

// failures returns the number of failed members as text, or "" if none failed.
func (l labeller) failures(members []int) string {
	bad := 0
	for _, m := range members {
		if describe.Of(l.o.vertices[m].node).Grave() {
			bad++
		}
	}
	if bad == 0 {
		return ""
	}
	return fmt.Sprintf("%d failed", bad)
}

// some is like count, but returns "" for zero.
func some(n int, what string) string {
	if n == 0 {
		return ""
	}
	return count(n, what)
}

// listed joins the parts that are not empty with commas.
func listed(parts ...string) string { return strings.ReplaceAll(lines(parts...), "\n", ", ") }
