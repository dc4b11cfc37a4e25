package executor_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/dag/sessions"
	"github.com/plait-dev/plait/executor"
)

// unfinishedSession is a session of another program that ended in the middle of a tool call.
const unfinishedSession = `{"type":"user","uuid":"u","parentUuid":null,"message":{"role":"user","content":"Pay."}}
{"type":"assistant","uuid":"a","parentUuid":"u","message":{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"pay","input":{}}]}}`

// TestOpenCallOfAnImportIsInDoubt: its writer recorded no starts, so the call may have been executed.
func TestOpenCallOfAnImportIsInDoubt(t *testing.T) {
	in, err := sessions.Import(sessions.ClaudeCode, strings.NewReader(unfinishedSession), nil)
	require.NoError(t, err)
	executed := 0
	pay := executor.Func("pay", "", func(context.Context, map[string]bool) (string, error) {
		executed++
		return "paid", nil
	})
	run := func(d dag.DAG, tool dag.Tool, hooks ...executor.Hook) (dag.DAG, error) {
		executed = 0
		model := apitest.NewScript(apitest.Say("Done."))
		return executor.Agent{Provider: model, Tools: []dag.Tool{tool}, Hooks: hooks, Log: quiet}.Run(t.Context(), d)
	}

	d, err := run(in.Main(), pay)
	require.NoError(t, err)
	require.Zero(t, executed)
	require.Equal(t, []string{"error: " + content.OutcomeUnknown}, outcomes(t, d))
	requireValid(t, d)

	// The effect of the tool decides, as for any call in doubt, or a person does.
	d, err = run(in.Main(), executor.WithEffect(pay, executor.EffectReadOnly))
	require.NoError(t, err)
	require.Equal(t, 1, executed)
	require.Equal(t, []string{"paid"}, outcomes(t, d))
	ask := executor.Hook{InDoubt: func(context.Context, executor.Call) (executor.Decision, error) {
		return executor.AskApproval(""), nil
	}}
	d, err = run(in.Main(), pay, ask)
	require.ErrorIs(t, err, executor.ErrPaused)
	require.Contains(t, d.Pending()[0].Note, "imported")
	require.Zero(t, executed)

	// Without the mark of the import, nobody else can have started the call.
	_, err = run(in.Main().WithMetadata("plait.no_starts", false), pay)
	require.NoError(t, err)
	require.Equal(t, 1, executed)

	// A later call of the same conversation is this program's.
	model := apitest.NewScript(apitest.Call(apitest.Use("pay", "{}")), apitest.Say("Done."))
	executed = 0
	d, err = executor.Agent{Provider: model, Tools: []dag.Tool{pay}, Log: quiet}.Run(t.Context(), in.Main().CloseTools().User("Pay now."))
	require.NoError(t, err)
	require.Equal(t, 1, executed)
	requireValid(t, d)
}
