package dag_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// The conversations of the random model are redacted, pruned, saved and loaded at random. Each of its operations says a word that no
// other says, so that it can be told exactly which words have to be gone and which have to be there.

func TestRandomRedactionsEraseTheirTextOnly(t *testing.T) {
	trials := seedtest.Rounds(25, 150)
	first := seedtest.First(t)
	for trial := range trials {
		seed := first + uint64(trial)
		if !t.Run("", func(t *testing.T) { randomRedactions(t, seed) }) {
			t.Fatalf("the failing round: PLAIT_SEED=%d", seed)
		}
	}
}

func randomRedactions(t *testing.T, seed uint64) {
	m := &model{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), place: map[node.ID]int{}}
	versions := []version{{d: dag.New().WithSource(node.Counting(time.UnixMilli(1)))}}
	for range 40 {
		v := versions[len(versions)-1]
		if m.rnd.IntN(5) == 0 {
			v = versions[m.rnd.IntN(len(versions))]
		}
		v = m.step(v, versions[m.rnd.IntN(len(versions))])
		if m.rnd.IntN(6) == 0 {
			v.d = v.d.WithRef(fmt.Sprint("ref", m.rnd.IntN(3)))
		}
		versions = append(versions, v)
	}
	for range 4 {
		d := versions[m.rnd.IntN(len(versions))].d
		if m.rnd.IntN(2) == 0 {
			d = read(t, m.beheaded(written(t, d)))
		}
		for range 3 {
			d = m.redact(d)
		}
		m.prune(d)
	}
	for _, v := range versions {
		if v.then != "" {
			require.Equal(t, v.then, v.snapshot(), "an older version changed")
		}
	}
}

// beheaded returns a file with some of its heads only, so that nodes are out of reach.
func (m *model) beheaded(text string) string {
	i := strings.Index(text, `"heads":[`) + len(`"heads":[`)
	j := i + strings.IndexByte(text[i:], ']')
	ids := strings.Split(text[i:j], ",")
	return text[:i] + strings.Join(ids[:m.rnd.IntN(len(ids)+1)], ",") + text[j:]
}

var word = regexp.MustCompile(`"(w\d+)"`)

// words is every word that the saved form holds.
func words(text string) map[string]bool {
	found := map[string]bool{}
	for _, w := range word.FindAllStringSubmatch(text, -1) {
		found[w[1]] = true
	}
	return found
}

// said is the words that are n's own: the ids of calls and the summaries of sub-graphs, which are another's, are not.
func ownWords(n *node.Node) []string {
	blocks := func(b content.Blocks) []string {
		out := strings.Fields(b.Text())
		for _, r := range b.ToolResults() {
			out = append(out, strings.Fields(r.Content.Text())...)
		}
		return out
	}
	switch p := n.Payload().(type) {
	case node.System:
		return []string{p.Text}
	case node.Message:
		return blocks(p.Blocks)
	case node.ToolExecution:
		return blocks(p.Result)
	case node.SubGraph:
		return []string{p.Title}
	case node.Compaction:
		return blocks(p.Summary)
	case node.Custom:
		return []string{strings.Trim(string(p.JSON), `"`)}
	}
	return nil
}

// nodesOf is every node that is saved with d.
func nodesOf(d dag.DAG) []*node.Node {
	all := d.WithHeads(append(d.Heads(), d.Unreachable().Nodes...)...)
	for _, r := range d.Refs() {
		all = all.WithHeads(append(all.Heads(), r.Heads...)...)
	}
	return all.WithChildren()
}

// shape is a transcript without its words.
func shape(d dag.DAG) []string {
	var out []string
	for _, m := range d.Messages() {
		s := string(m.Role)
		for _, b := range m.Blocks.All() {
			switch b := b.(type) {
			case content.Text:
				s += " text"
			case content.ToolUse:
				s += " ?" + b.ID + b.Name
			case content.ToolResult:
				s += fmt.Sprint(" !", b.CallID, b.IsError, b.Content.Len())
			}
		}
		out = append(out, s)
	}
	return out
}

func judged(d dag.DAG) []string {
	var out []string
	for _, f := range d.Validate() {
		out = append(out, f.Node.String()+string(f.Kind))
	}
	return out
}

// redact redacts some nodes of d and returns the new conversation, or the same as it was saved and loaded.
func (m *model) redact(d dag.DAG) dag.DAG {
	t, all := m.t, nodesOf(d)
	if len(all) == 0 {
		return d
	}
	m.rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	named := all[:1+m.rnd.IntN(min(4, len(all)))]
	before := written(t, d)
	stay := words(before)
	var gone []string
	for _, n := range named {
		for _, w := range ownWords(n) {
			if stay[w] {
				gone = append(gone, w)
			}
			delete(stay, w)
		}
	}
	for _, n := range all { // the ids of calls stay, and may be words
		if msg, ok := n.Message(); ok {
			for _, r := range msg.Blocks.ToolResults() {
				if words(before)[r.CallID] {
					stay[r.CallID] = true
				}
			}
		}
	}
	got := d.Redact(ids(named)...)
	require.NoError(t, got.Err())
	require.Equal(t, before, written(t, d), "the old value changed")
	after := written(t, got)
	require.Equal(t, stay, words(after))
	for _, w := range gone {
		require.NotRegexp(t, `(^|[^0-9A-Za-z])`+w+`($|[^0-9.])`, got.String())
	}
	again := read(t, after)
	require.Equal(t, after, written(t, again))
	for _, now := range []dag.DAG{got, again} {
		m.same(d, now)
		for _, n := range named {
			require.Contains(t, ids(now.Verify().Redacted), n.ID())
		}
	}
	twice := got.Redact(ids(named)...)
	require.Equal(t, after, written(t, twice))
	require.Equal(t, got.Heads(), twice.Heads())
	if m.rnd.IntN(2) == 0 {
		return again
	}
	return got
}

// same compares a conversation with itself after redaction.
func (m *model) same(d, now dag.DAG) {
	t := m.t
	require.Equal(t, ids(nodesOf(d)), ids(nodesOf(now)))
	for i, n := range nodesOf(d) {
		require.Equal(t, n.Depth(), nodesOf(now)[i].Depth())
	}
	v := now.Verify()
	require.True(t, v.OK(), v)
	require.Equal(t, shape(d), shape(now))
	require.Equal(t, judged(d), judged(now))
	rules := dialect.Rules{}
	repaired, notes := dialect.Repair(now.Messages(), rules)
	_, notesBefore := dialect.Repair(d.Messages(), rules)
	require.Len(t, notes, len(notesBefore))
	again, notes := dialect.Repair(repaired, rules)
	require.Empty(t, notes)
	require.Equal(t, spell(repaired), spell(again))
	if turns := m.rnd.IntN(3); d.Back(turns).Err() == nil {
		d, now = d.Back(turns), now.Back(turns)
	}
	d, now = d.User("go on").Assistant("", content.ToolUse{ID: "z", Name: "f"}).CloseTools(), now.User("go on").Assistant("", content.ToolUse{ID: "z", Name: "f"}).CloseTools()
	require.Len(t, nodesOf(now), len(nodesOf(d)), "both go on the same")
	require.Equal(t, len(d.OpenCalls()), len(now.OpenCalls()))
}

// prune compares Prune with a search by recursion.
func (m *model) prune(d dag.DAG) {
	t := m.t
	reached := map[node.ID]bool{}
	var visit func(n *node.Node)
	visit = func(n *node.Node) {
		if reached[n.ID()] {
			return
		}
		reached[n.ID()] = true
		for _, p := range append(n.Parents(), n.Children().Slice()...) {
			visit(p)
		}
	}
	for _, h := range d.Heads() {
		visit(h)
	}
	for _, r := range d.Refs() {
		for _, h := range r.Heads {
			visit(h)
		}
	}
	before, u := written(t, d), d.Unreachable()
	pruned := d.Prune()
	after := written(t, pruned)
	var left, lost []node.ID
	for _, n := range nodesOf(d) {
		if reached[n.ID()] {
			left = append(left, n.ID())
		}
	}
	for _, n := range u.Nodes {
		lost = append(lost, n.ID())
		require.False(t, reached[n.ID()])
	}
	require.ElementsMatch(t, left, ids(nodesOf(pruned)))
	require.Equal(t, len(lines(before))-len(lost), len(lines(after)))
	require.Equal(t, before, written(t, d))
	require.True(t, dag.Equal(d, pruned))
	require.Equal(t, spell(d.Messages()), spell(pruned.Messages()))
	require.Empty(t, pruned.Verify().Findings)
	if len(left) > 0 && bytes.Contains([]byte(before), []byte(`"created"`)) && slices.Equal(ids(nodesOf(d))[:1], ids(nodesOf(pruned))[:1]) {
		require.Equal(t, int64(len(before)-len(after)), u.Bytes)
	}
	require.Equal(t, after, written(t, read(t, after)))
}
