package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/dag"
)

// TestServerOnThisMachineThatOnlyTheFileNamesGetsNoKey: a FILE of somebody else may name any port.
func TestServerOnThisMachineThatOnlyTheFileNamesGetsNoKey(t *testing.T) {
	for _, name := range []string{
		"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID",
		"GEMINI_API_KEY", "GOOGLE_API_KEY", "DEEPSEEK_API_KEY",
	} {
		t.Setenv(name, "secret")
	}
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Own: secret")

	var secrets, requests int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		if strings.Contains(r.URL.String(), "secret") {
			secrets++
		}
		for _, values := range r.Header {
			if strings.Contains(strings.Join(values, " "), "secret") {
				secrets++
			}
		}
		w.WriteHeader(http.StatusBadRequest)
	}))
	defer server.Close()

	file := filepath.Join(t.TempDir(), "talk.json")
	for _, provider := range []string{"anthropic", "openai-chat", "openai-responses", "gemini", "ollama", "deepseek"} {
		settings := runSettings{Provider: provider, Model: "m", BaseURL: server.URL}
		secrets, requests = 0, 0
		require.NoError(t, dag.New().User("Hi").WithMetadata(runKey, settings).Save(file))
		_, errs, code := command("", "run", file)
		require.Equal(t, exitBad, code, errs)
		require.Positive(t, requests, provider)
		require.Zero(t, secrets, provider)

		// The same server by a flag gets the key.
		require.NoError(t, dag.New().User("Hi").WithMetadata(runKey, settings).Save(file))
		_, errs, code = command("", "run", file, "--base-url", server.URL)
		require.Equal(t, exitBad, code, errs)
		require.Positive(t, secrets, provider)
	}
}
