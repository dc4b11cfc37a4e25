package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/mcp"
	"github.com/plait-dev/plait/node"
)

// patience is how long tests wait for what must happen. Only a test that hangs waits for so long.
const patience = 5 * time.Minute

// program is a Dial for this test binary as a server.
func program(t *testing.T, role string) mcp.Dial {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return func() (sdk.Transport, error) {
		command := exec.Command(self)
		command.Env = append(os.Environ(), serverVariable+"="+role)
		return &sdk.CommandTransport{Command: command, TerminateDuration: time.Millisecond}, nil
	}
}

// inMemory is a Dial for a server in this process.
func inMemory(t *testing.T, server *sdk.Server) mcp.Dial {
	t.Helper()
	return func() (sdk.Transport, error) {
		ours, theirs := sdk.NewInMemoryTransports()
		session, err := server.Connect(context.Background(), theirs, nil)
		if err == nil {
			t.Cleanup(func() { _ = session.Close() })
		}
		return ours, err
	}
}

// connect connects, and closes at the end of the test.
func connect(t *testing.T, dial mcp.Dial, o *mcp.Options) *mcp.Server {
	t.Helper()
	s, err := mcp.Connect(t.Context(), dial, o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// run lets a scripted model call tools once each, and returns the results.
func run(t *testing.T, s *mcp.Server, calls ...content.ToolUse) []node.ToolExecution {
	t.Helper()
	model := apitest.NewScript(apitest.Call(calls...), apitest.Say("Done."))
	d, err := executor.Agent{Provider: model, Tools: s.Tools()}.Run(t.Context(), dag.New().User("Go."))
	require.NoError(t, err)
	return executions(d)
}

func executions(d dag.DAG) []node.ToolExecution {
	var all []node.ToolExecution
	for _, n := range d.Nodes() {
		if e, ok := n.Payload().(node.ToolExecution); ok {
			all = append(all, e)
		}
	}
	return all
}

func names(s *mcp.Server) []string {
	all := []string{}
	for _, t := range s.Tools() {
		all = append(all, t.Definition().Name)
	}
	return all
}

func TestResultsOfEachFormBecomeBlocks(t *testing.T) {
	for name, dial := range map[string]mcp.Dial{
		"a program": program(t, "server"),
		"HTTP":      overHTTP(t, newServer()),
		"in memory": inMemory(t, newServer()),
	} {
		t.Run(name, func(t *testing.T) {
			s := connect(t, dial, nil)
			results := run(t, s, apitest.Use("greet", map[string]string{"name": "Ada"}), apitest.Use("media", nil),
				apitest.Use("measure", nil), apitest.Use("greet", map[string]string{"name": "nobody"}), apitest.Use("greet", map[string]int{"name": 1}))

			require.Equal(t, "Hello, Ada", results[0].Result.Text())
			require.JSONEq(t, `[
				{"type":"text","text":"first"},
				{"type":"image","source":{"media_type":"image/png","data":"cG5n"}},
				{"type":"document","source":{"media_type":"audio/wav","data":"d2F2"}},
				{"type":"text","text":"Resource file:///a.txt, a.txt, text/plain"},
				{"type":"text","text":"Resource file:///b.txt:\nb"},
				{"type":"document","source":{"media_type":"application/pdf","data":"cGRm"},"title":"file:///c.pdf"},
				{"type":"image","source":{"media_type":"image/png","data":"cG5n"}}
			]`, results[1].Result.String())
			require.JSONEq(t, `{"celsius":21.5}`, string(results[2].Details))
			require.JSONEq(t, `{"celsius":21.5}`, results[2].Result.Text(), "once, although the server sends it as a text too")
			require.True(t, results[3].IsError)
			require.Equal(t, "nobody is here", results[3].Result.Text())
			require.True(t, results[4].IsError, "arguments are checked before the server gets them")
			require.Contains(t, results[4].Result.Text(), "Validation failed")
		})
	}
}

// overHTTP is a Dial for a server behind HTTP.
func overHTTP(t *testing.T, server *sdk.Server) mcp.Dial {
	t.Helper()
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
	listener := httptest.NewServer(handler)
	t.Cleanup(listener.Close)
	client := listener.Client()
	return mcp.URL(listener.URL, &mcp.URLOptions{Client: client})
}

func TestToolsHaveTheServersDefinitions(t *testing.T) {
	s := connect(t, inMemory(t, newServer()), &mcp.Options{
		Name: "t", Include: func(tool string) bool { return tool == "greet" },
	})
	require.Equal(t, []string{"t_greet"}, names(s))
	def := s.Tools()[0].Definition()
	require.Equal(t, "Greets.", def.Description)
	require.JSONEq(t, `{"type":"object","required":["name"],"additionalProperties":false,
		"properties":{"name":{"type":"string","description":"whom to greet"}}}`, string(def.Schema))
	require.Equal(t, "Hello, Ada", run(t, s, apitest.Use("t_greet", map[string]string{"name": "Ada"}))[0].Result.Text())
}

func TestToolNameIsAcceptedByEveryProviderAndUnique(t *testing.T) {
	require.Equal(t, "greet", mcp.ToolName("", "greet"))
	require.Equal(t, "git_greet-1", mcp.ToolName("git", "greet-1"))

	long := strings.Repeat("n", 100)
	seen := map[string]string{}
	for _, name := range []string{"a.b", "a_b", "a/b", "a b", "", "1", "-", "é", "\x00", "\xff", long, long + "x", "a.b.c", "日本"} {
		made := mcp.ToolName("", name)
		require.NoError(t, content.Tool{Name: made, Description: "d", Schema: `{"type":"object"}`}.Check(), "%q → %q", name, made)
		require.NotContains(t, seen, made, "%q and %q", name, seen[made])
		require.Equal(t, made, mcp.ToolName("", name))
		seen[made] = name
	}
}

func TestProgressOfAServerIsAnUpdate(t *testing.T) {
	// The result is sent when the last update was seen: an update that comes after its result is dropped.
	seen := make(chan struct{})
	server := newServer()
	addRaw(server, "work", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		for i, message := range []string{"begin", "", "end"} {
			p := &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Message: message, Progress: float64(i + 1)}
			if i > 0 {
				p.Total = 3
			}
			if err := r.Session.NotifyProgress(ctx, p); err != nil {
				return nil, err
			}
		}
		select {
		case <-seen:
		case <-ctx.Done():
		}
		return text("worked"), nil
	})

	s := connect(t, inMemory(t, server), nil)
	model := apitest.NewScript(apitest.Call(apitest.Use("work", nil)), apitest.Say("Done."))
	var updates []string
	for event, err := range (executor.Agent{Provider: model, Tools: s.Tools()}).Stream(t.Context(), dag.New().User("Go.")) {
		require.NoError(t, err)
		if u, ok := event.(executor.ToolUpdate); ok {
			updates = append(updates, u.Content.Text())
			if len(updates) == 3 {
				close(seen)
			}
		}
	}
	require.ElementsMatch(t, []string{"begin (1)", "2/3", "end (3/3)"}, updates)
}

func TestCancelledCallIsCancelledAtTheServer(t *testing.T) {
	cancelled := make(chan struct{})
	server := newServer()
	ctx, cancel := context.WithCancel(t.Context())
	addRaw(server, "hang", func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		cancel()
		<-ctx.Done()
		close(cancelled)
		return nil, ctx.Err()
	})
	s := connect(t, inMemory(t, server), nil)
	model := apitest.NewScript(apitest.Call(apitest.Use("hang", nil)))
	_, err := executor.Agent{Provider: model, Tools: s.Tools()}.Run(ctx, dag.New().User("Go."))
	require.ErrorIs(t, err, context.Canceled)
	<-cancelled
}

func TestHangingCallEndsWithItsTimeout(t *testing.T) {
	server := newServer()
	addRaw(server, "hang", func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	s := connect(t, inMemory(t, server), nil)
	tools := s.Tools()
	for i, tool := range tools {
		if tool.Definition().Name == "hang" {
			tools[i] = executor.WithTimeout(tool.(executor.Tool), 50*time.Millisecond)
		}
	}
	model := apitest.NewScript(apitest.Call(apitest.Use("hang", nil), apitest.Use("pid", nil)), apitest.Say("Done."))
	d, err := executor.Agent{Provider: model, Tools: tools}.Run(t.Context(), dag.New().User("Go."))
	require.NoError(t, err)
	results := executions(d)
	require.True(t, results[0].IsError)
	require.Contains(t, results[0].Result.Text(), "exceeded timeout")
	require.False(t, results[1].IsError, "other calls of the same server have their results")
}

func TestServerThatDiesIsConnectedAgain(t *testing.T) {
	s := connect(t, program(t, "server"), nil)
	before := run(t, s, apitest.Use("pid", nil))[0].Result.Text()

	dead := run(t, s, apitest.Use("die", nil))[0]
	require.True(t, dead.IsError)
	require.Contains(t, dead.Result.Text(), mcp.ErrLost.Error())

	after := run(t, s, apitest.Use("pid", nil))[0]
	require.False(t, after.IsError, after.Result.Text())
	require.NotEqual(t, before, after.Result.Text())
}

func TestHugeResultIsAnErrorAndTheServerIsConnectedAgain(t *testing.T) {
	s := connect(t, program(t, "server"), nil)
	huge := run(t, s, apitest.Use("huge", nil))[0]
	require.True(t, huge.IsError)
	require.Less(t, len(huge.Result.Text()), 1000)
	require.False(t, run(t, s, apitest.Use("pid", nil))[0].IsError)
}

func TestCallIsRepeatedOnlyByTrustedHints(t *testing.T) {
	for _, trust := range []bool{false, true} {
		t.Setenv(fileVariable, filepath.Join(t.TempDir(), "called"))
		s := connect(t, program(t, "server"), &mcp.Options{TrustHints: trust})
		result := run(t, s, apitest.Use("dies_once", nil))[0]
		require.Equal(t, !trust, result.IsError, result.Result.Text())
		if trust {
			require.Equal(t, "second call", result.Result.Text())
		} else {
			require.Contains(t, result.Result.Text(), mcp.ErrLost.Error())
		}
	}
}

func TestSilentServerIsATimeout(t *testing.T) {
	_, err := mcp.Connect(t.Context(), program(t, "silent"), &mcp.Options{Timeout: 50 * time.Millisecond})
	require.ErrorContains(t, err, "no connection within 50ms")
}

func TestWhatIsNoServerIsAnError(t *testing.T) {
	_, err := mcp.Connect(t.Context(), program(t, "noise"), nil)
	require.Error(t, err)
	_, err = mcp.Connect(t.Context(), mcp.Command("/does/not/exist"), nil)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = mcp.Connect(t.Context(), nil, nil)
	require.ErrorContains(t, err, "Dial is nil")
	broken := errors.New("no route")
	_, err = mcp.Connect(t.Context(), func() (sdk.Transport, error) { return nil, broken }, nil)
	require.ErrorIs(t, err, broken)
}

func TestToolsThatCannotBeUsedAreLeftOut(t *testing.T) {
	server := newServer()
	for name, schema := range map[string]string{
		"no_object": `{"type":"string"}`, "bad_ref": `{"type":"object","properties":{"a":{"$ref":"#/nowhere"}}}`,
	} {
		addSchema(server, name, schema)
	}
	s := connect(t, inMemory(t, server), nil)
	require.Contains(t, names(s), "greet")
	require.NotContains(t, names(s), "no_object")
	for _, err := range s.LeftOut() {
		require.ErrorIs(t, err, content.ErrTool)
		t.Log(err)
	}
	require.NotEmpty(t, s.LeftOut())
}

func TestSecondToolOfOneNameIsLeftOut(t *testing.T) {
	server := newServer()
	server.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
			result, err := next(ctx, method, r)
			if listed, ok := result.(*sdk.ListToolsResult); ok {
				listed.Tools = append(listed.Tools, &sdk.Tool{Name: "greet", Description: "Another one.", InputSchema: map[string]any{"type": "object"}})
			}
			return result, err
		}
	})
	s := connect(t, inMemory(t, server), nil)
	require.Len(t, s.LeftOut(), 1)
	require.ErrorIs(t, s.LeftOut()[0], mcp.ErrToolName)
	require.Equal(t, "Hello, Ada", run(t, s, apitest.Use("greet", map[string]string{"name": "Ada"}))[0].Result.Text())
}

func addSchema(server *sdk.Server, name, schema string) {
	defer func() { _ = recover() }() // the SDK refuses some of them itself
	server.AddTool(&sdk.Tool{Name: name, InputSchema: json.RawMessage(schema)},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return text("ok"), nil })
}

func toolsOf(r api.Request) []string {
	var all []string
	for _, t := range r.Tools {
		all = append(all, t.Name)
	}
	return all
}

func TestCloseEndsCallsUnderWay(t *testing.T) {
	entered := make(chan struct{})
	server := newServer()
	addRaw(server, "hang", func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		close(entered)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	s := connect(t, inMemory(t, server), nil)
	model := apitest.NewScript(apitest.Call(apitest.Use("hang", nil)), apitest.Say("Done."))
	go func() {
		<-entered
		_ = s.Close()
	}()
	d, err := executor.Agent{Provider: model, Tools: s.Tools(), ToolTimeout: -1}.Run(t.Context(), dag.New().User("Go."))
	require.NoError(t, err)
	require.Contains(t, executions(d)[0].Result.Text(), mcp.ErrClosed.Error())
}

func TestResultThatCannotBeReadIsNotRepeated(t *testing.T) {
	var calls atomic.Int32
	server := newServer()
	server.AddTool(&sdk.Tool{
		Name: "odd", InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true},
	}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		calls.Add(1)
		return &sdk.CallToolResult{Content: []sdk.Content{odd{}}}, nil
	})
	s := connect(t, inMemory(t, server), &mcp.Options{TrustHints: true})
	result := run(t, s, apitest.Use("odd", nil))[0]
	require.True(t, result.IsError)
	require.NotContains(t, result.Result.Text(), mcp.ErrLost.Error())
	require.EqualValues(t, 1, calls.Load(), "it is not repeated")
	require.False(t, run(t, s, apitest.Use("pid", nil))[0].IsError)
}

func TestHookLeavesToolsAsTheProgramDeclaredThem(t *testing.T) {
	server := newServer()
	s := connect(t, inMemory(t, server), nil)
	wrapped := executor.WithTimeout(s.Tools()[0].(executor.Tool), time.Minute)
	name := wrapped.Definition().Name
	d := dag.New().Tools(wrapped).User("Go.")

	turn, err := s.Hook().Next(t.Context(), executor.Turn{DAG: d})
	require.NoError(t, err)
	require.True(t, dag.Equal(d, turn.DAG), "what the program left out is not declared")
	bound, ok := turn.DAG.Tool(name)
	require.True(t, ok)
	require.Equal(t, dag.Tool(wrapped), bound, "the wrapped tool is still bound")

	server.RemoveTools(name)
	require.Eventually(t, s.Stale, patience, time.Millisecond)
	turn, err = s.Hook().Next(t.Context(), executor.Turn{DAG: d})
	require.NoError(t, err)
	require.Empty(t, turn.DAG.ToolDefs(), "a wrapped tool that is gone is withdrawn")
}

// odd is a content of a type that no client knows.
type odd struct{ *sdk.TextContent }

func (odd) MarshalJSON() ([]byte, error) { return []byte(`{"type":"smell"}`), nil }

func TestChangeOfTheListReachesEveryRun(t *testing.T) {
	server := newServer()
	s := connect(t, inMemory(t, server), nil)
	tools, hook := s.Tools(), s.Hook()
	addRaw(server, "new", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return text("new"), nil })
	server.RemoveTools("pid")
	require.Eventually(t, s.Stale, patience, time.Millisecond)

	for range 2 {
		turn, err := hook.Next(t.Context(), executor.Turn{DAG: dag.New().Tools(tools...).User("Go.")})
		require.NoError(t, err)
		var declared []string
		for _, def := range turn.DAG.ToolDefs() {
			declared = append(declared, def.Name)
		}
		require.NotContains(t, declared, "new")
		require.NotContains(t, declared, "pid")
	}
}

func TestClosedServerRefusesCalls(t *testing.T) {
	s := connect(t, inMemory(t, newServer()), nil)
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	_, err := s.Session(t.Context())
	require.ErrorIs(t, err, mcp.ErrClosed)
	require.Contains(t, run(t, s, apitest.Use("pid", nil))[0].Result.Text(), mcp.ErrClosed.Error())
}
