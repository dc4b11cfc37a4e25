package dag

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
)

// Errors that building returns, beside those of packages node and content.
var (
	// ErrEmpty marks a message that says nothing.
	ErrEmpty = errors.New("nothing is said")
	// ErrForeign marks a node that is not a part of the conversation.
	ErrForeign = errors.New("the node is not in this conversation")
	// ErrNoTurn marks a rewind past the first turn.
	ErrNoTurn = errors.New("no such turn")
	// ErrNoCalls marks an attempt to add to a tool phase, or to close it, where no tool call is open.
	ErrNoCalls = errors.New("no tool call is open")
)

// BuildError is the first error of a fluent chain, with the step that failed.
type BuildError struct {
	// Step is the method, such as "User".
	Step string
	Err  error
}

// Error names the step and says why it failed.
func (e *BuildError) Error() string { return "dag: " + e.Step + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *BuildError) Unwrap() error { return e.Err }

// Tool is what a conversation can declare to a model. Package executor calls those that have a Call method as well; a
// content.Tool is a Tool that is declared only.
//
// A Tool whose definition could not be made may have a method Err() error; [DAG.Tools] returns what it returns.
type Tool interface {
	// Definition returns what the model is told. It returns the same at every call.
	Definition() content.Tool
}

// DAG is a conversation. The zero value is an empty one, ready to use.
type DAG struct {
	heads []*node.Node // never written after it is set
	env   *env         // nil: all defaults
	err   error
}

// env is what travels with a conversation beside its nodes. It is copied to be changed.
type env struct {
	src    node.Source
	tools  *tree[Tool] // executables
	file   *header
	refs   *refs
	erased map[node.ID]*node.Node // what Redact has made, for journals; never written after it is set
}

// New returns an empty conversation.
func New() DAG { return DAG{} }

// WithSource returns the conversation with src giving ids and times to the nodes that are appended from here on.
func (d DAG) WithSource(src node.Source) DAG {
	return d.change(func(e *env) { e.src = src })
}

// Source returns where new nodes get their ids and times.
func (d DAG) Source() node.Source { return d.environment().src }

func (d DAG) environment() env {
	if d.env == nil {
		return env{}
	}
	return *d.env
}

func (d DAG) change(edit func(*env)) DAG {
	e := d.environment()
	edit(&e)
	d.env = &e
	return d
}

// Err returns the first error of the chain that built the conversation, a *BuildError, or nil.
func (d DAG) Err() error { return d.err }

// WithoutErr returns the conversation as it was before the step that failed, without the chain's error. A conversation without an
// error is returned as it is. A program that goes on after it has reported the error needs this, or keeps the earlier value.
func (d DAG) WithoutErr() DAG {
	d.err = nil
	return d
}

func (d DAG) fail(step string, err error) DAG {
	d.err = &BuildError{Step: step, Err: err}
	return d
}

// Heads returns the nodes that the conversation ends in, in order, as a new slice: those that nothing follows, unless
// [DAG.WithHeads] has set others.
func (d DAG) Heads() []*node.Node { return slices.Clone(d.heads) }

// Head returns the single head, or nil when there is none or more than one.
func (d DAG) Head() *node.Node {
	if len(d.heads) != 1 {
		return nil
	}
	return d.heads[0]
}

// WithHeads returns the conversation that ends in heads, in this order. It shares all nodes. Nil and repeated heads are left
// out.
func (d DAG) WithHeads(heads ...*node.Node) DAG {
	d.heads = node.Distinct(heads)
	return d
}

// Join returns a conversation with the heads of d and of all others, in order. What is appended next has all of them as its
// parents: it merges them. Tools and refs that travel with the others come along where d has none of the same name. Two heads with
// one id are one node; where they do not say the same, the chain's error is ErrDuplicateID.
func (d DAG) Join(others ...DAG) DAG {
	heads := d.Heads()
	known := make(map[node.ID]*node.Node, len(heads))
	conflict(known, heads)
	for _, o := range others {
		if d.err == nil {
			d.err = o.err
		}
		if clash := conflict(known, o.heads); clash != nil && d.err == nil {
			return d.fail("Join", fmt.Errorf("%w: %s", ErrDuplicateID, clash.ID()))
		}
		heads = append(heads, o.heads...)
		d = d.takeTools(o).takeRefs(o)
	}
	return d.WithHeads(heads...)
}

// takeTools returns d with the executables of o whose names are free.
func (d DAG) takeTools(o DAG) DAG {
	o.environment().tools.beyond(d.environment().tools, func(name string, t Tool) {
		d = d.change(func(e *env) { e.tools = e.tools.with(name, t) })
	})
	return d
}

// conflict returns a node that has the id of a known one and says something else, or nil. It adds the nodes to those that are known.
func conflict(known map[node.ID]*node.Node, nodes []*node.Node) *node.Node {
	for _, n := range nodes {
		if old := known[n.ID()]; old != nil && old != n && old.Digest() != n.Digest() {
			return n
		}
		known[n.ID()] = n
	}
	return nil
}

// Append adds a node that says p after all heads, in their order, and makes it the only head. With several heads it is a merge.
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
	n, err := node.New(d.Source(), p, meta, d.heads...)
	if err != nil {
		return d.fail(step, err)
	}
	d.heads = []*node.Node{n}
	return d
}

// AppendTo adds a node that says p after the given parents, which may be any nodes of the conversation, and returns the new
// conversation and the node. The node takes the place of those parents that were heads; heads that are not among the parents
// stay. It is how a fan-out is built by hand. Errors: ErrForeign for a parent that is not in the conversation (a conversation
// without nodes takes no parents), those of node.New, and the chain's own.
func (d DAG) AppendTo(parents []*node.Node, p node.Payload) (DAG, *node.Node, error) {
	if d.err != nil {
		return d, nil, d.err
	}
	if len(parents) == 0 && len(d.heads) > 0 {
		return d, nil, &BuildError{Step: "AppendTo", Err: fmt.Errorf("%w: no parent is given", ErrForeign)}
	}
	if foreign, found := d.foreign(parents); found {
		return d, nil, &BuildError{Step: "AppendTo", Err: fmt.Errorf("%w: %v", ErrForeign, foreign)}
	}
	n, err := node.New(d.Source(), p, node.Meta{}, parents...)
	if err != nil {
		return d, nil, &BuildError{Step: "AppendTo", Err: err}
	}
	d.heads = replaceHeads(d.heads, n)
	return d, n, nil
}

// replaceHeads puts n where the first of its parents stood among heads, or at the end, and takes the others out.
func replaceHeads(heads []*node.Node, n *node.Node) []*node.Node {
	isParent := func(h *node.Node) bool { return h.ID() == n.Parent(0).ID() }
	switch {
	case n.NumParents() == 0:
		return slices.Concat(heads, []*node.Node{n})
	case n.NumParents() > 1:
		ids := make(map[node.ID]bool, n.NumParents())
		for i := range n.NumParents() {
			ids[n.Parent(i).ID()] = true
		}
		isParent = func(h *node.Node) bool { return ids[h.ID()] }
	}

	// Copied as a whole: heads may be many, and one of them changes.
	first := slices.IndexFunc(heads, isParent)
	if first < 0 {
		return slices.Concat(heads, []*node.Node{n})
	}
	out := slices.Clone(heads)
	out[first] = n
	if n.NumParents() > 1 {
		rest := slices.DeleteFunc(out[first+1:], isParent)
		out = out[:first+1+len(rest)]
	}
	return out
}

// System adds a system prompt. Several are all sent, in order. [DAG.SetSystem] adds one that can be replaced.
func (d DAG) System(text string) DAG { return d.step("System", node.System{Text: text}) }

// SetSystem sets the system prompt with that name from here on. It replaces the one that was set with the same name before, in its place
// among the prompts; an empty text removes it. The earlier prompt stays in the graph, and nothing is added where the text is the same.
// With an empty name SetSystem is [DAG.System].
func (d DAG) SetSystem(name, text string) DAG {
	if d.err != nil {
		return d
	}
	name, text = content.Clean(name), content.Clean(text)
	if name != "" && d.SystemPrompt(name) == text {
		return d
	}
	return d.step("SetSystem", node.System{Name: name, Text: text})
}

// SystemPrompt returns the system prompt with that name, as [DAG.SetSystem] set it last; "" where there is none.
func (d DAG) SystemPrompt(name string) string {
	p, m := d.lineage()
	p.mu.Lock()
	defer p.mu.Unlock()
	if at, has := p.prompts[name]; has && at >= 0 && at < m.system {
		return p.t.System[at]
	}
	return ""
}

// User adds a message of the user: the text, if it is not empty, and the blocks. A message that says nothing is ErrEmpty.
func (d DAG) User(text string, blocks ...content.Block) DAG {
	return d.say("User", content.User, text, blocks)
}

// Assistant adds a message of the assistant, as User does for the user.
func (d DAG) Assistant(text string, blocks ...content.Block) DAG {
	return d.say("Assistant", content.Assistant, text, blocks)
}

// ToolResults adds a message with results, for programs that run tools by hand. [DAG.CloseTools] does it with one node for
// each execution.
func (d DAG) ToolResults(results ...content.ToolResult) DAG {
	blocks := make([]content.Block, len(results))
	for i, r := range results {
		blocks[i] = r
	}
	return d.say("ToolResults", content.User, "", blocks)
}

func (d DAG) say(step string, role content.Role, text string, blocks []content.Block) DAG {
	if d.err != nil {
		return d
	}
	if text != "" {
		blocks = append([]content.Block{content.Text{Text: text}}, blocks...)
	}
	said, err := content.Of(blocks...)
	if err == nil && said.Len() == 0 {
		err = ErrEmpty
	}
	if err != nil {
		return d.fail(step, err)
	}
	return d.step(step, node.Message{Role: role, Blocks: said})
}

// SubGraph hangs another conversation on this one, for the picture: its nodes are saved and drawn with d, and never sent.
func (d DAG) SubGraph(title string, child DAG) DAG {
	if d.err == nil && child.err != nil {
		return d.fail("SubGraph", child.err)
	}
	return d.step("SubGraph", node.SubGraph{Title: title, Heads: node.ListOf(child.heads...), Summary: child.Text()})
}

// FromNode returns the conversation that belongs to n: that of a sub-agent's execution or a sub-graph. It is empty if n has none or
// is nil.
func FromNode(n *node.Node) DAG {
	if n == nil {
		return New()
	}
	return New().WithHeads(n.Children().Slice()...)
}

// Custom adds a record of the program's own. value is encoded as JSON.
func (d DAG) Custom(name string, value any) DAG {
	j, err := content.ToJSON(value)
	if err != nil && d.err == nil {
		return d.fail("Custom", err)
	}
	return d.step("Custom", node.Custom{Name: name, JSON: j})
}

// Stop ends a run.
func (d DAG) Stop(reason content.Stop) DAG { return d.step("Stop", node.StopReason{Reason: reason}) }

// Tools declares tools to the model from here on, and lets them travel with the conversation so that they can be run. A tool
// replaces an earlier one of the same name. Only what the conversation does not declare yet becomes a node: to give a loaded
// conversation its tools again, call Tools with them. [DAG.WithdrawTools] is the opposite. Errors: content.ErrTool for a definition
// that no API takes, and what a tool's own Err returns.
func (d DAG) Tools(tools ...Tool) DAG {
	if d.err != nil {
		return d
	}
	said, upTo := d.lineage()
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
		if at, again := index[def.Name]; again {
			if fresh[at] == def {
				continue
			}
			fresh[at].Name = "" // the later definition counts, in its own place
		} else if old, has := said.declared(upTo, def.Name); has && old == def {
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
	return d.step("Tools", node.Tools{Defs: node.ListOf(fresh...)})
}

// isNilPointer reports whether t holds a nil pointer, whose methods would most likely panic.
func isNilPointer(t Tool) bool {
	v := reflect.ValueOf(t)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// WithdrawTools declares the tools with these names no more, from here on: the model is not sent them, and they no longer travel with
// the conversation. What was called stays as it is. Names that are not declared are ignored. [DAG.Tools] declares a tool again.
func (d DAG) WithdrawTools(names ...string) DAG {
	if d.err != nil || len(names) == 0 {
		return d
	}

	said, upTo := d.lineage()
	seen := map[string]bool{}
	var withdrawn []string
	for _, name := range names {
		if _, has := said.declared(upTo, name); has && !seen[name] {
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

// unbind returns the conversation without the executables of these names.
func (d DAG) unbind(names []string) DAG {
	return d.change(func(e *env) {
		for _, name := range names {
			e.tools = e.tools.without(name)
		}
	})
}

// Tool returns the tool of that name that travels with the conversation. A loaded conversation has none until Tools gives it
// some.
func (d DAG) Tool(name string) (Tool, bool) {
	if t := d.environment().tools.get(name); t != nil {
		return t.value, true
	}
	return nil, false
}

// Back returns the conversation as it was before its last n turns. A turn begins with a message in which the user says more
// than tool results, and holds everything up to the next one. Back(1).User(…) therefore asks the last question anew. Back(0)
// is d; going back further than there are turns is ErrNoTurn. With several heads the order is that of [DAG.Nodes], and a line
// that the turns are no part of stays a head.
func (d DAG) Back(n int) DAG {
	if d.err != nil || n <= 0 {
		return d
	}
	var taken []*node.Node
	left := n
	for last := range d.backward {
		taken = append(taken, last)
		if beginsTurn(last) {
			if left--; left == 0 {
				return d.without(taken)
			}
		}
	}
	return d.fail("Back", fmt.Errorf("%w: %d back, and the conversation has %d", ErrNoTurn, n, n-left))
}

// without returns the conversation without the last nodes in its order, which are given from the last to the first.
func (d DAG) without(taken []*node.Node) DAG {
	gone := make(map[node.ID]bool, len(taken))
	ends := d.Heads()
	for _, n := range slices.Backward(taken) {
		gone[n.ID()] = true
		ends = append(ends, n.Parents()...)
	}
	ends = slices.DeleteFunc(node.Distinct(ends), func(n *node.Node) bool { return gone[n.ID()] })
	if len(ends) < 2 {
		return d.WithHeads(ends...)
	}
	inner := map[node.ID]bool{} // what follows a node that stays
	for _, n := range postOrder(ends) {
		for i := range n.NumParents() {
			inner[n.Parent(i).ID()] = true
		}
	}
	return d.WithHeads(slices.DeleteFunc(ends, func(n *node.Node) bool { return inner[n.ID()] })...)
}

func beginsTurn(n *node.Node) bool {
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

// At returns the conversation that ends in the node with that id; the chain's error is ErrForeign when there is none.
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

// Text returns what the assistant said last: the texts of its last message that has any, joined by line breaks.
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

// Equal reports whether both conversations say the same: the same heads in the same order, by digest. Ids, times, metadata and
// usage do not count.
func Equal(a, b DAG) bool {
	return slices.EqualFunc(a.heads, b.heads, func(x, y *node.Node) bool { return x == y || x.Digest() == y.Digest() })
}
