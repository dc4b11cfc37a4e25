package sessions_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/dag/sessions"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/node"
)

// bothWays are the formats that are read and written.
var bothWays = []sessions.Format{sessions.Codex, sessions.OpenCode}

// exported writes and reads a conversation.
func exported(t *testing.T, format sessions.Format, d dag.DAG) (dag.DAG, []sessions.Loss) {
	t.Helper()
	var text bytes.Buffer
	lost, err := sessions.Export(format, &text, d, nil)
	require.NoError(t, err)
	in, err := sessions.Import(format, &text, &sessions.Options{Session: "s"})
	require.NoError(t, err, text.String())
	return in.Main(), lost
}

// forgotten describes a conversation without what is lost.
func forgotten(d dag.DAG, lost map[sessions.LossCode]bool) (lines []string) {
	t := d.Transcript()
	if !lost[sessions.LossSystem] {
		lines = append(lines, "system "+strings.Join(t.System, "|"))
	}
	for i, m := range t.Messages {
		var parts []string
		for _, b := range m.Blocks.All() {
			parts = append(parts, forgottenBlock(b, lost)...)
		}
		if len(parts) == 0 {
			continue
		}
		answer, _ := t.Nodes[i].Message()
		head := fmt.Sprint(m.Role, " ", answer.Answer.Model, " ", answer.Answer.Usage)
		if !lost[sessions.LossAnswers] {
			head += fmt.Sprint(" ", answer.Answer.Stop, " ", answer.Answer.ResponseID)
		}
		if n := len(m.Blocks.ToolResults()); lost[sessions.LossBounds] && n > 0 && n < len(parts) {
			lines, parts = append(lines, head+": "+strings.Join(parts[:n], ", ")), parts[n:]
		}
		lines = append(lines, head+": "+strings.Join(parts, ", "))
	}
	return lines
}

func forgottenBlock(b content.Block, lost map[sessions.LossCode]bool) []string {
	extra := func(e content.Extra) string {
		if lost[sessions.LossExtra] || e.JSON == "{}" {
			return ""
		}
		return string(e.JSON)
	}
	switch b := b.(type) {
	case content.Text:
		return []string{fmt.Sprintf("text %q %s", b.Text, extra(b.Extra))}
	case content.Thinking:
		if lost[sessions.LossThinking] {
			return nil
		}
		return []string{fmt.Sprintf("thinking %q %q %s", b.Text, b.Signature, extra(b.Extra))}
	case content.ToolUse:
		id, input := b.ID, b.Input
		if lost[sessions.LossCallIDs] {
			id = ""
		}
		if lost[sessions.LossArguments] || input == "" {
			input = "{}"
		}
		return []string{fmt.Sprintf("call %s %s %s %s", id, b.Name, input, extra(b.Extra))}
	case content.ToolResult:
		var inner []string
		for _, c := range b.Content.All() {
			inner = append(inner, forgottenBlock(c, lost)...)
		}
		if lost[sessions.LossTexts] || lost[sessions.LossOrder] {
			inner = []string{b.Content.Text()}
		}
		return []string{fmt.Sprint("result ", b.IsError && !lost[sessions.LossErrors], inner)}
	default:
		if lost[sessions.LossBlocks] {
			return nil
		}
		return []string{fmt.Sprintf("%T %+v", b, b)}
	}
}

// codes returns the codes of losses.
func codes(lists ...[]sessions.Loss) map[sessions.LossCode]bool {
	all := map[sessions.LossCode]bool{}
	for _, list := range lists {
		for _, l := range list {
			all[l.Code] = true
		}
	}
	return all
}

// thereAndBack checks that a conversation comes from one program to another and back without what the lists say, and
// with everything else.
func thereAndBack(t *testing.T, d dag.DAG) {
	for _, a := range bothWays {
		own, first := exported(t, a, d)
		require.Equal(t, forgotten(d, codes(first)), forgotten(own, codes(first)), a)
		again, lost := exported(t, a, own)
		require.Equal(t, forgotten(own, codes(lost)), forgotten(again, codes(lost)), "%s twice", a)
		for _, b := range bothWays {
			other, there := exported(t, b, own)
			back, here := exported(t, a, other)
			lost := codes(there, here)
			require.Equal(t, forgotten(own, lost), forgotten(back, lost), "%s → %s → %s, lost %v", a, b, a, lost)
		}
	}
}

func TestSessionsGoToAnotherProgramAndBack(t *testing.T) {
	for _, format := range sessions.Formats() {
		if path := samples[format]; path != "" {
			file, err := os.ReadFile(path)
			require.NoError(t, err)
			in, err := sessions.Import(format, bytes.NewReader(file), nil)
			require.NoError(t, err)
			t.Run(string(format), func(t *testing.T) { thereAndBack(t, in.Main()) })
		}
	}

	first := seedtest.First(t)
	rounds := uint64(30)
	if seedtest.All() {
		rounds = 1000
	}
	for i := range rounds {
		thereAndBack(t, generated(rand.New(rand.NewPCG(first+i, 1))))
	}
}

// generated makes a conversation with everything that a session may have.
func generated(random *rand.Rand) dag.DAG {
	chance := func(n int) bool { return random.IntN(n) == 0 }
	words := func() string {
		return []string{"a", "two words", "line\nline", "\"quoted\" \\ ü 🐝", "<tag> & more", " space "}[random.IntN(6)]
	}
	picture := content.Image{Source: content.Source{MediaType: "image/png", Data: "aGVsbG8="}}
	d := dag.New()
	for range random.IntN(3) {
		d = d.Append(node.System{Text: words(), Name: words()})
	}
	for turn := range 1 + random.IntN(5) {
		user := []content.Block{content.Text{Text: words()}}
		if chance(4) {
			user = append(user, picture, content.Text{Text: words()})
		}
		d = d.Append(node.Message{Role: content.User, Blocks: of(user...)})

		var blocks, results []content.Block
		if chance(2) {
			extra := content.Extra{API: "openai-responses", JSON: `{"id":"rs_1"}`}
			blocks = append(blocks, content.Thinking{Text: words(), Signature: "c2ln", Extra: extra})
		}
		for call := range random.IntN(4) {
			if chance(2) {
				blocks = append(blocks, content.Text{Text: words()})
			}
			id := fmt.Sprintf("call_%d_%d", turn, call)
			if chance(8) {
				id = "twice"
			}
			input := []content.JSON{`{"a":1}`, `{}`, `{"b":"x y"}`}[random.IntN(3)]
			blocks = append(blocks, content.ToolUse{ID: id, Name: "tool", Input: input})
			inner := []content.Block{content.Text{Text: words()}}
			if chance(4) {
				inner = append(inner, content.Text{Text: words()})
			}
			if chance(4) {
				inner = append(inner, picture)
			}
			results = append(results, content.ToolResult{CallID: id, Content: of(inner...), IsError: chance(4)})
		}
		stop := content.StopToolUse
		if len(results) == 0 {
			blocks = append(blocks, content.Text{Text: words()})
			if stop = content.StopEndTurn; chance(5) {
				stop = content.StopMaxTokens
			}
		}
		d = d.Append(node.Message{Role: content.Assistant, Blocks: of(blocks...), Answer: node.Answer{
			API: "openai-responses", Model: []string{"m", "n"}[random.IntN(2)], Stop: stop,
			Usage: content.Usage{Input: int64(random.IntN(100)), Output: 30, Reasoning: int64(random.IntN(30)), CacheRead: int64(random.IntN(50))},
		}})
		if len(results) > 0 {
			if chance(3) {
				results = append(results, content.Text{Text: words()})
			}
			d = d.Append(node.Message{Role: content.User, Blocks: of(results...)})
		}
	}
	return d
}

func of(blocks ...content.Block) content.Blocks {
	made, err := content.Of(blocks...)
	if err != nil {
		panic(err)
	}
	return made
}
