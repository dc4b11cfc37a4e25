package sessions

import (
	"cmp"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/node"
)

// claudeCode imports a session. The files of its sub-agents may follow in the same reader.
func (im *importer) claudeCode(r io.Reader) error {
	s := &claudeSession{
		importer: im, main: newAgent(im, "", 0), agents: map[string]*agent{},
		begun: map[string]string{}, runs: map[string]string{}, prompts: map[string][]*claudeCall{}, calls: map[string]*claudeCall{},
	}

	if err := im.objects(r, s.line); err != nil {
		return err
	}

	if len(s.main.tree.entries) == 0 {
		s.promote()
	}
	heads, err := s.build()
	im.heads = heads
	return err
}

// claudeSession is the state of an import.
type claudeSession struct {
	*importer
	main    *agent
	agents  map[string]*agent        // sub-agents by ID, or by the name of their first line if they have none
	order   []*agent                 // sub-agents in the order of the file
	begun   map[string]string        // for lines of sub-agents without an ID: the name of the sub-agent, by the name of the line
	runs    map[string]string        // the ID of a sub-agent's call, by the ID of the sub-agent
	calls   map[string]*claudeCall   // by id
	prompts map[string][]*claudeCall // by the prompt for a sub-agent
	common  map[string]content.JSON  // the first value of each of commonMembers
}

// agent is one conversation of a session: the main one, or the conversation of a sub-agent.
type agent struct {
	tree   *tree
	name   string
	line   int         // its first line
	prompt string      // its first user message
	owner  *agent      // the calling agent; nil if it is not known
	call   *claudeCall // the call of the owner; nil if it is not known
	state  visitState
}

// claudeCall is a tool call in a session.
type claudeCall struct {
	id, tool string
	agent    *agent // the caller
	result   *entry
	child    *agent // the sub-agent of this call
}

func newAgent(im *importer, name string, line int) *agent {
	return &agent{tree: newTree(im), name: name, line: line}
}

// commonMembers are repeated on nearly every line. The first value of each is metadata of the session. A node has the
// member as metadata only if its value differs.
var commonMembers = []string{"sessionId", "version", "cwd", "gitBranch", "userType", "entrypoint", "slug"}

// line imports the next line.
func (s *claudeSession) line(l objectLine) error {
	list, kind := l.list, l.kind
	message, _ := object(get(list, "message"))
	speaks := message != nil && (kind == "user" || kind == "assistant")
	// A line without a message is from Claude Code if it has one of these members.
	s.recognize(l.at, speaks || kind == "summary" || has(list, "uuid", "parentUuid", "sessionId", "leafUuid", "messageId", "isSidechain"))

	// A repeated line has the same message. The members around it may differ.
	s.share(list)
	e := &entry{
		line: l.at, name: text(list, "uuid"), parentName: text(list, "parentUuid"), time: stamp(get(list, "timestamp")),
		body: string(get(list, "message")),
	}
	if e.body == "" {
		e.body = string(l.json)
	}

	a := s.agentOf(e, list)
	s.logical(a, e, list)

	// A response may continue below a record or a result. The record above the summary of a compaction names the kept
	// messages. So a line inherits both from the line above.
	if above := a.tree.byName[e.parentName]; above != nil {
		e.response, e.keeps = above.response, above.keeps
	}

	// Errors of the API and lines that are only displayed were never sent. The summary of a compaction was, even if it is
	// marked as only displayed.
	switch {
	case !speaks, isTrue(list, "isApiErrorMessage"), isTrue(list, "isVisibleInTranscriptOnly") && !isTrue(list, "isCompactSummary"):
		return s.record(a, e, kind, list, l.json)
	case kind == "assistant":
		return s.assistant(a, e, list, message)
	}
	return s.user(a, e, list, message)
}

// share records the first value of each of commonMembers.
func (s *claudeSession) share(list []jsonx.Member) {
	if s.common == nil {
		s.common = map[string]content.JSON{}
	}
	for _, name := range commonMembers {
		if value := get(list, name); value != "" && s.common[name] == "" {
			s.common[name] = value
			s.about = append(s.about, about{"claude-code." + name, value})
			if name == "sessionId" {
				s.session, _ = jsonx.Text(value)
			}
		}
	}
}

// logical sets the parent of a line after a compaction. Claude Code writes it as a root, with the line before the
// compaction as its logical parent.
func (s *claudeSession) logical(a *agent, e *entry, list []jsonx.Member) {
	above := text(list, "logicalParentUuid")
	switch {
	case e.parentName != "" || above == "":
	case a.tree.byName[above] != nil:
		e.parentName = above
	default:
		s.note(e.line, "", noteAssumed, "its logical parent %q is not in the file; it starts a conversation", above)
	}
}

// agentOf returns the conversation of a line.
func (s *claudeSession) agentOf(e *entry, list []jsonx.Member) *agent {
	if !isTrue(list, "isSidechain") {
		return s.main
	}

	name := text(list, "agentId")
	if name == "" {
		name = s.unnamedAgent(e)
	}

	a := s.agents[name]
	if a == nil {
		a = newAgent(s.importer, name, e.line)
		s.agents[name] = a
		s.order = append(s.order, a)
	}

	if e.parentName != "" && a.tree.byName[e.parentName] == nil && len(a.tree.entries) == 0 {
		e.parentName = "" // its parent is in the conversation of the caller
	}
	return a
}

// unnamedAgent returns the name of the sub-agent of a line, if the sub-agent has no ID: the name of its first line.
func (s *claudeSession) unnamedAgent(e *entry) string {
	name, ok := s.begun[e.parentName]
	if !ok || e.parentName == "" {
		name = e.name
	}
	s.begun[e.name] = name
	return name
}

// record keeps a line without content for a model. The line may name the call of a sub-agent, or the messages kept by a
// compaction.
func (s *claudeSession) record(a *agent, e *entry, kind string, list []jsonx.Member, j content.JSON) error {
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

// ran records the call of a sub-agent.
func (s *claudeSession) ran(agent, call string) {
	if agent != "" && call != "" && s.runs[agent] == "" {
		s.runs[agent] = call
	}
}

// metaOf returns the members of a line and its message outside the payload. Further is added to the members of the
// message.
func (s *claudeSession) metaOf(list, message, further []jsonx.Member) node.Meta {
	rest := without(list, "type", "uuid", "parentUuid", "timestamp", "message", "toolUseResult", "isSidechain")
	kept := make([]jsonx.Member, 0, len(rest)+1)
	for _, m := range rest {
		if m.Value != s.common[m.Name] {
			kept = append(kept, m)
		}
	}

	if of := append(without(message, "type", "role", "content", "id", "model", "stop_reason", "usage"), further...); len(of) > 0 {
		kept = append(kept, jsonx.Member{Name: "message", Value: jsonx.Object(of)})
	}

	return metaOf(node.Meta{}, "claude-code", kept)
}

func (s *claudeSession) place(e *entry) place {
	return place{im: s.importer, line: e.line, foreign: anthropicAPI}
}

// assistant imports a line of the assistant. Claude Code writes each block of a response as a line of its own. They
// become one message.
func (s *claudeSession) assistant(a *agent, e *entry, list, message []jsonx.Member) error {
	blocks, err := s.place(e).list(get(message, "content"), anthropicBlock)
	if err != nil {
		return err
	}

	e.responseID = text(message, "id")
	usage, _ := object(get(message, "usage"))
	answer := node.Answer{
		API: anthropicAPI, Model: text(message, "model"), ResponseID: e.responseID,
		Stop: stopOf(text(message, "stop_reason"), claudeStops), Usage: claudeUsage(usage),
		Seen: seenElsewhere,
	}

	var further []jsonx.Member
	if rest := without(usage, "input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"); len(rest) > 0 {
		further = []jsonx.Member{{Name: "usage", Value: jsonx.Object(rest)}}
	}

	// The first line of a response makes the message. Further lines join it.
	target := e
	if whole := e.response; whole != nil && whole.responseID == e.responseID && e.responseID != "" && a.tree.byName[e.name] == nil {
		s.joinLine(a, whole, e, answer)
		target = whole
	} else {
		e.response, e.keeps = e, ""
		e.meta = s.metaOf(list, message, further)
		e.payload = node.Message{Role: content.Assistant, Answer: answer}

		// add drops a repeated line. Its blocks are in the message already.
		before := len(a.tree.entries)
		if err := a.tree.add(e); err != nil || len(a.tree.entries) == before {
			return err
		}
	}

	target.blocks = append(target.blocks, blocks.Slice()...)
	for _, call := range blocks.ToolUses() {
		s.called(a, call)
	}
	return nil
}

// joinLine adds a line to its message. The last line has the token counts and the stop reason of the response.
func (s *claudeSession) joinLine(a *agent, whole, e *entry, answer node.Answer) {
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

	// The children and the repetitions of this line find the message by the line's name.
	a.tree.byName[e.name], a.tree.bodies[e.name] = whole, e.body
	whole.parts = append(whole.parts, e.name)
}

// called records a tool call: it may have started a sub-agent.
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
	// The prompt is also the first message of the sub-agent; see claimByPrompt.
	if prompt := text(input, "prompt"); prompt != "" {
		s.prompts[prompt] = append(s.prompts[prompt], c)
	}
}

// user imports a line with the role user: a message, tool results, or the summary of a compaction.
func (s *claudeSession) user(a *agent, e *entry, list, message []jsonx.Member) error {
	blocks, err := s.place(e).list(get(message, "content"), anthropicBlock)
	if err != nil {
		return err
	}
	e.meta = s.metaOf(list, message, nil)

	// Only the summary of a compaction uses the inherited keeps. Lines below it must not inherit them again.
	keeps := e.keeps
	e.keeps = ""

	switch results := blocks.ToolResults(); {
	case isTrue(list, "isCompactSummary"):
		summary, err := summaryOf(s.place(e), blocks)
		if err != nil {
			return err
		}
		e.payload, e.keeps, e.response = node.Compaction{Summary: summary}, keeps, nil

	// e.response stays: the response may continue below a result.
	case len(results) > 0:
		e.payload = node.Message{Role: content.User, Blocks: blocks}
		e.details = get(list, "toolUseResult")
		if about, err := object(e.details); err == nil {
			s.ran(text(about, "agentId"), results[0].CallID)
		}
		// The details of a line and its sub-agent belong to the first result.
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

// summaryOf returns the allowed blocks of a summary.
func summaryOf(p place, blocks content.Blocks) (content.Blocks, error) {
	var list []content.Block
	for _, b := range blocks.All() {
		switch b.(type) {
		case content.ToolUse, content.CutToolUse, content.ToolResult, content.Thinking:
			p.note(noteLeftOut, "a summary cannot contain calls, results or thinking")
			continue
		}
		list = append(list, b)
	}
	return content.Of(list...)
}

// promote makes the first sub-agent the main conversation, for a file of only sub-agents.
func (s *claudeSession) promote() {
	if len(s.order) == 0 {
		return
	}
	records := s.main.tree.records
	s.main, s.order = s.order[0], s.order[1:]
	s.main.tree.records = append(records, s.main.tree.records...)
}

// build makes the nodes of all conversations, those of a sub-agent before those of its caller.
func (s *claudeSession) build() ([][]*node.Node, error) {
	// Calls named by the file come first: a sub-agent with the same prompt must not get the call of another.
	for _, a := range s.order {
		s.claimNamed(a)
	}
	for _, a := range s.order {
		if a.call == nil {
			s.claimByPrompt(a)
		}
	}

	for _, a := range s.calleesFirst() {
		branches, err := a.tree.build()
		if err != nil {
			return nil, err
		}

		var heads []*node.Node
		for _, h := range branches {
			heads = append(heads, h...)
		}

		if c := a.call; c != nil && c.result != nil && a.owner != nil {
			c.result.child = heads
			continue
		}
		s.keepAsSubGraph(a, heads, branches)
	}

	return s.main.tree.build()
}

// claimNamed assigns a sub-agent its call, as named by the file.
func (s *claudeSession) claimNamed(a *agent) {
	if c := s.calls[s.runs[a.name]]; c != nil && c.child == nil && c.agent != a {
		c.child, a.call, a.owner = a, c, c.agent
	}
}

// claimByPrompt assigns a sub-agent the first unassigned call with its prompt.
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

// calleesFirst returns the sub-agents, each before its caller. In a cycle of callers, one loses its caller.
func (s *claudeSession) calleesFirst() []*agent {
	order := make([]*agent, 0, len(s.order))
	var path []*agent
	for _, a := range s.order {
		for path = path[:0]; a != nil && a != s.main && a.state == unvisited; a = a.owner {
			a.state = visiting
			path = append(path, a)
		}

		// The walk met its own path, a cycle of callers. It is cut at the end of the path.
		if a != nil && a.state == visiting {
			path[len(path)-1].owner = nil
		}
		for i := len(path) - 1; i >= 0; i-- {
			path[i].state = visited
			order = append(order, path[i])
		}
	}

	// The walk above puts callers first.
	slices.Reverse(order)
	return order
}

// keepAsSubGraph keeps the conversation of a sub-agent as a sub-graph, because its call has no result or is not known.
func (s *claudeSession) keepAsSubGraph(a *agent, heads []*node.Node, branches [][]*node.Node) {
	in, sub := s.main, node.SubGraph{Title: "agent", Heads: node.ListOf(heads...)}
	if a.owner != nil && a.call != nil {
		in, sub.Title, sub.CallID = a.owner, a.call.tool, a.call.id
	} else {
		s.note(a.line, "", noteAssumed, "the call of this sub-agent is unknown; it became a sub-graph at the position of its first line")
	}

	if len(branches) > 0 {
		sub.Summary = dag.New().WithHeads(branches[0]...).Text()
	}

	in.tree.records = append(in.tree.records, extraNode{a.line, nodeSpec{
		name: "sub-agent " + a.name + " " + strconv.Itoa(a.line), line: a.line, payload: sub,
	}})
}

// claudeStops are Anthropic's names of stop reasons, where they differ from ours.
var claudeStops = map[content.Stop]string{content.StopContext: "model_context_window_exceeded"}

func claudeUsage(list []jsonx.Member) content.Usage {
	details, _ := object(get(list, "output_tokens_details"))
	return content.Usage{
		Input: count(list, "input_tokens"), Output: count(list, "output_tokens"),
		CacheRead: count(list, "cache_read_input_tokens"), CacheWrite: count(list, "cache_creation_input_tokens"),
		Reasoning: count(details, "thinking_tokens"),
	}
}

// claudeVersion is the version of Claude Code whose session was recorded.
const claudeVersion = "2.1.332"

// claudeCode writes a session.
func (x *exporter) claudeCode() {
	x.unset()
	x.only(anthropicAPI)
	w := &claudeWriter{exporter: x, used: map[string]bool{}}
	write := func(_ *spoken, b content.Block, c *called) any { return x.anthropicJSON(b, c) }

	x.each(write, func(s *spoken, parts []any) {
		message := fields{"role": s.role, "content": parts}
		if s.role == content.Assistant {
			w.response(message, s.answer)
		}
		w.add(message, s.time)

		var results []any
		ended := s.time
		for _, c := range s.calls {
			if c.answered {
				results, ended = append(results, w.result(c)), c.ended
			}
		}
		if len(results) > 0 {
			w.add(fields{"role": content.User, "content": results}, ended)
		}
	})
}

// claudeWriter is the state of an export.
type claudeWriter struct {
	*exporter
	last  any             // the uuid of the last line, or nil
	lines int             // how many there are
	used  map[string]bool // the IDs of responses
}

// add writes a message behind the last one.
func (w *claudeWriter) add(message fields, at time.Time) {
	w.lines++
	id := w.id("line")
	w.line(fields{
		"parentUuid": w.last, "uuid": id, "type": message["role"], "message": message, "timestamp": rfc(at),
		"isSidechain": false, "userType": "external", "cwd": w.opts.Folder, "sessionId": w.session.String(), "version": claudeVersion,
	})
	w.last = id
}

// id returns an ID for the last line.
func (w *claudeWriter) id(of string) string {
	return uuid.NewSHA1(w.session, []byte(of+" "+strconv.Itoa(w.lines))).String()
}

// response adds what is known about a response.
func (w *claudeWriter) response(message fields, a node.Answer) {
	// Claude Code takes two responses with the same ID as one.
	id := a.ResponseID
	if id == "" || w.used[id] {
		id = "msg_" + w.id("response")
		w.lose(LossAnswers, 1)
	}
	w.used[id] = true

	message["id"], message["type"], message["model"], message["stop_reason"] = id, "message", w.model(a), nil
	if a.Stop != "" {
		message["stop_reason"] = cmp.Or(claudeStops[a.Stop], string(a.Stop))
	}
	u := a.Usage
	message["usage"] = fields{
		"input_tokens": u.Input, "output_tokens": u.Output, "cache_read_input_tokens": u.CacheRead,
		"cache_creation_input_tokens": u.CacheWrite, "output_tokens_details": fields{"thinking_tokens": u.Reasoning},
	}
}

// result returns the result of a call.
func (w *claudeWriter) result(c called) any {
	result := fields{"type": "tool_result", "tool_use_id": c.id, "content": w.parts(c.result.Content.Slice(), nil, w.anthropicJSON)}
	if c.result.IsError {
		result["is_error"] = true
	}
	return w.with(result, c.result.Extra, anthropicAPI)
}
