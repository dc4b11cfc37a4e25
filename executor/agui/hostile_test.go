package agui_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/agui"
	"github.com/plait-dev/plait/internal/webguard"
)

// oneConn is a listener with one connection.
type oneConn struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l oneConn) Close() error {
	close(l.closed)
	return nil
}

func (l oneConn) Addr() net.Addr { return &net.UnixAddr{Name: "one", Net: "unix"} }

// dial serves a handler without time limits of the server. done is closed when the handler has returned.
func dial(t *testing.T, h http.Handler) (client net.Conn, done chan struct{}) {
	l, done := oneConn{make(chan net.Conn, 1), make(chan struct{})}, make(chan struct{})
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(done)
		h.ServeHTTP(w, r)
	})}
	go func() { _ = server.Serve(l) }()
	client, conn := net.Pipe()
	l.conns <- conn
	t.Cleanup(func() { require.NoError(t, errors.Join(client.Close(), server.Close())) })
	return client, done
}

const head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"

func TestClientThatDoesNotReadLosesItsRun(t *testing.T) {
	for name, c := range map[string]struct {
		reads bool // until the model is silent
		after time.Duration
	}{
		"anything":                   {false, webguard.WriteTime},
		"while the model is working": {true, webguard.Beat + webguard.WriteTime},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				agent := executor.Agent{Provider: apitest.NewScript(apitest.Say("Half an answer").Hang())}
				client, done := dial(t, handlerOf(agent, nil))
				begin := time.Now()
				_, err := fmt.Fprintf(client, head, len(ask("Go.")), ask("Go."))
				require.NoError(t, err)
				for in := bufio.NewReader(client); c.reads; {
					line, err := in.ReadString('\n')
					require.NoError(t, err)
					c.reads = !strings.Contains(line, "answer")
				}
				<-done
				require.Equal(t, c.after, time.Since(begin).Truncate(time.Second))
			})
		})
	}
}

func TestUnfinishedBodyIsRefusedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, done := dial(t, handlerOf(executor.Agent{}, nil))
		begin := time.Now()
		_, err := fmt.Fprintf(client, head, 100, `{"threadId":`)
		require.NoError(t, err)
		response, err := http.ReadResponse(bufio.NewReader(client), nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusRequestTimeout, response.StatusCode)
		require.Equal(t, time.Minute, time.Since(begin))
		<-done
	})
}

func TestConnectionIsUsedAgainAfterARun(t *testing.T) {
	h := handlerOf(executor.Agent{Provider: apitest.NewScript(apitest.Say("Hello."), apitest.Say("Again."))}, nil)
	synctest.Test(t, func(t *testing.T) {
		mux := http.NewServeMux()
		mux.Handle("POST /{$}", h)
		mux.HandleFunc("GET /later", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "later") })
		l := oneConn{make(chan net.Conn, 1), make(chan struct{})}
		server := &http.Server{Handler: mux}
		go func() { _ = server.Serve(l) }()
		client, conn := net.Pipe()
		l.conns <- conn
		in := bufio.NewReader(client)

		_, err := fmt.Fprintf(client, head, len(ask("Go.")), ask("Go."))
		require.NoError(t, err)
		response, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, response.Body)
		require.NoError(t, err)

		// Long after the last deadline of the stream.
		time.Sleep(2 * webguard.WriteTime)
		_, err = io.WriteString(client, "GET /later HTTP/1.1\r\nHost: localhost\r\n\r\n")
		require.NoError(t, err)
		response, err = http.ReadResponse(in, nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, response.StatusCode)
		require.NoError(t, errors.Join(client.Close(), server.Close()))
	})
}

func TestOnlyKnownHostsAndSitesAreAnswered(t *testing.T) {
	options := &agui.Options{Hosts: []string{"app.example.com"}, Origins: []string{"https://front.example.com"}}
	every := &agui.Options{Hosts: []string{"*"}}
	for name, c := range map[string]struct {
		options            *agui.Options
		host, origin, site string
		status             int
		says               string
	}{
		"localhost":         {nil, "localhost:8080", "", "", 200, ""},
		"its own page":      {nil, "localhost:8080", "http://localhost:8080", "same-origin", 200, ""},
		"an address":        {nil, "192.0.2.1:8080", "", "", 200, ""},
		"another name":      {nil, "evil.example.com", "", "", 403, "agui.Options.Hosts"},
		"no name":           {nil, "", "", "", 403, "agui.Options.Hosts"},
		"a rebound name":    {options, "evil.example.com", "http://evil.example.com", "same-origin", 403, "agui.Options.Hosts"},
		"its name":          {options, "APP.example.com", "", "", 200, ""},
		"its name and page": {options, "app.example.com", "https://app.example.com", "same-origin", 200, ""},
		"any name":          {every, "other.example.com", "", "", 200, ""},
		"another site":      {options, "app.example.com", "https://evil.example.com", "cross-site", 403, "agui.Options.Origins"},
		"a null origin":     {options, "app.example.com", "null", "", 403, "agui.Options.Origins"},
		"a trusted site":    {options, "app.example.com", "https://front.example.com", "cross-site", 200, ""},
		"no origin":         {options, "app.example.com", "", "cross-site", 403, "agui.Options.Origins"},
	} {
		t.Run(name, func(t *testing.T) {
			h := handlerOf(executor.Agent{Provider: apitest.NewScript(apitest.Say("Hello."))}, c.options)
			r := request(http.MethodPost, ask("Go."))
			r.Host = c.host
			if c.origin != "" {
				r.Header.Set("Origin", c.origin)
			}
			if c.site != "" {
				r.Header.Set("Sec-Fetch-Site", c.site)
			}
			response := httptest.NewRecorder()
			h.ServeHTTP(response, r)
			require.Equal(t, c.status, response.Code, response.Body)
			require.Contains(t, response.Body.String(), c.says)
		})
	}
}

// TestOldAnswerApprovesNoLaterCall sends the answer to a question again when the model makes a call with the same ID.
func TestOldAnswerApprovesNoLaterCall(t *testing.T) {
	calls := 0
	same := content.ToolUse{ID: "the-same", Name: "say", Input: "{}"}
	h := handlerOf(executor.Agent{
		Provider: apitest.NewScript(apitest.Call(same), apitest.Call(same), apitest.Say("Done.")),
		Tools:    []dag.Tool{say("hi", &calls)}, Hooks: []executor.Hook{executor.RequireApproval()},
	}, nil)

	answer := approving(t, post(t, h, ask("Go.")), "resolved", `{"approved":true}`)
	require.Equal(t, "interrupt", last(post(t, h, answer))["outcome"].(map[string]any)["type"])
	require.Equal(t, 1, calls)

	require.Equal(t, "interrupt", last(post(t, h, answer))["outcome"].(map[string]any)["type"])
	require.Equal(t, 1, calls, "the second call has no approval")
}

func TestErrorOfTheAgentsOwnSaveEndsTheRun(t *testing.T) {
	var log bytes.Buffer
	agent := executor.Agent{
		Provider: apitest.NewScript(apitest.Say("Hello.")),
		Save:     func(context.Context, dag.DAG) error { return errors.New("the disk is full") },
	}
	list := post(t, handlerOf(agent, &agui.Options{Log: slog.New(slog.NewTextHandler(&log, nil))}), ask("Go."))
	require.Equal(t, "RUN_ERROR", last(list)["type"])
	require.NotContains(t, fmt.Sprint(list), "disk", "the client gets the kind only")
	require.Contains(t, log.String(), "the disk is full")
}
