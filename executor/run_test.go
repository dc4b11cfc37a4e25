package executor_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

func TestToolThatIgnoresItsContextIsAnsweredOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var answered time.Duration
		var d dag.DAG
		for event, err := range (executor.Agent{Provider: once(call("deaf"), call("fast"))}).Stream(t.Context(), ask(deaf, fast)) {
			require.NoError(t, err)
			switch e := event.(type) {
			case executor.ToolEnd:
				answered = time.Since(start)
				if e.Execution.Tool == "deaf" {
					require.Equal(t, 30*time.Second, e.Execution.Ended.Sub(e.Execution.Started))
				}
			case executor.End:
				d = e.DAG
			}
		}
		require.Equal(t, 30*time.Second, answered)
		require.Equal(t, []string{"error: Tool exceeded timeout of 30s.", "fast"}, outcomes(t, d))
		require.Equal(t, 31*time.Second, time.Since(start), "the end of the run waits for the tool, as long as its grace")
		require.Equal(t, content.StopEndTurn, stopped(t, d).Reason)

		before := d.Len()
		time.Sleep(2 * time.Hour) // the tool returns at last
		require.Equal(t, before, d.Len())
		require.Equal(t, "Tool exceeded timeout of 30s.", results(t, d)[0].Content.Text())
	})
}

func TestTimeouts(t *testing.T) {
	for _, test := range []struct {
		name   string
		agent  executor.Agent
		tool   executor.Tool
		want   string
		passed time.Duration
	}{
		{"default", executor.Agent{}, slow, "error: Tool exceeded timeout of 30s.", 30 * time.Second},
		{"agent's", executor.Agent{ToolTimeout: 100 * time.Millisecond}, slow, "error: Tool exceeded timeout of 100ms.", 100 * time.Millisecond},
		{"tool's before agent's", executor.Agent{ToolTimeout: 5 * time.Second}, executor.WithTimeout(slow, 50*time.Millisecond),
			"error: Tool exceeded timeout of 50ms.", 50 * time.Millisecond},
		{"tool's longer than agent's", executor.Agent{ToolTimeout: time.Second}, executor.WithTimeout(slow, 2*time.Second),
			"error: Tool exceeded timeout of 2s.", 2 * time.Second},
		{"none for the agent", executor.Agent{ToolTimeout: -1}, slow, "", time.Hour},
		{"none for the tool", executor.Agent{}, executor.WithTimeout(slow, 0), "", time.Hour},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				test.agent.Provider = once(call("slow"))
				d, err := test.agent.Run(t.Context(), ask(test.tool))
				require.NoError(t, err)
				require.Equal(t, []string{test.want}, outcomes(t, d))
				require.Equal(t, test.passed, time.Since(start))
			})
		})
	}
}

func TestParallelLimitsHowManyToolsRunAtOnce(t *testing.T) {
	for limit, want := range map[int]time.Duration{0: 1, 1: 6, 2: 3, 4: 2, 100: 1} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			second := tool("second", func(ctx context.Context) (any, error) { return "", wait(ctx, time.Second) })
			s := call("second")
			_, err := executor.Agent{Provider: once(s, s, s, s, s, s), Strategy: executor.Parallel(limit)}.Run(t.Context(), ask(second))
			require.NoError(t, err)
			require.Equal(t, want*time.Second, time.Since(start), "limit %d", limit)
		})
	}
}

func TestTimeoutOfAQueuedToolBeginsWhenItStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		agent := executor.Agent{Provider: once(call("deaf"), call("slow"), call("deaf"), call("fast")), Strategy: executor.Parallel(1), Grace: -1}
		d, err := agent.Run(t.Context(), ask(deaf, slow, fast))
		require.NoError(t, err)
		late := "error: Tool exceeded timeout of 30s."
		require.Equal(t, []string{late, late, late, "fast"}, outcomes(t, d), "a tool that hangs does not keep its place")
		require.Equal(t, 90*time.Second, time.Since(start))
		time.Sleep(2 * time.Hour) // the tools return at last
	})
}

func TestCancelAnswersCallsThatHadNotStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		d, err := executor.Agent{Strategy: executor.Parallel(1), Provider: once(call("fast"), call("deaf"), call("fast"))}.Run(ctx, ask(fast, deaf))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, []string{
			"fast",
			"error: Operation cancelled while the tool was running; it may have had effects.",
			"error: Operation cancelled before the tool was started.",
		}, outcomes(t, d))
		requireValid(t, d)
		time.Sleep(2 * time.Hour) // the tool returns at last
	})
}

func TestCancelAfterATimeoutStillAnswersEveryCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		patient := executor.WithTimeout(deaf, 0)
		agent := executor.Agent{Provider: once(call("slow"), call("deaf"), call("fast")), Strategy: executor.Parallel(1), ToolTimeout: time.Second, Grace: -1}
		start := time.Now()
		d, err := agent.Run(ctx, ask(slow, patient, fast))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 5*time.Second, time.Since(start))
		require.Equal(t, []string{
			"error: Tool exceeded timeout of 1s.",
			"error: Operation cancelled while the tool was running; it may have had effects.",
			"error: Operation cancelled before the tool was started.",
		}, outcomes(t, d))
		time.Sleep(2 * time.Hour) // the tool returns at last
	})
}

func TestNothingStartsAfterTheRunHasEnded(t *testing.T) {
	ran := false
	touch := tool("touch", func(context.Context) (any, error) { ran = true; return "", nil })
	for range 100 {
		t.Run("cancelled before the tools", func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for event, err := range executor.Stream(ctx, once(call("touch"), call("touch")), ask(touch)) {
				switch e := event.(type) {
				case executor.MessageEnd:
					cancel()
				case executor.End:
					require.ErrorIs(t, err, context.Canceled)
					not := "error: Operation cancelled before the tool was started."
					require.Equal(t, []string{not, not}, outcomes(t, e.DAG))
				}
			}
		})
		t.Run("cancelled by a tool", func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			quits := tool("quits", func(context.Context) (any, error) { cancel(); return nil, errors.New("I quit") })
			d, err := executor.Agent{Provider: once(call("quits"), call("touch")), Strategy: executor.Parallel(1)}.Run(ctx, ask(quits, touch))
			require.ErrorIs(t, err, context.Canceled)
			require.Equal(t, []string{
				"error: Operation cancelled while the tool was running; it may have had effects.",
				"error: Operation cancelled before the tool was started.",
			}, outcomes(t, d))
		})
	}
	require.False(t, ran)
}

func TestContextOfAToolEndsWithItsTurn(t *testing.T) {
	var used []context.Context
	keep := tool("keep", func(ctx context.Context) (any, error) {
		for _, earlier := range used {
			if earlier.Err() == nil {
				t.Error("the context of an earlier call still lives")
			}
		}
		used = append(used, ctx)
		return "", ctx.Err()
	})
	for _, tool := range []executor.Tool{keep, executor.WithTimeout(keep, time.Hour)} {
		used = nil
		_, err := executor.Run(t.Context(), apitest.NewScript(apitest.Call(call("keep")), apitest.Call(call("keep")), apitest.Say("Done.")), ask(tool))
		require.NoError(t, err)
		require.Len(t, used, 2)
	}
}

func TestGoexitInAToolIsAnErrorResultAndTheQueueGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // where a run that waits for ever fails at once
		exits := tool("exits", func(context.Context) (any, error) { runtime.Goexit(); return nil, nil })
		agent := executor.Agent{Provider: once(call("exits"), call("exits"), call("fast")), Strategy: executor.Parallel(1), ToolTimeout: -1}
		d, err := agent.Run(t.Context(), ask(exits, fast))
		require.NoError(t, err)
		gone := `error: Tool "exits" ended without a result.`
		require.Equal(t, []string{gone, gone, "fast"}, outcomes(t, d))
	})
}

type nasty struct{}

func (*nasty) Error() string { panic("even the error panics") }

func TestWhateverAToolReturnsIsAResult(t *testing.T) {
	for name, test := range map[string]struct {
		returns any
		err     error
		want    string
	}{
		"nil":                    {nil, nil, ""},
		"nil pointer":            {(*Forecast)(nil), nil, ""},
		"nil block":              {(*content.Text)(nil), nil, ""},
		"nil map":                {map[string]int(nil), nil, ""},
		"empty text":             {"", nil, ""},
		"no blocks":              {content.Blocks{}, nil, ""},
		"invalid UTF-8":          {"caf\xe9", nil, "caf\uFFFD"},
		"a struct":               {Forecast{City: "Köln <3"}, nil, `{"city":"Köln <3"}`},
		"a broken text in one":   {Forecast{City: "caf\xe9"}, nil, `{"city":"caf` + "\uFFFD" + `"}`},
		"a map":                  {map[string]int{"h": 8, "c": 3, "a": 1, "g": 7, "b": 2, "e": 5, "d": 4, "f": 6}, nil, `{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8}`},
		"a duration":             {map[string]time.Duration{"in": 90 * time.Second}, nil, `{"in":"1m30s"}`},
		"a number":               {42, nil, "42"},
		"JSON":                   {content.JSON("[1, 2]"), nil, "[1, 2]"},
		"JSON that is null":      {json.RawMessage("null"), nil, ""},
		"a block":                {content.Text{Text: "said"}, nil, "said"},
		"a pointer to one":       {&content.Text{Text: "said"}, nil, "said"},
		"a channel":              {make(chan int), nil, "error: the tool's result cannot be encoded"},
		"a call":                 {content.ToolUse{Name: "x"}, nil, "error: the tool's result: block 0 is a content.ToolUse, which only a message can contain"},
		"a broken block":         {content.Image{}, nil, "error: block 0 (image): its source needs exactly one of"},
		"an error that's nil":    {nil, (*nasty)(nil), "error: <nil>"},
		"an error that panics":   {nil, &nasty{}, "error: %!v(PANIC=Error method: even the error panics)"},
		"an error without words": {nil, errors.New(""), `error: Tool "any" failed without saying why.`},
		"an error and a value":   {"ignored", errors.New("no"), "error: no"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := executor.Run(t.Context(), once(call("any")), ask(tool("any", func(context.Context) (any, error) { return test.returns, test.err })))
			require.NoError(t, err)
			require.Truef(t, strings.HasPrefix(outcomes(t, d)[0], test.want), "%s", outcomes(t, d)[0])
			if test.want == "" {
				require.Zero(t, results(t, d)[0].Content.Len())
			}
			requireValid(t, d)
		})
	}
}

func TestCallsOfAnAnswerThatWasCutOffAreNotExecuted(t *testing.T) {
	ran := false
	touch := executor.Func("echo", "", func(context.Context, struct {
		Value string `json:"value"`
	}) (string, error) {
		ran = true
		return "", nil
	})
	model := apitest.NewScript(apitest.Call(apitest.Use("echo", map[string]string{"value": "hel"})).Stop(content.StopMaxTokens), apitest.Say("Done."))
	d, err := executor.Run(t.Context(), model, ask(touch))
	require.NoError(t, err)
	require.False(t, ran)
	require.Len(t, model.Requests(), 2)
	require.Equal(t, []string{`error: Tool call "echo" was not executed: the response hit the output token limit, so its arguments may be ` +
		`truncated. Re-issue the tool call with complete arguments.`}, outcomes(t, d))
	require.Equal(t, "uara", roles(d))
}

func TestOnlyTheLastCallOfAResponseCutOffIsRefused(t *testing.T) {
	var got []any
	cut := apitest.Call(echoes("a"), content.ToolUse{ID: "broken", Name: "echo", Input: `{"value":7`}, apitest.Use("wrong", "{}"), echoes("b"), echoes("c"))
	model := apitest.NewScript(cut.Stop(content.StopMaxTokens), apitest.Say("Done."))
	d, err := executor.Agent{Provider: model, Strategy: executor.Sequential()}.Run(t.Context(), ask(anyValue(&got)))
	require.NoError(t, err)
	require.Equal(t, []any{"a", "b"}, got)

	said := outcomes(t, d)
	require.Len(t, said, 5)
	require.Contains(t, said[1], "not valid JSON")
	require.Contains(t, said[2], "not found")
	require.Contains(t, said[4], "the response hit the output token limit")
	requireValid(t, d)
}

func TestSecondResponseCutOffInARowEndsTheRun(t *testing.T) {
	var got []any
	cut := apitest.Call(echoes("a"), echoes("b")).Stop(content.StopMaxTokens)
	model := apitest.NewScript(cut, apitest.Call(echoes("c")), cut, cut)
	d, err := executor.Agent{Provider: model, Strategy: executor.Sequential()}.Run(t.Context(), ask(anyValue(&got)))
	require.NoError(t, err)
	require.Equal(t, content.StopMaxTokens, stopped(t, d).Reason)
	require.Len(t, model.Requests(), 4)
	require.Equal(t, []any{"a", "c", "a", "a"}, got)
	require.Contains(t, outcomes(t, d)[1], "output token limit")
	requireValid(t, d)
}

func TestRunWithoutProgressEnds(t *testing.T) {
	for name, c := range map[string]struct {
		answer   apitest.Turn
		agent    executor.Agent
		requests int
	}{
		"an unknown tool":         {answer: apitest.Call(call("none")), requests: 10},
		"wrong arguments":         {answer: apitest.Call(apitest.Use("fast", content.JSON("[]"))), requests: 10},
		"calls that are not open": {answer: apitest.Call(call("fast")), agent: executor.Agent{Options: api.Options{ToolChoice: api.ToolsNone}}, requests: 10},
		"an empty pause":          {answer: apitest.Answer().Stop(content.StopPause), requests: 2},
	} {
		model := apitest.NewScript(c.answer.Always())
		c.agent.Provider = model
		d, err := c.agent.Run(t.Context(), ask(fast))
		require.NoError(t, err, name)
		require.Equal(t, content.StopLoop, stopped(t, d).Reason, name)
		require.Len(t, model.Requests(), c.requests, name)
		requireValid(t, d)
	}

	// One executed call begins the count anew.
	var answers []apitest.Turn
	for i := range 27 {
		answers = append(answers, apitest.Call(call([]string{"none", "fast"}[i/9%2])))
	}
	d, err := executor.Run(t.Context(), apitest.NewScript(append(answers, apitest.Say("Done."))...), ask(fast))
	require.NoError(t, err)
	require.Equal(t, "Done.", d.Text())
}

func TestFullContextEndsTheRunWithEveryCallAnswered(t *testing.T) {
	model := apitest.NewScript(apitest.Call(call("fast")).Stop(content.StopContext))
	d, err := executor.Run(t.Context(), model, ask(fast))
	require.NoError(t, err)
	require.Equal(t, content.StopContext, stopped(t, d).Reason)
	require.True(t, results(t, d)[0].IsError)
	requireValid(t, d)
}

func TestPausedTurnIsContinuedByARequest(t *testing.T) {
	search := content.Opaque{API: "script", JSON: `{"type":"server_tool_use"}`}
	model := apitest.NewScript(apitest.Answer(search).Stop(content.StopPause), apitest.Answer().Stop(content.StopPause), apitest.Say("Found."))
	d, err := executor.Run(t.Context(), model, ask())
	require.NoError(t, err)
	require.Equal(t, "Found.", d.Text())
	require.Equal(t, 3, stopped(t, d).Turns)
}

func TestEmptyAnswerLeavesNoMessage(t *testing.T) {
	model := apitest.NewScript(apitest.Answer().Usage(content.Usage{Input: 5}))
	d, err := executor.Run(t.Context(), model, ask())
	require.NoError(t, err)
	require.Equal(t, "u", roles(d))
	require.Equal(t, content.StopEndTurn, stopped(t, d).Reason)
	require.EqualValues(t, 5, stopped(t, d).Usage.Input)
	requireValid(t, d)
}

func TestLimits(t *testing.T) {
	u := content.Usage{Input: 90, Output: 10}
	forever := apitest.Call(call("fast")).Usage(u).Always()
	t.Run("tokens", func(t *testing.T) {
		d, err := executor.Agent{Provider: apitest.NewScript(forever), Limits: executor.Limits{Tokens: 250}}.Run(t.Context(), ask(fast))
		require.NoError(t, err)
		stop := stopped(t, d)
		require.Equal(t, content.StopTokenLimit, stop.Reason)
		require.Equal(t, 3, stop.Turns)
		require.Equal(t, []string{`error: Tool call "fast" was not executed: the run reached its token limit.`}, outcomes(t, d))
		requireValid(t, d)
	})
	t.Run("turns by default", func(t *testing.T) {
		d, err := executor.Run(t.Context(), apitest.NewScript(forever), ask(fast))
		require.NoError(t, err)
		require.Equal(t, 50, stopped(t, d).Turns)
		require.Equal(t, []string{"fast"}, outcomes(t, d), "the last turn's tools are run")
	})
	t.Run("no turns limit", func(t *testing.T) {
		n := 0
		count := apitest.Func(func(api.Request) apitest.Turn {
			if n++; n == 100 {
				return apitest.Say("Done.")
			}
			return apitest.Call(call("fast"))
		}).Always()
		d, err := executor.Agent{Provider: apitest.NewScript(count), Limits: executor.Limits{Turns: -1}}.Run(t.Context(), ask(fast))
		require.NoError(t, err)
		require.Equal(t, 100, stopped(t, d).Turns)
	})
	for name, model := range map[string]*apitest.Script{
		"time in the model":  apitest.NewScript(apitest.Call(call("fast")), apitest.Hang()),
		"time in the tools":  apitest.NewScript(apitest.Call(call("slow"))),
		"time between turns": apitest.NewScript(apitest.Call(call("fast")).Wait(time.Second).Always()),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, err := executor.Agent{Provider: model, Limits: executor.Limits{Time: 10 * time.Second}}.Run(t.Context(), ask(fast, slow))
				require.NoError(t, err)
				require.Equal(t, content.StopTimeLimit, stopped(t, d).Reason)
				require.Equal(t, 10*time.Second, stopped(t, d).Elapsed)
				requireValid(t, d)
			})
		})
	}
	t.Run("a retry that would be later", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			model := apitest.NewScript(apitest.Fail(&api.Error{Kind: api.ErrOverloaded, RetryAfter: 20 * time.Second}))
			d, err := executor.Agent{Provider: model, Limits: executor.Limits{Time: 10 * time.Second}}.Run(t.Context(), ask(fast, slow))
			require.ErrorIs(t, err, api.ErrOverloaded)
			require.ErrorContains(t, err, "the provider asks to wait 20 s, and the context ends in 10 s")
			require.Equal(t, content.StopError, stopped(t, d).Reason)
			require.Zero(t, stopped(t, d).Elapsed, "it ends at once")
			requireValid(t, d)
		})
	})
}

func TestAResponseKeepsHowManyAttemptsFailedBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		overloaded := apitest.Fail(&api.Error{Kind: api.ErrOverloaded, RetryAfter: time.Second})
		model := apitest.NewScript(overloaded, overloaded, apitest.Call(call("fast")), apitest.Say("Done."))
		d, err := executor.Run(t.Context(), model, ask(fast))
		require.NoError(t, err)

		var retries []int
		for _, n := range d.Nodes() {
			if m, ok := n.Message(); ok && m.Role == content.Assistant {
				retries = append(retries, m.Answer.Retries)
			}
		}
		require.Equal(t, []int{2, 0}, retries)
	})
}

func TestRunIsRefusedBeforeItBegins(t *testing.T) {
	declared := content.Tool{Name: "ghost", Schema: `{"type":"object"}`}
	server := content.Tool{Name: "web_search", Extra: content.Extra{API: "anthropic", JSON: `{"type":"web_search"}`}}
	model := apitest.NewScript(apitest.Say("Done."))
	t.Run("a declared tool that nothing can run", func(t *testing.T) {
		before := ask(fast, declared)
		d, err := executor.Run(t.Context(), model, before)
		var unbound *executor.UnboundError
		require.ErrorAs(t, err, &unbound)
		require.Equal(t, []string{"ghost"}, unbound.Names)
		require.EqualError(t, err, "executor: declared tools have no implementation: ghost (give them to the conversation with Tools)")
		require.True(t, dag.Equal(before, d))
		require.Empty(t, model.Requests())
		_, err = executor.ExecuteTools(t.Context(), before.Assistant("", call("ghost")))
		require.ErrorAs(t, err, new(*executor.UnboundError))
	})
	t.Run("no provider", func(t *testing.T) {
		_, err := executor.Agent{}.Run(t.Context(), ask())
		require.ErrorContains(t, err, "the agent has no provider")
	})
	t.Run("a chain that failed", func(t *testing.T) {
		_, err := executor.Run(t.Context(), model, dag.New().User(""))
		require.ErrorIs(t, err, dag.ErrEmpty)
		_, err = executor.ExecuteTools(t.Context(), dag.New().User(""))
		require.ErrorIs(t, err, dag.ErrEmpty)
	})
	t.Run("a chain that failed does not spoil what comes back", func(t *testing.T) {
		model := apitest.NewScript(apitest.Say("Hello.").Always())
		before := dag.New().User("Hi.").Assistant("Yes?")

		d, err := executor.Run(t.Context(), model, before.User(""))
		require.ErrorIs(t, err, dag.ErrEmpty)
		require.NoError(t, d.Err())
		require.True(t, dag.Equal(before, d))
		d, err = executor.Run(t.Context(), model, d.User("Hello?"))
		require.NoError(t, err)
		require.Equal(t, "Hello.", d.Text())

		d, err = executor.ExecuteTools(t.Context(), before.User(""))
		require.ErrorIs(t, err, dag.ErrEmpty)
		require.NoError(t, d.Err())

		d, err = executor.Agent{Provider: model}.Resume(t.Context(), before.User(""))
		require.ErrorIs(t, err, dag.ErrEmpty)
		require.NoError(t, d.Err())
	})
	t.Run("not for a server tool, nor where a handler takes all", func(t *testing.T) {
		model := apitest.NewScript(apitest.Say("Done.").Always())
		_, err := executor.Run(t.Context(), model, ask(server))
		require.NoError(t, err)
		_, err = executor.Agent{Provider: model, Handler: func(context.Context, executor.Call) (any, error) { return nil, nil }}.Run(t.Context(), ask(declared))
		require.NoError(t, err)
	})
}

func TestToolThatIsNotDeclaredHereIsNotRun(t *testing.T) {
	d := dag.New().User("First.").Assistant("Hm.").User("Second.").Tools(fast).Back(1) // the tool still travels along
	_, travels := d.Tool("fast")
	require.True(t, travels)
	d, err := executor.Run(t.Context(), once(call("fast")), d.User("Go."))
	require.NoError(t, err)
	require.Equal(t, []string{`error: Tool "fast" not found. There are no tools.`}, outcomes(t, d))
}

func TestOpenCallsAreExecutedFirst(t *testing.T) {
	open := ask(fast, echo).Assistant("", call("fast"), apitest.Use("echo", map[string]string{"text": "hi"}))
	said := open.Head()
	half, _, err := open.AppendTo([]*node.Node{said}, node.ToolExecution{Index: 0, Tool: "fast", Result: content.Words("from before the crash")})
	require.NoError(t, err)
	whole, _, err := half.AppendTo([]*node.Node{said}, node.ToolExecution{Index: 1, Tool: "echo", Result: content.Words("this too")})
	require.NoError(t, err)
	for name, test := range map[string]struct {
		d    dag.DAG
		want []string
	}{
		"no call was carried out":    {open, []string{"fast", "hi"}},
		"one call was carried out":   {half, []string{"from before the crash", "hi"}},
		"every call was carried out": {whole, []string{"from before the crash", "this too"}},
	} {
		t.Run(name, func(t *testing.T) {
			model := apitest.NewScript(apitest.Say("Done."))
			d, err := executor.Run(t.Context(), model, test.d)
			require.NoError(t, err)
			require.Equal(t, "uara", roles(d))
			require.Equal(t, test.want, outcomes(t, d))
			require.Equal(t, d.Messages()[:3], model.Requests()[0].Messages)
			requireValid(t, d)
		})
	}
}

func TestAnswerKeepsWhereItCameFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := apitest.NewScript(apitest.Say("Hi.").As("acme", "acme-1").Usage(content.Usage{Output: 3}).Wait(2 * time.Second))
		d, err := executor.Run(t.Context(), model, ask())
		require.NoError(t, err)
		said, _ := d.Head().Parent(0).Message()
		require.Equal(t, node.Answer{
			API: "acme", Model: "acme-1", ResponseID: "response_1", Stop: content.StopEndTurn,
			Usage: content.Usage{Output: 3}, Latency: 2 * time.Second,
		}, said.Answer)
	})
}

func TestExecutionsRecordWhenTheyRan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now().UTC()
		second := tool("second", func(ctx context.Context) (any, error) { return "", wait(ctx, time.Second) })
		d, err := executor.Agent{Strategy: executor.Parallel(1)}.ExecuteTools(t.Context(), ask(second).Assistant("", call("second"), call("second")))
		require.NoError(t, err)
		for i, branch := range d.Head().Parents() {
			e := branch.Payload().(node.ToolExecution)
			require.Equal(t, start.Add(time.Duration(i)*time.Second), e.Started)
			require.Equal(t, start.Add(time.Duration(i+1)*time.Second), e.Ended)
		}
	})
}

func TestRunsAreReproducibleWithTheirSource(t *testing.T) {
	run := func() dag.DAG {
		d := dag.New().WithSource(node.Counting(time.Unix(1700000000, 0))).Tools(fast).User("Go.")
		d, err := executor.Agent{Provider: once(call("fast"), call("fast")), Strategy: executor.Parallel(1)}.Run(t.Context(), d)
		require.NoError(t, err)
		return d
	}
	a, b := run().Nodes(), run().Nodes()
	require.Len(t, b, len(a))
	for i := range a {
		require.Equal(t, a[i].ID(), b[i].ID())
		require.Equal(t, a[i].Time(), b[i].Time())
		require.Equal(t, a[i].Digest(), b[i].Digest())
	}
}

func TestHugeTextsToTheModelAreBounded(t *testing.T) {
	huge := strings.Repeat("ä", 1<<20)
	d, err := executor.Run(t.Context(), once(apitest.Use(huge[:1000], content.JSON("{}")), apitest.Use("echo", map[string]string{huge: huge})), ask(echo))
	require.NoError(t, err)
	for _, r := range results(t, d) {
		require.True(t, r.IsError)
		require.Less(t, len(r.Content.Text()), 3000)
	}
}

func TestTheClientThatIsGivenIsUsed(t *testing.T) {
	model := apitest.NewScript(apitest.Fail(&api.Error{Kind: api.ErrServer}), apitest.Say("never"))
	_, err := executor.Run(t.Context(), api.NewClient(model, &api.ClientOptions{Attempts: 1}), ask())
	require.ErrorIs(t, err, api.ErrServer)
	require.Len(t, model.Requests(), 1)
}

// moody has further methods that misbehave.
type moody struct{ executor.Tool }

func (moody) Timeout() time.Duration { panic("no idea") }

func TestFurtherMethodsOfATool(t *testing.T) {
	t.Run("a timeout counts through a wrapper of a program's own", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d, err := executor.Run(t.Context(), once(call("slow")), ask(&logging{Tool: executor.WithTimeout(slow, time.Second)}))
			require.NoError(t, err)
			require.Equal(t, []string{"error: Tool exceeded timeout of 1s."}, outcomes(t, d))
		})
	})
	t.Run("a panic in one is a panic of the tool", func(t *testing.T) {
		d, err := executor.Run(t.Context(), once(call("fast"), call("broken")), ask(moody{fast}, broken))
		require.NoError(t, err)
		require.Equal(t, []string{`error: Tool "fast" panicked: no idea`, "error: it is broken"}, outcomes(t, d))
	})
}

func TestListsToTheModelAreBounded(t *testing.T) {
	var many []dag.Tool
	for i := range 40 {
		many = append(many, tool(fmt.Sprintf("tool_%d", i), func(context.Context) (any, error) { return nil, nil }))
	}
	wrong := map[string]any{}
	for i := range 25 {
		wrong[fmt.Sprintf("x%02d", i)] = i
	}
	d, err := executor.Run(t.Context(), once(call("gone"), apitest.Use("tool_0", wrong)), ask(many...))
	require.NoError(t, err)
	require.Contains(t, outcomes(t, d)[0], "tool_0, tool_1, ")
	require.Contains(t, outcomes(t, d)[0], "tool_29 and 10 more")
	require.NotContains(t, outcomes(t, d)[0], "tool_30")
	require.Contains(t, outcomes(t, d)[1], "  - x19: is not an argument of this tool\n  - and 5 more\n")
}

func TestExecutionsOfNoCallAreLeftAsTheyAre(t *testing.T) {
	stray := ask().Append(node.ToolExecution{Tool: "lost", Result: content.Words("found")})
	d, err := executor.Run(t.Context(), apitest.NewScript(apitest.Say("Done.")), stray)
	require.NoError(t, err)
	require.True(t, d.Contains(stray.Head()))
	require.Equal(t, "Done.", d.Text())
}

func TestWordsOfTheAssistantAreFollowedByAFollowUp(t *testing.T) {
	var later executor.Queue
	require.NoError(t, later.Add("And then?"))
	model := apitest.NewScript(apitest.Say("Then it ends."))
	d, err := executor.Agent{Provider: model, FollowUps: &later}.Run(t.Context(), ask().Assistant("Once upon a time"))
	require.NoError(t, err)
	require.Equal(t, "uaua", roles(d))
	require.Len(t, model.Requests(), 1)
}

func TestAFullOutputThatOnlyAMessageCanHoldIsAnErrorOfItsCall(t *testing.T) {
	full, err := content.Of(content.ToolUse{Name: "x"})
	require.NoError(t, err)
	bad := tool("bad", func(context.Context) (any, error) { return executor.Result{Full: full}, nil })
	d, err := executor.Run(t.Context(), once(call("bad"), call("fast")), ask(bad, fast))
	require.NoError(t, err)
	require.Equal(t, []string{"error: the tool's result: its full output: block 0 is a content.ToolUse, which only a message can contain", "fast"}, outcomes(t, d))
}

// What a tool says is its whole output is checked like the rest: it must not make the phase impossible to close.
func TestInvalidFullOutputIsAnErrorOfThatCallOnly(t *testing.T) {
	use, err := content.Of(content.ToolUse{ID: "x", Name: "fast", Input: "{}"})
	require.NoError(t, err)
	bad := tool("bad", func(context.Context) (any, error) {
		return executor.Result{Content: content.Words("x"), Full: use}, nil
	})
	d, err := executor.Run(t.Context(), once(call("bad"), call("fast")), ask(fast, bad))
	require.NoError(t, err)
	require.Contains(t, outcomes(t, d)[0], "error: the tool's result: its full output")
	require.Equal(t, "fast", outcomes(t, d)[1])
	require.Equal(t, "Done.", d.Text())
}

// A timeout that is over before the call's goroutine gets to run is a timeout like any other.
func TestToolThatIgnoresItsTimeoutGetsATimeoutResult(t *testing.T) {
	for range 50 {
		release := make(chan struct{})
		stuck := tool("stuck", func(context.Context) (any, error) { <-release; return "late", nil })
		agent := executor.Agent{ToolTimeout: 1, Grace: -1, Provider: once(call("stuck"), call("stuck"))}

		// A call that is not answered by its timeout is answered as cancelled by this one, so that a failure does not hang.
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		d, err := agent.Run(ctx, ask(stuck))
		cancel()
		close(release)
		require.NoError(t, err)
		require.Equal(t, []string{"error: Tool exceeded timeout of 1ns.", "error: Tool exceeded timeout of 1ns."}, outcomes(t, d))
	}
}

// An answer to an earlier question, or words beside a call, are not the answer that RunFor was asked for.
func TestRunForRefusesAResponseInAnotherForm(t *testing.T) {
	type answer struct {
		N int `json:"n"`
	}
	for name, turn := range map[string]apitest.Turn{
		"from before":   apitest.Call(call("fast")),
		"beside a call": apitest.Answer(content.Text{Text: `{"n":1}`}).Call(call("fast")),
	} {
		t.Run(name, func(t *testing.T) {
			agent := executor.Agent{Provider: apitest.NewScript(turn), Tools: []dag.Tool{fast}, Limits: executor.Limits{Turns: 1}}
			got, d, err := executor.RunFor[answer](t.Context(), agent, dag.New().User("How many?").Assistant(`{"n":42}`).User("And now?"))
			require.ErrorAs(t, err, new(*api.OutputError))
			require.Zero(t, got)
			require.Equal(t, content.StopMaxTurns, stopped(t, d).Reason)
		})
	}
}

func TestARunWhoseResponsesNeverFitFails(t *testing.T) {
	type answer struct {
		N int `json:"n"`
	}
	model := apitest.NewScript(apitest.Say("Many.").Always())
	_, d, err := executor.RunFor[answer](t.Context(), executor.Agent{Provider: model}, ask())
	require.ErrorAs(t, err, new(*api.OutputError))
	require.Len(t, model.Requests(), 3)
	require.Equal(t, content.StopError, stopped(t, d).Reason)
	require.Equal(t, err.Error(), stopped(t, d).Detail)

	_, d, err = executor.RunFor[answer](t.Context(), executor.Agent{Provider: apitest.NewScript(
		apitest.Say("Many."), apitest.Say("Several."), apitest.Say(`{"n":3}`),
	)}, ask())
	require.NoError(t, err)
	require.Equal(t, content.StopEndTurn, stopped(t, d).Reason)
}

// A new release describes its tool in other words, and finds a conversation whose calls were open when the old one crashed.
func TestOpenCallsAreExecutedBeforeAChangedToolIsDeclared(t *testing.T) {
	echo := func(context.Context, struct{}) (string, error) { return "done", nil }
	before := dag.New().Tools(executor.Func("t", "old words", echo)).User("x").Assistant("", content.ToolUse{ID: "a", Name: "t", Input: "{}"})
	agent := executor.Agent{Tools: []dag.Tool{executor.Func("t", "new words", echo)}}

	d, err := agent.ExecuteTools(t.Context(), before)
	require.NoError(t, err)
	require.Equal(t, "done", d.Messages()[2].Blocks.ToolResults()[0].Content.Text())
	require.Equal(t, "new words", d.ToolDefs()[0].Description)
	require.Empty(t, d.Validate())

	agent.Provider = apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
		return apitest.Say(req.Tools[0].Description + ": " + req.Messages[2].Blocks.ToolResults()[0].Content.Text())
	}))
	d, err = agent.Run(t.Context(), before)
	require.NoError(t, err)
	require.Equal(t, "new words: done", d.Text())
	require.Empty(t, d.Validate())
}

func TestStreamRunsOnce(t *testing.T) {
	model := apitest.NewScript(apitest.Say("a"), apitest.Say("b"))
	events := executor.Stream(t.Context(), model, dag.New().User("x"))
	for _, err := range events {
		require.NoError(t, err)
	}
	seen := 0
	for event, err := range events {
		seen++
		require.IsType(t, executor.End{}, event)
		require.ErrorIs(t, err, api.ErrProtocol)
	}
	require.Equal(t, 1, seen)
	require.Len(t, model.Requests(), 1)
}

func TestEmptyResponseAddsNoMessage(t *testing.T) {
	d, err := executor.Run(t.Context(), apitest.NewScript(apitest.Say("")), dag.New().User("x"))
	require.NoError(t, err)
	require.Len(t, d.Messages(), 1)
}

type noSequence struct{}

func (noSequence) Stream(context.Context, api.Request) iter.Seq2[api.Event, error] { return nil }

func TestNilProviderIsAnError(t *testing.T) {
	for _, p := range []api.Provider{api.NewClient(nil, nil), noSequence{}} {
		d, err := executor.Run(t.Context(), p, dag.New().User("x"))
		require.ErrorIs(t, err, api.ErrProtocol)
		require.Len(t, d.Messages(), 1)
	}
	_, err := executor.Run(t.Context(), (*api.Client)(nil), dag.New().User("x"))
	require.ErrorContains(t, err, "the agent has no provider")
}

// TestCallsThatTheRequestForbadeAreNotExecuted asks a provider that ignores the choice of tools, as some compatible servers do.
func TestCallsThatTheRequestForbadeAreNotExecuted(t *testing.T) {
	for name, test := range map[string]struct {
		options api.Options
		refused []string // a part of each call's result; "" is executed
	}{
		"no tools":         {api.Options{ToolChoice: api.ToolsNone}, []string{"no tool may be called now", "no tool may be called now"}},
		"one call":         {api.Options{OneCall: true}, []string{"", "only one tool may be called at a time"}},
		"one tool":         {api.Options{ToolChoice: api.OneTool("b")}, []string{`only the tool "b" may be called now`, ""}},
		"as it likes":      {api.Options{}, []string{"", ""}},
		"any, but at once": {api.Options{ToolChoice: api.ToolsAny}, []string{"", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			var executed atomic.Int32
			tool := func(name string) dag.Tool {
				return executor.Func(name, "", func(context.Context, struct{}) (string, error) { executed.Add(1); return "done", nil })
			}
			model := apitest.NewScript(apitest.Call(apitest.Use("a", map[string]int{}), apitest.Use("b", map[string]int{})), apitest.Say("Done."))
			d, err := executor.Agent{Provider: model, Options: test.options, Tools: []dag.Tool{tool("a"), tool("b")}}.Run(t.Context(), dag.New().User("Go."))
			require.NoError(t, err)

			want := 0
			for i, o := range outcomes(t, d) {
				if test.refused[i] == "" {
					want++
				}
				require.Contains(t, o, cmp.Or(test.refused[i], "done"))
			}
			require.EqualValues(t, want, executed.Load())
			require.Len(t, outcomes(t, d), 2)
		})
	}
}

// TestCallsOfAnEarlierRunIgnoreTheToolChoiceOfThisRun runs on with a choice that was not made for the calls that are open.
func TestCallsOfAnEarlierRunIgnoreTheToolChoiceOfThisRun(t *testing.T) {
	executed := 0
	tool := executor.Func("a", "", func(context.Context, struct{}) (string, error) { executed++; return "done", nil })
	d := dag.New().Tools(tool).User("Go.").Assistant("", content.ToolUse{ID: "x", Name: "a", Input: "{}"})
	_, err := executor.Agent{Provider: apitest.NewScript(apitest.Say("Done.")), Options: api.Options{ToolChoice: api.ToolsNone}, Tools: []dag.Tool{tool}}.Run(t.Context(), d)
	require.NoError(t, err)
	require.Equal(t, 1, executed)
}

func TestFailedToolWithInvalidDetailsIsAnErrorResult(t *testing.T) {
	for _, r := range []executor.Result{{Details: "{"}, {Child: dag.New().Append(nil)}} {
		bad := executor.NewTool(content.Tool{Name: "bad", Schema: `{"type":"object"}`}, func(context.Context, executor.Call) (executor.Result, error) {
			return r, errors.New("failed")
		})
		d, err := executor.Run(t.Context(), once(call("bad"), call("fast")), ask(bad, fast))
		require.NoError(t, err)
		require.Equal(t, []string{"error: failed", "fast"}, outcomes(t, d))
	}
}

func TestRefusedRunReturnsTheConversationUnchanged(t *testing.T) {
	said := node.Message{Role: content.Assistant, Blocks: content.Words("Yes?"), Answer: node.Answer{Stop: content.StopEndTurn}}
	d := dag.New().User("Hello?").Append(said)
	agent := executor.Agent{Provider: apitest.NewScript(), System: "Be brief.", Tools: []dag.Tool{fast}}
	after, err := agent.Run(t.Context(), d)
	require.ErrorIs(t, err, executor.ErrAnswered)
	require.Equal(t, d.Heads(), after.Heads())
}

func TestCallsOfABatchStartInCallOrder(t *testing.T) {
	backwards := func(calls []executor.Ready) []executor.Batch {
		var w executor.Batch
		for i := range calls {
			w.Calls = append(w.Calls, len(calls)-1-i)
		}
		return []executor.Batch{w}
	}
	var starts []int
	for event := range (executor.Agent{Provider: once(call("fast"), call("fast"), call("fast")), Strategy: backwards}).Stream(t.Context(), ask(fast)) {
		if e, ok := event.(executor.ToolStart); ok {
			starts = append(starts, e.Call.Index)
		}
	}
	require.Equal(t, []int{0, 1, 2}, starts)
}

func TestTimeoutInOneBatchDoesNotEndTheNext(t *testing.T) {
	var calls []content.ToolUse
	var want []string
	for range 20 {
		calls = append(calls, call("slow"), call("slow"), call("half"), call("half"))
		want = append(want, "error: Tool exceeded timeout of 1s.", "error: Tool exceeded timeout of 1s.", "half", "half")
	}
	half := tool("half", func(ctx context.Context) (any, error) { return "half", wait(ctx, 500*time.Millisecond) })
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			agent := executor.Agent{Provider: once(calls...), Strategy: executor.Batched(2), ToolTimeout: time.Second}
			d, err := agent.Run(t.Context(), ask(slow, half))
			require.NoError(t, err)
			require.Equal(t, want, outcomes(t, d))
		})
	}
}
