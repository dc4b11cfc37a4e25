package executor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/node"
)

var errCrash = errors.New("the program ended here")

// TestRandomCrashesLoseAndRepeatNothing ends a program at random saves, again and again, and goes on with what the last
// save had: calls that were started, at any depth of sub-agents, and decided about in any way.
func TestRandomCrashesLoseAndRepeatNothing(t *testing.T) {
	seen := map[string]int{}
	rounds := uint64(seedtest.Rounds(80, 300))
	first := seedtest.First(t)
	for seed := first; seed < first+rounds; seed++ {
		w := &crashWorld{
			t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 11)), disk: bytesOf(t, dag.New().User("Go.")),
			ran: map[int]int{}, allowed: map[int]int{}, known: map[int]bool{}, keys: map[int]string{}, seen: seen,
		}
		w.live()
		w.check()
	}
	for _, what := range []string{"crash", "in doubt", "executed again", "unknown", "approved", "declined", "key repeated", "in a sub-agent"} {
		require.Positive(t, seen[what], what)
	}
}

// crashWorld is a program that ends now and then, and what survives it: the disk, and the effects of its tools.
type crashWorld struct {
	t    *testing.T
	seed uint64
	rand *rand.Rand
	seen map[string]int // what happened in any world

	mu      sync.Mutex
	disk    []byte         // what the last save wrote
	saves   int            // until the program ends; negative for a program that lives
	ran     map[int]int    // how often each call was executed, by its number
	allowed map[int]int    // how often somebody allowed to execute it again
	known   map[int]bool   // the calls whose results were saved
	keys    map[int]string // of calls with an idempotent tool
}

func bytesOf(t *testing.T, d dag.DAG) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, d.Write(&b))
	return b.Bytes()
}

// dice returns a number below n that depends on the world and on what is asked, and on nothing else.
func (w *crashWorld) dice(n int, what ...any) int {
	h := fnv.New64a()
	fmt.Fprint(h, w.seed, what)
	return rand.New(rand.NewPCG(h.Sum64(), 1)).IntN(n)
}

// live runs the agent until its run ends, through all crashes.
func (w *crashWorld) live() {
	for life := 0; ; life++ {
		w.saves = 1 + w.rand.IntN(12)
		if life > 8 {
			w.saves = -1
		}
		d, err := dag.Read(bytes.NewReader(w.disk))
		require.NoError(w.t, err)

		agent := w.agent(0)
		agent.Save = w.save
		d, err = agent.Run(w.t.Context(), d)
		var paused *executor.PausedError
		for errors.As(err, &paused) {
			d, err = agent.Resume(w.t.Context(), d, w.replies(d)...)
		}
		if err == nil || errors.Is(err, executor.ErrAnswered) {
			return
		}
		require.ErrorIs(w.t, err, errCrash, "seed %d", w.seed)
		w.seen["crash"]++
	}
}

// save writes to the disk, or ends the program.
func (w *crashWorld) save(_ context.Context, d dag.DAG) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.saves == 0 {
		return errCrash
	}
	w.saves--
	w.disk = bytesOf(w.t, d)

	for _, n := range d.WithChildren() {
		if e, ok := n.Payload().(node.ToolExecution); ok && e.State == node.ExecutionFinished {
			if number, done := strings.CutPrefix(e.Result.Text(), "done "); done {
				w.known[atoi(w.t, number)] = true
			}
		}
	}
	return nil
}

func atoi(t *testing.T, s string) (n int) {
	t.Helper()
	_, err := fmt.Sscan(s, &n)
	require.NoError(t, err)
	return n
}

// job is the arguments of all tools: the number of the call, which no other call has.
type job struct {
	N int `json:"n"`
}

// agent returns the agent of a program, or of a sub-agent that was called with a number.
func (w *crashWorld) agent(called int) executor.Agent {
	agent := executor.Agent{Provider: w.model(called), Log: quiet, Strategy: []executor.Strategy{
		executor.Parallel(0), executor.Sequential(), executor.Batched(2),
	}[w.dice(3, "strategy", called)]}
	for _, effect := range []executor.Effect{executor.EffectUnknown, executor.EffectReadOnly, executor.EffectIdempotent} {
		agent.Tools = append(agent.Tools, executor.WithEffect(w.tool(effect), effect))
	}
	agent.Hooks = []executor.Hook{{InDoubt: w.inDoubt}}
	if called < 1000 {
		agent.Tools = append(agent.Tools, w.subAgents(called)...)
	}
	return agent
}

// subAgents returns a sub-agent for each number that the calls of a model can have.
func (w *crashWorld) subAgents(called int) (tools []dag.Tool) {
	for turn := range 3 {
		n := called*10 + turn*3 + 1
		tools = append(tools, executor.SubAgent(fmt.Sprint("agent", n), "Does a part.", w.agentLater(n)))
	}
	return tools
}

// agentLater is the agent of a sub-agent. Its numbers begin where no other's do.
func (w *crashWorld) agentLater(n int) executor.Agent { return w.agent(1000 + n) }

// tool returns a tool with an effect. A call takes effect once for its key if the tool is idempotent.
func (w *crashWorld) tool(effect executor.Effect) executor.Tool {
	return executor.Func(fmt.Sprint("tool", int(effect)), "Does something.", func(ctx context.Context, in job) (string, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ran[in.N]++
		if in.N >= 10_000 {
			w.seen["in a sub-agent"]++
		}

		switch {
		case effect == executor.EffectIdempotent && w.ran[in.N] > 1:
			require.Equal(w.t, w.keys[in.N], executor.IdempotencyKey(ctx), "seed %d: the key of call %d", w.seed, in.N)
			w.seen["key repeated"]++
		case effect == executor.EffectIdempotent:
			w.keys[in.N] = executor.IdempotencyKey(ctx)
		case effect == executor.EffectUnknown && w.ran[in.N] > 1+w.allowed[in.N]:
			require.Fail(w.t, "a call was repeated silently", "seed %d, call %d", w.seed, in.N)
		}
		return fmt.Sprint("done ", in.N), nil
	})
}

// model returns a model that calls tools for three turns, and then answers. What it says depends on how often it has
// spoken, so that a response that was lost is made again.
func (w *crashWorld) model(called int) api.Provider {
	return apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
		turn := 0
		for _, m := range req.Messages {
			if m.Role == content.Assistant {
				turn++
			}
		}
		if turn == 3 {
			return apitest.Say("Finished.")
		}

		var calls []content.ToolUse
		for i := range 1 + w.dice(3, "calls", called, turn) {
			n := called*10 + turn*3 + i
			use := apitest.Use(fmt.Sprint("tool", w.dice(3, "tool", n)), job{n})
			if i == 1 && called < 1000 && w.dice(2, "agent", n) == 0 {
				use = apitest.Use(fmt.Sprint("agent", n), map[string]string{"task": "Do a part."})
			}
			use.ID = fmt.Sprint("call_", n)
			calls = append(calls, use)
		}
		return apitest.Call(calls...)
	}).Always())
}

// inDoubt decides in one of all ways.
func (w *crashWorld) inDoubt(_ context.Context, call executor.Call) (executor.Decision, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen["in doubt"]++
	if call.Name == "tool1" || call.Name == "tool2" {
		require.Fail(w.t, "a call that may be executed again is in doubt", "seed %d: %s", w.seed, call.Name)
	}

	switch w.rand.IntN(5) {
	case 0:
		w.allow(call)
		return executor.ExecuteAgain(), nil
	case 1:
		return executor.AskApproval("again?"), nil
	case 2:
		return executor.Deny("never mind"), nil
	case 3:
		return executor.Decision{}, errors.New("the hook failed")
	}
	return executor.Allow(), nil
}

// allow notes that a call may be executed again. The world is locked.
func (w *crashWorld) allow(call executor.Call) {
	var in job
	if call.Input.Decode(&in) == nil {
		w.allowed[in.N]++
	}
	w.seen["executed again"]++
}

// replies approves some of the calls that wait, and declines the others.
func (w *crashWorld) replies(d dag.DAG) (replies []executor.Reply) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range d.Pending() {
		if !p.Approval {
			continue
		}
		if w.rand.IntN(2) == 0 {
			w.seen["declined"]++
			replies = append(replies, executor.Declined(p, "no"))
			continue
		}
		w.seen["approved"]++
		w.allow(p.Call)
		replies = append(replies, executor.Approved(p))
	}
	return replies
}

// check looks at the conversation that is left at the end, and at those of its sub-agents.
func (w *crashWorld) check() {
	d, err := dag.Read(bytes.NewReader(w.disk))
	require.NoError(w.t, err)
	require.Empty(w.t, d.Validate(), "seed %d", w.seed)
	require.Empty(w.t, d.OpenCalls(), "seed %d", w.seed)
	require.Equal(w.t, "Finished.", d.Text(), "seed %d", w.seed)

	// Each number has one execution, finished or in doubt, and what was acknowledged is still there.
	results := map[int]string{}
	for _, n := range d.WithChildren() {
		e, ok := n.Payload().(node.ToolExecution)
		var in job
		if !ok || !strings.HasPrefix(e.Tool, "tool") || e.Input.Decode(&in) != nil {
			continue
		}
		require.NotContains(w.t, results, in.N, "seed %d: two executions of one call", w.seed)
		results[in.N] = e.Result.Text()
		if e.State == node.ExecutionInDoubt {
			w.seen["unknown"]++
		}
	}
	for n := range w.known {
		require.Equal(w.t, fmt.Sprint("done ", n), results[n], "seed %d: a result that was saved", w.seed)
	}
	for n, result := range results {
		if result == fmt.Sprint("done ", n) {
			require.Positive(w.t, w.ran[n], "seed %d: a result of a call that was never executed", w.seed)
		}
	}
}
