package anthropic

import (
	"bytes"
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
	"github.com/plait-dev/plait/internal/jsonx"
)

// pendingAnswer is a response in which code execution waits for a tool of the program. The code itself searched the
// web.
const pendingAnswer = `{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[` +
	`{"type":"server_tool_use","id":"srvtoolu_1","name":"code_execution","input":{"code":"…"}},` +
	`{"type":"server_tool_use","id":"srvtoolu_2","name":"web_search","input":{},"caller":{"type":"code_execution_20260120","tool_id":"srvtoolu_1"}},` +
	`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_2","content":[],"caller":{"type":"code_execution_20260120","tool_id":"srvtoolu_1"}},` +
	`{"type":"tool_use","id":"toolu_1","name":"get_weather","input":{},"caller":{"type":"direct"}}],` +
	`"container":{"id":"container_1","expires_at":"2026-05-05T21:31:45Z"},` +
	`"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`

// finishedAnswer follows it, with the result of code execution.
const finishedAnswer = `{"id":"msg_2","type":"message","role":"assistant","model":"claude-x","content":[` +
	`{"type":"code_execution_tool_result","tool_use_id":"srvtoolu_1","content":{"type":"code_execution_result"}},{"type":"text","text":"Snow."}],` +
	`"container":{"id":"container_1","expires_at":"2026-05-05T21:36:45Z"},` +
	`"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`

// TestPendingCodeExecutionContinues runs a tool call that code execution waits beside, whole and streamed, saved and
// loaded in between. The strict fake refuses the second request without the container or the waiting call.
func TestPendingCodeExecutionContinues(t *testing.T) {
	for _, whole := range []bool{true, false} {
		served := fake.Anthropic(
			fake.Reply{Body: pendingAnswer}, fake.Reply{Body: finishedAnswer}, fake.AnthropicMessage(content.Text{Text: "Bye."}))
		server := httptest.NewServer(served)
		defer server.Close()
		p := New("claude-x", &Options{NoStream: whole, SDK: localSDK(server.URL, server.Client())})
		agent := executor.Agent{Provider: p, Handler: func(context.Context, executor.Call) (any, error) { return "snow", nil }}

		d := dag.New().Tools(weather).User("Weather?")
		d, err := agent.Run(context.Background(), d)
		require.NoError(t, err)
		var saved bytes.Buffer
		require.NoError(t, d.Write(&saved))
		d, err = dag.Read(&saved)
		require.NoError(t, err)
		_, err = agent.Run(context.Background(), d.User("Thanks."))
		require.NoError(t, err)

		bodies := served.Bodies()
		require.Len(t, bodies, 3)
		require.NotContains(t, string(bodies[0]), "container_1")
		require.Contains(t, string(bodies[1]), `"container":"container_1"`)
		require.NotContains(t, string(bodies[2]), `"container":`, "it expires after minutes")
		for _, body := range bodies[1:] {
			require.Contains(t, string(body), `"name":"code_execution"`)
			require.NotContains(t, string(body), `"plait"`)
		}
		require.Contains(t, string(bodies[2]), `"type":"code_execution_tool_result"`)
	}
}

// TestATurnWithWaitingCodeEndsWithAText: the API refuses a text beside the results that code waits for. The calls that
// the code made stay, without their caller.
func TestATurnWithWaitingCodeEndsWithAText(t *testing.T) {
	answer := strings.Replace(pendingAnswer, `"caller":{"type":"direct"}`, `"caller":{"type":"code_execution_20260120","tool_id":"srvtoolu_1"}`, 1)
	blocks, _, err := decodeMessage([]byte(answer), nil)
	require.NoError(t, err)
	list, err := content.Of(blocks...)
	require.NoError(t, err)
	messages := []content.Message{user(said("?")), {Role: content.Assistant, Blocks: list}, user(result("toolu_1"))}
	body, notes := requireBody(t, api.Request{Tools: []content.Tool{weather}, Messages: messages}, nil)
	require.Empty(t, notes)
	require.Equal(t, 3, strings.Count(body, `"tool_id":"srvtoolu_1"`))

	messages[2] = user(result("toolu_1"), said("Hurry up."))
	body, notes = requireBody(t, api.Request{Tools: []content.Tool{weather}, Messages: messages}, nil)
	require.Len(t, notes, 4)
	require.NotContains(t, body, `"code_execution"`)
	require.NotContains(t, body, `"tool_id"`)
	for _, kept := range []string{"srvtoolu_2", "web_search_tool_result", "toolu_1", "Hurry up."} {
		require.Contains(t, body, kept)
	}
}

func TestContainerOfTheBodyIsUsed(t *testing.T) {
	blocks, finish, err := decodeMessage([]byte(pendingAnswer), nil)
	require.NoError(t, err)
	require.Equal(t, content.StopToolUse, finish.Stop)
	list, err := content.Of(blocks...)
	require.NoError(t, err)
	req := api.Request{Tools: []content.Tool{weather}, Messages: []content.Message{
		user(said("?")), {Role: content.Assistant, Blocks: list}, user(result("toolu_1")),
	}}
	body, _ := requireBody(t, req, &Options{Options: api.Options{Body: `{"container":{"id":"other","skills":[]}}`}})
	require.Contains(t, body, `"container":{"id":"other","skills":[]}`)
	require.NotContains(t, body, "container_1")
}

// TestAContainerOfEveryKindOfLastBlock notes the container in whatever block comes last, and sends the block as it came.
func TestAContainerOfEveryKindOfLastBlock(t *testing.T) {
	for _, block := range []string{
		`{"type":"text","text":"x","citations":null}`, `{"type":"thinking","thinking":"x","signature":"y"}`,
		`{"type":"server_tool_use","id":"srvtoolu_1","name":"code_execution","input":{}}`,
	} {
		b, err := decodeBlock(content.JSON(block))
		require.NoError(t, err)
		noted := withContainer(b, content.StopPause, `{"id":"c"}`)
		require.NotEqual(t, b, noted)
		list, err := content.Of(noted)
		require.NoError(t, err)
		require.Equal(t, "c", containerOf(content.Message{Role: content.Assistant, Blocks: list}))
		require.Equal(t, block, string(appendBlock(nil, noted, "")))

		for _, none := range []content.JSON{"", "null", `{"id":""}`, `{"id":7}`, `[]`} {
			require.Equal(t, b, withContainer(b, content.StopPause, none))
		}
		require.Equal(t, b, withContainer(b, content.StopEndTurn, `{"id":"c"}`))
	}
}

// TestAHeldBlockSurvivesACut: the last block waits for the end of a stream with server tools, and is not lost with it.
func TestAHeldBlockSurvivesACut(t *testing.T) {
	stream := `data: {"type":"message_start","message":{"type":"message","id":"m","model":"x","content":[],"usage":{}}}

data: {"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}}

data: {"type":"content_block_stop","index":0}

`
	for _, end := range []string{"", "data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n"} {
		var f api.Fold
		var err error
		for event, failure := range decodeAll(strings.ReplaceAll(stream+end, "data:", "event: x\ndata:")) {
			if err = failure; err == nil {
				require.NoError(t, f.Add(event))
			}
		}
		require.Error(t, err)
		require.Equal(t, 1, f.Partial().Blocks.Len())
	}
}

// TestEstimatedTokensAreNoPartOfThinking leaves out a member of thinking deltas: a signed block with it is refused.
func TestEstimatedTokensAreNoPartOfThinking(t *testing.T) {
	a, err := assemble(`{"type":"thinking","thinking":"","signature":""}`)
	require.NoError(t, err)
	for _, delta := range []content.JSON{
		`{"type":"thinking_delta","thinking":"Snow?","estimated_tokens":3}`, `{"type":"signature_delta","signature":"s"}`,
	} {
		_, _, err := a.add(delta)
		require.NoError(t, err)
	}
	b, err := a.block()
	require.NoError(t, err)
	require.Equal(t, content.Thinking{Text: "Snow?", Signature: "s", Extra: ours(nil)}, b)

	saved := content.Thinking{Text: "Snow?", Signature: "s", Extra: ours([]jsonx.Member{{Name: estimatedTokens, Value: "3"}})}
	require.Equal(t, `{"type":"thinking","thinking":"Snow?","signature":"s"}`, string(appendBlock(nil, saved, "")))
}

// TestARunGoesOnAfterACompaction: the API paused after it, and continues from the compaction and the file it wrote.
func TestARunGoesOnAfterACompaction(t *testing.T) {
	paused := `{"id":"m","type":"message","role":"assistant","model":"claude-x","content":[{"type":"text","text":"x"},{"type":"container_upload","file_id":"file_1"},` +
		`{"type":"compaction","content":"So far: x.","encrypted_content":null}],"stop_reason":"compaction","usage":{"input_tokens":1,"output_tokens":1}}`
	served := fake.Anthropic(fake.Reply{Body: paused}, fake.AnthropicMessage(content.Text{Text: "Done."}))
	server := httptest.NewServer(served)
	defer server.Close()
	agent := executor.Agent{Provider: New("claude-x", &Options{NoStream: true, SDK: localSDK(server.URL, server.Client())})}
	d, err := agent.Run(context.Background(), dag.New().User("Go."))
	require.NoError(t, err)
	require.Contains(t, d.Text(), "Done.")
	require.Contains(t, string(served.Bodies()[1]), `{"type":"container_upload","file_id":"file_1"}`)
	require.NotContains(t, string(served.Bodies()[1]), content.GoOn)
}
