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
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/agui"
)

// helped is an agent whose sub-agent "helper" makes the turns.
func helped(hooks []executor.Hook, tools []dag.Tool, turns ...apitest.Turn) executor.Agent {
	inner := executor.Agent{Provider: apitest.NewScript(turns...), Tools: tools, Hooks: hooks}
	return executor.Agent{
		Provider: apitest.NewScript(apitest.Call(apitest.Use("helper", executor.Task{Task: "Go."})), apitest.Say("Done.")),
		Tools:    []dag.Tool{executor.SubAgent("helper", "Helps.", inner)},
	}
}

// of returns the events of one sub-agent, or with "" those of the agent.
func of(run string, list []map[string]any) (its []map[string]any) {
	for _, e := range list {
		if own, _ := e["subagentRunId"].(string); own == run {
			its = append(its, e)
		}
	}
	return its
}

func TestEventsOfASubAgentNameItsRun(t *testing.T) {
	calls := 0
	agent := helped(nil, []dag.Tool{say("hi", &calls)},
		apitest.Answer(content.Text{Text: "Wait."}, call("say")).Think("Hm.", "s"), apitest.Say("It is done."))
	list := post(t, handlerOf(agent, &agui.Options{SubAgents: true}), ask("Go."))

	var run string
	for _, e := range list {
		if e["type"] == "SUBAGENT_STARTED" {
			run = e["subagentRunId"].(string)
			require.Equal(t, "helper", e["name"])
			require.Equal(t, "plait-1/0", e["parentToolCallId"])
			require.Equal(t, "plait-1", e["parentMessageId"])
			require.NotContains(t, e, "parentSubagentRunId")
		}
	}
	require.NotEmpty(t, run)
	its := of(run, list)
	require.Equal(t, strings.Join([]string{
		"SUBAGENT_STARTED",
		"REASONING_START REASONING_MESSAGE_START REASONING_MESSAGE_CONTENT REASONING_MESSAGE_END REASONING_END",
		"TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END",
		"TOOL_CALL_START TOOL_CALL_ARGS TOOL_CALL_END TOOL_CALL_RESULT",
		"TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END",
		"SUBAGENT_FINISHED",
	}, " "), types(its))
	require.Equal(t, map[string]any{"type": "success"}, last(its)["outcome"])
	for _, e := range its {
		if id, ok := e["messageId"].(string); ok {
			require.Regexp(t, "^"+run+"/", id, "no ID of the thread's")
		}
	}
	require.Equal(t, "RUN_STARTED TOOL_CALL_START TOOL_CALL_ARGS TOOL_CALL_END TOOL_CALL_RESULT "+
		"TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END RUN_FINISHED", types(of("", list)))

	quiet := helped(nil, []dag.Tool{say("hi", &calls)}, apitest.Say("It is done."))
	require.NotContains(t, types(post(t, handlerOf(quiet, nil), ask("Go."))), "SUBAGENT")
}

func TestSubAgentThatPausesIsSuspendedAndContinues(t *testing.T) {
	calls := 0
	agent := helped([]executor.Hook{executor.RequireApproval("say")}, []dag.Tool{say("hi", &calls)},
		apitest.Call(call("say")), apitest.Say("It is done."))
	h := handlerOf(agent, &agui.Options{SubAgents: true})
	list := post(t, h, ask("Go."))
	run := list[len(list)-2]["subagentRunId"].(string)
	id := last(list)["outcome"].(map[string]any)["interrupts"].([]any)[0].(map[string]any)["id"].(string)
	require.Equal(t, map[string]any{"type": "suspended", "interruptIds": []any{id}}, last(of(run, list))["outcome"])
	again := post(t, h, strings.Replace(ask("Go."), `"tools":[]`,
		`"tools":[],"resume":[{"interruptId":"`+id+`","status":"resolved","payload":{"approved":true}}]`, 1))
	its := of(run, again)
	require.Equal(t, "SUBAGENT_STARTED TOOL_CALL_RESULT TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END SUBAGENT_FINISHED", types(its))
	for _, e := range of(run, list) {
		if e["type"] == "TOOL_CALL_START" {
			require.Equal(t, e["toolCallId"], its[1]["toolCallId"], "the result is that of the call")
		}
	}
	require.Equal(t, 1, calls)
}

func TestSubAgentThatFailsIsAnError(t *testing.T) {
	agent := helped(nil, nil, apitest.Fail(context.DeadlineExceeded))
	list := post(t, handlerOf(agent, &agui.Options{SubAgents: true}), ask("Go."))
	require.Contains(t, types(list), "SUBAGENT_STARTED SUBAGENT_ERROR TOOL_CALL_RESULT")
}

func TestNestedSubAgentNamesItsParent(t *testing.T) {
	agent := executor.Agent{
		Provider: apitest.NewScript(apitest.Call(apitest.Use("outer", executor.Task{Task: "Go."})), apitest.Say("Done.")),
		Tools:    []dag.Tool{executor.SubAgent("outer", "Helps.", helped(nil, nil, apitest.Say("Deep.")))},
	}
	list := post(t, handlerOf(agent, &agui.Options{SubAgents: true}), ask("Go."))
	var started []map[string]any
	for _, e := range list {
		if e["type"] == "SUBAGENT_STARTED" {
			started = append(started, e)
		}
	}
	require.Len(t, started, 2)
	require.Equal(t, started[0]["subagentRunId"], started[1]["parentSubagentRunId"])
	require.Regexp(t, "^"+started[0]["subagentRunId"].(string)+"/plait-[0-9]+/0$", started[1]["parentToolCallId"])
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
