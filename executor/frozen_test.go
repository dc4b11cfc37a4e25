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
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// updateFrozen rewrites the golden files. Version 2 is frozen: use it only to add what a new optional member needs.
var updateFrozen = flag.Bool("update-frozen", false, "rewrite the golden files of the saved forms of version 2")

// The values below set every field of their types.
var (
	frozenKey  = node.CallKey{Message: node.ID(uuid.MustParse("01941f29-7c00-7000-8000-000000000001")), Index: 2}
	frozenCall = executor.Call{Name: "look", Input: `{"at":2}`, Message: frozenKey.Message, Index: 2, ID: "call_2"}

	frozenContinuations = []executor.Continuation{
		{
			Run: "run_1", ID: "pause_2", Parent: "pause_1", Reason: content.StopApproval,
			Calls:      []node.CallKey{{Message: frozenKey.Message}, frozenKey},
			Attributes: map[string]any{"tenant": "acme"},
		},
		{ID: "pause_1", Reason: content.StopResults, Calls: []node.CallKey{frozenKey}},
	}
	frozenPending = []dag.Pending{
		{
			Key: frozenKey, Call: frozenCall, Tool: "peek", Input: `{"at":1}`, Note: "a worker runs it", Deferred: true,
		},
		{Key: frozenKey, Call: frozenCall, Tool: "look", Input: `{"at":2}`, Note: "it deletes", Approval: true},
	}
)

func frozenReplies() []executor.Reply {
	p := frozenPending[0]
	decided := executor.Approved(p)
	decided.By, decided.At = "ann@example.com", time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	return []executor.Reply{
		decided,
		executor.ApprovedWith(p, `{"at":2}`),
		executor.ApprovedWith(p, "{\n}"),
		executor.Declined(p, "too risky"),
		executor.Failed(p, "no such row"),
		executor.ReturnedFor(frozenKey, executor.Result{
			Content: content.Words("15 deg"), IsError: true, Terminate: true, Details: `{"rows":1}`,
			Usage: content.Usage{Input: 1}, Full: content.Words("15 degrees"),
		}),
	}
}

// golden compares lines with a golden file, and returns those of the file.
func golden(t *testing.T, path string, lines [][]byte) []string {
	t.Helper()
	var now strings.Builder
	for _, line := range lines {
		now.Write(line)
		now.WriteString("\n")
	}
	if *updateFrozen {
		require.NoError(t, os.WriteFile(path, []byte(now.String()), 0o644))
	}
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(data), now.String(), "version 2 is frozen: what it wrote must stay readable, byte for byte")
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

func TestContinuationFormOfVersion2IsFrozen(t *testing.T) {
	codec := executor.ContinuationCodec{Keys: []string{"tenant"}}
	var lines [][]byte
	for _, c := range frozenContinuations {
		data, err := codec.Encode(c)
		require.NoError(t, err)
		lines = append(lines, data)
	}
	for i, line := range golden(t, "testdata/continuations.v2.jsonl", lines) {
		back, err := codec.Decode([]byte(line))
		require.NoError(t, err)
		require.Equal(t, frozenContinuations[i], back)
	}
}

func TestTaskFormOfVersion2IsFrozen(t *testing.T) {
	codec := executor.ToolTaskCodec{Keys: []string{"tenant"}}
	var lines [][]byte
	for _, p := range frozenPending {
		data, err := executor.EncodeTask(codec, frozenContinuations[0], p)
		require.NoError(t, err)
		lines = append(lines, data)
	}
	for i, line := range golden(t, "testdata/tasks.v2.jsonl", lines) {
		back, err := codec.Decode([]byte(line))
		require.NoError(t, err)
		require.Equal(t, executor.ToolTask{
			Run: "run_1", Continuation: "pause_2", Pending: frozenPending[i], Attributes: map[string]string{"tenant": "acme"},
		}, back)
	}
}

func TestReplyFormOfVersion2IsFrozen(t *testing.T) {
	var lines [][]byte
	for _, r := range frozenReplies() {
		data, err := r.MarshalJSON()
		require.NoError(t, err)
		lines = append(lines, data)
	}
	for i, line := range golden(t, "testdata/replies.v2.jsonl", lines) {
		var r executor.Reply
		require.NoError(t, r.UnmarshalJSON([]byte(line)))
		require.Equal(t, frozenReplies()[i], r)
	}
}

// TestFormerFormIsRefused: what version 1 wrote is refused.
func TestFormerFormIsRefused(t *testing.T) {
	for _, path := range []string{"results", "doubt", "approval", "agents", "inner"} {
		data, err := os.ReadFile("testdata/" + path + ".v1.json")
		require.NoError(t, err)
		_, err = executor.ContinuationCodec{}.Decode(data)
		require.ErrorIs(t, err, dag.ErrVersion)
	}
	for path, decode := range map[string]func([]byte) error{
		"testdata/tasks.v1.jsonl": func(line []byte) error {
			_, err := executor.ToolTaskCodec{}.Decode(line)
			return err
		},
		"testdata/replies.v1.jsonl": func(line []byte) error { return new(executor.Reply).UnmarshalJSON(line) },
	} {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		for line := range strings.Lines(string(data)) {
			require.ErrorAs(t, decode([]byte(line)), new(*executor.CodecError))
		}
	}
}

// TestFrozenFormsHaveEveryField fails when a field is added that the golden files do not hold.
func TestFrozenFormsHaveEveryField(t *testing.T) {
	// Where the call is and when it was begun is in the conversation alone.
	unsaved := map[string]bool{"Pending.Path": true, "Pending.Started": true}
	values := map[reflect.Type][]any{}
	add := func(value any) { values[reflect.TypeOf(value)] = append(values[reflect.TypeOf(value)], value) }
	for _, c := range frozenContinuations {
		add(c)
	}
	for _, p := range frozenPending {
		add(p)
		add(p.Call)
	}
	for _, r := range frozenReplies() {
		add(r)
	}
	for kind, all := range values {
		for i := range kind.NumField() {
			field, set := kind.Name()+"."+kind.Field(i).Name, false
			for _, v := range all {
				set = set || !reflect.ValueOf(v).Field(i).IsZero()
			}
			require.True(t, set || unsaved[field], "%s is set nowhere", field)
		}
	}
}
