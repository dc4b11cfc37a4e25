package sessions_test

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/dag/sessions"
	"github.com/plait-dev/plait/node"
)

// A session of Codex becomes one of OpenCode.
func ExampleExport() {
	file, err := os.Open("testdata/codex.jsonl")
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	in, err := sessions.Import(sessions.Codex, file, nil)
	if err != nil {
		log.Fatal(err)
	}

	var session bytes.Buffer
	lost, err := sessions.Export(sessions.OpenCode, &session, in.Main(), &sessions.ExportOptions{Folder: "/home/user/project"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("lost:", lost)
	in, err = sessions.Import(sessions.OpenCode, &session, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range in.Main().Messages()[1:] {
		fmt.Println(m.Role, m.Blocks.Text(), len(m.Blocks.ToolUses()), len(m.Blocks.ToolResults()))
	}
	// Output:
	// lost: [{answers 2} {api 2} {extra 2} {metadata 3} {records 12} {system 2} {thinking 1}]
	// user Say hello. 0 0
	// assistant I look first. 1 0
	// user  0 1
	// assistant It says hello. (2) 0 0
}

func TestCodexSession(t *testing.T) {
	in := open(t, sessions.Codex, "testdata/codex.jsonl")
	require.Len(t, in.Conversations, 1)
	d := in.Main()
	undeclaredOnly(t, d)
	tr := d.Transcript()
	require.Len(t, tr.System, 2)
	require.Len(t, tr.Messages, 5)

	answer, _ := tr.Nodes[2].Message()
	require.Equal(t, "gpt-5", answer.Answer.Model)
	require.Equal(t, "resp_1", answer.Answer.ResponseID)
	require.Equal(t, content.StopToolUse, answer.Answer.Stop)
	require.Equal(t, content.Usage{Input: 60, CacheRead: 40, Output: 20, Reasoning: 5}, answer.Answer.Usage)
	blocks := answer.Blocks
	require.Equal(t, "I look at the folder first.", blocks.At(0).(content.Thinking).Text)
	require.Equal(t, "c2VjcmV0", blocks.At(0).(content.Thinking).Signature)
	require.Equal(t, "I look first.", blocks.Text())
	require.Equal(t, "exec_command", blocks.ToolUses()[0].Name)
	require.Contains(t, tr.Messages[3].Blocks.ToolResults()[0].Content.Text(), "hello")
	require.JSONEq(t, `"/home/user/project"`, string(d.Metadata().Get("codex.cwd")))
}

func TestOpenCodeSession(t *testing.T) {
	in := open(t, sessions.OpenCode, "testdata/opencode.json")
	require.Empty(t, in.Notes)
	d := in.Main()
	undeclaredOnly(t, d)
	tr := d.Transcript()
	require.Len(t, tr.Messages, 6)

	answer, _ := tr.Nodes[1].Message()
	require.Equal(t, "m", answer.Answer.Model)
	require.Equal(t, content.StopToolUse, answer.Answer.Stop)
	require.Equal(t, content.Usage{Input: 60, CacheRead: 40, Output: 20}, answer.Answer.Usage)
	require.Equal(t, "I look at the folder first.", answer.Blocks.At(0).(content.Thinking).Text)
	require.JSONEq(t, `{"command":"echo hello","description":"Says hello"}`, string(answer.Blocks.ToolUses()[0].Input))
	require.Equal(t, "hello\n", tr.Messages[2].Blocks.ToolResults()[0].Content.Text())
	for _, n := range d.Nodes() {
		if e, is := n.Payload().(node.ToolExecution); is {
			require.Contains(t, string(e.Details), `"exit":0`)
		}
	}
}

func TestEachKindOfLossIsListed(t *testing.T) {
	call := content.ToolUse{Name: "f", Input: `[1]`}
	d := dag.New().System("s").Tools(tool("f")).User("a").Append(node.Message{
		Role: content.Assistant, Answer: node.Answer{API: "a", Latency: 1, ResponseID: "r", Stop: content.StopMaxTokens},
		Blocks: of(content.Thinking{Text: "t", Signature: "s"}, call, content.Text{Text: "b", Extra: content.Extra{API: "x", JSON: `{"a":1}`}}),
	}).Append(node.Message{Role: content.User, Blocks: of(
		content.ToolResult{Content: of(content.Text{Text: "1"}, content.Text{Text: "2"}, content.Document{Source: content.Source{FileID: "f"}}), IsError: true},
		content.Text{Text: "behind"},
	)}).Append(node.Custom{Name: "note", JSON: `1`}).User("another").WithRef("other").Back(1)
	d = d.Append(node.StopReason{Reason: content.StopEndTurn})

	for format, want := range map[sessions.Format]string{
		sessions.Codex:      "answers api blocks bounds branches call_ids errors extra records thinking tools",
		sessions.OpenCode:   "answers api arguments blocks bounds branches call_ids extra records system texts thinking tools",
		sessions.ATIF:       "answers api arguments blocks bounds branches call_ids errors extra order records texts thinking",
		sessions.ClaudeCode: "answers api arguments blocks bounds branches call_ids extra records system thinking tools",
		sessions.Pi:         "answers arguments blocks bounds branches call_ids extra records system thinking tools",
	} {
		lost, err := sessions.Export(format, &bytes.Buffer{}, d, nil)
		require.NoError(t, err)
		var codes []string
		for _, l := range lost {
			codes = append(codes, string(l.Code))
			require.Positive(t, l.Count)
		}
		require.Equal(t, want, strings.Join(codes, " "), format)
	}
}

func TestATIFHasStepsWithTheirResults(t *testing.T) {
	in := open(t, sessions.Codex, "testdata/codex.jsonl")
	var text bytes.Buffer
	_, err := sessions.Export(sessions.ATIF, &text, in.Main().Tools(tool("exec_command")), nil)
	require.NoError(t, err)
	var out struct {
		Version string `json:"schema_version"`
		Agent   struct {
			Tools []any `json:"tool_definitions"`
		} `json:"agent"`
		Steps []struct {
			ID          int              `json:"step_id"`
			Source      string           `json:"source"`
			Message     any              `json:"message"`
			Reasoning   string           `json:"reasoning_content"`
			ToolCalls   []map[string]any `json:"tool_calls"`
			Observation struct {
				Results []map[string]any `json:"results"`
			} `json:"observation"`
			Metrics map[string]int `json:"metrics"`
		} `json:"steps"`
	}
	require.NoError(t, content.JSON(text.String()).Decode(&out))
	require.Equal(t, "ATIF-v1.7", out.Version)
	require.Len(t, out.Agent.Tools, 1, text.String())
	require.Len(t, out.Steps, 6)
	var sources []string
	for i, s := range out.Steps {
		require.Equal(t, i+1, s.ID)
		sources = append(sources, s.Source)
	}
	require.Equal(t, []string{"system", "system", "user", "user", "agent", "agent"}, sources)
	step := out.Steps[4]
	require.Equal(t, "I look at the folder first.", step.Reasoning)
	require.Equal(t, "call_1", step.ToolCalls[0]["tool_call_id"])
	require.Equal(t, "call_1", step.Observation.Results[0]["source_call_id"])
	require.Equal(t, map[string]int{"prompt_tokens": 100, "completion_tokens": 20, "cached_tokens": 40}, step.Metrics)
}

func TestExportRefusesWhatItCannotWrite(t *testing.T) {
	_, err := sessions.Export(sessions.NanoAgent, &bytes.Buffer{}, dag.New(), nil)
	require.ErrorContains(t, err, "this format is not written: those are atif, claude-code, codex, opencode, pi")
	_, err = sessions.Export(sessions.Codex, &bytes.Buffer{}, dag.New().User(""), nil)
	require.Error(t, err)
}

// tool is a declared tool.
type tool string

func (t tool) Definition() content.Tool {
	return content.Tool{Name: string(t), Schema: `{"type":"object"}`}
}
