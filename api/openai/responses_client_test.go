package openai

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

// ownCalls are the calls of the API's own tools that a program executes, each with the item of a response, the arguments
// that a handler gets, and the item that a text result becomes.
var ownCalls = []struct{ name, item, input, text, result string }{
	{"computer", `{"type":"computer_call","id":"cu_1","call_id":"call_1","status":"completed","action":{"type":"click","x":1,"y":2},"pending_safety_checks":[]}`,
		`{"action":{"type":"click","x":1,"y":2},"pending_safety_checks":[]}`, "Clicked.",
		`{"type":"computer_call_output","call_id":"call_1","output":{"type":"computer_screenshot","image_url":"` + blankPNG + `"}},{"type":"message","role":"user","content":[{"type":"input_text","text":"Clicked."}]}`},
	{"shell", `{"type":"shell_call","id":"sh_1","call_id":"call_1","status":"completed","action":{"commands":["ls"],"timeout_ms":null},"environment":{"type":"local"}}`,
		`{"action":{"commands":["ls"],"timeout_ms":null}}`, "a.txt",
		`{"type":"shell_call_output","call_id":"call_1","output":[{"stdout":"a.txt","stderr":"","outcome":{"type":"exit","exit_code":0}}]}`},
	{"local_shell", `{"type":"local_shell_call","id":"lsh_1","call_id":"call_1","status":"completed","action":{"type":"exec","command":["ls"],"env":{}}}`,
		`{"action":{"type":"exec","command":["ls"],"env":{}}}`, "a.txt", `{"type":"local_shell_call_output","id":"call_1","output":"a.txt"}`},
	{"apply_patch", `{"type":"apply_patch_call","id":"apc_1","call_id":"call_1","status":"completed","operation":{"type":"delete_file","path":"a"}}`,
		`{"operation":{"type":"delete_file","path":"a"}}`, "Gone.", `{"type":"apply_patch_call_output","call_id":"call_1","status":"completed","output":"Gone."}`},
	{"tool_search", `{"type":"tool_search_call","id":"tsc_1","call_id":"call_1","execution":"client","status":"completed","arguments":{"q":"x"}}`,
		`{"arguments":{"q":"x"}}`, `[{"type":"function","name":"f"}]`,
		`{"type":"tool_search_output","call_id":"call_1","execution":"client","status":"completed","tools":[{"type":"function","name":"f"}]}`},
	{"mcp_approval_request", `{"type":"mcp_approval_request","id":"mcpr_1","server_label":"s","name":"drop","arguments":"{}"}`,
		`{"server_label":"s","name":"drop","arguments":"{}"}`, `{"approve": true}`, `{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":true}`},
}

// TestCallsOfTheAPIsOwnToolsAreOpen runs each of them with a handler, streamed and whole. Without one, the run leaves
// the call open.
func TestCallsOfTheAPIsOwnToolsAreOpen(t *testing.T) {
	for _, c := range ownCalls {
		for _, whole := range []bool{true, false} {
			served := fake.OpenAIResponses(
				fake.OpenAIResponse(content.Opaque{API: ResponsesAPI, JSON: content.JSON(c.item)}), fake.OpenAIResponse(content.Text{Text: "Done."}))
			server := httptest.NewServer(served)
			var seen executor.Call
			agent := executor.Agent{
				Provider: NewResponses("gpt-5", &Options{NoStream: whole, SDK: localSDK(server)}),
				Handler:  func(_ context.Context, call executor.Call) (any, error) { seen = call; return c.text, nil },
			}
			d, err := agent.Run(context.Background(), dag.New().User("Go."))
			server.Close()
			require.NoError(t, err, c.name)
			require.Equal(t, "Done.", d.Text())
			require.Equal(t, c.name, seen.Name)
			require.JSONEq(t, c.input, string(seen.Input), c.name)
			require.Contains(t, string(served.Bodies()[1]), c.result, c.name)
		}
	}
}

func TestCallsOfTheAPIsOwnToolsGoBackAsTheyCame(t *testing.T) {
	for _, c := range ownCalls {
		body := `{"model":"gpt-5","store":true,"include":[],"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi"}]},` + c.item + `,` + c.result + `]}`
		req, _, err := ImportResponses([]byte(body))
		require.NoError(t, err)
		require.Len(t, req.Messages[1].Blocks.ToolUses(), 1, c.name)
		require.Len(t, req.Messages[2].Blocks.ToolResults(), 1, c.name)
		again, notes, err := ResponsesBody(req, "gpt-5", &Options{NoStream: true})
		require.NoError(t, err)
		require.Empty(t, notes, c.name)
		require.JSONEq(t, body, string(again), c.name)
		require.NoError(t, fake.CheckOpenAIResponses(again))
	}
}

func TestAChangedResultIsNotSentAsItCame(t *testing.T) {
	req, _, err := ImportResponses([]byte(`{"input":[` + ownCalls[2].item + `,{"type":"local_shell_call_output","id":"call_1","output":"secret"}]}`))
	require.NoError(t, err)
	result := req.Messages[1].Blocks.ToolResults()[0]
	result.Content = content.Words("erased")
	blocks, err := content.Of(result)
	require.NoError(t, err)
	req.Messages[1].Blocks = blocks
	body, _, err := ResponsesBody(req, "gpt-5", nil)
	require.NoError(t, err)
	require.NotContains(t, string(body), "secret")
	require.Contains(t, string(body), `"output":"erased"`)
}

// TestAnApprovalIsGivenOnPurpose: the result of a tool that knows nothing of approvals refuses.
func TestAnApprovalIsGivenOnPurpose(t *testing.T) {
	for text, want := range map[string]string{
		`{"approve": true}`: "true", `{"approve":"true"}`: "false", `ok`: "false", ``: "false", `true`: "false", `[]`: "false", `{"approve":false,"reason":"no"}`: "false",
	} {
		approve, _ := approved(text)
		require.Equal(t, content.JSON(want), approve, text)
	}
	_, reason := approved(`{"approve":false,"reason":"too risky"}`)
	require.Equal(t, "too risky", reason)
}

// TestACallThatTheAPIExecutesIsNotOpen: a shell in a container, and a search by the API.
func TestACallThatTheAPIExecutesIsNotOpen(t *testing.T) {
	for _, item := range []string{
		`{"type":"shell_call","id":"sh_1","call_id":"c","action":{"commands":[]},"environment":{"type":"container_reference","container_id":"x"}}`,
		`{"type":"tool_search_call","id":"ts_1","call_id":"c","execution":"server","arguments":{}}`,
		`{"type":"computer_call","id":"cu_1","action":{}}`,
	} {
		var d itemDecoder
		blocks, err := d.blocks(content.JSON(item))
		require.NoError(t, err)
		require.Equal(t, []content.Block{content.Opaque{API: ResponsesAPI, JSON: content.JSON(item)}}, blocks)
	}
}

// TestAToolOfTheAPIsOwnHasAFunction declares a shell by its type; the program's function executes its calls.
func TestAToolOfTheAPIsOwnHasAFunction(t *testing.T) {
	shell := content.Tool{Name: "shell", Description: "Runs commands.", Schema: `{"type":"object","properties":{}}`,
		Extra: content.Extra{API: ResponsesAPI, JSON: `{"type":"shell"}`}}
	body, notes, err := ResponsesBody(api.Request{Tools: []content.Tool{shell}, Messages: []content.Message{{Role: content.User, Blocks: content.Words("Hi")}}}, "gpt-5", nil)
	require.NoError(t, err)
	require.Empty(t, notes)
	require.Contains(t, string(body), `"tools":[{"type":"shell"}]`)
}

// TestTheResultOfAProgramsCallNamesTheProgram: the API continues the program with it. Other callers are not repeated.
func TestTheResultOfAProgramsCallNamesTheProgram(t *testing.T) {
	const program = `"caller":{"type":"program","caller_id":"prg_1"}`
	for _, call := range []string{
		`{"type":"function_call","id":"fc_1","call_id":"call_1","name":"f","arguments":"{}",CALLER}`,
		`{"type":"custom_tool_call","id":"ctc_1","call_id":"call_1","name":"f","input":"x",CALLER}`,
		`{"type":"shell_call","id":"sh_1","call_id":"call_1","action":{"commands":["ls"]},CALLER}`,
	} {
		for caller, want := range map[string]int{program: 2, `"caller":{"type":"direct"}`: 0, `"caller":null`: 0} {
			var d itemDecoder
			blocks, err := d.blocks(content.JSON(strings.Replace(call, "CALLER", caller, 1)))
			require.NoError(t, err)
			require.NotContains(t, string(blocks[0].(content.ToolUse).Input), "caller")
			said, err := content.Of(blocks...)
			require.NoError(t, err)
			answer, err := content.Of(content.ToolResult{CallID: "call_1", Content: content.Words("y")})
			require.NoError(t, err)
			req := api.Request{Messages: []content.Message{
				{Role: content.User, Blocks: content.Words("Hi")}, {Role: content.Assistant, Blocks: said}, {Role: content.User, Blocks: answer},
			}}
			body, _, err := ResponsesBody(req, "gpt-5", nil)
			require.NoError(t, err)
			require.Equal(t, want, strings.Count(string(body), program), "%s", body)
		}
	}
}
