package sessions_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/dag/sessions"
	"github.com/plait-dev/plait/internal/testkit/fixture"
	"github.com/plait-dev/plait/node"
)

func open(t testing.TB, format sessions.Format, path string) sessions.Imported {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return imported(t, format, string(data))
}

func imported(t testing.TB, format sessions.Format, text string) sessions.Imported {
	t.Helper()
	in, err := sessions.Import(format, strings.NewReader(text), nil)
	require.NoError(t, err)
	sound(t, in)
	return in
}

// sound checks what holds for everything that is imported: it is a conversation that can be saved and loaded, and each of its
// conversations can be repaired.
func sound(t testing.TB, in sessions.Imported) {
	t.Helper()
	require.NoError(t, in.DAG.Err())
	var out bytes.Buffer
	require.NoError(t, in.DAG.Write(&out))
	again, err := dag.Read(&out)
	require.NoError(t, err)
	require.True(t, dag.Equal(in.DAG, again))
	for _, n := range in.DAG.WithChildren() {
		require.NoError(t, n.Verify())
	}
	for _, d := range in.Conversations {
		dialect.Repair(d.Messages(), dialect.Rules{})
	}
}

// nanoWire is messages in the form in which nano-agent would send them.
func nanoWire(t *testing.T, messages []content.Message) []any {
	list := []any{}
	for _, m := range messages {
		list = append(list, map[string]any{"role": string(m.Role), "content": wireBlocks(t, m.Blocks)})
	}
	return list
}

func wireBlocks(t *testing.T, blocks content.Blocks) []any {
	list := []any{}
	for _, b := range blocks.All() {
		switch b := b.(type) {
		case content.Text:
			list = append(list, map[string]any{"type": "text", "text": b.Text})
		case content.Image:
			list = append(list, map[string]any{"type": "image", "source": map[string]any{"type": "base64", "media_type": b.Source.MediaType, "data": b.Source.Data}})
		case content.Thinking:
			if b.Extra.API == "openai-responses" {
				item := map[string]any{"type": "reasoning", "encrypted_content": b.Signature, "summary": []any{map[string]any{"type": "summary_text", "text": b.Text}}}
				require.NoError(t, json.Unmarshal([]byte(b.Extra.JSON), &item))
				list = append(list, item)
				continue
			}
			list = append(list, map[string]any{"type": "thinking", "thinking": b.Text, "signature": b.Signature})
		case content.ToolUse:
			var input any
			if b.Input != "" {
				require.NoError(t, json.Unmarshal([]byte(b.Input), &input))
			}
			list = append(list, map[string]any{"type": "tool_use", "id": b.ID, "name": b.Name, "input": input})
		case content.ToolResult:
			list = append(list, map[string]any{"type": "tool_result", "tool_use_id": b.CallID, "content": wireBlocks(t, b.Content), "is_error": b.IsError})
		case content.Opaque:
			var raw any
			require.NoError(t, json.Unmarshal([]byte(b.JSON), &raw))
			list = append(list, raw)
		}
	}
	return list
}

// spelled is what nano-agent recorded, with content that is a string as a list of one text, which is the same.
func spelled(t *testing.T, data []byte) []any {
	list := []any{}
	require.NoError(t, json.Unmarshal(data, &list))
	for _, m := range list {
		m := m.(map[string]any)
		if words, ok := m["content"].(string); ok {
			m["content"] = []any{}
			if words != "" {
				m["content"] = []any{map[string]any{"type": "text", "text": words}}
			}
		}
	}
	return list
}

func TestNanoAgentGraphsSayWhatNanoAgentWouldSend(t *testing.T) {
	for file, recorded := range map[string]string{
		"a_single_tool":                     "a_single_tool",
		"b_parallel_merged_stop":            "b_parallel_merged_stop",
		"c1_subgraph_single_head":           "c_subgraph",
		"c_subgraph_images_branch":          "c_subgraph",
		"a_single_tool.roundtrip":           "a_single_tool",
		"c1_subgraph_single_head.roundtrip": "c_subgraph",
	} {
		t.Run(file, func(t *testing.T) {
			in := open(t, sessions.NanoAgent, fixture.Path(t, "nano-agent", file+".json"))
			want, err := os.ReadFile(fixture.Path(t, "nano-agent", recorded+".to_messages.json"))
			require.NoError(t, err)
			require.Equal(t, spelled(t, want), nanoWire(t, in.Main().Messages()))
			for _, f := range in.DAG.Validate() {
				// The scripted model calls a tool that was never declared, to see what becomes of it.
				require.Equal(t, dag.UndeclaredTool, f.Kind, f)
				require.Contains(t, f.Detail, "Nope")
			}
			for _, d := range in.Conversations {
				_, notes := dialect.Repair(d.Messages(), dialect.Rules{EndsOpen: func(content.Message) bool { return true }})
				require.Empty(t, notes)
			}
		})
	}
}

func TestNanoAgentNodesKeepWhatTheFileSaysOfThem(t *testing.T) {
	in := open(t, sessions.NanoAgent, fixture.Path(t, "nano-agent", "c_subgraph_images_branch.json"))
	require.Len(t, in.Conversations, 2, "it has two heads")
	require.Equal(t, "stop_reason", in.Main().Head().Kind())
	stop := in.Main().Head().Payload().(node.StopReason)
	require.Equal(t, content.Usage{Input: 200, Output: 40}, stop.Usage)
	require.Equal(t, []string{"Main system", "Second system"}, in.Main().SystemPrompts())
	require.Equal(t, int64(1777000014750), in.DAG.Nodes()[0].Time().UnixMilli())
	require.Equal(t, content.JSON(`"c_subgraph_images_branch"`), in.DAG.Metadata().Get("nano-agent.session_id"))

	var child dag.DAG
	for _, n := range in.Main().Nodes() {
		require.NotEqual(t, "sub_graph", n.Kind(), "the sub-agent hangs on the call it ran for")
		if e, ok := n.Payload().(node.ToolExecution); ok && e.Tool == "Research" {
			child = dag.FromNode(n)
			require.Contains(t, e.Details, "subagent_8f2c6ec8cc41")
			require.Equal(t, 1, e.Index)
		}
	}
	require.Equal(t, "research done", child.Text())
	var leaf dag.DAG
	for _, n := range child.Nodes() {
		if n.Kind() == "tool_execution" {
			leaf = dag.FromNode(n)
		}
	}
	require.Equal(t, "leaf says yes", leaf.Text())
	require.Empty(t, in.Notes)
	require.Equal(t, content.Opaque{API: "openai-responses", JSON: content.JSON(compact(t, `{"type":"compaction","encrypted_content":"ZZ=="}`))},
		compacted(t, in.Conversations[1].Messages()[1].Blocks.At(0)))
	thought := in.Main().Messages()[1].Blocks.At(0).(content.Thinking)
	require.Equal(t, content.Thinking{Text: "plan", Signature: "gAAA==", Extra: content.Extra{API: "openai-responses", JSON: `{"id":"rs_1"}`}}, thought)
}

func compact(t *testing.T, j content.JSON) content.JSON {
	var out bytes.Buffer
	require.NoError(t, json.Compact(&out, []byte(j)))
	return content.JSON(out.String())
}

func compacted(t *testing.T, b content.Block) content.Block {
	o := b.(content.Opaque)
	o.JSON = compact(t, o.JSON)
	return o
}

// oddDifferences is where Plait deliberately reads nano-agent's edge cases differently, and why.
var oddDifferences = map[string]string{
	"unknown_node_type":                  "kept as a record that is never sent; there it becomes a system prompt",
	"unknown_block_dropped":              "kept as an opaque block; there it is dropped",
	"redacted_thinking_dropped":          "kept as thinking, which goes back to Anthropic; there it is dropped",
	"tool_result_string_content_dropped": "a result that is a string is kept; there it is dropped",
	"tool_execution_string_result_kept":  "an execution that follows no call keeps its kind, and its result, which no message holds, is said so that it is not lost",
	"empty_tool_use_id":                  "a call without id is a finding of Validate and repaired when it is sent; there it cannot be loaded",
	"orphan_unreachable":                 "what no head reaches is a head after the others; there it is lost when the graph is saved",
}

func TestNanoAgentEdgeCases(t *testing.T) {
	data, err := os.ReadFile(fixture.Path(t, "nano-agent", "odd", "expectations.json"))
	require.NoError(t, err)
	var expected map[string]struct {
		Error    string          `json:"error"`
		Heads    []string        `json:"heads"`
		Messages json.RawMessage `json:"messages"`
		System   string          `json:"system"`
		Kinds    []string        `json:"kinds"`
	}
	require.NoError(t, json.Unmarshal(data, &expected))
	files, err := filepath.Glob(filepath.Join(fixture.Path(t, "nano-agent", "odd"), "*.json"))
	require.NoError(t, err)
	require.Len(t, files, 18)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		if name == "expectations" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			in, err := sessions.Import(sessions.NanoAgent, bytes.NewReader(data), nil)
			want := expected[name]
			why := oddDifferences[name]
			if why != "" {
				t.Log("differs:", why)
			}
			if want.Error != "" && why == "" {
				var e *sessions.Error
				require.ErrorAs(t, err, &e)
				require.NotZero(t, e.Line)
				return
			}
			require.NoError(t, err)
			sound(t, in)
			got := nanoWire(t, in.Main().Messages())
			if why == "" {
				require.Equal(t, spelled(t, want.Messages), got)
				require.Equal(t, want.System, strings.Join(in.Main().SystemPrompts(), "\n\n"))
				require.Len(t, in.DAG.Heads(), len(want.Heads))
				return
			}
			oddCases[name](t, in, got)
		})
	}
}

var oddCases = map[string]func(*testing.T, sessions.Imported, []any){
	"unknown_node_type": func(t *testing.T, in sessions.Imported, got []any) {
		require.Equal(t, "nano-agent.future_thing", in.Main().Head().Payload().(node.Custom).Name)
		require.Empty(t, in.Main().SystemPrompts())
		require.Equal(t, sessions.NoteRecord, in.Notes[0].Kind)
		require.NotZero(t, in.Notes[0].Line)
	},
	"unknown_block_dropped": func(t *testing.T, in sessions.Imported, got []any) {
		require.Equal(t, "nano-agent", in.Main().Messages()[0].Blocks.At(0).(content.Opaque).API)
		require.Equal(t, sessions.NoteOpaque, in.Notes[0].Kind)
	},
	"redacted_thinking_dropped": func(t *testing.T, in sessions.Imported, got []any) {
		require.Equal(t, content.Thinking{Redacted: "zz", Extra: content.Extra{API: "anthropic", JSON: "{}"}}, in.Main().Messages()[0].Blocks.At(0))
	},
	"tool_result_string_content_dropped": func(t *testing.T, in sessions.Imported, got []any) {
		require.Equal(t, "str", in.Main().Messages()[0].Blocks.At(0).(content.ToolResult).Content.Text())
	},
	"tool_execution_string_result_kept": func(t *testing.T, in sessions.Imported, got []any) {
		require.Equal(t, "old style", in.Main().Head().Payload().(node.ToolExecution).Result.Text())
		require.Equal(t, dag.FindingKind("execution without call"), in.DAG.Validate()[0].Kind)
	},
	"empty_tool_use_id": func(t *testing.T, in sessions.Imported, got []any) {
		require.Equal(t, dag.FindingKind("empty call id"), in.DAG.Validate()[0].Kind)
	},
	"orphan_unreachable": func(t *testing.T, in sessions.Imported, got []any) {
		require.Len(t, in.Conversations, 2)
		require.Equal(t, "y", in.Conversations[1].Messages()[0].Blocks.Text())
		require.Equal(t, sessions.NoteAssumed, in.Notes[0].Kind)
	},
}

func nano(heads string, nodes ...string) string {
	return `{"session_id":"s","head_ids":[` + heads + `],"nodes":{` + strings.Join(nodes, ",\n") + `}}`
}

func saved(id, parents, data string) string {
	return `"` + id + `":{"id":"` + id + `","parent_ids":[` + parents + `],"data":` + data + `,"timestamp":1.5,"metadata":{}}`
}

func TestNanoAgentKeepsWhatNanoAgentLoses(t *testing.T) {
	in := imported(t, sessions.NanoAgent, nano(`"b"`,
		saved("a", "", `{"role":"user","content":"go"}`),
		saved("b", `"a"`, `{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":null,"thought_signature":"sig"},{"type":"tool_use","id":"u","name":"f","input":{"x":1.0},"item_id":"fc_1"},{"type":"server_tool_use","id":"v"}, 7]}`)))
	blocks := in.Main().Messages()[1].Blocks
	require.Equal(t, content.ToolUse{ID: "t", Name: "f", Extra: content.Extra{API: "gemini", JSON: `{"thoughtSignature":"sig"}`}}, blocks.At(0))
	require.Equal(t, content.ToolUse{ID: "u", Name: "f", Input: `{"x":1.0}`, Extra: content.Extra{API: "openai-responses", JSON: `{"id":"fc_1"}`}}, blocks.At(1))
	require.Equal(t, content.Opaque{API: "anthropic", JSON: `{"type":"server_tool_use","id":"v"}`}, blocks.At(2))
	require.Equal(t, content.Opaque{API: "nano-agent", JSON: `{"value":7}`}, blocks.At(3))
	require.Len(t, in.Notes, 3)
}

func TestNanoAgentDeclarationsThatNoAPITakesAreNoted(t *testing.T) {
	in := imported(t, sessions.NanoAgent, nano(`"a"`, saved("a", "", `{"type":"tool_definitions","tools":[
		{"name":"f","description":"1","input_schema":{"type":"object"}},
		{"name":"f","description":"2","input_schema":{"type":"object"}},
		{"name":"a.b","input_schema":{"type":"object"}}, 3]}`)))
	defs := in.Main().ToolDefs()
	require.Len(t, defs, 1)
	require.Equal(t, "2", defs[0].Description)
	require.Len(t, in.Notes, 3)
	require.Contains(t, in.Main().Head().Meta().Get("nano-agent.data"), `"a.b"`)
}

func TestNanoAgentRunsOfOneIDAndCounters(t *testing.T) {
	in := imported(t, sessions.NanoAgent, nano(`"c"`,
		saved("a", "", `{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{"n":1}},{"type":"tool_use","id":"t","name":"f","input":{"n":2},"caller":{},"item_id":"x"}]}`),
		saved("e1", `"a"`, `{"type":"tool_execution","tool_name":"f","tool_use_id":"t","result":"r1"}`),
		saved("e2", `"a"`, `{"type":"tool_execution","tool_name":"f","tool_use_id":"t","result":"r2"}`),
		saved("m", `"e1","e2"`, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"r1"},{"type":"tool_result","tool_use_id":"t","content":"r2"}]}`),
		saved("g", `"m"`, `{"type":"sub_graph","tool_name":"f","nodes":{`+saved("a", "", `{"role":"user","content":"in"}`)+`}}`),
		saved("c", `"g"`, `{"type":"stop_reason","reason":"","usage":{"input_tokens":10,"cached_tokens":4,"output_tokens":3,"reasoning_tokens":2}}`)))
	nodes := in.Main().Nodes()
	require.Equal(t, content.JSON(`{"n":2}`), nodes[2].Payload().(node.ToolExecution).Input)
	require.Equal(t, content.Extra{API: "anthropic", JSON: `{"caller":{}}`}, in.Main().Messages()[0].Blocks.ToolUses()[1].Extra)
	require.Contains(t, in.Notes[0].String(), "item_id")
	require.Equal(t, content.Usage{Input: 6, CacheRead: 4, Output: 3, Reasoning: 2}, in.Main().Head().Payload().(node.StopReason).Usage)
	require.Equal(t, "in", dag.FromNode(nodes[4]).Messages()[0].Blocks.Text())
	var file strings.Builder
	require.NoError(t, in.DAG.Write(&file))
	require.Contains(t, file.String(), "result_of")
}

func TestNanoAgentUnreachedNodesBecomeFurtherHeads(t *testing.T) {
	in := imported(t, sessions.NanoAgent, nano(`"b"`,
		saved("x", "", `{"role":"user","content":"lost"}`),
		saved("a", "", `{"role":"user","content":"go"}`), saved("b", `"a"`, `{"role":"assistant","content":"on"}`)))
	require.Equal(t, []string{"u:go", "a:on"}, spell(in.Main()))
	require.Equal(t, []string{"u:lost"}, spell(in.Conversations[1]))
	require.Equal(t, sessions.NoteAssumed, in.Notes[0].Kind)
}

func TestNanoAgentMessageAndExecutionThatDifferKeepWhatEachHolds(t *testing.T) {
	in := imported(t, sessions.NanoAgent, nano(`"d"`,
		saved("a", "", `{"role":"user","content":"go"}`),
		saved("b", `"a"`, `{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]}`),
		saved("c", `"b"`, `{"type":"tool_execution","tool_name":"f","tool_use_id":"t","result":[{"type":"text","text":"the whole file"}],"is_error":false}`),
		saved("d", `"c"`, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"the file, cut"}]}]}`)))
	require.Equal(t, []string{"u:go", "a:?t", "u:!t=the file, cut"}, spell(in.Main()), "the model saw what the message says")
	run, ok := in.Main().Nodes()[2].Payload().(node.ToolExecution)
	require.True(t, ok)
	require.Equal(t, "the whole file", run.Result.Text())
}
