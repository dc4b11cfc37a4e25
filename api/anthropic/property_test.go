package anthropic

import (
	"fmt"
	"testing"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/testkit/providertest"
)

// TestNeverInvalid sends conversations made at random.
func TestNeverInvalid(t *testing.T) {
	providertest.NeverInvalid(t, &providertest.Dialect{
		API: API, Asked: askedAtRandom, Waits: stillRuns, Served: served,
		Thought: signed,
		Thoughts: []content.Block{
			content.Thinking{Text: "Let me see.", Signature: "c2lnbmVk"}, content.Thinking{Text: "unsigned"}, content.Thinking{Redacted: "cmVkYWN0ZWQ="},
		},
		Extras:      []content.JSON{`{"cache_control":{"type":"ephemeral"}}`, `{"cache_control":{"type":"ephemeral","ttl":"1h"}}`},
		ToolExtras:  []content.JSON{`{"cache_control":{"type":"ephemeral"}}`},
		ServerTools: []content.JSON{`{"type":"web_search_20250305","name":"web_search","max_uses":1}`},
		Opaque: []content.JSON{
			`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"q":"x"}}`,
			`{"type":"server_tool_use","id":"srvtoolu_2","name":"web_search","input":{}}`,
			`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search"}`,
			`{"type":"server_tool_use","id":"toolu bad","name":"web_search","input":{}}`,
			`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`,
			`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_2","content":[],"cache_control":{"type":"ephemeral"}}`,
			`{"type":"mcp_tool_use","id":"mcptoolu_1","name":"echo","input":{},"server_name":"s"}`,
			`{"type":"mcp_tool_result","tool_use_id":"mcptoolu_1","is_error":false,"content":[]}`,
			`{"type":"container_upload","file_id":"file_3"}`, `{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"x"}]}`,
			`{"role":"system","content":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}]}`,
			`{"role":"system","content":[{"type":"tool_removal","tool":{"type":"tool_reference","name":"f"}}],"clear_at":"never"}`,
			`{"type":"tool_reference","tool_name":"f"}`, `{"type":"text","text":""}`, `{"type":"text","text":" "}`, `{"type":"tool_use","id":"z","name":"f","input":{}}`,
			`{"type":"tool_result","tool_use_id":"z"}`, `{"type":"thinking","thinking":"x","signature":"y"}`, `{"type":"image","source":{"type":"base64"}}`, `{}`, `{"type":7}`,
		},
	})
}

var signed = content.Thinking{Text: "Let me see.", Signature: "c2lnbmVk"}

const onePNG = providertest.OnePNG

// askedAtRandom has options that a program can have, but for Prefill: only older models take that.
func askedAtRandom(w *providertest.World) providertest.Asked {
	o := &Options{NoStream: w.One(2), Options: api.Options{
		Thinking: providertest.Pick(w, "", api.ThinkAuto, api.ThinkOff, api.ThinkHigh, "1024", "5000"),
		Cache:    providertest.Pick(w, api.CacheShort, api.CacheLong, api.CacheOff),
		Body:     providertest.Pick(w, content.JSON(""), "", `{"tool_choice":{"type":"auto"}}`, `{"metadata":{"user_id":"u"}}`),
	}}
	if w.One(4) {
		half := 0.5
		o.Temperature = &half
	}
	if w.One(4) {
		o.StopSequences = []string{"STOP", " "}
	}
	return providertest.Asked{
		With:  fmt.Sprintf("%+v", *o),
		Body:  func(req api.Request) ([]byte, error) { body, _, err := Body(req, "claude-test", o); return body, err },
		Check: fake.CheckAnthropic,
		Rules: rules(variant{prefill: o.Prefill}),
	}
}

// stillRuns reports whether a server tool's call waits, which is left out when the turn ends before its result came.
func stillRuns(repaired []content.Message) bool {
	waiting := map[place]change{}
	unpaired(append(repaired[:len(repaired):len(repaired)],
		content.Message{Role: content.Assistant, Blocks: content.Words("x")}, content.Message{Role: content.User, Blocks: content.Words("x")}), waiting)
	return len(waiting) > 0
}

// served is a turn in which a server tool ran: a search, or code that called a tool of the program.
func served(w *providertest.World) []content.Block {
	id := providertest.Pick(w, "srvtoolu_1", "srvtoolu_2", "srvtoolu_3")
	if w.One(2) {
		return []content.Block{
			content.Opaque{API: API, JSON: content.JSON(`{"type":"server_tool_use","id":"` + id + `","name":"code_execution","input":{}}`)},
			content.ToolUse{ID: "toolu_" + id, Name: "get_weather", Input: "{}", Extra: own(content.JSON(`{"caller":{"type":"code_execution_20260120","tool_id":"` + id + `"},"plait":{"container":"c"}}`))},
		}
	}
	return []content.Block{
		content.Opaque{API: API, JSON: content.JSON(`{"type":"server_tool_use","id":"` + id + `","name":"web_search","input":{"q":"x"}}`)},
		content.Opaque{API: API, JSON: content.JSON(`{"type":"web_search_tool_result","tool_use_id":"` + id + `","content":[]}`)},
		content.Text{Text: "Found it."},
	}
}
