package executor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

// forking is a model that forks at the question "Go." and has each fork do what its task says: call the tool of this
// name, or say it. It keeps no state, so that another process continues with it.
func forking(tasks ...string) *apitest.Script {
	var calls []content.ToolUse
	for _, task := range tasks {
		calls = append(calls, apitest.Use("fork", executor.Task{Task: task}))
	}
	return apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
		last := req.Messages[len(req.Messages)-1]
		switch text := last.Blocks.Text(); {
		case len(last.Blocks.ToolResults()) > 0:
			return apitest.Say("<" + outcome(last.Blocks.ToolResults()[0]) + ">")
		case text == "Go.":
			return apitest.Call(calls...)
		case text == "fork":
			return apitest.Call(apitest.Use("fork", executor.Task{Task: "again"}))
		case text == "delete":
			return apitest.Call(call("delete"))
		case text == "help":
			return apitest.Call(toSub("helper", "h"))
		default:
			return apitest.Say(text + "!")
		}
	}).Always())
}

func TestForkBeginsWithTheRequestOfItsAgent(t *testing.T) {
	model := forking("Look left.", "Look right.")
	agent := executor.Agent{
		Provider: model, System: "Be kind.", Options: api.Options{MaxTokens: 7},
		Tools: []dag.Tool{executor.Fork("fork", "", executor.Limits{Turns: 3})},
	}
	d, err := agent.Run(t.Context(), dag.New().User("Hello.").Assistant("Hello!").User("Go."))
	require.NoError(t, err)

	requests := model.Requests()
	require.Len(t, requests, 4)
	before := requests[0]
	for _, req := range requests[1:3] {
		require.Equal(t, before.System, req.System)
		require.Equal(t, before.Tools, req.Tools)
		require.Equal(t, before.Options, req.Options)
		require.Equal(t, before.Messages, req.Messages[:len(before.Messages)])
		require.Len(t, req.Messages, len(before.Messages)+1)
	}
	require.Equal(t, []string{"Look left.!", "Look right.!"}, outcomes(t, d))

	// The nodes of the conversation are in a file once.
	file := filepath.Join(t.TempDir(), "run.json")
	require.NoError(t, d.Save(file))
	saved, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(saved), "Hello."))
	loaded, err := dag.Load(file)
	require.NoError(t, err)
	require.Empty(t, loaded.Validate())
}

// After a crash at any step, the fork continues in its conversation and with the agent around it.
func TestForkContinuesAfterACrash(t *testing.T) {
	repeatable := func(t executor.Tool) executor.Tool { return executor.WithEffect(t, executor.EffectReadOnly) }
	gone := tool("delete", func(context.Context) (any, error) { return "gone", nil })
	var steps []dag.DAG
	agent := executor.Agent{
		Provider: forking("delete"),
		Tools:    []dag.Tool{repeatable(executor.Fork("fork", "", executor.Limits{})), repeatable(gone)},
		Save: func(_ context.Context, d dag.DAG) error {
			steps = append(steps, d)
			return nil
		},
	}
	_, err := agent.Run(t.Context(), ask())
	require.NoError(t, err)
	require.Greater(t, len(steps), 4)
	agent.Save = nil

	for _, d := range steps {
		saved, err := json.Marshal(d)
		require.NoError(t, err)
		d, err = dag.Read(bytes.NewReader(saved))
		require.NoError(t, err)
		d, err = agent.Run(t.Context(), d)
		if !errors.Is(err, executor.ErrAnswered) { // it was saved at its end
			require.NoError(t, err)
		}
		require.Equal(t, []string{"<gone>"}, outcomes(t, d))
	}
}

func TestForkCannotForkAgain(t *testing.T) {
	d, err := executor.Agent{Provider: forking("fork"), Tools: []dag.Tool{executor.Fork("fork", "", executor.Limits{})}}.Run(t.Context(), ask())
	require.NoError(t, err)
	require.Equal(t, []string{"<error: You have this task yourself: fork cannot be called again.>"}, outcomes(t, d))
}

func TestForkWithoutAConversationIsRefused(t *testing.T) {
	_, err := executor.Fork("fork", "", executor.Limits{}).Call(t.Context(), executor.Call{Name: "fork", Input: `{"task":"Look."}`})
	require.ErrorContains(t, err, "there is no conversation to begin from")
}

// What needs approval in the agent needs it in its fork, before a save and after it.
func TestForkPausesAndIsResumedElsewhere(t *testing.T) {
	deleted := 0
	var heard atomic.Int32
	agent := executor.Agent{
		Provider: forking("delete"),
		Tools: []dag.Tool{executor.Fork("fork", "", executor.Limits{}), tool("delete", func(context.Context) (any, error) {
			deleted++
			return "gone", nil
		})},
		Hooks: []executor.Hook{executor.RequireApproval("delete"), {
			Observe: func(ctx context.Context, event executor.Event, _ error) context.Context {
				if end, ok := event.(executor.ToolEnd); ok && end.Execution.Tool == "delete" {
					heard.Add(1)
				}
				return ctx
			},
		}},
	}
	d, err := agent.Run(t.Context(), ask())
	var paused *executor.PausedError
	require.True(t, errors.As(err, &paused), err)
	require.Zero(t, deleted)

	file := filepath.Join(t.TempDir(), "run.json")
	require.NoError(t, d.Save(file))
	d, err = dag.Load(file)
	require.NoError(t, err)
	d, err = agent.Resume(t.Context(), d, executor.Approved(d.Pending()[0]))
	require.NoError(t, err)
	require.Equal(t, 1, deleted)
	require.EqualValues(t, 1, heard.Load(), "each event is observed once")
	require.Equal(t, []string{"<gone>"}, outcomes(t, d))
}

// A sub-agent of the agent around is one of the fork, too.
func TestForkWithAPausedSubAgentIsResumed(t *testing.T) {
	var runs tally
	agent := executor.Agent{
		Provider: forking("help"),
		Tools:    []dag.Tool{executor.Fork("fork", "", executor.Limits{}), runs.risky("helper", []string{"delete"}, "delete")},
	}
	d, err := agent.Run(t.Context(), ask())
	var paused *executor.PausedError
	require.True(t, errors.As(err, &paused), err)
	d, err = agent.Resume(t.Context(), d, executor.Approved(d.Pending()[0]))
	require.NoError(t, err)
	require.Equal(t, []string{"delete"}, runs.ran())
	require.Equal(t, []string{"<<delete>>"}, outcomes(t, d))
}
