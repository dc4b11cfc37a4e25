package openai

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
)

// reply returns a response with that body.
func reply(body string) *http.Response {
	return &http.Response{Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
}

// TestChatKeepsWhatTheServerReportsBesideItsMessage reads the forms of llama.cpp (timings), OpenRouter (provider,
// native_finish_reason) and OpenAI (log probabilities in pieces, padding).
func TestChatKeepsWhatTheServerReportsBesideItsMessage(t *testing.T) {
	const (
		first  = `{"token":"Hi","bytes":[72,105],"logprob":-0.5,"top_logprobs":[]}`
		second = `{"token":"!","bytes":null,"logprob":-1.0,"top_logprobs":[{"token":"?","logprob":-2.0}]}`
		about  = `"id":"c","object":"chat.completion","created":1,"model":"m","system_fingerprint":"fp","provider":"P","service_tier":null`
		want   = `{"system_fingerprint":"fp","provider":"P","native_finish_reason":"eos","timings":{"n":2.0},` +
			`"logprobs":{"content":[` + first + `,` + second + `],"refusal":null}}`
	)
	streamed, err := foldChat(`data: {` + about + `,"obfuscation":"xyz","choices":[{"index":0,"delta":{"content":"Hi"},"logprobs":{"content":[` + first + `]},"finish_reason":null}]}` + "\n\n" +
		`data: {` + about + `,"obfuscation":"x","choices":[{"index":0,"delta":{"content":"!"},"logprobs":{"content":[` + second + `],"refusal":null},"finish_reason":null}]}` + "\n\n" +
		`data: {` + about + `,"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop","native_finish_reason":"eos"}]}` + "\n\n" +
		`data: {` + about + `,"choices":[],"timings":{"n":1.0}}` + "\n\n" + `data: {` + about + `,"choices":[],"timings":{"n":2.0}}` + "\n\ndata: [DONE]\n\n")
	require.NoError(t, err)
	require.JSONEq(t, want, string(streamed.Details))

	whole, err := foldEvents(wholeChat(reply(`{`+about+`,"choices":[{"index":0,"message":{"role":"assistant","content":"Hi!"},`+
		`"logprobs":{"content":[`+first+`,`+second+`],"refusal":null},"finish_reason":"stop","native_finish_reason":"eos"}],"timings":{"n":2.0}}`), call{}))
	require.NoError(t, err)
	require.JSONEq(t, want, string(whole.Details))

	plain, err := foldChat(`data: {"id":"c","object":"chat.completion.chunk","created":1,"obfuscation":"x","error":null,"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}` + "\n\n")
	require.NoError(t, err)
	require.Empty(t, plain.Details, "a response without further facts has no details")
}

// TestResponsesKeepWhatTheServerReportsBesideItsItems: llama.cpp has its timings beside the response, and every server
// repeats the request in it.
func TestResponsesKeepWhatTheServerReportsBesideItsItems(t *testing.T) {
	const response = `{"id":"r","object":"response","created_at":1,"completed_at":2,"status":"completed","model":"m",` +
		`"output":[{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"Hi"}]}],` +
		`"instructions":"Be brief.","tools":[],"temperature":1.0,"text":{},"service_tier":"default","system_fingerprint":"fp","error":null}`
	streamed, err := foldResponse(`data: {"type":"response.completed","sequence_number":3,"response":` + response + `,"timings":{"n":2.0}}` + "\n\n")
	require.NoError(t, err)
	require.Equal(t, content.JSON(`{"timings":{"n":2.0},"service_tier":"default","system_fingerprint":"fp"}`), streamed.Details)

	whole, err := foldEvents(wholeResponse(reply(response), call{}))
	require.NoError(t, err)
	require.Equal(t, content.JSON(`{"service_tier":"default","system_fingerprint":"fp"}`), whole.Details)
}

// TestDetailsNeverFailAResponse: what is only kept may be anything.
func TestDetailsNeverFailAResponse(t *testing.T) {
	for _, odd := range []string{`"\ud800"`, `{"a":1,"a":2}`, `[` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `]`} {
		answer, err := foldChat(`data: {"id":"c","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}],"odd":` + odd + `}` + "\n\n")
		require.NoError(t, err, odd)
		require.Equal(t, "Hi", answer.Blocks.Text())
		require.True(t, answer.Details == "" || answer.Details.Valid(), "%s", answer.Details)
	}
}
