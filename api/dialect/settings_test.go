package dialect_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/content"
)

func TestSettingsAreReadInEachForm(t *testing.T) {
	one := 1.0
	for _, c := range []struct {
		api, body string
		want      api.Options
		others    []string
	}{
		{"anthropic", `{"max_tokens":9,"thinking":{"type":"enabled","budget_tokens":2048},"tool_choice":{"type":"any","disable_parallel_tool_use":true},"metadata":{"user_id":"u"},"top_k":1}`,
			api.Options{MaxTokens: 9, Thinking: api.ThinkTokens(2048), ToolChoice: api.ToolsAny, OneCall: true}, []string{"metadata", "top_k"}},
		{"anthropic", `{"output_config":{"effort":"high"},"thinking":{"type":"adaptive"},"tool_choice":{"type":"auto"}}`, api.Options{Thinking: api.ThinkHigh}, nil},
		{"anthropic", `{"thinking":{"type":"adaptive"}}`, api.Options{Thinking: api.ThinkAuto}, nil},
		{"openai-chat", `{"max_tokens":9,"stop":"END","temperature":1,"reasoning_effort":"none","tool_choice":"required","parallel_tool_calls":false,"n":2,"user":null}`,
			api.Options{MaxTokens: 9, StopSequences: []string{"END"}, Temperature: &one, Thinking: api.ThinkOff, ToolChoice: api.ToolsAny, OneCall: true}, []string{"n"}},
		{"openai-responses", `{"max_output_tokens":9,"reasoning":{"effort":"low","summary":"auto"},"tool_choice":{"type":"function","name":"f"},"store":true,"include":[],"truncation":"auto"}`,
			api.Options{MaxTokens: 9, Thinking: api.ThinkLow, ToolChoice: api.OneTool("f")}, []string{"truncation"}},
		{"gemini", `{"generation_config":{"max_output_tokens":9,"thinking_config":{"thinking_budget":-1}},"tool_config":{"function_calling_config":{"mode":"ANY","allowed_function_names":["f"]}},"labels":{"a":"b"}}`,
			api.Options{MaxTokens: 9, Thinking: api.ThinkAuto, ToolChoice: api.OneTool("f")}, []string{"labels"}},
		{"gemini", `{"generationConfig":{"temperature":1,"topK":3}}`, api.Options{Temperature: &one}, []string{"generationConfig.topK"}},
		{"openai-responses", `{"text":{"verbosity":"low","format":{"type":"text"}},"reasoning":{"effort":"low","mode":"pro"},"tool_choice":{"type":"web_search"}}`,
			api.Options{Thinking: api.ThinkLow}, []string{"text.verbosity", "reasoning.mode", "tool_choice"}},
		{"gemini", `{"tool_config":{"functionCallingConfig":{"mode":"AUTO","allowedFunctionNames":["f"]}}}`, api.Options{}, []string{"tool_config.functionCallingConfig"}},
		{"anthropic", `{"thinking":{"type":"enabled","budget_tokens":2048,"display":"omitted"},"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}},"task_budget":{}}}`,
			api.Options{Thinking: api.ThinkTokens(2048), Output: api.Schema{Name: "response", JSON: `{"type":"object"}`}}, []string{"thinking.display", "output_config.task_budget"}},
		{"openai-chat", `{"max_tokens":-1,"temperature":9,"stop":[""],"reasoning_effort":7,"response_format":{"type":"json_object"},"tool_choice":{}}`,
			api.Options{}, []string{"max_tokens", "temperature", "stop", "reasoning_effort", "response_format", "tool_choice"}},
		{"elsewhere", `{"max_tokens":9}`, api.Options{}, []string{"max_tokens"}},
		{"anthropic", `[]`, api.Options{}, nil},
	} {
		got, others := dialect.Settings(c.api, content.JSON(c.body))
		require.Equal(t, c.want, got, c.body)
		require.Equal(t, c.others, others, c.body)
	}
}

func TestWithoutSettingsKeepsTheOthers(t *testing.T) {
	one := 1.0
	all := api.Options{MaxTokens: 1, Temperature: &one, Thinking: api.ThinkLow}
	for _, c := range []struct {
		api, body, want string
		o               api.Options
	}{
		{"anthropic", `{"max_tokens":9,"temperature":1,"top_k":1}`, `{"temperature":1,"top_k":1}`, api.Options{MaxTokens: 1}},
		{"anthropic", `{"thinking":{"type":"enabled","budget_tokens":2048},"output_config":{"effort":"low","x":1}}`, `{"output_config":{"x":1}}`, all},
		{"openai-responses", `{"reasoning":{"effort":"low","summary":"auto"},"store":true}`, `{"reasoning":{"summary":"auto"},"store":true}`, all},
		{"gemini", `{"generationConfig":{"maxOutputTokens":9,"topK":3,"temperature":0}}`, `{"generationConfig":{"topK":3}}`, all},
		{"openai-chat", `{"max_tokens":9}`, ``, all},
		{"openai-chat", `{"max_tokens":9}`, `{"max_tokens":9}`, api.Options{}},
		{"openai-chat", ``, ``, all},
	} {
		require.Equal(t, c.want, string(dialect.WithoutSettings(c.api, content.JSON(c.body), c.o)), c.body)
	}
}
