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

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/dag/sessions"
)

// answers are the streams with "Done.", by the end of the path.
var answers = map[string]string{
	"/responses": `event: response.output_item.done
data: {"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"Done."}]}}

event: response.completed
data: {"type":"response.completed","response":{"id":"r","status":"completed","output":[],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}}

`,
	"/messages": `event: message_start
data: {"type":"message_start","message":{"id":"msg_new","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Done."}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":2}}

event: message_stop
data: {"type":"message_stop"}

`,
	"/chat/completions": `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Done."},"finish_reason":null}]}

data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}

data: [DONE]

`,
}

// model is a local server that answers each request of an API with "Done.".
type model struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
}

func newModel(t *testing.T) *model {
	m := &model{}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := ""
		for end, text := range answers {
			if strings.HasSuffix(r.URL.Path, end) {
				answer = text
			}
		}
		body, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodPost || answer == "" {
			http.NotFound(w, r)
			return
		}
		m.mu.Lock()
		m.bodies = append(m.bodies, string(body))
		m.mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(m.Close)
	return m
}

// home is a user who runs the programs of npm.
type home struct {
	dir string
	env []string
}

// run runs a program, and returns what it prints.
func (h home) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	folder, err := filepath.Abs("../../.ci/sessions")
	require.NoError(t, err)
	binary := filepath.Join(folder, "node_modules", ".bin", name)
	if _, err := os.Stat(binary); os.Getenv("PLAIT_SESSIONS") == "" || err != nil {
		t.Skipf("SKIPPED: PLAIT_SESSIONS=1 runs %s; .ci/sessions/install.sh installs it", name)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir = h.dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + h.dir, "FAKE_KEY=x"}, h.env...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// TestProgramsContinueWhatIsWritten runs each program on a session of another one, and reads what it has made of it.
func TestProgramsContinueWhatIsWritten(t *testing.T) {
	// resume continues the written session with "And now?", and returns what the program prints, and the session.
	for format, resume := range map[sessions.Format]func(t *testing.T, h home, m *model, d dag.DAG, text string) (out, session string){
		sessions.ClaudeCode: resumeClaude, sessions.Codex: resumeCodex, sessions.OpenCode: resumeOpenCode, sessions.Pi: resumePi,
	} {
		t.Run(string(format), func(t *testing.T) {
			t.Parallel()
			m, h := newModel(t), home{dir: t.TempDir()}
			from := sessions.OpenCode
			if format == from {
				from = sessions.Codex
			}
			d := open(t, from, samples[from]).Main()
			var text strings.Builder
			_, err := sessions.Export(format, &text, d, &sessions.ExportOptions{Folder: h.dir, Provider: "fake", Model: "m"})
			require.NoError(t, err)

			out, session := resume(t, h, m, d, text.String())
			require.Contains(t, out, "Done.")
			for _, part := range []string{"Say hello.", "I look first.", "call_1", `hello\n`, "It says hello. (", "And now?"} {
				require.Contains(t, strings.Join(m.bodies, "\n"), part)
			}

			in, err := sessions.Import(format, strings.NewReader(session), nil)
			require.NoError(t, err)
			require.Equal(t, "Done.", in.Main().Text())
			before, after := texts(d), texts(in.Main())
			require.Subset(t, after, before)
			require.Contains(t, after, "And now?")
		})
	}
}

// texts returns the texts of messages and results.
func texts(d dag.DAG) (list []string) {
	for _, m := range d.Messages() {
		for _, b := range m.Blocks.All() {
			switch b := b.(type) {
			case content.Text:
				list = append(list, strings.Trim(b.Text, `"`))
			case content.ToolResult:
				list = append(list, b.Content.Text())
			}
		}
	}
	return list
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// sessionID is the ID that Export derives.
func sessionID(d dag.DAG) string { return d.Head().ID().String() }

func resumeCodex(t *testing.T, h home, m *model, d dag.DAG, text string) (out, session string) {
	write(t, h.dir+"/.codex/config.toml", fmt.Sprintf(`model = "gpt-5"
model_provider = "fake"
[model_providers.fake]
name = "fake"
base_url = "%s/v1"
wire_api = "responses"
env_key = "FAKE_KEY"
`, m.URL))
	path := h.dir + "/.codex/sessions/2026/11/28/rollout-2026-11-28T07-00-00-" + sessionID(d) + ".jsonl"
	write(t, path, text)
	out = h.run(t, "codex", "exec", "resume", "--skip-git-repo-check", sessionID(d), "And now?")
	return out, read(t, path)
}

func resumeClaude(t *testing.T, h home, m *model, d dag.DAG, text string) (out, session string) {
	project := strings.NewReplacer("/", "-", ".", "-", "_", "-").Replace(h.dir)
	path := h.dir + "/.claude/projects/" + project + "/" + sessionID(d) + ".jsonl"
	write(t, path, text)
	h.env = []string{
		"ANTHROPIC_BASE_URL=" + m.URL, "ANTHROPIC_API_KEY=x", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1",
	}
	out = h.run(t, "claude", "--resume", sessionID(d), "--print", "And now?")
	return out, read(t, path)
}

func resumePi(t *testing.T, h home, m *model, d dag.DAG, text string) (out, session string) {
	models := content.JSON(fmt.Sprintf(`{"providers":{"fake":{"baseUrl":"%s/v1","api":"openai-completions","apiKey":"x","models":[{"id":"m"}]}}}`, m.URL))
	write(t, h.dir+"/.pi/agent/models.json", string(models))
	write(t, h.dir+"/session.jsonl", text)
	out = h.run(t, "pi", "--offline", "--provider", "fake", "--model", "m", "--session", "session.jsonl", "--print", "And now?")
	return out, read(t, h.dir+"/session.jsonl")
}

func resumeOpenCode(t *testing.T, h home, m *model, _ dag.DAG, text string) (out, session string) {
	write(t, h.dir+"/.config/opencode/opencode.json", fmt.Sprintf(`{"autoupdate":false,"share":"disabled","model":"fake/m","small_model":"fake/m",
"provider":{"fake":{"npm":"@ai-sdk/openai-compatible","name":"fake","options":{"baseURL":"%s/v1","apiKey":"x"},"models":{"m":{"name":"m"}}}}}`, m.URL))
	write(t, h.dir+"/session.json", text)
	h.env = []string{"OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1"}
	h.run(t, "opencode", "import", "session.json")
	id := text[strings.Index(text, `"id":"ses_`)+len(`"id":"`):]
	id = id[:strings.Index(id, `"`)]
	out = h.run(t, "opencode", "run", "--session", id, "And now?")
	session = h.run(t, "opencode", "export", id)
	return out, session[strings.Index(session, "{"):]
}
