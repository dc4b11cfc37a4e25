package openai

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/testkit/providertest"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

func responsesCassettes(t testing.TB) []providertest.Cassette {
	return providertest.Cassettes(t, "openai-responses", "responses")
}

// otherwise lists the accepted requests that Plait sends in another form, each with what it says of that.
var otherwise = map[string]struct{ reason, note string }{
	"braintrust-sdk-javascript--cloudflare-ai-chat-instrumentation-cassettes-cloudflare-ai-chat-v0-latest-cassette/1": {
		"the call is a reference to an item that the API stores: the conversation does not hold it", "no open call has the ID"},
	"openinference--openinference-instrumentation-agent-framework-test-processor-test-agent-with-tool-calls/1": {
		"the history is at the API; see TestRunRepeatsRecordedResponses, where it is sent", "previous_response_id"},
	"openinference--openinference-instrumentation-agent-framework-test-processor-test-multiple-tools/1": {
		"the history is at the API; see TestRunRepeatsRecordedResponses, where it is sent", "previous_response_id"},
	"pydantic-ai--models-test-openai-responses-test-openai-conversation-id-streaming-provider-details/0": {
		"the API is to keep the conversation", "conversation"},
}

// TestEveryRecordedResponsesRequestSurvives imports every recorded request, makes the body again, and saves and loads the
// conversation.
func TestEveryRecordedResponsesRequestSurvives(t *testing.T) {
	count := providertest.Tally{T: t, What: "recorded requests"}
	for _, c := range responsesCassettes(t) {
		for i, e := range c.Exchanges {
			if e.Request == nil {
				continue
			}
			count.Run(fmt.Sprintf("%s/%d", c.Name, i), func(t *testing.T) {
				r := importResponses(t, e.Request.Body)
				view := r.dag.Transcript()
				body, notes, err := ResponsesBody(api.Request{System: view.System, Tools: view.Tools, Messages: view.Messages}, r.model, &r.options)
				require.NoError(t, err)
				if e.Response.Status != 200 {
					return // what the API refused may be repaired
				}
				if differs := otherwise[fmt.Sprintf("%s/%d", c.Name, i)]; differs.note != "" {
					require.Contains(t, fmt.Sprint(notes), differs.note, differs.reason)
					return
				}
				require.Empty(t, notes, "the API took this request as it was")
				providertest.RequireSame(t, providertest.NormalResponses(t, e.Request.Body), providertest.NormalResponses(t, string(body)))
			})
		}
	}
	count.Report()
}

// inStreamFailure reports whether an answer with the status 200 is a failure.
func inStreamFailure(e providertest.Exchange) bool {
	return strings.Contains(e.Response.Body, `"type":"response.failed"`)
}

// TestEveryRecordedResponsesAnswerSurvives decodes every recorded answer through the SDK, and makes of the folded message the items
// of the API again.
func TestEveryRecordedResponsesAnswerSurvives(t *testing.T) {
	count := providertest.Tally{T: t, What: "recorded answers"}
	for _, c := range responsesCassettes(t) {
		for i, e := range c.Exchanges {
			if e.Response.Status != 200 || inStreamFailure(e) {
				continue
			}
			count.Run(fmt.Sprintf("%s/%d", c.Name, i), func(t *testing.T) {
				answer, err := replayResponses(t, e)
				require.NoError(t, err)
				require.Equal(t, e.Derived.Text, saidIn(answer.Blocks))
				require.Len(t, answer.Blocks.ToolUses(), len(e.Derived.ToolCalls))
				require.Equal(t, e.Derived.ResponseID, answer.ResponseID)
				require.Equal(t, recordedStop(e, answer.Blocks), answer.Stop)
				require.NotZero(t, answer.Usage.Output)
				require.Equal(t, ResponsesAPI, answer.API)
				requireSameItems(t, e, answer.Blocks)
				providertest.RequireSaved(t, dag.New().User("?").Append(node.Message{Role: content.Assistant, Blocks: answer.Blocks}))
			})
		}
	}
	count.Report()
}

// replayResponses makes a request that is answered with the recorded response.
func replayResponses(t testing.TB, e providertest.Exchange) (api.Response, error) {
	p := providertest.Play(t, e)
	return askResponses(NewResponses("gpt-test", &Options{NoStream: !e.Streamed(), SDK: localSDK(p.Server)}), hello())
}

// saidIn joins the texts as the recordings' derived text does.
func saidIn(b content.Blocks) string {
	var all string
	for _, block := range b.All() {
		if said, ok := block.(content.Text); ok {
			if list, _ := extraOf(said.Extra); memberType(list) != "refusal" {
				all += said.Text
			}
		}
	}
	return all
}

// recordedStop is the stop reason for the recorded status.
func recordedStop(e providertest.Exchange, b content.Blocks) content.Stop {
	switch {
	case e.Derived.Stop == "incomplete:max_output_tokens":
		return content.StopMaxTokens
	case len(b.ToolUses()) > 0:
		return content.StopToolUse
	case strings.Contains(e.Response.Body, `"type":"refusal"`), strings.Contains(e.Response.Body, `"type": "refusal"`):
		return content.StopRefusal
	}
	return content.StopEndTurn
}

// requireSameItems makes the API's items of the blocks and compares them with those of the answer.
func requireSameItems(t *testing.T, e providertest.Exchange, blocks content.Blocks) {
	made := decoded(t, `{"input":[`+string(keepSealed.appendItems(nil, content.Message{Role: content.Assistant, Blocks: blocks}, 0))+"]}")
	providertest.RequireSame(t, recordedOutput(t, e), made["input"])
}

// recordedOutput is the items of a recorded answer: those that the API ended one by one, which programs send back, and which it
// encrypts once more for the whole answer at the stream's end.
func recordedOutput(t *testing.T, e providertest.Exchange) []any {
	if !e.Streamed() {
		return decoded(t, string(e.Body(t)))["output"].([]any)
	}
	var items, whole []any
	for line := range strings.Lines(string(e.Body(t))) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !ok {
			continue
		}
		switch event := decoded(t, data); event["type"] {
		case "response.output_item.done":
			items = append(items, event["item"])
		case "response.completed", "response.incomplete":
			whole = event["response"].(map[string]any)["output"].([]any)
		}
	}
	providertest.RequireSame(t, unsealed(whole), unsealed(items))
	return items
}

// unsealed is items without encrypted content.
func unsealed(items []any) []any {
	var all []any
	for _, item := range items {
		bare := maps.Clone(item.(map[string]any))
		delete(bare, "encrypted_content")
		all = append(all, bare)
	}
	return all
}

// TestRecordedResponsesErrorsAreTyped gives every recorded error its kind.
func TestRecordedResponsesErrorsAreTyped(t *testing.T) {
	kinds := map[string]error{
		"invalid_api_key": api.ErrAuth, "model_not_found": api.ErrNotFound, "insufficient_quota": api.ErrQuota, "server_error": api.ErrServer,
		"invalid_request_error": api.ErrInvalidRequest, "invalid_function_parameters": api.ErrInvalidRequest,
		"unsupported_file": api.ErrInvalidRequest, "invalid_value": api.ErrInvalidRequest,
	}
	count := providertest.Tally{T: t, What: "recorded errors"}
	for _, c := range responsesCassettes(t) {
		for i, e := range c.Exchanges {
			if e.Response.Status == 200 && !inStreamFailure(e) {
				continue
			}
			count.Run(fmt.Sprintf("%s/%d", c.Name, i), func(t *testing.T) {
				_, err := replayResponses(t, e)
				var failure *api.Error
				require.ErrorAs(t, err, &failure)
				require.Contains(t, kinds, failure.Type)
				require.ErrorIs(t, err, kinds[failure.Type])
				require.Equal(t, e.Response.Status, failure.Status)
				require.Equal(t, ResponsesAPI, failure.API)
				require.NotEmpty(t, failure.Message)
				require.NotEmpty(t, failure.Body)
			})
		}
	}
	count.Report()
}
