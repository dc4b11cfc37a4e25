package gemini

import (
	"fmt"
	"testing"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/testkit/providertest"
)

// TestNeverInvalid sends conversations made at random, to a model of each kind.
func TestNeverInvalid(t *testing.T) {
	providertest.NeverInvalid(t, &providertest.Dialect{
		API: API, Asked: askedAtRandom, Served: served,
		Thought: content.Thinking{Text: "Let me see.", Signature: "c2lnbmVk", Extra: own("{}")},
		Thoughts: []content.Block{
			content.Thinking{Text: "unsigned", Extra: own("{}")}, content.Thinking{Text: "whose"}, content.Thinking{Signature: "c2ln", Extra: own("{}")},
			content.Thinking{Text: "x", Signature: "!", Extra: own("{}")}, content.Thinking{Extra: own("{}")},
		},
		Extras: []content.JSON{
			`{"thoughtSignature":"c2lnbmVk"}`, `{"thoughtSignature":""}`, `{"partMetadata":{"k":1},"groundingMetadata":{"x":1}}`,
		},
		ToolExtras:  []content.JSON{`{"behavior":"BLOCKING"}`},
		ServerTools: []content.JSON{`{"type":"google_search","googleSearch":{}}`, `{"codeExecution":{}}`},
		Opaque: []content.JSON{
			`{"executableCode":{"code":"1","language":"PYTHON"},"thoughtSignature":"c2ln"}`,
			`{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}}`, `{"executableCode":7}`, `{"executableCode":{},"codeExecutionResult":{}}`,
			`{"toolCall":{"id":"t1","toolType":"FILE_SEARCH"},"thoughtSignature":"c2ln"}`, `{"toolResponse":{"id":"t1","toolType":"FILE_SEARCH"}}`,
			`{"text":""}`, `{"text":"","thoughtSignature":"c2ln"}`, `{"text":"","thoughtSignature":"!"}`, `{"text":"x"}`, `{"text":"x","thought":true}`,
			`{"functionCall":{"name":"f","args":{}}}`, `{"functionResponse":{"name":"f","response":{}}}`, `{"thoughtSignature":"c2ln"}`, `{}`, `{"text":7}`,
			`{"inlineData":{"mimeType":"image/png","data":"AAAA"}}`, `{"inlineData":{"mimeType":"image/png","data":"` + onePNG + `"}}`,
			`{"type":"server_tool_use","name":"x"}`, `{"inlineData":{"mimeType":"audio/wav"}}`, `{"fileData":{}}`,
			`{"fileData":{"fileUri":"https://example.com/x.png","mimeType":"image/png"},"videoMetadata":{"fps":1}}`,
		},
	})
}

// askedAtRandom has a model and options that a program can have.
func askedAtRandom(w *providertest.World) providertest.Asked {
	model := providertest.Pick(w, "gemini-2.5-flash", "gemini-3-pro-preview", "gemini-flash-latest")
	o := &Options{NoStream: w.One(2), Options: api.Options{
		Thinking:   providertest.Pick(w, "", api.ThinkOff, api.ThinkAuto, api.ThinkLow, "max", api.ThinkTokens(1024)),
		ToolChoice: providertest.Pick(w, api.ToolsAuto, api.ToolsAny, api.ToolsNone, api.OneTool("f"), api.OneTool("bad name")),
		Cache:      providertest.Pick(w, api.CacheShort, api.CacheLong, api.CacheOff), OneCall: w.One(2),
		Body: providertest.Pick(w, content.JSON(""), "", `{"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}}}`, `{"generationConfig":{"topK":3}}`,
			`{"cachedContent":"cachedContents/x","tool_config":{"function_calling_config":{"mode":"ANY"}}}`),
	}}
	if w.One(4) {
		o.Output = api.Schema{Name: "x", JSON: w.Schema()}
		if o.Output.JSON == "" || o.Check() != nil {
			o.Output = api.Schema{}
		}
	}
	if w.One(4) {
		half := 0.5
		o.Temperature = &half
	}
	if w.One(4) {
		o.StopSequences = []string{"1", "2", "3", "4", "5", " "}
	}
	return providertest.Asked{
		With:  fmt.Sprintf("%s, %+v", model, *o),
		Body:  func(req api.Request) ([]byte, error) { body, _, err := Body(req, model, o); return body, err },
		Check: func(body []byte) error { return fake.CheckGemini(model, body) },
		Rules: rules(),
	}
}

// served is a turn in which the API ran code.
func served(*providertest.World) []content.Block {
	return []content.Block{
		content.Opaque{API: API, JSON: `{"executableCode":{"code":"1","language":"PYTHON"},"thoughtSignature":"c2ln"}`},
		content.Opaque{API: API, JSON: `{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}}`},
		content.Text{Text: "Found it.", Extra: own(`{"thoughtSignature":"c2ln","groundingMetadata":{}}`)},
	}
}
