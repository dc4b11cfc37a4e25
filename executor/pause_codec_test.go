package executor_test

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	json "github.com/goccy/go-json/v2"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// someMessage is the id of a message with calls.
var someMessage = uuidOf("01941f29-7c00-7000-8000-000000000001")

func uuidOf(text string) node.ID {
	key, err := node.ParseCallKey(text + "/0")
	if err != nil {
		panic(err)
	}
	return key.Message
}

const fullSaved = `{"schema_version":2,"run_id":"run_1","continuation_id":"c2","parent_continuation_id":"c1","pause_reason":"awaiting_approval",` +
	`"calls":["01941f29-7c00-7000-8000-000000000001/1","01941f29-7c00-7000-8000-000000000001/3"],"attributes":{"tenant":"acme"}}`

func fullContinuation() executor.Continuation {
	return executor.Continuation{
		Run: "run_1", ID: "c2", Parent: "c1", Reason: content.StopApproval,
		Calls:      []node.CallKey{{Message: someMessage, Index: 1}, {Message: someMessage, Index: 3}},
		Attributes: map[string]any{"tenant": "acme"},
	}
}

func requireCodec(t *testing.T, err error, field, reason string) {
	t.Helper()
	require.ErrorAs(t, err, new(*executor.CodecError))
	var wrong *executor.CodecError
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, field, wrong.Field, "%v", err)
	require.ErrorContains(t, wrong.Err, reason)
	require.ErrorContains(t, err, wrong.Err.Error())
	require.ErrorContains(t, err, field)
}

func TestAContinuationIsWrittenAndRead(t *testing.T) {
	codec := executor.ContinuationCodec{Keys: []string{"tenant"}}
	data, err := codec.Encode(fullContinuation())
	require.NoError(t, err)
	require.Equal(t, fullSaved, string(data))
	back, err := codec.Decode(data)
	require.NoError(t, err)
	require.Equal(t, fullContinuation(), back)

	// Unknown members, the order and the spaces do not matter.
	reordered := `{ "calls" : ["01941f29-7c00-7000-8000-000000000001/0"], "x":[{}], "continuation_id":"c","pause_reason":"awaiting_tool_results","schema_version":2}`
	back, err = codec.Decode([]byte(reordered))
	require.NoError(t, err)
	require.Equal(t, executor.Continuation{ID: "c", Reason: content.StopResults, Calls: []node.CallKey{{Message: someMessage}}}, back)
}

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
			data, err := codec.Encode(deferringAt(t, withID("a", "far", "1")), c.Attributes)
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
	for _, version := range []string{"0", "1", "3", "999", "-1"} {
		data := strings.Replace(fullSaved, `"schema_version":2`, `"schema_version":`+version, 1)
		_, err := executor.ContinuationCodec{}.Decode([]byte(data))
		require.ErrorIs(t, err, dag.ErrVersion)
		require.ErrorContains(t, err, "reads version 2")
	}
}

// TestTheFormerVersionIsRefused: version 1 held the state of a pause, and nothing is taken from it.
func TestTheFormerVersionIsRefused(t *testing.T) {
	former := `{"schema_version":1,"run_id":"r","continuation_id":"c","pause_reason":"awaiting_approval",` +
		`"message_id":"01941f29-7c00-7000-8000-000000000001","pending":[],"totals":{"turns":1,"tool_calls":0}}`
	_, err := executor.ContinuationCodec{}.Decode([]byte(former))
	require.ErrorIs(t, err, dag.ErrVersion)

	task := `{"schema_version":1,"run_id":"r","continuation_id":"c","turn":1,"tool_call_id":"a","index":0,"name":"f","executed_name":"f","arguments":{}}`
	_, err = executor.ToolTaskCodec{}.Decode([]byte(task))
	require.ErrorIs(t, err, dag.ErrVersion)

	var reply executor.Reply
	requireCodec(t, reply.UnmarshalJSON([]byte(`{"approve":true}`)), "call", "missing")
}

func TestWhatIsNoContinuationIsRefused(t *testing.T) {
	for _, c := range []struct{ from, to, field, reason string }{
		{`"continuation_id":"c2"`, `"continuation_id":""`, "continuation_id", "missing"},
		{`"continuation_id":"c2",`, ``, "continuation_id", "missing"},
		{`"awaiting_approval"`, `"end_turn"`, "pause_reason", "neither"},
		{`"run_id":"run_1"`, `"run_id":7`, "run_id", "no string"},
		{`"run_id":"run_1"`, `"run_id":"a","run_id":"b"`, "run_id", "duplicate"},
		{`"01941f29-7c00-7000-8000-000000000001/1"`, `7`, "calls", "no string"},
		{`"01941f29-7c00-7000-8000-000000000001/1"`, `"a/1"`, "calls", "item 0: not the key of a call"},
		{`"01941f29-7c00-7000-8000-000000000001/1"`, `"01941f29-7c00-7000-8000-000000000001/3"`, "calls/1", "twice"},
		{`["01941f29-7c00-7000-8000-000000000001/1","01941f29-7c00-7000-8000-000000000001/3"]`, `[]`, "calls", "no call waits"},
		{`["01941f29-7c00-7000-8000-000000000001/1","01941f29-7c00-7000-8000-000000000001/3"]`, `{}`, "calls", "no list"},
		{`{"tenant":"acme"}`, `{"tenant":7}`, "attributes/tenant", "no string"},
		{`{"tenant":"acme"}`, `{"tenant":"` + strings.Repeat("x", 201) + `"}`, "attributes/tenant", "longer than 200"},
	} {
		require.Contains(t, fullSaved, c.from)
		_, err := executor.ContinuationCodec{}.Decode([]byte(strings.Replace(fullSaved, c.from, c.to, 1)))
		requireCodec(t, err, c.field, c.reason)
	}
	for _, data := range []string{"", "null", "[]", "7", fullSaved + "x", fullSaved[:40]} {
		_, err := executor.ContinuationCodec{}.Decode([]byte(data))
		require.ErrorAs(t, err, new(*executor.CodecError), data)
	}
	for field, change := range map[string]func(*executor.Continuation){
		"run_id":                 func(c *executor.Continuation) { c.Run = "\xff" },
		"continuation_id":        func(c *executor.Continuation) { c.ID = "" },
		"parent_continuation_id": func(c *executor.Continuation) { c.Parent = "\xff" },
		"pause_reason":           func(c *executor.Continuation) { c.Reason = content.StopEndTurn },
		"calls":                  func(c *executor.Continuation) { c.Calls = nil },
		"calls/0":                func(c *executor.Continuation) { c.Calls = []node.CallKey{{}} },
	} {
		c := fullContinuation()
		change(&c)
		_, err := executor.ContinuationCodec{}.Encode(c)
		requireCodec(t, err, field, "")
	}
}

// deferringAt is a conversation that waits for the results of calls from outside.
func deferringAt(t testing.TB, calls ...content.ToolUse) dag.DAG {
	t.Helper()
	agent := executor.Agent{Tools: []dag.Tool{far}, Provider: modelOf(calls...)(), Strategy: executor.DeferAll()}
	d, err := agent.Run(t.Context(), ask(far))
	require.ErrorIs(t, err, executor.ErrPaused)
	return d
}

func TestTasksAreTheCallsThatMayBeExecutedNow(t *testing.T) {
	d := deferringAt(t, withID("a", "far", "1"), withID("", "far", "2"))
	codec := executor.ToolTaskCodec{Keys: []string{"tenant"}}
	attributes := map[string]any{"tenant": strings.Repeat("x", 300), "secret": "SECRET"}
	tasks, err := codec.Encode(d, attributes)
	require.NoError(t, err)
	require.Len(t, tasks, 2)
	for i, task := range tasks {
		require.NotContains(t, string(task), "SECRET")
		read, err := codec.Decode(task)
		require.NoError(t, err)
		require.Equal(t, d.Pending()[i], read.Pending)
		require.Equal(t, executor.ContinuationOf(d).Run, read.Run)
		require.Len(t, read.Attributes["tenant"], 200)

		// What the worker makes of it is a reply that fits.
		d2, err := executor.Accept(d, executor.Returned(read.Pending, executor.Result{Content: content.Words("done")}))
		require.NoError(t, err)
		require.Len(t, d2.Pending(), 1)
	}

	begun, err := executor.Begin(d, d.Pending()[0].Key)
	require.NoError(t, err)
	tasks, err = codec.Encode(begun, nil)
	require.NoError(t, err)
	require.Len(t, tasks, 1, "a call that somebody has begun is nobody else's")

	agent := executor.Agent{
		Tools: []dag.Tool{far, echo}, Provider: modelOf(withID("a", "far", "1"), withID("b", "echo", "2"))(),
		Hooks: []executor.Hook{executor.RequireApproval("echo")},
	}
	asks, err := agent.Run(t.Context(), ask(far, echo))
	require.ErrorIs(t, err, executor.ErrPaused)
	_, err = codec.Encode(asks, nil)
	requireCodec(t, err, "calls", "no call waits for a result")
	for _, none := range []dag.DAG{{}, dag.New().User("x")} {
		_, err = codec.Encode(none, nil)
		require.ErrorAs(t, err, new(*executor.CodecError))
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

// shown is a call that was shown to somebody.
var shown = dag.Pending{
	Key: node.CallKey{Message: someMessage, Index: 1}, Tool: "look",
	Call: executor.Call{Name: "look", Input: `{"at":1}`, Message: someMessage, Index: 1}, Note: "Look?",
}

// toShown is the beginning of each reply to it, in JSON.
var toShown = `{"call":"` + shown.Key.String() + `","shown":"` + executor.Shown(shown).String() + `",`

func repliesOfEveryKind(t testing.TB) map[string]executor.Reply {
	by := executor.Approved(shown)
	by.By, by.At = "Ann", time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	return map[string]executor.Reply{
		toShown + `"approve":true}`: executor.Approved(shown),
		toShown + `"by":"Ann","at":"2026-01-02T03:04:05.000000678Z","approve":true}`: by,
		toShown + `"approve":true,"arguments":{"a":1.0}}`:                            executor.ApprovedWith(shown, `{"a":1.0}`),
		toShown + `"approve":true,"arguments_text":"{\n}"}`:                          executor.ApprovedWith(shown, "{\n}"),
		toShown + `"approve":false}`:                                                 executor.Declined(shown, ""),
		toShown + `"approve":false,"reason":"too \"risky\""}`:                        executor.Declined(shown, `too "risky"`),
		toShown + `"result":[{"type":"text","text":"gone"}],"is_error":true}`:        executor.Failed(shown, "gone"),
		`{"call":"` + shown.Key.String() + `","result":[]}`:                          executor.ReturnedFor(shown.Key, executor.Result{}),
		toShown + `"result":[{"type":"text","text":"x"}],"is_error":true,"terminate":true,"details":[1,null],` +
			`"usage":{"input":1,"output":2,"cache_read":3,"cache_write":4,"reasoning":5,"incomplete":true},"full":[{"type":"text","text":"all"}]}`: executor.Returned(shown, executor.Result{
			Content: content.Words("x"), IsError: true, Terminate: true, Details: "[1,null]", Full: content.Words("all"),
			Usage: content.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Reasoning: 5, Incomplete: true},
		}),
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
		require.ErrorAs(t, err, new(*executor.CodecError), name)
	}
}

// TestEncodingJSONPrintsRepliesAnew: it escapes what a page would take for markup, and JSON in a reply keeps its value only.
func TestEncodingJSONPrintsRepliesAnew(t *testing.T) {
	data, err := stdjson.Marshal(executor.ApprovedWith(shown, `{"a": "<&>"}`))
	require.NoError(t, err)
	require.Equal(t, toShown+`"approve":true,"arguments":{"a":"\u003c\u0026\u003e"}}`, string(data))
	var back executor.Reply
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, executor.ApprovedWith(shown, `{"a":"\u003c\u0026\u003e"}`), back)
}

func TestAResultCanBeAText(t *testing.T) {
	for data, want := range map[string]executor.Reply{
		toShown + `"result":"a \u00e9\n"}`:                          executor.Returned(shown, executor.Result{Content: content.Words("a é\n")}),
		toShown + `"result":""}`:                                    executor.Returned(shown, executor.Result{}),
		toShown + `"is_error": true, "result": "gone"}`:             executor.Failed(shown, "gone"),
		toShown + `"is_error":false,"result":[],"terminate":false}`: executor.Returned(shown, executor.Result{}),
		toShown + `"result":"x","usage":{"input":7}}`:               executor.Returned(shown, executor.Result{Content: content.Words("x"), Usage: content.Usage{Input: 7}}),
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
		{toShown + `"approve":true,"approve":false}`, "approve", "duplicate object member name"},
		{toShown[:len(toShown)-1] + "}", "", "neither approve nor result"},
		{toShown + `"is_error":true}`, "", "neither approve nor result"},
		{toShown + `"aprove":true}`, "aprove", "does not belong"},
		{toShown + `"approve":"true"}`, "approve", "neither true nor false"},
		{toShown + `"approve":null}`, "approve", "neither true nor false"},
		{toShown + `"approve":true,"reason":"x"}`, "reason", "does not belong"},
		{toShown + `"approve":true,"argument":{}}`, "argument", "does not belong"},
		{toShown + `"approve":true,"result":[]}`, "result", "does not belong"},
		{toShown + `"approve":true,"arguments":[]}`, "arguments", "no JSON object"},
		{toShown + `"approve":true,"arguments":null}`, "arguments", "no JSON object"},
		{toShown + `"approve":true,"arguments_text":""}`, "arguments", "no JSON object"},
		{toShown + `"approve":true,"arguments_text":"{"}`, "arguments", "no JSON object"},
		{toShown + `"approve":true,"arguments":{},"arguments_text":"{}"}`, "arguments", "twice"},
		{toShown + `"approve":false,"arguments":{}}`, "arguments", "does not belong"},
		{toShown + `"approve":false,"result":"x"}`, "result", "does not belong"},
		{toShown + `"approve":false,"reason":7}`, "reason", "no string"},
		{toShown + `"result":"x","reason":"y"}`, "reason", "does not belong"},
		{toShown + `"result":"x","arguments":{}}`, "arguments", "does not belong"},
		{toShown + `"result":"x","isError":true}`, "isError", "does not belong"},
		{toShown + `"result":"x","child":[]}`, "child", "does not belong"},
		{toShown + `"result":null}`, "result", "neither a string nor a list of blocks"},
		{toShown + `"result":{"type":"text","text":"x"}}`, "result", "neither a string nor a list of blocks"},
		{toShown + `"result":["x"]}`, "result", "block 0"},
		{toShown + `"result":[{"type":"image","source":{}}]}`, "result", "source needs exactly one"},
		{toShown + `"result":` + call + `}`, "result", "only a message can contain"},
		{toShown + `"result":[],"is_error":"yes"}`, "is_error", "neither true nor false"},
		{toShown + `"result":[],"terminate":1}`, "terminate", "neither true nor false"},
		{toShown + `"result":[],"details":1,"details_text":"1"}`, "details", "twice"},
		{toShown + `"result":[],"details_text":"{"}`, "result", "details"},
		{toShown + `"result":[],"usage":7}`, "usage", "no JSON object"},
		{toShown + `"result":[],"usage":{"input":1.5}}`, "usage/input", "no integer"},
		{toShown + `"result":[],"full":"x"}`, "full", "no list of blocks"},
		{toShown + `"result":[],"full":` + call + `}`, "full", "only a message can contain"},
		{strings.Repeat(`{"result":`, 513) + "1" + strings.Repeat("}", 513), "", "nests 513 deep"},
	} {
		reply := executor.Failed(shown, "as before")
		requireCodec(t, reply.UnmarshalJSON([]byte(c.data)), c.field, c.reason)
		require.Equal(t, executor.Failed(shown, "as before"), reply, c.data)
	}
	words := content.Words("x")
	uses := blocksOf(t, content.ToolUse{Name: "x"})
	for _, c := range []struct {
		reply         executor.Reply
		field, reason string
	}{
		{executor.Reply{}, "", "no reply"},
		{executor.Approved(dag.Pending{}), "call", "names no call"},
		{executor.ApprovedWith(shown, "[]"), "arguments", "no JSON object"},
		{executor.ApprovedWith(shown, "{"), "arguments", "no JSON object"},
		{executor.Returned(shown, executor.Result{Content: uses}), "result", "only a message can contain"},
		{executor.Returned(shown, executor.Result{Content: words, Details: "{"}), "result", "details"},
		{executor.Returned(shown, executor.Result{Full: uses}), "full", "only a message can contain"},
		{executor.Returned(shown, executor.Result{Child: dag.New().User("x")}), "result", "cannot be sent"},
		{executor.Returned(shown, executor.Result{Child: dag.New().User("")}), "result", "its conversation"},
	} {
		data, err := c.reply.MarshalJSON()
		requireCodec(t, err, c.field, c.reason)
		require.Nil(t, data)
	}
}

// FuzzContinuation: nothing panics, and what was read once is written and read the same for ever.
func FuzzContinuation(f *testing.F) {
	f.Add([]byte(fullSaved))
	f.Add([]byte(`{"schema_version":1}`))
	f.Add([]byte(`{"schema_version":2,"calls":[[],{},0]}`))
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
		codec := executor.ContinuationCodec{Keys: slices.Collect(maps.Keys(c.Attributes))}
		once, err := codec.Encode(c)
		require.NoError(t, err)
		again, err := codec.Decode(once)
		require.NoError(t, err)
		require.Equal(t, c, again)
		twice, err := codec.Encode(again)
		require.NoError(t, err)
		require.Equal(t, string(once), string(twice))
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
			require.ErrorAs(t, err, new(*executor.CodecError))
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
	carry func(t *testing.T, d dag.DAG, c executor.Continuation) dag.DAG
	send  func(t *testing.T, replies []executor.Reply) []executor.Reply
}

// inMemory hands everything on as it is.
var inMemory = journeyWay{
	carry: func(_ *testing.T, d dag.DAG, c executor.Continuation) dag.DAG { return d },
	send:  func(_ *testing.T, replies []executor.Reply) []executor.Reply { return replies },
}

// asJSON hands everything on as another process would get it.
var asJSON = journeyWay{
	carry: func(t *testing.T, d dag.DAG, c executor.Continuation) dag.DAG {
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
		made := executor.ContinuationOf(loaded)
		require.Equal(t, []any{read.Run, read.ID, read.Reason, read.Calls}, []any{made.Run, made.ID, made.Reason, made.Calls})
		return loaded
	},
	send: func(t *testing.T, replies []executor.Reply) []executor.Reply {
		data, err := json.Marshal(replies)
		require.NoError(t, err)
		var back []executor.Reply
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
func (w journeyWay) tell(t *testing.T, agent executor.Agent, d dag.DAG, replies ...replySet) (s ending) {
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
		c := paused.Continuation()
		pause := string(c.Reason)
		for _, p := range d.Pending() {
			pause += fmt.Sprintf(" %s=%s:%s%s/%d", nameOf(d, p), p.Tool, p.Call.Name, p.Call.Input, p.Call.Index)
		}
		s.pauses = append(s.pauses, pause)
		require.Less(t, i, len(replies), "the run pauses too often: %s", pause)
		d = w.carry(t, d, c)
		d, err = agent.Resume(ctx, d, w.send(t, replies[i].of(d))...)
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
	replies []replySet
	pauses  []string
	results []string
}

func journeys(t *testing.T) []journey {
	picture := returned(executor.Result{
		Content: blocksOf(t, content.Text{Text: "<see> & \u2028"}, png("aGk=")), Details: `{"ms":12,"n":1.50}`, Full: content.Words("all of it"),
	})
	three := modelOf(withID("tc_1", "echo", "1"), withID("tc_2", "echo", "2"), withID("tc_3", "echo", "3"))
	deferring := executor.Agent{Tools: []dag.Tool{echo}, Strategy: executor.DeferAll()}
	near := executor.Agent{Tools: []dag.Tool{echo, far}}
	asking := executor.Agent{Tools: []dag.Tool{echo, far}, Hooks: []executor.Hook{executor.RequireApproval()}}
	one := failed("one <&>")
	return []journey{
		{"all at once", three, deferring, []replySet{{"tc_1": one, "tc_2": picture, "tc_3": returned(executor.Result{})}},
			[]string{`awaiting_tool_results tc_1=echo:echo{"text":"1"}/0 tc_2=echo:echo{"text":"2"}/1 tc_3=echo:echo{"text":"3"}/2`},
			[]string{"error: one <&>", "<see> & \u2028", ""}},
		{"in parts, last first, with repeats", three, deferring, []replySet{
			{"tc_3": picture}, {"tc_3": picture}, {}, {"tc_1": one, "tc_3": picture}, {"tc_2": failed("two"), "tc_1": one},
		}, []string{
			`awaiting_tool_results tc_1=echo:echo{"text":"1"}/0 tc_2=echo:echo{"text":"2"}/1 tc_3=echo:echo{"text":"3"}/2`,
			`awaiting_tool_results tc_1=echo:echo{"text":"1"}/0 tc_2=echo:echo{"text":"2"}/1`,
			`awaiting_tool_results tc_1=echo:echo{"text":"1"}/0 tc_2=echo:echo{"text":"2"}/1`,
			`awaiting_tool_results tc_1=echo:echo{"text":"1"}/0 tc_2=echo:echo{"text":"2"}/1`,
			`awaiting_tool_results tc_2=echo:echo{"text":"2"}/1`,
		}, []string{"error: one <&>", "error: two", "<see> & \u2028"}},
		{"ids that are empty or used twice", modelOf(withID("", "far", "1"), withID("same", "far", "2"), withID("call_0", "echo", "3"), withID("same", "far", "4")), near,
			[]replySet{{"call_3": failed("four")}, {"call_0_2": failed("one"), "call_3": failed("four")}, {"call_1": failed("two")}},
			[]string{
				`awaiting_tool_results call_0_2=far:far{"text":"1"}/0 call_1=far:far{"text":"2"}/1 call_3=far:far{"text":"4"}/3`,
				`awaiting_tool_results call_0_2=far:far{"text":"1"}/0 call_1=far:far{"text":"2"}/1`,
				`awaiting_tool_results call_1=far:far{"text":"2"}/1`,
			}, []string{"error: one", "error: two", "3", "error: four"}},
		{"approval with other arguments, then results", modelOf(withID("tc_1", "echo", "1"), withID("", "far", "2"), withID("tc_3", "echo", "3"), withID("tc_4", "far", "4")), asking,
			[]replySet{
				{
					"tc_1": approvedWith(`{"text":"<other> & more"}`), "call_1": approvedWith(`{"text":"away"}`),
					"tc_3": declined("too risky"), "tc_4": approved(),
				},
				{"tc_4": picture}, {"call_1": failed("gone")},
			},
			[]string{
				`awaiting_approval tc_1=echo:echo{"text":"1"}/0 call_1=far:far{"text":"2"}/1 tc_3=echo:echo{"text":"3"}/2 tc_4=far:far{"text":"4"}/3`,
				`awaiting_tool_results call_1=far:far{"text":"away"}/1 tc_4=far:far{"text":"4"}/3`,
				`awaiting_tool_results call_1=far:far{"text":"away"}/1`,
			}, []string{"<other> & more", "error: gone", "error: Tool call denied: too risky", "<see> & \u2028"}},
		{"arguments that fit no more", modelOf(withID("a", "echo", "1")), asking, []replySet{{"a": approvedWith(`{}`)}},
			[]string{`awaiting_approval a=echo:echo{"text":"1"}/0`},
			[]string{"error: Validation failed for tool \"echo\":\n  - text: is required\n\nReceived arguments:\n{}"}},
		{"a name that a hook changed", modelOf(withID("a", "e.cho", "1")),
			executor.Agent{Tools: []dag.Tool{tool("e_cho", func(context.Context) (any, error) { return nil, nil })}, Strategy: executor.DeferAll(), Hooks: []executor.Hook{
				executor.Underscores(), {Prepare: func(_ context.Context, c executor.Call) (executor.Call, error) { c.Input = "{\n}"; return c, nil }},
			}},
			[]replySet{{"a": failed("x")}}, []string{"awaiting_tool_results a=e.cho:e_cho{\n}/0"}, []string{"error: x"}},
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
	all := replySet{"call_0": failed("one"), "call_1": failed("two"), "call_2": failed("three")}
	start := ask(far)
	agent.Provider = model()
	want := inMemory.tell(t, agent, start, all)
	for _, order := range [][]string{
		{"call_0", "call_1", "call_2"}, {"call_0", "call_2", "call_1"}, {"call_1", "call_0", "call_2"},
		{"call_1", "call_2", "call_0"}, {"call_2", "call_0", "call_1"}, {"call_2", "call_1", "call_0"},
	} {
		var parts []replySet
		for _, id := range order {
			parts = append(parts, replySet{id: all[id]})
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
	d2, err := agent.Resume(t.Context(), d, replySet{"a": failed("one")}.of(d)...)
	second := pauseOf(t, err)
	require.Equal(t, first.ID, second.Parent)
	agent.Hooks = []executor.Hook{executor.RequireApproval()}
	agent.Provider = modelOf(withID("a", "far", "1"))()
	d3, err := agent.Run(t.Context(), ask(far))
	approval := pauseOf(t, err)
	agent.Hooks = nil
	other := func(p dag.Pending) executor.Reply {
		p.Call.Input = `{"text":"other"}`
		return executor.Approved(p)
	}
	for _, w := range []journeyWay{inMemory, asJSON} {
		for name, c := range map[string]struct {
			d       dag.DAG
			c       executor.Continuation
			replies replySet
			kind    error
		}{
			"another result":    {d2, second, replySet{"a": failed("other")}, executor.ErrConflict},
			"not a failure":     {d2, second, replySet{"a": returned(executor.Result{Content: content.Words("one")})}, executor.ErrConflict},
			"no such call":      {d, first, replySet{"c": failed("x")}, executor.ErrUnknownCall},
			"approved, no need": {d, first, replySet{"a": approved()}, executor.ErrReply},
			"no approval":       {d3, approval, replySet{}, executor.ErrMissingReply},
			"result too soon":   {d3, approval, replySet{"a": failed("x")}, executor.ErrReply},
			"something else":    {d3, approval, replySet{"a": other}, executor.ErrStale},
		} {
			loaded := w.carry(t, c.d, c.c)
			after, err := agent.Resume(t.Context(), loaded, w.send(t, c.replies.of(c.d))...)
			require.ErrorIs(t, err, c.kind, name)
			var refused *executor.ResumeError
			require.ErrorAs(t, err, &refused, name)
			require.True(t, dag.Equal(loaded, after), name)
			if name != "no such call" {
				require.Equal(t, "a", callNames(c.d)[refused.Call], name)
			}
		}
	}
}

// TestErrorsOfResumeSayWhatDoesNotFit holds the whole texts.
func TestErrorsOfResumeSayWhatDoesNotFit(t *testing.T) {
	d := deferringAt(t, withID("a", "far", "1"), withID("b", "far", "2"))
	p := d.Pending()[0]
	other := p
	other.Note = "?"
	key := p.Key.String()

	var all []string
	for _, try := range []struct {
		d     dag.DAG
		reply executor.Reply
	}{
		{d, executor.Reply{Call: p.Key}},
		{d, executor.FailedFor(node.CallKey{Message: someMessage}, "no")},
		{d.Back(1), executor.Failed(p, "no")},
		{d, executor.Approved(p)},
		{d, executor.Failed(other, "no")},
	} {
		_, err := executor.Agent{}.Resume(t.Context(), try.d, try.reply)
		require.Error(t, err)
		all = append(all, strings.TrimPrefix(err.Error(), "executor: resume: "))
	}
	require.Equal(t, []string{
		"the reply does not fit its call: call " + key + ": it is no reply",
		"the call is not pending: call " + someMessage.String() + "/0",
		"the call is not pending: call " + key,
		"the reply does not fit its call: call " + key + ": the call waits for its result",
		"the reply is not to what the conversation shows now: call " + key + ": the call is not what was shown",
	}, all)

	_, err := executor.Agent{}.Resume(t.Context(), d, executor.Failed(p, "a"), executor.Failed(p, "a"))
	require.ErrorIs(t, err, executor.ErrReply)
}

// TestResultsThatAreBroughtAgainGoThroughTheHooks: what a hook makes of a result is no conflict with the result.
func TestResultsThatAreBroughtAgainGoThroughTheHooks(t *testing.T) {
	agent := executor.Agent{Tools: []dag.Tool{far}, Provider: modelOf(withID("a", "far", "1"), withID("b", "far", "2"))()}
	agent.Hooks = []executor.Hook{{After: func(_ context.Context, call executor.Call, r executor.Result) (executor.Result, error) {
		r.Content = content.Words(fmt.Sprintf("%s(%s) %d %s: %s", call.Name, call.Input, call.Index, call.ID, r.Content.Text()))
		return r, nil
	}}}
	d, err := agent.Run(t.Context(), ask(far))
	require.ErrorIs(t, err, executor.ErrPaused)
	d, err = agent.Resume(t.Context(), d, replySet{"b": failed("two")}.of(d)...)
	require.ErrorIs(t, err, executor.ErrPaused)
	_, err = agent.Resume(t.Context(), d, replySet{"b": failed("other")}.of(d)...)
	require.ErrorIs(t, err, executor.ErrConflict)
	d, err = agent.Resume(t.Context(), d, replySet{"b": failed("two"), "a": failed("one")}.of(d)...)
	require.NoError(t, err)
	require.Equal(t, []string{`error: far({"text":"1"}) 0 a: one`, `error: far({"text":"2"}) 1 b: two`}, outcomes(t, d))
}

func pauseOf(t *testing.T, err error) executor.Continuation {
	t.Helper()
	var paused *executor.PausedError
	require.ErrorAs(t, err, &paused)
	return paused.Continuation()
}
