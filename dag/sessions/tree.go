package sessions

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// tree is a conversation in a file of lines with references to their parents. Lines are collected one by one; build
// then makes the nodes.
type tree struct {
	im      *importer
	entries []*entry
	byName  map[string]*entry // includes the names of lines joined to another entry
	bodies  map[string]string // the body of each line, by name: a repeated line with the same body is dropped
	records []extraNode       // lines outside the conversation, in the file's order after placeRecords
	slots   []*slot           // each after its parent
	current *entry            // the session's current entry; nil means the newest one
	end     string            // the name of the entry that follow added last
}

func newTree(im *importer) *tree {
	return &tree{im: im, byName: map[string]*entry{}, bodies: map[string]string{}}
}

// entry is a line of the conversation, or several lines with one message.
type entry struct {
	line, last int // the first and the last line
	name       string
	parentName string // "" for a root
	time       time.Time
	meta       node.Meta
	payload    node.Payload    // nil for a record: its children follow its parent
	blocks     []content.Block // of a message; settle moves them into the payload
	details    content.JSON    // of the first result in the entry
	child      []*node.Node    // the heads of the sub-agent's conversation, for the first result in the entry
	keeps      string          // of a compaction: the first entry before it that it keeps

	parts      []string // the names of its further lines
	body       string   // equal for a repetition of the same line
	response   *entry   // the assistant's message: this entry, or the message of this result or record
	responseID string   // of an assistant's message: the ID of the model's response
	parent     *entry
	state      visitState
	slot       *slot // of a record: the slot of its parent
}

// visitState is the progress of a depth-first walk from children to parents.
type visitState int8

const (
	unvisited visitState = iota
	visiting             // on the current path: meeting it again is a cycle
	visited
)

// extraNode is a node without content for a model. Only its line determines its position.
type extraNode struct {
	line int
	node nodeSpec
}

// slot is a position in the conversation: a message or another entry, or a tool phase.
type slot struct {
	entry    *entry // nil for a tool phase
	parent   *slot
	jump     *slot // an ancestor further up: with it ancestorAt takes logarithmic time
	depth    int
	latest   *slot // the nearest compaction above
	last     int   // the last line
	children int
	before   []extraNode       // records to insert between the parent and this slot
	calls    []content.ToolUse // of an assistant's message
	blocks   []int             // the indexes of the calls' blocks
	byCall   map[string][]int  // indexes in calls, by call ID
	phase    *slot             // of an assistant's message: the latest tool phase; another branch may have repeated the calls

	results     []*phaseResult  // of a tool phase: by index in the parent's calls; nil means no result
	missing     int             // how many of results are nil
	next        map[string]int  // how many calls with an ID have a result
	otherBlocks []content.Block // the blocks after the results in its lines

	heads []*node.Node // parents of the children: the slot's node, or the executions of an open tool phase
}

// phaseResult is the result of one call in a tool phase.
type phaseResult struct {
	result content.ToolResult
	entry  *entry
	first  bool // the first result in its entry: the details and the child are its own
}

// isOpen reports whether calls lack results and no entry follows.
func (s *slot) isOpen() bool {
	return s.children == 0 && (s.entry == nil && s.missing > 0 || len(s.calls) > 0)
}

func (s *slot) line() int { return s.entry.line }

// add appends an entry. A repeated line is dropped, with a note.
func (t *tree) add(e *entry) error {
	e.last = e.line
	if old := t.byName[e.name]; old != nil && e.name != "" {
		// The same content again is a repetition. Another content under the same ID is a mistake of the file.
		if t.bodies[e.name] == e.body {
			t.im.note(e.line, "", noteLeftOut, "it repeats line %d", old.line)
			return nil
		}

		return t.im.errorf(e.line, "", dag.ErrDuplicateID, "line %[2]d has the same ID, %[1]q", e.name, old.line)
	}

	if e.name == "" {
		e.name = "line " + strconv.Itoa(e.line)
	}

	t.byName[e.name], t.bodies[e.name] = e, e.body
	t.entries = append(t.entries, e)
	return nil
}

// follow appends an entry behind the one before, for formats without parents.
func (t *tree) follow(e *entry) error {
	e.parentName, t.end = t.end, e.name
	return t.add(e)
}

// record keeps a line without content for a model. Other lines may name it as their parent.
func (t *tree) record(e *entry, custom node.Custom) error {
	// A line that can be a parent is also an entry, without a payload. If add has dropped it as a repetition, drop the
	// record too.
	before := len(t.entries)
	if e.parentName != "" || e.name != "" {
		if err := t.add(e); err != nil || len(t.entries) == before {
			return err
		}
	}

	t.im.note(e.line, "", noteRecord, "%s", custom.Name)

	name := e.name
	if name == "" {
		name = "line " + strconv.Itoa(e.line)
	}

	t.records = append(t.records, extraNode{e.line, nodeSpec{name: name, line: e.line, time: e.time, payload: custom, meta: e.meta}})
	return nil
}

// build makes the nodes and returns the heads of each conversation, the main one first.
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

	// The records find their places before any node is made, because they become nodes between the others.
	leaves := t.leaves()
	trailing := t.placeRecords(leaves)
	for _, s := range t.slots {
		if err := t.make(s); err != nil {
			return nil, err
		}
	}

	var out [][]*node.Node
	for _, s := range leaves {
		out = append(out, s.heads)
	}
	if len(trailing) == 0 {
		return out, nil
	}

	// Records at the end of the file follow the main conversation. Without another conversation they are one.
	if len(out) == 0 {
		out = [][]*node.Node{nil}
	}
	out[0], err = t.appendRecords(out[0], trailing)
	return out, err
}

// order resolves the parents, and returns the entries, each after its parent.
func (t *tree) order() ([]*entry, error) {
	for _, e := range t.entries {
		if e.parentName == "" {
			continue
		}
		if e.parent = t.byName[e.parentName]; e.parent == nil {
			return nil, t.im.errorf(e.line, "", node.ErrParent, "its parent %q is not in the file", e.parentName)
		}
	}

	order := make([]*entry, 0, len(t.entries))
	var path []*entry
	for _, first := range t.entries {
		// Walk up to an entry already in order. The walk is no recursion, because a file may nest deeply.
		e := first
		for path = path[:0]; e != nil && e.state == unvisited; e = e.parent {
			e.state = visiting
			path = append(path, e)
		}

		if e != nil && e.state == visiting {
			return nil, t.im.errorf(e.line, "", errCycle, "")
		}

		for _, e := range slices.Backward(path) {
			e.state = visited
			order = append(order, e)
		}
	}
	return order, nil
}

// settle finds the slot of an entry. Its parent must have one already.
func (t *tree) settle(e *entry) error {
	var up *slot
	if e.parent != nil {
		up = e.parent.slot
	}

	// A record has no slot of its own: its children follow its parent.
	if e.payload == nil && e.blocks == nil {
		e.slot = up
		return nil
	}

	if e.blocks != nil {
		blocks, err := content.Of(e.blocks...)
		if err != nil {
			return t.im.errorf(e.line, "", errShape, "%v", err)
		}
		m := e.payload.(node.Message)
		m.Blocks = blocks
		e.payload = m
	}

	// A message of several lines has the ID of the first. The names of the others are metadata.
	if len(e.parts) > 0 {
		if j, err := content.ToJSON(e.parts); err == nil {
			e.meta = metaWith(e.meta, string(t.im.format)+".lines", j)
		}
	}

	// Results join the tool phase of their calls. Everything else has a slot of its own.
	m, _ := e.payload.(node.Message)
	if m.Role == content.User && t.join(e, m.Blocks, up) {
		return nil
	}

	s := &slot{entry: e, parent: up, last: e.last}
	if m.Role == content.Assistant {
		// Two calls may have the same ID, so each ID has a list.
		s.byCall = map[string][]int{}
		for at, b := range m.Blocks.All() {
			if c, ok := b.(content.ToolUse); ok {
				s.byCall[c.ID] = append(s.byCall[c.ID], len(s.calls))
				s.calls, s.blocks = append(s.calls, c), append(s.blocks, at)
			}
		}
	}

	t.put(s)
	e.slot = s
	return nil
}

// put appends a slot. Its parent must be set; put sets the depth and the links to ancestors.
func (t *tree) put(s *slot) {
	t.slots = append(t.slots, s)

	s.jump = s
	up := s.parent
	if up == nil {
		return
	}

	up.children++
	s.depth, s.latest, s.jump = up.depth+1, up.latest, up

	// A skew-binary jump pointer: two jumps of equal length above the parent become one.
	if up.depth-up.jump.depth == up.jump.depth-up.jump.jump.depth {
		s.jump = up.jump.jump
	}

	if up.compacts() {
		s.latest = up
	}
}

// compacts reports whether the slot is a compaction with replaced messages.
func (s *slot) compacts() bool {
	if s.entry == nil || s.entry.keeps == keepsEverything {
		return false
	}
	_, ok := s.entry.payload.(node.Compaction)
	return ok
}

// ancestorAt returns the ancestor at this depth, or s itself if it is not deeper.
func (s *slot) ancestorAt(depth int) *slot {
	for s.depth > depth {
		if s.jump.depth >= depth {
			s = s.jump
		} else {
			s = s.parent
		}
	}
	return s
}

// join adds the results in an entry to the tool phase of their calls. It reports false if they have none: the calls
// must be in the message directly before the entry, or before other results of the same message.
func (t *tree) join(e *entry, blocks content.Blocks, up *slot) bool {
	results := blocks.ToolResults()
	if up == nil || len(results) == 0 {
		return false
	}

	// The parent is the message with the calls, or the tool phase with results from lines before this one.
	calling, p := up, (*slot)(nil)
	if up.entry == nil {
		calling, p = up.parent, up
	}

	if len(calling.byCall[results[0].CallID]) == 0 {
		return false
	}

	// The results of one message may come in several lines: those after the first join its phase.
	switch {
	case p != nil && !p.accepts(results):
		return false // a second result for the same call
	case p == nil && calling.phase != nil && calling.phase.accepts(results):
		p = calling.phase
	case p == nil:
		p = &slot{parent: calling, results: make([]*phaseResult, len(calling.calls)), next: map[string]int{}}
		p.missing = len(calling.calls)
		calling.phase = p
		t.put(p)
	}

	// Other blocks follow the results of these calls.
	first := true
	for _, b := range blocks.All() {
		r, ok := b.(content.ToolResult)
		if i := p.openCall(r.CallID); ok && i >= 0 {
			r.CallID = calling.calls[i].ID
			p.results[i] = &phaseResult{r, e, first}
			p.next[calling.calls[i].ID]++
			p.missing--
			first = false
			continue
		}

		p.otherBlocks = append(p.otherBlocks, b)
	}

	p.last = max(p.last, e.last)
	e.slot = p
	return true
}

// openCall returns the index of the first call with this ID and without a result, or -1.
func (s *slot) openCall(id string) int {
	calls := s.parent.byCall[id]
	if n := s.next[id]; n < len(calls) {
		return calls[n]
	}
	return -1
}

// accepts reports whether the calls of these results still lack one. Results of unknown calls are accepted.
func (s *slot) accepts(results []content.ToolResult) bool {
	return !slices.ContainsFunc(results, func(r content.ToolResult) bool {
		return len(s.parent.byCall[r.CallID]) > 0 && s.openCall(r.CallID) < 0
	})
}

// leaves returns the slots without children, the main one first and then the newest first.
func (t *tree) leaves() []*slot {
	var leaves []*slot
	for _, s := range t.slots {
		if s.children == 0 {
			leaves = append(leaves, s)
		}
	}

	slices.SortStableFunc(leaves, func(a, b *slot) int { return cmp.Compare(b.last, a.last) })

	// The current entry of the session is the main head, even if other lines follow it.
	if t.current == nil || t.current.slot == nil {
		return leaves
	}

	main := t.current.slot
	leaves = slices.DeleteFunc(leaves, func(s *slot) bool { return s == main })
	return append([]*slot{main}, leaves...)
}

// placeRecords puts each record before the next entry of the file, and returns the records after the last entry. No
// record comes between calls and their results.
func (t *tree) placeRecords(leaves []*slot) []extraNode {
	slices.SortStableFunc(t.records, func(a, b extraNode) int { return cmp.Compare(a.line, b.line) })

	// Slots are in the order of the tree. Records go by the order of the file.
	var entries []*slot
	for _, s := range t.slots {
		if s.entry != nil {
			entries = append(entries, s)
		}
	}

	slices.SortStableFunc(entries, func(a, b *slot) int { return cmp.Compare(a.line(), b.line()) })

	records := t.records
	for _, s := range entries {
		n := 0
		for n < len(records) && records[n].line < s.line() {
			n++
		}
		s.before, records = append(s.before, records[:n]...), records[n:]
	}

	// The executions of open calls are the heads. The remaining records go before the calls.
	if len(leaves) > 0 && leaves[0].isOpen() {
		open := leaves[0]
		if open.entry == nil {
			open = open.parent
		}
		open.before = append(open.before, records...)
		return nil
	}

	return records
}

// appendRecords makes a chain of nodes after the given ones, and returns its last.
func (t *tree) appendRecords(after []*node.Node, extras []extraNode) ([]*node.Node, error) {
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

// make makes the nodes of a slot. Its parent must have its nodes already.
func (t *tree) make(s *slot) error {
	var after []*node.Node
	if s.parent != nil {
		after = s.parent.heads
	}

	if s.entry == nil {
		return t.makePhase(s, after)
	}

	after, err := t.appendRecords(after, s.before)
	if err != nil {
		return err
	}

	e := s.entry
	// The messages replaced by a compaction have their nodes already.
	payload := e.payload
	if c, ok := payload.(node.Compaction); ok {
		replaced, err := t.replaced(s)
		if err != nil {
			return err
		}
		c.Replaced = node.ListOf(replaced...)
		payload = c
	}

	n, err := t.im.make(nodeSpec{name: e.name, line: e.line, time: e.time, payload: payload, meta: e.meta, parents: after})
	s.heads = []*node.Node{n}
	return err
}

// maxReplaced limits the total number of nodes named by the compactions of a file. Each compaction names its replaced
// nodes, so a hostile file could make the total quadratic in its length.
const maxReplaced = 16 << 20

// replaced returns the messages replaced by a compaction. They go back to the compaction before it, and include the
// earlier compaction and the messages it keeps.
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
		ids = append(ids, s.latest.heads[0].ID())
		until = s.latest.depth + 1
		if kept := t.keptBy(s.latest); kept != nil {
			until = kept.depth
		}
	}

	// Walk up from the last replaced message to the first, at depth until.
	for up := from; up != nil && up.depth >= until; up = up.parent {
		if up != s.latest {
			ids = append(ids, up.heads[0].ID())
		}

		if t.im.replaced++; t.im.replaced > maxReplaced {
			return nil, t.im.errorf(s.line(), "", dag.ErrLimit, "compactions replace more than %d messages", maxReplaced)
		}
	}

	slices.Reverse(ids)
	return ids, nil
}

// keepsEverything is the keeps of a compaction without replaced messages.
const keepsEverything = "\x00"

// keptBy returns the first slot above a compaction that it keeps, or nil if it replaces all.
func (t *tree) keptBy(s *slot) *slot {
	e := t.byName[s.entry.keeps]
	if s.entry.keeps == "" || e == nil || e.slot == nil || s.parent == nil || s.parent.ancestorAt(e.slot.depth) != e.slot {
		return nil
	}
	return e.slot
}

// makePhase makes an execution for each result and, unless the phase is open, the message with all results. In a closed
// phase, a call without a result gets content.NoResult. A model is sent the same.
func (t *tree) makePhase(s *slot, after []*node.Node) error {
	calling := s.parent
	closed := !s.isOpen()

	var results []content.Block
	for i, call := range calling.calls {
		a := s.results[i]
		m := nodeSpec{name: calling.entry.name + "/call " + strconv.Itoa(i), line: calling.entry.line, parents: after}
		run := node.ToolExecution{CallID: call.ID, Index: calling.blocks[i], Tool: call.Name, Input: call.Input}

		switch {
		case a != nil:
			m.name, m.line, m.time, m.meta = a.entry.name+"/call "+strconv.Itoa(i), a.entry.line, a.entry.time, a.entry.meta
			run.Result, run.IsError, run.Ended = a.result.Content, a.result.IsError, a.entry.time
			// One line can hold several results. Its other content belongs to the first.
			if a.first {
				run.Details, run.Child = a.entry.details, node.ListOf(a.entry.child...)
			}
		case !closed:
			continue // it may still get its result
		default:
			t.im.note(calling.entry.line, "", noteAssumed, "call %q of %s has no result, but the conversation continues", call.ID, call.Name)
			run.Result, run.IsError = content.Words(content.NoResult), true
			a = &phaseResult{result: run.Answer(), entry: calling.entry}
		}

		m.payload = run
		n, err := t.im.make(m)
		if err != nil {
			return err
		}
		s.heads = append(s.heads, n)
		results = append(results, a.result)
	}

	if !closed {
		return nil
	}
	return t.makeResults(s, results)
}

// makeResults makes the message of a closed tool phase: its results, and then the other blocks of their lines.
func (t *tree) makeResults(s *slot, results []content.Block) error {
	blocks, err := content.Of(append(results, s.otherBlocks...)...)
	if err != nil {
		return t.im.errorf(s.parent.entry.line, "", errShape, "%v", err)
	}

	// The message has the name of the first line with a result, and the latest time.
	m := nodeSpec{payload: node.Message{Role: content.User, Blocks: blocks}, parents: s.heads}
	for _, a := range s.results {
		if a != nil && (m.name == "" || a.entry.line < m.line) {
			m.name, m.line = a.entry.name, a.entry.line
		}
		if a != nil && a.entry.time.After(m.time) {
			m.time = a.entry.time
		}
	}

	n, err := t.im.make(m)
	s.heads = []*node.Node{n}
	return err
}
