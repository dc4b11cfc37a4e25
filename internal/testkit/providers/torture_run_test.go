package providers

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

// tortureRun is one run of an agent: what every seam does in it, and what the model is told of that.
type tortureRun struct {
	*torture
	*tortured
	agent executor.Agent
	dice  *rand.Rand  // of the program's own goroutine
	seed  uint64      // of all other decisions
	how   string      // the operation: run, cancel, abort or crash
	calm  bool        // nothing fails but what the operation is for
	saves int         // until the program dies; negative: never
	dead  bool        // the program died in a save, or afterwards
	turns map[int]int // how often each model was asked, by task
	since int         // the last number of a call before the run
	begun bool        // the run was not refused
}

type tortureKey struct{}

// runOf returns the run that a seam is called in.
func runOf(ctx context.Context) *tortureRun { r, _ := ctx.Value(tortureKey{}).(*tortureRun); return r }

// at returns the dice of a decision, the same for the same program.
func (r *tortureRun) at(what ...any) *rand.Rand {
	return rand.New(rand.NewPCG(r.seed, hash(fmt.Sprint(what...))))
}

// newRun prepares a run of an agent with options, hooks and faults at random.
func (p *torture) newRun(c *tortured, dice *rand.Rand, how string) *tortureRun {
	r := &tortureRun{
		torture: p, tortured: c, dice: dice, seed: dice.Uint64(), how: how, calm: dice.IntN(3) == 0,
		saves: -1, turns: map[int]int{}, since: p.calls,
	}
	r.agent = r.newAgent(0)
	r.agent.Steering, r.agent.Save = c.queue, r.save
	if how == "crash" {
		r.saves = dice.IntN(7)
	}
	if c.store == nil {
		r.agent.Save = nil
	}
	return r
}

func (r *tortureRun) newAgent(task int) executor.Agent {
	dice := r.at("agent", task)
	a := executor.Agent{
		Name: "torture", Provider: api.NewClient(tortureModel{r}, &api.ClientOptions{Attempts: 2, MinWait: time.Second}),
		Options: api.Options{Cache: api.CacheOff, MaxTokens: 20_000}, Tools: tortureTools(), Grace: time.Second,
		Strategy: []executor.Strategy{executor.Parallel(0), executor.Sequential(), executor.Batched(2), executor.Pool(2)}[dice.IntN(4)],
		Hooks: []executor.Hook{
			{Before: beforeTorture, InDoubt: inDoubtTorture, After: afterTorture, Observe: observeTorture},
			executor.RequireApproval("ask"),
		},
	}
	if task == 0 {
		a.Tools = append(a.Tools, executor.SubAgent("agent", "Does a part.", r.newAgent(1)))
		if dice.IntN(6) == 0 {
			a.Limits.Turns = 1 + dice.IntN(2)
		}
	}
	return a
}

// The hooks fail now and then, in all ways.

func beforeTorture(ctx context.Context, c executor.Call) (executor.Decision, error) {
	r := runOf(ctx)
	dice, f := r.at("before", c.ID), r.fact(c.ID)
	if r.calm || dice.IntN(10) > 0 {
		return executor.Allow(), nil
	}
	r.count("hook")
	r.set(func() { f.fails = true })
	switch dice.IntN(4) {
	case 0:
		panic("a hook")
	case 1:
		return executor.Decision{}, errors.New("the hook fails")
	case 2:
		runtime.Goexit()
	}
	return executor.Deny("no"), nil
}

func afterTorture(ctx context.Context, c executor.Call, result executor.Result) (executor.Result, error) {
	r := runOf(ctx)
	if dice := r.at("after", c.ID); !r.calm && dice.IntN(20) == 0 {
		r.count("hook")
		f := r.fact(c.ID)
		r.set(func() { f.fails = true })
		return result, errors.New("the hook fails")
	}
	return result, nil
}

func inDoubtTorture(ctx context.Context, c executor.Call) (executor.Decision, error) {
	r := runOf(ctx)
	f := r.fact(c.ID)
	r.count("in doubt")
	r.check(3, f.tool != "read" && f.tool != "once", "a call that may be executed again is in doubt: %s", c.ID)
	switch r.at("doubt", c.ID).IntN(5) {
	case 0:
		r.set(func() { f.may++; f.allowed = true })
		return executor.ExecuteAgain(), nil
	case 1:
		return executor.AskApproval("again?"), nil
	case 2:
		return executor.Deny("never mind"), nil
	case 3:
		panic("a hook")
	}
	return executor.Allow(), nil
}

func observeTorture(ctx context.Context, e executor.Event, _ error) context.Context {
	if r := runOf(ctx); r.at("observe", fmt.Sprintf("%T", e)).IntN(30) == 0 {
		r.count("observer")
		panic("an observer")
	}
	return ctx
}

// fact returns what is known of a call.
func (r *tortureRun) fact(id string) *fact {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f := r.t.facts[number(id)]; f != nil {
		return f
	}
	return &fact{}
}

func (r *tortureRun) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

// tortureTools are the tools: act and ask have an effect, read and once may be called again, and later is executed elsewhere.
func tortureTools() []dag.Tool {
	tool := func(name string) executor.Tool { return executor.NewTool(tortureTool(name), workTorture) }
	return []dag.Tool{
		tool("act"), tool("ask"), executor.WithEffect(tool("read"), executor.EffectReadOnly),
		executor.WithEffect(tool("once"), executor.EffectIdempotent), executor.DeferredTool(tortureTool("later")),
	}
}

func tortureTool(name string) content.Tool {
	schema := content.JSON(`{"type":"object","properties":{"s":{"type":"string"}},"required":["s"]}`)
	return content.Tool{Name: name, Description: "Does something.", Schema: schema}
}

// workTorture is what every tool does: what the dice of its call say.
func workTorture(ctx context.Context, c executor.Call) (executor.Result, error) {
	r := runOf(ctx)
	f := r.fact(c.ID)
	dice, why := rand.New(rand.NewPCG(f.dice, 0)), ""
	r.set(func() { why = f.call(executor.IdempotencyKey(ctx)); f.given = "" })
	r.check(3, why == "", "%s: %s", c.ID, why)

	fault := dice.IntN(16)
	if r.calm {
		fault = 16
	}
	if fault < 6 {
		r.count("tool")
		r.set(func() { f.fails = true })
	}
	took := time.Duration(1+dice.IntN(20_000)) * time.Millisecond
	switch fault {
	case 0:
		return executor.Result{}, errors.New("the tool fails")
	case 1:
		panic("a tool")
	case 2:
		runtime.Goexit()
	case 3:
		<-ctx.Done() // until its time is up
		return executor.Result{}, ctx.Err()
	case 4:
		time.Sleep(time.Minute) // and does not care
	case 5:
		return executor.Result{Details: "{"}, nil
	case 6, 7:
		_ = executor.Progress(ctx, "so far")
	}
	if wait(ctx, took) != nil {
		return executor.Result{}, ctx.Err()
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	said := r.word()
	if f.final == nil {
		f.given = said
	}
	return executor.Result{Content: content.Words(said)}, nil
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// tortureModel is the model of a run: one of the APIs, behind its strict fake. It compares what it is sent, and fails.
type tortureModel struct{ *tortureRun }

func (m tortureModel) Stream(ctx context.Context, req api.Request) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		task := m.request(req)
		said, blocks, dice := m.answer(task)
		fault := dice.IntN(12)
		if m.calm {
			fault = 12
		}
		if fault < 4 {
			m.count("provider")
		}
		left := -1
		switch fault {
		case 0:
			yield(nil, &api.Error{Kind: api.ErrOverloaded})
			return
		case 1:
			if dice.IntN(4) == 0 {
				yield(nil, &api.Error{Kind: api.ErrAuth})
				return
			}
		case 2:
			if m.how == "cancel" {
				<-ctx.Done()
				yield(nil, ctx.Err())
				return
			}
		case 3:
			left = dice.IntN(4)
		}

		ctx = context.WithValue(ctx, blocksKey{}, blocks)
		shown := ""
		for e, err := range m.model(m.provider).Stream(ctx, req) {
			delta, isDelta := e.(api.Delta)
			end, _ := e.(api.BlockEnd)
			_, isCall := end.Block.(content.ToolUse)
			if left == 0 || left > 0 && (isCall || isDelta && delta.Kind == api.DeltaInput) {
				m.cut(task, shown)
				yield(nil, &api.Error{Kind: api.ErrTransport})
				return
			}
			left--
			if text, ok := end.Block.(content.Text); ok {
				shown = text.Text
			} else if isDelta && delta.Kind == api.DeltaText {
				shown += delta.Text
			}
			if _, ok := e.(api.Finish); ok {
				m.finish(task, said)
			} else if err != nil {
				m.cut(task, shown)
			}
			if !yield(e, err) {
				m.cut(task, shown)
				return
			}
		}
	}
}

// request compares a request with the model (invariant 2), and returns the task that it belongs to.
func (m tortureModel) request(req api.Request) (task int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	task = taskOf(req.Messages)
	if why := m.t.agreeTask(task, req.Messages); why != "" {
		m.wrong(2, "a request: %s", why)
	}
	if said, ok := m.t.said[task]; ok {
		m.wrong(2, "a request without the response %+v", said)
	}
	return task
}

// answer returns what the model says next: calls for three turns, then a text.
func (m tortureModel) answer(task int) (said line, blocks []content.Block, dice *rand.Rand) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turns[task]++
	dice = m.at("answer", task, m.turns[task])
	said.role = content.Assistant
	calls := dice.IntN(4)
	if m.turns[task] > 3 {
		calls = 0
	}
	if calls == 0 || dice.IntN(2) == 0 {
		said.text = m.word()
		if m.provider/2 != 1 && dice.IntN(4) == 0 {
			blocks = append(blocks, content.Thinking{Text: "Hm.", Signature: "c2lnbmVk"})
		}
		blocks = append(blocks, content.Text{Text: said.text})
	}
	for range calls {
		use := m.newCall(dice, task == 0)
		said.calls, blocks = append(said.calls, use.ID), append(blocks, use)
	}
	return said, blocks, dice
}

// newCall makes a call with a number of its own. The lock must be held.
func (r *tortureRun) newCall(dice *rand.Rand, agents bool) content.ToolUse {
	r.calls++
	n := r.calls
	tool := []string{"act", "act", "ask", "read", "once", "later", "agent"}[dice.IntN(7)]
	if tool == "agent" && !agents {
		tool = "act"
	}
	r.t.facts[n] = &fact{tool: tool, dice: dice.Uint64(), fails: r.how != "run"}
	use := content.ToolUse{ID: fmt.Sprint("c", n), Name: tool, Input: content.JSON(fmt.Sprintf(`{"s":%q}`, argument(n)))}
	if tool == "agent" {
		use.Input = content.JSON(fmt.Sprintf(`{"task":"task %d"}`, n))
		f := r.t.facts[n]
		f.fails, f.any = true, r.agent.Limits.Turns > 0 // it may fail by itself
	}
	return use
}

// finish notes a whole response.
func (m tortureModel) finish(task int, said line) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.t.said[task] = said
	delete(m.t.shown, task)
	if f := m.t.facts[task]; f != nil && len(said.calls) == 0 {
		f.given = said.text
	}
}

// cut notes the part of a response that arrived.
func (m tortureModel) cut(task int, shown string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.t.shown[task] = append(slices.Clip(m.t.shown[task]), shown)
}

// save is where the program may die, and where all that is saved must be known.
func (r *tortureRun) save(_ context.Context, d dag.DAG) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.dead:
		r.wrong(10, "a save after the program died")
		return errDied
	case r.saves == 0:
		r.dead, r.dying = true, d
		return r.store.dies(d, r.dice)
	case !r.calm && r.dice.IntN(8) == 0:
		r.store.fail(1 + r.dice.IntN(2))
		r.count("store")
	}
	r.saves--
	return r.acknowledge(r.tortured, d)
}
