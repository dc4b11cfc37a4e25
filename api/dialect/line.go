package dialect

import (
	"iter"
	"slices"
	"sync"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/memo"
)

// maxDepth is the maximum number of lines before a line.
const maxDepth = 32

// line is a settled stretch of a conversation: later messages cannot change it. It only grows at its last point, so the
// contents of its points stay valid. From any other point a new line branches off.
type line struct {
	from  *point // the point this line branches off from; nil at the beginning of the conversation
	depth int    // the number of lines before it

	mu sync.Mutex // guards the fields below

	// last is the index of the last point. An index, not a pointer, so that rewinding frees the dropped points.
	last int
	// ids are the IDs of its calls and items. The value is the index of a message: the one with the call, or that or a
	// later one for an item.
	ids map[string]int
}

// point is a position in a line, before a message of the assistant. Conversations continue from it. It does not change,
// and holds nothing of the messages after it.
type point struct {
	line   *line
	index  int    // in its line, from 1
	before *point // the point before, perhaps of another line; nil at the beginning

	given    []content.Message // the original messages since the point before
	repaired []content.Message // given, repaired
	items    []byte            // the bytes of repaired, after a comma unless at the beginning; without spare capacity
	whole    bool              // items has everything up to this point: see flat
	notes    []api.RepairNote  // the notes of the line up to this point

	in, out int // the number of original and of repaired messages from the beginning of the conversation
	calls   int // the number of calls in them
}

// points yields up to 8 points for messages to continue from, the last one first.
func (e *Encoding) points(messages []content.Message) iter.Seq[*point] {
	const maxTried = 8
	return func(yield func(*point) bool) {
		// Comparing a point with the messages takes time, so only the last few are tried. A message may also be a part
		// of other conversations, at another index.
		tried := 0
		for i := len(messages) - 1; i >= 0 && tried < maxTried; i-- {
			p, _ := memo.OfBlocks(messages[i].Blocks).Get(e).(*point)
			if p == nil || p.in != i+1 {
				continue
			}
			if tried++; p.begins(messages) && !yield(p) {
				return
			}
		}
	}
}

// begins reports whether messages begin with the original messages of p.
func (p *point) begins(messages []content.Message) bool {
	for ; p != nil; p = p.before {
		// Messages are compared by the identity of their blocks, so this takes one step for each message.
		if !slices.Equal(p.given, messages[p.in-len(p.given):p.in]) {
			return false
		}
	}
	return true
}

// uses reports whether a call or item up to p has the ID.
func (p *point) uses(id string) bool {
	for ; p != nil; p = p.line.from {
		p.line.mu.Lock()
		index, ok := p.line.ids[id]
		p.line.mu.Unlock()
		// The line may continue after p: its later IDs do not count.
		if ok && index < p.out {
			return true
		}
	}
	return false
}

// cuts returns drafts with a final beginning before them: everything up to a cut can be settled. The last cut is as
// late as possible; earlier ones are for future branches, at least stride drafts apart. A cut is
//
//   - before a message of the assistant with another one after it,
//   - Far or more from the end,
//   - and not between a waiting message and its answer (see Rules.Waits).
func (e *Encoding) cuts(given []content.Message, drafts []draft) []int {
	const stride = 16
	var cuts []int
	before := 0 // the cut before the last one
	waits := false
	for i, d := range drafts[:max(0, len(drafts)-Far+1)] {
		if d.role == content.User {
			// A user message without results ends the wait (see Rules.Waits).
			waits = waits && d.hasResult()
			continue
		}

		if i > 0 && !waits {
			// Move the last cut up while it is close to the one before.
			if n := len(cuts); n > 0 && cuts[n-1]-before < stride {
				cuts[n-1] = i
			} else {
				if n > 0 {
					before = cuts[n-1]
				}
				cuts = append(cuts, i)
			}
		}
		waits = waits || e.Rules.Waits != nil && slices.ContainsFunc(given[d.first:d.last+1], e.Rules.Waits)
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

// settle returns a new point after p for the given messages, and remembers it with the last of them for later
// conversations. It writes to buffer first, and returns the buffer for the next point: growing one for each point would
// take most of the time of a first request.
func (e *Encoding) settle(p *point, buffer []byte, given, repaired []content.Message, notes []api.RepairNote,
	ids []string) (*point, []byte) {

	next := p.next()
	l := next.line
	defer l.mu.Unlock()

	next.given, next.repaired = slices.Clone(given), slices.Clone(repaired)
	if slices.Equal(given, repaired) {
		next.repaired = next.given // share the memory
	}

	// In a line only its last point is continued, so nothing else writes behind the notes of p.
	next.notes = append(next.notes, notes...)
	next.in += len(given)

	// The items are encoded once, here. Every later request copies their bytes.
	for i, m := range repaired {
		if next.out > 0 {
			buffer = append(buffer, ',')
		}
		buffer = e.write(buffer, repaired, i, Far)
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
	next.items = exactly(buffer)
	l.last++
	next.index = l.last

	// The point replaces the memory of each single message.
	for _, m := range given {
		memo.OfBlocks(m.Blocks).Put(acceptedKey{e}, nil)
	}
	memo.OfBlocks(given[len(given)-1].Blocks).Put(e, &next)
	return &next, buffer
}

// next returns an empty point after p: in the line of p if p is its last point, otherwise in a new line. It locks that
// line; the caller unlocks it.
func (p *point) next() point {
	for p != nil {
		p.line.mu.Lock()
		if p.line.last == p.index {
			return point{line: p.line, before: p, notes: p.notes, in: p.in, out: p.out, calls: p.calls}
		}
		p.line.mu.Unlock()
		// Another point follows p already, so the conversation branches off. The lines before p are searched for each
		// ID, so there is a limit to their number.
		if p.line.depth < maxDepth {
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

// flat returns a copy of p in a line of its own, with everything before it.
func (p *point) flat() *point {
	flat := *p
	flat.items, flat.notes = exactly(slices.Concat(p.pieces()...)), p.allNotes()
	flat.whole = true
	flat.line, flat.index = &line{ids: map[string]int{}, last: 1}, 1

	// A line may continue after q: copy only the IDs up to q.
	for _, q := range p.path() {
		q.line.mu.Lock()
		for id, index := range q.line.ids {
			if index < q.out {
				flat.line.ids[id] = index
			}
		}
		q.line.mu.Unlock()
	}
	return &flat
}

// path returns the last point of each line up to p, from the beginning.
func (p *point) path() []*point {
	var path []*point
	for ; p != nil; p = p.line.from {
		path = append(path, p)
	}
	slices.Reverse(path)
	return path
}

// pieces returns the bytes of everything up to p, with capacity for one more piece.
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

// earlier returns the point with the bytes before those of p, or nil.
func (p *point) earlier() *point {
	if p.whole {
		return nil
	}
	return p.before
}

// exactly returns a copy of items without spare capacity, because a point is kept as long as the conversation.
func exactly(items []byte) []byte {
	return slices.Clip(append([]byte(nil), items...)) // unlike make, it does not clear the memory first
}

// allNotes returns the notes of everything up to p, in a new slice.
func (p *point) allNotes() []api.RepairNote {
	var notes []api.RepairNote
	for _, q := range p.path() {
		notes = append(notes, q.notes...)
	}
	return notes
}

// len returns the number of repaired messages up to p.
func (p *point) len() int {
	if p == nil {
		return 0
	}
	return p.out
}
