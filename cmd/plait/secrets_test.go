package main

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestASecretIsNeitherSavedNorPrinted runs against a server that repeats the key in its error, in several forms.
func TestASecretIsNeitherSavedNorPrinted(t *testing.T) {
	const key, password, parameter = "sk-secret+0123456789", "hunter2-hunter2", "AIza-0123456789"
	for _, name := range []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"} {
		t.Setenv(name, key)
	}
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "")
	t.Setenv("GOOGLE_API_KEY", "")

	for name, body := range map[string]string{
		"JSON":    fmt.Sprintf(`{"error":{"type":"authentication_error","code":"invalid_api_key","message":"bad key %s\u002b0123456789"}}`, key[:9]),
		"lines":   fmt.Sprintf(`{"error":{"message":"bad key %s\n  %s"}}`, key[:12], key[12:]),
		"percent": fmt.Sprintf(`{"error":{"message":"bad key %s"}}`, url.QueryEscape(key)),
		"base64":  fmt.Sprintf(`{"error":{"message":"bad key %s"}}`, base64.StdEncoding.EncodeToString([]byte(key))),
		"text":    "<html>" + key + "</html>",
	} {
		for _, provider := range []string{"anthropic", "openai-chat", "openai-responses", "gemini"} {
			t.Run(provider+"/"+name, func(t *testing.T) {
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(http.StatusUnauthorized)
					_, _ = w.Write([]byte(body))
				}))
				defer server.Close()

				file := question(t)
				tape := filepath.Join(t.TempDir(), "tape.json")
				address := strings.Replace(server.URL, "http://", "http://me:"+password+"@", 1) + "/?key=" + parameter
				_, errs, code := command("", "run", file, "--provider", provider, "--model", "m", "--base-url", address, "--defer-tools", "--record", tape)
				require.Equal(t, exitBad, code, errs)
				require.Contains(t, errs, "401")

				saved, err := os.ReadFile(file)
				require.NoError(t, err)
				taped, err := os.ReadFile(tape)
				require.NoError(t, err)
				log, _, _ := command("", "log", file, "--json")
				shown, _, _ := command("", "show", file, "--json")
				require.Contains(t, string(saved), "REDACTED@127.0.0.1")
				for where, text := range map[string]string{"FILE": string(saved), "stderr": errs, "tape": string(taped), "log": log, "show": shown} {
					for _, secret := range []string{"0123456789", key[:12], password, parameter, "c2stc2VjcmV0"} {
						require.NotContains(t, text, secret, where)
					}
				}

				// The password is not there to be used again.
				_, errs, code = command("", "run", file, "--defer-tools")
				require.Equal(t, exitBad, code)
				require.Contains(t, errs, "name it again with --base-url")
			})
		}
	}
}

// TestAnAddressThatIsNoneIsRefusedAtOnce: without a scheme it was tried four times, over seconds.
func TestAnAddressThatIsNoneIsRefusedAtOnce(t *testing.T) {
	for address, want := range map[string]string{
		"localhost:8080":        `plait: --base-url: not the address of an API: "localhost:8080": write http://localhost:8080`,
		"ftp://localhost":       "write http:// or https:// in place of ftp://",
		"http://":               "it names no host: write it like http://localhost:8080",
		"http://local host":     "it contains a space or a control character",
		"http://localhost\x1b[": "it contains a space or a control character",
	} {
		file := question(t)
		before, err := os.ReadFile(file)
		require.NoError(t, err)
		_, errs, code := command("", "run", file, "--provider", "anthropic", "--model", "m", "--defer-tools", "--base-url", address)
		require.Equal(t, exitBad, code)
		require.Contains(t, errs, want)
		require.NotContains(t, errs, "attempt")
		after, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(before), string(after))
	}
}
