package sessions_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/dag/sessions"
	"github.com/plait-dev/plait/node"
)

// spell is what a conversation says, one message a string.
func spell(d dag.DAG) []string {
	var all []string
	for _, m := range d.Messages() {
		s := string(m.Role[:1]) + ":"
		for _, b := range m.Blocks.All() {
			switch b := b.(type) {
			case content.Text:
				s += b.Text
			case content.Thinking:
				s += "(" + b.Text + b.Redacted + ")"
			case content.ToolUse:
				s += "?" + b.ID
			case content.ToolResult:
				s += "!" + b.CallID + "=" + b.Content.Text()
			default:
				s += fmt.Sprintf("%T", b)
			}
		}
		all = append(all, s)
	}
	return all
}

// undeclaredOnly checks that a conversation is sound but for what such a file never holds, the definitions of its tools; and that
// sending it changes nothing.
func undeclaredOnly(t testing.TB, d dag.DAG) {
	t.Helper()
	for _, f := range d.Validate() {
		require.Equal(t, dag.UndeclaredTool, f.Kind, f)
	}
	_, notes := dialect.Repair(d.Messages(), dialect.Rules{EndsOpen: func(content.Message) bool { return true }})
	for _, n := range notes {
		require.Equal(t, "merged", n.Kind, n) // as the original does where the user speaks twice
	}
}

func TestClaudeCodeSession(t *testing.T) {
	in := open(t, sessions.ClaudeCode, "testdata/claude-code.jsonl")
	require.Len(t, in.Conversations, 2)
	for _, d := range in.Conversations {
		undeclaredOnly(t, d)
	}
	require.Equal(t, []string{
		"u:Which beds need water?", "a:(Two files to read.)I read both lists.?toolu_1?toolu_2",
		"u:!toolu_1=roses, beans!toolu_2=no such file", "a:The roses, I think.", "u:And the beans?", "a:Tomorrow.",
	}, spell(in.Conversations[1]), "an edited question is a fork")
	require.Equal(t, []string{"u:Kim asked about watering; the soil tells when.", "u:Thanks. Write it down."}, spell(in.Main()), "a summary stands for what it compacted")

	var said node.Message
	for _, n := range in.DAG.Nodes() {
		if m, ok := n.Message(); ok && m.Answer.ResponseID == "msg_1" {
			require.Zero(t, said.Blocks.Len(), "the lines of one answer are one message")
			said = m
			require.Equal(t, "00000000-0000-4000-8000-000000000002", n.ID().String())
			require.Equal(t, time.Date(2026, 3, 1, 9, 0, 2, 250e6, time.UTC), n.Time())
			require.Equal(t, content.JSON(`{"requestId":"req_msg_1","message":{"usage":{"service_tier":"standard"}}}`), n.Meta().Get("claude-code"))
			require.Contains(t, n.Meta().Get("claude-code.lines"), "-000000000005")
		}
	}
	requireSeenElsewhere(t, in.Conversations[1], &said.Answer)
	require.Equal(t, node.Answer{
		API: "anthropic", Model: "claude-sonnet-4-5", ResponseID: "msg_1", Stop: content.StopToolUse,
		Usage: content.Usage{Input: 4, Output: 57, CacheRead: 20, CacheWrite: 10},
	}, said.Answer)
	require.Equal(t, content.Thinking{Text: "Two files to read.", Signature: "c2lnbmVk", Extra: content.Extra{API: "anthropic", JSON: "{}"}}, said.Blocks.At(0))

	runs := map[string]*node.Node{}
	for _, n := range in.DAG.Nodes() {
		if e, ok := n.Payload().(node.ToolExecution); ok {
			runs[e.CallID] = n
		}
	}
	first := runs["toolu_1"].Payload().(node.ToolExecution)
	require.Equal(t, content.JSON(`{"type":"text","file":{"filePath":"beds.txt","numLines":1}}`), first.Details)
	require.False(t, first.Ended.IsZero())
	require.Equal(t, "When two fingers deep is dry.", dag.FromNode(runs["toolu_3"]).Text(), "the sub-agent hangs on the call")
	require.Equal(t, content.JSON(`"/home/kim/garden"`), in.DAG.Metadata().Get("claude-code.cwd"))
}

// requireSeenElsewhere requires that an answer says that its model had seen what is not in the file, and that no thinking is sent again.
// It takes that out of the answer.
func requireSeenElsewhere(t *testing.T, d dag.DAG, a *node.Answer) {
	t.Helper()
	require.NotZero(t, a.Seen)
	a.Seen = node.Seen{}
	thoughts := 0
	for _, m := range d.Transcript().Messages {
		for _, b := range m.Blocks.All() {
			if thought, ok := b.(content.Thinking); ok {
				thoughts++
				require.True(t, thought.Stale)
			}
		}
	}
	require.NotZero(t, thoughts)
}

func TestAnEmptyFileIsNoSession(t *testing.T) {
	for _, format := range sessions.Formats() {
		for _, text := range []string{"", "\n \n"} {
			_, err := sessions.Import(format, strings.NewReader(text), nil)
			require.ErrorIs(t, err, sessions.ErrSyntax, "%s", format)
		}
	}
}

func TestImportingTwiceGivesTheSame(t *testing.T) {
	for format, file := range samples {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		twice := func(o *sessions.Options) (texts []string) {
			for range 2 {
				in, err := sessions.Import(format, bytes.NewReader(data), o)
				require.NoError(t, err)
				var text strings.Builder
				require.NoError(t, in.DAG.Write(&text))
				texts = append(texts, text.String()+fmt.Sprint(in.Notes))
			}
			return texts
		}

		same := twice(&sessions.Options{Session: "mine"})
		require.Equal(t, same[0], same[1], format)

		// The ID of a session is in the file.
		own := twice(nil)
		require.Equal(t, own[0], own[1], format)
		require.Equal(t, own[0], same[0], format)
	}
}

func TestIDsDoNotDependOnContent(t *testing.T) {
	ids := func(format sessions.Format, file, pin string) string {
		in, err := sessions.Import(format, strings.NewReader(strings.ReplaceAll(file, "PIN", pin)), &sessions.Options{Session: "mine"})
		require.NoError(t, err)
		var all []node.ID
		for _, n := range in.DAG.Nodes() {
			all = append(all, n.ID())
		}
		require.NotEmpty(t, all)
		return fmt.Sprint(all)
	}

	for format, file := range map[sessions.Format]string{
		sessions.NanoAgent:  `{"head_ids":["a"],"nodes":{` + saved("a", "", `{"role":"user","content":"PIN"}`) + `}}`,
		sessions.ClaudeCode: `{"type":"user","uuid":"a","parentUuid":null,"message":{"role":"user","content":"PIN"}}`,
		sessions.Pi:         `{"type":"session","version":3}` + "\n" + `{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"PIN"}}`,
	} {
		require.Equal(t, ids(format, file, "1"), ids(format, file, "2"), format)
	}
}

// TestRecordedSessions reads what the programs of npm wrote, cut to a readable length.
func TestRecordedSessions(t *testing.T) {
	for path, format := range map[string]sessions.Format{
		"testdata/claude-code-2.1.332.jsonl": sessions.ClaudeCode, "testdata/pi-0.73.1.jsonl": sessions.Pi,
	} {
		in := open(t, format, path)
		require.Len(t, in.Conversations, 1, path)
		for _, n := range in.Notes {
			require.True(t, n.Kind == sessions.NoteRecord, "%s: %s", path, n)
		}
		d := in.Main()
		undeclaredOnly(t, d)
		tr := d.Transcript()
		require.Len(t, tr.Messages, 4, path)
		require.Equal(t, "Say hello.", tr.Messages[0].Blocks.Text())

		answer, _ := tr.Nodes[1].Message()
		require.Equal(t, "anthropic", answer.Answer.API)
		require.Equal(t, "claude-sonnet-4-5", answer.Answer.Model)
		require.Equal(t, "msg_1", answer.Answer.ResponseID)
		require.Equal(t, content.StopToolUse, answer.Answer.Stop)
		require.Equal(t, content.Usage{Input: 60, Output: 20, CacheRead: 40, CacheWrite: 5}, answer.Answer.Usage)
		require.Equal(t, "c2VjcmV0", answer.Blocks.At(0).(content.Thinking).Signature)
		require.Equal(t, "I look first.", answer.Blocks.Text())
		require.JSONEq(t, `{"command":"echo hello"}`, string(answer.Blocks.ToolUses()[0].Input))
		require.Contains(t, tr.Messages[2].Blocks.ToolResults()[0].Content.Text(), "hello")
		require.Equal(t, "It says hello.", d.Text())
	}
}

var samples = map[sessions.Format]string{
	sessions.ClaudeCode: "testdata/claude-code.jsonl", sessions.Pi: "testdata/pi.jsonl",
	sessions.Codex: "testdata/codex.jsonl", sessions.OpenCode: "testdata/opencode.json",
}

// claude writes a session: each line is its id, what it follows, and the rest.
type claude []string

func (c *claude) add(id, above, kind, rest string) {
	if above != "null" {
		above = `"` + above + `"`
	}
	*c = append(*c, `{"uuid":"`+id+`","parentUuid":`+above+`,"type":"`+kind+`",`+rest+`}`)
}

func (c *claude) user(id, above, words string, more ...string) {
	c.add(id, above, "user", `"message":{"role":"user","content":"`+words+`"}`+strings.Join(more, ""))
}

func (c *claude) result(id, above, call string, more ...string) {
	c.add(id, above, "user", `"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"`+call+`","content":"did `+call+`"}]}`+strings.Join(more, ""))
}

func (c *claude) assistant(id, above, answer, words string, calls ...string) {
	blocks := `{"type":"text","text":"` + words + `"}`
	for _, call := range calls {
		blocks += `,{"type":"tool_use","id":"` + call + `","name":"f","input":{"prompt":"ask ` + call + `"}}`
	}
	c.add(id, above, "assistant", `"message":{"role":"assistant","id":"`+answer+`","content":[`+blocks+`]}`)
}

func (c claude) String() string { return strings.Join(c, "\n") }

func TestClaudeCodeResultsBetweenTheLinesOfOneAnswer(t *testing.T) {
	var c claude
	c.user("u", "null", "go")
	c.assistant("a1", "u", "m", "one", "t1")
	c.result("r1", "a1", "t1")
	c.assistant("a2", "r1", "m", "two", "t2")
	c.add("p", "a2", "progress", `"data":{}`)
	c.result("r2", "p", "t2")
	c.assistant("b", "r1", "n", "done")
	in := imported(t, sessions.ClaudeCode, c.String())
	require.Len(t, in.Conversations, 1)
	undeclaredOnly(t, in.Main())
	require.Equal(t, []string{"u:go", "a:one?t1two?t2", "u:!t1=did t1!t2=did t2", "a:done"}, spell(in.Main()))
}

func TestClaudeCodeAnOpenPhaseStaysOpen(t *testing.T) {
	var c claude
	c.user("u", "null", "go")
	c.assistant("a", "u", "m", "x", "t1", "t2")
	c.result("r", "a", "t1")
	c = append(c, `{"type":"last-prompt","lastPrompt":"go"}`)
	in := imported(t, sessions.ClaudeCode, c.String())
	open := in.Main().OpenCalls()
	require.Len(t, open, 1)
	require.Equal(t, "t2", open[0].ID)
	require.Equal(t, 2, open[0].Index, "the text is block 0")
	executed, ok := in.Main().Head().Payload().(node.ToolExecution)
	require.True(t, ok)
	require.Equal(t, 1, executed.Index)
	require.Equal(t, []string{"message", "custom", "message", "tool_execution"}, kinds(in.Main()))
	closed := in.Main().CloseTools(node.ToolExecution{Index: open[0].Index, Result: content.Words("late")})
	require.NoError(t, closed.Err())
	require.Equal(t, "u:!t1=did t1!t2=late", spell(closed)[2])
}

func kinds(d dag.DAG) []string {
	var all []string
	for _, n := range d.Nodes() {
		all = append(all, n.Kind())
	}
	return all
}

func TestClaudeCodeACallThatGotNoResult(t *testing.T) {
	var c claude
	c.user("u", "null", "go")
	c.assistant("a", "u", "m", "x", "t1", "t2")
	c.result("r", "a", "t1")
	c.user("v", "r", "stop that")
	in := imported(t, sessions.ClaudeCode, c.String())
	require.Equal(t, "u:!t1=did t1!t2="+content.NoResult, spell(in.Main())[2])
	require.Equal(t, sessions.NoteAssumed, in.Notes[0].Kind)
	undeclaredOnly(t, in.Main())
}

func TestClaudeCodeRepeatedCallsAreABranch(t *testing.T) {
	var c claude
	c.user("u", "null", "go")
	c.assistant("a", "u", "m", "x", "t")
	c.result("r", "a", "t")
	c.assistant("b", "r", "n", "first")
	c.result("r2", "a", "t")
	c.assistant("b2", "r2", "o", "second")
	c.result("r3", "r2", "t")
	in := imported(t, sessions.ClaudeCode, c.String())
	require.Len(t, in.Conversations, 3)
	require.Equal(t, []string{"u:go", "a:x?t", "u:!t=did t", "a:second"}, spell(in.Conversations[1]))
	require.Equal(t, "first", in.Conversations[2].Text())
	require.Equal(t, "u:!t=did t", spell(in.Main())[3], "a second result stays where it stands")
}

func TestClaudeCodeSubAgents(t *testing.T) {
	side := `,"isSidechain":true,"agentId":"x1"`
	t.Run("by_the_id_of_the_agent", func(t *testing.T) {
		var c claude
		c.user("u", "null", "go")
		c.assistant("a", "u", "m", "", "t")
		c.result("r", "a", "t", `,"toolUseResult":{"agentId":"x1"}`)
		c.user("s", "null", "other words", side)
		c = append(c, `{"uuid":"s2","parentUuid":"s","type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"sub"}]}`+side+`}`)
		in := imported(t, sessions.ClaudeCode, c.String())
		require.Equal(t, "sub", dag.FromNode(in.Main().Head().Parent(0)).Text())
		require.Equal(t, []string{"message", "message", "tool_execution", "message"}, kinds(in.Main()))
	})
	t.Run("of_a_call_without_result", func(t *testing.T) {
		var c claude
		c.user("u", "null", "go")
		c.assistant("a", "u", "m", "", "t")
		c.user("s", "null", "ask t", `,"isSidechain":true`)
		in := imported(t, sessions.ClaudeCode, c.String())
		require.Len(t, in.Main().OpenCalls(), 1)
		sub := in.Main().Nodes()[1].Payload().(node.SubGraph)
		require.Equal(t, "t", sub.CallID)
	})
	t.Run("of_no_call", func(t *testing.T) {
		var c claude
		c.user("u", "null", "go")
		c.user("s", "null", "warm up", `,"isSidechain":true`)
		c.user("s2", "s", "go on", `,"isSidechain":true`)
		c.assistant("a", "u", "m", "done")
		in := imported(t, sessions.ClaudeCode, c.String())
		require.Equal(t, []string{"message", "sub_graph", "message"}, kinds(in.Main()))
		require.Equal(t, 2, dag.FromNode(in.Main().Nodes()[1]).Len())
		require.Equal(t, sessions.NoteAssumed, in.Notes[0].Kind)
	})
	t.Run("alone_in_their_file", func(t *testing.T) {
		var c claude
		c.user("s", "elsewhere", "ask", side)
		c.user("s2", "s", "more", side)
		require.Equal(t, []string{"u:ask", "u:more"}, spell(imported(t, sessions.ClaudeCode, c.String()).Main()))
	})
	t.Run("in_a_circle", func(t *testing.T) {
		var c claude
		c.user("u", "null", "go")
		for _, pair := range [][2]string{{"x", "y"}, {"y", "x"}, {"z", "z"}} {
			me := `,"isSidechain":true,"agentId":"` + pair[0] + `"`
			c.user(pair[0]+"1", "null", "ask "+pair[0], me)
			c.add(pair[0]+"2", pair[0]+"1", "assistant", `"message":{"role":"assistant","id":"m`+pair[0]+`","content":[{"type":"tool_use","id":"t`+pair[0]+`","name":"f","input":{}}]}`+me)
			c.result(pair[0]+"3", pair[0]+"2", "t"+pair[0], me+`,"toolUseResult":{"agentId":"`+pair[1]+`"}`)
		}
		require.Len(t, imported(t, sessions.ClaudeCode, c.String()).DAG.WithChildren(), 1+2+3*4)
	})
}

func TestClaudeCodeSummaries(t *testing.T) {
	var c claude
	c.user("u", "null", "one")
	c.assistant("a", "u", "m", "two")
	c.user("v", "a", "three")
	c.add("b", "null", "system", `"subtype":"compact_boundary","logicalParentUuid":"v","compactMetadata":{"preservedSegment":{"headUuid":"v","tailUuid":"v"}}`)
	c.user("s", "b", "sum", `,"isCompactSummary":true`)
	c.user("w", "s", "four")
	in := imported(t, sessions.ClaudeCode, c.String())
	require.Equal(t, []string{"u:sum", "u:three", "u:four"}, spell(in.Main()), "what is preserved stays")
	undeclaredOnly(t, in.Main())

	c.add("b2", "null", "system", `"subtype":"compact_boundary","logicalParentUuid":"w"`)
	c.user("s2", "b2", "sum 2", `,"isCompactSummary":true`)
	c.user("x", "s2", "five")
	in = imported(t, sessions.ClaudeCode, c.String())
	require.Equal(t, []string{"u:sum 2", "u:five"}, spell(in.Main()))
	for _, n := range in.Main().Nodes() {
		if c, ok := n.Payload().(node.Compaction); ok && c.Summary.Text() == "sum 2" {
			require.Equal(t, 3, c.Replaced.Len(), "what the first one replaced is not named again")
		}
	}
	undeclaredOnly(t, in.Main())

	c = nil
	c.add("b", "null", "system", `"subtype":"compact_boundary","logicalParentUuid":"elsewhere"`)
	c.user("s", "b", "sum", `,"isCompactSummary":true`)
	in = imported(t, sessions.ClaudeCode, c.String())
	require.Equal(t, []string{"u:sum"}, spell(in.Main()))
	require.Empty(t, in.Main().Validate())
}

func TestClaudeCodeTranscriptIsWhatTheModelSaw(t *testing.T) {
	var c claude
	c.user("u", "null", "skill", `,"isMeta":true`)
	c.add("e", "u", "assistant", `"isApiErrorMessage":true,"message":{"role":"assistant","model":"<synthetic>","content":[{"type":"text","text":"API Error"}]}`)
	c.user("v", "e", "only shown", `,"isVisibleInTranscriptOnly":true`)
	c.user("w", "v", "on")
	in := imported(t, sessions.ClaudeCode, c.String())
	require.Equal(t, []string{"u:skill", "u:on"}, spell(in.Main()))
	require.Equal(t, content.JSON(`{"isMeta":true}`), in.Main().Nodes()[0].Meta().Get("claude-code"))
	require.Len(t, in.Notes, 2)
}

func TestClaudeCodeTwoSessionsAndRepeatedLines(t *testing.T) {
	var c claude
	id := uuid.NewString()
	c.user(id, "null", "one")
	c.assistant("a1", id, "m", "x")
	c.assistant("a2", "a1", "m", "y")
	c = append(c, c...)
	c.user("w", "null", "two")
	in := imported(t, sessions.ClaudeCode, c.String())
	require.Len(t, in.Conversations, 2)
	require.Equal(t, []string{"u:two"}, spell(in.Main()))
	require.Equal(t, []string{"u:one", "a:xy"}, spell(in.Conversations[1]))
	require.Len(t, in.Notes, 3)
	require.Equal(t, id, in.Conversations[1].Nodes()[0].ID().String())
}

func TestBrokenLinesAreErrorsThatNameThem(t *testing.T) {
	good := `{"uuid":"u","parentUuid":null,"type":"user","message":{"role":"user","content":"x"}}`
	user := func(id, above string) string {
		return `{"uuid":"` + id + `","parentUuid":"` + above + `","type":"user","message":{"role":"user","content":"` + id + `"}}`
	}
	for name, c := range map[string]struct {
		lines []string
		line  int
		is    error
	}{
		"no JSON":        {[]string{good, "", `{"uuid"]`}, 3, sessions.ErrSyntax},
		"a name twice":   {[]string{good, `{"type":"user","type":"x"}`}, 2, sessions.ErrSyntax},
		"no object":      {[]string{good, `[1]`}, 2, sessions.ErrShape},
		"no type":        {[]string{good, `{}`}, 2, sessions.ErrShape},
		"bad content":    {[]string{good, `{"type":"user","uuid":"v","message":{"content":7}}`}, 2, sessions.ErrShape},
		"missing parent": {[]string{good, user("v", "w")}, 2, node.ErrParent},
		"its own parent": {[]string{good, user("v", "v")}, 2, sessions.ErrCycle},
		"a cycle":        {[]string{good, user("v", "w"), user("w", "v")}, 2, sessions.ErrCycle},
		"an id twice":    {[]string{good, user("u", "u")}, 2, dag.ErrDuplicateID},
		"too deep":       {[]string{good, `{"type":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`}, 2, sessions.ErrSyntax},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Join(c.lines, "\n")
			_, err := sessions.Import(sessions.ClaudeCode, strings.NewReader(text), nil)
			var e *sessions.Error
			require.ErrorAs(t, err, &e)
			require.ErrorIs(t, err, c.is)
			require.Equal(t, c.line, e.Line)
		})
	}
}

func TestClaudeCodeALineWithSeveralResultsAndWords(t *testing.T) {
	var c claude
	c.user("u", "null", "go")
	c.assistant("a", "u", "m", "x", "t1", "t2")
	c.add("r", "a", "user", `"toolUseResult":{"n":1},"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","content":"two"},{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"one"},{"type":"tool_result","tool_use_id":"x"}]},{"type":"text","text":"and then"}]}`)
	in := imported(t, sessions.ClaudeCode, c.String())
	require.Equal(t, "u:!t1=one!t2=twoand then", spell(in.Main())[2])
	runs := in.Main().Head().Parents()
	require.Empty(t, runs[0].Payload().(node.ToolExecution).Details, "what a line tells of its results belongs to the first")
	require.Equal(t, content.JSON(`{"n":1}`), runs[1].Payload().(node.ToolExecution).Details)
	require.IsType(t, content.Opaque{}, runs[0].Payload().(node.ToolExecution).Result.At(1))
	var file strings.Builder
	require.NoError(t, in.DAG.Write(&file))
	require.Contains(t, file.String(), "result_of", "a result is saved once")
}

func TestIDsAreUniqueAndSortByTime(t *testing.T) {
	id := "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
	var c claude
	c.user(id, "null", "a")
	c.user(strings.ToUpper(id), id, "b")
	c.user("plain", strings.ToUpper(id), "c", `,"timestamp":"2026-03-01T09:00:00Z"`)
	nodes := imported(t, sessions.ClaudeCode, c.String()).Main().Nodes()
	require.Equal(t, id, nodes[0].ID().String())
	require.NotEqual(t, nodes[0].ID(), nodes[1].ID())
	require.Equal(t, uuid.Version(8), nodes[2].ID().Version())
	ms := uint64(0)
	derived := nodes[2].ID()
	for _, b := range derived[:6] {
		ms = ms<<8 | uint64(b)
	}
	require.EqualValues(t, nodes[2].Time().UnixMilli(), ms)
}

func TestClaudeCodeThinkingWithoutSignatureHasNoAPI(t *testing.T) {
	in := imported(t, sessions.ClaudeCode, `{"uuid":"a","type":"assistant","deep":`+strings.Repeat("[", 300)+strings.Repeat("]", 300)+`,"message":{"content":[{"type":"thinking","thinking":"x","signature":""},{"type":"redacted_thinking","data":"d"}]}}`)
	blocks := in.Main().Messages()[0].Blocks
	require.Equal(t, content.Thinking{Text: "x"}, blocks.At(0))
	require.Equal(t, content.Thinking{Redacted: "d", Extra: content.Extra{API: "anthropic", JSON: "{}"}}, blocks.At(1))
	require.Contains(t, in.Main().Head().Meta().Get("claude-code"), `[[[`, "what nests too deep for metadata is kept as text")
}

func TestLastLineThatIsBeingWrittenIsLeftOut(t *testing.T) {
	var c claude
	c.user("u", "null", "go")
	c.assistant("a", "u", "m", "größer \\u00e9")
	whole := imported(t, sessions.ClaudeCode, c[0])
	for cut := 1; cut < len(c[1]); cut++ {
		for _, end := range []string{"", "\n", "\n\n"} {
			in, err := sessions.Import(sessions.ClaudeCode, strings.NewReader(c[0]+"\n"+c[1][:cut]+end), nil)
			require.NoError(t, err, c[1][:cut])
			require.Equal(t, whole.Main().Head().Digest(), in.Main().Head().Digest())
			require.Equal(t, "[line 2: left out: the last line is incomplete]", fmt.Sprint(in.Notes))
		}
	}
}

func TestTornLineInTheMiddleIsAnError(t *testing.T) {
	var c claude
	c.user("u", "null", "go")
	for name, text := range map[string]string{
		"before another":     c[0] + "\n" + c[0][:20] + "\n" + c[0],
		"before a torn line": c[0] + "\n" + c[0][:20] + "\n" + c[0][:30],
		"the only line":      c[0][:20],
	} {
		t.Run(name, func(t *testing.T) {
			_, err := sessions.Import(sessions.ClaudeCode, strings.NewReader(text), nil)
			require.ErrorIs(t, err, sessions.ErrSyntax)
		})
	}
}

// childCalls is which call each child conversation is of, by what the child was asked, and the titles of those that hang loose.
func childCalls(in sessions.Imported) map[string][]string {
	of := map[string][]string{}
	for _, n := range in.DAG.WithChildren() {
		switch p := n.Payload().(type) {
		case node.ToolExecution:
			if p.Child.Len() > 0 {
				of[p.CallID] = append(of[p.CallID], spell(dag.New().WithHeads(p.Child.Slice()...))...)
			}
		case node.SubGraph:
			of["loose"] = append(of["loose"], spell(dag.New().WithHeads(p.Heads.Slice()...))...)
		}
	}
	return of
}

func TestSubAgentsWithOnePromptHaveCallsOfTheirOwn(t *testing.T) {
	session := func(calls int, progress bool) sessions.Imported {
		var c claude
		c.user("u", "null", "go")
		above := "u"
		for i := range calls {
			id := "t" + itoa(i)
			c.add("a"+itoa(i), above, "assistant", `"message":{"role":"assistant","id":"m`+itoa(i)+`","content":[{"type":"tool_use","id":"`+id+`","name":"Task","input":{"prompt":"search"}}]}`)
			c.result("r"+itoa(i), "a"+itoa(i), id)
			above = "r" + itoa(i)
		}
		if progress { // the file says that the second agent ran for the first call
			c.add("p", above, "progress", `"parentToolUseID":"t0","data":{"agentId":"second"}`)
		}
		for _, agent := range []string{"first", "second"} {
			c.user("s-"+agent, "null", "search", `,"isSidechain":true,"agentId":"`+agent+`"`)
			c.add("z-"+agent, "s-"+agent, "assistant", `"message":{"role":"assistant","id":"w`+agent+`","content":[{"type":"text","text":"`+agent+`"}]},"isSidechain":true,"agentId":"`+agent+`"`)
		}
		return imported(t, sessions.ClaudeCode, c.String())
	}
	first, second := []string{"u:search", "a:first"}, []string{"u:search", "a:second"}
	require.Equal(t, map[string][]string{"t0": first, "t1": second}, childCalls(session(2, false)))
	require.Equal(t, map[string][]string{"t0": first, "loose": second}, childCalls(session(1, false)), "the call is taken")
	require.Equal(t, map[string][]string{"t0": second, "t1": first}, childCalls(session(2, true)), "what the file says comes first")
	require.Equal(t, map[string][]string{"t0": second, "loose": first}, childCalls(session(1, true)))
}
