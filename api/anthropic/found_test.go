package anthropic

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/stretchr/testify/require"
)

// TestTheToolThatIsChosenIsTheOneOfThatName declares a tool whose name the API refuses beside one whose name is like it, and a tool
// that the API sees under another name.
func TestTheToolThatIsChosenIsTheOneOfThatName(t *testing.T) {
	refused := weather
	refused.Name = "get weather"
	searches := content.Tool{Name: "look", Extra: own(`{"type":"web_search_20250305","name":"web_search"}`)}
	for name, want := range map[string]string{
		"get_weather": `"tool_choice":{"type":"tool","name":"get_weather"}`,
		"look":        `"tool_choice":{"type":"tool","name":"web_search"}`,
		"get weather": "", "web_search": "", "other": "",
	} {
		req := hello()
		req.Tools, req.Options.ToolChoice = []content.Tool{refused, weather, searches}, api.OneTool(name)
		body, notes := requireBody(t, req, nil)
		require.Equal(t, api.RepairTool, notes[0].Kind, "the name is refused")
		if want != "" {
			require.Contains(t, body, want)
			require.Len(t, notes, 1)
			continue
		}
		require.NotContains(t, body, "tool_choice", name)
		require.Equal(t, []api.RepairNote{{Kind: api.RepairOption, Message: -1, Detail: noChoice}}, notes[1:])
	}
}

// TestImportAsksForNoOtherCaching makes bodies of bodies that were imported.
func TestImportAsksForNoOtherCaching(t *testing.T) {
	const marker = `,"cache_control":{"type":"ephemeral","ttl":"1h"}`
	for name, c := range map[string]struct {
		top, tool, first, inner, opaque string
		cache                           api.Cache
	}{
		"no marker":           {cache: api.CacheOff},
		"the API's own":       {top: marker, cache: api.CacheOff},
		"a tool's":            {tool: marker, cache: CacheOwn},
		"a text's":            {first: marker, cache: CacheOwn},
		"one inside a result": {inner: marker, cache: CacheOwn},
		"an opaque block's":   {opaque: marker, cache: CacheOwn},
		"all":                 {top: marker, tool: marker, first: marker, inner: marker, cache: CacheOwn},
	} {
		t.Run(name, func(t *testing.T) {
			body := `{"model":"claude-x","max_tokens":5` + c.top + `,"tools":[{"name":"f","description":"F.","input_schema":{"type":"object"}` + c.tool + `}],` +
				`"system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":[{"type":"text","text":"a"` + c.first + `},` +
				`{"type":"search_result","source":"x","title":"y","content":[{"type":"text","text":"z"}]` + c.opaque + `}]},` +
				`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"1"` + c.inner + `}]}]}]}`
			req, _, err := Import([]byte(body))
			require.NoError(t, err)
			require.Equal(t, c.cache, req.Options.Cache)
			made, notes := requireBody(t, req, &Options{NoStream: true})
			require.Empty(t, notes)
			require.JSONEq(t, body, made)
		})
	}
}

func TestAMarkerThatIsNoneIsLeftOut(t *testing.T) {
	for _, mark := range []content.JSON{`7`, `{}`, `{"type":"eternal"}`, `{"type":"ephemeral","ttl":"1y"}`, `{"type":"ephemeral","ttl":7}`, `{"type":"ephemeral","x":1}`} {
		req, _, err := Import([]byte(`{"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":` + string(mark) + `}]}]}`))
		require.NoError(t, err)
		body, notes := requireBody(t, req, nil)
		require.NotContains(t, body, cacheControl)
		require.Equal(t, []api.RepairNote{{Kind: api.RepairOption, Message: -1, Detail: "an invalid cache_control is left out"}}, notes)
	}
}

func TestAHeaderStandsInPlaceOfAnyOther(t *testing.T) {
	var came http.Header
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { came = r.Header }))
	defer server.Close()
	o := &Options{Options: api.Options{Header: http.Header{
		"content-type": {"application/json; charset=utf-8"}, "Accept": {"*/*"}, "Anthropic-Version": {"2026-01-01"}, "X-Api-Key": {"another"},
	}}}
	_, err := send(server, o)
	require.Error(t, err, "it answers nothing")
	for name, values := range o.Header {
		require.Equal(t, values, came.Values(name))
	}
}

func TestACachePolicyOfAnotherProviderIsNoted(t *testing.T) {
	body, notes := requireBody(t, hello(), &Options{Options: api.Options{Cache: "forever"}})
	require.NotContains(t, body, cacheControl)
	require.Equal(t, []api.RepairNote{{Kind: api.RepairOption, Message: -1, Detail: `Cache "forever" is left out: the API has no such policy`}}, notes)
	for _, policy := range policies {
		_, notes := requireBody(t, hello(), &Options{Options: api.Options{Cache: policy}})
		require.Empty(t, notes)
	}
}
