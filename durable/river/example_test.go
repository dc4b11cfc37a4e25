package river_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/durable"
	"github.com/plait-dev/plait/durable/river"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/pgtest"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/postgres"
)

// Order is the arguments of the tool.
type Order struct {
	Number string `json:"number"`
}

var refund = executor.Func("refund", "Refunds an order.", func(_ context.Context, in Order) (string, error) {
	return "refunded " + in.Number, nil
})

// serveTools is a worker.
func serveTools(ctx context.Context, url string) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	db, err := postgres.New(ctx, pool, &postgres.Options{Ring: river.Ring(nil)})
	if err != nil {
		return err
	}
	worker := &durable.Worker{Store: db, Tools: []executor.Tool{refund}}
	return river.Serve(ctx, pool, nil, worker, nil)
}

// serveAgents is an engine.
func serveAgents(ctx context.Context, url string) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	db, err := postgres.New(ctx, pool, &postgres.Options{Ring: river.Ring(nil)})
	if err != nil {
		return err
	}
	model := apitest.NewScript(
		apitest.Call(apitest.Use("refund", Order{"A-7"})),
		apitest.Say("Your order A-7 is refunded."),
	)
	engine := &durable.Engine{Store: db, Agents: map[string]executor.Agent{"support": {
		Provider: model, Tools: []dag.Tool{refund}, Strategy: executor.DeferAll(),
	}}}
	return river.Serve(ctx, pool, engine, nil, nil)
}

// A front end starts a run, an engine executes it, and a worker executes its calls. Here they are goroutines. They
// could be processes on three machines: what they share is the database.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	url, err := pgtest.URL() // such as "postgres://plait@db.example.com/sessions"
	check(err)
	pool, err := pgxpool.New(ctx, url)
	check(err)
	defer pool.Close()
	check(river.Migrate(ctx, pool, nil)) // once, when the program is installed

	var serving sync.WaitGroup
	serving.Go(func() { check(serveAgents(ctx, url)) })
	serving.Go(func() { check(serveTools(ctx, url)) })

	db, err := postgres.New(ctx, pool, &postgres.Options{Ring: river.Ring(nil)})
	check(err)
	front := &durable.Engine{Store: db}
	run, err := front.Start(ctx, durable.StartRequest{Agent: "support", Conversation: "customer 7", Text: "Refund A-7."})
	check(err)
	end, err := front.Wait(ctx, run)
	check(err)
	c, err := store.New(db, nil).Conversation(ctx, "customer 7")
	check(err)
	fmt.Println(end.State, c.DAG().Text())

	cancel()
	serving.Wait()
	// Output:
	// done Your order A-7 is refunded.
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
