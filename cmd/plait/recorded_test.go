package main

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/testkit/providertest"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
)

// recordedAPI is an API of which traffic was recorded. What does not count between a recorded request and one that Plait makes is
// written beside its normal form, in package providertest.
type recordedAPI struct {
	format string
	// folder holds its recordings, and name is its own in recordings of several.
	folder, name string
	normal       func(testing.TB, string) map[string]any
	// messages is the member that holds the conversation.
	messages string
}

var recordedAPIs = []recordedAPI{
	{"anthropic", "anthropic", "messages", providertest.NormalAnthropic, "messages"},
	{"openai-chat", "openai-chat", "chat", providertest.NormalChat, "messages"},
	{"openai-responses", "openai-responses", "responses", providertest.NormalResponses, "input"},
	{"gemini", "gemini", "generateContent", providertest.NormalGemini, "contents"},
}

// exportedOtherwise is the whole list of requests that the API took and that are exported in another form, with the reason and what
// the command says of it.
var exportedOtherwise = map[string]struct{ reason, told string }{
	"braintrust-sdk-javascript--cloudflare-ai-chat-instrumentation-cassettes-cloudflare-ai-chat-v0-latest-cassette/1": {
		"the call is a reference to an item that the API stores: the conversation does not hold it", "no open call has the ID"},
	"openinference--openinference-instrumentation-agent-framework-test-processor-test-agent-with-tool-calls/1": {
		"the history is at the API; it is sent where the conversation was run", "previous_response_id"},
	"openinference--openinference-instrumentation-agent-framework-test-processor-test-multiple-tools/1": {
		"the history is at the API; it is sent where the conversation was run", "previous_response_id"},
	"pydantic-ai--models-test-openai-responses-test-openai-conversation-id-streaming-provider-details/0": {
		"the API is to keep the conversation", "conversation"},
}

// TestEveryRecordedRequestIsExportedAsItWasImported imports every recorded request by the command, and exports it again. What an API
// refused may be exported in a form that it takes.
func TestEveryRecordedRequestIsExportedAsItWasImported(t *testing.T) {
	t.Parallel()
	for _, a := range recordedAPIs {
		t.Run(a.format, func(t *testing.T) {
			taken, same, refused, refusedSame := 0, 0, 0, 0
			for nth, c := range providertest.Cassettes(t, a.folder, a.name) {
				for i, e := range c.Exchanges {
					if e.Request == nil || !seedtest.Sample(nth, 3) {
						continue
					}
					name := fmt.Sprintf("%s/%d", c.Name, i)
					if e.Response.Status != 200 {
						refused++
						if body, told, code := a.there(e.Request.Body); code == exitDone && reflect.DeepEqual(a.normal(t, e.Request.Body), a.normal(t, body)) {
							refusedSame++
						} else {
							t.Logf("refused by the API, and exported otherwise: %s: %s", name, strings.TrimSpace(told))
						}
						continue
					}
					taken++
					t.Run(name, func(t *testing.T) {
						body, told, code := a.there(e.Request.Body)
						require.Equal(t, exitDone, code, told)
						if other, ok := exportedOtherwise[name]; ok {
							require.Contains(t, told, other.told, other.reason)
							return
						}
						want, got := a.normal(t, e.Request.Body), a.normal(t, body)
						if strings.Contains(told, ": id: the call ID") {
							requireRepeatedID(t, c.Name)
							numberIDs(want)
							numberIDs(got)
						} else {
							require.Empty(t, told, "the API took this request as it was")
						}
						providertest.RequireSame(t, want, got)
						same++
					})
				}
			}
			t.Logf("of %d requests that the API took, %d are equal; of %d that it refused, %d", taken, same, refused, refusedSame)
		})
	}
}

// there is a body by way of the command: imported and exported again, with what was told.
func (a recordedAPI) there(body string) (exported, told string, code int) {
	talk, told, code := command(body, "import", "--from", a.format, "-")
	if code != exitDone {
		return "", told, code
	}
	exported, more, code := command(talk, "export", "--to", a.format, "-")
	return exported, told + more, code
}

// command runs a command line.
func command(in string, args ...string) (out, errs string, code int) {
	var stdout, stderr bytes.Buffer
	code = plait(context.Background(), args, strings.NewReader(in), &stdout, &stderr)
	return stdout.String(), stderr.String(), code
}

// requireRepeatedID holds the one recording in which two calls of different turns have the same id. The API took them, although its
// words are that ids must be unique; Plait makes them unique.
func requireRepeatedID(t *testing.T, name string) {
	t.Helper()
	require.Equal(t, "cross-provider/pydantic-ai-test-tool-search-test-cross-provider-capability-replay-google-gemini-3-flash-preview-anthropic-cla", name)
}

// numberIDs replaces the id of each call, and of its result, by a number.
func numberIDs(request map[string]any) {
	n, now := 0, map[any]int{}
	for _, m := range request["messages"].([]any) {
		for _, b := range m.(map[string]any)["content"].([]any) {
			switch block := b.(map[string]any); block["type"] {
			case "tool_use":
				n++
				now[block["id"]], block["id"] = n, n
			case "tool_result":
				block["tool_use_id"] = now[block["tool_use_id"]]
			}
		}
	}
}
