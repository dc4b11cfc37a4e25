package mcp_test

import (
	"context"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/mcp"
	"github.com/plait-dev/plait/store"
)

// session connects a client of the SDK to a server. Version is that of the protocol; "" is the latest.
func session(t *testing.T, server *sdk.Server, o *sdk.ClientOptions, version string) *sdk.ClientSession {
	t.Helper()
	ours, theirs := sdk.NewInMemoryTransports()
	at, err := server.Connect(t.Context(), theirs, nil)
	require.NoError(t, err)
	s, err := sdk.NewClient(&sdk.Implementation{Name: "c", Version: "v1"}, o).Connect(
		t.Context(), ours, &sdk.ClientSessionOptions{ProtocolVersion: version})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close(); _ = at.Close() })
	return s
}

// call calls a tool and returns its first text, and the structured result.
func call(t *testing.T, s *sdk.ClientSession, name string, args map[string]any) (text string, result *sdk.CallToolResult) {
	t.Helper()
	result, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
	require.NoError(t, err)
	require.NotEmpty(t, result.Content)
	return result.Content[0].(*sdk.TextContent).Text, result
}

func TestAgentAnswersAndContinuesAConversation(t *testing.T) {
	db := store.New(store.Memory())
	model := apitest.NewScript(apitest.Say("Hello, Ada."), apitest.Say("You are Ada."), apitest.Say("I do not know you."))
	server := sdk.NewServer(&sdk.Implementation{Name: "s", Version: "v1"}, nil)
	mcp.AddAgent(server, mcp.AgentTool{Name: "ask", Description: "Answers.", Agent: executor.Agent{Provider: model}, Store: db})
	s := session(t, server, nil, "")

	_, result := call(t, s, "ask", map[string]any{"message": "I am Ada.", "conversation": "a/1"})
	require.Equal(t, map[string]any{"text": "Hello, Ada.", "stop": "end_turn", "conversation": "a/1"}, result.StructuredContent)
	_, result = call(t, s, "ask", map[string]any{"message": "Who am I?", "conversation": "a/1"})
	require.Equal(t, "You are Ada.", result.StructuredContent.(map[string]any)["text"])
	require.Len(t, model.Requests()[1].Messages, 3)
	_, result = call(t, s, "ask", map[string]any{"message": "Who am I?"})
	require.Equal(t, "I do not know you.", result.StructuredContent.(map[string]any)["text"])
	require.Len(t, model.Requests()[2].Messages, 1)

	c, err := db.Head(t.Context(), "a/1", store.Main)
	require.NoError(t, err)
	require.Equal(t, "You are Ada.", c.DAG().Text())
}

func TestAgentWithoutAStoreKeepsNoConversation(t *testing.T) {
	server := sdk.NewServer(&sdk.Implementation{Name: "s", Version: "v1"}, nil)
	mcp.AddAgent(server, mcp.AgentTool{Name: "ask", Description: "Answers.", Agent: executor.Agent{Provider: apitest.NewScript()}})
	text, result := call(t, session(t, server, nil, ""), "ask", map[string]any{"message": "Hi.", "conversation": "a"})
	require.True(t, result.IsError)
	require.Contains(t, text, "not kept")
	text, result = call(t, session(t, server, nil, ""), "ask", map[string]any{"message": "Hi."})
	require.True(t, result.IsError, "the model failed")
	require.Contains(t, text, apitest.ErrScriptOver.Error())
}

// TestClientIsAskedForApproval with clients of both ways to ask, with users who approve, decline, and dismiss.
func TestClientIsAskedForApproval(t *testing.T) {
	for _, version := range []string{"", "2025-11-25"} {
		for action, want := range map[string]string{"accept": "sent", "decline": "Tool call denied: denied by user", "cancel": "Tool call denied: denied by user", "nobody": "Tool call denied: denied by user"} {
			t.Run(version+action, func(t *testing.T) {
				send := executor.Func("send", "Sends.", func(context.Context, struct {
					To string `json:"to"`
				}) (string, error) {
					return "sent", nil
				})
				use := apitest.Use("send", map[string]string{"to": "Ada"})
				model := apitest.NewScript(apitest.Call(use), apitest.Call(use), apitest.Say("Done."))
				server := sdk.NewServer(&sdk.Implementation{Name: "s", Version: "v1"}, nil)
				mcp.AddAgent(server, mcp.AgentTool{Name: "ask", Description: "Answers.", Agent: executor.Agent{
					Provider: model, Tools: []dag.Tool{send}, Hooks: []executor.Hook{executor.RequireApproval("send")},
				}})

				var questions []string
				o := &sdk.ClientOptions{ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
					questions = append(questions, r.Params.Message)
					answer := &sdk.ElicitResult{Action: action}
					if action == "accept" {
						answer.Content = map[string]any{"approve": true}
					}
					return answer, nil
				}}
				if action == "nobody" {
					o.ElicitationHandler = nil
				}

				_, result := call(t, session(t, server, o, version), "ask", map[string]any{"message": "Tell Ada."})
				require.Equal(t, map[string]any{"text": "Done.", "stop": "end_turn"}, result.StructuredContent)
				if action != "nobody" {
					require.Len(t, questions, 2, "each call is asked for")
					require.Equal(t, `May the agent call send with these arguments? {"to":"Ada"}`, questions[0])
				}
				messages := model.Requests()[2].Messages
				results := messages[len(messages)-1].Blocks.ToolResults()
				require.Equal(t, want, results[0].Content.Text())
			})
		}
	}
}

func TestRunThatWaitsForResultsIsAnError(t *testing.T) {
	model := apitest.NewScript(apitest.Call(apitest.Use("later", nil)))
	server := sdk.NewServer(&sdk.Implementation{Name: "s", Version: "v1"}, nil)
	mcp.AddAgent(server, mcp.AgentTool{Name: "ask", Description: "Answers.", Agent: executor.Agent{
		Provider: model, Tools: []dag.Tool{executor.DeferredTool(content.Tool{Name: "later", Description: "Later.", Schema: `{"type":"object"}`})},
	}})
	text, result := call(t, session(t, server, nil, ""), "ask", map[string]any{"message": "Go."})
	require.True(t, result.IsError)
	require.Contains(t, text, "deferred results")
}

func TestForgedStateIsRefused(t *testing.T) {
	server := sdk.NewServer(&sdk.Implementation{Name: "s", Version: "v1"}, nil)
	mcp.AddAgent(server, mcp.AgentTool{Name: "ask", Description: "Answers.", Agent: executor.Agent{Provider: apitest.NewScript()}})
	s := session(t, server, nil, "")
	result, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "ask", Arguments: map[string]any{"message": "Hi."}, RequestState: "guessed"})
	require.NoError(t, err)
	require.True(t, result.IsError)
	require.Contains(t, result.Content[0].(*sdk.TextContent).Text, "call the tool again")
}

func TestClientSeesProgressAndCancelsTheRun(t *testing.T) {
	entered, ended := make(chan struct{}), make(chan struct{})
	wait := executor.Func("wait", "Waits.", func(ctx context.Context, _ struct{}) (string, error) {
		close(entered)
		<-ctx.Done()
		close(ended)
		return "", ctx.Err()
	})
	model := apitest.NewScript(apitest.Call(apitest.Use("wait", nil)))
	server := sdk.NewServer(&sdk.Implementation{Name: "s", Version: "v1"}, nil)
	mcp.AddAgent(server, mcp.AgentTool{Name: "ask", Description: "Answers.", Agent: executor.Agent{Provider: model, Tools: []dag.Tool{wait}}})

	progress := make(chan string, 1)
	s := session(t, server, &sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
		progress <- r.Params.Message
	}}, "")
	ctx, cancel := context.WithCancel(t.Context())
	params := &sdk.CallToolParams{Name: "ask", Arguments: map[string]any{"message": "Hi."}}
	params.SetProgressToken("p")
	go func() { <-entered; <-progress; cancel() }()
	_, err := s.CallTool(ctx, params)
	require.Error(t, err)
	<-ended
}
