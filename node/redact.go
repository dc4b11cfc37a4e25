package node

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/plait-dev/plait/content"
)

// RedactedText replaces texts erased by [Redact].
const RedactedText = "[redacted]"

// JSON values in place of erased ones.
const (
	redactedInput  content.JSON = "{}"
	redactedSchema content.JSON = `{"type":"object"}`
	redactedRecord content.JSON = "null"
)

var (
	// ErrRedaction marks a node that is marked as redacted, but has more content than a redacted node can have.
	ErrRedaction = errors.New("it is marked as redacted but has content")
)

// Redacted reports whether content of the node was erased by [Redact]. A node from a file is redacted if it is marked so
// and has only the content of a redacted node: labels, neutral texts, and results of its executions.
func (n *Node) Redacted() bool { return n.seldom().erased }

// Redact erases the content of the nodes for which named returns true. It returns the replacements by their old nodes:
// the redacted nodes and, because a node points to its parents, copies of all nodes after them. The copies keep their
// content and their saved form. nodes must be complete and in order: each node after its parents and after its child
// conversation. The nodes themselves do not change.
//
// A redacted node keeps its ID, its parents, its time, and labels, so that the nodes around it stay valid. Its checksum
// is a new one. It keeps no hash of what was erased:
//
//   - message: the role; the order, IDs and names of its calls; the order, call IDs and error flags of its results; its
//     Answer except ResponseID, Seen and Details;
//   - execution: the ID, index and tool of its call, its state, its times, its usage and what its run had spent;
//   - tools: the names of declared tools (without a provider's own tools, which are removed) and of withdrawn tools;
//   - system prompt and custom record: the name;
//   - compaction: the IDs of the replaced nodes;
//   - run start: everything except its metadata;
//   - stop reason: the reason and the totals of the run;
//   - child conversation: all of it, unless named selects its nodes.
//
// Everything else is erased, including metadata. Texts become RedactedText, arguments {}, records null.
//
// Some content is in two nodes. It is erased from both, and both are redacted:
//
//   - A result is in its execution and in the messages after it. Such a message keeps the results of its other
//     executions. Its other content is erased.
//   - The arguments of a call are in the message and in its executions. Such an execution keeps its result. If only an
//     execution is redacted, the message keeps the call.
//   - The answer of a child conversation may be the summary of its sub-graph or the result of its execution.
//
// A redacted node without further content to erase does not change: redacting twice changes nothing. For a node of an
// unknown kind, Redact returns an error with ErrPayload in its chain, and redacts nothing: only the newer version of Plait
// that made it knows which content must stay.
func Redact(nodes []*Node, named func(*Node) bool) (map[*Node]*Node, error) {
	// Naming a message also names its executions, which come before it: collect all names first.
	r := redaction{named: map[*Node]bool{}, replacements: map[*Node]*Node{}, erased: map[string]bool{}}
	for _, n := range nodes {
		if !named(n) {
			continue
		}
		if _, unknown := n.Payload().(Unknown); unknown {
			return nil, fmt.Errorf("%w: its kind is not known to this version: %s", ErrPayload, n)
		}
		r.name(n)
	}

	for _, n := range nodes {
		if replacement := r.node(n); replacement != n {
			r.replacements[n] = replacement
		}
	}
	return r.replacements, nil
}

// redaction is a Redact in progress.
type redaction struct {
	named        map[*Node]bool  // nodes to redact
	replacements map[*Node]*Node // by the node they replace
	erased       map[string]bool // answers in erased messages of the assistant
}

// name adds n to the nodes to redact. If n is a message with results, it also adds their executions.
func (r redaction) name(n *Node) {
	r.named[n] = true
	for _, e := range n.answeringExecutions() {
		r.named[e] = true
	}
}

// current returns the replacement of n, or n.
func (r redaction) current(n *Node) *Node {
	if replacement := r.replacements[n]; replacement != nil {
		return replacement
	}
	return n
}

// node returns the replacement of n, or n if it does not change. It is called for the nodes before n first.
func (r redaction) node(n *Node) *Node {
	parents, newParents := r.currentAll(n.parents())
	heads, newChild := r.currentAll(n.Children().shared())
	named := r.named[n]
	if !named && !newParents && !newChild {
		return n
	}

	moved := n.moved(parents, heads)
	var p Payload
	switch {
	case named:
		moved.forgetMeta()
		p = moved.blank(n, true)
	case r.repeatsErased(n, newChild):
		// An execution loses its result only if that repeats an erased answer of its child conversation.
		p = moved.blank(n, n.Kind() == ToolExecution{}.kind() && newChild && r.repeatsChild(n))
	default:
		return moved
	}

	// If nothing is erased, n is not redacted, unless it was named.
	switch unchanged := moved.hasContent(p) && moved.Meta().Len() == n.Meta().Len(); {
	case unchanged && n.Redacted() && !newParents && !newChild:
		return n
	case unchanged && (n.Redacted() || !named):
		return moved
	}

	// A node after this one may repeat the text of an answer: see repeatsChild.
	if m, ok := n.Message(); ok && m.Role == content.Assistant {
		r.erased[answer(m.Blocks)] = true
	}

	// The old checksum covers the erased content.
	moved.hashes.Store(nil)
	moved.payload = p
	moved.line.set("")
	moved.add().claimed, moved.add().erased = true, true
	return moved
}

// moved returns a copy of n with other parents and other heads of its child conversation.
func (n *Node) moved(parents, heads []*Node) *Node {
	n = n.whole()
	c := newNode()
	c.id, c.payload, c.seconds, c.nanos, c.depth = n.id, n.Payload(), n.seconds, n.nanos, n.depth
	if n.rare != nil {
		fields := *n.rare
		c.rare = &fields
	}
	c.setParents(parents)

	// The copies keep their IDs, so their saved form stays the same. The digest depends on the nodes before.
	c.line.set(n.line.get())
	c.hashes.Store(&hashes{sum: n.hash().sum})
	switch p := n.Payload().(type) {
	case ToolExecution:
		p.Child = ListOf(heads...)
		c.payload = p
	case SubGraph:
		p.Heads = ListOf(heads...)
		c.payload = p
	}
	return c
}

// forgetMeta removes the metadata of a new node.
func (n *Node) forgetMeta() {
	if n.rare != nil {
		n.rare.meta = Meta{}
	}
}

// currentAll returns the replacements of nodes, or the nodes without one, and whether there is any replacement.
func (r redaction) currentAll(nodes []*Node) ([]*Node, bool) {
	// Usually nothing was replaced, and the list can be shared.
	if !slices.ContainsFunc(nodes, func(n *Node) bool { return r.current(n) != n }) {
		return nodes, false
	}

	current := make([]*Node, len(nodes))
	for i, n := range nodes {
		current[i] = r.current(n)
	}
	return current, true
}

// repeatsErased reports whether n repeats content that was erased from a node before it or, if newChild is set, from
// its child conversation.
func (r redaction) repeatsErased(n *Node, newChild bool) bool {
	switch n.Payload().(type) {
	case ToolExecution:
		return slices.ContainsFunc(n.parents(), r.callErased) || newChild && r.repeatsChild(n)
	case SubGraph:
		return newChild && r.repeatsChild(n)
	case Message:
		return slices.ContainsFunc(n.parents(), r.resultErased) && slices.ContainsFunc(n.answeringExecutions(), r.resultErased)
	}
	return false
}

// callErased reports whether the calls of a message of the assistant were erased by this redaction.
func (r redaction) callErased(caller *Node) bool {
	m, ok := caller.Message()

	// A caller that was redacted before has no arguments left to erase.
	return ok && m.Role == content.Assistant && !caller.Redacted() && r.current(caller).Redacted()
}

// resultErased reports whether the result of an execution was erased by this redaction.
func (r redaction) resultErased(execution *Node) bool {
	before, ok := execution.Payload().(ToolExecution)
	if !ok || neutral(before.Result) {
		return false
	}
	return neutral(r.current(execution).Payload().(ToolExecution).Result)
}

// answer returns what a result repeats of an answer of a child conversation: the text or, without one, all blocks. A
// message with nothing but calls is no answer: no result has such blocks.
func answer(blocks content.Blocks) string {
	if text := blocks.Text(); text != "" {
		return text
	}
	return blocks.String()
}

// repeatsChild reports whether n repeats an erased answer of its child conversation.
func (r redaction) repeatsChild(n *Node) bool {
	switch p := n.Payload().(type) {
	case ToolExecution:
		return p.Result.Len() > 0 && r.erased[answer(p.Result)]
	case SubGraph:
		return p.Summary != "" && r.erased[p.Summary]
	}
	return false
}

// answeringExecutions returns those parents of n whose results n holds, if n is a message of the user. It finds a shared
// result by its index, and any other result by its content or its call ID. It takes time in proportion to n.
func (n *Node) answeringExecutions() (executions []*Node) {
	m, ok := n.Payload().(Message)
	if !ok || m.Role != content.User {
		return nil
	}

	// A shared result is that of no other execution, even one with the same text.
	results := m.Blocks.ToolResults()
	contents, ids := map[string]bool{}, map[string]bool{}
	for k, result := range results {
		if n.shares(k, result) {
			continue
		}
		ids[result.CallID] = true
		if result.Content.Len() > 0 {
			contents[result.Content.String()] = true
		}
	}

	var calls callIDs
	for i, p := range n.parents() {
		e, execution := p.Payload().(ToolExecution)
		if !execution {
			continue
		}

		holds := i < len(results) && n.shares(i, results[i])
		if !holds && len(ids) > 0 {
			// Two executions without a call ID are distinguished by their index.
			id := calls.of(p, e)
			holds = id != "" && ids[id] || id == "" && i < len(results) && results[i].CallID == "" ||
				e.Result.Len() > 0 && contents[e.Result.String()]
		}
		if holds {
			executions = append(executions, p)
		}
	}
	return executions
}

// shares reports whether result k of n's results is that of parent k.
func (n *Node) shares(k int, result content.ToolResult) bool {
	return k < n.NumParents() && n.parents()[k].answers(result)
}

// callIDs finds the call IDs of executions. It remembers the blocks of the last caller: the executions of a tool phase
// have the same one.
type callIDs struct {
	caller *Node
	blocks content.Blocks
}

// of returns the call ID of the execution n with payload e. An execution made by hand may have only an Index.
func (c *callIDs) of(n *Node, e ToolExecution) string {
	if e.CallID != "" || n.NumParents() != 1 {
		return e.CallID
	}

	if caller := n.Parent(0); c.caller != caller {
		m, _ := caller.Message()
		c.caller, c.blocks = caller, m.Blocks
	}
	if e.Index < 0 || e.Index >= c.blocks.Len() {
		return ""
	}
	call, _ := c.blocks.At(e.Index).(content.ToolUse)
	return call.ID
}

// isBlank reports whether n has only the content of a redacted node.
func (n *Node) isBlank() bool {
	if _, unknown := n.Payload().(Unknown); unknown {
		return false
	}
	return n.hasContent(n.blank(n, false))
}

// hasContent reports whether n has the same saved form as with payload p.
func (n *Node) hasContent(p Payload) bool {
	other := &Node{id: n.id, payload: p}
	other.setParents(n.parents())
	own := n.appendInfo(n.appendBody(nil, form{}))
	return bytes.Equal(own, other.appendInfo(other.appendBody(nil, form{})))
}

// blank returns n's payload without its content. was is n before its parents were redacted. Unless all is set, an
// execution keeps its result and a sub-graph its title.
func (n *Node) blank(was *Node, all bool) Payload {
	switch p := n.Payload().(type) {
	case System:
		return System{Name: p.Name, Text: blankText(p.Text)}
	case Tools:
		return p.blank()
	case Message:
		return n.blankMessage(was, p)

	case ToolExecution:
		p.Input, p.Ran, p.Note, p.Decided = redactedInput, Ran{}, "", Decided{}

		// The details and the full output may repeat the result, so they are erased with it.
		if all || p.Result.Len() > 0 && neutral(p.Result) {
			p.Result, p.Details, p.Full = blankBlocks(p.Result), "", content.Blocks{}
		}
		return p
	case SubGraph:
		p.Summary = blankText(p.Summary)
		if all {
			p.Title = blankText(p.Title)
		}
		return p

	case Compaction:
		return Compaction{Summary: blankBlocks(p.Summary), Replaced: p.Replaced}
	case RunStart:
		return p
	case StopReason:
		p.Detail = blankText(p.Detail)
		return p
	case Custom:
		return Custom{Name: p.Name, JSON: redactedRecord}
	}
	panic("node: a variant of Payload that blank does not know")
}

// blankMessage returns m without its content. Calls and results keep their positions. A result shared with an execution
// is taken from the execution after its redaction. All other blocks become one text, in the position of the first.
func (n *Node) blankMessage(was *Node, m Message) Message {
	blocks := make([]content.Block, 0, m.Blocks.Len())
	results, hasText := 0, false
	for _, b := range m.Blocks.All() {
		switch b := b.(type) {
		case content.ToolUse:
			blocks = append(blocks, content.ToolUse{ID: b.ID, Name: b.Name, Input: redactedInput})

		case content.ToolResult:
			result := content.ToolResult{CallID: b.CallID, IsError: b.IsError}

			// The saved form has a shared result only in the execution, so both must stay the same.
			if was.shares(results, b) {
				result.Content = n.parents()[results].Payload().(ToolExecution).Result
			} else {
				result.Content = blankBlocks(b.Content)
			}
			blocks = append(blocks, result)
			results++

		default:
			if !hasText {
				blocks = append(blocks, content.Text{Text: RedactedText})
			}
			hasText = true
		}
	}

	m.Blocks, _ = content.Of(blocks...) // no error: these blocks have fewer fields than those of a message
	m.Answer.ResponseID, m.Answer.Seen, m.Answer.Details = "", Seen{}, ""
	return m
}

// blank returns the tools without their descriptions and schemas. It leaves out a provider's own tools.
func (t Tools) blank() Tools {
	var defs []content.Tool
	for _, def := range t.Defs.shared() {
		if !def.Server() {
			defs = append(defs, content.Tool{Name: def.Name, Description: blankText(def.Description), Schema: redactedSchema})
		}
	}
	return Tools{Defs: ListOf(defs...), Withdrawn: t.Withdrawn}
}

func blankText(text string) string {
	if text == "" {
		return ""
	}
	return RedactedText
}

// blankBlocks returns blocks without their content. It makes a new list each time: other values are remembered with a
// list, so nodes must not share one.
func blankBlocks(blocks content.Blocks) content.Blocks {
	if blocks.Len() == 0 || neutral(blocks) {
		return blocks
	}
	return content.Words(RedactedText)
}

// neutral reports whether blocks have no content to erase.
func neutral(blocks content.Blocks) bool {
	return blocks.Len() == 0 || blocks.Len() == 1 && blocks.At(0) == content.Block(content.Text{Text: RedactedText})
}
