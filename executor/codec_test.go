package executor_test

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	json "github.com/goccy/go-json/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// fullContinuation is a continuation in which every member has something to say.
func fullContinuation() executor.Continuation {
	return executor.Continuation{
		Run: "run", ID: "c2", Parent: "c1", Reason: content.StopResults, Message: uuid.MustParse("01941f29-7c00-7000-8000-000000000001"),
		Pending: []executor.Pending{
			{ID: "tc_1", Tool: "echo", Deferred: true, Call: executor.Call{Name: "echo", Input: `{"a": 1.0}`, ID: "tc_1"}},
			{ID: "call_2", Tool: "foo.bar", Deferred: true, Reason: "why", Call: executor.Call{Name: "foo_bar", Input: "{\n}", Index: 2}},
			{ID: "call_3", Tool: "", Deferred: true, Call: executor.Call{Name: "x", Input: "{}", Index: 3, ID: "dup"}},
			{ID: "call_4", Tool: "y", Deferred: true, Call: executor.Call{Name: "", Input: "{}", Index: 4, ID: "dup"}},
		},
		Totals: node.StopReason{
			Reason: content.StopResults, Turns: 2, ToolCalls: 3, Usage: content.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Reasoning: 5, Incomplete: true},
			ToolUsage: content.Usage{Output: -7}, Cost: 1e-7, CostKnown: true, Elapsed: -5,
		},
		Attributes: map[string]any{"tenant": "acme", "key": "SECRET", "n": 7},
	}
}

const fullSaved = `{"schema_version":1,"run_id":"run","continuation_id":"c2","parent_continuation_id":"c1","pause_reason":"awaiting_tool_results",` +
	`"message_id":"01941f29-7c00-7000-8000-000000000001","pending":[` +
	`{"tool_call_id":"tc_1","index":0,"name":"echo","arguments":{"a": 1.0},"deferred":true},` +
	`{"tool_call_id":"call_2","index":2,"call_id":"","name":"foo.bar","executed_name":"foo_bar","arguments_text":"{\n}","deferred":true,"reason":"why"},` +
	`{"tool_call_id":"call_3","index":3,"call_id":"dup","name":"","executed_name":"x","arguments":{},"deferred":true},` +
	`{"tool_call_id":"call_4","index":4,"call_id":"dup","name":"y","executed_name":"","arguments":{},"deferred":true}],` +
	`"totals":{"turns":2,"tool_calls":3,"usage":{"input":1,"output":2,"cache_read":3,"cache_write":4,"reasoning":5,"incomplete":true},` +
	`"tool_usage":{"output":-7},"cost":1e-07,"elapsed_ns":-5},"attributes":{"n":"7","tenant":"acme"}}`

// withMember is fullSaved with a member replaced; a member that is not valid JSON, "-", is left out.
func withMember(t *testing.T, path, value string) []byte {
	t.Helper()
	var doc any
	require.NoError(t, stdjson.Unmarshal([]byte(fullSaved), &doc))
	steps := strings.Split(path, "/")
	at := doc
	for _, step := range steps[:len(steps)-1] {
		if list, ok := at.([]any); ok {
			at = list[step[0]-'0']
		} else {
			at = at.(map[string]any)[step]
		}
	}
	members, last := at.(map[string]any), steps[len(steps)-1]
	delete(members, last)
	if value != "-" {
		members[last] = stdjson.RawMessage(value)
	}
	out, err := stdjson.Marshal(doc)
	require.NoError(t, err)
	return out
}

func requireCodec(t *testing.T, err error, field, reason string) {
	t.Helper()
	require.ErrorIs(t, err, executor.ErrCodec)
	var wrong *executor.CodecError
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, field, wrong.Field, "%v", err)
	require.ErrorContains(t, wrong.Err, reason)
	require.ErrorContains(t, err, wrong.Err.Error())
	require.ErrorContains(t, err, field)
}

func TestAContinuationIsWrittenAndRead(t *testing.T) {
	codec := executor.ContinuationCodec{Keys: []string{"tenant", "n", "tenant", "absent"}}
	data, err := codec.Encode(fullContinuation())
	require.NoError(t, err)
	require.Equal(t, fullSaved, string(data))
	for range 20 {
		again, err := codec.Encode(fullContinuation())
		require.NoError(t, err)
		require.Equal(t, string(data), string(again), "the bytes are always the same")
	}
	want := fullContinuation()
	want.Attributes = map[string]any{"tenant": "acme", "n": "7"}
	c, err := executor.ContinuationCodec{}.Decode(data)
	require.NoError(t, err)
	require.Equal(t, want, c)

	printed := strings.NewReplacer(`":`, "\" :\n", `,"`, " ,\t\"").Replace(strings.TrimSuffix(fullSaved, "}")) + `,"future":{"pending":[]}} `
	c, err = codec.Decode([]byte(printed))
	require.NoError(t, err, "space and members that nobody knows do no harm")
	require.Equal(t, want.Pending[1:], c.Pending[1:])
}

func TestSmallestContinuation(t *testing.T) {
	c := fullContinuation()
	c.Parent, c.Attributes, c.Reason = "", nil, content.StopApproval
	c.Pending = []executor.Pending{{ID: "a", Approval: true, Call: executor.Call{Input: "{}", ID: "a"}}}
	c.Totals = node.StopReason{Reason: c.Reason}
	data, err := executor.ContinuationCodec{Keys: []string{"tenant"}}.Encode(c)
	require.NoError(t, err)
	require.Equal(t, `{"schema_version":1,"run_id":"run","continuation_id":"c2","pause_reason":"awaiting_approval",`+
		`"message_id":"01941f29-7c00-7000-8000-000000000001",`+
		`"pending":[{"tool_call_id":"a","index":0,"name":"","arguments":{},"approval":true}],"totals":{"turns":0,"tool_calls":0}}`, string(data))
	back, err := executor.ContinuationCodec{}.Decode(data)
	require.NoError(t, err)
	require.Equal(t, c, back)
	back, err = executor.ContinuationCodec{}.Decode([]byte(strings.TrimSuffix(string(data), "}") + `,"parent_continuation_id":"","attributes":{}}`))
	require.NoError(t, err)
	require.Equal(t, c, back)
	c.Totals.Detail, c.Totals.Reason = "of another time", content.StopError
	again, err := executor.ContinuationCodec{}.Encode(c)
	require.NoError(t, err)
	require.Equal(t, string(data), string(again), "the reason is that of the pause")
}

// TestOnlyListedAttributesAreWritten is A32 of the tool loop.
func TestOnlyListedAttributesAreWritten(t *testing.T) {
	c := fullContinuation()
	c.Attributes = map[string]any{
		"tenant_id": strings.Repeat("é", 150), "exact": strings.Repeat("x", 200), "password": "SECRET", "none": nil, "bad": "a\xffb",
		"panics": stringer{}, "wide": strings.Repeat("\xff,", 150), "key\xff": 1, "key\xfe": 2,
	}
	for _, encode := range []func(keys ...string) (string, map[string]string){
		func(keys ...string) (string, map[string]string) {
			codec := executor.ContinuationCodec{Keys: keys}
			data, err := codec.Encode(c)
			require.NoError(t, err)
			back, err := codec.Decode(data)
			require.NoError(t, err)
			texts := map[string]string{}
			for key, value := range back.Attributes {
				texts[key] = value.(string)
			}
			return string(data), texts
		},
		func(keys ...string) (string, map[string]string) {
			codec := executor.ToolTaskCodec{Keys: keys}
			data, err := codec.Encode(c)
			require.NoError(t, err)
			task, err := codec.Decode(data[0])
			require.NoError(t, err)
			return string(data[0]), task.Attributes
		},
	} {
		data, _ := encode()
		require.NotContains(t, data, "SECRET")
		require.NotContains(t, data, "attributes")
		data, read := encode("tenant_id", "missing")
		require.NotContains(t, data, "SECRET")
		require.Equal(t, map[string]string{"tenant_id": strings.Repeat("é", 100)}, read, "cut to 200 bytes")
		_, read = encode("exact", "none", "bad", "panics", "key\xff", "key\xfe", "wide")
		require.Equal(t, strings.Repeat("x", 200), read["exact"])
		require.Equal(t, "<nil>", read["none"])
		require.Equal(t, "a\uFFFDb", read["bad"])
		require.Equal(t, "1", read["key\uFFFD"])
		require.Equal(t, strings.Repeat("\uFFFD,", 50), read["wide"], "what is not UTF-8 grows before it is cut")
		require.Contains(t, read["panics"], "PANIC")
	}
	c.Attributes = map[string]any{"odd": "x" + strings.Repeat("é", 150)}
	_, err := executor.ContinuationCodec{Keys: []string{"odd"}}.Encode(c)
	require.NoError(t, err)
	c.Attributes["odd"] = "x" + strings.Repeat("é", 150)
	data, err := executor.ContinuationCodec{Keys: []string{"odd"}}.Encode(c)
	require.NoError(t, err)
	require.Contains(t, string(data), `"odd":"x`+strings.Repeat("é", 99)+`"}`, "no half character")
}

type stringer struct{}

func (stringer) String() string { panic("no") }

func TestAnotherVersionIsRefused(t *testing.T) {
	for _, decode := range []func([]byte) error{
		func(data []byte) error { _, err := executor.ContinuationCodec{}.Decode(data); return err },
		func(data []byte) error { _, err := executor.ToolTaskCodec{}.Decode(data); return err },
	} {
		for _, version := range []int{0, 2, 999, -1} {
			err := decode(fmt.Appendf(nil, `{"run_id":7,"schema_version":%d}`, version))
			require.ErrorIs(t, err, executor.ErrVersion)
			require.ErrorIs(t, err, dag.ErrVersion, "one error for every saved form")
			requireCodec(t, err, "schema_version", fmt.Sprintf("version %d, this program reads version 1", version))
			var which *executor.VersionError
			require.ErrorAs(t, err, &which)
			require.Equal(t, executor.VersionError{Version: version, Supported: 1}, *which)
		}
		for value, reason := range map[string]string{`"1"`: "no integer", "1.0": "no integer", "null": "no integer", "1e400": "no integer"} {
			err := decode([]byte(`{"schema_version":` + value + `}`))
			requireCodec(t, err, "schema_version", reason)
			require.NotErrorIs(t, err, executor.ErrVersion)
		}
		requireCodec(t, decode([]byte(`{}`)), "schema_version", "missing")
	}
}

func TestWhatIsNoContinuationIsRefused(t *testing.T) {
	long := `"` + strings.Repeat("x", 201) + `"`
	for _, c := range []struct{ path, value, field, reason string }{
		{"run_id", `-`, "run_id", "missing"},
		{"run_id", `""`, "run_id", "missing"},
		{"run_id", `7`, "run_id", "no string"},
		{"run_id", `null`, "run_id", "no string"},
		{"continuation_id", `-`, "continuation_id", "missing"},
		{"continuation_id", `""`, "continuation_id", "missing"},
		{"parent_continuation_id", `null`, "parent_continuation_id", "no string"},
		{"pause_reason", `-`, "pause_reason", "missing"},
		{"pause_reason", `"end_turn"`, "pause_reason", "neither awaiting_approval nor awaiting_tool_results"},
		{"message_id", `-`, "message_id", "missing"},
		{"message_id", `"x"`, "message_id", "no node's id"},
		{"message_id", `"01941F29-7c00-7000-8000-000000000001"`, "message_id", "lower-case"},
		{"message_id", `"01941f297c0070008000000000000001"`, "message_id", "no node's id"},
		{"message_id", `"00000000-0000-0000-0000-000000000000"`, "message_id", "missing"},
		{"pending", `-`, "pending", "missing"},
		{"pending", `[]`, "pending", "no call waits"},
		{"pending", `{}`, "pending", "no list"},
		{"pending", `null`, "pending", "no list"},
		{"pending", `[7]`, "pending/0", "no JSON object"},
		{"pending/0/tool_call_id", `-`, "pending/0/tool_call_id", "missing"},
		{"pending/0/tool_call_id", `""`, "pending/0/tool_call_id", "missing"},
		{"pending/1/tool_call_id", `"tc_1"`, "pending/1/tool_call_id", "another call has it"},
		{"pending/1/index", `-`, "pending/1/index", "missing"},
		{"pending/1/index", `-1`, "pending/1/index", "negative"},
		{"pending/1/index", `0`, "pending/1/index", "0 does not come after 0"},
		{"pending/2/index", `1`, "pending/2/index", "1 does not come after 2"},
		{"pending/1/index", `1.5`, "pending/1/index", "no integer"},
		{"pending/1/index", `9223372036854775808`, "pending/1/index", "no integer"},
		{"pending/1/call_id", `7`, "pending/1/call_id", "no string"},
		{"pending/0/name", `-`, "pending/0/name", "missing"},
		{"pending/0/executed_name", `[]`, "pending/0/executed_name", "no string"},
		{"pending/0/arguments", `-`, "pending/0/arguments", "missing"},
		{"pending/0/arguments", `null`, "pending/0/arguments", "no JSON object"},
		{"pending/0/arguments", `[]`, "pending/0/arguments", "no JSON object"},
		{"pending/0/arguments", `"{}"`, "pending/0/arguments", "no JSON object"},
		{"pending/0/arguments_text", `"{}"`, "pending/0/arguments", "twice"},
		{"pending/1/arguments", `{}`, "pending/1/arguments", "twice"},
		{"pending/1/arguments_text", `""`, "pending/1/arguments", "missing"},
		{"pending/1/arguments_text", `"{"`, "pending/1/arguments", "no JSON object"},
		{"pending/1/arguments_text", `7`, "pending/1/arguments_text", "no string"},
		{"pending/0/approval", `true`, "pending/0/deferred", "waits for results"},
		{"pending/0/approval", `"true"`, "pending/0/approval", "neither true nor false"},
		{"pending/0/deferred", `-`, "pending/0/deferred", "waits for results"},
		{"pending/0/deferred", `1`, "pending/0/deferred", "neither true nor false"},
		{"pending/0/reason", `1`, "pending/0/reason", "no string"},
		{"totals", `-`, "totals", "missing"},
		{"totals", `[]`, "totals", "no JSON object"},
		{"totals/turns", `-`, "totals/turns", "missing"},
		{"totals/turns", `-1`, "totals/turns", "negative"},
		{"totals/tool_calls", `-`, "totals/tool_calls", "missing"},
		{"totals/tool_calls", `-1`, "totals/tool_calls", "negative"},
		{"totals/usage", `7`, "totals/usage", "no JSON object"},
		{"totals/usage/input", `"7"`, "totals/usage/input", "no integer"},
		{"totals/usage/incomplete", `7`, "totals/usage/incomplete", "neither true nor false"},
		{"totals/tool_usage/output", `1.5`, "totals/tool_usage/output", "no integer"},
		{"totals/cost", `-1`, "totals/cost", "negative or not finite"},
		{"totals/cost", `1e400`, "totals/cost", "no number that fits"},
		{"totals/cost", `"Inf"`, "totals/cost", "no number that fits"},
		{"totals/elapsed_ns", `"1s"`, "totals/elapsed_ns", "no integer"},
		{"attributes", `[]`, "attributes", "no JSON object"},
		{"attributes/tenant", `7`, "attributes/tenant", "no string"},
		{"attributes/tenant", long, "attributes/tenant", "longer than 200 bytes"},
	} {
		t.Run(c.path+"="+c.value[:min(len(c.value), 30)], func(t *testing.T) {
			got, err := executor.ContinuationCodec{}.Decode(withMember(t, c.path, c.value))
			requireCodec(t, err, c.field, c.reason)
			require.Zero(t, got)
		})
	}
	approval := strings.Replace(fullSaved, "awaiting_tool_results", "awaiting_approval", 1)
	_, err := executor.ContinuationCodec{}.Decode([]byte(approval))
	requireCodec(t, err, "pending", "no call asks for it")
	for data, want := range map[string]struct{ field, reason string }{
		"":               {"", "not valid JSON: EOF"},
		"null":           {"", "no JSON object"},
		"[]":             {"", "no JSON object"},
		fullSaved[:100]:  {"", "not valid JSON: unexpected EOF, after byte 100"},
		fullSaved + "{}": {"", "not valid JSON: there is more after its end"},
		`{"schema_version":1,"schema_version":1}`:                     {"schema_version", "duplicate object member name"},
		"{\"a\":\"\xff\"}":                                            {"a", "invalid UTF-8"},
		strings.Repeat(`{"a":`, 513) + "1" + strings.Repeat("}", 513): {"", "nests 513 deep; the limit is 512"},
	} {
		_, err := executor.ContinuationCodec{}.Decode([]byte(data))
		requireCodec(t, err, want.field, want.reason)
	}
	_, err = executor.ContinuationCodec{}.Decode([]byte(strings.Repeat(`{"a":`, 512) + "1" + strings.Repeat("}", 512)))
	requireCodec(t, err, "schema_version", "missing")
}

// TestWhatIsNoContinuationIsNotWritten: whatever cannot be read is not written either, with the same error.
func TestWhatIsNoContinuationIsNotWritten(t *testing.T) {
	for _, c := range []struct {
		field, reason string
		spoil         func(c *executor.Continuation, first, second *executor.Pending)
	}{
		{"run_id", "missing", func(c *executor.Continuation, _, _ *executor.Pending) { c.Run = "" }},
		{"run_id", "not UTF-8", func(c *executor.Continuation, _, _ *executor.Pending) { c.Run = "\xff" }},
		{"continuation_id", "missing", func(c *executor.Continuation, _, _ *executor.Pending) { c.ID = "" }},
		{"parent_continuation_id", "not UTF-8", func(c *executor.Continuation, _, _ *executor.Pending) { c.Parent = "\xff" }},
		{"pause_reason", "neither", func(c *executor.Continuation, _, _ *executor.Pending) { c.Reason = content.StopEndTurn }},
		{"message_id", "missing", func(c *executor.Continuation, _, _ *executor.Pending) { c.Message = node.ID{} }},
		{"pending", "no call waits", func(c *executor.Continuation, _, _ *executor.Pending) { c.Pending = nil }},
		{"pending", "no call asks", func(c *executor.Continuation, _, _ *executor.Pending) { c.Reason = content.StopApproval }},
		{"pending/0/tool_call_id", "missing", func(_ *executor.Continuation, p, _ *executor.Pending) { p.ID = "" }},
		{"pending/0/tool_call_id", "not UTF-8", func(_ *executor.Continuation, p, _ *executor.Pending) { p.ID = "\xff" }},
		{"pending/1/tool_call_id", "another", func(_ *executor.Continuation, _, p *executor.Pending) { p.ID = "tc_1" }},
		{"pending/0/index", "negative", func(_ *executor.Continuation, p, _ *executor.Pending) { p.Call.Index = -1 }},
		{"pending/1/index", "0 does not come after 0", func(_ *executor.Continuation, _, p *executor.Pending) { p.Call.Index = 0 }},
		{"pending/0/call_id", "not UTF-8", func(_ *executor.Continuation, p, _ *executor.Pending) { p.Call.ID = "\xff" }},
		{"pending/0/name", "not UTF-8", func(_ *executor.Continuation, p, _ *executor.Pending) { p.Tool = "\xff" }},
		{"pending/0/executed_name", "not UTF-8", func(_ *executor.Continuation, p, _ *executor.Pending) { p.Call.Name = "\xff" }},
		{"pending/0/arguments", "no JSON object", func(_ *executor.Continuation, p, _ *executor.Pending) { p.Call.Input = "" }},
		{"pending/0/arguments", "no JSON object", func(_ *executor.Continuation, p, _ *executor.Pending) { p.Call.Input = "[]" }},
		{"pending/0/deferred", "waits for results", func(_ *executor.Continuation, p, _ *executor.Pending) { p.Deferred = false }},
		{"pending/0/deferred", "waits for results", func(_ *executor.Continuation, p, _ *executor.Pending) { p.Approval = true }},
		{"totals/turns", "negative", func(c *executor.Continuation, _, _ *executor.Pending) { c.Totals.Turns = -1 }},
		{"totals/tool_calls", "negative", func(c *executor.Continuation, _, _ *executor.Pending) { c.Totals.ToolCalls = -1 }},
		{"inner_turns", "negative", func(c *executor.Continuation, _, _ *executor.Pending) { c.InnerTurns = -1 }},
		{"inner_calls", "negative", func(c *executor.Continuation, _, _ *executor.Pending) { c.InnerCalls = -1 }},
		{"agents/0/path", "missing", func(c *executor.Continuation, _, _ *executor.Pending) {
			c.Agents = []executor.PausedAgent{{Run: "r2", ID: "c2"}}
		}},
		{"totals/cost", "negative", func(c *executor.Continuation, _, _ *executor.Pending) { c.Totals.Cost = -0.5 }},
		{"totals/cost", "not finite", func(c *executor.Continuation, _, _ *executor.Pending) { c.Totals.Cost = math.NaN() }},
		{"totals/cost", "not finite", func(c *executor.Continuation, _, _ *executor.Pending) { c.Totals.Cost = math.Inf(1) }},
	} {
		broken := fullContinuation()
		c.spoil(&broken, &broken.Pending[0], &broken.Pending[1])
		data, err := executor.ContinuationCodec{}.Encode(broken)
		requireCodec(t, err, c.field, c.reason)
		require.Nil(t, data)
		tasks, err := executor.ToolTaskCodec{}.Encode(broken)
		requireCodec(t, err, c.field, c.reason)
		require.Nil(t, tasks)
	}
	c := fullContinuation()
	c.Pending[0].Reason = "a\xffb"
	data, err := executor.ContinuationCodec{}.Encode(c)
	require.NoError(t, err, "words are only read by people")
	require.Contains(t, string(data), "\"reason\":\"a\uFFFDb\"")
}

func TestWhatIsTooLargeIsNeitherWrittenNorRead(t *testing.T) {
	const limit = 64 << 20
	_, err := executor.ContinuationCodec{}.Decode(make([]byte, limit+1))
	requireCodec(t, err, "", "larger than 67108864 bytes")
	_, err = executor.ToolTaskCodec{}.Decode(make([]byte, limit+1))
	requireCodec(t, err, "", "larger than")
	fits := make([]byte, limit)
	fits[0] = '"' // so that it is looked at quickly
	_, err = executor.ContinuationCodec{}.Decode(fits)
	requireCodec(t, err, "", "not valid JSON")
	c := fullContinuation()
	c.Pending[0].Tool = strings.Repeat("x", limit) // cheaper than arguments of that size
	_, err = executor.ContinuationCodec{}.Encode(c)
	requireCodec(t, err, "", "larger than")
	_, err = executor.ToolTaskCodec{}.Encode(c)
	requireCodec(t, err, "", "larger than")
}

func TestArgumentsKeepTheirBytes(t *testing.T) {
	deep := content.JSON(strings.Repeat(`{"a":`, 300) + "1" + strings.Repeat("}", 300))
	for _, input := range []content.JSON{`{}`, ` {"a" : 1.00, "b":"<\u003c\/>"}`, "{\r\n\t}", deep, `{"n":123456789012345678901234567890}`} {
		c := fullContinuation()
		c.Pending[0].Call.Input = input
		data, err := executor.ContinuationCodec{}.Encode(c)
		require.NoError(t, err)
		require.NotContains(t, string(data), "\n")
		back, err := executor.ContinuationCodec{}.Decode(data)
		require.NoError(t, err)
		require.Equal(t, input, back.Pending[0].Call.Input)
		tasks, err := executor.ToolTaskCodec{}.Encode(c)
		require.NoError(t, err)
		task, err := executor.ToolTaskCodec{}.Decode(tasks[0])
		require.NoError(t, err)
		require.Equal(t, input, task.Call.Input)
	}
}

func TestErrorsOfTheCodecCannotDriveATerminal(t *testing.T) {
	for _, data := range []string{
		`{"schema_version":1,"pending":[],"run_id":"\u001b[2J","continuation_id":"c","pause_reason":"\u001b[2J\u202e"}`,
		string(withMember(t, "attributes", `{"\u001b]0;a\n`+strings.Repeat("x", 500)+`":7}`)),
	} {
		_, err := executor.ContinuationCodec{}.Decode([]byte(data))
		require.ErrorIs(t, err, executor.ErrCodec)
		require.NotContains(t, err.Error(), "\x1b")
		require.NotContains(t, err.Error(), "\n")
		require.Less(t, len(err.Error()), 400)
	}
	e := &executor.CodecError{Field: "a\nb", Err: errors.New("c\x1bd")}
	require.Equal(t, `executor: saved: a\nb: c\x1bd`, e.Error())
}

// TestALongListTakesNoMemoryForWhatIsRefused: the first call that is none ends the reading.
func TestALongListTakesNoMemoryForWhatIsRefused(t *testing.T) {
	data := withMember(t, "pending", `[0`+strings.Repeat(",0", 1<<20)+`]`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := executor.ContinuationCodec{}.Decode(data)
	runtime.ReadMemStats(&after)
	requireCodec(t, err, "pending/0", "no JSON object")
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16*len(data)))
}

// TestTasks is A33 of the tool loop.
func TestTasks(t *testing.T) {
	codec := executor.ToolTaskCodec{Keys: []string{"tenant"}}
	tasks, err := codec.Encode(fullContinuation())
	require.NoError(t, err)
	require.Equal(t, []string{
		`{"schema_version":1,"run_id":"run","continuation_id":"c2","turn":2,"tool_call_id":"tc_1","index":0,"name":"echo","executed_name":"echo","arguments":{"a": 1.0},"attributes":{"tenant":"acme"}}`,
		`{"schema_version":1,"run_id":"run","continuation_id":"c2","turn":2,"tool_call_id":"call_2","index":2,"call_id":"","name":"foo.bar","executed_name":"foo_bar","arguments_text":"{\n}","attributes":{"tenant":"acme"}}`,
		`{"schema_version":1,"run_id":"run","continuation_id":"c2","turn":2,"tool_call_id":"call_3","index":3,"call_id":"dup","name":"","executed_name":"x","arguments":{},"attributes":{"tenant":"acme"}}`,
		`{"schema_version":1,"run_id":"run","continuation_id":"c2","turn":2,"tool_call_id":"call_4","index":4,"call_id":"dup","name":"y","executed_name":"","arguments":{},"attributes":{"tenant":"acme"}}`,
	}, []string{string(tasks[0]), string(tasks[1]), string(tasks[2]), string(tasks[3])})
	for i, p := range fullContinuation().Pending {
		task, err := executor.ToolTaskCodec{}.Decode(tasks[i])
		require.NoError(t, err)
		require.Equal(t, executor.ToolTask{
			Run: "run", Continuation: "c2", Turn: 2, ID: p.ID, Call: p.Call, Tool: p.Tool, Attributes: map[string]string{"tenant": "acme"},
		}, task)
	}
	task, err := codec.Decode([]byte(strings.Replace(string(tasks[0]), `{"tenant":"acme"}`, `{}`, 1)))
	require.NoError(t, err)
	require.Nil(t, task.Attributes)

	c := fullContinuation()
	c.Reason, c.Pending[0].Approval = content.StopApproval, true
	_, err = codec.Encode(c)
	requireCodec(t, err, "pause_reason", "waits for approval")

	for _, broken := range []struct{ from, to, field, reason string }{
		{`"run_id":"run",`, ``, "run_id", "missing"},
		{`"run_id":"run"`, `"run_id":""`, "run_id", "missing"},
		{`"c2"`, `""`, "continuation_id", "missing"},
		{`"turn":2,`, ``, "turn", "missing"},
		{`"turn":2`, `"turn":-2`, "turn", "negative"},
		{`"tc_1"`, `""`, "tool_call_id", "missing"},
		{`"index":0`, `"index":-1`, "index", "negative"},
		{`"name":"echo",`, ``, "name", "missing"},
		{`"executed_name":"echo",`, ``, "executed_name", "missing"},
		{`"arguments":{"a": 1.0}`, `"arguments":[]`, "arguments", "no JSON object"},
		{`"tenant":"acme"`, `"tenant":7`, "attributes/tenant", "no string"},
	} {
		data := strings.Replace(string(tasks[0]), broken.from, broken.to, 1)
		require.NotEqual(t, string(tasks[0]), data)
		task, err := codec.Decode([]byte(data))
		requireCodec(t, err, broken.field, broken.reason)
		require.Zero(t, task)
	}
}

// blocksOf is a list of blocks; it fails where there is none.
func blocksOf(t testing.TB, list ...content.Block) content.Blocks {
	t.Helper()
	made, err := content.Of(list...)
	require.NoError(t, err)
	return made
}

func png(data string) content.Image {
	return content.Image{Source: content.Source{MediaType: "image/png", Data: data}}
}

func repliesOfEveryKind(t testing.TB) map[string]executor.Reply {
	return map[string]executor.Reply{
		`{"approve":true}`: executor.Approved(),
		`{"approve":true,"arguments":{"a":1,"b":"c"}}`:                  executor.ApprovedWith(`{"a":1,"b":"c"}`),
		`{"approve":true,"arguments_text":"{\n}"}`:                      executor.ApprovedWith("{\n}"),
		`{"approve":false}`:                                             executor.Declined(""),
		`{"approve":false,"reason":"too \"risky\""}`:                    executor.Declined(`too "risky"`),
		`{"result":[]}`:                                                 executor.Returned(executor.Result{}),
		`{"result":[{"type":"text","text":"no disk"}],"is_error":true}`: executor.Failed("no disk"),
		`{"result":[{"type":"text","text":"see"},{"type":"image","source":{"media_type":"image/png","data":"aGk="}}]}`: executor.Returned(
			executor.Result{Content: blocksOf(t, content.Text{Text: "see"}, png("aGk="))}),
		`{"result":[{"type":"document","source":{"url":"http://x"},"title":"t"},{"type":"new","x":1}],"is_error":true,"terminate":true,"details":[1,null],` +
			`"usage":{"input":1,"output":2,"cache_read":3,"cache_write":4,"reasoning":5,"incomplete":true},"full":[{"type":"text","text":"all"}]}`: executor.Returned(executor.Result{
			Content: blocksOf(t, content.Document{Source: content.Source{URL: "http://x"}, Title: "t"}, content.Unknown{JSON: `{"type":"new","x":1}`}),
			IsError: true, Terminate: true, Details: "[1,null]", Full: content.Words("all"),
			Usage: content.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Reasoning: 5, Incomplete: true},
		}),
		`{"result":[],"details_text":" 1\n"}`: executor.Returned(executor.Result{Details: " 1\n"}),
	}
}

func TestRepliesAreWrittenAndRead(t *testing.T) {
	for want, reply := range repliesOfEveryKind(t) {
		data, err := reply.MarshalJSON()
		require.NoError(t, err)
		require.Equal(t, want, string(data))
		var back executor.Reply
		require.NoError(t, back.UnmarshalJSON(data))
		require.Equal(t, reply, back)
	}
	all := map[string]executor.Reply{}
	for _, reply := range repliesOfEveryKind(t) {
		all[fmt.Sprint("tc_", len(all))] = reply
	}
	for name, codec := range map[string]struct {
		marshal   func(any) ([]byte, error)
		unmarshal func([]byte, any) error
	}{
		"encoding/json": {stdjson.Marshal, stdjson.Unmarshal},
		"goccy":         {func(v any) ([]byte, error) { return json.Marshal(v) }, func(b []byte, v any) error { return json.Unmarshal(b, v) }},
	} {
		data, err := codec.marshal(all)
		require.NoError(t, err, name)
		var back map[string]executor.Reply
		require.NoError(t, codec.unmarshal(data, &back), name)
		require.Equal(t, all, back, name)
		require.Error(t, codec.unmarshal([]byte(`{"tc_1":null}`), &back), name)
		_, err = codec.marshal(map[string]executor.Reply{"tc_1": {}})
		require.ErrorIs(t, err, executor.ErrCodec, name)
	}
}

// TestEncodingJSONPrintsRepliesAnew: it escapes what a page would take for markup, and JSON in a reply keeps its value only.
func TestEncodingJSONPrintsRepliesAnew(t *testing.T) {
	data, err := stdjson.Marshal(executor.ApprovedWith(`{"a": "<&>"}`))
	require.NoError(t, err)
	require.Equal(t, `{"approve":true,"arguments":{"a":"\u003c\u0026\u003e"}}`, string(data))
	var back executor.Reply
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, executor.ApprovedWith(`{"a":"\u003c\u0026\u003e"}`), back)
}

func TestAResultCanBeAText(t *testing.T) {
	for data, want := range map[string]executor.Reply{
		`{"result":"a \u00e9\n"}`:                          executor.Returned(executor.Result{Content: content.Words("a é\n")}),
		`{"result":""}`:                                    executor.Returned(executor.Result{}),
		` {"is_error": true, "result": "gone"}`:            executor.Failed("gone"),
		`{"is_error":false,"result":[],"terminate":false}`: executor.Returned(executor.Result{}),
		`{"result":"x","usage":{"input":7}}`:               executor.Returned(executor.Result{Content: content.Words("x"), Usage: content.Usage{Input: 7}}),
	} {
		var back executor.Reply
		require.NoError(t, stdjson.Unmarshal([]byte(data), &back), data)
		require.Equal(t, want, back, data)
	}
}

func TestWhatIsNoReplyIsRefused(t *testing.T) {
	const call = `[{"type":"tool_use","id":"a","name":"b"}]`
	for _, c := range []struct{ data, field, reason string }{
		{`null`, "", "no JSON object"},
		{``, "", "not valid JSON: EOF"},
		{`"yes"`, "", "no JSON object"},
		{`{"approve":true,"approve":false}`, "approve", "duplicate object member name"},
		{`{}`, "", "neither approve nor result"},
		{`{"is_error":true}`, "", "neither approve nor result"},
		{`{"aprove":true}`, "aprove", "does not belong"},
		{`{"approve":"true"}`, "approve", "neither true nor false"},
		{`{"approve":null}`, "approve", "neither true nor false"},
		{`{"approve":true,"reason":"x"}`, "reason", "does not belong"},
		{`{"approve":true,"argument":{}}`, "argument", "does not belong"},
		{`{"approve":true,"result":[]}`, "result", "does not belong"},
		{`{"approve":true,"arguments":[]}`, "arguments", "no JSON object"},
		{`{"approve":true,"arguments":null}`, "arguments", "no JSON object"},
		{`{"approve":true,"arguments_text":""}`, "arguments", "no JSON object"},
		{`{"approve":true,"arguments_text":"{"}`, "arguments", "no JSON object"},
		{`{"approve":true,"arguments":{},"arguments_text":"{}"}`, "arguments", "twice"},
		{`{"approve":false,"arguments":{}}`, "arguments", "does not belong"},
		{`{"approve":false,"result":"x"}`, "result", "does not belong"},
		{`{"approve":false,"reason":7}`, "reason", "no string"},
		{`{"result":"x","reason":"y"}`, "reason", "does not belong"},
		{`{"result":"x","arguments":{}}`, "arguments", "does not belong"},
		{`{"result":"x","isError":true}`, "isError", "does not belong"},
		{`{"result":"x","child":[]}`, "child", "does not belong"},
		{`{"result":null}`, "result", "neither a string nor a list of blocks"},
		{`{"result":{"type":"text","text":"x"}}`, "result", "neither a string nor a list of blocks"},
		{`{"result":["x"]}`, "result", "block 0"},
		{`{"result":[{"type":"image","source":{}}]}`, "result", "source needs exactly one"},
		{`{"result":` + call + `}`, "result", "only a message can contain"},
		{`{"result":[],"is_error":"yes"}`, "is_error", "neither true nor false"},
		{`{"result":[],"terminate":1}`, "terminate", "neither true nor false"},
		{`{"result":[],"details":1,"details_text":"1"}`, "details", "twice"},
		{`{"result":[],"details_text":"{"}`, "result", "details"},
		{`{"result":[],"usage":7}`, "usage", "no JSON object"},
		{`{"result":[],"usage":{"input":1.5}}`, "usage/input", "no integer"},
		{`{"result":[],"full":"x"}`, "full", "no list of blocks"},
		{`{"result":[],"full":` + call + `}`, "full", "only a message can contain"},
		{strings.Repeat(`{"result":`, 513) + "1" + strings.Repeat("}", 513), "", "nests 513 deep"},
	} {
		reply := executor.Failed("as before")
		requireCodec(t, reply.UnmarshalJSON([]byte(c.data)), c.field, c.reason)
		require.Equal(t, executor.Failed("as before"), reply, c.data)
	}
	words := content.Words("x")
	uses := blocksOf(t, content.ToolUse{Name: "x"})
	for _, c := range []struct {
		reply         executor.Reply
		field, reason string
	}{
		{executor.Reply{}, "", "no reply"},
		{executor.ApprovedWith("[]"), "arguments", "no JSON object"},
		{executor.ApprovedWith("{"), "arguments", "no JSON object"},
		{executor.Returned(executor.Result{Content: uses}), "result", "only a message can contain"},
		{executor.Returned(executor.Result{Content: words, Details: "{"}), "result", "details"},
		{executor.Returned(executor.Result{Full: uses}), "full", "only a message can contain"},
		{executor.Returned(executor.Result{Child: dag.New().User("x")}), "result", "cannot be sent"},
		{executor.Returned(executor.Result{Child: dag.New().User("")}), "result", "its conversation"},
	} {
		data, err := c.reply.MarshalJSON()
		requireCodec(t, err, c.field, c.reason)
		require.Nil(t, data)
	}
}

// FuzzContinuation: nothing panics, and what was read once is written and read the same for ever, as a whole and as tasks.
func FuzzContinuation(f *testing.F) {
	f.Add([]byte(fullSaved))
	if agents, err := os.ReadFile("testdata/agents.v1.json"); err == nil {
		f.Add(agents)
	}
	f.Add([]byte(`{"schema_version":1,"run_id":"r","continuation_id":"c","pause_reason":"awaiting_approval","message_id":"01941f29-7c00-7000-8000-000000000001",` +
		`"pending":[{"tool_call_id":"\u00e9","index":7,"name":"\ud83d\ude00","arguments" : { "a" :1e999 } ,"approval":true,"deferred":false,"x":[{}]}],` +
		`"totals":{"turns":1,"tool_calls":0,"cost":-0,"usage":{}},"attributes":{"":"","\u0000":"\u001b"}}`))
	f.Add([]byte(`{"schema_version":2}`))
	f.Add([]byte(`{"schema_version":1,"pending":[[],{},0]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := executor.ContinuationCodec{}.Decode(data)
		if err != nil {
			var wrong *executor.CodecError
			require.ErrorAs(t, err, &wrong)
			require.NotContains(t, err.Error(), "\n")
			require.Zero(t, c)
			_, err := executor.ToolTaskCodec{}.Decode(data)
			_ = err
			return
		}
		require.True(t, stdjson.Valid(data), "encoding/json refuses it")
		keys := slices.Collect(maps.Keys(c.Attributes))
		codec := executor.ContinuationCodec{Keys: keys}
		once, err := codec.Encode(c)
		require.NoError(t, err)
		again, err := codec.Decode(once)
		require.NoError(t, err)
		require.Equal(t, c, again)
		twice, err := codec.Encode(again)
		require.NoError(t, err)
		require.Equal(t, string(once), string(twice))
		tasks, err := executor.ToolTaskCodec{Keys: keys}.Encode(c)
		var mayRun []executor.Pending
		asks := asking(c)
		for _, p := range c.Pending {
			if !asks[fmt.Sprint(p.Path)] {
				mayRun = append(mayRun, p)
			}
		}
		if len(mayRun) == 0 {
			require.ErrorIs(t, err, executor.ErrCodec)
			return
		}
		require.NoError(t, err)
		require.Len(t, tasks, len(mayRun))
		for i, task := range tasks {
			read, err := executor.ToolTaskCodec{}.Decode(task)
			require.NoError(t, err)
			require.Equal(t, mayRun[i].Call, read.Call)
			require.Len(t, read.Attributes, len(c.Attributes))
		}
	})
}

// FuzzReply: nothing panics, and a reply that was read is written and read the same.
func FuzzReply(f *testing.F) {
	for data := range repliesOfEveryKind(f) {
		f.Add([]byte(data))
	}
	f.Add([]byte(`{"result":"x","details":null,"usage":{"x":1}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var reply, again executor.Reply
		if err := reply.UnmarshalJSON(data); err != nil {
			require.ErrorIs(t, err, executor.ErrCodec)
			return
		}
		once, err := reply.MarshalJSON()
		require.NoError(t, err)
		require.NoError(t, again.UnmarshalJSON(once))
		twice, err := again.MarshalJSON()
		require.NoError(t, err)
		require.Equal(t, string(once), string(twice))
	})
}

// journeyWay is how a run that paused gets to where it is resumed.
type journeyWay struct {
	carry func(t *testing.T, d dag.DAG, c executor.Continuation) (dag.DAG, executor.Continuation)
	send  func(t *testing.T, replies map[string]executor.Reply) map[string]executor.Reply
}

// inMemory hands everything on as it is.
var inMemory = journeyWay{
	carry: func(_ *testing.T, d dag.DAG, c executor.Continuation) (dag.DAG, executor.Continuation) { return d, c },
	send:  func(_ *testing.T, replies map[string]executor.Reply) map[string]executor.Reply { return replies },
}

// asJSON hands everything on as another process would get it.
var asJSON = journeyWay{
	carry: func(t *testing.T, d dag.DAG, c executor.Continuation) (dag.DAG, executor.Continuation) {
		path := filepath.Join(t.TempDir(), "conversation.json")
		require.NoError(t, d.Save(path))
		loaded, err := dag.Load(path)
		require.NoError(t, err)
		codec := executor.ContinuationCodec{Keys: []string{"tenant"}}
		data, err := codec.Encode(c)
		require.NoError(t, err)
		require.NotContains(t, string(data), "SECRET")
		read, err := codec.Decode(data)
		require.NoError(t, err)
		return loaded, read
	},
	send: func(t *testing.T, replies map[string]executor.Reply) map[string]executor.Reply {
		data, err := json.Marshal(replies)
		require.NoError(t, err)
		var back map[string]executor.Reply
		require.NoError(t, stdjson.Unmarshal(data, &back))
		return back
	},
}

// ending is what becomes of a run in the end: the conversation, and each pause by the ids that waited.
type ending struct {
	d      dag.DAG
	pauses []string
	totals node.StopReason
}

// tell runs d, and answers each of its pauses with the next of replies.
func (w journeyWay) tell(t *testing.T, agent executor.Agent, d dag.DAG, replies ...map[string]executor.Reply) (s ending) {
	t.Helper()
	ctx := executor.WithAttributes(t.Context(), map[string]any{"tenant": "acme", "key": "SECRET"})
	d, err := agent.Run(ctx, d)
	for i := 0; ; i++ {
		var paused *executor.PausedError
		if !errors.As(err, &paused) {
			require.NoError(t, err)
			require.Equal(t, len(replies), i, "not all replies were asked for")
			s.d, s.totals = d, stopped(t, d)
			s.totals.Elapsed = 0
			return s
		}
		c := paused.Continuation
		pause := string(c.Reason)
		for _, p := range c.Pending {
			pause += fmt.Sprintf(" %s=%s:%s%s/%d", p.ID, p.Tool, p.Call.Name, p.Call.Input, p.Call.Index)
		}
		s.pauses = append(s.pauses, pause)
		require.Less(t, i, len(replies), "the run pauses too often: %s", pause)
		d, c = w.carry(t, d, c)
		d, err = agent.Resume(t.Context(), d, c, w.send(t, replies[i]))
	}
}

// plain is a node's payload without what depends on when and where it was made.
func plain(n *node.Node) any {
	switch p := n.Payload().(type) {
	case node.Message:
		p.Answer.Latency = 0
		return fmt.Sprintf("%s %s %+v", p.Role, p.Blocks.Append(nil), p.Answer)
	case node.ToolExecution:
		return fmt.Sprintf("%s %d %s %s %s %v %+v %+v %s %s %d", p.CallID, p.Index, p.Tool, p.Input, p.Result.Append(nil), p.IsError, p.Ran,
			p.Usage, p.Details, p.Full.Append(nil), p.Child.Len())
	case node.StopReason:
		p.Elapsed = 0
		return p
	}
	return n.Kind() // its digest says the rest
}

// requireSame compares two conversations node for node.
func requireSame(t *testing.T, want, got dag.DAG) {
	t.Helper()
	a, b := want.Nodes(), got.Nodes()
	require.Len(t, b, len(a))
	for i := range a {
		require.Equal(t, a[i].Kind(), b[i].Kind())
		require.Equal(t, plain(a[i]), plain(b[i]))
		require.Equal(t, a[i].NumParents(), b[i].NumParents())
		require.Equal(t, a[i].Digest(), b[i].Digest())
		require.NoError(t, b[i].Verify())
	}
	require.True(t, dag.Equal(want, got))
	requireValid(t, got)
}

// withID is a call with an id of the provider's.
func withID(id, tool, text string) content.ToolUse {
	c := apitest.Use(tool, map[string]string{"text": text})
	c.ID = id
	return c
}

// modelOf is a model that makes those calls, with those ids even where they are empty, and then answers "Done.".
func modelOf(calls ...content.ToolUse) func() *apitest.Script {
	said := make([]content.Block, len(calls))
	for i, c := range calls {
		said[i] = c
	}
	used := content.Usage{Input: 10, Output: 2}
	return func() *apitest.Script {
		return apitest.NewScript(apitest.Answer(said...).Stop(content.StopToolUse).Usage(used).As("fake", "m"), apitest.Say("Done.").Usage(used))
	}
}

var (
	textSchema = content.JSON(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`)
	far        = executor.DeferredTool(content.Tool{Name: "far", Schema: textSchema})
)

type journey struct {
	name    string
	model   func() *apitest.Script
	agent   executor.Agent
	replies []map[string]executor.Reply
	pauses  []string
	results []string
}

func journeys(t *testing.T) []journey {
	picture := executor.Returned(executor.Result{
		Content: blocksOf(t, content.Text{Text: "<see> & \u2028"}, png("aGk=")), Details: `{"ms":12,"n":1.50}`, Full: content.Words("all of it"),
	})
	three := modelOf(withID("tc_1", "echo", "1"), withID("tc_2", "echo", "2"), withID("tc_3", "echo", "3"))
	deferring := executor.Agent{Tools: []dag.Tool{echo}, Strategy: executor.DeferAll()}
	near := executor.Agent{Tools: []dag.Tool{echo, far}}
	asking := executor.Agent{Tools: []dag.Tool{echo, far}, Hooks: []executor.Hook{executor.RequireApproval()}}
	one := executor.Failed("one <&>")
	return []journey{
		{"all at once", three, deferring, []map[string]executor.Reply{{"tc_1": one, "tc_2": picture, "tc_3": executor.Returned(executor.Result{})}},
			[]string{`awaiting_tool_results tc_1=echo:echo{"text":"1"}/0 tc_2=echo:echo{"text":"2"}/1 tc_3=echo:echo{"text":"3"}/2`},
			[]string{"error: one <&>", "<see> & \u2028", ""}},
		{"in parts, last first, with repeats", three, deferring, []map[string]executor.Reply{
			{"tc_3": picture}, {"tc_3": picture}, {}, {"tc_1": one, "tc_3": picture}, {"tc_2": executor.Failed("two"), "tc_1": one},
		}, []string{
			`awaiting_tool_results tc_1=echo:echo{"text":"1"}/0 tc_2=echo:echo{"text":"2"}/1 tc_3=echo:echo{"text":"3"}/2`,
			`awaiting_tool_results tc_1=echo:echo{"text":"1"}/0 tc_2=echo:echo{"text":"2"}/1`,
			`awaiting_tool_results tc_1=echo:echo{"text":"1"}/0 tc_2=echo:echo{"text":"2"}/1`,
			`awaiting_tool_results tc_1=echo:echo{"text":"1"}/0 tc_2=echo:echo{"text":"2"}/1`,
			`awaiting_tool_results tc_2=echo:echo{"text":"2"}/1`,
		}, []string{"error: one <&>", "error: two", "<see> & \u2028"}},
		{"ids that are empty or used twice", modelOf(withID("", "far", "1"), withID("same", "far", "2"), withID("call_0", "echo", "3"), withID("same", "far", "4")), near,
			[]map[string]executor.Reply{{"call_3": executor.Failed("four")}, {"call_0_2": executor.Failed("one"), "call_3": executor.Failed("four")}, {"call_1": executor.Failed("two")}},
			[]string{
				`awaiting_tool_results call_0_2=far:far{"text":"1"}/0 call_1=far:far{"text":"2"}/1 call_3=far:far{"text":"4"}/3`,
				`awaiting_tool_results call_0_2=far:far{"text":"1"}/0 call_1=far:far{"text":"2"}/1`,
				`awaiting_tool_results call_1=far:far{"text":"2"}/1`,
			}, []string{"error: one", "error: two", "3", "error: four"}},
		{"approval with other arguments, then results", modelOf(withID("tc_1", "echo", "1"), withID("", "far", "2"), withID("tc_3", "echo", "3"), withID("tc_4", "far", "4")), asking,
			[]map[string]executor.Reply{
				{
					"tc_1": executor.ApprovedWith(`{"text":"<other> & more"}`), "call_1": executor.ApprovedWith(`{"text":"away"}`),
					"tc_3": executor.Declined("too risky"), "tc_4": executor.Approved(),
				},
				{"tc_4": picture}, {"call_1": executor.Failed("gone")},
			},
			[]string{
				`awaiting_approval tc_1=echo:echo{"text":"1"}/0 call_1=far:far{"text":"2"}/1 tc_3=echo:echo{"text":"3"}/2 tc_4=far:far{"text":"4"}/3`,
				`awaiting_tool_results call_1=far:far{"text":"away"}/1 tc_4=far:far{"text":"4"}/3`,
				`awaiting_tool_results call_1=far:far{"text":"away"}/1`,
			}, []string{"<other> & more", "error: gone", "error: Tool call denied: too risky", "<see> & \u2028"}},
		{"arguments that fit no more", modelOf(withID("a", "echo", "1")), asking, []map[string]executor.Reply{{"a": executor.ApprovedWith(`{}`)}},
			[]string{`awaiting_approval a=echo:echo{"text":"1"}/0`},
			[]string{"error: Validation failed for tool \"echo\":\n  - text: is required\n\nReceived arguments:\n{}"}},
		{"a name that a hook changed", modelOf(withID("a", "e.cho", "1")),
			executor.Agent{Tools: []dag.Tool{tool("e_cho", func(context.Context) (any, error) { return nil, nil })}, Strategy: executor.DeferAll(), Hooks: []executor.Hook{
				executor.Underscores(), {Prepare: func(_ context.Context, c executor.Call) (executor.Call, error) { c.Input = "{\n}"; return c, nil }},
			}},
			[]map[string]executor.Reply{{"a": executor.Failed("x")}}, []string{"awaiting_tool_results a=e.cho:e_cho{\n}/0"}, []string{"error: x"}},
	}
}

// TestPausesGoThroughJSON runs the same in memory and by way of JSON: A4 and A5 of the tool loop, and more.
func TestPausesGoThroughJSON(t *testing.T) {
	for _, j := range journeys(t) {
		t.Run(j.name, func(t *testing.T) {
			start := ask(j.agent.Tools...)
			var told []ending
			for _, w := range []journeyWay{inMemory, asJSON} {
				j.agent.Provider = j.model()
				s := w.tell(t, j.agent, start, j.replies...)
				require.Equal(t, j.pauses, s.pauses)
				require.Equal(t, j.results, outcomes(t, s.d))
				require.Equal(t, "Done.", s.d.Text())
				told = append(told, s)
			}
			requireSame(t, told[0].d, told[1].d)
			require.Equal(t, told[0].totals, told[1].totals)
			require.Equal(t, 2, told[0].totals.Turns)
			require.Equal(t, content.Usage{Input: 20, Output: 4}, told[0].totals.Usage)
		})
	}
}

// TestResultsComeInAnyOrder brings results one by one in every order, and compares with all at once.
func TestResultsComeInAnyOrder(t *testing.T) {
	model := modelOf(withID("", "far", "1"), withID("twice", "far", "2"), withID("twice", "far", "3"))
	agent := executor.Agent{Tools: []dag.Tool{far}}
	all := map[string]executor.Reply{"call_0": executor.Failed("one"), "call_1": executor.Failed("two"), "call_2": executor.Failed("three")}
	start := ask(far)
	agent.Provider = model()
	want := inMemory.tell(t, agent, start, all)
	for _, order := range [][]string{
		{"call_0", "call_1", "call_2"}, {"call_0", "call_2", "call_1"}, {"call_1", "call_0", "call_2"},
		{"call_1", "call_2", "call_0"}, {"call_2", "call_0", "call_1"}, {"call_2", "call_1", "call_0"},
	} {
		var parts []map[string]executor.Reply
		for _, id := range order {
			parts = append(parts, map[string]executor.Reply{id: all[id]})
		}
		agent.Provider = model()
		requireSame(t, want.d, asJSON.tell(t, agent, start, parts...).d)
	}
}

// TestRepliesThatDoNotFitAreTheSameErrors: what Resume refuses in memory it refuses behind JSON, and the other way round.
func TestRepliesThatDoNotFitAreTheSameErrors(t *testing.T) {
	agent := executor.Agent{Tools: []dag.Tool{far}, Provider: modelOf(withID("a", "far", "1"), withID("b", "far", "2"))()}
	d, err := agent.Run(t.Context(), ask(far))
	first := pauseOf(t, err)
	d2, err := agent.Resume(t.Context(), d, first, map[string]executor.Reply{"a": executor.Failed("one")})
	second := pauseOf(t, err)
	require.Equal(t, first.ID, second.Parent)
	agent.Hooks = []executor.Hook{executor.RequireApproval()}
	agent.Provider = modelOf(withID("a", "far", "1"))()
	d3, err := agent.Run(t.Context(), ask(far))
	approval := pauseOf(t, err)
	agent.Hooks = nil
	other := second
	other.Message = d.Nodes()[0].ID()
	for _, w := range []journeyWay{inMemory, asJSON} {
		for name, c := range map[string]struct {
			d       dag.DAG
			c       executor.Continuation
			replies map[string]executor.Reply
			kind    error
			id      string
		}{
			"another result":     {d2, second, map[string]executor.Reply{"a": executor.Failed("other")}, executor.ErrConflict, "a"},
			"not a failure":      {d2, second, map[string]executor.Reply{"a": executor.Returned(executor.Result{Content: content.Words("one")})}, executor.ErrConflict, "a"},
			"no such call":       {d, first, map[string]executor.Reply{"c": executor.Failed("x")}, executor.ErrUnknownCall, "c"},
			"approved, no need":  {d, first, map[string]executor.Reply{"a": executor.Approved()}, executor.ErrReply, "a"},
			"no approval":        {d3, approval, map[string]executor.Reply{}, executor.ErrMissingReply, "a"},
			"result too soon":    {d3, approval, map[string]executor.Reply{"a": executor.Failed("x")}, executor.ErrReply, "a"},
			"other conversation": {d, other, map[string]executor.Reply{"a": executor.Failed("x")}, executor.ErrStale, second.ID},
		} {
			loaded, read := w.carry(t, c.d, c.c)
			_, err := agent.Resume(t.Context(), loaded, read, w.send(t, c.replies))
			require.ErrorIs(t, err, c.kind, name)
			var refused *executor.ResumeError
			require.ErrorAs(t, err, &refused, name)
			require.Equal(t, c.id, refused.ID, name)
		}
	}

	// The form on disk cannot have a call twice. A program may make such a continuation.
	twice := first
	twice.Pending = []executor.Pending{first.Pending[0], first.Pending[0], first.Pending[1]}
	_, err = agent.Resume(t.Context(), d, twice, nil)
	require.ErrorIs(t, err, executor.ErrStale)
	require.ErrorContains(t, err, `call "a" is not open`)
}

// TestErrorsOfResumeSayWhatDoesNotFit holds the whole texts.
func TestErrorsOfResumeSayWhatDoesNotFit(t *testing.T) {
	agent := executor.Agent{Tools: []dag.Tool{far}, Provider: modelOf(withID("a", "far", "1"), withID("b", "far", "2"))()}
	d, err := agent.Run(t.Context(), ask(far))
	c := pauseOf(t, err)
	c.ID = "c1"
	done, finished := c, c
	done.Reason = content.StopEndTurn
	finished.Pending = c.Pending[:1]

	var all []string
	for _, try := range []struct {
		d       dag.DAG
		c       executor.Continuation
		replies map[string]executor.Reply
	}{
		{d, done, nil},
		{d.Back(1), c, nil},
		{d.Join(ask(far)), c, nil},
		{d, finished, nil},
		{d, executor.Continuation{}, nil},
		{d, c, map[string]executor.Reply{"x": executor.Failed("no")}},
		{d, c, map[string]executor.Reply{"a": executor.Approved()}},
	} {
		_, err := agent.Resume(t.Context(), try.d, try.c, try.replies)
		require.Error(t, err)
		all = append(all, strings.TrimPrefix(err.Error(), "executor: resume: "))
	}
	const stale = `the continuation is not one of this conversation: "c1": `
	require.Equal(t, []string{
		stale + "its reason is end_turn",
		stale + "its calls are not open at the head of the conversation",
		stale + "the conversation has 1 other heads beside its calls: resume it without them, and join them afterwards",
		stale + "call 1 is open, and does not wait",
		`the continuation is not one of this conversation: "": it is empty, and not from a paused run`,
		`no such call waits: "x"`,
		`the reply does not fit: "a": the run waits: awaiting_tool_results`,
	}, all)
}

// TestResultsThatAreBroughtAgainGoThroughTheHooks: what a hook makes of a result is no conflict with the result.
func TestResultsThatAreBroughtAgainGoThroughTheHooks(t *testing.T) {
	agent := executor.Agent{Tools: []dag.Tool{far}, Provider: modelOf(withID("a", "far", "1"), withID("b", "far", "2"))()}
	agent.Hooks = []executor.Hook{{After: func(_ context.Context, call executor.Call, r executor.Result) (executor.Result, error) {
		r.Content = content.Words(fmt.Sprintf("%s(%s) %d %s: %s", call.Name, call.Input, call.Index, call.ID, r.Content.Text()))
		return r, nil
	}}}
	d, err := agent.Run(t.Context(), ask(far))
	d, err = agent.Resume(t.Context(), d, pauseOf(t, err), map[string]executor.Reply{"b": executor.Failed("two")})
	again := pauseOf(t, err)
	_, err = agent.Resume(t.Context(), d, again, map[string]executor.Reply{"b": executor.Failed("other")})
	require.ErrorIs(t, err, executor.ErrConflict)
	d, err = agent.Resume(t.Context(), d, again, map[string]executor.Reply{"b": executor.Failed("two"), "a": executor.Failed("one")})
	require.NoError(t, err)
	require.Equal(t, []string{`error: far({"text":"1"}) 0 a: one`, `error: far({"text":"2"}) 1 b: two`}, outcomes(t, d))
}

func pauseOf(t *testing.T, err error) executor.Continuation {
	t.Helper()
	var paused *executor.PausedError
	require.ErrorAs(t, err, &paused)
	return paused.Continuation
}

// TestAttributesComeBack: those that were written are there again for the tools of the run that is resumed.
func TestAttributesComeBack(t *testing.T) {
	var seen map[string]any
	look := tool("look", func(ctx context.Context) (any, error) { seen = executor.Attributes(ctx); return "", nil })
	agent := executor.Agent{Tools: []dag.Tool{look}, Hooks: []executor.Hook{executor.RequireApproval()}, Provider: once(call("look"))}
	asJSON.tell(t, agent, ask(look), map[string]executor.Reply{"call_1_1": executor.Approved()})
	require.Equal(t, map[string]any{"tenant": "acme"}, seen)
}
