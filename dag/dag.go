package dag

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// Errors of building a conversation, beside those of packages node and content.
var (
	// ErrEmpty marks a message without content.
	ErrEmpty = errors.New("the message is empty")
	// ErrForeign marks a node that is not in the conversation.
	ErrForeign = errors.New("the node is not in this conversation")
)

// Reasons inside of errors.
var (
	errNoExchange = errors.New("no such exchange")
	errNoCalls    = errors.New("no open tool call")
	errHeads      = errors.New("a head is not a node of the conversation")
	errRefName    = errors.New("not a name for a ref")
	errPrefix     = errors.New("not a node ID, nor 4 or more hexadecimal digits from its beginning or end")
)

// buildError is the first error of a fluent chain, with the step that failed.
type buildError struct {
	// Step is the method, such as "User".
	Step string
	// Err is the reason, never nil.
	Err error
}

// Error returns the step and the reason.
func (e *buildError) Error() string {
	// A step may call other steps. Their errors have the prefix and a step of their own: do not repeat the prefix.
	inner, nested := e.Err.(*buildError)
	switch {
	case !nested:
		return "dag: " + e.Step + ": " + e.Err.Error()
	case inner.Step == e.Step:
		return inner.Error()
	}
	return "dag: " + e.Step + ": " + strings.TrimPrefix(inner.Error(), "dag: ")
}

// Unwrap returns the reason.
func (e *buildError) Unwrap() error { return e.Err }

// Tool is a tool that a conversation can declare to a model. Package executor can execute tools with a Call method. A
// content.Tool can only be declared.
//
// A Tool may have a method Err() error for an error in its definition. [DAG.Tools] returns the error.
type Tool interface {
	// Definition returns the definition for the model. It must return the same value at every call.
	Definition() content.Tool
}

// DAG is a conversation. The zero value is an empty conversation, ready to use.
type DAG struct {
	head    *node.Node // the only head; nil if there are none or several
	several *several   // several heads; shared between DAGs; nil for one or none
	env     *env       // shared between DAGs; nil for all defaults
	err     error      // the first error of the chain
}

// env holds the parts of a conversation beside its nodes. It is immutable: change copies it.
type env struct {
	src    node.Source
	tools  *tree[Tool] // the executable tools, by name
	file   *header
	refs   *refs
	erased map[node.ID]*node.Node // nodes made by Redact, for Journal.Append; never written after it is set
	later  []*later               // the parts of its nodes that are loaded later; never written after it is set
}

// New returns an empty conversation.
func New() DAG { return DAG{} }

// WithSource returns the conversation with src as the source of IDs and times for new nodes.
func (d DAG) WithSource(src node.Source) DAG {
	return d.change(func(e *env) { e.src = src })
}

// Source returns the source of IDs and times for new nodes.
func (d DAG) Source() node.Source { return d.environment().src }

func (d DAG) environment() env {
	if d.env == nil {
		return env{}
	}
	return *d.env
}

// change returns the conversation with an edited copy of its env.
func (d DAG) change(edit func(*env)) DAG {
	e := d.environment()
	edit(&e)
	d.env = &e
	return d
}

// Err returns the first error of the chain that built the conversation, which names the step, or nil. For a conversation that
// was loaded in part (see [NodeSet.Expect]), it also returns the error of loading the rest, once that was needed.
func (d DAG) Err() error {
	if d.err != nil {
		return d.err
	}
	for _, l := range d.environment().later {
		if err := l.failure(); err != nil {
			return err
		}
	}
	return nil
}

// WithoutErr returns the conversation before the failed step, without the chain's error. It returns d if there is no
// error. Use it to continue after an error was reported.
func (d DAG) WithoutErr() DAG {
	d.err = nil
	return d
}

func (d DAG) fail(step string, err error) DAG {
	d.err = &buildError{Step: step, Err: err}
	return d
}

// Heads returns the last nodes of the conversation, in order, as a new slice. They are the nodes without children,
// unless [DAG.WithHeads] has set others.
func (d DAG) Heads() []*node.Node { return slices.Clone(d.heads()) }

// Head returns the only head, or nil if there is none or more than one.
func (d DAG) Head() *node.Node { return d.head }

// WithHeads returns the conversation with the given heads, in this order. It shares all nodes. Nil and repeated heads
// are dropped.
func (d DAG) WithHeads(heads ...*node.Node) DAG { return d.atAll(node.Distinct(heads)) }

// Join returns a conversation with the heads of d and of all others, in order. The next appended node has all of them
// as parents: it merges them. Tools and refs of the others are added if d has none with the same name. Heads with the
// same ID are one node. If their content differs, the chain's error is ErrDuplicateID.
func (d DAG) Join(others ...DAG) DAG {
	heads := d.Heads()
	known := make(map[node.ID]*node.Node, len(heads))
	var same sameness

	// The heads of d have distinct IDs: this only records them.
	same.conflict(known, heads)
	for _, o := range others {
		if d.err == nil {
			d.err = o.err
		}

		// Only heads are compared here. Write and Validate find two different nodes with one ID among the others.
		if clash := same.conflict(known, o.heads()); clash != nil && d.err == nil {
			return d.fail("Join", fmt.Errorf("%w: %s", ErrDuplicateID, clash.ID()))
		}
		heads = append(heads, o.heads()...)
		d = d.takeTools(o).takeRefs(o).takeErased(o).takeLater(o)
	}

	// WithHeads drops a head that several conversations have.
	return d.WithHeads(heads...)
}

// takeTools returns d with the executable tools of o, except those with the name of a tool of d.
func (d DAG) takeTools(o DAG) DAG {
	o.environment().tools.beyond(d.environment().tools, func(name string, t Tool) {
		d = d.change(func(e *env) { e.tools = e.tools.with(name, t) })
	})
	return d
}

// takeErased returns d with the erased nodes of o added to its own.
func (d DAG) takeErased(o DAG) DAG {
	more := o.environment().erased
	if len(more) == 0 {
		return d
	}
	return d.change(func(e *env) {
		// Both maps are shared with other conversations. An entry of d counts more than one of o.
		all := maps.Clone(more)
		maps.Copy(all, e.erased)
		e.erased = all
	})
}

// conflict adds nodes to known. It stops at a node with the ID of a known node and different content, and returns it;
// nil for none.
func (s *sameness) conflict(known map[node.ID]*node.Node, nodes []*node.Node) *node.Node {
	for _, n := range nodes {
		if old := known[n.ID()]; old != nil && !s.of(old, n) {
			return n
		}
		known[n.ID()] = n
	}
	return nil
}

// Append adds a node with payload p. Its parents are all heads, in order; it becomes the only head. With several heads
// it is a merge.
func (d DAG) Append(p node.Payload) DAG { return d.step("Append", p) }

// AppendMeta is Append with metadata for the node.
func (d DAG) AppendMeta(p node.Payload, meta node.Meta) DAG {
	return d.stepMeta("AppendMeta", p, meta)
}

func (d DAG) step(step string, p node.Payload) DAG { return d.stepMeta(step, p, node.Meta{}) }

func (d DAG) stepMeta(step string, p node.Payload, meta node.Meta) DAG {
	if d.err != nil {
		return d
	}
	n, err := node.New(d.Source(), p, meta, d.heads()...)
	if err != nil {
		return d.fail(step, err)
	}
	return d.at(n)
}

// AppendTo adds a node with payload p and the given parents, which may be any nodes of the conversation. It returns the
// new conversation and the node. The node replaces those parents that are heads; the other heads stay. Use it to build
// a fan-out by hand.
//
// Errors: ErrForeign for a parent that is not in the conversation, and for no parents unless the conversation is empty;
// those of node.New; and the chain's own.
func (d DAG) AppendTo(parents []*node.Node, p node.Payload) (DAG, *node.Node, error) {
	if d.err != nil {
		return d, nil, d.err
	}

	// These errors are returned and not kept in the chain: the caller can continue with d.
	if len(parents) == 0 && len(d.heads()) > 0 {
		return d, nil, &buildError{Step: "AppendTo", Err: fmt.Errorf("%w: no parent is given", ErrForeign)}
	}
	if foreign, found := d.foreign(parents); found {
		return d, nil, &buildError{Step: "AppendTo", Err: fmt.Errorf("%w: %v", ErrForeign, foreign)}
	}

	n, err := node.New(d.Source(), p, node.Meta{}, parents...)
	if err != nil {
		return d, nil, &buildError{Step: "AppendTo", Err: err}
	}
	return d.atAll(replaceHeads(d.heads(), n)), n, nil
}

// replaceHeads returns a copy of heads with n in place of the first of its parents. The other parents are removed. If
// no parent is a head, n is added at the end.
func replaceHeads(heads []*node.Node, n *node.Node) []*node.Node {
	parents := make(map[node.ID]bool, n.NumParents())
	for i := range n.NumParents() {
		parents[n.Parent(i).ID()] = true
	}
	isParent := func(h *node.Node) bool { return parents[h.ID()] }

	// The usual case is a single parent among possibly many heads. A map costs ten times a comparison.
	if n.NumParents() == 1 {
		parent := n.Parent(0).ID()
		isParent = func(h *node.Node) bool { return h.ID() == parent }
	}

	first := slices.IndexFunc(heads, isParent)
	if first < 0 {
		return slices.Concat(heads, []*node.Node{n})
	}
	out := slices.Clone(heads)
	out[first] = n

	// A single parent cannot occur again: do not search the other heads.
	if n.NumParents() > 1 {
		rest := slices.DeleteFunc(out[first+1:], isParent)
		out = out[:first+1+len(rest)]
	}
	return out
}

// System adds a system prompt. All system prompts are sent, in order. [DAG.SetSystem] adds one that can be replaced.
func (d DAG) System(text string) DAG { return d.step("System", node.System{Text: text}) }

// SetSystem sets the system prompt with that name. It replaces an earlier prompt of the same name in its position among
// the prompts; an empty text removes it. The earlier prompt stays in the graph. Nothing is added if the text is the
// same. With an empty name SetSystem is [DAG.System].
func (d DAG) SetSystem(name, text string) DAG {
	if d.err != nil {
		return d
	}

	// Compare in the form that a node stores, or a text with invalid UTF-8 would add a node each time.
	name, text = safetext.UTF8(name), safetext.UTF8(text)
	if name != "" && d.SystemPrompt(name) == text {
		return d
	}
	return d.step("SetSystem", node.System{Name: name, Text: text})
}

// SystemPrompt returns the current system prompt with that name (see [DAG.SetSystem]), or "" if there is none.
func (d DAG) SystemPrompt(name string) string {
	p, m := d.lineage()

	p.mu.Lock()
	defer p.mu.Unlock()

	// The lineage may be longer than this conversation: a prompt beyond the mark belongs to a later node.
	if at, has := p.prompts[name]; has && at >= 0 && at < m.system {
		return p.t.System[at]
	}
	return ""
}

// User adds a message of the user: the text, if it is not empty, and the blocks. The chain's error is ErrEmpty if there
// is neither. After open tool calls, a message ends their phase without executing them: see [DAG.OpenCalls].
func (d DAG) User(text string, blocks ...content.Block) DAG {
	return d.message("User", content.User, text, blocks)
}

// Assistant adds a message of the assistant. It is otherwise like User.
func (d DAG) Assistant(text string, blocks ...content.Block) DAG {
	return d.message("Assistant", content.Assistant, text, blocks)
}

// ToolResults adds a message with tool results, for programs that execute tools by hand. [DAG.CloseTools] adds a node
// for each execution as well.
func (d DAG) ToolResults(results ...content.ToolResult) DAG {
	blocks := make([]content.Block, len(results))
	for i, r := range results {
		blocks[i] = r
	}
	return d.message("ToolResults", content.User, "", blocks)
}

func (d DAG) message(step string, role content.Role, text string, blocks []content.Block) DAG {
	if d.err != nil {
		return d
	}

	if text != "" {
		blocks = append([]content.Block{content.Text{Text: text}}, blocks...)
	}
	checked, err := content.Of(blocks...)
	if err == nil && checked.Len() == 0 {
		err = ErrEmpty
	}
	if err != nil {
		return d.fail(step, err)
	}
	return d.step(step, node.Message{Role: role, Blocks: checked})
}

// SubGraph adds a node with another conversation. The nodes of child are saved and drawn with d, and never sent.
func (d DAG) SubGraph(title string, child DAG) DAG {
	if d.err == nil && child.err != nil {
		return d.fail("SubGraph", child.err)
	}
	return d.step("SubGraph", node.SubGraph{Title: title, Heads: node.ListOf(child.heads()...), Summary: child.Text()})
}

// FromNode returns the child conversation of n: the conversation of a sub-agent, or a sub-graph. It is empty if n is
// nil or has none.
func FromNode(n *node.Node) DAG {
	if n == nil {
		return New()
	}
	return New().WithHeads(n.Children().Slice()...)
}

// Custom adds a record of the program. It needs a name, and value is encoded as JSON. A record is never sent.
func (d DAG) Custom(name string, value any) DAG {
	j, err := content.ToJSON(value)
	if err != nil && d.err == nil {
		return d.fail("Custom", err)
	}
	return d.step("Custom", node.Custom{Name: name, JSON: j})
}

// Stop adds a node with the stop reason of a run.
func (d DAG) Stop(reason content.Stop) DAG { return d.step("Stop", node.StopReason{Reason: reason}) }

// Tools declares tools to the model, and keeps them with the conversation for execution. A tool replaces an earlier
// tool of the same name. [DAG.WithdrawTools] is the opposite.
//
// A definition becomes a node only if the conversation does not declare it yet. To give a loaded conversation its tools
// again, call Tools with them.
//
// Errors of the chain: content.ErrTool for an invalid definition, and the error of a tool's own Err method.
func (d DAG) Tools(tools ...Tool) DAG {
	if d.err != nil {
		return d
	}

	// Bind every tool, but declare only definitions that the conversation does not have yet.
	lineage, upTo := d.lineage()
	bound := d.environment().tools
	var fresh []content.Tool
	index := map[string]int{} // in fresh, by name
	for i, t := range tools {
		if t == nil || isNilPointer(t) {
			return d.fail("Tools", fmt.Errorf("%w: tool %d is nil", content.ErrTool, i))
		}
		if broken, ok := t.(interface{ Err() error }); ok && broken.Err() != nil {
			return d.fail("Tools", broken.Err())
		}

		def := t.Definition()
		bound = bound.with(def.Name, t)

		// A name may be passed twice. The later definition counts, in its own position.
		if at, again := index[def.Name]; again {
			if fresh[at] == def {
				continue
			}
			fresh[at].Name = "" // removed below
		} else if old, has := lineage.declared(upTo, def.Name); has && old == def {
			continue
		}
		index[def.Name] = len(fresh)
		fresh = append(fresh, def)
	}

	fresh = slices.DeleteFunc(fresh, func(def content.Tool) bool { _, has := index[def.Name]; return !has })
	d = d.change(func(e *env) { e.tools = bound })
	if len(fresh) == 0 {
		return d
	}
	for _, def := range fresh {
		def.Extra.API = safetext.UTF8(def.Extra.API) // as the node does
		if err := def.Check(); err != nil {
			return d.fail("Tools", err)
		}
	}
	return d.step("Tools", node.Tools{Defs: node.ListOf(fresh...)})
}

// isNilPointer reports whether t holds a nil pointer. Its methods would most likely panic.
func isNilPointer(t Tool) bool {
	v := reflect.ValueOf(t)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// WithdrawTools withdraws the tools with these names: they are no longer sent to the model or kept with the
// conversation. Earlier calls stay. Undeclared names are ignored. [DAG.Tools] declares a tool again.
func (d DAG) WithdrawTools(names ...string) DAG {
	if d.err != nil || len(names) == 0 {
		return d
	}

	// Keep each declared name once: node.New refuses a name that is given twice.
	lineage, upTo := d.lineage()
	seen := map[string]bool{}
	var withdrawn []string
	for _, name := range names {
		if _, has := lineage.declared(upTo, name); has && !seen[name] {
			withdrawn = append(withdrawn, name)
			seen[name] = true
		}
	}

	if len(withdrawn) == 0 {
		return d
	}

	d = d.step("WithdrawTools", node.Tools{Withdrawn: node.ListOf(withdrawn...)})
	return d.unbind(withdrawn)
}

// unbind returns the conversation without the executable tools of these names.
func (d DAG) unbind(names []string) DAG {
	return d.change(func(e *env) {
		for _, name := range names {
			e.tools = e.tools.without(name)
		}
	})
}

// Tool returns the executable tool of that name. A loaded conversation has none until [DAG.Tools] adds some.
func (d DAG) Tool(name string) (Tool, bool) {
	if t := d.environment().tools.get(name); t != nil {
		return t.value, true
	}
	return nil, false
}

// Back returns the conversation before its last n exchanges. An exchange begins with a message of the user, other than
// tool results alone, and ends before the next such message. Back(1).User(…) therefore asks the last question again.
// Back(0) returns d. Fewer than n exchanges are an error of the chain.
//
// With several heads, exchanges are counted in the order of [DAG.Nodes]. A branch without a removed node keeps its
// head.
func (d DAG) Back(n int) DAG {
	if d.err != nil || n <= 0 {
		return d
	}

	// Remove nodes from the end up to the message that begins the n-th exchange from the end.
	var removed []*node.Node
	left := n
	for last := range d.backward {
		removed = append(removed, last)
		if beginsExchange(last) {
			if left--; left == 0 {
				return d.without(removed)
			}
		}
	}
	return d.fail("Back", fmt.Errorf("%w: %d back, but the conversation has %d", errNoExchange, n, n-left))
}

// without returns the conversation without its last nodes, given from the last to the first in the order of Nodes.
func (d DAG) without(last []*node.Node) DAG {
	// The new heads are among the remaining heads and the parents of removed nodes.
	removed := make(map[node.ID]bool, len(last))
	heads := d.Heads()
	for _, n := range slices.Backward(last) {
		removed[n.ID()] = true
		heads = append(heads, n.Parents()...)
	}

	heads = slices.DeleteFunc(node.Distinct(heads), func(n *node.Node) bool { return removed[n.ID()] })

	// A parent of a removed node may be an ancestor of another head: outerHeads drops it.
	return d.WithHeads(heads...).outerHeads()
}

// beginsExchange reports whether n is a message of the user with anything else than tool results.
func beginsExchange(n *node.Node) bool {
	m, ok := n.Message()
	if !ok || m.Role != content.User {
		return false
	}
	for _, b := range m.Blocks.All() {
		if _, result := b.(content.ToolResult); !result {
			return true
		}
	}
	return false
}

// At returns the conversation whose only head is the node with that ID. The chain's error is ErrForeign if there is no
// such node.
func (d DAG) At(id node.ID) DAG {
	if d.err != nil {
		return d
	}
	n := d.Node(id)
	if n == nil {
		return d.fail("At", fmt.Errorf("%w: %s", ErrForeign, id))
	}
	return d.WithHeads(n)
}

// Text returns the last answer: the texts of the assistant's last message with text, joined by line breaks.
func (d DAG) Text() string {
	for n := range d.backward {
		if m, ok := n.Message(); ok && m.Role == content.Assistant {
			if text := m.Blocks.Text(); text != "" {
				return text
			}
		}
	}
	return ""
}

// Equal reports whether both conversations have the same content: heads with the same digests, in the same order. IDs,
// times, metadata and usage do not count. A redacted node equals only itself.
func Equal(a, b DAG) bool {
	return slices.EqualFunc(a.heads(), b.heads(), func(x, y *node.Node) bool { return x == y || x.Digest() == y.Digest() })
}
