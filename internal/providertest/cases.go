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
// position. The caller adds the blocks that only that API has.
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

func optionCases() []Case {
	cold, hot := 0.25, 1.5
	form := api.Schema{Name: "city",
		JSON: `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false}`}
	loose := api.Schema{Name: "loose",
		JSON: `{"type":"object","properties":{"a":{"type":"string","pattern":"^x"},"b":{"type":"array"}},"$id":"x"}`}
	var cases []Case
	add := func(name string, o api.Options, tools ...content.Tool) {
		cases = append(cases, Case{Name: name, Request: api.Request{Tools: tools, Messages: hello(), Options: o}})
	}

	add("no options", api.Options{})
	add("MaxTokens", api.Options{MaxTokens: 100})
	add("MaxTokens of 1", api.Options{MaxTokens: 1})
	add("Temperature", api.Options{Temperature: &cold})
	add("a high Temperature", api.Options{Temperature: &hot})
	add("StopSequences", api.Options{StopSequences: []string{"END", " ", "b"}})
	add("six StopSequences", api.Options{StopSequences: []string{"a", "b", "c", "d", "e", "f"}})
	for _, choice := range []api.ToolChoice{api.ToolsAny, api.ToolsNone, api.OneTool("get_weather"),
		api.OneTool("missing")} {
		add(fmt.Sprintf("ToolChoice %q", choice), api.Options{ToolChoice: choice}, weather())
		add(fmt.Sprintf("ToolChoice %q and OneCall", choice), api.Options{ToolChoice: choice, OneCall: true}, weather())
		add(fmt.Sprintf("ToolChoice %q without tools", choice), api.Options{ToolChoice: choice})
	}
	add("OneCall", api.Options{OneCall: true}, weather())
	add("OneCall without tools", api.Options{OneCall: true})
	for _, thinking := range []api.Thinking{api.ThinkAuto, api.ThinkOff, api.ThinkLow, api.ThinkHigh, "none", "minimal",
		"max", "xhigh", api.ThinkTokens(5000), api.ThinkTokens(10)} {
		add(fmt.Sprintf("Thinking %q", thinking), api.Options{Thinking: thinking})
	}
	add("Thinking beside Temperature", api.Options{Thinking: api.ThinkAuto, Temperature: &cold})
	add("Thinking beside a forced call", api.Options{Thinking: api.ThinkTokens(2000), ToolChoice: api.ToolsAny},
		weather())
	add("Thinking of all of MaxTokens", api.Options{Thinking: api.ThinkTokens(2000), MaxTokens: 2000})
	add("Thinking of one less than MaxTokens", api.Options{Thinking: api.ThinkTokens(2000), MaxTokens: 2001})
	add("Output", api.Options{Output: form})
	add("Output beside Thinking and tools", api.Options{Output: form, Thinking: api.ThinkLow}, weather())
	add("Output that is reduced", api.Options{Output: loose})
	add("Metadata", api.Options{Metadata: map[string]string{"user_id": "u", "other": "x"}})
	many := map[string]string{strings.Repeat("k", 65): "long key", "v": strings.Repeat("v", 513),
		"at the limits" + strings.Repeat("k", 51): strings.Repeat("v", 512)}
	for i := range 17 {
		many[fmt.Sprintf("m%02d", i)] = "x"
	}
	add("much Metadata", api.Options{Metadata: many, Body: `{"store":true}`})
	for _, cache := range []api.Cache{api.CacheShort, api.CacheLong, api.CacheOff, "own", "no_such"} {
		add(fmt.Sprintf("Cache %q", cache), api.Options{Cache: cache}, weather())
	}
	add("Body", api.Options{Body: `{"a":{"b":[1]},"temperature":0.5}`, Temperature: &cold})
	add("MaxTokens in Body", api.Options{Body: `{"max_tokens":7,"max_output_tokens":8}`, MaxTokens: 100})
	add("what Body cannot say",
		api.Options{Body: `{"model":"x","messages":[],"system":"x","tools":[],"stream":false,"instructions":"x","input":[],` +
			`"previous_response_id":"x","conversation":"x","background":true,"contents":[],"systemInstruction":{},"system_instruction":{}}`})
	add("tool_choice in Body",
		api.Options{Body: `{"tool_choice":{"type":"function","function":{"name":"missing"}},"parallel_tool_calls":true}`}, weather())
	add("tool_choice in Body without tools",
		api.Options{Body: `{"tool_choice":"auto","parallel_tool_calls":true,"tool_config":{"functionCallingConfig":{"mode":"ANY"}}}`})
	add("an invalid option", api.Options{MaxTokens: -1})
	cases = append(cases, Case{Name: "nothing to send"})
	cases = append(cases,
		Case{Name: "system prompts",
			Request: api.Request{System: []string{"Be brief.", " ", "", "Rhyme."}, Messages: hello()}})
	return cases
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
	const user, assistant = content.User, content.Assistant
	own := func(json content.JSON) content.Extra { return content.Extra{API: name, JSON: json} }
	data := func(mediaType, data string) content.Source { return content.Source{MediaType: mediaType, Data: data} }
	image := func(s content.Source) content.Block { return content.Image{Source: s} }
	document := func(s content.Source, title string) content.Block { return content.Document{Source: s, Title: title} }
	call := func(id, tool string) content.Block {
		return content.ToolUse{ID: id, Name: tool, Input: `{"city":"Oslo"}`}
	}
	result := func(id string, blocks ...content.Block) content.Block {
		return content.ToolResult{CallID: id, Content: Said(user, blocks...).Blocks}
	}
	failed := func(id string, blocks ...content.Block) content.Block {
		return content.ToolResult{CallID: id, Content: Said(user, blocks...).Blocks, IsError: true}
	}
	text := func(s string) content.Block { return content.Text{Text: s} }
	media := []content.Block{
		image(data("image/png", pixel)), image(content.Source{URL: "https://example.org/a.JPG"}), image(content.Source{FileID: "file-1"}),
		image(data("image/tiff", "SUkqAA==")), document(data("application/pdf", "JVBERi0="), "Report"), document(data("application/pdf", "JVBERi0="), ""),
		document(content.Source{URL: "https://example.org/a.pdf"}, "Linked"), document(content.Source{FileID: "file-2"}, "Filed"),
		document(content.Source{MediaType: "text/plain", Text: "A text."}, "Note"), document(data("text/html", "PGI+eDwvYj4="), ""),
		document(data("audio/wav", "UklGRg=="), ""), document(data("audio/mpeg", "SUQz"), ""), document(data("video/mp4", "AAAA"), ""),
	}

	var cases []Case
	add := func(name string, messages ...content.Message) {
		cases = append(cases,
			Case{Name: "blocks: " + name, Request: api.Request{Tools: []content.Tool{weather()}, Messages: messages}})
	}
	add("media of the user", Said(user, append([]content.Block{text("Look:")}, media...)...))
	for i, b := range media {
		if i%3 == 1 {
			add(fmt.Sprintf("medium %d alone", i), Said(user, b))
		}
	}
	add("media in a result", Said(user, text("Go.")), Said(assistant, call("a", "get_weather")),
		Said(user, result("a", append([]content.Block{text("Seen:")}, media...)...)))
	add("media of the assistant", Said(user, text("Draw.")), Said(assistant, text("Here:"), media[0], media[4]),
		Said(user, text("Thanks.")))
	add("results of every sort", Said(user, text("Go.")),
		Said(assistant, text("I look."), call("a", "get_weather"), call("b", "get_weather"), call("c", "get_weather"),
			call("d", "get_weather"), call("e", "get_weather"), call("f", "get_weather")),
		Said(user, result("a", text("snow")), result("b"), failed("c", text("no such city")), failed("d"),
			failed("e", media[0]), result("f", text(`{"a":1}`), text(" ")), text("And now?")))
	add("results in another order, one missing", Said(user, text("Go.")), Said(assistant, call("a", "get_weather"), call("b", "get_weather"), call("c", "get_weather")),
		Said(user, text("Before."), result("c", text("3")), result("a", text("1"))))
	add("IDs and names that do not fit", Said(user, text("Go.")), Said(assistant, call("a b", "get weather"), call("", "get_weather"), call(strings.Repeat("i", 70), "get_weather")),
		Said(user, result("a b", text("1")), result("", text("2")), result(strings.Repeat("i", 70), text("3"))))
	add("an ID twice", Said(user, text("Go.")), Said(assistant, call("a", "get_weather"), call("a", "get_weather")), Said(user, result("a", text("1")), result("a", text("2"))),
		Said(assistant, call("a", "get_weather")), Said(user, result("a", text("3"))))
	add("a call that is no object, and one cut off", Said(user, text("Go.")),
		Said(assistant, content.ToolUse{ID: "a", Name: "get_weather", Input: `[1]`},
			content.ToolUse{ID: "b", Name: "get_weather", Input: `{"a`},
			content.CutToolUse{Name: "get_weather", Input: `{"c`}),
		Said(user, result("a", text("1")), result("b", text("2"))))
	add("blocks of other APIs", Said(user, text("Go."), content.Opaque{API: "elsewhere", JSON: `{"type":"x","text":"said"}`}),
		Said(assistant,
			content.Thinking{Text: "Hm.", Signature: "sig", Extra: content.Extra{API: "elsewhere", JSON: `{"id":"r"}`}},
			content.Opaque{API: "elsewhere", JSON: `{"type":"y"}`}, text("Well.")),
		Said(user, text("On.")))
	add("thinking of every sort", Said(user, text("Go.")),
		Said(assistant, content.Thinking{Text: "Hm.", Signature: "c2ln", Extra: own(`{}`)}, content.Thinking{Redacted: "cmVk", Extra: own(`{}`)}, content.Thinking{Text: "Old.", Signature: "c2ln", Stale: true, Extra: own(`{}`)},
			content.Thinking{Text: "Unsigned."}, content.Thinking{Signature: "c2ln", Extra: own(`{}`)}, text("Well."), content.Thinking{Text: "Last.", Signature: "c2ln", Extra: own(`{}`)}),
		Said(user, text("On."), content.Thinking{Text: "Mine.", Signature: "c2ln", Extra: own(`{}`)}))
	add("thinking alone", Said(user, text("Go.")),
		Said(assistant, content.Thinking{Text: "Hm.", Signature: "c2ln", Extra: own(`{}`)}), Said(user, text("On.")))
	add("members of its own",
		Said(user, content.Text{Text: "Hi.", Extra: own(`{"x":1,"text":"no","type":"no"}`)},
			content.Image{Source: data("image/png", pixel), Extra: own(`{"detail":"low","x":2}`)},
			content.Document{Source: data("application/pdf", "JVBERi0="), Title: "T", Extra: own(`{"x":3}`)}),
		Said(assistant, content.Text{Text: "Hey.", Extra: own(`{"x":4}`)},
			content.ToolUse{ID: "a", Name: "get_weather", Input: `{}`, Extra: own(`{"x":5}`)}),
		Said(user, content.ToolResult{CallID: "a", Content: content.Words("snow"), Extra: own(`{"x":6}`)}))
	taken := own(`{"x":1,"type":"no","text":"no","source":"no","title":"no","id":"no","name":"no","input":"no","content":"no","role":"no","tool_use_id":"no",` +
		`"tool_call_id":"no","call_id":"no","is_error":"no","image_url":"no","file":"no","file_id":"no","filename":"no","file_data":"no","file_url":"no",` +
		`"input_audio":"no","index":"no","response":"no","args":"no","inlineData":"no","fileData":"no","arguments":"no","output":"no","thinking":"no","data":"no"}`)
	add("members of its own that Plait models",
		Said(user, content.Text{Text: "Hi.", Extra: taken},
			content.Image{Source: data("image/png", pixel), Extra: taken},
			content.Image{Source: content.Source{URL: "https://example.org/a.png"}, Extra: taken},
			content.Document{Source: data("application/pdf", "JVBERi0="), Title: "T", Extra: taken}, content.Document{Source: content.Source{FileID: "f"}, Extra: taken}, content.Document{Source: data("audio/wav", "UklGRg=="), Extra: taken}),
		Said(assistant, content.Thinking{Text: "Hm.", Signature: "c2ln", Extra: taken},
			content.Text{Text: "Hey.", Extra: taken},
			content.ToolUse{ID: "a", Name: "get_weather", Input: `{}`, Extra: taken}),
		Said(user, content.ToolResult{CallID: "a", Content: content.Words("snow"), Extra: taken}))
	add("opaque blocks", Said(user, text("Go."), content.Opaque{API: name, JSON: `{"type":"text","text":"opaque"}`}, content.Opaque{API: name, JSON: `{"type":"odd"}`}, content.Opaque{API: name, JSON: `{"x":1}`}),
		Said(assistant, content.Opaque{API: name, JSON: `{"type":"odd"}`}, content.Opaque{API: name, JSON: `{"x":1}`},
			content.Opaque{API: name, JSON: `{"type":"text","text":""}`}, text("Well.")), Said(user, text("On.")))
	add("space and silence", Said(user, text(" "), text("Go.")), Said(assistant, text(" \n")), Said(user, text("On.")),
		Said(assistant, text("Well.  "), text(" ")), Said(user, text("\n")))
	add("the same side twice", Said(assistant, text("Hello.")), Said(user, text("a")), Said(user, text("b")),
		Said(assistant, text("c")), Said(assistant, text("d")), Said(user, text("e")))
	add("the assistant at the end", Said(user, text("Go.")), Said(assistant, text("Well, ")))
	add("a call at the end", Said(user, text("Go.")), Said(assistant, text("I look."), call("a", "get_weather")))
	return cases
}
