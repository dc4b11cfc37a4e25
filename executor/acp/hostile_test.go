package acp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/acp"
	"github.com/plait-dev/plait/store"
)

// raw is a client that writes any lines.
type raw struct {
	t      *testing.T
	out    io.WriteCloser
	in     *bufio.Reader
	end    func()       // hangs up
	served func() error // returns the result of Serve
}

// rawMessage is what the agent sends.
type rawMessage struct {
	ID     json.RawMessage   `json:"id"`
	Method string            `json:"method"`
	Params json.RawMessage   `json:"params"`
	Result json.RawMessage   `json:"result"`
	Error  *sdk.RequestError `json:"error"`
}

func connect(t *testing.T, agent executor.Agent, o *acp.Options) *raw {
	in, out, served := serve(t, agent, o)
	return &raw{t: t, out: out, in: bufio.NewReader(in), served: served, end: func() {
		_ = out.Close()
		_ = in.Close()
	}}
}

// send writes a line.
func (r *raw) send(line string) {
	r.t.Helper()
	_, err := io.WriteString(r.out, line+"\n")
	require.NoError(r.t, err)
}

// answer reads up to the response with an ID.
func (r *raw) answer(id string) rawMessage {
	r.t.Helper()
	for {
		if m := r.next(); m.Method == "" && string(m.ID) == id {
			return m
		}
	}
}

// next reads a message.
func (r *raw) next() (m rawMessage) {
	r.t.Helper()
	line, err := r.in.ReadBytes('\n')
	require.NoError(r.t, err)
	require.NoError(r.t, json.Unmarshal(line, &m), "%s", line)
	return m
}

// ask sends a line and returns the response with the ID 1.
func (r *raw) ask(line string) string {
	r.t.Helper()
	r.send(line)
	m := r.answer("1")
	if m.Error != nil {
		return fmt.Sprint(m.Error.Code, " ", m.Error.Message)
	}
	return string(m.Result)
}

// open initializes, and opens a session.
func (r *raw) open() (id string) {
	r.t.Helper()
	require.Contains(r.t, r.ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":2}}`), `"delete":{}`)
	var s struct{ SessionID string }
	require.NoError(r.t, json.Unmarshal([]byte(
		r.ask(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/project","mcpServers":[]}}`)), &s))
	return s.SessionID
}

// prompt is the line of a prompt.
func prompt(id int, session, text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}}`,
		id, session, text)
}

func cancel(session string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, session)
}

// openHead returns a stored conversation.
func stored(t *testing.T, s *store.Store, id string) dag.DAG {
	t.Helper()
	c, err := s.Conversation(t.Context(), id)
	require.NoError(t, err)
	return c.DAG()
}

func TestWrongOrderGetsErrors(t *testing.T) {
	r := connect(t, executor.Agent{Provider: apitest.NewScript(apitest.Say("Yes."))}, nil)
	require.Equal(t, "-32600 send initialize first", r.ask(prompt(1, "s", "Hi")))
	require.Equal(t, "-32602 Invalid params", r.ask(`{"id":1,"method":"initialize","params":7}`))
	id := r.open()

	for line, want := range map[string]string{
		`{"id":1,"method":"initialize","params":{"protocolVersion":1}}`:                                                "-32600 initialize was sent before",
		`{"id":1,"method":"session/none"}`:                                                                             "-32601 Method not found",
		`{"id":1,"method":"session/new","params":{"cwd":"relative","mcpServers":[]}}`:                                  "-32600 the working directory is no absolute path",
		`{"id":1,"method":"session/new","params":{"cwd":"/"}}`:                                                         "-32602 Invalid params",
		`{"id":1,"method":"session/load","params":{"sessionId":"x","cwd":"/","mcpServers":[]}}`:                        "-32002 there is no session with this ID",
		`{"id":1,"method":"session/load","params":{"sessionId":"x#y#","cwd":"/","mcpServers":[]}}`:                     "-32002 there is no session with this ID",
		`{"id":1,"method":"session/resume","params":{"sessionId":"\u0000","cwd":"/","mcpServers":[]}}`:                 "-32002 there is no session with this ID",
		`{"id":1,"method":"session/fork","params":{"sessionId":"x","cwd":"/"}}`:                                        "-32002 there is no session with this ID",
		`{"id":1,"method":"session/close","params":{"sessionId":"x"}}`:                                                 "-32002 the session is not open: load or resume it",
		`{"id":1,"method":"session/delete","params":{"sessionId":"x"}}`:                                                "{}",
		`{"id":1,"method":"session/set_mode","params":{"sessionId":"x","modeId":"m"}}`:                                 "-32002 the session is not open: load or resume it",
		`{"id":1,"method":"session/set_mode","params":{"sessionId":"` + id + `","modeId":"m"}}`:                        `-32600 there is no such "mode"`,
		`{"id":1,"method":"session/set_config_option","params":{"sessionId":"` + id + `","configId":"a","value":"b"}}`: `-32600 there is no such "a"`,
		`{"id":1,"method":"session/list","params":{"cursor":"` + strings.Repeat("x", 300) + `"}}`:                      `{"sessions":[]}`,
		`{"id":1,"method":"session/prompt","params":{"sessionId":"` + id + `","prompt":[]}}`:                           "-32602 Invalid params",
		prompt(1, "x", "Hi"): "-32002 the session is not open: load or resume it",
		`{"id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[{"name":"a","command":"/bin/false","args":[],"env":[]}]}}`: "-32600 the agent accepts no MCP servers of the client",
	} {
		require.Equal(t, want, r.ask(line), line)
	}

	// Lines that are no requests: they are answered without an ID, or dropped.
	for _, line := range []string{"nonsense", `[{"id":1}]`, `{"id":{"a":1},"method":"initialize"}`} {
		r.send(line)
		require.NotNil(t, r.answer("null").Error, line)
	}
	for _, line := range []string{"", `{"id":99,"result":{}}`, `{"method":"none"}`, cancel("x"), `{"method":"$/cancel_request","params":3}`} {
		r.send(line)
	}
	require.Equal(t, `{"stopReason":"end_turn"`, r.ask(prompt(1, id, "Are you there?"))[:24])
}

func TestSecondPromptIsRefusedAndTheFirstGoesOn(t *testing.T) {
	waits, goOn := make(chan struct{}), make(chan struct{})
	model := apitest.NewScript(apitest.Func(func(api.Request) apitest.Turn {
		close(waits)
		<-goOn
		return apitest.Say("The first.")
	}))
	kept := store.New(store.Memory())
	r := connect(t, executor.Agent{Provider: model}, &acp.Options{Store: kept})
	id := r.open()
	r.send(prompt(2, id, "One."))
	<-waits
	require.Equal(t, "-32600 a prompt of the session is under way", r.ask(prompt(1, id, "Two.")))
	r.send(prompt(2, id, "Three."))
	require.Equal(t, "the request with this ID is not answered yet", r.answer("2").Error.Message)
	require.Equal(t, "-32600 a prompt of the session is under way",
		r.ask(`{"id":1,"method":"session/load","params":{"sessionId":"`+id+`","cwd":"/","mcpServers":[]}}`))
	close(goOn)
	require.Contains(t, string(r.answer("2").Result), "end_turn")
	require.Equal(t, "The first.", stored(t, kept, id).Text())
	require.Len(t, stored(t, kept, id).Messages(), 2)
}

func TestCancelBehindThePromptIsNotLost(t *testing.T) {
	kept := store.New(store.Memory())
	model := apitest.NewScript(apitest.Func(func(r api.Request) apitest.Turn {
		if r.Messages[len(r.Messages)-1].Blocks.Text() == "Wait." {
			return apitest.Hang() // the cancel may come before the request
		}
		return apitest.Say("Again.")
	}).Always())
	r := connect(t, executor.Agent{Provider: model}, &acp.Options{Store: kept})
	id := r.open()
	r.send(cancel(id)) // of nothing: it does not cancel the next prompt
	go r.send(prompt(2, id, "Wait.") + "\n" + cancel(id))
	require.Contains(t, string(r.answer("2").Result), "cancelled")
	require.Equal(t, "Wait.", stored(t, kept, id).Messages()[0].Blocks.Text())
	require.Contains(t, r.ask(prompt(1, id, "Go on.")), "end_turn")
	require.Equal(t, "Again.", stored(t, kept, id).Text())

	// The general way to cancel a request does the same.
	r = connect(t, executor.Agent{Provider: apitest.NewScript(apitest.Hang())}, nil)
	id = r.open()
	go r.send(prompt(2, id, "Wait.") + "\n" + `{"method":"$/cancel_request","params":{"requestId":2}}`)
	require.Contains(t, string(r.answer("2").Result), "cancelled")
}

// TestPromptOf100MB sends a message that is too long: it gets an error, is not kept in memory, and the session goes on.
func TestPromptOf100MB(t *testing.T) {
	r := connect(t, executor.Agent{Provider: apitest.NewScript(apitest.Say("Yes."))}, nil)
	id := r.open()
	head, tail, _ := strings.Cut(prompt(1, id, "X"), "X")

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	go func() {
		_, _ = io.WriteString(r.out, head)
		mb := bytes.Repeat([]byte("x"), 1<<20)
		for range 100 {
			_, _ = r.out.Write(mb)
		}
		_, _ = io.WriteString(r.out, tail+"\n")
	}()
	require.Contains(t, r.answer("1").Error.Message, "is longer than 16777216")
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(96<<20))
	require.Contains(t, r.ask(prompt(1, id, "Short.")), "end_turn")

	// Without an ID at its beginning, nobody can be answered: the connection ends.
	go func() {
		mb := bytes.Repeat([]byte("x"), 1<<20)
		for range 20 {
			_, _ = r.out.Write(mb)
		}
		_, _ = io.WriteString(r.out, "\n")
	}()
	require.ErrorContains(t, r.served(), "has no ID")
}

// TestClientGoneInMidPrompt loses the client in the middle of a tool call: what was done is stored, and another client
// continues.
func TestClientGoneInMidPrompt(t *testing.T) {
	kept := store.New(store.Memory())
	started := make(chan struct{})
	wait := executor.Func("wait", "Waits.", func(ctx context.Context, _ none) (string, error) {
		close(started)
		<-ctx.Done()
		return "", ctx.Err()
	})
	done := executor.Func("done", "Is done.", func(context.Context, none) (string, error) { return "yes", nil })
	agent := executor.Agent{Tools: []dag.Tool{wait, done}, Strategy: executor.Sequential()}
	agent.Provider = apitest.NewScript(apitest.Answer(content.Text{Text: "Both."}, use("done"), use("wait")))

	r := connect(t, agent, &acp.Options{Store: kept})
	id := r.open()
	r.send(prompt(2, id, "Go."))
	reading := make(chan struct{})
	go func() { // the client reads until it is gone
		defer close(reading)
		_, _ = io.Copy(io.Discard, r.in)
	}()
	<-started
	r.end()
	<-reading
	require.NoError(t, r.served())

	d := stored(t, kept, id)
	require.Empty(t, d.Validate())
	require.Empty(t, d.OpenCalls())
	require.Equal(t, "Go.", d.Messages()[0].Blocks.Text())
	results := d.Messages()[2].Blocks.ToolResults()
	require.Equal(t, "yes", results[0].Content.Text())
	require.True(t, results[1].IsError)

	agent.Provider = apitest.NewScript(apitest.Say("Again."))
	e := edit(t, agent, &acp.Options{Store: kept})
	_, err := e.LoadSession(t.Context(), sdk.LoadSessionRequest{SessionId: sdk.SessionId(id), Cwd: "/project", McpServers: []sdk.McpServer{}})
	require.NoError(t, err)
	require.Contains(t, e.log(), "user: Go.agent: Both.\ncall done (other)\ncall wait (other)\n  completed \"yes\"\n  failed")
	_, err = e.ask(sdk.SessionId(id), "Go on.")
	require.NoError(t, err)
	require.Empty(t, stored(t, kept, id).Validate())
}

// TestClientGoneBeforeItsAnswer leaves the question for approval open in the store. The next prompt declines it.
func TestClientGoneBeforeItsAnswer(t *testing.T) {
	kept := store.New(store.Memory())
	deletes := 0
	remove := executor.Func("delete", "Deletes.", func(context.Context, none) (string, error) {
		deletes++
		return "gone", nil
	})
	agent := executor.Agent{Tools: []dag.Tool{remove}, Hooks: []executor.Hook{executor.RequireApproval()}}
	agent.Provider = apitest.NewScript(apitest.Call(use("delete")))
	r := connect(t, agent, &acp.Options{Store: kept})
	id := r.open()
	r.send(prompt(2, id, "Delete it."))
	for r.next().Method != "session/request_permission" {
	}
	r.end()
	require.NoError(t, r.served())
	require.Len(t, stored(t, kept, id).Pending(), 1)

	agent.Provider = apitest.NewScript(apitest.Say("Not deleted."))
	e := edit(t, agent, &acp.Options{Store: kept})
	_, err := e.ResumeSession(t.Context(), sdk.ResumeSessionRequest{SessionId: sdk.SessionId(id), Cwd: "/project"})
	require.NoError(t, err)
	require.Empty(t, e.log())
	_, err = e.ask(sdk.SessionId(id), "No.")
	require.NoError(t, err)
	require.Zero(t, deletes)
	require.Empty(t, stored(t, kept, id).Pending())
	require.Empty(t, stored(t, kept, id).Validate())
}

// TestClientThatDoesNotRead holds the run back, and loses nothing else: the end of the context ends everything.
func TestClientThatDoesNotRead(t *testing.T) {
	fromClient, toAgent := io.Pipe()
	_, toClient := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- acp.Serve(ctx, executor.Agent{}, fromClient, toClient, &acp.Options{Store: store.New(store.Memory())})
	}()

	// The agent stops reading: the number of requests that it has begun is bounded.
	written := 0
	stuck := make(chan struct{})
	go func() {
		defer close(stuck)
		for i := range 100_000 {
			if _, err := fmt.Fprintf(toAgent, `{"id":%d,"method":"initialize","params":{"protocolVersion":1}}`+"\n", i); err != nil {
				return
			}
			if written++; written == 256 {
				cancel()
			}
		}
	}()
	require.ErrorIs(t, <-served, context.Canceled)
	<-stuck
	require.Less(t, written, 2000)
}

func TestOpenSessionsAreBounded(t *testing.T) {
	r := connect(t, executor.Agent{Provider: apitest.NewScript()}, &acp.Options{Sessions: 2})
	first := r.open()
	const open = `{"id":1,"method":"session/new","params":{"cwd":"/project","mcpServers":[]}}`
	require.Contains(t, r.ask(open), "sessionId")
	require.Equal(t, "-32600 2 sessions are open: close one", r.ask(open))
	require.Equal(t, "{}", r.ask(`{"id":1,"method":"session/close","params":{"sessionId":"`+first+`"}}`))
	require.Contains(t, r.ask(open), "sessionId")
}

// TestErrorsOfRunsStayPrivate sends the kind of an error, and not its text.
func TestErrorsOfRunsStayPrivate(t *testing.T) {
	r := connect(t, executor.Agent{Provider: apitest.NewScript(apitest.Fail(&api.Error{
		Kind: api.ErrAuth, Message: "key sk-123 is wrong",
	}))}, nil)
	require.Equal(t, "-32603 the prompt failed: "+api.ErrAuth.Error(), r.ask(prompt(1, r.open(), "Hi")))
}

func TestRequestsUnderWayAreBounded(t *testing.T) {
	r := connect(t, executor.Agent{Provider: apitest.NewScript(apitest.Hang().Always())}, &acp.Options{Sessions: 300})
	ids := []string{r.open()}
	for len(ids) < 257 {
		var s struct{ SessionID string }
		open := r.ask(`{"id":1,"method":"session/new","params":{"cwd":"/project","mcpServers":[]}}`)
		require.NoError(t, json.Unmarshal([]byte(open), &s))
		ids = append(ids, s.SessionID)
	}

	// The client reads while it writes, as clients do.
	go func() {
		for i, id := range ids {
			_, _ = io.WriteString(r.out, prompt(i+10, id, "Wait.")+"\n")
		}
	}()
	require.Equal(t, "more than 256 requests are not answered yet", r.answer("266").Error.Message)
}
