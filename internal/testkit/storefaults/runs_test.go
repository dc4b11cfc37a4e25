//go:build disk

package storefaults

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/durable"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/store"
)

// life is the life of a durable run: two deferred calls, a call that needs approval, and a message on the way. It may be
// lived by several processes, one after the other. A process does not know when the power fails: what it does after that
// moment is not seen by anybody.
type life struct {
	*testing.T
	disk  *disk
	limit time.Duration // of one process

	mu       sync.Mutex
	power    int // the number of power losses; guards what follows
	seen     seen
	executed map[string]int // by idempotency key
}

// seen is what the database has acknowledged.
type seen struct {
	started, approved, ended bool
	sent                     int // 0: not yet; 1: the outcome is unknown; 2: acknowledged
}

func newLife(t *testing.T) *life {
	l := &life{T: t, disk: newDisk(), limit: 20 * time.Second, executed: map[string]int{}}
	l.disk.memory = filepath.Join(t.TempDir(), "memory")
	return l
}

// item is the arguments of the tools.
type item struct {
	Name string `json:"name" jsonschema:"the item"`
}

// tool returns a tool of unknown effect that counts its executions until the power fails.
func (l *life) tool(name string, power int) executor.Tool {
	return executor.Func(name, "Pays.", func(ctx context.Context, in item) (string, error) {
		l.note(power, func() { l.executed[executor.IdempotencyKey(ctx)]++ })
		return "paid " + in.Name, nil
	})
}

// note calls f, unless the power has failed since the process began.
func (l *life) note(power int, f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.power == power {
		f()
	}
}

// model calls pay twice at once, then sign, and then ends.
func model() api.Provider {
	return apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
		results := 0
		for _, m := range req.Messages {
			results += len(m.Blocks.ToolResults())
		}
		switch results {
		case 0:
			return apitest.Call(apitest.Use("pay", item{"rent"}), apitest.Use("pay", item{"tax"}))
		case 2:
			return apitest.Call(apitest.Use("sign", item{"letter"}))
		}
		return apitest.Say("Done.")
	}).Always())
}

// process is one process of a life.
type process struct {
	*life
	*durable.Engine
	ctx   context.Context
	power int
	db    *session
	stop  func()
}

// begin opens the disk, as a process does, and serves.
func (l *life) begin() (*process, error) {
	p := &process{life: l, power: l.power} // the power may fail while the tables are made
	db, err := l.disk.connect(200, 4, 10*time.Second, "")
	if err != nil {
		return nil, err
	}
	p.db = db
	pay := l.tool("pay", p.power)
	p.Engine, err = durable.Open(context.Background(), db.DB, &durable.Options{
		Agents: map[string]executor.Agent{"a": {
			Provider: model(), Hooks: []executor.Hook{executor.RequireApproval("sign")},
			Tools: []dag.Tool{executor.DeferredTool(pay.Definition()), l.tool("sign", p.power)},
		}},
		Workers:   []durable.Worker{{Tools: []executor.Tool{pay}}},
		Heartbeat: 200 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
		// What fails is repeated after a moment, and not when River looks again after 5 seconds.
		River: func(config *river.Config) { config.FetchPollInterval = 50 * time.Millisecond },
	})
	if err != nil {
		return nil, errors.Join(err, db.close())
	}

	ctx, cancel := context.WithTimeout(context.Background(), l.limit)
	serving := make(chan struct{})
	go func() {
		defer close(serving)
		for ctx.Err() == nil {
			_ = p.Serve(ctx) // an error of the disk in its first statements
			time.Sleep(time.Millisecond)
		}
	}()
	p.ctx = ctx
	p.stop = func() {
		cancel()
		<-serving
		_ = p.Engine.Close()
		_ = db.close() // an earlier error may be repeated
	}
	return p, nil
}

// live lets a process live until the run has ended, the power fails or its time is up. What fails is repeated.
func (p *process) live() {
	steps := []func() error{p.start, p.send, p.approve, p.wait}
	for len(steps) > 0 && p.ctx.Err() == nil && p.powered() {
		if steps[0]() != nil {
			time.Sleep(2 * time.Millisecond)
			continue
		}
		steps = steps[1:]
	}
}

func (p *process) powered() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.life.power == p.power
}

func (p *process) known() seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen
}

func (p *process) start() error {
	if p.known().started {
		return nil
	}
	_, err := p.Start(p.ctx, durable.StartRequest{Run: "r", Agent: "a", Conversation: "c", Text: "Pay."})
	if err == nil {
		p.note(p.power, func() { p.seen.started = true })
	}
	return err
}

// send sends a message, once: a second one could follow a first one whose outcome is unknown.
func (p *process) send() error {
	if p.known().sent > 0 {
		return nil
	}
	p.note(p.power, func() { p.seen.sent = 1 })
	if _, err := p.Send(p.ctx, "c", "", "And water."); err == nil {
		p.note(p.power, func() { p.seen.sent = 2 })
	}
	return nil
}

func (p *process) approve() error {
	if p.known().approved {
		return nil
	}
	c, err := p.Store().Conversation(p.ctx, "c")
	if err != nil {
		return err
	}
	for _, pending := range c.DAG().Pending() {
		if pending.Approval {
			if err := p.Reply(p.ctx, "c", "", executor.Approved(pending)); err != nil {
				return err
			}
			p.note(p.power, func() { p.seen.approved = true })
			return nil
		}
	}
	if r, err := p.Run(p.ctx, "r"); err != nil || r.State.Ended() {
		return err
	}
	return errors.New("not yet")
}

func (p *process) wait() error {
	r, err := p.Wait(p.ctx, "r")
	if err == nil && r.State.Ended() {
		p.note(p.power, func() { p.seen.ended = true })
	}
	return err
}

// losePower puts the disk as it may be after a power loss in place of the disk. Its lock must be held.
func (l *life) losePower(random *rand.Rand) {
	l.mu.Lock()
	defer l.mu.Unlock()
	image := l.disk.crash(random)
	image.setting = l.disk.setting
	l.power++
	l.disk = image
}

// restart makes a disk for the next process out of what a power loss has left.
func (l *life) restart() {
	l.disk = l.disk.settled()
	l.disk.memory = filepath.Join(l.TempDir(), "memory")
}

// lost returns what was acknowledged before a power loss and is not there now.
func (p *process) lost() (lost []string) {
	r, err := p.Run(p.ctx, "r")
	switch {
	case errors.Is(err, durable.ErrNoRun):
		if p.seen.started {
			lost = append(lost, "the run is lost")
		}
		return lost
	case err != nil:
		return append(lost, err.Error())
	case p.seen.ended && !r.State.Ended():
		lost = append(lost, "the end is lost")
	}

	c, err := p.Store().Conversation(p.ctx, "c")
	if err != nil {
		return append(lost, err.Error())
	}
	asks := slices.ContainsFunc(c.DAG().Pending(), func(p dag.Pending) bool { return p.Approval })
	if p.seen.approved && (asks && p.inbox(`call <> ''`) == 0) {
		lost = append(lost, "the approval is lost")
	}
	if n := copies(c.DAG(), "And water.") + p.inbox(`call = ''`); p.seen.sent == 2 && n == 0 {
		lost = append(lost, "the message is lost")
	}
	return lost
}

// inbox returns the number of rows of the inbox for a condition.
func (p *process) inbox(condition string) (n int) {
	require.NoError(p, p.db.View(p.ctx, func(tx store.Tx) error {
		rows, err := tx.Query(p.ctx, `SELECT COUNT(*) FROM plait_inbox WHERE `+condition)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if err := rows.Scan(&n); err != nil {
				return err
			}
		}
		return rows.Err()
	}))
	return n
}

// copies returns how often a message of the user is in a conversation.
func copies(d dag.DAG, text string) (n int) {
	for _, m := range d.Messages() {
		if m.Blocks.Text() == text {
			n++
		}
	}
	return n
}

// wrong returns what is wrong at the end of a life.
func (p *process) wrong() (wrong []string) {
	r, err := p.Run(context.Background(), "r")
	if err != nil || r.State != durable.Done {
		return []string{fmt.Sprintf("the run does not end: %+v, %v", r, err)}
	}
	c, err := p.Store().Conversation(context.Background(), "c")
	if err != nil {
		return []string{err.Error()}
	}
	if d := c.DAG(); d.Text() != "Done." || len(d.OpenCalls()) > 0 || len(d.Validate()) > 0 {
		wrong = append(wrong, fmt.Sprintf("it ended with %q, open calls %v, findings %v", d.Text(), d.OpenCalls(), d.Validate()))
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	for key, times := range p.executed {
		if times > 1 {
			wrong = append(wrong, fmt.Sprintf("call %s of unknown effect was executed %d times", key, times))
		}
	}
	if n := copies(c.DAG(), "And water."); n > 1 || n == 0 && p.seen.sent == 2 {
		wrong = append(wrong, fmt.Sprintf("the message is there %d times", n))
	}
	if err := p.db.Check(context.Background()); err != nil {
		wrong = append(wrong, err.Error())
	}
	return wrong
}

// harm is what happens to the disk during the life of the first process.
type harm struct {
	fault    *fault // nil is none
	at       int    // the operation that the fault hits
	repaired int    // how many operations it lasts, if it stays
	power    int    // the change of the disk at which the power fails; negative is never
	setting  string // of PRAGMA synchronous, in place of ours
	seed     uint64
}

// outcome is what was seen of a life.
type outcome struct {
	operations int // that the fault can hit
	changes    int // of the disk
	wrong      []string
}

// livesThrough plays a life on a disk that suffers harm.
func livesThrough(t *testing.T, h harm) (o outcome) {
	t.Helper()
	l := newLife(t)
	first := l.disk
	first.setting = h.setting
	random := rand.New(rand.NewPCG(h.seed, 1))
	over := false
	first.mu.Lock()
	first.before = func(d *disk, op operation) error {
		if over {
			return nil
		}
		if op == opWrite || op == opTruncate || op == opSync || op == opDelete {
			if o.changes++; o.changes-1 == h.power {
				over = true
				l.losePower(random)
				return nil
			}
		}
		if h.fault == nil || h.fault.hits != nil && !h.fault.hits(op) {
			return nil
		}
		n := o.operations
		o.operations++
		if n == h.at || !h.fault.once && n > h.at && n <= h.at+h.repaired {
			return h.fault.err
		}
		return nil
	}
	first.mu.Unlock()

	p, err := l.begin()
	if err == nil {
		p.live()
	}
	first.mu.Lock()
	over = true // the disk is repaired
	first.mu.Unlock()
	if err == nil {
		p.stop()
	}

	// The next process has what the power loss has left, or the disk as the first one has closed it.
	if l.power > 0 {
		l.restart()
	}
	p, err = l.begin()
	if err != nil {
		o.wrong = append(o.wrong, "after a restart: "+err.Error())
		return o
	}
	defer p.stop()
	o.wrong = p.lost()
	if len(o.wrong) > 0 {
		return o
	}
	p.live()
	o.wrong = p.wrong()
	return o
}

// points returns n numbers below limit, one in each of n equal parts.
func points(n, limit int, random *rand.Rand) (list []int) {
	for i := range n {
		list = append(list, (i*limit+random.IntN(max(1, limit)))/n)
	}
	return list
}

// PLAIT_LONG tests more.
func TestDurableRunSurvivesErrorsOfTheDisk(t *testing.T) {
	t.Parallel()
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			h := harm{fault: &f, at: -1, power: -1, repaired: 60, seed: seedtest.First(t)}
			calm := livesThrough(t, h)
			require.Empty(t, calm.wrong)
			require.NotZero(t, calm.operations)

			// The first operations make the tables. Reads of River's listener change the number from one life to the other.
			random := rand.New(rand.NewPCG(h.seed, 2))
			for _, at := range points(seedtest.Rounds(2, 100), calm.operations, random) {
				h.at = at
				o := livesThrough(t, h)
				require.Empty(t, o.wrong, "operation %d of about %d", at, calm.operations)
			}
		})
	}
}

// losses lets the power fail at some moments of lives, and returns what was wrong.
func losses(t *testing.T, n int, seed uint64, setting string) (wrong []string) {
	h := harm{power: -1, setting: setting, seed: seed}
	calm := livesThrough(t, h)
	require.Empty(t, calm.wrong)
	random := rand.New(rand.NewPCG(h.seed, 3))
	for _, at := range points(n, calm.changes, random) {
		h.power, h.seed = at, h.seed+1
		o := livesThrough(t, h)
		for _, w := range o.wrong {
			wrong = append(wrong, fmt.Sprintf("change %d of about %d: %s", at, calm.changes, w))
		}
		if setting != "" && len(wrong) > 0 {
			break // it is enough for a negative control
		}
	}
	return wrong
}

// PLAIT_LONG tests more.
func TestDurableRunSurvivesPowerLoss(t *testing.T) {
	t.Parallel()
	for i := range 4 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			require.Empty(t, losses(t, seedtest.Rounds(2, 150), seedtest.First(t)+uint64(1000*i), ""))
		})
	}
}

// The negative control: without a sync at each commit, a power loss takes what was acknowledged.
func TestPowerLossWithSynchronousNormalLosesDurableRuns(t *testing.T) {
	t.Parallel()
	wrong := strings.Join(losses(t, 8, seedtest.First(t), "normal"), "\n")
	t.Log(wrong)
	require.Contains(t, wrong, "lost")
}
