package dag_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/memo"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// secretive is a conversation with a tool phase and a child conversation, in which every node says a word of its own.
func secretive(t testing.TB) dag.DAG {
	child := counting().WithSource(node.Counting(start.AddDate(1, 0, 0))).User("childAsk").Assistant("childAnswer")
	d := counting().System("system").User("ask").
		Assistant("calls", content.ToolUse{ID: "a", Name: "f", Input: `{"x":"argsA"}`}, content.ToolUse{ID: "b", Name: "f", Input: `{"x":"argsB"}`}).
		CloseTools(node.ToolExecution{Index: 1, Result: content.Words("resultA"), Details: `"detailA"`},
			node.ToolExecution{Index: 2, Result: content.Words("childAnswer"), Child: node.ListOf(child.Heads()...)}).
		Assistant("answer").WithRef("first").User("more").SubGraph("subject", child).Assistant("end")
	require.NoError(t, d.Err())
	return d
}

// shows is everything that is seen of a conversation from outside.
func shows(t testing.TB, d dag.DAG) string {
	out := written(t, d) + d.String()
	for _, f := range d.Validate() {
		out += f.String()
	}
	return out
}

// idOf returns the id of the first node that is saved with word in its line.
func idOf(t testing.TB, d dag.DAG, word string) node.ID {
	for _, n := range d.WithChildren() {
		if strings.Contains(string(n.Append(nil)), word) {
			return n.ID()
		}
	}
	t.Fatal("nothing says " + word)
	return node.ID{}
}

func TestRedactErasesContentOnly(t *testing.T) {
	words := []string{"system", "ask", "calls", "argsA", "argsB", "resultA", "detailA", "childAsk", "childAnswer", "answer\"", "more", "subject", "end\""}
	for word, gone := range map[string][]string{
		"system": {}, "ask": {"ask"}, "calls": {"calls", "argsA", "argsB"}, "resultA": {"resultA", "detailA"}, "childAsk": {"childAsk"},
		"childAnswer": {"childAnswer"}, "answer\"": {"answer\""}, "more": {"more"}, "subject": {"subject"}, "end\"": {"end\""},
	} {
		built := secretive(t)
		for _, d := range []dag.DAG{built, read(t, written(t, built))} {
			before := shows(t, d)
			got := d.Redact(idOf(t, d, word))
			require.NoError(t, got.Err())
			require.Equal(t, before, shows(t, d), "the old value is as it was")

			saved := written(t, got)
			for _, w := range words {
				if w != "system" { // which is a kind as well
					require.Equal(t, slices.Contains(gone, w), !strings.Contains(saved, w), "%s after %s", w, word)
				}
			}
			require.Equal(t, ids(d.Nodes()), ids(got.Nodes()))
			require.Equal(t, ids(d.WithChildren()), ids(got.WithChildren()))

			again := read(t, saved)
			require.Equal(t, saved, written(t, again))
			for _, d := range []dag.DAG{got, again} {
				v := d.Verify()
				require.True(t, v.OK(), v)
				require.NotEmpty(t, v.Redacted)
				require.Empty(t, d.Validate()[min(len(d.Validate()), 2):], "nothing but tools that were never declared")
				transcript := d.Transcript()
				repaired, notes := dialect.Repair(transcript.Messages, dialect.Rules{EndsOpen: func(content.Message) bool { return true }})
				require.Empty(t, notes)
				require.Equal(t, spell(transcript.Messages), spell(repaired))
				require.Equal(t, ids(d.Nodes()), ids(d.Redact(idOf(t, secretive(t), word)).Nodes()))
			}

			twice := got.Redact(idOf(t, built, word))
			require.Equal(t, got.Heads(), twice.Heads())
			require.Same(t, got.Head(), twice.Head(), "twice is once")
		}
	}
}

func ids(nodes []*node.Node) []node.ID {
	out := make([]node.ID, len(nodes))
	for i, n := range nodes {
		out[i] = n.ID()
	}
	return out
}

func TestRedactSharesEarlierNodes(t *testing.T) {
	d := secretive(t)
	at := d.AtRef("first")
	got := d.Redact(at.Head().ID())
	require.Same(t, at.Head().Parent(0), got.AtRef("first").Head().Parent(0), "what is before is shared")
	require.True(t, got.AtRef("first").Head().Redacted(), "a ref stands at the redacted node")
	require.False(t, at.Head().Redacted())
	require.Same(t, got.AtRef("first").Head(), got.Nodes()[slices.Index(ids(got.Nodes()), at.Head().ID())])
	require.Equal(t, d.Head().Append(nil), got.Head().Append(nil))
	require.NotSame(t, d.Head(), got.Head())

	alone := d.WithHeads(d.Nodes()[0])
	got = alone.Redact(at.Head().ID())
	require.Same(t, alone.Head(), got.Head())
	require.True(t, got.AtRef("first").Head().Redacted(), "also what only a ref reaches")
}

func TestRedactErrors(t *testing.T) {
	d := secretive(t)
	other := counting().WithSource(node.Counting(start.AddDate(9, 0, 0))).User("x").Head().ID()
	got := d.Redact(d.Head().ID(), other)
	require.ErrorIs(t, got.Err(), dag.ErrForeign)
	require.Contains(t, got.Err().Error(), other.String())
	require.False(t, got.Head().Redacted(), "and nothing is redacted")
	require.ErrorContains(t, got.Err(), "dag: Redact: ")
	require.Equal(t, d, d.Redact())
	require.ErrorIs(t, d.Back(9).Redact(d.Head().ID()).Err(), dag.ErrNoExchange, "the chain's own error stays")

	moon := read(t, foreign(t))
	unknown := moon.Unreachable().Nodes[0]
	require.ErrorIs(t, moon.Redact(unknown.ID()).Err(), node.ErrUnknownKind)
}

func TestRedactErasesUnreachableNodes(t *testing.T) {
	text := strings.Replace(document(`,"heads":[]`, line(1, `"kind":"system","body":{"text":"SECRET"}`), line(2, `"kind":"system","parents":[`+ref(1)+`],"body":{"text":"kept"}`),
		line(3, `"kind":"system","body":{"text":"SECRET"}`), line(4, `"kind":"system","body":{"text":"head"}`), line(5, `"kind":"system","body":{"text":"SECRET"}`)),
		`"heads":[]`, `"heads":[`+ref(4)+`]`, 1)
	d := read(t, text)
	all := d.Verify()
	require.Equal(t, 5, all.Nodes)
	var named []node.ID
	for _, n := range d.Unreachable().Nodes {
		if strings.Contains(string(n.Append(nil)), "SECRET") {
			named = append(named, n.ID())
		}
	}
	require.Len(t, named, 3)
	got := d.Redact(named...)
	require.NoError(t, got.Err())
	require.NotContains(t, written(t, got), "SECRET")
	require.Len(t, lines(written(t, got)), 5)
	require.Equal(t, ids(d.Unreachable().Nodes), ids(got.Unreachable().Nodes))
	require.Len(t, got.Verify().Redacted, 3)
	require.Contains(t, written(t, got.Redact(d.Head().ID())), `"kept"`)
	require.Equal(t, ids(d.Unreachable().Nodes), ids(got.Redact(d.Head().ID()).Unreachable().Nodes), "they keep their places")
}

// TestRedactErasesBothCopiesOfANode: a conversation may hold a node as it was built and as it was read.
func TestRedactErasesBothCopiesOfANode(t *testing.T) {
	d := counting().User("SECRET").Assistant("x")
	both := read(t, written(t, d)).User("left").Join(d.User("right"))
	got := both.Redact(d.Nodes()[0].ID())
	require.NoError(t, got.Err())
	for _, h := range got.Heads() {
		require.True(t, got.WithHeads(h).Nodes()[0].Redacted())
		require.NotContains(t, shows(t, got.WithHeads(h)), "SECRET")
	}
}

// TestRedactForgetsEncodedRequests: bytes that were made of a conversation stay with its messages.
func TestRedactForgetsEncodedRequests(t *testing.T) {
	d := counting().User("SECRET").Assistant("x").Join(counting().WithSource(node.Counting(start.AddDate(1, 0, 0))).User("beside it")).
		Append(node.Compaction{Summary: content.Words("so far")})
	for _, n := range d.Nodes() {
		switch p := n.Payload().(type) {
		case node.Message:
			memo.OfBlocks(p.Blocks).Put("body", "…SECRET…")
		case node.Compaction:
			memo.OfBlocks(p.Summary).Put("body", "…SECRET…")
		}
	}
	got := d.Redact(d.Nodes()[0].ID())
	for _, n := range got.Nodes() {
		switch p := n.Payload().(type) {
		case node.Message:
			require.Nil(t, memo.OfBlocks(p.Blocks).Get("body"))
		case node.Compaction:
			require.Nil(t, memo.OfBlocks(p.Summary).Get("body"))
		}
	}
	require.Len(t, got.Nodes(), 4)
}

func TestJournalRefusesRedactedNodesItHolds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "talk.jsonl")
	j, err := dag.OpenJournal(path, nil)
	require.NoError(t, err)
	d := secretive(t)
	require.NoError(t, j.Append(d))
	args := d.Redact(idOf(t, d, "argsA"))
	fresh := args.User("SECRET that is new")
	for name, d := range map[string]dag.DAG{"at once": args, "later": fresh} {
		err := j.Append(d)
		require.ErrorIs(t, err, dag.ErrNotErased, name)
	}
	require.NoError(t, j.Append(d.User("On.")), "the journal is as it was")
	require.NoError(t, j.Close())

	require.NoError(t, dag.RewriteJournal(path, args.WithMetadata("k", "v")))
	require.NotContains(t, contentOf(t, path), "argsA")
	j, err = dag.OpenJournal(path, nil)
	require.NoError(t, err)
	require.True(t, dag.Equal(args, j.DAG()))
	require.Equal(t, `"v"`, string(j.DAG().Metadata().Get("k")))
	require.Equal(t, ids(d.AtRef("first").Heads()), ids(j.DAG().AtRef("first").Heads()))
	require.NoError(t, j.Append(fresh))
	require.NoError(t, j.Close())
}

func TestJournalRefusesPartlyRedactedNodes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "talk.jsonl")
	d := secretive(t)
	args := d.Redact(idOf(t, d, "argsA"))
	require.NoError(t, dag.RewriteJournal(path, args))
	j, err := dag.OpenJournal(path, nil)
	require.NoError(t, err)
	defer j.Close()
	require.NoError(t, j.Append(args), "it is what the journal holds")
	require.ErrorIs(t, j.Append(args.Redact(idOf(t, d, "resultA"))), dag.ErrNotErased)
	require.ErrorIs(t, j.Append(j.DAG().Redact(idOf(t, d, "resultA"))), dag.ErrNotErased)
}

func TestJoinedConversationIsSavedAsRedacted(t *testing.T) {
	asked := dag.New().User("Where is Ann?").Assistant("", content.ToolUse{ID: "call_1", Name: "find", Input: `{"who":"Ann"}`})
	ran := asked.AppendExecutions(node.ToolExecution{CallID: "call_1", Tool: "find", Input: `{"who":"Ann"}`, Result: content.Words("In Paris.")})
	whole := ran.CloseTools().Assistant("She is there.")
	require.NoError(t, whole.Err())

	for name, erased := range map[string]dag.DAG{
		"the result":  ran.Redact(ran.Head().ID()),
		"the call":    ran.Redact(asked.Head().ID()),
		"the message": whole.Redact(whole.Head().Parent(0).ID()).User("Thanks."),
	} {
		t.Run(name, func(t *testing.T) {
			for _, joined := range []dag.DAG{erased.Join(whole), whole.Join(erased)} {
				var file bytes.Buffer
				require.NoError(t, joined.Write(&file))
				loaded, err := dag.Read(&file)
				require.NoError(t, err)

				require.True(t, loaded.Verify().OK(), loaded.Verify())
				require.ElementsMatch(t, ids(joined.Heads()), ids(loaded.Heads()))
				for _, n := range erased.Nodes() {
					require.Equal(t, n.Redacted(), loaded.Node(n.ID()).Redacted(), "%v", n)
				}
				require.Equal(t, "She is there.", loaded.Node(whole.Head().ID()).Payload().(node.Message).Blocks.Text(), "nothing else is erased")
			}
		})
	}
}

// TestJournalKeepsJoinedConversationRedacted appends to a journal that is new, has the redacted part, or has the
// other one.
func TestJournalKeepsJoinedConversationRedacted(t *testing.T) {
	asked := dag.New().User("Where is Ann?").Assistant("", content.ToolUse{ID: "call_1", Name: "find", Input: `{"who":"Ann"}`})
	ran := asked.AppendExecutions(node.ToolExecution{CallID: "call_1", Tool: "find", Input: `{"who":"Ann"}`, Result: content.Words("In Paris.")})
	whole := ran.CloseTools().Assistant("She is there.")
	for name, erased := range map[string]dag.DAG{
		"the result":  ran.Redact(ran.Head().ID()),
		"the call":    ran.Redact(asked.Head().ID()),
		"the message": whole.Redact(whole.Head().Parent(0).ID()).User("Thanks."),
	} {
		for order, joined := range map[string]dag.DAG{"erased first": erased.Join(whole), "whole first": whole.Join(erased)} {
			for before, first := range map[string]dag.DAG{"new": dag.New(), "has erased": erased, "has whole": whole} {
				t.Run(name+"/"+order+"/"+before, func(t *testing.T) {
					path := filepath.Join(t.TempDir(), "j")
					j, err := dag.OpenJournal(path, &dag.JournalOptions{NoSync: true})
					require.NoError(t, err)
					require.NoError(t, j.Append(first))

					err = j.Append(joined)
					if err == nil {
						err = j.Append(joined.WithHeads(joined.Heads()[0]).User("More."))
					}
					require.NoError(t, j.Close())
					if before == "has whole" {
						require.ErrorIs(t, err, dag.ErrNotErased)
					} else {
						require.NoError(t, err)
					}

					loaded, err := dag.Load(path)
					require.NoError(t, err)
					require.True(t, loaded.Verify().OK(), loaded.Verify())
					if before == "has whole" {
						return
					}
					for _, n := range erased.Nodes() {
						if l := loaded.Node(n.ID()); l != nil {
							require.Equal(t, n.Redacted(), l.Redacted(), "%v", n)
						}
					}
				})
			}
		}
	}
}
