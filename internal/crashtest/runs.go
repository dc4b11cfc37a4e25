package crashtest

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/durable"
	"github.com/plait-dev/plait/internal/seedtest"
	"github.com/plait-dev/plait/store"
)

// Runs executes durable runs of four calls each in four processes. Some are killed, and two are frozen.
type Runs struct {
	Open Open
	// Alone opens a database for one process, to measure without a queue. Defaults to Open.
	Alone Open
	// Database returns the address of a new, empty database.
	Database func() string
	// Runs is how many. PLAIT_RUNS replaces it.
	Runs int
	// Kills is how many processes are killed and replaced, for each 100 runs or part of them.
	Kills int
}

// Test fails if a run does not finish, or if its history shows a fault. With PLAIT_RUNS it also measures the speed of
// undisturbed processes, and of a single process. The latter gets its wake-ups without polling.
func (r Runs) Test(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: Windows has no signal that freezes a process")
	}
	r.Runs = number(t, "PLAIT_RUNS", r.Runs)
	r.Kills *= (r.Runs + 99) / 100
	r.disturbed(t)
	if os.Getenv("PLAIT_RUNS") != "" {
		r.undisturbed(t)
		r.alone(t)
	}
}

// disturbed freezes one process before its first calls and another one with its first result, and kills others at
// random moments.
func (r Runs) disturbed(t *testing.T) {
	t.Helper()
	f := newFleet(t, r)
	f.start("serve and freeze")
	f.until(func(e event) bool { return e.kind == frozen })
	require.NoError(t, freeze(f.processes[0].Process))
	f.start(freezeWithResult)
	f.until(func(e event) bool { return e.kind == frozen })
	require.NoError(t, freeze(f.processes[1].Process))

	seed := seedtest.First(t) // of the plan: the moments differ each time
	random := rand.New(rand.NewPCG(seed, 0))
	f.start("serve")
	f.start("serve")
	for n := range r.Kills {
		// A kill for each part of the results, in its first four fifths.
		part := max(1, r.Runs*calls/r.Kills)
		due := n*part + random.IntN(max(1, part*4/5))
		f.until(func(event) bool { return f.results > due })
		// The first two processes stay frozen.
		f.kill(2 + random.IntN(2))
	}
	f.finish()

	require.Empty(t, f.faults, "PLAIT_SEED=%d", seed)
	stalls := f.history.stalls()
	require.NotEmpty(t, stalls, "nothing was lost with a process")
	t.Logf("%d runs of %d calls in 4 processes, %d killed and replaced, 2 frozen: %s; %d calls repeated, %d overtaken by a result; "+
		"%d pieces of work stood still, at most for %v with a lease of %v",
		r.Runs, calls, r.Kills, rate(r.Runs, f.history.took()), f.history.repeated(), f.history.overtaken(),
		len(stalls), stalls[len(stalls)-1].Round(time.Millisecond), lease)
}

// undisturbed lets three processes do the same.
func (r Runs) undisturbed(t *testing.T) {
	t.Helper()
	f := newFleet(t, r)
	for range 3 {
		f.start("serve")
	}
	f.finish()
	require.Empty(t, f.faults)
	t.Logf("%d runs in 3 processes, undisturbed: %s; %d calls repeated, %d overtaken by a result",
		r.Runs, rate(r.Runs, f.history.took()), f.history.repeated(), f.history.overtaken())
}

// alone lets one process do the same with as many slots, in this process.
func (r Runs) alone(t *testing.T) {
	t.Helper()
	if r.Alone != nil {
		r.Open = r.Alone
	}
	f := newFleet(t, r)

	// It writes its events to the history, not to a pipe. Three times the slots are those of three processes.
	ctx, cancel := context.WithCancel(context.Background())
	var mu sync.Mutex
	p := &process{Store: f.db, name: "alone", write: func(e event) {
		mu.Lock()
		defer mu.Unlock()
		f.add(e)
	}}

	served := make(chan error, 1)
	go func() { served <- p.serve(ctx, 3*slots) }()
	f.wait()
	cancel()
	require.NoError(t, <-served)
	f.finish()

	require.Empty(t, f.faults)
	t.Logf("%d runs in 1 process with its wake-ups: %s", r.Runs, rate(r.Runs, f.history.took()))
}

func rate(runs int, took time.Duration) string {
	return fmt.Sprintf("%.1f runs/s (%v)", float64(runs)/took.Seconds(), took.Round(10*time.Millisecond))
}

// fleet is the processes of a shared database.
type fleet struct {
	Runs
	t       *testing.T
	db      Store
	address string
	engine  *durable.Engine // it starts runs and waits for them

	read, write *os.File // the pipe for the lines of all processes
	lines       chan event
	history     history
	results     int // the events of acceptance in history
	faults      []string

	processes []*exec.Cmd     // the live processes
	names     []string        // of these
	serving   map[string]bool // the names of the processes with a handler for SIGTERM
	started   int
}

// newFleet makes a database with runs. The processes are not started.
func newFleet(t *testing.T, r Runs) *fleet {
	t.Helper()
	f := &fleet{Runs: r, t: t, address: r.Database(), lines: make(chan event, 1000), serving: map[string]bool{}}
	var err error
	f.db, err = r.Open(context.Background(), f.address)
	require.NoError(t, err)

	// The engine has no agents: it starts the runs and waits for them, and the processes execute them.
	f.engine = &durable.Engine{Store: f.db, Settings: durable.Settings{Poll: poll}}
	for i := range r.Runs {
		_, err := f.engine.Start(context.Background(), durable.StartRequest{
			Run: name(i), Agent: "a", Conversation: "of-" + name(i), Text: "Work.",
		})
		require.NoError(t, err)
	}

	// One pipe for all processes: their lines come in the order of the writes.
	f.read, f.write, err = os.Pipe()
	require.NoError(t, err)
	go f.receive()
	t.Cleanup(f.clean)
	return f
}

// clean ends the processes and closes the files of a failed test.
func (f *fleet) clean() {
	for _, cmd := range f.processes {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	_, _ = f.write.Close(), f.read.Close()
	for range f.lines { // receive ends
		continue
	}
	_ = f.db.Close()
}

func name(run int) string { return fmt.Sprintf("run%05d", run) }

// receive reads the lines of the processes, until none of them is left.
func (f *fleet) receive() {
	defer close(f.lines)
	lines := bufio.NewScanner(f.read)
	for lines.Scan() {
		e, err := parseEvent(lines.Text())
		if err != nil {
			e = event{kind: "unreadable: " + lines.Text()}
		}
		f.lines <- e
	}
}

// start starts a process.
func (f *fleet) start(role string) {
	f.t.Helper()
	name := fmt.Sprint("p", f.started)
	f.started++
	cmd := command(f.t, role, f.address, name)
	cmd.Stdout, cmd.Stderr = f.write, os.Stderr
	require.NoError(f.t, cmd.Start())
	f.processes, f.names = append(f.processes, cmd), append(f.names, name)
}

// add adds an event to the history.
func (f *fleet) add(e event) {
	if e.kind == serving {
		f.serving[e.process] = true
		return
	}
	f.history = append(f.history, e)
	if e.kind == accepted {
		f.results++
	}
}

// until reads events up to the first for which ok returns true.
func (f *fleet) until(ok func(event) bool) {
	f.t.Helper()
	limit := time.After(f.patience())
	for {
		select {
		case e, more := <-f.lines:
			require.True(f.t, more, "no process is left")
			f.add(e)
			if ok(e) {
				return
			}
		case <-limit:
			require.Fail(f.t, "the processes do not get on")
		}
	}
}

// patience is how long the test waits at most for anything.
func (f *fleet) patience() time.Duration { return patience + time.Duration(f.Runs.Runs)*time.Second }

// kill kills a process, and starts another one.
func (f *fleet) kill(index int) {
	f.t.Helper()
	cmd := f.processes[index]
	require.NoError(f.t, cmd.Process.Kill())
	died := event{at: time.Now(), process: f.names[index], kind: lost} // added below, after the lines before it
	require.True(f.t, wasKilled(cmd.Wait()))
	f.processes = append(f.processes[:index], f.processes[index+1:]...)
	f.names = append(f.names[:index], f.names[index+1:]...)
	f.start("serve")

	// Earlier lines come first. Lines still in the pipe come later. That does no harm: nobody claims the work of the
	// dead before its lease has ended.
	for len(f.lines) > 0 {
		f.add(<-f.lines)
	}
	f.add(died)
}

// wait waits for all runs. Events are read meanwhile.
func (f *fleet) wait() {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), f.patience())
	defer cancel()
	for i := range f.Runs.Runs {
		r, err := f.engine.Wait(ctx, name(i))
		require.NoError(f.t, err)
		require.Equal(f.t, store.RunDone, r.State, r.Reason)
	}
}

// finish waits for all runs, thaws the frozen processes, ends all of them, and checks everything.
func (f *fleet) finish() {
	f.t.Helper()

	// SIGTERM would kill a starting process: wait until each of them handles it.
	late := slices.DeleteFunc(slices.Clone(f.names), func(name string) bool { return f.serving[name] })
	ready := make(chan string, f.started)
	var reading sync.WaitGroup
	reading.Go(func() {
		for e := range f.lines {
			f.add(e)
			if e.kind == serving {
				ready <- e.process
			}
		}
	})
	f.wait()
	f.await(late, ready)

	// A frozen process does not handle SIGTERM. Thawed, it continues with leases that have ended.
	for _, cmd := range f.processes {
		require.NoError(f.t, thaw(cmd.Process))
		require.NoError(f.t, cmd.Process.Signal(syscall.SIGTERM))
	}
	for _, cmd := range f.processes {
		require.NoError(f.t, cmd.Wait())
	}

	// With the last copy of its writing end, the pipe ends: receive closes the lines, and the reading goroutine returns.
	f.processes = nil
	require.NoError(f.t, f.write.Close())
	reading.Wait()
	f.check()
}

// await waits until the names of processes have come.
func (f *fleet) await(names []string, ready <-chan string) {
	f.t.Helper()
	limit := time.After(f.patience())
	for len(names) > 0 {
		select {
		case name := <-ready:
			names = slices.DeleteFunc(names, func(other string) bool { return other == name })
		case <-limit:
			require.Fail(f.t, "processes do not begin", "%v", names)
		}
	}
}

// check compares the history, the results and the conversations.
func (f *fleet) check() {
	f.t.Helper()
	ctx := context.Background()

	f.faults = f.history.faults()
	for _, e := range f.history {
		if strings.HasPrefix(e.kind, "unreadable") {
			f.faults = append(f.faults, e.kind)
		}
	}
	if err := f.db.Check(ctx); err != nil {
		f.faults = append(f.faults, fmt.Sprint("damaged: ", err))
	}

	// The events of acceptance must agree with the stored results.
	sums := f.history.accepted()
	for i := range f.Runs.Runs {
		f.checkRun(ctx, name(i), sums)
	}
}

// checkRun checks a run: each call must have its accepted result, and the conversation the same results.
func (f *fleet) checkRun(ctx context.Context, run string, sums map[string]string) {
	f.t.Helper()
	fault := func(format string, args ...any) {
		f.faults = append(f.faults, run+": "+fmt.Sprintf(format, args...))
	}
	tasks, err := f.db.Tasks(ctx, run)
	require.NoError(f.t, err)
	c, err := store.New(f.db, nil).Conversation(ctx, "of-"+run)
	require.NoError(f.t, err)
	if found := c.DAG().Validate(); len(found) > 0 {
		fault("invalid: %v", found)
	}

	// The messages show whether a turn or a call was repeated or lost.
	var roles, texts []string
	for _, m := range c.DAG().Transcript().Messages {
		roles = append(roles, string(m.Role))
		for _, r := range m.Blocks.ToolResults() {
			texts = append(texts, r.Content.Text())
		}
	}
	if fmt.Sprint(roles) != "[user assistant user assistant]" || len(texts) != calls || len(tasks) != calls {
		fault("repeated or lost: %v, %d results, %d calls", roles, len(texts), len(tasks))
		return
	}

	for i, task := range tasks {
		if !task.Done || !strings.Contains(string(task.Result.Payload), texts[i]) {
			fault("the result of call %d is %s, and the model read %q", i, task.Result.Payload, texts[i])
		}

		// A process may be killed before it writes the event of an accepted result.
		if sum := sums[task.Task.Key.String()]; sum != "" && sum != sumOf(task.Result) {
			fault("the accepted result of call %d is not the stored one", i)
		}
	}
}
