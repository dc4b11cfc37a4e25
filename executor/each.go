package executor

import (
	"context"
	"errors"
	"iter"
	"sync"
)

// errNoResult is the error of a function that ended its goroutine by runtime.Goexit.
var errNoResult = errors.New("executor: each: the function ended without a result")

// eachAhead is how many results of Each may wait to be yielded, for each run at the same time.
const eachAhead = 8

// Each calls run for each item, at most limit of them at the same time. It yields the results in the order of the
// items, each with its error. An error ends nothing but its own item. Use Each to run many conversations at once:
// questions, forks, files, replies to pauses.
//
//	for d, err := range executor.Each(ctx, 8, slices.Values(questions), func(ctx context.Context, q string) (dag.DAG, error) {
//		return agent.Run(ctx, base.User(q))
//	}) { … }
//
// Rules:
//
//   - There is exactly one result for each item. When ctx ends, the running calls are cancelled, and items not started
//     yet get the error of ctx.
//   - Breaking off cancels the running calls and waits for them. No goroutine is left when the range is over.
//   - A result that waits for an earlier one is kept. With 8 × limit results waiting, no further item is started.
//   - Items are read on another goroutine, while results are yielded. A panic of items or run is raised again by the
//     range.
//   - A limit of less than 1 is 1. Ranging over the sequence again runs everything again.
//
// Limits on requests belong to the provider: an api.Client is shared by all runs of an agent.
func Each[In, Out any](
	ctx context.Context, limit int, items iter.Seq[In], run func(context.Context, In) (Out, error),
) iter.Seq2[Out, error] {
	limit = max(limit, 1)

	return func(yield func(Out, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		started := make(chan *job[Out], eachAhead*limit) // its size limits how many results are kept
		left := make(chan struct{})                      // closed when nobody waits for results any more
		var workers sync.WaitGroup
		defer func() {
			close(left)
			cancel()
			workers.Wait()
		}()

		// Reading items is a job too: its panic is raised again by the range.
		var source job[Out]
		workers.Go(func() {
			defer close(started)
			source.do(func() (none Out, _ error) {
				startJobs(ctx, limit, items, run, started, left, &workers)
				return none, nil
			})
		})

		// Yield in the order of the items: wait for each job in turn.
		for j := range started {
			<-j.done
			if j.panicked {
				panic(j.cause)
			}
			if !yield(j.value, j.err) {
				return
			}
		}

		if source.panicked {
			panic(source.cause)
		}
	}
}

// startJobs starts a job for each item, in the order of the items and at most limit at the same time, until left is
// closed. It sends each job to started.
func startJobs[In, Out any](
	ctx context.Context, limit int, items iter.Seq[In], run func(context.Context, In) (Out, error),
	started chan<- *job[Out], left <-chan struct{}, workers *sync.WaitGroup,
) {
	room := make(chan struct{}, limit)
	for item := range items {
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
		}

		j := &job[Out]{done: make(chan struct{})}
		// An item gets its result even if it cannot start any more.
		if ctx.Err() != nil {
			j.err = errorOf(ctx)
			close(j.done)
		} else {
			workers.Go(func() {
				defer func() { <-room }()
				defer close(j.done)
				j.do(func() (Out, error) { return run(ctx, item) })
			})
		}

		select {
		case started <- j:
		case <-left:
			return
		}
	}
}

// job is a call of a function on a goroutine of its own.
type job[Out any] struct {
	done     chan struct{} // closed when the fields below are set
	value    Out
	err      error
	panicked bool
	cause    any // the value of the panic
}

// do calls fn and keeps its results, or its panic.
func (j *job[Out]) do(fn func() (Out, error)) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if j.cause = recover(); j.cause != nil {
			j.panicked = true
			return
		}
		j.err = errNoResult // runtime.Goexit
	}()
	j.value, j.err = fn()
	returned = true
}
