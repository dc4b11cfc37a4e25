package durable

import (
	"container/heap"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The tests of this file simulate many processes on one store: when they poll, claim, sweep and are lost. Only time is
// simulated, and the rules are those of pool.go and store.Runs; no agent runs and nothing is stored. So a million runs
// take seconds. PLAIT_SCALE=1 simulates a million, and -v prints what the processes ask of the store.
//
// Engines and workers are processes of their own, and no queue wakes them: all work is found by polling, or when a slot
// gets free. That is the slowest setup.
const (
	runsASecond    = 1000
	processCount   = 128 // half of them engines, half workers
	slotsOfProcess = 256
	pausesOfRun    = 2
	callsOfPause   = 2
	queryTime      = 3 * time.Millisecond // of a claim
	restartTime    = 5 * time.Second      // of a process that was lost
	sweepLimit     = 1000                 // the default of store.Sweep
)

// fleet is the simulation.
type fleet struct {
	Settings
	now    time.Duration
	events events
	rand   *rand.Rand
	queues [2]queue // by kind
	procs  []*member
	open   int // runs that have not ended

	queries, empty, writes, sweeps, rewrites int
	numbered                                 int                   // events so far
	window                                   map[time.Duration]int // claims in each tenth of a second
	maxRings                                 int                   // of sweeps, for one piece of work
	longestWait, longestStall                time.Duration
}

// The kinds of work, and of the processes that do it.
const (
	engineKind = iota
	workerKind
)

type event struct {
	at  time.Duration
	seq int // keeps events of the same time in order
	do  func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].seq < e[j].seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// work is a run for an engine, or a call for a worker.
type work struct {
	kind    int
	run     *simulatedRun
	claimed bool
	since   time.Duration // when it could be claimed
	lost    time.Duration // when its process was lost; -1 if it was not
}

type simulatedRun struct{ pauses, calls int }

// queue holds the work that can be claimed, oldest first, and when a sweep is due for it.
type queue struct {
	ready []*work
	// due has the work that waits for the next wake-up of a sweep: for one grace, for two, for four, and so on. Each list
	// is sorted by time.
	due [11][]dueWork
}

type dueWork struct {
	*work
	at, since time.Duration
}

type member struct {
	*fleet
	kind     int
	free     int
	querying bool
	bell     bool
	lives    int // how often it was started; events of an earlier life do nothing
	timer    int // the number of the latest poll timer; older ones do nothing
	held     map[*work]time.Duration
}

func newFleet(seed uint64, processes int) *fleet {
	f := &fleet{Settings: Settings{}.withDefaults(), rand: rand.New(rand.NewPCG(seed, 1)), window: map[time.Duration]int{}}
	for i := range processes {
		p := &member{fleet: f, kind: []int{engineKind, workerKind}[i%2]}
		f.procs = append(f.procs, p)
		p.start()
	}
	return f
}

func (f *fleet) after(d time.Duration, do func()) {
	f.numbered++
	heap.Push(&f.events, event{f.now + d, f.numbered, do})
}

// play runs the simulation until all runs have ended, or until the time.
func (f *fleet) play(t *testing.T, until time.Duration) {
	t.Helper()
	for f.open > 0 {
		next := heap.Pop(&f.events).(event)
		if next.at > until {
			t.Fatalf("%d runs have not ended", f.open)
		}
		f.now = next.at
		next.do()
	}
}

// jittered is jitter with the source of the simulation.
func (f *fleet) jittered(d time.Duration) time.Duration {
	return d*3/4 + time.Duration(f.rand.Int64N(int64(d/2)))
}

func (f *fleet) begin() {
	f.open++
	f.writes++
	f.ready(&work{kind: engineKind, run: &simulatedRun{}, lost: -1})
}

// ready lets a piece of work be claimed.
func (f *fleet) ready(w *work) {
	w.claimed, w.since = false, f.now
	q := &f.queues[w.kind]
	q.ready = append(q.ready, w)
	q.due[0] = append(q.due[0], dueWork{w, f.now + f.grace(), f.now})
}

func (f *fleet) grace() time.Duration { return 5 * f.Poll }

func (p *member) start() {
	p.lives++
	p.free, p.querying, p.bell, p.held = slotsOfProcess, false, false, map[*work]time.Duration{}
	p.query()
	p.sweepLater()
}

// lose ends the process without a release. Its work can be claimed again when the leases end.
func (p *member) lose() {
	p.lives++
	for w, claimed := range p.held {
		renewals := (p.now - claimed) / (p.Lease / 3)
		end := claimed + renewals*(p.Lease/3) + p.Lease
		w.lost = p.now
		p.after(end-p.now, func() { p.ready(w) })
	}
	p.held = nil
	p.after(restartTime, p.start)
}

// alive returns do for as long as this life of the process lasts.
func (p *member) alive(do func()) func() {
	life := p.lives
	return func() {
		if p.lives == life {
			do()
		}
	}
}

// wake is the bell of the process.
func (p *member) wake() {
	if p.querying {
		p.bell = true
		return
	}
	p.query()
}

// query claims work for the free slots.
func (p *member) query() {
	p.timer++
	if p.free == 0 {
		p.pollLater()
		return
	}
	p.querying, p.bell = true, false
	p.after(queryTime, p.alive(p.claim))
}

func (p *member) pollLater() {
	p.timer++
	timer := p.timer
	p.after(p.jittered(p.Poll), p.alive(func() {
		if p.timer == timer && !p.querying {
			p.query()
		}
	}))
}

func (p *member) claim() {
	q := &p.queues[p.kind]
	got := min(p.free, len(q.ready))
	p.queries++
	p.window[p.now/(100*time.Millisecond)]++
	if got == 0 {
		p.empty++
	}

	taken := p.free
	for _, w := range q.ready[:got] {
		p.execute(w)
	}
	q.ready = q.ready[got:]

	p.querying = false
	if got > 0 && got < taken || p.bell {
		p.query()
		return
	}
	p.pollLater()
}

// execute begins a piece of work that was claimed.
func (p *member) execute(w *work) {
	p.free--
	p.writes++
	p.held[w] = p.now
	w.claimed = true
	if w.lost >= 0 {
		p.longestStall = max(p.longestStall, p.now-w.lost)
		w.lost = -1
	} else {
		p.longestWait = max(p.longestWait, p.now-w.since)
	}

	// A request to a model takes one to five seconds, and so does a call.
	took := time.Second + time.Duration(p.rand.Int64N(int64(4*time.Second)))
	p.after(took, p.alive(func() {
		delete(p.held, w)
		p.free++
		p.writes++
		p.next(w)
		p.wake()
	}))
}

// next stores the step after a piece of work: a pause with calls, the results, or the end.
func (f *fleet) next(w *work) {
	switch r := w.run; {
	case w.kind == workerKind:
		if r.calls--; r.calls == 0 {
			f.ready(&work{kind: engineKind, run: r, lost: -1})
		}
	case r.pauses == pausesOfRun:
		f.open--
	default:
		r.pauses++
		r.calls = callsOfPause
		for range callsOfPause {
			f.ready(&work{kind: workerKind, run: r, lost: -1})
		}
	}
}

func (p *member) sweepLater() {
	p.after(p.jittered(p.Poll), p.alive(func() {
		p.sweep()
		p.sweepLater()
	}))
}

// sweep rings again for work that has waited, and wakes its own process if there was any. Each wake-up doubles the wait
// before the next one.
func (p *member) sweep() {
	p.sweeps++
	for kind := range p.queues {
		looked := 0
		for doublings := range p.queues[kind].due {
			looked += p.ringAgain(&p.queues[kind], doublings, sweepLimit-looked)
		}
		p.rewrites += looked
		if looked > 0 && kind == p.kind {
			p.wake()
		}
	}
}

// ringAgain rings for the work that has waited for so many doublings of the grace, and returns how much there was.
func (p *member) ringAgain(q *queue, doublings, limit int) (looked int) {
	for due := &q.due[doublings]; looked < limit && len(*due) > 0 && (*due)[0].at <= p.now; {
		d := (*due)[0]
		*due = (*due)[1:]
		if d.claimed || d.since != d.work.since {
			continue // it was claimed meanwhile
		}

		looked++
		next := min(doublings+1, len(q.due)-1)
		p.maxRings = max(p.maxRings, doublings+1)
		q.due[next] = append(q.due[next], dueWork{d.work, p.now + p.grace()<<next, d.since})
	}
	return looked
}

// arrive begins runs at a steady rate.
func (f *fleet) arrive(runs int) {
	f.open++ // so that the simulation does not end before the last one has arrived
	var next func()
	next = func() {
		if runs--; runs < 0 {
			f.open--
			return
		}
		f.begin()
		f.after(time.Second/runsASecond, next)
	}
	next()
}

// report prints what the processes have asked of the store.
func (f *fleet) report(t *testing.T, runs int) {
	t.Helper()
	seconds := f.now.Seconds()
	t.Logf("%d runs in %.0f s on %d processes: %.0f claims/s (%.0f %% empty), %.0f sweeps/s, %.0f changes of runs and calls/s, "+
		"%.2f rows/run rung again; the longest wait %v, the longest stall of lost work %v",
		runs, seconds, len(f.procs), float64(f.queries)/seconds, 100*float64(f.empty)/float64(f.queries), float64(f.sweeps)/seconds,
		float64(f.writes)/seconds, float64(f.rewrites)/float64(runs), f.longestWait, f.longestStall)
}

// steady returns the claims in the average tenth of a second and in the busiest one, while runs arrive at a steady
// rate.
func (f *fleet) steady(runs int) (average, busiest float64) {
	const tenth = 100 * time.Millisecond
	from, to := 10*time.Second/tenth, time.Duration(runs)*(time.Second/runsASecond)/tenth
	for at := from; at < to; at++ {
		average += float64(f.window[at]) / float64(to-from)
		busiest = max(busiest, float64(f.window[at]))
	}
	return average, busiest
}

// simulated returns how many runs to simulate.
func simulated() int {
	if os.Getenv("PLAIT_SCALE") != "" {
		return 1_000_000
	}
	return 30_000
}

// pollBound is the longest time between two looks for work, with its jitter.
func (f *fleet) pollBound() time.Duration { return f.Poll*5/4 + 2*queryTime }

// Every few seconds a process is lost. Its work passes on within a lease and a poll, and other work never waits longer
// than a poll.
func TestNoRunWaitsLongerThanTheBoundAtAThousandRunsASecond(t *testing.T) {
	f, runs := newFleet(1, processCount), simulated()
	f.arrive(runs)
	var lose func()
	lose = func() {
		f.procs[f.rand.IntN(len(f.procs))].loseIfAlive()
		f.after(3*time.Second, lose)
	}
	f.after(3*time.Second, lose)

	f.play(t, 2*time.Hour)
	f.report(t, runs)
	require.LessOrEqual(t, f.longestWait, f.pollBound())
	require.Greater(t, f.longestStall, f.Lease*2/3, "no work was lost")
	require.LessOrEqual(t, f.longestStall, f.Lease+f.pollBound())

	// No herd of claims, although each end of work is followed by one.
	average, busiest := f.steady(runs)
	t.Logf("%.0f claims in a tenth of a second, %.0f in the busiest", average, busiest)
	require.Less(t, busiest, 1.5*average)
}

// Processes that were started in one moment do not ask the store in the same moments afterwards.
func TestIdleProcessesDoNotPollTogether(t *testing.T) {
	f := newFleet(4, processCount)
	f.open++
	f.after(time.Minute, func() { f.open-- })
	f.play(t, time.Hour)

	average, busiest := f.steady(60 * runsASecond)
	t.Logf("%.1f claims in a tenth of a second, %.0f in the busiest", average, busiest)
	require.Less(t, busiest, 3*average)
}

// Half of the processes are lost in one moment. What they had executed can be claimed when others have free slots.
func TestHalfOfAllProcessesMayBeLostAtOnce(t *testing.T) {
	f, runs := newFleet(2, processCount), simulated()
	f.arrive(runs)
	f.after(20*time.Second, func() {
		for _, p := range f.procs[:len(f.procs)/2] {
			p.loseIfAlive()
		}
	})

	f.play(t, 2*time.Hour)
	f.report(t, runs)
	require.Greater(t, f.longestStall, f.Lease*2/3, "no work was lost")
	require.LessOrEqual(t, f.longestStall, f.Lease+f.pollBound())
	require.LessOrEqual(t, f.longestWait, restartTime+f.pollBound(), "new work waits for the new processes")
}

// All runs are ready in one moment, far more than there are slots. The sweeps ring for each of them again and again,
// but each time only half as often.
func TestABacklogIsRungForLessAndLess(t *testing.T) {
	f, runs := newFleet(3, processCount/4), simulated()
	for range runs {
		f.begin()
	}

	f.play(t, 2*time.Hour)
	f.report(t, runs)

	// A piece of work that waits for n graces is rung for after 1, 3, 7, … of them.
	rings := 0
	for at := f.grace(); at < f.longestWait; at = 2*at + f.grace() {
		rings++
	}
	require.Greater(t, rings, 1)
	require.LessOrEqual(t, f.maxRings, rings)
	require.Positive(t, f.maxRings)
}

// loseIfAlive loses the process, unless it is restarting.
func (p *member) loseIfAlive() {
	if p.held != nil {
		p.lose()
	}
}
