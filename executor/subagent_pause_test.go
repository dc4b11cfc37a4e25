package executor_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/replay"
	"github.com/plait-dev/plait/node"
)

// calling is a model that calls tools first, and says their results once it has them. It keeps no state, so that another process
// goes on with it.
func calling(calls ...content.ToolUse) api.Provider {
	return apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
		var said []string
		for _, m := range req.Messages {
			for _, r := range m.Blocks.ToolResults() {
				said = append(said, outcome(content.ToolResult{Content: r.Content, IsError: r.IsError}))
			}
		}
		if len(said) == 0 {
			return apitest.Call(calls...).Usage(content.Usage{Input: 10, Output: 1})
		}
		return apitest.Say("<" + strings.Join(said, "; ") + ">").Usage(content.Usage{Input: 20, Output: 2})
	}).Always())
}

// toSub is a call of a sub-agent.
func toSub(name, id string) content.ToolUse {
	use := apitest.Use(name, executor.Task{Task: "do it"})
	use.ID = id
	return use
}

// plainCall is a call of a tool without arguments, whose ID is its name.
func plainCall(name string) content.ToolUse {
	return content.ToolUse{ID: name, Name: name, Input: "{}"}
}

// tally counts how often tools ran.
type tally struct {
	mu   sync.Mutex
	runs []string
}

func (t *tally) ran() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(slices.Values(t.runs))
}

// tool is a tool that returns its name.
func (t *tally) tool(name string) executor.Tool {
	return tool(name, func(context.Context) (any, error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.runs = append(t.runs, name)
		return name, nil
	})
}

// risky is a sub-agent that calls tools, of which the named ones need approval.
func (t *tally) risky(name string, approve []string, calls ...string) executor.Tool {
	agent := executor.Agent{Hooks: []executor.Hook{executor.RequireApproval(approve...)}}
	var uses []content.ToolUse
	for _, c := range calls {
		agent.Tools, uses = append(agent.Tools, t.tool(c)), append(uses, plainCall(c))
	}
	agent.Provider = calling(uses...)
	return executor.SubAgent(name, "", agent)
}

// nest is an agent with a sub-agent, in which there is another one, and so on, as many as depth. The innermost one calls "erase",
// which needs approval. Each calls the tool "look" with a number beside its sub-agent.
func (t *tally) nest(depth int) executor.Agent {
	if depth == 0 {
		return executor.Agent{
			Provider: calling(plainCall("erase")), Tools: []dag.Tool{t.tool("erase")},
			Hooks: []executor.Hook{executor.RequireApproval("erase")},
		}
	}
	look := fmt.Sprint("look", depth)
	return executor.Agent{
		Provider: calling(plainCall(look), toSub("deeper", "deeper")),
		Tools:    []dag.Tool{t.tool(look), executor.SubAgent("deeper", "", t.nest(depth-1))},
	}
}

// saveAndLoad returns what another process loads of a pause: the conversation without tools, and the continuation.
func saveAndLoad(t *testing.T, d dag.DAG, err error) (dag.DAG, executor.Continuation) {
	t.Helper()
	c := pauseOf(t, err)
	return asJSON.carry(t, d, c), c
}

// idsOf returns the names of the calls that wait.
func idsOf(d dag.DAG) []string { return waiting(d) }

// TestApprovalThreeSubAgentsDeepIsResumedInAnotherProcess runs itself twice: one process pauses, the other one resumes. The tools
// that ran are lines of a file.
func TestApprovalThreeSubAgentsDeepIsResumedInAnotherProcess(t *testing.T) {
	if folder := os.Getenv("PLAIT_TEST_PAUSED"); folder != "" {
		pauseOrResume(t, folder)
		return
	}

	folder := t.TempDir()
	for range 2 {
		process := exec.Command(os.Args[0], "-test.run=^TestApprovalThreeSubAgentsDeepIsResumedInAnotherProcess$")
		process.Env = append(os.Environ(), "PLAIT_TEST_PAUSED="+folder)
		out, err := process.CombinedOutput()
		require.NoError(t, err, string(out))
	}

	ran, err := os.ReadFile(filepath.Join(folder, "ran"))
	require.NoError(t, err)
	require.Equal(t, "look1 look2 look3\nerase\n", string(ran), "the tools of each process")
	d, err := dag.Load(filepath.Join(folder, "run.json"))
	require.NoError(t, err)
	require.Equal(t, "<look3; <look2; <look1; <erase>>>>", d.Text())
	requireValid(t, d)
}

// pauseOrResume is one of the two processes: the first finds no reply in the folder.
func pauseOrResume(t *testing.T, folder string) {
	var ran tally
	agent := ran.nest(3)
	conversation, pause := filepath.Join(folder, "run.json"), filepath.Join(folder, "reply.json")
	saved, err := os.ReadFile(pause)

	var d dag.DAG
	if errors.Is(err, os.ErrNotExist) {
		d, err = agent.Run(t.Context(), dag.New().User("Go."))
		require.ErrorIs(t, err, executor.ErrPaused)
		reply, encodeErr := executor.Approved(d.Pending()[0]).MarshalJSON()
		require.NoError(t, encodeErr)
		require.NoError(t, os.WriteFile(pause, reply, 0o600))
	} else {
		var reply executor.Reply
		require.NoError(t, reply.UnmarshalJSON(saved))
		d, err = dag.Load(conversation)
		require.NoError(t, err)
		require.Equal(t, []string{"deeper/deeper/deeper/erase"}, idsOf(d))
		d, err = agent.Resume(t.Context(), d, reply)
		require.NoError(t, err)
	}
	require.NoError(t, d.Save(conversation))

	file, err := os.OpenFile(filepath.Join(folder, "ran"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	_, err = fmt.Fprintln(file, strings.Join(ran.ran(), " "))
	require.NoError(t, errors.Join(err, file.Close()))
}

func TestPauseNamesThePathOfEachCall(t *testing.T) {
	var ran tally
	d, err := ran.nest(2).Run(t.Context(), dag.New().User("Go."))
	c := pauseOf(t, err)
	require.Equal(t, content.StopApproval, c.Reason)
	require.Equal(t, []string{"deeper/deeper/erase"}, idsOf(d))
	p := d.Pending()[0]
	require.Equal(t, "erase", p.Call.Name)
	require.True(t, p.Approval)
	require.Equal(t, []node.CallKey{p.Key}, c.Calls)

	names := callNames(d)
	require.Equal(t, []string{"deeper", "deeper/deeper"}, []string{names[p.Path[0]], names[p.Path[1]]})
	require.Empty(t, d.Validate(), "the paused conversation is valid")
}

func TestTwoSubAgentsThatPauseAreOnePause(t *testing.T) {
	var ran tally
	agent := executor.Agent{
		Provider: calling(toSub("first", "1"), plainCall("look"), toSub("second", "2")),
		Tools:    []dag.Tool{ran.risky("first", []string{"a"}, "a"), ran.tool("look"), ran.risky("second", []string{"b", "c"}, "b", "c", "d")},
	}
	d, err := agent.Run(t.Context(), dag.New().User("Go."))
	both := pauseOf(t, err)
	require.Equal(t, []string{"1/a", "2/b", "2/c"}, idsOf(d), "nobody has decided about d")
	require.Equal(t, []string{"look"}, ran.ran())

	// A reply to one sub-agent: the run pauses again for the other.
	d = asJSON.carry(t, d, both)
	used := replySet{"1/a": approved()}.of(d)
	d, err = agent.Resume(t.Context(), d, replySet{"1/a": approved()}.of(d)...)
	rest := pauseOf(t, err)
	require.Equal(t, []string{"a", "look"}, ran.ran())
	require.Equal(t, []string{"2/b", "2/c"}, idsOf(d), "the other sub-agent is where it was")
	require.Equal(t, both.ID, rest.Parent)

	noModel := agent
	noModel.Provider = nil // not even this is looked at before
	after, err := noModel.Resume(t.Context(), d, used...)
	requireRefused(t, d, after, err, executor.ErrUnknownCall, "a sub-agent has its result since")

	// The approvals of one message belong together.
	_, err = agent.Resume(t.Context(), d, replySet{"2/b": approved()}.of(d)...)
	var refused *executor.ResumeError
	require.ErrorAs(t, err, &refused)
	require.ErrorIs(t, err, executor.ErrMissingReply)
	require.Equal(t, "2/c", callNames(d)[refused.Call])

	d = asJSON.carry(t, d, rest)
	d, err = agent.Resume(t.Context(), d, replySet{"2/b": approved(), "2/c": declined("no")}.of(d)...)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "d", "look"}, ran.ran())
	require.Equal(t, "<<a>; look; <b; error: Tool call denied: no; d>>", d.Text())
	requireValid(t, d)
}

func TestRepliesToOneSubAgentMayBeNone(t *testing.T) {
	var ran tally
	agent := ran.nest(1)
	d, err := agent.Run(t.Context(), dag.New().User("Go."))
	first := pauseOf(t, err)
	after, err := agent.Resume(t.Context(), d)
	second := pauseOf(t, err)
	require.True(t, dag.Equal(d, after), "nothing was done")
	require.Equal(t, first.ID, second.ID)

	_, err = agent.Resume(t.Context(), after, replySet{"deeper/erase": approved()}.of(after)...)
	require.NoError(t, err)
	require.Equal(t, []string{"erase", "look1"}, ran.ran())
}

func TestDeferredCallOfASubAgentPausesTheRun(t *testing.T) {
	afar := executor.DeferredTool(content.Tool{Name: "afar", Schema: `{"type":"object"}`})
	sub := executor.SubAgent("sub", "", executor.Agent{Provider: calling(plainCall("afar"), plainCall("fast")), Tools: []dag.Tool{afar, fast}})
	agent := executor.Agent{Provider: calling(toSub("sub", "s"), plainCall("afar")), Tools: []dag.Tool{sub, afar}}
	d, err := agent.Run(t.Context(), dag.New().User("Go."))
	c := pauseOf(t, err)
	require.Equal(t, content.StopResults, c.Reason)
	require.Equal(t, []string{"s/afar", "afar"}, idsOf(d))

	tasks, err := executor.ToolTaskCodec{}.Encode(d, nil)
	require.NoError(t, err)
	task, err := executor.ToolTaskCodec{}.Decode(tasks[0])
	require.NoError(t, err)
	require.Equal(t, d.Pending()[0], withPath(task.Pending, d))

	result := func(text string) answer {
		return returned(executor.Result{Content: content.Words(text)})
	}
	d, err = agent.Resume(t.Context(), d, replySet{"afar": result("outer")}.of(d)...)
	require.ErrorIs(t, err, executor.ErrPaused)
	require.Equal(t, []string{"s/afar"}, idsOf(d))

	_, err = agent.Resume(t.Context(), d, replySet{"afar": result("other")}.of(d)...)
	require.ErrorIs(t, err, executor.ErrConflict)
	for id, wrong := range map[string]error{"s/fast": executor.ErrConflict, "s/nobody": executor.ErrUnknownCall, "s": executor.ErrUnknownCall} {
		_, err = agent.Resume(t.Context(), d, replySet{id: result("other")}.of(d)...)
		require.ErrorIs(t, err, wrong, id)
		var refused *executor.ResumeError
		require.ErrorAs(t, err, &refused)
	}
	_, err = agent.Resume(t.Context(), d, replySet{"s/afar": approved()}.of(d)...)
	require.ErrorIs(t, err, executor.ErrReply)

	d, err = agent.Resume(t.Context(), d, replySet{"s/afar": result("inner"), "s/fast": result("fast"), "afar": result("outer")}.of(d)...)
	require.NoError(t, err, "results that the conversation has already may come again")
	require.Equal(t, "<<inner; fast>; outer>", d.Text())
}

func TestEditedArgumentsAndDenialsReachTheSubAgent(t *testing.T) {
	word := content.ToolUse{ID: "e", Name: "echo", Input: `{"text":"before"}`}
	inner := executor.Agent{Provider: calling(word), Tools: []dag.Tool{echo}, Hooks: []executor.Hook{executor.RequireApproval()}}
	agent := executor.Agent{Provider: calling(toSub("sub", "s")), Tools: []dag.Tool{executor.SubAgent("sub", "", inner)}}
	for want, reply := range map[string]answer{
		"<<after>>":                       approvedWith(`{"text":"after"}`),
		"<<error: Tool call denied: no>>": declined("no"),
	} {
		d, err := agent.Run(t.Context(), dag.New().User("Go."))
		d, _ = saveAndLoad(t, d, err)
		d, err = agent.Resume(t.Context(), d, replySet{"s/e": reply}.of(d)...)
		require.NoError(t, err)
		require.Equal(t, want, d.Text())
	}
}

func TestResumeRefusesAnApprovalOfASubAgentThatWentOn(t *testing.T) {
	var ran tally
	agent := ran.nest(2)
	d, err := agent.Run(t.Context(), dag.New().User("Go."))
	require.ErrorIs(t, err, executor.ErrPaused)
	approval := executor.Approved(d.Pending()[0])
	done, err := agent.Resume(t.Context(), d, approval)
	require.NoError(t, err)
	after, err := agent.Resume(t.Context(), done, approval)
	requireRefused(t, done, after, err, executor.ErrUnknownCall, "after the end")

	// The approval of the first pause beside the conversation of the second one, in the same message.
	twice := executor.SubAgent("twice", "", executor.Agent{
		Provider: apitest.NewScript(apitest.Call(plainCall("erase")), apitest.Call(plainCall("erase")), apitest.Say("done")),
		Tools:    []dag.Tool{ran.tool("erase")}, Hooks: []executor.Hook{executor.RequireApproval()},
	})
	agent = executor.Agent{Provider: calling(toSub("twice", "t")), Tools: []dag.Tool{twice}}
	d, err = agent.Run(t.Context(), dag.New().User("Go."))
	require.ErrorIs(t, err, executor.ErrPaused)
	approval = executor.Approved(d.Pending()[0])
	d, err = agent.Resume(t.Context(), d, approval)
	require.ErrorIs(t, err, executor.ErrPaused)
	after, err = agent.Resume(t.Context(), d, approval)
	requireRefused(t, d, after, err, executor.ErrUnknownCall, "its sub-agent went on")
	_, err = agent.Resume(t.Context(), d, executor.Approved(d.Pending()[0]))
	require.NoError(t, err)
}

func TestClaimOnceOfASubAgentRefusesBeforeAnythingRuns(t *testing.T) {
	var ran tally
	inner := ran.nest(0)
	inner.Hooks = append(inner.Hooks, executor.ClaimOnce())
	agent := executor.Agent{Provider: calling(toSub("sub", "s")), Tools: []dag.Tool{executor.SubAgent("sub", "", inner)}}
	d, err := agent.Run(t.Context(), dag.New().User("Go."))
	pauseOf(t, err)
	replies := replySet{"s/erase": approved()}
	_, err = agent.Resume(t.Context(), d, replies.of(d)...)
	require.NoError(t, err)
	after, err := agent.Resume(t.Context(), d, replies.of(d)...)
	requireRefused(t, d, after, err, executor.ErrStale, "claimed")
	require.Equal(t, []string{"erase"}, ran.ran())
}

func TestResumeNamesASubAgentThatIsGone(t *testing.T) {
	var ran tally
	agent := ran.nest(2)
	d, err := agent.Run(t.Context(), dag.New().User("Go."))
	d, _ = saveAndLoad(t, d, err)
	replies := replySet{"deeper/deeper/erase": approved()}
	for id, other := range map[string]executor.Agent{
		"deeper":        {Provider: agent.Provider, Tools: []dag.Tool{tool("deeper", func(context.Context) (any, error) { return "", nil })}},
		"deeper/deeper": {Provider: agent.Provider, Tools: []dag.Tool{executor.SubAgent("deeper", "", executor.Agent{Provider: agent.Provider})}},
	} {
		after, err := other.Resume(t.Context(), d, replies.of(d)...)
		var refused *executor.ResumeError
		require.ErrorAs(t, err, &refused, id)
		require.ErrorContains(t, err, "the sub-agent does not exist")
		require.Equal(t, id, callNames(d)[refused.Call])
		require.True(t, dag.Equal(d, after), "nothing was done")
	}
	_, err = agent.Resume(t.Context(), d, replies.of(d)...)
	require.NoError(t, err)
}

func TestRunContinuesAPausedSubAgentWithoutItsContinuation(t *testing.T) {
	var ran tally
	agent := ran.nest(2)
	d, err := agent.Run(t.Context(), dag.New().User("Go."))
	require.ErrorIs(t, err, executor.ErrPaused)
	d, err = agent.Run(t.Context(), d)
	pauseOf(t, err)
	require.Equal(t, []string{"look1", "look2"}, ran.ran(), "what had a result is not run again")
	d, err = agent.Resume(t.Context(), d, replySet{"deeper/deeper/erase": approved()}.of(d)...)
	require.NoError(t, err)
	require.Equal(t, "<look2; <look1; <erase>>>", d.Text())
	require.Equal(t, []string{"erase", "look1", "look2"}, ran.ran())
}

func TestAGivenUpPauseKeepsTheConversationOfTheSubAgent(t *testing.T) {
	var ran tally
	d, err := ran.nest(1).Run(t.Context(), dag.New().User("Go."))
	require.ErrorIs(t, err, executor.ErrPaused)
	for name, given := range map[string]dag.DAG{"closed": d.CloseTools(), "asked on": d.User("Never mind.")} {
		require.NoError(t, given.Err(), name)
		children := 0
		for _, n := range given.Nodes() {
			if child := dag.FromNode(n); child.Len() > 0 {
				children++
				require.Len(t, child.OpenCalls(), 1, name)
			}
		}
		require.Equal(t, 1, children, name)
	}
}

func TestTotalsOfAPausedSubAgentCountOnce(t *testing.T) {
	whole := func(agent executor.Agent) (node.StopReason, []content.Usage) {
		var turns []content.Usage
		d, err := dag.New().User("Go."), error(nil)
		events := agent.Stream(t.Context(), d)
		for range 3 {
			for event, eventErr := range events {
				switch e := event.(type) {
				case executor.TurnEnd:
					turns = append(turns, e.Usage, e.ToolUsage)
				case executor.End:
					d, err = e.DAG, eventErr
				}
			}
			if err == nil {
				break
			}
			loaded, _ := saveAndLoad(t, d, err)
			events = agent.ResumeStream(t.Context(), loaded, approvedAll(loaded)...)
		}
		stop := stopped(t, d)
		stop.Elapsed = 0
		for _, n := range d.Nodes() {
			if e, ok := n.Payload().(node.ToolExecution); ok && e.Tool == "deeper" {
				turns = append(turns, e.Usage)
			}
		}
		return stop, turns
	}

	prices := api.Prices{"script": {Input: 1, Output: 2}}
	build := func(approve bool) executor.Agent {
		var ran tally
		inner := executor.Agent{Provider: calling(plainCall("erase")), Tools: []dag.Tool{ran.tool("erase")}, Prices: prices}
		if approve {
			inner.Hooks = []executor.Hook{executor.RequireApproval()}
		}
		outer := executor.Agent{Provider: calling(toSub("deeper", "d")), Tools: []dag.Tool{executor.SubAgent("deeper", "", inner)}, Prices: prices}
		return executor.Agent{Provider: calling(toSub("deeper", "d")), Tools: []dag.Tool{executor.SubAgent("deeper", "", outer)}, Prices: prices}
	}
	straight, turns := whole(build(false))
	paused, pausedTurns := whole(build(true))
	require.NotZero(t, straight.ToolUsage)
	require.Equal(t, straight, paused)
	require.Equal(t, turns, pausedTurns)
}

func TestLimitsHoldOverAPauseOfASubAgent(t *testing.T) {
	var ran tally
	inner := executor.Agent{Provider: calling(plainCall("erase")), Tools: []dag.Tool{ran.tool("erase")}, Hooks: []executor.Hook{executor.RequireApproval()}}
	agent := func(outer, sub executor.Limits) executor.Agent {
		inner.Limits = sub
		return executor.Agent{Limits: outer, Provider: calling(toSub("sub", "s")), Tools: []dag.Tool{executor.SubAgent("sub", "", inner)}}
	}
	for name, c := range map[string]struct {
		agent executor.Agent
		want  content.Stop
		text  string
	}{
		"the parent's tokens":    {agent(executor.Limits{Tokens: 22}, executor.Limits{}), content.StopTokenLimit, "[Agent stopped: token_limit]"},
		"the sub-agent's tokens": {agent(executor.Limits{}, executor.Limits{Tokens: 11}), content.StopEndTurn, "[Agent stopped: token_limit]"},
		"the sub-agent's turns":  {agent(executor.Limits{}, executor.Limits{Turns: 1}), content.StopEndTurn, "[Agent stopped: max_turns]"},
	} {
		d, err := c.agent.Run(t.Context(), dag.New().User("Go."))
		if err != nil {
			loaded, _ := saveAndLoad(t, d, err)
			d, err = c.agent.Resume(t.Context(), loaded, replySet{"s/erase": approved()}.of(loaded)...)
		}
		require.NoError(t, err, name)
		require.Equal(t, c.want, stopped(t, d).Reason, name)
		require.Contains(t, results(t, d)[0].Content.Text(), c.text, name)
	}
}

func TestTimeOfASubAgentDoesNotPassInAPause(t *testing.T) {
	for name, limited := range map[string]func(executor.Tool, executor.Agent) executor.Tool{
		"by the timeout of the call": func(_ executor.Tool, a executor.Agent) executor.Tool {
			return executor.WithTimeout(executor.SubAgent("sub", "", a), time.Minute)
		},
		"by the sub-agent's limit": func(_ executor.Tool, a executor.Agent) executor.Tool {
			a.Limits.Time = time.Minute
			return executor.SubAgent("sub", "", a)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			// 40 seconds before the pause, and so many after it.
			for after, want := range map[time.Duration]string{10 * time.Second: "<<before; after>>", 30 * time.Second: ""} {
				waits := func(name string, d time.Duration) executor.Tool {
					return executor.WithTimeout(tool(name, func(ctx context.Context) (any, error) { return name, wait(ctx, d) }), 0)
				}
				inner := executor.Agent{
					Provider: calling(plainCall("before"), plainCall("after")), Tools: []dag.Tool{waits("before", 40*time.Second), waits("after", after)},
				}
				inner.Hooks = []executor.Hook{{Before: func(_ context.Context, c executor.Call) (executor.Decision, error) {
					if c.Name == "after" {
						return executor.Defer(""), nil
					}
					return executor.Allow(), nil
				}}}
				inner.Provider = calling(plainCall("before"), plainCall("after"))
				agent := executor.Agent{Provider: calling(toSub("sub", "s")), Tools: []dag.Tool{limited(nil, inner)}, ToolTimeout: -1}
				d, err := agent.Run(t.Context(), dag.New().User("Go."))
				pauseOf(t, err)
				time.Sleep(time.Hour)

				slowly := func(ctx context.Context, _ executor.Call, r executor.Result) (executor.Result, error) {
					return r, wait(ctx, after)
				}
				inner.Hooks = []executor.Hook{{After: slowly}}
				inner.ToolTimeout = -1
				agent.Tools = []dag.Tool{limited(nil, inner)}
				d, err = agent.Resume(t.Context(), d, replySet{"s/after": returned(executor.Result{Content: content.Words("after")})}.of(d)...)
				require.NoError(t, err, name)
				if want != "" {
					require.Equal(t, want, d.Text(), name)
				} else {
					require.NotContains(t, d.Text(), "<before; after>", name)
					require.Contains(t, d.Text(), map[bool]string{true: "Tool exceeded timeout of 1m0s.", false: "[Agent stopped: time_limit]"}[strings.Contains(name, "timeout")])
				}
				require.LessOrEqual(t, stopped(t, d).Elapsed, time.Minute, name)
			}
		})
	}
}

// withPath adds the path of the call as d has it: a task has none.
func withPath(p dag.Pending, d dag.DAG) dag.Pending {
	for _, other := range d.Pending() {
		if other.Key == p.Key {
			p.Path = other.Path
		}
	}
	return p
}

func TestKeysOfPendingCallsAreUnique(t *testing.T) {
	var ran tally
	odd := func(id string) content.ToolUse { return content.ToolUse{ID: id, Name: "erase", Input: "{}"} }
	sub := func(name string) executor.Tool {
		return executor.SubAgent(name, "", executor.Agent{
			Provider: calling(odd("b"), odd("b/c"), odd("")), Tools: []dag.Tool{ran.tool("erase")}, Hooks: []executor.Hook{executor.RequireApproval()},
		})
	}
	afar := executor.DeferredTool(content.Tool{Name: "afar", Schema: `{"type":"object"}`})
	far := func(id string) content.ToolUse { return content.ToolUse{ID: id, Name: "afar", Input: "{}"} }
	agent := executor.Agent{
		Provider: calling(toSub("one", "a"), toSub("two", ""), toSub("one", "a/b"), far("a/b/"), far("a/call_2")),
		Tools:    []dag.Tool{sub("one"), sub("two"), afar},
	}
	d, err := agent.Run(t.Context(), dag.New().User("Go."))
	d, c := saveAndLoad(t, d, err)
	require.Len(t, c.Calls, 11)

	keys := map[node.CallKey]bool{}
	replies := approvedAll(d)
	for _, p := range d.Pending() {
		keys[p.Key] = true
		if !p.Approval {
			replies = append(replies, executor.Returned(p, executor.Result{Content: content.Words(p.Call.ID)}))
		}
	}
	require.Len(t, keys, 11)
	d, err = agent.Resume(t.Context(), d, replies...)
	require.NoError(t, err)
	require.Equal(t, "<<erase; erase; erase>; <erase; erase; erase>; <erase; erase; erase>; a/b/; a/call_2>", d.Text())
	require.Len(t, ran.ran(), 9)
}

// TestRepliesReachTheirCallsWhoseIDsLookAlike: one call of the sub-agent has the ID that a call below it gets from its path.
func TestRepliesReachTheirCallsWhoseIDsLookAlike(t *testing.T) {
	afar := executor.DeferredTool(content.Tool{Name: "afar", Schema: `{"type":"object"}`})
	far := func(id string) content.ToolUse { return content.ToolUse{ID: id, Name: "afar", Input: "{}"} }
	deep := executor.SubAgent("deep", "", executor.Agent{Provider: calling(far("y")), Tools: []dag.Tool{afar}})
	sub := executor.SubAgent("sub", "", executor.Agent{Provider: calling(far("x/y"), toSub("deep", "x")), Tools: []dag.Tool{afar, deep}})
	agent := executor.Agent{Provider: calling(toSub("sub", "s")), Tools: []dag.Tool{sub}}
	d, err := agent.Run(t.Context(), dag.New().User("Go."))
	d, _ = saveAndLoad(t, d, err)
	own, below := d.Pending()[0], d.Pending()[1]
	require.Equal(t, []string{"x/y", "y"}, []string{own.Call.ID, below.Call.ID})
	result := func(p dag.Pending, words string) executor.Reply { return brought(words)(p) }

	together, err := agent.Resume(t.Context(), d, result(own, "own"), result(below, "below"))
	require.NoError(t, err)
	require.Equal(t, "<<own; <below>>>", together.Text())

	// The second reply comes after the call of the similar ID has its result.
	d, err = agent.Resume(t.Context(), d, result(own, "own"))
	d, _ = saveAndLoad(t, d, err)
	require.Len(t, d.Pending(), 1)
	_, err = agent.Resume(t.Context(), d, result(own, "other"))
	require.ErrorIs(t, err, executor.ErrConflict)
	d, err = agent.Resume(t.Context(), d, result(below, "below"))
	require.NoError(t, err)
	require.Equal(t, "<<own; <below>>>", d.Text())
}

func TestEventsOfAPausedSubAgent(t *testing.T) {
	var ran tally
	agent := ran.nest(1)
	story := func(events func(func(executor.Event, error) bool)) (lines []string, end executor.End, err error) {
		for event, eventErr := range events {
			depth := ""
			if child, ok := event.(executor.Child); ok {
				depth, event = "child ", child.Event
			}
			switch e := event.(type) {
			case executor.RunStart, executor.Paused, executor.TurnEnd:
				lines = append(lines, depth+fmt.Sprintf("%T", e))
			case executor.ToolStart:
				lines = append(lines, depth+"start "+e.Call.Name)
			case executor.ToolEnd:
				lines = append(lines, depth+"end "+e.Execution.Tool)
			case executor.End:
				lines = append(lines, depth+"End")
				if depth == "" {
					end, err = e, eventErr
				}
			}
		}
		return lines, end, err
	}

	before, end, err := story(executor.Ordered(agent.Stream(t.Context(), dag.New().User("Go."))))
	require.ErrorIs(t, err, executor.ErrPaused)
	require.Equal(t, []string{
		"executor.RunStart", "start look1", "start deeper", "child executor.RunStart", "child executor.Paused", "child End", "end look1",
		"executor.Paused", "End",
	}, before)
	replies := replySet{"deeper/erase": approved()}
	after, _, err := story(agent.ResumeStream(t.Context(), end.DAG, replies.of(end.DAG)...))
	require.NoError(t, err)
	require.Equal(t, []string{
		"executor.RunStart", "start deeper", "child executor.RunStart", "child start erase", "child end erase", "child executor.TurnEnd",
		"child executor.TurnEnd", "child End", "end deeper", "executor.TurnEnd", "executor.TurnEnd", "End",
	}, after)
}

func TestCancelReachesARunWhoseSubAgentPaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran tally
		sub := ran.risky("sub", []string{"erase"}, "erase")
		agent := executor.Agent{Provider: calling(toSub("sub", "s"), plainCall("slow")), Tools: []dag.Tool{sub, executor.WithTimeout(slow, 0)}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // the sub-agent pauses at once, and its sibling takes an hour
		defer cancel()
		d, err := agent.Run(ctx, dag.New().User("Go."))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, executor.ErrPaused, "a run that has ended does not pause")
		require.Equal(t, []string{
			"error: Operation cancelled while the tool was running; it may have had effects.",
			"error: Operation cancelled while the tool was running; it may have had effects.",
		}, outcomes(t, d))
		requireValid(t, d)
		for _, n := range d.Nodes() {
			if e, ok := n.Payload().(node.ToolExecution); ok && e.Tool == "sub" {
				require.Len(t, dag.FromNode(n).OpenCalls(), 1, "the conversation of the sub-agent is kept")
			}
		}
		require.Empty(t, ran.ran())
	})
}

func TestCancelReachesAResumedSubAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := executor.Agent{
			Provider: calling(plainCall("slow")), Tools: []dag.Tool{executor.WithTimeout(slow, 0)}, Hooks: []executor.Hook{executor.RequireApproval()},
		}
		agent := executor.Agent{Provider: calling(toSub("sub", "s")), Tools: []dag.Tool{executor.SubAgent("sub", "", inner)}}
		d, err := agent.Run(t.Context(), dag.New().User("Go."))
		pauseOf(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		d, err = agent.Resume(ctx, d, replySet{"s/slow": approved()}.of(d)...)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, content.StopDeadline, stopped(t, d).Reason)
		require.Empty(t, d.OpenCalls())
		requireValid(t, d)
	})
}

func TestAPauseOfASubAgentInAJournalIsResumed(t *testing.T) {
	var ran tally
	path := filepath.Join(t.TempDir(), "run.jsonl")
	journal, err := dag.OpenJournal(path, nil)
	require.NoError(t, err)
	agent := ran.nest(2)
	agent.Save = func(_ context.Context, d dag.DAG) error { return journal.Append(d) }
	_, err = agent.Run(t.Context(), dag.New().User("Go."))
	pauseOf(t, err)
	require.NoError(t, journal.Close())

	journal, err = dag.OpenJournal(path, nil)
	require.NoError(t, err)
	d, err := agent.Resume(t.Context(), journal.DAG(), replySet{"deeper/deeper/erase": approved()}.of(journal.DAG())...)
	require.NoError(t, err)
	require.NoError(t, journal.Close())
	loaded, err := dag.Load(path)
	require.NoError(t, err)
	require.True(t, dag.Equal(d, loaded))
	require.Equal(t, []string{"erase", "look1", "look2"}, ran.ran())
}

// ownWrapper is a program's own tool around another one.
type ownWrapper struct{ executor.Tool }

type openWrapper struct{ ownWrapper }

func (w openWrapper) Unwrap() executor.Tool { return w.Tool }

func TestSubAgentBehindAProgramsOwnToolPausesOnlyIfItCanBeFound(t *testing.T) {
	var ran tally
	sub := ran.risky("sub", []string{"erase"}, "erase")
	agent := executor.Agent{Provider: calling(toSub("sub", "s")), Tools: []dag.Tool{ownWrapper{sub}}}
	d, err := agent.Run(t.Context(), dag.New().User("Go."))
	require.NoError(t, err)
	require.Equal(t, "<error: the sub-agent waits (awaiting_approval), and cannot be resumed>", d.Text())

	agent.Tools = []dag.Tool{openWrapper{ownWrapper{sub}}}
	d, err = agent.Run(t.Context(), dag.New().User("Go."))
	require.ErrorIs(t, err, executor.ErrPaused)
	d, err = agent.Resume(t.Context(), d, replySet{"s/erase": approved()}.of(d)...)
	require.NoError(t, err)
	require.Equal(t, "<<erase>>", d.Text())
}

func TestExecuteToolsPausesForASubAgent(t *testing.T) {
	var ran tally
	agent := executor.Agent{Tools: []dag.Tool{ran.risky("sub", []string{"erase"}, "erase")}}
	d, err := agent.ExecuteTools(t.Context(), dag.New().Tools(agent.Tools...).User("Go.").Assistant("", toSub("sub", "s")))
	pauseOf(t, err)
	require.Equal(t, []string{"s/erase"}, idsOf(d))
	agent.Provider = apitest.NewScript(apitest.Say("Done."))
	d, err = agent.Resume(t.Context(), d, replySet{"s/erase": approved()}.of(d)...)
	require.NoError(t, err)
	require.Equal(t, []string{"<erase>"}, outcomes(t, d))
}

func TestAStrategyCannotDeferAPausedSubAgent(t *testing.T) {
	var ran tally
	agent := ran.nest(1)
	d, err := agent.Run(t.Context(), dag.New().User("Go."))
	require.ErrorIs(t, err, executor.ErrPaused)
	agent.Strategy = executor.DeferAll()
	d, err = agent.Resume(t.Context(), d, replySet{"deeper/erase": approved()}.of(d)...)
	require.NoError(t, err, "the call has begun: nobody else can execute it")
	require.Equal(t, "<look1; <erase>>", d.Text())
}

// twice is a program's own tool that calls a sub-agent twice.
type twice struct{ openWrapper }

func (w twice) Call(ctx context.Context, call executor.Call) (executor.Result, error) {
	first, err := w.Tool.Call(ctx, call)
	if err != nil {
		return first, err
	}
	second, err := w.Tool.Call(ctx, call)
	second.Content = content.Words(first.Content.Text() + " and " + second.Content.Text())
	return second, err
}

func TestAPausedSubAgentContinuesOnceInACall(t *testing.T) {
	var ran tally
	tool := twice{openWrapper{ownWrapper{ran.risky("sub", []string{"erase"}, "erase")}}}
	agent := executor.Agent{Provider: calling(toSub("sub", "s")), Tools: []dag.Tool{tool}}
	d, err := agent.Run(t.Context(), dag.New().User("Go."))
	pauseOf(t, err)
	inside := func(d dag.DAG) string { return executor.ContinuationOf(dag.FromNode(d.Head())).Run }
	first := inside(d)
	d, err = agent.Resume(t.Context(), d, replySet{"s/erase": approved()}.of(d)...)
	pauseOf(t, err)
	require.NotEqual(t, first, inside(d), "the second one is a run of its own")
	require.Equal(t, []string{"erase"}, ran.ran())
	require.Len(t, d.OpenCalls(), 1)
}

func TestAChangedTaskBeginsAnew(t *testing.T) {
	var ran tally
	agent := ran.nest(2)
	d, err := agent.Run(t.Context(), dag.New().User("Go."))
	require.ErrorIs(t, err, executor.ErrPaused)
	agent.Hooks = []executor.Hook{{Before: func(_ context.Context, c executor.Call) (executor.Decision, error) {
		if c.Name == "deeper" {
			return executor.Modify(`{"task":"do something else"}`), nil
		}
		return executor.Allow(), nil
	}}}
	d, err = agent.Run(t.Context(), d)
	require.ErrorIs(t, err, executor.ErrPaused)
	require.Equal(t, []string{"deeper/deeper/erase"}, idsOf(d))
	require.Equal(t, []string{"look1", "look1", "look2"}, ran.ran(), "the sub-agent with the other task looks itself")
	require.Empty(t, d.Validate())
}

func TestRecordingsLeaveOutPausedCalls(t *testing.T) {
	var ran tally
	d, err := ran.nest(1).Run(t.Context(), dag.New().User("Go."))
	require.ErrorIs(t, err, executor.ErrPaused)
	tape := replay.NewRecording(d)
	_, err = tape.Handle(t.Context(), executor.Call{Name: "look1", Input: "{}"})
	require.NoError(t, err)
	_, err = tape.Handle(t.Context(), executor.Call{Name: "deeper", Input: `{"task":"do it"}`})
	require.ErrorAs(t, err, new(*replay.NotRecordedError))
}
