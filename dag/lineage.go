package dag

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"weak"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/memo"
	"github.com/plait-dev/plait/internal/shared"
	"github.com/plait-dev/plait/node"
)

// transcriptCache is a cached transcript of one branch. It only grows at its end: the transcript of an earlier node is a prefix
// of it. A fork gets a lineage of its own.
//
// Nodes refer to a lineage weakly (see mark): it is kept only as long as it is read, and can be collected at any time.
type transcriptCache struct {
	mu sync.Mutex // guards all fields; a prefix of t in use by a reader never changes

	t         Transcript          // append only
	tools     map[string]int      // index in t.Tools, by name
	prompts   map[string]int      // index in t.System of each named prompt; -1 for an empty one
	summaries map[node.ID]summary // compactions with a summary message; never written after build and compacted
	summaryAt map[int]*node.Node  // the same compactions, by index in t.Messages
	systemBy  []origin            // the nodes of t.System
	toolBy    []origin            // the nodes of t.Tools
	retired   bool                // a prompt or a tool was replaced or withdrawn, and may come back
	rigid     bool                // a compaction names missing nodes, so later nodes may change earlier messages
	without   without             // the tools left out of t

	thinks bool       // a message holds thinking; its validity depends on everything before it
	lost   bool       // some thinking is stale
	seen   seenPrefix // the last DAG.Seen of a prefix

	sums map[any]sum // by key; see shared.Transcript.Sum
}

// summary is the position of a compaction's summary.
type summary struct {
	entry int // index of the summary in t.Messages
	own   int // number of messages before the compaction's own node
}

// seenPrefix is DAG.Seen of the first messages, with these numbers of system prompts and tools.
type seenPrefix struct {
	known                   bool
	system, tools, messages int
	value                   node.Seen
}

// sum is the total of the first messages.
type sum struct{ messages, total int }

// mark selects a prefix of a lineage: the transcript up to one node. Nodes remember it under markKey.
type mark struct {
	lineage                 weak.Pointer[transcriptCache]
	system, tools, messages int // lengths of the prefix
}

type markKey struct{ without without }

// wholeKey is the markKey of the transcript with all tools: an interface once, and not at each request.
var wholeKey any = markKey{}

// key returns the markKey of a transcript without these tools.
func (w without) key() any {
	if w == "" {
		return wholeKey
	}
	return markKey{w}
}

// without lists names of tools, sorted, each between commas; "" for none.
type without string

func withoutTools(names []string) without {
	if len(names) == 0 {
		return ""
	}
	return without("," + strings.Join(slices.Sorted(slices.Values(names)), ",") + ",")
}

// has reports whether w lists the tool. Names of tools have no commas.
func (w without) has(tool string) bool { return w != "" && strings.Contains(string(w), ","+tool+",") }

func init() {
	shared.Of = func(d any, names ...string) shared.Transcript {
		p, m := DAG{head: d.(*DAG).head, several: d.(*DAG).several}.lineageWithout(withoutTools(names))
		return p.share(m)
	}
}

// lineage returns a lineage, and its prefix with the transcript of the heads. If an ancestor still remembers its
// lineage, the cost is proportional to the nodes since then.
func (d DAG) lineage() (*transcriptCache, mark) { return d.lineageWithout("") }

// lineageWithout is lineage for the transcript without these tools.
func (d DAG) lineageWithout(w without) (*transcriptCache, mark) {
	// The transcript of several heads belongs to no node that could remember it.
	head := d.Head()
	if head == nil {
		p := d.build(w)
		return p, p.mark()
	}

	p, m := grown(head, w)
	if p == nil {
		p = d.build(w)
		m = p.mark()
	}

	// An execution remembers no lineage: later nodes decide whether its result is a message.
	if isExecution(head) {
		return p, m
	}
	if kept := memo.OfNode(head); kept.Get(w.key()) != any(m) {
		kept.Put(w.key(), m)
	}
	return p, m
}

// grown finds the latest ancestor that remembers a lineage, and returns the lineage extended up to head. It returns nil
// if there is none, or if the nodes since then change earlier messages.
func grown(head *node.Node, w without) (*transcriptCache, mark) {
	var fresh []*node.Node // the nodes after the ancestor, from the head backward
	n, key := head, w.key()
	for {
		if n == nil {
			return nil, mark{}
		}

		if m, ok := memo.OfNode(n).Get(key).(mark); ok {
			// It may have been collected; an earlier ancestor may have one still.
			if p := m.lineage.Value(); p != nil {
				if len(fresh) == 0 {
					return p, m
				}
				slices.Reverse(fresh)
				return p.extended(n, m, fresh)
			}
		}

		if n.Loader() != nil {
			return nil, mark{}
		}
		fresh = append(fresh, n)

		// At a merge of branches, the order of the nodes depends on the whole graph.
		below, simple := trunk(n)
		if !simple {
			return nil, mark{}
		}

		// A node with several parents closes a phase: its executions come between it and the message with the calls.
		for i := n.NumParents() - 1; i >= 0 && n.NumParents() > 1; i-- {
			fresh = append(fresh, n.Parent(i))
		}
		n = below
	}
}

// extended returns the lineage of base, with the nodes after base added in order. m is the mark of base. It returns nil
// if the nodes change earlier messages: the transcript must then be built from all nodes.
func (p *transcriptCache) extended(base *node.Node, m mark, fresh []*node.Node) (*transcriptCache, mark) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rigid {
		return nil, mark{}
	}

	// Another branch has extended the lineage beyond base: this branch needs its own.
	if m.system != len(p.t.System) || m.tools != len(p.t.Tools) || m.messages != len(p.t.Messages) {
		if p = p.fork(m); p == nil {
			return nil, mark{}
		}

		// Once base remembers the fork, other goroutines may find it. They wait until it is complete.
		p.mu.Lock()
		defer p.mu.Unlock()
		memo.OfNode(base).Put(p.without.key(), p.mark())
	}

	closed, compactions := map[node.ID]bool{}, 0 // the map of a small phase is on the stack
	addClosed(closed, fresh)
	first := len(p.t.Messages)
	for _, n := range fresh {
		// A node after a started call gives it a result, before other messages.
		if len(startedBefore(n)) > 0 {
			return nil, mark{}
		}

		switch payload := n.Payload().(type) {
		case node.System, node.Tools:
			// Prompts and tools come before all messages: a new one makes earlier thinking stale.
			if p.thinks || !p.declare(n, payload) {
				return nil, mark{}
			}
		case node.Message:
			p.t.Messages = append(p.t.Messages, content.Message{Role: payload.Role, Blocks: payload.Blocks})
			p.t.Nodes = append(p.t.Nodes, n)
		case node.ToolExecution:
			if sends(n, closed) {
				result, _ := content.Of(resultOf(n)) // no error: checked when the node was made
				p.t.add(n, content.User, result)
			}
		case node.Compaction:
			// Each compaction copies the transcript. Several at once are cheaper to build together.
			if compactions++; compactions > 1 {
				return nil, mark{}
			}
			if p = p.compacted(n, payload); p == nil {
				return nil, mark{}
			}

			// Fewer messages come before the others now: check all thinking again.
			first = 0
		}
	}
	p.markStale(first)
	return p, p.mark()
}

// addClosed adds the executions, and the nodes with calls, that have their results in a message among nodes. It adds
// none if there are no executions among nodes.
func addClosed(closed map[node.ID]bool, nodes []*node.Node) {
	if !slices.ContainsFunc(nodes, isExecution) {
		return
	}
	for _, n := range nodes {
		if m, ok := n.Message(); ok && m.Role == content.User && holdsResult(m.Blocks) {
			for i := range n.NumParents() {
				closed[n.Parent(i).ID()] = true
			}
		}
	}
}

// declare adds a system prompt or tools of n. If this would change an earlier prompt or tool, or if the prompt or a tool
// may have been declared before, it does nothing and returns false.
func (p *transcriptCache) declare(n *node.Node, payload node.Payload) bool {
	switch payload := payload.(type) {
	case node.System:
		// The prompt is there already: the same text, or no text again, changes nothing.
		if at, has := p.prompts[payload.Name]; has {
			return at < 0 && payload.Text == "" || at >= 0 && p.t.System[at] == payload.Text
		}
		if p.retired {
			return false
		}

		by := origin{n: n}
		if at := slices.Index(p.t.System, payload.Text); at >= 0 {
			by = p.systemBy[at]
		}
		p.prompt(payload, by)

	case node.Tools:
		// Check everything before anything is added: the caller may still build the transcript anew.
		for i := range payload.Withdrawn.Len() {
			if _, has := p.tools[payload.Withdrawn.At(i)]; has {
				return false
			}
		}

		for i := range payload.Defs.Len() {
			def := payload.Defs.At(i)
			if at, has := p.tools[def.Name]; has && p.t.Tools[at] != def || !has && p.retired {
				return false
			}
		}

		for i := range payload.Defs.Len() {
			p.tool(payload.Defs.At(i), origin{n, i})
		}
	}
	return true
}

// prompt adds a system prompt with a new name.
func (p *transcriptCache) prompt(prompt node.System, by origin) {
	at := -1
	if prompt.Text != "" {
		at = len(p.t.System)
		p.t.System, p.systemBy = append(p.t.System, prompt.Text), append(p.systemBy, by)
	}
	if prompt.Name != "" {
		p.name(prompt.Name, at)
	}
}

// name records the index of a named prompt.
func (p *transcriptCache) name(prompt string, at int) {
	if p.prompts == nil {
		p.prompts = map[string]int{}
	}
	p.prompts[prompt] = at
}

// tool adds a definition, unless it is there already. It skips the tools in p.without.
func (p *transcriptCache) tool(def content.Tool, by origin) {
	if _, has := p.tools[def.Name]; has || p.without.has(def.Name) {
		return
	}
	if p.tools == nil {
		p.tools = map[string]int{}
	}
	p.tools[def.Name] = len(p.t.Tools)
	p.t.Tools, p.toolBy = append(p.t.Tools, def), append(p.toolBy, by)
}

// fork returns a copy of the prefix m, or nil if it has to be built from all nodes. p.mu must be held.
func (p *transcriptCache) fork(m mark) *transcriptCache {
	// Thinking depends on everything before it, and thinks and lost are known only for all of p.
	if p.thinks {
		return nil
	}

	f := &transcriptCache{summaries: p.summaries, summaryAt: p.summaryAt, without: p.without, retired: p.retired}
	for name, at := range p.prompts {
		if at < 0 {
			return nil // an empty prompt has no index, so it may be in the prefix or after it
		}
		if at < m.system {
			f.name(name, at)
		}
	}

	f.t.System, f.systemBy = slices.Clone(p.t.System[:m.system]), slices.Clone(p.systemBy[:m.system])
	f.t.Messages, f.t.Nodes = slices.Clone(p.t.Messages[:m.messages]), slices.Clone(p.t.Nodes[:m.messages])
	for i, def := range p.t.Tools[:m.tools] {
		f.tool(def, p.toolBy[i])
	}
	for key, s := range p.sums {
		// A sum of more messages than the copy has is of no use to it.
		if s.messages <= m.messages {
			f.remember(key, s)
		}
	}
	return f
}

// compacted returns the lineage after the compaction n with payload c. It returns nil if c names nodes without a
// message: the transcript must then be built from all nodes. p.mu must be held.
func (p *transcriptCache) compacted(n *node.Node, c node.Compaction) *transcriptCache {
	// Nothing is removed: the summary is one more message at the end.
	if c.Replaced.Len() == 0 {
		f := p.fork(p.mark())
		if f != nil {
			f.t.add(n, content.User, c.Summary)
		}
		return f
	}

	removed, first, ok := p.replacedBy(c)
	if !ok {
		return nil
	}

	// Other readers hold a prefix of p, so build a new one instead of removing from it.
	f := &transcriptCache{
		tools: maps.Clone(p.tools), prompts: maps.Clone(p.prompts), without: p.without, retired: p.retired,
		summaries: map[node.ID]summary{}, summaryAt: map[int]*node.Node{},
	}
	f.t.System, f.t.Tools = slices.Clone(p.t.System), slices.Clone(p.t.Tools)
	f.systemBy, f.toolBy = slices.Clone(p.systemBy), slices.Clone(p.toolBy)

	// The summary takes the position of the first removed message.
	moved := make([]int, len(p.t.Messages)+1) // the new index of each message, or of the next kept one
	for i, m := range p.t.Messages {
		moved[i] = len(f.t.Messages)
		switch {
		case i == first:
			f.t.add(p.t.Nodes[i], content.User, c.Summary)
		case !removed[i]:
			// Take the blocks of the node: markStale checks again whether their thinking is valid.
			if message, ok := p.t.Nodes[i].Message(); ok && !p.isSummary(i) {
				m.Blocks = message.Blocks
			}
			f.t.Messages, f.t.Nodes = append(f.t.Messages, m), append(f.t.Nodes, p.t.Nodes[i])
		}
	}

	moved[len(p.t.Messages)] = len(f.t.Messages)

	// Drop removed summaries; the others have moved with their messages.
	for _, s := range p.summaries {
		if !removed[s.entry] {
			f.addSummary(p.summaryAt[s.entry], summary{moved[s.entry], moved[s.own]})
		}
	}
	if c.Summary.Len() > 0 {
		f.addSummary(n, summary{moved[first], len(f.t.Messages)})
	}
	return f
}

// replacedBy returns, by index, the messages replaced by c, and the index of the first one. It returns false if c names
// a node without a message in the transcript, or if its first named node has no message of its own.
func (p *transcriptCache) replacedBy(c node.Compaction) (removed []bool, first int, ok bool) {
	own, executions := p.index()
	removed = make([]bool, len(p.t.Messages))
	first = len(p.t.Messages)
	firstSummary, firstExecution := first, first

	for i := range c.Replaced.Len() {
		// A node has a message of its own, or is a compaction with a summary, or an execution beside a results message.
		id := c.Replaced.At(i)
		if at, ok := own[id]; ok {
			removed[at], first = true, min(first, at)
		} else if s, ok := p.summaries[id]; ok {
			removed[s.entry], firstSummary = true, min(firstSummary, s.own)
		} else if at, ok := executions[id]; ok {
			firstExecution = min(firstExecution, at)
		} else {
			return nil, 0, false
		}
	}

	// The summary has the position of the first named node, which is known only for a message of its own.
	return removed, first, first < firstSummary && first < firstExecution
}

// index returns the index of each node's own message, and for each execution the index of a message in its place. It
// leaves out an execution if its place depends on the order of all nodes.
func (p *transcriptCache) index() (own, executions map[node.ID]int) {
	own, executions = make(map[node.ID]int, len(p.t.Messages)), map[node.ID]int{}
	for i, n := range p.t.Nodes {
		if p.isSummary(i) {
			continue
		}
		own[n.ID()] = i

		// An execution comes after the node with its call and before its child. If these are neighbors, no message comes
		// between the execution and its child.
		if i == 0 || p.isSummary(i-1) {
			continue
		}
		for j := range n.NumParents() {
			if e := n.Parent(j); e.Loader() == nil && isExecution(e) && e.NumParents() > 0 && e.Parent(0) == p.t.Nodes[i-1] {
				executions[e.ID()] = i
			}
		}
	}
	return own, executions
}

func (p *transcriptCache) isSummary(i int) bool {
	_, is := p.summaryAt[i]
	return is
}

// addSummary records message s.entry as the summary of a compaction.
func (p *transcriptCache) addSummary(compaction *node.Node, s summary) {
	if p.summaries == nil {
		p.summaries, p.summaryAt = map[node.ID]summary{}, map[int]*node.Node{}
	}
	p.summaries[compaction.ID()], p.summaryAt[s.entry] = s, compaction
}

// markStale marks invalid thinking, in the messages from first on. p.mu must be held, unless p is not shared yet.
func (p *transcriptCache) markStale(first int) {
	for i := first; i < len(p.t.Messages); i++ {
		m, ok := p.t.Nodes[i].Message()

		// A summary is in the place of a node whose own message is not sent.
		if !ok || m.Role != content.Assistant || p.isSummary(i) || !thinks(m.Blocks) {
			continue
		}
		p.thinks = true

		// Thinking without a Seen is valid as long as no thinking before it is stale.
		recorded := m.Answer.Seen != (node.Seen{})
		valid := !p.lost
		if recorded {
			valid = p.seenOf(p.mark(), i) == m.Answer.Seen
		}
		if valid {
			continue
		}
		p.lost = p.lost || recorded

		// No reader has this message yet: since it was added, p was locked or not shared.
		p.t.Messages[i].Blocks = stale(m.Blocks)
	}
}

// seenOf returns DAG.Seen of the first messages of the prefix m. p.mu must be held, unless p is not shared yet.
func (p *transcriptCache) seenOf(m mark, messages int) node.Seen {
	s := p.seen

	// The remembered value can be continued if it has the same beginning and is not of a longer prefix.
	if !s.known || s.system != m.system || s.tools != m.tools || s.messages > messages {
		front := seenFront(p.systemBy[:m.system], p.toolBy[:m.tools])
		s = seenPrefix{known: true, system: m.system, tools: m.tools, value: front}
	}
	for ; s.messages < messages; s.messages++ {
		s.value = p.seenWith(s.value, s.messages)
	}

	// Keep the value of the longest prefix: the next request usually extends it.
	if s.messages >= p.seen.messages {
		p.seen = s
	}
	return s.value
}

func (p *transcriptCache) remember(key any, s sum) {
	if p.sums == nil {
		p.sums = map[any]sum{}
	}
	p.sums[key] = s
}

// mark returns a mark for all of p.
func (p *transcriptCache) mark() mark {
	return mark{lineage: weak.Make(p), system: len(p.t.System), tools: len(p.t.Tools), messages: len(p.t.Messages)}
}

// at returns the prefix m. Its slices are shared and must not be changed.
func (p *transcriptCache) at(m mark) Transcript {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Transcript{
		System: p.t.System[:m.system:m.system], Tools: p.t.Tools[:m.tools:m.tools],
		Messages: p.t.Messages[:m.messages:m.messages], Nodes: p.t.Nodes[:m.messages:m.messages],
	}
}

// declared returns the definition of the tool with this name in the prefix m.
func (p *transcriptCache) declared(m mark, name string) (content.Tool, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at, has := p.tools[name]; has && at < m.tools {
		return p.t.Tools[at], true
	}
	return content.Tool{}, false
}

// share returns the prefix m for package executor.
func (p *transcriptCache) share(m mark) shared.Transcript {
	t := p.at(m)
	return shared.Transcript{
		System: t.System, Tools: t.Tools, Messages: t.Messages, Nodes: t.Nodes, Facts: &facts{p, m},
	}
}

// facts is the shared.Facts of the prefix m of a lineage.
type facts struct {
	*transcriptCache
	m mark
}

func (f *facts) Summary(i int) (node.ID, bool) {
	if compaction, is := f.summaryAt[i]; is {
		return compaction.ID(), true
	}
	return node.ID{}, false
}

func (f *facts) Seen(goOn bool) node.Seen {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := f.seenOf(f.m, f.m.messages)
	if goOn {
		seen = seenAfter(seen, node.ID{}, seenGoOn)
	}
	return seen
}

func (f *facts) Sum(key any, count func([]content.Message) int) int {
	p, m, messages := f.transcriptCache, f.m, f.at(f.m).Messages
	if key == nil {
		return count(messages)
	}

	p.mu.Lock()
	s := p.sums[key]
	p.mu.Unlock()

	// Another branch has summed up more messages than the prefix has.
	if s.messages > m.messages {
		return count(messages)
	}

	// count is a function of the program: call it without the lock.
	if s.messages < m.messages {
		s = sum{m.messages, s.total + count(messages[s.messages:])}
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	// Another goroutine may have remembered a longer sum in the meantime.
	if p.sums[key].messages < s.messages {
		p.remember(key, s)
	}
	return s.total
}
