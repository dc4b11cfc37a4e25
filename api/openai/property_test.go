package openai

import (
	"fmt"
	"testing"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/servers"
	"github.com/plait-dev/plait/internal/testkit/providertest"
)

// TestChatGraphsAreNeverInvalid sends conversations made at random by the operations of a graph: to OpenAI, and to a compatible server.
// What is of one kind of block alone is in TestChatNeverInvalid.
func TestChatGraphsAreNeverInvalid(t *testing.T) {
	thought := content.Thinking{Text: "Let me see.", Extra: content.Extra{API: ChatAPI, JSON: `{"field":"reasoning_content"}`}}
	providertest.NeverInvalid(t, &providertest.Dialect{
		API: ChatAPI, Asked: askedChat, Thought: thought,
		Thoughts: []content.Block{
			content.Thinking{Text: "x", Extra: content.Extra{API: ChatAPI, JSON: `{"field":7}`}},
			content.Thinking{Extra: content.Extra{API: ChatAPI, JSON: `{"reasoning_details":[]}`}},
		},
		ServerTools: []content.JSON{`{"type":"custom","custom":{"name":"run"}}`},
		Opaque: []content.JSON{
			`{"type":"text","text":""}`, `{"type":"text","text":"x"}`, `{"type":"text","text":7}`, `{"type":"image_url"}`,
			`{"type":"image_url","image_url":{"url":"ftp://x"}}`, `{"type":"file","file":{"file_id":"file_1"}}`, `{"type":"file","file":{}}`,
			`{"type":"input_audio","input_audio":{"data":"AAAA","format":"ogg"}}`, `{"type":"refusal","refusal":"no"}`, `{"type":7}`, `{}`,
			`{"role":"system","content":"x"}`, `{"name":"bob"}`, `{"tool_calls":[]}`,
		},
		Served: func(*providertest.World) []content.Block {
			return []content.Block{thought, content.Text{Text: "Found it.", Extra: content.Extra{API: ChatAPI, JSON: `{"annotations":[]}`}}}
		},
	})
}

func askedChat(w *providertest.World) providertest.Asked {
	const model = "gpt-audio-test"
	o := &Options{OmitThinking: w.One(2), NoStream: w.One(2), SystemRole: providertest.Pick(w, "", "developer", "user"), Options: optionsAtRandom(w)}
	check := fake.CheckOpenAICompatible
	if o.OmitThinking {
		check = fake.CheckOpenAIChat
	}
	return providertest.Asked{
		With:  fmt.Sprintf("%+v", *o),
		Body:  func(req api.Request) ([]byte, error) { body, _, err := ChatBody(req, model, o); return body, err },
		Check: check,
		Rules: chatRules(o.supports(model, servers.Chat{})),
	}
}

// TestResponsesGraphsAreNeverInvalid sends conversations made at random by the operations of a graph. What is of one kind of block
// alone is in TestResponsesNeverInvalid.
func TestResponsesGraphsAreNeverInvalid(t *testing.T) {
	thought := itemBlocks(`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Let me see."}],"encrypted_content":"c2VhbGVk"}`)[0]
	providertest.NeverInvalid(t, &providertest.Dialect{
		API: ResponsesAPI, Asked: askedResponses, Thought: thought,
		Thoughts:    itemBlocks(`{"type":"reasoning","id":"rs_2","summary":[]}`, `{"type":"reasoning","summary":[],"encrypted_content":"eA=="}`),
		ToolExtras:  []content.JSON{`{"type":"custom","format":{"type":"text"}}`},
		ServerTools: []content.JSON{`{"type":"web_search"}`},
		Opaque: []content.JSON{
			`{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"x"}}`,
			`{"type":"computer_call","id":"cu_1","call_id":"call_1","action":{"type":"click"}}`, `{"type":"computer_call_output","call_id":"call_1","output":{}}`,
			`{"type":"apply_patch_call","id":"apc_1","call_id":"call_2","operation":{}}`, `{"type":"shell_call_output","call_id":"call_2","output":[]}`,
			`{"type":"mcp_list_tools","id":"mcpl_1","server_label":"s","tools":[]}`, `{"type":"compaction","encrypted_content":"x","id":"cmp_1"}`,
			`{"type":"function_call","call_id":"z","name":"f","arguments":"{}"}`, `{"type":"function_call_output","call_id":"z","output":""}`,
			`{"type":"reasoning","summary":[]}`, `{"type":"message","role":"developer","content":"Be brief."}`,
			`{"type":"message","role":"assistant","content":[]}`, `{"type":"input_text","text":"x"}`, `{"type":"additional_tools","tools":[]}`, `{}`, `{"type":7}`,
		},
		Served: func(w *providertest.World) []content.Block {
			id := providertest.Pick(w, "1", "2", "3")
			return itemBlocks(`{"type":"reasoning","id":"rs_`+id+`","summary":[],"encrypted_content":"eA=="}`,
				`{"type":"web_search_call","id":"ws_`+id+`","status":"completed","action":{"type":"search","query":"x"}}`,
				`{"type":"message","id":"msg_`+id+`","role":"assistant","status":"completed","content":[{"type":"output_text","text":"It rains.","annotations":[]}]}`)
		},
	})
}

func askedResponses(w *providertest.World) providertest.Asked {
	model := providertest.Pick(w, "gpt-test", "gpt-4o")
	o := &Options{NoStream: w.One(2), Options: optionsAtRandom(w)}
	kept := keepSealed
	switch o.Body = providertest.Pick(w, content.JSON(""), `{"store":true}`, `{"text":{"verbosity":"low"}}`); {
	case !reasons(model):
		kept = keepNone
	case o.Body == `{"store":true}`:
		kept = keepAll
	}
	return providertest.Asked{
		With:  fmt.Sprintf("%s, %+v", model, *o),
		Body:  func(req api.Request) ([]byte, error) { body, _, err := ResponsesBody(req, model, o); return body, err },
		Check: fake.CheckOpenAIResponses,
		Rules: responsesSupport{keeping: kept}.encoding().Rules,
	}
}

// optionsAtRandom is those of both APIs.
func optionsAtRandom(w *providertest.World) api.Options {
	return api.Options{
		Thinking:   providertest.Pick(w, "", api.ThinkOff, api.ThinkAuto, api.ThinkHigh, api.ThinkTokens(2000)),
		ToolChoice: providertest.Pick(w, api.ToolsAuto, api.ToolsAny, api.ToolsNone, api.OneTool("f"), api.OneTool("absent")),
		Cache:      providertest.Pick(w, api.CacheShort, api.CacheLong, api.CacheOff), OneCall: w.One(2),
	}
}
