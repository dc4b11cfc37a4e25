package executor_test

import (
	"context"
	"strings"
	"testing"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/stretchr/testify/require"
)

// TestOnlyCertainWrappingsOfArgumentsAreRemoved calls a tool with arguments in and around other text.
func TestOnlyCertainWrappingsOfArgumentsAreRemoved(t *testing.T) {
	const fence, text = "the arguments were in a code fence", "the arguments were JSON in a JSON string"
	for input, want := range map[string]struct{ repair, result string }{
		`{"text":"x"}`:                            {"", "x"},
		"```json\n{\"text\":\"x\"}\n```":          {fence, "x"},
		"``` JSON \n {\"text\":\"x\"} ```":        {fence, "x"},
		"\n```\n{\"text\":\"x\"}```\n":            {fence, "x"},
		`"{\"text\":\"x\"}"`:                      {text, "x"},
		"```python\n{\"text\":\"x\"}\n```":        {"", "error: "},
		"```{\"text\":\"x\"}```":                  {"", "error: "},
		"```json\n{\"text\":\"x\"}":               {"", "error: "},
		"``` \n[{\"text\":\"x\"}]\n```":           {"", "error: "},
		"Here:\n```json\n{\"text\":\"x\"}\n```":   {"", "error: "},
		"```json\n{\"text\":\"x\"}\n``` as asked": {"", "error: "},
		`"[1]"`: {"", "error: "},
	} {
		var repairs []string
		agent := executor.Agent{
			Tools: []dag.Tool{echo}, Provider: once(content.ToolUse{ID: "a", Name: "echo", Input: content.JSON(input)}),
		}
		var d dag.DAG
		for event, err := range agent.Stream(t.Context(), ask(echo)) {
			require.NoError(t, err)
			switch e := event.(type) {
			case executor.ToolStart:
				repairs = append(repairs, e.Repair)
			case executor.End:
				d = e.DAG
			}
		}
		got := outcomes(t, d)[0]
		require.True(t, strings.HasPrefix(got, want.result), "%s: %s", input, got)
		if want.result == "x" {
			require.Equal(t, []string{want.repair}, repairs, input)
		}
	}
}

// A call that cannot be prepared has its result: no hook decides about it, and nobody is asked to approve it.
func TestCallsThatCannotBePreparedAreNotAuthorized(t *testing.T) {
	var seen []string
	agent := executor.Agent{
		Tools:    []dag.Tool{echo},
		Provider: once(apitest.Use("echo", map[string]int{"text": 1}), apitest.Use("echo", map[string]string{"text": "x"})),
		Hooks: []executor.Hook{{Before: func(_ context.Context, c executor.Call) (executor.Decision, error) {
			seen = append(seen, string(c.Input))
			return executor.Allow(), nil
		}}},
	}
	d, err := agent.Run(t.Context(), ask(echo))
	require.NoError(t, err)
	require.Equal(t, []string{`{"text":"x"}`}, seen)
	require.Contains(t, outcomes(t, d)[0], "error: ")
	require.Equal(t, "x", outcomes(t, d)[1])
}

// TestAResultThatWasCutMayBeBroughtAgainWhole replies again to a call whose result is in the conversation.
func TestAResultThatWasCutMayBeBroughtAgainWhole(t *testing.T) {
	agent := executor.Agent{Tools: []dag.Tool{far}, Provider: modelOf(withID("a", "far", "1"), withID("b", "far", "2"))()}
	reply := func(text string) replySet {
		return replySet{"a": returned(executor.Result{Content: content.Words(text)})}
	}
	whole := strings.Repeat("word ", 1000)

	for name, hooks := range map[string][]executor.Hook{"cut": {executor.OutputLimit{MaxBytes: 100, KeepFull: true}.Hook()}, "whole": nil} {
		agent.Hooks = hooks
		agent.Provider = modelOf(withID("a", "far", "1"), withID("b", "far", "2"))()
		d, err := agent.Run(t.Context(), ask(far))
		require.ErrorIs(t, err, executor.ErrPaused)
		d, err = agent.Resume(t.Context(), d, reply(whole).of(d)...)
		pauseOf(t, err)

		// Without the hook, only the result and what it was cut from can match.
		agent.Hooks = nil
		_, err = agent.Resume(t.Context(), d, reply(whole).of(d)...)
		pauseOf(t, err)
		for _, other := range []string{"", "word"} {
			_, err = agent.Resume(t.Context(), d, reply(other).of(d)...)
			require.ErrorIs(t, err, executor.ErrConflict, "%s: %q", name, other)
		}
	}
}

// The model reads the warning once, also if the run goes on with a message of the user.
func TestAWarningOfRepeatedCallsIsSentOnce(t *testing.T) {
	var later executor.Queue
	require.NoError(t, later.Add("And then?"))
	agent := executor.Agent{
		Tools: []dag.Tool{fast}, Limits: executor.Limits{Repeats: 3}, FollowUps: &later,
		Provider: apitest.NewScript(apitest.Call(call("fast"), call("fast"), call("fast")), apitest.Say("I see."), apitest.Say("Done.")),
	}
	d, err := agent.Run(t.Context(), ask(fast))
	require.NoError(t, err)
	require.Equal(t, "uaruaua", roles(d))
	require.Equal(t, 1, strings.Count(d.String(), "with identical arguments"))
}
