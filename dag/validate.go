package dag

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/lineage"
	"github.com/plait-dev/plait/internal/memo"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// FindingKind is the kind of a [Finding], as a person reads it. The constants below have each of them.
type FindingKind string

// Findings of Validate about tool phases.
const (
	CallWithoutResult FindingKind = "call without result"
	ResultWithoutCall FindingKind = "result without call"
	resultTwice       FindingKind = "call has two results"
	resultLate        FindingKind = "result comes late" // there is other content between the call and its result
	phaseCutInHalf    FindingKind = "incomplete tool phase"
	strayExecution    FindingKind = "execution without call"
	duplicateCallID   FindingKind = "duplicate call id"
	emptyCallID       FindingKind = "empty call id"
	UndeclaredTool    FindingKind = "undeclared tool"
	badArguments      FindingKind = "arguments are not an object"
)

// Findings of Validate about nodes and their content.
const (
	emptyMessage    FindingKind = "empty message"
	emptyText       FindingKind = "empty text"
	wrongSide       FindingKind = "block of the other role"
	badData         FindingKind = "data is not base64"
	badImageType    FindingKind = "image type is not supported"
	unknownBlock    FindingKind = "unknown block"
	wrongSum        FindingKind = "wrong checksum"
	duplicateID     FindingKind = "duplicate node id"
	nothingReplaced FindingKind = "nothing is replaced" // by a compaction
)

// Finding is one problem of a conversation.
type Finding struct {
	// Node is the node it was found at, never nil.
	Node *node.Node
	Kind FindingKind
	// Detail names the block or the call and gives the reason. It is safe to print.
	Detail string
}

// String returns the node, the kind and the detail on one line.
func (f Finding) String() string {
	text := f.Node.String() + ": " + string(f.Kind)
	if f.Detail != "" {
		text += ": " + f.Detail
	}
	return text
}

// Validate returns all problems of the conversation, in the order of [DAG.WithChildren], and within a node in the order
// of its content. It returns nil if there are none.
//
// A conversation with findings can be saved, and it can be sent: sending repairs whatever a model would reject. The
// conversation of a sub-agent or a sub-graph is validated too, on its own; a call that several of them share is declared
// if one of them declares its tool. Validate changes nothing. It takes time in proportion to the nodes and their
// content.
//
// Not findings, because every conversation may be in these states:
//
//   - tool calls without a result at a head, executed in part or not at all. [DAG.Verify] lists them. They are findings
//     as soon as another node follows.
//   - a call with incomplete arguments in a response that reached its limit of tokens. It was not executed, and is sent
//     as far as it arrived.
//   - a last message of the assistant;
//   - a first message that is not the user's;
//   - two messages in a row with the same role. They are sent as one.
func (d DAG) Validate() []Finding {
	v := newValidator()
	v.conversation(d)
	return v.findings(d.WithChildren)
}

// rank sorts the findings about a node: first those about the node as a whole, then those about its content, and then
// those about what follows.
func rank(k FindingKind) int {
	switch k {
	case duplicateID, wrongSum, falseRedaction:
		return 0
	case phaseCutInHalf, CallWithoutResult:
		return 2
	}
	return 1
}

// validator collects the findings of one or more conversations. What they share is checked once, so the work does not
// grow with the number of conversations that continue the same one.
type validator struct {
	found    map[node.ID][]Finding // by node
	reported map[Finding]bool      // all of found

	early []toolCall        // the calls of tools that no node before them declares
	late  map[toolCall]bool // those of them whose tool a later node declares

	known     map[node.ID]*node.Node // the nodes checked by the method node
	visited   map[*node.Node]bool    // the same, with both of two nodes with one ID
	validated map[string]bool        // the child conversations that are checked or queued, by the IDs of their heads

	several bool                      // there is more than one conversation
	settled map[*node.Node]phaseCheck // the check of all nodes before a node on the trunk; it misses no result

	caller *node.Node // the parent of the latest execution, and its calls
	calls  *lineage.Calls
}

func newValidator() *validator {
	return &validator{
		found: map[node.ID][]Finding{}, reported: map[Finding]bool{},
		known: map[node.ID]*node.Node{}, visited: map[*node.Node]bool{}, validated: map[string]bool{},
		late: map[toolCall]bool{}, settled: map[*node.Node]phaseCheck{},
	}
}

// findings returns all findings, in the order of the nodes that list returns. It may be called once.
func (v *validator) findings(list func() []*node.Node) []Finding {
	for _, c := range v.early {
		if !v.late[c] {
			v.report(c.n, UndeclaredTool, "%q", c.tool)
		}
	}

	// Usually there are none, and the nodes need not be listed.
	if len(v.found) == 0 {
		return nil
	}

	var findings []Finding
	for _, n := range list() {
		own := v.found[n.ID()]
		slices.SortStableFunc(own, func(a, b Finding) int { return cmp.Compare(rank(a.Kind), rank(b.Kind)) })
		findings = append(findings, own...)
		delete(v.found, n.ID()) // both of two nodes with one ID may be in the list
	}
	return findings
}

func (v *validator) report(n *node.Node, kind FindingKind, format string, args ...any) {
	f := Finding{Node: n, Kind: kind, Detail: safetext.Line(fmt.Sprintf(format, args...), 200)}
	if !v.reported[f] {
		v.reported[f] = true
		v.found[n.ID()] = append(v.found[n.ID()], f)
	}
}

// conversation checks d and all of its child conversations.
func (v *validator) conversation(d DAG) {
	// Child conversations may nest to any depth: use a queue, not recursion.
	queue := []DAG{d}
	for len(queue) > 0 {
		d := queue[0]
		queue = queue[1:]

		for _, n := range v.unvisited(d.heads()) {
			if other, seen := v.known[n.ID()]; seen {
				if !memo.SameNode(other, n) {
					v.report(other, duplicateID, "another node has the id %s", n.ID())
				}
				continue
			}
			v.known[n.ID()] = n
			v.node(n)

			if child := FromNode(n); v.enqueue(child.heads()) {
				queue = append(queue, child)
				v.several = true
			}
		}
		v.branches(d)
	}
}

// branches checks the tool phases of each branch of d: a result in one branch is none of another's.
func (v *validator) branches(d DAG) {
	all := lineage.Branches(d.heads())
	if len(all) < 2 {
		v.phases(d)
		return
	}

	v.several = true
	first := len(v.early)
	for _, b := range all {
		v.phases(DAG{}.atAll(b.Heads))
	}

	// A tool may be declared in one branch and called in another: the next node joins them.
	if first == len(v.early) {
		return
	}
	declared := map[string]bool{}
	for _, n := range postOrder(d.heads()) {
		if tools, ok := n.Payload().(node.Tools); ok {
			for _, def := range tools.Defs.Slice() {
				declared[def.Name] = true
			}
		}
	}
	for _, c := range v.early[first:] {
		v.late[c] = v.late[c] || declared[c.tool]
	}
}

// enqueue reports whether the child conversation with these heads must still be checked, and marks it as validated.
func (v *validator) enqueue(heads []*node.Node) bool {
	if len(heads) == 0 {
		return false
	}

	var key []byte
	for _, h := range heads {
		id := h.ID()
		key = append(key, id[:]...)
	}
	if v.validated[string(key)] {
		return false
	}
	v.validated[string(key)] = true
	return true
}

// unvisited returns the nodes reachable from the heads that no earlier call returned, in order. It returns both of two
// nodes with one ID.
func (v *validator) unvisited(heads []*node.Node) []*node.Node {
	return postOrderOf(heads, func(n *node.Node) bool {
		fresh := !v.visited[n]
		v.visited[n] = true
		return fresh
	})
}

// node checks n by itself, without the nodes around it.
func (v *validator) node(n *node.Node) {
	err := n.Verify()
	if errors.Is(err, node.ErrSum) {
		v.report(n, wrongSum, "")
	}
	if errors.Is(err, node.ErrRedaction) {
		v.report(n, falseRedaction, "")
	}

	switch p := n.Payload().(type) {
	case node.Message:
		v.message(n, p)
	case node.ToolExecution:
		v.execution(n, p)
		v.blocks(n, "result", p.Result)
	case node.Compaction:
		v.blocks(n, "summary", p.Summary)
	}
}

func (v *validator) message(n *node.Node, m node.Message) {
	// A refusal may come without a text. It is kept for its reason, and not sent.
	if m.Blocks.Len() == 0 && m.Answer.Stop != content.StopRefusal {
		v.report(n, emptyMessage, "")
	}

	uses := map[string]int{} // number of calls by ID
	for i, b := range m.Blocks.All() {
		if !cutArguments(m, b) {
			v.block(n, m.Role, fmt.Sprintf("block %d", i), b)
		}
		if call, ok := b.(content.ToolUse); ok && call.ID != "" {
			// Report each ID once, however many calls have it.
			if uses[call.ID]++; uses[call.ID] == 2 {
				v.report(n, duplicateCallID, "%q", call.ID)
			}
		}
	}
}

// cutArguments reports whether b is a call with incomplete arguments, from a response that reached its limit of tokens.
func cutArguments(m node.Message, b content.Block) bool {
	call, ok := b.(content.ToolUse)
	cut := m.Answer.Stop == content.StopMaxTokens || m.Answer.Stop == content.StopContext
	return ok && cut && m.Role == content.Assistant && call.ID != "" && !call.Input.Valid()
}

func (v *validator) blocks(n *node.Node, where string, blocks content.Blocks) {
	for i, b := range blocks.All() {
		// Results and summaries are sent in messages with role user.
		v.block(n, content.User, fmt.Sprintf("%s %d", where, i), b)
	}
}

func (v *validator) block(n *node.Node, role content.Role, where string, b content.Block) {
	switch b := b.(type) {
	case content.Text:
		if strings.TrimSpace(b.Text) == "" {
			v.report(n, emptyText, "%s", where)
		}

	case content.Image:
		v.source(n, where, b.Source, true)
	case content.Document:
		v.source(n, where, b.Source, false)

	case content.Thinking:
		v.side(n, where, role, content.Assistant, "thinking")
	case content.ToolUse:
		v.side(n, where, role, content.Assistant, "a tool call")
		if b.ID == "" {
			v.report(n, emptyCallID, "%s calls %q", where, b.Name)
		}

		// A call without arguments is valid: package executor executes it with {}.
		if b.Input != "" && !b.Input.IsObject() {
			v.report(n, badArguments, "%s calls %q with %s", where, b.Name, b.Input)
		}
	case content.CutToolUse:
		v.side(n, where, role, content.Assistant, "a tool call")

	case content.ToolResult:
		v.side(n, where, role, content.User, "a tool result")
		v.blocks(n, where+", result", b.Content)
	case content.Unknown:
		v.report(n, unknownBlock, "%s is never sent", where)
	}
}

// side checks that a block belongs to the role of its message.
func (v *validator) side(n *node.Node, where string, role, want content.Role, what string) {
	if role != want {
		v.report(n, wrongSide, "%s: %s in a message with role %s", where, what, role)
	}
}

// imageTypes lists the media types that models accept for images.
var imageTypes = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}

// source checks the media type and the base64 data of an image or a document.
func (v *validator) source(n *node.Node, where string, s content.Source, image bool) {
	if s.Data == "" {
		return // the source is a text, a URL or an uploaded file
	}

	if image && !slices.Contains(imageTypes, s.MediaType) {
		all := strings.Join(imageTypes, ", ")
		v.report(n, badImageType, "%s has type %q, not one of %s", where, s.MediaType, all)
	}

	// The data may be large: decode it as a stream.
	if _, err := io.Copy(io.Discard, base64.NewDecoder(base64.StdEncoding, strings.NewReader(s.Data))); err != nil {
		v.report(n, badData, "%s: %v", where, err)
	}
}

// execution checks that n executes a call of its parent.
func (v *validator) execution(n *node.Node, e node.ToolExecution) {
	if n.NumParents() != 1 {
		v.report(n, strayExecution, "it has %d parents", n.NumParents())
		return
	}

	// The executions of a wide tool phase come one after the other: index the calls of their parent once.
	if p := n.Parent(0); p != v.caller {
		m, _ := p.Message()
		v.caller, v.calls = p, &lineage.Calls{}
		if m.Role == content.Assistant {
			v.calls = lineage.CallsOf(m.Blocks)
		}
	}
	if v.calls.Of(e) < 0 {
		v.report(n, strayExecution, "block %d of %s is no call with id %q", e.Index, v.caller, e.CallID)
	}
}

// phases checks the conversation as it is sent to a model. Every called tool must be declared, and the results of an
// assistant message's calls must come before the next assistant message.
//
// A conversation that begins like an earlier one is checked from where they part.
func (v *validator) phases(d DAG) {
	nodes, trunk, p := v.unsettled(d.heads())
	view, _ := viewOf(nodes, nil)

	// A compaction changes the view of what comes before it: only what comes after the last one is settled.
	compactions := 0
	for _, n := range nodes {
		if isCompaction(n) {
			compactions++
		}
	}

	for _, n := range nodes {
		blocks, replaced := view.replaced[n.ID()]

		// Messages of the assistant in a row are sent as one, so their calls are one phase.
		if m, ok := n.Message(); ok && m.Role == content.Assistant && !replaced && p.replied {
			p.end(true)
		}

		if len(trunk) > 0 && n == trunk[0] {
			trunk = trunk[1:]
			if v.several && compactions == 0 && p.missing == 0 {
				v.settled[n] = p
			}
		}
		if isCompaction(n) {
			compactions--
		}

		if replaced {
			p.user(n, blocks)
			continue
		}
		p.node(n, view)
	}

	// Open calls at the heads are no findings: they may still be executed.
	if open, ok := d.openPhase(); ok {
		p.pending = open.Caller.ID()
	}
	p.end(false)
}

// unsettled returns the nodes that phases has to check, in order: those after the last settled node before the heads,
// and that node. trunk lists those of them that every path to the heads passes. p is the check of all earlier nodes.
func (v *validator) unsettled(heads []*node.Node) (nodes, trunk []*node.Node, p phaseCheck) {
	p.validator = v
	compacted := false
	add := func(list ...*node.Node) {
		compacted = compacted || slices.ContainsFunc(list, isCompaction)
		for _, n := range slices.Backward(list) {
			nodes = append(nodes, n)
		}
	}

	// Several heads of one parent are an open fan: the trunk begins below it.
	rest := heads
	if below := onlyParent(heads); len(heads) > 1 && below != nil {
		add(heads...)
		rest = []*node.Node{below}
	}

	for len(rest) == 1 {
		n := rest[0]
		add(n)
		trunk = append(trunk, n)
		if settled, ok := v.settled[n]; ok && !compacted {
			p, rest = settled, nil
			break
		}

		rest = n.Parents()
		if below := onlyParent(rest); len(rest) > 1 && below != nil {
			add(rest...)
			rest = []*node.Node{below}
		}
	}

	add(postOrder(rest)...)
	slices.Reverse(nodes)
	slices.Reverse(trunk)
	return nodes, trunk, p
}

// onlyParent returns the node that is the only parent of each of nodes, or nil.
func onlyParent(nodes []*node.Node) (below *node.Node) {
	for _, n := range nodes {
		if n.NumParents() != 1 || below != nil && below != n.Parent(0) {
			return nil
		}
		below = n.Parent(0)
	}
	return below
}

func isCompaction(n *node.Node) bool {
	_, is := n.Payload().(node.Compaction)
	return is
}

// toolCall is a call of a tool in a message.
type toolCall struct {
	n    *node.Node
	tool string
}

// undeclaredCalls is a list of calls of one tool that no node before them declares, the last one first.
type undeclaredCalls struct {
	n        *node.Node
	before   *undeclaredCalls
	declared bool // a later node declares the tool, and therefore those before are declared too
}

// phaseCheck matches the calls of one tool phase with their results in the messages, or in the executions, after them.
type phaseCheck struct {
	*validator
	calls    []matchedCall
	open     map[string][]int // indexes in calls of the calls without a result, by call ID
	ids      map[string]bool  // IDs of all calls
	missing  int              // number of calls without a result
	replied  bool             // a message with role user, or a result, has followed
	other    bool             // content other than tool results has followed
	unclosed bool             // some results are in executions, and in no message
	pending  node.ID          // the message at the head with calls that may still be executed; zero for none

	// The names of all tools declared so far, and the undeclared calls of each other tool.
	declared   *tree[bool]
	undeclared *tree[*undeclaredCalls]
}

// matchedCall is a tool call and whether it has a result.
type matchedCall struct {
	n         *node.Node
	use       content.ToolUse
	hasResult bool
}

// node checks a node that no compaction replaces.
func (p *phaseCheck) node(n *node.Node, view view) {
	switch payload := n.Payload().(type) {
	case node.Tools:
		p.declare(payload)
	case node.Message:
		if payload.Role == content.User {
			p.user(n, payload.Blocks)
		} else {
			p.assistant(n, payload.Blocks)
		}
	case node.ToolExecution:
		if view.sends(n) {
			// A result that is in no results message is sent by itself.
			p.replied = true
			p.unclosed = p.result(n, resultOf(n)) || p.unclosed
		}

	case node.Compaction:
		if view.placed[n.ID()] {
			return
		}
		p.user(n, payload.Summary)
		if payload.Replaced.Len() > 0 {
			p.report(n, nothingReplaced, "the nodes it replaces are not in the conversation, or are not messages")
		}
	}
}

// declare declares tools, also for the calls before it. Withdrawn tools count, because they may have been called
// before.
func (p *phaseCheck) declare(tools node.Tools) {
	for _, def := range tools.Defs.Slice() {
		p.declared = p.declared.with(def.Name, true)
		late := p.undeclared.get(def.Name)
		if late == nil {
			continue
		}
		for c := late.value; c != nil && !c.declared; c = c.before {
			c.declared = true
			p.late[toolCall{c.n, def.Name}] = true
		}
		p.undeclared = p.undeclared.without(def.Name)
	}
}

func (p *phaseCheck) assistant(n *node.Node, blocks content.Blocks) {
	for _, call := range blocks.ToolUses() {
		if p.declared.get(call.Name) == nil {
			c := &undeclaredCalls{n: n}
			if earlier := p.undeclared.get(call.Name); earlier != nil {
				c.before = earlier.value
			}
			p.undeclared = p.undeclared.with(call.Name, c)
			p.early = append(p.early, toolCall{n, call.Name})
		}

		if p.open == nil {
			p.open, p.ids = map[string][]int{}, map[string]bool{}
		}
		p.open[call.ID] = append(p.open[call.ID], len(p.calls))
		p.ids[call.ID] = true
		p.calls = append(p.calls, matchedCall{n: n, use: call})
		p.missing++
	}
}

func (p *phaseCheck) user(n *node.Node, blocks content.Blocks) {
	if blocks.Len() == 0 {
		return
	}
	p.replied = true
	for _, b := range blocks.All() {
		if r, ok := b.(content.ToolResult); ok {
			p.result(n, r)
		} else {
			p.other = true
		}
	}
}

// result matches r with the first open call of its ID. It reports whether there is one.
func (p *phaseCheck) result(n *node.Node, r content.ToolResult) bool {
	open := p.open[r.CallID]
	if len(open) == 0 {
		kind := ResultWithoutCall
		if p.ids[r.CallID] {
			kind = resultTwice
		}
		p.report(n, kind, "%q", r.CallID)
		return false
	}

	// A call ID may be used twice: its results belong to its calls in order.
	p.open[r.CallID] = open[1:]
	p.calls[open[0]].hasResult = true
	p.missing--
	if p.other {
		p.report(n, resultLate, "other content before the result of %q", r.CallID)
	}
	return true
}

// end reports the calls without a result and prepares p for the next phase. followed is set if a message of the
// assistant follows.
func (p *phaseCheck) end(followed bool) {
	// A phase at the head is not cut: its other calls may still be executed, and sending closes it.
	over := func(c matchedCall) bool { return followed || p.other || c.n.ID() != p.pending }
	if p.unclosed && len(p.calls) > 0 && over(p.calls[0]) {
		all := count(len(p.calls), "call")
		results := len(p.calls) - p.missing
		p.report(p.calls[0].n, phaseCutInHalf, "%d of %s have results, and no message contains all results", results, all)
	}
	if p.missing > 0 {
		for i, c := range p.calls {
			if !c.hasResult && (over(c) || p.replied && !p.unclosed) {
				p.report(c.n, CallWithoutResult, "call %d, %q of %q", i, c.use.ID, c.use.Name)
			}
		}
	}
	*p = phaseCheck{validator: p.validator, declared: p.declared, undeclared: p.undeclared}
}
