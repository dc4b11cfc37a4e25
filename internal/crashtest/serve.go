package crashtest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/durable"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/store"
)

const (
	lease    = 2 * time.Second
	poll     = 100 * time.Millisecond
	toolTime = 20 * time.Millisecond
	slots    = 20 // of a process, for runs and for calls
	calls    = 4  // of a run
)

// process executes runs and calls. It is also the store of its engine and its worker, and writes an event for each of
// their steps.
type process struct {
	Store
	name  string
	write func(event) // nil writes nothing

	// Calls of the store hold it for reading. A process freezes with nothing under way: inside a transaction on SQLite
	// it would keep all others from writing.
	transactions sync.RWMutex
	freezing     bool // at the next claim of a call; guarded by transactions
	keeping      bool // freezing before the next result is accepted; guarded by transactions
}

// serveUntilTerminated executes runs and calls until the process gets SIGTERM.
func serveUntilTerminated(ctx context.Context, db Store) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	var out output
	p := &process{
		Store: db, name: os.Getenv(nameVariable), freezing: os.Getenv(roleVariable) == "serve and freeze",
		keeping: os.Getenv(roleVariable) == freezeWithResult,
		write:   func(e event) { out.print("%s", e) },
	}

	p.log(serving, store.Key{}, "")
	return p.serve(ctx, slots)
}

// item is the arguments of the tool.
type item struct {
	Number int `json:"number"`
}

// serve executes runs and calls until ctx is done.
func (p *process) serve(ctx context.Context, slots int) error {
	work := executor.Func("work", "Works.", func(ctx context.Context, in item) (string, error) {
		key, _ := durable.CallKey(ctx)
		p.log(started, key, "")
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(toolTime):
		}
		p.log(finished, key, "")
		return fmt.Sprintf("%d by %s at %d", in.Number, p.name, time.Now().UnixNano()), nil // another one each time
	})

	// The model calls the tool four times at once, and ends when it has all results.
	model := apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
		if len(req.Messages[len(req.Messages)-1].Blocks.ToolResults()) == calls {
			return apitest.Say("Done.")
		}
		return apitest.Call(
			apitest.Use("work", item{1}), apitest.Use("work", item{2}), apitest.Use("work", item{3}), apitest.Use("work", item{4}),
		)
	}).Always())

	settings := durable.Settings{
		Name: p.name, Concurrency: slots, Lease: lease, Poll: poll, Log: slog.New(slog.DiscardHandler),
	}
	server, queued := p.Store.(Server)
	if queued {
		settings.Poll = time.Second // wake-ups come from the queue
	}
	engine := &durable.Engine{
		Store: p, Settings: settings, Attempts: 1000,
		CallOptions: func(dag.Pending) durable.CallOptions { return durable.CallOptions{Attempts: -1} },
		Agents:      map[string]executor.Agent{"a": {Provider: model, Tools: []dag.Tool{work}, Strategy: executor.DeferAll()}},
	}
	worker := &durable.Worker{Store: p, Settings: settings, Tools: []executor.Tool{work}}

	// A store with a queue serves both itself.
	if queued {
		return server.Serve(ctx, engine, worker)
	}
	errs := make(chan error, 2)
	go func() { errs <- engine.Serve(ctx) }()
	go func() { errs <- worker.Serve(ctx) }()
	return errors.Join(<-errs, <-errs)
}

// log writes an event. "" is no detail.
func (p *process) log(kind string, key store.Key, detail string) {
	if p.write == nil {
		return
	}
	e := event{at: time.Now(), process: p.name, kind: kind, key: key.String(), detail: detail}
	if e.key == "" {
		e.key = "-"
	}
	if detail == "" {
		e.detail = "-"
	}
	p.write(e)
}

// transact is one transaction of the process.
func transact[T any](p *process, call func() (T, error)) (T, error) {
	p.transactions.RLock()
	defer p.transactions.RUnlock()
	return call()
}

func (p *process) ClaimRuns(ctx context.Context, c store.ClaimRunsRequest) ([]store.ClaimedRun, error) {
	runs, err := transact(p, func() ([]store.ClaimedRun, error) { return p.Store.ClaimRuns(ctx, c) })
	for _, r := range runs {
		p.log(claimed, r.Lease.Key, strconv.Itoa(r.Lease.Claim))
	}
	return runs, err
}

func (p *process) ClaimTasks(ctx context.Context, c store.ClaimTasksRequest) ([]store.ClaimedTask, error) {
	tasks, err := transact(p, func() ([]store.ClaimedTask, error) { return p.Store.ClaimTasks(ctx, c) })
	for _, task := range tasks {
		p.log(claimed, task.Lease.Key, strconv.Itoa(task.Lease.Claim))
	}
	if len(tasks) > 0 {
		p.freezeOnce(&p.freezing)
	}
	for _, task := range tasks {
		p.log(held, task.Lease.Key, "")
	}
	return tasks, err
}

// freezeOnce waits to be frozen: right before the first claimed calls, or with the first result.
func (p *process) freezeOnce(freezing *bool) {
	p.transactions.Lock()
	defer p.transactions.Unlock()
	if *freezing {
		*freezing = false
		awaitThaw(func() { p.log(frozen, store.Key{}, "") })
	}
}

func (p *process) Renew(ctx context.Context, l store.Lease, d time.Duration) error {
	_, err := transact(p, func() (struct{}, error) { return struct{}{}, p.Store.Renew(ctx, l, d) })
	return err
}

func (p *process) Release(ctx context.Context, l store.Lease, d time.Duration, unused bool) error {
	_, err := transact(p, func() (struct{}, error) { return struct{}{}, p.Store.Release(ctx, l, d, unused) })
	return err
}

func (p *process) Commit(ctx context.Context, s store.Step) (store.Head, error) {
	head, err := transact(p, func() (store.Head, error) { return p.Store.Commit(ctx, s) })
	if err != nil {
		return head, err
	}
	key := s.Lease.Key
	if s.Consume != "" {
		p.log(consumed, store.Key{Run: key.Run, Continuation: s.Consume}, "")
	}
	if s.Pause != nil || s.End != "" {
		p.log(rested, key, string(s.End))
	}
	return head, nil
}

func (p *process) Accept(ctx context.Context, r store.Result) (bool, error) {
	p.freezeOnce(&p.keeping)
	ready, err := transact(p, func() (bool, error) { return p.Store.Accept(ctx, r) })
	if err == nil {
		p.log(accepted, r.Key, sumOf(r))
	}
	return ready, err
}

func (p *process) Sweep(ctx context.Context, s store.SweepRequest) (store.Swept, error) {
	return transact(p, func() (store.Swept, error) { return p.Store.Sweep(ctx, s) })
}

// sumOf returns a word that is the same for equal results only.
func sumOf(r store.Result) string {
	return fmt.Sprintf("%x", sha256.Sum256(append([]byte(r.Outcome+"\n"), r.Payload...)))
}
