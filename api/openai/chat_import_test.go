package openai

import (
	"os"
	"strings"
	"testing"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/testkit/providertest"
)

func TestImportChatErrorNamesThePositionInTheBody(t *testing.T) {
	for body, says := range map[string]string{
		``:                                "body cannot be read",
		`[]`:                              "body cannot be read",
		`{"messages":1}`:                  "messages cannot be read",
		`{"messages":[{},7]}`:             "messages[1] cannot be read",
		`{"messages":[{"role":"user"`:     "body cannot be read",
		`{"tools":{}}`:                    "tools cannot be read",
		`{"tools":[{},3]}`:                "tools[1] cannot be read",
		`{"model":"m","model":"n"}`:       "body cannot be read",
		`{"messages":[{"content":true}]}`: "messages[0].content cannot be read",
		`{"messages":[{"role":"user","content":[{"type":"text","text":"x"},7]}]}`:                         "messages[0].content[1] cannot be read",
		`{"messages":[{"role":"tool","tool_call_id":"a","content":{}}]}`:                                  "messages[0].content cannot be read",
		`{"messages":[{"role":"system","content":"s"},{"role":"system","content":7}]}`:                    "messages[1].content cannot be read",
		`{"messages":[{"role":"developer","content":[{"type":"text","text":"x"},{"type":"image_url"}]}]}`: "messages[0].content[1] cannot be read: it is not text",
		`{"messages":[{"role":"assistant","content":[["x"]]}]}`:                                           "messages[0].content[0] cannot be read",
		`{"messages":[{"role":"assistant","tool_calls":{}}]}`:                                             "messages[0].tool_calls cannot be read",
		`{"messages":[{"role":"assistant","tool_calls":[{"id":"a"},"b"]}]}`:                               "messages[0].tool_calls[1] cannot be read",
	} {
		req, _, err := ImportChat([]byte(body))
		require.ErrorIs(t, err, api.ErrInvalidRequest, body)
		require.ErrorContains(t, err, ChatAPI, body)
		require.ErrorContains(t, err, says, body)
		require.Zero(t, req, body)
	}
}

func TestImportChatKeepsEverything(t *testing.T) {
	own := func(j string) content.Extra { return content.Extra{API: ChatAPI, JSON: content.JSON(j)} }
	for _, c := range []struct {
		name, message string
		role          content.Role
		want          []content.Block
	}{
		{"a user's name", `{"role":"user","name":"Ann","content":"Hi","audio":null}`, content.User, []content.Block{
			content.Opaque{API: ChatAPI, JSON: `{"name":"Ann"}`}, content.Text{Text: "Hi"},
		}},
		{"parts that Plait does not model", `{"role":"user","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}},{ "type" : "video_url"}]}`,
			content.User, []content.Block{
				content.Text{Text: "x", Extra: own(`{"cache_control":{"type":"ephemeral"}}`)}, content.Opaque{API: ChatAPI, JSON: `{ "type" : "video_url"}`},
			}},
		{"another role", `{"role":"critic","content":"Bad."}`, "critic", []content.Block{content.Text{Text: "Bad."}}},
		{"a result without an id", `{"role":"function","name":"f","content":"7"}`, content.User, []content.Block{
			content.ToolResult{Content: content.Words("7"), Extra: own(`{"name":"f"}`)},
		}},
		{"a result that holds what no result can", `{"role":"tool","tool_call_id":"a","content":[{"type":"thinking","thinking":"Hm."}]}`, content.User,
			[]content.Block{content.ToolResult{CallID: "a", Content: must(content.Opaque{API: ChatAPI, JSON: `{"type":"thinking","thinking":"Hm."}`})}}},
		{"a call of the first form", `{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}`, content.Assistant,
			[]content.Block{content.ToolUse{Name: "f", Input: "{}"}}},
		{"the assistant's parts", `{"role":"assistant","name":"Bot","reasoning_content":"Hm.","content":[{"type":"text","text":"a"},{"type":"refusal","refusal":"No."},` +
			`{"type":"thinking","thinking":[{"type":"text","text":"Oh."}]},{"type":"text","text":"b"},{"type":"thinking"}],` +
			`"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{ }"}}]}`, content.Assistant, []content.Block{
			content.Thinking{Text: "Hm.", Extra: own(`{"field":"reasoning_content"}`)}, content.Text{Text: "a"},
			content.Text{Text: "No.", Extra: own(`{"type":"refusal"}`)}, content.Thinking{Text: "Oh.", Extra: own(`{"field":"content"}`)},
			content.Text{Text: "b"}, content.Opaque{API: ChatAPI, JSON: `{"type":"thinking"}`}, content.Opaque{API: ChatAPI, JSON: `{"name":"Bot"}`},
			content.ToolUse{ID: "c", Name: "f", Input: "{ }"},
		}},
	} {
		req, _, err := ImportChat([]byte(`{"messages":[` + c.message + `]}`))
		require.NoError(t, err, c.name)
		require.Equal(t, []content.Message{{Role: c.role, Blocks: must(c.want...)}}, req.Messages, c.name)
	}
}

func TestImportChatJoinsConsecutiveMessagesOfTheUser(t *testing.T) {
	req, model, err := ImportChat([]byte(`{"stream":true,"stream_options":{"include_usage":true},"model":7,"seed":1,"messages":[
		{"role":"system","content":"a"},{"role":"user","content":""},{"role":"assistant","content":"b"},{"role":"assistant","content":"c"},
		{"role":"tool","tool_call_id":"1","content":"d"},{"role":"tool","tool_call_id":"2","content":null},{"role":"user","content":"e"},
		{"role":"developer","content":[{"type":"text","text":"f"},{"type":"text","text":"g"}]},{"role":"user","content":"h"},{"role":"system","content":null}],"n":1}`))
	require.NoError(t, err)
	require.Empty(t, model)
	require.Equal(t, []string{"a"}, req.System)
	require.Equal(t, []content.Message{
		{Role: content.Assistant, Blocks: content.Words("b")}, {Role: content.Assistant, Blocks: content.Words("c")},
		{Role: content.User, Blocks: must(content.ToolResult{CallID: "1", Content: content.Words("d")}, content.ToolResult{CallID: "2"},
			content.Text{Text: "e"},
			content.Opaque{API: ChatAPI, JSON: `{"role":"developer","content":[{"type":"text","text":"f"},{"type":"text","text":"g"}]}`}, content.Text{Text: "h"})},
	}, req.Messages)
	require.Equal(t, content.JSON(`{"seed":1,"n":1}`), req.Options.Body)
}

func TestImportChatReadsToolsOfEveryKind(t *testing.T) {
	const custom, own = `{"type":"custom","custom":{ "name":"grep"}}`, `{"type":"web_search"}`
	req, _, err := ImportChat([]byte(`{"tools":[{"type":"function","cache_control":{"type":"ephemeral"},"strict":false,
		"function":{"name":"f","description":"Does f.","parameters":{"type":"object"},"strict":true}},
		{"type":"function","function":{"name":"g","parameters":null}},` + custom + `,` + own + `,{}]}`))
	require.NoError(t, err)
	extra := func(j content.JSON) content.Extra { return content.Extra{API: ChatAPI, JSON: j} }
	require.Equal(t, []content.Tool{
		{Name: "f", Description: "Does f.", Schema: `{"type":"object"}`, Extra: extra(`{"strict":true,"cache_control":{"type":"ephemeral"}}`)},
		{Name: "g", Schema: `{"type":"object","properties":{}}`},
		{Name: "grep", Extra: extra(custom)},
		{Name: "web_search", Extra: extra(own)},
		{Extra: extra(`{}`)},
	}, req.Tools)
	require.Empty(t, req.Messages)
}

func TestImportChatOfWhatChatBodyMadeIsTheSame(t *testing.T) {
	for seed := range uint64(300) {
		w := newChatWorld(seed)
		req := api.Request{System: []string{"Be brief."}, Tools: []content.Tool{{Name: "f", Schema: `{"type":"object","properties":{}}`}}}
		for range 6 {
			req.Messages = append(req.Messages, w.goodTurn()...)
		}
		made, _, err := ChatBody(req, "m", nil)
		require.NoError(t, err)
		back, model, err := ImportChat(made)
		require.NoError(t, err)
		require.Equal(t, "m", model)
		require.Zero(t, back.Options)
		again, notes, err := ChatBody(back, model, nil)
		require.NoError(t, err)
		require.Empty(t, notes, "seed %d", seed)
		said := strings.ReplaceAll(string(made), `,"reasoning_details":[]`, "") // it says nothing
		requireThat(t, said == string(again), "seed %d:\n%s\n%s", seed, said, again)
	}
}

func TestImportChatOfALongBodyTakesLittle(t *testing.T) {
	const many = 10_000
	for _, item := range []string{`{"role":"user","content":"x"}`, `{"role":"tool","content":[]}`, `{"role":"assistant","content":"x"}`, `{"role":"system","content":"x"}`} {
		_, _, err := ImportChat([]byte(`{"messages":[` + strings.Repeat(item+",", many) + item + `]}`))
		require.NoError(t, err)
	}
	_, _, err := ImportChat([]byte(`{"messages":[{"role":"assistant","content":[` + strings.Repeat(`{"type":"thinking","thinking":"x"},`, many) + `{}]}]}`))
	require.NoError(t, err)
	_, _, err = ImportChat([]byte(`{"messages":` + strings.Repeat("[", many)))
	require.ErrorIs(t, err, api.ErrInvalidRequest)
}

// FuzzImportChat makes bodies of whatever can be imported.
func FuzzImportChat(f *testing.F) {
	f.Add([]byte(`{"model":"m","seed":1,"messages":[{"role":"system","content":"s"},{"role":"user","name":"n","content":"x"}],"tools":[{"type":"function","function":{"name":"f"}}]}`))
	f.Add([]byte(`{"messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"custom","custom":{"name":"g","input":"x"}}]},` +
		`{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"data:image/png;base64,eA=="}}]},{"role":"else","content":null}]}`))
	f.Add([]byte(`{"messages":[{"role":"assistant","refusal":"No.","reasoning_content":"r","reasoning_details":[{"text":"x"}],"audio":{"id":"a"},"annotations":[],"content":[{"type":"thinking","thinking":"y"}]},` +
		`{"role":"assistant","function_call":{"name":"f","arguments":{}}},{"role":"function","name":"f","content":"x"},{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"eA==","format":"mp3"}},{"type":"file","file":{"file_id":"x"}}]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		req, _, err := ImportChat(body)
		if err != nil {
			require.ErrorIs(t, err, api.ErrInvalidRequest)
			return
		}
		providertest.RequireSendable(t, req, func(r api.Request) ([]byte, error) {
			made, _, err := ChatBody(r, "gpt-audio-test", nil)
			return made, err
		}, fake.CheckOpenAIChat)
	})
}

func ExampleImportChat() {
	req, model, err := ImportChat([]byte(`{"model":"gpt-4o","seed":7,"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hello"}]}`))
	if err != nil {
		panic(err)
	}
	os.Stdout.WriteString(model + ": " + req.System[0] + " " + req.Messages[0].Blocks.Text() + " " + string(req.Options.Body))
	// Output: gpt-4o: Be brief. Hello {"seed":7}
}
