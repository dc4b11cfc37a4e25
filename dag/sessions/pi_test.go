package sessions_test

import (
	"fmt"
	"log"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag/sessions"
	"github.com/plait-dev/plait/node"
)

// A session of pi is a tree; its main conversation is where the session was left.
func ExampleImport_pi() {
	file, err := os.Open("testdata/pi.jsonl")
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	in, err := sessions.Import(sessions.Pi, file, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(in.DAG)
	for _, m := range in.Main().Messages() {
		fmt.Println(m.Role, m.Blocks.Text())
	}
	// Output:
	// ▫ record    pi.model_change type: model_change, id: aaaa0001, parentId: null, timestamp: 2026-04-01…
	// ○ user      What is on the shelf?
	// ● assistant → bash, read
	// ├─╮
	// ▪ │ bash(command: "ls shelf") → pots note
	// │ ▪ read(path: "shelf/note") → buy seeds
	// ├─╯
	// ◇ results   2
	// ● assistant Pots, and a note: buy seeds.
	// ├─╮
	// │ ≡ compaction On another branch the note was thrown away.
	// │ ○ user      Keep it. Which seeds?
	// │ ≡ compaction of 5 nodes: Kim looks for seeds.
	// │ ● assistant Beans, I would say.
	// │ ▫ record    (head 1) pi.label type: label, id: aaaa0013, parentId: aaaa0012, timestamp: 2026-04-0…
	// ○ user      Throw the note away.
	// ● assistant (head 2) Done.
	// user Kim looks for seeds.
	// user Keep it. Which seeds?
	// assistant Beans, I would say.
}

func TestPiSession(t *testing.T) {
	in := open(t, sessions.Pi, "testdata/pi.jsonl")
	require.Len(t, in.Conversations, 2)
	for _, d := range in.Conversations {
		undeclaredOnly(t, d)
	}
	require.Equal(t, []string{
		"u:What is on the shelf?", "a:(Look first.)?toolu_a?toolu_b", "u:!toolu_a=pots note!toolu_b=buy seeds",
		"a:Pots, and a note: buy seeds.", "u:Throw the note away.", "a:Done.",
	}, spell(in.Conversations[1]))
	require.Equal(t, content.JSON(`"/home/kim/shed"`), in.DAG.Metadata().Get("pi.cwd"))
	detailed := false
	for _, n := range in.Conversations[1].Nodes() {
		switch p := n.Payload().(type) {
		case node.Message:
			if p.Role == content.Assistant && p.Answer.Stop == content.StopToolUse {
				requireSeenElsewhere(t, in.Conversations[1], &p.Answer)
				require.Equal(t, node.Answer{API: "anthropic", Model: "claude-sonnet-4-5", Stop: content.StopToolUse, Usage: content.Usage{Input: 3, Output: 7, CacheRead: 11, CacheWrite: 2}}, p.Answer)
				require.Equal(t, content.Thinking{Text: "Look first.", Signature: "c2ln", Extra: content.Extra{API: "anthropic", JSON: "{}"}}, p.Blocks.At(0))
				require.Contains(t, n.Meta().Get("pi.message"), `"provider":"anthropic"`)
			}
		case node.ToolExecution:
			if p.Index == 2 { // after the thinking and the first call
				require.Equal(t, content.JSON(`{"lines":1}`), p.Details)
				detailed = true
			}
		}
	}
	require.True(t, detailed)
}

// piSays is a session of these messages, each after the one before it.
func piSays(messages ...string) string {
	lines := []string{`{"type":"session","version":3,"id":"s","timestamp":"2026-04-01T08:00:00Z"}`}
	above := "null"
	for i, m := range messages {
		lines = append(lines, fmt.Sprintf(`{"type":"message","id":"m%d","parentId":%s,"message":%s}`, i, above, m))
		above = fmt.Sprintf(`"m%d"`, i)
	}
	return strings.Join(lines, "\n")
}

func TestPiBlocksOfEachAPI(t *testing.T) {
	answer := func(api, blocks string) content.Blocks {
		in := imported(t, sessions.Pi, piSays(`{"role":"user","content":"go"}`, `{"role":"assistant","api":"`+api+`","content":[`+blocks+`],"stopReason":"stop"}`))
		return in.Main().Messages()[1].Blocks
	}
	thinking := func(more string) string { return `{"type":"thinking","thinking":"hm",` + more + `}` }
	own := func(api, j string) content.Extra { return content.Extra{API: api, JSON: content.JSON(j)} }
	for name, c := range map[string]struct {
		api, block string
		want       content.Block
	}{
		"anthropic":           {"anthropic-messages", thinking(`"thinkingSignature":"s"`), content.Thinking{Text: "hm", Signature: "s", Extra: own("anthropic", "{}")}},
		"anthropic, redacted": {"anthropic-messages", thinking(`"thinkingSignature":"s","redacted":true`), content.Thinking{Redacted: "s", Extra: own("anthropic", "{}")}},
		"anthropic, unsigned": {"anthropic-messages", thinking(`"redacted":false`), content.Thinking{Text: "hm"}},
		"responses": {"openai-codex-responses", thinking(`"thinkingSignature":"{\"type\":\"reasoning\",\"id\":\"rs\",\"encrypted_content\":\"e\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"hm\"}]}"`),
			content.Thinking{Text: "hm", Signature: "e", Extra: own("openai-responses", `{"id":"rs"}`)}},
		"responses, no item":  {"openai-responses", thinking(`"thinkingSignature":"x"`), content.Thinking{Text: "hm", Extra: own("pi", `{"thinkingSignature":"x"}`)}},
		"chat":                {"openai-completions", thinking(`"thinkingSignature":"reasoning_content"`), content.Thinking{Text: "hm", Extra: own("openai-chat", `{"field":"reasoning_content"}`)}},
		"gemini":              {"google-generative-ai", thinking(`"thinkingSignature":"s"`), content.Thinking{Text: "hm", Signature: "s", Extra: own("gemini", "{}")}},
		"gemini, text":        {"google-generative-ai", `{"type":"text","text":"t","textSignature":"s"}`, content.Text{Text: "t", Extra: own("gemini", `{"thoughtSignature":"s"}`)}},
		"gemini, call":        {"google-generative-ai", `{"type":"toolCall","id":"c","name":"f","arguments":{},"thoughtSignature":"s"}`, content.ToolUse{ID: "c", Name: "f", Input: "{}", Extra: own("gemini", `{"thoughtSignature":"s"}`)}},
		"responses, call":     {"openai-responses", `{"type":"toolCall","id":"c|fc","name":"f","arguments":{"x":1.0}}`, content.ToolUse{ID: "c", Name: "f", Input: `{"x":1.0}`, Extra: own("pi", `{"id":"c|fc"}`)}},
		"responses, text":     {"openai-responses", `{"type":"text","text":"t","textSignature":"msg_1"}`, content.Text{Text: "t", Extra: own("pi", `{"textSignature":"msg_1"}`)}},
		"a block of the next": {"anthropic-messages", `{"type":"hologram"}`, content.Opaque{API: "pi", JSON: `{"type":"hologram"}`}},
		"a call without name": {"anthropic-messages", `{"type":"toolCall","id":"c"}`, content.Opaque{API: "pi", JSON: `{"type":"toolCall","id":"c"}`}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, answer(c.api, c.block).At(0)) })
	}
}

func TestPiMessagesOfOtherRoles(t *testing.T) {
	in := imported(t, sessions.Pi, piSays(
		`{"role":"user","content":[{"type":"image","data":"AAAA","mimeType":"image/png"}]}`,
		`{"role":"assistant","content":[],"stopReason":"error","errorMessage":"overloaded"}`,
		`{"role":"bashExecution","command":"ls","output":"a b","exitCode":2,"cancelled":true}`,
		`{"role":"bashExecution","command":"secret","output":"x","excludeFromContext":true}`,
		`{"role":"custom","customType":"advisor","content":"mind the cat","display":true}`,
		`{"role":"branchSummary","summary":"tried before","fromId":"x"}`,
		`{"role":"assistant","api":"openai-responses","content":[{"type":"toolCall","id":"c|fc","name":"f","arguments":{}}],"stopReason":"toolUse"}`,
		`{"role":"toolResult","toolCallId":"c|fc","toolName":"f","content":[{"type":"text","text":"r"},{"type":"toolCall","id":"x","name":"y"}],"isError":true}`,
		`{"role":"oracle","content":"?"}`,
	))
	require.Equal(t, []string{
		"u:content.Image", "u:I ran this command: ls\n\na b\n\nIt ended with exit code 2.\n\nIt was cancelled.", "u:mind the cat", "u:tried before",
		"a:?c", "u:!c=r",
	}, spell(in.Main()))
	undeclaredOnly(t, in.Main())
	require.Contains(t, fmt.Sprint(in.Notes), "pi.message.error")
	require.Contains(t, fmt.Sprint(in.Notes), "pi.message.oracle")
}

func TestPiSessionsContinueAtTheirLeaf(t *testing.T) {
	fork := piSays(`{"role":"user","content":"a"}`, `{"role":"assistant","content":[{"type":"text","text":"b"}]}`, `{"role":"user","content":"c"}`)
	in := imported(t, sessions.Pi, fork+"\n"+`{"type":"label","id":"l","parentId":"m0","targetId":"m0","label":"here"}`)
	require.Equal(t, []string{"u:a"}, spell(in.Main()))
	require.Len(t, in.Conversations, 2)
	in = imported(t, sessions.Pi, fork+"\n"+`{"type":"leaf","id":"l","targetId":"m1"}`)
	require.Equal(t, []string{"u:a", "a:b"}, spell(in.Main()))
}

func TestPiCompactions(t *testing.T) {
	base := piSays(`{"role":"user","content":"a"}`, `{"role":"assistant","content":[{"type":"text","text":"b"}]}`, `{"role":"user","content":"c"}`)
	one := base + "\n" + `{"type":"compaction","id":"k1","parentId":"m2","summary":"S1","firstKeptEntryId":"m1"}
{"type":"message","id":"m4","parentId":"k1","message":{"role":"user","content":"d"}}`
	require.Equal(t, []string{"u:S1", "a:b", "u:c", "u:d"}, spell(imported(t, sessions.Pi, one).Main()))
	for kept, want := range map[string][]string{
		"m2": {"u:S2", "u:c", "u:d", "u:e"}, "m4": {"u:S2", "u:d", "u:e"}, "gone": {"u:S2", "u:e"},
	} {
		two := one + "\n" + `{"type":"compaction","id":"k2","parentId":"m4","summary":"S2","firstKeptEntryId":"` + kept + `"}
{"type":"message","id":"m5","parentId":"k2","message":{"role":"user","content":"e"}}`
		in := imported(t, sessions.Pi, two)
		require.Equal(t, want, spell(in.Main()), kept)
		require.Empty(t, in.Main().Validate())
	}
}

func TestPiFirstVersion(t *testing.T) {
	in := imported(t, sessions.Pi, `{"type":"session","id":"s","timestamp":"2025-12-01T08:00:00Z","provider":"anthropic","modelId":"m"}
{"type":"message","timestamp":"2025-12-01T08:00:01Z","message":{"role":"user","content":"a"}}
{"type":"message","timestamp":"2025-12-01T08:00:02Z","message":{"role":"assistant","content":[{"type":"text","text":"b"}],"stopReason":"stop"}}
{"type":"message","timestamp":"2025-12-01T08:00:03Z","message":{"role":"user","content":"c"}}
{"type":"compaction","timestamp":"2025-12-01T08:00:04Z","summary":"S","firstKeptEntryIndex":3,"tokensBefore":5}
{"type":"message","timestamp":"2025-12-01T08:00:05Z","message":{"role":"assistant","content":[{"type":"text","text":"d"}],"stopReason":"stop"}}`)
	require.Equal(t, []string{"u:S", "u:c", "a:d"}, spell(in.Main()))
}

func TestPiErrors(t *testing.T) {
	for text, is := range map[string]error{
		`{"type":"message","id":"a","parentId":"b","message":{"role":"user","content":"x"}}`: node.ErrParent,
		`{"type":"message","id":"a","message":7}`:                                            sessions.ErrShape,
		`{"id":"a"}`:        sessions.ErrShape,
		`{"type":"message"`: sessions.ErrSyntax,
		`{"type":"message","id":"a","message":{"role":"assistant","content":7}}`: sessions.ErrShape,
	} {
		_, err := sessions.Import(sessions.Pi, strings.NewReader(text), nil)
		require.ErrorIs(t, err, is)
	}
}

func TestPiAnswersThatFailedOrWereAbortedAreRecords(t *testing.T) {
	for _, stop := range []string{"aborted", "error"} {
		in := imported(t, sessions.Pi, piSays(`{"role":"user","content":"go"}`,
			`{"role":"assistant","api":"anthropic-messages","content":[{"type":"text","text":"half an ans"},{"type":"toolCall","id":"t","name":"f","arguments":{}}],"stopReason":"`+stop+`"}`,
			`{"role":"user","content":"again"}`))
		require.Equal(t, []string{"u:go", "u:again"}, spell(in.Main()), "pi does not send it again")
		kinds := map[string]int{}
		for _, n := range in.Main().Nodes() {
			if custom, ok := n.Payload().(node.Custom); ok {
				kinds[custom.Name]++
				require.Contains(t, string(custom.JSON), "half an ans")
			}
		}
		require.Equal(t, map[string]int{"pi.message." + stop: 1}, kinds)
	}
}

func TestSessionsOfAnotherProgramAreRefused(t *testing.T) {
	files := map[string]string{
		"pi":          `{"type":"session","version":3,"id":"a","cwd":"/x"}` + "\n" + `{"type":"message","id":"m","parentId":null,"message":{"role":"user","content":"hi"}}`,
		"claude-code": `{"type":"user","uuid":"u","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"hi"}}`,
		"langchain":   `{"type":"human","data":{"content":"hi"}}`,
	}
	for _, c := range []struct {
		format sessions.Format
		file   string
	}{
		{sessions.Pi, "claude-code"}, {sessions.Pi, "langchain"}, {sessions.ClaudeCode, "pi"}, {sessions.ClaudeCode, "langchain"},
	} {
		_, err := sessions.Import(c.format, strings.NewReader(files[c.file]), nil)
		var e *sessions.Error
		require.ErrorAs(t, err, &e, "%s as %s", c.file, c.format)
		require.ErrorIs(t, err, sessions.ErrShape)
		require.Equal(t, 1, e.Line)
		require.ErrorContains(t, err, "no line is in the format "+string(c.format))
	}

	// Lines of types that are not known yet are kept, beside one that is known.
	in := imported(t, sessions.Pi, files["pi"]+"\n"+`{"type":"new_kind","id":"n","parentId":"m"}`)
	require.Equal(t, []string{"u:hi"}, spell(in.Main())[:1])
}
