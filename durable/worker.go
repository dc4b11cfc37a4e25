package durable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// Worker executes the deferred calls of its tools.
//
// It executes a call as executor.Agent.ExecuteTools does: the arguments are checked, there is a timeout, and a panic
// becomes an error result. The context of a call holds its [CallKey]. The context ends when the lease is lost, when the
// run is cancelled, and at the call's deadline.
type Worker struct {
	// Store holds the runs. It is required.
	Store store.Runs
	// Tools are the tools of the worker. It executes the calls with the names of their definitions.
	Tools []executor.Tool
	// Timeout is how long a call may take; executor.WithTimeout sets it for one tool. Negative is no limit. Defaults to
	// 30 seconds.
	Timeout time.Duration
	// MaxResult is the maximum size of a result's saved form, in bytes. A larger result is replaced by an error result.
	// Defaults to 8 MiB.
	MaxResult int
	Settings

	capacity  capacity
	unchecked bool // for tests: the lease is not checked before a call
}

// Serve executes calls until ctx is done. It then claims no more calls, waits for those under way, and interrupts them
// after Settings.ShutdownTimeout. An interrupted call has no result. It is executed again if its [CallOptions] allow
// it.
func (w *Worker) Serve(ctx context.Context) error {
	p, err := w.pool()
	if err != nil {
		return err
	}
	p.serve(ctx)
	return nil
}

// Handle executes the call of a wake-up, if the call is still open. It is for programs with a queue of wake-ups; Serve
// needs none. It waits for a free slot; Handle and Serve share the slots. After an error there is nothing to repeat:
// Serve finds the call.
//
// If ctx is done, Handle begins nothing. A call under way is interrupted Settings.ShutdownTimeout after that.
func (w *Worker) Handle(ctx context.Context, wake store.Wake) error {
	p, err := w.pool()
	if err != nil || wake.Kind != store.WakeTask {
		return err
	}
	return p.handle(ctx, func(ctx context.Context) ([]func(context.Context), error) {
		return w.claim(ctx, p.Settings, wake.Key, 1)
	})
}

func (w *Worker) pool() (*pool, error) {
	if w.Store == nil {
		return nil, errNoStore
	}
	for _, t := range w.Tools {
		if err := t.Definition().Check(); err != nil {
			return nil, fmt.Errorf("durable: %w", err)
		}
	}

	s := w.Settings.withDefaults()
	return &pool{
		Settings: s, store: w.Store, capacity: w.capacity.of(s.Concurrency),
		claim: func(ctx context.Context, limit int) ([]func(context.Context), error) {
			return w.claim(ctx, s, store.Key{}, limit)
		},
		wanted: func(wake store.Wake) bool { return wake.Kind == store.WakeTask && w.tool(wake.Tool) != nil },
	}, nil
}

func (w *Worker) tool(name string) executor.Tool {
	for _, t := range w.Tools {
		if t.Definition().Name == name {
			return t
		}
	}
	return nil
}

// claim claims up to limit calls, or only the call of key if it is set. It returns a function for each claimed call,
// which executes it.
func (w *Worker) claim(ctx context.Context, s Settings, key store.Key, limit int) ([]func(context.Context), error) {
	var names []string
	for _, t := range w.Tools {
		names = append(names, t.Definition().Name)
	}

	// Count the lease from before the claim, so that it never lasts longer here than in the store.
	began := s.now()
	tasks, err := w.Store.ClaimTasks(ctx, store.ClaimTasksRequest{
		Worker: s.Name, Tools: names, Key: key, Lease: s.Lease, Limit: limit,
	})

	var work []func(context.Context)
	for _, task := range tasks {
		work = append(work, func(ctx context.Context) { w.do(ctx, s, task, began) })
	}
	return work, err
}

// do executes a call that was claimed at began, and stores its result or gives the call back.
func (w *Worker) do(ctx context.Context, s Settings, task store.ClaimedTask, began time.Time) {
	key := task.Lease.Key
	held, stop := s.hold(ctx, w.Store, task.Lease)
	defer stop()

	// The store has computed Left, the time to the deadline, with its own clock. From here on use this machine's clock:
	// the two clocks need not agree.
	if task.Left > 0 {
		var cancel func()
		held, cancel = context.WithTimeoutCause(held, task.Left-s.since(began), errDeadline)
		defer cancel()
	}

	// A process that was frozen since the claim must not begin the call: another worker may have executed it.
	if !w.unchecked && s.since(began) >= s.Lease {
		w.release(ctx, s, task, 0, true)
		return
	}

	// If a newer version of Plait has paused the run, only its workers can read the call.
	call, err := executor.ToolTaskCodec{}.Decode(task.Task.Payload)
	if errors.Is(err, executor.ErrVersion) {
		s.Log.WarnContext(ctx, "durable: a call is left to a newer program", "key", key, "error", err)
		w.release(ctx, s, task, s.Lease, true)
		return
	}

	done := failed(key, "The call cannot be read: %v", err)
	if err == nil {
		done = w.call(held, task, call)
	}
	switch {
	case held.Err() != nil && done.returned:
		// The tool has returned a result in spite of that. It is accepted if it is the first one.
	case errors.Is(context.Cause(held), errDeadline):
		done = outcome{kind: store.OutcomeTimeout, reply: executor.FailedFor(call.Pending.Key, textLate)}
	case errors.Is(context.Cause(held), errInterrupted):
		w.release(ctx, s, task, 0, false)
		return
	case held.Err() != nil: // the lease is lost, or the run is cancelled
		s.Log.WarnContext(ctx, "durable: a call was given up", "key", key, "cause", context.Cause(held))
		return
	case done.again != nil && (task.Task.Attempts <= 0 || task.Attempt < task.Task.Attempts):
		w.release(ctx, s, task, done.again.after, false)
		return
	}

	w.accept(ctx, s, task, done)
}

// accept stores the outcome of a call as its result.
func (w *Worker) accept(ctx context.Context, s Settings, task store.ClaimedTask, done outcome) {
	key := task.Lease.Key
	result := store.Result{Key: key, Claim: task.Lease.Claim, Worker: s.Name, Outcome: done.kind}

	// The run waits for a result. If this one cannot be stored, store an error in its place.
	payload, err := done.reply.MarshalJSON()
	if limit := w.maxResult(); err == nil && len(payload) > limit {
		err = fmt.Errorf("its result has %d bytes, and the limit is %d", len(payload), limit)
	}
	if err != nil {
		result.Outcome = store.OutcomeError
		payload, _ = failed(key, "The call failed: %v", err).reply.MarshalJSON() // a text can be encoded
	}
	result.Payload = payload

	err = s.retry(ctx, func(ctx context.Context) error {
		_, err := w.Store.Accept(ctx, result)
		return err
	})
	if err != nil {
		s.Log.WarnContext(ctx, "durable: a result was not accepted", "key", key, "error", err)
	}
}

// errDeadline is the cause of a context that ended at the deadline of the call.
var errDeadline = errors.New("durable: the deadline of the call has passed")

func (w *Worker) maxResult() int {
	if w.MaxResult > 0 {
		return w.MaxResult
	}
	return 8 << 20
}

// release gives a call back. An error is only logged, because the lease ends anyway.
func (w *Worker) release(ctx context.Context, s Settings, task store.ClaimedTask, after time.Duration, unused bool) {
	if err := w.Store.Release(context.WithoutCancel(ctx), task.Lease, after, unused); err != nil && !refused(err) {
		s.Log.WarnContext(ctx, "durable: cannot give a call back", "key", task.Lease.Key, "error", err)
	}
}

// outcome is the outcome of a call, with the reply to store.
type outcome struct {
	kind     store.Outcome
	reply    executor.Reply
	returned bool        // the tool itself has returned, without an error
	again    *retryError // set if the tool has returned Retry
}

func failed(key store.Key, format string, args ...any) outcome {
	return outcome{kind: store.OutcomeError, reply: failure(key, fmt.Sprintf(format, args...))}
}

// failure returns the reply with an error result for the call of a key.
func failure(key store.Key, text string) executor.Reply {
	call, _ := node.ParseCallKey(key.Call) // the engine made it
	return executor.FailedFor(call, text)
}

// call executes a call with the tool of its name.
func (w *Worker) call(ctx context.Context, task store.ClaimedTask, decoded executor.ToolTask) outcome {
	if len(decoded.Attributes) > 0 {
		attributes := map[string]any{}
		for name, value := range decoded.Attributes {
			attributes[name] = value
		}
		ctx = executor.WithAttributes(ctx, attributes)
	}
	ctx = context.WithValue(ctx, keyOfCall{}, task)

	// The executor does not wait for a tool that ignores its context. late receives the tool's result even then.
	type returned struct {
		result executor.Result
		err    error
	}
	late := make(chan returned, 1)
	tool := w.tool(task.Task.Tool)
	agent := executor.Agent{ToolTimeout: timeoutOf(tool, w.Timeout), Log: w.Log}
	agent.Handler = func(ctx context.Context, call executor.Call) (any, error) {
		result, err := tool.Call(ctx, call)
		result.Child = dag.DAG{} // a conversation cannot be sent
		late <- returned{result, err}
		return result, err
	}

	reply, err := agent.Work(ctx, decoded.Pending)
	done := outcome{kind: store.OutcomeOK, reply: reply}
	if err != nil || reply.Result().IsError {
		done.kind = store.OutcomeError
	}
	select {
	case r := <-late:
		errors.As(r.err, &done.again)

		// The conversation has no Terminate, and no result that came after the end of the context.
		if r.err == nil && (ctx.Err() != nil || r.result.Terminate) {
			done = outcome{kind: store.OutcomeOK, reply: executor.Returned(decoded.Pending, r.result)}
		}
		done.returned = r.err == nil
	default: // the tool has panicked, or has not returned, or was not called
	}
	return done
}

// timeoutOf returns the tool's own timeout, or d if it has none.
func timeoutOf(t executor.Tool, d time.Duration) time.Duration {
	timed, ok := as[interface{ Timeout() time.Duration }](t)
	switch {
	case !ok:
		return d
	case timed.Timeout() <= 0:
		return -1 // no limit
	}
	return timed.Timeout()
}

// as returns the tool as a T, an interface with further methods. It also looks at the tools that the tool wraps.
func as[T any](t executor.Tool) (found T, ok bool) {
	for t != nil {
		if found, ok := t.(T); ok {
			return found, true
		}
		wrapper, wraps := t.(interface{ Unwrap() executor.Tool })
		if !wraps {
			break
		}
		t = wrapper.Unwrap()
	}
	return found, false
}

type keyOfCall struct{}

// CallKey returns the key of the call of ctx, and whether there is one. ctx is the context of a call executed by a
// [Worker]. The key is the same at each attempt, and no other call has it: its String is an idempotency key, like
// executor.IdempotencyKey.
func CallKey(ctx context.Context) (store.Key, bool) {
	task, ok := ctx.Value(keyOfCall{}).(store.ClaimedTask)
	return task.Lease.Key, ok
}

// Retry returns an error with which a tool asks to be called again after some time. The [Worker] does so as long as the
// call has attempts left. After the last attempt the model reads err.
func Retry(err error, after time.Duration) error { return &retryError{err: err, after: after} }

type retryError struct {
	err   error
	after time.Duration
}

func (e *retryError) Error() string { return e.err.Error() }

func (e *retryError) Unwrap() error { return e.err }
