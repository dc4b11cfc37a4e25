package durable

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/plait-dev/plait/store"
)

// Settings are common to engines and workers. The zero value is ready to use.
type Settings struct {
	// Name is shown as the holder of leases. Defaults to the name of the host and the ID of the process.
	Name string
	// Slots is the maximum number of runs or calls at the same time. Defaults to 16.
	Slots int
	// Lease is how long a claim holds without being renewed. It is renewed after a third of this time. If a process is
	// lost, its work waits for so long before another process takes it. Defaults to 30 seconds.
	Lease time.Duration
	// Poll is how often to look for work, and for work that was lost, without a wake-up. Defaults to 1 second.
	Poll time.Duration
	// Drain is how long Serve, at its end, waits for work under way before it interrupts it. Negative is no wait.
	// Defaults to 5 seconds.
	Drain time.Duration
	// Log receives the errors while serving. Defaults to slog.Default().
	Log *slog.Logger
}

func (s Settings) withDefaults() Settings {
	if s.Name == "" {
		host, _ := os.Hostname()
		s.Name = host + "-" + strconv.Itoa(os.Getpid())
	}
	if s.Slots <= 0 {
		s.Slots = 16
	}
	if s.Lease <= 0 {
		s.Lease = 30 * time.Second
	}
	if s.Poll <= 0 {
		s.Poll = time.Second
	}
	if s.Drain == 0 {
		s.Drain = 5 * time.Second
	}
	if s.Log == nil {
		s.Log = slog.Default()
	}
	return s
}

// errInterrupted is the cause of a context that Serve has cancelled at its end, after Drain.
var errInterrupted = errors.New("durable: the process ends")

// pool claims work and executes it. A piece of work is a run for an engine, and a call for a worker.
type pool struct {
	Settings
	store store.Runs
	// claim claims up to limit pieces of work. It returns a function for each that executes it.
	claim func(ctx context.Context, limit int) ([]func(context.Context), error)
	// wanted reports whether a wake-up is for this pool.
	wanted func(store.Wake) bool
}

// serve works until ctx is done.
func (p *pool) serve(ctx context.Context) {
	bell := make(chan struct{}, 1)
	defer p.store.Listen(func(w store.Wake) {
		if p.wanted(w) {
			ring(bell)
		}
	})()

	// Work is not interrupted when ctx is done, but after Drain.
	working, interrupt := context.WithCancelCause(context.WithoutCancel(ctx))
	defer interrupt(nil)
	var all sync.WaitGroup
	all.Go(func() { p.sweepUntilDone(ctx) })

	slots := make(chan struct{}, p.Slots) // one element for each piece of work under way
	for ctx.Err() == nil {
		started := p.fill(ctx, working, &all, slots, bell)
		if started && len(slots) < p.Slots {
			continue // there may be more
		}

		select {
		case <-ctx.Done():
		case <-bell:
		case <-time.After(jitter(p.Poll)):
		}
	}

	p.drain(&all, interrupt)
}

// fill claims work for the free slots and starts it. It reports whether there was any. The end of a piece of work rings
// the bell, because a slot is free again.
func (p *pool) fill(
	ctx, working context.Context, all *sync.WaitGroup, slots chan struct{}, bell chan<- struct{},
) bool {
	free := p.Slots - len(slots)
	if free == 0 {
		return false
	}

	work, err := p.claim(ctx, free)
	if err != nil && ctx.Err() == nil {
		p.Log.WarnContext(ctx, "durable: cannot claim", "error", err)
	}

	for _, do := range work {
		slots <- struct{}{}
		all.Go(func() {
			defer func() {
				<-slots
				ring(bell)
			}()
			do(working)
		})
	}
	return len(work) > 0
}

// drain waits for the work under way, and interrupts it after p.Drain.
func (p *pool) drain(all *sync.WaitGroup, interrupt context.CancelCauseFunc) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		all.Wait()
	}()

	select {
	case <-done:
	case <-time.After(p.Drain):
		interrupt(errInterrupted)
		<-done
	}
}

// ring puts a wake-up into the channel, which has room for one.
func ring(bell chan<- struct{}) {
	select {
	case bell <- struct{}{}:
	default: // it was rung already
	}
}

// jitter returns d, up to a quarter more or less, so that processes do not poll at the same time.
func jitter(d time.Duration) time.Duration {
	return d*3/4 + rand.N(max(d/2, 1))
}

// hold renews a lease until stop is called. The returned context ends when the lease is lost, or with ctx.
func (s Settings) hold(
	ctx context.Context, runs store.Runs, lease store.Lease,
) (held context.Context, stop func()) {
	held, lose := context.WithCancelCause(ctx)
	done, joined := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(joined)

		// Without this, a run cancelled by this process would be noticed only at the next renewal.
		over := make(chan struct{}, 1)
		defer runs.Listen(func(w store.Wake) {
			if w.Kind == store.WakeOver && w.Key.Run == lease.Key.Run {
				ring(over)
			}
		})()

		for {
			select {
			case <-done:
				return
			case <-over:
			case <-time.After(s.Lease / 3):
			}

			err := runs.Renew(context.WithoutCancel(ctx), lease, s.Lease)
			switch {
			case refused(err):
				lose(err)
				return
			case err != nil: // the store may be back before the lease ends
				s.Log.WarnContext(ctx, "durable: cannot renew a lease", "key", lease.Key, "error", err)
			}
		}
	}()

	return held, func() {
		close(done)
		<-joined
		lose(nil)
	}
}

// refused reports whether the store has refused a transaction for good. After any other error it can be repeated.
func refused(err error) bool {
	var refused *store.RunError
	return errors.As(err, &refused) || errors.Is(err, store.ErrMoved)
}

// retry calls fn until it succeeds or is refused, ctx is done, or so much time has passed that the lease may have
// ended. It calls fn at least once.
func (s Settings) retry(ctx context.Context, fn func(context.Context) error) error {
	for began, wait := time.Now(), s.Poll/10; ; wait *= 2 {
		err := fn(context.WithoutCancel(ctx))
		if err == nil || refused(err) || time.Since(began)+wait > s.Lease {
			return err
		}

		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}
