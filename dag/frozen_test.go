package dag_test

import (
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// updateFrozen rewrites the golden files. Version 1 is frozen: use it only to add what a new optional member needs.
var updateFrozen = flag.Bool("update-frozen", false, "rewrite the golden files of the saved form")

const frozenFile = "testdata/conversation.v1.json"

// frozen returns a conversation in which every field of every kind of node and block is set.
func frozen(t *testing.T) dag.DAG {
	t.Helper()
	extra := content.Extra{API: "anthropic", JSON: `{"cache_control":{"type":"ephemeral"}}`}
	usage := content.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, CacheWriteLong: 2, Reasoning: 5, Incomplete: true}
	child := counting().WithSource(node.Counting(start.Add(time.Hour))).User("Do it.").Assistant("Done.")

	d := counting().WithMetadata("title", "Every kind and field").
		Append(node.System{Name: "agent", Text: "Be brief."}).
		Append(node.Tools{Defs: node.ListOf(
			content.Tool{Name: "old", Schema: `{"type":"object"}`},
			content.Tool{Name: "look", Description: "Looks.", Schema: `{"type":"object"}`, Extra: extra},
		)}).
		Append(node.Tools{Withdrawn: node.ListOf("old")}).
		User("Look at these.",
			content.Text{Text: "cited", Extra: extra},
			content.Image{Source: content.Source{MediaType: "image/png", Data: "AAAA"}, Extra: extra},
			content.Image{Source: content.Source{FileID: "file_1"}},
			content.Document{Source: content.Source{URL: "https://example.com/a.pdf"}, Title: "a.pdf", Extra: extra},
			content.Document{Source: content.Source{Text: "plain"}})
	d = appendMeta(t, d, node.Message{
		Role: content.Assistant,
		Blocks: blocks(t,
			content.Thinking{Text: "Hm.", Signature: "sig", Extra: extra},
			content.Thinking{Redacted: "hidden"},
			content.Opaque{API: "anthropic", JSON: `{"type":"server_tool_use"}`},
			content.Unknown{JSON: `{"type":"hologram","x":1.0}`},
			content.ToolUse{ID: "call_1", Name: "look", Input: `{"at":1}`, Extra: extra},
			content.ToolUse{ID: "call_2", Name: "look", Input: "{\n}"},
			content.CutToolUse{Name: "look", Input: `{"at":`}),
		Answer: node.Answer{
			API: "anthropic", Model: "model-1", ResponseID: "resp_1", Stop: content.StopToolUse, Usage: usage, Latency: 3 * time.Second, Retries: 2,
			Seen: node.Seen{1, 2, 3}, Details: `{"timings":{"ms":1.0}}`,
		},
	})

	d = d.CloseTools(
		node.ToolExecution{
			Index: 4, Result: content.Words("15 deg"), Started: start, Ended: start.Add(time.Second), Child: node.ListOf(child.Heads()...),
			Ran: node.Ran{Tool: "look_up", Input: `{"at":2}`}, Usage: usage, Details: `{"rows":1}`, Full: content.Words("15 degrees"),
		},
		node.ToolExecution{Index: 5, Result: content.Words("It failed."), IsError: true})
	d = d.Append(node.Message{Role: content.User, Blocks: blocks(t,
		content.ToolResult{CallID: "call_3", Content: content.Words("A late result."), IsError: true, Extra: extra})})
	d = d.Append(node.SubGraph{Title: "research", CallID: "call_1", Heads: node.ListOf(child.Heads()...), Summary: "Done."})
	d = d.Append(node.Custom{Name: "acme.note", JSON: `{"a":1.0}`})
	d = d.Append(node.Compaction{Summary: content.Words("So far."), Replaced: node.ListOf(d.Nodes()[3].ID())})
	d = d.WithRef("before")

	started := d.Append(node.RunStart{
		Agent: "support", Run: "run_1", Version: "2.1",
		Limits: node.RunLimits{Turns: 2, Calls: 9, Tokens: 5000, Cost: 0.5, Time: time.Minute},
	})
	stopped := started.Append(node.StopReason{
		Reason: content.StopMaxTurns, Detail: "the limit is 2", Turns: 2, ToolCalls: 4, Usage: usage, Elapsed: time.Minute,
		ToolUsage: content.Usage{Output: 7}, Cost: 0.25, CostKnown: true,
	})
	other := d.User("A secret.")
	other = other.Redact(other.Head().ID())

	// A tool phase after a crash: of two calls, one is in doubt, and the other was started again.
	again := d.Assistant("", use("call_4", "look", "{}"), use("call_5", "look", "{}")).AppendExecutions(
		node.ToolExecution{Index: 0, State: node.ExecutionInDoubt, Result: content.Words(content.OutcomeUnknown), IsError: true},
		node.ToolExecution{Index: 1, State: node.ExecutionStarted, Started: start})
	waits := d.Assistant("Ask.", use("call_6", "look", "{}")).AppendExecutions(node.ToolExecution{
		Index: 1, State: node.ExecutionAwaitingApproval, Ran: node.Ran{Tool: "look_up"}, Note: "It costs.", Deferred: true,
		Decided: node.Decided{By: "Ann", At: start, Rule: "always ask"},
		Spent: node.Spent{
			Run: "r1", Turns: 1, Calls: 2, InnerTurns: 3, InnerCalls: 4, Usage: usage, ToolUsage: usage, Elapsed: time.Second,
			Cost: 0.5, CostKnown: true,
		},
	})
	all := stopped.Join(other, again, waits)
	require.NoError(t, all.Err())
	return all
}

func blocks(t *testing.T, list ...content.Block) content.Blocks {
	t.Helper()
	b, err := content.Of(list...)
	require.NoError(t, err)
	return b
}

func appendMeta(t *testing.T, d dag.DAG, p node.Payload) dag.DAG {
	t.Helper()
	meta, err := node.Meta{}.With("reviewed", true)
	require.NoError(t, err)
	return d.AppendMeta(p, meta)
}

func TestSavedFormOfVersion1IsFrozen(t *testing.T) {
	d := frozen(t)
	if *updateFrozen {
		require.NoError(t, os.WriteFile(frozenFile, []byte(written(t, d)), 0o644))
	}

	golden, err := os.ReadFile(frozenFile)
	require.NoError(t, err)
	require.Equal(t, string(golden), written(t, d), "version 1 is frozen: what it wrote must stay readable, byte for byte")

	loaded := read(t, string(golden))
	require.True(t, dag.Equal(d, loaded))
	require.Empty(t, loaded.Verify().Findings)
	require.Equal(t, string(golden), written(t, loaded))

	// A node that was read keeps its line. Make each anew from its payload, so that a field that was not read is missed.
	lines := savedNodes(string(golden))
	remade := map[node.ID]*node.Node{}
	for _, n := range loaded.WithChildren() {
		if n.Redacted() {
			remade[n.ID()] = n
			continue
		}
		var parents []*node.Node
		for _, parent := range n.Parents() {
			parents = append(parents, remade[parent.ID()])
		}
		src := node.Source{Now: n.Time, NewID: n.ID}
		again, err := node.New(src, n.Payload(), n.Meta(), parents...)
		require.NoError(t, err)
		require.Equal(t, lines[n.ID().String()], string(again.Append(nil)))
		remade[n.ID()] = again
	}
	require.Len(t, remade, len(lines))
}

func TestJournalFormOfVersion1IsFrozen(t *testing.T) {
	const path = "testdata/journal.v1.jsonl"
	d := frozen(t)
	now := journalOf(t, d)
	if *updateFrozen {
		require.NoError(t, os.WriteFile(path, []byte(now), 0o644))
	}
	golden, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(golden), now, "version 1 is frozen: what it wrote must stay readable, byte for byte")

	loaded := read(t, string(golden))
	require.True(t, dag.Equal(d, loaded))
	require.Equal(t, len(d.Refs()), len(loaded.Refs()))
}

// savedNodes returns the lines of a saved conversation that hold a node, by its id.
func savedNodes(text string) map[string]string {
	const begin = `{"id":"`
	lines := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), ",")
		if strings.HasPrefix(line, begin) {
			lines[line[len(begin):len(begin)+36]] = line
		}
	}
	return lines
}

// TestFrozenConversationHasEveryKindAndField fails when a payload, block or field is added that the golden file does not hold.
func TestFrozenConversationHasEveryKindAndField(t *testing.T) {
	set, types := map[string]bool{}, map[reflect.Type]bool{}
	note := func(v any) { noteFields(reflect.ValueOf(v), set, types) }
	noteBlocks := func(list content.Blocks) {
		for _, b := range list.All() {
			note(b)
		}
	}

	for _, n := range frozen(t).WithChildren() {
		note(n.Payload())
		switch p := n.Payload().(type) {
		case node.Message:
			noteBlocks(p.Blocks)
		case node.Tools:
			for _, def := range p.Defs.Slice() {
				note(def)
			}
		}
	}

	for _, kind := range []any{
		node.System{}, node.Tools{}, node.Message{}, node.ToolExecution{}, node.SubGraph{}, node.Compaction{}, node.RunStart{}, node.StopReason{},
		node.Custom{},
		content.Text{}, content.Image{}, content.Document{}, content.Thinking{}, content.ToolUse{}, content.CutToolUse{},
		content.ToolResult{}, content.Opaque{}, content.Unknown{},
	} {
		require.True(t, types[reflect.TypeOf(kind)], "%T is not in the conversation", kind)
	}
	for kind := range types {
		for i := range kind.NumField() {
			field := kind.String() + "." + kind.Field(i).Name
			if field == "content.Thinking.Stale" { // never saved
				continue
			}
			require.True(t, set[field], "%s is set nowhere in the conversation", field)
		}
	}
}

// noteFields notes the types of v and of the structs in it, and which of their fields are not zero.
func noteFields(v reflect.Value, set map[string]bool, types map[reflect.Type]bool) {
	t := v.Type()
	if t.Kind() != reflect.Struct || t.NumField() == 0 || !t.Field(0).IsExported() {
		return
	}

	types[t] = true
	for i := range t.NumField() {
		if !v.Field(i).IsZero() {
			set[t.String()+"."+t.Field(i).Name] = true
		}
		noteFields(v.Field(i), set, types)
	}
}
