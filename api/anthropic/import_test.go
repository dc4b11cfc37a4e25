package anthropic

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

func TestImportErrorNamesThePositionInTheBody(t *testing.T) {
	for body, says := range map[string]string{
		``:               "body cannot be read",
		`[]`:             "body cannot be read",
		`{"messages":1}`: "messages cannot be read",
		`{"messages":[{"role":"user","content":[{"type":"text","text":"x"},7]}]}`: "messages[0].content cannot be read: block 1",
		`{"tools":{}}`:     "tools cannot be read",
		`{"tools":[{},3]}`: "tools[1] cannot be read",
		`{"system":[{"type":"image","source":{"type":"url","url":"https://x"}}]}`: "system[0] cannot be read",
	} {
		_, _, err := Import([]byte(body))
		require.ErrorIs(t, err, api.ErrInvalidRequest, body)
		require.ErrorContains(t, err, says, body)
	}
}

// FuzzImport makes bodies of whatever can be imported. A block of a type that Plait does not know is sent as it came.
func FuzzImport(f *testing.F) {
	f.Add([]byte(`{"model":"m","max_tokens":1,"system":"s","messages":[{"role":"user","content":"x"}],"tools":[{"name":"f","input_schema":{"type":"object"}}]}`))
	f.Add([]byte(`{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"else","content":null}]}`))
	f.Add([]byte(`{"messages":[{"role":"assistant","content":[{"type":"tool_us","":"","e":"","t":{}}]},{"":"","t":null}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		req, _, err := Import(body)
		if err != nil {
			require.ErrorIs(t, err, api.ErrInvalidRequest)
			return
		}
		providertest.RequireSendable(t, req, func(r api.Request) ([]byte, error) {
			made, _, err := Body(r, "m", nil)
			return made, err
		}, fake.CheckAnthropic)
	})
}

func ExampleImport() {
	req, model, err := Import([]byte(`{"model":"claude-sonnet-4-5","max_tokens":100,"system":"Be brief.","messages":[{"role":"user","content":"Hello"}]}`))
	if err != nil {
		panic(err)
	}
	os.Stdout.WriteString(model + ": " + req.System[0] + " " + req.Messages[0].Blocks.Text() + " " + string(req.Options.Body))
	// Output: claude-sonnet-4-5: Be brief. Hello {"max_tokens":100}
}

// A system message between the others keeps its place, without the cache markers of its blocks.
func TestSystemMessageIsABlockOfTheMessageAroundIt(t *testing.T) {
	const marker = `,"cache_control":{"type":"ephemeral"}`
	const body = `{"model":"claude-x","max_tokens":5,"messages":[{"role":"user","content":[{"type":"text","text":"a"}]},` +
		`{"role":"system","content":[{"type":"text","text":"s"` + marker + `}]},{"role":"user","content":[{"type":"text","text":"b"}]}]}`
	req, _, err := Import([]byte(body))
	require.NoError(t, err)
	require.Len(t, req.Messages, 1)
	req.Options.Cache = api.CacheOff
	made, notes := requireBody(t, req, &Options{NoStream: true})
	require.Empty(t, notes)
	require.JSONEq(t, strings.Replace(body, marker, "", 1), made)
}

func TestResultNeedsNoContent(t *testing.T) {
	for _, nothing := range []string{``, `,"content":null`, `,"content":[]`, `,"content":""`} {
		req, _, err := Import([]byte(`{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"` + nothing + `}]}]}`))
		require.NoError(t, err)
		require.Equal(t, []content.ToolResult{{CallID: "a"}}, req.Messages[0].Blocks.ToolResults(), nothing)
	}
}

// TestImportReadsTheCachePolicy makes bodies of bodies that were imported: with markers of Plait.
func TestImportReadsTheCachePolicy(t *testing.T) {
	const marker = `,"cache_control":{"type":"ephemeral","ttl":"1h"}`
	for name, c := range map[string]struct {
		top, tool, first, inner, opaque string
		cache                           api.Cache
	}{
		"no marker":           {cache: api.CacheOff},
		"the API's own":       {top: marker, cache: api.CacheLong},
		"a tool's":            {tool: marker, cache: api.CacheLong},
		"a text's":            {first: marker, cache: api.CacheLong},
		"one inside a result": {inner: marker, cache: api.CacheLong},
		"an opaque block's":   {opaque: marker, cache: api.CacheLong},
		"all":                 {top: marker, tool: marker, first: marker, inner: marker, cache: api.CacheLong},
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
			if c.top != "" || c.cache == api.CacheOff {
				require.Equal(t, strings.Count(c.top, cacheControl), strings.Count(made, cacheControl), made)
				return
			}
			require.Equal(t, []string{"system 0", "messages 0", "messages 2"}, marksIn(t, made))
			require.Contains(t, made, `"ttl":"1h"`)
		})
	}
}
