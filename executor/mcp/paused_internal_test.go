package mcp

import (
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
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
