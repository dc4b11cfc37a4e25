package providertest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
)

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// Cases returns requests to the named API: each option by itself, tools of all sorts, and every kind of block in every
// position. The caller adds the API's own blocks.
func Cases(name string) []Case {
	return append(append(optionCases(), toolCases(name)...), blockCases(name)...)
}

// Said returns a message with the blocks.
func Said(role content.Role, blocks ...content.Block) content.Message {
	list, err := content.Of(blocks...)
	if err != nil {
		panic(err)
	}
	return content.Message{Role: role, Blocks: list}
}

func hello() []content.Message {
	return []content.Message{Said(content.User, content.Text{Text: "Hello"})}
}

func weather() content.Tool {
	return content.Tool{Name: "get_weather", Description: "Weather.",
		Schema: `{"type":"object","properties":{"city":{"type":"string"}}}`}
}

// optionCases returns requests with each option by itself, and with conflicting options.
func optionCases() []Case {
	var list optionList
	list.add("an invalid option", api.Options{MaxTokens: -1})
	list = append(list,
		Case{Name: "nothing to send"},
		Case{Name: "system prompts",
			Request: api.Request{System: []string{"Be brief.", " ", "", "Rhyme."}, Messages: hello()}})
	return slices.Concat(limitCases(), thoughtCases(), formCases(), bodyCases(), list)
}

// optionList collects requests with options.
type optionList []Case

func (l *optionList) add(name string, o api.Options, tools ...content.Tool) {
	*l = append(*l, Case{Name: name, Request: api.Request{Tools: tools, Messages: hello(), Options: o}})
}

// limitCases returns requests with limits, a temperature and tool choices.
func limitCases() []Case {
	cold, hot := 0.25, 1.5
	var list optionList
	list.add("no options", api.Options{})
	list.add("MaxTokens", api.Options{MaxTokens: 100})
	list.add("MaxTokens of 1", api.Options{MaxTokens: 1})
	list.add("Temperature", api.Options{Temperature: &cold})
	list.add("a high Temperature", api.Options{Temperature: &hot})
	list.add("StopSequences", api.Options{StopSequences: []string{"END", " ", "b"}})
	list.add("six StopSequences", api.Options{StopSequences: []string{"a", "b", "c", "d", "e", "f"}})

	// Tool choices, with and without tools to choose from.
	for _, choice := range []api.ToolChoice{api.ToolsAny, api.ToolsNone, api.OneTool("get_weather"),
		api.OneTool("missing")} {
		list.add(fmt.Sprintf("ToolChoice %q", choice), api.Options{ToolChoice: choice}, weather())
		list.add(fmt.Sprintf("ToolChoice %q and OneCall", choice), api.Options{ToolChoice: choice, OneCall: true}, weather())
		list.add(fmt.Sprintf("ToolChoice %q without tools", choice), api.Options{ToolChoice: choice})
	}
	list.add("OneCall", api.Options{OneCall: true}, weather())
	list.add("OneCall without tools", api.Options{OneCall: true})
	return list
}

// thoughtCases returns requests with levels and budgets of thinking, and with options in conflict with it.
func thoughtCases() []Case {
	cold := 0.25
	var list optionList
	for _, thinking := range []api.Thinking{api.ThinkAuto, api.ThinkOff, api.ThinkLow, api.ThinkHigh, "none", "minimal",
		"max", "xhigh", api.ThinkTokens(5000), api.ThinkTokens(10)} {
		list.add(fmt.Sprintf("Thinking %q", thinking), api.Options{Thinking: thinking})
	}
	list.add("Thinking beside Temperature", api.Options{Thinking: api.ThinkAuto, Temperature: &cold})
	list.add("Thinking beside a forced call", api.Options{Thinking: api.ThinkTokens(2000), ToolChoice: api.ToolsAny},
		weather())
	list.add("Thinking of all of MaxTokens", api.Options{Thinking: api.ThinkTokens(2000), MaxTokens: 2000})
	list.add("Thinking of one less than MaxTokens", api.Options{Thinking: api.ThinkTokens(2000), MaxTokens: 2001})
	return list
}

// formCases returns requests with forms of the response, metadata and cache policies.
func formCases() []Case {
	form := api.Schema{Name: "city",
		JSON: `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false}`}
	loose := api.Schema{Name: "loose",
		JSON: `{"type":"object","properties":{"a":{"type":"string","pattern":"^x"},"b":{"type":"array"}},"$id":"x"}`}

	var list optionList
	list.add("Output", api.Options{Output: form})
	list.add("Output beside Thinking and tools", api.Options{Output: form, Thinking: api.ThinkLow}, weather())
	list.add("Output that is reduced", api.Options{Output: loose})

	// Cache policies, also unknown ones.
	for _, cache := range []api.Cache{api.CacheShort, api.CacheLong, api.CacheOff, "no_such"} {
		list.add(fmt.Sprintf("Cache %q", cache), api.Options{Cache: cache}, weather())
	}
	return list
}

// bodyCases returns requests with members of the body from Plait itself, and with others.
func bodyCases() []Case {
	cold := 0.25
	var list optionList
	list.add("Body", api.Options{Body: `{"a":{"b":[1]},"temperature":0.5}`, Temperature: &cold})
	list.add("MaxTokens in Body", api.Options{Body: `{"max_tokens":7,"max_output_tokens":8}`, MaxTokens: 100})
	list.add("what Body cannot say",
		api.Options{Body: `{"model":"x","messages":[],"system":"x","tools":[],"stream":false,"instructions":"x","input":[],` +
			`"previous_response_id":"x","conversation":"x","background":true,"contents":[],"systemInstruction":{},"system_instruction":{}}`})
	list.add("tool_choice in Body",
		api.Options{Body: `{"tool_choice":{"type":"function","function":{"name":"missing"}},"parallel_tool_calls":true}`}, weather())
	list.add("tool_choice in Body without tools",
		api.Options{Body: `{"tool_choice":"auto","parallel_tool_calls":true,"tool_config":{"functionCallingConfig":{"mode":"ANY"}}}`})
	return list
}

func toolCases(name string) []Case {
	tool := func(name string, schema content.JSON) content.Tool { return content.Tool{Name: name, Schema: schema} }
	list := map[string][]content.Tool{
		"declared twice": {weather(), weather()},
		"a name that does not fit": {tool("get weather!", `{"type":"object"}`), tool("1", `{"type":"object"}`),
			tool(strings.Repeat("n", 130), `{"type":"object"}`)},
		"no schema": {{Name: "bare"},
			{Name: "other", Extra: content.Extra{API: "elsewhere", JSON: `{"type":"x"}`}}},
		"an argument whose name is odd": {tool("odd", `{"type":"object","properties":{"a b":{"type":"string"}}}`)},
		"schemas that say more than some": {tool("deep",
			`{"type":"object","$defs":{"x":{"type":"integer","minimum":1}},"properties":{"a":{"$ref":"#/$defs/x"},"b":{"anyOf":[{"type":"array"},{"type":["string","null"]}]},"c":{"type":"string","format":"date","pattern":"^x","enum":["x"]}},"patternProperties":{"^y":{"type":"array"}},"additionalProperties":{"type":"array"},"required":["a"]}`)},
		"schemas without properties": {tool("none", `{}`), tool("object", `{"type":"object"}`),
			tool("no object", `{"type":"string"}`)},
		"members of its own": {{Name: "own", Description: "Own.", Schema: `{"type":"object"}`,
			Extra: content.Extra{API: name, JSON: `{"strict":true,"x":{"y":1},"name":"other"}`}}},
		"a tool that the API runs": {{Name: "search",
			Extra: content.Extra{API: name, JSON: `{"type":"web_search","name":"web_search","googleSearch":{}}`}},
			weather()},
		"a tool that the API runs, twice": {{Name: "a",
			Extra: content.Extra{API: name, JSON: `{"type":"web_search","name":"web_search","googleSearch":{}}`}},
			{Name: "b", Extra: content.Extra{API: name,
				JSON: `{"type":"web_search","name":"web_search","googleSearch":{}}`}}},
		"a custom tool": {{Name: "free", Description: "Any text.",
			Extra: content.Extra{API: name,
				JSON: `{"type":"custom","custom":{"name":"free"},"format":{"type":"text"}}`}}},
		"a server tool that says no type": {{Name: "none", Extra: content.Extra{API: name, JSON: `{"x":1}`}}},
		"a server tool with a tool's parts": {{Name: "none",
			Extra: content.Extra{API: name, JSON: `{"functionDeclarations":[],"type":"function"}`}}},
	}

	// A golden file needs the same order each time.
	var cases []Case
	for _, what := range slices.Sorted(maps.Keys(list)) {
		cases = append(cases, Case{Name: "tools: " + what, Request: api.Request{Tools: list[what], Messages: hello()}})
	}

	chosen := api.Request{Tools: list["a custom tool"], Messages: hello(),
		Options: api.Options{ToolChoice: api.OneTool("free")}}
	server := api.Request{Tools: list["a tool that the API runs"], Messages: hello(),
		Options: api.Options{ToolChoice: api.OneTool("search")}}

	// One more than OpenAI's APIs accept.
	crowd := api.Request{Messages: hello()}
	for i := range 129 {
		crowd.Tools = append(crowd.Tools, tool(fmt.Sprint("t", i), `{"type":"object"}`))
	}

	return append(cases, Case{Name: "tools: a custom tool is chosen", Request: chosen}, Case{Name: "tools: a server tool is chosen", Request: server},
		Case{Name: "tools: 129 of them", Request: crowd})
}

func blockCases(name string) []Case {
	return slices.Concat(mediaCases(), callCases(), thinkingCases(name), ownCases(name), orderCases())
}

// caseList collects requests with blocks.
type caseList []Case

func (l *caseList) add(name string, messages ...content.Message) {
	*l = append(*l, Case{Name: "blocks: " + name, Request: api.Request{Tools: []content.Tool{weather()}, Messages: messages}})
}

func ownExtra(name string, json content.JSON) content.Extra {
	return content.Extra{API: name, JSON: json}
}

func encoded(mediaType, data string) content.Source {
	return content.Source{MediaType: mediaType, Data: data}
}

func imageOf(s content.Source) content.Block { return content.Image{Source: s} }

func documentOf(s content.Source, title string) content.Block {
	return content.Document{Source: s, Title: title}
}

func callTo(id, tool string) content.Block {
	return content.ToolUse{ID: id, Name: tool, Input: `{"city":"Oslo"}`}
}

func resultOf(id string, blocks ...content.Block) content.Block {
	return content.ToolResult{CallID: id, Content: Said(content.User, blocks...).Blocks}
}

func failedResult(id string, blocks ...content.Block) content.Block {
	return content.ToolResult{CallID: id, Content: Said(content.User, blocks...).Blocks, IsError: true}
}

func textOf(s string) content.Block { return content.Text{Text: s} }

// allMedia returns images, documents and audio from all sources, some of an unsupported type.
func allMedia() []content.Block {
	return []content.Block{
		imageOf(encoded("image/png", pixel)), imageOf(content.Source{URL: "https://example.org/a.JPG"}),
		imageOf(content.Source{FileID: "file-1"}),
		imageOf(encoded("image/tiff", "SUkqAA==")), documentOf(encoded("application/pdf", "JVBERi0="), "Report"),
		documentOf(encoded("application/pdf", "JVBERi0="), ""),
		documentOf(content.Source{URL: "https://example.org/a.pdf"}, "Linked"),
		documentOf(content.Source{FileID: "file-2"}, "Filed"),
		documentOf(content.Source{MediaType: "text/plain", Text: "A text."}, "Note"),
		documentOf(encoded("text/html", "PGI+eDwvYj4="), ""),
		documentOf(encoded("audio/wav", "UklGRg=="), ""), documentOf(encoded("audio/mpeg", "SUQz"), ""),
		documentOf(encoded("video/mp4", "AAAA"), ""),
	}
}

// mediaCases returns requests with media in every position.
func mediaCases() []Case {
	var list caseList
	media := allMedia()
	list.add("media of the user", Said(content.User, append([]content.Block{textOf("Look:")}, media...)...))
	for i, b := range media {
		if i%3 == 1 {
			list.add(fmt.Sprintf("medium %d alone", i), Said(content.User, b))
		}
	}
	list.add("media in a result", Said(content.User, textOf("Go.")),
		Said(content.Assistant, callTo("a", "get_weather")),
		Said(content.User, resultOf("a", append([]content.Block{textOf("Seen:")}, media...)...)))
	list.add("media of the assistant", Said(content.User, textOf("Draw.")),
		Said(content.Assistant, textOf("Here:"), media[0], media[4]),
		Said(content.User, textOf("Thanks.")))
	return list
}

// callCases returns requests with calls and results, some of them malformed.
func callCases() []Case {
	var list caseList
	list.add("results of every sort", Said(content.User, textOf("Go.")),
		Said(content.Assistant, textOf("I look."), callTo("a", "get_weather"), callTo("b", "get_weather"),
			callTo("c", "get_weather"),
			callTo("d", "get_weather"), callTo("e", "get_weather"), callTo("f", "get_weather")),
		Said(content.User, resultOf("a", textOf("snow")), resultOf("b"), failedResult("c", textOf("no such city")),
			failedResult("d"),
			failedResult("e", allMedia()[0]), resultOf("f", textOf(`{"a":1}`), textOf(" ")), textOf("And now?")))
	list.add("results in another order, one missing", Said(content.User, textOf("Go.")),
		Said(content.Assistant, callTo("a", "get_weather"), callTo("b", "get_weather"), callTo("c", "get_weather")),
		Said(content.User, textOf("Before."), resultOf("c", textOf("3")), resultOf("a", textOf("1"))))
	list.add("IDs and names that do not fit", Said(content.User, textOf("Go.")),
		Said(content.Assistant, callTo("a b", "get weather"), callTo("", "get_weather"), callTo(strings.Repeat("i", 70), "get_weather")),
		Said(content.User, resultOf("a b", textOf("1")), resultOf("", textOf("2")),
			resultOf(strings.Repeat("i", 70), textOf("3"))))
	list.add("an ID twice", Said(content.User, textOf("Go.")), Said(content.Assistant, callTo("a", "get_weather"),
		callTo("a", "get_weather")), Said(content.User, resultOf("a", textOf("1")), resultOf("a", textOf("2"))),
		Said(content.Assistant, callTo("a", "get_weather")), Said(content.User, resultOf("a", textOf("3"))))
	list.add("a call that is no object, and one cut off", Said(content.User, textOf("Go.")),
		Said(content.Assistant, content.ToolUse{ID: "a", Name: "get_weather", Input: `[1]`},
			content.ToolUse{ID: "b", Name: "get_weather", Input: `{"a`},
			content.CutToolUse{Name: "get_weather", Input: `{"c`}),
		Said(content.User, resultOf("a", textOf("1")), resultOf("b", textOf("2"))))
	return list
}

// thinkingCases returns requests with thinking, and with blocks of other APIs.
func thinkingCases(name string) []Case {
	var list caseList
	list.add("blocks of other APIs", Said(content.User, textOf("Go."),
		content.Opaque{API: "elsewhere", JSON: `{"type":"x","text":"said"}`}),
		Said(content.Assistant,
			content.Thinking{Text: "Hm.", Signature: "sig", Extra: content.Extra{API: "elsewhere", JSON: `{"id":"r"}`}},
			content.Opaque{API: "elsewhere", JSON: `{"type":"y"}`}, textOf("Well.")),
		Said(content.User, textOf("On.")))
	list.add("thinking of every sort", Said(content.User, textOf("Go.")),
		Said(content.Assistant, content.Thinking{Text: "Hm.", Signature: "c2ln", Extra: ownExtra(name, `{}`)},
			content.Thinking{Redacted: "cmVk", Extra: ownExtra(name, `{}`)},
			content.Thinking{Text: "Old.", Signature: "c2ln", Stale: true, Extra: ownExtra(name, `{}`)},
			content.Thinking{Text: "Unsigned."}, content.Thinking{Signature: "c2ln", Extra: ownExtra(name, `{}`)},
			textOf("Well."), content.Thinking{Text: "Last.", Signature: "c2ln", Extra: ownExtra(name, `{}`)}),
		Said(content.User, textOf("On."),
			content.Thinking{Text: "Mine.", Signature: "c2ln", Extra: ownExtra(name, `{}`)}))
	list.add("thinking alone", Said(content.User, textOf("Go.")),
		Said(content.Assistant, content.Thinking{Text: "Hm.", Signature: "c2ln", Extra: ownExtra(name, `{}`)}),
		Said(content.User, textOf("On.")))
	return list
}

// ownCases returns requests with members and blocks of the named API alone.
func ownCases(name string) []Case {
	var list caseList
	list.add("members of its own",
		Said(content.User, content.Text{Text: "Hi.", Extra: ownExtra(name, `{"x":1,"text":"no","type":"no"}`)},
			content.Image{Source: encoded("image/png", pixel), Extra: ownExtra(name, `{"detail":"low","x":2}`)},
			content.Document{Source: encoded("application/pdf", "JVBERi0="), Title: "T", Extra: ownExtra(name, `{"x":3}`)}),
		Said(content.Assistant, content.Text{Text: "Hey.", Extra: ownExtra(name, `{"x":4}`)},
			content.ToolUse{ID: "a", Name: "get_weather", Input: `{}`, Extra: ownExtra(name, `{"x":5}`)}),
		Said(content.User,
			content.ToolResult{CallID: "a", Content: content.Words("snow"), Extra: ownExtra(name, `{"x":6}`)}))

	// Plait writes these members itself: an Extra must not replace them.
	taken := ownExtra(name, `{"x":1,"type":"no","text":"no","source":"no","title":"no","id":"no","name":"no","input":"no","content":"no","role":"no","tool_use_id":"no",`+
		`"tool_call_id":"no","call_id":"no","is_error":"no","image_url":"no","file":"no","file_id":"no","filename":"no","file_data":"no","file_url":"no",`+
		`"input_audio":"no","index":"no","response":"no","args":"no","inlineData":"no","fileData":"no","arguments":"no","output":"no","thinking":"no","data":"no"}`)
	list.add("members of its own that Plait models",
		Said(content.User, content.Text{Text: "Hi.", Extra: taken},
			content.Image{Source: encoded("image/png", pixel), Extra: taken},
			content.Image{Source: content.Source{URL: "https://example.org/a.png"}, Extra: taken},
			content.Document{Source: encoded("application/pdf", "JVBERi0="), Title: "T", Extra: taken},
			content.Document{Source: content.Source{FileID: "f"}, Extra: taken},
			content.Document{Source: encoded("audio/wav", "UklGRg=="), Extra: taken}),
		Said(content.Assistant, content.Thinking{Text: "Hm.", Signature: "c2ln", Extra: taken},
			content.Text{Text: "Hey.", Extra: taken},
			content.ToolUse{ID: "a", Name: "get_weather", Input: `{}`, Extra: taken}),
		Said(content.User, content.ToolResult{CallID: "a", Content: content.Words("snow"), Extra: taken}))
	list.add("opaque blocks", Said(content.User, textOf("Go."),
		content.Opaque{API: name, JSON: `{"type":"text","text":"opaque"}`},
		content.Opaque{API: name, JSON: `{"type":"odd"}`}, content.Opaque{API: name, JSON: `{"x":1}`}),
		Said(content.Assistant, content.Opaque{API: name, JSON: `{"type":"odd"}`},
			content.Opaque{API: name, JSON: `{"x":1}`},
			content.Opaque{API: name, JSON: `{"type":"text","text":""}`}, textOf("Well.")),
		Said(content.User, textOf("On.")))
	return list
}

// orderCases returns requests with messages in an unusual order, or empty messages. An API may refuse these.
func orderCases() []Case {
	var list caseList
	list.add("space and silence", Said(content.User, textOf(" "), textOf("Go.")),
		Said(content.Assistant, textOf(" \n")), Said(content.User, textOf("On.")),
		Said(content.Assistant, textOf("Well.  "), textOf(" ")), Said(content.User, textOf("\n")))
	list.add("the same side twice", Said(content.Assistant, textOf("Hello.")), Said(content.User, textOf("a")),
		Said(content.User, textOf("b")),
		Said(content.Assistant, textOf("c")), Said(content.Assistant, textOf("d")), Said(content.User, textOf("e")))
	list.add("the assistant at the end", Said(content.User, textOf("Go.")), Said(content.Assistant, textOf("Well, ")))
	list.add("a call at the end", Said(content.User, textOf("Go.")), Said(content.Assistant, textOf("I look."),
		callTo("a", "get_weather")))
	return list
}
