package anthropic

import (
	"strings"
	"testing"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/stretchr/testify/require"
)

// TestNeverInvalidAgain holds every conversation whose request was refused once, and a few that it is easy to get wrong. The random
// test is to find more; what it finds belongs here.
func TestNeverInvalidAgain(t *testing.T) {
	searches := func(name string) content.Tool {
		return content.Tool{Name: name, Extra: content.Extra{API: API, JSON: `{"type":"web_search_20250305","name":"web_search"}`}}
	}
	hi := dag.New().User("Hi")
	results := func(ids ...string) (blocks []content.Block) {
		for _, id := range ids {
			blocks = append(blocks, content.ToolResult{CallID: id, Content: content.Words("1")})
		}
		return blocks
	}
	calls := func(ids ...string) (blocks []content.Block) {
		for _, id := range ids {
			blocks = append(blocks, content.ToolUse{ID: id, Name: "f", Input: `{}`})
		}
		return blocks
	}
	opaque := func(block content.JSON) content.Block { return content.Opaque{API: API, JSON: block} }
	thinking := &Options{Options: api.Options{Thinking: "2000"}}
	for _, test := range []struct {
		name string
		d    dag.DAG
		o    *Options
		has  string // in the body
		not  string
	}{
		{name: "an opaque image whose source is broken", d: hi.User("x", opaque(`{"type":"image","source":{"type":"base64"}}`)), not: `"image"`},
		{name: "a failed call's picture", d: hi.Assistant("", calls("a")...).User("", content.ToolResult{CallID: "a", IsError: true, Content: must(content.Image{Source: content.Source{Data: onePNG}})}), has: `image/png`},
		{name: "two names of one server tool", d: hi.Tools(searches("one"), searches("two")), has: `"web_search"`},
		{name: "text after a call", d: hi.Assistant("", append(calls("a"), content.Text{Text: "x"})...).User("", results("a")...), has: `"text":"x"},{"type":"tool_use"`},
		{name: "a message of the assistant after its calls", d: hi.Assistant("", calls("a")...).Assistant("x").User("", results("a")...), has: `"text":"x"},{"type":"tool_use"`},
		{name: "a tool's name that only some models take", d: hi.Assistant("", content.ToolUse{ID: "a", Name: strings.Repeat("n", 70), Input: `{}`}), has: `"` + strings.Repeat("n", 64) + `"`},
		{name: "a tool loop that began without thinking", d: hi.Assistant("", calls("a")...).User("", results("a")...), o: thinking, not: `"enabled"`},
		{name: "a tool loop that began with thinking", d: hi.Assistant("", append([]content.Block{signed}, calls("a")...)...).User("", results("a")...), o: thinking, has: `"enabled"`},
		{name: "a tool loop that thought once, at its beginning", d: hi.Assistant("", append([]content.Block{signed}, calls("a")...)...).User("", results("a")...).Assistant("", calls("b")...).User("", results("b")...), o: thinking, has: `"enabled"`},
		{name: "words beside the results of a loop", d: hi.Assistant("", append([]content.Block{signed}, calls("a")...)...).User("", append(results("a"), content.Text{Text: "x"})...).Assistant("", calls("b")...).User("", results("b")...), o: thinking, not: `"enabled"`},
		{name: "thinking alone", d: hi.Assistant("", signed).User("x"), not: `"signature"`},
		{name: "an error without words", d: hi.Assistant("", calls("a")...).User("", content.ToolResult{CallID: "a", IsError: true}), has: `"is_error":true`},
		{name: "blank words in a result", d: hi.Assistant("", calls("a")...).User("", content.ToolResult{CallID: "a", Content: content.Words(" ")})},
		{name: "a server tool that was cut off", d: hi.Assistant("x", opaque(`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`)).User("y"), not: "srvtoolu_1"},
		{name: "a server tool that was paused", d: hi.Assistant("x", opaque(`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`)), has: "srvtoolu_1", not: content.GoOn},
		{name: "a server tool's finished turn", d: hi.Assistant("", opaque(`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`), opaque(`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`)), has: "srvtoolu_1"},
		{name: "a schema with a union at its top", d: hi.Tools(content.Tool{Name: "f", Schema: `{"type":"object","oneOf":[]}`}), not: "oneOf"},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.NoError(t, test.d.Err())
			said := test.d.Transcript()
			body, _, err := Body(api.Request{System: said.System, Tools: said.Tools, Messages: said.Messages}, "claude-test", test.o)
			require.NoError(t, err)
			require.NoError(t, fake.CheckAnthropic(body), string(body))
			require.Contains(t, string(body), test.has)
			if test.not != "" {
				require.NotContains(t, string(body), test.not)
			}
		})
	}
}

func must(blocks ...content.Block) content.Blocks {
	made, err := content.Of(blocks...)
	if err != nil {
		panic(err)
	}
	return made
}
