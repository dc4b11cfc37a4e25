package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/executor/acp"
)

// pipes is a connection to a command's standard input and output.
type pipes struct {
	io.Reader
	io.WriteCloser
}

// TestACP runs "plait acp" for a client of the protocol: the mode decides whether it is asked, and the database has the
// session.
func TestACP(t *testing.T) {
	plan := content.ToolUse{ID: "call_1", Name: "update_plan", Input: `{"entries":[{"content":"Answer.","status":"pending"}]}`}
	server := httptest.NewServer(fake.Anthropic(
		fake.AnthropicMessage(content.Text{Text: "I plan."}, plan), fake.AnthropicMessage(content.Text{Text: "Yes."}),
	))
	defer server.Close()
	database := filepath.Join(t.TempDir(), "sessions.db")

	asked := 0
	var errs bytes.Buffer
	editor := &acp.Remote{
		Mode: "ask", Dir: t.TempDir(),
		Permit: func(context.Context, sdk.RequestPermissionRequest) (sdk.RequestPermissionResponse, error) {
			asked++
			return sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeCancelled()}, nil
		},
		Dial: func(context.Context) (io.ReadWriteCloser, error) {
			fromEditor, toAgent := io.Pipe()
			fromAgent, toEditor := io.Pipe()
			go func() {
				plait(context.Background(), []string{
					"acp", database, "--model", "claude-test", "--base-url", server.URL, "--offer", "claude-other",
				}, fromEditor, toEditor, &errs)
				_ = toEditor.Close()
			}()
			return pipes{fromAgent, toAgent}, nil
		},
	}
	d, err := editor.Run(t.Context(), "Can you?")
	require.NoError(t, err, errs.String())
	require.Equal(t, "I plan.Yes.", d.Text())
	require.Zero(t, asked) // a plan changes nothing

	out, list, code := command("", "list", database, "--json")
	require.Equal(t, exitDone, code, list)
	var found struct{ Conversations []struct{ Key string } }
	require.NoError(t, json.Unmarshal([]byte(out), &found))
	require.Len(t, found.Conversations, 1)

	_, list, code = command("", "acp", database)
	require.Equal(t, exitBad, code)
	require.Contains(t, list, "name the provider")
}

// TestACPByTheProtocolsOwnClient drives "plait acp" by the TypeScript SDK, through every method.
func TestACPByTheProtocolsOwnClient(t *testing.T) {
	if os.Getenv("PLAIT_ACP") == "" {
		t.Skip("SKIPPED: PLAIT_ACP=1 drives the protocol's own client; .ci/acp/install.sh installs it")
	}
	script, err := filepath.Abs(filepath.Join("..", "..", ".ci", "acp", "client.mjs"))
	require.NoError(t, err)
	require.DirExists(t, filepath.Join(filepath.Dir(script), "node_modules"), "install the SDK by .ci/acp/install.sh")

	// The test binary is the command, and an MCP server, by its name.
	binary, err := os.Executable()
	require.NoError(t, err)
	folder := t.TempDir()
	for _, name := range []string{"plait", "weather-mcp"} {
		require.NoError(t, os.Symlink(binary, filepath.Join(folder, name)))
	}

	call := func(id, tool, input string) content.ToolUse {
		return content.ToolUse{ID: id, Name: tool, Input: content.JSON(input)}
	}
	answers := fake.Anthropic(
		fake.AnthropicMessage(content.Text{Text: "I fix it."},
			call("1", "update_plan", `{"entries":[{"content":"Fix it.","status":"in_progress"}]}`),
			call("2", "read_file", `{"path":"a.go"}`),
			call("3", "edit_file", `{"path":"a.go","old_text":"package a","new_text":"package b"}`),
			call("4", "run_command", `{"command":"go","arguments":["test"]}`)),
		fake.AnthropicMessage(content.Text{Text: "Fixed."}),
		fake.AnthropicMessage(call("5", "weather_get_weather", `{"city":"Paris"}`)),
		fake.AnthropicMessage(content.Text{Text: "It is warm."}),
		fake.AnthropicMessage(content.Text{Text: "Still there."}),
	)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte("Wait.")) && !bytes.Contains(body, []byte("Still there?")) {
			<-r.Context().Done()
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		answers.ServeHTTP(w, r)
	}))
	defer server.Close()

	client := exec.CommandContext(t.Context(), "node", script, filepath.Join(folder, "plait"), "acp",
		filepath.Join(folder, "sessions.db"), "--model", "claude-test", "--base-url", server.URL, "--offer", "claude-other")
	client.Env = append(os.Environ(), "WEATHER="+filepath.Join(folder, "weather-mcp"))
	client.Stderr = os.Stderr
	out, err := client.Output()
	require.NoError(t, err, "%s", out)
	require.JSONEq(t, `{
		"can": [1, true, "close", "delete", "fork", "list", "resume"],
		"modes": ["ask", "edit", "auto", "read"],
		"stops": ["end_turn", "end_turn", "cancelled", "end_turn"],
		"kinds": ["session_info_update", "agent_message_chunk", "plan", "tool_call", "tool_call_update", "agent_message_chunk"],
		"plan": ["Fix it."],
		"shown": [
			["Read a.go", "read", "/project/a.go", null], ["Edit a.go", "edit", "/project/a.go", "diff"], ["go test", "execute", null, null]
		],
		"options": ["auto", "claude-other"], "unasked": 0, "second": -32600, "unknown": -32002,
		"lists": [1, 2, 1],
		"loaded": ["ask", ["user_message_chunk", "agent_message_chunk", "tool_call", "tool_call_update", "agent_message_chunk",
			"user_message_chunk", "tool_call", "tool_call_update", "agent_message_chunk", "user_message_chunk", "plan"]],
		"resumed": 0,
		"asked": ["Edit a.go", "go test"], "did": ["go test", "release"], "file": "package b"
	}`, string(out), "%s", out)
}
