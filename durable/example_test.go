package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"expvar"
	"fmt"
	"sync"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/durable"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// Order is the arguments of the tools.
type Order struct {
	Number string `json:"number"`
}

// support is a model that looks an order up and then refunds it.
func support() api.Provider {
	return apitest.NewScript(
		apitest.Call(apitest.Use("find_order", Order{"A-7"})),
		apitest.Call(apitest.Use("refund", Order{"A-7"})),
		apitest.Say("Your order A-7 is refunded."),
	)
}

// findOrder only reads. refund has an effect outside: the payment service must know the key.
func findOrder(_ context.Context, in Order) (string, error) { return in.Number + " cost 12 €", nil }

func refund(ctx context.Context, in Order) (string, error) {
	key, _ := durable.CallKey(ctx)
	if key.Call == "" {
		return "", errors.New("no key")
	}
	return fmt.Sprintf("refunded %s, once for its key", in.Number), nil
}

// A run is started, its calls are executed by a worker, and an engine goes on with the results. All three could be in
// processes of their own.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	db := store.Memory() // or a database, to outlive this process

	find := executor.WithEffect(executor.Func("find_order", "Finds an order.", findOrder), executor.EffectReadOnly)
	pay := executor.Func("refund", "Refunds an order.", refund)

	engine := &durable.Engine{
		Store: db,
		Agents: map[string]executor.Agent{"support": {
			Provider: support(), Tools: []dag.Tool{find, pay}, Strategy: executor.DeferAll(),
		}},
		CallOptions: func(p dag.Pending) durable.CallOptions { return durable.CallOptions{ResultTimeout: time.Hour} },
	}
	worker := &durable.Worker{Store: db, Tools: []executor.Tool{find, pay}}

	var serving sync.WaitGroup
	serving.Go(func() { _ = engine.Serve(ctx) })
	serving.Go(func() { _ = worker.Serve(ctx) })

	run, err := engine.Start(ctx, durable.StartRequest{
		Run: "ticket 31", Agent: "support", Conversation: "customer 7", Text: "Please refund A-7.",
	})
	if err != nil {
		panic(err)
	}
	end, err := engine.Wait(ctx, run)
	fmt.Println(end.State, end.Reason, err)

	cancel()
	serving.Wait()

	c, err := store.New(db, nil).Conversation(context.Background(), "customer 7")
	fmt.Println(c.DAG().Text(), err)
	for _, n := range c.DAG().Nodes() {
		if call, ok := n.Payload().(node.ToolExecution); ok {
			fmt.Println(call.Tool, "→", call.Result.Text())
		}
	}
	// Output:
	// done end_turn <nil>
	// Your order A-7 is refunded. <nil>
	// find_order → A-7 cost 12 €
	// refund → refunded A-7, once for its key
}

// A run that needs approval waits in the store for a reply. It may come days later, to another process.
func ExampleEngine_Reply() {
	ctx, cancel := context.WithCancel(context.Background())
	db := store.Memory()
	pay := executor.Func("refund", "Refunds an order.", refund)
	engine := &durable.Engine{Store: db, Agents: map[string]executor.Agent{"support": {
		Provider: apitest.NewScript(
			apitest.Call(apitest.Use("refund", Order{"A-7"})),
			apitest.Say("I may not do that."),
		),
		Tools: []dag.Tool{pay},
		Hooks: []executor.Hook{executor.RequireApproval("refund")},
	}}}
	var serving sync.WaitGroup
	serving.Go(func() { _ = engine.Serve(ctx) })

	// The calls that wait are in the store. A wake-up says when to look.
	waits := make(chan struct{}, 100)
	stop := db.Listen(func(w store.Wake) { waits <- struct{}{} })
	run, err := engine.Start(ctx, durable.StartRequest{
		Agent: "support", Conversation: "customer 7", Text: "Please refund A-7.",
	})
	if err != nil {
		panic(err)
	}
	for r := (store.Run{}); r.State != store.RunWaiting; r, err = db.Run(ctx, run) {
		<-waits
	}
	stop()

	calls, err := db.Tasks(ctx, run)
	if err != nil {
		panic(err)
	}
	for _, call := range calls {
		task, err := executor.ToolTaskCodec{}.Decode(call.Task.Payload)
		fmt.Println("asks for", task.Pending.Call.Name, task.Pending.Call.Input, err)
		fmt.Println(engine.Reply(ctx, call.Task.Key, executor.Declined(task.Pending, "the order is too old")))
		fmt.Println(engine.Reply(ctx, call.Task.Key, executor.Approved(task.Pending)) != nil)
	}

	end, err := engine.Wait(ctx, run)
	fmt.Println(end.State, err)
	cancel()
	serving.Wait()
	// Output:
	// asks for refund {"number":"A-7"} <nil>
	// <nil>
	// true
	// done <nil>
}

// A process publishes what it does, and the state of all runs, at /debug/vars. Any other format of metrics is made of
// the same two structs.
func ExampleCounter() {
	ctx, cancel := context.WithCancel(context.Background())
	db := &durable.Counter{Runs: store.Memory()}
	engine := &durable.Engine{Store: db, Agents: map[string]executor.Agent{
		"support": {Provider: apitest.NewScript(apitest.Say("Hello."))},
	}}

	expvar.Publish("process", expvar.Func(func() any { return db.Counts() }))
	expvar.Publish("runs", expvar.Func(func() any {
		stats, err := db.Stats(context.Background())
		if err != nil {
			return err.Error()
		}
		return stats
	}))

	var serving sync.WaitGroup
	serving.Go(func() { _ = engine.Serve(ctx) })
	run, err := engine.Start(ctx, durable.StartRequest{Agent: "support", Conversation: "customer 7", Text: "Hello"})
	if err != nil {
		panic(err)
	}
	_, err = engine.Wait(ctx, run)
	fmt.Println(err)
	cancel()
	serving.Wait()

	var process struct{ Begun, Runs, Steps, Done, LeasesLost int }
	var runs struct{ Ready, Running, Waiting, Parked int }
	fmt.Println(json.Unmarshal([]byte(expvar.Get("process").String()), &process), process)
	fmt.Println(json.Unmarshal([]byte(expvar.Get("runs").String()), &runs), runs)
	// Output:
	// <nil>
	// <nil> {1 1 1 1 0}
	// <nil> {0 0 0 0}
}
