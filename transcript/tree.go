package transcript

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
)

// tree is a conversation in a file of lines that name what they follow. It is collected line by line and then built.
type tree struct {
	im      *importer
	entries []*entry
	byName  map[string]*entry // also by the names of lines that were joined to another
	said    map[string]string // what each line says, by its name
	records []extraNode       // what stands outside the conversation, by line
	slots   []*slot           // each after the one it follows
	current *entry            // where the file says that the conversation goes on; nil: at the newest end
}

func newTree(im *importer) *tree {
	return &tree{im: im, byName: map[string]*entry{}, said: map[string]string{}}
}

// entry is a line of the conversation, or several that say one message.
type entry struct {
	line, last int // the first of its lines, and the last
	name       string
	above      string // what it follows; "" for a beginning
	time       time.Time
	meta       node.Meta
	payload    node.Payload    // nil for a record, which is passed over
	blocks     []content.Block // of a message, until the payload is made
	details    content.JSON    // of the first result in it
	child      []*node.Node    // the conversation of the sub-agent that the first result is of
	keeps      string          // of a compaction: the first entry before it that it does not replace

	parts  []string // the names of the lines after the first that it is made of
	same   string   // what two lines say that are one
	near   *entry   // the assistant's message that it is, or that it belongs to as a result or a record
	answer string   // of an assistant's message: the id of the model's answer
	parent *entry
	state  int8 // as in nanoNode
	slot   *slot
}

// extraNode is a node that says nothing to a model and has a place only by its line.
type extraNode struct {
	line int
	node made
}

// slot is a place in the conversation: a message or another entry, or a tool phase.
type slot struct {
	entry  *entry // nil for a tool phase
	parent *slot
	jump   *slot // an ancestor further up, so that each is found in few steps
	depth  int
	latest *slot // the compaction before it
	last   int   // the last line
	kids   int
	before []extraNode
	calls  []content.ToolUse
	byCall map[string][]int // places in calls
	phase  *slot            // of an assistant's message: the latest, where calls were carried out again in another branch

	answers []*answered // of a tool phase, by call
	missing int
	next    map[string]int  // how many calls with an id have their result
	beside  []content.Block // what its lines say beside the results

	ends []*node.Node // its node, or the executions of a phase that is open
}

// answered is a call with its result.
type answered struct {
	result content.ToolResult
	entry  *entry
	first  bool // of the results in its line
}

// isOpen reports whether calls wait for results and nothing follows.
func (s *slot) isOpen() bool {
	return s.kids == 0 && (s.entry == nil && s.missing > 0 || len(s.calls) > 0)
}

func (s *slot) line() int { return s.entry.line }

// add takes the next entry. A line that was there before is left out.
func (t *tree) add(e *entry) error {
	e.last = e.line
	if old := t.byName[e.name]; old != nil && e.name != "" {
		if t.said[e.name] == e.same {
			t.im.note(e.line, "", NoteLeftOut, "it is line %d again", old.line)
			return nil
		}
		if !t.im.opts.Lenient {
			return t.im.errorf(e.line, "", ErrDuplicateID, "%q is the id of line %d", e.name, old.line)
		}
		t.im.note(e.line, "", NoteChanged, "its id %q is that of line %d; it begins a conversation", e.name, old.line)
		e.name += "#" + strconv.Itoa(e.line)
	}
	if e.name == "" {
		e.name = "line " + strconv.Itoa(e.line)
	}
	t.byName[e.name], t.said[e.name] = e, e.same
	t.entries = append(t.entries, e)
	return nil
}

// record keeps a line that says nothing to a model. Lines may follow it.
func (t *tree) record(e *entry, custom node.Custom) error {
	before := len(t.entries)
	if e.above != "" || e.name != "" {
		if err := t.add(e); err != nil || len(t.entries) == before {
			return err
		}
	}
	t.im.note(e.line, "", NoteRecord, "%s", custom.Name)
	name := e.name
	if name == "" {
		name = "line " + strconv.Itoa(e.line)
	}
	t.records = append(t.records, extraNode{e.line, made{name: name, line: e.line, time: e.time, payload: custom, meta: e.meta}})
	return nil
}

// unreadable keeps a line that is broken, or returns why it is.
func (im *importer) unreadable(t *tree, l line, err error) error {
	if !im.opts.Lenient {
		return err
	}
	im.note(l.at, "", NoteRecord, "it cannot be read: %v", err)
	j, err := content.ToJSON(l.text)
	if err != nil {
		return err
	}
	custom := node.Custom{Name: string(im.format) + ".unreadable", JSON: j}
	t.records = append(t.records, extraNode{l.at, made{name: "line " + strconv.Itoa(l.at), line: l.at, payload: custom}})
	return nil
}

// build makes the nodes and returns where each conversation ends, the main one first.
func (t *tree) build() ([][]*node.Node, error) {
	order, err := t.order()
	if err != nil {
		return nil, err
	}
	for _, e := range order {
		if err := t.settle(e); err != nil {
			return nil, err
		}
	}
	ends := t.leaves()
	after := t.placeRecords(ends)
	for _, s := range t.slots {
		if err := t.make(s); err != nil {
			return nil, err
		}
	}
	var out [][]*node.Node
	for _, s := range ends {
		out = append(out, s.ends)
	}
	if len(after) == 0 {
		return out, nil
	}
	if len(out) == 0 {
		out = [][]*node.Node{nil}
	}
	out[0], err = t.chain(out[0], after)
	return out, err
}

// order finds what each entry follows, and returns the entries so that each comes after that.
func (t *tree) order() ([]*entry, error) {
	for _, e := range t.entries {
		if e.above == "" {
			continue
		}
		if e.parent = t.byName[e.above]; e.parent == nil {
			if !t.im.opts.Lenient {
				return nil, t.im.errorf(e.line, "", ErrParent, "%q is no line of the file", e.above)
			}
			t.im.note(e.line, "", NoteChanged, "%q, which it follows, is no line of the file; it begins a conversation", e.above)
		}
	}
	order := make([]*entry, 0, len(t.entries))
	var path []*entry
	for _, first := range t.entries {
		e := first
		for path = path[:0]; e != nil && e.state == 0; e = e.parent {
			e.state = 1
			path = append(path, e)
		}
		if e != nil && e.state == 1 {
			if !t.im.opts.Lenient {
				return nil, t.im.errorf(e.line, "", ErrCycle, "")
			}
			t.im.note(e.line, "", NoteChanged, "it follows itself; it begins a conversation")
			at := slices.Index(path, e)
			order = append(order, e)
			around := path[at+1:] // what follows e, from the end
			e.parent, e.state = nil, 2
			for _, n := range slices.Backward(around) {
				n.state = 2
				order = append(order, n)
			}
			path = path[:at]
		}
		for _, e := range slices.Backward(path) {
			e.state = 2
			order = append(order, e)
		}
	}
	return order, nil
}

// settle gives the entry its place.
func (t *tree) settle(e *entry) error {
	var up *slot
	if e.parent != nil {
		up = e.parent.slot
	}
	if e.payload == nil && e.blocks == nil {
		e.slot = up // a record is passed over
		return nil
	}
	if e.blocks != nil {
		blocks, err := content.Of(e.blocks...)
		if err != nil {
			return t.im.errorf(e.line, "", ErrShape, "%v", err)
		}
		m := e.payload.(node.Message)
		m.Blocks = blocks
		e.payload = m
	}
	if len(e.parts) > 0 {
		if j, err := content.ToJSON(e.parts); err == nil {
			e.meta = metaWith(e.meta, string(t.im.format)+".lines", j)
		}
	}
	m, _ := e.payload.(node.Message)
	if m.Role == content.User && t.join(e, m.Blocks, up) {
		return nil
	}
	s := &slot{entry: e, parent: up, last: e.last}
	if m.Role == content.Assistant {
		s.calls = m.Blocks.ToolUses()
		s.byCall = make(map[string][]int, len(s.calls))
		for i, c := range s.calls {
			s.byCall[c.ID] = append(s.byCall[c.ID], i)
		}
	}
	t.put(s)
	e.slot = s
	return nil
}

func (t *tree) put(s *slot) {
	t.slots = append(t.slots, s)
	s.jump = s
	up := s.parent
	if up == nil {
		return
	}
	up.kids++
	s.depth, s.latest, s.jump = up.depth+1, up.latest, up
	if up.depth-up.jump.depth == up.jump.depth-up.jump.jump.depth {
		s.jump = up.jump.jump
	}
	if up.compacts() {
		s.latest = up
	}
}

// compacts reports whether it is a compaction that stands for what is before it.
func (s *slot) compacts() bool {
	if s.entry == nil || s.entry.keeps == nothing {
		return false
	}
	_, ok := s.entry.payload.(node.Compaction)
	return ok
}

// above is the ancestor at that depth, or the place itself.
func (s *slot) above(depth int) *slot {
	for s.depth > depth {
		if s.jump.depth >= depth {
			s = s.jump
		} else {
			s = s.parent
		}
	}
	return s
}

// join puts results into the tool phase that they belong to, and reports whether there is one: they stand directly after the calls, or
// after other results of them.
func (t *tree) join(e *entry, blocks content.Blocks, up *slot) bool {
	results := blocks.ToolResults()
	if up == nil || len(results) == 0 {
		return false
	}
	said, here := up, (*slot)(nil)
	if up.entry == nil {
		said, here = up.parent, up
	}
	if len(said.byCall[results[0].CallID]) == 0 {
		return false
	}
	p := here
	if p == nil {
		if p = said.phase; p == nil || !p.takes(results) {
			p = &slot{parent: said, answers: make([]*answered, len(said.calls)), missing: len(said.calls), next: map[string]int{}}
			said.phase = p
			t.put(p)
		}
	} else if !p.takes(results) {
		return false // a second result for the same call
	}
	first := true
	for _, b := range blocks.All() {
		r, ok := b.(content.ToolResult)
		if i := p.call(r.CallID); ok && i >= 0 {
			r.CallID = said.calls[i].ID
			p.answers[i] = &answered{r, e, first}
			p.next[said.calls[i].ID]++
			p.missing--
			first = false
			continue
		}
		p.beside = append(p.beside, b)
	}
	p.last = max(p.last, e.last)
	e.slot = p
	return true
}

// call is the first call with that id that has no result; -1 where there is none.
func (s *slot) call(id string) int {
	calls := s.parent.byCall[id]
	if n := s.next[id]; n < len(calls) {
		return calls[n]
	}
	return -1
}

// takes reports whether the phase has no result yet for the calls of these results.
func (s *slot) takes(results []content.ToolResult) bool {
	return !slices.ContainsFunc(results, func(r content.ToolResult) bool {
		return len(s.parent.byCall[r.CallID]) > 0 && s.call(r.CallID) < 0
	})
}

// leaves returns the places that nothing follows, the main one first and then the newest.
func (t *tree) leaves() []*slot {
	var ends []*slot
	for _, s := range t.slots {
		if s.kids == 0 {
			ends = append(ends, s)
		}
	}
	slices.SortStableFunc(ends, func(a, b *slot) int { return cmp.Compare(b.last, a.last) })
	if t.current == nil || t.current.slot == nil {
		return ends
	}
	main := t.current.slot
	ends = slices.DeleteFunc(ends, func(s *slot) bool { return s == main })
	return append([]*slot{main}, ends...)
}

// placeRecords puts each record before the entry that the file has next, and returns those that stand at the end. No record comes
// between calls and their results.
func (t *tree) placeRecords(ends []*slot) []extraNode {
	slices.SortStableFunc(t.records, func(a, b extraNode) int { return cmp.Compare(a.line, b.line) })
	var said []*slot
	for _, s := range t.slots {
		if s.entry != nil {
			said = append(said, s)
		}
	}
	slices.SortStableFunc(said, func(a, b *slot) int { return cmp.Compare(a.line(), b.line()) })
	records := t.records
	for _, s := range said {
		n := 0
		for n < len(records) && records[n].line < s.line() {
			n++
		}
		s.before, records = append(s.before, records[:n]...), records[n:]
	}
	if len(ends) > 0 && ends[0].isOpen() {
		waits := ends[0]
		if waits.entry == nil {
			waits = waits.parent
		}
		waits.before = append(waits.before, records...)
		return nil
	}
	return records
}

// chain makes nodes that follow each other.
func (t *tree) chain(after []*node.Node, extras []extraNode) ([]*node.Node, error) {
	for _, x := range extras {
		x.node.parents = after
		n, err := t.im.make(x.node)
		if err != nil {
			return nil, err
		}
		after = []*node.Node{n}
	}
	return after, nil
}

// make makes the nodes of a place.
func (t *tree) make(s *slot) error {
	var after []*node.Node
	if s.parent != nil {
		after = s.parent.ends
	}
	if s.entry == nil {
		return t.makePhase(s, after)
	}
	after, err := t.chain(after, s.before)
	if err != nil {
		return err
	}
	e := s.entry
	payload := e.payload
	if c, ok := payload.(node.Compaction); ok {
		replaced, err := t.replaced(s)
		if err != nil {
			return err
		}
		c.Replaced = node.ListOf(replaced...)
		payload = c
	}
	n, err := t.im.make(made{name: e.name, line: e.line, time: e.time, payload: payload, meta: e.meta, parents: after})
	s.ends = []*node.Node{n}
	return err
}

// maxReplaced is how many nodes the compactions of a file may name in all. Each names those that it replaces, so that in a hostile file
// they are many more than there are.
const maxReplaced = 16 << 20

// replaced returns the messages that a compaction replaces: those before it, back to the compaction before it and what that one keeps.
func (t *tree) replaced(s *slot) ([]node.ID, error) {
	if !s.compacts() {
		return nil, nil
	}
	from, until := s.parent, 0
	if kept := t.keptBy(s); kept != nil {
		from = kept.parent
	}
	var ids []node.ID
	if s.latest != nil {
		ids = append(ids, s.latest.ends[0].ID())
		until = s.latest.depth + 1
		if kept := t.keptBy(s.latest); kept != nil {
			until = kept.depth
		}
	}
	for up := from; up != nil && up.depth >= until; up = up.parent {
		if up != s.latest {
			ids = append(ids, up.ends[0].ID())
		}
		if t.im.replaced++; t.im.replaced > maxReplaced {
			return nil, t.im.errorf(s.line(), "", ErrLimit, "compactions replace more than %d messages", maxReplaced)
		}
	}
	slices.Reverse(ids)
	return ids, nil
}

// nothing is what a summary keeps that stands for no messages of the conversation.
const nothing = "\x00"

// keptBy is the first place before a compaction that it does not replace; nil where it replaces all.
func (t *tree) keptBy(s *slot) *slot {
	e := t.byName[s.entry.keeps]
	if s.entry.keeps == "" || e == nil || e.slot == nil || s.parent == nil || s.parent.above(e.slot.depth) != e.slot {
		return nil
	}
	return e.slot
}

// makePhase makes an execution for each result and, unless the phase is open, the message with all of them. A call without a result
// gets the one that a model is told in its place.
func (t *tree) makePhase(s *slot, after []*node.Node) error {
	said := s.parent
	closed := !s.isOpen()
	var results []content.Block
	for i, call := range said.calls {
		a := s.answers[i]
		m := made{name: said.entry.name + "/call " + strconv.Itoa(i), line: said.entry.line, parents: after}
		run := node.ToolExecution{CallID: call.ID, Index: i, Tool: call.Name, Input: call.Input}
		switch {
		case a != nil:
			m.name, m.line, m.time, m.meta = a.entry.name+"/call "+strconv.Itoa(i), a.entry.line, a.entry.time, a.entry.meta
			run.Result, run.IsError, run.Ended = a.result.Content, a.result.IsError, a.entry.time
			if a.first {
				run.Details, run.Child = a.entry.details, node.ListOf(a.entry.child...)
			}
		case !closed:
			continue
		default:
			t.im.note(said.entry.line, "", NoteAssumed, "the call %q of %s has no result, and the conversation goes on", call.ID, call.Name)
			run.Result, run.IsError = content.Words(content.NoResult), true
			a = &answered{result: run.Answer(), entry: said.entry}
		}
		m.payload = run
		n, err := t.im.make(m)
		if err != nil {
			return err
		}
		s.ends = append(s.ends, n)
		results = append(results, a.result)
	}
	if !closed {
		return nil
	}
	blocks, err := content.Of(append(results, s.beside...)...)
	if err != nil {
		return t.im.errorf(said.entry.line, "", ErrShape, "%v", err)
	}
	m := made{payload: node.Message{Role: content.User, Blocks: blocks}, parents: s.ends}
	for _, a := range s.answers {
		if a != nil && (m.name == "" || a.entry.line < m.line) {
			m.name, m.line = a.entry.name, a.entry.line
		}
		if a != nil && a.entry.time.After(m.time) {
			m.time = a.entry.time
		}
	}
	n, err := t.im.make(m)
	s.ends = []*node.Node{n}
	return err
}
