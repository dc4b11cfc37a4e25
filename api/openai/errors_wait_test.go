package openai

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAWaitInTheTextOfAnErrorIsRead(t *testing.T) {
	for message, want := range map[string]time.Duration{
		"Rate limit reached for gpt-x. Please try again in 3s. Visit …": 3 * time.Second,
		"Please try again in 1.898s.":                                   1898 * time.Millisecond,
		"Please try again in 20ms.":                                     20 * time.Millisecond,
		"Please try again in 6m0s.":                                     6 * time.Minute,
		"Please try again in a while.":                                  0,
		"Please try again in -3s.":                                      0,
		"Please try again in ":                                          0,
		"":                                                              0,
	} {
		body := `{"object":"response","status":"failed","error":{"code":"rate_limit_exceeded","message":"` + message + `"}}`
		require.Equal(t, want, newError(ResponsesAPI, http.StatusOK, nil, []byte(body)).RetryAfter, message)
	}

	limited := http.Header{"Retry-After": {"7"}}
	require.Equal(t, 7*time.Second, newError(ChatAPI, 429, limited, []byte(`{"error":{"message":"try again in 3s"}}`)).RetryAfter)
	require.Zero(t, newError(ChatAPI, 400, nil, []byte(`{"error":{"message":"try again in 3s"}}`)).RetryAfter)
}
