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
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// FindingKind says what is wrong with a node.
type FindingKind string

// What Validate finds about tool phases.
const (
	CallWithoutResult FindingKind = "call without result"
	ResultWithoutCall FindingKind = "result without call"
	ResultTwice       FindingKind = "call answered twice"
	ResultLate        FindingKind = "result comes late" // something else was said between the call and its result
	PhaseCutInHalf    FindingKind = "tool phase cut in half"
	StrayExecution    FindingKind = "execution without call"
	DuplicateCallID   FindingKind = "duplicate call id"
	EmptyCallID       FindingKind = "empty call id"
	UndeclaredTool    FindingKind = "undeclared tool"
	BadArguments      FindingKind = "arguments are not an object"
)

// What Validate finds about what is said.
const (
	EmptyMessage    FindingKind = "empty message"
	EmptyText       FindingKind = "empty text"
	WrongSide       FindingKind = "block of the other side"
	BadData         FindingKind = "data is not base64"
	BadImageType    FindingKind = "image type is not supported"
	UnknownBlock    FindingKind = "unknown block"
	WrongDigest     FindingKind = "digest mismatch"
	DuplicateID     FindingKind = "duplicate node id"
	NothingReplaced FindingKind = "nothing is replaced" // by a compaction
)

// Finding is one thing that is wrong with a conversation.
type Finding struct {
	// Node is where.
	Node *node.Node
	Kind FindingKind
	// Detail says which block or call, and how. It is safe to print.
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

// Validate returns everything that is wrong with the conversation, in the order of [DAG.WithChildren], and within a node in the
// order in which it was said; nil when nothing is. A conversation with findings can be saved, and can be sent: sending repairs
// what a model would not take. Conversations that hang on a node are validated too, each as one of its own. It reads and
// changes nothing else, and takes time in proportion to the nodes and their content.
//
// Not findings, because they are states that a conversation goes through: calls that wait for their results at a head, with some of
// them executed or none ([DAG.Verify] lists them; once another node follows, they are findings), a last message of the assistant's, a beginning that is not the user's, and two messages of the
// same side in a row, which are sent as one.
func (d DAG) Validate() []Finding {
	v := validator{found: map[node.ID][]Finding{}, known: map[node.ID]*node.Node{}, judged: map[node.ID]bool{}}
	v.conversation(d)
	var findings []Finding
	for _, n := range d.WithChildren() {
		own := v.found[n.ID()]
		slices.SortStableFunc(own, func(a, b Finding) int { return cmp.Compare(rank(a.Kind), rank(b.Kind)) })
		findings = append(findings, slices.Compact(own)...)
		delete(v.found, n.ID()) // two nodes with one id are met twice
	}
	return findings
}

// rank puts what is wrong with a whole node before what is wrong within it.
func rank(k FindingKind) int {
	switch k {
	case DuplicateID, WrongDigest, FalseRedaction:
		return 0
	}
	return 1
}

type validator struct {
	found  map[node.ID][]Finding
	known  map[node.ID]*node.Node // nodes that were checked by themselves
	judged map[node.ID]bool       // heads of conversations that were checked as a whole

	caller *node.Node // the latest node with executions, and its calls
	calls  *callsByID
}

func (v *validator) report(n *node.Node, kind FindingKind, format string, args ...any) {
	f := Finding{Node: n, Kind: kind, Detail: safetext.Line(fmt.Sprintf(format, args...), 200)}
	if !slices.Contains(v.found[n.ID()], f) {
		v.found[n.ID()] = append(v.found[n.ID()], f)
	}
}

// conversation checks d and what hangs on it.
func (v *validator) conversation(d DAG) {
	waiting := []DAG{d}
	for len(waiting) > 0 {
		d := waiting[0]
		waiting = waiting[1:]
		nodes := d.everything()
		for _, n := range nodes {
			if other, seen := v.known[n.ID()]; seen {
				if other != n && other.Digest() != n.Digest() {
					v.report(other, DuplicateID, "another node has the id %s", n.ID())
				}
				continue
			}
			v.known[n.ID()] = n
			v.node(n)
			if children := FromNode(n); len(children.heads) != 1 || !v.judged[children.heads[0].ID()] {
				for _, h := range children.heads {
					v.judged[h.ID()] = true
				}
				if len(children.heads) > 0 {
					waiting = append(waiting, children)
				}
			}
		}
		v.pairs(d)
	}
}

// everything is Nodes, but that two nodes with the same id are two.
func (d DAG) everything() []*node.Node {
	seen := map[*node.Node]bool{}
	return postOrderOf(d.heads, func(n *node.Node) bool {
		fresh := !seen[n]
		seen[n] = true
		return fresh
	})
}

// node checks what can be said of n alone.
func (v *validator) node(n *node.Node) {
	if err := n.Verify(); errors.Is(err, node.ErrDigest) {
		v.report(n, WrongDigest, "%s", digestDetail(n, err))
	} else if err != nil {
		v.report(n, FalseRedaction, "")
	}
	switch p := n.Payload().(type) {
	case node.Message:
		if p.Blocks.Len() == 0 {
			v.report(n, EmptyMessage, "")
		}
		ids := map[string]int{}
		for i, b := range p.Blocks.All() {
			v.block(n, p.Role, fmt.Sprintf("block %d", i), b)
			if call, ok := b.(content.ToolUse); ok {
				if ids[call.ID]++; ids[call.ID] == 2 && call.ID != "" {
					v.report(n, DuplicateCallID, "%q", call.ID)
				}
			}
		}
	case node.ToolExecution:
		v.execution(n, p)
		v.blocks(n, "result", p.Result)
	case node.Compaction:
		v.blocks(n, "summary", p.Summary)
	}
}

func (v *validator) blocks(n *node.Node, where string, blocks content.Blocks) {
	for i, b := range blocks.All() {
		v.block(n, content.User, fmt.Sprintf("%s %d", where, i), b)
	}
}

func (v *validator) block(n *node.Node, role content.Role, where string, b content.Block) {
	switch b := b.(type) {
	case content.Text:
		if strings.TrimSpace(b.Text) == "" {
			v.report(n, EmptyText, "%s", where)
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
			v.report(n, EmptyCallID, "%s calls %q", where, b.Name)
		}
		if b.Input != "" && !b.Input.IsObject() {
			v.report(n, BadArguments, "%s calls %q with %s", where, b.Name, b.Input)
		}
	case content.CutToolUse:
		v.side(n, where, role, content.Assistant, "a tool call")
	case content.ToolResult:
		v.side(n, where, role, content.User, "a tool result")
		v.blocks(n, where+", result", b.Content)
	case content.Unknown:
		v.report(n, UnknownBlock, "%s is never sent", where)
	}
}

func (v *validator) side(n *node.Node, where string, is, belongs content.Role, what string) {
	if is != belongs {
		v.report(n, WrongSide, "%s: %s in a message of the %s", where, what, is)
	}
}

// imageTypes is what models take as images.
var imageTypes = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}

func (v *validator) source(n *node.Node, where string, s content.Source, image bool) {
	if s.Data == "" {
		return
	}
	if image && !slices.Contains(imageTypes, s.MediaType) {
		v.report(n, BadImageType, "%s has type %q, and not one of %s", where, s.MediaType, strings.Join(imageTypes, ", "))
	}
	if _, err := io.Copy(io.Discard, base64.NewDecoder(base64.StdEncoding, strings.NewReader(s.Data))); err != nil {
		v.report(n, BadData, "%s: %v", where, err)
	}
}

// execution checks that n carries out a call of its parent.
func (v *validator) execution(n *node.Node, e node.ToolExecution) {
	if n.NumParents() != 1 {
		v.report(n, StrayExecution, "it has %d parents", n.NumParents())
		return
	}
	if p := n.Parent(0); p != v.caller {
		m, _ := p.Message()
		v.caller, v.calls = p, &callsByID{}
		if m.Role == content.Assistant {
			v.calls = callsOf(m.Blocks)
		}
	}
	if v.calls.of(e) < 0 {
		v.report(n, StrayExecution, "%s has no call %d with id %q", v.caller, e.Index, e.CallID)
	}
}

// pairs checks the conversation as a model would get it: that its tools are declared, and that what the assistant calls in one
// turn is answered in the next turn of the user's side.
func (v *validator) pairs(d DAG) {
	nodes := d.Nodes()
	view := viewOf(nodes)
	declared := map[string]bool{} // anywhere: a tool that was withdrawn may have been called before
	for _, n := range nodes {
		if tools, ok := n.Payload().(node.Tools); ok {
			for _, def := range tools.Defs.Slice() {
				declared[def.Name] = true
			}
		}
	}
	turn := turn{validator: v}
	for _, n := range nodes {
		if stand, replaced := view.replaced[n.ID()]; replaced {
			turn.user(n, stand)
			continue
		}
		switch p := n.Payload().(type) {
		case node.Message:
			if p.Role == content.User {
				turn.user(n, p.Blocks)
				continue
			}
			turn.assistant(n, p.Blocks, declared)
		case node.ToolExecution:
			if view.open(n) {
				turn.replied = true
				turn.half = turn.result(n, answerOf(n)) || turn.half
			}
		case node.Compaction:
			if view.placed[n.ID()] {
				continue
			}
			turn.user(n, p.Summary)
			if p.Replaced.Len() > 0 {
				v.report(n, NothingReplaced, "the nodes it replaces are not here, or are no messages")
			}
		}
	}
	if p, open := d.openPhase(); open {
		turn.waits = p.said.ID()
	}
	turn.end(false)
}

// turn is a turn of the assistant's and the turn of the user's side after it.
type turn struct {
	*validator
	calls   []asked
	open    map[string][]int // places in calls of those that have no result, by id
	ids     map[string]bool  // of all calls
	replied bool             // the user's side has the word
	talked  bool             // and said something that is no result
	half    bool             // and results are said by executions, because no message holds them
	waits   node.ID          // the node at the head whose calls may still be answered
}

type asked struct {
	n        *node.Node
	use      content.ToolUse
	answered bool
}

func (t *turn) assistant(n *node.Node, blocks content.Blocks, declared map[string]bool) {
	if t.replied {
		t.end(true)
	}
	for _, call := range blocks.ToolUses() {
		if !declared[call.Name] {
			t.report(n, UndeclaredTool, "%q", call.Name)
		}
		if t.open == nil {
			t.open, t.ids = map[string][]int{}, map[string]bool{}
		}
		t.open[call.ID] = append(t.open[call.ID], len(t.calls))
		t.ids[call.ID] = true
		t.calls = append(t.calls, asked{n: n, use: call})
	}
}

func (t *turn) user(n *node.Node, blocks content.Blocks) {
	if blocks.Len() == 0 {
		return
	}
	t.replied = true
	for _, b := range blocks.All() {
		r, ok := b.(content.ToolResult)
		if !ok {
			t.talked = true
			continue
		}
		t.result(n, r)
	}
}

// result takes a result of the user's side and reports whether it answers a call.
func (t *turn) result(n *node.Node, r content.ToolResult) bool {
	waiting := t.open[r.CallID]
	switch {
	case len(waiting) > 0:
		t.open[r.CallID] = waiting[1:]
		t.calls[waiting[0]].answered = true
		if t.talked {
			t.report(n, ResultLate, "%q is answered after something else was said", r.CallID)
		}
		return true
	case t.ids[r.CallID]:
		t.report(n, ResultTwice, "%q", r.CallID)
	default:
		t.report(n, ResultWithoutCall, "%q", r.CallID)
	}
	return false
}

// end judges the calls of the turn and begins the next one. more says that the assistant has spoken again.
func (t *turn) end(more bool) {
	answered := 0
	for _, c := range t.calls {
		if c.answered {
			answered++
		}
	}
	// A phase at the head is not cut: the calls without an execution still wait, and sending closes it.
	passedOver := func(c asked) bool { return more || t.talked || c.n.ID() != t.waits }
	if t.half && len(t.calls) > 0 && passedOver(t.calls[0]) {
		t.report(t.calls[0].n, PhaseCutInHalf, "%d of %s answered, and no message holds all results", answered, count(len(t.calls), "call"))
	}
	for i, c := range t.calls {
		if !c.answered && (passedOver(c) || t.replied && !t.half) {
			t.report(c.n, CallWithoutResult, "call %d, %q of %q", i, c.use.ID, c.use.Name)
		}
	}
	*t = turn{validator: t.validator}
}
