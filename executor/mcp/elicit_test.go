package mcp_test

import (
	"context"
	"errors"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/executor/mcp"
)

// asking returns a server whose tool "ask" asks a person.
func asking() *sdk.Server {
	server := sdk.NewServer(&sdk.Implementation{Name: "s", Version: "v1"}, nil)
	addRaw(server, "ask", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if answer, ok := r.Params.InputResponses["name"].(*sdk.ElicitResult); ok {
			name, _ := answer.Content["name"].(string)
			return text(answer.Action + " " + name), nil
		}
		return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"name": &sdk.ElicitParams{
			Message: "Who are you?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}},
		}}}, nil
	})
	return server
}

func TestQuestionIsRefusedByAnErrorAndWithoutAPerson(t *testing.T) {
	s := connect(t, inMemory(t, asking()), &mcp.Options{
		Elicit: func(context.Context, *sdk.ElicitParams) (*sdk.ElicitResult, error) {
			return nil, errors.New("not for this server")
		},
	})
	result := run(t, s, apitest.Use("ask", nil))[0]
	require.True(t, result.IsError)
	require.Contains(t, result.Result.Text(), "not for this server")

	// The server was not asked twice, as after a lost connection, and answers further calls.
	require.Contains(t, run(t, s, apitest.Use("ask", nil))[0].Result.Text(), "not for this server")

	s = connect(t, inMemory(t, asking()), nil)
	require.True(t, run(t, s, apitest.Use("ask", nil))[0].IsError)
}

func TestPersonAnswersQuestionsOfTheServer(t *testing.T) {
	s := connect(t, inMemory(t, asking()), &mcp.Options{
		Elicit: func(_ context.Context, question *sdk.ElicitParams) (*sdk.ElicitResult, error) {
			require.Equal(t, "Who are you?", question.Message)
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
		},
	})
	require.Equal(t, "accept Ada", run(t, s, apitest.Use("ask", nil))[0].Result.Text())
}
