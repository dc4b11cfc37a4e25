package openai

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
)

// chatFinish returns the end of a whole response.
func chatFinish(body string) (api.Finish, error) {
	res := &http.Response{Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
	for event, err := range wholeChat(res, call{}) {
		if f, ok := event.(api.Finish); ok || err != nil {
			return f, err
		}
	}
	return api.Finish{}, nil
}

// TestNothingPaidForIsLost decodes members of a usage that content.Usage does not have.
func TestNothingPaidForIsLost(t *testing.T) {
	chat := func(usage, further string) (api.Finish, error) {
		return chatFinish(`{"choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}],"usage":` + usage + further + `}`)
	}
	for usage, want := range map[string]api.Finish{
		`{"prompt_tokens":5,"completion_tokens":3,"total_tokens":8,"cost":0.25,"cost_details":{"upstream_inference_cost":null}}`: {
			Usage: content.Usage{Input: 5, Output: 3}, Details: `{"usage":{"cost":0.25}}`},
		`{"prompt_tokens":5,"completion_tokens":3,"completion_tokens_details":{"reasoning_tokens":1,"accepted_prediction_tokens":2,"rejected_prediction_tokens":0}}`: {
			Usage: content.Usage{Input: 5, Output: 3, Reasoning: 1}, Details: `{"usage":{"completion_tokens_details":{"accepted_prediction_tokens":2}}}`},
		`{"prompt_tokens":5,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":1,"audio_tokens":2}}`: {
			Usage: content.Usage{Input: 4, Output: 3, CacheRead: 1, Incomplete: true}, Details: `{"usage":{"prompt_tokens_details":{"audio_tokens":2}}}`},
	} {
		finish, err := chat(usage, "")
		require.NoError(t, err)
		require.Equal(t, want.Usage, finish.Usage, usage)
		require.Equal(t, string(want.Details), string(finish.Details), usage)
	}

	finish, err := chat(`{"prompt_tokens":5,"completion_tokens":3}`, `,"service_tier":"priority"`)
	require.NoError(t, err)
	require.True(t, finish.Usage.Incomplete, "another price")

	const response = `{"object":"response","status":"completed","output":[],"service_tier":"flex","usage":{"input_tokens":5,"output_tokens":3,"total_tokens":8,` +
		`"input_tokens_details":{"cached_tokens":1,"image_tokens":2},"output_tokens_details":{"reasoning_tokens":1},"cost_in_usd_ticks":9}}`
	_, finish, err = decodeResponse([]byte(response), nil, 0)
	require.NoError(t, err)
	require.Equal(t, content.Usage{Input: 4, Output: 3, CacheRead: 1, Reasoning: 1, Incomplete: true}, finish.Usage)
	require.Equal(t, `{"service_tier":"flex","usage":{"input_tokens_details":{"image_tokens":2},"cost_in_usd_ticks":9}}`, string(finish.Details))
}
