package acp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/acp"
	"github.com/plait-dev/plait/executor/mcp"
	"github.com/plait-dev/plait/store"
)

// TestSessionsInAStore lists, loads, resumes, closes, forks and deletes sessions of two editors.
func TestSessionsInAStore(t *testing.T) {
	kept := store.New(store.Memory())
	foreign, err := kept.Conversation(t.Context(), "bob/secret")
	require.NoError(t, err)
	require.NoError(t, foreign.Append(t.Context(), dag.New().User("Not yours.")))

	model := apitest.NewScript(apitest.Say("One."), apitest.Say("Two."), apitest.Say("Fork."), apitest.Say("Main."))
	agent := executor.Agent{Provider: model}
	o := &acp.Options{Store: kept, Prefix: "ann/"}
	first := edit(t, agent, o)
	id := first.open()
	_, err = first.ask(id, "First.")
	require.NoError(t, err)

	// Another editor sees it, with its title and its directory, and none of Bob's.
	second := edit(t, agent, o)
	list, err := second.ListSessions(t.Context(), sdk.ListSessionsRequest{Cwd: sdk.Ptr("/project")})
	require.NoError(t, err)
	require.Len(t, list.Sessions, 1)
	require.Equal(t, id, list.Sessions[0].SessionId)
	require.Equal(t, "First.", *list.Sessions[0].Title)
	require.NotEmpty(t, *list.Sessions[0].UpdatedAt)
	elsewhere, err := second.ListSessions(t.Context(), sdk.ListSessionsRequest{Cwd: sdk.Ptr("/home")})
	require.NoError(t, err)
	require.Empty(t, elsewhere.Sessions)
	_, err = second.LoadSession(t.Context(), sdk.LoadSessionRequest{
		SessionId: "../bob/secret", Cwd: "/project", McpServers: []sdk.McpServer{},
	})
	require.ErrorContains(t, err, "there is no session with this ID")

	_, err = second.LoadSession(t.Context(), sdk.LoadSessionRequest{SessionId: id, Cwd: "/project", McpServers: []sdk.McpServer{}})
	require.NoError(t, err)
	require.Equal(t, "user: First.agent: One.\n", second.log())

	// Each continues what the other has added.
	_, err = second.ask(id, "Second.")
	require.NoError(t, err)

	// A fork shares what was before, and both go on by themselves.
	fork, err := first.UnstableForkSession(t.Context(), sdk.UnstableForkSessionRequest{SessionId: id, Cwd: "/fork"})
	require.NoError(t, err)
	_, err = first.ask(fork.SessionId, "In the fork.")
	require.NoError(t, err)
	_, err = first.ask(id, "In main.")
	require.NoError(t, err)
	require.Len(t, stored(t, kept, "ann/"+string(id)).Messages(), 6)
	require.Len(t, model.Requests()[3].Messages, 5)
	list, err = second.ListSessions(t.Context(), sdk.ListSessionsRequest{})
	require.NoError(t, err)
	require.Len(t, list.Sessions, 2)

	// A deleted session leaves its fork.
	raw := connect(t, agent, o)
	raw.open()
	_, err = first.CloseSession(t.Context(), sdk.CloseSessionRequest{SessionId: id})
	require.NoError(t, err)
	_, err = first.ask(id, "Closed.")
	require.ErrorContains(t, err, "the session is not open")
	require.Equal(t, "{}", raw.ask(fmt.Sprintf(`{"id":1,"method":"session/delete","params":{"sessionId":%q}}`, id)))
	list, err = second.ListSessions(t.Context(), sdk.ListSessionsRequest{})
	require.NoError(t, err)
	require.Len(t, list.Sessions, 1)
	require.Equal(t, fork.SessionId, list.Sessions[0].SessionId)
	require.Equal(t, "/fork", list.Sessions[0].Cwd)
	second.clear()
	_, err = second.LoadSession(t.Context(), sdk.LoadSessionRequest{SessionId: fork.SessionId, Cwd: "/x", McpServers: []sdk.McpServer{}})
	require.NoError(t, err)
	require.Equal(t, "user: First.agent: One.user: Second.agent: Two.user: In the fork.agent: Fork.\n", second.log())
}

func TestListHasPages(t *testing.T) {
	kept := store.New(store.Memory())
	for i := range 120 {
		c, err := kept.Conversation(t.Context(), fmt.Sprintf("%03d", i))
		require.NoError(t, err)
		require.NoError(t, c.Append(t.Context(), dag.New().User("Hi.")))
	}
	e := edit(t, executor.Agent{}, &acp.Options{Store: kept})
	var sizes []int
	for cursor := (*string)(nil); ; {
		list, err := e.ListSessions(t.Context(), sdk.ListSessionsRequest{Cursor: cursor})
		require.NoError(t, err)
		sizes = append(sizes, len(list.Sessions))
		if cursor = list.NextCursor; cursor == nil {
			break
		}
	}
	require.Equal(t, []int{50, 50, 20}, sizes)
}

// approves returns an agent whose tool needs approval, and the number of calls.
func approves(turns ...apitest.Turn) (executor.Agent, *int) {
	calls := 0
	remove := executor.Func("delete", "Deletes.", func(context.Context, none) (string, error) {
		calls++
		return "gone", nil
	})
	return executor.Agent{
		Provider: apitest.NewScript(turns...), Tools: []dag.Tool{remove}, Hooks: []executor.Hook{executor.RequireApproval()},
	}, &calls
}

func TestPermissions(t *testing.T) {
	agent, calls := approves(
		apitest.Call(use("delete")), apitest.Say("1"), apitest.Call(use("delete")), apitest.Say("2"),
		apitest.Call(use("delete")), apitest.Say("3"), apitest.Call(use("delete")), apitest.Say("4"))
	kept := store.New(store.Memory())
	e := edit(t, agent, &acp.Options{Store: kept})
	id := e.open()
	for _, c := range []struct {
		answer string
		calls  int
		asked  bool
		end    sdk.StopReason
	}{
		{"allow", 1, true, sdk.StopReasonEndTurn}, {"reject", 1, true, sdk.StopReasonEndTurn},
		{"always", 2, true, sdk.StopReasonEndTurn}, {"reject", 3, false, sdk.StopReasonEndTurn},
	} {
		e.clear()
		e.answer = func(_ context.Context, r sdk.RequestPermissionRequest) (string, error) {
			require.Len(t, r.Options, 4)
			require.Equal(t, "delete", *r.ToolCall.Title)
			return c.answer, nil
		}
		stop, err := e.ask(id, "Delete it.")
		require.NoError(t, err)
		require.Equal(t, c.end, stop)
		require.Equal(t, c.calls, *calls)
		require.Equal(t, c.asked, len(e.did) > 0)
	}
	require.Empty(t, stored(t, kept, string(id)).Validate())
}

// TestAnswersThatApproveNothing declines, or cancels the prompt.
func TestAnswersThatApproveNothing(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(context.Context, sdk.RequestPermissionRequest) (string, error)
		end    sdk.StopReason
	}{
		"nobody there":      {nil, sdk.StopReasonEndTurn},
		"an unknown option": {func(context.Context, sdk.RequestPermissionRequest) (string, error) { return "yes!", nil }, sdk.StopReasonEndTurn},
		"cancelled":         {func(context.Context, sdk.RequestPermissionRequest) (string, error) { return "", nil }, sdk.StopReasonCancelled},
	} {
		agent, calls := approves(apitest.Call(use("delete")), apitest.Say("Then not."))
		kept := store.New(store.Memory())
		e := edit(t, agent, &acp.Options{Store: kept})
		e.answer = c.answer
		id := e.open()
		stop, err := e.ask(id, "Delete it.")
		require.NoError(t, err, name)
		require.Equal(t, c.end, stop, name)
		require.Zero(t, *calls, name)
		require.Empty(t, stored(t, kept, string(id)).OpenCalls(), name)
		require.Empty(t, stored(t, kept, string(id)).Validate(), name)
	}
}

// TestCancelWhileAsked cancels the prompt while the user is asked.
func TestCancelWhileAsked(t *testing.T) {
	agent, calls := approves(apitest.Call(use("delete")))
	kept := store.New(store.Memory())
	e := edit(t, agent, &acp.Options{Store: kept})
	id := e.open()
	e.answer = func(ctx context.Context, _ sdk.RequestPermissionRequest) (string, error) {
		require.NoError(t, e.Cancel(ctx, sdk.CancelNotification{SessionId: id}))
		<-ctx.Done() // the agent cancels its question
		return "allow", nil
	}
	stop, err := e.ask(id, "Delete it.")
	require.NoError(t, err)
	require.Equal(t, sdk.StopReasonCancelled, stop)
	require.Zero(t, *calls)
	require.Empty(t, stored(t, kept, string(id)).OpenCalls())
}

func TestCallsOfSubAgentsAreShownAndApproved(t *testing.T) {
	inner, calls := approves(apitest.Call(use("delete")), apitest.Say("Deleted."))
	agent := executor.Agent{
		Provider: apitest.NewScript(apitest.Call(with("helper", executor.Task{Task: "Delete it."})), apitest.Say("Helped.")),
		Tools:    []dag.Tool{executor.SubAgent("helper", "Helps.", inner)},
	}
	e := edit(t, agent, nil)
	e.answer = func(context.Context, sdk.RequestPermissionRequest) (string, error) { return "allow", nil }
	_, err := e.ask(e.open(), "Go.")
	require.NoError(t, err)
	require.Equal(t, 1, *calls)
	require.Equal(t, `title Go.
call helper (other)
  in_progress
call delete (other)
  in_progress
  in_progress
  completed "gone"
  completed "Deleted."
agent: Helped.
`, e.log())
}

// TestClientToolsAndPlans uses the client's files and terminals.
func TestClientToolsAndPlans(t *testing.T) {
	type path struct {
		Path string `json:"path"`
	}
	plan := func(status string) content.ToolUse {
		return with("update_plan", map[string]any{"entries": []any{map[string]any{"content": "Fix it.", "status": status}}})
	}
	model := apitest.NewScript(
		apitest.Call(plan("in_progress"), with("read_file", path{"a.go"})),
		apitest.Call(with("edit_file", map[string]string{"path": "a.go", "old_text": "a", "new_text": "b"})),
		apitest.Call(with("edit_file", map[string]string{"path": "/project/a.go", "old_text": "package a", "new_text": "package b"})),
		apitest.Call(with("write_file", map[string]string{"path": "b.go", "content": "package b"})),
		apitest.Call(with("run_command", map[string]any{"command": "go", "arguments": []string{"test"}}), plan("completed")),
		apitest.Say("Fixed."),
	)
	kept := store.New(store.Memory())
	agent := executor.Agent{Provider: model, Tools: append(acp.ClientTools(), acp.PlanTool()), Strategy: executor.Sequential()}
	e := edit(t, agent, &acp.Options{Store: kept})
	e.files["/project/a.go"] = "package a // a"
	id := e.open()
	_, err := e.ask(id, "Fix it.")
	require.NoError(t, err)
	require.Equal(t, `title Fix it.
plan in_progress: Fix it. (medium)
call Read a.go (read) @/project/a.go
  in_progress
  completed "package a // a"
call Edit a.go (edit) @/project/a.go /project/a.go: "a" -> "b"
  in_progress
  failed "old_text is 4 times in the file, not once: nothing was changed"
call Edit /project/a.go (edit) @/project/a.go /project/a.go: "package a" -> "package b"
  in_progress
  completed
call Write b.go (edit) @/project/b.go /project/b.go: "package b"
  in_progress
  completed
call go test (execute)
plan completed: Fix it. (medium)
  in_progress
   terminal t1
  completed
agent: Fixed.
`, e.log())
	require.Equal(t, map[string]string{"/project/a.go": "package b // a", "/project/b.go": "package b"}, e.files)
	require.Equal(t, []string{
		"read /project/a.go", "read /project/a.go", "read /project/a.go", "write /project/a.go", "write /project/b.go", "run go test in /project",
		"release t1",
	}, e.did)
	require.Contains(t, lines(stored(t, kept, string(id))), "[[the beginning is left out]\nok\n[exit code 1]]")

	// Loaded, it is shown in the same way, with the last plan.
	other := edit(t, agent, &acp.Options{Store: kept})
	_, err = other.LoadSession(t.Context(), sdk.LoadSessionRequest{SessionId: id, Cwd: "/project", McpServers: []sdk.McpServer{}})
	require.NoError(t, err)
	require.Contains(t, other.log(), `call Write b.go (edit) @/project/b.go /project/b.go: "package b"
  completed
call go test (execute)
  completed "[the beginning is left out]\nok\n[exit code 1]"
agent: Fixed.
plan completed: Fix it. (medium)
`)

	// A client without files and terminals: the model does not get the tools.
	bare := connect(t, executor.Agent{Provider: model, Tools: agent.Tools}, nil)
	bare.ask(prompt(1, bare.open(), "Hi"))
	require.Len(t, model.Requests()[6].Tools, 1)
}

func TestModesAndModels(t *testing.T) {
	provider := func(text string) func(executor.Agent) executor.Agent {
		return func(a executor.Agent) executor.Agent {
			a.Provider = apitest.NewScript(apitest.Say(text).Always())
			return a
		}
	}
	kept := store.New(store.Memory())
	o := &acp.Options{
		Store: kept,
		Modes: []acp.Choice{{ID: "ask"}, {ID: "brief", Name: "Brief", Description: "Few words", Agent: func(a executor.Agent) executor.Agent {
			a.System = "Be brief."
			return a
		}}},
		Models: []acp.Choice{{ID: "small", Agent: provider("Small.")}, {ID: "large", Agent: provider("Large.")}},
	}
	e := edit(t, executor.Agent{}, o)
	s, err := e.NewSession(t.Context(), sdk.NewSessionRequest{Cwd: "/project", McpServers: []sdk.McpServer{}})
	require.NoError(t, err)
	require.Equal(t, sdk.SessionModeId("ask"), s.Modes.CurrentModeId)
	require.Equal(t, "Brief", s.Modes.AvailableModes[1].Name)
	require.Equal(t, sdk.SessionConfigValueId("small"), s.ConfigOptions[1].Select.CurrentValue)
	require.Equal(t, sdk.SessionConfigId("model"), s.ConfigOptions[1].Select.Id)

	_, err = e.SetSessionMode(t.Context(), sdk.SetSessionModeRequest{SessionId: s.SessionId, ModeId: "brief"})
	require.NoError(t, err)
	set, err := e.SetSessionConfigOption(t.Context(), sdk.SetSessionConfigOptionRequest{
		ValueId: &sdk.SetSessionConfigOptionValueId{SessionId: s.SessionId, ConfigId: "model", Value: "large"},
	})
	require.NoError(t, err)
	require.Equal(t, sdk.SessionConfigValueId("large"), set.ConfigOptions[1].Select.CurrentValue)
	_, err = e.ask(s.SessionId, "Hi.")
	require.NoError(t, err)
	require.Equal(t, "mode brief\noptions\noptions\ntitle Hi.\nagent: Large.\n", e.log())
	require.Equal(t, []string{"Be brief."}, stored(t, kept, string(s.SessionId)).SystemPrompts())

	_, err = e.SetSessionConfigOption(t.Context(), sdk.SetSessionConfigOptionRequest{
		ValueId: &sdk.SetSessionConfigOptionValueId{SessionId: s.SessionId, ConfigId: "model", Value: "huge"},
	})
	require.ErrorContains(t, err, "there is no such")

	// The model is stored with the session. The mode is not: the conversation may come from somebody else.
	loaded, err := edit(t, executor.Agent{}, o).LoadSession(t.Context(),
		sdk.LoadSessionRequest{SessionId: s.SessionId, Cwd: "/project", McpServers: []sdk.McpServer{}})
	require.NoError(t, err)
	require.Equal(t, sdk.SessionModeId("ask"), loaded.Modes.CurrentModeId)
	require.Equal(t, sdk.SessionConfigValueId("large"), loaded.ConfigOptions[1].Select.CurrentValue)
}

// TestMCPServersOfTheClient uses the test binary as an MCP server.
func TestMCPServersOfTheClient(t *testing.T) {
	model := apitest.NewScript(apitest.Call(use("local_greet")), apitest.Say("Greeted."))
	e := edit(t, executor.Agent{Provider: model}, &acp.Options{MCP: &mcp.Options{}})
	s, err := e.NewSession(t.Context(), sdk.NewSessionRequest{Cwd: "/project", McpServers: []sdk.McpServer{
		{Stdio: &sdk.McpServerStdio{
			Name: "local", Command: os.Args[0], Args: []string{}, Env: []sdk.EnvVariable{{Name: serverVariable, Value: "1"}},
		}},
	}})
	require.NoError(t, err)
	_, err = e.ask(s.SessionId, "Greet.")
	require.NoError(t, err)
	require.Contains(t, e.log(), `completed "Hello"`)

	// One that does not start is named.
	_, err = e.NewSession(t.Context(), sdk.NewSessionRequest{Cwd: "/project", McpServers: []sdk.McpServer{
		{Stdio: &sdk.McpServerStdio{Name: "broken", Command: filepath.Join(t.TempDir(), "no"), Args: []string{}, Env: []sdk.EnvVariable{}}},
	}})
	require.ErrorContains(t, err, "the MCP server \\\"broken\\\"")
}

// greeter is an MCP server on standard input and output.
func greeter() error {
	server := mcpsdk.NewServer(&mcpsdk.Implementation{Name: "test", Version: "v1"}, nil)
	server.AddTool(&mcpsdk.Tool{Name: "greet", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *mcpsdk.CallToolRequest) (*mcpsdk.CallToolResult, error) {
			return &mcpsdk.CallToolResult{Content: []mcpsdk.Content{&mcpsdk.TextContent{Text: "Hello"}}}, nil
		})
	return server.Run(context.Background(), &mcpsdk.StdioTransport{})
}
