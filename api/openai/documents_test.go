package openai

import (
	"testing"

	"github.com/openai/openai-go/v3/option"
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/content"
	"github.com/stretchr/testify/require"
)

func TestResponsesSendsFilesAsTheyAre(t *testing.T) {
	const docx = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
	req := api.Request{Messages: []content.Message{{Role: content.User, Blocks: must(
		content.Document{Source: content.Source{MediaType: docx, Data: "UEsDBBQABgAI"}},
		content.Document{Source: content.Source{MediaType: "text/csv", Data: "YSxiCjEsMgo="}, Title: "sales.csv"},
	)}}}
	body, notes, err := ResponsesBody(req, "gpt-5", nil)
	require.NoError(t, err)
	require.Empty(t, notes)
	require.Contains(t, string(body), `"filename":"document.docx","file_data":"data:`+docx+`;base64,UEsDBBQABgAI"`)
	require.Contains(t, string(body), `"filename":"sales.csv","file_data":"data:text/csv;base64,YSxiCjEsMgo="`)
	require.NoError(t, fake.CheckOpenAIResponses(body))

	local := &Options{SDK: []option.RequestOption{option.WithBaseURL("http://127.0.0.1:8080/v1")}}
	body, notes, err = ResponsesBody(req, "m", local)
	require.NoError(t, err)
	require.Len(t, notes, 2, "a compatible server reads text")
	require.Contains(t, string(body), `[Document \"sales.csv\":]\na,b`)
	require.NotContains(t, string(body), "input_file")
}

func TestEveryDocumentOfResponsesHasAnExtension(t *testing.T) {
	target, _ := dialect.TargetOf(ResponsesAPI)
	for _, kind := range target.Documents.Types {
		require.NotEmpty(t, extensions[kind], kind)
	}
}

func TestToolSearchOfTheServerNeedsNoOutput(t *testing.T) {
	const said = `{"type":"tool_search_call","id":"tsc_1","call_id":"call_1","execution":"server","status":"completed","arguments":{"paths":["x"]}}`
	const own = `{"type":"tool_search_call","id":"tsc_1","call_id":"call_1","execution":"client","status":"completed","arguments":{"paths":["x"]}}`
	body := func(item content.JSON) (string, []api.RepairNote) {
		made, notes, err := ResponsesBody(api.Request{Messages: []content.Message{
			{Role: content.User, Blocks: content.Words("Hi")},
			{Role: content.Assistant, Blocks: must(content.Opaque{API: ResponsesAPI, JSON: item}, content.Text{Text: "x"})},
			{Role: content.User, Blocks: content.Words("Well?")},
		}}, "gpt-5", nil)
		require.NoError(t, err)
		return string(made), notes
	}

	sent, notes := body(said)
	require.Contains(t, sent, said)
	require.Empty(t, notes)

	sent, notes = body(own)
	require.NotContains(t, sent, "tool_search_call")
	require.Len(t, notes, 1, "a program has to answer it")
}

func TestTheResultOfAToolSearchThatTheAPIRanIsSentWithoutItsCall(t *testing.T) {
	const result = `{"type":"tool_search_output","call_id":"call_1","execution":"server","status":"completed","tools":[]}`
	req := hello()
	req.Messages = append(req.Messages, content.Message{Role: content.Assistant, Blocks: must(content.Opaque{API: ResponsesAPI, JSON: result})}, hello().Messages[0])
	body, _, err := ResponsesBody(req, "gpt-5", nil)
	require.NoError(t, err)
	require.Contains(t, string(body), "tool_search_output")
}
