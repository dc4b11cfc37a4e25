package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http/httptest"
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
