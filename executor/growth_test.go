package executor_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"testing"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/registry"
	"github.com/plait-dev/plait/executor/replay"
	"github.com/plait-dev/plait/internal/testkit/growthtest"
)

// busy is a model that calls a tool in each of its first answers, and does not look at what it is sent.
type busy struct {
	turns    int
	parallel int // calls in each answer; defaults to 1
	thinks   bool
	says     string // its last answer; defaults to "Done."
	asked    int
}

func (b *busy) Stream(context.Context, api.Request) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		b.asked++
		var blocks []content.Block
		if b.thinks {
			blocks = append(blocks, content.Thinking{Text: "hm", Signature: "s"})
		}
		stop := content.StopToolUse
		for i := range max(b.parallel, 1) {
			blocks = append(blocks, apitest.Use("fast", content.JSON(fmt.Sprintf(`{"n":%d,"i":%d}`, b.asked, i))))
		}
		if b.asked > b.turns {
			blocks, stop = []content.Block{content.Text{Text: cmp.Or(b.says, "Done.")}}, content.StopEndTurn
		}
		for i, block := range blocks {
			if !yield(api.BlockEnd{Index: i, Block: block}, nil) {
				return
			}
		}
		yield(api.Finish{Stop: stop, Model: "busy", Usage: content.Usage{Input: 1, Output: 1}}, nil)
	}
}

// runOf is a run of n turns by the agent that setup makes.
func runOf(setup func(*executor.Agent, *busy)) func(t testing.TB, n int) func() {
	return func(t testing.TB, n int) func() {
		model := &busy{turns: n}
		a := executor.Agent{Provider: model, Limits: executor.Limits{Turns: -1}, Log: slog.New(slog.DiscardHandler)}
		setup(&a, model)
		d := ask(anything)
		return func() {
			got, err := a.Run(context.Background(), d)
			check(err)
			if got.Len() < n {
				panic(fmt.Sprint("a run of ", n, " turns has ", got.Len(), " nodes"))
			}
		}
	}
}

// anything is the tool that busy calls, with any arguments.
var anything = executor.NewTool(content.Tool{Name: "fast", Schema: `{"type":"object"}`},
	func(context.Context, executor.Call) (executor.Result, error) {
		return executor.Result{Content: content.Words("a result of some length")}, nil
	})

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func nextHook(next func(executor.Turn) executor.Turn) executor.Hook {
	return executor.Hook{Next: func(_ context.Context, turn executor.Turn) (executor.Turn, error) { return next(turn), nil }}
}

// TestGrowth checks that a run costs the same at each turn, whatever is in its loop, and how other operations grow.
func TestGrowth(t *testing.T) {
	const flat, linear = growthtest.Flat, growthtest.Linear
	var cases []growthtest.Case
	for _, run := range []struct {
		name  string
		setup func(*executor.Agent, *busy)
	}{
		{"nothing", func(*executor.Agent, *busy) {}},
		{"thinking", func(_ *executor.Agent, b *busy) { b.thinks = true }},
		{"Next, idle", hooked(nextHook(func(turn executor.Turn) executor.Turn { return turn }))},
		{"Next, appends a message", hooked(nextHook(func(turn executor.Turn) executor.Turn {
			turn.DAG = turn.DAG.User("Go on.")
			return turn
		}))},
		{"Next, appends a record", hooked(nextHook(func(turn executor.Turn) executor.Turn {
			turn.DAG = turn.DAG.Custom("acme.turn", turn.Number)
			return turn
		}))},
		{"Prepare", hooked(executor.Underscores())},
		{"Before", hooked(executor.Only("fast"))},
		{"After", hooked(executor.OutputLimit{MaxBytes: 10, MaxLines: 1, KeepFull: true}.Hook())},
		{"AskAgain", hooked(executor.AskAgain())},
		{"Compaction, idle", hooked(executor.Compaction{Budget: math.MaxInt}.Hook())},
		{"Compaction, idle, counts by itself", hooked(executor.Compaction{
			Budget: math.MaxInt, Count: func(messages []content.Message) int { return len(messages) },
		}.Hook())},
		{"Compaction, thinking", func(a *executor.Agent, b *busy) {
			b.thinks = true
			a.Hooks = []executor.Hook{executor.Compaction{Budget: 300}.Hook()}
		}},
		{"Compaction", hooked(executor.Compaction{Budget: 300}.Hook())},
		{"all hooks", hooked(executor.Underscores(), executor.Only("fast"),
			executor.OutputLimit{MaxBytes: 10, MaxLines: 1, KeepFull: true}.Hook(), executor.AskAgain(),
			executor.Compaction{Budget: 300}.Hook())},
		{"limits", func(a *executor.Agent, _ *busy) {
			a.Limits = executor.Limits{
				Turns: -1, Calls: math.MaxInt, CallsPerTurn: 10, Tokens: 1 << 40, Cost: 1e9, Repeats: 3,
			}
			a.Prices = api.Prices{"busy": {Input: 1, Output: 1}}
		}},
		{"a registry", func(a *executor.Agent, _ *busy) {
			var r registry.Registry
			check(r.Register(manyTools(10)...))
			a.Tools = append(r.Tools(), anything)
		}},
		{"System", func(a *executor.Agent, _ *busy) { a.System = "Be brief." }},
	} {
		cases = append(cases, growthtest.Case{Name: "Run/" + run.name, Growth: linear, Setup: runOf(run.setup)})
	}

	// A Send hook gets a request of its own, with a copy of the list of messages: 24 bytes for each message at each turn.
	send := executor.Hook{Send: func(_ context.Context, req api.Request) (api.Request, error) { return req, nil }}
	cases = append(cases,
		growthtest.Case{Name: "Run/Send, the next turn", Growth: growthtest.FlatButCopies, Setup: nextTurn(hooked(send))},
		growthtest.Case{Name: "Run/the next turn", Growth: flat, Setup: nextTurn(func(*executor.Agent, *busy) {})},
		growthtest.Case{Name: "Run/the next turn, AskAgain and Compaction", Growth: flat,
			Setup: nextTurn(hooked(executor.AskAgain(), executor.Compaction{Budget: math.MaxInt}.Hook()))},
		growthtest.Case{Name: "Run/many calls in one answer", Growth: linear, Setup: func(_ testing.TB, n int) func() {
			a := executor.Agent{Provider: &busy{turns: 1, parallel: n}, Strategy: executor.Sequential()}
			return func() {
				_, err := a.Run(context.Background(), ask(anything))
				check(err)
			}
		}},
		growthtest.Case{Name: "ExecuteTools", Growth: linear, Setup: func(_ testing.TB, n int) func() {
			d := ask(anything).Assistant("", uses(n)...)
			return func() {
				_, err := executor.Agent{Strategy: executor.Sequential()}.ExecuteTools(context.Background(), d)
				check(err)
			}
		}},
		growthtest.Case{Name: "ExecuteTools after a long conversation", Growth: flat, Setup: func(_ testing.TB, n int) func() {
			d := chatter(n)
			d.Transcript()
			d = d.User("Once more.").Assistant("", uses(1)...)
			return func() {
				_, err := executor.ExecuteTools(context.Background(), d)
				check(err)
			}
		}},
		growthtest.Case{Name: "Resume with all results", Growth: linear, Setup: resume(func(n int) int { return n })},
		growthtest.Case{Name: "Resume with one result", Growth: linear, Setup: resume(func(int) int { return 1 })},
		growthtest.Case{Name: "Resume with all results, ClaimOnce", Growth: linear,
			Setup: resume(func(n int) int { return n }, executor.ClaimOnce())},
		// The results are appended to the list of messages. The list is copied with room for more: 160 bytes a message, more
		// than FlatButCopies allows if there are many more messages than in the small case.
		growthtest.Case{Name: "Resume after a long conversation, ClaimOnce", Growth: growthtest.FlatButCopies, Small: 500, Large: 1000, Fixed: true, Setup: func(_ testing.TB, n int) func() {
			d := chatter(n).Tools(anything).User("Go.")
			d.Transcript()
			a := executor.Agent{Provider: &busy{turns: 1}, Strategy: executor.DeferAll(), Hooks: []executor.Hook{executor.ClaimOnce()}}
			d, err := a.Run(context.Background(), d)
			var paused *executor.PausedError
			if !errors.As(err, &paused) {
				panic(fmt.Sprint("no pause: ", err))
			}
			reply := executor.Returned(d.Pending()[0], executor.Result{Content: content.Words("done")})
			return func() {
				_, err := a.Resume(context.Background(), d, reply)
				check(err)
			}
		}},
		growthtest.Case{Name: "Input of many waiting messages", Growth: linear, Setup: func(_ testing.TB, n int) func() {
			q := executor.NewQueue()
			for i := range n {
				check(q.Add(fmt.Sprint("message ", i)))
			}
			input := executor.Hook{Input: func(_ context.Context, m content.Message) (content.Message, error) {
				return warned(m, "read twice")
			}}
			a := executor.Agent{Provider: &busy{turns: 1}, Steering: q, Hooks: []executor.Hook{input}}
			return func() {
				_, err := a.Run(context.Background(), ask(anything))
				check(err)
				if q.Len() > 0 {
					panic(fmt.Sprint(q.Len(), " messages still wait"))
				}
			}
		}},
		growthtest.Case{Name: "RunFor", Growth: linear, Setup: func(_ testing.TB, n int) func() {
			a := executor.Agent{Provider: &busy{turns: n, says: `{"n":42}`}, Limits: executor.Limits{Turns: -1}}
			return func() { runFor(a, ask(anything)) }
		}},
		// The second run on from one conversation has a list of messages of its own.
		growthtest.Case{Name: "RunFor after a long conversation", Growth: growthtest.FlatButCopies, Setup: func(_ testing.TB, n int) func() {
			a, d := executor.Agent{Provider: &busy{says: `{"n":42}`}}, chatter(n).User("How many?")
			d.Transcript()
			runFor(a, d) // what is remembered of the conversation is there
			return func() { runFor(a, d) }
		}},
		growthtest.Case{Name: "Registry.Register", Growth: growthtest.LogLinear, Setup: func(_ testing.TB, n int) func() {
			list := manyTools(n)
			return func() {
				var r registry.Registry
				for _, tool := range list {
					check(r.Register(tool))
				}
			}
		}},
		growthtest.Case{Name: "Registry.Register, at once", Growth: growthtest.LogLinear, Setup: func(_ testing.TB, n int) func() {
			list := manyTools(n)
			return func() {
				var r registry.Registry
				check(r.Register(list...))
			}
		}},
		growthtest.Case{Name: "Registry, Tools and Definitions", Growth: linear, Setup: func(_ testing.TB, n int) func() {
			r := registryOf(n)
			return func() {
				r.Tools()
				r.Definitions()
			}
		}},
		growthtest.Case{Name: "Registry.Execute, many tools", Growth: flat, Setup: func(_ testing.TB, n int) func() {
			r := registryOf(n)
			return func() {
				if record := r.Execute(context.Background(), "tool_5", nil); !record.Success {
					panic(fmt.Sprint(record))
				}
			}
		}},
		// Each tool is added to a tree, in which the path to it is copied.
		growthtest.Case{Name: "Run/many tools", Growth: growthtest.LogLinear, Setup: func(_ testing.TB, n int) func() {
			a := executor.Agent{Provider: &busy{turns: 1}, Tools: registryOf(n).Tools()}
			a.Tools = append(a.Tools, anything)
			return func() {
				_, err := a.Run(context.Background(), ask())
				check(err)
			}
		}},
		growthtest.Case{Name: "ReplayTools", Growth: linear, Setup: func(_ testing.TB, n int) func() {
			d := chatter(n)
			return func() {
				_, err := replay.Tools(context.Background(), executor.Agent{}, d, false, nil)
				check(err)
			}
		}},
		growthtest.Case{Name: "Recording", Growth: linear, Setup: func(_ testing.TB, n int) func() {
			d := chatter(n)
			return func() {
				tape := replay.NewRecording(d)
				for i := range n {
					_, err := tape.Handle(context.Background(), executor.Call{Name: "fast", Input: content.JSON(fmt.Sprintf(`{"n":%d}`, i))})
					check(err)
				}
			}
		}},
		growthtest.Case{Name: "Compact", Growth: linear, Setup: func(_ testing.TB, n int) func() {
			d := chatter(n)
			return func() {
				_, err := executor.Compaction{Budget: 1000}.Compact(context.Background(), d)
				check(err)
			}
		}},
	)

	// Ten more turns of a conversation that is no chain. One turn alone may be the one at which the list of messages is made longer.
	for name, shape := range map[string]func(n int) dag.DAG{
		"ladder": func(n int) dag.DAG {
			d := dag.New().User("Start")
			for range n {
				d = d.Assistant("left").Join(d.Assistant("right")).User("both")
			}
			return d
		},
		"many refs": func(n int) dag.DAG {
			d := dag.New().User("Start")
			for i := range n {
				d = d.Assistant("answer").User("on").WithRef(fmt.Sprint("ref ", i))
			}
			return d
		},
		"nested": func(n int) dag.DAG {
			d := dag.New().User("Innermost")
			for range n {
				d = dag.New().SubGraph("outer", d)
			}
			return d.User("Go.")
		},
		"many sub-agents": func(n int) dag.DAG {
			d := dag.New().User("Start")
			for range n {
				d = d.SubGraph("agent", dag.New().User("Task").Assistant("Done"))
			}
			return d.User("Go.")
		},
	} {
		// In ten turns the list of messages may outgrow its room once, and is copied then.
		cases = append(cases, growthtest.Case{Name: "Run/the next ten turns/" + name, Growth: growthtest.FlatButCopies, Setup: func(_ testing.TB, n int) func() {
			a := executor.Agent{Provider: &busy{}}
			d, err := a.Run(context.Background(), shape(n))
			check(err)
			return func() {
				for range 10 {
					d, err = a.Run(context.Background(), d.User("And now?"))
					check(err)
				}
			}
		}})
	}
	growthtest.Run(t, cases)
}

func runFor(a executor.Agent, d dag.DAG) {
	got, _, err := executor.RunFor[struct {
		N int `json:"n"`
	}](context.Background(), a, d)
	check(err)
	if got.N != 42 {
		panic(fmt.Sprint("another answer: ", got))
	}
}

// manyTools returns n tools.
func manyTools(n int) []executor.Tool {
	list := make([]executor.Tool, n)
	for i := range list {
		list[i] = executor.NewTool(content.Tool{Name: fmt.Sprint("tool_", i), Schema: `{"type":"object"}`},
			func(context.Context, executor.Call) (executor.Result, error) {
				return executor.Result{Content: content.Words("done")}, nil
			})
	}
	return list
}

func registryOf(n int) *registry.Registry {
	var r registry.Registry
	check(r.Register(manyTools(n)...))
	return &r
}

func hooked(hooks ...executor.Hook) func(*executor.Agent, *busy) {
	return func(a *executor.Agent, _ *busy) { a.Hooks = hooks }
}

// nextTurn is a run of one turn in a conversation of n turns.
func nextTurn(setup func(*executor.Agent, *busy)) func(t testing.TB, n int) func() {
	return func(t testing.TB, n int) func() {
		model := &busy{}
		a := executor.Agent{Provider: model}
		setup(&a, model)
		d, err := a.Run(context.Background(), chatter(n).User("Go."))
		check(err)
		d = d.User("And now?")
		return func() {
			_, err := a.Run(context.Background(), d)
			check(err)
		}
	}
}

func uses(n int) []content.Block {
	blocks := make([]content.Block, n)
	for i := range blocks {
		blocks[i] = content.ToolUse{ID: fmt.Sprint("call_", i), Name: "fast", Input: "{}"}
	}
	return blocks
}

// resume brings so many of the results of n deferred calls.
func resume(results func(n int) int, hooks ...executor.Hook) func(t testing.TB, n int) func() {
	return func(t testing.TB, n int) func() {
		deferAll := executor.Hook{Before: func(context.Context, executor.Call) (executor.Decision, error) { return executor.Defer(""), nil }}
		a := executor.Agent{Provider: &busy{turns: 1, parallel: n}, Hooks: append(hooks, deferAll)}
		d, err := a.Run(context.Background(), ask(anything))
		var paused *executor.PausedError
		if !errors.As(err, &paused) {
			panic(fmt.Sprint("no pause: ", err))
		}
		var replies []executor.Reply
		for _, p := range d.Pending()[:results(n)] {
			replies = append(replies, executor.Returned(p, executor.Result{Content: content.Words("done")}))
		}
		return func() {
			_, err := a.Resume(context.Background(), d, replies...)
			var again *executor.PausedError
			if results(n) < n && errors.As(err, &again) {
				return // for the other results
			}
			check(err)
		}
	}
}
