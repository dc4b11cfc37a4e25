package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestProviderMayBeACompatibleServer runs a model of a server that is named, and continues without its name. The server gets the requests that it
// reads and its own key, and export and show know of it.
func TestProviderMayBeACompatibleServer(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "the key of OpenAI")
	t.Setenv("MISTRAL_API_KEY", "the key of Mistral")
	var paths, bodies, keys []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		paths, bodies, keys = append(paths, r.URL.Path), append(bodies, string(body)), append(keys, r.Header.Get("Authorization"))
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"id":"c","model":"m","system_fingerprint":"fp_1","choices":[{"index":0,"message":{"role":"assistant","content":"Hello."},"finish_reason":"stop"}]}`)
	}))
	defer server.Close()

	file := filepath.Join(t.TempDir(), "talk.json")
	_, errs, code := command("Hi\n", "chat", file, "--provider", "mistral", "--model", "gpt-like", "--base-url", server.URL+"/v1")
	require.Zero(t, code, errs)
	_, errs, code = command("", "run", file, "--user", "And?")
	require.Zero(t, code, errs)
	_, errs, code = command("", "run", file, "--user", "And?", "--model", "gpt-other")
	require.Zero(t, code, "another model of the same server: %s", errs)

	require.Equal(t, []string{"/v1/chat/completions", "/v1/chat/completions", "/v1/chat/completions"}, paths)
	for _, body := range bodies {
		require.Contains(t, body, `"stream":true`)
		require.NotContains(t, body, "stream_options", "Mistral refuses them")
	}
	require.Equal(t, []string{"Bearer the key of Mistral", "", ""}, keys, "only the first command names the server")
	require.Contains(t, bodies[2], `"model":"gpt-other"`)

	out, errs, code := command("", "show", file)
	require.Zero(t, code, errs)
	require.Equal(t, "Hello.\n\ndetails of the response:\n  {\n    \"system_fingerprint\": \"fp_1\"\n  }\n", out)

	// Export takes the names, too.
	out, errs, code = command("", "export", "--to", "ollama", "--model", "qwen3", file)
	require.Zero(t, code, errs)
	require.Contains(t, out, `{"model":"qwen3","messages":[{"role":"user","content":"Hi"}`)
}

func TestKeyOfAnotherProviderIsNotSentToACompatibleServer(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "the key of OpenAI")
	t.Setenv("DEEPSEEK_API_KEY", "")
	var keys []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer server.Close()

	_, errs, code := command("Hi\n", "chat", "--provider", "deepseek", "--model", "m", "--base-url", server.URL)
	require.Equal(t, 2, code, errs)
	require.Len(t, keys, 1)
	require.NotContains(t, strings.Join(keys, ""), "OpenAI")
}
