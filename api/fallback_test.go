package api_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/api/apitest/conformance"
	"github.com/plait-dev/plait/content"
)

func TestFallbackSendsToTheNextProviderWhereItMayHelp(t *testing.T) {
	for kind, next := range map[error]bool{
		api.ErrRateLimited: true, api.ErrOverloaded: true, api.ErrServer: true, api.ErrTransport: true, api.ErrCut: true, api.ErrStalled: true,
		api.ErrContextTooLong: true, api.ErrAuth: true, api.ErrQuota: true, api.ErrNotFound: true, api.ErrProtocol: true,
		api.ErrInvalidRequest: false, api.ErrFiltered: false, api.ErrNothing: false,
	} {
		failure := &api.Error{Kind: kind, API: "first"}
		first, second := script([]any{failure}), script(good)
		events, err := collect(t, api.Fallback(first, second).Stream(t.Context(), request))
		if !next {
			require.Same(t, failure, err, kind)
			require.Empty(t, events)
			require.Zero(t, second.requests, kind)
			continue
		}
		require.NoError(t, err, kind)
		require.Equal(t, []string{"Retry", "BlockEnd", "Finish"}, kinds(events))
		require.Equal(t, api.Retry{Attempt: 1, Err: failure}, events[0])
		require.Equal(t, 1, first.requests)
	}
}

func TestFallbackEmitsRetrySoThatEarlierEventsAreVoid(t *testing.T) {
	first, second := script([]any{api.Delta{Kind: api.DeltaText, Text: "Hel"}, says(0, "Hel"), busy}), script(good)
	answer, err := api.NewClient(api.Fallback(first, second), nil).Send(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, "Hello", answer.Blocks.Text())
	require.Equal(t, "m", answer.Model, "the model that answered")
}

func TestFallbackReportsWhatArrivedOfAFailedAnswer(t *testing.T) {
	part := api.Cut{Finish: api.Finish{API: "first", Model: "m", Usage: content.Usage{Output: 7}}}
	first, second := script([]any{says(0, "Hel"), part, busy}), script([]any{says(0, "It"), busy})
	events, err := collect(t, api.Fallback(first, second).Stream(t.Context(), request))
	require.ErrorIs(t, err, busy)
	require.Equal(t, []string{"BlockEnd", "Retry", "BlockEnd", "Cut"}, kinds(events))
	cut := events[1].(api.Retry).Cut
	require.Equal(t, int64(7), cut.Usage.Output, "the failed answer was paid for")
	require.Equal(t, content.StopCut, events[3].(api.Cut).Stop)
}

func TestFallbackFailsWithTheLastError(t *testing.T) {
	last := &api.Error{Kind: api.ErrServer, API: "third"}
	events, err := collect(t, api.Fallback(script(overload), script(overload), script([]any{last})).Stream(t.Context(), request))
	require.ErrorIs(t, err, last)
	var attempts *api.AttemptsError
	require.ErrorAs(t, err, &attempts)
	require.Len(t, attempts.Earlier, 2)
	require.Equal(t, []string{"Retry", "Retry"}, kinds(events))
	require.Equal(t, 2, events[1].(api.Retry).Attempt)

	_, err = collect(t, api.Fallback(nil, nil).Stream(t.Context(), request))
	require.ErrorIs(t, err, api.ErrProtocol)
}

func TestFallbackStopsWithTheContextAndTheConsumer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	second := script(good)
	events, err := collect(t, api.Fallback(script([]any{func() { cancel() }, &api.Error{Kind: api.ErrTransport}}), second).Stream(ctx, request))
	require.Error(t, err)
	require.Empty(t, events)
	for range api.Fallback(script(overload), second).Stream(t.Context(), request) {
		break // at the Retry
	}
	require.Zero(t, second.requests)
}

func TestFallbackPassesOverAProviderThatAskedToWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := script(limited(48*time.Second), good), script(good, good, limited(time.Minute), good)
		model := api.Fallback(first, second)
		send := func() error {
			_, err := collect(t, model.Stream(t.Context(), request))
			return err
		}
		require.NoError(t, send())
		require.NoError(t, send())
		require.Equal(t, 1, first.requests, "it is not asked before its time")
		require.Equal(t, 2, second.requests)

		time.Sleep(47 * time.Second)
		require.ErrorIs(t, send(), api.ErrRateLimited, "the second one is limited now, too")
		err := send()
		require.ErrorIs(t, err, api.ErrRateLimited)
		var e *api.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, time.Second, e.RetryAfter, "of the one whose wait ends first")
		require.Equal(t, 1, first.requests)
		require.Equal(t, 3, second.requests)

		start := time.Now()
		answer, err := api.NewClient(model, nil).Send(t.Context(), request)
		require.NoError(t, err)
		require.Equal(t, "Hello", answer.Blocks.Text())
		require.Equal(t, time.Second, time.Since(start), "a client waits for it")
		require.Equal(t, 2, first.requests)
	})
}

// TestFallbackIsRetriedIfOneOfItsProvidersMayBe: the last one has no credit, but the first was only overloaded.
func TestFallbackIsRetriedIfOneOfItsProvidersMayBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := script(overload, good), script([]any{&api.Error{Kind: api.ErrQuota}})
		answer, err := api.NewClient(api.Fallback(first, second), nil).Send(t.Context(), request)
		require.NoError(t, err)
		require.Equal(t, "Hello", answer.Blocks.Text())
	})

	invalid := &api.Error{Kind: api.ErrInvalidRequest}
	_, err := collect(t, api.Fallback(script(overload), script([]any{invalid})).Stream(t.Context(), request))
	require.ErrorIs(t, err, invalid)
	require.False(t, api.Retryable(err))
}

func TestFallbackKeepsTheRulesOfAProvider(t *testing.T) {
	down := apitest.NewScript(apitest.Say("Let me").Fail(&api.Error{Kind: api.ErrOverloaded, API: "down"}).Always())
	conformance.Run(t, func(_ *testing.T, s conformance.Scenario) api.Provider {
		hello := apitest.Say("Hello there.").Always()
		var model *apitest.Script
		switch s {
		case conformance.Answers:
			model = apitest.NewScript(hello)
		case conformance.Calls:
			model = apitest.NewScript(apitest.Say("Let me see.").Call(apitest.Use("get_weather", map[string]string{"city": "Tokyo"})).Always())
		case conformance.FailsOnce:
			model = apitest.NewScript(apitest.Fail(&api.Error{Kind: api.ErrOverloaded, API: "script"}), hello)
		case conformance.Breaks:
			model = apitest.NewScript(apitest.Say("Hello").Fail(&api.Error{Kind: api.ErrCut, API: "script"}).Always())
		case conformance.Hangs:
			model = apitest.NewScript(apitest.Hang().Always())
		}
		return api.Fallback(down, model)
	})
}

// The first model is overloaded, in the middle of its answer. The second one answers.
func ExampleFallback() {
	first := apitest.NewScript(apitest.Say("It is").Fail(&api.Error{Kind: api.ErrOverloaded, API: "first", Message: "Try again later."}))
	second := apitest.NewScript(apitest.Say("It is 22 degrees.").As("second", "small-model"))
	client := api.NewClient(api.Fallback(first, second), nil)

	var fold api.Fold
	for event, err := range client.Stream(context.Background(), api.Request{Messages: []content.Message{user("Weather?")}}) {
		if err == nil {
			err = fold.Add(event)
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		if retry, ok := event.(api.Retry); ok {
			fmt.Println("instead of:", retry.Err)
		}
	}
	answer, err := fold.Response()
	fmt.Println(answer.API, answer.Model, answer.Blocks.Text(), err)
	// Output:
	// instead of: first: overloaded: Try again later.
	// second small-model It is 22 degrees. <nil>
}
