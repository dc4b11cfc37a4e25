package otel_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/otel"
)

func TestRunIsATree(t *testing.T) {
	c := collect(t, otel.Options{Agent: "weather"})
	usage := content.Usage{Input: 10, CacheRead: 20, CacheWrite: 30, Output: 5, Reasoning: 2}
	model := apitest.NewScript(
		apitest.Call(call("say")).As("openai-chat", "gpt-x").Usage(usage),
		apitest.Say("Done.").As("openai-chat", "gpt-x"))
	agent := c.agent(model, say("hi"))
	temperature := 0.5
	agent.Options = api.Options{MaxTokens: 100, Temperature: &temperature, StopSequences: []string{"END"}}
	d, err := agent.Run(t.Context(), dag.New().User("Go."))
	require.NoError(t, err)
	require.Equal(t, "invoke_agent weather\n  chat gpt-x\n  execute_tool say\n  chat gpt-x\n", c.tree())

	run := c.span(t, "invoke_agent weather")
	require.Equal(t, trace.SpanKindInternal, run.SpanKind)
	require.Equal(t, codes.Unset, run.Status.Code)
	require.Equal(t, d.Nodes()[0].ID().String(), values(run)["gen_ai.conversation.id"])
	require.Equal(t, int64(60), values(run)["gen_ai.usage.input_tokens"])
	require.Equal(t, "end_turn", values(run)["plait.stop_reason"])

	tool := values(c.span(t, "execute_tool say"))
	require.Equal(t, "say", tool["gen_ai.tool.name"])
	require.Equal(t, "function", tool["gen_ai.tool.type"])
	require.Equal(t, "call_1_1", tool["gen_ai.tool.call.id"])

	first := c.spans.GetSpans()[0]
	require.Equal(t, trace.SpanKindClient, first.SpanKind)
	chat := values(first)
	require.Equal(t, "openai", chat["gen_ai.provider.name"])
	require.Equal(t, "gpt-x", chat["gen_ai.response.model"])
	require.Equal(t, []string{"tool_call"}, chat["gen_ai.response.finish_reasons"])
	require.Equal(t, int64(100), chat["gen_ai.request.max_tokens"])
	require.Equal(t, 0.5, chat["gen_ai.request.temperature"])
	require.Equal(t, []string{"END"}, chat["gen_ai.request.stop_sequences"])
	require.Equal(t, int64(60), chat["gen_ai.usage.input_tokens"])
	require.Equal(t, int64(20), chat["gen_ai.usage.cache_read.input_tokens"])
	require.Equal(t, int64(30), chat["gen_ai.usage.cache_write.input_tokens"])
	require.Equal(t, int64(5), chat["gen_ai.usage.output_tokens"])
	require.Equal(t, int64(2), chat["gen_ai.usage.reasoning.output_tokens"])
}

// slow is a model that streams its answer after a wait.
type slow struct{}

func (slow) Stream(context.Context, api.Request) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		time.Sleep(2 * time.Second)
		_ = yield(api.Delta{Kind: api.DeltaText, Text: "Hi"}, nil) &&
			yield(api.BlockEnd{Block: content.Text{Text: "Hi"}}, nil) &&
			yield(api.Finish{API: "anthropic", Model: "m", Stop: content.StopEndTurn}, nil)
	}
}

func TestTimeToFirstChunkIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := collect(t, otel.Options{})
		_, err := c.agent(slow{}).Run(t.Context(), dag.New().User("Go."))
		require.NoError(t, err)

		chat := values(c.span(t, "chat m"))
		require.Equal(t, 2.0, chat["gen_ai.response.time_to_first_chunk"])
		require.Equal(t, true, chat["gen_ai.request.stream"])
		measured := c.metrics(t)["gen_ai.client.inference.time_to_first_chunk"].Data.(metricdata.Histogram[float64])
		require.Equal(t, 2.0, measured.DataPoints[0].Sum)
		require.Equal(t, []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92},
			measured.DataPoints[0].Bounds)
	})
}

func TestEndOfASpanIsThatOfItsWorkNotOfWhatFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := collect(t, otel.Options{})
		agent := c.agent(apitest.NewScript(apitest.Fail(&api.Error{Kind: api.ErrAuth}).Wait(time.Second)))
		for event := range agent.Stream(t.Context(), dag.New().User("Go.")) {
			if _, ends := event.(executor.TurnEnd); ends {
				time.Sleep(time.Hour)
			}
		}
		chat := c.span(t, "chat")
		require.Equal(t, time.Second, chat.EndTime.Sub(chat.StartTime))
		require.Equal(t, "not_authorized", values(chat)["error.type"])
	})
}

// A model and a tool that make spans of their own: an HTTP client and a database, say.
type spanning struct {
	api.Provider
	tracer trace.Tracer
}

func (s spanning) Stream(ctx context.Context, req api.Request) iter.Seq2[api.Event, error] {
	_, span := s.tracer.Start(ctx, "HTTP POST")
	span.End()
	return s.Provider.Stream(ctx, req)
}

func TestSpansOfModelsAndToolsAreBelowTheirRequestsAndCalls(t *testing.T) {
	c := collect(t, otel.Options{})
	tracer := c.tracers.Tracer("test")
	query := executor.Func("query", "", func(ctx context.Context, _ none) (string, error) {
		_, span := tracer.Start(ctx, "SELECT")
		span.End()
		return "", nil
	})
	model := spanning{apitest.NewScript(apitest.Call(call("query")), apitest.Say("Done.")), tracer}

	// The tool travels with the conversation, and the run is inside a span of the program.
	ctx, around := tracer.Start(t.Context(), "GET /chat")
	_, err := c.agent(model).Run(ctx, dag.New().Tools(query).User("Go."))
	require.NoError(t, err)
	around.End()
	require.Equal(t, strings.Join([]string{
		"GET /chat", "  invoke_agent", "    chat script", "      HTTP POST", "    execute_tool query", "      SELECT",
		"    chat script", "      HTTP POST", "",
	}, "\n"), c.tree())
}

func TestSubAgentIsBelowItsCall(t *testing.T) {
	c := collect(t, otel.Options{Agent: "boss"})
	for name, hooks := range map[string][]executor.Hook{"without a hook": nil, "with one": {c.hook}} {
		t.Run(name, func(t *testing.T) {
			c.spans.Reset()
			helper := executor.SubAgent("helper", "", executor.Agent{
				Provider: apitest.NewScript(apitest.Call(call("say")), apitest.Say("Done.")), Hooks: hooks,
				Tools: []dag.Tool{say("hi")},
			})
			model := apitest.NewScript(apitest.Call(apitest.Use("helper", executor.Task{Task: "Go."})), apitest.Say("Done."))
			_, err := c.agent(model, helper).Run(t.Context(), dag.New().User("Go."))
			require.NoError(t, err)
			require.Equal(t, strings.Join([]string{
				"invoke_agent boss", "  chat script", "  execute_tool helper", "    invoke_agent helper",
				"      chat script", "      execute_tool say", "      chat script", "  chat script", "",
			}, "\n"), c.tree())
			require.Equal(t, "helper", values(c.span(t, "invoke_agent helper"))["gen_ai.agent.name"])
		})
	}
}

func TestRetriesAreEventsOfOneSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := collect(t, otel.Options{})
		limited := &api.Error{Kind: api.ErrRateLimited, API: "anthropic", Status: 429}
		model := apitest.NewScript(
			apitest.Say("Half").Usage(content.Usage{Input: 3}).Fail(limited),
			apitest.Say("Done.").Usage(content.Usage{Input: 4}))
		_, err := c.agent(model).Run(t.Context(), dag.New().User("Go."))
		require.NoError(t, err)

		chat := c.span(t, "chat script")
		require.Len(t, chat.Events, 1)
		require.Equal(t, "plait.retry", chat.Events[0].Name)
		retry := mapOf(chat.Events[0].Attributes)
		require.Equal(t, "rate_limited", retry["error.type"])
		require.Equal(t, int64(1), retry["plait.retry.attempt"])
		require.Equal(t, int64(7), values(chat)["gen_ai.usage.input_tokens"])
		require.NotContains(t, values(chat), "error.type")
	})
}

func TestErrorsHaveATypeAndNoText(t *testing.T) {
	broken := executor.Func("say", "", func(context.Context, none) (string, error) { return "", errors.New("SECRET") })
	fails := func(kind error) *apitest.Script {
		return apitest.NewScript(apitest.Fail(&api.Error{Kind: kind, API: "gemini", Message: "SECRET"}))
	}
	calls := func(tool string) *apitest.Script { return apitest.NewScript(apitest.Call(call(tool)), apitest.Say("")) }
	cut := apitest.NewScript(apitest.Say("Ha").Fail(&api.Error{Kind: api.ErrFiltered}))
	for name, test := range map[string]struct {
		model     *apitest.Script
		cancelled bool
		limit     time.Duration
		span      string
		want      string
	}{
		"provider":     {model: fails(api.ErrInvalidRequest), span: "chat", want: "invalid_request"},
		"run":          {model: fails(api.ErrInvalidRequest), span: "invoke_agent", want: "invalid_request"},
		"cut off":      {model: cut, span: "chat script", want: "content_filtered"},
		"cancelled":    {cancelled: true, model: fails(api.ErrAuth), span: "invoke_agent", want: "cancelled"},
		"time limit":   {model: apitest.NewScript(apitest.Hang()), limit: time.Second, span: "chat", want: "time_limit"},
		"tool":         {model: calls("say"), span: "execute_tool say", want: "tool_error"},
		"unknown tool": {model: calls("evil"), span: "execute_tool evil", want: "unknown_tool"},
		"other":        {model: apitest.NewScript(), span: "invoke_agent", want: "*api.Error"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := collect(t, otel.Options{})
				agent := c.agent(api.NewClient(test.model, &api.ClientOptions{Attempts: 1}), broken)
				agent.Limits.Time = test.limit
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if test.cancelled {
					cancel()
				}

				_, _ = agent.Run(ctx, dag.New().User("Go."))
				span := c.span(t, test.span)
				require.Equal(t, codes.Error, span.Status.Code)
				require.Equal(t, test.want, values(span)["error.type"])
				require.Equal(t, test.want, span.Status.Description)
				require.NotContains(t, fmt.Sprint(c.spans.GetSpans(), c.metrics(t)), "SECRET")
			})
		})
	}
}

func TestConsumerThatLeavesEndsEverySpan(t *testing.T) {
	c := collect(t, otel.Options{})
	agent := c.agent(apitest.NewScript(apitest.Call(call("say"))), say("hi"))
	for event := range agent.Stream(t.Context(), dag.New().User("Go.")) {
		if _, starts := event.(executor.ToolStart); starts {
			break
		}
	}
	require.Equal(t, "invoke_agent\n  chat script\n  execute_tool say\n", c.tree())
	require.Equal(t, "cancelled", values(c.span(t, "invoke_agent"))["error.type"])
	require.Equal(t, "cancelled", values(c.span(t, "execute_tool say"))["error.type"])
}

func TestRefusalAsTooLongIsARequestOfItsOwn(t *testing.T) {
	c := collect(t, otel.Options{})
	model := apitest.NewScript(apitest.Fail(&api.Error{Kind: api.ErrContextTooLong}), apitest.Say("Done."))
	agent := c.agent(model)
	agent.Hooks = append(agent.Hooks, executor.Hook{TooLong: func(_ context.Context, d dag.DAG) (dag.DAG, error) {
		return dag.New().User("Short."), nil
	}})
	_, err := agent.Run(t.Context(), dag.New().User("Long."))
	require.NoError(t, err)
	require.Equal(t, "context_too_long", values(c.span(t, "chat"))["error.type"])
	require.NotContains(t, values(c.span(t, "chat script")), "error.type")
}

func TestEmptyResponseHasItsUsage(t *testing.T) {
	c := collect(t, otel.Options{})
	model := apitest.NewScript(apitest.Answer().Usage(content.Usage{Input: 9}))
	_, err := c.agent(model).Run(t.Context(), dag.New().User("Go."))
	require.NoError(t, err)
	chat := values(c.span(t, "chat"))
	require.Equal(t, int64(9), chat["gen_ai.usage.input_tokens"])
	require.NotContains(t, chat, "error.type")
}

// pause runs an agent until its call needs approval. It returns the continuation as another process reads it.
func pause(t *testing.T, c *collector, keys []string) (dag.DAG, executor.Continuation) {
	t.Helper()
	agent := c.agent(apitest.NewScript(apitest.Call(call("say"))), say("hi"))
	agent.Hooks = append(agent.Hooks, executor.RequireApproval())
	d, err := agent.Run(t.Context(), dag.New().User("Go."))
	var paused *executor.PausedError
	require.ErrorAs(t, err, &paused)

	codec := executor.ContinuationCodec{Keys: keys}
	data, err := codec.Encode(paused.Continuation())
	require.NoError(t, err)
	read, err := codec.Decode(data)
	require.NoError(t, err)
	return d, read
}

// resume resumes a run of pause, in a process of its own as far as tracing is concerned.
func resume(ctx context.Context, t *testing.T, c *collector, d dag.DAG, from executor.Continuation) {
	t.Helper()
	_, err := c.agent(apitest.NewScript(apitest.Say("Done.")), say("hi")).
		Resume(executor.WithAttributes(ctx, from.Attributes), d, executor.Approved(d.Pending()[0]))
	require.NoError(t, err)
}

func TestResumedRunIsOfTheTraceOfThePausedOne(t *testing.T) {
	before, after := collect(t, otel.Options{}), collect(t, otel.Options{})
	d, continuation := pause(t, before, otel.Attributes())
	ctx, request := after.tracers.Tracer("test").Start(t.Context(), "POST /approve")
	resume(ctx, t, after, d, continuation)
	request.End()

	paused, resumed := before.span(t, "invoke_agent"), after.span(t, "invoke_agent")
	require.Equal(t, paused.SpanContext.TraceID(), resumed.SpanContext.TraceID())
	require.Equal(t, paused.SpanContext.SpanID(), resumed.Parent.SpanID())
	require.True(t, resumed.Parent.IsRemote())
	require.Len(t, resumed.Links, 1)
	require.Equal(t, request.SpanContext().SpanID(), resumed.Links[0].SpanContext.SpanID())
	require.Equal(t, values(paused)["gen_ai.conversation.id"], values(resumed)["gen_ai.conversation.id"])
	require.Equal(t, values(paused)["plait.run.id"], values(resumed)["plait.run.id"])

	require.Equal(t, codes.Unset, paused.Status.Code, "a pause is no error")
	require.Equal(t, "awaiting_approval", values(paused)["plait.stop_reason"])
	require.Equal(t, "plait.pause", paused.Events[0].Name)
	require.Equal(t, map[string]any{"plait.pause.reason": "awaiting_approval", "plait.pause.calls": int64(1)},
		mapOf(paused.Events[0].Attributes))
	require.Contains(t, after.tree(), "invoke_agent\n  execute_tool say\n  chat script\n")
}

func TestRunThatIsResumedInItsOwnTraceKeepsItsParent(t *testing.T) {
	c := collect(t, otel.Options{})
	d, continuation := pause(t, c, otel.Attributes())
	paused := c.span(t, "invoke_agent")
	c.spans.Reset()

	// A queue, say, took the trace along.
	ctx := trace.ContextWithSpanContext(t.Context(), paused.SpanContext)
	ctx, message := c.tracers.Tracer("test").Start(ctx, "message")
	resume(ctx, t, c, d, continuation)
	message.End()
	resumed := c.span(t, "invoke_agent")
	require.Equal(t, message.SpanContext().SpanID(), resumed.Parent.SpanID())
	require.Equal(t, paused.SpanContext.SpanID(), resumed.Links[0].SpanContext.SpanID())
}

func TestContinuationWithoutTheAttributesBeginsATrace(t *testing.T) {
	before, after := collect(t, otel.Options{}), collect(t, otel.Options{})
	d, continuation := pause(t, before, nil)
	resume(t.Context(), t, after, d, continuation)
	paused, resumed := before.span(t, "invoke_agent"), after.span(t, "invoke_agent")
	require.NotEqual(t, paused.SpanContext.TraceID(), resumed.SpanContext.TraceID())
	require.False(t, resumed.Parent.IsValid())

	// What is no trace context is ignored.
	continuation.Attributes = map[string]any{"traceparent": "00-evil", "tracestate": 7}
	after.spans.Reset()
	resume(t.Context(), t, after, d, continuation)
	require.False(t, after.span(t, "invoke_agent").Parent.IsValid())
}

func TestPausedSubAgentIsResumedBelowItsNewCall(t *testing.T) {
	before, after := collect(t, otel.Options{}), collect(t, otel.Options{})
	helper := func(turns ...apitest.Turn) executor.Tool {
		return executor.SubAgent("helper", "", executor.Agent{
			Provider: apitest.NewScript(turns...), Tools: []dag.Tool{say("hi")},
			Hooks: []executor.Hook{executor.RequireApproval()},
		})
	}
	model := apitest.NewScript(apitest.Call(apitest.Use("helper", executor.Task{Task: "Go."})))
	d, err := before.agent(model, helper(apitest.Call(call("say")))).Run(t.Context(), dag.New().User("Go."))
	var paused *executor.PausedError
	require.ErrorAs(t, err, &paused)
	require.Equal(t, strings.Join([]string{
		"invoke_agent", "  chat script", "  execute_tool helper", "    invoke_agent helper", "      chat script", "",
	}, "\n"), before.tree())

	_, err = after.agent(apitest.NewScript(apitest.Say("Done.")), helper(apitest.Say("Done."))).
		Resume(executor.WithAttributes(t.Context(), paused.Continuation().Attributes), d, executor.Approved(d.Pending()[0]))
	require.NoError(t, err)
	require.Equal(t, strings.Join([]string{
		"invoke_agent", "  execute_tool helper", "    invoke_agent helper", "      execute_tool say", "      chat script",
		"  chat script", "",
	}, "\n"), after.tree())
	outer, inner := before.span(t, "invoke_agent"), after.span(t, "invoke_agent helper")
	require.Equal(t, outer.SpanContext.TraceID(), inner.SpanContext.TraceID())
}

func TestOfTwoHooksTheFirstTraces(t *testing.T) {
	first, second := collect(t, otel.Options{}), collect(t, otel.Options{})
	agent := first.agent(apitest.NewScript(apitest.Say("Done.")))
	agent.Hooks = append(agent.Hooks, second.hook, first.hook)
	_, err := agent.Run(t.Context(), dag.New().User("Go."))
	require.NoError(t, err)
	require.Equal(t, "invoke_agent\n  chat script\n", first.tree())
	require.Empty(t, second.tree())
}

func TestConcurrentRunsHaveTracesOfTheirOwn(t *testing.T) {
	c := collect(t, otel.Options{})
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			model := apitest.NewScript(apitest.Call(call("say"), call("say"), call("say")), apitest.Say("Done."))
			_, err := c.agent(model, say("hi")).Run(t.Context(), dag.New().User("Go."))
			assert.NoError(t, err)
		})
	}
	all.Wait()

	perTrace := map[trace.TraceID]int{}
	for _, s := range c.spans.GetSpans() {
		perTrace[s.SpanContext.TraceID()]++
	}
	require.Len(t, perTrace, 20)
	for _, n := range perTrace {
		require.Equal(t, 6, n)
	}
	calls := c.metrics(t)["gen_ai.invoke_agent.tool_calls"].Data.(metricdata.Histogram[int64]).DataPoints[0]
	require.Equal(t, uint64(20), calls.Count)
	require.Equal(t, int64(60), calls.Sum)
	requests := c.metrics(t)["gen_ai.invoke_agent.inference_calls"].Data.(metricdata.Histogram[int64]).DataPoints[0]
	require.Equal(t, int64(40), requests.Sum)
}

func TestToolsThatAModelInventsAreNotMeasured(t *testing.T) {
	c := collect(t, otel.Options{})
	evil := "evil\x1b[2J\u202e\n" + strings.Repeat("x", 5000)
	model := apitest.NewScript(
		apitest.Call(call(evil), call("say")), apitest.Say("Done.").As("ev\x00il", strings.Repeat("m", 5000)))
	_, err := c.agent(model, say("hi")).Run(t.Context(), dag.New().User("Go."))
	require.NoError(t, err)

	for _, s := range c.spans.GetSpans() {
		for _, text := range append([]string{s.Name}, texts(s)...) {
			require.LessOrEqual(t, len([]rune(text)), 220)
			require.NotContains(t, text, "\x1b")
			require.NotContains(t, text, "\u202e")
			require.NotContains(t, text, "\x00")
		}
	}
	calls := c.metrics(t)["gen_ai.execute_tool.duration"].Data.(metricdata.Histogram[float64]).DataPoints
	require.Len(t, calls, 1)
	name, _ := calls[0].Attributes.Value("gen_ai.tool.name")
	require.Equal(t, "say", name.AsString())
}

func TestUndeclaredToolThatTheHandlerExecutesIsNoError(t *testing.T) {
	c := collect(t, otel.Options{})
	agent := c.agent(apitest.NewScript(apitest.Call(call("lookup")), apitest.Say("Done.")))
	agent.Handler = func(context.Context, executor.Call) (any, error) { return "found", nil }
	_, err := agent.Run(t.Context(), dag.New().User("Go."))
	require.NoError(t, err)

	span := c.span(t, "execute_tool lookup")
	require.Equal(t, codes.Unset, span.Status.Code)
	require.NotContains(t, values(span), "error.type")
	calls := c.metrics(t)["gen_ai.invoke_agent.tool_calls"].Data.(metricdata.Histogram[int64]).DataPoints
	require.Equal(t, int64(1), calls[0].Sum)
	require.NotContains(t, c.metrics(t), "gen_ai.execute_tool.duration", "its name may be invented")
}

func TestContentIsRecordedOnlyWhereItIsAskedFor(t *testing.T) {
	model := func() *apitest.Script {
		return apitest.NewScript(
			apitest.Call(apitest.Use("say", content.JSON(`{"SECRET":"arguments"}`))).Think("SECRET thought", "s"),
			apitest.Say("SECRET answer"))
	}
	tool := executor.NewTool(content.Tool{Name: "say", Description: "SECRET tool", Schema: `{"type":"object"}`},
		func(context.Context, executor.Call) (executor.Result, error) {
			return executor.ResultOf("SECRET result")
		})
	image := content.Image{Source: content.Source{MediaType: "image/png", Data: "U0VDUkVU"}}
	d := dag.New().System("SECRET prompt").User("SECRET question", image)

	without := collect(t, otel.Options{})
	_, err := without.agent(model(), tool).Run(t.Context(), d)
	require.NoError(t, err)
	require.NotContains(t, fmt.Sprint(without.spans.GetSpans(), without.metrics(t)), "SECRET")

	with := collect(t, otel.Options{Content: true})
	_, err = with.agent(model(), tool).Run(t.Context(), d)
	require.NoError(t, err)
	call := values(with.span(t, "execute_tool say"))
	require.JSONEq(t, `{"SECRET":"arguments"}`, call["gen_ai.tool.call.arguments"].(string))
	require.JSONEq(t, `"SECRET result"`, call["gen_ai.tool.call.result"].(string))
	require.Equal(t, "SECRET tool", call["gen_ai.tool.description"])

	chats := with.spans.GetSpans()
	first, last := values(chats[0]), values(chats[2])
	require.JSONEq(t, `[{"type":"text","content":"SECRET prompt"}]`, first["gen_ai.system_instructions"].(string))
	require.JSONEq(t, `[{"type":"function","name":"say","description":"SECRET tool","parameters":{"type":"object"}}]`,
		first["gen_ai.tool.definitions"].(string))
	require.JSONEq(t, `[
		{"role":"user","parts":[{"type":"text","content":"SECRET question"},{"type":"image","mime_type":"image/png"}]},
		{"role":"assistant","parts":[{"type":"reasoning","content":"SECRET thought"},
			{"type":"tool_call","id":"call_1_1","name":"say","arguments":{"SECRET":"arguments"}}]},
		{"role":"tool","parts":[{"type":"tool_call_response","id":"call_1_1","response":"SECRET result"}]}
	]`, last["gen_ai.input.messages"].(string))
	require.JSONEq(t, `[{"role":"assistant","finish_reason":"stop","parts":[{"type":"text","content":"SECRET answer"}]}]`,
		last["gen_ai.output.messages"].(string))
}

func TestArgumentsThatAreNoJSONAreRecordedAsText(t *testing.T) {
	c := collect(t, otel.Options{Content: true})
	model := apitest.NewScript(apitest.Call(apitest.Use("say", content.JSON(`{"cut`))), apitest.Say("Done."))
	_, err := c.agent(model, say("")).Run(t.Context(), dag.New().User("Go."))
	require.NoError(t, err)
	require.Contains(t, values(c.spans.GetSpans()[0])["gen_ai.output.messages"], `"arguments":"{\"cut"`)
}

func TestRequestIsNamedByTheModelThatItGoesTo(t *testing.T) {
	c := collect(t, otel.Options{})
	_, err := c.agent(named{apitest.NewScript(apitest.Say("Hi."))}).Run(t.Context(), dag.New().User("Hi"))
	require.NoError(t, err)
	chat := values(c.span(t, "chat requested"))
	require.Equal(t, "requested", chat["gen_ai.request.model"])
	require.Equal(t, "script", chat["gen_ai.response.model"])
}
