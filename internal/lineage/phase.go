package lineage

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/memo"
	"github.com/plait-dev/plait/node"
)

// Phase is an open tool phase: the message with the calls, and the executions at the heads.
type Phase struct {
	Caller *node.Node   // the message of the assistant
	Heads  []*node.Node // those of its branch; nil in the phase that a conversation keeps
	*Calls

	Executions Slots        // with or without a result
	Spare      []*node.Node // executions of no call, or further ones of a call with a result
	Tally
}

// Tally is what is known of the calls of a phase without looking at each: a reply to one of many calls costs as much as
// one to the only call.
type Tally struct {
	Open     int // calls without a result
	Waiting  int // of these, those that wait for somebody outside
	Approval int // of these, those that wait for approval

	// Spent is the execution with what the paused run has used so far; nil if none has it. It is an unfinished one or,
	// after a result that came without a run for the last call, a finished one.
	Spent *node.Node
}

// Count replaces the execution of a call, before, by now. Both may be nil.
func (t *Tally) Count(before, now *node.Node) {
	for i, n := range [...]*node.Node{before, now} {
		if n == nil {
			continue
		}
		by := 2*i - 1 // the first one no longer counts
		switch e := n.Payload().(node.ToolExecution); {
		case !e.State.Unfinished():
			t.Open -= by
		case e.State == node.ExecutionAwaitingApproval:
			t.Approval += by
			t.Waiting += by
		case e.State.Paused():
			t.Waiting += by
		}
	}
	if t.Spent == before {
		t.Spent = nil
	}
	t.Spent = Later(t.Spent, now)
}

// Later returns the execution in which the later of two pauses recorded what the run has used, or nil. Each may be nil
// or have nothing recorded. What a run has used only grows, and an unfinished execution is of a later run than a
// finished one.
func Later(a, b *node.Node) *node.Node {
	if b == nil || b.Payload().(node.ToolExecution).Spent.Run == "" {
		return a
	}
	if a == nil {
		return b
	}
	one, other := a.Payload().(node.ToolExecution), b.Payload().(node.ToolExecution)
	s, t := one.Spent, other.Spent
	if other.State.Unfinished() != one.State.Unfinished() {
		if other.State.Unfinished() {
			return b
		}
		return a
	}
	if cmp.Or(cmp.Compare(t.Turns, s.Turns), cmp.Compare(t.Calls, s.Calls), cmp.Compare(t.Elapsed, s.Elapsed)) > 0 {
		return b
	}
	return a
}

// Done returns the execution with a result of the call with a number, or nil.
func (p Phase) Done(number int) *node.Node {
	if n := p.Executions.At(number); n != nil && !n.Payload().(node.ToolExecution).State.Unfinished() {
		return n
	}
	return nil
}

// Started returns the execution without a result of the call with a number, or nil.
func (p Phase) Started(number int) *node.Node {
	if n := p.Executions.At(number); n != nil && n.Payload().(node.ToolExecution).State.Unfinished() {
		return n
	}
	return nil
}

// Phase returns the open tool phase of the branch. It is false if the branch does not end in one.
func (b Branch) Phase() (Phase, bool) {
	p := Phase{Caller: b.Last, Heads: b.Heads}
	m, ok := b.Last.Message()
	if !ok || m.Role != content.Assistant {
		return p, false
	}

	// A phase with executions is opened several times, so its calls are remembered.
	bare := len(b.Heads) == 1 && b.Heads[0] == b.Last
	if bare {
		p.Calls = ReadCalls(m.Blocks)
	} else {
		p.Calls = CallsOf(m.Blocks)
	}
	if len(p.List) == 0 {
		return p, false
	}

	executions := make([]*node.Node, len(p.List))
	p.Executions, p.Tally.Open = slotsOf(executions), len(p.List)
	if bare {
		return p, true
	}
	for _, h := range b.Heads {
		p.add(h, executions)
	}
	return p, true
}

// add sorts a head into the slot of its call: executions are those of the phase.
func (p *Phase) add(h *node.Node, executions []*node.Node) {
	e, ok := h.Payload().(node.ToolExecution)
	if !ok {
		return
	}

	// A call with a result is no longer in doubt, even if its start is a head too. A second start replaces the first.
	i := p.Of(e)
	hasResult := i >= 0 && p.Done(i) != nil
	switch {
	case i >= 0 && !hasResult:
		p.Count(executions[i], h)
		executions[i] = h
	case i < 0 || !e.State.Unfinished():
		p.Spare = append(p.Spare, h)
	}
}

// Replace returns heads with now in place of the first head of a branch, and without the branch's other heads.
func Replace(heads, branch, now []*node.Node) []*node.Node {
	if len(branch) == len(heads) {
		return now // the branch is the whole conversation
	}
	gone := make(map[*node.Node]bool, len(branch))
	for _, h := range branch {
		gone[h] = true
	}

	var list []*node.Node
	for _, h := range heads {
		switch {
		case h == branch[0]:
			list = append(list, now...)
		case !gone[h]:
			list = append(list, h)
		}
	}
	return list
}

// Open is what is open at the heads of a conversation.
type Open struct {
	Branches int     // how many there are
	Phases   []Phase // the open tool phases, one for each branch that ends in one
	Unclosed bool    // a branch ends in a tool phase that is not closed
}

// OpenAt returns what is open at the heads.
func OpenAt(heads []*node.Node) Open {
	branches := Branches(heads)
	open := Open{Branches: len(branches)}
	for _, b := range branches {
		p, is := b.Phase()
		if is {
			open.Phases = append(open.Phases, p)
		}
		_, executed := b.Heads[0].Payload().(node.ToolExecution)
		open.Unclosed = open.Unclosed || is || executed
	}
	return open
}

// Calls holds the tool calls of a message.
type Calls struct {
	List []content.Block // each a content.ToolUse; blocks, because a copy of each call would allocate
	At   []int           // the index of each call among the blocks of the message, ascending

	once  sync.Once
	first map[string]int // number of the first call with each ID; made by once
}

// ReadCalls returns the calls of a message.
func ReadCalls(blocks content.Blocks) *Calls {
	c := &Calls{List: make([]content.Block, 0, blocks.Len()), At: make([]int, 0, blocks.Len())}
	for i, b := range blocks.All() {
		if _, is := b.(content.ToolUse); is {
			c.List, c.At = append(c.List, b), append(c.At, i)
		}
	}
	return c
}

// callsKey is the key under which a message's blocks remember CallsOf.
type callsKey struct{}

// CallsOf is ReadCalls. The calls are remembered with the blocks, because each execution of the message needs them.
func CallsOf(blocks content.Blocks) *Calls {
	if calls, ok := memo.OfBlocks(blocks).Get(callsKey{}).(*Calls); ok {
		return calls
	}
	calls := ReadCalls(blocks)
	memo.OfBlocks(blocks).Put(callsKey{}, calls)
	return calls
}

// Call returns the call with a number.
func (c *Calls) Call(number int) content.ToolUse { return c.List[number].(content.ToolUse) }

// Number returns the number of the call whose block has this index, counted among the calls; -1 if there is none.
func (c *Calls) Number(index int) int {
	// Without other blocks between the calls, the number is known at once.
	if len(c.At) > 0 {
		if i := index - c.At[0]; i >= 0 && i < len(c.At) && c.At[i] == index {
			return i
		}
	}
	i, found := slices.BinarySearch(c.At, index)
	if !found {
		return -1
	}
	return i
}

// Of returns the number of the call executed by e: the call at e.Index or, if CallID does not match, the first call with
// that ID. It returns -1 if there is none.
func (c *Calls) Of(e node.ToolExecution) int {
	if i := c.Number(e.Index); i >= 0 && (e.CallID == "" || e.CallID == c.Call(i).ID) {
		return i
	}
	if e.CallID == "" {
		return -1
	}

	// Most executions have the right index, so the map is made for the first one that has not. Going backward, the
	// first call with an ID is set last and counts.
	c.once.Do(func() {
		c.first = make(map[string]int, len(c.List))
		for i := range slices.Backward(c.List) {
			c.first[c.Call(i).ID] = i
		}
	})
	if i, has := c.first[e.CallID]; has {
		return i
	}
	return -1
}

// NoStarts is the key in a conversation's metadata by which its writer says that it recorded no starts of tool calls: true.
const NoStarts = "plait.no_starts"

// InDoubt reports whether the call of an unfinished execution may have been executed: it was started, here or
// elsewhere, and has no result. The call of a paused sub-agent is not in doubt.
func InDoubt(e node.ToolExecution) bool {
	return e.State == node.ExecutionStarted || e.State.Paused() && e.Started != time.Time{} && e.Child.Len() == 0
}

// Waiting is an execution that waits for somebody outside, and the path to it.
type Waiting struct {
	Node *node.Node // the execution
	// Path has the calls of the sub-agents around it, the outermost first. It is shared and must not be changed.
	Path []node.CallKey
}

// Pending yields the executions of open phases that wait for somebody outside, and those inside paused sub-agents, in
// order.
func Pending(phases []Phase) func(yield func(Waiting) bool) {
	return func(yield func(Waiting) bool) {
		seen := map[node.ID]bool{} // executions with a child: a damaged file may hold a conversation several times
		for _, p := range phases {
			// Sub-agents may nest to any depth: use a stack, not recursion.
			stack := []conversation{{phases: []Phase{p}}}
			for len(stack) > 0 {
				top := &stack[len(stack)-1]
				n := top.next()
				if n == nil {
					// A sub-agent that waits for nothing is no reason to wait: then its call does.
					if top.around.Node != nil && !top.waits && !yield(top.around) {
						return
					}
					stack = stack[:len(stack)-1]
					continue
				}

				top.waits = true
				w := Waiting{n, top.path}
				if child := n.Children(); child.Len() > 0 && !seen[n.ID()] {
					seen[n.ID()] = true
					stack = append(stack, inside(w, child))
				} else if !yield(w) {
					return
				}
			}
		}
	}
}

// conversation is the conversation of a sub-agent while its waiting calls are listed.
type conversation struct {
	around Waiting // the call of the sub-agent; zero for the outermost conversation
	path   []node.CallKey
	phases []Phase // those left
	number int     // of the next call in the first of them
	waits  bool    // a call was listed
}

// next returns the next execution that waits for somebody, or nil.
func (c *conversation) next() *node.Node {
	for ; len(c.phases) > 0; c.phases, c.number = c.phases[1:], 0 {
		for p := &c.phases[0]; c.number < len(p.List); {
			n := p.Executions.At(c.number)
			c.number++
			// A call that runs here waits for nobody.
			if n != nil && n.Payload().(node.ToolExecution).State.Paused() {
				return n
			}
		}
	}
	return nil
}

// inside returns the conversation of the sub-agent in the call w.
func inside(w Waiting, child node.List[*node.Node]) conversation {
	key, _ := w.Node.Call()
	path := append(w.Path[:len(w.Path):len(w.Path)], key)
	return conversation{around: w, path: path, phases: OpenAt(child.Slice()).Phases}
}
