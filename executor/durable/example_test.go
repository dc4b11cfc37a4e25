package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivertype"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/agui"
	"github.com/plait-dev/plait/executor/durable"
	"github.com/plait-dev/plait/store/sqlite"
)

// order is the arguments of the tools.
type order struct {
	Number string `json:"number"`
}

func findOrder(_ context.Context, in order) (string, error) { return in.Number + " was delivered", nil }

func refund(_ context.Context, in order) (string, error) { return in.Number + " was refunded", nil }

// support is a model that finds an order, refunds it, and repeats the results.
func support() api.Provider {
	return apitest.NewScript(
		apitest.Call(apitest.Use("find_order", order{"A-7"})),
		apitest.Call(apitest.Use("refund", order{"A-7"})),
		apitest.Say("A-7 was refunded."),
	)
}

// quiet is a log that nobody reads.
var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// open opens a new database, which is removed when close is called.
func open(ctx context.Context) (db *sqlite.DB, closeDB func()) {
	dir, err := os.MkdirTemp("", "plait-example-")
	check(err)
	db, err = sqlite.Open(ctx, filepath.Join(dir, "runs.db"), nil)
	check(err)
	return db, func() {
		check(db.Close())
		check(os.RemoveAll(dir))
	}
}

// A run asks a model in one process, leaves one tool to workers, and waits for a person before it executes the other.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	db, closeDB := open(ctx)
	defer closeDB()

	find := executor.WithEffect(executor.Func("find_order", "Finds an order.", findOrder), executor.EffectReadOnly)
	pay := executor.Func("refund", "Refunds an order.", refund)
	engine, err := durable.Open(ctx, db, &durable.Options{
		Agents: map[string]executor.Agent{"support": {
			Provider: support(),
			Tools:    []dag.Tool{executor.DeferredTool(find.Definition()), pay},
			Hooks:    []executor.Hook{executor.RequireApproval("refund")},
		}},
		Workers: []durable.Worker{{Tools: []executor.Tool{find}}},
		Log:     quiet,
	})
	check(err)
	defer engine.Close()
	served := make(chan error)
	go func() { served <- engine.Serve(ctx) }()

	run, err := engine.Start(ctx, durable.StartRequest{
		Run: "ticket 31", Agent: "support", Conversation: "customer 7", Text: "Please refund A-7.",
	})
	check(err)

	call := waitForApproval(ctx, engine, "customer 7")
	fmt.Println("approve", call.Call.Name, call.Call.Input)
	check(engine.Reply(ctx, "customer 7", "", executor.Approved(call)))

	end, err := engine.Wait(ctx, run)
	check(err)
	c, err := engine.Store().Conversation(ctx, "customer 7")
	check(err)
	fmt.Println(end.State, "–", c.DAG().Text())

	stop()
	check(<-served)
	// Output:
	// approve refund {"number":"A-7"}
	// done – A-7 was refunded.
}

// waitForApproval returns the first call of a conversation that needs approval.
func waitForApproval(ctx context.Context, engine *durable.Engine, conversation string) dag.Pending {
	for {
		c, err := engine.Store().Conversation(ctx, conversation)
		check(err)
		for _, p := range c.DAG().Pending() {
			if p.Approval {
				return p
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// A message to a run that is under way is given to it before its next request. Until then it can be changed.
func ExampleEngine_Send() {
	ctx := context.Background()
	db, closeDB := open(ctx)
	defer closeDB()
	engine, err := durable.Open(ctx, db, nil)
	check(err)
	defer engine.Close()
	_, err = engine.Start(ctx, durable.StartRequest{Agent: "support", Conversation: "customer 7", Text: "Refund A-7."})
	check(err)

	id, err := engine.Send(ctx, "customer 7", "", "And A-8 too.")
	check(err)
	check(engine.Edit(ctx, id, "And A-9 too."))
	messages, err := engine.Messages(ctx, "customer 7", "")
	check(err)
	fmt.Println(messages[0].Text)
	check(engine.Withdraw(ctx, id))
	fmt.Println(engine.Withdraw(ctx, id))
	// Output:
	// And A-9 too.
	// the message is not in the inbox
}

// A web front end follows and answers runs that outlive its connections. Here a client hangs up, and comes back.
func ExampleEngine_Front() {
	ctx, stop := context.WithCancel(context.Background())
	db, closeDB := open(ctx)
	defer closeDB()
	engine, err := durable.Open(ctx, db, &durable.Options{
		Agents: map[string]executor.Agent{"support": {
			Provider: apitest.NewScript(apitest.Say("Delivered.")),
		}},
		Log: quiet,
	})
	check(err)
	defer engine.Close()

	mux := http.NewServeMux()
	mux.Handle("POST /agent", agui.Durable(engine.Front("support"), &agui.Options{
		Hosts: []string{"app.example.com"},
	}))

	// The client leaves as soon as it has something. Nobody executes runs yet.
	request, leave := context.WithCancel(ctx)
	ask(mux, request, leave, `{"id": "a", "role": "user", "content": "Where is A-7?"}`)

	served := make(chan error)
	go func() { served <- engine.Serve(ctx) }()
	fmt.Println(ask(mux, ctx, func() {}, ""))

	stop()
	check(<-served)
	// Output: Delivered.
}

// response is a response that calls a function when it is written.
type response struct {
	*httptest.ResponseRecorder
	written func()
}

func (r response) Write(data []byte) (int, error) {
	defer r.written()
	return r.ResponseRecorder.Write(data)
}

// ask sends a request with messages, and returns the last text of the response.
func ask(h http.Handler, ctx context.Context, written func(), messages string) (text string) {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/agent",
		strings.NewReader(`{"threadId": "customer 7", "runId": "1", "messages": [`+messages+`]}`))
	r.Header.Set("Content-Type", "application/json")
	got := httptest.NewRecorder()
	h.ServeHTTP(response{got, written}, r)

	for line := range strings.Lines(got.Body.String()) {
		var event struct {
			Delta    string
			Messages []struct{ Content string }
		}
		data, _ := strings.CutPrefix(line, "data: ")
		_ = json.Unmarshal([]byte(data), &event) // other lines have nothing
		for _, m := range event.Messages {
			text = m.Content
		}
		if event.Delta != "" {
			text = event.Delta
		}
	}
	return text
}

// report is a job of the program that starts a run.
type report struct{}

// Kind implements river.JobArgs.
func (report) Kind() string { return "daily_report" }

// reporter works the jobs of reports.
type reporter struct {
	river.WorkerDefaults[report]
	engine **durable.Engine
}

// Work implements river.Worker. The run has the ID of the job: a job that comes twice starts one run.
func (r *reporter) Work(ctx context.Context, job *river.Job[report]) error {
	id := fmt.Sprint("report ", job.ID)
	_, err := (*r.engine).Start(ctx, durable.StartRequest{
		Run: id, Agent: "support", Conversation: id, Text: "What happened today?",
	})
	return err
}

// A periodic job of River starts a run every day.
func ExampleOptions_periodic() {
	var engine *durable.Engine
	options := durable.Options{
		Agents: map[string]executor.Agent{"support": {Provider: support()}},
		River: func(config *river.Config) {
			river.AddWorker(config.Workers, &reporter{engine: &engine})
			config.PeriodicJobs = append(config.PeriodicJobs, river.NewPeriodicJob(
				river.PeriodicInterval(24*time.Hour),
				func() (river.JobArgs, *river.InsertOpts) {
					return report{}, &river.InsertOpts{Queue: durable.RunQueue}
				},
				&river.PeriodicJobOpts{ID: "daily_report"},
			))
		},
	}
	fmt.Println(options.River != nil)
	// Output: true
}

// A client of River on the same database pauses a queue: runs that begin meanwhile wait.
func ExampleOptions_pausedQueue() {
	ctx, stop := context.WithCancel(context.Background())
	db, closeDB := open(ctx)
	defer closeDB()
	engine, err := durable.Open(ctx, db, &durable.Options{
		Agents: map[string]executor.Agent{"support": {Provider: support()}}, Log: quiet,
	})
	check(err)
	defer engine.Close()
	run, err := engine.Start(ctx, durable.StartRequest{
		Agent: "support", Conversation: "customer 7", Text: "Please refund A-7.", At: time.Now().Add(24 * time.Hour),
	})
	check(err)

	pool, err := db.Pool(ctx)
	check(err)
	defer pool.Close()
	client, err := river.NewClient(riversqlite.New(pool), &river.Config{}) // riverpgxv5.New(db.Pool()) for PostgreSQL
	check(err)

	served := make(chan error)
	go func() { served <- engine.Serve(ctx) }()
	for _, err = client.QueueGet(ctx, durable.RunQueue); errors.Is(err, rivertype.ErrNotFound); {
		_, err = client.QueueGet(ctx, durable.RunQueue) // until Serve has made it
	}
	check(err)
	check(client.QueuePause(ctx, durable.RunQueue, nil))
	queue, err := client.QueueGet(ctx, durable.RunQueue)
	check(err)
	fmt.Println("paused:", queue.PausedAt != nil)

	check(engine.Cancel(ctx, run, "closed today"))
	check(client.QueueResume(ctx, durable.RunQueue, nil))
	stop()
	check(<-served)
	// Output: paused: true
}
