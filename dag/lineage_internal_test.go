package dag

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// TestTranscriptThatGrewEqualsOneFromAllNodes takes random steps, forks and compactions, and compares each transcript that goes on from
// an earlier one with one that is built from all nodes.
func TestTranscriptThatGrewEqualsOneFromAllNodes(t *testing.T) {
	rounds := seedtest.Rounds(25, 150)
	first, grew := seedtest.First(t), 0
	for round := range rounds {
		seed := first + uint64(round)
		r := rand.New(rand.NewPCG(seed, 1))
		pool := []DAG{New().User("Hello")}
		for step := range 60 {
			d := randomStep(r, pool[r.IntN(len(pool))], pool)
			require.NoError(t, d.Err())
			if len(d.heads()) == 1 {
				if p, _ := grown(d.heads()[0], ""); p != nil {
					grew++
				}
			}
			same(t, d, fmt.Sprintf("PLAIT_SEED=%d, step %d", seed, step))
			if r.IntN(3) == 0 {
				pool = append(pool, d)
			} else {
				pool[r.IntN(len(pool))] = d
			}
			if r.IntN(40) == 0 {
				runtime.GC() // drops what is remembered
			}
		}
	}
	require.Greater(t, grew, rounds*20, "most transcripts go on from an earlier one")
}

func same(t *testing.T, d DAG, where string) {
	t.Helper()
	whole := d.build("")
	want, got := whole.t, d.Transcript()
	require.Equal(t, copied(want.System), got.System, where)
	require.Equal(t, copied(want.Tools), got.Tools, where)
	require.Len(t, got.Messages, len(want.Messages), where)
	for i := range want.Messages {
		require.Equal(t, want.Messages[i].Role, got.Messages[i].Role, where)
		require.True(t, want.Messages[i].Blocks.Equal(got.Messages[i].Blocks), "%s: message %d", where, i)
		require.Equal(t, want.Nodes[i].ID(), got.Nodes[i].ID(), "%s: message %d", where, i)
	}
	p, m := d.lineage()
	require.Equal(t, whole.seenOf(whole.mark(), len(want.Messages)), p.share(m).Seen(false), where)
	count := func(list []content.Message) (bytes int) {
		for _, m := range list {
			bytes += len(m.Blocks.Text())
		}
		return bytes
	}
	require.Equal(t, count(got.Messages), p.share(m).Sum("count", count), where)

	// The same, where a tool is left out.
	whole = DAG{}.atAll(d.heads()).build(someTool)
	left := whole.t
	p, m = d.lineageWithout(someTool)
	got = p.at(m)
	require.Equal(t, copied(left.Tools), copied(got.Tools), where)
	require.Equal(t, copied(left.System), copied(got.System), where)
	require.Equal(t, whole.seenOf(whole.mark(), len(left.Messages)), p.share(m).Seen(false), where)
	for i := range left.Messages {
		require.True(t, left.Messages[i].Blocks.Equal(got.Messages[i].Blocks), "%s: message %d", where, i)
	}
}

// someTool is the tools that are left out of a transcript.
var someTool = withoutTools([]string{"tool2", "tool1"})

func randomStep(r *rand.Rand, d DAG, pool []DAG) DAG {
	if len(d.OpenCalls()) > 0 {
		results := []node.ToolExecution{{Result: content.Words("one")}, {Index: 1, Result: content.Words("two")}}
		switch r.IntN(4) {
		case 0:
			return d.User("Never mind.")
		case 1:
			if next := d.AppendExecutions(results[r.IntN(2)]); next.Err() == nil {
				return next
			}
			return d.CloseTools()
		case 2:
			return d.ToolResults(content.ToolResult{CallID: "a", Content: content.Words("by hand")})
		}
		if len(d.heads()) > 1 || isExecution(d.heads()[0]) {
			return d.CloseTools()
		}
		return d.CloseTools(results...)
	}
	switch r.IntN(14) {
	case 13: // a message after any nodes, or a merge of them
		nodes := d.Nodes()
		var parents []*node.Node
		for range 1 + r.IntN(3) {
			if n := nodes[r.IntN(len(nodes))]; !slices.Contains(parents, n) {
				parents = append(parents, n)
			}
		}
		next, _, err := d.AppendTo(parents, node.Message{Role: content.User, Blocks: content.Words("After all")})
		if err != nil {
			return d.User("Refused")
		}
		return next
	case 0:
		prompt := node.System{Text: fmt.Sprint("system ", r.IntN(3))}
		if r.IntN(3) == 0 {
			prompt.Name = fmt.Sprint("prompt ", r.IntN(3))
		}
		if r.IntN(6) == 0 {
			prompt.Text = ""
		}
		return d.step("System", prompt)
	case 1:
		if r.IntN(4) == 0 {
			return d.step("Tools", node.Tools{Withdrawn: node.ListOf(fmt.Sprint("tool", r.IntN(4)))})
		}
		return d.step("Tools", node.Tools{Defs: node.ListOf(content.Tool{
			Name: fmt.Sprint("tool", r.IntN(4)), Description: fmt.Sprint(r.IntN(2)), Schema: `{"type":"object"}`,
		})})
	case 2:
		return d.Custom("acme.x", 1)
	case 3, 4:
		return d.Assistant("", content.ToolUse{ID: "a", Name: "f", Input: `{}`}, content.ToolUse{ID: "b", Name: "f", Input: `{}`})
	case 5:
		blocks, _ := content.Of(content.Thinking{Text: "hm", Signature: "s"}, content.Text{Text: "So."})
		seen := d.Seen()
		switch r.IntN(4) {
		case 0:
			seen = node.Seen{}
		case 1:
			seen = unseen
		case 2:
			p, m := d.lineageWithout(someTool)
			seen = p.share(m).Seen(false)
		}
		return d.Append(node.Message{Role: content.Assistant, Blocks: blocks, Answer: node.Answer{Seen: seen}})
	case 6, 7:
		return randomCompaction(r, d)
	case 8:
		if other := pool[r.IntN(len(pool))]; r.IntN(4) == 0 && len(other.OpenCalls()) == 0 {
			return d.Join(other).User("Both?")
		}
		return d.Assistant("Yes.")
	case 9, 10:
		return d.Assistant("Yes.")
	}
	return d.User("And then?")
}

// randomCompaction replaces some of the messages: one after the other, as executor.Compaction does, or anything.
func randomCompaction(r *rand.Rand, d DAG) DAG {
	p, _ := d.lineage()
	t := d.Transcript()
	if len(t.Nodes) == 0 {
		return d.User("Hello")
	}
	c := node.Compaction{Summary: content.Words(fmt.Sprint("summary ", r.IntN(1000)))}
	if r.IntN(10) == 0 {
		c.Summary = content.Blocks{}
	}
	var ids []node.ID
	first := r.IntN(len(t.Nodes))
	end := first + r.IntN(len(t.Nodes)-first+1)
	for i := first; i < end; i++ {
		n := t.Nodes[i]
		if compaction, is := p.summaryAt[i]; is && r.IntN(5) > 0 {
			ids = append(ids, compaction.ID())
			continue
		}
		if n.NumParents() > 0 && isExecution(n.Parent(0)) && r.IntN(2) == 0 {
			ids = append(ids, n.Parent(0).ID())
		}
		ids = append(ids, n.ID())
	}
	if r.IntN(15) == 0 {
		ids = append(ids, node.ID{1})
	}
	nodes := d.Nodes()
	for r.IntN(6) == 0 {
		ids = append(ids, nodes[r.IntN(len(nodes))].ID())
	}
	if r.IntN(8) == 0 {
		r.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		ids = ids[r.IntN(len(ids)+1):]
	}
	c.Replaced = node.ListOf(ids...)
	return d.Append(c)
}
