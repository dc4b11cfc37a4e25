package openai

import (
	"os"
	"strings"
	"testing"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/testkit/providertest"
	"github.com/stretchr/testify/require"
)

func TestImportResponsesErrorNamesThePositionInTheBody(t *testing.T) {
	for body, says := range map[string]string{
		``:                   "body cannot be read",
		`[]`:                 "body cannot be read",
		`{"input":1}`:        "input cannot be read",
		`{"input":[{},7]}`:   "input[1] cannot be read",
		`{"input":[{}`:       "body cannot be read",
		`{"tools":{}}`:       "tools cannot be read",
		`{"tools":[{},3]}`:   "tools[1] cannot be read",
		`{"instructions":7}`: "instructions cannot be read",
		`{"input":[{"role":"user","content":7}]}`:                                         "input[0].content cannot be read",
		`{"input":[{"role":"user","content":[{"type":"input_text","text":"x"},"y"]}]}`:    "input[0].content[1] cannot be read",
		`{"input":[{"role":"system","content":"x"},{"role":"developer","content":true}]}`: "input[1].content cannot be read",
		`{"input":[{"type":"function_call_output","output":{}}]}`:                         "input[0].output cannot be read",
		`{"input":[{"type":"function_call_output","output":[7]}]}`:                        "input[0].output[0] cannot be read",
	} {
		req, _, err := ImportResponses([]byte(body))
		require.ErrorIs(t, err, api.ErrInvalidRequest, body)
		require.ErrorContains(t, err, ResponsesAPI, body)
		require.ErrorContains(t, err, says, body)
		require.Zero(t, req, body)
	}
}

func TestImportResponsesKeepsEverything(t *testing.T) {
	own := func(j string) content.Extra { return content.Extra{API: ResponsesAPI, JSON: content.JSON(j)} }
	opaque := func(j string) content.Block { return content.Opaque{API: ResponsesAPI, JSON: content.JSON(j)} }
	for _, c := range []struct {
		name, item string
		role       content.Role
		want       []content.Block
	}{
		{"a stored message of the user", `{"role":"user","id":"msg_1","status":"completed","content":[{"type":"input_text","text":"Hi"}]}`, content.User,
			[]content.Block{content.Text{Text: "Hi"}}},
		{"a message with what Plait does not model", `{ "type":"message","role":"user","new":1,"content":"Hi"}`, content.User,
			[]content.Block{opaque(`{ "type":"message","role":"user","new":1,"content":"Hi"}`)}},
		{"another role", `{"role":"critic","content":"Bad."}`, "critic", []content.Block{content.Text{Text: "Bad."}}},
		{"system prompts that are no text", `{"role":"developer","content":[{"type":"input_image","file_id":"f"}]}`, content.User,
			[]content.Block{opaque(`{"type":"message","role":"developer","content":[{"type":"input_image","file_id":"f"}]}`)}},
		{"pictures and documents", `{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,eA==","detail":"low","file_id":null},` +
			`{"type":"input_image","image_url":"https://x"},{"type":"input_image","file_id":"f"},{"type":"input_image","file_id":"f","image_url":"https://x"},` +
			`{"type":"input_image"},{"type":"input_image","image_url":"data:x"},{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,eA=="},` +
			`{"type":"input_file","file_url":"https://x"},{"type":"input_file","file_data":"eA=="},{ "type":"input_audio"}]}`, content.User, []content.Block{
			content.Image{Source: content.Source{MediaType: "image/png", Data: "eA=="}, Extra: own(`{"detail":"low"}`)},
			content.Image{Source: content.Source{URL: "https://x"}}, content.Image{Source: content.Source{FileID: "f"}},
			opaque(`{"type":"input_image","file_id":"f","image_url":"https://x"}`), opaque(`{"type":"input_image"}`), opaque(`{"type":"input_image","image_url":"data:x"}`),
			content.Document{Source: content.Source{MediaType: "application/pdf", Data: "eA=="}, Title: "a.pdf"},
			content.Document{Source: content.Source{URL: "https://x"}}, opaque(`{"type":"input_file","file_data":"eA=="}`), opaque(`{ "type":"input_audio"}`),
		}},
		{"words of the assistant", `{"role":"assistant","content":"Hi","id":null}`, content.Assistant, []content.Block{
			content.Text{Text: "Hi", Extra: own(`{"plait":{"item":{"id":null}}}`)}}},
		{"parts of the assistant", `{"role":"assistant","id":"msg_1","content":[{"type":"output_text","text":"a"},{"type":"refusal","refusal":"b"}]}`, content.Assistant,
			[]content.Block{content.Text{Text: "a", Extra: own(`{"plait":{"item":{"id":"msg_1"}}}`)},
				content.Text{Text: "b", Extra: own(`{"type":"refusal","plait":{"item":{"id":"msg_1"},"part":1}}`)}}},
		{"a call", `{"type":"function_call","call_id":"c","name":"f","arguments":"{ }","id":"fc_1"}`, content.Assistant,
			[]content.Block{content.ToolUse{ID: "c", Name: "f", Input: "{ }", Extra: own(`{"id":"fc_1"}`)}}},
		{"an output", `{"type":"function_call_output","call_id":"c","status":"completed","plait":{},"output":[{"type":"input_text","text":"a"},{"type":"x"}]}`, content.User,
			[]content.Block{content.ToolResult{CallID: "c", Extra: own(`{"status":"completed"}`), Content: must(content.Text{Text: "a"}, opaque(`{"type":"x"}`))}}},
		{"an answer of a program", `{ "type":"computer_call_output","call_id":"c"}`, content.User, []content.Block{opaque(`{ "type":"computer_call_output","call_id":"c"}`)}},
		{"an answer of the API", `{"type":"tool_search_output","call_id":"c","execution":"server"}`, content.Assistant,
			[]content.Block{opaque(`{"type":"tool_search_output","call_id":"c","execution":"server"}`)}},
		{"tools between messages", `{ "type":"additional_tools","role":"developer"}`, content.User, []content.Block{opaque(`{ "type":"additional_tools","role":"developer"}`)}},
		{"an item that Plait does not model", `{ "type":"compaction"}`, content.Assistant, []content.Block{opaque(`{ "type":"compaction"}`)}},
	} {
		req, _, err := ImportResponses([]byte(`{"input":[` + c.item + `]}`))
		require.NoError(t, err, c.name)
		require.Empty(t, req.System, c.name)
		require.Equal(t, []content.Message{{Role: c.role, Blocks: must(c.want...)}}, req.Messages, c.name)
	}
}

func TestImportResponsesJoinsConsecutiveItemsOfOneRole(t *testing.T) {
	req, model, err := ImportResponses([]byte(`{"input":[{"role":"developer","content":"b"},{"type":"message","role":"system","content":[{"type":"input_text","text":"c"}]},
		{"role":"user","content":""},{"role":"user","content":"d"},{"role":"assistant","content":"e"},{"type":"reasoning","id":"rs_1","summary":[]},
		{"type":"function_call","call_id":"1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"1","output":""},{"role":"user","content":"g"},
		{"role":"developer","content":"h"}],"instructions":"a","model":"m","stream":true,"stream_options":{},"temperature":null,"store":null,"user":"u"}`))
	require.NoError(t, err)
	require.Equal(t, "m", model)
	require.Equal(t, []string{"a", "b", "c"}, req.System)
	own := func(j string) content.Extra { return content.Extra{API: ResponsesAPI, JSON: content.JSON(j)} }
	require.Equal(t, []content.Message{
		{Role: content.User, Blocks: content.Words("d")},
		{Role: content.Assistant, Blocks: must(content.Text{Text: "e"}, content.Thinking{Extra: own(`{"id":"rs_1"}`)},
			content.ToolUse{ID: "1", Name: "f", Input: "{}", Extra: own(`{"plait":{"after":"rs_1"}}`)})},
		{Role: content.User, Blocks: must(content.ToolResult{CallID: "1"}, content.Text{Text: "g"},
			content.Opaque{API: ResponsesAPI, JSON: `{"type":"message","role":"developer","content":"h"}`})},
	}, req.Messages)
	require.Equal(t, content.JSON(`{"user":"u","store":true,"include":[]}`), req.Options.Body)

	req, _, err = ImportResponses([]byte(`{"input":[{"type":"compaction"},{"role":"system","content":"x"}]}`))
	require.NoError(t, err)
	require.Empty(t, req.System, "it is not in front")
	require.Len(t, req.Messages, 2)

	req, _, err = ImportResponses([]byte(`{"input":"Hi","include":["x"],"store":false}`))
	require.NoError(t, err)
	require.Equal(t, []content.Message{{Role: content.User, Blocks: content.Words("Hi")}}, req.Messages)
	require.Equal(t, content.JSON(`{"include":["x"],"store":false}`), req.Options.Body)
}

func TestImportResponsesReadsToolsOfEveryKind(t *testing.T) {
	const custom, mcp, nested = `{"type":"custom","name":"grep"}`, `{ "type":"mcp"}`, `{"type":"function","name":"g","function":{}}`
	req, model, err := ImportResponses([]byte(`{"tools":[{"type":"function","name":"f","description":"Does f.","parameters":{"type":"object"},"strict":false},
		{"type":"function","name":"e"},` + nested + `,` + custom + `,` + mcp + `,` + mcp + `]}`))
	require.NoError(t, err)
	extra := func(j content.JSON) content.Extra { return content.Extra{API: ResponsesAPI, JSON: j} }
	require.Equal(t, []content.Tool{
		{Name: "f", Description: "Does f.", Schema: `{"type":"object"}`, Extra: extra(`{"strict":false}`)},
		{Name: "e", Schema: `{"type":"object","properties":{}}`, Extra: extra(`{"strict":null}`)},
		{Name: "g", Extra: extra(nested)}, {Name: "grep", Extra: extra(custom)}, {Name: "mcp", Extra: extra(mcp)}, {Name: "mcp_2", Extra: extra(mcp)},
	}, req.Tools)
	req.Messages = hello().Messages
	made, notes, err := ResponsesBody(req, model, nil)
	require.NoError(t, err)
	require.Empty(t, notes)
	require.Contains(t, string(made), `"strict":null}`) // as if it were not there
	require.Contains(t, string(made), `{"type":"mcp"},{"type":"mcp"}`)
}

func TestImportResponsesOfWhatResponsesBodyMadeIsTheSame(t *testing.T) {
	for seed := range uint64(300) {
		w := &responsesWorld{Rand: newChatWorld(seed).Rand}
		req := w.request()
		made, _, err := ResponsesBody(req, "m", nil)
		if err != nil {
			continue
		}
		back, model, err := ImportResponses(made)
		require.NoError(t, err)
		require.Equal(t, "m", model)
		again, notes, err := ResponsesBody(back, model, nil)
		require.NoError(t, err)
		providertest.RequireSame(t, providertest.NormalResponses(t, string(made)), providertest.NormalResponses(t, string(again)))
		require.Empty(t, notes, "seed %d", seed)
	}
}

func TestImportResponsesOfALongBodyTakesLittle(t *testing.T) {
	const many = 10_000
	for _, item := range []string{
		`{"role":"user","content":"x"}`, `{"role":"assistant","content":"x"}`, `{"type":"function_call_output","output":"x"}`, `{"role":"system","content":"x"}`, `{"type":"y"}`,
	} {
		_, _, err := ImportResponses([]byte(`{"input":[` + strings.Repeat(item+",", many) + item + `]}`))
		require.NoError(t, err)
	}
	_, _, err := ImportResponses([]byte(`{"tools":[` + strings.Repeat(`{"type":"mcp"},`, many) + `{}]}`))
	require.NoError(t, err)
	_, _, err = ImportResponses([]byte(`{"input":` + strings.Repeat("[", many)))
	require.ErrorIs(t, err, api.ErrInvalidRequest)
}

// FuzzImportResponses makes bodies of whatever can be imported.
func FuzzImportResponses(f *testing.F) {
	f.Add([]byte(`{"model":"m","instructions":"s","input":"x","tools":[{"type":"function","name":"f"},{"type":"mcp"}],"store":null}`))
	f.Add([]byte(`{"input":[{"role":"developer","content":"s"},{"role":"user","content":[{"type":"input_text","text":"x"},{"type":"input_image","image_url":"data:image/png;base64,eA=="}]},` +
		`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"y"}],"encrypted_content":"z"},{"type":"function_call","id":"fc_1","call_id":"a","name":"f","arguments":"{}"},` +
		`{"type":"function_call_output","call_id":"a","output":[{"type":"input_file","file_data":"data:application/pdf;base64,eA==","filename":"a.pdf"}]}]}`))
	f.Add([]byte(`{"input":[{"type":"message","role":"assistant","id":"msg_1","content":[{"type":"output_text","text":"x","annotations":[]},{"type":"refusal","refusal":"no"}]},{"type":"compaction"},` +
		`{"type":"custom_tool_call","call_id":"b","name":"g","input":"x"},{"type":"custom_tool_call_output","call_id":"b","output":"x"},{"type":"computer_call_output","call_id":"c"},{"role":"else","content":null}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		req, _, err := ImportResponses(body)
		if err != nil {
			require.ErrorIs(t, err, api.ErrInvalidRequest)
			return
		}
		providertest.RequireSendable(t, req, func(r api.Request) ([]byte, error) {
			made, _, err := ResponsesBody(r, "gpt-test", nil)
			return made, err
		}, fake.CheckOpenAIResponses)
	})
}

func ExampleImportResponses() {
	req, model, err := ImportResponses([]byte(`{"model":"gpt-5","instructions":"Be brief.","input":"Hello","store":false,"include":[]}`))
	if err != nil {
		panic(err)
	}
	os.Stdout.WriteString(model + ": " + req.System[0] + " " + req.Messages[0].Blocks.Text() + " " + string(req.Options.Body))
	// Output: gpt-5: Be brief. Hello {"store":false,"include":[]}
}
