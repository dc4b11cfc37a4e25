package providers

import (
	"maps"
	"net/http"
	"reflect"
	"strings"
	"testing"

	json "github.com/goccy/go-json/v2"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/openai"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/testkit/providertest"
)

// outcome sends a kind through import and body, or through a response.
func (p coveragePart) outcome(t *testing.T, s *sdks, k kind) (outcome, reason string) {
	at := providerNamed(p.api)
	if p.by != nil {
		sample := "null"
		if k.typ != nil {
			s.filled = strings.HasPrefix(p.part, "member ")
			sample = s.sampleOf(k)
			s.filled = false
		}
		return p.by(t, at, k.name, sample)
	}
	switch {
	case p.part == "role":
		return at.imports(t, `[{"role":"user","content":"Hi"},{"role":"`+k.name+`","content":"y"},{"role":"user","content":"z"}]`, `{"role":"`+k.name+`"}`)
	case p.part == "option":
		return at.option(t, p.api, k.name, s.sampleOf(k))
	case p.part == "tool":
		return at.tool(t, p.api, k.name, s.sampleOf(k))
	case strings.HasSuffix(p.part, "of a response"):
		return at.responds(t, p.api, s.sampleOf(k))
	}
	items, want := p.context(s, k)
	return at.imports(t, items, want)
}

func providerNamed(name string) provider {
	for _, p := range providers {
		if p.name == name {
			return p
		}
	}
	panic(name)
}

// imports sends messages through import and body. Want is the part of the kind in them.
func (p provider) imports(t *testing.T, items, want string) (outcome, reason string) {
	body := `{"model":"m","max_tokens":9,"` + p.items + `":` + items + `}`
	if p.name != "anthropic" {
		body = strings.Replace(body, `"max_tokens":9,`, ``, 1)
	}
	req, err := p.parse([]byte(body))
	if err != nil {
		return refused, err.Error()
	}
	again, notes, err := p.body(req)
	if strings.Contains(want, "input_audio") { // only such models accept it
		again, notes, err = openai.ChatBody(req, "gpt-audio", nil)
	}
	require.NoError(t, err, items)
	if !has(t, string(again), want) {
		if len(notes) == 0 {
			return dropped, items + " became " + string(again)
		}
		return refused, notes[0].Detail
	}

	// What no form of Plait holds is opaque.
	for _, m := range req.Messages {
		for _, b := range m.Blocks.All() {
			if o, ok := b.(content.Opaque); ok && has(t, string(o.JSON), want) {
				return kept, ""
			}
		}
	}
	return understood, ""
}

// option sends a member of a request through import and body.
func (p provider) option(t *testing.T, name, member, value string) (outcome, reason string) {
	if strings.Contains(" model messages input contents system instructions systemInstruction tools ", " "+member+" ") {
		return understood, ""
	}
	if member == "toolConfig" {
		value = `{"functionCallingConfig":{"mode":"ANY"}}`
	}
	given := `"` + member + `":` + value
	if name == "gemini" && strings.Contains(generation, " "+member+" ") {
		given = `"generationConfig":{` + given + `}`
	}
	tools := map[string]string{
		"anthropic": `,"tools":[{"name":"x","input_schema":{"type":"object"}}]`, "openai-chat": `,"tools":[{"type":"function","function":{"name":"x","parameters":{"type":"object"}}}]`,
		"openai-responses": `,"tools":[{"type":"function","name":"x","parameters":{"type":"object"}}]`,
		"gemini":           `,"tools":[{"functionDeclarations":[{"name":"x","parameters":{"type":"OBJECT"}}]}]`,
	}[name]
	hi := map[string]string{
		"messages": `[{"role":"user","content":"Hi"}]`, "input": `[{"role":"user","content":"Hi"}]`, "contents": `[{"role":"user","parts":[{"text":"Hi"}]}]`,
	}[p.items]
	req, err := p.parse([]byte(`{` + given + tools + `,"` + p.items + `":` + hi + `}`))
	if err != nil {
		return refused, err.Error()
	}
	body, notes, err := p.body(req)
	require.NoError(t, err)
	switch {
	case has(t, string(body), `{`+given+`}`):
		return kept, ""
	case member == "stream_options" || member == "httpOptions":
		return ignored, "it is about the transport"
	case len(notes) == 0:
		return dropped, ""
	}
	return refused, notes[0].Detail
}

// generation are the members of Gemini's generationConfig: the SDK's own configuration has all members in one place.
const generation = " audioTimestamp candidateCount enableEnhancedCivicAnswers frequencyPenalty logprobs maxOutputTokens mediaResolution presencePenalty responseJsonSchema " +
	"responseLogprobs responseMimeType responseModalities responseSchema routingConfig seed speechConfig stopSequences temperature thinkingConfig topK topP imageConfig "

// tool sends a definition through import and body.
func (p provider) tool(t *testing.T, name, kind, sample string) (outcome, reason string) {
	if name == "gemini" {
		if kind == "functionDeclarations" {
			return understood, ""
		}
		sample = `{"` + kind + `":` + sample + `}`
	}
	if kind == "function" { // every function has a schema
		sample = strings.Replace(sample, `"name":"x"`, `"name":"x","parameters":{"type":"object","properties":{}}`, 1)
		sample = strings.Replace(sample, `,"parameters":{},`, `,`, 1)
	}
	hi := map[string]string{
		"messages": `[{"role":"user","content":"Hi"}]`, "input": `[{"role":"user","content":"Hi"}]`, "contents": `[{"role":"user","parts":[{"text":"Hi"}]}]`,
	}[p.items]
	req, err := p.parse([]byte(`{"tools":[` + sample + `],"` + p.items + `":` + hi + `}`))
	if err != nil {
		return refused, err.Error()
	}
	body, notes, err := p.body(req)
	require.NoError(t, err)
	switch {
	case has(t, string(body), sample) && req.Tools[0].Server():
		return kept, ""
	case has(t, string(body), sample):
		return understood, ""
	case len(notes) == 0:
		return dropped, sample
	}
	return refused, notes[0].Detail
}

// responds has a response with the sample decoded.
func (p provider) responds(t *testing.T, name, sample string) (outcome, reason string) {
	sample = strings.Replace(sample, `"content":[],"id":"x","role"`, `"content":[{"type":"output_text","text":"x","annotations":[]}],"id":"x","role"`, 1)
	body := `{"type":"message","id":"m","model":"m","content":[` + sample + `],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`
	if name == "openai-responses" {
		body = `{"object":"response","id":"r","model":"m","status":"completed","output":[` + sample + `],"usage":{"input_tokens":1,"output_tokens":1}}`
	}
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(body))
	})
	answer, err := api.NewClient(p.at(server, api.Options{}, true), &api.ClientOptions{Attempts: 1}).Send(t.Context(), greeting())
	if err != nil {
		return refused, err.Error()
	}
	if answer.Blocks.Len() == 0 {
		return dropped, sample
	}
	if _, opaque := answer.Blocks.At(0).(content.Opaque); opaque {
		return kept, ""
	}
	return understood, ""
}

// context returns messages with a sample of the kind where the API allows it, and the sample.
func (p coveragePart) context(s *sdks, k kind) (items, want string) {
	sample := s.sampleOf(k)
	list := func(items ...string) string { return "[" + strings.Join(items, ",") + "]" }
	const pdf = "JVBERi0xLjcgbm90aGluZw=="
	switch p.api {
	case "anthropic":
		const user, answered = `{"role":"user","content":"Hi"}`, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":"y"}]}`
		sample = strings.NewReplacer(`"data":"x","media_type":"image/gif"`, `"data":"`+providertest.OnePNG+`","media_type":"image/png"`,
			`"data":"x","media_type":"application/pdf"`, `"data":"`+pdf+`","media_type":"application/pdf"`,
			`"content":[],"source":"x"`, `"content":[{"type":"text","text":"x"}],"source":"x"`).Replace(sample)
		said := func(blocks ...string) string {
			return list(user, `{"role":"assistant","content":`+list(blocks...)+`}`, user)
		}
		text := `{"type":"text","text":"y"}`
		switch k.name {
		case "text", "image", "document", "search_result", "container_upload":
			return list(`{"role":"user","content":[` + sample + `]}`), sample
		case "tool_addition", "tool_removal":
			return list(user, `{"role":"system","content":[`+sample+`]}`, user), sample
		case "tool_use":
			return list(user, `{"role":"assistant","content":[`+sample+`]}`, answered), sample
		case "tool_result":
			return list(user, `{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"f","input":{}}]}`, `{"role":"user","content":[`+sample+`]}`), sample
		case "server_tool_use":
			sample = strings.Replace(sample, `"id":"x"`, `"id":"srvtoolu_1"`, 1)
			return said(sample, `{"type":"bash_code_execution_tool_result","tool_use_id":"srvtoolu_1","content":{}}`, text), sample
		case "mcp_tool_use":
			return said(sample, `{"type":"mcp_tool_result","tool_use_id":"x","content":[]}`, text), sample
		case "mcp_tool_result":
			return said(`{"type":"mcp_tool_use","id":"x","name":"f","input":{},"server_name":"s"}`, sample, text), sample
		}
		if strings.HasSuffix(k.name, "_tool_result") {
			sample = strings.Replace(sample, `"tool_use_id":"x"`, `"tool_use_id":"srvtoolu_1"`, 1)
			return said(`{"type":"server_tool_use","id":"srvtoolu_1","name":"f","input":{}}`, sample, text), sample
		}
		return said(sample, text), sample

	case "openai-responses":
		const user, text = `{"role":"user","content":"Hi"}`, `{"role":"assistant","type":"message","id":"msg_1","status":"completed","content":[{"type":"output_text","text":"y","annotations":[]}]}`
		if p.part != "item of a request" {
			sample = strings.NewReplacer(`{"detail":"auto"`, `{"image_url":"https://x.org/a.png","detail":"auto"`, `{"type":"input_file"`, `{"file_url":"https://x.org/a.pdf","type":"input_file"`).Replace(sample)
			if strings.HasPrefix(k.name, "input_") {
				return list(`{"role":"user","content":[` + sample + `]}`), sample
			}
			return list(user, `{"role":"assistant","type":"message","id":"msg_1","status":"completed","content":[`+sample+`]}`, user), sample
		}
		if call, found := strings.CutSuffix(k.name, "_output"); found || k.name == "mcp_approval_response" {
			call = map[string]string{"tool_search": "tool_search_call", "mcp_approval_response": "mcp_approval_request"}[call]
			for _, other := range p.kinds(s) {
				if other.name == call || other.name+"_output" == k.name {
					before := strings.NewReplacer(`"arguments":"x"`, `"arguments":"{}"`, `"action":{"commands":[]}`, `"action":{"commands":["ls"]}`).Replace(s.sampleOf(other))
					if k.name == "tool_search_output" {
						before, sample = strings.Replace(before, "{", `{"call_id":"x",`, 1), strings.Replace(sample, "{", `{"call_id":"x",`, 1)
					}
					if k.name == "program_output" {
						sample = strings.Replace(sample, `"id":"x"`, `"id":"y"`, 1)
					}
					if k.name == "function_call_output" {
						sample = strings.Replace(sample, "{", `{"call_id":"x",`, 1)
					}
					return list(user, before, sample, user), sample
				}
			}
		}
		for _, other := range p.kinds(s) { // a call needs its result
			if other.name == k.name+"_output" && k.name != "program" || k.name == "mcp_approval_request" && other.name == "mcp_approval_response" ||
				k.name == "tool_search_call" && other.name == "tool_search_output" {
				after := s.sampleOf(other)
				if !strings.Contains(after, `"x"`) || k.name == "function_call" {
					after, sample = strings.Replace(after, "{", `{"call_id":"x",`, 1), strings.Replace(sample, `"arguments":"x"`, `"arguments":"{}"`, 1)
				}
				if k.name == "tool_search_call" {
					sample = strings.Replace(sample, "{", `{"call_id":"x",`, 1)
				}
				return list(user, sample, after, user), sample
			}
		}
		switch k.name {
		case "input_message":
			sample = `{"content":[{"type":"input_text","text":"Hi"}],"role":"user"}`
			return list(sample), sample
		case "message":
			return list(user, sample, user), `{"role":"assistant"}`
		case "reasoning":
			sample = strings.Replace(sample, `"id":"x"`, `"id":"rs_1"`, 1)
			return list(user, sample, text, user), sample
		case "item_reference":
			sample = `{"type":"item_reference","id":"x"}`
		}
		return list(user, sample, user), sample

	case "openai-chat":
		const user, call = `{"role":"user","content":"Hi"}`, `{"role":"assistant","tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{}"}}]}`
		sample = strings.NewReplacer(`"file":{}`, `"file":{"file_data":"data:application/pdf;base64,`+pdf+`","filename":"a.pdf"}`, `"url":"x"`, `"url":"https://x.org/a.png"`,
			`"data":"x","format":"x"`, `"data":"UklGRiQAAABXQVZFZm10IA==","format":"wav"`).Replace(sample)
		if p.part == "part of a message" {
			return list(`{"role":"user","content":[` + sample + `,{"type":"text","text":"y"}]}`), sample
		}
		switch k.name {
		case "tool":
			return list(user, call, sample), sample
		case "assistant":
			sample = `{"role":"assistant","content":"x"}`
			return list(user, sample, user), sample
		case "function":
			return list(user, `{"role":"assistant","function_call":{"name":"x","arguments":"{}"}}`, sample), `{"role":"tool","content":"x"}`
		case "user":
			return list(sample), sample
		}
		return list(sample, user), `{"content":"x"}`
	}

	// A part of Gemini.
	inner := map[string]string{
		"text": `"x"`, "inlineData": `{"mimeType":"image/png","data":"` + providertest.OnePNG + `"}`, "fileData": `{"mimeType":"image/png","fileUri":"https://x.org/a.png"}`,
		"functionCall": `{"name":"f","args":{}}`, "functionResponse": `{"name":"f","response":{"output":"y"}}`, "thought": "true", "thoughtSignature": `"c2ln"`,
		"executableCode": `{"language":"PYTHON","code":"1"}`, "codeExecutionResult": `{"outcome":"OUTCOME_OK","output":"1"}`,
	}
	if inner[k.name] == "" {
		inner[k.name] = sample
	}
	want = `{"` + k.name + `":` + inner[k.name] + `}`
	part := want
	switch k.name {
	case "thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata", "mediaProcessing", "speechMetadata": // beside the content of a part
		part = strings.Replace(want, "{", `{"text":"x",`, 1)
		if k.name == "thought" {
			part = strings.Replace(part, "{", `{"thoughtSignature":"c2ln",`, 1)
		}
	}
	user := `{"role":"user","parts":[{"text":"Hi"}]}`
	call, response := `{"role":"model","parts":[{"functionCall":{"name":"f","args":{}},"thoughtSignature":"c2ln"}]}`, `{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"y"}}}]}`
	switch k.name {
	case "functionCall", "functionResponse":
		return list(user, call, response), want
	case "inlineData", "fileData", "videoMetadata":
		return list(`{"role":"user","parts":[` + part + `]}`), want
	case "codeExecutionResult":
		return list(user, `{"role":"model","parts":[{"executableCode":{"language":"PYTHON","code":"1"}},`+part+`]}`, user), want
	}
	return list(user, `{"role":"model","parts":[`+part+`,{"text":"y"}]}`, user), want
}

// has reports whether a value in a document has all that want has.
func has(t *testing.T, document, want string) bool {
	var in, part any
	require.NoError(t, json.Unmarshal([]byte(document), &in), document)
	require.NoError(t, json.Unmarshal([]byte(want), &part), want)
	return holdsPart(in, part)
}

func holdsPart(in, part any) bool {
	if covers(in, part) {
		return true
	}
	switch in := in.(type) {
	case []any:
		for _, one := range in {
			if holdsPart(one, part) {
				return true
			}
		}
	case map[string]any:
		for one := range maps.Values(in) {
			if holdsPart(one, part) {
				return true
			}
		}
	}
	return false
}

// covers reports whether in has all that part has. A text equals a list of one part with it.
func covers(in, part any) bool {
	want, object := part.(map[string]any)
	if !object {
		if list, ok := in.([]any); ok && len(list) == 1 {
			if text, ok := part.(string); ok {
				return covers(list[0], map[string]any{"text": text})
			}
		}
		return reflect.DeepEqual(in, part)
	}
	got, ok := in.(map[string]any)
	for name, value := range want {
		if ok = ok && covers(got[name], value); !ok {
			return false
		}
	}
	return ok
}
