package anthropic

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
)

// TestNothingPaidForIsLost decodes each member of the SDK's usage that carries a price.
func TestNothingPaidForIsLost(t *testing.T) {
	const counts = `"input_tokens":10,"output_tokens":20,"cache_creation_input_tokens":7`
	counted := content.Usage{Input: 10, Output: 20, CacheWrite: 7}
	incomplete := func(u content.Usage) content.Usage { u.Incomplete = true; return u }
	for name, c := range map[string]struct {
		usage, kept string // kept is the member "usage" of Details
		want        content.Usage
	}{
		"nothing else":   {``, ``, counted},
		"the usual":      {`,"service_tier":"standard","speed":"standard","inference_geo":"global"`, `{"service_tier":"standard","speed":"standard","inference_geo":"global"}`, counted},
		"an hour":        {`,"cache_creation":{"ephemeral_5m_input_tokens":2,"ephemeral_1h_input_tokens":5}`, ``, content.Usage{Input: 10, Output: 20, CacheWrite: 7, CacheWriteLong: 5}},
		"searches":       {`,"server_tool_use":{"web_search_requests":2,"web_fetch_requests":0}`, `{"server_tool_use":{"web_search_requests":2}}`, incomplete(counted)},
		"free fetches":   {`,"server_tool_use":{"web_search_requests":0,"web_fetch_requests":3}`, `{"server_tool_use":{"web_fetch_requests":3}}`, counted},
		"another tier":   {`,"service_tier":"priority"`, `{"service_tier":"priority"}`, incomplete(counted)},
		"another speed":  {`,"speed":"fast"`, `{"speed":"fast"}`, incomplete(counted)},
		"another place":  {`,"inference_geo":"us"`, `{"inference_geo":"us"}`, incomplete(counted)},
		"a compaction":   {`,"iterations":[{"type":"compaction","input_tokens":100,"output_tokens":9,"cache_read_input_tokens":1},{"type":"message","input_tokens":10,"output_tokens":20}]`, `{"iterations":[{"type":"compaction","input_tokens":100,"output_tokens":9,"cache_read_input_tokens":1},{"type":"message","input_tokens":10,"output_tokens":20}]}`, content.Usage{Input: 110, Output: 29, CacheRead: 1, CacheWrite: 7}},
		"an advisor":     {`,"iterations":[{"type":"advisor_message","model":"m","input_tokens":100,"output_tokens":9}]`, `{"iterations":[{"type":"advisor_message","model":"m","input_tokens":100,"output_tokens":9}]}`, incomplete(counted)},
		"something new":  {`,"new_tokens":4,"nothing":0,"empty":{"a":null}`, `{"new_tokens":4}`, counted},
		"another form":   {`,"server_tool_use":7,"iterations":"x"`, `{"server_tool_use":7,"iterations":"x"}`, counted},
		"details of out": {`,"output_tokens_details":{"thinking_tokens":3}`, ``, content.Usage{Input: 10, Output: 20, CacheWrite: 7, Reasoning: 3}},
	} {
		usage := "{" + counts + c.usage + "}"
		_, finish, err := decodeMessage([]byte(`{"type":"message","content":[],"stop_reason":"end_turn","usage":`+usage+`}`), nil)
		require.NoError(t, err, name)
		require.Equal(t, c.want, finish.Usage, name)
		kept := ""
		if c.kept != "" {
			kept = `{"usage":` + c.kept + `}`
		}
		require.Equal(t, kept, string(finish.Details), name)

		// A stream repeats its usage.
		var d decoder
		for _, event := range []string{
			`{"type":"message_start","message":{"type":"message","usage":{"input_tokens":1,"output_tokens":1}}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":` + usage + `}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":` + usage + `}`, `{"type":"message_stop"}`,
		} {
			_, err := d.Take([]byte(event))
			require.NoError(t, err)
		}
		require.Equal(t, c.want, d.finish.Usage, name)
		require.Equal(t, kept, string(d.finish.Details), name)
	}
}
