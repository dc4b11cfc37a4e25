package providertest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// World is the state of the steps: the current conversation, and other forks of it.
type World struct {
	*rand.Rand
	dialect *Dialect
	d       dag.DAG
	forks   []dag.DAG
	turn    Turn // of the model; nil if none takes part
	log     *strings.Builder
}

// Logf appends a line to the log of a failure.
func (w *World) Logf(format string, args ...any) {
	if w.log != nil {
		fmt.Fprintf(w.log, format+"\n", args...)
	}
}

// One returns true once in n times.
func (w *World) One(n int) bool { return w.IntN(n) == 0 }

// Pick returns one of the values at random.
func Pick[T any](w *World, from ...T) T { return from[w.IntN(len(from))] }

// operations are the possible changes to a conversation by a program, or a crash.
var operations = []struct {
	name string
	do   func(w *World) dag.DAG
}{
	{"system", func(w *World) dag.DAG { return w.d.System(w.text()) }},
	{"tools", func(w *World) dag.DAG { return w.d.Tools(w.tool(), w.tool()) }},
	{"a good turn", goodTurn},
	{"a good turn", goodTurn},
	{"a server tool's turn", serverTurn},
	{"user", func(w *World) dag.DAG { return w.d.User(w.text(), w.blocks(content.User)...) }},
	{"user", func(w *World) dag.DAG { return w.d.User("Go on, then.") }},
	{"assistant", func(w *World) dag.DAG { return w.d.Assistant(w.text(), w.blocks(content.Assistant)...) }},
	{"assistant", func(w *World) dag.DAG { return w.d.Assistant("", w.blocks(content.Assistant)...) }},
	{"user marks much", func(w *World) dag.DAG {
		return w.d.User("", w.marked(), w.marked(), w.marked(), w.marked(), w.marked())
	}},
	{"user shows many files", func(w *World) dag.DAG {
		return w.d.User("", w.image(), w.document(), w.image(), w.document())
	}},
	{"assistant thinks and calls", func(w *World) dag.DAG {
		return w.d.Assistant("", append([]content.Block{w.dialect.Thought}, w.calls()...)...)
	}},
	{"assistant calls", func(w *World) dag.DAG { return w.d.Assistant("", w.calls()...) }},
	{"results by hand", func(w *World) dag.DAG { return w.d.ToolResults(w.results()...) }},
	{"results beside words", func(w *World) dag.DAG { return w.d.User(w.text(), w.resultBlocks()...) }},
	{"close the tool phase", closeTools},
	{"close the tool phase", closeTools},
	{"execute half of the tool phase", executeHalf},
	{"execute at any node", executeAnywhere},
	{"fork", func(w *World) dag.DAG { w.forks = append(w.forks, w.d); return w.d }},
	{"switch to a fork", switchFork},
	{"join a fork", joinFork},
	{"back", func(w *World) dag.DAG { return w.d.Back(1 + w.IntN(3)) }},
	{"at any node", atAny},
	{"any heads", anyHeads},
	{"append after any nodes", appendAnywhere},
	{"compact any nodes", compactAnything},
	{"merge a fork", mergeFork},
	{"redact any nodes", redactAny},
	{"name the heads", func(w *World) dag.DAG { return w.d.WithRef(w.name()) }},
	{"prune", func(w *World) dag.DAG { return w.d.Prune() }},
	{"the agent's system prompt", func(w *World) dag.DAG { return w.d.SetSystem("agent", w.text()) }},
	{"withdraw a tool", func(w *World) dag.DAG { return w.d.WithdrawTools(w.name()) }},
	{"save and load", saveAndLoad},
	{"keep only the transcript", func(w *World) dag.DAG { return dag.FromTranscript(w.d.Transcript()).WithSource(w.d.Source()) }},
	{"stop", func(w *World) dag.DAG { return w.d.Stop(content.StopCancelled) }},
	{"custom", func(w *World) dag.DAG { return w.d.Custom("test.note", 1) }},
	{"sub-graph", func(w *World) dag.DAG { return w.d.SubGraph("sub", dag.New().User("x").Assistant("y")) }},
}

// goodTurn appends a turn as a model makes it, for the other steps to damage.
func goodTurn(w *World) dag.DAG {
	d := w.d.User("What is the weather?")
	for range 1 + w.IntN(2) {
		n := d.Len() // for unused call IDs
		said := []content.Block{
			content.ToolUse{ID: fmt.Sprintf("call%d_1", n), Name: "get_weather", Input: `{"city":"Tokyo"}`},
			content.ToolUse{ID: fmt.Sprintf("call%d_2", n), Name: "get_weather", Input: `{"city":"Paris"}`},
		}
		first := 0 // the block of the first call
		if w.One(2) {
			first, said = 1, append([]content.Block{w.dialect.Thought}, said...)
		}
		d = d.Assistant("", said...).CloseTools(node.ToolExecution{Index: first, Result: content.Words("22°C")},
			node.ToolExecution{Index: first + 1, Result: content.Words("18°C")})
	}

	if w.One(2) {
		d = d.Assistant("It is warm.")
	}
	return d
}

// serverTurn appends a turn with a tool run by the API. The turn may be paused or cut off.
func serverTurn(w *World) dag.DAG {
	said := w.dialect.Served(w)
	said = said[:1+w.IntN(len(said))]
	if w.One(3) {
		said = append(said, w.calls()...)
	}
	return w.d.User("Search.").Assistant("", said...)
}

func closeTools(w *World) dag.DAG {
	var done []node.ToolExecution
	for _, call := range w.d.OpenCalls() {
		// CloseTools gives a call without an execution an error result.
		if w.One(3) {
			continue
		}
		result, _ := content.Of(w.inner()...)
		done = append(done, node.ToolExecution{Index: call.Index, Result: result, IsError: w.One(3)})
	}
	return w.d.CloseTools(done...)
}

func executeHalf(w *World) dag.DAG {
	d := w.d
	said := d.Head()
	for _, call := range d.OpenCalls() {
		if said == nil || w.One(2) {
			continue
		}

		// Every execution follows the message with the calls, beside the others.
		result, _ := content.Of(w.inner()...)
		d, _, _ = d.AppendTo([]*node.Node{said},
			node.ToolExecution{CallID: call.ID, Index: call.Index, Tool: call.Name, Result: result})
	}
	return d
}

func executeAnywhere(w *World) dag.DAG {
	nodes := w.d.Nodes()
	if len(nodes) == 0 {
		return w.d
	}
	d, _, _ := w.d.AppendTo([]*node.Node{Pick(w, nodes...)},
		node.ToolExecution{CallID: w.id(), Index: w.IntN(3), Tool: w.name()})
	return d
}

func switchFork(w *World) dag.DAG {
	if len(w.forks) == 0 {
		return w.d
	}

	// Keep the current conversation as a fork in place of the other one.
	i := w.IntN(len(w.forks))
	other := w.forks[i]
	w.forks[i] = w.d
	return other
}

func joinFork(w *World) dag.DAG {
	if len(w.forks) == 0 {
		return w.d
	}
	return w.d.Join(Pick(w, w.forks...))
}

func atAny(w *World) dag.DAG {
	if nodes := w.d.Nodes(); len(nodes) > 0 {
		return w.d.At(Pick(w, nodes...).ID())
	}
	return w.d
}

// some returns up to three nodes of the conversation, in any order.
func (w *World) some() []*node.Node {
	nodes := w.d.Nodes()
	if len(nodes) == 0 {
		return nil
	}
	return []*node.Node{Pick(w, nodes...), Pick(w, nodes...), Pick(w, nodes...)}[:1+w.IntN(3)]
}

func anyHeads(w *World) dag.DAG { return w.d.WithHeads(w.some()...) }

func appendAnywhere(w *World) dag.DAG {
	role := Pick(w, content.User, content.Assistant)
	blocks, err := content.Of(w.blocks(role)...)
	if err != nil {
		return w.d
	}
	d, _, _ := w.d.AppendTo(w.some(), node.Message{Role: role, Blocks: blocks})
	return d
}

func compactAnything(w *World) dag.DAG {
	var ids []node.ID
	for _, n := range w.d.Nodes() {
		if w.One(2) {
			ids = append(ids, n.ID())
		}
	}

	summary := content.Words(w.text())
	d := w.d
	if w.One(2) {
		d = d.WithHeads(w.some()...)
	}
	return d.Append(node.Compaction{Summary: summary, Replaced: node.ListOf(ids...)})
}

func mergeFork(w *World) dag.DAG {
	if len(w.forks) == 0 {
		return w.d
	}
	return dag.Merge(dag.Branch{DAG: w.d}, dag.Branch{DAG: Pick(w, w.forks...)})
}

func redactAny(w *World) dag.DAG {
	var ids []node.ID
	for _, n := range w.d.Nodes() {
		if w.One(5) {
			ids = append(ids, n.ID())
		}
	}
	return w.d.Redact(ids...)
}

// saveAndLoad writes the conversation and reads it again. It keeps the source of IDs: later steps do the same as
// without it.
func saveAndLoad(w *World) dag.DAG {
	var file bytes.Buffer
	if err := w.d.Write(&file); err != nil {
		panic(err)
	}
	loaded, err := dag.Read(&file)
	if err != nil {
		panic(err)
	}
	return loaded.WithSource(w.d.Source())
}
