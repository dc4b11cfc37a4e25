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
	// Concurrency is the maximum number of runs or calls at the same time. Defaults to 16.
	Concurrency int
	// Lease is how long a claim holds without being renewed. It is renewed after a third of this time. After a process
	// is lost, its work waits for the end of the lease before another process takes it. Defaults to 30 seconds.
	Lease time.Duration
	// Poll is how often to look for new and for lost work without a wake-up. Defaults to 1 second.
	Poll time.Duration
	// ShutdownTimeout is how long Serve, at its end, waits for work under way before interrupting it. Negative is no
	// wait. Defaults to 5 seconds.
	ShutdownTimeout time.Duration
	// Log receives errors while serving. Defaults to slog.Default().
	Log *slog.Logger

	now func() time.Time // for tests: the clock of the process. Defaults to time.Now
}

func (s Settings) withDefaults() Settings {
	if s.Name == "" {
		host, _ := os.Hostname()
		s.Name = host + "-" + strconv.Itoa(os.Getpid())
	}

	if s.Concurrency <= 0 {
		s.Concurrency = 16
	}
	if s.Lease <= 0 {
		s.Lease = 30 * time.Second
	}
	if s.Poll <= 0 {
		s.Poll = time.Second
	}
	if s.ShutdownTimeout == 0 {
		s.ShutdownTimeout = 5 * time.Second
	}

	if s.Log == nil {
		s.Log = slog.Default()
	}
	if s.now == nil {
		s.now = time.Now
	}
	return s
}

// since returns the time since t, a reading of s.now. Both readings include the monotonic clock, so setting the clock
// of the machine in between has no effect.
func (s Settings) since(t time.Time) time.Duration { return s.now().Sub(t) }

// errInterrupted is the cause of a context cancelled at the end of Serve, after ShutdownTimeout.
var errInterrupted = errors.New("durable: the process ends")

// capacity is common to all calls of Serve and Handle of one engine or worker.
type capacity struct {
	once  sync.Once
	slots chan struct{} // one element for each piece of work under way
	bell  chan struct{} // has room for one element; rung when there may be work, or a free slot
}

// of returns c. The first call sets the number of slots.
func (c *capacity) of(slots int) *capacity {
	c.once.Do(func() { c.slots, c.bell = make(chan struct{}, slots), make(chan struct{}, 1) })
	return c
}

// take takes all free slots, and returns their number.
func (c *capacity) take() (taken int) {
	for {
		select {
		case c.slots <- struct{}{}:
			taken++
		default:
			return taken
		}
	}
}

// free gives slots back.
func (c *capacity) free(slots int) {
	for range slots {
		<-c.slots
	}
}

// pool claims work and executes it. A piece of work is a run for an engine, and a call for a worker.
type pool struct {
	Settings
	*capacity
	store store.Runs
	// claim claims up to limit pieces of work. It returns a function for each piece, which executes it.
	claim func(ctx context.Context, limit int) ([]func(context.Context), error)
	// wanted reports whether a wake-up is for this pool.
	wanted func(store.Wake) bool
}

// serve works until ctx is done.
func (p *pool) serve(ctx context.Context) {
	defer p.store.Listen(func(w store.Wake) {
		if p.wanted(w) {
			ring(p.bell)
		}
	})()

	// Work begun before the end of ctx may finish: it gets a context of its own.
	working, release := p.outlive(ctx)
	defer release()
	var all sync.WaitGroup
	all.Go(func() { p.sweepUntilDone(ctx) })

	for ctx.Err() == nil {
		if more := p.fill(ctx, working, &all); more {
			continue
		}

		select {
		case <-ctx.Done():
		case <-p.bell:
		case <-time.After(jitter(p.Poll)):
		}
	}
	all.Wait()
}

// outlive returns a context for work that may continue after ctx is done, for p.ShutdownTimeout. Then it is
// interrupted. The caller calls release when no work is left.
func (p *pool) outlive(ctx context.Context) (working context.Context, release func()) {
	working, interrupt := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(p.ShutdownTimeout):
			interrupt(errInterrupted)
		case <-working.Done(): // released
		}
	})

	return working, func() {
		stop()
		interrupt(nil)
	}
}

// fill claims work for the free slots and starts it. It reports whether there may be more work and free slots.
func (p *pool) fill(ctx, working context.Context, all *sync.WaitGroup) (more bool) {
	// Take the slots before the claim: the lease of claimed work runs, so it must not wait for a slot.
	taken := p.take()
	if taken == 0 {
		return false
	}

	work, err := p.claim(ctx, taken)
	if err != nil && ctx.Err() == nil {
		p.Log.WarnContext(ctx, "durable: cannot claim", "error", err)
	}
	p.free(taken - len(work))

	// Work that was claimed beside an error is executed all the same.
	for _, do := range work {
		all.Go(func() {
			defer p.done()
			do(working)
		})
	}
	return len(work) > 0 && len(work) < taken
}

// done gives back the slot of a piece of work, and makes Serve look for more work.
func (p *pool) done() {
	p.free(1)
	ring(p.bell)
}

// handle waits for a free slot and does the work returned by claim, at most one piece.
func (p *pool) handle(ctx context.Context, claim func(context.Context) ([]func(context.Context), error)) error {
	select {
	case p.slots <- struct{}{}:
		defer p.done()
	case <-ctx.Done():
	}

	// If both were ready, the select may have taken the slot: begin nothing in any case.
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}

	work, err := claim(ctx)
	if err != nil {
		return err
	}

	working, release := p.outlive(ctx)
	defer release()
	for _, do := range work {
		do(working)
	}
	return nil
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

		// Renew at once when the run ends, to notice a cancelled run before the next renewal.
		over := make(chan struct{}, 1)
		defer runs.Listen(func(w store.Wake) {
			if w.Kind == store.WakeStopped && w.Key.Run == lease.Key.Run {
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

// refused reports whether the store has refused a transaction permanently. After any other error it can be repeated.
func refused(err error) bool {
	var refused *store.RunError
	return errors.As(err, &refused) || errors.Is(err, store.ErrMoved)
}

// retry calls fn until it succeeds or is refused, until ctx is done, or until the lease may have ended. It calls fn at
// least once.
func (s Settings) retry(ctx context.Context, fn func(context.Context) error) error {
	for began, wait := s.now(), s.Poll/10; ; wait *= 2 {
		err := fn(context.WithoutCancel(ctx))
		if err == nil || refused(err) || s.since(began)+wait > s.Lease {
			return err
		}

		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}
