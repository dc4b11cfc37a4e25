package gemini

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/testkit/providertest"
)

func TestBodiesAreAsWrittenDown(t *testing.T) {
	const user, assistant = content.User, content.Assistant
	says := providertest.Said
	own := func(json content.JSON) content.Extra { return content.Extra{API: API, JSON: json} }
	opaque := func(json content.JSON) content.Block { return content.Opaque{API: API, JSON: json} }
	text := func(s string) content.Block { return content.Text{Text: s} }
	file := func(mediaType, data string) content.Block {
		return content.Document{Source: content.Source{MediaType: mediaType, Data: data}}
	}
	hi, on := says(user, text("Hi.")), says(user, text("On."))
	weather := content.Tool{Name: "get_weather", Schema: `{"type":"object"}`}
	search := content.Tool{Name: "search", Extra: own(`{"googleSearch":{}}`)}

	cases := providertest.Cases(API)
	add := func(name string, o api.Options, messages ...content.Message) {
		req := api.Request{Tools: []content.Tool{weather, search}, Messages: messages, Options: o}
		cases = append(cases, providertest.Case{Name: name, Request: req})
	}
	for _, body := range []content.JSON{
		`{"generationConfig":{"temperature":1,"x":2}}`, `{"generation_config":null}`, `{"generationConfig":7}`, `{"toolConfig":{"retrievalConfig":{}}}`, `{"toolConfig":7}`,
		`{"cachedContent":"c"}`, `{"cached_content":"c","tool_config":{}}`, `{"cachedContent":null}`, `{"labels":{"a":"b"}}`, `{"safetySettings":[]}`,
	} {
		add("Body "+string(body), api.Options{Body: body, MaxTokens: 1 << 40, ToolChoice: api.ToolsAny}, hi)
	}
	for _, thinking := range []api.Thinking{"minimal", "low", "medium", "high", "none", "xhigh", "max"} {
		add(fmt.Sprintf("Thinking %q beside tools", thinking), api.Options{Thinking: thinking, Output: api.Schema{Name: "o", JSON: `{"type":"object"}`}}, hi)
	}

	called := func(id string, more content.JSON) content.Block {
		u := content.ToolUse{ID: id, Name: "get_weather", Input: `{}`}
		if more != "" {
			u.Extra = own(more)
		}
		return u
	}
	answered := func(ids ...string) content.Message {
		var list []content.Block
		for _, id := range ids {
			list = append(list, content.ToolResult{CallID: id, Content: content.Words("snow")})
		}
		return says(user, list...)
	}
	add("signed calls", api.Options{}, hi, says(assistant, called("a", `{"thoughtSignature":"c2ln","functionCall":{"x":1,"name":"no"},"y":2}`), called("b", "")), answered("a", "b"))
	add("unsigned calls", api.Options{}, hi, says(assistant, text("I look."), called("a", `{"thoughtSignature":""}`), called("b", `{"thoughtSignature":null}`)), answered("a", "b"), says(assistant, called("c", "")), answered("c"))
	add("texts with signatures", api.Options{}, hi, says(assistant, content.Text{Text: "a", Extra: own(`{"thoughtSignature":"c2ln","groundingMetadata":{"x":1},"partMetadata":{}}`)}, content.Thinking{Text: "b", Signature: "not base64!", Extra: own(`{}`)},
		content.Thinking{Extra: own(`{"partMetadata":{"x":1}}`)}, content.Thinking{Text: "c", Signature: "c2l-_w", Extra: own(`{}`)}), on)
	add("files of texts", api.Options{}, says(user, file("text/plain", "QSB0ZXh0Lg=="), file("text/csv", "YSxi"), file("text/odd", "YSxi"), file("text/plain", "/w=="), file("text/plain", "ICA="), file("text/plain", "AAA="),
		content.Document{Title: "Named", Source: content.Source{MediaType: "text/plain", Data: "QQ=="}}))
	for _, name := range slices.Sorted(maps.Keys(typeByName)) {
		add("a URL that ends in "+name, api.Options{}, says(user, content.Document{Source: content.Source{URL: "https://example.org/a" + strings.ToUpper(name)}}))
	}
	add("nothing but space", api.Options{}, says(user, text(" ")))
	add("nothing but an empty text", api.Options{}, says(user, opaque(emptyText)))
	result := func(id string, failed bool, blocks ...content.Block) content.Block {
		return content.ToolResult{CallID: id, IsError: failed, Content: says(user, blocks...).Blocks, Extra: own(`{"scheduling":"x","id":"no","thought":true}`)}
	}
	add("results of the API's own", api.Options{}, hi, says(assistant, called("a", ""), called("b", ""), called("c", "")),
		says(user, result("a", false, text(`{"an":"object"}`)), result("b", true, text(`{"an":"object"}`)), result("c", true, content.Image{Source: content.Source{MediaType: "image/png", Data: "iVBORw0KGgo="}})))
	for _, part := range []content.JSON{
		`{"text":""}`, `{"text":"x","y":1}`, `{"text":"x","thought":true}`, `{"text":"","thoughtSignature":"c2ln"}`, `{"text":"","thoughtSignature":"!"}`, `{"functionCall":{"name":"x"}}`, `{"functionCall":{}}`, `{"functionResponse":{}}`,
		`{"executableCode":{"code":"x"}}`, `{"executableCode":7}`, `{"executableCode":{},"codeExecutionResult":{}}`, `{"groundingMetadata":{}}`, `{"x":1}`,
		`{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="}}`, `{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo=","displayName":"x"}}`, `{"inlineData":{"mimeType":"video/odd","data":"AA==","displayName":"x"}}`, `{"inlineData":{}}`,
		`{"fileData":{"fileUri":"https://example.org/a.png","mimeType":"image/png"},"videoMetadata":{"fps":1}}`, `{"fileData":{"displayName":"x"}}`, `{"thought":false,"text":"x"}`, `{"thought":"odd","text":"x"}`,
	} {
		add("an opaque "+string(part), api.Options{}, says(user, text("Hi."), opaque(part)), says(assistant, opaque(part), called("a", "")), says(user, content.ToolResult{CallID: "a", Content: says(user, text("x"), opaque(part)).Blocks}))
	}

	twice := api.Request{Tools: []content.Tool{search, weather, search}, Messages: []content.Message{hi}}
	cases = append(cases, providertest.Case{Name: "tools: a tool that the API runs, declared twice", Request: twice})

	for file, o := range map[string]struct {
		model   string
		options Options
	}{
		"bodies.txt": {"gemini-3-pro", Options{}}, "bodies_older.txt": {"gemini-2.5-flash", Options{NoStream: true}},
		"bodies_vertex.txt": {"odd", Options{SDK: &genai.ClientConfig{Backend: genai.BackendVertexAI}}},
	} {
		some := cases
		if o.model != "gemini-3-pro" {
			some = slices.DeleteFunc(slices.Clone(cases), func(c providertest.Case) bool {
				return !strings.Contains(c.Name, "Thinking") && !strings.Contains(c.Name, "Body") && !strings.Contains(c.Name, "signed calls") && !strings.Contains(c.Name, "tools: a tool that")
			})
		}
		providertest.RequireBodies(t, file, some, func(c providertest.Case) ([]byte, []api.RepairNote, error) {
			return Body(c.Request, o.model, &o.options)
		})
	}
}

func TestEventsAreAsWrittenDown(t *testing.T) {
	var replies []providertest.Reply
	json := map[string]string{"Content-Type": "application/json", "X-Request-Id": "req_1"}
	whole := func(name, body string) {
		replies = append(replies, providertest.Reply{Name: name, Header: json, Body: body})
	}
	stream := func(name string, events ...string) {
		body := ""
		for _, e := range events {
			body += "data: " + e + "\n\n"
		}
		header := map[string]string{"Content-Type": "text/event-stream", "X-Request-Id": "req_1"}
		replies = append(replies, providertest.Reply{Name: name, Header: header, Body: body})
	}
	fails := func(name string, status int, header map[string]string, body string) {
		replies = append(replies, providertest.Reply{Name: name, Status: status, Header: header, Body: body})
	}

	const usage = `"usageMetadata":{"promptTokenCount":10,"cachedContentTokenCount":3,"candidatesTokenCount":20,"thoughtsTokenCount":5,"toolUsePromptTokenCount":2},"modelVersion":"gemini-3","responseId":"resp_1"`
	chunk := func(parts, more string) string {
		return `{"candidates":[{"content":{"role":"model","parts":` + parts + `}` + more + `}],` + usage + `}`
	}
	const stop = `,"finishReason":"STOP"`
	everything := `[{"text":"H","thought":true},{"text":"m.","thought":true,"thoughtSignature":"c2ln"},{"text":"A"},{"text":"b","thoughtSignature":"dGV4dA=="},{"text":"c"},{"functionCall":{"id":"f","name":"look","args":{"at":1},"x":2},"thoughtSignature":"Y2FsbA=="},` +
		`{"functionCall":{"name":"bare"}},{"inlineData":{"mimeType":"image/png","data":"iVBOR-_w0KGgo"}},{"fileData":{"mimeType":"application/pdf","fileUri":"https://example.org/a"},"y":3},{"executableCode":{"code":"x"}},{"text":"","thoughtSignature":"ZW5k"},{"text":"d","thought":false}]`
	whole("a whole answer", chunk(everything, stop))
	stream("a whole answer in one piece", chunk(everything, stop))
	for _, reason := range []string{
		"STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR", "JAILBREAK", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "OTHER", "FINISH_REASON_UNSPECIFIED",
		"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MISSING_THOUGHT_SIGNATURE",
	} {
		whole("finish reason "+reason, chunk(`[{"text":"Hi."}]`, `,"finishReason":"`+reason+`","finishMessage":"more"`))
	}
	whole("no finish reason", chunk(`[{"text":"Hi."}]`, ""))
	whole("a call", chunk(`[{"functionCall":{"name":"look","args":null}}]`, stop))
	whole("a refused request", `{"promptFeedback":{"blockReason":"SAFETY"},`+usage+`}`)
	whole("no candidate", `{`+usage+`}`)
	whole("another candidate", `{"candidates":[{"index":1,"content":{"parts":[{"text":"no"}]}},{"index":0,"content":{"parts":[{"text":"Hi."}]},"finishReason":"STOP"}]}`)
	whole("a list", `[`+chunk(`[{"text":"H"}]`, "")+`,`+chunk(`[{"text":"i."}]`, stop)+`]`)
	whole("a stream by another name", "data: "+chunk(`[{"text":"Hi."}]`, stop)+"\n\n")
	whole("numbers that are none", `{"candidates":[{"content":{"parts":[]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":-5,"cachedContentTokenCount":9,"candidatesTokenCount":9223372036854775807}}`)
	whole("what is said about an answer", chunk(`[{"text":"Hi."}]`, stop+`,"groundingMetadata":{"a":1},"citationMetadata":{"b":2},"urlContextMetadata":{"c":3}`))
	for _, part := range []string{`{"text":"T","thought":true}`, `{"functionCall":{"name":"f"}}`, `{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="}}`, `{"inlineData":{"mimeType":"application/pdf","data":"JVBERi0="}}`, `{"executableCode":{}}`} {
		whole("what is said about "+part, chunk(`[`+part+`]`, stop+`,"groundingMetadata":{"a":1},"citationMetadata":{}`))
	}
	whole("not JSON", `{"candidates`)
	whole("a piece that is none", `7`)
	whole("an invalid part", chunk(`[7]`, stop))
	whole("an error", `{"error":{"code":503,"status":"UNAVAILABLE","message":"busy"}}`)
	whole("a list of an error", `[{"error":{"code":503,"status":"UNAVAILABLE","message":"busy"}}]`)
	whole("no error", `{"error":null,"candidates":[{"content":{"parts":[{"text":"Hi."}]},"finishReason":"STOP"}]}`)
	whole("a name twice", chunk(`[{"text":"a","text":"b"}]`, stop))

	stream("texts in pieces", chunk(`[{"text":"H","thought":true}]`, ""), chunk(`[{"text":"m.","thought":true}]`, ""), chunk(`[{"text":"","thought":true,"thoughtSignature":"c2ln"}]`, ""), chunk(`[{"text":"more","thought":true}]`, ""),
		chunk(`[{"text":"A"}]`, `,"groundingMetadata":{"a":1}`), chunk(`[{"text":"b"}]`, `,"groundingMetadata":{}`), chunk(`[{"text":"","thoughtSignature":"ZW5k"}]`, ""), chunk(`[{"text":"c"}]`, `,"groundingMetadata":{"a":2}`), chunk(`[]`, stop), "[DONE]", chunk(`[{"text":"late"}]`, ""))
	stream("usage that grows", `{"usageMetadata":{"promptTokenCount":10}}`, `{"candidates":[{"content":{"parts":[{"text":"Hi."}]},"finishReason":"STOP"}],"usageMetadata":{"candidatesTokenCount":20}}`)
	stream("no end", chunk(`[{"text":"Hi"}]`, ""))
	stream("an empty stream")
	stream("a refused request in a stream", `{"promptFeedback":{"blockReason":"OTHER"}}`)
	stream("an event that breaks off", chunk(`[{"text":"Hi"}]`, ""), `{"cand`)
	stream("an event that breaks off after the end", chunk(`[{"text":"Hi"}]`, stop), `{"cand`)
	stream("an event that breaks off, and another", `{"cand`, chunk(`[{"text":"Hi"}]`, stop))
	stream("an event that is none", `7`)
	stream("an invalid part in a stream", chunk(`[{"text":"Hi"},7]`, ""))
	stream("an error in a stream", chunk(`[{"text":"Hi"}]`, ""), `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"slow","details":[{"@type":"RetryInfo","retryDelay":"3.5s"},7,{"reason":"R"},{"requestId":"req_2"}]}}`)

	for _, word := range slices.Sorted(maps.Keys(kinds)) {
		stream("an error of status "+word, `{"error":{"status":"`+word+`","message":"it failed"}}`)
	}
	for _, words := range []string{
		"API key not valid", "api key expired", "API key not found", "exceeds the maximum number of tokens", "the input token count", "request payload size exceeds", "Responsible AI", "prohibited content", "safety policies", "content policy",
	} {
		fails("an error that says: "+words, 400, json, `{"error":{"status":"INVALID_ARGUMENT","message":"`+words+`"}}`)
	}
	fails("words in another error", 429, json, `{"error":{"status":"RESOURCE_EXHAUSTED","message":"the input token count of the API key not valid"}}`)
	fails("words without a status", 400, json, `{"error":{"message":"content policy"}}`)
	fails("words in a failed precondition", 400, json, `{"error":{"status":"FAILED_PRECONDITION","message":"content policy"}}`)
	fails("a reason", 400, json, `{"error":{"status":"INVALID_ARGUMENT","message":"x","details":[{"reason":"API_KEY_INVALID"},{"reason":"OTHER"}]}}`)
	fails("a detail of another form", 400, json, `{"error":{"status":"INVALID_ARGUMENT","message":"x","details":[{"reason":"API_KEY_INVALID","retryDelay":7}]}}`)
	for _, status := range []int{400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 529} {
		fails(fmt.Sprintf("status %d", status), status, json, `{"error":{"message":"it failed"}}`)
	}
	fails("a list", 503, json, `[{"error":{"status":"UNAVAILABLE","message":"busy","details":[{"requestId":"req_3"}]}}]`)
	fails("no JSON", 500, map[string]string{"Retry-After": "2"}, `<html>`)

	providertest.RequireEvents(t, "events.txt", replies, func(url string) api.Provider {
		return New("gemini-3-pro", &Options{SDK: &genai.ClientConfig{APIKey: "key", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: url}}})
	})
}
