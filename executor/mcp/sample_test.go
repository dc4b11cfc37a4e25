//lint:file-ignore SA1019 sampling is deprecated since 2026-07-28, and servers still use it

package mcp_test

import (
	"context"
	"errors"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/executor/mcp"
)

// asking returns a server whose tool "think" asks a model, and whose tool "ask" asks a person.
func asking() *sdk.Server {
	server := sdk.NewServer(&sdk.Implementation{Name: "s", Version: "v1"}, nil)
	addRaw(server, "think", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		switch answer := r.Params.InputResponses["thought"].(type) {
		case *sdk.CreateMessageResult:
			return text("It thinks: " + answer.Content.(*sdk.TextContent).Text), nil
		case *sdk.CreateMessageWithToolsResult:
			return text("It thinks: " + answer.Content[0].(*sdk.TextContent).Text), nil
		}
		return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"thought": &sdk.CreateMessageParams{
			MaxTokens: 10_000, SystemPrompt: "Think.", Temperature: 1,
			Messages: []*sdk.SamplingMessage{
				{Role: "user", Content: &sdk.TextContent{Text: "What is it?"}},
				{Role: "assistant", Content: &sdk.TextContent{Text: "Show me."}},
				{Role: "user", Content: &sdk.ImageContent{MIMEType: "image/png", Data: []byte("png")}},
			},
		}}}, nil
	})
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

func TestModelAnswersRequestsOfTheServer(t *testing.T) {
	model := apitest.NewScript(apitest.Say("It is a cat.").Usage(content.Usage{Input: 7, Output: 5}))
	s := connect(t, inMemory(t, asking()), &mcp.Options{Model: model})
	result := run(t, s, apitest.Use("think", nil))[0]
	require.False(t, result.IsError, result.Result.Text())
	require.Equal(t, "It thinks: It is a cat.", result.Result.Text())
	require.Equal(t, content.Usage{Input: 7, Output: 5}, result.Usage, "the tokens count in the run")

	request := model.Requests()[0]
	require.Equal(t, []string{"Think."}, request.System)
	require.Equal(t, 4096, request.Options.MaxTokens, "not as many as the server asked for")
	require.Len(t, request.Messages, 3)
	require.IsType(t, content.Image{}, request.Messages[2].Blocks.At(0))
}

func TestSamplingIsRefusedByApproveAndWithoutAModel(t *testing.T) {
	model := apitest.NewScript()
	refuse := func(context.Context, *sdk.CreateMessageParams) error { return errors.New("not for this server") }
	s := connect(t, inMemory(t, asking()), &mcp.Options{Model: model, Approve: refuse})
	result := run(t, s, apitest.Use("think", nil))[0]
	require.True(t, result.IsError)
	require.Contains(t, result.Result.Text(), "not for this server")
	require.Empty(t, model.Requests())

	// The server was not asked twice, as after a lost connection, and answers further calls.
	require.Contains(t, run(t, s, apitest.Use("think", nil))[0].Result.Text(), "not for this server")

	s = connect(t, inMemory(t, asking()), nil)
	require.True(t, run(t, s, apitest.Use("think", nil))[0].IsError)
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
