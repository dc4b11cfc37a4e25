package apitest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
)

var hello = api.Request{Messages: []content.Message{{Role: content.User, Blocks: content.Words("Hello")}}}

func send(t *testing.T, p api.Provider) (api.Response, error) {
	t.Helper()
	return api.NewClient(p, &api.ClientOptions{Attempts: 1}).Send(t.Context(), hello)
}

func ExampleNewScript() {
	model := apitest.NewScript(
		apitest.Say("Let me look.").Call(apitest.Use("get_weather", map[string]string{"city": "Tokyo"})),
		apitest.Say("It is 22°C.").Usage(content.Usage{Input: 20, Output: 7}),
	)
	client := api.NewClient(model, nil)
	for range 2 {
		answer, err := client.Send(context.Background(), hello)
		fmt.Println(answer.Stop, answer.Blocks.Text(), answer.Blocks.ToolUses(), answer.Usage.Total(), err)
	}
	_, err := client.Send(context.Background(), hello)
	fmt.Println(err, len(model.Requests()))
	// Output:
	// tool_use Let me look. [{call_1_1 get_weather {"city":"Tokyo"} { }}] 0 <nil>
	// end_turn It is 22°C. [] 27 <nil>
	// script: the script has no response left: this is request 3 3
}

func TestScriptThatIsOverIsNotRetried(t *testing.T) {
	model := apitest.NewScript()
	_, err := api.NewClient(model, nil).Send(t.Context(), hello)
	require.ErrorIs(t, err, apitest.ErrScriptOver)
	require.NotErrorIs(t, err, api.ErrProtocol)
	require.EqualError(t, err, "script: the script has no response left: this is request 1")
	require.Len(t, model.Requests(), 1)
}

func TestScriptRemembersRequestsAsTheyWere(t *testing.T) {
	model := apitest.NewScript(apitest.Say("Hi"))
	req := api.Request{System: []string{"a"}, Messages: []content.Message{hello.Messages[0]}}
	for range model.Stream(t.Context(), req) {
	}
	req.System[0] = "b"
	req.Messages[0] = content.Message{}
	require.Equal(t, "a", model.Requests()[0].System[0])
	require.Equal(t, "Hello", model.Requests()[0].Messages[0].Blocks.Text())
}

func TestScriptedFailureFollowsTheContent(t *testing.T) {
	failure := &api.Error{Kind: api.ErrServer}
	var events []api.Event
	var last error
	for event, err := range apitest.NewScript(apitest.Say("Half a").Fail(failure)).Stream(t.Context(), hello) {
		events, last = append(events, event), err
	}
	require.ErrorIs(t, last, api.ErrServer)
	require.Equal(t, []api.Event{
		api.Delta{Kind: api.DeltaText, Text: "Half "}, api.Delta{Kind: api.DeltaText, Text: "a"},
		api.BlockEnd{Block: content.Text{Text: "Half a"}},
		api.Cut{Finish: api.Finish{API: "script", Model: "script", ResponseID: "response_1", Stop: content.StopCut}}, nil,
	}, events)
}

func TestScriptHangsUntilTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		start := time.Now()
		req := hello
		req.Options.Idle = -1
		_, err := api.NewClient(apitest.NewScript(apitest.Say("x").Hang()), nil).Send(ctx, req)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Hour, time.Since(start))
	})
}

func TestScriptThatHangsIsStalled(t *testing.T) {
	for name, test := range map[string]struct {
		turn  apitest.Turn
		idle  time.Duration
		after time.Duration
		want  error
	}{
		"at once":                  {apitest.Hang(), time.Second, time.Second, api.ErrStalled},
		"after a text":             {apitest.Say("x").Hang(), time.Second, time.Second, api.ErrStalled},
		"by default":               {apitest.Hang(), 0, 5 * time.Minute, api.ErrStalled},
		"no limit":                 {apitest.Hang(), -1, time.Hour, context.DeadlineExceeded},
		"the deadline comes first": {apitest.Hang(), 2 * time.Hour, time.Hour, context.DeadlineExceeded},
		"a wait that is too long":  {apitest.Say("x").Wait(time.Minute), time.Second, time.Second, api.ErrStalled},
		"a wait that is not":       {apitest.Say("x").Wait(time.Minute), time.Hour, time.Minute, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				start := time.Now()
				req := hello
				req.Options.Idle = test.idle
				var last error
				for _, err := range apitest.NewScript(test.turn).Stream(ctx, req) {
					last = err
				}
				require.ErrorIs(t, last, test.want)
				require.Equal(t, test.after, time.Since(start))
			})
		})
	}
}

func TestScriptWaitsBeforeTheFirstEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer, err := send(t, apitest.NewScript(apitest.Say("x").Wait(time.Minute)))
		require.NoError(t, err)
		require.Equal(t, time.Minute, answer.Latency)
	})
}

func TestScriptTurnCanBeAFunction(t *testing.T) {
	echo := apitest.Func(func(req api.Request) apitest.Turn {
		return apitest.Say(req.Messages[len(req.Messages)-1].Blocks.Text()).Think("echo", "sig")
	})
	model := apitest.NewScript(echo.Always())
	for range 3 {
		answer, err := send(t, model)
		require.NoError(t, err)
		require.Equal(t, []content.Block{content.Thinking{Text: "echo", Signature: "sig"}, content.Text{Text: "Hello"}}, answer.Blocks.Slice())
	}
	require.Equal(t, 1, model.Left())
}

func TestScriptsSequenceIsForOneUse(t *testing.T) {
	events := apitest.NewScript(apitest.Say("x").Always()).Stream(t.Context(), hello)
	for range events {
	}
	var second error
	for _, err := range events {
		second = err
	}
	require.ErrorIs(t, second, api.ErrProtocol)
}

func TestScriptReportsRepairs(t *testing.T) {
	note := api.RepairNote{Kind: "merged", Detail: "two in a row"}
	answer, err := send(t, apitest.NewScript(apitest.Say("x").Repaired(note).As("acme", "acme-1")))
	require.NoError(t, err)
	require.Equal(t, []api.RepairNote{note}, answer.Repairs)
	require.Equal(t, "acme-1", answer.Model)
}

func TestScriptStopsWhenTheConsumerLeaves(t *testing.T) {
	for event, err := range apitest.NewScript(apitest.Say("a b c").Fail(errors.New("never seen"))).Stream(t.Context(), hello) {
		require.NoError(t, err)
		require.IsType(t, api.Delta{}, event)
		break
	}
}

func TestScriptRemembersTheOptionsAsTheyWere(t *testing.T) {
	warm := 0.5
	o := api.Options{MaxTokens: 5, Temperature: &warm, StopSequences: []string{"END"}, Header: http.Header{"X": {"1"}}}
	model := apitest.NewScript(apitest.Say("x"))
	for range model.Stream(t.Context(), api.Request{Options: o}) {
	}
	warm = 1
	o.StopSequences[0] = "STOP"
	o.Header["X"][0] = "2"
	asked := model.Requests()[0].Options
	require.Equal(t, 5, asked.MaxTokens)
	require.Equal(t, 0.5, *asked.Temperature)
	require.Equal(t, []string{"END"}, asked.StopSequences)
	require.Equal(t, "1", asked.Header["X"][0])
}

func TestScriptRefusesWhatAnAPIWouldRefuse(t *testing.T) {
	weather := content.Tool{Name: "get_weather", Schema: `{"type":"object"}`}
	hot := 3.0
	for says, change := range map[string]func(*api.Request){
		"Options.MaxTokens is -1":                      func(r *api.Request) { r.Options.MaxTokens = -1 },
		"Options.Temperature is 3, not 0 to 2":         func(r *api.Request) { r.Options.Temperature = &hot },
		`the name "get weather" does not match`:        func(r *api.Request) { r.Tools[0].Name = "get weather" },
		`its schema's type is "array", not "object"`:   func(r *api.Request) { r.Tools[0].Schema = `{"type":"array"}` },
		`two tools have the name "get_weather"`:        func(r *api.Request) { r.Tools = append(r.Tools, weather) },
		`names the tool "get_time", which is not decl`: func(r *api.Request) { r.Options.ToolChoice = api.OneTool("get_time") },
		"requires a call, and no tool is":              func(r *api.Request) { r.Tools, r.Options.ToolChoice = nil, api.ToolsAny },
	} {
		model := apitest.NewScript(apitest.Say("Hi."))
		req := api.Request{Messages: hello.Messages, Tools: []content.Tool{weather}}
		change(&req)
		_, err := api.NewClient(model, nil).Send(t.Context(), req)
		require.ErrorIs(t, err, api.ErrInvalidRequest, says)
		require.ErrorContains(t, err, says)
		var e *api.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, "script", e.API)
		require.Len(t, model.Requests(), 1, "it was asked, once")
		require.Equal(t, 1, model.Left(), "no turn is used up")
	}
	for _, choice := range []api.ToolChoice{api.ToolsAny, api.ToolsNone, api.OneTool("get_weather")} {
		_, err := api.NewClient(apitest.NewScript(apitest.Say("Hi.")), nil).Send(t.Context(),
			api.Request{Messages: hello.Messages, Tools: []content.Tool{weather}, Options: api.Options{ToolChoice: choice}})
		require.NoError(t, err)
	}
}
