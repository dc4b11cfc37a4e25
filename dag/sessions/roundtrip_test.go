package sessions_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
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
var bothWays = []sessions.Format{sessions.ClaudeCode, sessions.Codex, sessions.OpenCode, sessions.Pi}

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
		answer := answerOf(t.Nodes[i])
		if lost[sessions.LossAnswers] {
			answer.Stop, answer.ResponseID, answer.Usage.Reasoning = "", "", 0
		}
		if answer.Stop == content.StopEndTurn || answer.Stop == content.StopToolUse {
			answer.Stop = "" // as the blocks have it
		}
		if lost[sessions.LossAPI] {
			answer.API = ""
		}
		head := fmt.Sprint(m.Role, " ", answer.API, " ", answer.Model, " ", answer.Usage, " ", answer.Stop, " ", answer.ResponseID)
		if n := len(m.Blocks.ToolResults()); lost[sessions.LossBounds] && n > 0 && n < len(parts) {
			lines, parts = append(lines, head+": "+strings.Join(parts[:n], ", ")), parts[n:]
		}
		lines = append(lines, head+": "+strings.Join(parts, ", "))
	}
	return lines
}

func answerOf(n *node.Node) node.Answer {
	m, _ := n.Message()
	return m.Answer
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
	}

	if lost[sessions.LossBlocks] {
		return nil
	}
	switch b := b.(type) {
	case content.Image:
		return []string{fmt.Sprintf("image %s %s", forgottenSource(b.Source, lost), extra(b.Extra))}
	case content.Document:
		return []string{fmt.Sprintf("document %q %s %s", b.Title, forgottenSource(b.Source, lost), extra(b.Extra))}
	default:
		return []string{fmt.Sprintf("%T %+v", b, b)}
	}
}

func forgottenSource(s content.Source, lost map[sessions.LossCode]bool) string {
	if s.URL != "" && lost[sessions.LossExtra] {
		s.MediaType = ""
	}
	return fmt.Sprintf("%+v", s)
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

// unwritten are the kinds of losses of a session that is read and written in its own format: these parts are not written.
var unwritten = []sessions.LossCode{
	sessions.LossDetails, sessions.LossMeta, sessions.LossRecords, sessions.LossBranches, sessions.LossChildren, sessions.LossCompacted,
}

// thereAndBack checks that a conversation comes from one program to another and back without what the lists say, and
// with everything else.
func thereAndBack(t *testing.T, d dag.DAG) {
	t.Helper()
	for _, a := range bothWays {
		own, first := exported(t, a, d)
		require.Equal(t, forgotten(d, codes(first)), forgotten(own, codes(first)), a)
		again, lost := exported(t, a, own)
		for _, l := range lost {
			require.Contains(t, unwritten, l.Code, "%s loses what it has said", a)
		}
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
	paths, err := filepath.Glob("testdata/*")
	require.NoError(t, err)
	for _, path := range paths {
		// The name of a file is that of its format, and the version of the program that wrote it.
		format := regexp.MustCompile("^[a-z]+(-[a-z]+)*").FindString(filepath.Base(path))
		t.Run(filepath.Base(path), func(t *testing.T) { thereAndBack(t, open(t, sessions.Format(format), path).Main()) })
	}

	first := seedtest.First(t)
	rounds := uint64(30)
	if seedtest.All() {
		rounds = 1000
	}
	for i := range rounds {
		t.Logf("seed %d", first+i)
		thereAndBack(t, generated(rand.New(rand.NewPCG(first+i, 1))))
	}
}

func TestSignaturesAndResponsesStayApart(t *testing.T) {
	signed := content.Extra{API: "gemini", JSON: `{"thoughtSignature":"c2ln"}`}
	answer := node.Answer{API: "gemini", Model: "m", ResponseID: "same", Stop: content.StopToolUse}
	d := dag.New().User("a").Append(node.Message{Role: content.Assistant, Answer: answer, Blocks: of(
		content.Text{Text: "b", Extra: signed}, content.ToolUse{ID: "c", Name: "f", Input: `{}`, Extra: signed},
	)}).Append(node.Message{Role: content.User, Blocks: of(content.ToolResult{CallID: "c"})})
	answer.Stop = content.StopEndTurn
	d = d.Append(node.Message{Role: content.Assistant, Answer: answer, Blocks: of(content.Text{Text: "d"})})

	own, lost := exported(t, sessions.Pi, d)
	require.Empty(t, lost)
	require.Equal(t, forgotten(d, nil), forgotten(own, nil))
	own, lost = exported(t, sessions.ClaudeCode, d)
	require.Equal(t, []sessions.Loss{{Code: "answers", Count: 1}, {Code: "api", Count: 2}, {Code: "extra", Count: 2}}, lost)
	require.Equal(t, forgotten(d, codes(lost)), forgotten(own, codes(lost)))
}

// thoughts are thinking of each API, as its own package makes it.
var thoughts = map[string]content.Thinking{
	"openai-responses": {Text: "summary", Signature: "c2ln", Extra: content.Extra{API: "openai-responses", JSON: `{"id":"rs_1"}`}},
	"anthropic":        {Text: "signed", Signature: "c2ln", Extra: content.Extra{API: "anthropic", JSON: `{}`}},
	"openai-chat":      {Text: "named", Extra: content.Extra{API: "openai-chat", JSON: `{"field":"reasoning_content"}`}},
	"gemini":           {Text: "signed", Signature: "c2ln", Extra: content.Extra{API: "gemini", JSON: `{}`}},
	"":                 {Text: "plain"},
}

// generated makes a conversation with everything that a session may have.
func generated(random *rand.Rand) dag.DAG {
	chance := func(n int) bool { return random.IntN(n) == 0 }
	words := func() string {
		return []string{"a", "two words", "line\nline", "\"quoted\" \\ ü 🐝", "<tag> & more", " space "}[random.IntN(6)]
	}
	file := func() content.Block {
		return []content.Block{
			content.Image{Source: content.Source{MediaType: "image/png", Data: "aGVsbG8="}},
			content.Image{Source: content.Source{URL: "https://example.com/a.png"}},
			content.Image{Source: content.Source{URL: "https://example.com/a.png", MediaType: "image/png"}},
			content.Document{Source: content.Source{MediaType: "application/pdf", Data: "aGVsbG8="}, Title: words()},
			content.Document{Source: content.Source{MediaType: "text/plain", Text: words()}},
		}[random.IntN(5)]
	}
	d := dag.New()
	for range random.IntN(3) {
		d = d.Append(node.System{Text: words(), Name: words()})
	}
	called := false // the last message has results
	for turn := range 1 + random.IntN(5) {
		user := []content.Block{content.Text{Text: words()}}
		if chance(4) {
			user = append(user, file(), content.Text{Text: words()})
		}
		if !called || chance(2) {
			d = d.Append(node.Message{Role: content.User, Blocks: of(user...)})
		}

		var blocks, results []content.Block
		api := slices.Sorted(maps.Keys(thoughts))[random.IntN(len(thoughts))]
		extra := content.Extra{}
		if chance(4) && api != "" {
			extra = content.Extra{API: api, JSON: []content.JSON{`{"more":"members"}`, `{"thoughtSignature":"c2ln"}`}[random.IntN(2)]}
		}
		if chance(2) {
			blocks = append(blocks, thoughts[api])
		}
		if chance(8) {
			blocks = append(blocks, content.Thinking{Redacted: "ZGF0YQ==", Extra: content.Extra{API: "anthropic", JSON: `{}`}})
		}
		for call := range random.IntN(4) {
			if chance(2) {
				blocks = append(blocks, content.Text{Text: words(), Extra: extra})
			}
			id := fmt.Sprintf("call_%d_%d", turn, call)
			if chance(8) {
				id = []string{"twice", "call|item"}[random.IntN(2)]
			}
			input := []content.JSON{`{"a":1}`, `{}`, `{"b":"x y"}`}[random.IntN(3)]
			blocks = append(blocks, content.ToolUse{ID: id, Name: "tool", Input: input, Extra: extra})
			inner := []content.Block{content.Text{Text: words()}}
			if chance(4) {
				inner = append(inner, content.Text{Text: words()})
			}
			if chance(4) {
				inner = append(inner, file())
			}
			results = append(results, content.ToolResult{CallID: id, Content: of(inner...), IsError: chance(4)})
		}
		stop := content.StopToolUse
		if len(results) == 0 {
			blocks = append(blocks, content.Text{Text: words(), Extra: extra})
			if stop = content.StopEndTurn; chance(5) {
				stop = []content.Stop{content.StopMaxTokens, content.StopRefusal, content.StopContext, content.StopUnknown}[random.IntN(4)]
			}
		}
		responseID := fmt.Sprint("resp_", turn)
		if chance(3) {
			responseID = []string{"", "resp_0"}[random.IntN(2)]
		}
		d = d.Append(node.Message{Role: content.Assistant, Blocks: of(blocks...), Answer: node.Answer{
			API: api, Model: []string{"m", "n"}[random.IntN(2)], Stop: stop, ResponseID: responseID,
			Usage: content.Usage{
				Input: int64(random.IntN(100)), Output: 30, Reasoning: int64(random.IntN(3)),
				CacheRead: int64(random.IntN(50)), CacheWrite: int64(random.IntN(50)),
			},
		}})
		if called = len(results) > 0; called {
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
