package gemini

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/testkit/providertest"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
)

func TestImportErrorNamesThePositionInTheBody(t *testing.T) {
	for body, says := range map[string]string{
		``:                    "body cannot be read",
		`[]`:                  "body cannot be read",
		`{"contents":"x"}`:    "contents cannot be read",
		`{"contents":[{},7]}`: "contents[1] cannot be read",
		`{"contents":[{}`:     "body cannot be read",
		`{"tools":1}`:         "tools cannot be read",
		`{"tools":[{},3]}`:    "tools[1] cannot be read",
		`{"tools":[{"function_declarations":[{},"f"]}]}`:    "tools[0].function_declarations[1] cannot be read",
		`{"tools":[{"functionDeclarations":true}]}`:         "tools[0].functionDeclarations cannot be read",
		`{"systemInstruction":"x"}`:                         "systemInstruction cannot be read",
		`{"system_instruction":{"parts":[7]}}`:              "system_instruction.parts[0] cannot be read",
		`{"systemInstruction":{"parts":[{"text":"x"},{}]}}`: "systemInstruction.parts[1] cannot be read: it is not text",
		`{"contents":[{"parts":"x"}]}`:                      "contents[0].parts cannot be read",
		`{"contents":[{"parts":[{"text":"x"},"y"]}]}`:       "contents[0].parts[1] cannot be read",
		`{"contents":[{"role":"user","role":"x"}]}`:         "body cannot be read",
	} {
		req, err := Import([]byte(body))
		require.ErrorIs(t, err, api.ErrInvalidRequest, body)
		require.ErrorContains(t, err, API, body)
		require.ErrorContains(t, err, says, body)
		require.Zero(t, req, body)
	}
}

func TestImportKeepsEverything(t *testing.T) {
	own := func(j string) content.Extra { return content.Extra{API: API, JSON: content.JSON(j)} }
	opaque := func(j string) content.Block { return content.Opaque{API: API, JSON: content.JSON(j)} }
	for _, c := range []struct {
		name, content string
		role          content.Role
		want          []content.Block
	}{
		{"text, signatures and thoughts", `{"role":"model","parts":[{"text":"a","thought":true,"thoughtSignature":"eA=="},{"text":"b","thought_signature":"eQ=="},{"text":""}]}`,
			content.Assistant, []content.Block{
				content.Thinking{Text: "a", Signature: "eA==", Extra: own(`{}`)}, content.Text{Text: "b", Extra: own(`{"thoughtSignature":"eQ=="}`)},
			}},
		{"calls", `{"role":"model","parts":[{"function_call":{"name":"f","args":{ "x":1.0},"id":"1"},"thoughtSignature":"eA=="}]}`, content.Assistant,
			[]content.Block{content.ToolUse{ID: "1", Name: "f", Input: `{ "x":1.0}`, Extra: own(`{"thoughtSignature":"eA=="}`)}}},
		{"files by both names", `{"parts":[{"inline_data":{"mime_type":"image/png","data":"eA=="}},{"fileData":{"mimeType":"application/pdf","file_uri":"gs://x"}},` +
			`{"file_data":{"file_uri":"x"},"fileData":{"fileUri":"y"}}]}`, content.User, []content.Block{
			content.Image{Source: content.Source{MediaType: "image/png", Data: "eA=="}}, content.Document{Source: content.Source{MediaType: "application/pdf", URL: "gs://x"}},
			content.Document{Source: content.Source{URL: "y"}, Extra: own(`{"file_data":{"file_uri":"x"}}`)},
		}},
		{"parts that Plait does not model", `{"role":"model","parts":[{ "executableCode":{"code":"1"}},{"text":"a","inlineData":{}}]}`, content.Assistant,
			[]content.Block{opaque(`{ "executableCode":{"code":"1"}}`), opaque(`{"text":"a","inlineData":{}}`)}},
		{"one part", `{"parts":{"text":"a"}}`, content.User, []content.Block{content.Text{Text: "a"}}},
		{"another role", `{"role":"critic","parts":[{"text":"a"}]}`, "critic", []content.Block{content.Text{Text: "a"}}},
		{"results", `{"role":"function","parts":[{"functionResponse":{"id":"1","name":"f","response":{"output":"a"}}},{"functionResponse":{"id":"2","name":"f","response":{"error":"b"}}},` +
			`{"function_response":{"id":"3","name":"f","response":{ "x":1.0},"parts":[{}]},"thoughtSignature":"eA==","parts":1},{"functionResponse":{"response":null,"name":7},"name":8},` +
			`{"functionResponse":{},"text":"c"},{"functionResponse":7}]}`, content.User, []content.Block{
			content.ToolResult{CallID: "1", Content: content.Words("a"), Extra: own(`{"name":"f"}`)},
			content.ToolResult{CallID: "2", Content: content.Words("b"), IsError: true, Extra: own(`{"name":"f"}`)},
			content.ToolResult{CallID: "3", Content: content.Words(`{ "x":1.0}`), Extra: own(`{"name":"f","parts":[{}],"thoughtSignature":"eA=="}`)},
			content.ToolResult{Extra: own(`{"name":7}`)}, opaque(`{"functionResponse":{},"text":"c"}`), opaque(`{"functionResponse":7}`),
		}},
	} {
		req, err := Import([]byte(`{"contents":` + c.content + `}`))
		require.NoError(t, err, c.name)
		require.Equal(t, []content.Message{{Role: c.role, Blocks: must(c.want...)}}, req.Messages, c.name)
	}
}

func TestImportJoinsConsecutiveMessagesOfOneRole(t *testing.T) {
	req, err := Import([]byte(`{"model":"m","contents":[{"role":"user","parts":[{"text":""}]},{"role":"model","parts":[{"text":""}]},{"role":"user","parts":[{"text":"a"}]},
		{"parts":[{"text":"b"}]},{"role":"model","parts":[{"functionCall":{"name":"f"}},{"functionCall":{"name":"g"}}]},{"role":"model","parts":[{"functionCall":{"name":"f"}}]},
		{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"1"}}},{"functionResponse":{"name":"f","response":{"output":"2"}}}]},
		{"role":"function","parts":[{"functionResponse":{"name":"g","response":{"output":"3"}}}]},{"role":"user","parts":[{"text":"c"}]}],
		"toolConfig":null,"labels":{"x":"y"},"cachedContent":"z","system_instruction":{"parts":[{"text":"s"},{"text":"t"}]}}`))
	require.NoError(t, err)
	require.Equal(t, []string{"s", "t"}, req.System)
	require.Equal(t, content.JSON(`{"labels":{"x":"y"},"cachedContent":"z"}`), req.Options.Body)
	call, result := func(name string) content.Block { return content.ToolUse{Name: name, Input: "{}"} },
		func(said string) content.Block { return content.ToolResult{Content: content.Words(said)} }
	require.Equal(t, []content.Message{
		{Role: content.User, Blocks: must(content.Opaque{API: API, JSON: `{"text":""}`})},
		{Role: content.User, Blocks: must(content.Text{Text: "a"}, content.Text{Text: "b"})},
		{Role: content.Assistant, Blocks: must(call("f"), call("g"), call("f"))},
		{Role: content.User, Blocks: must(result("1"), result("3"), result("2"), content.Text{Text: "c"})}, // as the API finds them
	}, req.Messages)
}

func TestImportReadsToolsOfEveryKind(t *testing.T) {
	req, err := Import([]byte(`{"tools":[{"googleSearch":{ },"function_declarations":[
		{"name":"f","description":"Does f.","parameters":{"type":"OBJECT","properties":{"type":{"type":"STRING","enum":["STRING"]},"a":{"type":"ARRAY","items":{"anyOf":[{"type":"INTEGER"},7]}}},
			"required":["type"],"default":{"type":"X"}},"response":{"type":"STRING"}},
		{"name":"g","parameters_json_schema":{ "type":"object"},"behavior":"BLOCKING"},{"name":"h","parameters":null},{"name":"i","parameters":7}]},{"code_execution":{}}]}`))
	require.NoError(t, err)
	extra := func(j content.JSON) content.Extra { return content.Extra{API: API, JSON: j} }
	require.Equal(t, []content.Tool{
		{Name: "google_search", Extra: extra(`{"googleSearch":{ }}`)},
		{Name: "f", Description: "Does f.", Extra: extra(`{"response":{"type":"STRING"}}`), Schema: `{"type":"object","properties":{"type":{"type":"string","enum":["STRING"]},` +
			`"a":{"type":"array","items":{"anyOf":[{"type":"integer"},7]}}},"required":["type"],"default":{"type":"X"}}`},
		{Name: "g", Schema: `{ "type":"object"}`, Extra: extra(`{"behavior":"BLOCKING"}`)},
		{Name: "h", Schema: `{"type":"object","properties":{}}`},
		{Name: "i", Schema: `7`},
		{Name: "code_execution", Extra: extra(`{"code_execution":{}}`)},
	}, req.Tools)
}

func TestImportOfALongBodyTakesLittle(t *testing.T) {
	const many = 10_000
	for _, one := range []string{`{"role":"model","parts":[{"text":"x"}]}`, `{"parts":[{"functionResponse":{"name":"f"}}]}`, `{"role":"model","parts":{"function_call":{"name":"f"}}}`} {
		_, err := Import([]byte(`{"contents":[` + strings.Repeat(one+",", many) + one + `]}`))
		require.NoError(t, err)
	}
	deep := strings.Repeat(`{"items":`, 3000) + `{"type":"STRING"}` + strings.Repeat("}", 3000)
	req, err := Import([]byte(`{"tools":{"functionDeclarations":{"name":"f","parameters":` + deep + `}}}`))
	require.NoError(t, err)
	require.Equal(t, content.JSON(deep), req.Tools[0].Schema, "nobody reads it that deep")
	_, err = Import([]byte(`{"contents":` + strings.Repeat("[", many)))
	require.ErrorIs(t, err, api.ErrInvalidRequest)
}

// FuzzImport makes bodies of whatever can be imported. The strict fake must take one without members of which only the API knows what
// they mean; those go back as they came.
func FuzzImport(f *testing.F) {
	f.Add([]byte(`{"systemInstruction":{"parts":{"text":"s"}},"contents":[{"role":"user","parts":[{"text":"x"},{"inline_data":{"mime_type":"image/png","data":"eA=="}}]}],` +
		`"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT"}}]},{"googleSearch":{}}],"labels":{}}`))
	f.Add([]byte(`{"contents":[{"parts":[{"text":"x"}]},{"role":"model","parts":[{"text":"y","thought":true},{"functionCall":{"name":"f","args":{}},"thoughtSignature":"eA=="},{"functionCall":{"name":"g"}}]},` +
		`{"role":"user","parts":[{"functionResponse":{"name":"g","response":{"output":"x"}}},{"functionResponse":{"name":"f","response":{"error":"x"}}},{"file_data":{"file_uri":"gs://x","mime_type":"image/png"}}]},` +
		`{"role":"else","parts":[{"executableCode":{"code":"x"}}]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		req, err := Import(body)
		if err != nil {
			require.ErrorIs(t, err, api.ErrInvalidRequest)
			return
		}
		const model = "gemini-3-test"
		providertest.RequireSendable(t, req, func(r api.Request) ([]byte, error) {
			made, _, err := Body(r, model, nil)
			return made, err
		}, func(made []byte) error { return fake.CheckGemini(model, made) })
	})
}

func ExampleImport() {
	req, err := Import([]byte(`{"systemInstruction":{"parts":[{"text":"Be brief."}]},"contents":[{"role":"user","parts":[{"text":"Hello"}]}],"safetySettings":[]}`))
	if err != nil {
		panic(err)
	}
	os.Stdout.WriteString(req.System[0] + " " + req.Messages[0].Blocks.Text() + " " + string(req.Options.Body))
	// Output: Be brief. Hello {"safetySettings":[]}
}
