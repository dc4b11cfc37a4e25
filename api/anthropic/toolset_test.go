package anthropic

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

func TestToolsetsAreImportedAndSentWithoutAName(t *testing.T) {
	const tools = `[{"type":"mcp_toolset","mcp_server_name":"a"},{"type":"mcp_toolset","mcp_server_name":"b"},` +
		`{"type":"browser_toolset_20260801","configs":{"navigate":{"enabled":true}}},{"type":"computer_toolset_20260801"}]`
	req, model, err := Import([]byte(`{"model":"m","max_tokens":1,"tools":` + tools + `,"messages":[{"role":"user","content":"Hi"}]}`))
	require.NoError(t, err)
	var names []string
	for _, def := range req.Tools {
		require.NoError(t, def.Check())
		names = append(names, def.Name)
	}
	require.Equal(t, []string{"mcp_toolset", "mcp_toolset_2", "browser_toolset_20260801", "computer_toolset_20260801"}, names)

	body, notes, err := Body(req, model, nil)
	require.NoError(t, err)
	require.Empty(t, notes)
	require.NoError(t, fake.CheckAnthropic(body))
	require.Contains(t, string(body), `"tools":`+tools)
}

// TestAToolsetIsDispatchedByToolsetAndName: the program has a tool "navigate" of its own, which is another one.
func TestAToolsetIsDispatchedByToolsetAndName(t *testing.T) {
	browser := content.Extra{API: API, JSON: `{"type":"browser_toolset_20260801"}`}
	tool := func(name string, extra content.Extra) executor.Tool {
		def := content.Tool{Name: name, Description: "d", Schema: `{"type":"object","properties":{}}`, Extra: extra}
		return executor.NewTool(def, func(context.Context, executor.Call) (executor.Result, error) {
			return executor.Result{Content: content.Words("by " + name)}, nil
		})
	}
	served := fake.Anthropic(fake.AnthropicMessage(
		content.Opaque{API: API, JSON: `{"type":"tool_use","id":"toolu_1","name":"navigate","input":{"url":"x"},"toolset_name":"browser"}`},
		content.ToolUse{ID: "toolu_2", Name: "navigate", Input: "{}"},
	), fake.AnthropicMessage(content.Text{Text: "Done."}))
	server := httptest.NewServer(served)
	defer server.Close()

	agent := executor.Agent{
		Provider: New("claude-x", &Options{SDK: localSDK(server.URL, server.Client())}),
		Tools:    []dag.Tool{tool("navigate", content.Extra{}), tool("browser_navigate", browser), tool("browser_close_tab", browser)},
	}
	d, err := agent.Run(context.Background(), dag.New().User("Go."))
	require.NoError(t, err)
	require.Equal(t, "Done.", d.Text())

	bodies := served.Bodies()
	require.Contains(t, string(bodies[0]), `{"type":"browser_toolset_20260801"`)
	require.NotContains(t, string(bodies[0]), "browser_navigate", "the toolset declares it")
	require.Contains(t, string(bodies[1]), `"name":"navigate","input":{"url":"x"},"toolset_name":"browser"`)
	require.Contains(t, string(bodies[1]), "by browser_navigate")
	require.Contains(t, string(bodies[1]), "by navigate")
}

// TestAToolOfTheAPIsOwnHasAFunction declares a tool by its type, although the program knows its schema.
func TestAToolOfTheAPIsOwnHasAFunction(t *testing.T) {
	bash := content.Tool{
		Name: "bash", Description: "Runs a command.", Schema: `{"type":"object","properties":{"command":{"type":"string"}}}`,
		Extra: own(`{"type":"bash_20250124"}`),
	}
	body, notes := requireBody(t, api.Request{Tools: []content.Tool{bash}, Messages: hello().Messages}, nil)
	require.Empty(t, notes)
	require.Contains(t, body, `"tools":[{"name":"bash","type":"bash_20250124"`)
	require.NotContains(t, body, "input_schema")
}
