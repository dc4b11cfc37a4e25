package executor_test

import (
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// updateFrozen rewrites the golden files. Version 1 is frozen: use it only to add what a new optional member needs.
var updateFrozen = flag.Bool("update-frozen", false, "rewrite the golden files of the continuation form")

// frozenPauses returns continuations that together set every field, by their golden files.
func frozenPauses() map[string]executor.Continuation {
	message := uuid.MustParse("01941f29-7c00-7000-8000-000000000001")
	totals := node.StopReason{
		Reason: content.StopResults, Turns: 2, ToolCalls: 3, Elapsed: time.Second, Cost: 0.25, CostKnown: true,
		Usage:     content.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Reasoning: 5, Incomplete: true},
		ToolUsage: content.Usage{Output: 7},
	}
	partly := totals
	partly.Reason, partly.CostKnown = content.StopApproval, false
	research := executor.Call{Name: "research", Input: `{"task":"find it"}`, ID: "call_1"}
	kept := totals
	kept.Usage.CacheWriteLong = 2
	write := executor.Call{Name: "write", Input: `{"task":"write it"}`, ID: "call_2/", Index: 2}
	check := executor.Call{Name: "check", Input: `{"task":"check it"}`, ID: "call_7", Index: 1}

	return map[string]executor.Continuation{
		"testdata/results.v1.json": {
			Run: "run_1", ID: "pause_2", Parent: "pause_1", Reason: content.StopResults, Message: message, Totals: totals,
			Pending: []executor.Pending{
				{ID: "call_1", Tool: "look", Deferred: true, Reason: "a worker runs it", Call: executor.Call{Name: "look", Input: `{"at":1}`, ID: "call_1"}},
				{ID: "call_2", Tool: "foo.bar", Deferred: true, Call: executor.Call{Name: "foo_bar", Input: "{\n}", ID: "twice", Index: 2}},
			},
			Attributes: map[string]any{"tenant": "acme"},
		},
		"testdata/usage.v1.json": {
			Run: "run_1", ID: "pause_4", Reason: content.StopResults, Message: message, Totals: kept,
			Pending: []executor.Pending{
				{ID: "call_1", Tool: "look", Deferred: true, Call: executor.Call{Name: "look", Input: "{}", ID: "call_1"}},
			},
		},
		"testdata/doubt.v1.json": {
			Run: "run_1", ID: "pause_3", Reason: content.StopApproval, Message: message, Totals: partly,
			Pending: []executor.Pending{{
				ID: "call_1", Tool: "pay", Approval: true, Reason: "in doubt", Started: time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC),
				Call: executor.Call{Name: "pay", Input: "{}", ID: "call_1"},
			}},
		},
		"testdata/approval.v1.json": {
			Run: "run_1", ID: "pause_1", Reason: content.StopApproval, Message: message, Totals: partly,
			Pending: []executor.Pending{
				{ID: "call_1", Tool: "look", Approval: true, Deferred: true, Call: executor.Call{Name: "look", Input: "{}", ID: "call_1"}},
				{ID: "call_2", Tool: "delete", Approval: true, Reason: "it deletes", Call: executor.Call{Name: "delete", Input: "{}", ID: "call_2", Index: 1}},
			},
		},
		"testdata/agents.v1.json": {
			Run: "run_1", ID: "pause_2", Parent: "pause_1", Reason: content.StopApproval, Message: message, Totals: partly,
			Pending: []executor.Pending{
				{ID: "call_1/call_1", Tool: "delete", Approval: true, Path: []executor.Call{research}, Call: executor.Call{Name: "delete", Input: "{}", ID: "call_1"}},
				{ID: "call_2", Tool: "look", Deferred: true, Call: executor.Call{Name: "look", Input: `{"at":1}`, ID: "call_2", Index: 1}},
				{ID: "call_2%2F/call_7/call_0", Tool: "look", Deferred: true, Path: []executor.Call{write, check}, Call: executor.Call{Name: "look", Input: `{"at":2}`}},
			},
			Agents: []executor.PausedAgent{
				{Path: []executor.Call{research}, Run: "run_2", ID: "pause_3", Parent: "pause_0", Message: message, Totals: partly},
				{Path: []executor.Call{write}, Run: "run_3", ID: "pause_4", Message: message, Totals: totals},
				{Path: []executor.Call{write, check}, Run: "run_4", ID: "pause_5", Message: message, Totals: totals},
			},
		},
		"testdata/inner.v1.json": {
			Run: "run_1", ID: "pause_2", Reason: content.StopResults, Message: message, Totals: totals, InnerTurns: 5, InnerCalls: 6,
			Pending: []executor.Pending{
				{ID: "call_1/call_1", Tool: "look", Deferred: true, Path: []executor.Call{research}, Call: executor.Call{Name: "look", Input: "{}", ID: "call_1"}},
			},
			Agents: []executor.PausedAgent{
				{Path: []executor.Call{research}, Run: "run_2", ID: "pause_3", Message: message, Totals: totals, InnerTurns: 1, InnerCalls: 2},
			},
		},
	}
}

func golden(t *testing.T, path, now string) string {
	t.Helper()
	if *updateFrozen {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(now), 0o644))
	}
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

func TestContinuationFormOfVersion1IsFrozen(t *testing.T) {
	codec := executor.ContinuationCodec{Keys: []string{"tenant"}}
	for path, pause := range frozenPauses() {
		data, err := codec.Encode(pause)
		require.NoError(t, err)
		saved := golden(t, path, string(data)+"\n")
		require.Equal(t, saved, string(data)+"\n", "version 1 is frozen: what it wrote must stay readable, byte for byte")

		back, err := codec.Decode([]byte(saved))
		require.NoError(t, err)
		require.Equal(t, pause, back)
	}
}

func TestTaskFormOfVersion1IsFrozen(t *testing.T) {
	codec := executor.ToolTaskCodec{Keys: []string{"tenant"}}
	pause := frozenPauses()["testdata/results.v1.json"]
	tasks, err := codec.Encode(pause)
	require.NoError(t, err)

	var all strings.Builder
	for _, task := range tasks {
		all.Write(task)
		all.WriteString("\n")
	}
	saved := golden(t, "testdata/tasks.v1.jsonl", all.String())
	require.Equal(t, saved, all.String())

	i := 0
	for line := range strings.Lines(saved) {
		task, err := codec.Decode([]byte(line))
		require.NoError(t, err)
		want := pause.Pending[i]
		require.Equal(t, executor.ToolTask{
			Run: pause.Run, Continuation: pause.ID, Turn: pause.Totals.Turns, ID: want.ID, Call: want.Call, Tool: want.Tool,
			Attributes: map[string]string{"tenant": "acme"},
		}, task)
		i++
	}
	require.Equal(t, len(pause.Pending), i)
}

func TestReplyFormOfVersion1IsFrozen(t *testing.T) {
	replies := []executor.Reply{
		executor.Approved(),
		executor.ApprovedWith(`{"at":2}`),
		executor.ApprovedWith("{\n}"),
		executor.Declined("too risky"),
		executor.Failed("no such row"),
		executor.Returned(executor.Result{
			Content: content.Words("15 deg"), IsError: true, Terminate: true, Details: `{"rows":1}`, Usage: content.Usage{Input: 1},
			Full: content.Words("15 degrees"),
		}),
	}
	var all strings.Builder
	for _, r := range replies {
		data, err := r.MarshalJSON()
		require.NoError(t, err)
		all.Write(data)
		all.WriteString("\n")
	}
	saved := golden(t, "testdata/replies.v1.jsonl", all.String())
	require.Equal(t, saved, all.String())

	i := 0
	for line := range strings.Lines(saved) {
		var r executor.Reply
		require.NoError(t, r.UnmarshalJSON([]byte(strings.TrimSpace(line))))
		require.Equal(t, replies[i], r)
		i++
	}
	require.Len(t, replies, i)
}

// TestFrozenPausesHaveEveryField fails when a field is added that the golden files do not hold.
func TestFrozenPausesHaveEveryField(t *testing.T) {
	unsaved := map[string]bool{"StopReason.Detail": true}
	set := map[string]bool{}
	types := map[string]reflect.Type{}
	note := func(value any) {
		v := reflect.ValueOf(value)
		types[v.Type().Name()] = v.Type()
		for i := range v.NumField() {
			if !v.Field(i).IsZero() {
				set[v.Type().Name()+"."+v.Type().Field(i).Name] = true
			}
		}
	}
	for _, pause := range frozenPauses() {
		note(pause)
		note(pause.Totals)
		note(pause.Totals.Usage)
		for _, p := range pause.Pending {
			note(p)
			note(p.Call)
		}
		for _, a := range pause.Agents {
			note(a)
		}
	}

	for name, kind := range types {
		for i := range kind.NumField() {
			field := name + "." + kind.Field(i).Name
			require.True(t, set[field] || unsaved[field], "%s is set nowhere", field)
		}
	}
}
