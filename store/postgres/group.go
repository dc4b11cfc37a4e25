package postgres

import (
	"context"
	"slices"
	"sync"

	"github.com/plait-dev/plait/store"
)

const (
	// maxGroups is the maximum number of groups running at the same time. With one, the server is idle while the
	// program waits for a commit; with many, they are small.
	maxGroups = 2
	// maxMembers is the maximum number of appends in a group, and maxSize the maximum number of bytes of their lines. A
	// larger append is a group of its own.
	maxMembers = 64
	maxSize    = 1 << 20
)

// groups collects appends into groups with one statement each.
type groups struct {
	mu      sync.Mutex // guards the fields below
	alone   bool       // an append has a statement of its own
	running int        // number of running groups, at most maxGroups
	waiting []*member  // the appends for the next groups, in the order of arrival
}

// member is one append.
type member struct {
	request   store.AppendRequest
	known, to []byte      // the IDs of the head before and after the append
	records   [4][][]byte // the columns id, links, sum and line
	group     *group      // guarded by groups.mu; nil while the append waits

	ended chan struct{} // closed after the group has run; nil for an append without a group

	// The result, as sqlstore.OnceAppender describes it. It is set before ended is closed.
	header []byte
	done   bool
	err    error
}

// size returns the number of bytes in the lines of an append.
func (m *member) size() (n int) {
	for _, line := range m.records[3] {
		n += len(line)
	}
	return n
}

// group is a list of appends with one statement.
type group struct {
	members []*member
	ctx     context.Context
	cancel  context.CancelFunc
	callers int // how many callers still wait; guarded by groups.mu
}

// beginAlone reports whether an append may have a statement of its own. If so, endAlone must be called.
func (g *groups) beginAlone() bool {
	g.mu.Lock()
	defer g.mu.Unlock()

	if g.alone {
		return false
	}
	g.alone = true
	return true
}

// endAlone ends the statement of beginAlone.
func (g *groups) endAlone() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.alone = false
}

// add puts an append into the next group.
func (g *groups) add(m *member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = append(g.waiting, m)
}

// begin makes a group of the waiting appends. It returns nil if there is none, or if maxGroups groups run. Otherwise
// call end after the group.
func (g *groups) begin() *group {
	g.mu.Lock()
	defer g.mu.Unlock()

	if len(g.waiting) == 0 || g.running == maxGroups {
		return nil
	}
	g.running++

	// The first append is taken however large it is.
	n, size := 0, 0
	for n < min(len(g.waiting), maxMembers) {
		size += g.waiting[n].size()
		if n > 0 && size > maxSize {
			break
		}
		n++
	}

	next := &group{members: slices.Clone(g.waiting[:n]), callers: n}
	g.waiting = slices.Delete(g.waiting, 0, n)
	for _, m := range next.members {
		m.group = next
	}
	next.ctx, next.cancel = context.WithCancel(context.Background())
	return next
}

// end ends a group.
func (g *groups) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
}

// leave is called when the caller of an append gives up. A group is canceled when all of its callers have given up.
func (g *groups) leave(m *member) {
	g.mu.Lock()
	defer g.mu.Unlock()

	if m.group == nil {
		g.waiting = slices.DeleteFunc(g.waiting, func(other *member) bool { return other == m })
		return
	}
	m.group.callers--
	if m.group.callers == 0 {
		m.group.cancel()
	}
}
