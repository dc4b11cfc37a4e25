package openai

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
	"github.com/stretchr/testify/require"
)

// front is what the body of a request says before its messages, and the notes.
func chatFront(t *testing.T, o Options, tools ...content.Tool) (string, []string) {
	t.Helper()
	req := hello()
	req.Tools = tools
	body, notes, err := ChatBody(req, "m", &o)
	require.NoError(t, err)
	require.NoError(t, fake.CheckOpenAIChat(body), string(body))
	said, _, _ := strings.Cut(strings.TrimPrefix(string(body), `{"model":"m",`), `"messages":`)
	var shown []string
	for _, n := range notes {
		shown = append(shown, n.String())
	}
	return strings.TrimSuffix(said, ","), shown
}

func TestChatOptionsAreSent(t *testing.T) {
	half := 0.5
	weather := content.Tool{Name: "get_weather", Schema: `{"type":"object","properties":{}}`}
	const function = `"tools":[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{}}}}]`
	open := api.Schema{Name: "place", JSON: `{"type":"object","properties":{"city":{"type":"string"}}}`}
	closed := api.Schema{Name: "place", JSON: `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}`}
	for name, c := range map[string]struct {
		o     Options
		tools []content.Tool
		want  string
		notes []string
	}{
		"nothing":     {},
		"max tokens":  {o: Options{Options: api.Options{MaxTokens: 7}}, want: `"max_completion_tokens":7`},
		"older name":  {o: Options{Options: api.Options{MaxTokens: 7}, MaxTokensName: "max_tokens"}, want: `"max_tokens":7`},
		"Body's name": {o: Options{Options: api.Options{MaxTokens: 7, Body: `{"max_tokens":8}`}}, want: `"max_tokens":8`},
		"temperature": {o: Options{Options: api.Options{Temperature: &half}}, want: `"temperature":0.5`},
		"stops":       {o: Options{Options: api.Options{StopSequences: []string{"a", "b"}}}, want: `"stop":["a","b"]`},
		"five stops": {o: Options{Options: api.Options{StopSequences: []string{"a", "b", "c", "d", "e"}}}, want: `"stop":["a","b","c","d"]`,
			notes: []string{"option: only the first 4 of 5 stop sequences are sent"}},
		"any tool":       {o: Options{Options: api.Options{ToolChoice: api.ToolsAny}}, tools: []content.Tool{weather}, want: `"tool_choice":"required",` + function},
		"no tool":        {o: Options{Options: api.Options{ToolChoice: api.ToolsNone}}, tools: []content.Tool{weather}, want: `"tool_choice":"none",` + function},
		"one tool":       {o: Options{Options: api.Options{ToolChoice: api.OneTool("get_weather")}}, tools: []content.Tool{weather}, want: `"tool_choice":{"type":"function","function":{"name":"get_weather"}},` + function},
		"an absent tool": {o: Options{Options: api.Options{ToolChoice: api.OneTool("x")}}, tools: []content.Tool{weather}, want: function, notes: []string{`option: ToolChoice is left out: there is no tool "x"`}},
		"choice, alone":  {o: Options{Options: api.Options{ToolChoice: api.ToolsAny}}, notes: []string{"option: ToolChoice is left out: there are no tools"}},
		"one call":       {o: Options{Options: api.Options{OneCall: true}}, tools: []content.Tool{weather}, want: `"parallel_tool_calls":false,` + function},
		"one call alone": {o: Options{Options: api.Options{OneCall: true}}},
		"no thinking":    {o: Options{Options: api.Options{Thinking: api.ThinkOff}}, want: `"reasoning_effort":"none"`},
		"auto thinking":  {o: Options{Options: api.Options{Thinking: api.ThinkAuto}}},
		"high thinking":  {o: Options{Options: api.Options{Thinking: api.ThinkHigh}}, want: `"reasoning_effort":"high"`},
		"a budget":       {o: Options{Options: api.Options{Thinking: api.ThinkTokens(9)}}, notes: []string{"option: a thinking budget of 9 tokens is left out: the API has only levels"}},
		"a form":         {o: Options{Options: api.Options{Output: open}}, want: `"response_format":{"type":"json_schema","json_schema":{"name":"place","schema":` + string(open.JSON) + `}}`},
		"a strict form":  {o: Options{Options: api.Options{Output: closed}}, want: `"response_format":{"type":"json_schema","json_schema":{"name":"place","schema":` + string(closed.JSON) + `,"strict":true}}`},
		"a long cache":   {o: Options{Options: api.Options{Cache: api.CacheLong}}, want: `"prompt_cache_retention":"24h"`},
		"no cache":       {o: Options{Options: api.Options{Cache: api.CacheOff}}},
		"Body's own": {o: Options{Options: api.Options{Temperature: &half, Body: `{"temperature":1,"seed":3,"model":"x","stream":true,"stream_options":{},"tool_choice":"none"}`}}, want: `"temperature":1,"seed":3`,
			notes: []string{`option: "model" in Options.Body is left out: Plait sets it`, `option: "stream" in Options.Body is left out: Plait sets it`,
				`option: "stream_options" in Options.Body is left out: the response is not streamed`, `option: "tool_choice" in Options.Body is left out: there are no tools`}},
	} {
		c.o.NoStream = true
		got, notes := chatFront(t, c.o, c.tools...)
		require.Equal(t, c.want, got, name)
		require.Equal(t, c.notes, notes, name)
	}
	got, _ := chatFront(t, Options{})
	require.Equal(t, `"stream":true,"stream_options":{"include_usage":true}`, got)
	got, _ = chatFront(t, Options{Options: api.Options{Body: `{"stream_options":{"include_usage":false}}`}})
	require.Equal(t, `"stream":true,"stream_options":{"include_usage":false}`, got)
}

func TestCacheOffTurnsCachingOffWhereItCosts(t *testing.T) {
	const off = `"prompt_cache_options":{"mode":"explicit"}`
	req := hello()
	req.Options.Cache = api.CacheOff
	for model, want := range map[string]bool{"gpt-5.6-mini": true, "gpt-6": true, "gpt-5.5": false, "gpt-4.1": false, "gpt-oss-20b": false} {
		chat, notes, err := ChatBody(req, model, nil)
		require.NoError(t, err)
		require.Empty(t, notes)
		require.Equal(t, want, strings.Contains(string(chat), off), model)

		responses, _, err := ResponsesBody(req, model, nil)
		require.NoError(t, err)
		require.Equal(t, want, strings.Contains(string(responses), off), model)
	}

	req.Options.Body = `{"prompt_cache_options":{"mode":"implicit"}}`
	body, _, err := ChatBody(req, "gpt-5.6", nil)
	require.NoError(t, err)
	require.Contains(t, string(body), `"prompt_cache_options":{"mode":"implicit"}`)
	require.NotContains(t, string(body), off)
}

func TestARequestsOptionsGoBeforeThoseOfTheModel(t *testing.T) {
	req := hello()
	req.Options = api.Options{MaxTokens: 5}
	body, _, err := ChatBody(req, "m", &Options{Options: api.Options{MaxTokens: 9, Thinking: api.ThinkLow}, NoStream: true})
	require.NoError(t, err)
	require.Contains(t, string(body), `"max_completion_tokens":5,"reasoning_effort":"low"`)
}

func TestChatRefusesOptionsThatNoRequestCanBeMadeWith(t *testing.T) {
	nan := math.NaN()
	for _, o := range []api.Options{{MaxTokens: -1}, {Temperature: &nan}, {ToolChoice: "tool"}, {Thinking: "so so"}, {Body: "[]"}, {Cache: "for ever"}} {
		_, _, err := ChatBody(hello(), "m", &Options{Options: o})
		require.ErrorIs(t, err, api.ErrInvalidRequest)
		require.ErrorContains(t, err, "openai-chat: ")
	}
}

func TestChatToolsAreFit(t *testing.T) {
	schema := content.JSON(`{"type":"object","properties":{"a":{"type":"string"}}}`)
	front, notes := chatFront(t, Options{NoStream: true},
		content.Tool{Name: "f", Description: "F.", Schema: schema, Extra: content.Extra{API: ChatAPI, JSON: `{"strict":false}`}},
		content.Tool{Name: "f", Schema: schema},
		content.Tool{Name: "g", Schema: `{"type":"object","oneOf":[{}],"properties":{}}`},
		content.Tool{Name: "bad name", Schema: schema},
		content.Tool{Name: "run", Extra: content.Extra{API: ChatAPI, JSON: `{"type":"custom","custom":{"name":"run"}}`}},
		content.Tool{Name: "search", Extra: content.Extra{API: "anthropic", JSON: `{"type":"web_search_20250305","name":"web_search"}`}},
	)
	require.Equal(t, `"tools":[{"type":"function","function":{"name":"f","description":"F.","parameters":`+string(schema)+`,"strict":false}},`+
		`{"type":"function","function":{"name":"g","parameters":{"type":"object","properties":{}}}},{"type":"custom","custom":{"name":"run"}}]`, front)
	require.Len(t, notes, 4)
	var many []content.Tool
	for i := range 130 {
		many = append(many, content.Tool{Name: fmt.Sprintf("f%d", i), Schema: schema})
	}
	_, notes = chatFront(t, Options{}, many...)
	require.Len(t, notes, 2, "the API takes 128")
}

// chatMessages is the messages of a request, as they are sent.
func chatMessages(t *testing.T, o *Options, messages ...content.Message) string {
	t.Helper()
	body, _, err := ChatBody(api.Request{System: []string{"Be brief.", " "}, Messages: messages}, "gpt-audio", o)
	require.NoError(t, err)
	require.NoError(t, fake.CheckOpenAIChat(body), string(body))
	_, said, _ := strings.Cut(string(body), `"messages":[`)
	return strings.TrimSuffix(said, "]}")
}

func TestWhatAToolShowsFollowsInTheUsersMessage(t *testing.T) {
	image := content.Image{Source: content.Source{MediaType: "image/png", Data: tinyPNG}, Extra: content.Extra{API: ChatAPI, JSON: `{"detail":"low"}`}}
	got := chatMessages(t, nil,
		content.Message{Role: content.User, Blocks: content.Words("Look.")},
		content.Message{Role: content.Assistant, Blocks: must(content.ToolUse{ID: "a", Name: "f", Input: `{}`}, content.ToolUse{ID: "b", Name: "f", Input: `{}`})},
		content.Message{Role: content.User, Blocks: must(
			content.ToolResult{CallID: "b", Content: content.Words("no such file"), IsError: true},
			content.ToolResult{CallID: "a", Content: must(content.Text{Text: "Here:"}, image)}, content.Text{Text: "Well?"})})
	require.Equal(t, `{"role":"system","content":"Be brief."},{"role":"user","content":"Look."},`+
		`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]},`+
		`{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"Here:"},{"type":"text","text":"[attachment 1: see the user's message after the results]"}]},`+
		`{"role":"tool","tool_call_id":"b","content":"Error: no such file"},`+
		`{"role":"user","content":[{"type":"text","text":"[attachment 1, of the result of a:]"},{"type":"image_url","image_url":{"url":"data:image/png;base64,`+tinyPNG+`","detail":"low"}},{"type":"text","text":"Well?"}]}`, got)
}

func TestChatMediaAreSentInTheFormOfTheAPI(t *testing.T) {
	pdf, wav := "JVBERi0xLjcK", "UklGRiQAAABXQVZFZm10IA=="
	for part, b := range map[string]content.Block{
		`{"type":"image_url","image_url":{"url":"https://example.com/x.png"}}`:                                     content.Image{Source: content.Source{URL: "https://example.com/x.png"}},
		`{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,` + pdf + `"}}`:        content.Document{Title: "a.pdf", Source: content.Source{MediaType: "application/pdf", Data: pdf}},
		`{"type":"file","file":{"filename":"document.pdf","file_data":"data:application/pdf;base64,` + pdf + `"}}`: content.Document{Source: content.Source{MediaType: "application/pdf", Data: pdf}},
		`{"type":"file","file":{"file_id":"file_1"}}`:                                                              content.Document{Source: content.Source{FileID: "file_1"}},
		`{"type":"input_audio","input_audio":{"data":"` + wav + `","format":"wav"}}`:                               content.Document{Source: content.Source{MediaType: "audio/wav", Data: wav}},
	} {
		got := chatMessages(t, &Options{SystemRole: "developer"}, content.Message{Role: content.User, Blocks: must(b)})
		require.Equal(t, `{"role":"developer","content":"Be brief."},{"role":"user","content":[`+part+`]}`, got)
		require.Equal(t, b, func() content.Block {
			d := decodePart(content.JSON(part))
			if doc, ok := d.(content.Document); ok && doc.Title == "document.pdf" {
				doc.Title = ""
				return doc
			}
			return d
		}(), "and read again")
	}
}

func TestConversationMayEndWithAssistantText(t *testing.T) {
	got := chatMessages(t, nil, content.Message{Role: content.User, Blocks: content.Words("Hi")}, content.Message{Role: content.Assistant, Blocks: content.Words("Ho")})
	require.Equal(t, `{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"},{"role":"assistant","content":"Ho"}`, got)
}

func TestThinkingAloneIsNoMessage(t *testing.T) {
	thought := content.Thinking{Text: "x", Extra: content.Extra{API: ChatAPI, JSON: `{"field":"reasoning_content"}`}}
	got := chatMessages(t, nil, content.Message{Role: content.User, Blocks: content.Words("Hi")}, content.Message{Role: content.Assistant, Blocks: must(thought)},
		content.Message{Role: content.User, Blocks: content.Words("Well?")})
	require.Equal(t, `{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"Hi"},{"type":"text","text":"Well?"}]}`, got)
}

func TestNameOfAUserAloneIsNoMessage(t *testing.T) {
	name := content.Opaque{API: ChatAPI, JSON: `{"name":"bob"}`}
	alone := content.Message{Role: content.User, Blocks: must(name)}
	_, _, err := ChatBody(api.Request{Messages: []content.Message{alone}}, "m", nil)
	require.ErrorIs(t, err, api.ErrNothing)

	got := chatMessages(t, nil, content.Message{Role: content.User, Blocks: must(name, name, content.Text{Text: "Hi"}, name)},
		content.Message{Role: content.Assistant, Blocks: content.Words("Ho")}, alone,
		content.Message{Role: content.Assistant, Blocks: content.Words("Ho")})
	require.Equal(t, `{"role":"system","content":"Be brief."},{"role":"user","content":"Hi","name":"bob"},`+
		`{"role":"assistant","content":[{"type":"text","text":"Ho"},{"type":"text","text":"Ho"}]}`, got)
}

func TestMessagesOfOneAssistantHaveOneName(t *testing.T) {
	named := func(name string) content.Message {
		return content.Message{Role: content.Assistant, Blocks: must(content.Opaque{API: ChatAPI, JSON: content.JSON(`{"name":"` + name + `"}`)}, content.Text{Text: "Ho"})}
	}
	got := chatMessages(t, nil, content.Message{Role: content.User, Blocks: content.Words("Hi")}, named("bob"), named("bob"), named("eve"))
	require.Contains(t, got, `"name":"bob"}`)
}

func TestACallsIDIsAsShortAsTheAPIWantsIt(t *testing.T) {
	for id, want := range map[string]string{strings.Repeat("x", 40): strings.Repeat("x", 40), strings.Repeat("x", 41): "call_1", "functions.f:0": "functions.f:0", "ü": "call_1"} {
		got := chatMessages(t, nil, content.Message{Role: content.User, Blocks: content.Words("Hi")}, content.Message{Role: content.Assistant, Blocks: must(content.ToolUse{ID: id, Name: "f", Input: `{}`})})
		require.Contains(t, got, `"tool_calls":[{"id":"`+want+`"`)
		require.Contains(t, got, `"tool_call_id":"`+want+`"`)
	}
}
