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

// pausing is a run that waits for the results of two calls. Its IDs and times are always the same.
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
	return agent, d, paused.Continuation()
}

// A continuation names a pause: it is a token for a queue or a page. The state is in the conversation, which the run
// needs to go on. Replies can be JSON too.
func ExampleContinuationCodec() {
	agent, d, paused := pausing()

	codec := executor.ContinuationCodec{Keys: []string{"tenant"}}
	token, err := codec.Encode(paused)
	fmt.Println(string(token), err)

	// Later, perhaps in another process: the token is current if it is that of the conversation.
	read, err := codec.Decode(token)
	if err != nil {
		panic(err)
	}
	fmt.Println(executor.ContinuationOf(d).ID == read.ID)

	replies := make([]executor.Reply, 2)
	for i, text := range []string{`{"result": "22°C"}`, `{"result": "no such place", "is_error": true}`} {
		if replies[i], err = executor.ReplyTo(d.Pending()[i], []byte(text)); err != nil {
			panic(err)
		}
	}
	d, err = agent.Resume(context.Background(), d, replies...)
	fmt.Println(d.Text(), err)

	_, err = codec.Decode([]byte(`{"schema_version": 1}`))
	fmt.Println(errors.Is(err, dag.ErrVersion))
	// Output:
	// {"schema_version":2,"run_id":"019b76da-a800-7000-8000-000000000002","continuation_id":"1c2e73726d17fe546939123cd4b82a13","pause_reason":"awaiting_tool_results","calls":["019b76da-a800-7000-8000-000000000005/0","019b76da-a800-7000-8000-000000000005/1"],"attributes":{"tenant":"acme"}} <nil>
	// true
	// Tokyo is warmer. <nil>
	// true
}

// Each call that waits becomes a task for a worker. What the worker returns is a reply.
func ExampleToolTaskCodec() {
	_, d, paused := pausing()

	tasks, err := executor.ToolTaskCodec{Keys: []string{"tenant"}}.Encode(d, paused.Attributes)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(tasks[0]))

	worker := executor.Agent{Tools: []dag.Tool{weather}}
	for _, each := range tasks {
		task, err := executor.ToolTaskCodec{}.Decode(each)
		if err != nil {
			panic(err)
		}
		reply, err := worker.Work(context.Background(), task.Pending)
		if err != nil {
			panic(err)
		}
		text, err := json.Marshal(reply)
		fmt.Println(task.Attributes["tenant"], string(text), err)
	}
	// Output:
	// {"schema_version":2,"run_id":"019b76da-a800-7000-8000-000000000002","continuation_id":"1c2e73726d17fe546939123cd4b82a13","call":"019b76da-a800-7000-8000-000000000005/0","tool_call_id":"call_1_1","name":"get_weather","executed_name":"get_weather","arguments":{"city":"Tokyo"},"attributes":{"tenant":"acme"}}
	// acme {"call":"019b76da-a800-7000-8000-000000000005/0","shown":"sha256:aa2488e3e05a9ccf36340b1a2bf1234278b2ccf205ad30b685d8847b1344e5ab","result":[{"type":"text","text":"Tokyo: 22°C"}]} <nil>
	// acme {"call":"019b76da-a800-7000-8000-000000000005/1","shown":"sha256:e2dd5e688fc66708f824a51fd760e4ddb184e614a767cba298c9d03143801bd3","result":[{"type":"text","text":"Paris: 18°C"}]} <nil>
}

// A worker marks a call before it executes it. If the worker is lost then, everybody knows that the call may have been
// executed.
func ExampleBegin() {
	_, d, _ := pausing()
	first := d.Pending()[0]

	d, err := executor.Begin(d, first.Key) // save d before the tool is called
	fmt.Println(d.Pending()[0].Started.IsZero(), err)

	_, err = executor.Begin(d, first.Key)
	fmt.Println(errors.Is(err, executor.ErrConflict))
	// Output:
	// false <nil>
	// true
}

// Results are kept as they come. The run continues when all of them are there.
func ExampleAccept() {
	agent, d, _ := pausing()
	for _, p := range d.Pending() {
		result, err := weather.Call(context.Background(), p.Call)
		if err != nil {
			panic(err)
		}
		d, err = executor.Accept(d, executor.Returned(p, result))
		fmt.Println(len(d.Pending()), "pending", err)

		// A result that comes twice changes nothing.
		if _, err = executor.Accept(d, executor.Returned(p, result)); err != nil {
			panic(err)
		}
	}

	d, err := agent.Run(context.Background(), d)
	fmt.Println(d.Text(), err)
	// Output:
	// 1 pending <nil>
	// 0 pending <nil>
	// Tokyo is warmer. <nil>
}

// A worker has the tools, and neither the conversation nor a model.
func ExampleAgent_Work() {
	agent, d, _ := pausing()
	worker := executor.Agent{Tools: []dag.Tool{weather}}
	var replies []executor.Reply
	for _, p := range d.Pending() {
		reply, err := worker.Work(context.Background(), p)
		fmt.Println(reply.Result().Content.Text(), err)
		replies = append(replies, reply)
	}
	d, err := agent.Resume(context.Background(), d, replies...)
	fmt.Println(d.Text(), err)
	// Output:
	// Tokyo: 22°C <nil>
	// Paris: 18°C <nil>
	// Tokyo is warmer. <nil>
}

// Replies as a person, or a page where somebody approves, writes them. A mistake is not taken for a yes.
func ExampleReplyTo() {
	_, d, _ := pausing()
	for _, text := range []string{
		`{"approve": true, "arguments": {"city": "Kyoto"}}`,
		`{"approve": false, "reason": "too risky"}`,
		`{"result": "22°C"}`,
		`{"approve": true, "argumnets": {"city": "Kyoto"}}`,
	} {
		reply, err := executor.ReplyTo(d.Pending()[0], []byte(text))
		fmt.Println(reply.Call.Index, reply.IsResult(), err)
	}
	// Output:
	// 0 false <nil>
	// 0 false <nil>
	// 0 true <nil>
	// 0 false executor: saved: argumnets: it does not belong there
}
