package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3/option"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/compatible"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/testkit/providertest"
)

func TestChatBodiesForEachServerAreAsWrittenDown(t *testing.T) {
	came := func(text string, further content.JSON) content.Thinking {
		return content.Thinking{Text: text, Extra: content.Extra{API: ChatAPI, JSON: further}}
	}
	thinking := []content.Thinking{
		came("As llama.cpp says it.", `{"field":"reasoning_content"}`),
		came("As OpenRouter says it.", `{"field":"reasoning","reasoning_details":[{"type":"reasoning.text","text":"As OpenRouter says it."}]}`),
		came("As Mistral says it.", `{"field":"content"}`),
		came("", `{"reasoning_details":[{"type":"reasoning.encrypted","data":"x"}]}`),
		{Text: "As Anthropic says it.", Signature: "c2ln", Extra: content.Extra{API: "anthropic", JSON: "{}"}},
	}
	providertest.RequireServerBodies(t, "chat_servers.txt", thinking,
		func(server compatible.Server, req api.Request) ([]byte, []api.RepairNote, error) {
			return ChatBody(req, "model-x", &Options{Server: server})
		})
}

func TestResponsesBodiesForEachServerAreAsWrittenDown(t *testing.T) {
	came := func(text, signature string, further content.JSON) content.Thinking {
		return content.Thinking{Text: text, Signature: signature, Extra: content.Extra{API: ResponsesAPI, JSON: further}}
	}
	thinking := []content.Thinking{
		came("As llama.cpp says it.", "", `{"id":"rs_1","content":[{"text":"As llama.cpp says it.","type":"reasoning_text"}],"encrypted_content":""}`),
		came("As OpenAI says it.", "sealed", `{"id":"rs_2"}`),
		came("", "", `{"id":"rs_3"}`),
	}
	providertest.RequireServerBodies(t, "responses_servers.txt", thinking,
		func(server compatible.Server, req api.Request) ([]byte, []api.RepairNote, error) {
			return ResponsesBody(led(req), "model-x", &Options{Server: server})
		})
}

// led marks the calls of a request as written right after the thinking before them.
func led(req api.Request) api.Request {
	for i, m := range req.Messages {
		list := m.Blocks.Slice()
		if m.Role != content.Assistant {
			continue
		}
		call := list[1].(content.ToolUse)
		after := thoughtID(list[0].(content.Thinking))
		call.Extra = itemExtra(nil, ownNote{After: &after})
		req.Messages[i].Blocks, _ = content.Of(list[0], call)
	}
	return req
}

func TestServerIsRecognizedByItsHost(t *testing.T) {
	for address, want := range map[string]compatible.Server{
		"https://openrouter.ai/api/v1": compatible.OpenRouter, "https://api.deepseek.com/v1": compatible.DeepSeek,
		"https://api.deepseek.com": compatible.DeepSeek, "https://api.groq.com/openai/v1": compatible.Groq,
		"https://api.mistral.ai/v1": compatible.Mistral, "http://127.0.0.1:11434/v1": compatible.Ollama,
		"http://gpu.lan:11434/v1": compatible.Ollama,
		// Any server may be at these.
		"http://127.0.0.1:8080/v1": "", "http://127.0.0.1:1234/v1": "", "http://127.0.0.1:8000/v1": "",
		"https://openrouter.ai.example/api/v1": "", "https://api.openai.com/v1": "",
	} {
		sdk := []option.RequestOption{option.WithAPIKey("k"), option.WithBaseURL(address)}
		require.Equal(t, want, serverIn(&Options{SDK: sdk}).differs().Server, address)
		require.Equal(t, want, newTransport(ChatAPI, "chat/completions", "", &Options{SDK: sdk}).server.differs().Server, address)
	}

	sdk := []option.RequestOption{option.WithBaseURL("https://api.deepseek.com/v1")}
	require.Equal(t, compatible.VLLM, serverIn(&Options{Server: compatible.VLLM, SDK: sdk}).differs().Server, "the option decides")
}

func TestOptionsOverrideWhatIsKnownOfAServer(t *testing.T) {
	o := Options{Server: compatible.Ollama, MaxTokensName: "max_completion_tokens", NoStream: true}
	o.MaxTokens = 7
	body, notes, err := ChatBody(hello(), "m", &o)
	require.NoError(t, err)
	require.Empty(t, notes)
	require.Equal(t, `{"model":"m","max_completion_tokens":7,"messages":[{"role":"user","content":"Hello"}]}`, string(body))
}

func TestIDsOfCallsForMistralsModelsAreShort(t *testing.T) {
	for model, replaced := range map[string]bool{
		"mistral-large-latest": true, "mistralai/Devstral-Small-2": true, "open-mixtral-8x22b": true, "ft:Ministral-8B:x": true,
		"gpt-5": false, "amistral": false, "llama-3": false,
	} {
		req := hello()
		for _, id := range []string{"c00001ekh", "call_2", "D681PevKs"} { // the first is what the second would become
			req.Messages = append(req.Messages,
				content.Message{Role: content.Assistant, Blocks: must(content.ToolUse{ID: id, Name: "ls", Input: "{}"})},
				content.Message{Role: content.User, Blocks: must(content.ToolResult{CallID: id, Content: content.Words("a.go")})})
		}
		raw, _, err := ChatBody(req, model, nil)
		require.NoError(t, err)
		var body map[string]any
		require.NoError(t, json.Unmarshal(raw, &body))

		want := []string{"c00001ekh", "c00001ekh", "call_2", "call_2", "D681PevKs", "D681PevKs"}
		if replaced {
			want[2], want[3] = "c00001eki", "c00001eki"
		}
		require.Equal(t, want, idsOfCalls(body), model)
	}
}

// TestServerMustBeKnownAndAddressed: a request with the wrong form, or to the wrong server, is not sent.
func TestServerMustBeKnownAndAddressed(t *testing.T) {
	sent := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { sent = true }))
	defer server.Close()

	own := []option.RequestOption{option.WithAPIKey("k"), option.WithHTTPClient(server.Client())}
	for name, o := range map[string]*Options{
		"unknown":   {Server: "lama", SDK: localSDK(server)},
		"at OpenAI": {Server: compatible.LlamaCPP, SDK: append(own, option.WithBaseURL("https://api.openai.com/v1"))},
	} {
		for _, p := range []api.Provider{NewChat("m", o), NewResponses("m", o)} {
			_, err := api.NewClient(p, nil).Send(context.Background(), hello())
			require.ErrorIs(t, err, api.ErrInvalidRequest, name)
			require.ErrorContains(t, err, map[string]string{
				"unknown":   `Options.Server: "lama" is not a known server; known are `,
				"at OpenAI": "Options.Server: the base URL is OpenAI's own, and not that of llama.cpp: set it in Options.SDK",
			}[name])
		}
		_, _, err := ChatBody(hello(), "m", o)
		require.ErrorIs(t, err, api.ErrInvalidRequest, name)
		_, _, err = ResponsesBody(hello(), "m", o)
		require.ErrorIs(t, err, api.ErrInvalidRequest, name)
	}
	require.False(t, sent)
}

// refusals are what servers refuse with an error, by the sources in package compatible: the reason, or "".
var refusals = map[compatible.Server]func(body map[string]any) string{
	compatible.LMStudio: func(body map[string]any) string {
		if _, object := body["tool_choice"].(map[string]any); object {
			return "Invalid tool_choice type: 'object'. Supported string values: none, auto, required"
		}
		return ""
	},
	compatible.DeepSeek: func(body map[string]any) string {
		thinking, _ := body["thinking"].(map[string]any)
		choice := body["tool_choice"]
		if forced := choice != nil && choice != "none" && choice != "auto"; forced && thinking["type"] != "disabled" {
			return "Thinking mode does not support this tool_choice"
		}
		form, _ := body["response_format"].(map[string]any)
		switch text, _ := json.Marshal(body["messages"]); {
		case form["type"] == "json_schema":
			return "This response_format type is unavailable now"
		case form["type"] == "json_object" && !strings.Contains(strings.ToLower(string(text)), "json"):
			return "Prompt must contain the word 'json' in some form to use 'response_format' of type 'json_object'"
		}
		return ""
	},
	compatible.Groq: func(body map[string]any) string {
		return unknownOfAssistant(body, "role", "content", "tool_calls")
	},
	compatible.Mistral: func(body map[string]any) string {
		for name := range body {
			if !slices.Contains([]string{"model", "messages", "tools", "tool_choice", "parallel_tool_calls", "max_tokens", "stream",
				"response_format", "reasoning_effort"}, name) {
				return "extra_forbidden: " + name
			}
		}
		for _, id := range idsOfCalls(body) {
			if !regexp.MustCompile(`^[a-zA-Z0-9]{9}$`).MatchString(id) {
				return "Tool call id was " + id + " but must be a-z, A-Z, 0-9, with a length of 9."
			}
		}
		return unknownOfAssistant(body, "role", "content", "tool_calls")
	},
}

// idsOfCalls returns the IDs of the calls and of the results in a request over Chat.
func idsOfCalls(body map[string]any) (ids []string) {
	for _, m := range body["messages"].([]any) {
		message := m.(map[string]any)
		if id, ok := message["tool_call_id"].(string); ok {
			ids = append(ids, id)
		}
		calls, _ := message["tool_calls"].([]any)
		for _, call := range calls {
			ids = append(ids, call.(map[string]any)["id"].(string))
		}
	}
	return ids
}

// unknownOfAssistant returns a member of an assistant message other than those, as a reason to refuse it.
func unknownOfAssistant(body map[string]any, known ...string) string {
	for _, m := range body["messages"].([]any) {
		message := m.(map[string]any)
		for name := range message {
			if message["role"] == "assistant" && !slices.Contains(known, name) {
				return "for 'role:assistant': property '" + name + "' is unsupported"
			}
		}
	}
	return ""
}

// TestNoRequestToANamedServerIsRefused sends what a server refuses to fakes of it: with the name of the server nothing is refused, and without it
// something is, so that the fakes refuse at all.
func TestNoRequestToANamedServerIsRefused(t *testing.T) {
	thought, err := content.Of(content.Thinking{Text: "Hm.", Extra: content.Extra{API: ChatAPI, JSON: `{"field":"reasoning_content"}`}}, content.Text{Text: "Hi"})
	require.NoError(t, err)
	tools := []content.Tool{{Name: "ls", Schema: `{"type":"object"}`}, {Name: "cat", Schema: `{"type":"object"}`}}
	form := api.Output[struct{ Name string }]()

	var requests []api.Request
	for _, o := range []api.Options{
		{MaxTokens: 10}, {ToolChoice: api.OneTool("ls"), OneCall: true}, {ToolChoice: api.ToolsAny, Thinking: api.ThinkHigh}, {ToolChoice: api.ToolsNone},
		{Output: form}, {Output: form, ToolChoice: api.OneTool("cat")}, {Thinking: api.ThinkTokens(1000)}, {Cache: api.CacheLong}, {Cache: api.CacheOff},
	} {
		req := hello()
		req.Options, req.Tools = o, tools
		req.Messages = append(req.Messages, content.Message{Role: content.Assistant, Blocks: thought}, content.Message{Role: content.User, Blocks: content.Words("And?")})
		requests = append(requests, req)
	}

	called := hello()
	called.Tools = tools
	called.Messages = append(called.Messages,
		content.Message{Role: content.Assistant, Blocks: must(content.ToolUse{ID: "toolu_01A09q90qw90lq917835lq9", Name: "ls", Input: "{}"})},
		content.Message{Role: content.User, Blocks: must(content.ToolResult{CallID: "toolu_01A09q90qw90lq917835lq9", Content: content.Words("a.go")})})
	requests = append(requests, called)

	for name, refuses := range refusals {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var body map[string]any
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				t.Error(err)
			}
			w.Header().Set("Content-Type", "application/json")
			if why := refuses(body); why != "" {
				w.WriteHeader(http.StatusBadRequest)
				why, _ := json.Marshal(why)
				fmt.Fprintf(w, `{"error":{"message":%s,"type":"invalid_request_error"}}`, why)
				return
			}
			io.WriteString(w, `{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}`)
		}))

		refused := 0
		for _, req := range requests {
			_, err := api.NewClient(NewChat("m", &Options{Server: name, SDK: localSDK(server)}), nil).Send(context.Background(), req)
			require.NoError(t, err, name)
			if _, err = api.NewClient(NewChat("m", &Options{SDK: localSDK(server)}), nil).Send(context.Background(), req); err != nil {
				require.ErrorIs(t, err, api.ErrInvalidRequest)
				refused++
			}
		}
		require.Positive(t, refused, "%s: the fake refuses nothing", name)
		server.Close()
	}
}

// TestLlamaCPPGetsOnlyWhatItKnows sends a conversation with files, tools and items of OpenAI's own, which llama.cpp refuses.
func TestLlamaCPPGetsOnlyWhatItKnows(t *testing.T) {
	own := func(name string, item content.JSON) content.Opaque { return content.Opaque{API: name, JSON: item} }
	custom := func(name, kind string) content.Extra {
		return content.Extra{API: name, JSON: content.JSON(`{"type":"` + kind + `"}`)}
	}
	request := func(name, kind string, blocks ...content.Block) api.Request {
		paper := content.Document{Title: "Paper", Source: content.Source{MediaType: "application/pdf", Data: "JVBERi0xLjcK"}}
		uploaded := content.Image{Source: content.Source{FileID: "file_1"}, Extra: content.Extra{API: name, JSON: `{}`}}
		call := content.ToolUse{ID: "a", Name: "run", Input: `"ls"`, Extra: custom(name, kind)}
		return api.Request{
			Tools: []content.Tool{
				{Name: "run", Schema: `{"type":"object"}`, Extra: custom(name, "custom")},
				{Name: "search", Extra: content.Extra{API: name, JSON: `{"type":"web_search"}`}},
			},
			Messages: []content.Message{
				{Role: content.User, Blocks: must(content.Text{Text: "Read."}, paper, uploaded)},
				{Role: content.Assistant, Blocks: must(append(blocks, call)...)},
				{Role: content.User, Blocks: must(content.ToolResult{CallID: "a", Content: content.Words("a.go")})},
				{Role: content.Assistant, Blocks: content.Words("Well,")},
			},
		}
	}
	o := &Options{Server: compatible.LlamaCPP, NoStream: true}

	body, notes, err := ChatBody(request(ChatAPI, "custom"), "m", o)
	require.NoError(t, err)
	require.Len(t, notes, 6)
	require.Equal(t, `{"model":"m","tools":[{"type":"function","function":{"name":"run","parameters":{"type":"object","properties":{}}}}],`+
		`"messages":[{"role":"user","content":[{"type":"text","text":"Read."},`+
		`{"type":"text","text":"[document \"Paper\" (application/pdf) left out: the model does not accept document]"},`+
		`{"type":"text","text":"[image left out: it is an uploaded file, which the API does not accept]"}]},`+
		`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"run","arguments":"{\"input\":\"ls\"}"}}]},`+
		`{"role":"tool","tool_call_id":"a","content":"a.go"},{"role":"assistant","content":"Well,"},{"role":"user","content":"Continue."}]}`, string(body))

	search := own(ResponsesAPI, `{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"x"}}`)
	body, _, err = ResponsesBody(request(ResponsesAPI, customCall, search), "m", o)
	require.NoError(t, err)
	for _, refused := range []string{`"web_search_call"`, `"custom`, "input_file", "input_image", `"web_search"`} {
		require.NotContains(t, string(body), refused)
	}
	require.Contains(t, string(body), `{"type":"function_call","call_id":"a","name":"run","arguments":"{\"input\":\"ls\"}"}`)

	// Other servers may know them.
	body, _, err = ResponsesBody(request(ResponsesAPI, customCall, search), "m", &Options{Server: compatible.OpenRouter})
	require.NoError(t, err)
	for _, kept := range []string{`"web_search_call"`, customCall, "input_file", "input_image", `"web_search"`} {
		require.Contains(t, string(body), kept)
	}
}

func TestTextOnlyModelGetsTextInPlaceOfFiles(t *testing.T) {
	picture := content.Image{Source: content.Source{MediaType: "image/png", Data: tinyPNG}}
	paper := content.Document{Title: "Paper", Source: content.Source{MediaType: "application/pdf", Data: "JVBERi0xLjcK"}}
	sound := content.Document{Source: content.Source{MediaType: "audio/wav", Data: "UklGRg=="}}
	note := content.Document{Source: content.Source{MediaType: "text/plain", Text: "Snow."}}
	req := api.Request{Messages: []content.Message{{Role: content.User, Blocks: must(picture, paper, sound, note)}}}

	o := &Options{TextOnly: true, Audio: true}
	for _, body := range []func(api.Request, string, *Options) ([]byte, []api.RepairNote, error){ChatBody, ResponsesBody} {
		made, notes, err := body(req, "m", o)
		require.NoError(t, err)
		require.Len(t, notes, 4)
		require.NotContains(t, string(made), "base64")
		for _, text := range []string{"[image (image/png) left out: the model", `[document \"Paper\" (application/pdf) left out`, "[audio (audio/wav) left out", "Snow."} {
			require.Contains(t, string(made), text)
		}
	}
}
