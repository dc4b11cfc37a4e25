package sessions_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag/sessions"
	"github.com/plait-dev/plait/node"
)

// The fields of one conversation with two calls, one of which failed, as langchain-core has them.
var langChainMessages = []struct{ kind, class, fields string }{
	{"system", "SystemMessage", `"content":"Be brief.","additional_kwargs":{},"response_metadata":{},"name":null,"id":null`},
	{"human", "HumanMessage", `"content":"Weather in Paris and Oz?","additional_kwargs":{},"response_metadata":{},"name":null,"id":"00000000-0000-4000-8000-000000000001","example":false`},
	{"ai", "AIMessage", `"content":[{"type":"text","text":"I look.","index":0},{"type":"tool_use","id":"t1","name":"get_weather","input":{},"index":1}],
		"additional_kwargs":{},"response_metadata":{"id":"msg_1","model":"claude-test","stop_reason":"tool_use","model_provider":"anthropic","model_name":"claude-test"},
		"id":"lc_run--1","tool_calls":[{"name":"get_weather","args":{"city":"Paris"},"id":"t1","type":"tool_call"},{"name":"get_weather","args":{"city":"Oz"},"id":"t2","type":"tool_call"}],
		"invalid_tool_calls":[],"usage_metadata":{"input_tokens":100,"output_tokens":20,"total_tokens":120,"input_token_details":{"cache_read":60,"cache_creation":10}}`},
	{"tool", "ToolMessage", `"content":"18 °C","name":"get_weather","id":"tm1","tool_call_id":"t1","artifact":{"station":7},"status":"success"`},
	{"tool", "ToolMessage", `"content":"no such city","name":"get_weather","id":"tm2","tool_call_id":"t2","artifact":null,"status":"error"`},
	{"ai", "AIMessage", `"content":"18 °C in Paris.","additional_kwargs":{},"response_metadata":{"model_provider":"anthropic","id":"msg_2","model":"claude-test","stop_reason":"end_turn"},"id":"lc_run--2","tool_calls":[],"invalid_tool_calls":[],"usage_metadata":null`},
}

// langChainText is the messages in one of the three forms.
func langChainText(form string) string {
	var all []string
	for _, m := range langChainMessages {
		fields := `{` + m.fields + `,"type":"` + m.kind + `"}`
		switch form {
		case "dumpd":
			fields = `{"lc":1,"type":"constructor","id":["langchain","schema","messages","` + m.class + `"],"kwargs":` + fields + `}`
		case "dict":
			fields = `{"type":"` + m.kind + `","data":` + fields + `}`
		case "javascript": // whose fields have no type
			fields = `{"lc":1,"type":"constructor","id":["langchain_core","messages","` + m.class + `"],"kwargs":{` + m.fields + `}}`
		}
		all = append(all, strings.ReplaceAll(fields, "\n", " "))
	}
	return "[" + strings.Join(all, ",\n") + "]"
}

// A state of LangGraph, as its API returns it.
func ExampleImport_langChain() {
	state := `{"values":{"messages":[
	  {"type":"human","content":"Weather in Paris?"},
	  {"type":"ai","content":"","tool_calls":[{"name":"get_weather","args":{"city":"Paris"},"id":"call_1","type":"tool_call"}]},
	  {"type":"tool","content":"18 °C","tool_call_id":"call_1","status":"success"},
	  {"type":"ai","content":"18 °C."}]},"next":[]}`
	in, err := sessions.Import(sessions.LangChain, strings.NewReader(state), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(in.Main())
	// Output:
	// ○ user      Weather in Paris?
	// ● assistant → get_weather
	// ▪ get_weather(city: "Paris") → 18 °C
	// ● assistant 18 °C.
}

func TestLangChainMessagesInEachForm(t *testing.T) {
	for name, text := range map[string]string{
		"dumpd":                      langChainText("dumpd"),
		"messages_to_dict":           langChainText("dict"),
		"model_dump":                 langChainText("plain"),
		"LangChain.js":               langChainText("javascript"),
		"one message a line":         strings.NewReplacer("[{\"type\":\"system\"", "{\"type\":\"system\"", "},\n", "}\n").Replace(strings.TrimSuffix(langChainText("dict"), "]")),
		"a state's messages":         `{"messages":` + langChainText("plain") + `}`,
		"a StateSnapshot":            `{"values":{"messages":` + langChainText("dumpd") + `},"next":[],"config":{}}`,
		"a Checkpoint":               `{"v":4,"id":"1ef","ts":"2026-03-01T09:00:00Z","channel_values":{"messages":` + langChainText("plain") + `},"channel_versions":{}}`,
		"a CheckpointTuple":          `{"config":{},"checkpoint":{"v":4,"channel_values":{"messages":` + langChainText("dumpd") + `}},"metadata":{}}`,
		"the input of a chat model":  `{"messages":[` + langChainText("dumpd") + `]}`,
		"a state with other members": `{"remaining_steps":24,"messages":` + langChainText("plain") + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			in := imported(t, sessions.LangChain, text)
			require.Len(t, in.Conversations, 1)
			d := in.Main()
			undeclaredOnly(t, d)
			require.Equal(t, []string{"u:Weather in Paris and Oz?", "a:I look.?t1?t2", "u:!t1=18 °C!t2=no such city", "a:18 °C in Paris."}, spell(d))
			require.Equal(t, []string{"Be brief."}, d.Transcript().System)

			answer, _ := d.Messages()[1], 0
			require.Equal(t, content.JSON(`{"city":"Paris"}`), answer.Blocks.ToolUses()[0].Input, "tool_calls holds, not the empty input of the content")
			var runs []node.ToolExecution
			for _, n := range d.Nodes() {
				if run, ok := n.Payload().(node.ToolExecution); ok {
					runs = append(runs, run)
				}
				if m, ok := n.Message(); ok && m.Answer.ResponseID == "msg_1" {
					require.Equal(t, "anthropic", m.Answer.API)
					require.Equal(t, "claude-test", m.Answer.Model)
					require.Equal(t, content.StopToolUse, m.Answer.Stop)
					require.Equal(t, content.Usage{Input: 30, Output: 20, CacheRead: 60, CacheWrite: 10}, m.Answer.Usage)
				}
			}
			require.Len(t, runs, 2)
			require.Equal(t, content.JSON(`{"station":7}`), runs[0].Details)
			require.True(t, runs[1].IsError)
			require.False(t, runs[0].IsError)
		})
	}
}

func TestLangChainContentBlocks(t *testing.T) {
	anthropic := `"response_metadata":{"model_provider":"anthropic"}`
	for name, c := range map[string]struct {
		message string
		want    content.Block
	}{
		"an image of version 1":        {`{"type":"human","content":[{"type":"image","base64":"AAAA","mime_type":"image/png"}]}`, content.Image{Source: content.Source{MediaType: "image/png", Data: "AAAA"}}},
		"an image of version 0":        {`{"type":"human","content":[{"type":"image","source_type":"base64","data":"AAAA","mime_type":"image/png"}]}`, content.Image{Source: content.Source{MediaType: "image/png", Data: "AAAA"}}},
		"an image of a provider":       {`{"type":"human","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}`, content.Image{Source: content.Source{MediaType: "image/png", Data: "AAAA"}}},
		"an image_url":                 {`{"type":"human","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}`, content.Image{Source: content.Source{MediaType: "image/png", Data: "AAAA"}}},
		"a file by its URL":            {`{"type":"human","content":[{"type":"file","url":"https://a.test/b.pdf","mime_type":"application/pdf"}]}`, content.Document{Source: content.Source{MediaType: "application/pdf", URL: "https://a.test/b.pdf"}}},
		"a file by its id":             {`{"type":"human","content":[{"type":"file","file_id":"file_1"}]}`, content.Document{Source: content.Source{FileID: "file_1"}}},
		"plain text":                   {`{"type":"human","content":[{"type":"text-plain","text":"x","title":"notes"}]}`, content.Document{Source: content.Source{MediaType: "text/plain", Text: "x"}, Title: "notes"}},
		"signed thinking":              {`{"type":"ai","content":[{"type":"thinking","thinking":"hm","signature":"s","index":0}],` + anthropic + `}`, content.Thinking{Text: "hm", Signature: "s", Extra: content.Extra{API: "anthropic", JSON: "{}"}}},
		"reasoning of version 1":       {`{"type":"ai","content":[{"type":"reasoning","reasoning":"hm","extras":{"signature":"s"}}],` + anthropic + `}`, content.Thinking{Text: "hm", Signature: "s", Extra: content.Extra{API: "anthropic", JSON: "{}"}}},
		"reasoning beside the content": {`{"type":"ai","content":"","additional_kwargs":{"reasoning_content":"hm"}}`, content.Thinking{Text: "hm", Extra: content.Extra{API: "openai-chat", JSON: `{"field":"reasoning_content"}`}}},
		"a call of version 1":          {`{"type":"ai","content":[{"type":"tool_call","name":"f","args":{},"id":"c"}],"tool_calls":[{"name":"f","args":{},"id":"c"}]}`, content.ToolUse{ID: "c", Name: "f", Input: "{}"}},
		"a call that was not read":     {`{"type":"ai","content":"","invalid_tool_calls":[{"name":"f","args":"{\"a\":","id":"c","error":"bad","type":"invalid_tool_call"}]}`, content.ToolUse{ID: "c", Name: "f", Input: `{"a":`}},
		"a call as it was written":     {`{"type":"ai","content":"","additional_kwargs":{"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\": 1}"}}]}}`, content.ToolUse{ID: "c", Name: "f", Input: `{"a": 1}`}},
	} {
		t.Run(name, func(t *testing.T) {
			messages := imported(t, sessions.LangChain, "["+c.message+"]").Main().Messages()
			require.Len(t, messages, 1)
			require.Equal(t, []content.Block{c.want}, messages[0].Blocks.Slice())
		})
	}
}

func TestLangChainCallsWithoutIDsAreMatchedByNameAndOrder(t *testing.T) {
	for name, c := range map[string]struct {
		content, calls string
		want           []content.Block
	}{
		"of one name": {
			`{"type":"tool_call","name":"f","args":{}},{"type":"tool_call","name":"f","args":{}}`,
			`{"name":"f","args":{"n":1}},{"name":"f","args":{"n":2}}`,
			[]content.Block{content.ToolUse{Name: "f", Input: `{"n":1}`}, content.ToolUse{Name: "f", Input: `{"n":2}`}},
		},
		"in another order": {
			`{"type":"tool_call","name":"g","args":{}},{"type":"tool_call","name":"f","args":{}}`,
			`{"name":"f","args":{"n":1},"id":null},{"name":"g","args":{"n":2},"id":""}`,
			[]content.Block{content.ToolUse{Name: "g", Input: `{"n":2}`}, content.ToolUse{Name: "f", Input: `{"n":1}`}},
		},
		"and one that the content lacks": {
			`{"type":"tool_call","name":"f","args":{}}`,
			`{"name":"g","args":{"n":2}},{"name":"f","args":{"n":1}}`,
			[]content.Block{content.ToolUse{Name: "f", Input: `{"n":1}`}, content.ToolUse{Name: "g", Input: `{"n":2}`}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := imported(t, sessions.LangChain, `[{"type":"ai","content":[`+c.content+`],"tool_calls":[`+c.calls+`]}]`)
			require.Equal(t, c.want, in.Main().Messages()[0].Blocks.Slice())
		})
	}
}

func TestErrorsInADocumentNameNoWrongLine(t *testing.T) {
	user := map[sessions.Format]string{
		sessions.LangChain: `{"type":"human","content":"a"}`,
		sessions.Chat:      `{"role":"user","content":"a"}`,
	}
	for name, c := range map[string]struct {
		before, after string
		line          int
	}{
		"a message of the wrong shape":   {"\n[\n", ",\n7]", 0},
		"syntax":                         {"\n\n[\n", ",\n]\n", 5},
		"a document on the only line":    {"\n\n[", ",7]\n", 3},
		"one document a line, and blank": {"\n\n", "\n\n7", 5},
	} {
		for format, message := range user {
			_, err := sessions.Import(format, strings.NewReader(c.before+message+c.after), nil)
			var e *sessions.Error
			require.ErrorAs(t, err, &e, name)
			require.Equal(t, c.line, e.Line, "%s, %s: %v", format, name, err)
		}
	}
}

func TestLangChainKeepsWhatItDoesNotKnow(t *testing.T) {
	in := imported(t, sessions.LangChain, `[{"type":"human","content":[{"type":"hologram","x":1}],"name":"Ada","mood":"calm"},{"type":"remove","id":"7"},{"role":"user","content":"and roles"}]`)
	require.Equal(t, []string{"u:content.Opaque", "u:and roles"}, spell(in.Main()))
	require.Equal(t, content.JSON(`{"name":"Ada","mood":"calm"}`), in.Main().Nodes()[0].Meta().Get("langchain"))
	var kinds []sessions.NoteKind
	for _, n := range in.Notes {
		kinds = append(kinds, n.Kind)
	}
	require.Contains(t, kinds, sessions.NoteOpaque)
	require.Contains(t, kinds, sessions.NoteRecord)
}

func TestLangChainRefusesOtherText(t *testing.T) {
	for _, text := range []string{`7`, `{}`, `[7]`, `[{"x":1}]`, `[[[{"type":"human","content":"a"}]]]`, `{"messages":7}`, `{"values":{"values":{"values":{"messages":[]}}}}`,
		`[{"type":"human"}]`, `[{"type":"nobody","content":"a"}]`, ""} {
		_, err := sessions.Import(sessions.LangChain, strings.NewReader(text), nil)
		var e *sessions.Error
		require.ErrorAs(t, err, &e, text)
	}
}

func FuzzLangChain(f *testing.F) {
	fuzz(f, sessions.LangChain, langChainText("dumpd"), langChainText("plain"), `{"channel_values":{"messages":[{"type":"ai","content":[{"type":"tool_use","id":"","name":"f"}],"tool_calls":[{"name":"f","args":"{","id":""},{"name":"g","id":""}]}]}}`)
}
