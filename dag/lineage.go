package dag

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"weak"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/shared"
	"github.com/plait-dev/plait/node"
)

// A lineage is the transcript of a branch, as far as somebody asked for it. It only grows at its end: the transcript of a later node
// takes what the node adds, and what an earlier one got stays as it is. A conversation that goes on elsewhere gets a lineage of its own.
//
// Nodes refer to it weakly (see mark), so that it is kept only while somebody reads it, and is collected as soon as memory is needed.
type lineage struct {
	mu sync.Mutex // guards all fields; a reader has a part of t that does not change

	t         Transcript           // append only
	tools     map[string]int       // index in t.Tools, by name
	prompts   map[string]int       // index in t.System of each named prompt; -1 for an empty one
	summaries map[node.ID]standing // compactions whose summary is a message; never written after build and compacted
	summaryAt map[int]node.ID      // the same, by index in t.Messages
	rigid     bool                 // a compaction names nodes that are not there, so later nodes may change what is there
	without   without              // the tools that are left out of t

	thinks bool  // a message holds thinking, which is judged by everything before it
	lost   bool  // some of it is stale
	seen   sight // how far the digest of what a model sees was computed

	sums map[any]sum // see shared.Transcript.Sum
}

// standing is where a compaction takes effect.
type standing struct {
	entry int // index of the message that its summary is
	own   int // how many messages come before the compaction's own node
}

// sight is the digest of the first messages, behind so many system prompts and tools.
type sight struct {
	known                   bool
	system, tools, messages int
	digest                  node.Digest
}

type sum struct{ messages, total int }

// mark is how much of a lineage is the transcript up to one node. Nodes remember it under markKey.
type mark struct {
	lineage                 weak.Pointer[lineage]
	system, tools, messages int
}

type markKey struct{ without without }

// without is the names of tools, sorted, each between commas; "" for none.
type without string

func withoutTools(names []string) without {
	if len(names) == 0 {
		return ""
	}
	return without("," + strings.Join(slices.Sorted(slices.Values(names)), ",") + ",")
}

// has reports whether the tool is one of w. The names of tools have no commas.
func (w without) has(tool string) bool { return w != "" && strings.Contains(string(w), ","+tool+",") }

func init() {
	shared.Of = func(heads []*node.Node, names ...string) shared.Transcript {
		p, m := DAG{heads: heads}.lineageWithout(withoutTools(names))
		return p.share(m)
	}
}

// lineage returns the transcript of the heads, as a part of what the result holds. Where a lineage of an ancestor is still remembered it
// costs no more than what is new since.
func (d DAG) lineage() (*lineage, mark) { return d.lineageWithout("") }

// lineageWithout is lineage, without these tools.
func (d DAG) lineageWithout(w without) (*lineage, mark) {
	if len(d.heads) != 1 {
		p := d.build(w)
		return p, p.mark()
	}

	head := d.heads[0]
	p, m := grown(head, w)
	if p == nil {
		p = d.build(w)
		m = p.mark()
	}
	// An execution is not marked: whether its result is a message of its own depends on what follows.
	if !isExecution(head) {
		head.Remember(markKey{w}, m)
	}
	return p, m
}

// grown returns the remembered lineage of the latest ancestor that has one, extended up to head; nil where there is none, or where what
// is new changes what is there.
func grown(head *node.Node, w without) (*lineage, mark) {
	var fresh []*node.Node // from the head back
	n := head
	for {
		if n == nil {
			return nil, mark{}
		}
		if m, ok := n.Recall(markKey{w}).(mark); ok {
			if p := m.lineage.Value(); p != nil {
				if len(fresh) == 0 {
					return p, m
				}
				slices.Reverse(fresh)
				return p.extended(n, m, fresh)
			}
		}

		fresh = append(fresh, n)
		below, simple := trunk(n)
		if !simple {
			return nil, mark{}
		}
		for i := n.NumParents() - 1; i >= 0 && n.NumParents() > 1; i-- {
			fresh = append(fresh, n.Parent(i))
		}
		n = below
	}
}

// extended returns the lineage that m marks at the node base with the nodes that follow base, in order; nil where they change what is there.
func (p *lineage) extended(base *node.Node, m mark, fresh []*node.Node) (*lineage, mark) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rigid {
		return nil, mark{}
	}

	// Another branch has gone on from here: this one needs a lineage of its own.
	if m.system != len(p.t.System) || m.tools != len(p.t.Tools) || m.messages != len(p.t.Messages) {
		if p = p.fork(m); p == nil {
			return nil, mark{}
		}

		// Once base remembers the fork, others may find it: they wait until it is whole.
		p.mu.Lock()
		defer p.mu.Unlock()
		base.Remember(markKey{p.without}, p.mark())
	}

	closed, compactions := closedBy(fresh), 0
	first := len(p.t.Messages)
	for _, n := range fresh {
		switch payload := n.Payload().(type) {
		case node.System, node.Tools:
			if p.thinks || !p.declare(payload) {
				return nil, mark{}
			}
		case node.Message:
			p.t.Messages = append(p.t.Messages, content.Message{Role: payload.Role, Blocks: payload.Blocks})
			p.t.Nodes = append(p.t.Nodes, n)
		case node.ToolExecution:
			if !closed[n.ID()] && (n.NumParents() == 0 || !closed[n.Parent(0).ID()]) {
				answer, _ := content.Of(resultOf(n)) // its parts were checked when the node was made
				p.t.say(n, content.User, answer)
			}
		case node.Compaction:
			// Each costs as much as the transcript is long. Many at once are cheaper to do together.
			if compactions++; compactions > 1 {
				return nil, mark{}
			}
			if p = p.compacted(n, payload); p == nil {
				return nil, mark{}
			}
			first = 0
		}
	}
	p.judge(first)
	return p, p.mark()
}

// closedBy returns the nodes whose results a message among nodes holds.
func closedBy(nodes []*node.Node) map[node.ID]bool {
	var closed map[node.ID]bool
	if !slices.ContainsFunc(nodes, isExecution) {
		return nil
	}
	for _, n := range nodes {
		if m, ok := n.Message(); ok && m.Role == content.User && holdsResult(m.Blocks) {
			if closed == nil {
				closed = map[node.ID]bool{}
			}
			for i := range n.NumParents() {
				closed[n.Parent(i).ID()] = true
			}
		}
	}
	return closed
}

// declare adds a system prompt or tools. It reports false, and has changed nothing, where that changes what is there.
func (p *lineage) declare(payload node.Payload) bool {
	switch payload := payload.(type) {
	case node.System:
		if at, has := p.prompts[payload.Name]; has {
			return at < 0 && payload.Text == "" || at >= 0 && p.t.System[at] == payload.Text
		}
		p.prompt(payload)
	case node.Tools:
		for i := range payload.Withdrawn.Len() {
			if _, has := p.tools[payload.Withdrawn.At(i)]; has {
				return false
			}
		}
		for i := range payload.Defs.Len() {
			def := payload.Defs.At(i)
			if at, has := p.tools[def.Name]; has && p.t.Tools[at] != def {
				return false
			}
		}
		for i := range payload.Defs.Len() {
			p.tool(payload.Defs.At(i))
		}
	}
	return true
}

// prompt adds a system prompt whose name is new.
func (p *lineage) prompt(prompt node.System) {
	at := -1
	if prompt.Text != "" {
		at = len(p.t.System)
		p.t.System = append(p.t.System, prompt.Text)
	}
	if prompt.Name != "" {
		p.name(prompt.Name, at)
	}
}

func (p *lineage) name(prompt string, at int) {
	if p.prompts == nil {
		p.prompts = map[string]int{}
	}
	p.prompts[prompt] = at
}

// tool adds a definition, or puts it in the place of the one with its name. One that is left out adds nothing.
func (p *lineage) tool(def content.Tool) {
	if p.without.has(def.Name) {
		return
	}
	if at, has := p.tools[def.Name]; has {
		p.t.Tools[at] = def
		return
	}
	if p.tools == nil {
		p.tools = map[string]int{}
	}
	p.tools[def.Name] = len(p.t.Tools)
	p.t.Tools = append(p.t.Tools, def)
}

// fork returns a copy of what m marks; nil where it has to be built anew. p.mu must be held.
func (p *lineage) fork(m mark) *lineage {
	if p.thinks {
		return nil
	}
	f := &lineage{summaries: p.summaries, summaryAt: p.summaryAt, without: p.without}
	for name, at := range p.prompts {
		if at < 0 {
			return nil // before m or after it: its index does not tell
		}
		if at < m.system {
			f.name(name, at)
		}
	}
	f.t.System = slices.Clone(p.t.System[:m.system])
	f.t.Messages, f.t.Nodes = slices.Clone(p.t.Messages[:m.messages]), slices.Clone(p.t.Nodes[:m.messages])
	for _, def := range p.t.Tools[:m.tools] {
		f.tool(def)
	}
	for key, s := range p.sums {
		if s.messages <= m.messages {
			f.remember(key, s)
		}
	}
	return f
}

// compacted returns the transcript after the compaction n, whose payload is c; nil where it has to be built anew, because c names nodes
// that are no messages of the transcript. p.mu must be held.
func (p *lineage) compacted(n *node.Node, c node.Compaction) *lineage {
	if c.Replaced.Len() == 0 {
		f := p.fork(p.mark())
		if f != nil {
			f.t.say(n, content.User, c.Summary)
		}
		return f
	}

	// Which messages go, and which is the first: the summary takes its place.
	own, executions := p.index()
	gone := make([]bool, len(p.t.Messages))
	first, limit := len(p.t.Messages), len(p.t.Messages)
	earliest := len(p.t.Messages) // message of the first execution that is named
	for i := range c.Replaced.Len() {
		id := c.Replaced.At(i)
		if at, ok := own[id]; ok {
			gone[at], first = true, min(first, at)
		} else if s, ok := p.summaries[id]; ok {
			gone[s.entry], limit = true, min(limit, s.own)
		} else if at, ok := executions[id]; ok {
			earliest = min(earliest, at)
		} else {
			return nil
		}
	}
	if first >= limit || earliest <= first {
		return nil // the first is not a message of its own
	}

	f := &lineage{
		tools: maps.Clone(p.tools), prompts: maps.Clone(p.prompts), summaries: map[node.ID]standing{}, summaryAt: map[int]node.ID{},
		without: p.without,
	}
	f.t.System, f.t.Tools = slices.Clone(p.t.System), slices.Clone(p.t.Tools)
	now := make([]int, len(p.t.Messages)+1) // how many messages are left before each
	for i, m := range p.t.Messages {
		now[i] = len(f.t.Messages)
		switch {
		case i == first:
			f.t.say(p.t.Nodes[i], content.User, c.Summary)
		case !gone[i]:
			// As it was when it was new: whether its thinking is stale is judged again.
			if said, ok := p.t.Nodes[i].Message(); ok && !p.isSummary(i) {
				m.Blocks = said.Blocks
			}
			f.t.Messages, f.t.Nodes = append(f.t.Messages, m), append(f.t.Nodes, p.t.Nodes[i])
		}
	}
	now[len(p.t.Messages)] = len(f.t.Messages)

	for id, s := range p.summaries {
		if !gone[s.entry] {
			f.stand(id, standing{now[s.entry], now[s.own]})
		}
	}
	if c.Summary.Len() > 0 {
		f.stand(n.ID(), standing{now[first], len(f.t.Messages)})
	}
	return f
}

// index returns, by node, the messages that are the node's own, and those that hold the results of executions.
func (p *lineage) index() (own, executions map[node.ID]int) {
	own, executions = make(map[node.ID]int, len(p.t.Messages)), map[node.ID]int{}
	for i, n := range p.t.Nodes {
		if p.isSummary(i) {
			continue
		}
		own[n.ID()] = i
		for j := range n.NumParents() {
			if isExecution(n.Parent(j)) {
				executions[n.Parent(j).ID()] = i
			}
		}
	}
	return own, executions
}

func (p *lineage) isSummary(i int) bool {
	_, is := p.summaryAt[i]
	return is
}

func (p *lineage) stand(id node.ID, s standing) {
	if p.summaries == nil {
		p.summaries, p.summaryAt = map[node.ID]standing{}, map[int]node.ID{}
	}
	p.summaries[id], p.summaryAt[s.entry] = s, id
}

// judge marks the thinking in the messages from first on that does not hold. p.mu must be held, or p not shared yet.
func (p *lineage) judge(first int) {
	for i := first; i < len(p.t.Messages); i++ {
		m, ok := p.t.Nodes[i].Message()
		if !ok || m.Role != content.Assistant || p.isSummary(i) || !thinks(m.Blocks) {
			continue
		}
		p.thinks = true
		if seen := m.Answer.Seen; seen == (node.Digest{}) && !p.lost || seen != (node.Digest{}) && p.sightOf(p.mark(), i) == seen {
			continue
		} else if seen != (node.Digest{}) {
			p.lost = true
		}
		p.t.Messages[i].Blocks = stale(m.Blocks)
	}
}

// sightOf returns Transcript.Seen of the first messages of what m marks. p.mu must be held, or p not shared yet.
func (p *lineage) sightOf(m mark, messages int) node.Digest {
	s := p.seen
	if !s.known || s.system != m.system || s.tools != m.tools || s.messages > messages {
		front := Transcript{System: p.t.System[:m.system], Tools: p.t.Tools[:m.tools]}
		s = sight{known: true, system: m.system, tools: m.tools, digest: front.front()}
	}
	for ; s.messages < messages; s.messages++ {
		s.digest = seenAfter(s.digest, p.t.Messages[s.messages])
	}
	// An earlier node's is not kept: the next question is most often about the last.
	if s.messages >= p.seen.messages {
		p.seen = s
	}
	return s.digest
}

func (p *lineage) remember(key any, s sum) {
	if p.sums == nil {
		p.sums = map[any]sum{}
	}
	p.sums[key] = s
}

// mark marks all of p.
func (p *lineage) mark() mark {
	return mark{lineage: weak.Make(p), system: len(p.t.System), tools: len(p.t.Tools), messages: len(p.t.Messages)}
}

// at returns the part of p that m marks. It is shared.
func (p *lineage) at(m mark) Transcript {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Transcript{
		System: p.t.System[:m.system:m.system], Tools: p.t.Tools[:m.tools:m.tools],
		Messages: p.t.Messages[:m.messages:m.messages], Nodes: p.t.Nodes[:m.messages:m.messages],
	}
}

// declared returns the definition of the tool of that name in what m marks.
func (p *lineage) declared(m mark, name string) (content.Tool, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at, has := p.tools[name]; has && at < m.tools {
		return p.t.Tools[at], true
	}
	return content.Tool{}, false
}

// share returns what m marks for package executor.
func (p *lineage) share(m mark) shared.Transcript {
	t := p.at(m)
	return shared.Transcript{
		System: t.System, Tools: t.Tools, Messages: t.Messages, Nodes: t.Nodes,
		Summary: func(i int) (node.ID, bool) {
			id, is := p.summaryAt[i]
			return id, is
		},
		Seen: func(after ...content.Message) node.Digest {
			p.mu.Lock()
			defer p.mu.Unlock()
			seen := p.sightOf(m, m.messages)
			for _, a := range after {
				seen = seenAfter(seen, a)
			}
			return seen
		},
		Sum: func(key any, count func([]content.Message) int) int { return p.sum(m, t.Messages, key, count) },
	}
}

// sum is shared.Transcript.Sum of the messages, which m marks.
func (p *lineage) sum(m mark, messages []content.Message, key any, count func([]content.Message) int) int {
	if key == nil {
		return count(messages)
	}
	p.mu.Lock()
	s := p.sums[key]
	p.mu.Unlock()
	if s.messages > m.messages {
		return count(messages)
	}

	// Count is the program's own, so no lock is held.
	if s.messages < m.messages {
		s = sum{m.messages, s.total + count(messages[s.messages:])}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sums[key].messages < s.messages {
		p.remember(key, s)
	}
	return s.total
}
