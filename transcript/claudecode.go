package transcript

import (
	"io"
	"strconv"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/wire"
	"github.com/plait-dev/plait/node"
)

// claudeCode imports a session. The files of its sub-agents may follow it in the same reader.
func (im *importer) claudeCode(r io.Reader) error {
	s := &claudeSession{
		importer: im, main: newAgent(im, "", 0), agents: map[string]*agent{},
		begun: map[string]string{}, runs: map[string]string{}, prompts: map[string][]*claudeCall{}, calls: map[string]*claudeCall{},
	}
	err := im.lines(r, func(l line) error {
		if err := s.line(l); err != nil {
			return im.unreadable(s.main.tree, l, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := s.unrecognized(); err != nil {
		return err
	}
	if s.session == "" {
		s.session = s.fingerprint()
	}
	if len(s.main.tree.entries) == 0 {
		s.promote()
	}
	im.heads, err = s.build()
	return err
}

// claudeSession is a session while it is read.
type claudeSession struct {
	*importer
	main    *agent
	agents  map[string]*agent // by the id of the agent, or by the line that one without an id begins with
	order   []*agent
	begun   map[string]string        // the name of the agent without an id that a line is of
	runs    map[string]string        // the call that an agent ran for, by the agent's id
	calls   map[string]*claudeCall   // by id
	prompts map[string][]*claudeCall // by what they ask a sub-agent
	common  map[string]content.JSON  // members that most lines share, as they were first
}

// agent is a conversation of a session: the main one, or a sub-agent's.
type agent struct {
	tree   *tree
	name   string
	line   int    // its first
	prompt string // what it was asked
	owner  *agent // in which it was called; nil where nothing tells
	call   *claudeCall
	state  int8
}

// claudeCall is a call in a session.
type claudeCall struct {
	id, tool string
	agent    *agent // that called
	result   *entry
	child    *agent // the sub-agent that ran for it
}

func newAgent(im *importer, name string, line int) *agent {
	return &agent{tree: newTree(im), name: name, line: line}
}

// commonMembers are those that nearly every line repeats. They are kept once for the session, and with a node where they differ.
var commonMembers = []string{"sessionId", "version", "cwd", "gitBranch", "userType", "entrypoint", "slug"}

// line takes the next line.
func (s *claudeSession) line(l line) error {
	j, err := s.valid(l.at, l.text)
	if err != nil {
		return err
	}
	list, err := s.members(l.at, "", j)
	if err != nil {
		return err
	}
	kind := text(list, "type")
	if kind == "" {
		return s.errorf(l.at, "", ErrShape, "the line has no type")
	}
	message, _ := object(get(list, "message"))
	speaks := message != nil && (kind == "user" || kind == "assistant")
	s.recognize(l.at, speaks || kind == "summary" || has(list, "uuid", "parentUuid", "sessionId", "leafUuid", "messageId", "isSidechain"))

	s.share(list)
	e := &entry{
		line: l.at, name: text(list, "uuid"), parentName: text(list, "parentUuid"), time: stamp(get(list, "timestamp")),
		body: string(get(list, "message")),
	}
	if e.body == "" {
		e.body = string(j)
	}
	a := s.agentOf(e, list)
	s.logical(a, e, list)
	if above := a.tree.byName[e.parentName]; above != nil {
		e.response, e.keeps = above.response, above.keeps
	}
	switch {
	case !speaks, isTrue(list, "isApiErrorMessage"), isTrue(list, "isVisibleInTranscriptOnly") && !isTrue(list, "isCompactSummary"):
		return s.record(a, e, kind, list, j)
	case kind == "assistant":
		return s.assistant(a, e, list, message)
	}
	return s.user(a, e, list, message)
}

// share notes the members that the session has for all lines.
func (s *claudeSession) share(list []wire.Member) {
	if s.common == nil {
		s.common = map[string]content.JSON{}
	}
	for _, name := range commonMembers {
		if value := get(list, name); value != "" && s.common[name] == "" {
			s.common[name] = value
			s.about = append(s.about, about{"claude-code." + name, value})
			if name == "sessionId" {
				s.session, _ = wire.Text(value)
			}
		}
	}
}

// logical gives a line that begins anew what it follows all the same, because what was before it was only compacted.
func (s *claudeSession) logical(a *agent, e *entry, list []wire.Member) {
	above := text(list, "logicalParentUuid")
	switch {
	case e.parentName != "" || above == "":
	case a.tree.byName[above] != nil:
		e.parentName = above
	default:
		s.note(e.line, "", NoteAssumed, "%q, before what was compacted, is no line of the file; it begins a conversation", above)
	}
}

// agentOf is the conversation that a line belongs to.
func (s *claudeSession) agentOf(e *entry, list []wire.Member) *agent {
	if !isTrue(list, "isSidechain") {
		return s.main
	}
	name := text(list, "agentId")
	if name == "" {
		name = s.begins(e)
	}
	a := s.agents[name]
	if a == nil {
		a = newAgent(s.importer, name, e.line)
		s.agents[name] = a
		s.order = append(s.order, a)
	}
	if e.parentName != "" && a.tree.byName[e.parentName] == nil && len(a.tree.entries) == 0 {
		e.parentName = "" // it follows the call
	}
	return a
}

// begins is the name of the sub-agent without an id that a line is of: that of its first line.
func (s *claudeSession) begins(e *entry) string {
	name, ok := s.begun[e.parentName]
	if !ok || e.parentName == "" {
		name = e.name
	}
	s.begun[e.name] = name
	return name
}

// record keeps a line that no model is told. Where it tells which call a sub-agent ran for, that is noted.
func (s *claudeSession) record(a *agent, e *entry, kind string, list []wire.Member, j content.JSON) error {
	name := "claude-code." + kind
	if sub := text(list, "subtype"); sub != "" {
		name += "." + sub
	}
	if data, err := object(get(list, "data")); err == nil && kind == "progress" {
		s.ran(text(data, "agentId"), text(list, "parentToolUseID"))
	}
	if about, err := object(get(list, "compactMetadata")); err == nil {
		if kept, err := object(get(about, "preservedSegment")); err == nil {
			e.keeps = text(kept, "headUuid")
		}
	}
	return a.tree.record(e, node.Custom{Name: name, JSON: j})
}

func (s *claudeSession) ran(agent, call string) {
	if agent != "" && call != "" && s.runs[agent] == "" {
		s.runs[agent] = call
	}
}

// metaOf is what a line has beyond what the node says.
func (s *claudeSession) metaOf(list, message, further []wire.Member) node.Meta {
	rest := without(list, "type", "uuid", "parentUuid", "timestamp", "message", "toolUseResult", "isSidechain")
	kept := make([]wire.Member, 0, len(rest)+1)
	for _, m := range rest {
		if m.Value != s.common[m.Name] {
			kept = append(kept, m)
		}
	}
	if of := append(without(message, "type", "role", "content", "id", "model", "stop_reason", "usage"), further...); len(of) > 0 {
		kept = append(kept, wire.Member{Name: "message", Value: wire.Object(of)})
	}
	return metaOf(node.Meta{}, "claude-code", kept)
}

func (s *claudeSession) place(e *entry) place {
	return place{im: s.importer, line: e.line, foreign: anthropicAPI}
}

// assistant takes a line of the assistant's. The blocks of one answer are lines of their own, and one message all the same.
func (s *claudeSession) assistant(a *agent, e *entry, list, message []wire.Member) error {
	blocks, err := s.place(e).list(get(message, "content"), anthropicBlock)
	if err != nil {
		return err
	}
	e.responseID = text(message, "id")
	usage, _ := object(get(message, "usage"))
	answer := node.Answer{
		API: anthropicAPI, Model: text(message, "model"), ResponseID: e.responseID,
		Stop: claudeStop(text(message, "stop_reason")), Usage: claudeUsage(usage),
		Seen: seenElsewhere,
	}
	var further []wire.Member
	if rest := without(usage, "input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"); len(rest) > 0 {
		further = []wire.Member{{Name: "usage", Value: wire.Object(rest)}}
	}
	said := e
	if whole := e.response; whole != nil && whole.responseID == e.responseID && e.responseID != "" && a.tree.byName[e.name] == nil {
		s.goesOn(a, whole, e, answer)
		said = whole
	} else {
		e.response, e.keeps = e, ""
		e.meta = s.metaOf(list, message, further)
		e.payload = node.Message{Role: content.Assistant, Answer: answer}
		before := len(a.tree.entries)
		if err := a.tree.add(e); err != nil || len(a.tree.entries) == before {
			return err
		}
	}
	said.blocks = append(said.blocks, blocks.Slice()...)
	for _, call := range blocks.ToolUses() {
		s.called(a, call)
	}
	return nil
}

// goesOn joins a line to the message that it is a part of. The last line has the counts of the whole.
func (s *claudeSession) goesOn(a *agent, whole, e *entry, answer node.Answer) {
	m := whole.payload.(node.Message)
	if answer.Usage != (content.Usage{}) {
		m.Answer.Usage = answer.Usage
	}
	if answer.Stop != "" {
		m.Answer.Stop = answer.Stop
	}
	whole.payload, whole.last = m, e.line
	if e.name == "" {
		return
	}
	a.tree.byName[e.name], a.tree.bodies[e.name] = whole, e.body
	whole.parts = append(whole.parts, e.name)
}

func (s *claudeSession) called(a *agent, call content.ToolUse) {
	c := &claudeCall{id: call.ID, tool: call.Name, agent: a}
	if s.calls[c.id] == nil {
		s.calls[c.id] = c
	}
	input, err := object(call.Input)
	if err != nil {
		return
	}
	if kind := text(input, "subagent_type"); kind != "" {
		c.tool = kind
	}
	if prompt := text(input, "prompt"); prompt != "" {
		s.prompts[prompt] = append(s.prompts[prompt], c)
	}
}

// user takes a line of the user's side: words, results, or the summary of what was compacted.
func (s *claudeSession) user(a *agent, e *entry, list, message []wire.Member) error {
	blocks, err := s.place(e).list(get(message, "content"), anthropicBlock)
	if err != nil {
		return err
	}
	e.meta = s.metaOf(list, message, nil)
	keeps := e.keeps
	e.keeps = ""
	switch results := blocks.ToolResults(); {
	case isTrue(list, "isCompactSummary"):
		summary, err := summaryOf(s.place(e), blocks)
		if err != nil {
			return err
		}
		e.payload, e.keeps, e.response = node.Compaction{Summary: summary}, keeps, nil
	case len(results) > 0:
		e.payload = node.Message{Role: content.User, Blocks: blocks}
		e.details = get(list, "toolUseResult")
		if about, err := object(e.details); err == nil {
			s.ran(text(about, "agentId"), results[0].CallID)
		}
		for _, r := range results[:1] {
			if c := s.calls[r.CallID]; c != nil && c.agent == a && c.result == nil {
				c.result = e
			}
		}
	default:
		e.payload, e.response = node.Message{Role: content.User, Blocks: blocks}, nil
		if details := get(list, "toolUseResult"); details != "" {
			e.meta = metaWith(e.meta, "claude-code.toolUseResult", details)
		}
		if len(a.tree.entries) == 0 {
			a.prompt = blocks.Text()
		}
	}
	return a.tree.add(e)
}

// summaryOf is blocks as a summary holds them.
func summaryOf(p place, blocks content.Blocks) (content.Blocks, error) {
	var list []content.Block
	for _, b := range blocks.All() {
		switch b.(type) {
		case content.ToolUse, content.CutToolUse, content.ToolResult, content.Thinking:
			p.note(NoteLeftOut, "a summary holds no calls, results or thinking")
			continue
		}
		list = append(list, b)
	}
	return content.Of(list...)
}

// promote makes the first sub-agent the main conversation of a file that holds nothing else.
func (s *claudeSession) promote() {
	if len(s.order) == 0 {
		return
	}
	records := s.main.tree.records
	s.main, s.order = s.order[0], s.order[1:]
	s.main.tree.records = append(records, s.main.tree.records...)
}

// build makes the nodes of all conversations, those of sub-agents before those that called them.
func (s *claudeSession) build() ([][]*node.Node, error) {
	// What the file says comes before what only fits: a sub-agent with the same prompt must not take the call of another.
	for _, a := range s.order {
		s.claimNamed(a)
	}
	for _, a := range s.order {
		if a.call == nil {
			s.claimByPrompt(a)
		}
	}
	for _, a := range s.owners() {
		ends, err := a.tree.build()
		if err != nil {
			return nil, err
		}
		var heads []*node.Node
		for _, e := range ends {
			heads = append(heads, e...)
		}
		if c := a.call; c != nil && c.result != nil && a.owner != nil {
			c.result.child = heads
			continue
		}
		s.hang(a, heads, ends)
	}
	return s.main.tree.build()
}

// claimNamed gives a sub-agent the call that the file says it ran for.
func (s *claudeSession) claimNamed(a *agent) {
	if c := s.calls[s.runs[a.name]]; c != nil && c.child == nil && c.agent != a {
		c.child, a.call, a.owner = a, c, c.agent
	}
}

// claimByPrompt gives a sub-agent the first call that asked what it was asked and that no other sub-agent has.
func (s *claudeSession) claimByPrompt(a *agent) {
	waiting := s.prompts[a.prompt]
	for len(waiting) > 0 && a.call == nil {
		if c := waiting[0]; c.child == nil && c.agent != a {
			c.child, a.call, a.owner = a, c, c.agent
		}
		waiting = waiting[1:]
	}
	s.prompts[a.prompt] = waiting
}

// owners returns the sub-agents, each before the one that called it. What calls itself in a circle was called by nobody.
func (s *claudeSession) owners() []*agent {
	order := make([]*agent, 0, len(s.order))
	var path []*agent
	for _, a := range s.order {
		for path = path[:0]; a != nil && a != s.main && a.state == 0; a = a.owner {
			a.state = 1
			path = append(path, a)
		}
		if a != nil && a.state == 1 {
			path[len(path)-1].owner = nil
		}
		for i := len(path) - 1; i >= 0; i-- {
			path[i].state = 2
			order = append(order, path[i])
		}
	}
	for i, j := 0, len(order)-1; i < j; i, j = i+1, j-1 {
		order[i], order[j] = order[j], order[i]
	}
	return order
}

// hang keeps the conversation of a sub-agent whose call has no result, or is not known, as a sub-graph.
func (s *claudeSession) hang(a *agent, heads []*node.Node, ends [][]*node.Node) {
	in, sub := s.main, node.SubGraph{Title: "agent", Heads: node.ListOf(heads...)}
	if a.owner != nil && a.call != nil {
		in, sub.Title, sub.CallID = a.owner, a.call.tool, a.call.id
	} else {
		s.note(a.line, "", NoteAssumed, "no call of a tool tells that this sub-agent ran for it; it stands where it began")
	}
	if len(ends) > 0 {
		sub.Summary = dag.New().WithHeads(ends[0]...).Text()
	}
	in.tree.records = append(in.tree.records, extraNode{a.line, nodeSpec{
		name: "sub-agent " + a.name + " " + strconv.Itoa(a.line), line: a.line, payload: sub,
	}})
}

// claudeStop is Anthropic's reason to stop.
func claudeStop(reason string) content.Stop {
	if reason == "model_context_window_exceeded" {
		return content.StopContext
	}
	return content.Stop(reason) // the other words are the same, and new ones are kept
}

func claudeUsage(list []wire.Member) content.Usage {
	return content.Usage{
		Input: count(list, "input_tokens"), Output: count(list, "output_tokens"),
		CacheRead: count(list, "cache_read_input_tokens"), CacheWrite: count(list, "cache_creation_input_tokens"),
	}
}
