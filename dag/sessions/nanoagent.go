package sessions

import (
	"io"
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/node"
)

// maxSubGraphs limits the nesting of sub-graphs. nano-agent itself stops at 5.
const maxSubGraphs = 32

// nanoAgent imports a saved graph of nano-agent.
func (im *importer) nanoAgent(r io.Reader) error {
	data, err := im.readAll(r)
	if err != nil {
		return err
	}

	doc, err := im.valid(0, data)
	if err != nil {
		return err
	}

	top, err := im.members(0, "", doc)
	if err != nil {
		return err
	}

	im.session = text(top, "session_id")

	for _, m := range without(top, "metadata", "head_ids", "nodes") {
		im.about = append(im.about, about{"nano-agent." + m.Name, m.Value})
	}

	if metadata, err := object(get(top, "metadata")); err == nil {
		for _, m := range metadata {
			im.about = append(im.about, about{m.Name, m.Value})
		}
	}

	g := &nanoGraph{importer: im, doc: string(doc), byID: map[string]*nanoNode{}}
	if string(doc) != data {
		g.doc = "" // valid changed it: its lines are not those of the file
	}

	if err := g.read(top); err != nil {
		return err
	}

	heads, err := g.heads(get(top, "head_ids"))
	if err != nil {
		return err
	}

	for _, h := range heads {
		im.heads = append(im.heads, []*node.Node{h})
	}
	return nil
}

// nanoGraph is a graph in a file: the whole one, or a sub-graph.
type nanoGraph struct {
	*importer
	doc   string // the file, for lineOf; "" if line numbers are not known
	pos   int    // the start of the next search
	line  int    // the line of pos, from 0
	path  string // the IDs of the enclosing nodes: they make IDs unique in the file
	depth int
	all   []*nanoNode
	byID  map[string]*nanoNode
}

// nanoNode is a node of the file.
type nanoNode struct {
	id       string
	line     int
	list     []jsonx.Member
	data     []jsonx.Member
	kind     string
	parents  []*nanoNode
	children []*nanoNode
	sub      *nanoNode // of an execution: the sub-graph for its Child
	state    visitState
	made     *node.Node
	claimed  map[int]bool // the indexes of the calls with an execution
}

func (n *nanoNode) where() string { return "node " + n.id }

// read reads the nodes of a graph, and makes a node of Plait for each.
func (g *nanoGraph) read(graph []jsonx.Member) error {
	nodes, err := g.members(g.lineOf(""), "nodes", get(graph, "nodes"))
	if err != nil {
		return err
	}
	for _, m := range nodes {
		if err := g.add(m); err != nil {
			return err
		}
	}

	if err := g.link(); err != nil {
		return err
	}

	order, err := g.order()
	if err != nil {
		return err
	}

	// Fold first: a sub-graph inside its execution makes no node of its own.
	g.fold()
	for _, n := range order {
		if err := g.make(n); err != nil {
			return err
		}
	}
	return nil
}

// lineOf returns the first line of a value in the file. Values must be passed in the order of the file.
func (g *nanoGraph) lineOf(value content.JSON) int {
	if g.doc == "" {
		return 0
	}

	// Search from the end of the value before: all searches together then read the file once.
	at := strings.Index(g.doc[g.pos:], string(value))
	if at < 0 {
		return 0
	}

	g.line += strings.Count(g.doc[g.pos:g.pos+at], "\n")

	begin := g.line + 1
	g.line += strings.Count(string(value), "\n")
	g.pos += at + len(value)
	return begin
}

// add appends a node of the file.
func (g *nanoGraph) add(m jsonx.Member) error {
	n := &nanoNode{id: m.Name, line: g.lineOf(m.Value)}

	var err error
	if n.list, err = g.members(n.line, n.where(), m.Value); err != nil {
		return err
	}
	if n.data, err = g.members(n.line, n.where()+", data", get(n.list, "data")); err != nil {
		return err
	}
	if id := text(n.list, "id"); id != n.id && id != "" {
		g.note(n.line, n.where(), noteChanged, "its member id is %q; the key under which it is saved is used", id)
	}

	// A message has a role in place of a type.
	n.kind = text(n.data, "type")
	if text(n.data, "role") != "" {
		n.kind = "message"
	}

	g.all = append(g.all, n)
	g.byID[n.id] = n
	return nil
}

// link resolves the parents of all nodes.
func (g *nanoGraph) link() error {
	for _, n := range g.all {
		ids, ok := items(get(n.list, "parent_ids"))
		if !ok && get(n.list, "parent_ids") != "" {
			return g.errorf(n.line, n.where(), errShape, "parent_ids is not a list")
		}

		for _, j := range ids {
			id, _ := jsonx.Text(j)
			parent := g.byID[id]
			if parent == nil {
				return g.errorf(n.line, n.where(), node.ErrParent, "there is no node %s", excerpt(j))
			}
			n.parents = append(n.parents, parent)
		}
	}
	return nil
}

// order returns the nodes, each after its parents, and sets their children. It walks with a stack of its own, because a
// graph may be deep.
func (g *nanoGraph) order() ([]*nanoNode, error) {
	order := make([]*nanoNode, 0, len(g.all))

	type visit struct {
		n    *nanoNode
		next int // the index of the parent to visit next
	}

	for _, first := range g.all {
		if first.state != unvisited {
			continue
		}

		first.state = visiting
		stack := []visit{{n: first}}
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if top.next == len(top.n.parents) {
				top.n.state = visited
				order = append(order, top.n)

				for _, parent := range top.n.parents {
					parent.children = append(parent.children, top.n)
				}
				stack = stack[:len(stack)-1]
				continue
			}

			// Visit the next parent first. A parent on the stack is a cycle.
			parent := top.n.parents[top.next]
			switch parent.state {
			case unvisited:
				parent.state = visiting
				top.next++
				stack = append(stack, visit{n: parent})
			case visiting:
				return nil, g.errorf(top.n.line, top.n.where(), errCycle, "")
			case visited:
				top.next++
			}
		}
	}
	return order, nil
}

// fold makes a sub-graph between a call and its only execution a part of the execution.
func (g *nanoGraph) fold() {
	for _, n := range g.all {
		if n.kind != "sub_graph" || len(n.children) != 1 || len(n.parents) != 1 || n.parents[0].kind != "message" {
			continue
		}

		if run := n.children[0]; run.kind == "tool_execution" && len(run.parents) == 1 && run.sub == nil {
			run.sub, run.parents = n, n.parents
		}
	}
}

// folded reports whether n is a sub-graph that is now part of its execution.
func (n *nanoNode) folded() bool { return len(n.children) == 1 && n.children[0].sub == n }

// make makes the node of Plait. Its parents have theirs already.
func (g *nanoGraph) make(n *nanoNode) error {
	if n.folded() {
		return nil
	}

	m := nodeSpec{name: g.path + n.id, line: n.line, where: n.where(), time: seconds(number(n.list, "timestamp"))}
	for _, p := range n.parents {
		m.parents = append(m.parents, p.made)
	}

	if metadata, err := object(get(n.list, "metadata")); err == nil {
		for _, one := range metadata {
			m.meta = metaWith(m.meta, one.Name, one.Value)
		}
	}

	m.meta = metaOf(m.meta, "nano-agent", without(n.list, "id", "parent_ids", "data", "timestamp", "metadata"))

	var err error
	if m.payload, err = g.payload(n, &m.meta); err != nil {
		return err
	}
	n.made, err = g.importer.make(m)
	return err
}

// payload returns the payload of a node. Other members of its data are added to meta.
func (g *nanoGraph) payload(n *nanoNode, meta *node.Meta) (node.Payload, error) {
	rest := func(names ...string) {
		*meta = metaOf(*meta, "nano-agent.data", without(n.data, append(names, "type")...))
	}

	switch n.kind {
	case "message":
		rest("role", "content")
		return g.message(n)

	case "system_prompt":
		rest("content")
		return node.System{Text: text(n.data, "content")}, nil

	case "tool_definitions":
		// If a definition was refused, the metadata has all of them.
		declared, refused, err := g.tools(n)
		if refused {
			rest()
		} else {
			rest("tools")
		}
		return declared, err

	case "tool_execution":
		rest("tool_name", "tool_use_id", "result", "is_error")
		return g.execution(n)

	case "stop_reason":
		rest("reason") // usage has more counters than ours
		usage, _ := object(get(n.data, "usage"))
		return node.StopReason{Reason: content.Stop(text(n.data, "reason")), Usage: nanoUsage(usage)}, nil

	case "sub_graph":
		heads, about, err := g.child(n)
		*meta = metaOf(*meta, "nano-agent.data", about)
		return node.SubGraph{
			Title: text(n.data, "tool_name"), CallID: text(n.data, "tool_use_id"), Summary: text(n.data, "summary"), Heads: heads,
		}, err
	}

	g.note(n.line, n.where(), noteRecord, "a node of type %q", n.kind)
	return node.Custom{Name: "nano-agent." + n.kind, JSON: get(n.list, "data")}, nil
}

func (g *nanoGraph) place(n *nanoNode) place {
	return place{im: g.importer, line: n.line, where: n.where(), foreign: "nano-agent"}
}

func (g *nanoGraph) message(n *nanoNode) (node.Payload, error) {
	role := content.Role(text(n.data, "role"))
	if !role.Valid() {
		return nil, g.errorf(n.line, n.where(), errShape, "the role %q is neither user nor assistant", role)
	}

	blocks, err := g.place(n).list(get(n.data, "content"), nanoBlock)
	if err != nil {
		return nil, err
	}
	return node.Message{Role: role, Blocks: shared(blocks, n.parents)}, nil
}

// shared replaces the content of results by the equal content of the executions before them. So the content is kept in
// memory and saved once.
func shared(blocks content.Blocks, parents []*nanoNode) content.Blocks {
	list := blocks.Slice()
	for i, b := range list {
		r, ok := b.(content.ToolResult)
		if !ok {
			continue
		}

		for _, p := range parents {
			if p.made == nil {
				continue
			}
			if e, ok := p.made.Payload().(node.ToolExecution); ok && e.CallID == r.CallID && e.Result.Equal(r.Content) {
				r.Content = e.Result
				list[i] = r
			}
		}
	}

	again, err := content.Of(list...)
	if err != nil {
		return blocks
	}
	return again
}

// nanoBlock reads a block of Anthropic's API or of another API. Nano-agent stores both in the same list.
func nanoBlock(p place, raw content.JSON) content.Block {
	list, err := object(raw)
	if err != nil {
		return anthropicBlock(p, raw)
	}

	switch text(list, "type") {
	case "reasoning":
		return reasoningItem(list)
	case "compaction":
		return content.Opaque{API: responsesAPI, JSON: raw}
	case "compaction_summary":
		p.note(noteChanged, `"compaction_summary" became "compaction", its newer name`)
		_, rest := jsonx.Take(list, "type")
		rest = append([]jsonx.Member{{Name: "type", Value: `"compaction"`}}, rest...)
		return content.Opaque{API: responsesAPI, JSON: jsonx.Object(rest)}
	case "tool_use":
		return nanoCall(p, raw, list)
	}
	return anthropicBlock(p, raw)
}

// nanoCall reads a call, with the additional members for other APIs.
func nanoCall(p place, raw content.JSON, list []jsonx.Member) content.Block {
	item, list := jsonx.Take(list, "item_id")
	signature, list := jsonx.Take(list, "thought_signature")

	b := anthropicBlock(p, jsonx.Object(list))
	call, ok := b.(content.ToolUse)

	switch {
	case !ok:
		return p.opaque(raw, p.foreign, "a call without id or name")
	case call.Extra == content.Extra{} && signature != "" && signature != "null":
		call.Extra = content.Extra{API: geminiAPI, JSON: jsonx.Object([]jsonx.Member{{Name: "thoughtSignature", Value: signature}})}
		signature = ""
	case call.Extra == content.Extra{} && item != "" && item != "null":
		call.Extra = content.Extra{API: responsesAPI, JSON: jsonx.Object([]jsonx.Member{{Name: "id", Value: item}})}
		item = ""
	}

	// A call holds the members of one API. The rest is left out.
	for _, left := range []jsonx.Member{{Name: "item_id", Value: item}, {Name: "thought_signature", Value: signature}} {
		if left.Value != "" && left.Value != "null" {
			p.note(noteLeftOut, "the call's %s %s: a call keeps the members of one API only", left.Name, excerpt(left.Value))
		}
	}
	return call
}

// tools returns the declared tools, and reports whether a definition was refused.
func (g *nanoGraph) tools(n *nanoNode) (node.Payload, bool, error) {
	raw, ok := items(get(n.data, "tools"))
	if !ok {
		return nil, false, g.errorf(n.line, n.where(), errShape, "tools is not a list")
	}

	d := declarations{place: g.place(n)}
	for _, one := range raw {
		list, err := object(one)
		if err != nil {
			d.refuse(one, "it is not an object")
			continue
		}

		var def content.Tool
		def.Name, list, _ = jsonx.TakeText(list, "name")
		def.Description, list, _ = jsonx.TakeText(list, "description")
		def.Schema, list = jsonx.Take(list, "input_schema")
		def.Extra = extra(anthropicAPI, list)
		d.add(def, one)
	}

	return d.payload("nano-agent.tool_definitions", get(n.list, "data")), d.refused > 0, nil
}

// execution returns the execution of a call of its parent.
func (g *nanoGraph) execution(n *nanoNode) (node.Payload, error) {
	e := node.ToolExecution{CallID: text(n.data, "tool_use_id"), Tool: text(n.data, "tool_name"), IsError: isTrue(n.data, "is_error")}

	p := g.place(n)
	p.inner = true

	var err error
	if e.Result, err = p.list(get(n.data, "result"), anthropicBlock); err != nil {
		return nil, err
	}

	if !claim(n, &e) {
		g.note(n.line, n.where(), noteChanged, "its parents have no call with the ID %q", e.CallID)
	}

	// The sub-graph of a sub-agent is its conversation. Its other members are details.
	if n.sub == nil {
		return e, nil
	}
	heads, about, err := g.child(n.sub)
	if err != nil {
		return nil, err
	}

	e.Child = heads
	about = append(about, without(n.sub.data, "type", "nodes", "head_ids", "system_prompt", "depth")...)
	e.Details = jsonx.Object([]jsonx.Member{{Name: "sub_graph", Value: jsonx.Object(about)}})
	return e, nil
}

// claim sets the index, tool and input of e from its call: the first call of the parent with its ID and without an
// execution. It reports whether there is one.
func claim(n *nanoNode, e *node.ToolExecution) bool {
	// The parent of an execution is the message with its call.
	if len(n.parents) != 1 || n.parents[0].made == nil {
		return false
	}

	parent := n.parents[0]
	m, _ := parent.made.Message()
	if parent.claimed == nil {
		parent.claimed = map[int]bool{}
	}

	// Two calls of a message may have the same ID. Each execution gets a call of its own.
	for i, b := range m.Blocks.All() {
		if call, ok := b.(content.ToolUse); ok && call.ID == e.CallID && !parent.claimed[i] && m.Role == content.Assistant {
			parent.claimed[i] = true
			e.Index, e.Tool, e.Input = i, call.Name, call.Input
			return true
		}
	}
	return false
}

// child imports the conversation of a sub-graph. It returns the heads, and the members of the sub-graph outside its
// nodes.
func (g *nanoGraph) child(n *nanoNode) (node.List[*node.Node], []jsonx.Member, error) {
	var none node.List[*node.Node]
	if g.depth >= maxSubGraphs {
		return none, nil, g.errorf(n.line, n.where(), dag.ErrLimit, "sub-graphs nest more than %d deep", maxSubGraphs)
	}

	inner := &nanoGraph{importer: g.importer, path: g.path + n.id + "/", depth: g.depth + 1, byID: map[string]*nanoNode{}}
	if err := inner.read(n.data); err != nil {
		return none, nil, err
	}

	heads, err := inner.heads(get(n.data, "head_ids"))
	if err != nil {
		return none, nil, err
	}

	about := without(n.data, "type", "nodes", "head_ids", "system_prompt", "tool_name", "tool_use_id", "summary")

	// The prompt is usually a node as well.
	prompt, inNodes := text(n.data, "system_prompt"), false
	for _, one := range inner.all {
		inNodes = inNodes || one.kind == "system_prompt" && text(one.data, "content") == prompt
	}
	if prompt != "" && !inNodes {
		about = append(about, jsonx.Member{Name: "system_prompt", Value: jsonx.Quote(prompt)})
	}
	return node.ListOf(heads...), about, nil
}

// heads returns the heads of the graph: first its named heads, and then the nodes without children out of reach of the
// named heads.
func (g *nanoGraph) heads(ids content.JSON) ([]*node.Node, error) {
	named, ok := items(ids)
	if !ok && ids != "" {
		return nil, g.errorf(0, "head_ids", errShape, "it is not a list")
	}

	var heads []*nanoNode
	for _, j := range named {
		id, _ := jsonx.Text(j)
		if n := g.byID[id]; n != nil {
			heads = append(heads, n)
		} else {
			g.note(0, "head_ids", noteAssumed, "there is no node %s; nodes without children are the heads", excerpt(j))
		}
	}

	// A sub-graph becomes the Child of its execution, so it is no head.
	reached := map[*nanoNode]bool{}
	stack := append([]*nanoNode(nil), heads...)
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if !reached[n] {
			reached[n] = true
			stack = append(stack, n.parents...)
			if n.sub != nil {
				reached[n.sub] = true
			}
		}
	}

	for _, n := range g.all {
		if len(n.children) > 0 || reached[n] {
			continue
		}

		if len(named) > 0 && len(heads) > 0 {
			g.note(n.line, n.where(), noteAssumed, "no head reaches it; it became a further head")
		}
		heads = append(heads, n)
	}

	list := make([]*node.Node, len(heads))
	for i, n := range heads {
		if n.folded() {
			n = n.children[0] // a graph saved during an execution
		}
		list[i] = n.made
	}
	return list, nil
}

// nanoUsage returns the token counts of a run. Anthropic's input_tokens exclude cached tokens. OpenAI's include them,
// and only OpenAI's API reports cached_tokens.
func nanoUsage(list []jsonx.Member) content.Usage {
	cached := count(list, "cached_tokens")
	return content.Usage{
		Input:      max(0, count(list, "input_tokens")-cached),
		Output:     count(list, "output_tokens"),
		CacheRead:  count(list, "cache_read_input_tokens") + cached,
		CacheWrite: count(list, "cache_creation_input_tokens"),
		Reasoning:  count(list, "reasoning_tokens"),
	}
}

// declarations collects the tool definitions of a list.
type declarations struct {
	place
	defs    []content.Tool
	refused int // how many definitions cannot be declared
}

// add appends a definition, or replaces the earlier one with the same name. An invalid definition is refused.
func (d *declarations) add(def content.Tool, raw content.JSON) {
	if err := def.Check(); err != nil {
		d.refuse(raw, err.Error())
		return
	}

	for i, old := range d.defs {
		if old.Name == def.Name {
			d.note(noteLeftOut, "the tool %s is declared again; the later declaration is used", def.Name)
			d.defs[i] = def
			return
		}
	}
	d.defs = append(d.defs, def)
}

// refuse notes a refused definition.
func (d *declarations) refuse(raw content.JSON, why string) {
	d.refused++
	d.place.note(noteRecord, "a tool that no API accepts (%s): %s", why, excerpt(raw))
}

// payload returns the tools, or a record with the name if every definition was refused.
func (d *declarations) payload(name string, raw content.JSON) node.Payload {
	if len(d.defs) == 0 && d.refused > 0 {
		return node.Custom{Name: name, JSON: raw}
	}
	return node.Tools{Defs: node.ListOf(d.defs...)}
}
