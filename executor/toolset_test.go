package executor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// declaredOnly is a tool that is declared only.
func declaredOnly(name string) content.Tool {
	return content.Tool{Name: name, Description: "d", Schema: `{"type":"object"}`}
}

// toolsOf returns the names of the tools of a request.
func toolsOf(req api.Request) []string {
	var names []string
	for _, def := range req.Tools {
		names = append(names, def.Name)
	}
	return names
}

// savedWith is a conversation with these tools as another program reads it from its file: nothing can run them.
func savedWith(t *testing.T, names ...string) dag.DAG {
	t.Helper()
	var tools []dag.Tool
	for _, name := range names {
		tools = append(tools, declaredOnly(name))
	}
	var file strings.Builder
	require.NoError(t, dag.New().Tools(tools...).User("Go.").Write(&file))
	d, err := dag.Read(strings.NewReader(file.String()))
	require.NoError(t, err)
	return d
}

func TestSessionOutlivesToolsOfTheProgram(t *testing.T) {
	model := apitest.NewScript(apitest.Call(call("grep"), call("fast")), apitest.Say("Done."))
	var log strings.Builder
	agent := executor.Agent{Provider: model, Tools: []dag.Tool{fast}, Log: slog.New(slog.NewTextHandler(&log, nil))}
	all, end, err := watch(t, agent.Stream(t.Context(), savedWith(t, "grep", "fast", "web")))
	require.NoError(t, err)

	for _, req := range model.Requests() {
		require.Equal(t, []string{"fast"}, toolsOf(req), "what cannot be run is not sent")
	}
	require.Equal(t, []string{`error: Tool "grep" not found. Available tools: fast`, "fast"}, outcomes(t, end.DAG))
	require.Len(t, end.DAG.ToolDefs(), 3, "the graph keeps what was declared")
	require.Equal(t, []string{"grep", "web"}, only[executor.RunStart](all)[0].Unbound)
	require.Contains(t, log.String(), `tools="[grep web]" run=`)
	requireValid(t, end.DAG)

	// The program has the tool again: the model is sent it again.
	grep := tool("grep", func(context.Context) (any, error) { return "found", nil })
	model = apitest.NewScript(apitest.Call(call("grep")), apitest.Say("Done."))
	agent = executor.Agent{Provider: model, Tools: []dag.Tool{fast, grep}, Log: agent.Log}
	d, err := agent.Run(t.Context(), end.DAG.User("Once more."))
	require.NoError(t, err)
	require.Equal(t, []string{"grep", "fast"}, toolsOf(model.Requests()[0]))
	require.Equal(t, []string{"found"}, outcomes(t, d))
}

func TestWithdrawnToolIsNoSuchTool(t *testing.T) {
	model := apitest.NewScript(apitest.Call(call("echo"), call("fast")), apitest.Say("Done."))
	d, err := executor.Run(t.Context(), model, ask(echo, fast).WithdrawTools("echo"))
	require.NoError(t, err)
	require.Equal(t, []string{"fast"}, toolsOf(model.Requests()[0]))
	require.Equal(t, []string{`error: Tool "echo" not found. Available tools: fast`, "fast"}, outcomes(t, d))

	// A hook withdraws one during the run.
	withdraw := executor.Hook{Next: func(_ context.Context, turn executor.Turn) (executor.Turn, error) {
		turn.DAG = turn.DAG.WithdrawTools("fast")
		return turn, nil
	}}
	model = apitest.NewScript(apitest.Call(call("fast")), apitest.Call(call("fast")), apitest.Say("Done."))
	d, err = executor.Agent{Provider: model, Hooks: []executor.Hook{withdraw}}.Run(t.Context(), ask(fast))
	require.NoError(t, err)
	require.Equal(t, []string{"fast"}, toolsOf(model.Requests()[0]))
	require.Empty(t, toolsOf(model.Requests()[1]))
	require.Equal(t, []string{`error: Tool "fast" not found. There are no tools.`}, outcomes(t, d))
}

func TestOpenCallOfAToolThatIsGoneIsAnswered(t *testing.T) {
	d := savedWith(t, "grep").Assistant("", call("grep"))
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	d, err := executor.Agent{Log: quiet}.ExecuteTools(t.Context(), d)
	require.NoError(t, err)
	require.Empty(t, d.OpenCalls())
	require.Equal(t, []string{`error: Tool "grep" not found. There are no tools.`}, outcomes(t, d))
}

// TestThinkingHoldsForTheToolsThatAreSent: a run leaves out what cannot be run, so thinking is bound to the rest.
func TestThinkingHoldsForTheToolsThatAreSent(t *testing.T) {
	thinks := func(text string) apitest.Turn {
		return apitest.Answer(content.Thinking{Text: "hm", Signature: "s"}, content.Text{Text: text})
	}
	model := apitest.NewScript(thinks("One."), thinks("Two."), thinks("Three."))
	agent := executor.Agent{Provider: model, Tools: []dag.Tool{fast}, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	d := savedWith(t, "grep", "fast")
	for _, say := range []string{"And then?", "And then?", "Thanks."} {
		var err error
		d, err = agent.Run(t.Context(), d)
		require.NoError(t, err)
		d = d.User(say)
	}
	stale := func(req api.Request) (list []bool) {
		for _, m := range req.Messages {
			if m.Role == content.Assistant {
				list = append(list, m.Blocks.At(0).(content.Thinking).Stale)
			}
		}
		return list
	}
	require.Equal(t, []bool{false, false}, stale(model.Requests()[2]), "the same tools are sent each time")

	grep := tool("grep", func(context.Context) (any, error) { return "found", nil })
	model = apitest.NewScript(apitest.Say("Four."))
	agent.Provider, agent.Tools = model, []dag.Tool{fast, grep}
	_, err := agent.Run(t.Context(), d)
	require.NoError(t, err)
	require.Equal(t, []bool{true, true, true}, stale(model.Requests()[0]), "now the model is sent another tool")
}

func TestAgentsPromptFollowsTheProgram(t *testing.T) {
	model := apitest.NewScript(apitest.Say("Hi.").Always())
	run := func(agent executor.Agent, d dag.DAG) dag.DAG {
		agent.Provider = model
		d, err := agent.Run(t.Context(), d)
		require.NoError(t, err)
		return d
	}
	prompts := func() []string { return model.Requests()[len(model.Requests())-1].System }

	d := run(executor.Agent{System: "You are A."}, dag.New().System("Be kind.").User("Hello."))
	require.Equal(t, []string{"Be kind.", "You are A."}, prompts())
	d = run(executor.Agent{System: "You are B."}, d.User("Hello."))
	require.Equal(t, []string{"Be kind.", "You are B."}, prompts(), "the new prompt replaces the old one")
	length := d.Len()
	d = run(executor.Agent{System: "You are B."}, d.User("Hello."))
	require.Equal(t, []string{"Be kind.", "You are B."}, prompts())
	require.Equal(t, length+4, d.Len(), "the user, the start of the run, the answer and the end of the run")
	d = run(executor.Agent{}, d.User("Hello."))
	require.Equal(t, []string{"Be kind.", "You are B."}, prompts(), "an agent without a prompt leaves it")
	d = run(executor.Agent{System: "Be kind."}, d.User("Hello."))
	require.Equal(t, []string{"Be kind.", "Be kind."}, prompts(), "its own prompt has to go")
	require.Equal(t, "Be kind.", d.SystemPrompt("agent"))

	run(executor.Agent{System: "Be kind."}, dag.New().System("Be kind.").User("Hello."))
	require.Equal(t, []string{"Be kind."}, prompts(), "the conversation has it")
}

func TestInstructionsAreMadeForEachRun(t *testing.T) {
	model := apitest.NewScript(apitest.Call(call("fast")), apitest.Say("Hi."), apitest.Say("Hi.").Always())
	calls := 0
	agent := executor.Agent{Provider: model, System: "not used", Tools: []dag.Tool{fast}, Instructions: func(_ context.Context, d dag.DAG) (string, error) {
		if calls++; calls == 3 {
			return "", nil
		}
		return fmt.Sprintf("Run %d, %d messages.", calls, len(d.Messages())), nil
	}}
	d := dag.New()
	for range 3 {
		var err error
		d, err = agent.Run(t.Context(), d.User("Hello."))
		require.NoError(t, err)
	}
	require.Equal(t, 3, calls, "once a run, not once a turn")
	var prompts [][]string
	for _, req := range model.Requests() {
		prompts = append(prompts, req.System)
	}
	require.Equal(t, [][]string{{"Run 1, 1 messages."}, {"Run 1, 1 messages."}, {"Run 2, 5 messages."}, nil}, prompts)

	failed := errors.New("no database")
	for name, fn := range map[string]func(context.Context, dag.DAG) (string, error){
		"no database": func(context.Context, dag.DAG) (string, error) { return "", failed },
		"panicked":    func(context.Context, dag.DAG) (string, error) { panic("oh no") },
	} {
		agent.Instructions = fn
		after, err := agent.Run(t.Context(), d.User("Hello."))
		require.ErrorContains(t, err, "instructions")
		require.ErrorContains(t, err, name)
		require.True(t, dag.Equal(after, d.User("Hello.")), "the run is refused")
	}
}

// TestPromptIsSetAfterOpenCalls: nothing may stand between calls and their results.
func TestPromptIsSetAfterOpenCalls(t *testing.T) {
	calls := 0
	model := apitest.NewScript(apitest.Say("Done."))
	agent := executor.Agent{Provider: model, Instructions: func(context.Context, dag.DAG) (string, error) {
		calls++
		return "You are A.", nil
	}}
	d, err := agent.Run(t.Context(), ask(fast).Assistant("", call("fast")))
	require.NoError(t, err)
	require.Equal(t, 1, calls)
	require.Equal(t, []string{"You are A."}, model.Requests()[0].System)
	requireValid(t, d)
	var kinds []string
	for _, n := range d.Nodes() {
		kinds = append(kinds, n.Kind())
	}
	require.Equal(t, []string{"tools", "message", "message", "tool_execution", "message", "system", "run_start", "message",
		"stop_reason"}, kinds)
}

func TestNilsAreErrors(t *testing.T) {
	d := dag.New().User("Go.")
	model := apitest.NewScript(apitest.Say("Hi.").Always())
	agent := executor.Agent{Provider: model}
	var none context.Context

	for name, run := range map[string]func() (dag.DAG, error){
		"Run":          func() (dag.DAG, error) { return agent.Run(none, d) },
		"ExecuteTools": func() (dag.DAG, error) { return agent.ExecuteTools(none, d) },
		"Resume": func() (dag.DAG, error) {
			return agent.Resume(none, d)
		},
	} {
		after, err := run()
		require.ErrorContains(t, err, "the context is nil", name)
		require.True(t, dag.Equal(d, after), name)
	}

	var script *apitest.Script
	_, err := executor.Run(t.Context(), script, d)
	require.ErrorContains(t, err, "the agent has no provider", "a nil pointer is no provider")
	unset := executor.Hook{Next: func(_ context.Context, turn executor.Turn) (executor.Turn, error) {
		turn.Provider, turn.Stop = script, ""
		return turn, nil
	}}
	_, err = executor.Agent{Provider: model, Hooks: []executor.Hook{unset}}.Run(t.Context(), d)
	require.ErrorContains(t, err, "the agent has no provider")

	var def *content.Tool
	require.ErrorIs(t, d.Tools(def).Err(), content.ErrTool)
	_, err = executor.Agent{Provider: model, Tools: []dag.Tool{def}}.Run(t.Context(), d)
	require.ErrorIs(t, err, content.ErrTool)
}

type panicsEncoded struct{}

func (panicsEncoded) MarshalJSON() ([]byte, error) { panic("oh no") }

func TestPanicsWhileEncodingAreErrors(t *testing.T) {
	require.ErrorIs(t, dag.New().Custom("acme.note", panicsEncoded{}).Err(), content.ErrJSON)
	_, err := node.Meta{}.With("k", panicsEncoded{})
	require.ErrorIs(t, err, content.ErrJSON)
	_, err = executor.ResultOf(panicsEncoded{})
	require.ErrorContains(t, err, "panicked: oh no")
	require.ErrorContains(t, executor.Progress(t.Context(), panicsEncoded{}), "panicked: oh no")
	require.Equal(t, "no node", new(node.Node).String())
	require.Empty(t, new(node.Node).Kind())
}

func TestQueueRefusesBlocksThatNoUserMessageHas(t *testing.T) {
	for _, block := range []content.Block{
		call("fast"), content.ToolResult{CallID: "1"}, content.Thinking{Text: "hm", Signature: "s"},
	} {
		q := executor.NewQueue()
		require.Error(t, q.Add("Look:", block), "%T", block)
		require.Zero(t, q.Len(), "%T", block)
	}
}

// TestEndOfAContextIsFoundByErrorsIs: both why it ended and what the program gave as the cause.
func TestEndOfAContextIsFoundByErrorsIs(t *testing.T) {
	reason := errors.New("the user left")
	for name, c := range map[string]struct {
		hook  func(cancel func()) executor.Hook
		model api.Provider
	}{
		"while a hook runs": {func(cancel func()) executor.Hook {
			return executor.Hook{Send: func(ctx context.Context, req api.Request) (api.Request, error) {
				cancel()
				<-ctx.Done()
				return req, ctx.Err()
			}}
		}, apitest.NewScript(apitest.Say("Hi."))},
		"before the input is looked at": {func(cancel func()) executor.Hook {
			return executor.Hook{Input: func(ctx context.Context, m content.Message) (content.Message, error) {
				cancel()
				<-ctx.Done()
				return m, ctx.Err()
			}}
		}, apitest.NewScript(apitest.Say("Hi."))},
		"after a turn": {func(cancel func()) executor.Hook {
			return executor.Hook{After: func(_ context.Context, _ executor.Call, r executor.Result) (executor.Result, error) {
				cancel()
				return r, nil
			}}
		}, once(call("fast"))},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		agent := executor.Agent{Provider: c.model, Hooks: []executor.Hook{c.hook(func() { cancel(reason) })}}
		_, err := agent.Run(ctx, ask(fast))
		require.ErrorIs(t, err, context.Canceled, name)
		require.ErrorIs(t, err, reason, name)
		require.ErrorContains(t, err, "context canceled: the user left", name)
	}
}

func TestEventsNameTheCallAsTheModelMadeIt(t *testing.T) {
	progress := tool("foo_bar", func(ctx context.Context) (any, error) {
		call, _ := executor.CallOf(ctx)
		return "done", executor.Progress(ctx, "ran "+call.Name)
	})
	model := once(call("foo.bar"))
	all, _, err := watch(t, executor.Agent{Provider: model, Hooks: []executor.Hook{executor.Underscores()}}.Stream(t.Context(), ask(progress)))
	require.NoError(t, err)
	start, update := only[executor.ToolStart](all)[0], only[executor.ToolUpdate](all)[0]
	require.Equal(t, "foo.bar", start.Call.Name)
	_, inside := executor.CallOf(t.Context())
	require.False(t, inside, "this is no tool")
	require.Equal(t, "foo_bar", start.Ran.Name)
	require.Equal(t, start.Call, update.Call)
	require.Equal(t, "ran foo_bar", update.Content.Text(), "the tool sees the call as it is carried out")
	require.Equal(t, "foo.bar", only[executor.ToolEnd](all)[0].Execution.Tool)

	inner := executor.SubAgent("sub_agent", "", executor.Agent{Provider: apitest.NewScript(apitest.Say("Done."))})
	model = once(apitest.Use("sub.agent", `{"task":"t"}`))
	all, _, err = watch(t, executor.Agent{Provider: model, Hooks: []executor.Hook{executor.Underscores()}}.Stream(t.Context(), ask(inner)))
	require.NoError(t, err)
	require.Equal(t, []executor.Call{only[executor.ToolStart](all)[0].Call}, only[executor.Child](all)[0].Path)
}

func TestRunLogsNothingByDefault(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })

	_, err := executor.Agent{Provider: once(call("none"))}.Run(t.Context(), ask(fast))
	require.NoError(t, err)
	require.Empty(t, log.String())
}
