package dialect_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
)

func must(blocks []content.Block) content.Blocks {
	made, err := content.Of(blocks...)
	if err != nil {
		panic(err)
	}
	return made
}

func user(blocks ...content.Block) content.Message {
	return content.Message{Role: content.User, Blocks: must(blocks)}
}

func assistant(blocks ...content.Block) content.Message {
	return content.Message{Role: content.Assistant, Blocks: must(blocks)}
}

func text(s string) content.Block { return content.Text{Text: s} }

func call(id string) content.Block { return content.ToolUse{ID: id, Name: "f", Input: "{}"} }

func result(id, said string) content.Block {
	return content.ToolResult{CallID: id, Content: content.Words(said)}
}

func failed(id, said string) content.Block {
	return content.ToolResult{CallID: id, Content: content.Words(said), IsError: true}
}

// picture is what the rules of noPictures do not take.
var picture = content.Image{Source: content.Source{URL: "https://example.com/x.png"}}

func noPictures(_ content.Role, b content.Block, _ bool) (content.Block, string) {
	switch b := b.(type) {
	case content.Image:
		return content.Text{Text: "[picture]"}, "no pictures here"
	case content.Document:
		return nil, "no documents here"
	default:
		return b, ""
	}
}

const orphan, orphanError = "[Result of a tool call that is not open here:]", "[Error of a tool call that is not open here:]"

type list = []content.Message

func noResults(_ content.Role, b content.Block, _ bool) (content.Block, string) {
	if r, ok := b.(content.ToolResult); ok && r.Content.Len() > 0 {
		return nil, "no results here"
	}
	return b, ""
}

// prune leaves out texts "drop" and the call "drop" with its result, and replaces texts "swap" and results that Repair added.
func prune(messages []content.Message) []dialect.Pruned {
	var found []dialect.Pruned
	for i, m := range messages {
		for j, b := range m.Blocks.All() {
			r, _ := b.(content.ToolResult)
			switch {
			case b == text("drop"), b == call("drop"), r.CallID == "drop":
				found = append(found, dialect.Pruned{Message: i, Block: j, Why: fmt.Sprint("drop ", j)})
			case b == text("swap"):
				found = append(found, dialect.Pruned{Message: i, Block: j, With: text("new"), Why: fmt.Sprint("swap ", j)})
			case r.Content.Text() == content.NoResult:
				found = append(found, dialect.Pruned{Message: i, Block: j, With: result(r.CallID, "new"), Why: fmt.Sprint("result ", j)})
			}
		}
	}
	return found
}

// itemText is a text with an ID for strange's ItemID.
func itemText(id, said string) content.Block {
	return content.Text{Text: said, Extra: content.Extra{API: "item", JSON: content.JSON(fmt.Sprintf(`{"id":%q}`, id))}}
}

func TestRepair(t *testing.T) {
	hi := user(text("Hi"))
	items := dialect.Rules{ItemID: strange().Rules.ItemID}
	nameless := dialect.Rules{ItemID: items.ItemID, Nameless: strange().Rules.Nameless}
	for _, test := range []struct {
		name  string
		rules dialect.Rules
		in    list
		out   list
		notes []string
	}{
		{name: "nothing stays nothing"},
		{name: "a good conversation stays", in: list{hi, assistant(text("x"), call("a"), call("b")), user(result("a", "1"), result("b", "2"), text("y"))},
			out: list{hi, assistant(text("x"), call("a"), call("b")), user(result("a", "1"), result("b", "2"), text("y"))}},

		{name: "an open call at the end is answered", in: list{hi, assistant(call("a"))},
			out:   list{hi, assistant(call("a")), user(failed("a", content.NoResult))},
			notes: []string{"message 2: answered: call 0 (f) had no result"}},
		{name: "an open call before words is answered", in: list{hi, assistant(call("a")), user(text("stop"))},
			out:   list{hi, assistant(call("a")), user(failed("a", content.NoResult), text("stop"))},
			notes: []string{"message 2: answered: call 0 (f) had no result"}},
		{name: "half a tool phase is filled up in call order", in: list{hi, assistant(call("a"), call("b"), call("c")), user(result("b", "2"))},
			out: list{hi, assistant(call("a"), call("b"), call("c")), user(failed("a", content.NoResult), result("b", "2"), failed("c", content.NoResult))},
			notes: []string{"message 2: answered: call 0 (f) had no result",
				"message 2: answered: call 2 (f) had no result"}},
		{name: "a call among the assistant's messages in a row is answered once", in: list{hi, assistant(call("a")), assistant(text("x")), user(result("a", "1"))},
			out:   list{hi, assistant(call("a"), text("x")), user(result("a", "1"))},
			notes: []string{"message 1: merged: two assistant messages in a row"}},

		{name: "a result without a call becomes text", in: list{user(text("Hi"), result("a", "1"))},
			out:   list{user(text("Hi"), text(orphan), text("1"))},
			notes: []string{`message 0: orphan: no open call has the ID "a" of a result`}},
		{name: "a result under another id is not given to an open call", in: list{hi, assistant(call("a")), user(result("z", "1"))},
			out: list{hi, assistant(call("a")), user(failed("a", content.NoResult), text(orphan), text("1"))},
			notes: []string{`message 2: orphan: no open call has the ID "z" of a result`,
				"message 2: answered: call 0 (f) had no result"}},
		{name: "a result without an id is that of the open call", in: list{hi, assistant(call("a")), user(result("", "1"))},
			out: list{hi, assistant(call("a")), user(result("a", "1"))}},
		{name: "a late result becomes text where it stands", in: list{hi, assistant(call("a")), user(text("x")), assistant(text("y")), user(failed("a", "1"))},
			out: list{hi, assistant(call("a")), user(failed("a", content.NoResult), text("x")), assistant(text("y")), user(text(orphanError), text("1"))},
			notes: []string{"message 2: answered: call 0 (f) had no result",
				`message 4: orphan: no open call has the ID "a" of a result`}},
		{name: "a second result becomes text", in: list{hi, assistant(call("a")), user(result("a", "1"), result("a", "2"))},
			out:   list{hi, assistant(call("a")), user(result("a", "1"), text(orphan), text("2"))},
			notes: []string{`message 2: orphan: no open call has the ID "a" of a result`}},
		{name: "a result of the assistant's side becomes text", in: list{hi, assistant(text("x"), result("a", "1")), hi},
			out:   list{hi, assistant(text("x"), text(orphan), text("1")), hi},
			notes: []string{"message 1: orphan: a tool result in an assistant message became text"}},

		{name: "results are put first and in order", in: list{hi, assistant(call("a"), call("b")), user(text("x"), result("b", "2")), user(result("a", "1"))},
			out: list{hi, assistant(call("a"), call("b")), user(result("a", "1"), result("b", "2"), text("x"))},
			notes: []string{"message 2: moved: results must be first and in call order",
				"message 2: merged: two user messages in a row"}},
		{name: "calls are put last where they must be", rules: dialect.Rules{CallsLast: true},
			in: list{hi, assistant(call("a"), text("x"), call("b"), text("y")), user(result("a", "1"), result("b", "2"))},
			out: list{hi, assistant(text("x"), text("y"), call("a"), call("b")),
				user(result("a", "1"), result("b", "2"))},
			notes: []string{"message 1: moved: tool calls must be last"}},

		{name: "an id used twice is replaced, and results go by occurrence", in: list{hi, assistant(call("a"), call("a")), user(result("a", "1"), result("a", "2"))},
			out:   list{hi, assistant(call("a"), call("call_2")), user(result("a", "1"), result("call_2", "2"))},
			notes: []string{`message 1: id: the call ID "a" became "call_2"`}},
		{name: "an id used in an earlier turn is replaced",
			in:    list{hi, assistant(call("a")), user(result("a", "1")), assistant(call("a")), user(result("a", "2"))},
			out:   list{hi, assistant(call("a")), user(result("a", "1")), assistant(call("call_2")), user(result("call_2", "2"))},
			notes: []string{`message 3: id: the call ID "a" became "call_2"`}},
		{name: "empty ids are given, and results without one go in order", in: list{hi, assistant(call(""), call("")), user(result("", "1"), result("", "2"))},
			out: list{hi, assistant(call("call_1"), call("call_2")), user(result("call_1", "1"), result("call_2", "2"))},
			notes: []string{`message 1: id: the call ID "" became "call_1"`,
				`message 1: id: the call ID "" became "call_2"`}},
		{name: "a result without an id goes to the call that is left", in: list{hi, assistant(call("a"), call("b")), user(result("", "1"), result("a", "2"))},
			out:   list{hi, assistant(call("a"), call("b")), user(result("a", "2"), result("b", "1"))},
			notes: []string{"message 2: moved: results must be first and in call order"}},
		{name: "a fresh id is never one that is used", in: list{hi, assistant(call("call_2"), call("")), user(result("call_2", "1"), result("", "2"))},
			out:   list{hi, assistant(call("call_2"), call("call_2_2")), user(result("call_2", "1"), result("call_2_2", "2"))},
			notes: []string{`message 1: id: the call ID "" became "call_2_2"`}},
		{name: "a badly formed id is replaced", in: list{hi, assistant(call("a b")), user(result("a b", "1"))},
			out:   list{hi, assistant(call("call_1")), user(result("call_1", "1"))},
			notes: []string{`message 1: id: the call ID "a b" became "call_1"`}},
		{name: "a fresh id counts on while it is used", in: list{hi, assistant(call("call_3"), call("call_3_2"), call("")),
			user(result("call_3", "1"), result("call_3_2", "2"), result("", "3"))},
			out: list{hi, assistant(call("call_3"), call("call_3_2"), call("call_3_3")),
				user(result("call_3", "1"), result("call_3_2", "2"), result("call_3_3", "3"))},
			notes: []string{`message 1: id: the call ID "" became "call_3_3"`}},
		{name: "calls without an id stay where they may", rules: dialect.Rules{NoID: true},
			in:  list{hi, assistant(call(""), call("a"), call("")), user(result("", "1"), result("a", "2"), result("", "3"))},
			out: list{hi, assistant(call(""), call("a"), call("")), user(result("", "1"), result("a", "2"), result("", "3"))}},
		{name: "ids of the provider's own kind stay", rules: dialect.Rules{ID: func(string) bool { return true }},
			in:  list{hi, assistant(call("a b")), user(result("a b", "1"))},
			out: list{hi, assistant(call("a b")), user(result("a b", "1"))}},

		{name: "a block is replaced by one that is taken", rules: dialect.Rules{Accept: noPictures}, in: list{user(text("x"), picture)},
			out: list{user(text("x"), text("[picture]"))}, notes: []string{"message 0: block: no pictures here"}},
		{name: "a block inside a result too", rules: dialect.Rules{Accept: noPictures},
			in:    list{hi, assistant(call("a")), user(content.ToolResult{CallID: "a", Content: must([]content.Block{picture, text("y")})})},
			out:   list{hi, assistant(call("a")), user(content.ToolResult{CallID: "a", Content: must([]content.Block{text("[picture]"), text("y")})})},
			notes: []string{"message 2: block: no pictures here"}},
		{name: "a call of the user's side becomes text", in: list{user(call("a"), text("x"))},
			out: list{user(text("[Tool call f: {}]"), text("x"))}, notes: []string{"message 0: block: a tool call in a user message became text"}},
		{name: "a block that rules make and no message can hold is left out", in: list{hi, assistant(text("x")), user(picture, text("y"))},
			rules: dialect.Rules{Accept: func(_ content.Role, b content.Block, _ bool) (content.Block, string) {
				if _, ok := b.(content.Image); ok {
					return content.Image{}, "emptied"
				}
				return b, ""
			}},
			out:   list{hi, assistant(text("x")), user(text("y"))},
			notes: []string{"message 2: dropped: block 0 (image): its source needs exactly one of data, text, URL and file ID; it has 0"}},

		{name: "a result that is refused is sent without content", rules: dialect.Rules{Accept: noResults},
			in: list{hi, assistant(call("a"), call("b")), user(failed("b", "2"), result("a", "1"))},
			out: list{hi, assistant(call("a"), call("b")),
				user(content.ToolResult{CallID: "a"}, content.ToolResult{CallID: "b", IsError: true})},
			notes: []string{"message 2: dropped: no results here", "message 2: dropped: no results here",
				"message 2: moved: results must be first and in call order"}},

		{name: "the id of an item is no call's", rules: items, in: list{hi, assistant(opaqueCall("a"), call("a")), user(result("a", "1"))},
			out:   list{hi, assistant(opaqueCall("a"), call("call_1")), user(result("call_1", "1"))},
			notes: []string{`message 1: id: the call ID "a" became "call_1"`}},
		{name: "an item whose id was used is left out", rules: items,
			in:    list{hi, assistant(opaqueCall("i"), text("x")), hi, assistant(text("y"), opaqueCall("i"), opaqueCall("j"), text("z")), hi},
			out:   list{hi, assistant(opaqueCall("i"), text("x")), hi, assistant(text("y"), opaqueCall("j"), text("z")), hi},
			notes: []string{"message 3: dropped: an item whose ID was used before"}},
		{name: "a message that loses its only item is left out", rules: items,
			in:    list{hi, assistant(opaqueCall("i")), user(text("x")), assistant(opaqueCall("i")), user(text("y"))},
			out:   list{hi, assistant(opaqueCall("i")), user(text("x"), text("y"))},
			notes: []string{"dropped: an item whose ID was used before", "message 2: merged: two user messages in a row"}},
		{name: "texts in a row may be parts of one item", rules: items,
			in:    list{hi, assistant(itemText("i", "x"), itemText("i", "y"), text("-"), itemText("i", "z"), text("!")), hi},
			out:   list{hi, assistant(itemText("i", "x"), itemText("i", "y"), text("-"), text("!")), hi},
			notes: []string{"message 1: dropped: an item whose ID was used before"}},
		{name: "an item that can be is sent without its id", rules: nameless,
			in:  list{hi, assistant(itemText("i", "x"), opaqueCall("j"), itemText("i", "y"), opaqueCall("j")), hi},
			out: list{hi, assistant(itemText("i", "x"), opaqueCall("j"), text("y")), hi},
			notes: []string{"message 1: id: an item whose ID was used before is sent without its ID",
				"message 1: dropped: an item whose ID was used before"}},
		{name: "only opaque items of the user's side have ids", rules: items,
			in:    list{user(itemText("i", "x"), opaqueCall("j")), assistant(itemText("i", "y")), user(itemText("i", "z"), opaqueCall("j"))},
			out:   list{user(itemText("i", "x"), opaqueCall("j")), assistant(itemText("i", "y")), user(itemText("i", "z"))},
			notes: []string{"message 2: dropped: an item whose ID was used before"}},

		{name: "what may not stand there is left out or replaced", rules: dialect.Rules{Prune: prune},
			in:  list{user(text("drop"), text("Hi"), text("drop")), assistant(text("swap"), text("x")), user(text("drop")), assistant(text("y")), hi},
			out: list{hi, assistant(text("new"), text("x"), text("y")), hi},
			notes: []string{"message 0: dropped: drop 2", "message 0: dropped: drop 0", "message 1: block: swap 0", "dropped: drop 0",
				"message 1: merged: two assistant messages in a row"}},
		{name: "what Repair added may be replaced too", rules: dialect.Rules{Prune: prune}, in: list{hi, assistant(call("a"))},
			out:   list{hi, assistant(call("a")), user(result("a", "new"))},
			notes: []string{"message 2: answered: call 0 (f) had no result", "message 2: block: result 0"}},
		{name: "or left out", rules: dialect.Rules{Prune: prune}, in: list{user(text("drop"), text("Hi")), assistant(call("drop"))},
			out:   list{hi},
			notes: []string{"message 0: dropped: drop 0", "answered: call 0 (f) had no result", "dropped: drop 0", "dropped: drop 0"}},

		{name: "what says nothing is dropped", in: list{user(text("x"), text(""), content.Unknown{JSON: `{"type":"new"}`}, content.Thinking{Text: "hm"})},
			out: list{user(text("x"))},
			notes: []string{"message 0: dropped: an empty text block", "message 0: dropped: a block of a type that this version does not know",
				"message 0: dropped: thinking in a user message"}},
		{name: "a message of which nothing is left is none of those sent", rules: dialect.Rules{Accept: noPictures},
			in:    list{hi, assistant(text("")), user(), assistant(content.Document{Source: content.Source{FileID: "f"}}), user(text("y"))},
			out:   list{user(text("Hi"), text("y"))},
			notes: []string{"dropped: an empty text block", "dropped: an empty user message", "dropped: no documents here", "message 0: merged: two user messages in a row"}},

		{name: "messages of one side in a row are one", in: list{hi, user(text("x")), assistant(text("y")), assistant(text("z")), hi},
			out: list{user(text("Hi"), text("x")), assistant(text("y"), text("z")), hi},
			notes: []string{"message 0: merged: two user messages in a row",
				"message 1: merged: two assistant messages in a row"}},
		{name: "a message of neither side is the user's", in: list{{Role: "tool", Blocks: content.Words("x")}, assistant(text("y")), {Blocks: content.Words("z")}},
			out: list{user(text("x")), assistant(text("y")), user(text("z"))},
			notes: []string{`message 0: role: a message with the role "tool" became a user message`,
				`message 2: role: a message with the role "" became a user message`}},

		{name: "the user speaks last", in: list{hi, assistant(text("x"))}, out: list{hi, assistant(text("x")), user(text(content.GoOn))},
			notes: []string{"message 2: end: the last message must be a user message"}},
		{name: "the assistant may speak last where it may", rules: dialect.Rules{EndsOpen: func(m content.Message) bool { return m.Blocks.Text() == "x" }},
			in: list{hi, assistant(text("x"))}, out: list{hi, assistant(text("x"))}},
		{name: "the user speaks first where it must", rules: dialect.Rules{UserFirst: true}, in: list{assistant(text("x"), text("")), hi},
			out:   list{user(text(content.GoOn)), assistant(text("x")), hi},
			notes: []string{"message 0: end: the first message must be a user message", "message 1: dropped: an empty text block"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, notes := dialect.Repair(test.in, test.rules)
			requireSame(t, test.out, out)
			var said []string
			for _, n := range notes {
				said = append(said, n.String())
			}
			require.Equal(t, test.notes, said)
			again, more := dialect.Repair(out, test.rules)
			require.Empty(t, more, "repaired twice")
			requireSame(t, out, again)
		})
	}
}

func TestOrdinaryIDsOfCallsStay(t *testing.T) {
	for id, stays := range map[string]bool{
		"azAZ09_-": true, strings.Repeat("x", 40): true, strings.Repeat("x", 41): false, "": false,
		"a@": false, "a[": false, "a`": false, "a{": false, "a/": false, "a:": false, "a.": false, "aé": false, "a ": false,
	} {
		out, _ := dialect.Repair(list{user(text("Hi")), assistant(call(id)), user(result(id, "1"))}, dialect.Rules{})
		want := "call_1"
		if stays {
			want = id
		}
		require.Equal(t, want, out[1].Blocks.ToolUses()[0].ID, id)
		require.Equal(t, want, out[2].Blocks.ToolResults()[0].CallID, id)
	}
}

func requireSame(t *testing.T, want, got list) {
	t.Helper()
	require.Equal(t, spell(want), spell(got))
	for i := range want {
		require.True(t, want[i].Blocks.Equal(got[i].Blocks), "message %d", i)
	}
}

// spell writes messages in a line each.
func spell(messages list) string {
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&b, "%s %s\n", m.Role, m.Blocks.Append(nil))
	}
	return b.String()
}

func TestRepairSendsUnchangedMessagesAsTheyAre(t *testing.T) {
	in := list{user(text("Hi")), assistant(call("a")), user(result("a", "1"))}
	out, _ := dialect.Repair(in, dialect.Rules{Accept: noPictures})
	for i := range in {
		require.True(t, in[i].Blocks == out[i].Blocks, "message %d is the same list, so that what was made of it can be kept", i)
	}
}

// random makes messages in which every text and every call's input is another, so that each can be found again.
type random struct {
	*rand.Rand
	atoms []string
}

func (r *random) atom() string {
	r.atoms = append(r.atoms, fmt.Sprintf("<%d>", len(r.atoms)))
	return r.atoms[len(r.atoms)-1]
}

func (r *random) id() string {
	return []string{"a", "b", "c", "", "call_1", "call_2", "call_2_2", "bad id", strings.Repeat("x", 41)}[r.IntN(9)]
}

func (r *random) messages() list {
	messages := make(list, r.IntN(9))
	for i := range messages {
		role := []content.Role{content.User, content.Assistant, content.User, content.Assistant, "other"}[r.IntN(5)]
		blocks := make([]content.Block, r.IntN(5))
		for j := range blocks {
			blocks[j] = r.block()
		}
		messages[i] = content.Message{Role: role, Blocks: must(blocks)}
	}
	return messages
}

func (r *random) block() content.Block {
	switch r.IntN(10) {
	case 0:
		return content.Text{}
	case 1:
		return picture
	case 2:
		return content.Thinking{Text: "hm", Signature: "s"}
	case 3, 4, 5:
		return content.ToolUse{ID: r.id(), Name: "f", Input: content.JSON(fmt.Sprintf("%q", r.atom()))}
	case 6, 7, 8:
		return content.ToolResult{CallID: r.id(), Content: must([]content.Block{content.Text{Text: r.atom()}, picture}[:1+r.IntN(2)]), IsError: r.IntN(2) == 0}
	}
	return content.Text{Text: r.atom()}
}

func (r *random) rules() dialect.Rules {
	rules := dialect.Rules{CallsLast: r.IntN(2) == 0, UserFirst: r.IntN(2) == 0}
	if r.IntN(2) == 0 {
		rules.Accept = noPictures
	}
	if r.IntN(2) == 0 {
		rules.ID = func(id string) bool { return id != "a" }
	}
	if r.IntN(2) == 0 {
		rules.EndsOpen = func(m content.Message) bool { return m.Blocks.Len() > 1 }
	}
	return rules
}

func TestRepairKeepsItsPromisesOnAnyMessages(t *testing.T) {
	first := seedtest.First(t)
	for seed := first; seed < first+uint64(seedtest.Rounds(2500, 100_000)); seed++ {
		r := &random{Rand: rand.New(rand.NewPCG(seed, 0))}
		in, rules := r.messages(), r.rules()
		if failure := promises(r, in, rules); failure != "" {
			t.Fatalf("seed %d: %s\nin:\n%s", seed, failure, spell(in))
		}
	}
}

// promises checks every sentence of the comment on Repair.
func promises(r *random, in list, rules dialect.Rules) string {
	before := spell(in)
	out, _ := dialect.Repair(in, rules)
	if spell(in) != before {
		return "the messages given were changed"
	}
	if failure := wellFormed(out, rules); failure != "" {
		return failure + "\nout:\n" + spell(out)
	}
	if failure := nothingLost(r.atoms, out); failure != "" {
		return failure + "\nout:\n" + spell(out)
	}
	if again, notes := dialect.Repair(out, rules); len(notes) > 0 || spell(again) != spell(out) {
		return fmt.Sprintf("repairing again: %v\nout:\n%sagain:\n%s", notes, spell(out), spell(again))
	}
	if again, _ := dialect.Repair(in, rules); spell(again) != spell(out) {
		return "the same messages gave another result"
	}
	return prefixStable(in, rules, out)
}

func wellFormed(out list, rules dialect.Rules) string {
	ids := map[string]bool{}
	for i, m := range out {
		switch {
		case !m.Role.Valid() || i > 0 && out[i-1].Role == m.Role:
			return fmt.Sprintf("message %d: the sides do not take turns", i)
		case m.Blocks.Len() == 0:
			return fmt.Sprintf("message %d is empty", i)
		}
		calls, last := 0, false
		for _, b := range m.Blocks.All() {
			switch b := b.(type) {
			case content.Text:
				if b.Text == "" {
					return fmt.Sprintf("message %d: an empty text block", i)
				}
			case content.ToolUse:
				if ids[b.ID] || rules.ID != nil && !rules.ID(b.ID) || m.Role == content.User {
					return fmt.Sprintf("message %d: the call %q", i, b.ID)
				}
				if i+1 == len(out) || out[i+1].Blocks.Len() <= calls {
					return fmt.Sprintf("message %d: the call %q is not answered", i, b.ID)
				}
				answer, ok := out[i+1].Blocks.At(calls).(content.ToolResult)
				if !ok || answer.CallID != b.ID {
					return fmt.Sprintf("message %d: call %d (%q) is not answered in its place", i, calls, b.ID)
				}
				ids[b.ID], last = true, true
				calls++
				continue
			case content.ToolResult:
				if i == 0 || m.Role == content.Assistant {
					return fmt.Sprintf("message %d: a result", i)
				}
			case content.Image:
				if rules.Accept != nil {
					return fmt.Sprintf("message %d: a block that the rules refuse", i)
				}
			}
			if last && rules.CallsLast {
				return fmt.Sprintf("message %d: calls are not last", i)
			}
		}
		if i > 0 && m.Role == content.User && len(m.Blocks.ToolResults()) != len(out[i-1].Blocks.ToolUses()) {
			return fmt.Sprintf("message %d: as many results as calls", i)
		}
	}
	if n := len(out); n > 0 {
		if rules.UserFirst && out[0].Role != content.User {
			return "the user does not speak first"
		}
		if out[n-1].Role == content.Assistant && (rules.EndsOpen == nil || !rules.EndsOpen(out[n-1])) {
			return "the user does not speak last"
		}
	}
	return ""
}

func nothingLost(atoms []string, out list) string {
	all := spell(out)
	for _, atom := range atoms {
		if n := strings.Count(all, atom); n != 1 {
			return fmt.Sprintf("%s was said once, and is sent %d times", atom, n)
		}
	}
	return ""
}

// prefixStable checks that what stands before the last message of a part of the conversation is what stands there in all of it.
// Behind the last message said, Repair may have put answers or GoOn.
func prefixStable(in list, rules dialect.Rules, whole list) string {
	for k := range in {
		part, notes := dialect.Repair(in[:k], rules)
		stable := len(part) - 1
		for _, n := range notes {
			if n.Message == len(part)-1 && (n.Kind == "end" || n.Kind == "answered") {
				stable = len(part) - 2
			}
		}
		if stable > 0 && spell(part[:stable]) != spell(whole[:stable]) {
			return fmt.Sprintf("with %d messages the first %d were another\npart:\n%swhole:\n%s", k, stable, spell(part), spell(whole))
		}
	}
	return ""
}

func FuzzRepair(f *testing.F) {
	f.Add(uint64(1), "a", "x", byte(0))
	f.Add(uint64(2), "", "", byte(1))
	f.Add(uint64(3), "call_2", "\xff", byte(2))
	f.Add(uint64(4), "bad id", "[Result", byte(7))
	f.Fuzz(func(t *testing.T, seed uint64, id, said string, shape byte) {
		r := &random{Rand: rand.New(rand.NewPCG(seed, uint64(shape)))}
		in, rules := r.messages(), r.rules()
		in = append(in, assistant(call(id), text(said)), user(result(id, said), text(said)), assistant(call(id)))
		out, _ := dialect.Repair(in, rules)
		require.Empty(t, wellFormed(out, rules), spell(out))
		again, notes := dialect.Repair(out, rules)
		require.Empty(t, notes)
		require.Equal(t, spell(out), spell(again))
		require.Empty(t, prefixStable(in, rules, out))
	})
}

func BenchmarkRepair(b *testing.B) {
	messages := make(list, 0, 1000)
	for i := range 250 {
		id := fmt.Sprintf("toolu_%d", i)
		messages = append(messages, user(text("Question")), assistant(text("Let me see."), call(id)), user(result(id, "42")), assistant(text("It is 42.")))
	}
	messages = append(messages, user(text("And?")))
	b.ReportAllocs()
	for b.Loop() {
		if _, notes := dialect.Repair(messages, dialect.Rules{Accept: noPictures}); len(notes) > 0 {
			b.Fatal(notes)
		}
	}
}

// TestACallMayHaveNoID leaves calls without one where the rules allow it, and tells their results by their order.
func TestACallMayHaveNoID(t *testing.T) {
	said := []content.Message{
		user(text("Hi")), assistant(call(""), call("x"), call("")), user(result("", "1"), result("x", "2"), result("", "3")),
		assistant(call("x"), call("")), user(result("x", "4")),
	}
	for range 2 { // and again changes nothing
		repaired, notes := dialect.Repair(said, dialect.Rules{NoID: true})
		var ids []string
		for _, m := range repaired {
			for _, c := range m.Blocks.ToolUses() {
				ids = append(ids, c.ID)
			}
			for _, r := range m.Blocks.ToolResults() {
				ids = append(ids, r.CallID+"="+r.Content.Text())
			}
		}
		require.Equal(t, []string{"", "x", "", "=1", "x=2", "=3", "call_4", "", "call_4=4", "=" + content.NoResult}, ids)
		if said = repaired; len(notes) > 0 {
			require.Len(t, notes, 2, "%v", notes)
			require.Equal(t, "id", notes[0].Kind)
			require.Equal(t, "answered", notes[1].Kind)
		}
	}
}

// TestNothingIsAddedThatIsNotNeeded prunes the assistant's last message away: the user's word before it is the last, and no other
// is put behind it.
func TestNothingIsAddedThatIsNotNeeded(t *testing.T) {
	rules := dialect.Rules{UserFirst: true, Prune: func(messages []content.Message) []dialect.Pruned {
		var found []dialect.Pruned
		for i, m := range messages {
			for j, b := range m.Blocks.All() {
				if _, thinks := b.(content.Thinking); thinks {
					found = append(found, dialect.Pruned{Message: i, Block: j, Why: "no thoughts"})
				}
			}
		}
		return found
	}}
	thought := assistant(content.Thinking{Text: "Hm."})
	for _, in := range [][]content.Message{{user(text("Hi")), thought}, {thought, user(text("Hi"))}} {
		out, notes := dialect.Repair(in, rules)
		requireSame(t, []content.Message{user(text("Hi"))}, out)
		require.Len(t, notes, 1)
		require.Equal(t, "dropped: no thoughts", notes[0].String())
	}
}
