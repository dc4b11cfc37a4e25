package fake_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest/fake"
)

// recordedStreams calls fn for each recorded exchange whose answer is a whole stream.
func recordedStreams(t *testing.T, folder, part string, fn func(name, stream string)) {
	t.Helper()
	recorded(t, folder, part, func(name, _, _ string, status int, response string) {
		if status == 200 && (strings.HasPrefix(response, "data:") || strings.HasPrefix(response, "event:")) {
			fn(name, strings.ReplaceAll(response, "\r\n", "\n"))
		}
	})
}

// replayed is the stream that a fake makes of an answer to a request.
func replayed(t *testing.T, newFake func(...fake.Reply) *fake.API, path, body string, answer any) string {
	t.Helper()
	b, err := json.Marshal(answer)
	require.NoError(t, err)
	status, _, stream := ask(t, serve(t, newFake(fake.Reply{Body: string(b)}))+path, body)
	require.Equal(t, 200, status, stream)
	return stream
}

// inOrder is words without those that were there before.
func inOrder(words []string) []string {
	var order []string
	for _, word := range words {
		if !slices.Contains(order, word) {
			order = append(order, word)
		}
	}
	return order
}

// responseEvents returns the types of the events of a stream with the names of their members. Each is listed once for
// its item.
func responseEvents(t *testing.T, stream string) []string {
	var events []string
	for _, chunk := range chunks(t, stream) {
		names := slices.Sorted(maps.Keys(chunk))
		names = slices.DeleteFunc(names, func(name string) bool { return name == "obfuscation" || name == "logprobs" })
		events = append(events, fmt.Sprint(chunk["output_index"], " ", chunk["content_index"], " ", chunk["type"], " ", names))
	}
	return inOrder(events)
}

func TestOpenAIResponsesStreamsAsTheAPIDoes(t *testing.T) {
	n := 0
	recordedStreams(t, "openai-responses", "/responses", func(name, stream string) {
		list := chunks(t, stream)
		end := list[len(list)-1]
		ask := responses(itemHi, `"stream":true`)
		require.Equal(t, responseEvents(t, stream), responseEvents(t, replayed(t, fake.OpenAIResponses, "/v1/responses", ask, end["response"])), name)
		n++
	})
	t.Logf("%d recorded streams", n)
}

// chatShapes is what the chunks of a stream hold, one after the other.
func chatShapes(t *testing.T, stream string) []string {
	var shapes []string
	for _, chunk := range chunks(t, stream) {
		shape := "usage"
		for _, choice := range chunk["choices"].([]any) {
			delta := choice.(map[string]any)["delta"].(map[string]any)
			shape = fmt.Sprint(slices.Sorted(maps.Keys(delta)), choice.(map[string]any)["finish_reason"])
			if calls, ok := delta["tool_calls"]; ok {
				shape += fmt.Sprint(slices.Sorted(maps.Keys(calls.([]any)[0].(map[string]any))))
			}
			if words, ok := delta["content"]; ok && words == "" {
				shape += " empty"
			}
		}
		if n := len(shapes); n == 0 || shapes[n-1] != shape {
			shapes = append(shapes, shape)
		}
	}
	return append(shapes, fmt.Sprint(strings.HasSuffix(strings.TrimSpace(stream), "data: [DONE]")))
}

func TestOpenAIChatStreamsAsTheAPIDoes(t *testing.T) {
	n := 0
	recordedStreams(t, "openai-chat", "/chat/completions", func(name, stream string) {
		answer := joinedChat(t, chunks(t, stream))
		ask := chat(chatHi, `"stream":true,"stream_options":{"include_usage":true}`)
		want := chatShapes(t, stream)
		got := chatShapes(t, replayed(t, fake.OpenAIChat, "/v1/chat/completions", ask, answer))
		require.Equal(t, want, got, name)
		n++
	})
	t.Logf("%d recorded streams", n)
}

func TestGeminiStreamsAsTheAPIDoes(t *testing.T) {
	n := 0
	recordedStreams(t, "gemini", "streamGenerateContent", func(name, stream string) {
		real := chunks(t, stream)
		made := chunks(t, replayed(t, fake.Gemini, "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse", gemini(gHi), joinedGemini(t, real)))
		for i, chunk := range made {
			require.Equal(t, slices.Sorted(maps.Keys(real[0])), slices.Sorted(maps.Keys(chunk)), name)
			_, ended := chunk["candidates"].([]any)[0].(map[string]any)["finishReason"]
			require.Equal(t, i == len(made)-1, ended, name)
		}
		n++
	})
	t.Logf("%d recorded streams", n)
}
