package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/executor/mcp"
)

const loginServer = "https://mcp.example.com/mcp"

// configFolder gives the test a configuration folder of its own.
func configFolder(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"XDG_CONFIG_HOME", "HOME", "AppData"} {
		t.Setenv(name, dir)
	}
}

// saveLogin saves a token for a server, and returns the file.
func saveLogin(t *testing.T, server string) loginFile {
	file := loginOf(server)
	require.NoError(t, file.update(t.Context(), func(old mcp.Token) (mcp.Token, error) {
		require.Empty(t, old)
		return mcp.Token{Access: "very-secret", Refresh: "more-secret", ClientID: "c", Address: "https://auth.example.com/token"}, nil
	}))
	return file
}

// keepToken changes nothing.
func keepToken(old mcp.Token) (mcp.Token, error) { return old, nil }

func TestTokenIsInAFileThatOnlyTheUserReads(t *testing.T) {
	configFolder(t)
	missing := loginOf(loginServer)
	require.NoError(t, missing.update(t.Context(), keepToken))
	dir, err := loginFolder()
	require.NoError(t, err)
	require.NoDirExists(t, dir, "a server without logins leaves nothing behind")

	file := saveLogin(t, loginServer)
	if runtime.GOOS != "windows" {
		for path, mode := range map[string]fs.FileMode{file.path: 0o600, dir: 0o700 | fs.ModeDir} {
			about, err := os.Stat(path)
			require.NoError(t, err)
			require.Equal(t, mode, about.Mode())
		}
	}

	// A token as text is no token, whatever the verb.
	saved, err := file.read()
	require.NoError(t, err)
	require.Equal(t, "very-secret", saved.Token.Access)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		require.NotContains(t, fmt.Sprintf(verb, saved.Token), "secret", verb)
		require.NotContains(t, fmt.Sprintf(verb, &saved), "secret", verb)
	}

	// A change that fails changes nothing.
	failure := errors.New("no")
	require.ErrorIs(t, file.update(t.Context(), func(mcp.Token) (mcp.Token, error) { return mcp.Token{}, failure }), failure)
	again, err := file.read()
	require.NoError(t, err)
	require.Equal(t, saved, again)
	left, err := filepath.Glob(filepath.Join(dir, ".login-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestChangesOfATokenComeOneAfterTheOther(t *testing.T) {
	configFolder(t)
	saveLogin(t, loginServer)
	var changes sync.WaitGroup
	for range 8 {
		changes.Go(func() {
			assert.NoError(t, loginOf(loginServer).update(t.Context(), func(old mcp.Token) (mcp.Token, error) {
				old.Scopes = append(old.Scopes, "one more")
				return old, nil
			}))
		})
	}
	changes.Wait()
	saved, err := loginOf(loginServer).read()
	require.NoError(t, err)
	require.Len(t, saved.Token.Scopes, 8)

	// Who waits for another program can give up.
	require.NoError(t, loginOf(loginServer).update(t.Context(), func(old mcp.Token) (mcp.Token, error) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, loginOf(loginServer).update(ctx, keepToken), context.Canceled)
		return old, nil
	}))
}

// TestFileOfALoginThatCannotBeTrusted is used by no command, shows no token, and is removed by logout.
func TestFileOfALoginThatCannotBeTrusted(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, f loginFile){
		"readable by others":  func(t *testing.T, f loginFile) { require.NoError(t, os.Chmod(f.path, 0o644)) },
		"readable by a group": func(t *testing.T, f loginFile) { require.NoError(t, os.Chmod(f.path, 0o640)) },
		"a folder": func(t *testing.T, f loginFile) {
			require.NoError(t, os.Remove(f.path))
			require.NoError(t, os.Mkdir(f.path, 0o700))
		},
		"empty":   func(t *testing.T, f loginFile) { require.NoError(t, os.WriteFile(f.path, nil, 0o600)) },
		"cut off": func(t *testing.T, f loginFile) { require.NoError(t, os.Truncate(f.path, 60)) },
		"no JSON": func(t *testing.T, f loginFile) {
			require.NoError(t, os.WriteFile(f.path, []byte("very-secret"), 0o600))
		},
		"another JSON": func(t *testing.T, f loginFile) {
			require.NoError(t, os.WriteFile(f.path, []byte(`{"token":"very-secret"}`), 0o600))
		},
		"of another server": func(t *testing.T, f loginFile) {
			other := saveLogin(t, "https://other.example.com")
			require.NoError(t, os.Rename(other.path, f.path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS == "windows" && strings.HasPrefix(name, "readable") {
				t.Skip("SKIPPED: Windows has no such modes")
			}
			configFolder(t)
			sent := make(chan string, 10)
			listener := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				sent <- r.Header.Get("Authorization")
			}))
			t.Cleanup(listener.Close)
			spoil(t, saveLogin(t, listener.URL))

			for _, args := range [][]string{
				{"mcp", "login", listener.URL, "--no-browser"}, {"run", "new.json", "--user", "Hi.", "--mcp", listener.URL},
			} {
				_, errs, code := command("", args...)
				require.Equal(t, exitBad, code, args)
				require.Contains(t, errs, "'plait mcp logout' removes it")
				require.NotContains(t, errs, "secret")
			}
			out, _, code := command("", "mcp", "list")
			require.Equal(t, exitDone, code)
			require.NotContains(t, out, "secret")
			require.Empty(t, sent, "no request was sent")

			_, errs, code := command("", "mcp", "logout", listener.URL)
			require.Equal(t, exitDone, code, errs)
			_, errs, code = command("", "mcp", "logout", listener.URL)
			require.Equal(t, exitBad, code)
			require.Contains(t, errs, "there is no login at")
		})
	}
}

func TestListOfLoginsHasNoToken(t *testing.T) {
	configFolder(t)
	out, errs, code := command("", "mcp", "list", "--json")
	require.Equal(t, exitDone, code, errs)
	require.Equal(t, "[]\n", out)

	saveLogin(t, loginServer+"?key=very-secret")
	require.NoError(t, loginOf("https://b.example.com").update(t.Context(), func(mcp.Token) (mcp.Token, error) {
		return mcp.Token{Access: "very-secret", Ends: time.Now().Add(time.Hour), Scopes: []string{"a", "b\x1b[2J"}}, nil
	}))
	for _, args := range [][]string{{"mcp", "list"}, {"mcp", "list", "--json"}} {
		out, errs, code := command("", args...)
		require.Equal(t, exitDone, code, errs)
		require.Contains(t, out, loginServer)
		require.NotContains(t, out, "secret")
		require.NotContains(t, out, "\x1b")
	}
	var listed []listedLogin
	out, _, _ = command("", "mcp", "list", "--json")
	require.NoError(t, json.Unmarshal([]byte(out), &listed))
	require.Len(t, listed, 2)
}

func TestPortOfALoginIsTaken(t *testing.T) {
	configFolder(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	_, errs, code := command("", "mcp", "login", loginServer, "--port", port)
	require.Equal(t, exitBad, code)
	require.Contains(t, errs, "port "+port+", to which the login page comes back, is not free")
}

func TestLoginWithoutServer(t *testing.T) {
	configFolder(t)
	for args, want := range map[string]string{
		"npx server":           "is no URL",
		"ftp://example.com":    "is no URL",
		"http://127.0.0.1:1/x": "connection refused",
	} {
		_, errs, code := command("", "mcp", "login", args)
		require.Equal(t, exitBad, code)
		require.Contains(t, errs, want)
	}
}

// TestOnlyTheAnswerOfThisLoginCounts: any page and any program may call the port.
func TestOnlyTheAnswerOfThisLoginCounts(t *testing.T) {
	t.Setenv("BROWSER", "")
	t.Setenv("DISPLAY", "")
	t.Setenv("WAYLAND_DISPLAY", "")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	said, in := make(lines, 20), make(lines)
	s := &streams{in: in, err: said}

	answered := make(chan string, 1)
	go func() {
		back, err := s.sendPerson(t.Context(), listener, "https://auth.example.com/login?state=mine", true)
		assert.NoError(t, err)
		answered <- back.Get("code")
	}()
	require.Equal(t, "log in at https://auth.example.com/login?state=mine\n", <-said)
	require.Contains(t, <-said, "paste")

	for path, want := range map[string]int{
		"/callback?code=1&state=another": http.StatusBadRequest, "/callback?code=1": http.StatusBadRequest,
		"/callback": http.StatusBadRequest, "/": http.StatusNotFound,
	} {
		response, err := http.Get("http://" + listener.Addr().String() + path)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, want, response.StatusCode, path)
	}
	for _, line := range []string{"yes\n", "http://127.0.0.1/callback?code=1&state=another\n", "%zz\n"} {
		in <- line
		require.Contains(t, <-said, "not the address")
	}
	in <- "http://127.0.0.1/callback?code=pasted&state=mine\n"
	require.Equal(t, "pasted", <-answered)
}

// lines is a writer and a reader of lines.
type lines chan string

func (l lines) Write(p []byte) (int, error) { l <- string(p); return len(p), nil }
func (l lines) Read(p []byte) (int, error)  { return copy(p, <-l), nil }
