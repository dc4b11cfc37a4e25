package sessions_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/dag/sessions"
)

// model is a local server that answers each request of the Responses API with "Done.".
type model struct {
	*httptest.Server
	mu   sync.Mutex
	last string // the body of the last request
}

func newModel(t *testing.T) *model {
	m := &model{}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			http.NotFound(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		m.mu.Lock()
		m.last = string(body)
		m.mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `event: response.output_item.done
data: {"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"Done."}]}}

event: response.completed
data: {"type":"response.completed","response":{"id":"r","status":"completed","output":[],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}}

`)
	}))
	t.Cleanup(m.Close)
	return m
}

// program runs a program of npm in a home of its own, and returns what it prints.
func program(t *testing.T, home, name string, args ...string) string {
	t.Helper()
	if os.Getenv("PLAIT_SESSIONS") == "" {
		t.Skip("SKIPPED: PLAIT_SESSIONS=1 runs Codex; .ci/sessions/install.sh installs it")
	}
	folder, err := filepath.Abs("../../.ci/sessions")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(folder, "node_modules", ".bin", name), args...)
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "HOME="+home, "FAKE_KEY=x")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestCodexContinuesWhatIsWritten(t *testing.T) {
	m, home := newModel(t), t.TempDir()
	write(t, home+"/.codex/config.toml", fmt.Sprintf(`model = "gpt-5"
model_provider = "fake"
[model_providers.fake]
name = "fake"
base_url = "%s/v1"
wire_api = "responses"
env_key = "FAKE_KEY"
`, m.URL))
	d := open(t, sessions.OpenCode, "testdata/opencode.json").Main()
	var text strings.Builder
	_, err := sessions.Export(sessions.Codex, &text, d, &sessions.ExportOptions{Folder: home, Provider: "fake"})
	require.NoError(t, err)
	id := d.Head().ID().String()
	write(t, home+"/.codex/sessions/2026/11/28/rollout-2026-11-28T07-00-00-"+id+".jsonl", text.String())

	out := program(t, home, "codex", "exec", "resume", "--skip-git-repo-check", id, "And now?")
	require.Contains(t, out, "Done.")
	for _, part := range []string{"Say hello.", "I look first.", `"call_id":"call_1"`, `hello\n`, "It says hello. (6)", "And now?"} {
		require.Contains(t, m.last, part)
	}
}
