package oauth

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/executor/mcp"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
)

// built is the folder with the command; "" before build.
var built string

// build builds the command once.
var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "plait-oauth-*")
	if err != nil {
		return "", err
	}
	built = dir
	path := filepath.Join(dir, "plait.exe")
	if out, err := exec.Command("go", "build", "-ldflags=-w", "-o", path, "github.com/plait-dev/plait/cmd/plait").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(built)
	}
	os.Exit(code)
}

// home is a user with a configuration folder and no browser.
type home struct {
	dir    string
	binary string
	server *protected
}

func newHome(t *testing.T, server *protected) *home {
	if !seedtest.All() {
		t.Skip("SKIPPED: PLAIT_ALL=1 builds the command; the library is tested with the same tables")
	}
	binary, err := build()
	require.NoError(t, err)
	return &home{t.TempDir(), binary, server}
}

func (h *home) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, h.binary, args...)
	cmd.Dir = h.dir
	cmd.Env = append(os.Environ(), "HOME="+h.dir, "XDG_CONFIG_HOME="+h.dir, "AppData="+h.dir, "BROWSER=", "DISPLAY=", "WAYLAND_DISPLAY=")
	return cmd
}

// plait runs a command to its end. No output of any command has a secret.
func (h *home) plait(t *testing.T, in string, args ...string) (out string, code int) {
	t.Helper()
	cmd := h.command(t.Context(), args...)
	cmd.Stdin = strings.NewReader(in)
	text, _ := cmd.CombinedOutput()
	h.server.showsNoSecret(t, string(text))
	return string(text), cmd.ProcessState.ExitCode()
}

// loggingIn is a login under way.
type loggingIn struct {
	*exec.Cmd
	address string
	errs    *bufio.Reader
}

// login starts a login, up to the printed address.
func (h *home) login(t *testing.T, args ...string) *loggingIn {
	t.Helper()
	l := &loggingIn{Cmd: h.command(t.Context(), append([]string{"mcp", "login", h.server.address}, args...)...)}
	pipe, err := l.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, l.Start())
	t.Cleanup(func() { _ = l.Process.Kill() })
	l.errs = bufio.NewReader(pipe)
	line, err := l.errs.ReadString('\n')
	require.NoError(t, err, line)
	address, found := strings.CutPrefix(strings.TrimSpace(line), "log in at ")
	require.True(t, found, line)
	l.address = address
	return l
}

// end waits for the command. It returns what else it printed.
func (l *loggingIn) end(t *testing.T, h *home) (text string, code int) {
	rest, err := io.ReadAll(l.errs)
	require.NoError(t, err)
	_ = l.Wait()
	h.server.showsNoSecret(t, string(rest))
	return string(rest), l.ProcessState.ExitCode()
}

// visit opens an address as a browser does, and returns the last page.
func visit(t *testing.T, address string) (status int, page string) {
	response, err := http.Get(address)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}

// api is a model that calls the tool once, in each conversation.
func api(t *testing.T) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		if strings.Contains(string(body), `"role":"tool"`) {
			fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"content":"Done."},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
			return
		}
		fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function",`+
			`"function":{"name":"headers","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(server.Close)
	return server.URL + "/v1"
}

func TestLoginByTheCommand(t *testing.T) {
	a := newAuthority(t)
	h := newHome(t, newProtected(t, a))
	model := api(t)
	chat := func() (string, int) {
		return h.plait(t, "Which header?\n", "chat", "talk.json", "--provider", "llama.cpp", "--model", "m", "--base-url", model,
			"--mcp", h.server.address, "--allow", "*")
	}

	out, code := chat()
	require.Equal(t, 2, code, out)
	require.Contains(t, out, "the server requires a login; run: plait mcp login "+h.server.address)

	l := h.login(t)
	status, page := visit(t, l.address)
	require.Equal(t, http.StatusOK, status, page)
	out, code = l.end(t, h)
	require.Zero(t, code, out)
	require.Contains(t, out, "logged in: the server has 1 tool\n")
	out, code = h.plait(t, "", "mcp", "login", h.server.address)
	require.Zero(t, code, out)
	require.Contains(t, out, "you are logged in already")

	out, code = h.plait(t, "", "mcp", "list")
	require.Zero(t, code, out)
	require.Equal(t, h.server.address+"  renewed  offline_access openid tools\n", out)

	// The server repeats the token: to the model, in the file, and in errors.
	a.endAccess()
	out, code = chat()
	require.Zero(t, code, out)
	require.Contains(t, out, "Done.")
	saved := read(t, filepath.Join(h.dir, "talk.json"))
	require.Contains(t, saved, "the header is Bearer REDACTED")
	h.server.showsNoSecret(t, saved)

	a.endLogins()
	out, code = chat()
	require.Equal(t, 2, code, out)
	require.Contains(t, out, "run: plait mcp login")

	out, code = h.plait(t, "", "mcp", "logout", h.server.address)
	require.Zero(t, code, out)
	out, code = h.plait(t, "", "mcp", "list")
	require.Zero(t, code)
	require.Empty(t, out)
}

// relogin runs plait mcp login to its end. A person who is asked answers as ada does.
func (h *home) relogin(t *testing.T, ada *person) (out string, code int) {
	cmd := h.command(t.Context(), "mcp", "login", h.server.address)
	pipe, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	l := &loggingIn{Cmd: cmd, errs: bufio.NewReader(pipe)}
	line, _ := l.errs.ReadString('\n')
	if address, asked := strings.CutPrefix(strings.TrimSpace(line), "log in at "); asked {
		back, err := ada.oauth().Login(t.Context(), address)
		require.NoError(t, err)
		redirect, err := redirectOf(address)
		require.NoError(t, err)
		visit(t, redirect+"?"+back.Encode())
	}
	out, code = l.end(t, h)
	return line + out, code
}

// file returns the path of the token, and the token.
func (h *home) file(t *testing.T) (path string, saved struct {
	Server string    `json:"server"`
	Token  mcp.Token `json:"token"`
}) {
	files, err := filepath.Glob(filepath.Join(h.dir, "plait", "mcp", "*.json"))
	require.NoError(t, err)
	if len(files) == 0 {
		return "", saved
	}
	require.Len(t, files, 1)
	require.NoError(t, json.Unmarshal([]byte(read(t, files[0])), &saved))
	return files[0], saved
}

// TestBadTokensByTheCommand has a person log in by the command, spoils the token, and logs in again.
func TestBadTokensByTheCommand(t *testing.T) {
	for name, c := range badTokens {
		t.Run(name, func(t *testing.T) {
			a := newAuthority(t)
			h := newHome(t, newProtected(t, a))
			ada := &person{}
			out, code := h.relogin(t, ada)
			require.Zero(t, code, out)
			path, saved := h.file(t)
			ada.token = saved.Token
			c.spoil(t, a, h.server, ada)
			if saved.Token = ada.token; saved.Token.Access == "" {
				require.NoError(t, os.Remove(path))
			} else {
				text, err := json.Marshal(saved)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(path, text, 0o600))
			}

			asked := ada.asked.Load()
			out, code = h.relogin(t, ada)
			require.Equal(t, c.asked, ada.asked.Load()-asked, out)
			if c.failed {
				require.Equal(t, 2, code, out)
				require.Contains(t, out, "the server requires a login")
				return
			}
			require.Zero(t, code, out)
			_, saved = h.file(t)
			_, err := h.server.check(t.Context(), saved.Token.Access)
			require.NoError(t, err)
		})
	}
}

// TestMisleadingMetadataByTheCommand: nothing is sent elsewhere, and nothing is kept.
func TestMisleadingMetadataByTheCommand(t *testing.T) {
	var sent atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { sent.Add(1) }))
	t.Cleanup(elsewhere.Close)
	for name, c := range misleadingTo(elsewhere.URL) {
		t.Run(name, func(t *testing.T) {
			a := newAuthority(t)
			h := newHome(t, newProtected(t, a))
			c.change(a, h.server)
			ada := &person{}
			out, code := h.relogin(t, ada)
			require.Equal(t, 2, code, out)
			require.Equal(t, c.asked, ada.asked.Load())
			path, _ := h.file(t)
			require.Empty(t, path)
			require.Zero(t, sent.Load())
		})
	}
}

// TestLogoutByTheCommand revokes the token if it can, and removes it in any case.
func TestLogoutByTheCommand(t *testing.T) {
	for name, want := range map[string]string{"/none": "logged out\n", "/revoke": "the token is removed, but not revoked: "} {
		a := newAuthority(t)
		h := newHome(t, newProtected(t, a))
		out, code := h.relogin(t, &person{})
		require.Zero(t, code, out)
		_, saved := h.file(t)
		a.instead[name] = func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, saved.Token.Refresh, http.StatusServiceUnavailable)
		}

		out, code = h.plait(t, "", "mcp", "logout", h.server.address)
		require.Zero(t, code, out)
		require.Contains(t, out, want)
		path, _ := h.file(t)
		require.Empty(t, path)
		_, err := h.server.check(t.Context(), saved.Token.Access)
		require.Equal(t, name == "/none", err != nil, "%v", err)
	}
}

// TestTwoLoginsAtOnce: each login takes its own answer, and one of the two tokens is kept whole.
func TestTwoLoginsAtOnce(t *testing.T) {
	h := newHome(t, newProtected(t, newAuthority(t)))
	one, two := h.login(t), h.login(t)

	// The answer of the first login at the port of the second one.
	back, err := browse(one.address)
	require.NoError(t, err)
	other, err := redirectOf(two.address)
	require.NoError(t, err)
	status, page := visit(t, other+"?"+back.Encode())
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, page, "another login")

	visit(t, two.address)
	out, code := two.end(t, h)
	require.Zero(t, code, out)
	own, err := redirectOf(one.address)
	require.NoError(t, err)
	status, _ = visit(t, own+"?"+back.Encode())
	require.Equal(t, http.StatusOK, status)
	out, code = one.end(t, h)
	require.Zero(t, code, out)
	out, code = h.plait(t, "", "mcp", "login", h.server.address)
	require.Zero(t, code, out)
	require.Contains(t, out, "logged in already")
}

func TestLoginThatIsInterruptedEnds(t *testing.T) {
	h := newHome(t, newProtected(t, newAuthority(t)))
	l := h.login(t)
	require.NoError(t, l.Process.Signal(os.Interrupt))
	out, code := l.end(t, h)
	require.Equal(t, 2, code, out)
	out, code = h.plait(t, "", "mcp", "list")
	require.Zero(t, code)
	require.Empty(t, out)
}
