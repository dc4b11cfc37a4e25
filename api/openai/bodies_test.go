package openai

import (
	"slices"
	"strings"
	"testing"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
	"github.com/stretchr/testify/require"
)

// chatBodyOf is the body of a request that the strict fake takes, and how the request was changed.
func chatBodyOf(t *testing.T, req api.Request, model string, o *Options) (string, []api.RepairNote) {
	t.Helper()
	body, notes, err := ChatBody(req, model, o)
	require.NoError(t, err)
	require.NoError(t, fake.CheckOpenAIChat(body), string(body))
	return string(body), notes
}

func TestAudioIsSentOnlyToModelsThatAcceptIt(t *testing.T) {
	sound := content.Document{Source: content.Source{MediaType: "audio/wav", Data: "UklGRiQAAABXQVZFZm10IA=="}}
	own := content.Opaque{API: ChatAPI, JSON: `{"type":"input_audio","input_audio":{"data":"UklGRiQAAABXQVZFZm10IA==","format":"wav"}}`}
	call := assistantSays(content.ToolUse{ID: "a", Name: "f", Input: `{}`})
	for name, messages := range map[string][]content.Message{
		"of the user":       {userSays(sound)},
		"of a tool":         {userSays(content.Text{Text: "?"}), call, userSays(content.ToolResult{CallID: "a", Content: must(sound)})},
		"of the API's form": {userSays(own)},
	} {
		req := api.Request{Messages: messages}
		body, notes := chatBodyOf(t, req, "gpt-4.1", nil)
		require.NotContains(t, body, "input_audio", name)
		require.Contains(t, body, "[audio (audio/wav) left out: ", name)
		require.Len(t, notes, 1, name)
		body, _ = chatBodyOf(t, req, "gpt-4o-audio-preview", nil)
		require.Contains(t, body, `"type":"input_audio"`, name)
		raw, _, err := ChatBody(req, "qwen-omni", &Options{Audio: true})
		require.NoError(t, err)
		require.Contains(t, string(raw), `"type":"input_audio"`, name)
	}
}

// bothBodies are the bodies of a request by both APIs, which their strict fakes take, and how it was changed.
func bothBodies(t *testing.T, req api.Request, model string, o *Options) (bodies map[string]string, notes map[string][]api.RepairNote) {
	t.Helper()
	chat, ofChat := chatBodyOf(t, req, model, o)
	body, ofResponses, err := ResponsesBody(req, model, o)
	require.NoError(t, err)
	require.NoError(t, fake.CheckOpenAIResponses(body), string(body))
	return map[string]string{ChatAPI: chat, ResponsesAPI: string(body)}, map[string][]api.RepairNote{ChatAPI: ofChat, ResponsesAPI: ofResponses}
}

func TestOutputSchemaMayHaveAnyRootType(t *testing.T) {
	type nested struct {
		Counts map[string]int `json:"counts"`
		Lists  [][]string     `json:"lists"`
	}
	for name, form := range map[string]api.Schema{
		"map": api.Output[map[string]int](), "slice": api.Output[[]nested](), "struct": api.Output[nested](), "string": api.Output[string](),
		"empty struct": api.Output[struct{}](), "a bare object": {Name: "x", JSON: `{"type":"object"}`},
		"a bare list": {Name: "x", JSON: `{"type":"object","properties":{"a":{"type":"array"}},"required":["a"],"additionalProperties":false}`},
	} {
		t.Run(name, func(t *testing.T) {
			req := hello()
			req.Options.Output = form
			_, notes := bothBodies(t, req, "gpt-test", nil)
			for api, notes := range notes {
				require.Empty(t, notes, api)
			}
		})
	}
	require.True(t, strictSchema(api.Output[[]string]().JSON))
	require.False(t, strictSchema(`{"type":"object","properties":{"a":{}},"required":["a"],"additionalProperties":false}`), "a part that may be anything")
}

func TestArraysInToolSchemasGetItems(t *testing.T) {
	for schema, want := range map[content.JSON]string{
		`{"type":"object"}`: `{"type":"object","properties":{}}`,
		`{"type":"object","properties":{"a":{"type":"array"}}}`:                                     `{"type":"object","properties":{"a":{"type":"array","items":{}}}}`,
		`{"type":"object","properties":{"a":{"anyOf":[{"type":["array","null"]},true]}}}`:           `{"type":"object","properties":{"a":{"anyOf":[{"type":["array","null"],"items":{}},{}]}}}`,
		`{"type":"object","properties":{"a":{"type":"array","items":{"type":"array"}}}}`:            `{"type":"object","properties":{"a":{"type":"array","items":{"type":"array","items":{}}}}}`,
		`{"type":"object","properties":{},"$defs":{"d":{"type":"array"}}}`:                          `{"type":"object","properties":{},"$defs":{"d":{"type":"array","items":{}}}}`,
		`{"type":"object","properties":{},"additionalProperties":{"type":"array"}}`:                 `{"type":"object","properties":{},"additionalProperties":{"type":"array","items":{}}}`,
		`{"type":"object","properties":{"type":{"const":{"type":"array"}},"b":{"enum":["array"]}}}`: `{"type":"object","properties":{"type":{"const":{"type":"array"}},"b":{"enum":["array"]}}}`,
	} {
		req := hello()
		req.Tools = []content.Tool{{Name: "f", Schema: schema}}
		bodies, notes := bothBodies(t, req, "gpt-test", nil)
		for name, body := range bodies {
			require.Contains(t, body, `"parameters":`+want, name)
			changed := strings.Contains(want, `"items":{}`)
			require.Equal(t, changed, len(notes[name]) == 1, "%s: %v", name, notes[name])
			require.True(t, !changed || notes[name][0].Kind == "tool")
		}
	}
}

func TestThinkingIsLeftOutForModelsThatDoNotReason(t *testing.T) {
	for model, reasons := range map[string]bool{
		"gpt-3.5-turbo": false, "gpt-4.1": false, "ft:gpt-4o:acme": false, "chatgpt-4o-latest": false, "gpt-5-chat-latest": false, "openai/gpt-4o": false,
		"gpt-5.2": true, "o3": true, "deepseek-reasoner": true, "openai/gpt-oss-120b": true,
	} {
		for _, thinking := range []api.Thinking{api.ThinkHigh, api.ThinkOff} {
			req := hello()
			req.Options.Thinking = thinking
			body, notes := chatBodyOf(t, req, model, nil)
			require.Equal(t, reasons, strings.Contains(body, "reasoning_effort"), model)
			require.Equal(t, !reasons && thinking == api.ThinkHigh, len(notes) == 1, "%s: %v", model, notes)
		}
	}
}

func TestItemIDsOfAnotherFormatAreLeftOut(t *testing.T) {
	const thought = `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"c2VhbGVk"}`
	const call = `{"type":"function_call","id":"fc_1","call_id":"call_1","name":"f","arguments":"{}","status":"completed"}`
	const custom = `{"type":"custom_tool_call","id":"ctc_1","call_id":"call_1","name":"f","input":"x","status":"completed"}`
	const words = `{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hm.","annotations":[]}]}`
	foreign := strings.NewReplacer("rs_1", "x1", "fc_1", "x2", "ctc_1", "x3", "msg_1", "x4")
	result := content.ToolResult{CallID: "call_1", Content: content.Words("22°C")}
	for name, c := range map[string]struct {
		items  []string
		result bool
	}{
		"a call": {[]string{call}, true}, "a custom call": {[]string{custom}, true}, "a message": {[]string{words}, false},
		"a call after reasoning": {[]string{thought, call}, true}, "a message after reasoning": {[]string{thought, words}, false},
	} {
		good, bad := itemBlocks(c.items...), []string(nil)
		for _, item := range c.items {
			bad = append(bad, foreign.Replace(item))
		}
		var next []content.Block
		if next = []content.Block{content.Text{Text: "Well?"}}; c.result {
			next = []content.Block{result}
		}
		items, notes := itemsSent(t, nil, assistantSays(itemBlocks(bad...)...), userSays(next...))
		require.Len(t, items, len(c.items)+1, name)
		require.Len(t, notes, len(c.items), name)
		for _, item := range items {
			require.NotContains(t, item, "id", name)
		}
		items, notes = itemsSent(t, nil, assistantSays(good...), userSays(next...))
		require.Contains(t, items[0], "id", name)
		require.Empty(t, notes, name)
	}
}

func TestCachePolicyOfAnotherProviderIsLeftOutAndNoted(t *testing.T) {
	req := api.Request{Messages: []content.Message{{Role: content.User, Blocks: content.Words("Hello")}}, Options: api.Options{Cache: "own"}}
	for name, body := range map[string]func(api.Request, string, *Options) ([]byte, []api.RepairNote, error){ChatAPI: ChatBody, ResponsesAPI: ResponsesBody} {
		made, notes, err := body(req, "gpt-5", nil)
		require.NoError(t, err, name)
		require.NotContains(t, string(made), "cache", name)
		require.Len(t, notes, 1, name)
		require.Equal(t, "option", notes[0].Kind, name)
	}
}

func TestItemWithARepeatedIDIsSentOnce(t *testing.T) {
	kept := content.Opaque{API: ResponsesAPI, JSON: `{"type":"compaction","encrypted_content":"x","id":"cmp_1"}`}
	for name, messages := range map[string][]content.Message{
		"of the user":      {userSays(content.Text{Text: "?"}, kept), assistantSays(content.Text{Text: "!"}), userSays(kept)},
		"of the assistant": {userSays(content.Text{Text: "?"}), assistantSays(kept), userSays(content.Text{Text: "?"}), assistantSays(kept)},
		"of both":          {userSays(kept), assistantSays(kept, content.Text{Text: "!"})},
	} {
		body, notes, err := ResponsesBody(api.Request{Messages: messages}, "gpt-test", nil)
		require.NoError(t, err, name)
		require.NoError(t, fake.CheckOpenAIResponses(body), name)
		require.Equal(t, 1, strings.Count(string(body), `"cmp_1"`), name)
		require.True(t, slices.ContainsFunc(notes, func(n api.RepairNote) bool {
			return n.Kind == "dropped" && n.Detail == "an item whose ID was used before"
		}), "%s: %v", name, notes)
	}
}
