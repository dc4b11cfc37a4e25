package durable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
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
	"github.com/plait-dev/plait/store"
)

// count is the arguments of the tool of these tests.
type count struct {
	Item string `json:"item"`
}

// counter returns a tool of the given name.
func counter(name string, fn func(ctx context.Context, item string) (string, error)) executor.Tool {
	return executor.Func(name, "Counts.", func(ctx context.Context, in count) (string, error) { return fn(ctx, in.Item) })
}

// twoCalls is a model that calls a tool twice, and then says the results.
func twoCalls(tool string) api.Provider {
	return apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
		results := req.Messages[len(req.Messages)-1].Blocks.ToolResults()
		if len(results) == 0 {
			return apitest.Call(apitest.Use(tool, count{"bolts"}), apitest.Use(tool, count{"nuts"}))
		}
		text := ""
		for _, r := range results {
			text += r.Content.Text() + ". "
		}
		return apitest.Say(text)
	}).Always())
}

func quiet() Settings {
	return Settings{Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
}

// scene is one store with a process that has an agent and a worker.
type scene struct {
	*testing.T
	ctx    context.Context
	runs   store.Runs
	engine *Engine
	worker *Worker
	stop   func()
}

// play runs fn in a bubble of fake time, while an engine and a worker with the tool serve.
func play(t *testing.T, tool executor.Tool, change func(s *scene), fn func(s *scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &scene{T: t, ctx: t.Context(), runs: store.Memory()}
		name := tool.Definition().Name
		s.engine = &Engine{Store: s.runs, Settings: quiet(), Agents: map[string]executor.Agent{"a": {
			Provider: twoCalls(name), Tools: []dag.Tool{tool}, Strategy: executor.DeferAll(),
		}}}
		s.worker = &Worker{Store: s.runs, Settings: quiet(), Tools: []executor.Tool{tool}}
		if change != nil {
			change(s)
		}

		served := make(chan error, 2)
		go func() { served <- s.engine.Serve(ctx) }()
		go func() { served <- s.worker.Serve(ctx) }()
		s.stop = func() {
			cancel()
			require.NoError(t, <-served)
			require.NoError(t, <-served)
			s.stop = func() {}
		}
		defer func() { s.stop() }()
		fn(s)
	})
}

// asks makes a turn the model of the engine's agent.
func (s *scene) asks(turn apitest.Turn) {
	a := s.engine.Agents["a"]
	a.Provider = apitest.NewScript(turn.Always())
	s.engine.Agents["a"] = a
}

func (s *scene) start() string {
	s.Helper()
	run, err := s.engine.Start(s.ctx, StartRequest{Agent: "a", Conversation: "c", Text: "How many?"})
	require.NoError(s, err)
	return run
}

func (s *scene) wait(run string) store.Run {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, 24*time.Hour)
	defer cancel()
	r, err := s.engine.Wait(ctx, run)
	require.NoError(s, err)
	return r
}

// text returns the last answer of conversation c.
func (s *scene) text() string {
	s.Helper()
	c, err := open(s.ctx, s.runs, "c", store.Main)
	require.NoError(s, err)
	require.Empty(s, c.DAG().Validate())
	return c.DAG().Text()
}

func has(_ context.Context, item string) (string, error) { return "many " + item, nil }

func TestRunPausesForWorkersAndContinues(t *testing.T) {
	play(t, counter("count", has), nil, func(s *scene) {
		run := s.start()
		r := s.wait(run)
		require.Equal(t, store.RunDone, r.State)
		require.Equal(t, "end_turn", r.Reason)
		require.Equal(t, "many bolts. many nuts. ", s.text())
		states, err := s.runs.Tasks(s.ctx, run)
		require.NoError(t, err)
		require.Len(t, states, 2)

		// The next run goes on with the conversation.
		second := s.start()
		require.NotEqual(t, run, second)
		require.Equal(t, store.RunDone, s.wait(second).State)
	})
}

func TestStartWithOneIDStartsOnce(t *testing.T) {
	play(t, counter("count", has), nil, func(s *scene) {
		for range 2 {
			run, err := s.engine.Start(s.ctx, StartRequest{Run: "r", Agent: "a", Conversation: "c", Text: "How many?"})
			require.NoError(t, err)
			require.Equal(t, "r", run)
		}
		s.wait("r")
		_, err := s.engine.Start(s.ctx, StartRequest{Run: "r", Agent: "a", Conversation: "c", Text: "How many?"})
		require.NoError(t, err)
		c, err := open(s.ctx, s.runs, "c", store.Main)
		require.NoError(t, err)
		require.Len(t, c.DAG().Transcript().Messages, 4)
	})
}

func TestStartRefusesAHeadWithARun(t *testing.T) {
	var block chan struct{}
	tool := counter("count", func(ctx context.Context, item string) (string, error) {
		<-block
		return item, nil
	})
	inBubble := func(*scene) { block = make(chan struct{}) }
	play(t, executor.WithTimeout(tool, 0), inBubble, func(s *scene) {
		run := s.start()
		synctest.Wait()
		_, err := s.engine.Start(s.ctx, StartRequest{Agent: "a", Conversation: "c", Text: "And now?"})
		require.ErrorIs(t, err, store.ErrBusy)
		close(block)
		s.wait(run)
		require.Equal(t, "bolts. nuts. ", s.text())
	})
}

func TestCallsHaveAKeyThatIsTheirOwn(t *testing.T) {
	keys := make(chan store.Key, 10)
	tool := counter("count", func(ctx context.Context, item string) (string, error) {
		key, ok := CallKey(ctx)
		require.True(t, ok)
		keys <- key
		return item, nil
	})
	play(t, tool, nil, func(s *scene) {
		run := s.start()
		s.wait(run)
		first, second := <-keys, <-keys
		require.Equal(t, run, first.Run)
		require.NotEqual(t, first.String(), second.String())
		require.Empty(t, keys)
	})
}

func TestToolThatAsksForItIsCalledAgain(t *testing.T) {
	var calls atomic.Int32
	tool := counter("count", func(ctx context.Context, item string) (string, error) {
		if n := calls.Add(1); n < 6 {
			return "", Retry(fmt.Errorf("attempt %d failed", n), time.Minute)
		}
		return item, nil
	})
	attempts := func(n int) func(*scene) {
		return func(s *scene) {
			s.engine.CallOptions = func(dag.Pending) CallOptions { return CallOptions{Attempts: n} }
		}
	}
	play(t, tool, attempts(3), func(s *scene) {
		began := time.Now()
		s.wait(s.start())
		require.Contains(t, s.text(), "attempt 5 failed", "three attempts each: the sixth was one's third")
		require.EqualValues(t, 6, calls.Load())
		require.Greater(t, time.Since(began), 2*time.Minute)
	})

	calls.Store(0)
	play(t, tool, attempts(1), func(s *scene) {
		s.wait(s.start())
		require.Contains(t, s.text(), "attempt 1 failed")
		require.EqualValues(t, 2, calls.Load())
	})
}

func TestCallWithoutAWorkerEndsAtItsDeadline(t *testing.T) {
	play(t, counter("count", has), func(s *scene) {
		s.worker.Tools = nil
		s.engine.CallOptions = func(dag.Pending) CallOptions { return CallOptions{ResultTimeout: time.Hour} }
	}, func(s *scene) {
		began := time.Now()
		require.Equal(t, store.RunDone, s.wait(s.start()).State)
		require.Contains(t, s.text(), "no result by its deadline")
		require.InDelta(t, time.Hour, time.Since(began), float64(time.Minute))
	})
}

func TestDeadlineInterruptsACall(t *testing.T) {
	tool := counter("count", func(ctx context.Context, item string) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	})
	play(t, executor.WithTimeout(tool, 0), func(s *scene) {
		s.engine.CallOptions = func(dag.Pending) CallOptions { return CallOptions{ResultTimeout: time.Hour} }
	}, func(s *scene) {
		s.wait(s.start())
		require.Contains(t, s.text(), "no result by its deadline")
	})
}

func TestApprovalIsAPauseThatAReplyEnds(t *testing.T) {
	var calls atomic.Int32
	tool := counter("count", func(ctx context.Context, item string) (string, error) {
		calls.Add(1)
		return "many " + item, nil
	})
	play(t, tool, func(s *scene) {
		a := s.engine.Agents["a"]
		a.Hooks = []executor.Hook{executor.RequireApproval("count")}
		s.engine.Agents["a"] = a
	}, func(s *scene) {
		run := s.start()
		time.Sleep(time.Hour)
		states, err := s.runs.Tasks(s.ctx, run)
		require.NoError(t, err)
		require.Len(t, states, 2)
		require.Zero(t, calls.Load())
		task, err := executor.ToolTaskCodec{}.Decode(states[0].Task.Payload)
		require.NoError(t, err)
		require.Equal(t, `{"item":"bolts"}`, string(task.Pending.Call.Input))

		require.NoError(t, s.engine.Reply(s.ctx, states[0].Task.Key, executor.Approved(shown(s.T, states[0]))))
		require.NoError(t, s.engine.Reply(s.ctx, states[0].Task.Key, executor.Approved(shown(s.T, states[0]))), "the same again")
		require.ErrorIs(t, s.engine.Reply(s.ctx, states[0].Task.Key, executor.Declined(shown(s.T, states[0]), "")), store.ErrResultConflict)
		require.NoError(t, s.engine.Reply(s.ctx, states[1].Task.Key, executor.Declined(shown(s.T, states[1]), "not now")))
		require.Equal(t, store.RunDone, s.wait(run).State)
		require.EqualValues(t, 1, calls.Load())
		require.Contains(t, s.text(), "many bolts")
		require.Contains(t, s.text(), "not now")
	})
}

func TestCancelEndsARunAnywhere(t *testing.T) {
	var gone chan error
	tool := counter("count", func(ctx context.Context, item string) (string, error) {
		<-ctx.Done()
		gone <- context.Cause(ctx)
		return "too late", nil
	})
	inBubble := func(*scene) { gone = make(chan error, 2) }
	play(t, executor.WithTimeout(tool, 0), inBubble, func(s *scene) {
		run := s.start()
		synctest.Wait()
		require.NoError(t, s.engine.Cancel(s.ctx, run, "no longer needed"))
		began := time.Now()
		require.Error(t, <-gone)
		require.Error(t, <-gone)
		require.Less(t, time.Since(began), time.Second, "the worker is in the same process")
		r := s.wait(run)
		require.Equal(t, store.RunCancelled, r.State)
		require.Equal(t, "no longer needed", r.Reason)
		synctest.Wait()
		states, err := s.runs.Tasks(s.ctx, run)
		require.NoError(t, err)
		require.Equal(t, store.OutcomeCancelled, states[0].Result.Outcome)
	})
}

func TestCancelledRunStoresNothingMore(t *testing.T) {
	play(t, counter("count", has), func(s *scene) {
		a := s.engine.Agents["a"]
		a.Provider = apitest.NewScript(apitest.Hang().Always())
		s.engine.Agents["a"] = a
	}, func(s *scene) {
		run := s.start()
		synctest.Wait()
		before, err := s.runs.Head(s.ctx, "c", store.Main)
		require.NoError(t, err)
		require.NoError(t, s.engine.Cancel(s.ctx, run, ""))
		time.Sleep(time.Hour)
		after, err := s.runs.Head(s.ctx, "c", store.Main)
		require.NoError(t, err)
		require.Equal(t, before, after)
	})
}

// deaf is a store whose wake-ups are all lost.
type deaf struct{ store.Runs }

func (deaf) Listen(func(store.Wake)) func() { return func() {} }

func TestCancelIsNoLostLease(t *testing.T) {
	for name, wakes := range map[string]bool{"noticed at once": true, "noticed at a renewal": false} {
		t.Run(name, func(t *testing.T) {
			counts := &Counter{}
			play(t, counter("count", has), func(s *scene) {
				counts.Runs = s.runs
				if !wakes {
					counts.Runs = deaf{s.runs}
				}
				s.engine.Store = counts
				s.asks(apitest.Hang())
			}, func(s *scene) {
				run := s.start()
				time.Sleep(time.Minute)
				require.NotZero(s, counts.Counts().Runs)

				require.NoError(s, s.runs.Cancel(s.ctx, run, ""))
				time.Sleep(time.Minute)
				require.Zero(s, counts.Counts().LeasesLost)
			})
		})
	}
}

func TestStepOfACancelledRunIsNoLostLease(t *testing.T) {
	counts := &Counter{}
	play(t, counter("count", has), func(s *scene) {
		counts.Runs = deaf{s.runs} // the step is refused before a renewal is
		s.engine.Store = counts
		s.asks(apitest.Func(func(api.Request) apitest.Turn {
			list, err := s.runs.ListRuns(s.ctx, store.ListRunsRequest{})
			require.NoError(s, err)
			require.NoError(s, s.runs.Cancel(s.ctx, list[0].ID, ""))
			return apitest.Say("Too late.")
		}))
	}, func(s *scene) {
		s.start()
		time.Sleep(time.Minute)
		require.EqualValues(s, 1, counts.Counts().Refused)
		require.Zero(s, counts.Counts().LeasesLost)
	})
}

func TestShutdownReleasesClaims(t *testing.T) {
	tool := counter("count", func(ctx context.Context, item string) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	})
	play(t, executor.WithTimeout(tool, 0), func(s *scene) {
		s.engine.CallOptions = func(dag.Pending) CallOptions { return CallOptions{Attempts: 2} }
	}, func(s *scene) {
		run := s.start()
		synctest.Wait()
		s.stop()

		other := &Worker{Store: s.runs, Settings: quiet(), Tools: []executor.Tool{counter("count", has)}}
		engine := &Engine{Store: s.runs, Settings: quiet(), Agents: s.engine.Agents}
		ctx, cancel := context.WithCancel(s.ctx)
		done := make(chan struct{}, 2)
		go func() { _ = other.Serve(ctx); done <- struct{}{} }()
		go func() { _ = engine.Serve(ctx); done <- struct{}{} }()
		began := time.Now()
		require.Equal(t, store.RunDone, s.wait(run).State)
		require.Less(t, time.Since(began), 10*time.Second, "nobody waited for a lease to end")
		require.Equal(t, "many bolts. many nuts. ", s.text())
		cancel()
		<-done
		<-done
	})
}

func TestInterruptedRunContinuesFromItsLastStep(t *testing.T) {
	play(t, counter("count", has), func(s *scene) {
		a := s.engine.Agents["a"]
		a.Provider = apitest.NewScript(apitest.Hang().Always())
		s.engine.Agents["a"] = a
	}, func(s *scene) {
		run := s.start()
		synctest.Wait()
		s.stop()
		r, err := s.runs.Run(s.ctx, run)
		require.NoError(t, err)
		require.Equal(t, store.RunReady, r.State)
		require.Zero(t, r.Claims, "a clean end is no lost process")

		c, err := open(s.ctx, s.runs, "c", store.Main)
		require.NoError(t, err)
		require.Len(t, c.DAG().Transcript().Messages, 1, "what the agent made of the interruption is not stored")
	})
}

func TestFailingToolsAreResults(t *testing.T) {
	for name, fn := range map[string]func(context.Context, string) (string, error){
		"panic":  func(context.Context, string) (string, error) { panic("boom") },
		"error":  func(context.Context, string) (string, error) { return "", errors.New("boom") },
		"large":  func(context.Context, string) (string, error) { return string(make([]byte, 9<<20)), nil },
		"never":  func(ctx context.Context, _ string) (string, error) { <-ctx.Done(); return "", ctx.Err() },
		"ignore": func(ctx context.Context, item string) (string, error) { time.Sleep(time.Minute); return item, nil },
	} {
		t.Run(name, func(t *testing.T) {
			play(t, counter("count", fn), nil, func(s *scene) {
				run := s.start()
				require.Equal(t, store.RunDone, s.wait(run).State)
				states, err := s.runs.Tasks(s.ctx, run)
				require.NoError(t, err)
				require.Equal(t, store.OutcomeError, states[0].Result.Outcome)
				require.NotEmpty(t, s.text())
				time.Sleep(time.Hour) // for the tool that was left behind
			})
		})
	}
}

func TestRunWithoutAgentWaitsForOne(t *testing.T) {
	play(t, counter("count", has), nil, func(s *scene) {
		run, err := s.engine.Start(s.ctx, StartRequest{Agent: "other", Conversation: "c", Text: "How many?"})
		require.NoError(t, err)
		time.Sleep(time.Hour)
		r, err := s.runs.Run(s.ctx, run)
		require.NoError(t, err)
		require.Equal(t, store.RunReady, r.State)
		require.NoError(t, s.engine.Cancel(s.ctx, run, ""))
	})
}

func TestRunWhoseProviderFailsIsRetriedLater(t *testing.T) {
	down := &api.Error{Kind: api.ErrOverloaded}
	play(t, counter("count", has), func(s *scene) {
		a := s.engine.Agents["a"]
		a.Provider = api.NewClient(apitest.NewScript(apitest.Fail(down), apitest.Fail(down), apitest.Say("Now.")),
			&api.ClientOptions{Attempts: 1})
		s.engine.Agents["a"] = a
	}, func(s *scene) {
		require.Equal(t, store.RunDone, s.wait(s.start()).State)
		require.Equal(t, "Now.", s.text())
	})
}

func TestRunIsParkedWhenItsProviderStaysDown(t *testing.T) {
	play(t, counter("count", has), func(s *scene) {
		s.asks(apitest.Fail(&api.Error{Kind: api.ErrOverloaded}))
	}, func(s *scene) {
		began := time.Now()
		r := s.wait(s.start())
		require.Equal(s, store.RunParked, r.State)
		require.Contains(s, r.Reason, "it was claimed 10 times without a pause")
		require.InDelta(s, 18, time.Since(began).Minutes(), 1.5, "as the comment of Engine.Attempts promises")
	})
}

func TestProviderThatRefusesFailsTheRun(t *testing.T) {
	play(t, counter("count", has), func(s *scene) {
		a := s.engine.Agents["a"]
		a.Provider = apitest.NewScript(apitest.Fail(&api.Error{Kind: api.ErrAuth}))
		s.engine.Agents["a"] = a
	}, func(s *scene) {
		r := s.wait(s.start())
		require.Equal(t, store.RunFailed, r.State)
		require.Contains(t, r.Reason, api.ErrAuth.Error())
	})
}

func TestUnreadableContinuationIsParked(t *testing.T) {
	play(t, counter("count", has), nil, func(s *scene) {
		s.stop()
		begin := func(run string, format int) {
			_, err := s.runs.Begin(s.ctx, store.BeginRequest{
				Run: run, Agent: "a", Append: store.AppendRequest{Conversation: run, Head: "main"},
			})
			require.NoError(t, err)
			claimed, err := s.runs.ClaimRuns(s.ctx, store.ClaimRunsRequest{Agents: []string{"a"}, Run: run, Lease: time.Hour})
			require.NoError(t, err)
			key := store.Key{Run: run, Continuation: "p", Call: "x"}
			_, err = s.runs.Commit(s.ctx, store.Step{Lease: claimed[0].Lease, Pause: &store.Pause{
				Continuation: "p", Format: format, Payload: []byte("?"), Tasks: []store.Task{{Key: key, Tool: "nobody"}},
			}})
			require.NoError(t, err)
			require.NoError(t, s.engine.Reply(s.ctx, key, executor.FailedFor(node.CallKey{Message: node.ID{1}}, "")))
		}
		begin("damaged", 2)
		begin("newer", 99)

		ctx, cancel := context.WithCancel(s.ctx)
		done := make(chan error)
		go func() { done <- s.engine.Serve(ctx) }()
		r := s.wait("damaged")
		require.Equal(t, store.RunParked, r.State)
		require.Equal(t, "p", r.Continuation, "it is not lost")
		time.Sleep(time.Hour)
		r, err := s.runs.Run(s.ctx, "newer")
		require.NoError(t, err)
		require.Equal(t, store.RunReady, r.State, "it waits for a newer program")
		cancel()
		require.NoError(t, <-done)
	})
}

func TestMisconfiguredEnginesAndWorkersAreRefused(t *testing.T) {
	ctx := context.Background()
	require.ErrorIs(t, (&Engine{}).Serve(ctx), errNoStore)
	require.ErrorIs(t, (&Worker{}).Serve(ctx), errNoStore)
	_, err := (&Engine{}).Start(ctx, StartRequest{Agent: "a"})
	require.ErrorIs(t, err, errNoStore)
	_, err = (&Engine{Store: store.Memory()}).Start(ctx, StartRequest{Conversation: "c"})
	require.ErrorIs(t, err, errNoAgent)
	require.ErrorIs(t, (&Worker{Store: store.Memory(), Tools: []executor.Tool{nameless{}}}).Serve(ctx), content.ErrTool)
}

type nameless struct{ executor.Tool }

func (nameless) Definition() content.Tool { return content.Tool{} }

func TestRunThatKeepsLosingItsProcessIsParked(t *testing.T) {
	play(t, counter("count", has), func(s *scene) { s.engine.Attempts = 3 }, func(s *scene) {
		s.stop()
		run := s.start()
		for range 3 { // three processes that die
			claimed, err := s.runs.ClaimRuns(s.ctx, store.ClaimRunsRequest{Agents: []string{"a"}, Lease: -1})
			require.NoError(t, err)
			require.Len(t, claimed, 1)
		}

		ctx, cancel := context.WithCancel(s.ctx)
		done := make(chan error, 2)
		go func() { done <- s.engine.Serve(ctx) }()
		go func() { done <- s.worker.Serve(ctx) }()
		r := s.wait(run)
		require.Equal(t, store.RunParked, r.State)
		require.Contains(t, r.Reason, "it was claimed 3 times without a pause")

		require.NoError(t, s.runs.Requeue(s.ctx, run))
		require.Equal(t, store.RunDone, s.wait(run).State)
		cancel()
		require.NoError(t, <-done)
		require.NoError(t, <-done)
	})
}

func TestCallOfASubAgentIsExecutedByAWorker(t *testing.T) {
	count := counter("count", has)
	play(t, count, func(s *scene) {
		inner := executor.Agent{Provider: twoCalls("count"), Tools: []dag.Tool{count}, Strategy: executor.DeferAll()}
		s.engine.Agents["a"] = executor.Agent{
			Tools: []dag.Tool{executor.SubAgent("ask", "Asks another agent.", inner)},
			Provider: apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
				if results := req.Messages[len(req.Messages)-1].Blocks.ToolResults(); len(results) > 0 {
					return apitest.Say("It says: " + results[0].Content.Text())
				}
				return apitest.Call(apitest.Use("ask", executor.Task{Task: "Count."}))
			}).Always()),
		}
	}, func(s *scene) {
		r := s.wait(s.start())
		require.Equal(t, store.RunDone, r.State, r.Reason)
		require.Equal(t, "It says: many bolts. many nuts. ", s.text())
	})
}

// TestStepsOfAResumedSubAgentAreStored interrupts a sub-agent in its second tool call, after a worker had executed its
// first one.
func TestStepsOfAResumedSubAgentAreStored(t *testing.T) {
	item := count{"bolts"}
	begun, paid := make(chan struct{}), 0

	pay := counter("pay", func(ctx context.Context, _ string) (string, error) {
		paid++
		close(begun)
		<-ctx.Done()
		return "", ctx.Err()
	})
	counts := counter("count", has)

	play(t, counts, func(s *scene) {
		inner := executor.Agent{
			Tools: []dag.Tool{executor.DeferredTool(counts.Definition()), pay}, Log: s.engine.Log,
			Provider: apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
				switch results := req.Messages[len(req.Messages)-1].Blocks.ToolResults(); {
				case len(results) == 0:
					return apitest.Call(apitest.Use("count", item))
				case results[0].Content.Text() == "many bolts":
					return apitest.Call(apitest.Use("pay", item))
				default:
					return apitest.Say(results[0].Content.Text())
				}
			}).Always()),
		}

		s.engine.Agents["a"] = executor.Agent{
			Tools: []dag.Tool{executor.SubAgent("ask", "Asks another agent.", inner)},
			Provider: apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
				if results := req.Messages[len(req.Messages)-1].Blocks.ToolResults(); len(results) > 0 {
					return apitest.Say("It says: " + results[0].Content.Text())
				}
				return apitest.Call(apitest.Use("ask", executor.Task{Task: "Count."}))
			}).Always()),
		}
	}, func(s *scene) {
		run := s.start()
		<-begun
		s.stop()

		ctx, cancel := context.WithCancel(s.ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = (&Engine{Store: s.runs, Settings: quiet(), Agents: s.engine.Agents}).Serve(ctx)
		}()
		r := s.wait(run)
		cancel()
		<-done

		require.Equal(t, store.RunDone, r.State, r.Reason)
		require.Equal(t, "It says: "+content.OutcomeUnknown, s.text())
		require.Equal(t, 1, paid)
	})
}

func TestUnclaimedCallAcceptsAReply(t *testing.T) {
	play(t, counter("count", has), func(s *scene) { s.worker.Tools = nil }, func(s *scene) {
		run := s.start()
		synctest.Wait()
		states, err := s.runs.Tasks(s.ctx, run)
		require.NoError(t, err)
		for _, state := range states {
			require.NoError(t, s.engine.Reply(s.ctx, state.Task.Key, executor.Failed(shown(s.T, state), "the shelf is gone")))
		}
		s.wait(run)
		require.Equal(t, "the shelf is gone. the shelf is gone. ", s.text())
	})
}

func TestHandleDoesTheWorkOfAWakeUp(t *testing.T) {
	play(t, counter("count", has), nil, func(s *scene) {
		s.stop()
		var wakes []store.Wake
		defer s.runs.Listen(func(w store.Wake) { wakes = append(wakes, w) })()
		run := s.start()
		for range 2 { // every wake-up twice
			for i := 0; i < len(wakes); i++ {
				require.NoError(t, s.engine.Handle(s.ctx, wakes[i]))
				require.NoError(t, s.worker.Handle(s.ctx, wakes[i]))
			}
		}
		r, err := s.runs.Run(s.ctx, run)
		require.NoError(t, err)
		require.Equal(t, store.RunDone, r.State)
		require.Equal(t, "many bolts. many nuts. ", s.text())
	})
}

func TestServeAndHandleShareTheSlots(t *testing.T) {
	running, peak := atomic.Int32{}, atomic.Int32{}
	slow := counter("count", func(ctx context.Context, item string) (string, error) {
		peak.Store(max(peak.Load(), running.Add(1)))
		defer running.Add(-1)
		time.Sleep(time.Second)
		return "many " + item, nil
	})
	play(t, slow, func(s *scene) { s.worker.Concurrency = 1 }, func(s *scene) {
		var handled sync.WaitGroup
		stop := s.runs.Listen(func(w store.Wake) {
			handled.Go(func() { require.NoError(t, s.worker.Handle(s.ctx, w)) })
		})
		require.Equal(t, store.RunDone, s.wait(s.start()).State)
		stop() // no goroutine begins while the test waits for them
		handled.Wait()
		require.EqualValues(t, 1, peak.Load())
	})
}

func TestHandleReleasesItsCallWhenStopped(t *testing.T) {
	calls := 0
	stuck := counter("count", func(ctx context.Context, item string) (string, error) {
		if calls++; calls == 1 {
			<-ctx.Done()
			return "", ctx.Err()
		}
		return "many " + item, nil
	})
	change := func(s *scene) {
		s.engine.CallOptions = func(dag.Pending) CallOptions { return CallOptions{Attempts: 2} }
	}
	play(t, stuck, change, func(s *scene) {
		s.stop()
		var wakes []store.Wake
		defer s.runs.Listen(func(w store.Wake) { wakes = append(wakes, w) })()
		run := s.start()
		require.NoError(t, s.engine.Handle(s.ctx, wakes[0]))
		task := wakes[len(wakes)-1]

		ctx, cancel := context.WithCancel(s.ctx)
		time.AfterFunc(time.Second, cancel)
		began := time.Now()
		require.NoError(t, s.worker.Handle(ctx, task))
		require.Equal(t, 6*time.Second, time.Since(began)) // of fake time: ShutdownTimeout after the cancellation
		require.ErrorIs(t, s.worker.Handle(ctx, task), context.Canceled)

		// The lease has not ended by time.
		require.NoError(t, s.worker.Handle(s.ctx, task))
		require.Equal(t, 2, calls)
		states, err := s.runs.Tasks(s.ctx, run)
		require.NoError(t, err)
		require.Equal(t, []bool{false, true}, []bool{states[0].Done, states[1].Done})
		require.Equal(t, 2, states[1].Claims)
	})
}

func TestHeadThatSomebodyElseMovesIsReadAgain(t *testing.T) {
	play(t, counter("count", has), func(s *scene) {
		moved := false
		a := s.engine.Agents["a"]
		a.Provider = apitest.NewScript(apitest.Func(func(api.Request) apitest.Turn {
			if !moved {
				moved = true
				c, err := store.New(s.runs, nil).Conversation(s.ctx, "c")
				require.NoError(t, err)
				require.NoError(t, c.Append(s.ctx, c.DAG().User("One more thing.")))
			}
			return apitest.Say("Answer.")
		}).Always())
		s.engine.Agents["a"] = a
	}, func(s *scene) {
		require.Equal(t, store.RunDone, s.wait(s.start()).State)
		c, err := open(s.ctx, s.runs, "c", store.Main)
		require.NoError(t, err)
		messages := c.DAG().Transcript().Messages
		require.Len(t, messages, 3)
		require.Equal(t, "One more thing.", messages[1].Blocks.Text())
	})
}

func TestEffectOfAToolDecidesHowOftenItsCallsAreBegun(t *testing.T) {
	tool := counter("count", has)
	for effect, want := range map[executor.Effect]int{
		executor.EffectUnknown: 1, executor.EffectReadOnly: repeatable, executor.EffectIdempotent: repeatable,
	} {
		play(t, executor.WithTimeout(executor.WithEffect(tool, effect), time.Minute), nil, func(s *scene) {
			run := s.start()
			s.wait(run)
			states, err := s.runs.Tasks(s.ctx, run)
			require.NoError(t, err)
			require.Equal(t, want, states[0].Task.Attempts)
		})
	}
}

func TestIdempotencyKeyIsTheSameAtEachAttempt(t *testing.T) {
	var mu sync.Mutex
	keys := map[string]int{}
	tool := counter("count", func(ctx context.Context, item string) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		key := executor.IdempotencyKey(ctx)
		if keys[key]++; keys[key] < 3 {
			return "", Retry(errors.New("again"), time.Second)
		}
		return item, nil
	})
	play(t, executor.WithEffect(tool, executor.EffectIdempotent), nil, func(s *scene) {
		s.wait(s.start())
		require.Equal(t, "bolts. nuts. ", s.text())
		require.Len(t, keys, 2)
	})
}
