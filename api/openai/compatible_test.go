package openai

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/openai/openai-go/v3/option"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/compatible"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/providertest"
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
		require.Equal(t, want, newTransport(ChatAPI, "chat/completions", &Options{SDK: sdk}).server.differs().Server, address)
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
			require.ErrorContains(t, err, "Options.Server", name)
		}
		_, _, err := ChatBody(hello(), "m", o)
		require.ErrorIs(t, err, api.ErrInvalidRequest, name)
		_, _, err = ResponsesBody(hello(), "m", o)
		require.ErrorIs(t, err, api.ErrInvalidRequest, name)
	}
	require.False(t, sent)
}
