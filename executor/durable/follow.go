package durable

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// ErrNotDone: the run has failed or is parked. Its detail has the state and the reason.
var ErrNotDone = errors.New("the run is not done")

// Follow yields what happens to a run from now on, in any process, until it has ended or is parked. Breaking off, or the
// end of ctx, changes nothing about the run. The events are those of executor.Agent.Stream, with these differences:
//
//   - A RunStart has the conversation as it is stored. Another RunStart means that what was yielded since is void:
//     begin again with its conversation.
//   - If the run is executed elsewhere, messages and results come as a whole, as soon as they are stored: there is one
//     MessageEnd for each message and one ToolEnd for each result. The moves of other processes are found by polling
//     (sqlite.Options.Poll, postgres.Options.Poll). If the run is executed by this engine, all events come when they
//     happen, pieces and retries and sub-agents included.
//   - A Paused comes whenever the run waits. Its Continuation lists the calls that have no reply yet. The events
//     continue after the replies.
//   - The error beside the End is nil for a run that is done. For a cancelled run it holds context.Canceled, and for a
//     failed or parked one ErrNotDone.
func (e *Engine) Follow(ctx context.Context, run string) iter.Seq2[executor.Event, error] {
	return func(yield func(executor.Event, error) bool) {
		f := &following{Engine: e, run: run, yield: yield}
		if err := f.follow(ctx); err != nil && !errors.Is(err, errLeft) {
			yield(executor.End{DAG: f.dag()}, err)
		}
	}
}

// errLeft reports that the consumer of Follow left, or has had the End.
var errLeft = errors.New("durable: the consumer left")

// following is one call of Follow.
type following struct {
	*Engine
	run   string
	yield func(executor.Event, error) bool

	conversation *store.Conversation
	known        map[any]bool // what was yielded: IDs of messages, and keys of calls with a result
	calling      node.ID      // the last message with calls
	feed         *feed        // the events of this process
	paused       string       // the ID of the last Paused
}

func (f *following) follow(ctx context.Context) error {
	r, err := f.Run(ctx, f.run)
	if err != nil {
		return err
	}

	// Listen before the first look, so that nothing is missed in between.
	f.feed = f.feeds.listen(f.run)
	defer f.feeds.leave(f.run, f.feed)
	ended, stop := f.ends.listen(f.run)
	defer stop()
	moved, stop := f.moves(ctx, r.Conversation)
	defer stop()

	for {
		for _, event := range f.feed.take() {
			if err := f.pass(event); err != nil {
				return err
			}
		}
		if err := f.look(ctx); err != nil {
			return err
		}

		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-moved:
			if err != nil {
				return err
			}
		case <-ended:
		case <-f.feed.wake:
		}
	}
}

// moves returns a channel that is filled when a head of a conversation moves, or with the error that ends watching.
func (e *Engine) moves(ctx context.Context, conversation string) (moved <-chan error, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	c := make(chan error, 1)
	var watching sync.WaitGroup
	watching.Go(func() {
		for _, err := range e.db.Watch(ctx, conversation) {
			// One slot is enough: a look finds all moves. An error replaces a move.
			if err != nil {
				select {
				case <-c:
				default:
				}
			}
			select {
			case c <- err:
			default:
			}
		}
	})
	return c, func() {
		cancel()
		watching.Wait()
	}
}

// look yields what the store has, and the End if there is nothing to wait for. While this process executes the run, the
// events of the run have all of that.
func (f *following) look(ctx context.Context) error {
	if f.feed.executing() {
		return nil
	}

	// The run first: the conversation is then at least as new.
	r, err := f.Run(ctx, f.run)
	if err != nil {
		return err
	}
	if f.conversation == nil {
		f.conversation, err = f.store.Head(ctx, r.Conversation, r.Head)
	} else {
		f.conversation, err = f.conversation.Head(ctx, r.Head)
	}
	if err != nil {
		return err
	}

	// Execution may have begun here meanwhile, and the store may be ahead of its events.
	if f.feed.executing() {
		return nil
	}
	if err := f.show(); err != nil {
		return err
	}

	switch r.State {
	case Active:
		return nil
	case Waiting:
		return f.pause(ctx, r)
	case Cancelled:
		return &RunError{Run: r.ID, Err: context.Canceled, Detail: r.Reason}
	case Parked, Failed:
		return &RunError{Run: r.ID, Err: ErrNotDone, Detail: fmt.Sprintf("%s: %s", r.State, r.Reason)}
	case Done:
	}
	f.yield(executor.End{DAG: f.dag()}, nil)
	return errLeft
}

// dag returns the conversation as it was read last.
func (f *following) dag() dag.DAG {
	if f.conversation == nil {
		return dag.DAG{}
	}
	return f.conversation.DAG()
}

// say yields an event.
func (f *following) say(e executor.Event) error {
	if !f.yield(e, nil) {
		return errLeft
	}
	return nil
}

// show yields the stored messages and results that were not yielded yet.
func (f *following) show() error {
	d := f.dag()
	fresh := slices.Clone(d.Nodes())
	held := 0
	fresh = slices.DeleteFunc(fresh, func(n *node.Node) bool {
		name := nameOf(n)
		if f.known[name] {
			held++
		}
		return name == nil || f.known[name]
	})
	if f.known == nil || held < len(f.known) {
		return f.begin(d)
	}

	for _, n := range fresh {
		f.note(n)
		var err error
		if e, is := n.Payload().(node.ToolExecution); is {
			err = f.say(executor.ToolEnd{Execution: e})
		} else {
			err = f.say(executor.MessageEnd{Node: n})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// begin yields a RunStart.
func (f *following) begin(d dag.DAG) error {
	f.known = map[any]bool{}
	for _, n := range d.Nodes() {
		f.note(n)
	}
	return f.say(executor.RunStart{Run: f.run, DAG: d})
}

// nameOf returns the name of a message or a finished execution in following.known, and nil for any other node.
func nameOf(n *node.Node) any {
	if _, is := n.Message(); is {
		return n.ID()
	}
	e, is := n.Payload().(node.ToolExecution)
	if key, ok := n.Call(); is && ok && !e.State.Unfinished() {
		return key
	}
	return nil
}

// note notes that a node was yielded.
func (f *following) note(n *node.Node) {
	name := nameOf(n)
	if name == nil {
		return
	}
	f.known[name] = true
	if m, ok := n.Message(); ok && len(m.Blocks.ToolUses()) > 0 {
		f.calling = n.ID()
	}
}

// pause yields a Paused, unless the last one was the same.
func (f *following) pause(ctx context.Context, r Run) error {
	d := f.dag()
	pending, err := f.unreplied(ctx, r.target(), d)
	if err != nil {
		return err
	}

	c := executor.ContinuationOf(d)
	c.Calls = nil
	for _, p := range pending {
		c.Calls = append(c.Calls, p.Key)
	}
	if id := fmt.Sprint(c.ID, c.Calls); len(c.Calls) > 0 && id != f.paused {
		f.paused = id
		return f.say(executor.Paused{Continuation: c, DAG: d})
	}
	return nil
}

// pass yields an event of an execution in this process.
func (f *following) pass(e executor.Event) error {
	switch e := e.(type) {
	case executor.RunStart:
		return f.begin(e.DAG)
	case executor.Paused, executor.End:
		return nil // the store has the outcome: see look
	case executor.MessageEnd:
		// The part of a response that broke off has an end too. If it is not stored, show begins again.
		if e.Node != nil {
			f.note(e.Node)
		}
	case executor.ToolEnd:
		f.known[node.CallKey{Message: f.calling, Index: e.Execution.Index}] = true
	}
	return f.say(e)
}

// feeds passes the events of the runs that this process executes to those who follow them.
type feeds struct {
	mu   sync.Mutex // guards list and what is in it
	list map[string]*execution
}

// execution is a run that this process executes, or that somebody follows.
type execution struct {
	executing bool
	turn      []executor.Event // of the current turn, after a RunStart with the conversation before it
	followers map[*feed]bool
}

// feed is the events for one follower.
type feed struct {
	wake chan struct{} // is full when there are events

	of     *feeds
	run    string
	events []executor.Event
}

// change calls f with the execution of a run, and forgets it if nobody needs it.
func (l *feeds) change(run string, f func(x *execution)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	x := l.list[run]
	if x == nil {
		x = &execution{followers: map[*feed]bool{}}
	}
	f(x)

	if l.list == nil {
		l.list = map[string]*execution{}
	}
	l.list[run] = x
	if !x.executing && len(x.followers) == 0 {
		delete(l.list, run)
	}
}

// listen returns a feed for a run, until leave is called. If this process executes the run, the feed begins with the
// current turn.
func (l *feeds) listen(run string) *feed {
	f := &feed{wake: make(chan struct{}, 1), of: l, run: run}
	l.change(run, func(x *execution) {
		x.followers[f] = true
		f.events = slices.Clone(x.turn)
	})
	return f
}

func (l *feeds) leave(run string, f *feed) {
	l.change(run, func(x *execution) { delete(x.followers, f) })
}

// begin notes that this process begins to execute a run.
func (l *feeds) begin(run string) {
	l.change(run, func(x *execution) { x.executing = true })
}

// end notes that this process has stored what became of a run.
func (l *feeds) end(run string) {
	l.change(run, func(x *execution) {
		x.executing, x.turn = false, nil
		x.send(executor.End{})
	})
}

// send passes an event on. It never waits.
func (l *feeds) send(run string, e executor.Event) {
	l.change(run, func(x *execution) {
		switch e := e.(type) {
		case executor.RunStart:
			x.turn = []executor.Event{e}
		case executor.TurnEnd:
			x.turn = []executor.Event{executor.RunStart{Run: run, DAG: e.DAG}}
		default:
			x.turn = append(x.turn, e)
		}
		x.send(e)
	})
}

func (x *execution) send(e executor.Event) {
	for f := range x.followers {
		f.events = append(f.events, e)
		select {
		case f.wake <- struct{}{}:
		default: // it is full already
		}
	}
}

// take returns the events since the last call.
func (f *feed) take() (events []executor.Event) {
	f.of.change(f.run, func(*execution) { events, f.events = f.events, nil })
	return events
}

// executing reports whether this process executes the run, or has events of it that were not taken.
func (f *feed) executing() (is bool) {
	f.of.change(f.run, func(x *execution) { is = x.executing || len(f.events) > 0 })
	return is
}
