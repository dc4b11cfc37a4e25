package viz

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
)

// plan says how much of an outline is folded into boxes that stand for several nodes. Branch points, merges of branches,
// heads and roots are never folded.
type plan struct {
	fans   bool // of more than wideFan calls side by side, the first few are drawn and the others counted
	depth  int  // conversations of sub-agents deeper than that become a line in the box of their call; none do at 0
	keep   int  // of a run of turns, this many are drawn at each end; everything when negative
	failed bool // what failed may be folded, too
}

// plans are tried in this order, until a drawing fits.
var plans = []plan{
	{keep: -1},
	{fans: true, keep: -1},
	{fans: true, depth: 1, keep: -1},
	{fans: true, depth: 1, keep: 24},
	{fans: true, depth: 1, keep: 12},
	{fans: true, depth: 1, keep: 6},
	{fans: true, depth: 1, keep: 3},
	{fans: true, depth: 1, keep: 1},
	{fans: true, depth: 1, keep: 1, failed: true},
	{fans: true, depth: 1, keep: 0, failed: true},
}

const (
	wideFan = 8 // calls side by side, from which on a fan is folded
	showFan = 3 // how many of them are drawn then
	minRun  = 3 // fewer nodes are not worth a box that stands for them
)

// fold returns for each vertex the vertex in whose box it is drawn: itself, mostly.
func (o *outline) fold(p plan) []int {
	box := make([]int, len(o.vertices))
	for i := range box {
		box[i] = i
	}
	for i := range o.left {
		if o.isLeftOut(i) {
			box[i] = o.left[i].box
		}
	}
	if p.depth > 0 {
		home := o.homes(p.depth)
		for i, v := range o.vertices {
			if v.group != none && home[v.group] != none {
				box[i] = home[v.group]
			}
		}
	}
	if p.fans || p.keep >= 0 {
		for _, chain := range o.chains() {
			o.foldChain(chain, p, box)
		}
	}
	for i := range box {
		box[i] = box[box[i]] // a sub-agent goes where its call went
	}
	return box
}

// homes returns for each group the vertex in whose box it is drawn when conversations deeper than that are folded: the owner of the
// outermost of them around it that can be folded; none when none can.
func (o *outline) homes(depth int) []int {
	home, levels := make([]int, len(o.groups)), o.levels()
	for i, g := range o.groups { // an outer group has a lower number than the groups in it
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

// mustOpen reports whether the conversation g cannot be folded into the box of its call: others have edges to its nodes, the call
// itself is left out, or what the drawing is around lies in it.
func (o *outline) mustOpen(g group) bool {
	return g.shared || o.isLeftOut(g.owner) || o.focus >= g.first && o.focus <= g.last
}

// link is a vertex with one way into it, or a tool phase with one: the calls side by side, and the message that closes it.
type link struct {
	calls []int
	last  int
}

func (l link) members() []int { return append(l.calls[:len(l.calls):len(l.calls)], l.last) }

// chains cuts the outline into its longest chains of links, each following only the one before it.
func (o *outline) chains() [][]link {
	next := make([]link, len(o.vertices))
	led := make([]bool, len(o.vertices))
	for i := range o.vertices {
		l, ok := o.next(i)
		if !ok {
			l.last = none
		}
		next[i] = l
		for _, m := range l.members() {
			if m != none {
				led[m] = true
			}
		}
	}
	var chains [][]link
	for i := range o.vertices {
		if led[i] {
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

// next returns the only link that follows vertex i, if there is exactly one.
func (o *outline) next(i int) (link, bool) {
	v := &o.vertices[i]
	if len(v.kids) == 0 || o.isLeftOut(i) || slices.ContainsFunc(v.kids, o.isLeftOut) {
		return link{}, false
	}
	if len(v.kids) == 1 {
		kid := &o.vertices[v.kids[0]]
		return link{last: v.kids[0]}, len(kid.parents) == 1 && kid.group == v.group
	}
	var merge int
	for n, k := range v.kids {
		kid := &o.vertices[k]
		if len(kid.parents) != 1 || len(kid.kids) != 1 || kid.group != v.group || n > 0 && kid.kids[0] != merge {
			return link{}, false
		}
		merge = kid.kids[0]
	}
	end := &o.vertices[merge]
	return link{calls: v.kids, last: merge}, !o.isLeftOut(merge) && len(end.parents) == len(v.kids) && end.group == v.group
}

// foldChain folds wide fans, and then runs of links that nothing in them keeps apart. The ends of a chain stay.
func (o *outline) foldChain(chain []link, p plan, box []int) {
	if p.fans {
		for _, l := range chain {
			o.foldFan(l.calls, p, box)
		}
	}
	if p.keep < 0 {
		return
	}
	for from := 1; from < len(chain); from++ {
		to := from
		for to < len(chain)-1 && !o.pinned(chain[to], p) {
			to++
		}
		if run := chain[from:to]; len(run) > 2*p.keep {
			join(run[p.keep:len(run)-p.keep], box)
		}
		from = to
	}
}

// foldFan draws the calls of a wide fan beyond the first few in one box; those that failed stay.
func (o *outline) foldFan(calls []int, p plan, box []int) {
	if len(calls) <= wideFan || !o.all(calls, isCall) {
		return
	}
	rep := none
	for _, c := range calls[showFan:] {
		switch {
		case !o.foldable(c), o.vertices[c].node.Failed() && !p.failed:
		case rep == none:
			rep = c
		default:
			box[c] = rep
		}
	}
}

// join draws all of the run in the box of its first vertex.
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
func (o *outline) pinned(l link, p plan) bool {
	for _, m := range l.members() {
		v := &o.vertices[m]
		if v.head > 0 || !o.foldable(m) || v.node.Failed() && !p.failed {
			return true
		}
	}
	return false
}

// foldable reports whether vertex i may be drawn in the box of another: the drawing is not around it, and nothing outside the
// conversation that hangs on it is connected to that.
func (o *outline) foldable(i int) bool {
	v := &o.vertices[i]
	return i != o.focus && len(v.also) == 0 && (v.hangs == none || !o.groups[v.hangs].shared)
}

// foldedFace returns what is seen of several vertices in one box.
func (l labeller) foldedFace(members []int) face {
	if l.o.isLeftOut(members[0]) {
		return l.summary(members, string(l.o.left[members[0]].where))
	}
	first := &l.o.vertices[members[0]]
	if first.hangs != none && members[len(members)-1] == l.o.groups[first.hangs].last && members[1] == members[0]+1 {
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

// moreCalls is what is seen of calls beyond the first few of a fan, and of the conversations in them.
func (l labeller) moreCalls(members []int) face {
	var tools []string
	calls, seen := 0, map[string]bool{}
	for _, m := range members {
		v := &l.o.vertices[m]
		if p, ok := v.node.Payload().(node.ToolExecution); ok && v.group == l.o.vertices[members[0]].group {
			calls++
			if !seen[p.Tool] {
				seen[p.Tool] = true
				tools = append(tools, name(p.Tool))
			}
		}
	}
	head := listed("+ "+count(calls, "more call"), l.failures(members))
	return face{lines(head, l.body(strings.Join(tools, ", "))), ShapeCall, StyleFolded}
}

// summary is what is seen of several vertices: how many they are, where they are, and what they are.
func (l labeller) summary(members []int, where string) face {
	var users, answers, calls, heads int
	for _, m := range members {
		v := &l.o.vertices[m]
		switch p := v.node.Payload().(type) {
		case node.ToolExecution:
			calls++
		case node.Message:
			switch {
			case p.Role == content.Assistant:
				answers++
			case len(p.Blocks.ToolResults()) == 0:
				users++
			}
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
	switch {
	case len(members) == 1:
		head += fmt.Sprintf(" (n%d)", last)
	case last-members[0] == len(members)-1:
		head += fmt.Sprintf(" (n%d to n%d)", members[0], last)
	}
	body := listed(some(users, "user turn"), some(answers, "answer"), some(calls, "tool call"), some(heads, "head"), l.failures(members))
	return face{lines(head, body), ShapeTurn, StyleFolded}
}

// failures says how many of the members failed, if any did.
func (l labeller) failures(members []int) string {
	bad := 0
	for _, m := range members {
		if l.o.vertices[m].node.Failed() {
			bad++
		}
	}
	if bad == 0 {
		return ""
	}
	return fmt.Sprintf("%d failed", bad)
}

// some is count, but nothing for zero.
func some(n int, what string) string {
	if n == 0 {
		return ""
	}
	return count(n, what)
}

// listed joins the parts that are not empty with commas.
func listed(parts ...string) string { return strings.ReplaceAll(lines(parts...), "\n", ", ") }
