package executor_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// errSecret is what goes wrong in tools and hooks. No model may read it where HideErrors says so.
var errSecret = errors.New("SECRET")

func exit() { runtime.Goexit() }

// numberOf is the number of a call: from its id, else from its arguments; 0 where it cannot be told from others.
func numberOf(id string, input content.JSON) (n int64) {
	if _, err := fmt.Sscanf(id, "id-%d", &n); err == nil {
		return n
	}
	var in struct {
		N int64 `json:"n"`
	}
	if input.Decode(&in) == nil && in.N != 0 {
		return in.N
	}
	var task executor.Task
	if input.Decode(&task) == nil {
		_, _ = fmt.Sscanf(task.Task, "task %d", &n)
	}
	return n
}

type numbered struct {
	N int64  `json:"n"`
	S string `json:"s,omitempty"`
}

const handlers = "(handler)"

// props are the tools that every agent has. They are made once, because schemas take longer than scripts.
var props = sync.OnceValue(func() []dag.Tool {
	schema := content.JSON(`{"type":"object","properties":{"n":{"type":"integer"},"s":{"type":"string"}},"required":["n"]}`)
	bind := func(name string) executor.Tool {
		return executor.NewTool(content.Tool{Name: name, Schema: schema}, func(ctx context.Context, c executor.Call) (executor.Result, error) {
			return of(ctx).act(ctx, name, c)
		})
	}
	typed := executor.Func("typed", "", func(ctx context.Context, in numbered) (any, error) {
		c, _ := executor.CallOf(ctx)
		return of(ctx).act(ctx, "typed", c)
	})
	idle := executor.Func("idle", "", func(ctx context.Context, _ none) (executor.Result, error) {
		c, _ := executor.CallOf(ctx)
		return of(ctx).act(ctx, "idle", c)
	})
	return []dag.Tool{
		bind("any"), typed, idle, ownTool{},
		executor.WithMode(bind("first"), executor.ModeSequential), executor.WithMode(bind("beside"), executor.ModeParallel),
		executor.WithTimeout(bind("brief"), 2*time.Second), executor.WithMode(executor.WithTimeout(bind("patient"), 0), executor.ModeParallel),
		executor.DeferredTool(content.Tool{Name: "deferred", Schema: schema}),
	}
})

// ownTool is a tool of a program's own, which checks nothing.
type ownTool struct{}

func (ownTool) Definition() content.Tool {
	return content.Tool{Name: "own", Schema: `{"type":"object"}`}
}

func (ownTool) Call(ctx context.Context, c executor.Call) (executor.Result, error) {
	return of(ctx).act(ctx, "own", c)
}

// act is what every tool does: what its call's dice say.
func (w *witness) act(ctx context.Context, tool string, c executor.Call) (executor.Result, error) {
	w.called(ctx, tool, c)
	n := numberOf(c.ID, c.Input)
	d := w.dice("tool", uint64(n)+uint64(c.Index)<<48)
	if took := time.Duration(d.Int64N(int64(20 * time.Second))); w.calm || d.IntN(3) > 0 {
		late := false
		w.obey(func() { late = wait(ctx, took+1) != nil })
		if late {
			return executor.Result{}, ctx.Err()
		}
	}
	result := executor.Result{Content: content.Words(fmt.Sprint("echo ", n, " of ", c.Index, " ", tool))}
	switch d.IntN(24) {
	case 0:
		return executor.Result{}, errSecret
	case 1:
		panic(errSecret)
	case 2:
		exit()
	case 3:
		w.obey(func() { w.hang(ctx) })
		return executor.Result{}, ctx.Err()
	case 4:
		time.Sleep(time.Duration(d.Int64N(int64(10 * time.Minute))))
	case 5, 6:
		w.report(ctx, 1+d.IntN(100))
	case 7:
		go func() {
			time.Sleep(time.Duration(d.Int64N(int64(time.Minute))))
			w.report(ctx, 3)
		}()
	case 8, 9:
		result.Terminate = true
	case 10:
		return executor.ResultOf(content.ToolUse{Name: "any"})
	case 11:
		return executor.Result{Details: "{"}, nil
	case 12:
		return executor.Result{Content: content.Words("half"), Usage: content.Usage{Output: 3}}, errSecret
	case 13:
		result.Usage, result.Details = content.Usage{Input: d.Int64N(20), Output: d.Int64N(20)}, `{"program":1}`
	case 14:
		result.Full = content.Words(strings.Repeat("whole ", 10))
	case 15:
		result.Child = dag.New().User("a conversation of the tool's own").Assistant("yes")
	case 16:
		return executor.Result{}, nil
	case 17:
		result.Content = content.Words("cut \xff\xe2\x82 unicode")
	case 18:
		return executor.Result{Child: dag.New().Append(nil)}, nil
	case 19:
		return executor.Result{}, errors.New("")
	}
	return result, nil
}

func (w *witness) report(ctx context.Context, times int) {
	for i := range times {
		if err := executor.Progress(ctx, fmt.Sprint("step ", i)); err != nil {
			w.check("I2", false, "progress: %v", err)
		}
	}
}

// tools are the tools of an agent so deep: the props, and sub-agents.
func (w *world) tools(depth int) []dag.Tool {
	tools := props()
	if depth == 3 || w.IntN(5) > 1 {
		return tools
	}
	w.nested = true
	tools = tools[:len(tools):len(tools)]
	for i := range 1 + w.IntN(2) {
		t := executor.SubAgent(fmt.Sprint("agent", i+1), "", w.newAgent(depth+1))
		if w.one(3) {
			t = executor.WithTimeout(t, w.upTo(2*time.Minute))
		}
		if w.one(4) {
			t = executor.WithMode(t, executor.Mode(w.IntN(3)))
		}
		tools = append(tools, t)
	}
	return tools
}

// newAgent is an agent so deep inside of others, under random rules.
func (w *world) newAgent(depth int) executor.Agent {
	a := executor.Agent{Provider: mind(depth), System: "Be an agent.", Limits: w.limits(depth), Strategy: w.strategy(), HideErrors: w.one(3)}
	if a.Limits.Cost > 0 {
		a.Prices = api.Prices{"script": {Input: 1, Output: 2}}
	}
	switch {
	case w.one(12):
		a.Handler = func(ctx context.Context, c executor.Call) (any, error) { return of(ctx).act(ctx, handlers, c) }
	case depth > 0 || !w.one(5):
		a.Tools = w.tools(depth)
	}
	for i := range w.IntN(3) {
		a.Hooks = append(a.Hooks, w.newHook(fmt.Sprintf("%d/%d", depth, i), depth))
	}
	if w.one(4) {
		a.ToolTimeout = w.upTo(30*time.Second) - 3*time.Second
	}
	if w.one(4) {
		a.Grace = w.upTo(time.Minute) - 10*time.Second
	}
	if depth == 0 {
		w.batch = []bool{w.one(2), w.one(2)}
		w.queues = []*line{newLine("steer", w.batch[0]), newLine("follow", w.batch[1])}
		for range w.IntN(3) {
			w.queues[w.IntN(2)].add()
		}
		a.Steering, a.FollowUps = w.queues[0].Queue, w.queues[1].Queue
		a.SkipOnSteering = w.one(3)
	} else if !w.calm && w.one(4) {
		a.Steering = executor.NewQueue()
		_ = a.Steering.Add("for a sub-agent")
	}
	return a
}

func (w *world) limits(depth int) executor.Limits {
	l := executor.Limits{Turns: w.IntN(8) - 1}
	if w.one(6) {
		l.Calls = w.IntN(7)
	}
	if w.one(6) {
		l.CallsPerTurn = w.IntN(4)
	}
	if w.one(6) {
		l.Tokens = w.Int64N(400)
	}
	if w.one(6) {
		l.Cost = w.Float64() * 0.001
	}
	if w.one(5) && !w.calm {
		l.Time = w.upTo(time.Minute)
	}
	if w.one(6) || w.stubborn {
		l.Repeats = w.IntN(4)
	}
	if w.one(4) {
		l.Depth = w.IntN(5) - 1
	}
	return l
}

func (w *world) strategy() executor.Strategy {
	n := w.IntN(6) - 1
	switch w.IntN(12) {
	case 0, 1:
		return executor.Parallel(n)
	case 2:
		return executor.Sequential()
	case 3:
		return executor.Batched(n * 20)
	case 4:
		return executor.Batched(n)
	case 5:
		return executor.Pool(n)
	case 6, 7:
		return executor.DeferAll()
	case 8, 9:
		return w.nonsense
	}
	return nil
}

// nonsense is a strategy that forgets calls, takes them twice, and makes calls up. It is the same for the same calls.
func (w *world) nonsense(calls []executor.Ready) []executor.Batch {
	h := uint64(len(calls))
	for _, c := range calls {
		h = h*31 + uint64(numberOf(c.Call.ID, c.Call.Input))
	}
	d := w.dice("strategy", h)
	var waves []executor.Batch
	for range d.IntN(4) {
		wave := executor.Batch{Limit: d.IntN(4) - 1, Defer: d.IntN(6) == 0}
		for range d.IntN(len(calls) + 2) {
			wave.Calls = append(wave.Calls, d.IntN(len(calls)+3)-1)
		}
		waves = append(waves, wave)
	}
	return waves
}

// newHook is a hook with random functions. Each does what the dice of its name and of what it gets say.
func (w *world) newHook(name string, depth int) executor.Hook {
	var h executor.Hook
	if w.one(2) {
		h.Input = func(ctx context.Context, m content.Message) (content.Message, error) {
			return of(ctx).input(ctx, name, m)
		}
	}
	if w.one(2) {
		h.Send = func(ctx context.Context, r api.Request) (api.Request, error) { return of(ctx).send(ctx, name, r) }
	}
	if w.one(2) {
		h.Prepare = func(ctx context.Context, c executor.Call) (executor.Call, error) {
			return of(ctx).prepare(ctx, name, c)
		}
	}
	if w.one(2) {
		h.Before = func(ctx context.Context, c executor.Call) (executor.Decision, error) {
			return of(ctx).decide(ctx, name, c)
		}
	}
	if w.one(2) {
		h.After = func(ctx context.Context, c executor.Call, r executor.Result) (executor.Result, error) {
			return of(ctx).after(ctx, name, c, r)
		}
	}
	if w.one(2) {
		h.Next = func(ctx context.Context, t executor.Turn) (executor.Turn, error) {
			return of(ctx).next(ctx, name, depth, t)
		}
	}
	if w.one(3) {
		h.Resume = func(ctx context.Context, _ executor.Continuation) error { return of(ctx).mayResume(ctx, name) }
	}
	if w.one(10) {
		h.After = executor.OutputLimit{MaxBytes: w.IntN(30), MaxLines: w.IntN(4), KeepFull: w.one(2)}.Hook().After
	}
	return h
}

func (w *witness) input(ctx context.Context, hook string, m content.Message) (content.Message, error) {
	d := w.dice("input "+hook, textKey(m.Blocks.Text()))
	if err := w.trouble(ctx, d, 12); err != nil {
		return m, err
	}
	switch d.IntN(10) {
	case 0:
		return warned(m, "careful")
	case 1:
		m.Blocks = content.Words(m.Blocks.Text() + " Checked.")
	case 2:
		w.refuse(m)
		return m, errors.New("rejected")
	case 3:
		w.refuse(m)
		return content.Message{}, nil
	}
	return m, nil
}

func (w *witness) send(ctx context.Context, hook string, r api.Request) (api.Request, error) {
	d := w.dice("send "+hook, requestKey(r))
	if err := w.trouble(ctx, d, 40); err != nil {
		return r, err
	}
	if d.IntN(4) == 0 {
		r.System = append(r.System, "By the way.")
		r.Options.MaxTokens = 100
	}
	return r, nil
}

func (w *witness) prepare(ctx context.Context, hook string, c executor.Call) (executor.Call, error) {
	n := numberOf(c.ID, c.Input)
	defer w.closed(n)()
	d := w.dice("prepare "+hook, uint64(n)+uint64(c.Index))
	if err := w.trouble(ctx, d, 20); err != nil {
		return c, err
	}
	switch d.IntN(10) {
	case 0:
		c.Name = strings.ReplaceAll(c.Name, ".", "_")
	case 1:
		if !strings.HasPrefix(c.Name, "agent") && c.Name != "deferred" && c.Name != "idle" {
			c.Name = "any"
		}
	case 2:
		if n != 0 && !strings.HasPrefix(c.Name, "agent") && c.Name != "idle" {
			c.Input = content.JSON(fmt.Sprintf(`{"n":%d,"s":"prepared"}`, n))
		}
	case 3:
		c.Input, c.ID, c.Index = "[1]", "lost", 99
	}
	w.see(n, func(s *sighting) { s.never = strings.TrimPrefix(s.never, unfinished) })
	return c, nil
}

// closed says that a call whose hook does not return is never carried out, until it does.
func (w *witness) closed(n int64) (after func()) {
	w.see(n, func(s *sighting) {
		if s.never == "" {
			s.never = unfinished
		}
	})
	return func() {
		w.see(n, func(s *sighting) {
			if s.never == unfinished {
				s.never = "a hook failed"
			}
		})
	}
}

const unfinished = "a hook has not returned"

func (w *witness) decide(ctx context.Context, hook string, c executor.Call) (executor.Decision, error) {
	n := numberOf(c.ID, c.Input)
	defer w.closed(n)()
	d := w.dice("before "+hook, uint64(n)+uint64(c.Index))
	if err := w.trouble(ctx, d, 20); err != nil {
		return executor.Allow(), err
	}
	open := func(change func(*sighting)) {
		w.see(n, func(s *sighting) {
			s.never = strings.TrimPrefix(s.never, unfinished)
			if change != nil {
				change(s)
			}
		})
	}
	switch d.IntN(16) {
	case 0:
		open(func(s *sighting) { s.never = "it was denied" })
		return executor.Deny([]string{"", "no"}[d.IntN(2)]), nil
	case 1:
		result := executor.Result{
			Content: content.Words("instead"), Terminate: d.IntN(2) == 0, Usage: content.Usage{Output: d.Int64N(9)}, IsError: d.IntN(2) == 0,
		}
		if d.IntN(4) == 0 {
			result.Details = "no JSON"
		}
		open(func(s *sighting) { s.never = "its result was given by a hook" })
		return executor.UseResult(result), nil
	case 2, 3:
		if n == 0 || strings.HasPrefix(c.Name, "agent") {
			break
		}
		if d.IntN(6) == 0 {
			open(func(s *sighting) { s.never = "its arguments are no object" })
			return executor.Modify("[]"), nil
		}
		open(func(s *sighting) { s.expected, s.edited = "modified", false })
		return executor.Modify(content.JSON(fmt.Sprintf(`{"n":%d,"s":"modified"}`, n))), nil
	case 4:
		open(func(s *sighting) { s.waits = true })
		return executor.AskApproval([]string{"", "may I?"}[d.IntN(2)]), nil
	case 5:
		open(func(s *sighting) { s.never = "it was deferred" })
		return executor.Defer("elsewhere"), nil
	}
	open(nil)
	return executor.Allow(), nil
}

func (w *witness) after(ctx context.Context, hook string, c executor.Call, r executor.Result) (executor.Result, error) {
	n := numberOf(c.ID, c.Input)
	if s := w.seen(n); n != 0 && !strings.HasPrefix(c.Name, "agent") {
		w.check("I5", s.ran > 0 || s.brought || s.never == "", "After got call %d, which was never carried out: %s", n, s.never)
	}
	d := w.dice("after "+hook, uint64(n)+uint64(c.Index))
	if err := w.trouble(ctx, d, 20); err != nil {
		return r, err
	}
	switch d.IntN(12) {
	case 0:
		r.Content = content.Words(r.Content.Text() + " (after)")
	case 1:
		r.IsError = !r.IsError
	case 2:
		r.Terminate = true
	case 3:
		r.Usage.Output += 5
	case 4:
		return executor.Result{Content: content.Words("replaced")}, nil
	case 5:
		r.Details = "{"
	}
	return r, nil
}

func (w *witness) next(ctx context.Context, hook string, depth int, t executor.Turn) (executor.Turn, error) {
	d := w.dice("next "+hook, uint64(t.Number))
	for i, e := range t.Executions {
		w.check("I3", i == 0 || e.Index > t.Executions[i-1].Index, "execution %d of a turn is of call %d", i, e.Index)
	}
	w.check("I3", len(t.Results) == len(t.Executions), "%d results of %d executions", len(t.Results), len(t.Executions))
	if err := w.trouble(ctx, d, 40); err != nil {
		return t, err
	}
	switch d.IntN(16) {
	case 0:
		t.DAG = t.DAG.User(fmt.Sprint("A hook says ", t.Number))
	case 1:
		t.DAG = t.DAG.System(fmt.Sprint("A hook adds ", t.Number))
	case 2:
		t.Options.MaxTokens = 50
	case 3:
		if t.Number < 4 {
			t.Stop = ""
		}
	case 4:
		if d.IntN(3) == 0 {
			t.Stop = content.StopHook
		}
	case 5:
		if depth == 0 && t.Number > 0 && d.IntN(2) == 0 {
			w.mu.Lock()
			w.marks++
			more := fmt.Sprint("Once more #", w.marks)
			w.mu.Unlock()
			t.DAG = t.DAG.Back(1).User(more)
		}
	case 6:
		t.DAG = t.DAG.Append(node.Compaction{}) // no node: a conversation with an error
	case 7:
		t.DAG = t.DAG.Tools(props()[0])
	}
	return t, nil
}

func (w *witness) mayResume(ctx context.Context, hook string) error {
	w.mu.Lock()
	asked := w.asks
	w.mu.Unlock()
	d := w.dice("resume "+hook, uint64(asked))
	if err := w.trouble(ctx, d, 20); err != nil {
		return err
	}
	return nil
}

// mind is a model so deep inside of others. What it answers is what the dice of the request say.
type mind int

func (m mind) Stream(ctx context.Context, req api.Request) iter.Seq2[api.Event, error] {
	w := of(ctx)
	turn := w.answer(m, req)
	d := w.dice("cut", requestKey(req)+uint64(m))
	left := -1 // how many events come before the answer is cut off; negative: it is not
	if !w.calm && d.IntN(12) == 0 {
		left = d.IntN(6)
	}
	failure := []error{&api.Error{Kind: api.ErrProtocol}, &api.Error{Kind: api.ErrAuth}}[d.IntN(2)]
	return func(yield func(api.Event, error) bool) {
		arrived := false
		for event, err := range apitest.NewScript(turn).Stream(ctx, req) {
			if left == 0 && err == nil {
				if arrived {
					w.spend(m, content.Usage{Incomplete: true})
				}
				yield(nil, failure)
				return
			}
			left--
			switch e := event.(type) {
			case api.Delta, api.BlockEnd:
				arrived = true
			case api.Finish:
				w.spend(m, e.Usage)
			case api.Cut: // the answer breaks off
				e.Usage.Incomplete = true
				w.spend(m, e.Usage)
			}
			if !yield(event, err) {
				return
			}
		}
	}
}

func (w *witness) spend(m mind, u content.Usage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.spent[m] = w.spent[m].Plus(u)
}

func textKey(text string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(text))
	return h.Sum64()
}

// requestKey tells requests apart.
func requestKey(req api.Request) uint64 {
	h := fnv.New64a()
	for _, m := range req.Messages {
		for _, b := range m.Blocks.All() {
			switch b := b.(type) {
			case content.Text:
				h.Write([]byte(b.Text))
			case content.ToolUse:
				h.Write([]byte(b.ID + string(b.Input)))
			case content.ToolResult:
				h.Write([]byte(b.Content.Text()))
			}
			h.Write([]byte{0})
		}
	}
	return h.Sum64()
}

// answer is a turn of the model.
func (w *witness) answer(m mind, req api.Request) apitest.Turn {
	key := requestKey(req)
	d := w.dice("answer", key+uint64(m))
	if d.IntN(3) == 0 {
		_, notes := dialect.Repair(req.Messages, dialect.Rules{EndsOpen: func(content.Message) bool { return true }})
		for _, note := range notes {
			w.check("I1", expected(note), "a request is no conversation: %v", note)
		}
	}
	w.mu.Lock()
	w.asked[key]++
	times := w.asked[key]
	w.mu.Unlock()
	if times > 6 {
		return apitest.Say("Enough.").Wait(time.Second)
	}
	turn := apitest.Turn{}
	if d.IntN(2) == 0 {
		turn = apitest.Say(fmt.Sprint("So ", key%1000, "."))
	}
	calls := d.IntN(5)
	if d.IntN(30) == 0 {
		calls = 12
	}
	if len(req.Messages) > 10 || len(req.Tools) == 0 && d.IntN(2) == 0 {
		calls = 0
	}
	numbers := make([]int64, calls)
	blocks := make([]content.Block, calls)
	for i := range calls {
		numbers[i] = int64(key>>18)<<4 | int64(i)
		name := []string{"unknown", "", "any.thing", "agent1"}[d.IntN(4)]
		if len(req.Tools) > 0 && d.IntN(10) > 0 {
			name = req.Tools[d.IntN(len(req.Tools))].Name
		}
		blocks[i] = newCall(d, name, numbers[i])
		if w.stubborn {
			blocks[i] = content.ToolUse{Name: "idle", Input: "{}"}
		}
	}
	turn = withBlocks(turn, d, blocks)
	switch d.IntN(24) {
	case 0, 1:
		turn = turn.Stop([]content.Stop{content.StopMaxTokens, content.StopContext}[d.IntN(2)])
		for i, n := range slices.Backward(numbers) {
			use, ok := blocks[i].(content.ToolUse)
			if ok && numberOf(use.ID, use.Input) == n {
				w.never(n, "the answer was cut off in it")
			}
			if ok {
				break // the calls before it are whole
			}
		}
	case 2:
		turn = turn.Stop(content.StopPause)
	case 3:
		if times < 3 && !w.calm {
			turn = turn.Fail(&api.Error{Kind: api.ErrOverloaded})
		}
	case 4:
		turn = turn.Fail(&api.Error{Kind: api.ErrAuth})
		for i, n := range numbers {
			if use, ok := blocks[i].(content.ToolUse); ok && numberOf(use.ID, use.Input) == n {
				w.never(n, "its answer broke off")
			}
		}
	case 5:
		if !w.calm && !w.eternal && d.IntN(3) == 0 {
			turn = turn.Hang()
		}
	}
	if d.IntN(6) == 0 {
		turn = turn.Repaired(api.RepairNote{Kind: "merged"})
	}
	turn = turn.Usage(content.Usage{Input: d.Int64N(20), Output: d.Int64N(60)})
	if d.IntN(30) == 0 {
		turn = turn.As("script", "unpriced")
	}
	return turn.Wait(1 + time.Duration(d.Int64N(int64(10*time.Second))))
}

// withBlocks adds calls to the turn: exactly as they are, so that ids can be empty.
func withBlocks(turn apitest.Turn, d *rand.Rand, calls []content.Block) apitest.Turn {
	if len(calls) == 0 {
		return turn
	}
	said := []content.Block{}
	if d.IntN(2) == 0 {
		said = append(said, content.Text{Text: "I call."})
	}
	return apitest.Answer(append(said, calls...)...)
}

// newCall is a call with a number, sometimes with arguments that are none and ids that say nothing.
func newCall(d *rand.Rand, name string, n int64) content.ToolUse {
	c := content.ToolUse{Name: name, ID: fmt.Sprint("id-", n), Input: content.JSON(fmt.Sprintf(`{"n":%d,"s":"said"}`, n))}
	switch {
	case strings.HasPrefix(name, "agent"):
		c.Input = content.JSON(fmt.Sprintf(`{"task":"task %d"}`, n))
	case name == "idle":
		c.Input = []content.JSON{"{}", "", "null", " "}[d.IntN(4)]
	}
	switch d.IntN(10) {
	case 0:
		c.Input = []content.JSON{"", "{", "[]", `{"n":"x"}`, `{"s":1}`, "{\"n\":1,\"s\":\"\\ud8", "null"}[d.IntN(7)]
	case 1:
		c.Input = "```json\n" + c.Input + "\n```"
	case 2:
		c.Input, _ = content.ToJSON(string(c.Input))
	}
	switch d.IntN(12) {
	case 0:
		c.ID = "same"
	case 1:
		c.ID = ""
	case 2:
		c.ID = []string{"call_0", "call_1", "call_1_2", "\xffid"}[d.IntN(4)]
	}
	return c
}
