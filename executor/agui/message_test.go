package agui_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

func TestOnlyTheResultOfASubAgentIsSent(t *testing.T) {
	inner := executor.Agent{Provider: apitest.NewScript(apitest.Say("For the agent."))}
	agent := executor.Agent{
		Provider: apitest.NewScript(apitest.Call(apitest.Use("helper", executor.Task{Task: "Go."})), apitest.Say("Done.")),
		Tools:    []dag.Tool{executor.SubAgent("helper", "Helps.", inner)},
	}
	list := post(t, handlerOf(agent, nil), ask("Go."))
	require.Equal(t, "RUN_STARTED TOOL_CALL_START TOOL_CALL_ARGS TOOL_CALL_END TOOL_CALL_RESULT TEXT_MESSAGE_START "+
		"TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END RUN_FINISHED", types(list))
}

func TestConnectionIsKeptAliveWhileNothingHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := executor.Func("say", "Says it.", func(ctx context.Context, _ none) (string, error) {
			time.Sleep(40 * time.Second)
			return "hi", nil
		})
		model := apitest.NewScript(apitest.Call(call("say")), apitest.Say("Done."))
		response := httptest.NewRecorder()
		handlerOf(executor.Agent{Provider: model, Tools: []dag.Tool{slow}, ToolTimeout: time.Hour}, nil).
			ServeHTTP(response, request(http.MethodPost, ask("Go.")))
		text := response.Body.String()
		require.Equal(t, 2, strings.Count(text, "\n:\n"), text)
		require.Contains(t, text, "RUN_FINISHED")
	})
}
