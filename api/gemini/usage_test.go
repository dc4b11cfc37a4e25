package gemini

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
)

// TestNothingPaidForIsLost decodes members of a usage that content.Usage does not have.
func TestNothingPaidForIsLost(t *testing.T) {
	for usage, want := range map[string]struct {
		usage   content.Usage
		details string
	}{
		`{"promptTokenCount":5,"candidatesTokenCount":3,"totalTokenCount":8,"trafficType":"ON_DEMAND"}`: {
			content.Usage{Input: 5, Output: 3}, `{"usage":{"trafficType":"ON_DEMAND"}}`},
		`{"promptTokenCount":5,"candidatesTokenCount":3,"promptTokensDetails":[{"modality":"AUDIO","tokenCount":4}]}`: {
			content.Usage{Input: 5, Output: 3, Incomplete: true}, `{"usage":{"promptTokensDetails":[{"modality":"AUDIO","tokenCount":4}]}}`},
		`{"promptTokenCount":5,"candidatesTokenCount":3,"candidatesTokensDetails":[{"modality":"IMAGE","tokenCount":3}]}`: {
			content.Usage{Input: 5, Output: 3, Incomplete: true}, `{"usage":{"candidatesTokensDetails":[{"modality":"IMAGE","tokenCount":3}]}}`},
		`{"promptTokenCount":5,"candidatesTokenCount":3,"candidatesTokensDetails":[{"modality":"TEXT","tokenCount":3}]}`: {
			content.Usage{Input: 5, Output: 3}, `{"usage":{"candidatesTokensDetails":[{"modality":"TEXT","tokenCount":3}]}}`},
	} {
		var d decoder
		for range 2 {
			_, err := d.Take([]byte(`{"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"STOP"}],"usageMetadata":` + usage + `}`))
			require.NoError(t, err)
		}
		_, err := d.End(nil)
		require.NoError(t, err)
		require.Equal(t, want.usage, d.finish.Usage)
		require.Equal(t, want.details, string(d.finish.Details))
	}
}
