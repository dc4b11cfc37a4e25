package durable

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/store"
)

// crowd is programs that use runs at random moments: they start them, reply twice and late, send messages, cancel, redact
// and delete. Each run has a conversation of its own name. All that they do is recorded.
type crowd struct {
	*world
	*recorder
	e      *Engine
	random *rand.Rand

	all     []string
	running map[string]bool
	shown   []shown // what was shown of pending calls
	sent    int
}

// shown is a pending call that somebody may reply to.
type shown struct {
	conversation string
	call         dag.Pending
}

// newCrowd returns a crowd with an engine of its own.
func newCrowd(w *world, history string, seed uint64, change func(o *Options)) *crowd {
	w.Helper()
	r, err := openRecorder(history)
	require.NoError(w, err)
	e := w.engine(func(o *Options) {
		if change != nil {
			change(o)
		}
		wrap := o.wrap
		o.wrap = func(db store.Transactor) store.Transactor {
			if wrap != nil {
				db = wrap(db)
			}
			return recorded{db, r}
		}
	})
	return &crowd{world: w, recorder: r, e: e, random: rand.New(rand.NewPCG(seed, 0)), running: map[string]bool{}}
}

// start starts a run.
func (c *crowd) start() {
	name := fmt.Sprint("c", len(c.all))
	c.all = append(c.all, name)
	c.running[name] = true
	for c.startAgain(name) != nil {
	}
}

// startAgain starts a run whose start may be stored already.
func (c *crowd) startAgain(name string) error {
	text := "start " + name
	return c.do(event{What: starting, Conversation: name, Text: text}, func() error {
		_, err := c.e.Start(c.Context(), StartRequest{Run: name, Agent: "a", Conversation: name, Text: text})
		return err
	})
}

// act does something to a run.
func (c *crowd) act(harmful bool) {
	for name := range c.running {
		kinds := 4
		if harmful {
			kinds = 7
		}
		switch c.random.IntN(kinds) {
		case 0, 1:
			c.sent++
			text := fmt.Sprintf("message %d", c.sent)
			_ = c.do(event{What: sending, Conversation: name, Text: text}, func() error {
				_, err := c.e.Send(c.Context(), name, "", text)
				return err
			})
		case 2:
			c.replyLate()
		case 3:
			err := c.startAgain(name)
			if outcomeOf(err) == notDone && !errors.Is(err, ErrRunExists) { // its text may be redacted, or deleted
				require.ErrorIs(c, err, store.ErrNotStored)
			}
		case 4:
			_ = c.do(event{What: cancelling, Conversation: name}, func() error {
				return c.e.Cancel(c.Context(), name, "no more")
			})
		case 5:
			_ = c.do(event{What: deleting, Conversation: name}, func() error { return c.e.Store().Delete(c.Context(), name) })
		case 6:
			c.redact(name)
		}
		return
	}
}

// redact erases the first message of a conversation. If the head moves meanwhile it is left for another time.
func (c *crowd) redact(name string) {
	_ = c.do(event{What: redacting, Conversation: name}, func() error {
		conversation, err := c.e.Store().Head(c.Context(), name, store.Main)
		if err != nil {
			return err
		}
		d := conversation.DAG()
		for _, n := range d.Nodes() {
			if m, ok := n.Message(); ok && m.Blocks.Text() == "start "+name {
				d = d.Redact(n.ID())
			}
		}
		return conversation.Rewrite(c.Context(), d)
	})
}

// reply replies to a call as two people at once, of whom one declines it.
func (c *crowd) reply(s shown) {
	var both sync.WaitGroup
	for text, reply := range map[string]executor.Reply{
		"yes": executor.Approved(s.call), declinedText: executor.Declined(s.call, declinedText),
	} {
		both.Go(func() {
			e := event{What: replying, Conversation: s.conversation, Call: s.call.Key.String(), Text: text}
			_ = c.do(e, func() error { return c.e.Reply(c.Context(), s.conversation, "", reply) })
		})
	}
	both.Wait()
}

// replyLate replies to a call that was shown some time ago.
func (c *crowd) replyLate() {
	if len(c.shown) > 0 {
		c.reply(c.shown[c.random.IntN(len(c.shown))])
	}
}

// answer replies to all calls that wait for approval.
func (c *crowd) answer() {
	waiting, err := c.e.Runs(c.Context(), RunsRequest{States: []State{Waiting}, Limit: 1000})
	require.NoError(c, err)
	for _, r := range waiting {
		conversation, err := c.e.Store().Head(c.Context(), r.Conversation, r.Head)
		if deleted(err) {
			continue
		}
		require.NoError(c, err)
		for _, p := range conversation.DAG().Pending() {
			if p.Approval {
				s := shown{r.Conversation, p}
				c.shown = append(c.shown, s)
				c.reply(s)
			}
		}
	}
}

// collect forgets the runs that have ended. A run that was lost is found at the end.
func (c *crowd) collect() {
	for name := range c.running {
		r, err := c.e.Run(c.Context(), name)
		if !errors.Is(err, ErrNoRun) {
			require.NoError(c, err)
		}
		if err != nil || r.State.Ended() {
			delete(c.running, name)
		}
	}
}

// finish answers until all runs have ended, or the time is up. It returns those that have not ended.
func (c *crowd) finish(limit time.Duration) (left []string) {
	for began := time.Now(); len(c.running) > 0 && time.Since(began) < limit; time.Sleep(40 * time.Millisecond) {
		c.answer()
		c.collect()
	}
	for name := range c.running {
		left = append(left, name)
	}
	slices.Sort(left)
	return left
}

// faults returns what the history of all processes shows.
func (c *crowd) faults(path string) []string {
	c.Helper()
	now := bootTime()
	final := map[string]last{}
	for _, name := range c.all {
		final[name] = c.readLast(name)
	}
	h := c.readHistory(path).until(now)
	counts := map[what]map[result]int{}
	for _, e := range h {
		if counts[e.What] == nil {
			counts[e.What] = map[result]int{}
		}
		counts[e.What][e.Outcome]++
	}
	c.Log(counts)
	return h.faults(final)
}
