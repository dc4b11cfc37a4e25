package executor_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/testkit/tooltest"
	"github.com/plait-dev/plait/node"
)

// The environment of a child process: the folder, the point at which it kills itself, and the strategy.
const (
	crashFolder   = "PLAIT_TEST_CRASH_FOLDER"
	crashAt       = "PLAIT_TEST_CRASH_AT"
	crashStrategy = "PLAIT_TEST_CRASH_STRATEGY"
)

// In a child process, the test binary is the program that crashes.
func init() {
	folder := os.Getenv(crashFolder)
	if folder == "" {
		return
	}
	at, _ := strconv.Atoi(os.Getenv(crashAt))
	if err := (&crasher{folder: folder, at: at, strategy: os.Getenv(crashStrategy)}).run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// crasher runs an agent with a journal in a folder. Its tools write a line for each execution to a file.
type crasher struct {
	folder   string
	at       int    // the point at which the process kills itself; 0 for none
	strategy string // "parallel", "sequential", or "sub-agent": the tools are those of a sub-agent

	mu     sync.Mutex // guards the fields below
	points int        // reached so far
	saved  dag.DAG
	news   chan struct{} // closed at the next save
}

// point kills the process with a signal that it cannot handle, if this is the point.
func (c *crasher) point() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.points++; c.points == c.at {
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Kill()
		}
		if err != nil {
			panic(err)
		}
		select {} // the signal is on its way
	}
}

// write appends a line to a file of the folder.
func (c *crasher) write(name, line string) error {
	f, err := os.OpenFile(filepath.Join(c.folder, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

// lines returns the lines of a file of the folder.
func (c *crasher) lines(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.folder, name))
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(t, err)
	}
	return strings.Fields(string(text))
}

// effects is the file to which the tools write: one for the process that is killed, and one for the second start.
func (c *crasher) effects() string {
	if c.at > 0 {
		return "effects"
	}
	return "effects again"
}

func (c *crasher) tool(name string, effect executor.Effect) executor.Tool {
	return executor.WithEffect(tooltest.Func(name, func(ctx context.Context, call executor.Call) (any, error) {
		if err := c.awaitBefore(ctx, call.Index); err != nil {
			return nil, err
		}
		c.point()
		err := c.write(c.effects(), name+":"+executor.IdempotencyKey(ctx))
		c.point()
		return name, err
	}), effect)
}

// awaitBefore waits until the results of the calls before one are saved, so that every run reaches the same points.
func (c *crasher) awaitBefore(ctx context.Context, index int) error {
	for {
		c.mu.Lock()
		open := slices.ContainsFunc(c.saved.OpenCalls(), func(call dag.Call) bool { return call.Index < index })
		news := c.news
		c.mu.Unlock()
		if !open {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// save appends to the journal, and notes what is acknowledged with that: the heads, and each call that was started or
// has a result.
func (c *crasher) save(journal *dag.Journal, d dag.DAG) error {
	c.point()
	if err := journal.Append(d); err != nil {
		return err
	}
	for _, h := range d.Heads() {
		if err := c.write("acknowledged", h.ID().String()); err != nil {
			return err
		}
	}
	for _, n := range c.inner(d).Nodes() { // a last result is saved with the message after it
		e, ok := n.Payload().(node.ToolExecution)
		if !ok {
			continue
		}
		file := "finished"
		if e.State == node.ExecutionStarted {
			file = "started"
		}
		if err := c.write(file, fmt.Sprintf("%s:%s/%d", e.Tool, n.Parent(0).ID(), e.Index)); err != nil {
			return err
		}
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	c.saved = c.inner(d)
	close(c.news)
	c.news = make(chan struct{})
	return nil
}

// inner returns the conversation with the calls of the tools: d, or that of the sub-agent in d.
func (c *crasher) inner(d dag.DAG) dag.DAG {
	if c.strategy != "sub-agent" {
		return d
	}
	var child dag.DAG
	for _, n := range d.Nodes() {
		if e, ok := n.Payload().(node.ToolExecution); ok && e.Child.Len() > 0 {
			child = dag.FromNode(n)
		}
	}
	return child
}

// Stream is the model: it calls three tools, then the last one again, and then answers. There is a point before each
// event.
func (c *crasher) Stream(ctx context.Context, req api.Request) iter.Seq2[api.Event, error] {
	said := 0
	for _, m := range req.Messages {
		if m.Role == content.Assistant {
			said++
		}
	}
	turn := apitest.Say("Done.")
	switch said {
	case 0:
		turn = apitest.Call(call("look"), call("put"), call("pay"))
	case 1:
		turn = apitest.Call(call("pay"))
	}
	return func(yield func(api.Event, error) bool) {
		for event, err := range apitest.NewScript(turn).Stream(ctx, req) {
			c.point()
			if !yield(event, err) {
				return
			}
		}
	}
}

// run starts or continues the run in the journal, as a program does that is started again after a crash.
func (c *crasher) run(ctx context.Context) error {
	c.news = make(chan struct{})
	journal, err := dag.OpenJournal(filepath.Join(c.folder, "journal"), &dag.JournalOptions{NoSync: true})
	if err != nil {
		return err
	}
	defer journal.Close()

	agent := executor.Agent{
		Provider: c,
		Tools: []dag.Tool{
			c.tool("look", executor.EffectReadOnly), c.tool("put", executor.EffectIdempotent), c.tool("pay", executor.EffectUnknown),
		},
		Save: func(_ context.Context, d dag.DAG) error { return c.save(journal, d) },
		Log:  quiet,
	}
	switch c.strategy {
	case "sequential":
		agent.Strategy = executor.Sequential()
	case "sub-agent":
		save := agent.Save
		agent.Save = nil
		agent = executor.Agent{
			Provider: calling(toSub("sub", "s")), Tools: []dag.Tool{executor.SubAgent("sub", "", agent)}, Save: save, Log: quiet,
		}
	}

	d := journal.DAG()
	if d.Len() == 0 {
		d = dag.New().User("Go.")
	}
	if _, err = agent.Run(ctx, d); errors.Is(err, executor.ErrAnswered) {
		return nil
	}
	return err
}

// TestKilledRunIsFinishedByTheSecondStart kills a process at every save, at every piece of a response, and at every
// tool, before and after its effect, and starts the program again.
func TestKilledRunIsFinishedByTheSecondStart(t *testing.T) {
	binary, err := os.Executable()
	require.NoError(t, err)
	for _, strategy := range []string{"sequential", "parallel", "sub-agent"} {
		t.Run(strategy, func(t *testing.T) {
			points := 0
			for at := 1; ; at++ {
				first := &crasher{folder: t.TempDir(), at: at, strategy: strategy}
				child := exec.CommandContext(t.Context(), binary)
				child.Env = append(os.Environ(), crashFolder+"="+first.folder, crashAt+"="+strconv.Itoa(at), crashStrategy+"="+strategy)
				out, err := child.CombinedOutput()
				var died *exec.ExitError
				if err == nil {
					points = at - 1
					break // there is no such point: the run was over
				}
				require.ErrorAs(t, err, &died)
				require.Empty(t, string(out), "it was not killed")

				started, finished := first.lines(t, "started"), first.lines(t, "finished")
				second := &crasher{folder: first.folder, strategy: strategy}
				require.NoError(t, second.run(t.Context()), "point %d", at)
				requireRecovered(t, second, started, finished, fmt.Sprintf("%s, killed at point %d", strategy, at))
			}
			require.Greater(t, points, 20)
		})
	}
}

// requireRecovered checks what is promised about a run that was killed and finished by a second start. The journal of
// the first process acknowledged that calls were started, and that some of them had finished.
func requireRecovered(t *testing.T, c *crasher, started, finished []string, when string) {
	t.Helper()
	saved, err := os.ReadFile(filepath.Join(c.folder, "journal"))
	require.NoError(t, err)
	for _, id := range c.lines(t, "acknowledged") {
		require.Contains(t, string(saved), `{"id":"`+id, "%s: an acknowledged node is lost", when)
	}

	d, err := dag.Load(filepath.Join(c.folder, "journal"))
	require.NoError(t, err)
	requireValid(t, d)
	require.Empty(t, d.OpenCalls(), when)

	before, after := c.lines(t, "effects"), c.lines(t, "effects again")
	if c.strategy == "sub-agent" && executionOf(t, d, 0).State == node.ExecutionInDoubt {
		require.Empty(t, slices.Concat(before, after, started), "%s: the sub-agent had begun", when)
		return
	}
	d = c.inner(d)
	require.Equal(t, "Done.", d.Text(), when)

	times := map[string]int{}
	for _, line := range slices.Concat(before, after) {
		times[line]++
	}
	calls := 0
	for _, n := range d.Nodes() {
		e, ok := n.Payload().(node.ToolExecution)
		if !ok {
			continue
		}
		calls++
		key := fmt.Sprintf("%s:%s/%d", e.Tool, n.Parent(0).ID(), e.Index)
		open := slices.Contains(started, key) && !slices.Contains(finished, key)
		switch {
		case slices.Contains(finished, key):
			require.Equal(t, 1, times[key], "%s: %s", when, key)
			require.NotContains(t, after, key, "%s: a call with a result is executed again", when)
		case open && e.Tool == "pay":
			require.Equal(t, node.ExecutionInDoubt, e.State, "%s: %s", when, key)
			require.NotContains(t, after, key, "%s: a call that may run once is executed again", when)
		case open:
			require.Contains(t, after, key, "%s: a call that may run again is not executed again", when)
			require.LessOrEqual(t, times[key], 2, "%s: %s", when, key)
		default:
			require.Equal(t, 1, times[key], "%s: %s", when, key)
		}
		if !open || e.Tool != "pay" {
			require.Equal(t, node.ExecutionFinished, e.State, "%s: %s", when, key)
		}
		delete(times, key)
	}
	require.Equal(t, 4, calls, when)
	require.Empty(t, times, "%s: executions that no call of the conversation has", when)
}
