package dag_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	_ "github.com/plait-dev/plait/internal/testkit/quick"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// The model is a conversation in plain slices and maps, written as the documentation says it and without any care for speed.
// Random operations are done on both, and everything that can be asked is compared after each.

type modelNode struct {
	parents  []int
	kind     string
	role     content.Role
	text     string // what it says, in the notation of spell
	calls    int
	index    int   // of an execution
	replaced []int // by a compaction
	results  bool  // a message of the user's side that holds a result
	begins   bool  // a turn of the user's begins with it
}

// model is every node that was ever made; versions share it.
type model struct {
	t     *testing.T
	rnd   *rand.Rand
	nodes []modelNode
	real  []*node.Node
	place map[node.ID]int
	said  int
}

// version is one value of the conversation, on both sides, and what was true of it when it was made.
type version struct {
	d     dag.DAG
	heads []int
	refs  map[string][]int
	then  string
}

func (m *model) add(n modelNode) int {
	m.nodes = append(m.nodes, n)
	m.real = append(m.real, nil)
	return len(m.nodes) - 1
}

// order is Nodes, by recursion.
func (m *model) order(heads []int) []int {
	var out []int
	seen := map[int]bool{}
	var visit func(int)
	visit = func(n int) {
		if !seen[n] {
			seen[n] = true
			for _, p := range m.nodes[n].parents {
				visit(p)
			}
			out = append(out, n)
		}
	}
	for _, h := range heads {
		visit(h)
	}
	return out
}

func (m *model) messages(heads []int) []string {
	order := m.order(heads)
	closed, owner, standsFor := map[int]bool{}, map[int]int{}, map[int]bool{}
	for _, i := range order {
		n := m.nodes[i]
		if n.results {
			for _, p := range n.parents {
				closed[p] = true
			}
		}
		for _, r := range n.replaced {
			if k := m.nodes[r].kind; slices.Contains(order, r) && (k == "message" || k == "tool_execution" || k == "compaction") {
				owner[r], standsFor[i] = i, true
			}
		}
	}
	var out []string
	spoken := map[int]bool{}
	for _, i := range order {
		n := m.nodes[i]
		if c, owned := owner[i]; owned {
			if _, gone := owner[c]; !gone && !spoken[c] {
				out = append(out, m.nodes[c].text)
			}
			spoken[c] = true
			continue
		}
		switch n.kind {
		case "message":
			out = append(out, n.text)
		case "tool_execution":
			if !closed[i] && !closed[n.parents[0]] {
				out = append(out, n.text)
			}
		case "compaction":
			if !standsFor[i] {
				out = append(out, n.text)
			}
		}
	}
	return out
}

func (m *model) tools(heads []int) []string {
	var names []string
	defs := map[string]string{}
	for _, i := range m.order(heads) {
		if name, def, ok := strings.Cut(m.nodes[i].text, "="); ok && m.nodes[i].kind == "tools" {
			if _, had := defs[name]; !had {
				names = append(names, name)
			}
			defs[name] = def
		}
	}
	for i, name := range names {
		names[i] = name + "=" + defs[name]
	}
	return names
}

// phase is the assistant's node that the heads stand at, and the executions among them by index.
func (m *model) phase(heads []int) (said int, done map[int]int, ok bool) {
	said, done = -1, map[int]int{}
	for _, h := range heads {
		at := h
		if m.nodes[h].kind == "tool_execution" {
			at = m.nodes[h].parents[0]
			if _, twice := done[m.nodes[h].index]; !twice {
				done[m.nodes[h].index] = h
			}
		}
		if said >= 0 && said != at {
			return 0, nil, false
		}
		said = at
	}
	return said, done, said >= 0 && m.nodes[said].calls > 0
}

// open counts the calls without a result at the heads, of each assistant's node that heads stand at.
func (m *model) open(heads []int) (open int) {
	branches := map[int][]int{}
	for _, h := range heads {
		at := h
		if m.nodes[h].kind == "tool_execution" {
			at = m.nodes[h].parents[0]
		}
		branches[at] = append(branches[at], h)
	}
	for _, branch := range branches {
		if said, done, ok := m.phase(branch); ok {
			open += m.nodes[said].calls - len(done)
		}
	}
	return open
}

func spell(messages []content.Message) []string {
	var out []string
	for _, m := range messages {
		text := string(m.Role) + ":"
		for _, b := range m.Blocks.All() {
			switch b := b.(type) {
			case content.Text:
				text += b.Text
			case content.ToolUse:
				text += "?" + b.ID
			case content.ToolResult:
				text += "!" + b.CallID + "=" + b.Content.Text()
			}
		}
		out = append(out, text)
	}
	return out
}

// after returns the version that d and heads are, and ties the model's new nodes to the real ones.
func (m *model) after(d dag.DAG, heads []int) version {
	require.NoError(m.t, d.Err())
	order, real := m.order(heads), d.Nodes()
	require.Len(m.t, real, len(order))
	for i, at := range order {
		if m.real[at] == nil {
			m.real[at] = real[i]
			m.place[real[i].ID()] = at
		}
		require.Same(m.t, m.real[at], real[i], "node %d in the order", i)
		require.Equal(m.t, m.nodes[at].kind, real[i].Kind())
		var parents []int
		for _, p := range real[i].Parents() {
			parents = append(parents, m.place[p.ID()])
		}
		require.Equal(m.t, m.nodes[at].parents, parents)
	}
	v := version{d: d, heads: heads}
	v.then = v.snapshot()
	m.check(v)
	return v
}

// snapshot is everything that is seen of a version from outside.
func (v version) snapshot() string {
	var b bytes.Buffer
	for _, n := range v.d.WithChildren() {
		b.Write(n.Append(nil))
		b.WriteByte('\n')
	}
	fmt.Fprintln(&b, v.d.Heads(), spell(v.d.Messages()), v.d.ToolDefs(), v.d.SystemPrompts())
	return b.String() + v.d.String()
}

// check compares what can be asked of a version with what the model says.
func (m *model) check(v version) {
	order := m.order(v.heads)
	if len(v.heads) == 0 {
		require.Empty(m.t, v.d.Heads())
	}
	for i, h := range v.d.Heads() {
		require.Equal(m.t, v.heads[i], m.place[h.ID()], "head %d", i)
	}
	require.Equal(m.t, len(order), v.d.Len())
	require.Equal(m.t, m.messages(v.heads), spell(v.d.Messages()))
	var defs []string
	for _, def := range v.d.ToolDefs() {
		defs = append(defs, def.Name+"="+def.Description)
	}
	require.Equal(m.t, m.tools(v.heads), defs)
	for range min(3, len(m.nodes)) {
		i := m.rnd.IntN(len(m.nodes))
		in := slices.Contains(order, i)
		require.Equal(m.t, in, v.d.Contains(m.real[i]), "Contains")
		require.Equal(m.t, in, v.d.Node(m.real[i].ID()) == m.real[i], "Node")
	}
	require.Len(m.t, v.d.OpenCalls(), m.open(v.heads))
	last := ""
	for _, i := range order {
		if n := m.nodes[i]; n.kind == "message" && n.role == content.Assistant {
			if text, _, _ := strings.Cut(strings.TrimPrefix(n.text, "assistant:"), "?"); text != "" {
				last = text
			}
		}
	}
	require.Equal(m.t, last, v.d.Text())
	require.True(m.t, dag.Equal(v.d, v.d))
	v.d.Validate()
}

func (m *model) word() string {
	m.said++
	return fmt.Sprint("w", m.said)
}

// pick returns up to n different members of from.
func (m *model) pick(from []int, n int) []int {
	from = slices.Clone(from)
	m.rnd.Shuffle(len(from), func(i, j int) { from[i], from[j] = from[j], from[i] })
	return from[:min(n, len(from))]
}

func (m *model) reals(at []int) []*node.Node {
	out := make([]*node.Node, len(at))
	for i, n := range at {
		out[i] = m.real[n]
	}
	return out
}

// step does one random operation on v; other is another version.
func (m *model) step(v, other version) version {
	one := func(n modelNode) []int {
		n.parents = slices.Clone(v.heads)
		return []int{m.add(n)}
	}
	order := m.order(v.heads)
	w := m.word()
	switch op := m.rnd.IntN(17); op {
	case 0:
		return m.after(v.d.System(w), one(modelNode{kind: "system", text: w}))
	case 1:
		tool := content.Tool{Name: fmt.Sprint("t", m.rnd.IntN(3)), Description: fmt.Sprint(m.rnd.IntN(3)), Schema: `{"type":"object"}`}
		def := tool.Name + "=" + tool.Description
		if slices.Contains(m.tools(v.heads), def) {
			return m.after(v.d.Tools(tool), v.heads)
		}
		return m.after(v.d.Tools(tool), one(modelNode{kind: "tools", text: def}))
	case 2, 3:
		return m.after(v.d.User(w), one(modelNode{kind: "message", role: content.User, text: "user:" + w, begins: true}))
	case 4, 5, 6:
		n := modelNode{kind: "message", role: content.Assistant, text: "assistant:" + w, calls: m.rnd.IntN(4)}
		var calls []content.Block
		for i := range n.calls {
			id := fmt.Sprint(w, ".", i)
			calls = append(calls, content.ToolUse{ID: id, Name: "t0", Input: "{}"})
			n.text += "?" + id
		}
		return m.after(v.d.Assistant(w, calls...), one(n))
	case 7:
		r := content.ToolResult{CallID: w, Content: content.Words("r")}
		return m.after(v.d.ToolResults(r), one(modelNode{kind: "message", role: content.User, text: "user:!" + w + "=r", results: true}))
	case 8: // fan out: executions, by hand or not, or a message after any nodes
		said, done, ok := m.phase(v.heads)
		if ok && m.rnd.IntN(2) == 0 {
			return m.execute(v, said, done)
		}
		if ok && len(done) < m.nodes[said].calls {
			call := v.d.OpenCalls()[0]
			n := modelNode{kind: "tool_execution", parents: []int{said}, index: call.Index, text: "user:!" + call.ID + "=" + w}
			d, _, err := v.d.AppendTo([]*node.Node{m.real[said]}, node.ToolExecution{CallID: call.ID, Index: call.Index, Result: content.Words(w)})
			require.NoError(m.t, err)
			return m.after(d, replaced(v.heads, n.parents, m.add(n)))
		}
		fallthrough
	case 9:
		parents := m.pick(order, 1+m.rnd.IntN(3))
		d, _, err := v.d.AppendTo(m.reals(parents), node.Message{Role: content.User, Blocks: content.Words(w)})
		if len(order) == 0 {
			require.NoError(m.t, err)
		}
		n := m.add(modelNode{kind: "message", role: content.User, text: "user:" + w, begins: true, parents: parents})
		if len(parents) == 0 {
			m.nodes[n].parents = nil
		}
		return m.after(d, replaced(v.heads, parents, n))
	case 10:
		said, done, ok := m.phase(v.heads)
		if !ok {
			require.ErrorIs(m.t, v.d.CloseTools().Err(), dag.ErrNoCalls)
			return v
		}
		return m.closeTools(v, said, done)
	case 11:
		heads := slices.Clone(v.heads)
		for _, h := range other.heads {
			if !slices.Contains(heads, h) {
				heads = append(heads, h)
			}
		}
		both := m.after(v.d.Join(other.d), heads)
		both.refs = m.joinedRefs(v, other)
		return both
	case 12:
		return m.back(v, order, 1+m.rnd.IntN(2))
	case 13:
		if len(order) == 0 {
			return v
		}
		at := order[m.rnd.IntN(len(order))]
		return m.after(v.d.At(m.real[at].ID()), []int{at})
	case 14:
		heads := m.pick(order, 1+m.rnd.IntN(2))
		return m.after(v.d.WithHeads(m.reals(append(heads, heads...))...), heads)
	case 15:
		switch m.rnd.IntN(3) {
		case 0:
			return m.after(v.d.Custom("note", w), one(modelNode{kind: "custom"}))
		case 1:
			return m.after(v.d.Stop(content.StopEndTurn), one(modelNode{kind: "stop_reason"}))
		}
		return m.after(v.d.SubGraph(w, other.d), one(modelNode{kind: "sub_graph"}))
	default:
		gone := m.pick(order, 1+m.rnd.IntN(4))
		var ids []node.ID
		for _, n := range m.reals(gone) {
			ids = append(ids, n.ID())
		}
		c := node.Compaction{Summary: content.Words(w), Replaced: node.ListOf(ids...)}
		return m.after(v.d.Append(c), one(modelNode{kind: "compaction", text: "user:" + w, replaced: gone}))
	}
}

func replaced(heads, parents []int, n int) []int {
	var out []int
	placed := false
	for _, h := range heads {
		if !slices.Contains(parents, h) {
			out = append(out, h)
		} else if !placed {
			out, placed = append(out, n), true
		}
	}
	if !placed {
		out = append(out, n)
	}
	return out
}

func (m *model) closeTools(v version, said int, done map[int]int) version {
	var given []node.ToolExecution
	text := "user:"
	var parents []int
	calls := v.d.Node(m.real[said].ID()).Payload().(node.Message).Blocks.ToolUses()
	spare := m.spare(v, done)
	for i, call := range calls {
		i++ // the text comes before the calls
		at, was := done[i]
		if !was {
			says := content.NoResult
			if m.rnd.IntN(2) == 0 {
				says = m.word()
				given = append(given, node.ToolExecution{Index: i, Result: content.Words(says)})
			}
			at = m.add(modelNode{kind: "tool_execution", parents: []int{said}, index: i, text: "user:!" + call.ID + "=" + says})
		}
		parents = append(parents, at)
		text += strings.TrimPrefix(m.nodes[at].text, "user:")
	}
	n := m.add(modelNode{kind: "message", role: content.User, text: text, results: true, parents: append(parents, spare...)})
	m.rnd.Shuffle(len(given), func(i, j int) { given[i], given[j] = given[j], given[i] })
	return m.after(v.d.CloseTools(given...), []int{n})
}

// execute carries out some of the calls that are open, or none.
func (m *model) execute(v version, said int, done map[int]int) version {
	var given []node.ToolExecution
	var heads []int
	for i, call := range m.real[said].Payload().(node.Message).Blocks.ToolUses() {
		i++ // the text comes before the calls
		at, was := done[i]
		if !was {
			if m.rnd.IntN(2) == 0 {
				continue
			}
			w := m.word()
			given = append(given, node.ToolExecution{Index: i, Result: content.Words(w)})
			at = m.add(modelNode{kind: "tool_execution", parents: []int{said}, index: i, text: "user:!" + call.ID + "=" + w})
		}
		heads = append(heads, at)
	}
	if len(given) == 0 {
		return m.after(v.d.AppendExecutions(), v.heads)
	}
	return m.after(v.d.AppendExecutions(given...), append(heads, m.spare(v, done)...))
}

// spare is the executions among the heads that no call counts as its own.
func (m *model) spare(v version, done map[int]int) []int {
	var spare []int
	for _, h := range v.heads {
		if m.nodes[h].kind == "tool_execution" && done[m.nodes[h].index] != h {
			spare = append(spare, h)
		}
	}
	return spare
}

func (m *model) back(v version, order []int, turns int) version {
	left := turns
	for i := len(order) - 1; i >= 0; i-- {
		if !m.nodes[order[i]].begins {
			continue
		}
		if left--; left > 0 {
			continue
		}
		d := v.d.Back(turns)
		var sinks, heads []int
		for _, at := range order[:i] {
			if !slices.ContainsFunc(order[:i], func(k int) bool { return slices.Contains(m.nodes[k].parents, at) }) {
				sinks = append(sinks, at)
			}
		}
		for _, h := range d.Heads() {
			heads = append(heads, m.place[h.ID()])
		}
		require.ElementsMatch(m.t, sinks, heads)
		return m.after(d, heads)
	}
	require.ErrorIs(m.t, v.d.Back(turns).Err(), dag.ErrNoExchange)
	return v
}

func TestRandomOperationsAgreeWithAPlainModel(t *testing.T) {
	trials, steps := seedtest.Rounds(40, 120), 50
	first := seedtest.First(t)
	for trial := range trials {
		seed := first + uint64(trial)
		if !t.Run("", func(t *testing.T) { randomOperations(t, seed, steps) }) {
			t.Fatalf("the failing round: PLAIT_SEED=%d", seed)
		}
	}
}

func randomOperations(t *testing.T, seed uint64, steps int) {
	m := &model{t: t, rnd: rand.New(rand.NewPCG(seed, 0)), place: map[node.ID]int{}}
	first := version{d: dag.New().WithSource(node.Counting(time.UnixMilli(1)))}
	first.then = first.snapshot()
	versions := []version{first}
	for range steps {
		v := versions[len(versions)-1]
		if m.rnd.IntN(5) == 0 {
			v = versions[m.rnd.IntN(len(versions))]
		}
		other, do := versions[m.rnd.IntN(len(versions))], m.step
		if m.rnd.IntN(4) == 0 {
			do = m.travel
		}
		next := do(v, other)
		if next.refs == nil { // most operations leave them as they are
			next.refs = v.refs
		}
		m.checkRefs(next)
		versions = append(versions, next)
		old := versions[m.rnd.IntN(len(versions))]
		require.Equal(t, old.then, old.snapshot(), "an older version changed")
	}
	for _, old := range versions {
		require.Equal(t, old.then, old.snapshot(), "an older version changed")
	}
	last := versions[len(versions)-1]
	var saved bytes.Buffer
	require.NoError(t, last.d.Write(&saved))
	loaded, err := dag.Read(&saved)
	require.NoError(t, err)
	require.True(t, dag.Equal(last.d, loaded), "a saved version says something else")
	require.Equal(t, spell(last.d.Messages()), spell(loaded.Messages()))
	require.Equal(t, refsOf(last.d), refsOf(loaded))
	for _, heads := range append(slices.Collect(maps.Values(last.refs)), last.heads) {
		for _, at := range m.order(heads) {
			n, err := loaded.Find(m.real[at].ID().String())
			require.NoError(t, err, "nothing that a name reaches is lost")
			require.Equal(t, m.real[at].Digest(), n.Digest())
		}
	}
	require.False(t, errors.Is(last.d.Err(), dag.ErrEmpty))
}
