//go:build unix

package durable

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/background"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
)

// The environment of a child process with background work: its database, and the effect of its tool.
const (
	workDatabase = "PLAIT_TEST_WORK_DATABASE"
	workEffect   = "PLAIT_TEST_WORK_EFFECT"
)

// In a child process, the test binary serves runs until it is killed. It prints what happens.
func init() {
	url := os.Getenv(workDatabase)
	if url == "" {
		return
	}
	ctx := context.Background()
	db, _, err := openDatabase(ctx, url)
	if err == nil {
		agent := workingAgent(os.Getenv(workEffect), func(ctx context.Context, _ string) (string, error) {
			fmt.Println("begun", executor.IdempotencyKey(ctx))
			<-ctx.Done()
			return "", ctx.Err()
		})
		agent.Save = func(_ context.Context, d dag.DAG) error {
			if d.Text() == "I wait." {
				fmt.Println("waits")
			}
			return nil
		}
		var e *Engine
		if e, err = Open(ctx, db, &Options{Heartbeat: heartbeat, Agents: map[string]executor.Agent{"a": agent}}); err == nil {
			err = e.Serve(ctx)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// workingAgent is an agent whose model starts work, and then waits for it.
func workingAgent(effect string, research func(context.Context, string) (string, error)) executor.Agent {
	model := apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
		switch text := req.Messages[len(req.Messages)-1].Blocks.Text(); {
		case len(req.Messages) == 1:
			return apitest.Call(apitest.Use("research", item{"bees"}))
		case strings.Contains(text, "Background work 1"):
			return apitest.Say("I have it.")
		}
		return apitest.Say("I wait.")
	}).Always())
	tool := tool("research", research)
	if effect == "idempotent" {
		tool = executor.WithEffect(tool, executor.EffectIdempotent)
	}
	return background.Add(executor.Agent{Provider: model}, tool)
}

func TestWorkOfAKilledProcessHasOneEnd(t *testing.T) {
	for _, effect := range []string{"idempotent", "unknown"} {
		for _, at := range []string{"begun", "waits"} {
			t.Run(effect+" killed when it "+at, func(t *testing.T) {
				test := func(w *world) { killWorking(w, effect, at) }
				if seedtest.All() {
					onEach(t, test)
				} else {
					onSQLite(t, test)
				}
			})
		}
	}
}

// killWorking kills a process with background work, and has another one finish the run.
func killWorking(w *world, effect, at string) {
	var mu sync.Mutex
	var keys []string
	e := w.engine(func(o *Options) {
		o.Agents = map[string]executor.Agent{"a": workingAgent(effect, func(ctx context.Context, _ string) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			keys = append(keys, executor.IdempotencyKey(ctx))
			return "all about bees", nil
		})}
	})
	run := w.start(e, StartRequest{Text: "Find out."})
	first := w.killAtWork(effect, at)

	w.serve(e)
	require.Equal(w, Done, w.wait(e, run).State)
	d := w.load("c")
	require.Empty(w, background.Open(d))
	all := ""
	for _, m := range d.Messages() {
		all += m.Blocks.Text() + "\n"
		for _, r := range m.Blocks.ToolResults() {
			all += r.Content.Text() + "\n"
		}
	}
	switch {
	case effect == "idempotent":
		require.Equal(w, []string{first}, keys, "the same key")
		require.Equal(w, 1, strings.Count(all, "all about bees"), all)
	case strings.Contains(all, "is lost"):
		require.Empty(w, keys)
	default:
		// It was killed before the result "started" was stored: the call itself is in doubt.
		require.Equal(w, "begun", at)
		require.Contains(w, all, "outcome of this tool call is unknown")
		require.Empty(w, keys)
	}
}

// killAtWork runs a child process until it has come so far, and returns the idempotency key of its work.
func (w *world) killAtWork(effect, at string) (key string) {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), workDatabase+"="+w.url, workEffect+"="+effect)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	require.NoError(w, err)
	require.NoError(w, child.Start())
	defer child.Wait()         //nolint:errcheck // it was killed
	defer child.Process.Kill() //nolint:errcheck // it may have ended

	lines := bufio.NewScanner(out)
	waits := false
	for (key == "" || at == "waits" && !waits) && lines.Scan() {
		what, of, _ := strings.Cut(lines.Text(), " ")
		if what == "begun" {
			key = of
		}
		waits = waits || what == "waits"
	}
	require.NotEmpty(w, key)
	return key
}
