package mcp

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

func TestOnlyTheBooleanTrueApproves(t *testing.T) {
	accept := func(fields map[string]any) sdk.InputResponse {
		return &sdk.ElicitResult{Action: "accept", Content: fields}
	}
	var nobody *sdk.ElicitResult
	d := dag.New().User("Go.").Assistant("", content.ToolUse{ID: "c", Name: "erase", Input: "{}"}).
		AppendExecutions(node.ToolExecution{State: node.ExecutionAwaitingApproval})
	p := d.Pending()[0]
	for name, c := range map[string]struct {
		answer sdk.InputResponse
		want   executor.Reply
	}{
		"true":               {accept(map[string]any{"approve": true}), executor.Approved(p)},
		"true and more":      {accept(map[string]any{"approve": true, "note": "yes"}), executor.Approved(p)},
		"no form":            {accept(nil), executor.Declined(p, "")},
		"an empty form":      {accept(map[string]any{}), executor.Declined(p, "")},
		"false":              {accept(map[string]any{"approve": false}), executor.Declined(p, "")},
		"the text true":      {accept(map[string]any{"approve": "true"}), executor.Declined(p, "")},
		"1":                  {accept(map[string]any{"approve": 1.0}), executor.Declined(p, "")},
		"a list":             {accept(map[string]any{"approve": []any{true}}), executor.Declined(p, "")},
		"other fields":       {accept(map[string]any{"Approve": true, "approved": true, "all": true}), executor.Declined(p, "")},
		"declined with true": {&sdk.ElicitResult{Action: "decline", Content: map[string]any{"approve": true}}, executor.Declined(p, "")},
		"another action":     {&sdk.ElicitResult{Action: "Accept", Content: map[string]any{"approve": true}}, executor.Declined(p, "")},
		//lint:ignore SA1019 servers of the older protocol ask for it
		"another kind of answer": {&sdk.ListRootsResult{}, executor.Declined(p, "")},
		"a nil answer":           {nobody, executor.Declined(p, "")},
		"no answer":              {nil, executor.Declined(p, "")},
	} {
		t.Run(name, func(t *testing.T) {
			got := replies(d, sdk.InputResponseMap{p.Key.String(): c.answer})
			require.Equal(t, []executor.Reply{c.want}, got)
		})
	}
}

func TestOldestPausedRunIsDropped(t *testing.T) {
	s := &agentServer{pauses: store.New(store.Memory())}
	pause := func() string {
		state, err := s.pause(t.Context(), dag.New().User("Go."), nil)
		require.NoError(t, err)
		return state
	}
	resume := func(state string) error {
		_, _, err := s.resume(t.Context(), state)
		return err
	}

	synctest.Test(t, func(*testing.T) {
		first := pause()
		time.Sleep(time.Second)
		second := pause()
		time.Sleep(time.Second)
		for range 999 {
			pause()
		}
		require.ErrorIs(t, resume(first), errAnswered, "1,000 are kept")
		require.NoError(t, resume(second))
		require.ErrorIs(t, resume(second), errAnswered, "a state is used once")
	})

	synctest.Test(t, func(*testing.T) {
		early := pause()
		time.Sleep(time.Hour)
		late := pause()
		time.Sleep(23*time.Hour + time.Minute)
		require.ErrorIs(t, resume(early), errAnswered, "it is older than a day")
		require.NoError(t, resume(late))
	})
}

func TestStateIsOfOneTool(t *testing.T) {
	pauses := store.New(store.Memory())
	ask := &agentServer{AgentTool: AgentTool{Name: "ask"}, pauses: pauses}
	other := &agentServer{AgentTool: AgentTool{Name: "other"}, pauses: pauses}
	state, err := ask.pause(t.Context(), dag.New().User("Go."), nil)
	require.NoError(t, err)
	_, _, err = other.resume(t.Context(), state)
	require.ErrorIs(t, err, errAnswered)
	for key := range pauses.Conversations(t.Context(), "") {
		require.NotContains(t, key, state[len(state)-26:], "the store does not have the secret")
	}

	for _, hostile := range []string{"x", "-", "zz-", strings.Repeat("a", 300), "a\x00-", "../-", state + " ", "0" + state} {
		_, _, err = ask.resume(t.Context(), hostile)
		require.ErrorIs(t, err, errAnswered, "%q", hostile)
	}
	_, _, err = ask.resume(t.Context(), state)
	require.NoError(t, err)
}
