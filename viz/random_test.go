package viz

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	_ "github.com/plait-dev/plait/internal/testkit/quick"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz/internal/viztest"
	"github.com/stretchr/testify/require"
)

// hostile is what breaks, drives or is obeyed by a Mermaid that is not shielded from it.
var hostile = viztest.Hostile

// randomText is a few words, hostile ones among them.
func randomText(r *rand.Rand) string {
	var parts []string
	for range 1 + r.IntN(4) {
		switch r.IntN(3) {
		case 0:
			parts = append(parts, []string{"hello", "the weather", "it is 22°C", "OK.", "now"}[r.IntN(5)])
		case 1:
			parts = append(parts, hostile[r.IntN(len(hostile))])
		case 2:
			var b strings.Builder
			for range 1 + r.IntN(8) {
				b.WriteByte(byte(32 + r.IntN(95)))
			}
			parts = append(parts, b.String())
		}
	}
	return strings.Join(parts, []string{" ", "", "\n"}[r.IntN(3)])
}

// randomGraph returns a conversation of about size nodes with forks, joins, tool phases, failures, sub-agents that may share
// nodes with the conversation around them, and several heads.
func randomGraph(r *rand.Rand, size, depth int) dag.DAG {
	return randomFrom(r, node.Counting(time.Unix(1_700_000_000, 0)), size, depth)
}

func randomFrom(r *rand.Rand, src node.Source, size, depth int) dag.DAG {
	return grow(r, dag.New().WithSource(src).System(randomText(r)+"."), size, depth)
}

func grow(r *rand.Rand, d dag.DAG, size, depth int) dag.DAG {
	for made := 0; made < size; made++ {
		heads := d.Heads()
		if len(heads) == 0 || r.IntN(8) == 0 { // a branch somewhere, or a merge of two
			all := d.Nodes()
			parents := []*node.Node{all[r.IntN(len(all))]}
			if r.IntN(3) == 0 {
				parents = append(parents, all[r.IntN(len(all))])
			}
			d = must(d.AppendTo(parents, randomPayload(r, d, depth)))
			continue
		}
		head := heads[r.IntN(len(heads))]
		if r.IntN(4) > 0 {
			d = must(d.AppendTo([]*node.Node{head}, randomPayload(r, d, depth)))
			continue
		}
		var calls []content.Block
		for range 1 + r.IntN(12) {
			calls = append(calls, use(randomText(r), randomText(r), fmt.Sprintf(`{"q":%q}`, "x")))
		}
		var ask *node.Node
		blocks, err := content.Of(calls...)
		if err != nil {
			panic(err)
		}
		d, ask, err = d.AppendTo([]*node.Node{head}, node.Message{Role: content.Assistant, Blocks: blocks})
		if err != nil {
			panic(err)
		}
		var results []content.Block
		var ran []*node.Node
		for i := range calls {
			var n *node.Node
			d, n, err = d.AppendTo([]*node.Node{ask}, execution(r, d, i, depth))
			if err != nil {
				panic(err)
			}
			ran = append(ran, n)
			results = append(results, content.ToolResult{IsError: r.IntN(3) == 0})
			made++
		}
		if r.IntN(6) > 0 {
			blocks, _ := content.Of(results...)
			d = must(d.AppendTo(ran, node.Message{Role: content.User, Blocks: blocks}))
		}
	}
	return d
}

func execution(r *rand.Rand, d dag.DAG, i, depth int) node.ToolExecution {
	e := node.ToolExecution{Index: i, Tool: randomText(r), Input: content.JSON(randomText(r)), Result: content.Words(randomText(r)), IsError: r.IntN(6) == 0}
	if r.IntN(2) == 0 {
		e.Input = content.JSON(fmt.Sprintf(`{"q":%q,"n":%d}`, "why", i))
	}
	switch r.IntN(12) {
	case 0:
		if depth > 0 {
			e.Child = node.ListOf(randomFrom(r, d.Source(), 1+r.IntN(6), depth-1).Heads()...)
		}
	case 1: // a sub-agent that goes on from a node of this conversation, or is one
		if depth > 0 {
			e.Child = node.ListOf(grow(r, d.WithHeads(d.Nodes()[0]), r.IntN(3), 0).Heads()...)
		}
	}
	return e
}

func randomPayload(r *rand.Rand, d dag.DAG, depth int) node.Payload {
	words := content.Words(randomText(r) + ".")
	switch r.IntN(14) {
	case 0:
		return node.System{Text: randomText(r)}
	case 1:
		return node.Custom{Name: randomText(r), JSON: `{"a":1}`}
	case 2:
		text, turns := randomText(r), r.IntN(3)
		if turns == 2 {
			return node.RunStart{Agent: text[:min(len(text), 1)]}
		}
		return node.StopReason{Reason: content.StopMaxTurns, Detail: text, Turns: turns}
	case 3:
		return node.Compaction{Summary: words}
	case 4:
		return execution(r, d, 0, depth)
	case 5:
		return node.Tools{Defs: node.ListOf(tool("alpha"), tool("beta"))}
	case 6:
		if depth > 0 {
			return node.SubGraph{Title: randomText(r), Heads: node.ListOf(randomFrom(r, d.Source(), 3, depth-1).Heads()...), Summary: randomText(r)}
		}
	case 7, 8, 9, 10:
		answer := node.Answer{Model: []string{"", "m-1", "m:2"}[r.IntN(3)], Stop: []content.Stop{"end_turn", "max_tokens"}[r.IntN(2)]}
		return node.Message{Role: content.Assistant, Blocks: words, Answer: answer}
	}
	return node.Message{Role: content.User, Blocks: words}
}

// seeded runs f on random graphs, and names the seed of one that fails. They are count with PLAIT_LONG, and else a fifth.
func seeded(t *testing.T, count, size int, f func(t *testing.T, d dag.DAG)) {
	t.Helper()
	for i := range uint64(seedtest.Rounds(count/5, count)) {
		seed := seedtest.First(t) + i
		d := randomGraph(rand.New(rand.NewPCG(seed, 1)), 1+int(i)%size, 2)
		require.NoError(t, d.Err(), "seed %d", seed)
		if !t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { f(t, d) }) {
			return
		}
	}
}
