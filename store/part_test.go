package store_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// compacted appends a compaction of the messages from the first response on, without the last keep messages, as
// executor.Compaction does.
func compacted(d dag.DAG, keep int) dag.DAG {
	t := d.Transcript()
	var ids []node.ID
	first := min(1, len(t.Nodes))
	for _, n := range t.Nodes[first:max(len(t.Nodes)-keep, first)] {
		for _, p := range n.Parents() {
			if p.Kind() == "tool_execution" {
				ids = append(ids, p.ID())
			}
		}
		ids = append(ids, n.ID())
	}
	return d.Append(node.Compaction{Summary: content.Words("a summary"), Replaced: node.ListOf(ids...)})
}

// longTalk returns a conversation of about so many nodes, most of them left out by a compaction.
func longTalk(nodes, keep int) dag.DAG {
	d := counting().System("Be brief.").Tools(content.Tool{Name: "f", Schema: `{"type":"object"}`}).User("Begin.")
	for i := 0; d.Head().Depth() < nodes; i++ {
		call := content.ToolUse{ID: fmt.Sprint(i), Name: "f", Input: "{}"}
		d = d.Assistant("I look.", call).CloseTools(node.ToolExecution{Index: 1, Result: content.Words("18 degrees.")})
		d = d.Assistant(fmt.Sprintf("It is %d.", i)).User("And now?")
	}
	return compacted(d, keep).Assistant("After the summary.").User("More?")
}

// countingDriver counts what is read.
type countingDriver struct {
	store.Driver
	whole          bool // outlines are hidden, so that conversations are loaded as a whole
	records, bytes int
	fail           error // of Read
}

func (d *countingDriver) Read(ctx context.Context, key string, from, have []node.ID) iter.Seq2[store.Record, error] {
	if d.fail != nil {
		return func(yield func(store.Record, error) bool) { yield(store.Record{}, d.fail) }
	}
	return d.count(d.Driver.Read(ctx, key, from, have))
}

func (d *countingDriver) Open(ctx context.Context, key, name string, have []node.ID) (store.Opened, error) {
	o, err := d.Driver.Open(ctx, key, name, have)
	if d.whole {
		o.Outlined = nil
	}
	return o, err
}

func (d *countingDriver) Records(ctx context.Context, key string, ids []node.ID) iter.Seq2[store.Record, error] {
	return d.count(d.Driver.Records(ctx, key, ids))
}

func (d *countingDriver) count(seq iter.Seq2[store.Record, error]) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for r, err := range seq {
			d.records, d.bytes = d.records+1, d.bytes+len(r.Line)+len(r.Outline)
			if !yield(r, err) {
				return
			}
		}
	}
}

func TestCompactedConversationIsReadFromItsCompactionOn(t *testing.T) {
	driver := &countingDriver{Driver: store.Memory()}
	d := longTalk(5000, 20)
	require.NoError(t, d.Err())
	require.NoError(t, open(t, store.New(driver), "talk").Append(ctx, d))

	// What a model is sent needs the prompt, the tools, the first message, 20 messages and what they refer to.
	c := open(t, store.New(driver), "talk")
	require.Equal(t, d.Transcript().Messages, c.DAG().Transcript().Messages)
	require.Equal(t, d.Seen(), c.DAG().Seen())
	require.Less(t, driver.records, 60)
	require.Less(t, driver.bytes, 300_000, "most of it the IDs in the compaction")

	// Continuing, saving, opening again and compacting again read nothing more.
	longer := c.DAG().Assistant("Yes.").User("What?").SetSystem("style", "Be kind.")
	require.NoError(t, c.Append(ctx, longer))
	require.NoError(t, c.Append(ctx, compacted(longer, 4)))
	fork, err := c.Fork(ctx, "side")
	require.NoError(t, err)
	require.NoError(t, fork.Append(ctx, fork.DAG().Assistant("Aside.")))
	require.Less(t, driver.records, 60)

	// The rest is read when it is first used, once, and is the same.
	before := driver.records
	require.Equal(t, d.Nodes()[10].Payload(), c.DAG().Nodes()[10].Payload())
	require.Greater(t, driver.records, before+4000)
	before = driver.records
	require.Equal(t, written(t, d), written(t, c.DAG().WithHeads(c.DAG().Node(d.Head().ID()))))
	require.Empty(t, c.DAG().Validate())
	require.Equal(t, before, driver.records)
}

func TestErrorOfLoadingTheRestIsOneOfTheConversation(t *testing.T) {
	driver := &countingDriver{Driver: store.Memory()}
	require.NoError(t, open(t, store.New(driver), "talk").Append(ctx, longTalk(1000, 20)))
	c := open(t, store.New(driver), "talk")
	require.NoError(t, c.DAG().Err())

	driver.fail = fmt.Errorf("the disk is gone: %w", store.ErrNotStored)
	_ = c.DAG().Nodes()
	require.ErrorIs(t, c.DAG().Err(), driver.fail)
	require.ErrorIs(t, c.DAG().LoadAll(), driver.fail)
	require.ErrorIs(t, c.DAG().Write(t.Output()), driver.fail)
	require.ErrorIs(t, c.Append(ctx, c.DAG().User("More.")), driver.fail)
	require.ErrorIs(t, c.DAG().User("More.").Err(), driver.fail)

	// A new conversation reads anew.
	driver.fail = nil
	require.NoError(t, open(t, store.New(driver), "talk").DAG().LoadAll())
}

func TestNothingIsAskedWithoutTheRestThatIsNeeded(t *testing.T) {
	driver := &countingDriver{Driver: store.Memory()}
	d := longTalk(1000, 20)
	require.NoError(t, open(t, store.New(driver), "talk").Append(ctx, d))
	c := open(t, store.New(driver), "talk")

	// After the first turn, a hook replaces a node that the outline leaves out: the next request needs all nodes.
	old := d.Nodes()[10].ID()
	replace := executor.Hook{Next: func(_ context.Context, turn executor.Turn) (executor.Turn, error) {
		driver.fail = errors.New("the disk is gone")
		turn.DAG = turn.DAG.Append(node.Compaction{Summary: content.Words("again"), Replaced: node.ListOf(old)})
		return turn, nil
	}}
	model := apitest.NewScript(apitest.Call(apitest.Use("f", struct{}{})), apitest.Say("Hello."))
	tool := executor.Func("f", "Looks.", func(context.Context, struct{}) (string, error) { return "ok", nil })
	agent := executor.Agent{Provider: model, Tools: []dag.Tool{tool}, Hooks: []executor.Hook{replace}}
	_, err := agent.Run(ctx, c.DAG().User("Hi."))
	require.ErrorIs(t, err, driver.fail)
	require.Len(t, model.Requests(), 1)
}

func TestDamagedOutlineIsIgnored(t *testing.T) {
	d := longTalk(1000, 20)
	for _, damage := range []func(outline []byte) []byte{
		func(o []byte) []byte { o[len(o)-1] ^= 1; return o },
		func(o []byte) []byte { o[0] ^= 1; return o },
		func([]byte) []byte { return []byte{7} },
	} {
		driver := &damagingDriver{Driver: store.Memory(), damage: damage}
		require.NoError(t, open(t, store.New(driver), "talk").Append(ctx, d))
		c := open(t, store.New(driver), "talk")
		require.Equal(t, written(t, d), written(t, c.DAG()))
		require.Positive(t, driver.damaged)
	}
}

// damagingDriver changes the outlines that are read.
type damagingDriver struct {
	store.Driver
	damage  func([]byte) []byte
	damaged int
}

func (d *damagingDriver) Records(ctx context.Context, key string, ids []node.ID) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for r, err := range d.Driver.Records(ctx, key, ids) {
			if r.Outline != nil {
				r.Outline, d.damaged = d.damage(r.Outline), d.damaged+1
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// TestConversationLoadedInPartIsThatOfTheStore does the same random steps with a conversation that was loaded in part
// and with one that was loaded as a whole, and compares what they are.
func TestConversationLoadedInPartIsThatOfTheStore(t *testing.T) {
	seed := seedtest.First(t)
	parts, loads := 0, 0
	for i := range seedtest.Rounds(25, 1000) {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		p, l := partAsWhole(t, r, i)
		parts, loads = parts+p, loads+l
	}
	t.Logf("%d of %d conversations were loaded in part", parts, loads)
	require.Greater(t, parts, loads/10)
}

// partAsWhole compares one random conversation, and returns how often it was opened in part, and how often at all.
func partAsWhole(t *testing.T, r *rand.Rand, round int) (parts, opened int) {
	t.Helper()
	driver := &countingDriver{Driver: store.Memory()}
	store.LeaveOut(t, 1)
	at := func(step int) node.Source {
		start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		return node.Counting(start.Add(time.Duration(step) * 24 * time.Hour))
	}

	c := open(t, store.New(driver), "talk")
	for step := range 12 {
		whole := open(t, store.New(&countingDriver{Driver: driver, whole: true}), "talk").DAG()
		driver.records = 0
		if r.IntN(4) > 0 {
			c = open(t, store.New(driver), "talk") // another process
		}
		part := c.DAG()
		opened++
		if driver.records > 0 && driver.records < whole.Len() {
			parts++
		}

		part, whole = part.WithSource(at(step)), whole.WithSource(at(step))
		sameSent(t, whole, part, "round %d, step %d, opened", round, step)
		for range 1 + r.IntN(6) {
			seed := r.Uint64()
			var what string
			whole, _ = randomStep(whole, rand.New(rand.NewPCG(seed, 1)))
			part, what = randomStep(part, rand.New(rand.NewPCG(seed, 1)))
			sameSent(t, whole, part, "round %d, step %d: %s", round, step, what)
		}
		if r.IntN(4) == 0 {
			sameWhole(t, whole, part)
		}

		save := c.Append
		if r.IntN(8) == 0 && len(part.Heads()) > 0 {
			nodes := part.Nodes()
			part = part.Redact(nodes[r.IntN(len(nodes))].ID())
			save = c.Rewrite
		}
		require.NoError(t, save(ctx, part), "round %d, step %d", round, step)
		if r.IntN(6) == 0 {
			_, err := c.Fork(ctx, fmt.Sprint("fork ", step))
			require.NoError(t, err)
		}
	}
	require.NoError(t, c.DAG().LoadAll())
	return parts, opened
}

func sameSent(t *testing.T, whole, part dag.DAG, format string, args ...any) {
	t.Helper()
	require.NoError(t, whole.Err(), fmt.Sprintf(format, args...))
	require.NoError(t, part.Err(), fmt.Sprintf(format, args...))
	a, b := whole.Transcript(), part.Transcript()
	require.Equal(t, a.System, b.System, fmt.Sprintf(format, args...))
	require.Equal(t, a.Tools, b.Tools, fmt.Sprintf(format, args...))
	require.Equal(t, len(a.Messages), len(b.Messages), fmt.Sprintf(format, args...))
	for i := range a.Messages {
		require.Equal(t, a.Messages[i].Role, b.Messages[i].Role, fmt.Sprintf(format, args...))
		require.True(t, a.Messages[i].Blocks.Equal(b.Messages[i].Blocks), fmt.Sprintf(format, args...))
		require.Equal(t, a.Nodes[i].ID(), b.Nodes[i].ID(), fmt.Sprintf(format, args...))
	}
	require.Equal(t, whole.Seen(), part.Seen(), fmt.Sprintf(format, args...))
	require.Equal(t, len(whole.OpenCalls()), len(part.OpenCalls()), fmt.Sprintf(format, args...))
	require.Equal(t, whole.Text(), part.Text(), fmt.Sprintf(format, args...))
}

// sameWhole compares everything, and so loads the rest.
func sameWhole(t *testing.T, whole, part dag.DAG) {
	t.Helper()
	require.Equal(t, fmt.Sprint(whole.Validate()), fmt.Sprint(part.Validate()))
	require.Equal(t, written(t, whole), written(t, part))
	require.True(t, dag.Equal(whole, part))
	require.Equal(t, whole.String(), part.String())
	require.True(t, dag.Diff(whole, part).Equal())
	for i, n := range part.Nodes() {
		require.Equal(t, whole.Nodes()[i].Depth(), n.Depth())
	}
}

// randomStep does a random step. Most look at the newest nodes alone.
func randomStep(d dag.DAG, r *rand.Rand) (dag.DAG, string) {
	word := func() string { return fmt.Sprint("word ", r.IntN(1000)) }
	if len(d.OpenCalls()) > 0 && r.IntN(4) > 0 {
		return d.CloseTools(node.ToolExecution{Index: 1, Result: content.Words(word())}), "close"
	}

	switch r.IntN(34) {
	case 0:
		return d.SetSystem([]string{"a", "b"}[r.IntN(2)], []string{"", "one", "two"}[r.IntN(3)]), "set system"
	case 1:
		return d.Tools(content.Tool{Name: []string{"f", "g"}[r.IntN(2)], Description: word(), Schema: `{"type":"object"}`}), "tools"
	case 2:
		return d.WithdrawTools("g"), "withdraw"
	case 3, 4, 5, 6, 17, 18, 19:
		if len(d.OpenCalls()) > 0 {
			return d.User(word()), "user"
		}
		return compacted(d, r.IntN(6)), "compact"
	case 7:
		child := dag.New().WithSource(d.Source()).User(word()).Assistant(word())
		return d.SubGraph("child", child), "child"
	case 8:
		return d.Append(node.RunStart{Run: word()}), "start"
	case 9:
		nodes := d.Nodes()
		if len(nodes) == 0 {
			return d, "nothing"
		}
		return d.At(nodes[r.IntN(len(nodes))].ID()), "rewind"
	case 10:
		nodes := d.Nodes()
		if len(nodes) < 3 {
			return d, "nothing"
		}
		return d.Join(d.At(nodes[r.IntN(len(nodes))].ID()).User(word())).User(word()), "merge"
	case 11:
		return d.WithRef(word()), "ref"
	case 12:
		t := d.Transcript()
		var ids []node.ID
		for _, n := range t.Nodes {
			if r.IntN(2) == 0 {
				ids = append(ids, n.ID())
			}
		}
		return d.Append(node.Compaction{Summary: content.Words("any " + word()), Replaced: node.ListOf(ids...)}), "compact any"
	case 13:
		if d.Head() == nil {
			return d, "nothing"
		}
		fork := d.User(word()).Assistant(word())
		return d.SubGraph("fork", fork), "child that continues"
	case 14, 15:
		answer := node.Answer{Seen: d.Seen()}
		blocks, _ := content.Of(content.Thinking{Text: word(), Signature: "s"}, content.Text{Text: word()})
		return d.Append(node.Message{Role: content.Assistant, Blocks: blocks, Answer: answer}), "think"
	case 16:
		return d.Assistant(word(), content.ToolUse{ID: word(), Name: "f", Input: "{}"}), "call"
	}
	for range 6 {
		d = d.User(word()).Assistant(word())
	}
	return d, "talk"
}
