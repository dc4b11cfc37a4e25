package node

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/plait-dev/plait/content"
)

// RedactedText stands where a text was that [Redact] erased.
const RedactedText = "[redacted]"

// What stands where JSON was that Redact erased.
const (
	redactedInput  content.JSON = "{}"
	redactedSchema content.JSON = `{"type":"object"}`
	redactedRecord content.JSON = "null"
)

var (
	// ErrRedaction is in the chain of an error about a node that says it is redacted, and says more than such a node can.
	ErrRedaction = errors.New("it says that it is redacted, and is not")
	// ErrUnknownKind is in the chain of an error about a node that cannot be redacted, because a newer version of Plait made it
	// and only that one knows what has to stay of it.
	ErrUnknownKind = errors.New("a kind that this version does not know")
)

// Redacted reports whether content of the node was erased by [Redact]. Its digest is then that of what it said before, and covers
// nothing of what it says now. A node that was read is redacted when its line says so and it says no more than such a node can:
// labels, neutral texts, and results of its executions.
func (n *Node) Redacted() bool { return n.erased }

// Redact erases what those of the nodes say that named picks. It returns the nodes that take the place of others: the redacted
// ones, and, because a node points to its parents, all that come after them, which say what they said and are not hashed again.
// nodes must be whole and in order: each node after its parents and after the conversation that hangs on it. Nodes themselves do
// not change.
//
// A redacted node keeps its id, its parents, its time, its digest, and labels, so that everything around it stays valid:
//
//   - the role of a message, and of its calls the places, ids and names, of its results the places, call ids and error flags; of
//     its answer all but the response id and what the model had seen;
//   - the call of an execution, by id, place and tool, its times and its usage;
//   - the names of tools that are declared (but for a provider's own, which are gone) and withdrawn, the names of a system prompt and
//     of a custom record, the ids that a compaction replaces, the reason and the totals of a run;
//   - the conversation that hangs on it, whose nodes are named for themselves.
//
// All else goes, metadata too. Texts become RedactedText, arguments {}, records null.
//
// Some things stand twice in a conversation; they go from both places, and both nodes are redacted:
//
//   - a result, in its execution and in the messages after it. Such a message keeps the results that its other executions hold.
//     What else it says goes, because its digest does not cover it any more;
//   - the arguments of a call, in the message and in its executions. An execution keeps its result then. It does not go the other
//     way: a message keeps the calls of executions that are redacted;
//   - the answer of a child conversation, where its sub-graph has it as its summary, or its execution as its result.
//
// A redacted node that says nothing more that could be erased stays as it is, so that redacting twice changes nothing. A node of
// a kind that this version does not know is an error with ErrUnknownKind in its chain, and nothing is redacted.
func Redact(nodes []*Node, named func(*Node) bool) (map[*Node]*Node, error) {
	r := redaction{named: map[*Node]bool{}, now: map[*Node]*Node{}, gone: map[string]bool{}}
	for _, n := range nodes {
		if !named(n) {
			continue
		}
		if _, unknown := n.payload.(Unknown); unknown {
			return nil, fmt.Errorf("%w: %s", ErrUnknownKind, n)
		}
		r.name(n)
	}
	for _, n := range nodes {
		if now := r.node(n); now != n {
			r.now[n] = now
		}
	}
	return r.now, nil
}

// redaction is a Redact on its way through the nodes.
type redaction struct {
	named map[*Node]bool
	now   map[*Node]*Node // what takes the place of a node
	gone  map[string]bool // what was said in messages of the assistant that are erased
}

// name marks n, and where it is a message the executions whose results it says.
func (r redaction) name(n *Node) {
	r.named[n] = true
	for i, p := range n.parents {
		if n.tells(i) {
			r.named[p] = true
		}
	}
}

// place is the node that stands where n did.
func (r redaction) place(n *Node) *Node {
	if now := r.now[n]; now != nil {
		return now
	}
	return n
}

// node returns what takes the place of n; n itself where nothing does. What is before n was done.
func (r redaction) node(n *Node) *Node {
	parents, changed := r.places(n.parents)
	heads, hung := r.places(n.Children().Slice())
	named := r.named[n]
	if !named && !changed && !hung {
		return n
	}
	moved := n.moved(parents, heads)
	var p Payload
	switch {
	case named:
		moved.meta, p = Meta{}, moved.blank(n, true)
	case r.loses(n, hung):
		p = moved.blank(n, n.Kind() == ToolExecution{}.Kind() && hung && r.repeats(n))
	default:
		return moved
	}
	switch nothing := moved.says(p) && moved.meta.Len() == n.meta.Len(); {
	case nothing && n.erased && !changed && !hung:
		return n
	case nothing && (n.erased || !named):
		return moved
	}
	if m, ok := n.Message(); ok && m.Role == content.Assistant {
		r.gone[m.Blocks.Text()] = true
	}
	d := n.Digest()
	moved.digest.Store(&d)
	moved.payload, moved.saved, moved.claimed, moved.erased = p, "", true, true
	return moved
}

// moved returns a copy of n after other parents, with other heads of the conversation that hangs on it.
func (n *Node) moved(parents, heads []*Node) *Node {
	c := &Node{id: n.id, parents: parents, payload: n.payload, time: n.time, meta: n.meta, depth: n.depth, saved: n.saved,
		claimed: n.claimed, erased: n.erased}
	c.digest.Store(n.digest.Load())
	switch p := n.payload.(type) {
	case ToolExecution:
		p.Child = ListOf(heads...)
		c.payload = p
	case SubGraph:
		p.Heads = ListOf(heads...)
		c.payload = p
	}
	return c
}

// places returns what takes the places of nodes, and whether it is others.
func (r redaction) places(nodes []*Node) ([]*Node, bool) {
	var now []*Node
	for i, n := range nodes {
		if at := r.place(n); at != n {
			if now == nil {
				now = append(make([]*Node, 0, len(nodes)), nodes[:i]...)
			}
			now = append(now, at)
		} else if now != nil {
			now = append(now, n)
		}
	}
	if now == nil {
		return nodes, false
	}
	return now, true
}

// loses reports whether n says again what is gone from a node before it, or from the conversation that hangs on it.
func (r redaction) loses(n *Node, hung bool) bool {
	switch n.payload.(type) {
	case ToolExecution:
		return slices.ContainsFunc(n.parents, r.callGone) || hung && r.repeats(n)
	case SubGraph:
		return hung && r.repeats(n)
	case Message:
		for i, parent := range n.parents {
			if r.resultGone(parent) && n.tells(i) {
				return true
			}
		}
	}
	return false
}

func (r redaction) callGone(said *Node) bool {
	m, ok := said.Message()
	return ok && m.Role == content.Assistant && !said.erased && r.place(said).erased
}

func (r redaction) resultGone(execution *Node) bool {
	was, ok := execution.payload.(ToolExecution)
	if !ok || neutral(was.Result) {
		return false
	}
	return neutral(r.place(execution).payload.(ToolExecution).Result)
}

// repeats reports whether n, whose child conversation has lost something, says that itself.
func (r redaction) repeats(n *Node) bool {
	switch p := n.payload.(type) {
	case ToolExecution:
		return p.Result.Len() > 0 && r.gone[p.Result.Text()]
	case SubGraph:
		return p.Summary != "" && r.gone[p.Summary]
	}
	return false
}

// tells reports whether n is a message that says the result of its parent i, an execution. A result that an execution shares is
// told by its place; of others it counts whether they say the same or answer the same call.
func (n *Node) tells(i int) bool {
	m, ok := n.payload.(Message)
	e, execution := n.parents[i].payload.(ToolExecution)
	if !ok || !execution || m.Role != content.User {
		return false
	}
	id := n.parents[i].calls()
	for k, result := range m.Blocks.ToolResults() {
		switch {
		case n.shares(k, result):
			if k == i {
				return true
			}
		case result.Content.Len() > 0 && result.Content.Equal(e.Result), result.CallID == id && (id != "" || k == i):
			return true
		}
	}
	return false
}

// shares reports whether the result at place k of n's results is the one of its parent there.
func (n *Node) shares(k int, result content.ToolResult) bool {
	return k < len(n.parents) && n.parents[k].answers(result)
}

// calls returns the id of the call that the execution n carries out. One that was made by hand may name it by its place alone.
func (n *Node) calls() string {
	e := n.payload.(ToolExecution)
	if e.CallID != "" || len(n.parents) != 1 {
		return e.CallID
	}
	m, _ := n.parents[0].Message()
	if calls := m.Blocks.ToolUses(); e.Index >= 0 && e.Index < len(calls) {
		return calls[e.Index].ID
	}
	return ""
}

// saysNothing reports whether n says no more than a node that is redacted can.
func (n *Node) saysNothing() bool {
	if _, unknown := n.payload.(Unknown); unknown {
		return false
	}
	return n.says(n.blank(n, false))
}

// says reports whether n's saved form is the same with p.
func (n *Node) says(p Payload) bool {
	other := &Node{id: n.id, parents: n.parents, payload: p}
	own := n.appendInfo(n.appendBody(nil, form{}))
	return bytes.Equal(own, other.appendInfo(other.appendBody(nil, form{})))
}

// blank returns n's payload without its content. was is n as it stood before its parents were redacted. Where not all of it has
// to go, an execution keeps its result, and a sub-graph its title.
func (n *Node) blank(was *Node, all bool) Payload {
	switch p := n.payload.(type) {
	case System:
		return System{Name: p.Name, Text: blankText(p.Text)}
	case Tools:
		return p.blank()
	case Message:
		return n.blankMessage(was, p)
	case ToolExecution:
		p.Input, p.Ran = redactedInput, Ran{}
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
	case StopReason:
		p.Detail = blankText(p.Detail)
		return p
	case Custom:
		return Custom{Name: p.Name, JSON: redactedRecord}
	}
	panic("node: a variant of Payload that blank does not know")
}

// blankMessage keeps calls and results in their places. What stood beside them is one text, where the first of it was. A result
// that an execution holds is what it holds now.
func (n *Node) blankMessage(was *Node, m Message) Message {
	blocks := make([]content.Block, 0, m.Blocks.Len())
	results, worded := 0, false
	for _, b := range m.Blocks.All() {
		switch b := b.(type) {
		case content.ToolUse:
			blocks = append(blocks, content.ToolUse{ID: b.ID, Name: b.Name, Input: redactedInput})
		case content.ToolResult:
			left := content.ToolResult{CallID: b.CallID, IsError: b.IsError}
			if was.shares(results, b) {
				left.Content = n.parents[results].payload.(ToolExecution).Result
			} else {
				left.Content = blankBlocks(b.Content)
			}
			blocks = append(blocks, left)
			results++
		default:
			if !worded {
				blocks = append(blocks, content.Text{Text: RedactedText})
			}
			worded = true
		}
	}
	m.Blocks, _ = content.Of(blocks...) // nothing is in them that was not accepted before
	m.Answer.ResponseID, m.Answer.Seen = "", Digest{}
	return m
}

func (t Tools) blank() Tools {
	var defs []content.Tool
	for _, def := range t.Defs.Slice() {
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

// blankBlocks makes a list of its own, so that nothing is remembered with it for several conversations. Nothing stays nothing.
func blankBlocks(blocks content.Blocks) content.Blocks {
	if blocks.Len() == 0 || neutral(blocks) {
		return blocks
	}
	return content.Words(RedactedText)
}

// neutral reports whether blocks say nothing that could be erased.
func neutral(blocks content.Blocks) bool {
	return blocks.Len() == 0 || blocks.Len() == 1 && blocks.At(0) == content.Block(content.Text{Text: RedactedText})
}
