package durable

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/store"
)

// The environment of a child: a process of its own that serves the runs of a test until it is killed.
const (
	childURL     = "PLAIT_TEST_URL"
	childHistory = "PLAIT_TEST_HISTORY"
	childSlots   = "PLAIT_TEST_SLOTS"
	childTool    = "PLAIT_TEST_TOOL"  // how long a tool takes
	childDefer   = "PLAIT_TEST_DEFER" // whether calls are jobs
	childPoint   = "PLAIT_TEST_POINT" // the point at which the process dies
	childPace    = "PLAIT_TEST_BEAT"  // the heartbeat
	childAsks    = "PLAIT_TEST_ASKS"  // whether a call needs approval, and the process records what it does
)

// childMain serves if this process is a child. It does not return then.
func childMain() {
	url := os.Getenv(childURL)
	if url == "" {
		return
	}
	if err := childServe(url); err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func childServe(url string) error {
	ctx := context.Background()
	db, closeDB, err := openDatabase(ctx, url)
	if err != nil {
		return err
	}
	defer closeDB()

	history, err := os.OpenFile(os.Getenv(childHistory), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	slots, _ := strconv.Atoi(os.Getenv(childSlots))
	slow, _ := time.ParseDuration(os.Getenv(childTool))
	asks := os.Getenv(childAsks) == "true"
	agent := childAgent(history, slow, asks)
	opts := &Options{Concurrency: slots, Heartbeat: childBeat}
	if beat, err := time.ParseDuration(os.Getenv(childPace)); err == nil {
		opts.Heartbeat = beat
	}
	if at, err := strconv.Atoi(os.Getenv(childPoint)); err == nil {
		opts.wrap = dieAt(at)
	}
	if asks {
		opts.wrap = func(db store.Transactor) store.Transactor { return recorded{db, &recorder{file: history}} }
	}
	if os.Getenv(childDefer) == "true" {
		agent, opts.Workers = byWorkers(agent)
		opts.Workers[0].Concurrency = slots
	}
	opts.Agents = map[string]executor.Agent{"a": agent}
	if os.Getenv("PLAIT_LOG") == "" {
		opts.Log = logOf(nil)
	}
	e, err := Open(ctx, db, opts)
	if err != nil {
		return err
	}
	return e.Serve(ctx)
}

// childBeat is the heartbeat of children. They share few cores, so it is not shorter.
const childBeat = time.Second

// childAgent calls two tools twice each: pay has an unknown effect, look only reads. If it asks, it then signs, which has
// an unknown effect and needs approval. Each call writes its start and its end to the history. One write is one line, also of
// several processes. Each result is another one.
func childAgent(history io.Writer, slow time.Duration, asks bool) executor.Agent {
	write := func(ctx context.Context, what string) error {
		_, err := fmt.Fprintf(history, "%d %s %s %s\n", time.Now().UnixNano(), what,
			executor.IdempotencyKey(ctx), strconv.Itoa(os.Getpid()))
		return err
	}
	events := &recorder{file: history}
	logged := func(name string, unknownEffect bool) executor.Tool {
		return tool(name, func(ctx context.Context, item string) (string, error) {
			if err := write(ctx, name); err != nil {
				return "", err
			}
			if unknownEffect {
				events.begin(event{What: executing, Call: executor.IdempotencyKey(ctx)})(acknowledged, 0)
			}
			time.Sleep(slow)
			return fmt.Sprintf("done %s, %d.%d", item, os.Getpid(), recorders.Add(1)), write(ctx, "end")
		})
	}

	model := apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
		results := 0
		for _, m := range req.Messages {
			results += len(m.Blocks.ToolResults())
		}
		switch {
		case results == 0:
			var uses []content.ToolUse
			for i := range 4 {
				uses = append(uses, apitest.Use([]string{"pay", "look"}[i%2], item{fmt.Sprint(i)}))
			}
			return apitest.Call(uses...)
		case results == 4 && asks:
			return apitest.Call(apitest.Use("sign", item{"letter"}))
		}
		return apitest.Say("Done.")
	}).Always())
	return executor.Agent{
		Provider: model, ToolTimeout: -1, Hooks: []executor.Hook{executor.RequireApproval("sign")},
		Tools: []dag.Tool{
			logged("pay", true), executor.WithEffect(logged("look", false), executor.EffectReadOnly), logged("sign", true),
		},
	}
}

// byWorkers returns an agent that leaves its calls to workers, and the workers.
func byWorkers(agent executor.Agent) (executor.Agent, []Worker) {
	var tools []executor.Tool
	for _, t := range agent.Tools {
		tools = append(tools, t.(executor.Tool))
	}
	agent.Strategy = executor.DeferAll()
	return agent, []Worker{{Tools: tools, Timeout: -1}}
}

// children are the child processes of a test.
type children struct {
	w       *world
	history string
	slots   int
	slow    time.Duration
	defers  bool
	asks    bool
	point   int           // of the next child; 0 is none
	beat    time.Duration // of the children; 0 is childBeat
	running []*exec.Cmd
	cpu     time.Duration // of the processes that have ended
}

// add starts a child.
func (c *children) add() {
	c.w.Helper()
	program, err := os.Executable()
	require.NoError(c.w, err)
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), childURL+"="+c.w.url, childHistory+"="+c.history, fmt.Sprint(childSlots, "=", c.slots),
		fmt.Sprint(childTool, "=", c.slow), fmt.Sprint(childDefer, "=", c.defers), fmt.Sprint(childAsks, "=", c.asks))
	if c.point > 0 {
		cmd.Env = append(cmd.Env, fmt.Sprint(childPoint, "=", c.point))
	}
	if c.beat > 0 {
		cmd.Env = append(cmd.Env, fmt.Sprint(childPace, "=", c.beat))
	}
	cmd.Stderr = os.Stderr
	require.NoError(c.w, cmd.Start())
	c.running = append(c.running, cmd)
}

// kill kills a child without warning.
func (c *children) kill(i int) {
	cmd := c.running[i]
	c.running = append(c.running[:i:i], c.running[i+1:]...)
	_ = cmd.Process.Kill()
	var ended *exec.ExitError
	if errors.As(cmd.Wait(), &ended) {
		c.cpu += ended.UserTime() + ended.SystemTime()
	}
}

// killAll ends all children.
func (c *children) killAll() {
	for len(c.running) > 0 {
		c.kill(0)
	}
}

// starts returns how often each call of a tool was begun, by key.
func (c *children) starts(tool string) map[string]int {
	times := map[string]int{}
	f, err := os.Open(c.history)
	require.NoError(c.w, err)
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) == 4 && fields[1] == tool {
			times[fields[2]]++
		}
	}
	return times
}
