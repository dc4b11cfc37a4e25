package viz

import (
	"container/heap"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/safetext"
)

// plan determines how much of an outline is folded into boxes with a summary. Branch points, merges of branches, and
// roots above a drawn head are never folded, except in a run with one node at its beginning and one at its end.
type plan struct {
	fans   int  // group the calls of a fan of more than this by tool and outcome; 0: draw all of them
	depth  int  // fold conversations nested deeper than this into the box of their call; 0: none
	keep   int  // draw this many turns at each end of a run of turns; negative: all of them
	failed int  // always draw this many failed nodes, the first ones and the last; 0: all of them
	heads  int  // draw the first heads, up to this number, and their ancestors; 0: all of them
	pieces int  // then fold each conversation into at most this many boxes; 0: do not
	across bool // count the pieces of all conversations together, not of each
}

// plans are tried in this order until a drawing is legible. The first draws everything.
var plans = []plan{
	{keep: -1},
	{fans: wideFan, keep: -1},
	{fans: wideFan, depth: 6, keep: -1},
	{fans: wideFan, depth: 3, keep: -1},
	{fans: wideFan, depth: 2, keep: -1},
	{fans: wideFan, depth: 1, keep: -1},
	{fans: wideFan, depth: 1, keep: 24},
	{fans: wideFan, depth: 1, keep: 12},
	{fans: wideFan, depth: 1, keep: 8},
	{fans: wideFan, depth: 1, keep: 6},
	{fans: wideFan, depth: 1, keep: 5},
	{fans: wideFan, depth: 1, keep: 4},
	{fans: wideFan, depth: 1, keep: 3},
	{fans: wideFan, depth: 1, keep: 2},
	{fans: wideFan, depth: 1, keep: 1},
	{fans: wideFan, depth: 1, keep: 1, failed: 16},
	{fans: 4, depth: 1, keep: 1, failed: 8},
	{fans: 2, depth: 1, keep: 0, failed: 4},
	{fans: 4, depth: 1, keep: 1, failed: 8, heads: 12},
	{fans: 4, depth: 1, keep: 1, failed: 8, heads: 6},
	{fans: 2, depth: 1, keep: 0, failed: 4, heads: 5},
	{fans: 1, depth: 1, keep: 0, failed: 2, heads: 3},
	{fans: 1, depth: 1, keep: 0, failed: 2, heads: 1},
}

// Limits for a drawing to be legible on a screen.
const (
	legibleBoxes  = 80
	legibleWidth  = 1440                // pixels
	legibleHeight = 1640                // pixels: as Mermaid draws it, at most 1800
	noteHeight    = 4*lineHeight + gapY // of the note on a folded picture
)

// folding is a drawing that is folded to be legible.
type folding struct {
	plan   int   // its index
	box    []int // as returned by fold
	cells  int   // the maximum length of a line
	width  int   // of the picture, in pixels
	height int
}

const (
	wideFan   = 8 // more calls than this side by side are grouped
	showFan   = 3 // of more than wideFan branches into one node, draw this many
	minRun    = 3 // the minimum number of nodes in a folded box of a run
	lookAhead = 8 // the search for the ends of branches visits at most this many vertices for each one drawn
)

// legible tries plans[from:] in order and returns the first drawing that is legible and not higher than height. If all
// are too large, it returns the measured one that exceeds the limits least.
func (o *outline) legible(l labeller, plans []plan, from, height int, fold func(plan) []int) (best folding) {
	least, unfolded := math.MaxFloat64, 0
	if height < math.MaxInt {
		unfolded = countBoxes(fold(plans[0]))
	}
	for i := from; i < len(plans); i++ {
		// Without conversations inside, plans that differ in the depth alone are the same.
		if len(o.groups) == 0 && plans[i].depth > 1 && plans[i].pieces == 0 {
			continue
		}

		folded := fold(plans[i])

		// Measure the last plan with any number of boxes: there must be a result.
		if countBoxes(folded) > legibleBoxes && i < len(plans)-1 {
			continue
		}

		// A folded picture has a note above it.
		limit := height
		if countBoxes(folded) < unfolded {
			limit -= noteHeight
		}

		// Shorter lines make narrower boxes. Try them before folding more.
		for _, cells := range []int{lineCells, fewCells} {
			m := o.plot(folded)
			m.label(l, cells)
			p := m.picture()
			if excess := excessOf(p, limit); excess < least {
				least, best = excess, folding{i, folded, cells, p.Width, p.Height}
			}
			if least <= 1 {
				return best
			}
		}
	}
	return best
}

// excessOf returns a number above 1 for a picture that is too large, and a larger one the more it is. One that is too
// wide has to be scrolled in two directions, so that counts first.
func excessOf(p *Picture, height int) float64 {
	const widthFirst = 1000
	if p.Width > legibleWidth {
		return widthFirst * float64(p.Width) / legibleWidth
	}
	return float64(p.Height) / float64(height)
}

// note returns how a drawing is folded, for its reader: the number of nodes, boxes and failures. It returns "" if the
// drawing has as many boxes as without folding.
func (l labeller) note(box, unfolded []int) string {
	boxes := countBoxes(box)
	if boxes == countBoxes(unfolded) {
		return ""
	}

	failed, drawn := 0, 0
	for i, in := range members(box) {
		if in == nil {
			continue
		}
		bad := 0
		for _, m := range in {
			if l.o.vertices[m].grave {
				bad++
			}
		}
		failed += bad

		// A failure has a box of its own if nothing else is in it, or only the conversation inside the failed call.
		if l.o.isSingle(in) && bad > 0 || bad > 0 && l.o.isOwn(in) && l.o.vertices[i].grave {
			drawn++
		}
	}

	text := fmt.Sprintf("%s in %d boxes: a dashed box holds several.", count(len(box), "node"), boxes)
	switch {
	case failed == 0:
		return text + " None failed."
	case failed == 1 && drawn == 1:
		return text + " 1 failed, in a box of its own."
	case failed == drawn:
		return text + fmt.Sprintf(" %d failed, each in a box of its own.", failed)
	case drawn == 0:
		return text + fmt.Sprintf(" %d failed, counted in red boxes.", failed)
	}
	return text + fmt.Sprintf(" %d failed: %d in boxes of their own, the others counted in red boxes.", failed, drawn)
}

// countBoxes returns the number of boxes that are drawn.
func countBoxes(box []int) int {
	n := 0
	for i, b := range box {
		if i == b {
			n++
		}
	}
	return n
}

// fold returns the box of each vertex. A box is identified by the index of one of its vertices. Most vertices have a
// box of their own.
func (o *outline) fold(p plan) []int {
	box := make([]int, len(o.vertices))
	for i := range box {
		box[i] = i
	}

	// A conversation nested deeper is folded into the box of its call.
	if p.depth > 0 {
		home := o.homes(p.depth)
		for i, v := range o.vertices {
			if v.group != none && home[v.group] != none {
				box[i] = home[v.group]
			}
		}
	}

	// The only result of a tool phase is in the box of its call.
	for i := range box {
		if c := o.shownBy(i); c != none && box[i] == i && box[c] == c {
			box[i] = c
		}
	}

	// Some vertices must stay visible, so a box with one of them is not folded further.
	pinned := o.pins(p, box)
	hidden := o.hide(p, box, pinned)

	if p.fans > 0 || p.keep >= 0 {
		joined := make([]bool, len(o.vertices))
		for _, chain := range o.chains(hidden) {
			// Skip a chain that is already inside a box: a branch of a folded run, or a conversation folded into its
			// call.
			if first := chain[0].last; !joined[first] && box[first] == first {
				o.foldChain(chain, p, pinned, box, joined)
			}
		}
	}

	if hidden != nil {
		o.foldHidden(hidden, box)
	}
	if p.pieces > 0 {
		o.foldPieces(p, box)
	}

	// The box of a call may itself be folded. The conversation of its sub-agent goes with it.
	for i := range box {
		box[i] = box[box[i]]
	}
	return box
}

// pins reports, for each vertex, whether it must be drawn: it failed, is a head or has a ref. Refs are pinned only if
// the plan pins all failures.
func (o *outline) pins(p plan, box []int) []bool {
	pinned := make([]bool, len(o.vertices))
	var failed []int
	for i, v := range o.vertices {
		if v.head > 0 && (p.heads == 0 || v.head <= p.heads) || len(o.refsOf(i)) > 0 && p.failed == 0 {
			pinned[i] = true
		}

		// A failure already in the box of another vertex cannot have its own.
		if box[i] == i && v.failed {
			failed = append(failed, i)
		}
	}

	// If the plan limits failures, pin the first ones and the last.
	for k, i := range failed {
		if p.failed == 0 || k < p.failed-1 || k == len(failed)-1 {
			pinned[i] = true
		}
	}
	return pinned
}

// hide reports, for each vertex, whether it is hidden: no pinned vertex follows it. The result overrules the other ways
// of folding. It is nil if the plan does not limit the heads.
func (o *outline) hide(p plan, box []int, pinned []bool) []bool {
	if p.heads == 0 {
		return nil
	}
	up, _ := o.neighbors()
	shown := make([]bool, len(o.vertices))

	// add shows a vertex and its ancestors.
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
		if !pinned[i] || v.group != none && !v.failed {
			continue
		}
		add(i)

		// A failed call is shown with its tool phase.
		if len(v.kids) == 1 && isCall(v.node) {
			add(v.kids[0])
		}
	}

	// The conversation of a shown call is shown too, unless it is folded into the call.
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

// foldHidden folds hidden vertices into one box for each drawn vertex they branch off from.
func (o *outline) foldHidden(hidden []bool, box []int) {
	folded := make([]int, 0, len(o.vertices)) // the hidden vertices with a box of their own
	for i := range o.vertices {
		if hidden[i] && box[i] == i {
			folded = append(folded, i)
		}
	}
	branches, after := o.branches(folded, hidden, box)
	boxes := o.boxesOf(folded, branches, after)

	// Find all boxes before any changes.
	homes := make([]int, len(folded))
	for k, i := range folded {
		homes[k] = boxes[branches.find(i)]
	}
	for k, i := range folded {
		box[i] = homes[k]
	}
}

// sets are disjoint sets of integers: a union-find structure. Each has the name of one of its members.
type sets []int

func newSets(n int) sets {
	s := make(sets, n)
	for i := range s {
		s[i] = i
	}
	return s
}

// find returns the name of the set that has i.
func (s sets) find(i int) int {
	for s[i] != i {
		s[i] = s[s[i]]
		i = s[i]
	}
	return i
}

func (s sets) join(i, j int) { s[s.find(i)] = s.find(j) }

// branches returns the vertices that branch off from the same place, as sets, and for each vertex its last parent with a
// drawn box in its conversation. Member size+u of the sets is box u, and 2*size is the lack of a parent.
func (o *outline) branches(folded []int, hidden []bool, box []int) (branches sets, after []int) {
	size := len(o.vertices)
	branches, after = newSets(2*size+1), make([]int, size)
	up, _ := o.neighbors()
	for _, i := range folded {
		if len(up[i]) == 0 {
			branches.join(i, 2*size)
		}

		// A vertex below a hidden parent branches off where the parent does.
		for _, u := range up[i] {
			if u = box[u]; hidden[u] {
				branches.join(i, u)
				continue
			}
			branches.join(i, size+u)
			if o.vertices[u].group == o.vertices[i].group {
				after[i] = max(after[i], u)
			}
		}
	}
	return branches, after
}

// boxesOf returns the box of each set of vertices, by its name: its outermost vertex. Of several, it is the first one
// after all drawn parents of the set, because an edge into a box must lead down.
func (o *outline) boxesOf(folded []int, branches sets, after []int) []int {
	lowest := make([]int, len(branches))
	for _, i := range folded {
		set := branches.find(i)
		lowest[set] = max(lowest[set], after[i])
	}

	levels, boxes := o.levels(), make([]int, len(branches))
	level := func(i int) int {
		if g := o.vertices[i].group; g != none {
			return levels[g]
		}
		return 1
	}
	for i := range boxes {
		boxes[i] = none
	}
	for _, i := range folded {
		set := branches.find(i)
		r := boxes[set]
		if r == none || level(i) < level(r) || level(i) == level(r) && r < lowest[set] && i > lowest[set] {
			boxes[set] = i
		}
	}
	return boxes
}

// homes returns the box of each group if conversations deeper than depth are folded: the index of a vertex, or none. A
// group is folded into the owner of the outermost foldable group deeper than depth: itself or a group around it.
func (o *outline) homes(depth int) []int {
	home, levels := make([]int, len(o.groups)), o.levels()
	for i, g := range o.groups { // an outer group precedes the groups in it
		home[i] = none
		if g.outer != none {
			home[i] = home[g.outer]
		}
		if home[i] == none && levels[i] > depth && !g.shared {
			home[i] = g.owner
		}
	}
	return home
}

// link is one step of a chain: a vertex with a single edge into it, or a vertex at which several branches from the
// previous link meet. In a tool phase, the calls are the branches and the results message is the last vertex.
type link struct {
	inner []int // the vertices of the branches, in reading order
	last  int
}

func (l link) members() []int { return append(l.inner[:len(l.inner):len(l.inner)], l.last) }

// chains cuts the outline into chains of links, each as long as possible. Each link follows only the link before it.
// The branches inside a link are chains of their own, after the chain of the link.
func (o *outline) chains(hidden []bool) [][]link {
	next := make([]link, len(o.vertices))
	led := make([]bool, len(o.vertices))
	budget := lookAhead * len(o.vertices)
	for i := range o.vertices {
		next[i].last = none
		if hidden != nil && hidden[i] {
			continue
		}
		if l, ok := o.next(i, hidden, &budget); ok {
			next[i], led[l.last] = l, true
		}
	}

	// A vertex that is not the last of any link begins a chain.
	var chains [][]link
	for i := range o.vertices {
		if led[i] || hidden != nil && hidden[i] {
			continue
		}

		length := 1
		for l := next[i]; l.last != none; l = next[l.last] {
			length++
		}
		chain := append(make([]link, 0, length), link{last: i})
		for l := next[i]; l.last != none; l = next[l.last] {
			chain = append(chain, l)
		}
		chains = append(chains, chain)
	}
	return chains
}

// next returns the only link that follows vertex i, and whether there is exactly one. The search for the end of
// branches subtracts each visited vertex from budget; at 0, it finds no more branches.
func (o *outline) next(i int, hidden []bool, budget *int) (link, bool) {
	v := &o.vertices[i]
	kids := without(v.kids, hidden)
	if len(kids) == 0 {
		return link{}, false
	}

	// A single kid with several parents is a merge of branches. The search from the vertex where they part finds it.
	if len(kids) == 1 {
		kid := &o.vertices[kids[0]]
		return link{last: kids[0]}, len(kid.parents) == 1 && kid.group == v.group
	}

	// Visit the following vertices in reading order. The branches have met when a single vertex is left to visit.
	seen := map[int]int{} // by vertex: the number of its visited parents
	var ahead ascending
	visit := func(kids []int) {
		for _, k := range kids {
			if seen[k]++; seen[k] == 1 {
				heap.Push(&ahead, k)
			}
		}
	}

	visit(kids)
	var inner []int
	for *budget > 0 {
		*budget--
		k := heap.Pop(&ahead).(int)
		if w := &o.vertices[k]; seen[k] < len(w.parents) || w.group != v.group {
			return link{}, false // an edge from elsewhere
		}
		if len(ahead) == 0 {
			return link{inner, k}, true
		}

		kids = without(o.vertices[k].kids, hidden)
		if len(kids) == 0 {
			return link{}, false // the end of a branch
		}
		inner = append(inner, k)
		visit(kids)
	}
	return link{}, false
}

// ascending is a heap of vertices, the first in reading order on top.
type ascending []int

func (a ascending) Len() int           { return len(a) }
func (a ascending) Less(i, j int) bool { return a[i] < a[j] }
func (a ascending) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }

// Push implements [heap.Interface].
func (a *ascending) Push(x any) { *a = append(*a, x.(int)) }

// Pop implements [heap.Interface].
func (a *ascending) Pop() any {
	x := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return x
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

// foldChain folds wide fans, and then runs of links. The ends of a chain and links with a pinned vertex are always
// drawn; a run lies between two of them. joined is set for vertices in the box of a run or of branches.
func (o *outline) foldChain(chain []link, p plan, pinned []bool, box []int, joined []bool) {
	// A result in the box of its call is folded with it.
	chain = slices.DeleteFunc(chain, func(l link) bool { return box[l.last] != l.last && box[l.last] == o.shownBy(l.last) })
	if len(chain) == 0 {
		return
	}

	if p.fans > 0 {
		for _, l := range chain {
			if o.all(l.inner, isCall) {
				o.foldFan(l.inner, p.fans, pinned, box)
			} else {
				o.foldBranches(l.inner, pinned, box, joined)
			}
		}
	}

	if p.keep < 0 {
		return
	}

	// The chain's first and last link stay. Between them, each run without a pinned link keeps p.keep links at both
	// ends; the middle is folded.
	for from := 1; from < len(chain); from++ {
		to := from
		for to < len(chain)-1 && !o.pinned(chain[to], pinned) {
			to++
		}

		if run := chain[from:to]; len(run) > 2*p.keep {
			join(run[p.keep:len(run)-p.keep], box, joined)
		}
		from = to
	}
}

// foldFan folds the calls of a fan of more than limit into a box for each tool and outcome. The fan then has at most
// limit boxes, since Mermaid and Graphviz draw all of them side by side. Pinned failed calls keep their own boxes: all
// of them if there is room beside the other boxes, and otherwise the first ones and the last.
func (o *outline) foldFan(calls []int, limit int, pinned []bool, box []int) {
	if len(calls) <= limit {
		return
	}

	type kind struct{ tool, outcome string }
	kindOf := func(c int) kind {
		d := describe.Of(o.vertices[c].node)
		return kind{d.Called.Tool, d.Outcome()}
	}

	// Divide the boxes between the failures and the kinds of the other calls.
	kinds := map[kind]bool{}
	var failed []int
	for _, c := range calls {
		switch {
		case !pinned[c]:
			kinds[kindOf(c)] = true
		case o.vertices[c].node.Failed():
			failed = append(failed, c)
		}
	}
	own := len(failed)
	if own > limit-len(kinds) {
		own = min(own, max(limit/2, 2))
	}

	// The first failures and the last keep their boxes. Those between them are grouped like other calls.
	grouped := map[int]bool{}
	for _, c := range failed[max(own-1, 0):max(len(failed)-1, 0)] {
		grouped[c] = true
	}
	limit -= own

	// Each tool and outcome gets a box, in order of appearance. The last box takes all further kinds.
	first := map[kind]int{}
	rest := none // the box for further kinds
	for _, c := range calls {
		if !o.foldable(c) || pinned[c] && !grouped[c] {
			continue
		}

		k := kindOf(c)
		rep, known := first[k]
		switch {
		case known:
			box[c] = rep
		case len(first) < max(limit-1, 1):
			first[k] = c
		case rest == none:
			rest = c
		default:
			box[c] = rest
		}
	}
}

// foldBranches folds the branches between two nodes into one box, except the first few. Up to wideFan branches are not
// folded. A branch with a pinned node keeps its own boxes.
func (o *outline) foldBranches(inner []int, pinned []bool, box []int, joined []bool) {
	branch := map[int]int{} // by vertex: the first vertex of its branch
	var order []int
	drawn := map[int]bool{} // by first vertex
	for _, i := range inner {
		// A vertex with several branches above it belongs to the first of them.
		first := i
		for _, p := range o.vertices[i].parents {
			if b, ok := branch[p]; ok {
				first = min(first, b)
			}
		}
		branch[i] = first
		if first == i {
			order = append(order, i)
		}
		drawn[first] = drawn[first] || pinned[i] || !o.foldable(i)
	}
	if len(order) <= wideFan {
		return
	}

	// The first few branches are drawn as examples, the others share one box.
	for _, first := range order[:showFan] {
		drawn[first] = true
	}
	rep := none
	for _, i := range inner {
		if drawn[branch[i]] {
			continue
		}
		if rep == none {
			rep = i
		}
		box[i], joined[i] = rep, true
	}
}

// join folds a run into the box of its first vertex.
func join(run []link, box []int, joined []bool) {
	var all []int
	for _, l := range run {
		all = append(all, l.members()...)
	}
	if len(all) < minRun {
		return
	}

	for _, m := range all {
		box[m], joined[m] = all[0], true
	}
}

// pinned reports whether the link must be drawn.
func (o *outline) pinned(l link, pinned []bool) bool {
	return slices.ContainsFunc(l.members(), func(m int) bool { return pinned[m] || !o.foldable(m) })
}

// foldable reports whether vertex i may be in the box of another. It may not if nodes outside have edges to the
// conversation of its sub-agent.
func (o *outline) foldable(i int) bool {
	v := &o.vertices[i]
	return len(v.also) == 0 && (v.hangs == none || !o.groups[v.hangs].shared)
}

// isOwn reports whether a box contains only its first member and, perhaps, the message with its result and the
// conversation of its sub-agent.
func (o *outline) isOwn(members []int) bool {
	own := members[0]
	inside := o.inside(members)
	return len(inside) == len(members)-1 || len(inside) == len(members)-2 && o.shownBy(members[len(members)-1]) == own
}

// inside returns those members of a box that belong to the conversation of the first one.
func (o *outline) inside(members []int) []int {
	hangs := o.vertices[members[0]].hangs
	if hangs == none {
		return nil
	}
	end := len(members)
	for end > 1 && members[end-1] > o.groups[hangs].last {
		end--
	}
	return members[1:end]
}

// foldedFace returns the look of a box with several vertices.
func (l labeller) foldedFace(members []int) face {
	first := &l.o.vertices[members[0]]
	if l.o.isOwn(members) {
		f, in := l.face(members[0]), l.o.inside(members)
		if len(in) == 0 {
			return f
		}
		inside := fmt.Sprintf("… %s inside (n%d to n%d)", count(len(in), "node"),
			l.o.vertices[in[0]].number, l.o.vertices[in[len(in)-1]].number)
		f.label = lines(f.label, listed(inside, l.failures(in)), l.reasons(in))
		if l.failures(in) != "" {
			f.style = styleFailed
		}
		return f
	}

	// Calls alone are part of a fan. With any other node of their conversation, the box is a summary.
	for _, m := range members {
		if v := &l.o.vertices[m]; v.group == first.group && !isCall(v.node) {
			return l.summary(members)
		}
	}
	return l.manyCalls(members)
}

// manyCalls returns the look of a box with calls of a fan and the conversations in them: "search ×40", with some of
// their arguments, or with the first and the last failure.
func (l labeller) manyCalls(members []int) face {
	var tools, texts []string
	group := l.o.vertices[members[0]].group
	for _, m := range members {
		// Nodes inside a call count only as failures: the box names the calls.
		v := &l.o.vertices[m]
		if v.group != group {
			continue
		}

		d := describe.Of(v.node)
		tools = append(tools, name(d.Called.Tool))
		text := describe.Arguments(d.Called.Input, argsChars)
		if text != "" && !slices.Contains(texts, text) && len(texts) <= l.lines {
			texts = append(texts, name(text))
		}
	}

	body := l.reasons(members)
	if body == "" {
		body = l.body(strings.Join(texts, "\n"))
	}
	return face{lines(listed(tally(tools), l.failures(members)), body), shapeCall, l.foldedStyle(members)}
}

// summary returns the look of a box with several vertices: their number, their kinds, and the first and the last failure.
func (l labeller) summary(members []int) face {
	var users, answers, calls, heads, waiting int
	var refs []string
	for _, m := range members {
		v := &l.o.vertices[m]
		waiting += l.o.waiting[v.node.ID()]
		switch v.sort {
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
		refs = append(refs, l.o.refsOf(m)...)
	}

	start, end := l.o.vertices[members[0]].number, l.o.vertices[members[len(members)-1]].number
	head := "… " + count(len(members), "node")

	// Show the numbers of the nodes only if they have no gap.
	switch {
	case len(members) == 1:
		head += fmt.Sprintf(" (n%d)", end)
	case end-start == len(members)-1:
		head += fmt.Sprintf(" (n%d to n%d)", start, end)
	}

	wait := ""
	if waiting > 0 {
		wait = describe.CallsWait(waiting)
	}
	body := listed(some(users, "user turn"), some(answers, "answer"), some(calls, "tool call"), wait, some(heads, "head"),
		l.failures(members))
	if len(refs) > 0 {
		body = lines(body, l.body("◀ "+strings.Join(refs, ", ")))
	}
	return face{lines(head, body, l.reasons(members)), shapeTurn, l.foldedStyle(members)}
}

// reasons returns a line for the first and one for the last failure among members.
func (l labeller) reasons(members []int) string {
	first, last := none, none
	for _, m := range members {
		if l.o.vertices[m].grave {
			if first == none {
				first = m
			}
			last = m
		}
	}

	// A single failure is named without "first" and "last".
	switch first {
	case none:
		return ""
	case last:
		return l.reason(first, "")
	}
	return lines(l.reason(first, "first "), l.reason(last, "last "))
}

// reason returns a line about the failure of a vertex: "first n14 fetch: no such host".
func (l labeller) reason(i int, which string) string {
	d := describe.Of(l.o.vertices[i].node)
	line, _ := d.Reason()
	if d.Sort != describe.Call || line == "" {
		line, _ = d.Failure()
	}
	line = fmt.Sprintf("%sn%d %s: %s", which, l.o.vertices[i].number, d.Label(), line)
	return safetext.Clip(line, 1, min(l.chars, argsChars))
}

// foldedStyle returns the style of a box with these members. A failure among them stays visible, however much is
// folded.
func (l labeller) foldedStyle(members []int) string {
	if l.failures(members) != "" {
		return styleFailed
	}
	return styleFolded
}

// failures returns the number of failed members as text, or "" if none failed.
func (l labeller) failures(members []int) string {
	bad := 0
	for _, m := range members {
		if l.o.vertices[m].grave {
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
