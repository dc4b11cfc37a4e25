package mcp

import (
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/executor"
)

func TestOnlyTheBooleanTrueApproves(t *testing.T) {
	accept := func(fields map[string]any) sdk.InputResponse {
		return &sdk.ElicitResult{Action: "accept", Content: fields}
	}
	var nobody *sdk.ElicitResult
	for name, c := range map[string]struct {
		answer sdk.InputResponse
		want   executor.Reply
	}{
		"true":               {accept(map[string]any{"approve": true}), executor.Approved()},
		"true and more":      {accept(map[string]any{"approve": true, "note": "yes"}), executor.Approved()},
		"no form":            {accept(nil), executor.Declined("")},
		"an empty form":      {accept(map[string]any{}), executor.Declined("")},
		"false":              {accept(map[string]any{"approve": false}), executor.Declined("")},
		"the text true":      {accept(map[string]any{"approve": "true"}), executor.Declined("")},
		"1":                  {accept(map[string]any{"approve": 1.0}), executor.Declined("")},
		"a list":             {accept(map[string]any{"approve": []any{true}}), executor.Declined("")},
		"other fields":       {accept(map[string]any{"Approve": true, "approved": true, "all": true}), executor.Declined("")},
		"declined with true": {&sdk.ElicitResult{Action: "decline", Content: map[string]any{"approve": true}}, executor.Declined("")},
		"another action":     {&sdk.ElicitResult{Action: "Accept", Content: map[string]any{"approve": true}}, executor.Declined("")},
		//lint:ignore SA1019 servers of the older protocol ask for it
		"another kind of answer": {&sdk.ListRootsResult{}, executor.Declined("")},
		"a nil answer":           {nobody, executor.Declined("")},
		"no answer":              {nil, executor.Declined("")},
	} {
		t.Run(name, func(t *testing.T) {
			paused := executor.Continuation{Pending: []executor.Pending{{ID: "c", Approval: true}}}
			got := replies(paused, sdk.InputResponseMap{"c": c.answer})
			require.Equal(t, map[string]executor.Reply{"c": c.want}, got)
		})
	}
}

func TestOldestPausedRunIsDropped(t *testing.T) {
	s := &agentServer{}
	first := s.keep(pausedRun{})
	second := s.keep(pausedRun{})
	for range 999 {
		s.keep(pausedRun{})
	}
	_, found := s.take(first)
	require.False(t, found, "1,000 are kept")
	_, found = s.take(second)
	require.True(t, found)
	_, found = s.take(second)
	require.False(t, found, "a state is used once")

	kept := s.keep(pausedRun{})
	for range 2000 {
		s.take(s.keep(pausedRun{}))
	}
	_, found = s.take(kept)
	require.True(t, found, "runs that have continued do not count")
}
