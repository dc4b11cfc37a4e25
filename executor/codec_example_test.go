package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// pausing is a run that waits for the results of two calls. Its ids and times are always the same.
func pausing() (executor.Agent, dag.DAG, executor.Continuation) {
	model := apitest.NewScript(apitest.Call(in("Tokyo"), in("Paris")), apitest.Say("Tokyo is warmer."))
	agent := executor.Agent{Provider: model, Tools: []dag.Tool{weather}, Strategy: executor.DeferAll()}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	source := node.Source{Now: func() time.Time { return start }, NewID: node.Counting(start).NewID}
	d := dag.New().WithSource(source).User("Where is it warmer?")
	ctx := executor.WithAttributes(context.Background(), map[string]any{"tenant": "acme", "token": "s3cret"})

	d, err := agent.Run(ctx, d)
	var paused *executor.PausedError
	if !errors.As(err, &paused) {
		panic(err)
	}
	return agent, d, paused.Continuation
}

// A pause is kept as JSON beside the conversation, and resumed later, by another process perhaps. The replies can be JSON too.
func ExampleContinuationCodec() {
	agent, d, paused := pausing()

	codec := executor.ContinuationCodec{Keys: []string{"tenant"}}
	saved, err := codec.Encode(paused)
	fmt.Println(string(saved), err)

	read, err := codec.Decode(saved)
	if err != nil {
		panic(err)
	}
	var replies map[string]executor.Reply
	err = json.Unmarshal([]byte(`{"call_1_1": {"result": "22°C"}, "call_1_2": {"result": "no such place", "is_error": true}}`), &replies)
	if err != nil {
		panic(err)
	}
	d, err = agent.Resume(context.Background(), d, read, replies)
	fmt.Println(d.Text(), err)

	_, err = codec.Decode([]byte(`{"schema_version": 2}`))
	fmt.Println(errors.Is(err, executor.ErrVersion), err)
	// Output:
	// {"schema_version":1,"run_id":"019b76da-a800-7000-8000-000000000002","continuation_id":"019b76da-a800-7000-8000-000000000006","pause_reason":"awaiting_tool_results","message_id":"019b76da-a800-7000-8000-000000000005","pending":[{"tool_call_id":"call_1_1","index":0,"name":"get_weather","arguments":{"city":"Tokyo"},"deferred":true},{"tool_call_id":"call_1_2","index":1,"name":"get_weather","arguments":{"city":"Paris"},"deferred":true}],"totals":{"turns":1,"tool_calls":0},"attributes":{"tenant":"acme"}} <nil>
	// Tokyo is warmer. <nil>
	// true executor: saved: schema_version: written by another version of Plait: it has version 2, this program reads version 1
}

// Each call that waits becomes a task for a worker. What the worker returns is a reply.
func ExampleToolTaskCodec() {
	_, _, paused := pausing()

	tasks, err := executor.ToolTaskCodec{Keys: []string{"tenant"}}.Encode(paused)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(tasks[0]))

	for _, each := range tasks {
		task, err := executor.ToolTaskCodec{}.Decode(each)
		if err != nil {
			panic(err)
		}
		result, err := weather.Call(context.Background(), task.Call)
		reply := executor.Returned(result)
		if err != nil {
			reply = executor.Failed(err.Error())
		}
		answer, err := json.Marshal(map[string]executor.Reply{task.ID: reply})
		fmt.Println(task.Attributes["tenant"], string(answer), err)
	}
	// Output:
	// {"schema_version":1,"run_id":"019b76da-a800-7000-8000-000000000002","continuation_id":"019b76da-a800-7000-8000-000000000006","turn":1,"tool_call_id":"call_1_1","index":0,"name":"get_weather","executed_name":"get_weather","arguments":{"city":"Tokyo"},"attributes":{"tenant":"acme"}}
	// acme {"call_1_1":{"result":[{"type":"text","text":"Tokyo: 22°C"}]}} <nil>
	// acme {"call_1_2":{"result":[{"type":"text","text":"Paris: 18°C"}]}} <nil>
}

// Replies as a worker, or a page where somebody approves, writes them. A slip is not taken for a yes.
func ExampleReply_UnmarshalJSON() {
	for _, text := range []string{
		`{"approve": true, "arguments": {"city": "Kyoto"}}`,
		`{"approve": false, "reason": "too risky"}`,
		`{"result": "22°C"}`,
		`{"result": [{"type": "image", "source": {"url": "https://example.com/a.png"}}], "details": {"ms": 12}}`,
		`{"approve": true, "argumnets": {"city": "Kyoto"}}`,
	} {
		var reply executor.Reply
		if err := json.Unmarshal([]byte(text), &reply); err != nil {
			fmt.Println(err)
			continue
		}
		back, err := json.Marshal(reply)
		fmt.Println(string(back), err)
	}
	// Output:
	// {"approve":true,"arguments":{"city":"Kyoto"}} <nil>
	// {"approve":false,"reason":"too risky"} <nil>
	// {"result":[{"type":"text","text":"22°C"}]} <nil>
	// {"result":[{"type":"image","source":{"url":"https://example.com/a.png"}}],"details":{"ms":12}} <nil>
	// executor: saved: argumnets: it does not belong there
}
