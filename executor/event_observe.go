package executor

import "context"

// observer is a Hook.Observe.
type observer func(ctx context.Context, event Event, err error) context.Context

// observe passes an event to the Observe hooks, from the RunStart to the End, and sets r.observed to the context they
// return.
func (r *run) observe(event Event, err error) {
	if _, begins := event.(RunStart); begins {
		r.observing = true
	}

	// A refused run has no RunStart, so its End is not observed.
	if !r.observing {
		return
	}

	// Each event begins with the context of the run, not with that of the event before.
	r.observed = r.ctx
	for _, f := range r.observers {
		r.observed = f.get(r.observed, event, err)
	}

	switch event.(type) {
	case RunStart:
		// Requests, hooks and tools of the run get the values that the observers added, such as a span.
		r.ctx = r.observed
	case End:
		r.observing = false
	}
}

// get calls the observer. It returns ctx if the observer panics or returns nil.
func (f observer) get(ctx context.Context, event Event, err error) (made context.Context) {
	defer func() {
		if recover() != nil || made == nil {
			made = ctx
		}
	}()
	return f(ctx, event, err)
}
