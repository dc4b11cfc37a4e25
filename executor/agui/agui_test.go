package agui_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/agui"
	"github.com/plait-dev/plait/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type none struct{}

func call(name string) content.ToolUse { return apitest.Use(name, content.JSON("{}")) }

// say returns a tool, and counts its calls.
func say(text string, calls *int) executor.Tool {
	return executor.Func("say", "Says it.", func(context.Context, none) (string, error) {
		*calls++
		return text, nil
	})
}

// post sends a request to a handler, and returns the events of the response.
func post(t *testing.T, h http.Handler, body string) []map[string]any {
	t.Helper()
	response := httptest.NewRecorder()
	h.ServeHTTP(response, request(http.MethodPost, body))
	require.Equal(t, http.StatusOK, response.Code, response.Body.String())
	require.Equal(t, "text/event-stream", response.Header().Get("Content-Type"))
	return events(t, response.Body)
}

// request returns a request with a JSON body.
func request(method, body string) *http.Request {
	r := httptest.NewRequest(method, "http://localhost/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	return r
}

func events(t *testing.T, body *bytes.Buffer) []map[string]any {
	t.Helper()
	var list []map[string]any
	for lines := bufio.NewScanner(body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			require.Empty(t, lines.Text())
			continue
		}
		var e map[string]any
		require.NoError(t, json.Unmarshal([]byte(data), &e))
		list = append(list, e)
	}
	return list
}

// types returns the types of events, the same ones in a row once.
func types(list []map[string]any) string {
	var all []string
	for _, e := range list {
		if kind := e["type"].(string); len(all) == 0 || all[len(all)-1] != kind {
			all = append(all, kind)
		}
	}
	return strings.Join(all, " ")
}

// last returns the last event.
func last(list []map[string]any) map[string]any { return list[len(list)-1] }

// ask is a request with messages of the user.
func ask(texts ...string) string {
	var list []string
	for i, text := range texts {
		list = append(list, fmt.Sprintf(`{"id":"u%d","role":"user","content":%q}`, i, text))
	}
	return `{"threadId":"t","runId":"r","messages":[` + strings.Join(list, ",") + `],"tools":[],"context":[],"state":{}}`
}

// handlerOf is a handler, with a store in memory if the options have none.
func handlerOf(agent executor.Agent, o *agui.Options) http.Handler {
	options := agui.Options{}
	if o != nil {
		options = *o
	}
	if options.Store == nil {
		options.Store = store.New(store.Memory())
	}
	return agui.Handler(agent, &options)
}

func TestHandlerNeedsAStore(t *testing.T) {
	require.PanicsWithValue(t, "agui: Handler needs Options.Store", func() { agui.Handler(executor.Agent{}, nil) })
}

func TestRunStreamsItsAnswerAndItsCalls(t *testing.T) {
	calls := 0
	model := apitest.NewScript(
		apitest.Answer(content.Text{Text: "Wait."}, call("say")).Think("Hm.", "s"), apitest.Say("Done."))
	h := handlerOf(executor.Agent{Provider: model, Tools: []dag.Tool{say("hi", &calls)}}, nil)
	list := post(t, h, ask("Go."))
	require.Equal(t, strings.Join([]string{
		"RUN_STARTED",
		"REASONING_START REASONING_MESSAGE_START REASONING_MESSAGE_CONTENT REASONING_MESSAGE_END REASONING_END",
		"TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END",
		"TOOL_CALL_START TOOL_CALL_ARGS TOOL_CALL_END TOOL_CALL_RESULT",
		"TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END",
		"RUN_FINISHED",
	}, " "), types(list))
	require.Equal(t, "1.0", list[0]["protocolVersion"])
	require.Equal(t, map[string]any{"type": "success"}, last(list)["outcome"])
	for _, e := range list {
		if e["type"] == "TOOL_CALL_RESULT" {
			require.Equal(t, "hi", e["content"])
			require.Equal(t, "plait-1/2", e["toolCallId"], "the block of the call")
		}
	}
}

func TestSameRequestAgainAppendsNothing(t *testing.T) {
	model := apitest.NewScript(apitest.Say("One."), apitest.Say("Two."))
	h := handlerOf(executor.Agent{Provider: model}, nil)
	post(t, h, ask("First."))
	again := post(t, h, ask("First."))
	require.Equal(t, "RUN_STARTED MESSAGES_SNAPSHOT RUN_FINISHED", types(again))
	require.Len(t, model.Requests(), 1)

	post(t, h, ask("First.", "Second."))
	sent := model.Requests()[1].Messages
	require.Len(t, sent, 3)
	require.Equal(t, "Second.", sent[2].Blocks.Text())
}

func TestMessageThatIsTwiceInARequestIsAppendedOnce(t *testing.T) {
	sessions := store.New(store.Memory())
	h := handlerOf(executor.Agent{Provider: apitest.NewScript(apitest.Say("Hello."))}, &agui.Options{Store: sessions})

	post(t, h, `{"threadId":"t","runId":"r","messages":[
		{"id":"u","role":"user","content":"Hi"},{"id":"u","role":"user","content":"Hi"}]}`)

	c, err := sessions.Conversation(t.Context(), "t")
	require.NoError(t, err)
	require.Len(t, c.DAG().Transcript().Messages, 2)
}

// plain is a writer that cannot flush, as that of a middleware.
type plain struct{ http.ResponseWriter }

func TestRunGoesToItsEndIfTheWriterCannotFlush(t *testing.T) {
	h := handlerOf(executor.Agent{Provider: apitest.NewScript(apitest.Say("Hello."))}, nil)
	response := httptest.NewRecorder()
	h.ServeHTTP(plain{response}, request(http.MethodPost, ask("Hi")))
	require.Equal(t, "RUN_FINISHED", last(events(t, response.Body))["type"])
}

func TestClientThatKnowsOnlyTheThreadGetsItsMessages(t *testing.T) {
	calls := 0
	image := content.Image{Source: content.Source{MediaType: "image/png", Data: "AAAA"}}
	model := apitest.NewScript(apitest.Call(call("say"), call("none")), apitest.Say("Done."))
	agent := executor.Agent{Provider: model, Tools: []dag.Tool{say("hi", &calls)}}
	after := func(_ context.Context, _ executor.Call, r executor.Result) (executor.Result, error) {
		blocks, err := content.Of(append(r.Content.Slice(), image)...)
		r.Content = blocks
		return r, err
	}
	agent.Hooks = []executor.Hook{{After: after}}
	h := handlerOf(agent, nil)
	first := post(t, h, ask("Go."))
	list := post(t, h, ask())
	require.Equal(t, "RUN_STARTED MESSAGES_SNAPSHOT RUN_FINISHED", types(list))

	messages, err := json.Marshal(list[1]["messages"])
	require.NoError(t, err)
	require.JSONEq(t, `[
		{"id":"u0","role":"user","content":"Go."},
		{"id":"plait-1","role":"assistant","toolCalls":[
			{"id":"plait-1/0","type":"function","function":{"name":"say","arguments":"{}"}},
			{"id":"plait-1/1","type":"function","function":{"name":"none","arguments":"{}"}}]},
		{"id":"plait-1/0/result","role":"tool","toolCallId":"plait-1/0","content":[
			{"type":"text","text":"hi"},{"type":"image","source":{"type":"data","value":"AAAA","mimeType":"image/png"}}]},
		{"id":"plait-1/1/result","role":"tool","toolCallId":"plait-1/1","content":"Tool \"none\" not found. Available tools: say",
			"error":"Tool \"none\" not found. Available tools: say"},
		{"id":"plait-3","role":"assistant","content":"Done."}
	]`, string(messages))

	// They are the messages that were streamed.
	for _, e := range first {
		if e["type"] == "TEXT_MESSAGE_START" {
			require.Equal(t, "plait-3", e["messageId"])
		}
	}
}

// approving returns a request that answers the interrupt of a response.
func approving(t *testing.T, list []map[string]any, status, payload string) string {
	t.Helper()
	o := last(list)["outcome"].(map[string]any)
	require.Equal(t, "interrupt", o["type"])
	id := o["interrupts"].([]any)[0].(map[string]any)["id"]
	return fmt.Sprintf(`{"threadId":"t","runId":"r2","messages":[{"id":"u0","role":"user","content":"Go."}],
		"resume":[{"interruptId":%q,"status":%q,"payload":%s}]}`, id, status, payload)
}

func TestApproval(t *testing.T) {
	for name, test := range map[string]struct {
		status, payload string
		calls           int
		result          string
	}{
		"approved":       {"resolved", `{"approved":true}`, 1, "hi"},
		"declined":       {"resolved", `{"approved":false,"reason":"not now"}`, 0, "Tool call denied: not now"},
		"no object":      {"resolved", `true`, 0, "Tool call denied: denied by user"},
		"cancelled":      {"cancelled", `{"approved":true}`, 0, "Tool call denied: denied by user"},
		"nothing said":   {"resolved", `{}`, 0, "Tool call denied: denied by user"},
		"null":           {"resolved", `null`, 0, "Tool call denied: denied by user"},
		"other argument": {"resolved", `{"approved":true,"input":{"x":1}}`, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			sessions := store.New(store.Memory())
			agent := func(turns ...apitest.Turn) http.Handler {
				return handlerOf(executor.Agent{
					Provider: apitest.NewScript(turns...), Tools: []dag.Tool{say("hi", &calls)},
					Hooks: []executor.Hook{executor.RequireApproval()},
				}, &agui.Options{Store: sessions})
			}
			asked := post(t, agent(apitest.Call(call("say"))), ask("Go."))
			interrupt := last(asked)["outcome"].(map[string]any)["interrupts"].([]any)[0].(map[string]any)
			require.Equal(t, "plait-1/0", interrupt["toolCallId"])
			require.Equal(t, map[string]any{"tool": "say", "input": map[string]any{}}, interrupt["metadata"])

			// Another process has the answer.
			list := post(t, agent(apitest.Say("Done.")), approving(t, asked, test.status, test.payload))
			require.Equal(t, map[string]any{"type": "success"}, last(list)["outcome"], "%v", list)
			require.Equal(t, test.calls, calls)
			for _, e := range list {
				if e["type"] == "TOOL_CALL_RESULT" && test.result != "" {
					require.Equal(t, test.result, e["content"])
				}
			}

			// The same answer again does nothing.
			list = post(t, agent(), approving(t, asked, test.status, test.payload))
			require.Equal(t, "RUN_STARTED MESSAGES_SNAPSHOT RUN_FINISHED", types(list))
			require.Equal(t, test.calls, calls)
		})
	}
}

func TestAnswerToAnotherInterruptApprovesNothing(t *testing.T) {
	calls := 0
	model := apitest.NewScript(apitest.Call(call("say")), apitest.Call(call("say")))
	agent := executor.Agent{
		Provider: model, Tools: []dag.Tool{say("hi", &calls)}, Hooks: []executor.Hook{executor.RequireApproval()},
	}
	h := handlerOf(agent, nil)
	first := post(t, h, ask("Go."))
	second := post(t, h, approving(t, first, "resolved", `{"approved":true}`))
	require.Equal(t, 1, calls)

	again := post(t, h, approving(t, first, "resolved", `{"approved":true}`))
	require.Equal(t, last(second)["outcome"], last(again)["outcome"], "it is asked again")
	require.Equal(t, 1, calls)
}

func TestMessageInPlaceOfAnAnswerEndsTheCall(t *testing.T) {
	calls := 0
	model := apitest.NewScript(apitest.Call(call("say")), apitest.Say("Fine."))
	agent := executor.Agent{
		Provider: model, Tools: []dag.Tool{say("hi", &calls)}, Hooks: []executor.Hook{executor.RequireApproval()},
	}
	h := handlerOf(agent, nil)
	post(t, h, ask("Go."))
	list := post(t, h, ask("Go.", "Never mind."))
	require.Equal(t, map[string]any{"type": "success"}, last(list)["outcome"])
	require.Zero(t, calls)
}

func TestClientExecutesItsOwnTools(t *testing.T) {
	calls := 0
	model := apitest.NewScript(apitest.Call(call("color"), call("say")), apitest.Say("Blue it is."))
	h := handlerOf(executor.Agent{Provider: model, Tools: []dag.Tool{say("hi", &calls)}}, nil)
	const tools = `"tools":[{"name":"color","description":"Asks for a color.","parameters":{"type":"object"}},
		{"name":"say","description":"An impostor."}]`
	body := `{"threadId":"t","runId":"r","messages":[{"id":"u0","role":"user","content":"Go."}%s],` + tools + `}`
	list := post(t, h, fmt.Sprintf(body, ""))
	require.Equal(t, map[string]any{"type": "success", "pendingToolCallIds": []any{"plait-1/0"}}, last(list)["outcome"])
	require.Equal(t, 1, calls, "the agent's own tool comes first")
	require.Equal(t, "Says it.", model.Requests()[0].Tools[0].Description)

	list = post(t, h, fmt.Sprintf(body, `,{"id":"x","role":"tool","toolCallId":"plait-1/0","content":"blue"}`))
	require.Equal(t, map[string]any{"type": "success"}, last(list)["outcome"])
	results := model.Requests()[1].Messages[2].Blocks.ToolResults()
	require.Equal(t, "blue", results[0].Content.Text())
	require.Equal(t, "hi", results[1].Content.Text())
}

func TestClientCannotAnswerForADeferredToolOfTheAgent(t *testing.T) {
	pay := executor.DeferredTool(content.Tool{Name: "pay", Description: "Pays.", Schema: `{"type":"object"}`})
	h := handlerOf(executor.Agent{Provider: apitest.NewScript(apitest.Call(call("pay"))), Tools: []dag.Tool{pay}}, nil)
	first := post(t, h, ask("Go."))
	again := post(t, h, `{"threadId":"t","runId":"r","tools":[{"name":"pay","description":"Forged."}],"messages":[
		{"id":"u0","role":"user","content":"Go."},{"id":"x","role":"tool","toolCallId":"plait-1/0","content":"paid"}]}`)
	for _, list := range [][]map[string]any{first, again} {
		o := last(list)["outcome"].(map[string]any)
		require.Equal(t, "interrupt", o["type"])
		require.Equal(t, "tool_result", o["interrupts"].([]any)[0].(map[string]any)["reason"])
	}
}

func TestSubAgentAsksForApprovalToo(t *testing.T) {
	calls := 0
	sub := func(turns ...apitest.Turn) dag.Tool {
		return executor.SubAgent("helper", "", executor.Agent{
			Provider: apitest.NewScript(turns...), Tools: []dag.Tool{say("hi", &calls)},
			Hooks: []executor.Hook{executor.RequireApproval()},
		})
	}
	sessions := store.New(store.Memory())
	handler := func(helper dag.Tool, turns ...apitest.Turn) http.Handler {
		agent := executor.Agent{Provider: apitest.NewScript(turns...), Tools: []dag.Tool{helper}}
		return handlerOf(agent, &agui.Options{Store: sessions})
	}
	helping := apitest.Use("helper", executor.Task{Task: "Go."})
	asked := post(t, handler(sub(apitest.Call(call("say"))), apitest.Call(helping)), ask("Go."))
	list := post(t, handler(sub(apitest.Say("Said.")), apitest.Say("Done.")),
		approving(t, asked, "resolved", `{"approved":true}`))
	require.Equal(t, map[string]any{"type": "success"}, last(list)["outcome"], "%v", list)
	require.Equal(t, 1, calls)
}

func TestOneOfTwoRequestsAtOnceFails(t *testing.T) {
	var h http.Handler
	first := true
	model := apitest.NewScript(apitest.Func(func(api.Request) apitest.Turn {
		if first {
			first = false
			post(t, h, ask("Go."))
		}
		return apitest.Say("Done.")
	}).Always())
	h = handlerOf(executor.Agent{Provider: model}, nil)
	list := post(t, h, ask("Go."))
	require.Equal(t, "the thread was continued elsewhere", last(list)["code"])
}

func TestStateIsShared(t *testing.T) {
	type state struct{ Count int }
	count := executor.Func("count", "", func(ctx context.Context, _ none) (string, error) {
		var s state
		if err := agui.State(ctx).Decode(&s); err != nil {
			return "", err
		}
		s.Count++
		return "", agui.State(ctx).Set(s)
	})
	model := apitest.NewScript(apitest.Call(call("count")), apitest.Say("Done."))
	h := handlerOf(executor.Agent{Provider: model, Tools: []dag.Tool{count}}, nil)
	list := post(t, h,
		`{"threadId":"t","runId":"r","state":{"Count":6},"messages":[{"id":"u","role":"user","content":"Go."}]}`)
	var snapshots []any
	for _, e := range list {
		if e["type"] == "STATE_SNAPSHOT" {
			snapshots = append(snapshots, e["snapshot"])
		}
	}
	require.Equal(t, []any{map[string]any{"Count": 7.0}}, snapshots)
	require.Nil(t, agui.State(t.Context()))
}

func TestRetryReplacesWhatWasShown(t *testing.T) {
	model := apitest.NewScript(apitest.Say("Half").Fail(&api.Error{Kind: api.ErrOverloaded}), apitest.Say("Whole."))
	client := api.NewClient(model, &api.ClientOptions{MinWait: time.Nanosecond})
	list := post(t, handlerOf(executor.Agent{Provider: client}, nil), ask("Go."))
	require.Equal(t, strings.Join([]string{
		"RUN_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END MESSAGES_SNAPSHOT",
		"TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END RUN_FINISHED",
	}, " "), types(list))
}

func TestErrorReachesTheClientAsItsKind(t *testing.T) {
	model := apitest.NewScript(apitest.Fail(&api.Error{Kind: api.ErrAuth, Message: "key sk-SECRET is wrong"}))
	list := post(t, handlerOf(executor.Agent{Provider: model}, nil), ask("Go."))
	want := map[string]any{"type": "RUN_ERROR", "message": "The run failed.", "code": "not authorized"}
	require.Equal(t, want, last(list))
}

// A response whose connection breaks after some bytes.
type broken struct {
	*httptest.ResponseRecorder
	left int
}

func (b *broken) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errors.New("the connection is lost")
	}
	return b.ResponseRecorder.Write(p)
}

func TestRequestAfterALostConnectionContinues(t *testing.T) {
	calls := 0
	model := apitest.NewScript(apitest.Call(call("say")), apitest.Say("Done.")) // one response for each turn
	h := handlerOf(executor.Agent{Provider: model, Tools: []dag.Tool{say("hi", &calls)}}, nil)
	lost := &broken{httptest.NewRecorder(), 300}
	h.ServeHTTP(lost, request(http.MethodPost, ask("Go.")))
	require.NotContains(t, lost.Body.String(), "RUN_FINISHED")

	list := post(t, h, ask("Go."))
	require.Equal(t, map[string]any{"type": "success"}, last(list)["outcome"], "%v", list)
	require.Equal(t, 1, calls)
	require.Len(t, model.Requests(), 2)
}

func TestRequestsThatAreNoneAreRefused(t *testing.T) {
	h := handlerOf(executor.Agent{}, &agui.Options{Thread: func(_ *http.Request, id string) (string, error) {
		if id == "theirs" {
			return "", errors.New("not yours")
		}
		return id, nil
	}})
	for name, test := range map[string]struct {
		method, body string
		want         int
	}{
		"method":         {http.MethodGet, "", http.StatusMethodNotAllowed},
		"no JSON":        {http.MethodPost, "{", http.StatusBadRequest},
		"no thread":      {http.MethodPost, `{"runId":"r"}`, http.StatusBadRequest},
		"no run":         {http.MethodPost, `{"threadId":"t"}`, http.StatusBadRequest},
		"thread":         {http.MethodPost, `{"threadId":"theirs","runId":"r"}`, http.StatusForbidden},
		"resume is text": {http.MethodPost, `{"threadId":"t","runId":"r","resume":"all"}`, http.StatusBadRequest},
		"too large":      {http.MethodPost, `"` + strings.Repeat("x", 17<<20), http.StatusRequestEntityTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			response := httptest.NewRecorder()
			h.ServeHTTP(response, request(test.method, test.body))
			require.Equal(t, test.want, response.Code)
		})
	}

	// The form of a page of another site.
	form := request(http.MethodPost, ask("Go."))
	form.Header.Set("Content-Type", "text/plain")
	response := httptest.NewRecorder()
	h.ServeHTTP(response, form)
	require.Equal(t, http.StatusUnsupportedMediaType, response.Code)
}

func TestMessagesThatCannotBeReadAreAnError(t *testing.T) {
	h := handlerOf(executor.Agent{Provider: apitest.NewScript()}, nil)
	for _, body := range []string{`7`, `{"a":1}`, `null`, `[{"type":"image","source":{"type":"data","value":"!"}}]`} {
		list := post(t, h, `{"threadId":"t","runId":"r","messages":[{"id":"u","role":"user","content":`+body+`}]}`)
		require.Equal(t, "RUN_ERROR", last(list)["type"], body)
	}
}

func TestMessageWhoseIDLooksLikeOneOfOursIsAppended(t *testing.T) {
	h := handlerOf(executor.Agent{Provider: apitest.NewScript(apitest.Say("One."), apitest.Say("Two."))}, nil)
	const first = `{"threadId":"t","runId":"r","messages":[{"id":"m0","role":"user","content":"Go."}]}`
	require.Equal(t, "RUN_FINISHED", last(post(t, h, first))["type"])

	list := post(t, h, `{"threadId":"t","runId":"s","messages":[{"id":"m0","role":"user","content":"Go."},{"id":"m1","role":"user","content":"On."}]}`)
	var text strings.Builder
	for _, e := range list {
		if e["type"] == "TEXT_MESSAGE_CONTENT" {
			fmt.Fprint(&text, e["delta"])
		}
	}
	require.Equal(t, "Two.", text.String())
}

func TestThreadThatIsNoNameIsRefused(t *testing.T) {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "http://localhost/", strings.NewReader(`{"threadId":"a\u0000b","runId":"r"}`))
	r.Header.Set("Content-Type", "application/json")
	handlerOf(executor.Agent{Provider: apitest.NewScript()}, nil).ServeHTTP(w, r)
	require.Equal(t, http.StatusBadRequest, w.Code)
}

func TestPendingCallIsNotAppendedAgain(t *testing.T) {
	calls, decided := 0, 0
	sessions := store.New(store.Memory())
	approval := executor.Hook{Before: func(context.Context, executor.Call) (executor.Decision, error) {
		decided++
		return executor.AskApproval("Sure?"), nil
	}}
	h := handlerOf(executor.Agent{
		Provider: apitest.NewScript(apitest.Call(call("say"))), Tools: []dag.Tool{say("hi", &calls)},
		Hooks: []executor.Hook{approval},
	}, &agui.Options{Store: sessions})

	first := post(t, h, ask("Go."))
	before, err := sessions.Conversation(t.Context(), "t")
	require.NoError(t, err)
	again := post(t, h, ask("Go."))
	after, err := sessions.Conversation(t.Context(), "t")
	require.NoError(t, err)

	require.Equal(t, last(first)["outcome"], last(again)["outcome"], "it is asked the same")
	require.Equal(t, before.Version(), after.Version())
	require.Equal(t, 1, decided)
}
