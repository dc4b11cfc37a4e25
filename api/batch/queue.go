package batch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/internal/jsonx/write"
)

const (
	// createTime limits the creation of a batch, which is not cancelled with a run.
	createTime = 10 * time.Minute
	// maxLooks limits the looks at a batch that fail one after the other.
	maxLooks = 10
)

// Batches are the batches of one model: of those in a file, and of the requests made since. They are safe for
// concurrent use. Make them with [Open].
//
// No goroutine works for them. One of the waiting requests creates batches and looks at them, for all; when it has its
// response, another one does.
type Batches struct {
	options Options
	leader  chan struct{} // holds a value while a request works for all
	changed chan struct{} // holds a value after a request was added

	mu      sync.Mutex // guards the fields below
	file    *os.File   // nil for none
	broken  error      // why the file cannot be written
	model   string     // "" until the first request
	queue   []*request // waiting and in no batch, in order; with those that left
	size    int        // of the bodies in queue
	left    int        // the number of those in queue that left
	last    time.Time  // when the last one was added
	waiting map[string]*request
	used    map[string]bool // keys that no further request may have
	free    map[string]int  // the lowest number that may be free, by hash
	sent    map[string]*sent
	open    []*sent // without results
	doubt   *sent   // see history
}

// request is a request that waits.
type request struct {
	Line // the result, when done is closed
	hash string
	n    int // among the requests with the same hash
	body []byte
	done chan struct{}
}

// sent is a batch that was created, or may have been.
type sent struct {
	id   string
	keys []string
	at   time.Time // when it was about to be created
	// resolved reports that the ID is that of Resolve, which may be wrong. It is false after the first result.
	resolved bool

	asked int       // the number of its requests that wait
	next  time.Time // of the next look
	looks int       // that failed, one after the other
	// The results that nobody has asked for yet, by key. Nil before the batch has ended.
	results map[string]Line
}

// Open returns the batches in the named file, which it makes if there is none. With the name "" there is
// no file, and a second process starts anew. Close the batches after their last request.
func Open(path string, o *Options) (*Batches, error) {
	b := &Batches{
		leader: make(chan struct{}, 1), changed: make(chan struct{}, 1), waiting: map[string]*request{},
		used: map[string]bool{}, free: map[string]int{}, sent: map[string]*sent{},
	}
	if o != nil {
		b.options = *o
	}
	if b.options.Gather <= 0 {
		b.options.Gather = time.Second
	}
	if b.options.Poll <= 0 {
		b.options.Poll = time.Minute
	}
	if path == "" {
		return b, nil
	}

	file, h, err := openFile(path)
	if err != nil {
		return nil, err
	}
	b.file, b.model, b.doubt = file, h.model, h.doubt
	for _, key := range h.failed {
		b.used[key] = true
	}
	for _, s := range h.sent {
		b.keep(s)
		b.open = append(b.open, s)
	}
	return b, nil
}

// keep adds a batch. b.mu must be held.
func (b *Batches) keep(s *sent) {
	for _, key := range s.keys {
		b.sent[key] = s
		if b.waiting[key] != nil {
			s.asked++
		}
	}
}

// Close closes the file. It returns the error of a line that could not be written.
func (b *Batches) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.file == nil {
		return b.broken
	}
	err := errors.Join(b.broken, b.file.Close())
	b.file, b.broken = nil, errors.New("batch: the file is closed")
	return err
}

// Resolve ends a doubt (ErrInDoubt). The id is that of the batch in the provider's list of batches, or "" if there is
// none: its requests are sent then when they are made again.
//
// An ID of another batch is refused if it is in the file. If it is not, the provider is asked by the next request. The
// doubt is back, with ErrInDoubt and a text that names the batch, if the provider has no such batch, or if its results
// belong to other requests. Until then Resolve may be called again, with another ID or "".
func (b *Batches) Resolve(id string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.sent {
		switch {
		case id == "" || s.id != id:
			continue
		case s.resolved && b.doubt == nil:
			return nil // a second call
		}
		return fmt.Errorf("batch: %s is a batch with other requests, by the file; the one in doubt has another ID", id)
	}

	// Without a doubt, the last answer may be corrected.
	if b.doubt == nil {
		for _, s := range b.open {
			if s.resolved {
				if err := b.unresolve(s); err != nil {
					return err
				}
				break
			}
		}
	}
	if b.doubt == nil {
		return errors.New("batch: no batch is in doubt, so there is nothing to resolve")
	}
	s := b.doubt
	if b.doubt = nil; id != "" {
		s.id, s.resolved = id, true
		b.keep(s)
	}
	return b.settle(s)
}

// unresolve brings back the doubt that s has ended. b.mu must be held.
func (b *Batches) unresolve(s *sent) error {
	err := b.append(write.String([]byte{'{'}, "wrong", s.id))
	b.open = slices.DeleteFunc(b.open, func(o *sent) bool { return o == s })
	b.forget(s)
	b.doubt = &sent{keys: s.keys, at: s.at}
	return err
}

// wrong brings back the doubt that s has ended, and fails its requests. b.mu must be held.
func (b *Batches) wrong(d Driver, s *sent, why error) {
	_ = b.unresolve(s) // Close returns the error
	b.fail(b.doubtful(d, fmt.Errorf("%s is not that batch: %w", s.id, why)), s.keys...)
}

// settle notes whether a batch was created: it has an ID then. b.mu must be held.
func (b *Batches) settle(s *sent) error {
	if s.id == "" {
		return b.append([]byte(`{"not_created":true`))
	}
	b.open = append(b.open, s)
	member := "created"
	if s.resolved {
		member = "resolved"
	}
	return b.append(write.String([]byte{'{'}, member, s.id))
}

// Do returns the response to a request, for the author of a provider. It waits until a batch with the request has
// ended. If ctx ends before, the request stays in its batch, and the same request made later gets the response.
func (b *Batches) Do(ctx context.Context, d Driver, body []byte) ([]byte, error) {
	r, err := b.add(d, body)
	if err != nil {
		return nil, err
	}

	for {
		select {
		case <-r.done:
			return r.Body, r.Err
		case <-ctx.Done():
			return b.leave(ctx, r)
		case b.leader <- struct{}{}:
			func() {
				defer func() { <-b.leader }()
				b.work(ctx, d, r)
			}()
		}
	}
}

// add adds a request. It is done if its result is there.
func (b *Batches) add(d Driver, body []byte) (*request, error) {
	b.mu.Lock()
	defer b.mu.Unlock()

	model := d.API + " " + d.Model
	switch {
	case b.broken != nil:
		return nil, &api.Error{Kind: ErrFile, API: d.API, Err: b.broken}
	case b.doubt != nil:
		return nil, b.doubtful(d, nil)
	case b.model == "":
		b.model = model
		header := write.String(write.Int([]byte{'{'}, "plait_batches", 1), "model", model)
		if err := b.append(header); err != nil {
			return nil, &api.Error{Kind: ErrFile, API: d.API, Err: err}
		}
	case b.model != model:
		return nil, &api.Error{Kind: ErrFile, API: d.API, Err: fmt.Errorf(
			"the batches are those of %q, and the request is for %q: use a file for each model", b.model, model)}
	}

	// Equal requests are numbered. One that failed is not found again, so the same request is sent again.
	hash := sha256.Sum256(body)
	r := &request{hash: hex.EncodeToString(hash[:20]), body: body, done: make(chan struct{})}
	for r.n = b.free[r.hash]; ; r.n++ {
		if r.Key = r.hash + "-" + strconv.Itoa(r.n); !b.used[r.Key] {
			break
		}
	}
	b.used[r.Key] = true
	b.free[r.hash] = r.n + 1

	b.waiting[r.Key] = r
	s := b.sent[r.Key]
	switch {
	case s == nil:
		b.queue, b.size, b.last = append(b.queue, r), b.size+r.length(), time.Now()
	case s.results != nil:
		b.deliver(s.results, r.Key)
	default:
		s.asked++
	}
	select {
	case b.changed <- struct{}{}:
	default:
	}
	return r, nil
}

// leave ends the wait of a request whose context has ended.
func (b *Batches) leave(ctx context.Context, r *request) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting[r.Key] != r {
		return r.Body, r.Err // it has just been done
	}
	if s := b.sent[r.Key]; s != nil {
		s.asked--
	} else {
		b.left++
	}
	b.release(r)
	return nil, context.Cause(ctx)
}

// release lets the same request have the key again. b.mu must be held.
func (b *Batches) release(r *request) {
	delete(b.waiting, r.Key)
	delete(b.used, r.Key)
	b.free[r.hash] = min(b.free[r.hash], r.n)
}

// fail ends the wait of requests without a result. b.mu must be held.
func (b *Batches) fail(err error, keys ...string) {
	for _, key := range keys {
		if r := b.waiting[key]; r != nil {
			b.release(r)
			r.Err = err
			close(r.done)
		}
	}
}

// deliver gives the waiting requests their results. One that failed is noted, so that it is sent again when it is made
// again. b.mu must be held.
func (b *Batches) deliver(results map[string]Line, keys ...string) {
	var failed []string
	for _, key := range keys {
		r, line := b.waiting[key], results[key]
		switch {
		case r == nil:
			continue
		case errors.Is(line.Err, ErrNoResult):
			b.fail(line.Err, key)
			continue
		case line.Err != nil:
			failed = append(failed, key)
		}
		delete(results, key)
		delete(b.waiting, key)
		r.Line = line
		close(r.done)
	}
	if len(failed) > 0 {
		_ = b.append(list("failed", failed)) // Close returns the error
	}
}

// work creates batches and looks at them, for all requests, until r is done or ctx ends.
func (b *Batches) work(ctx context.Context, d Driver, r *request) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-r.done:
			return
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-b.changed:
		}

		// Both may be ready, and select takes any.
		if ctx.Err() == nil {
			timer.Reset(b.step(ctx, d))
		}
	}
}

// step does what is due, and returns how long nothing is.
func (b *Batches) step(ctx context.Context, d Driver) time.Duration {
	b.mu.Lock()
	now, wait := time.Now(), b.options.Poll
	requests := b.due(d, now)
	if len(b.queue) > 0 {
		wait = min(wait, b.last.Add(b.options.Gather).Sub(now))
	}

	var look *sent
	for _, s := range b.open {
		if s.asked == 0 {
			continue
		}
		if wait = min(wait, s.next.Sub(now)); !s.next.After(now) {
			look = s
		}
	}
	b.mu.Unlock()

	switch {
	case len(requests) > 0:
		b.create(ctx, d, requests)
		return 0
	case look != nil:
		b.look(ctx, d, look)
		return 0
	}
	return wait
}

// due removes the requests of the next batch from the queue: if it is full, or if no request has come for a while. b.mu
// must be held.
func (b *Batches) due(d Driver, now time.Time) []*request {
	limit := d.Requests
	if b.options.Requests > 0 {
		limit = min(limit, b.options.Requests)
	}
	full := len(b.queue) >= limit || b.size > d.Bytes
	if len(b.queue) == 0 || !full && now.Sub(b.last) < b.options.Gather {
		return nil
	}

	// A request that left is not sent, unless the same request was made again.
	if b.left > 0 {
		b.left = 0
		b.queue = slices.DeleteFunc(b.queue, func(r *request) bool { return b.waiting[r.Key] != r })
		b.size = 0
		for _, r := range b.queue {
			b.size += r.length()
		}
	}

	n, size := 0, 0
	for n < len(b.queue) && n < limit {
		if size += b.queue[n].length(); size > d.Bytes && n > 0 {
			break
		}
		b.size -= b.queue[n].length()
		n++
	}
	requests := b.queue[:n:n]
	b.queue = b.queue[n:]
	return requests
}

// length returns about how many bytes a request takes in its batch.
func (r *request) length() int { return len(r.body) + 200 } // with the key, and the members of the line

// create creates a batch.
func (b *Batches) create(ctx context.Context, d Driver, requests []*request) {
	keys, lines := make([]string, len(requests)), make([]Line, len(requests))
	for i, r := range requests {
		keys[i], lines[i] = r.Key, Line{Key: r.Key, Body: r.body}
	}

	b.mu.Lock()
	s := &sent{keys: keys, at: time.Now()}
	b.keep(s)
	err := b.append(write.String(list("create", keys), "at", s.at.UTC().Format(time.RFC3339)))
	if err != nil {
		b.uncreated(s, &api.Error{Kind: ErrFile, API: d.API, Err: err})
		b.mu.Unlock()
		return
	}
	b.mu.Unlock()

	// A cancelled request would leave a doubt.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), createTime)
	defer cancel()
	id, err := d.Create(ctx, lines)

	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case err == nil && id != "":
		s.id, s.next = id, time.Now().Add(b.options.Poll)
		_ = b.settle(s) // Close returns the error
		b.report(Report{ID: id, Requests: len(keys)})
	case notCreated(err):
		_ = b.settle(s)
		b.uncreated(s, err)
	default:
		b.forget(s)
		b.doubt = &sent{keys: keys, at: s.at}
		err = b.doubtful(d, err)
		b.fail(err, keys...)
		for _, r := range b.queue {
			b.fail(err, r.Key)
		}
		b.queue, b.size, b.left = nil, 0, 0
	}
}

// uncreated removes a batch that does not exist as far as is known, and fails its requests. b.mu must be held.
func (b *Batches) uncreated(s *sent, err error) {
	b.forget(s)
	b.fail(err, s.keys...)
}

// forget is the opposite of keep. b.mu must be held.
func (b *Batches) forget(s *sent) {
	for _, key := range s.keys {
		delete(b.sent, key)
	}
}

// report calls Options.Report. b.mu must be held.
func (b *Batches) report(r Report) {
	if b.options.Report == nil {
		return
	}
	b.mu.Unlock()
	defer b.mu.Lock()
	b.options.Report(r)
}

// notCreated reports whether the error of a creation shows that there is no batch: the API refused it, or was not
// reached.
func notCreated(err error) bool {
	for _, kind := range []error{
		ErrNotCreated, api.ErrRateLimited, api.ErrOverloaded, api.ErrContextTooLong, api.ErrInvalidRequest, api.ErrAuth,
		api.ErrQuota, api.ErrNotFound, api.ErrFiltered,
	} {
		if errors.Is(err, kind) {
			return true
		}
	}
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// doubtful returns the error about a batch in doubt. b.mu must be held.
func (b *Batches) doubtful(d Driver, err error) error {
	which := fmt.Sprintf("%d requests", len(b.doubt.keys))
	if len(b.doubt.keys) == 1 {
		which = "1 request"
	}
	if !b.doubt.at.IsZero() {
		which += b.doubt.at.UTC().Format(", made at about 2006-01-02 15:04 MST")
	}
	if b.file != nil && len(b.sent) > 0 {
		which += ", whose ID is not in the file of the batches"
	}
	why := fmt.Errorf("look in the provider's list of batches for one with %s, "+
		"and call Batches.Resolve with its ID, or with \"\" if there is none", which)
	if err != nil {
		why = fmt.Errorf("%w: %v", why, err) // not %w: a client would retry a failed connection
	}
	return &api.Error{Kind: ErrInDoubt, API: d.API, Err: why}
}

// look asks for the results of a batch.
func (b *Batches) look(ctx context.Context, d Driver, s *sent) {
	results, report := make(map[string]Line, len(s.keys)), Report{ID: s.id, Requests: len(s.keys), Ended: true}
	lost := func(format string, args ...any) error {
		return &api.Error{Kind: ErrNoResult, API: d.API, Err: fmt.Errorf(format+" (batch %s)", append(args, s.id)...)}
	}
	for _, key := range s.keys {
		results[key] = Line{}
	}

	for line, err := range d.Results(ctx, s.id, s.keys) {
		if err != nil {
			b.looked(ctx, d, s, err)
			return
		}
		before, known := results[line.Key]
		switch {
		case !known:
			report.Unknown++
		case before.Key == "":
			results[line.Key] = line
		case string(before.Body) != string(line.Body) || (before.Err == nil) != (line.Err == nil):
			results[line.Key] = Line{Key: line.Key, Err: lost("it has two results that differ")}
		}
	}

	b.mu.Lock()
	defer b.mu.Unlock()
	found := 0
	for key, line := range results {
		if line.Key != "" {
			found++
		} else {
			line.Err = lost("there is no line for it, and there are %d for unknown requests", report.Unknown)
			results[key] = line
		}
		if line.Err != nil {
			report.Failed++
		}
	}
	if s.resolved && found == 0 && report.Unknown > 0 && b.doubt == nil {
		b.wrong(d, s, errors.New("its results belong to other requests"))
		return
	}
	s.results, s.resolved = results, false
	b.open = slices.DeleteFunc(b.open, func(o *sent) bool { return o == s })
	b.deliver(results, s.keys...)
	b.report(report)
}

// looked notes a look at a batch without its results. A look that failed for the moment is repeated.
func (b *Batches) looked(ctx context.Context, d Driver, s *sent, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.next = time.Now().Add(b.options.Poll)
	if ctx.Err() != nil {
		return // the error is about the leader alone
	}
	if s.looks++; errors.Is(err, ErrRunning) {
		s.looks = 0
		return
	}
	if api.Retryable(err) && s.looks < maxLooks {
		return
	}

	if s.looks, s.asked = 0, 0; s.resolved && errors.Is(err, api.ErrNotFound) && b.doubt == nil {
		b.wrong(d, s, err)
		return
	}
	b.fail(about(s.id, err), s.keys...)
}

// about returns an error that names the batch.
func about(id string, err error) error {
	var e *api.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("batch %s: %w", id, err)
	}
	named := *e
	named.Message, named.Err = "batch "+id, err
	if text := cmp.Or(e.Message, textOf(e.Err)); text != "" {
		named.Message += ": " + text
	}
	return &named
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
