package gemini

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
)

const onePNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

var (
	weather = content.Tool{Name: "get_weather", Description: "Weather.", Schema: `{"type":"object","properties":{"city":{"type":"string"}}}`}
	search  = content.Tool{Name: "google_search", Extra: own(`{"type":"googleSearch","googleSearch":{}}`)}
	picture = content.Image{Source: content.Source{MediaType: "image/png", Data: onePNG}}
)

func user(blocks ...content.Block) content.Message      { return turnOf(content.User, blocks) }
func assistant(blocks ...content.Block) content.Message { return turnOf(content.Assistant, blocks) }

func turnOf(role content.Role, blocks []content.Block) content.Message {
	return content.Message{Role: role, Blocks: must(blocks...)}
}

func must(blocks ...content.Block) content.Blocks {
	made, err := content.Of(blocks...)
	if err != nil {
		panic(err)
	}
	return made
}

func said(text string) content.Block { return content.Text{Text: text} }

func call(id string) content.ToolUse {
	return content.ToolUse{ID: id, Name: "get_weather", Input: `{"city":"Oslo"}`}
}

func signedCall(id string) content.Block {
	c := call(id)
	c.Extra = own(`{"thoughtSignature":"c2lnbmVk"}`)
	return c
}

func result(id, text string) content.Block {
	return content.ToolResult{CallID: id, Content: content.Words(text)}
}

func own(json content.JSON) content.Extra { return content.Extra{API: API, JSON: json} }

func ask3(messages ...content.Message) api.Request { return api.Request{Messages: messages} }

// requireBody makes a body, checks it as the API would, and returns it.
func requireBody(t *testing.T, req api.Request, model string, o *Options) (string, []api.RepairNote) {
	t.Helper()
	body, notes, err := Body(req, model, o)
	require.NoError(t, err)
	require.NoError(t, fake.CheckGemini(model, body), string(body))
	again, _, err := Body(req, model, o)
	require.NoError(t, err)
	require.Equal(t, string(body), string(again))
	return string(body), notes
}

// contentsOf is the bytes of the contents in a body, without the brackets around them.
func contentsOf(t *testing.T, body string) string {
	t.Helper()
	_, contents, ok := strings.Cut(body, `"contents":[`)
	require.True(t, ok, body)
	return strings.TrimSuffix(contents, "]}")
}

func TestTheSmallestBody(t *testing.T) {
	body, notes := requireBody(t, hello(), "gemini-x", nil)
	require.Equal(t, `{"contents":[{"role":"user","parts":[{"text":"Hello"}]}]}`, body)
	require.Empty(t, notes)
}

func TestEveryOptionIsInTheBody(t *testing.T) {
	cold := 0.25
	req := hello()
	req.System, req.Tools = []string{"Be brief.", " "}, []content.Tool{weather, search}
	req.Options = api.Options{MaxTokens: 100, ToolChoice: api.OneTool("get_weather")}
	body, notes := requireBody(t, req, "gemini-3-pro", &Options{
		Options: api.Options{
			MaxTokens: 5, Temperature: &cold, StopSequences: []string{"END"}, Thinking: api.ThinkLow, OneCall: true, Cache: api.CacheLong,
			Output: api.Schema{Name: "x", JSON: `{"type":"object","properties":{"a":{"type":"string"}},"not":{}}`},
			Body:   `{"generation_config":{"topK": 5,"temperature":1},"toolConfig":{"includeServerSideToolInvocations":true},"safetySettings":[],"contents":[]}`,
		},
		SDK: &genai.ClientConfig{Backend: genai.BackendVertexAI},
	})
	require.Equal(t, `{"systemInstruction":{"parts":[{"text":"Be brief."}]},`+
		`"tools":[{"functionDeclarations":[{"name":"get_weather","description":"Weather.","parametersJsonSchema":{"type":"object","properties":{"city":{"type":"string"}}}}]},{"googleSearch":{}}],`+
		`"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["get_weather"]},"includeServerSideToolInvocations":true},`+
		`"safetySettings":[],`+
		`"generationConfig":{"maxOutputTokens":100,"stopSequences":["END"],"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"LOW"},`+
		`"responseMimeType":"application/json","responseJsonSchema":{"type":"object","properties":{"a":{"type":"string"}}},"topK":5,"temperature":1},`+
		`"contents":[{"role":"user","parts":[{"text":"Hello"}]}]}`, strings.ReplaceAll(body, `"topK": 5`, `"topK":5`))
	var told []string
	for _, n := range notes {
		told = append(told, n.String())
	}
	require.Equal(t, []string{
		"dropped: a system prompt of white space",
		`option: "contents" in Options.Body is left out`,
		"option: OneCall is left out: the API does not have it",
		"option: the schema of Output is sent without not",
		`option: Cache "long" is left out: the API caches by itself`,
	}, told)
}

func TestHowMuchAModelThinks(t *testing.T) {
	for _, c := range []struct {
		model    string
		thinking api.Thinking
		want     string
	}{
		{"gemini-2.5-flash", "", ``}, {"gemini-2.5-flash", api.ThinkOff, `{"thinkingBudget":0}`},
		{"gemini-2.5-flash", api.ThinkAuto, `{"includeThoughts":true,"thinkingBudget":-1}`},
		{"gemini-2.5-flash", api.ThinkHigh, `{"includeThoughts":true,"thinkingBudget":24576}`},
		{"gemini-2.5-flash", api.ThinkTokens(77), `{"includeThoughts":true,"thinkingBudget":77}`},
		{"gemini-3-pro", api.ThinkHigh, `{"includeThoughts":true,"thinkingLevel":"HIGH"}`},
		{"gemini-flash-latest", "max", `{"includeThoughts":true,"thinkingLevel":"HIGH"}`},
		{"models/gemini-3.5-flash", "minimal", `{"includeThoughts":true,"thinkingLevel":"MINIMAL"}`},
	} {
		body, _ := requireBody(t, hello(), c.model, &Options{Options: api.Options{Thinking: c.thinking}})
		want := `{"generationConfig":{"thinkingConfig":` + c.want + `},`
		if c.want == "" {
			want = `{"contents"`
		}
		require.Truef(t, strings.HasPrefix(body, want), "%s %s: %s", c.model, c.thinking, body)
	}
}

func TestOptionsThatExcludeEachOtherAreLeftOut(t *testing.T) {
	req := hello()
	req.System, req.Tools = []string{"Be brief."}, []content.Tool{weather, weather, search, {Name: "x", Extra: own(`{"type":"x"}`)}, {Name: "y", Extra: own(`{"behavior":"BLOCKING"}`)}}
	req.Options.Output = api.Schema{Name: "x", JSON: `{"type":"object"}`}
	req.Options.ToolChoice = api.OneTool("other")
	req.Options.MaxTokens = math.MaxInt
	req.Options.StopSequences = []string{"1", "2", "3", "4", "5", "6"}
	body, notes := requireBody(t, req, "gemini-2.5-pro", nil)
	require.NotContains(t, body, "responseMimeType")
	require.Contains(t, body, `"maxOutputTokens":2147483647,`)
	require.NotContains(t, body, "toolConfig")
	require.NotContains(t, body, `"6"`)
	require.NotContains(t, body, "googleSearch")
	require.Len(t, notes, 7, "%v", notes)

	req.Options = api.Options{ToolChoice: api.ToolsAny, Body: `{"cached_content":"cachedContents/x","tool_config":{"functionCallingConfig":{"mode":"ANY"}}}`}
	body, notes = requireBody(t, req, "gemini-2.5-pro", nil)
	require.Equal(t, `{"cached_content":"cachedContents/x","contents":[{"role":"user","parts":[{"text":"Hello"}]}]}`, body)
	require.Len(t, notes, 6, "%v", notes)
}

// TestBodyOverridesMembersUnderEitherName: the API has two names for each member, and refuses a member with both.
func TestBodyOverridesMembersUnderEitherName(t *testing.T) {
	vertex := &genai.ClientConfig{Backend: genai.BackendVertexAI}
	for _, c := range []struct {
		defaults, body content.JSON
		options        api.Options
		want           string
	}{
		{"", `{"generationConfig":{"max_output_tokens":5}}`, api.Options{MaxTokens: 100}, `"generationConfig":{"max_output_tokens":5},`},
		{"", `{"generation_config":{"thinking_config":{"thinkingBudget":1}}}`, api.Options{Thinking: api.ThinkOff}, `"generationConfig":{"thinking_config":{"thinkingBudget":1}},`},
		{"", `{"tool_config":{"function_calling_config":{"mode":"AUTO"}}}`, api.Options{ToolChoice: api.ToolsAny}, `"toolConfig":{"function_calling_config":{"mode":"AUTO"}},`},
		{`{"safetySettings":[]}`, `{"safety_settings":[{}]}`, api.Options{}, `"safety_settings":[{}],`},
		{`{"generationConfig":{"topK":1}}`, `{"generation_config":{"topK":2}}`, api.Options{}, `"generationConfig":{"topK":2},`},
	} {
		req := hello()
		req.Tools = []content.Tool{weather}
		req.Options, req.Options.Body = c.options, c.body
		body, notes := requireBody(t, req, "gemini-2.5-pro", &Options{Options: api.Options{Body: c.defaults}, SDK: vertex})
		_, rest, _ := strings.Cut(body, `}]}],`) // after the tools
		require.Equal(t, c.want+`"contents":[{"role":"user","parts":[{"text":"Hello"}]}]}`, rest, c.body)
		require.Empty(t, notes, c.body)
	}
}

// TestExtraCannotRepeatAMember has members in Extras, under their second names, that Plait writes itself.
func TestExtraCannotRepeatAMember(t *testing.T) {
	tool := weather
	tool.Extra = own(`{"parameters_json_schema":{},"behavior":"BLOCKING"}`)
	call := content.ToolUse{Name: "get_weather", Input: `{}`, Extra: own(`{"thought_signature":"c2ln","function_call":{"name":"other"}}`)}
	req := ask3(user(said("Hi.")), turnOf(content.Assistant, []content.Block{call}), user(content.ToolResult{Content: content.Words("snow"), Extra: own(`{"function_response":{}}`)}))
	req.Tools = []content.Tool{tool}
	body, _ := requireBody(t, req, "gemini-3-pro", nil)
	require.NotContains(t, body, "parameters_json_schema")
	require.Contains(t, body, `"behavior":"BLOCKING"`)
	require.Contains(t, body, `{"functionCall":{"name":"get_weather","args":{}},"thought_signature":"c2ln"}`)
	require.NotContains(t, body, "function_")
}

func TestWhatCannotBeSentIsAnError(t *testing.T) {
	_, _, err := Body(api.Request{}, "m", nil)
	require.ErrorIs(t, err, api.ErrNothing)
	_, _, err = Body(ask3(user(said("  "))), "m", nil)
	require.ErrorIs(t, err, api.ErrNothing)
	hot := math.NaN()
	for _, o := range []api.Options{{Body: "[]"}, {Temperature: &hot}, {MaxTokens: -1}, {Thinking: "Much"}} {
		_, _, err = Body(hello(), "m", &Options{Options: o})
		require.ErrorIs(t, err, api.ErrInvalidRequest)
		var e *api.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, API, e.API)
	}
}

// TestResultsOfAStepAreOneContent answers several calls, with words and pictures, in the order of the calls.
func TestResultsOfAStepAreOneContent(t *testing.T) {
	body, notes := requireBody(t, ask3(
		user(said("Hi")), assistant(call("a"), call(""), call("")),
		user(said("Look:"), result("", "1"), content.ToolResult{CallID: "a", IsError: true, Content: must(said("no"), said("way"), picture)}, result("", `{"n": 1}`)),
	), "gemini-2.5-flash", nil)
	require.Equal(t, `{"role":"user","parts":[{"text":"Hi"}]},`+
		`{"role":"model","parts":[{"functionCall":{"id":"a","name":"get_weather","args":{"city":"Oslo"}}},`+
		`{"functionCall":{"name":"get_weather","args":{"city":"Oslo"}}},{"functionCall":{"name":"get_weather","args":{"city":"Oslo"}}}]},`+
		`{"role":"user","parts":[{"functionResponse":{"id":"a","name":"get_weather","response":{"error":"no\nway"}}},`+
		`{"functionResponse":{"name":"get_weather","response":{"output":"1"}}},{"functionResponse":{"name":"get_weather","response":{"n": 1}}}]},`+
		`{"role":"user","parts":[{"text":"[Returned by get_weather:]"},{"inlineData":{"mimeType":"image/png","data":"`+onePNG+`"}},{"text":"Look:"}]}`,
		contentsOf(t, body))
	require.Len(t, notes, 1, "%v", notes)
}

func TestWhatAToolReturnedIsAnObject(t *testing.T) {
	for said, want := range map[string]string{
		"22": `{"output":"22"}`, "": `{"output":""}`, `{"a":1}`: `{"a":1}`, `[1]`: `{"output":"[1]"}`, `{"a":1,"a":2}`: `{"output":"{\"a\":1,\"a\":2}"}`,
		`{"a":`: `{"output":"{\"a\":"}`, ` {} `: ` {} `, "null": `{"output":"null"}`,
	} {
		require.Equal(t, content.JSON(want), responseOf(content.ToolResult{Content: content.Words(said)}, false))
	}
	require.Equal(t, content.JSON(`{"error":"{}"}`), responseOf(content.ToolResult{Content: content.Words("{}"), IsError: true}, false))
	require.Equal(t, content.JSON(`{"error":"The tool failed."}`), responseOf(content.ToolResult{IsError: true}, false))
	require.Equal(t, content.JSON(`{"output":"It is shown below."}`), responseOf(content.ToolResult{}, true))
}

// TestForeignCallsAreSignedIfTheModelRequiresIt signs the first call of each step that has no signature, and no other one.
func TestForeignCallsAreSignedIfTheModelRequiresIt(t *testing.T) {
	foreign := call("b")
	foreign.Extra = content.Extra{API: "openai-responses", JSON: `{"thoughtSignature":"x"}`}
	req := ask3(user(said("Hi")), assistant(said("x"), foreign, call("c")), user(result("b", "1"), result("c", "2")),
		assistant(signedCall("d"), call("e")), user(result("d", "1"), result("e", "2")))
	body, _ := requireBody(t, req, "gemini-3-pro-preview", nil)
	require.Equal(t, 1, strings.Count(body, noSignature))
	require.Contains(t, body, `"name":"get_weather","args":{"city":"Oslo"}},"thoughtSignature":"`+noSignature+`"},{"functionCall":{"id":"c"`)
	require.Equal(t, 1, strings.Count(body, "c2lnbmVk"))
	body, _ = requireBody(t, req, "gemini-2.5-pro", nil)
	require.Zero(t, strings.Count(body, noSignature))
	require.Equal(t, 1, strings.Count(body, "c2lnbmVk"))
}

func TestModelsByName(t *testing.T) {
	for name, want := range map[string]int{
		"gemini-2.5-pro": 2, "gemini-3-flash-preview": 3, "models/gemini-3.5-flash": 3, "publishers/google/models/gemini-10": 10,
		"gemini-flash-latest": 3, "gemini-exp-1206": 0, "tunedModels/mine": 0, "gemini-99999": 0, "": 0,
	} {
		require.Equal(t, want, generationOf(name), name)
	}
}

// TestAConversationThatGrowsKeepsItsPrefix makes the body of each beginning of a conversation.
func TestAConversationThatGrowsKeepsItsPrefix(t *testing.T) {
	messages := []content.Message{
		user(said("One?")), assistant(content.Thinking{Text: "Hm.", Extra: own("{}")}, said("Let me look."), call("a"), call("a")),
		user(result("a", "1"), result("a", "2")), assistant(said("One.")),
		user(said("Two?"), picture), assistant(call("")), user(result("", "3")), assistant(said("Two.")), user(said("Three?")),
		assistant(call("x")), user(result("x", "4")), assistant(said("Three.")), user(said("Four?")),
	}
	for _, model := range []string{"gemini-2.5-pro", "gemini-3-pro"} {
		before := ""
		for n := 1; n <= len(messages); n += 2 {
			body, _ := requireBody(t, api.Request{Tools: []content.Tool{weather}, Messages: messages[:n]}, model, nil)
			require.True(t, strings.HasPrefix(contentsOf(t, body), before))
			before = contentsOf(t, body)
		}
	}
}

// TestWhatOnlyTheAPICanReadGoesBackToIt sends every kind of part back as it came, and nothing of other APIs.
func TestWhatOnlyTheAPICanReadGoesBackToIt(t *testing.T) {
	const code = `{"executableCode": {"language": "PYTHON","code": "1"},"thoughtSignature": "c2ln"}`
	body, notes := requireBody(t, ask3(user(said("Hi")), assistant(
		content.Thinking{Text: "Hm.", Extra: own("{}")}, content.Thinking{Text: "Signed.", Signature: "c2lnbmVk", Extra: own("{}")},
		content.Opaque{API: API, JSON: code}, content.Opaque{API: API, JSON: `{"text":"","thoughtSignature":"c2ln"}`},
		content.Text{Text: "It is.", Extra: own(`{"thoughtSignature":"dGV4dA==","groundingMetadata":{"x":1}}`)},
	), user(said("Go on"), content.Image{Source: content.Source{URL: "gs://bucket/x.JPG"}, Extra: own(`{"mediaResolution":{"level":"MEDIA_RESOLUTION_HIGH"}}`)})), "gemini-3-pro", nil)
	require.Empty(t, notes)
	require.Equal(t, `{"role":"user","parts":[{"text":"Hi"}]},{"role":"model","parts":[{"text":"Hm.","thought":true},`+
		`{"text":"Signed.","thought":true,"thoughtSignature":"c2lnbmVk"},`+code+`,{"text":"","thoughtSignature":"c2ln"},`+
		`{"text":"It is.","thoughtSignature":"dGV4dA=="}]},{"role":"user","parts":[{"text":"Go on"},`+
		`{"fileData":{"mimeType":"image/jpeg","fileUri":"gs://bucket/x.JPG"},"mediaResolution":{"level":"MEDIA_RESOLUTION_HIGH"}}]}`, contentsOf(t, body))

	body, notes = requireBody(t, ask3(user(said("Hi")), assistant(
		content.Thinking{Text: "Not mine.", Signature: "c2ln", Extra: content.Extra{API: "anthropic", JSON: "{}"}}, content.Thinking{Text: "Whose?", Signature: "c2ln"},
		content.Text{Text: "Yes.", Extra: content.Extra{API: "anthropic", JSON: `{"citations":[]}`}},
		content.Opaque{API: "openai-responses", JSON: `{"type":"web_search_call","action":{"query":"snow"}}`},
	), user(said("Go on"))), "gemini-3-pro", nil)
	require.Len(t, notes, 3)
	require.Equal(t, `{"role":"user","parts":[{"text":"Hi"}]},{"role":"model","parts":[{"text":"Yes."},`+
		`{"text":"[web_search_call: query: snow]"}]},{"role":"user","parts":[{"text":"Go on"}]}`,
		contentsOf(t, body))
}

func TestOpaquePartsStandOnlyWhereTheyMay(t *testing.T) {
	for part, want := range map[string]string{
		`{"executableCode":{"code":"1"}}`:                 `{"executableCode":{"code":"1"}}`,
		`{"newKind":{"a":1},"thoughtSignature":"c2ln"}`:   `{"newKind":{"a":1},"thoughtSignature":"c2ln"}`,
		`{"text":"","thoughtSignature":"c2ln"}`:           `{"text":"","thoughtSignature":"c2ln"}`,
		`{"text":"words"}`:                                `{"text":"words"}`,
		`{"text":""}`:                                     ``,
		`{}`:                                              ``,
		`{"thoughtSignature":"c2ln"}`:                     ``,
		`{"functionCall":{"name":"f"}}`:                   ``,
		`{"functionResponse":{"name":"f","response":{}}}`: ``,
		`{"executableCode":{},"codeExecutionResult":{}}`:  ``,
		`{"executableCode":7}`:                            ``,
		`{"executableCode":{"code":"1"},"thoughtSignature":"not base64!"}`: ``,
		`{"inlineData":{"mimeType":"image/png","data":"AAAA"}}`:            `{"text":"[image (image/png) left out: its type is none of image/png, image/jpeg, image/webp, image/heic, image/heif]"}`,
	} {
		b, _ := accept(content.Assistant, content.Opaque{API: API, JSON: content.JSON(part)}, false)
		got := ""
		if b != nil {
			got = string(appendPart(nil, b))
		}
		require.Equal(t, want, got, part)
	}
	for _, nested := range []bool{false, true} {
		b, _ := accept(content.User, content.Opaque{API: API, JSON: `{"executableCode":{"code":"1"}}`}, nested)
		require.Nil(t, b)
	}
}

func TestATextFileIsSentAsOne(t *testing.T) {
	csv := content.Document{Source: content.Source{MediaType: "text/csv", Data: "YSxiCg=="}}
	body, notes := requireBody(t, ask3(user(csv)), "gemini-2.5-pro", nil)
	require.Empty(t, notes)
	require.Contains(t, body, `{"inlineData":{"mimeType":"text/csv","data":"YSxiCg=="}}`)
	csv.Title = "numbers"
	body, _ = requireBody(t, ask3(user(csv)), "gemini-2.5-pro", nil)
	require.Contains(t, body, `{"text":"[Document \"numbers\":]\na,b\n"}`)
}

// TestToolsOfTheAPIBesideFunctions asks for both as the model, and the backend, wants it.
func TestToolsOfTheAPIBesideFunctions(t *testing.T) {
	req := hello()
	req.Tools = []content.Tool{search, weather, search}
	body, notes := requireBody(t, req, "gemini-3-pro", nil)
	require.Contains(t, body, `]},{"googleSearch":{}}],"toolConfig":{"includeServerSideToolInvocations":true},`)
	require.Len(t, notes, 1, "it is declared twice")
	vertex, _, err := Body(req, "gemini-3-pro", &Options{SDK: &genai.ClientConfig{Backend: genai.BackendVertexAI}})
	require.NoError(t, err)
	require.NotContains(t, string(vertex), "includeServerSideToolInvocations", "Vertex AI does not know it")
	req.Tools = []content.Tool{search}
	req.Options.Body = `{"toolConfig":{"functionCallingConfig":{"mode":"ANY"},"retrievalConfig":{"languageCode":"en"}}}`
	body, notes = requireBody(t, req, "gemini-2.5-pro", nil)
	require.Contains(t, body, `"tools":[{"googleSearch":{}}],"toolConfig":{"retrievalConfig":{"languageCode":"en"}},`)
	require.Len(t, notes, 1)
}

// TestNeverInvalidAgain holds conversations that were refused once, or that it is easy to get wrong. The random test is to find more.
func TestNeverInvalidAgain(t *testing.T) {
	for name, test := range map[string]struct {
		said     []content.Message
		has, not string // in the contents
	}{
		"a call before any word": {[]content.Message{assistant(call("a")), user(result("a", "1"))}, `[{"role":"user","parts":[{"text":"Continue."}]},{"role":"model"`, ""},
		"an answer at the end":   {[]content.Message{user(said("Hi")), assistant(said("Hello"))}, `{"text":"Hello"}]},{"role":"user","parts":[{"text":"Continue."}]}`, ""},
		"thinking whose signature is none": {
			[]content.Message{user(said("Hi")), assistant(content.Thinking{Text: "x", Signature: "!", Extra: own("{}")}, said("y")), user(said("z"))}, `[{"text":"y"}]`, "thought"},
		"empty thinking": {
			[]content.Message{user(said("Hi")), assistant(content.Thinking{Extra: own("{}")}, said("y")), user(said("z"))}, `[{"text":"y"}]`, "thought"},
		"a file without bytes": {
			[]content.Message{user(said("Hi"), content.Opaque{API: API, JSON: `{"inlineData":{"mimeType":"audio/wav"}}`})}, `[{"text":"Hi"}]`, "inlineData"},
		"a file with a name and without a picture": {
			[]content.Message{user(content.Opaque{API: API, JSON: `{"inlineData":{"mimeType":"image/png","data":"AAAA","displayName":"x"}}`})}, "left out", "inlineData"},
		"a result with a signature": {
			[]content.Message{user(said("Hi")), assistant(call("a")), user(content.ToolResult{CallID: "a", Extra: own(`{"thoughtSignature":"c2ln","willContinue":true}`)})},
			`"response":{"output":""},"willContinue":true}}`, "c2ln"},
		"a call without a result": {[]content.Message{user(said("Hi")), assistant(call("")), user(said("x"))}, `"response":{"error":"` + content.NoResult, ""},
	} {
		t.Run(name, func(t *testing.T) {
			body, _ := requireBody(t, ask3(test.said...), "gemini-2.5-pro", nil)
			require.Contains(t, body, test.has)
			if test.not != "" {
				require.NotContains(t, body, test.not)
			}
		})
	}
}

// TestToolChoiceNamesTheToolThatIsSent declares a tool whose name the API refuses beside one whose name is like it.
func TestToolChoiceNamesTheToolThatIsSent(t *testing.T) {
	refused := weather
	refused.Name = "get weather"
	req := hello()
	req.Tools = []content.Tool{refused, weather}
	req.Options.ToolChoice = api.OneTool("get_weather")
	body, notes := requireBody(t, req, "gemini-x", nil)
	require.Contains(t, body, `"allowedFunctionNames":["get_weather"]`)
	require.Len(t, notes, 1, "the name is refused")

	req.Options.ToolChoice = api.OneTool("get weather")
	body, notes = requireBody(t, req, "gemini-x", nil)
	require.NotContains(t, body, "toolConfig")
	require.Len(t, notes, 2)
	require.Equal(t, "option", notes[1].Kind)
}

func TestCachePolicyOfAnotherProviderIsNoted(t *testing.T) {
	for _, policy := range []api.Cache{"own", "forever", api.CacheLong} {
		req := hello()
		req.Options.Cache = policy
		_, notes := requireBody(t, req, "gemini-x", nil)
		require.Equal(t, []api.RepairNote{{Kind: "option", Message: -1, Detail: `Cache "` + string(policy) + `" is left out: the API caches by itself`}}, notes)
	}
}
