package agui_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/agui"
)

// TestProtocolsOwnClient runs @ag-ui/client in node: approval, a tool of the client, state, and a second window. Each
// event has to be valid by the protocol's definitions.
func TestProtocolsOwnClient(t *testing.T) {
	if os.Getenv("PLAIT_AGUI") == "" {
		t.Skip("SKIPPED: PLAIT_AGUI=1 drives the protocol's own client; .ci/agui/install.sh installs it")
	}
	script, err := filepath.Abs(filepath.Join("..", "..", ".ci", "agui", "client.mjs"))
	require.NoError(t, err)
	require.DirExists(t, filepath.Join(filepath.Dir(script), "node_modules"), "install the client by .ci/agui/install.sh")

	remove := executor.Func("delete", "Deletes it.", func(ctx context.Context, _ none) (string, error) {
		return "deleted", agui.State(ctx).Set(map[string]int{"deleted": 1})
	})

	model := apitest.NewScript(
		apitest.Answer(content.Text{Text: "I delete it."}, call("delete")).Think("Hm.", "s"),
		apitest.Call(call("color")),
		apitest.Say("Done."),
		apitest.Call(apitest.Use("helper", executor.Task{Task: "Go."})), apitest.Say("Helped."))

	helper := executor.SubAgent("helper", "Helps.", executor.Agent{Provider: apitest.NewScript(
		apitest.Answer(content.Text{Text: "I look."}, call("look")).Think("Where?", "s"), apitest.Say("There.")),
		Tools: []dag.Tool{executor.Func("look", "Looks.", func(context.Context, none) (string, error) { return "seen", nil })},
		Hooks: []executor.Hook{executor.RequireApproval("look")},
	})

	agent := executor.Agent{
		Provider: model, Tools: []dag.Tool{remove, helper}, Hooks: []executor.Hook{executor.RequireApproval("delete")},
	}

	server := httptest.NewServer(handlerOf(agent, nil))
	defer server.Close()

	client := exec.CommandContext(t.Context(), "node", script, server.URL)
	client.Stderr = os.Stderr
	out, err := client.Output()
	require.NoError(t, err)

	var got struct {
		Types, Open      []string
		Invalid          []any
		Asked            int
		State            map[string]int
		Messages, Window [][2]string
		Helped           [][2]string
	}
	require.NoError(t, json.Unmarshal(out, &got), "%s", out)

	require.Empty(t, got.Invalid)
	require.Equal(t, 1, got.Asked)
	require.Equal(t, []string{"color"}, got.Open)
	require.Equal(t, map[string]int{"deleted": 1}, got.State)
	require.Equal(t, [][2]string{
		{"user", "Delete it."}, {"assistant", "I delete it."}, {"tool", "deleted"}, {"assistant", ""}, {"tool", "blue"},
		{"assistant", "Done."},
	}, got.Messages)
	require.Equal(t, got.Messages, got.Window)
	require.Equal(t, [][2]string{
		{"user", "Help."}, {"assistant", ""}, {"tool", "There."}, // a client keeps results at their calls
		{"assistant", "Helped."},
	}, got.Helped)

	for _, kind := range []string{
		"REASONING_START", "STATE_SNAPSHOT", "TOOL_CALL_RESULT", "MESSAGES_SNAPSHOT",
	} {
		require.Contains(t, got.Types, kind)
	}
}

// TestClientInARealBrowser runs @ag-ui/client in a browser: an approval that another window gives, and a connection
// that is lost in the middle of an answer.
func TestClientInARealBrowser(t *testing.T) {
	if os.Getenv("PLAIT_BROWSER") == "" {
		t.Skip("SKIPPED: PLAIT_BROWSER=1 or firefox drives the protocol's own client in a browser; .ci/agui/install.sh and .ci/browser/install.sh install them")
	}
	script, err := filepath.Abs(filepath.Join("..", "..", ".ci", "agui", "browser.mjs"))
	require.NoError(t, err)

	calls := 0
	remove := executor.Func("delete", "Deletes it.", func(context.Context, none) (string, error) {
		calls++
		return "deleted", nil
	})

	agent := executor.Agent{
		Provider: apitest.NewScript(
			apitest.Answer(content.Text{Text: "I delete it."}, call("delete")), apitest.Say("Half an").Hang(), apitest.Say("Done.")),
		Tools: []dag.Tool{remove}, Hooks: []executor.Hook{executor.RequireApproval("delete")},
	}

	mux := http.NewServeMux()
	var active sync.WaitGroup
	h := handlerOf(agent, nil)
	mux.HandleFunc("POST /agent", func(w http.ResponseWriter, r *http.Request) {
		active.Add(1)
		defer active.Done()
		h.ServeHTTP(w, r)
	})
	mux.HandleFunc("GET /idle", func(http.ResponseWriter, *http.Request) { active.Wait() })
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "<!doctype html><title>chat</title>")
	})

	server := httptest.NewServer(mux)
	defer server.Close()

	client := exec.CommandContext(t.Context(), "node", script, server.URL)
	client.Stderr = os.Stderr
	out, err := client.Output()
	require.NoError(t, err)

	type window struct {
		Types, Asked []string
		Messages     [][2]string
	}
	var got struct {
		Asked, Again, After window
		Errors              []string
	}
	require.NoError(t, json.Unmarshal(out, &got), "%s", out)
	require.Empty(t, got.Errors)

	require.Len(t, got.Asked.Asked, 1)
	require.Equal(t, [][2]string{{"user", "Delete <b>it</b>."}, {"assistant", "I delete it."}}, got.Asked.Messages)
	require.Equal(t, got.Asked.Asked, got.Again.Asked, "another window is asked the same")
	require.Equal(t, got.Asked.Messages, got.Again.Messages)
	require.Equal(t, 1, calls, "the call is executed once")
	require.Equal(t, append(got.Asked.Messages, [][2]string{
		{"tool", "deleted"}, {"assistant", "Half an"}, {"assistant", "Done."}, // what arrived is kept, and continued
	}...), got.After.Messages)
	require.Empty(t, got.After.Asked)
}
