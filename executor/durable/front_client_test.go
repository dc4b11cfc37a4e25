package durable

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/agui"
)

// answeringTurns is a model that makes a turn for the last message of the user, and then for each message of results.
func answeringTurns(turns map[string][]apitest.Turn) api.Provider {
	return apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
		text, results := "", 0
		for _, m := range req.Messages {
			switch {
			case len(m.Blocks.ToolResults()) > 0:
				results++
			case m.Role == content.User:
				text, results = m.Blocks.Text(), 0
			}
		}
		return turns[text][results]
	}).Always())
}

// TestProtocolsOwnClientFollowsDurableRuns runs @ag-ui/client over durable runs: an approval, a tool of the client, a
// sub-agent that asks, a connection that the client closes in the middle, and a second window. The runs are executed by
// the process of the handler, and by another one.
func TestProtocolsOwnClientFollowsDurableRuns(t *testing.T) {
	if os.Getenv("PLAIT_AGUI") == "" {
		t.Skip("SKIPPED: PLAIT_AGUI=1 drives the protocol's own client; .ci/agui/install.sh installs it")
	}
	script, err := filepath.Abs(filepath.Join("..", "..", ".ci", "agui", "client.mjs"))
	require.NoError(t, err)
	require.DirExists(t, filepath.Join(filepath.Dir(script), "node_modules"), "install the client by .ci/agui/install.sh")

	for name, here := range map[string]bool{"here": true, "elsewhere": false} {
		t.Run(name, func(t *testing.T) {
			onOne(t, func(w *world) { ownClient(w, script, here) })
		})
	}
}

func ownClient(w *world, script string, here bool) {
	use := func(name string) content.ToolUse { return apitest.Use(name, item{"bolts"}) }
	does := func(name, text string) executor.Tool {
		return tool(name, func(context.Context, string) (string, error) { return text, nil })
	}
	gate := make(chan struct{})
	wait := tool("wait", func(ctx context.Context, _ string) (string, error) {
		select {
		case <-gate:
			return "waited", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})

	// What a sub-agent does is sent to those who follow its turn: wait until the client does.
	var runs *Engine
	there := apitest.Func(func(api.Request) apitest.Turn {
		for here && !runs.followed() {
			time.Sleep(time.Millisecond)
		}
		return apitest.Say("There.")
	})
	helper := executor.SubAgent("helper", "Helps.", executor.Agent{
		Provider: answeringTurns(map[string][]apitest.Turn{
			"Go.": {apitest.Answer(content.Text{Text: "I look."}, use("look")).Think("Where?", "s"), there},
		}),
		Tools: []dag.Tool{does("look", "seen")}, Hooks: []executor.Hook{executor.RequireApproval("look")},
	})
	color := executor.DeferredTool(content.Tool{Name: "color", Description: "Asks for a color.", Schema: `{"type":"object"}`})
	agent := executor.Agent{
		Provider: answeringTurns(map[string][]apitest.Turn{
			"Delete it.": {
				apitest.Answer(content.Text{Text: "I delete it."}, use("delete")).Think("Hm.", "s"), apitest.Call(use("color")),
				apitest.Say("Done."),
			},
			"Help.": {apitest.Call(apitest.Use("helper", executor.Task{Task: "Go."})), apitest.Say("Helped.")},
			"Wait.": {apitest.Call(use("wait")), apitest.Say("Waited.")},
		}),
		Tools: []dag.Tool{does("delete", "deleted"), color, helper, wait},
		Hooks: []executor.Hook{executor.RequireApproval("delete")},
	}

	runs = w.engine(func(o *Options) {
		o.Agents = map[string]executor.Agent{"a": agent}
		o.Call = func(string, dag.Pending) CallOptions { return CallOptions{External: true} }
	})
	w.serve(runs)
	front := runs
	if !here {
		front = w.engine(nil)
	}

	// The tool returns when the handler has noticed that its client left.
	h := agui.Durable(front.Front("a"), &agui.Options{ClientTools: []string{"color"}})
	var once sync.Once
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(rw, r)
		if r.Context().Err() != nil {
			once.Do(func() { close(gate) })
		}
	}))
	defer server.Close()

	client := exec.CommandContext(w.Context(), "node", script, server.URL, "durable")
	client.Stderr = os.Stderr
	out, err := client.Output()
	require.NoError(w, err)
	var got struct {
		Types, Open                   []string
		Invalid                       []any
		Asked                         int
		Messages, Window, Left, Found [][2]string
		Helped                        [][2]string
	}
	require.NoError(w, json.Unmarshal(out, &got), "%s", out)

	require.Empty(w, got.Invalid)
	require.Equal(w, 1, got.Asked)
	require.Equal(w, []string{"color"}, got.Open)
	require.Equal(w, [][2]string{
		{"user", "Delete it."}, {"assistant", "I delete it."}, {"tool", "deleted"}, {"assistant", ""}, {"tool", "blue"},
		{"assistant", "Done."},
	}, got.Messages)
	require.Equal(w, got.Messages, got.Window)
	require.Equal(w, [][2]string{{"user", "Wait."}, {"assistant", ""}}, got.Left)
	require.Equal(w, append(got.Left, [2]string{"tool", "waited"}, [2]string{"assistant", "Waited."}), got.Found)

	helped := [][2]string{{"user", "Help."}, {"assistant", ""}, {"tool", "There."}, {"assistant", "Helped."}}
	if here {
		require.Contains(w, got.Types, "REASONING_START")
	}
	require.Equal(w, helped, got.Helped)
}
