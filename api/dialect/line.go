package dialect

import (
	"iter"
	"slices"
	"sync"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
)

// line is a stretch of a conversation that is settled: what follows cannot change it any more. It only grows at its tip, so that
// what its points saw stays as it was; from any other point a new line branches off.
type line struct {
	from  *point // where it begins; nil is the beginning of the conversation
	depth int    // how many lines stand before it

	mu  sync.Mutex
	tip int            // the number of its last point. It holds no pointer, so that who goes back does not keep what was dropped
	ids map[string]int // the ids of its calls, each with the place of its message, or of a later one
}

// point is a place in a line from where conversations go on with a message of the assistant. It does not change, and holds nothing
// of what came after it.
type point struct {
	line   *line
	number int    // in its line, from 1
	before *point // the point before it, also of another line; nil is the beginning

	given []content.Message // what came since the point before
	said  []content.Message // and what it became
	items []byte            // the bytes of said, with a comma in front where something stands before it; cut to size
	whole bool              // items is everything up to here: see flat
	notes []api.RepairNote  // the notes of the line up to here

	in, out int // how many messages were given, and are said, from the beginning of the conversation
	calls   int // and how many calls are in them
}

// points yields the places that messages can go on from, the last one first.
func (e *Encoding) points(messages []content.Message) iter.Seq[*point] {
	const mostTried = 8
	return func(yield func(*point) bool) {
		tried := 0
		for i := len(messages) - 1; i >= 0 && tried < mostTried; i-- {
			p, _ := messages[i].Blocks.Recall(e).(*point)
			if p == nil || p.in != i+1 {
				continue
			}
			if tried++; p.begins(messages) && !yield(p) {
				return
			}
		}
	}
}

// begins reports whether messages begin with what p was made of.
func (p *point) begins(messages []content.Message) bool {
	for ; p != nil; p = p.before {
		if !slices.Equal(p.given, messages[p.in-len(p.given):p.in]) {
			return false
		}
	}
	return true
}

// uses reports whether a call up to p has the id.
func (p *point) uses(id string) bool {
	for ; p != nil; p = p.line.from {
		p.line.mu.Lock()
		at, ok := p.line.ids[id]
		p.line.mu.Unlock()
		if ok && at < p.out {
			return true
		}
	}
	return false
}

// cuts returns the places before which messages are settled, some of them for branches to come, the last one as late as can be:
// before an assistant's message that another one follows, Far from the end, and where nothing waits for an answer.
func (e *Encoding) cuts(given []content.Message, drafts []draft) []int {
	const stride = 16
	var cuts []int
	before, waits := 0, false // before is the cut before the last one
	for i, t := range drafts[:max(0, len(drafts)-Far+1)] {
		if t.role == content.User {
			waits = waits && t.hasResult()
			continue
		}
		if i > 0 && !waits {
			if n := len(cuts); n > 0 && cuts[n-1]-before < stride {
				cuts[n-1] = i
			} else {
				if n > 0 {
					before = cuts[n-1]
				}
				cuts = append(cuts, i)
			}
		}
		waits = waits || e.Rules.Waits != nil && slices.ContainsFunc(given[t.first:t.last+1], e.Rules.Waits)
	}
	return cuts
}

// hasResult reports whether the draft has a tool result.
func (d *draft) hasResult() bool {
	return slices.ContainsFunc(d.blocks, func(b content.Block) bool {
		_, result := b.(content.ToolResult)
		return result
	})
}

// settle adds to what p settles, and leaves the point behind where those find it who go on from there.
func (e *Encoding) settle(p *point, given, said []content.Message, notes []api.RepairNote, ids []string) *point {
	next := p.tip()
	l := next.line
	defer l.mu.Unlock()
	next.given, next.said = slices.Clone(given), slices.Clone(said)
	if slices.Equal(given, said) {
		next.said = next.given
	}
	var items []byte
	next.notes = append(next.notes, notes...)
	next.in += len(given)
	for i, m := range said {
		if next.out > 0 {
			items = append(items, ',')
		}
		items = e.write(items, said, i, Far)
		for _, call := range m.Blocks.ToolUses() {
			next.calls++
			l.ids[call.ID] = next.out
		}
		next.out++
	}
	for _, id := range ids {
		if _, known := l.ids[id]; !known {
			l.ids[id] = next.out - 1
		}
	}
	next.items = exactly(items)
	l.tip++
	next.number = l.tip

	// The point stands for what was accepted of its messages.
	for _, m := range given {
		m.Blocks.Remember(accepting{e}, nil)
	}
	given[len(given)-1].Blocks.Remember(e, &next)
	return &next
}

// tip returns what a point after p begins with: in the line of p where that ends with p, and otherwise in a new one. The line is
// locked.
func (p *point) tip() point {
	for p != nil {
		p.line.mu.Lock()
		if p.line.tip == p.number {
			return point{line: p.line, before: p, notes: p.notes, in: p.in, out: p.out, calls: p.calls}
		}
		p.line.mu.Unlock()
		if p.line.depth < deepest {
			break
		}
		p = p.flat()
	}
	l := &line{from: p, ids: map[string]int{}}
	next := point{line: l, before: p}
	if p != nil {
		l.depth = p.line.depth + 1
		next.in, next.out, next.calls = p.in, p.out, p.calls
	}
	l.mu.Lock()
	return next
}

// deepest is how many lines may stand before one.
const deepest = 32

// flat returns a copy of p in a line of its own, with all that stands before.
func (p *point) flat() *point {
	flat := *p
	flat.items, flat.notes = exactly(slices.Concat(p.pieces()...)), p.allNotes()
	flat.whole = true
	flat.line, flat.number = &line{ids: map[string]int{}, tip: 1}, 1
	for _, q := range p.path() {
		q.line.mu.Lock()
		for id, at := range q.line.ids {
			if at < q.out {
				flat.line.ids[id] = at
			}
		}
		q.line.mu.Unlock()
	}
	return &flat
}

// path returns the points up to p, one a line, from the beginning.
func (p *point) path() []*point {
	var path []*point
	for ; p != nil; p = p.line.from {
		path = append(path, p)
	}
	slices.Reverse(path)
	return path
}

// pieces returns the bytes of everything up to p, and room for one more piece.
func (p *point) pieces() [][]byte {
	n := 0
	for q := p; q != nil; q = q.earlier() {
		n++
	}
	pieces := make([][]byte, n, n+1)
	for q := p; q != nil; q = q.earlier() {
		n--
		pieces[n] = q.items
	}
	return pieces
}

// earlier returns the point whose bytes stand before those of p, or nil.
func (p *point) earlier() *point {
	if p.whole {
		return nil
	}
	return p.before
}

// exactly returns a copy of items without spare capacity: what is remembered is kept as long as the conversation.
func exactly(items []byte) []byte {
	return append(make([]byte, 0, len(items)), items...)
}

// allNotes returns the notes of everything up to p, in a new slice.
func (p *point) allNotes() []api.RepairNote {
	var notes []api.RepairNote
	for _, q := range p.path() {
		notes = append(notes, q.notes...)
	}
	return notes
}

// len is how many messages are said up to p.
func (p *point) len() int {
	if p == nil {
		return 0
	}
	return p.out
}
