package dialect_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
)

// strange is an encoding of an API with every kind of rule.
func strange() *dialect.Encoding {
	return &dialect.Encoding{
		Append: func(dst []byte, m content.Message, end int) []byte {
			return m.Blocks.Append(fmt.Appendf(dst, "%d%s", min(end, dialect.Far), m.Role[:1]))
		},
		AppendAnswer: func(dst []byte, calls []content.ToolUse, m content.Message, end int) []byte {
			for i, call := range calls {
				dst = fmt.Appendf(dst, "%s=%s ", call.ID, m.Blocks.ToolResults()[i].CallID) // the calls are those of the results
			}
			return m.Blocks.Append(fmt.Appendf(dst, "%d", min(end, dialect.Far)))
		},
		Rules: dialect.Rules{
			Accept: ownSide, CallsLast: true, UserFirst: true,
			EndsOpen: func(m content.Message) bool { return waits(m) },
			Prune:    unanswered,
			ItemID: func(b content.Block) string {
				switch b := b.(type) {
				case content.Opaque:
					return strings.TrimPrefix(kind(b), "call ")
				case content.Text:
					return string(b.Extra.For("item"))
				}
				return ""
			},
			Nameless: func(b content.Block) content.Block {
				if t, ok := b.(content.Text); ok {
					return content.Text{Text: t.Text}
				}
				return nil
			},
			Waits: waits,
		},
	}
}

// ownSide is noPictures, and takes a provider's calls of the assistant alone.
func ownSide(role content.Role, b content.Block, nested bool) (content.Block, string) {
	if o, ok := b.(content.Opaque); ok && kind(o) != "" && (role == content.User || nested) {
		return nil, "not of this side"
	}
	return noPictures(role, b, nested)
}

func kind(b content.Opaque) string {
	var tag struct{ Type string }
	_ = b.JSON.Decode(&tag)
	if !strings.HasPrefix(tag.Type, "call ") {
		return ""
	}
	return tag.Type
}

func waits(m content.Message) bool {
	for _, b := range m.Blocks.All() {
		if o, ok := b.(content.Opaque); ok && kind(o) != "" {
			return true
		}
	}
	return false
}

// unanswered finds a provider's own calls that no text "done" follows while nothing but results comes between.
func unanswered(messages []content.Message) []dialect.Pruned {
	var found []dialect.Pruned
	for i, m := range messages {
		for j, b := range m.Blocks.All() {
			if o, ok := b.(content.Opaque); ok && kind(o) != "" && !isDone(messages, i, j) {
				found = append(found, dialect.Pruned{Message: i, Block: j, Why: "it was never done"})
			}
		}
	}
	return found
}

func isDone(messages []content.Message, i, j int) bool {
	for ; i < len(messages); i++ {
		if messages[i].Role == content.User && len(messages[i].Blocks.ToolResults()) == 0 {
			return false
		}
		for ; j < messages[i].Blocks.Len(); j++ {
			if messages[i].Blocks.At(j) == content.Block(content.Text{Text: "done"}) {
				return true
			}
		}
		j = 0
	}
	return true
}

func opaqueCall(id string) content.Block {
	return content.Opaque{API: "x", JSON: content.JSON(fmt.Sprintf(`{"Type":"call %s"}`, id))}
}

func randomMessage(r *rand.Rand) content.Message {
	m := content.Message{Role: []content.Role{content.User, content.Assistant, content.Assistant, "else"}[r.IntN(40)%(3+r.IntN(2))]}
	var blocks []content.Block
	for range r.IntN(4) {
		id := string(rune('a' + r.IntN(12)))
		switch r.IntN(9) {
		case 0, 1:
			blocks = append(blocks, call(id))
		case 2, 3, 4:
			blocks = append(blocks, result(id, "ok"))
		case 5:
			blocks = append(blocks, picture)
		case 6:
			blocks = append(blocks, text([]string{"", "done", "words"}[r.IntN(3)]))
			if r.IntN(3) == 0 {
				blocks = append(blocks, content.Text{Text: "part", Extra: content.Extra{API: "item", JSON: content.JSON(`{"` + id + `":0}`)}})
			}
		case 7:
			blocks = append(blocks, opaqueCall(id))
		case 8:
			blocks = append(blocks, content.Document{Source: content.Source{Text: "x"}})
		}
	}
	m.Blocks = must(blocks)
	return m
}

// randomStep is what usually comes next in a conversation, and sometimes anything.
func randomStep(r *rand.Rand, n int) []content.Message {
	id := fmt.Sprint("id", n)
	switch r.IntN(6) {
	case 0:
		return []content.Message{randomMessage(r)}
	case 1:
		return []content.Message{user(text("Hi"))}
	case 2:
		return []content.Message{assistant(text("Hello"))}
	case 3:
		return []content.Message{assistant(opaqueCall(id), call(id+"x")), user(result(id+"x", "1")), assistant(text("done"))}
	default:
		return []content.Message{assistant(text("x"), call(id)), user(result(id, "1"))}
	}
}

func encodedString(e dialect.Encoded) string {
	return fmt.Sprintf("%s\n%v\n%d", bytes.Join(e.Items(), nil), e.Notes, e.Len())
}

// TestRememberingIsNeverSeen lets conversations grow and branch, and compares each request with the one that is made by an
// encoding that remembers nothing.
func TestRememberingIsNeverSeen(t *testing.T) {
	first, rounds := seedtest.First(t), uint64(seedtest.Rounds(40, 4000))
	for seed := first; seed < first+rounds; seed++ {
		r := rand.New(rand.NewPCG(seed, 7))
		e := strange()
		var messages []content.Message
		branches := [][]content.Message{nil}
		for step := range 60 {
			if r.IntN(12) == 0 {
				at := branches[r.IntN(len(branches))]
				messages = append([]content.Message(nil), at[:r.IntN(len(at)+1)]...)
			}
			messages = append(messages, randomStep(r, step)...)
			if r.IntN(5) == 0 {
				branches = append(branches, append([]content.Message(nil), messages...))
			}
			got, want := e.Encode(messages), strange().Encode(messages)
			require.Equal(t, encodedString(want), encodedString(got), "seed %d, step %d", seed, step)
			requireSame(t, want.Messages(), got.Messages())
			repaired, notes := dialect.Repair(messages, e.Rules)
			requireSame(t, repaired, got.Messages())
			require.Equal(t, notes, got.Notes)
		}
	}
}

// TestItemIDsOfSettledMessagesAreRemembered grows a conversation message by message, and then repeats each of its items.
func TestItemIDsOfSettledMessagesAreRemembered(t *testing.T) {
	e, item := strange(), func(n int) content.Block { return itemText(fmt.Sprint("item", n), "said") }
	var messages []content.Message
	for n := range 60 {
		messages = append(messages, user(text("Hi")), assistant(item(n)))
		e.Encode(messages)
	}
	for n := range 60 {
		again := append(messages[:len(messages):len(messages)], user(text("Again")), assistant(item(n)), user(text("Bye")))
		got := e.Encode(again)
		require.Equal(t, encodedString(strange().Encode(again)), encodedString(got), "item %d", n)
		require.Len(t, got.Notes, 1, "item %d", n)
	}
}

// TestAnAnswerKnowsTheCallsBeforeIt names the tool beside each result, while the conversation grows.
func TestAnAnswerKnowsTheCallsBeforeIt(t *testing.T) {
	e := &dialect.Encoding{
		Append: func(dst []byte, m content.Message, _ int) []byte { return append(dst, m.Role[0]) },
		AppendAnswer: func(dst []byte, calls []content.ToolUse, m content.Message, _ int) []byte {
			for i, r := range m.Blocks.ToolResults() {
				dst = fmt.Appendf(dst, "%s %s ", r.CallID, calls[i].Name)
			}
			return dst
		},
	}
	messages, want := []content.Message{user(text("Hi"))}, "u"
	for n := range 60 {
		id := fmt.Sprint(n)
		messages = append(messages,
			assistant(content.ToolUse{ID: id + "a", Name: "f" + id, Input: "{}"}, content.ToolUse{ID: id + "b", Name: "g" + id, Input: "{}"}),
			user(result(id+"b", "1"), result(id+"a", "2")))
		want += fmt.Sprintf(",a,%sa f%s %sb g%s ", id, id, id, id)
		require.Equal(t, want, string(bytes.Join(e.Encode(messages).Items(), nil)))
	}
	spoken := append(messages, assistant(text("x")), user(text("y")))
	require.Equal(t, want+",a,u", string(bytes.Join(e.Encode(spoken).Items(), nil)))
}

// TestPrefixIsReusedOnlyWhereTheAssistantFollows goes on after a settled message of the user with another one of the user: both are one
// message then, which is not what was settled.
func TestPrefixIsReusedOnlyWhereTheAssistantFollows(t *testing.T) {
	long := func(messages list) list {
		for range 40 {
			messages = append(messages, assistant(text("x")), user(text("y")))
		}
		return messages
	}
	e := strange()
	base := long(list{user(text("Hi"))})
	e.Encode(base)

	for at := 1; at < len(base); at += 2 {
		require.Equal(t, content.User, base[at-1].Role)
		other := long(append(base[:at:at], user(text("and"))))
		want, got := strange().Encode(fresh(other)), e.Encode(other)
		require.Equal(t, encodedString(want), encodedString(got), "after %d messages", at)
		require.Equal(t, want.Len(), got.Len())
	}
}

// fresh is messages that remember nothing.
func fresh(messages list) list {
	var all list
	for _, m := range messages {
		all = append(all, content.Message{Role: m.Role, Blocks: must(m.Blocks.Slice())})
	}
	return all
}
