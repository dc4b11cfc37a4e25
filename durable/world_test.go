package durable

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/store"
	"github.com/stretchr/testify/require"
)

// world is a store, and the processes that share it. Time in it is not real.
type world struct {
	t       *testing.T
	runs    store.Runs
	history *history
	over    chan struct{} // closed at the end: the dead may go
	options CallOptions
	slow    time.Duration // how long a tool takes

	mu        sync.Mutex
	processes []*process
	happened  map[string]int // the faults that took place, by point
}

// errDead is what a process that was killed gets from the store.
var errDead = errors.New("the process is dead")

// errLost is a reply of the store that was lost.
var errLost = errors.New("connection reset")

// fault is what happens to a process at a point of one of its transactions.
type fault string

const (
	kill   fault = "kill"
	freeze fault = "freeze" // for longer than a lease
	lose   fault = "lose"   // the reply is lost
)

const lease = 30 * time.Second

// process is an engine and a worker. It is also the store that both see: every fault is done to its calls.
type process struct {
	store.Runs
	w      *world
	name   string
	engine *Engine
	worker *Worker
	stop   context.CancelFunc
	ended  sync.WaitGroup

	ahead   time.Duration            // how far the clock of the store is before that of the process
	plan    func(point string) fault // "" is none
	wakes   func(fn func(store.Wake)) func(store.Wake)
	claimed func(run string) // called for each run that the process has claimed; nil is none
	// broken breaks a rule, for the negative controls: it may replace the error of a transaction.
	broken func(point string, err error) error

	mu     sync.Mutex
	dead   bool
	frozen time.Time // until then
}

// within runs fn in a new world, and returns the faults that its history shows.
func within(t *testing.T, fn func(w *world)) (faults []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			t: t, runs: store.Memory(), history: newHistory(), over: make(chan struct{}), happened: map[string]int{},
			options: CallOptions{Attempts: -1}, slow: 12 * time.Second,
		}
		defer func() {
			close(w.over)
			for _, p := range w.processes {
				p.stop()
				p.ended.Wait()
			}
			faults = w.history.found()
		}()
		fn(w)
	})
	return faults
}

// add starts a process. Change may be nil.
func (w *world) add(change func(p *process)) *process {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := &process{Runs: w.runs, w: w, name: fmt.Sprint("process ", len(w.processes))}
	settings := quiet()
	settings.Name, settings.Lease = p.name, lease
	tool := counter("count", p.count)
	p.engine = &Engine{
		Store: p, Settings: settings, Attempts: 1000,
		CallOptions: func(dag.Pending) CallOptions { return w.options },
		Agents: map[string]executor.Agent{"a": {
			Provider: twoCalls("count"), Tools: []dag.Tool{tool}, Strategy: executor.DeferAll(),
		}},
	}
	p.worker = &Worker{Store: p, Settings: settings, Tools: []executor.Tool{executor.WithTimeout(tool, 0)}}
	if change != nil {
		change(p)
	}
	w.processes = append(w.processes, p)

	ctx, cancel := context.WithCancel(context.Background())
	p.stop = cancel
	p.ended.Go(func() { _ = p.engine.Serve(ctx) })
	p.ended.Go(func() { _ = p.worker.Serve(ctx) })
	return p
}

// count is the tool. Each of its executions has another result.
func (p *process) count(ctx context.Context, item string) (string, error) {
	key, _ := CallKey(ctx)
	arrived := time.Now()
	if err := errors.Join(p.gate(), p.happens("tool before")); err != nil {
		return "", err
	}

	// Time that has passed here is the moment between the check of the lease and the call: nothing can be promised then.
	n := p.w.history.start(key, time.Now().After(arrived))
	time.Sleep(p.w.slow)
	return fmt.Sprintf("%s, attempt %d in %s", item, n, p.name), p.happens("tool after")
}

// gate lets a frozen process wait, and a dead one until the end of the world.
func (p *process) gate() error {
	for {
		p.mu.Lock()
		dead, wait := p.dead, time.Until(p.frozen)
		p.mu.Unlock()
		switch {
		case dead:
			<-p.w.over
			return errDead
		case wait <= 0:
			return nil
		}
		select {
		case <-p.w.over:
			return errDead
		case <-time.After(wait):
		}
	}
}

// happens does what the plan has for the point.
func (p *process) happens(point string) error {
	if p.plan == nil {
		return nil
	}
	what := p.plan(point)
	if what == "" {
		return p.gate()
	}
	p.w.mu.Lock()
	p.w.happened[point]++
	p.w.mu.Unlock()

	p.mu.Lock()
	switch what {
	case kill:
		p.dead = true
	case freeze:
		p.frozen = time.Now().Add(20 * lease)
	}
	p.mu.Unlock()
	if what == lose {
		return errLost
	}
	return p.gate()
}

// transact is one transaction of the process.
func transact[T any](p *process, name string, call func() (T, error)) (result T, err error) {
	if err := p.gate(); err != nil {
		return result, err
	}
	if err := p.happens(name + " before"); err != nil {
		return result, err
	}
	result, err = call()
	if p.broken != nil {
		err = p.broken(name, err)
	}
	if lost := p.happens(name + " after"); lost != nil {
		var none T
		return none, lost
	}
	return result, err
}

func transactErr(p *process, name string, call func() error) error {
	_, err := transact(p, name, func() (struct{}, error) { return struct{}{}, call() })
	return err
}

func (p *process) Begin(ctx context.Context, b store.BeginRequest) (store.Run, error) {
	return transact(p, "begin", func() (store.Run, error) { return p.Runs.Begin(ctx, b) })
}

func (p *process) ClaimRuns(ctx context.Context, c store.ClaimRunsRequest) ([]store.ClaimedRun, error) {
	return found(p, "claim run", func() ([]store.ClaimedRun, error) {
		runs, err := p.Runs.ClaimRuns(ctx, c)
		for _, r := range runs {
			if p.claimed != nil {
				p.claimed(r.Run.ID)
			}
		}
		return runs, err
	})
}

func (p *process) ClaimTasks(ctx context.Context, c store.ClaimTasksRequest) ([]store.ClaimedTask, error) {
	return found(p, "claim task", func() ([]store.ClaimedTask, error) {
		tasks, err := p.Runs.ClaimTasks(ctx, c)
		for i := range tasks {
			if !tasks[i].Deadline.IsZero() {
				tasks[i].Deadline = tasks[i].Deadline.Add(p.ahead)
			}
		}
		return tasks, err
	})
}

// found is transact for claims: after one that found nothing, nothing happens.
func found[T any](p *process, name string, call func() ([]T, error)) ([]T, error) {
	if err := p.gate(); err != nil {
		return nil, err
	}
	if err := p.happens(name + " before"); err != nil {
		return nil, err
	}
	claimed, err := call()
	if len(claimed) > 0 {
		if lost := p.happens(name + " after"); lost != nil {
			return nil, lost
		}
	}
	return claimed, err
}

func (p *process) Renew(ctx context.Context, l store.Lease, d time.Duration) error {
	return transactErr(p, "renew", func() error { return p.Runs.Renew(ctx, l, d) })
}

func (p *process) Release(ctx context.Context, l store.Lease, d time.Duration, unused bool) error {
	return transactErr(p, "release", func() error { return p.Runs.Release(ctx, l, d, unused) })
}

func (p *process) Commit(ctx context.Context, s store.Step) (store.Head, error) {
	name := "append"
	switch {
	case s.Pause != nil:
		name = "pause"
	case s.Consume != "":
		name = "consume"
	case s.End != "":
		name = "end"
	}
	return transact(p, name, func() (store.Head, error) {
		head, err := p.Runs.Commit(ctx, s)
		if s.Consume != "" && (err == nil || p.broken != nil && p.broken(name, err) == nil) {
			p.w.history.consume(store.Key{Run: s.Lease.Key.Run, Continuation: s.Consume})
		}
		return head, err
	})
}

func (p *process) Accept(ctx context.Context, r store.Result) (bool, error) {
	return transact(p, "accept", func() (bool, error) {
		ready, err := p.Runs.Accept(ctx, r)
		if err == nil || p.broken != nil && p.broken("accept", err) == nil {
			p.w.history.accept(r.Key, r.Payload)
		}
		return ready, err
	})
}

func (p *process) Sweep(ctx context.Context, s store.SweepRequest) (store.Swept, error) {
	return transact(p, "sweep", func() (store.Swept, error) { return p.Runs.Sweep(ctx, s) })
}

func (p *process) Listen(fn func(store.Wake)) func() {
	if p.wakes != nil {
		fn = p.wakes(fn)
	}
	return p.Runs.Listen(fn)
}

// until waits for a fault at the point.
func (w *world) until(point string) {
	w.t.Helper()
	for range 3000 {
		w.mu.Lock()
		n := w.happened[point]
		w.mu.Unlock()
		if n > 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	w.t.Errorf("nothing happened at %q", point)
}

// start begins runs, each in a conversation of its own. A process that dies at it is asked no more.
func (w *world) start(p *process, n int) []string {
	var runs []string
	for i := range n {
		runs = append(runs, fmt.Sprint("run ", i))
	}
	go func() {
		for _, run := range runs {
			for {
				_, err := p.engine.Start(context.Background(), StartRequest{
					Run: run, Agent: "a", Conversation: "of " + run, Text: "How many?",
				})
				if err == nil || errors.Is(err, errDead) {
					break
				}
				time.Sleep(time.Second)
			}
		}
	}()
	return runs
}

// finish waits for the runs, and checks what became of them. A run that is not there is started by somebody who lives.
func (w *world) finish(runs []string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 24*time.Hour)
	defer cancel()
	engine := &Engine{Store: w.runs, Settings: quiet()}
	for _, run := range runs {
		_, err := engine.Start(ctx, StartRequest{Run: run, Agent: "a", Conversation: "of " + run, Text: "How many?"})
		if err == nil {
			var r store.Run
			if r, err = engine.Wait(ctx, run); err == nil && r.State != store.RunDone {
				err = fmt.Errorf("it is %s: %s", r.State, r.Reason)
			}
		}
		if err != nil {
			w.history.mu.Lock()
			w.history.fault("lost: %s: %v", run, err)
			w.history.mu.Unlock()
			continue
		}
		w.check(ctx, run)
	}
	time.Sleep(40 * lease) // whoever is frozen wakes up
}

// check compares the conversation of a run that is done with the results that were accepted.
func (w *world) check(ctx context.Context, run string) {
	w.t.Helper()
	c, err := open(ctx, w.runs, "of "+run, store.Main)
	if err != nil {
		w.t.Fatal(err)
	}
	w.history.mu.Lock()
	defer w.history.mu.Unlock()
	if found := c.DAG().Validate(); len(found) > 0 {
		w.history.fault("invalid: %s: %v", run, found)
	}

	var roles []string
	results := map[string]bool{}
	for _, m := range c.DAG().Transcript().Messages {
		roles = append(roles, string(m.Role))
		for _, r := range m.Blocks.ToolResults() {
			results[r.Content.Text()] = true
		}
	}
	if !slices.Equal(roles, []string{"user", "assistant", "user", "assistant"}) {
		w.history.fault("repeated: %s: %v", run, roles)
	}
	for key, payloads := range w.history.accepted {
		for payload := range payloads {
			var reply executor.Reply
			if key.Run == run && reply.UnmarshalJSON([]byte(payload)) == nil && len(payloads) == 1 && !holds(results, payload) {
				w.history.fault("changed: %s: %s", key, payload)
			}
		}
	}
	if len(results) != 2 && len(w.history.accepted) > 0 && !doubt(results) {
		w.history.fault("results: %s: %v", run, results)
	}
}

// holds reports whether one of the texts is in the saved result.
func holds(texts map[string]bool, payload string) bool {
	for text := range texts {
		if strings.Contains(payload, text) {
			return true
		}
	}
	return false
}

func doubt(texts map[string]bool) bool { return texts[textInDoubt] }

// at returns a plan with one fault: at the nth time of the point.
func at(point string, what fault, nth int) func(string) fault {
	var mu sync.Mutex
	seen := 0
	return func(p string) fault {
		mu.Lock()
		defer mu.Unlock()
		if p == point {
			if seen++; seen == nth {
				return what
			}
		}
		return ""
	}
}

// shown returns the call of a task, as it is shown to whoever replies.
func shown(t testing.TB, task store.TaskState) dag.Pending {
	t.Helper()
	decoded, err := executor.ToolTaskCodec{}.Decode(task.Task.Payload)
	require.NoError(t, err)
	return decoded.Pending
}
