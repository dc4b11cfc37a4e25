package anthropic

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/stretchr/testify/require"
)

var (
	png     = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	weather = content.Tool{Name: "get_weather", Description: "Weather.", Schema: `{"type":"object","properties":{"city":{"type":"string"}}}`}
)

func user(blocks ...content.Block) content.Message      { return turnOf(content.User, blocks) }
func assistant(blocks ...content.Block) content.Message { return turnOf(content.Assistant, blocks) }

func turnOf(role content.Role, blocks []content.Block) content.Message {
	b, err := content.Of(blocks...)
	if err != nil {
		panic(err)
	}
	return content.Message{Role: role, Blocks: b}
}

func said(text string) content.Block { return content.Text{Text: text} }

func call(id string) content.Block {
	return content.ToolUse{ID: id, Name: "get_weather", Input: `{"city":"Oslo"}`}
}

func result(id string) content.Block {
	return content.ToolResult{CallID: id, Content: content.Words("snow")}
}

func thought(signature string) content.Block {
	return content.Thinking{Text: "Hm.", Signature: signature}
}

func own(json content.JSON) content.Extra { return content.Extra{API: API, JSON: json} }

// requireBody makes a body, checks it as the API would, and returns it.
func requireBody(t *testing.T, req api.Request, o *Options) (string, []api.RepairNote) {
	t.Helper()
	body, notes, err := Body(req, "claude-x", o)
	require.NoError(t, err)
	require.NoError(t, fake.CheckAnthropic(body), string(body))
	again, _, err := Body(req, "claude-x", o)
	require.NoError(t, err)
	require.Equal(t, string(body), string(again))
	return string(body), notes
}

// messagesOf is the bytes of the messages in a body, without the brackets around them.
func messagesOf(t *testing.T, body string) string {
	_, messages, ok := strings.Cut(body, `,"messages":[`)
	require.True(t, ok, body)
	return strings.TrimSuffix(messages, "]}")
}

func TestTheSmallestBody(t *testing.T) {
	body, notes := requireBody(t, hello(), nil)
	require.Equal(t, `{"model":"claude-x","max_tokens":16384,"stream":true,"messages":[{"role":"user","content":[`+
		`{"type":"text","text":"Hello","cache_control":{"type":"ephemeral"}}]}]}`, body)
	require.Empty(t, notes)
}

func TestEveryOptionIsInTheBody(t *testing.T) {
	cold := 0.25
	req := hello()
	req.System, req.Tools = []string{"Be brief."}, []content.Tool{weather}
	body, notes := requireBody(t, req, &Options{Options: api.Options{MaxTokens: 100, Temperature: &cold, StopSequences: []string{"END", " "}, Cache: api.CacheLong, Body: `{"top_k": 5, "max_tokens":200,"messages":[]}`}, NoStream: true})
	require.Equal(t, `{"model":"claude-x","temperature":0.25,"stop_sequences":["END"],"top_k":5,"max_tokens":200,`+
		`"tools":[{"name":"get_weather","description":"Weather.","input_schema":{"type":"object","properties":{"city":{"type":"string"}}}}],`+
		`"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral","ttl":"1h"}}],`+
		`"messages":[{"role":"user","content":[{"type":"text","text":"Hello","cache_control":{"type":"ephemeral","ttl":"1h"}}]}]}`, body)
	require.Len(t, notes, 2, "a stop sequence and a member were left out: %v", notes)
}

func TestWhatCannotBeSentIsAnError(t *testing.T) {
	_, _, err := Body(api.Request{}, "m", nil)
	require.ErrorIs(t, err, api.ErrNothing)
	_, _, err = Body(api.Request{Messages: []content.Message{user(said("  "))}}, "m", nil)
	require.ErrorIs(t, err, api.ErrNothing)
	for _, bad := range []content.JSON{"[]", "7", "{", `{"a":1}{}`, `{"a":1,"a":2}`} {
		_, _, err = Body(hello(), "m", &Options{Options: api.Options{Body: bad}})
		require.ErrorIs(t, err, api.ErrInvalidRequest, bad)
	}
}

func TestAnOptionThatCannotBeSentIsNamed(t *testing.T) {
	warm := func(t float64) *Options { return &Options{Options: api.Options{Temperature: &t}} }
	for _, test := range []struct {
		o    *Options
		says string
	}{
		{warm(math.NaN()), "Options.Temperature is NaN"},
		{warm(math.Inf(1)), "Options.Temperature is +Inf"},
		{warm(math.Inf(-1)), "Options.Temperature is -Inf"},
		{warm(-0.1), "Options.Temperature is -0.1"},
		{warm(2.1), "Options.Temperature is 2.1"},
		{&Options{Options: api.Options{Thinking: "-2"}}, `Options.Thinking is "-2"`},
		{&Options{Options: api.Options{Thinking: "9223372036854775807"}}, "Options.Thinking is "},
		{&Options{Options: api.Options{Thinking: "99999999999999999999"}}, "Options.Thinking is "},
		{&Options{Options: api.Options{MaxTokens: -1}}, "Options.MaxTokens is -1"},
		{&Options{Options: api.Options{Cache: "no such"}}, `Options.Cache is "no such"`},
		{&Options{Options: api.Options{Body: `{"a":1,"a":2}`}}, `Options.Body is not a JSON object: jsontext: duplicate object member name "a"`},
		{&Options{Options: api.Options{Body: `{"a":1}{}`}}, "Options.Body is not a JSON object"},
	} {
		body, _, err := Body(hello(), "m", test.o)
		require.ErrorIs(t, err, api.ErrInvalidRequest, test.says)
		require.ErrorContains(t, err, test.says)
		require.Nil(t, body)
	}
	for _, o := range []api.Options{
		warm(0).Options, warm(1).Options, warm(2).Options, {Thinking: api.ThinkTokens(1 << 30)}, {Thinking: api.ThinkAuto}, {Thinking: api.ThinkOff},
		{Thinking: "5"}, {Thinking: "2000", MaxTokens: 100}, {Thinking: api.ThinkHigh, MaxTokens: 1}, {Body: " {} "},
		{ToolChoice: api.ToolsAny, OneCall: true},
	} {
		body, _, err := Body(hello(), "m", &Options{Options: o})
		require.NoError(t, err)
		require.NoError(t, fake.CheckAnthropic(body), string(body))
	}
}

// TestAConversationThatGrowsKeepsItsPrefix makes the body of each beginning of a conversation.
func TestAConversationThatGrowsKeepsItsPrefix(t *testing.T) {
	messages := []content.Message{
		user(said("One?")), assistant(thought("s1"), said("Let me look."), call("a"), call("a")),
		user(result("a"), result("a")), assistant(said("One.")),
		user(said("Two?"), content.Image{Source: content.Source{MediaType: "image/png", Data: png}}), assistant(call("")), user(result("")),
		assistant(said("Two.")), user(said("Three?")),
	}
	for _, cache := range []api.Cache{api.CacheShort, api.CacheOff} {
		before := ""
		for n := 1; n <= len(messages); n += 2 {
			body, _ := requireBody(t, api.Request{Tools: []content.Tool{weather}, Messages: messages[:n]}, &Options{Options: api.Options{Cache: cache}})
			if cache == api.CacheShort {
				require.LessOrEqual(t, strings.Count(body, cacheControl), 4)
				body = strings.ReplaceAll(body, `,"cache_control":{"type":"ephemeral"}`, "")
			}
			require.True(t, strings.HasPrefix(messagesOf(t, body), before))
			before = messagesOf(t, body)
		}
	}
}

func TestCacheMarkersStandWhereTheNextRequestFindsThem(t *testing.T) {
	req := api.Request{Tools: []content.Tool{weather}, Messages: []content.Message{
		user(said("a")), assistant(said("b")), user(said("c")), assistant(call("x")), user(result("x")),
	}}
	marks := func(req api.Request, o *Options) []string {
		body, _ := requireBody(t, req, o)
		return marksIn(t, body)
	}
	require.Equal(t, []string{"tools 0", "messages 2", "messages 4"}, marks(req, nil))
	req.System = []string{"s", "t"}
	require.Equal(t, []string{"system 1", "messages 2", "messages 4"}, marks(req, nil))
	require.Empty(t, marks(req, &Options{Options: api.Options{Cache: api.CacheOff}}))
	req.Messages[0] = user(content.Text{Text: "a", Extra: own(`{"cache_control":{"type":"ephemeral"}}`)})
	require.Equal(t, []string{"system 1", "messages 2", "messages 4"}, marks(req, nil), "the policy decides, not the conversation")
	require.Empty(t, marks(api.Request{Messages: req.Messages[2:3]}, &Options{Options: api.Options{Body: `{"cache_control":{"type":"ephemeral"}}`}}))
}

// marksIn lists the parts of a request that hold a marker.
func marksIn(t *testing.T, body string) []string {
	var r struct {
		Tools    []jsonx.Raw `json:"tools"`
		System   []jsonx.Raw `json:"system"`
		Messages []jsonx.Raw `json:"messages"`
	}
	require.NoError(t, content.JSON(body).Decode(&r))
	found := append(markedIn("tools", r.Tools), markedIn("system", r.System)...)
	return append(found, markedIn("messages", r.Messages)...)
}

func markedIn(name string, list []jsonx.Raw) []string {
	var found []string
	for i, v := range list {
		for range strings.Count(string(v), cacheControl) {
			found = append(found, fmt.Sprintf("%s %d", name, i))
		}
	}
	return found
}

func TestThinkingIsEnabledOnlyInALoopThatBeganWithIt(t *testing.T) {
	for _, c := range []struct {
		name     string
		messages []content.Message
		thinks   bool
	}{
		{"a user turn", []content.Message{user(said("a")), assistant(said("b")), user(said("c"))}, true},
		{"a loop that began with thinking", []content.Message{user(said("a")), assistant(thought("s"), call("1")), user(result("1"))}, true},
		{"a loop of another provider", []content.Message{user(said("a")), assistant(call("1")), user(result("1"))}, false},
		{"a second step without thinking", []content.Message{user(said("a")), assistant(thought("s"), call("1")), user(result("1")), assistant(call("2")), user(result("2"))}, true},
		{"a first step without thinking", []content.Message{user(said("a")), assistant(call("1")), user(result("1")), assistant(thought("s"), call("2")), user(result("2"))}, false},
		{"a loop with unsigned thinking", []content.Message{user(said("a")), assistant(thought(""), call("1")), user(result("1"))}, false},
		{"words beside results", []content.Message{user(said("a")), assistant(thought("s"), call("1")), user(result("1"), said("hurry")), assistant(call("2")), user(result("2"))}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := api.Request{Tools: []content.Tool{weather}, Messages: c.messages}
			body, notes := requireBody(t, req, &Options{Options: api.Options{Thinking: "2048"}})
			require.Equal(t, c.thinks, strings.Contains(body, `"thinking":{"type":"enabled","budget_tokens":2048}`), body)
			require.Equal(t, !c.thinks, hasNote(notes, "option"), "%v", notes)
			require.Contains(t, body, `"max_tokens":18432`)
			again, _ := requireBody(t, req, &Options{Options: api.Options{Body: `{"thinking":{"type":"enabled","budget_tokens":2048}}`}})
			require.Equal(t, c.thinks, strings.Contains(again, "budget_tokens"), "said in Body it is the same")
			body, _ = requireBody(t, req, &Options{Options: api.Options{Thinking: api.ThinkAuto}})
			require.Contains(t, body, `"thinking":{"type":"adaptive"}`)
		})
	}
}

func hasNote(notes []api.RepairNote, kind string) bool {
	for _, n := range notes {
		if n.Kind == kind {
			return true
		}
	}
	return false
}

func TestOptionsThatExcludeThinkingAreLeftOut(t *testing.T) {
	warm := 0.7
	req := hello()
	req.Tools = []content.Tool{weather}
	body, notes := requireBody(t, req, &Options{Options: api.Options{Thinking: "1024", Temperature: &warm}})
	require.NotContains(t, body, "temperature")
	require.Len(t, notes, 1)
	body, notes = requireBody(t, req, &Options{Options: api.Options{Thinking: "1024", Temperature: &warm, Body: `{"temperature":0.5}`}})
	require.NotContains(t, body, "temperature")
	require.Len(t, notes, 1)
	body, notes = requireBody(t, req, &Options{Options: api.Options{Body: `{"temperature":0.5,"thinking":{"type":"adaptive"}}`}})
	require.NotContains(t, body, "temperature")
	require.Len(t, notes, 1)
	body, _ = requireBody(t, req, &Options{Options: api.Options{Temperature: &warm, Body: `{"temperature":0.5}`}})
	require.Contains(t, body, `"temperature":0.5`)
	body, notes = requireBody(t, req, &Options{Options: api.Options{Thinking: "1024", Body: `{"tool_choice":{"type":"any"}}`}})
	require.NotContains(t, body, "budget_tokens")
	require.Len(t, notes, 1)
	body, notes = requireBody(t, req, &Options{Options: api.Options{Body: `{"tool_choice":{"type":"tool","name":"gone"}}`}})
	require.NotContains(t, body, "tool_choice")
	require.Len(t, notes, 1)
}

// TestBlocksAreSentInTheFormOfTheAPI sends each block after a question, and compares its bytes.
func TestBlocksAreSentInTheFormOfTheAPI(t *testing.T) {
	image := func(s content.Source) content.Block { return content.Image{Source: s} }
	document := func(s content.Source) content.Block { return content.Document{Source: s, Title: "T"} }
	file := base64.StdEncoding.EncodeToString([]byte("%PDF-1.7 nothing"))
	for _, c := range []struct {
		name     string
		block    content.Block
		want     string // "" where it is left out
		repaired bool
	}{
		{"an image", image(content.Source{MediaType: "image/png", Data: png}), `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + png + `"}}`, false},
		{"an image of the wrong type", image(content.Source{MediaType: "image/jpeg", Data: png}), `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + png + `"}}`, true},
		{"an image that is none", image(content.Source{MediaType: "image/png", Data: "AAAA"}), `{"type":"text","text":"[image (image/png) left out: its type is none of image/jpeg, image/png, image/gif, image/webp]"}`, true},
		{"base64 that is none", image(content.Source{MediaType: "image/png", Data: "AAA*"}), `{"type":"text","text":"[image (image/png) left out: its data is not base64]"}`, true},
		{"base64 without its end", image(content.Source{MediaType: "image/png", Data: "AAAAA"}), `{"type":"text","text":"[image (image/png) left out: its data is not base64]"}`, true},
		{"base64 with loose bits", image(content.Source{MediaType: "image/png", Data: "AAAAAB=="}), `{"type":"text","text":"[image (image/png) left out: its data is not base64]"}`, true},
		{"an image too large", image(content.Source{MediaType: "image/png", Data: png[:60] + strings.Repeat("AAAA", (5<<20)/4)}), `{"type":"text","text":"[image (image/png) left out: it has 5242940 bytes of base64, more than 5242880]"}`, true},
		{"an image by URL", image(content.Source{URL: "https://example.com/a.png"}), `{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}}`, false},
		{"an image by a plain URL", image(content.Source{URL: "http://example.com/a.png"}), `{"type":"text","text":"[image http://example.com/a.png left out: the API does not fetch its URL]"}`, true},
		{"an image by file", image(content.Source{FileID: "file_1"}), `{"type":"image","source":{"type":"file","file_id":"file_1"}}`, false},
		{"an image of text", image(content.Source{Text: "x"}), `{"type":"text","text":"[image left out: it cannot be sent as text]"}`, true},
		{"a PDF", document(content.Source{MediaType: "application/pdf", Data: file}), `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"` + file + `"},"title":"T"}`, false},
		{"plain text", document(content.Source{Text: "words"}), `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"words"},"title":"T"}`, false},
		{"a CSV", document(content.Source{MediaType: "text/csv", Data: "YSxi"}), `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"a,b"},"title":"T"}`, true},
		{"a film", document(content.Source{MediaType: "video/mp4", Data: "AAAA"}), `{"type":"text","text":"[document \"T\" (video/mp4) left out: its type is none of application/pdf]"}`, true},
		{"space", said(" \n"), "", true},
		{"a block of another API", content.Opaque{API: "gemini", JSON: `{"x":1}`}, "", true},
		{"a search result", content.Opaque{API: API, JSON: `{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"x"}]}`}, `{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"x"}]}`, false},
		{"an opaque text", content.Opaque{API: API, JSON: `{"text":"x", "type":"text"}`}, `{"type":"text","text":"x"}`, true},
		{"an opaque call", content.Opaque{API: API, JSON: `{"type":"tool_use","id":"a","name":"b","input":{}}`}, "", true},
		{"a server's call of the user", content.Opaque{API: API, JSON: `{"type":"server_tool_use","id":"srvtoolu_a","name":"b","input":{}}`}, "", true},
		{"further members", content.Text{Text: "x", Extra: own(`{"citations":[{"type":"char_location"}],"type":"lie"}`)}, `{"type":"text","text":"x","citations":[{"type":"char_location"}]}`, false},
		{"further members of another API", content.Text{Text: "x", Extra: content.Extra{API: "gemini", JSON: `{"a":1}`}}, `{"type":"text","text":"x"}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := api.Request{Messages: []content.Message{user(said("?"), c.block)}}
			body, notes := requireBody(t, req, &Options{Options: api.Options{Cache: api.CacheOff}})
			want := `{"role":"user","content":[{"type":"text","text":"?"}`
			if c.want != "" {
				want += "," + c.want
			}
			require.Equal(t, want+"]}", messagesOf(t, body))
			require.Equal(t, c.repaired, len(notes) > 0, "%v", notes)
		})
	}
}

func TestAssistantBlocksAreSentInTheFormOfTheAPI(t *testing.T) {
	search := content.Opaque{API: API, JSON: `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query": "x"}}`}
	found := content.Opaque{API: API, JSON: `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`}
	pair := string(search.JSON) + "," + string(found.JSON)
	for _, c := range []struct {
		name     string
		blocks   []content.Block
		want     string
		repaired bool
	}{
		{"thinking", []content.Block{thought("s"), said("x")}, `{"type":"thinking","thinking":"Hm.","signature":"s"},{"type":"text","text":"x"}`, false},
		{"thinking that is not shown", []content.Block{content.Thinking{Signature: "s"}, said("x")}, `{"type":"thinking","thinking":"","signature":"s"},{"type":"text","text":"x"}`, false},
		{"redacted thinking", []content.Block{content.Thinking{Redacted: "r"}, said("x")}, `{"type":"redacted_thinking","data":"r"},{"type":"text","text":"x"}`, false},
		{"unsigned thinking", []content.Block{thought(""), said("x")}, `{"type":"text","text":"x"}`, true},
		{"another API's thinking", []content.Block{content.Thinking{Text: "t", Signature: "s", Extra: content.Extra{API: "gemini", JSON: "{}"}}, said("x")}, `{"type":"text","text":"x"}`, true},
		{"thinking at the end", []content.Block{said("x"), thought("s")}, `{"type":"text","text":"x"}`, true},
		{"a server tool", []content.Block{search, found, said("x")}, pair + `,{"type":"text","text":"x"}`, false},
		{"a server tool without a result", []content.Block{said("x"), search}, `{"type":"text","text":"x"}`, true},
		{"a server tool's result alone", []content.Block{found, said("x")}, `{"type":"text","text":"x"}`, true},
		{"a server tool twice", []content.Block{search, found, search, found, said("x")}, pair + `,{"type":"text","text":"x"}`, true},
		{"space beside a server tool", []content.Block{search, found, said(" ")}, pair, true},
		{"a block that is new", []content.Block{said("x"), content.Text{Text: "y"}}, `{"type":"text","text":"x"},{"type":"text","text":"y"}`, false},
		{"an image", []content.Block{content.Image{Source: content.Source{FileID: "f"}}}, `{"type":"text","text":"[image left out: an assistant message cannot contain it]"}`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := api.Request{Messages: []content.Message{user(said("?")), assistant(c.blocks...), user(said("!"))}}
			body, notes := requireBody(t, req, &Options{Options: api.Options{Cache: api.CacheOff}})
			require.Equal(t, `{"role":"user","content":[{"type":"text","text":"?"}]},{"role":"assistant","content":[`+c.want+
				`]},{"role":"user","content":[{"type":"text","text":"!"}]}`, messagesOf(t, body))
			require.Equal(t, c.repaired, len(notes) > 0, "%v", notes)
		})
	}
}

func TestCallsAreSentInTheFormOfTheAPI(t *testing.T) {
	for _, c := range []struct {
		name, input, wantName, wantInput string
	}{
		{"get_weather", `{"b": 1, "a": 1.0}`, "get_weather", `{"b": 1, "a": 1.0}`},
		{"get_weather", ``, "get_weather", `{}`},
		{"get_weather", `[1, 2]`, "get_weather", `{"input":[1, 2]}`},
		{"get_weather", `{"city":"Os`, "get_weather", `{"input":"{\"city\":\"Os"}`},
		{"get.weather é", `{}`, "get_weather__", `{}`},
		{"", `{}`, "unnamed", `{}`},
		{strings.Repeat("x", 70), `{}`, strings.Repeat("x", 64), `{}`},
	} {
		req := api.Request{Messages: []content.Message{
			user(said("?")), assistant(content.ToolUse{ID: "a", Name: c.name, Input: content.JSON(c.input)}), user(result("a")),
		}}
		body, notes := requireBody(t, req, nil)
		require.Contains(t, body, `{"type":"tool_use","id":"a","name":"`+c.wantName+`","input":`+c.wantInput+`}`)
		require.Equal(t, c.name != c.wantName || c.input != c.wantInput, len(notes) > 0)
	}
}

func TestResultsAreSentInTheFormOfTheAPI(t *testing.T) {
	image := content.Image{Source: content.Source{MediaType: "image/png", Data: png}}
	list := func(blocks ...content.Block) content.Blocks { return user(blocks...).Blocks }
	for _, c := range []struct {
		result   content.ToolResult
		want     string
		repaired bool
	}{
		{content.ToolResult{}, ``, false},
		{content.ToolResult{Content: list(said("a"), said("b"))}, `,"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]`, false},
		{content.ToolResult{Content: list(said("a")), IsError: true}, `,"content":[{"type":"text","text":"a"}],"is_error":true`, false},
		{content.ToolResult{IsError: true}, `,"content":[{"type":"text","text":"The tool failed."}],"is_error":true`, true},
		{content.ToolResult{Content: list(said("\n"))}, ``, true},
		{content.ToolResult{Content: list(image), IsError: true}, `,"content":[{"type":"text","text":"The tool failed:"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + png + `"}}]`, true},
	} {
		c.result.CallID = "a"
		req := api.Request{Messages: []content.Message{user(said("?")), assistant(call("a")), user(c.result)}}
		body, notes := requireBody(t, req, &Options{Options: api.Options{Cache: api.CacheOff}})
		require.Contains(t, body, `{"type":"tool_result","tool_use_id":"a"`+c.want+`}]}]}`)
		require.Equal(t, c.repaired, len(notes) > 0, "%v", notes)
	}
}

func TestToolsAreDeclaredInTheFormOfTheAPI(t *testing.T) {
	req := hello()
	strict := weather
	strict.Name, strict.Extra = "strict", own(`{"strict":true,"name":"lie"}`)
	req.Tools = []content.Tool{
		weather, weather, strict,
		{Name: "no name allowed"},
		{Name: "no_schema"},
		{Name: "union", Schema: `{"type":"object","anyOf":[]}`},
		{Name: "property", Schema: `{"type":"object","properties":{"a b":{}}}`},
		{Name: "theirs", Extra: content.Extra{API: "gemini", JSON: `{"type":"google_search"}`}},
		{Name: "web_search", Extra: own(`{"type":"web_search_20250305","max_uses":3}`)},
	}
	body, notes := requireBody(t, req, &Options{Options: api.Options{Cache: api.CacheOff}})
	schema := string(weather.Schema)
	require.Contains(t, body, `"tools":[{"name":"get_weather","description":"Weather.","input_schema":`+schema+`},`+
		`{"name":"strict","description":"Weather.","input_schema":`+schema+`,"strict":true},`+
		`{"name":"union","input_schema":{"type":"object"}},`+
		`{"name":"web_search","type":"web_search_20250305","max_uses":3}],`)
	require.Len(t, notes, 6)
	for _, n := range notes {
		require.Equal(t, "tool", n.Kind)
	}
}

func TestCallsComeLastInTheirMessage(t *testing.T) {
	req := api.Request{Messages: []content.Message{user(said("?")), assistant(said("a"), call("1"), said("b"), call("2")), user(result("1"), result("2"))}}
	body, notes := requireBody(t, req, &Options{Options: api.Options{Cache: api.CacheOff}})
	require.Contains(t, body, `[{"type":"text","text":"a"},{"type":"text","text":"b"},{"type":"tool_use","id":"1"`)
	require.True(t, hasNote(notes, "moved"))
}

func TestAPausedTurnEndsTheConversation(t *testing.T) {
	paused := assistant(said("Let me look."), content.Opaque{API: API, JSON: `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`})
	body, notes := requireBody(t, api.Request{Messages: []content.Message{user(said("?")), paused}}, nil)
	require.True(t, strings.HasSuffix(body, `"input":{}}]}]}`), body)
	require.Empty(t, notes)
}

func TestAConversationEndsWithTheUserUnlessItIsAPrefill(t *testing.T) {
	req := api.Request{Messages: []content.Message{user(said("?")), assistant(said("The answer is \n"))}}
	body, notes := requireBody(t, req, nil)
	require.Contains(t, body, content.GoOn)
	require.True(t, hasNote(notes, "end"))
	made, notes, err := Body(req, "m", &Options{Prefill: true})
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(string(made), `{"role":"assistant","content":[{"type":"text","text":"The answer is"}]}]}`), string(made))
	require.Len(t, notes, 1)
	var refused *api.Error
	require.True(t, errors.As(fake.CheckAnthropic(made), &refused), "the strict fake plays a newer model")
}

// TestACallOfAServerToolWaitsForTheCallsItMakes keeps a code execution open while the tools that it calls are answered.
func TestACallOfAServerToolWaitsForTheCallsItMakes(t *testing.T) {
	execution := content.Opaque{API: API, JSON: `{"type":"server_tool_use","id":"srvtoolu_1","name":"code_execution","input":{}}`}
	called := content.ToolUse{ID: "a", Name: "get_weather", Input: `{}`, Extra: own(`{"caller":{"type":"code_execution_20250825","tool_id":"srvtoolu_1"},"plait":{"container":"c"}}`)}
	ended := content.Opaque{API: API, JSON: `{"type":"code_execution_tool_result","tool_use_id":"srvtoolu_1","content":{}}`}
	messages := []content.Message{user(said("?")), assistant(execution, called), user(result("a")), assistant(ended, said("Done.")), user(said("!"))}
	for _, n := range []int{3, 5} {
		body, notes := requireBody(t, api.Request{Tools: []content.Tool{weather}, Messages: messages[:n]}, nil)
		require.Empty(t, notes)
		require.Contains(t, body, string(execution.JSON))
	}
}

// TestThinkingAfterAnUnansweredCallOfAServerToolGoesWithIt continues a conversation in which the response to a pending call
// has no result of it. Later requests leave the call out, so the thinking of that response is no longer valid.
func TestThinkingAfterAnUnansweredCallOfAServerToolGoesWithIt(t *testing.T) {
	search := content.Opaque{API: API, JSON: `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`}
	found := content.Opaque{API: API, JSON: `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`}
	thinking := func(signature string) content.Block { return content.Thinking{Text: "Hm.", Signature: signature} }
	for name, test := range map[string]struct {
		first, second []content.Block
		sent, not     string
	}{
		"after the results of own calls": {[]content.Block{thinking("s1"), search, call("a")}, []content.Block{thinking("s2"), said("Done.")}, "s1", "s2"},
		"in a turn that was paused":      {[]content.Block{thinking("s1"), search, thinking("s2"), said("Done.")}, nil, "s1", "s2"},
		"after the result":               {[]content.Block{thinking("s1"), search, call("a")}, []content.Block{found, thinking("s2"), said("Done.")}, "s2", "none"},
	} {
		messages := []content.Message{user(said("?")), assistant(test.first...)}
		if test.second != nil {
			messages = append(messages, user(result("a")), assistant(test.second...))
		}
		body, _ := requireBody(t, api.Request{Tools: []content.Tool{weather}, Messages: append(messages, user(said("!")))}, nil)
		require.Contains(t, body, test.sent, name)
		require.NotContains(t, body, test.not, name)
	}
}

// TestToolChoiceNamesTheToolThatIsSent declares a tool whose name the API refuses beside one whose name is like it, and a tool
// that the API sees under another name.
func TestToolChoiceNamesTheToolThatIsSent(t *testing.T) {
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
		require.Equal(t, "tool", notes[0].Kind, "the name is refused")
		if want != "" {
			require.Contains(t, body, want)
			require.Len(t, notes, 1)
			continue
		}
		require.NotContains(t, body, "tool_choice", name)
		require.Equal(t, []api.RepairNote{{Kind: "option", Message: -1, Detail: `ToolChoice is left out: there is no tool "` + name + `"`}}, notes[1:])
	}
}

func TestCachePolicyOfAnotherProviderIsNoted(t *testing.T) {
	body, notes := requireBody(t, hello(), &Options{Options: api.Options{Cache: "forever"}})
	require.NotContains(t, body, cacheControl)
	require.Equal(t, []api.RepairNote{{Kind: "option", Message: -1, Detail: `Cache "forever" is left out: the API has no such policy`}}, notes)
	for _, policy := range policies {
		_, notes := requireBody(t, hello(), &Options{Options: api.Options{Cache: policy}})
		require.Empty(t, notes)
	}
}

// TestRequestsThatWereOnceRefusedAreValid holds every conversation whose request was refused once, and a few that it is easy to get wrong. The random
// test is to find more; what it finds belongs here.
func TestRequestsThatWereOnceRefusedAreValid(t *testing.T) {
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
