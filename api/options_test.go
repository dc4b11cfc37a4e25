package api_test

import (
	"context"
	"fmt"
	"iter"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
)

func ptr[T any](v T) *T { return &v }

func ExampleOptions() {
	careful := api.Options{Temperature: new(float64), Thinking: api.ThinkHigh, Body: `{"seed":7}`}
	o := api.Options{MaxTokens: 100, Thinking: api.ThinkOff, Body: `{"user":"u1"}`}.Over(careful)
	fmt.Println(o.MaxTokens, *o.Temperature, o.Thinking, o.Body, o.Check())

	o.ToolChoice = "some"
	fmt.Println(o.Check())
	// Output:
	// 100 0 off {"seed":7,"user":"u1"} <nil>
	// invalid request: Options.ToolChoice is "some", which is not a tool choice
}

// The model thinks little, wherever it is asked through this provider, unless a request says otherwise.
func ExampleWith() {
	quick := api.With(optionsOf{}, api.Options{MaxTokens: 50, Thinking: api.ThinkLow})
	for _, own := range []api.Options{{}, {Thinking: api.ThinkHigh}} {
		answer, err := api.NewClient(quick, nil).Send(context.Background(), api.Request{Options: own})
		fmt.Println(answer.Blocks.Text(), err)
	}
	// Output:
	// 50 low <nil>
	// 50 high <nil>
}

// optionsOf is a model that answers with the options that it was asked with.
type optionsOf struct{}

func (optionsOf) Stream(_ context.Context, req api.Request) iter.Seq2[api.Event, error] {
	return api.Once(func(yield func(api.Event, error) bool) {
		said := fmt.Sprint(req.Options.MaxTokens, " ", req.Options.Thinking)
		_ = yield(api.BlockEnd{Block: content.Text{Text: said}}, nil) && yield(api.Finish{}, nil)
	})
}

func TestOptionsOverKeepsSetFields(t *testing.T) {
	full := api.Options{
		MaxTokens: 1, Temperature: ptr(1.0), StopSequences: []string{"a"}, ToolChoice: api.ToolsAny, OneCall: true, Thinking: api.ThinkLow,
		Output: api.Output[plan](), Cache: api.CacheLong, Idle: time.Second,
		Header: http.Header{"A": {"1"}}, Body: `{"a":1}`,
	}
	require.Equal(t, full, api.Options{}.Over(full), "every field is filled")
	require.Equal(t, full, full.Over(api.Options{}), "and none is lost")
	other := api.Options{
		MaxTokens: 2, Temperature: ptr(0.0), StopSequences: []string{}, ToolChoice: api.OneTool("x"), Thinking: api.ThinkOff,
		Output: api.Output[step](), Cache: api.CacheOff, Idle: -1,
		Header: http.Header{"B": {"2"}, "A": {"3", "4"}}, Body: `{"b":{"c":2},"a":null}`,
	}
	got := other.Over(full)
	require.True(t, got.OneCall)
	other.OneCall = true
	require.Equal(t, other, got, "what is set goes before, also where it is 0 or empty")

	merged := api.Options{Header: http.Header{"B": {"2"}}, Body: `{"b":2}`}.Over(full)
	require.Equal(t, map[string][]string{"A": {"1"}, "B": {"2"}}, merged.Header)
	require.Equal(t, content.JSON(`{"a":1,"b":2}`), merged.Body)
	require.Len(t, full.Header, 1, "the defaults are not changed")
}

func TestOverKeepsABodyThatIsNone(t *testing.T) {
	for _, body := range []content.JSON{"[]", "{", "null", "x", `{"a":1,"a":2}`} {
		o := api.Options{Body: body}.Over(api.Options{Body: `{"a":1}`})
		require.Error(t, o.Check(), body)
		o = api.Options{}.Over(api.Options{Body: body})
		require.Error(t, o.Check(), body)
	}
	require.Equal(t, content.JSON(`{"a":1.0,"b":"\u003c"}`), api.Options{Body: `{"b":"\u003c"}`}.Over(api.Options{Body: ` {"a":1.0} `}).Body, "values stay as they are written")
}

func TestCheckNamesTheField(t *testing.T) {
	for want, o := range map[string]api.Options{
		"":                                      {},
		"MaxTokens is -1":                       {MaxTokens: -1},
		"Temperature is -0.1":                   {Temperature: ptr(-0.1)},
		"Temperature is 2.1":                    {Temperature: ptr(2.1)},
		"Temperature is NaN":                    {Temperature: ptr(math.NaN())},
		"Temperature is +Inf":                   {Temperature: ptr(math.Inf(1))},
		"StopSequences contains":                {StopSequences: []string{"a", ""}},
		"ToolChoice is \"always\"":              {ToolChoice: "always"},
		"ToolChoice is \"tool:\"":               {ToolChoice: api.OneTool("")},
		"Thinking is \"-5\"":                    {Thinking: api.ThinkTokens(-5)},
		"Thinking is \"0\"":                     {Thinking: api.ThinkTokens(0)},
		"Thinking is \"High\"":                  {Thinking: "High"},
		"Thinking is \"1.5\"":                   {Thinking: "1.5"},
		"Thinking is \"1073741825\"":            {Thinking: api.ThinkTokens(1<<30 + 1)},
		"Thinking is \"999999999999999999999\"": {Thinking: "999999999999999999999"},
		"Cache is \"For ever\"":                 {Cache: "For ever"},
		"Body is not":                           {Body: "[]"},
		"Header: \"X y\"":                       {Header: http.Header{"X y": {"1"}}},
		"Header: \"X\"":                         {Header: http.Header{"X": {"1", "a\r\nEvil: 1"}}},
		"Header: \"a name that is empty\"":      {Header: http.Header{"": {"1"}}},
		"Header: \"X\\nY\"":                     {Header: http.Header{"X\nY": nil}},
	} {
		err := o.Check()
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, api.ErrInvalidRequest, want)
		require.ErrorContains(t, err, "Options."+want)
		require.NotContains(t, err.Error(), "\n")
		require.False(t, api.Retryable(err))
	}
	for _, o := range []api.Options{
		{Temperature: ptr(0.0)}, {Temperature: ptr(2.0)}, {Thinking: "minimal"}, {Thinking: "x_high"}, {Thinking: api.ThinkTokens(1)},
		{Thinking: api.ThinkTokens(1 << 30)}, {ToolChoice: api.OneTool("a b")}, {Header: http.Header{"X-A": {"tab\there", "é"}}}, {Body: " {} "}, {Idle: -1},
	} {
		require.NoError(t, o.Check())
	}
	require.Less(t, len(api.Options{ToolChoice: api.ToolChoice(strings.Repeat("x", 1<<20))}.Check().Error()), 2000)
}

func TestToolChoice(t *testing.T) {
	for choice, tool := range map[api.ToolChoice]string{
		api.ToolsAuto: "", api.ToolsAny: "", api.ToolsNone: "", api.OneTool("x"): "x",
		api.OneTool("any"): "any", api.OneTool("tool:x"): "tool:x", api.OneTool(""): "", "x": "",
	} {
		require.Equal(t, tool, choice.Tool(), choice)
	}
}

func TestThinking(t *testing.T) {
	for thinking, want := range map[api.Thinking]struct {
		tokens int
		level  string
	}{
		"": {0, ""}, api.ThinkOff: {0, ""}, api.ThinkAuto: {0, ""}, api.ThinkLow: {0, "low"}, api.ThinkHigh: {0, "high"}, "minimal": {0, "minimal"},
		api.ThinkTokens(2048): {2048, ""},
	} {
		require.Equal(t, want.tokens, thinking.Tokens(), thinking)
		require.Equal(t, want.level, thinking.Level(), thinking)
	}
}

// counts is a provider that is overloaded, and counts how often it was asked.
type counts struct{ asked *int }

func (c counts) Stream(context.Context, api.Request) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		*c.asked++
		yield(nil, &api.Error{Kind: api.ErrOverloaded})
	}
}

func TestWithRetriesNothingTwiceOver(t *testing.T) {
	asked := 0
	client := api.NewClient(counts{&asked}, &api.ClientOptions{Attempts: 2, MinWait: time.Nanosecond})
	p := api.With(api.With(client, api.Options{MaxTokens: 1}), api.Options{MaxTokens: 2})
	_, err := api.NewClient(p, nil).Send(t.Context(), api.Request{})
	require.ErrorIs(t, err, api.ErrOverloaded)
	require.Equal(t, 2, asked)
}

func TestWithOfWithGoesBefore(t *testing.T) {
	p := api.With(api.With(optionsOf{}, api.Options{MaxTokens: 1, Thinking: api.ThinkLow}), api.Options{MaxTokens: 2})
	answer, err := api.NewClient(p, nil).Send(t.Context(), api.Request{})
	require.NoError(t, err)
	require.Equal(t, "2 low", answer.Blocks.Text())
}

func TestWithOfNoProviderIsAnError(t *testing.T) {
	var none *api.Client
	for _, p := range []api.Provider{nil, none} {
		var last error
		for _, err := range api.With(p, api.Options{}).Stream(t.Context(), api.Request{}) {
			last = err
		}
		require.ErrorIs(t, last, api.ErrProtocol)
	}
}

func TestHeaderNamesIgnoreCase(t *testing.T) {
	provider := api.Options{Header: http.Header{"x-a": {"provider"}, "X-B": {"kept"}}}
	request := api.Options{Header: http.Header{"X-a": {"request"}}}
	require.Equal(t, map[string][]string{"X-A": {"request"}, "X-B": {"kept"}}, request.Over(provider).Header)
	require.Equal(t, map[string][]string{"X-A": {"provider"}, "X-B": {"kept"}}, api.Options{}.Over(provider).Header)
	require.Nil(t, api.Options{}.Over(api.Options{}).Header)
}

func TestHeaderErrorDoesNotShowTheValue(t *testing.T) {
	err := api.Options{Header: http.Header{"X-A": {"a\nb"}}}.Check()
	require.EqualError(t, err, `invalid request: Options.Header: "X-A" cannot be sent`)
}

func TestCachePolicyOfOneProviderIsAccepted(t *testing.T) {
	require.NoError(t, api.Options{Cache: "own"}.Check())
	require.Error(t, api.Options{Cache: "own it"}.Check())
}

func TestThinkingBudgetHasOneSpelling(t *testing.T) {
	for _, s := range []api.Thinking{"007", "+5", "-0", "1e3"} {
		require.Zero(t, s.Tokens(), s)
		require.ErrorIs(t, api.Options{Thinking: s}.Check(), api.ErrInvalidRequest, s)
	}
	require.Equal(t, 7, api.ThinkTokens(7).Tokens())
}
