package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
)

// scripted plays one list of events for each request; an error in it is yielded as one, with no regard for what yield says.
type scripted struct {
	plays    [][]any
	requests int
}

func (s *scripted) Stream(context.Context, api.Request) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		play := s.plays[min(s.requests, len(s.plays)-1)]
		s.requests++
		for _, e := range play {
			switch e := e.(type) {
			case error:
				yield(nil, e)
			case api.Event:
				yield(e, nil)
			case nil:
				yield(nil, nil)
			case func() (api.Event, error):
				yield(e())
			case func():
				e()
			}
		}
	}
}

func script(plays ...[]any) *scripted { return &scripted{plays: plays} }

var (
	request  = api.Request{Messages: []content.Message{user("Hi")}}
	done     = api.Finish{API: "test", Model: "m", Stop: content.StopEndTurn}
	busy     = &api.Error{Kind: api.ErrOverloaded, Status: 529}
	good     = []any{says(0, "Hello"), done}
	overload = []any{busy}
)

func text(s string) content.Block { return content.Text{Text: s} }

func user(said string) content.Message {
	return content.Message{Role: content.User, Blocks: content.Words(said)}
}

func says(i int, s string) api.BlockEnd { return api.BlockEnd{Index: i, Block: text(s)} }

// collect ranges over a stream, and fails the test when anything follows an error.
func collect(t *testing.T, stream iter.Seq2[api.Event, error]) (events []api.Event, failure error) {
	t.Helper()
	for e, err := range stream {
		require.NoError(t, failure, "an error is last")
		if failure = err; err != nil {
			require.Nil(t, e, "an event beside an error")
			continue
		}
		events = append(events, e)
	}
	return events, failure
}

func kinds(events []api.Event) (list []string) {
	for _, e := range events {
		list = append(list, fmt.Sprintf("%T", e)[len("api."):])
	}
	return list
}

func TestClientFoldsAnAnswer(t *testing.T) {
	usage := content.Usage{Input: 3, Output: 2}
	p := script([]any{
		api.Repaired{Repairs: []api.RepairNote{{Kind: "merged"}}}, api.Delta{Kind: api.DeltaText, Text: "Hel"}, says(0, "Hello"),
		api.BlockEnd{Index: 1, Block: &content.ToolUse{ID: "a", Name: "f", Input: "{}"}}, api.Finish{Model: "m", ResponseID: "r", Usage: usage},
	})
	answer, err := api.NewClient(p, nil).Send(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, "Hello", answer.Blocks.Text())
	require.Equal(t, content.ToolUse{ID: "a", Name: "f", Input: "{}"}, answer.Blocks.At(1), "a pointer is replaced by its value")
	require.Equal(t, content.StopUnknown, answer.Stop)
	require.Equal(t, usage, answer.Usage)
	require.Equal(t, "r", answer.ResponseID)
	require.Len(t, answer.Repairs, 1)
}

func TestClientShowsEveryEventOfEveryAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := script([]any{says(0, "Hel"), busy}, good)
		events, err := collect(t, api.NewClient(p, nil).Stream(t.Context(), request))
		require.NoError(t, err)
		require.Equal(t, []string{"BlockEnd", "Retry", "BlockEnd", "Finish"}, kinds(events))
		retry := events[1].(api.Retry)
		require.Equal(t, 1, retry.Attempt)
		require.Same(t, busy, retry.Err)
		answer, err := api.NewClient(script([]any{says(0, "Hel"), busy}, good), nil).Send(t.Context(), request)
		require.NoError(t, err)
		require.Equal(t, "Hello", answer.Blocks.Text(), "what a failed attempt said is void")
	})
}

func TestClientWaitsExponentiallyWithinBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := api.NewClient(script(overload), &api.ClientOptions{Attempts: 7, MinWait: time.Second, MaxWait: 10 * time.Second})
		start, waited := time.Now(), time.Duration(0)
		events, err := collect(t, client.Stream(t.Context(), request))
		require.ErrorIs(t, err, busy, "the last error comes as it was")
		require.ErrorContains(t, err, "(7 attempts)")
		require.Len(t, events, 6, "7 attempts, 6 waits")
		for i, full := range []time.Duration{1, 2, 4, 8, 10, 10} {
			retry := events[i].(api.Retry)
			require.Equal(t, i+1, retry.Attempt)
			require.LessOrEqual(t, retry.Wait, full*time.Second)
			require.GreaterOrEqual(t, retry.Wait, full*time.Second*3/4)
			waited += retry.Wait
		}
		require.Equal(t, waited, time.Since(start), "it waits as long as it says")
	})
}

func TestClientDefaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := script(overload)
		events, err := collect(t, api.NewClient(p, nil).Stream(t.Context(), request))
		require.ErrorIs(t, err, api.ErrOverloaded)
		require.Equal(t, 4, p.requests)
		require.LessOrEqual(t, events[0].(api.Retry).Wait, time.Second)
		hour := script([]any{&api.Error{Kind: api.ErrRateLimited, RetryAfter: time.Hour}}, good)
		events, err = collect(t, api.NewClient(hour, nil).Stream(t.Context(), request))
		require.NoError(t, err)
		require.Equal(t, time.Hour, events[0].(api.Retry).Wait)
	})
}

func TestClientWaitsNeverOverflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := api.NewClient(script(overload), &api.ClientOptions{Attempts: 80, MinWait: time.Hour, MaxWait: 2 * time.Hour})
		events, _ := collect(t, client.Stream(t.Context(), request))
		require.Len(t, events, 79)
		for _, e := range events[1:] {
			require.LessOrEqual(t, e.(api.Retry).Wait, 2*time.Hour)
			require.GreaterOrEqual(t, e.(api.Retry).Wait, 90*time.Minute)
		}
	})
}

func limited(d time.Duration) []any {
	return []any{fmt.Errorf("wrapped: %w", &api.Error{Kind: api.ErrRateLimited, RetryAfter: d})}
}

func TestClientWaitsAsLongAsTheProviderAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := script(limited(7*time.Second), limited(48*time.Second), limited(-time.Second), good)
		start := time.Now()
		events, err := collect(t, api.NewClient(p, &api.ClientOptions{MaxWait: 5 * time.Second}).Stream(t.Context(), request))
		require.NoError(t, err)
		require.Equal(t, 7*time.Second, events[0].(api.Retry).Wait)
		require.Equal(t, 48*time.Second, events[1].(api.Retry).Wait, "MaxWait is for the client's own waits")
		require.LessOrEqual(t, events[2].(api.Retry).Wait, 4*time.Second, "nonsense is ignored")
		require.Positive(t, events[2].(api.Retry).Wait)
		require.Equal(t, 55*time.Second+events[2].(api.Retry).Wait, time.Since(start))
	})
}

func TestClientGivesUpAtOnceWhereTheWaitDoesNotFit(t *testing.T) {
	for name, test := range map[string]struct {
		left    time.Duration // until the deadline; 0 is none
		play    []any
		options *api.ClientOptions
		says    string // "" where the wait fits
	}{
		"before the deadline": {left: 49 * time.Second, play: limited(48 * time.Second)},
		"beyond the deadline": {left: 12 * time.Second, play: limited(48 * time.Second), says: "the provider asks to wait 48 s, and the context ends in 12 s"},
		"a moment beyond":     {left: 2*time.Second - 1, play: limited(2 * time.Second), says: "the provider asks to wait 2 s, and the context ends in 2 s"},
		"its own wait": {
			left: 100 * time.Millisecond, play: overload, options: &api.ClientOptions{MinWait: 20 * time.Second}, says: "and the context ends in 0.1 s",
		},
		"too long for a default": {play: limited(61 * time.Minute), says: "the provider asks to wait 3660 s, and the maximum is 3600 s"},
		"too long for a limit": {
			play: limited(3 * time.Second), options: &api.ClientOptions{MaxRetryAfter: 2 * time.Second}, says: "the provider asks to wait 3 s, and the maximum is 2 s",
		},
		"without a limit": {play: limited(100 * time.Hour), options: &api.ClientOptions{MaxRetryAfter: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if test.left > 0 {
					timed, cancel := context.WithTimeout(ctx, test.left)
					defer cancel()
					ctx = timed
				}
				p, start := script(test.play, good), time.Now()
				events, err := collect(t, api.NewClient(p, test.options).Stream(ctx, request))
				if test.says == "" {
					require.NoError(t, err)
					require.Equal(t, 2, p.requests)
					return
				}
				require.ErrorContains(t, err, test.says)
				require.True(t, api.Retryable(err), "it may succeed later")
				require.NotErrorIs(t, err, context.DeadlineExceeded, "the deadline is still ahead")
				require.Empty(t, events, "no retry is announced")
				require.Equal(t, 1, p.requests)
				require.Zero(t, time.Since(start))
			})
		})
	}
}

func TestClientsDoNotRetryInStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits := map[time.Duration]bool{}
		for range 10 {
			events, _ := collect(t, api.NewClient(script(overload), &api.ClientOptions{Attempts: 2, MinWait: time.Hour, MaxWait: time.Hour}).Stream(t.Context(), request))
			waits[events[0].(api.Retry).Wait] = true
		}
		require.Greater(t, len(waits), 1, "ten random waits are all the same")
	})
}

func TestClientRetriesWhatMaySucceedLater(t *testing.T) {
	for kind, retried := range map[error]bool{
		api.ErrRateLimited: true, api.ErrOverloaded: true, api.ErrServer: true, api.ErrTransport: true, api.ErrCut: true, api.ErrStalled: true,
		api.ErrContextTooLong: false, api.ErrInvalidRequest: false, api.ErrAuth: false, api.ErrNotFound: false, api.ErrFiltered: false,
		api.ErrProtocol: false, api.ErrNothing: false, io.ErrUnexpectedEOF: false,
	} {
		synctest.Test(t, func(t *testing.T) {
			p := script([]any{&api.Error{Kind: kind}}, good)
			_, err := api.NewClient(p, nil).Send(t.Context(), request)
			if retried {
				require.NoError(t, err, kind)
				require.Equal(t, 2, p.requests)
			} else {
				require.ErrorIs(t, err, kind)
				require.Equal(t, 1, p.requests, kind)
			}
		})
	}
}

func TestClientMakesOneAttemptWhenAsked(t *testing.T) {
	p := script(overload)
	_, err := api.NewClient(p, &api.ClientOptions{Attempts: 1}).Send(t.Context(), request)
	require.Same(t, busy, err)
	require.Equal(t, 1, p.requests)
}

func TestClientIsNeverRetriedTwiceOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := script(overload)
		inner := api.NewClient(p, &api.ClientOptions{Attempts: 3})
		require.Same(t, inner, api.NewClient(inner, nil))
		_, err := api.NewClient(inner, &api.ClientOptions{Attempts: 2}).Send(t.Context(), request)
		require.ErrorIs(t, err, api.ErrOverloaded)
		require.Equal(t, 2, p.requests)
	})
}

// wrapped hides that a provider is a Client.
type wrapped struct{ api.Provider }

func TestClientOfAProviderThatRetriesItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := wrapped{api.NewClient(script([]any{says(0, "Hel"), busy}, good), nil)}
		answer, err := api.NewClient(p, nil).Send(t.Context(), request)
		require.NoError(t, err)
		require.Equal(t, "Hello", answer.Blocks.Text())
	})
}

func TestClientMeasuresTheAttemptThatSucceeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait := func() { time.Sleep(3 * time.Second) }
		answer, err := api.NewClient(script([]any{wait, busy}, []any{wait, done}), nil).Send(t.Context(), request)
		require.NoError(t, err)
		require.Equal(t, 3*time.Second, answer.Latency)
	})
}

func TestClientKeepsTheLatencyThatTheProviderMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := done
		own.Latency = 2 * time.Second
		answer, err := api.NewClient(script([]any{func() { time.Sleep(3 * time.Second) }, own}), nil).Send(t.Context(), request)
		require.NoError(t, err)
		require.Equal(t, 2*time.Second, answer.Latency)
	})
}

var errEnough = errors.New("the user had enough")

func TestClientStopsWaitingWhenTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		p := script([]any{&api.Error{Kind: api.ErrRateLimited, RetryAfter: 20 * time.Second}}, good)
		start := time.Now()
		time.AfterFunc(5*time.Second, func() { cancel(errEnough) })
		events, err := collect(t, api.NewClient(p, nil).Stream(ctx, request))
		require.Equal(t, []string{"Retry"}, kinds(events))
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, errEnough)
		require.False(t, api.Retryable(err), "a cancelled request is not for trying again")
		require.ErrorContains(t, err, "rate limited", "what it waited for is told")
		require.Equal(t, 5*time.Second, time.Since(start))
		require.Equal(t, 1, p.requests)
	})
}

func TestClientDoesNotRetryWhenTheContextEnded(t *testing.T) {
	for name, c := range map[string]struct {
		failure any
		says    string
	}{
		"the context's error": {context.Canceled, "the user had enough: context canceled"},
		"its cause":           {errEnough, "context canceled: the user had enough"},
		"both":                {errors.Join(errEnough, context.Canceled), "the user had enough\ncontext canceled"},
		"a transport error":   {&api.Error{Kind: api.ErrTransport}, "the user had enough: context canceled: connection failed"},
		"nothing at all":      {func() {}, "the user had enough: context canceled: response cut off: the stream ended before the response was complete"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			p := script([]any{func() { cancel(errEnough) }, c.failure}, good)
			events, err := collect(t, api.NewClient(p, nil).Stream(ctx, request))
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, errEnough)
			require.EqualError(t, err, c.says)
			require.Equal(t, 1, p.requests)
			require.Empty(t, events, "no retry is announced")
		})
	}
}

func TestClientReportsADefiniteErrorEvenIfTheContextEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	refused := &api.Error{Kind: api.ErrInvalidRequest}
	_, err := api.NewClient(script([]any{func() { cancel() }, refused}), nil).Send(ctx, request)
	require.Same(t, refused, err)
}

func TestClientSendsNothingAfterTheContextEnded(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), -1)
	defer cancel()
	p := script(good)
	_, err := api.NewClient(p, nil).Send(ctx, request)
	require.Equal(t, context.DeadlineExceeded, err)
	require.Zero(t, p.requests)
}

func TestClientStopsWhenTheConsumerLeaves(t *testing.T) {
	for n, events := range map[int]int{1: 1, 2: 2, 3: 3} {
		synctest.Test(t, func(t *testing.T) {
			p := script([]any{api.Delta{}, busy}, good, good)
			seen := 0
			for range api.NewClient(p, nil).Stream(t.Context(), request) {
				if seen++; seen == n {
					break
				}
			}
			require.Equal(t, events, seen)
			require.LessOrEqual(t, p.requests, 2)
		})
	}
	p := script(append([]any{api.Delta{}}, good...))
	for range api.NewClient(p, nil).Stream(t.Context(), request) {
		break // the provider goes on all the same, and nothing of it arrives
	}
	require.Equal(t, 1, p.requests)
}

func TestClientSequencesAreForOneUse(t *testing.T) {
	p := script(good)
	stream := api.NewClient(p, nil).Stream(t.Context(), request)
	events, err := collect(t, stream)
	require.NoError(t, err)
	require.Len(t, events, 2)
	events, err = collect(t, stream)
	require.ErrorIs(t, err, api.ErrProtocol)
	require.Empty(t, events)
	require.Equal(t, 1, p.requests, "it is not asked, and paid, twice")
}

func TestClientSeesThatTheProviderKeepsTheRules(t *testing.T) {
	for _, test := range []struct {
		name  string
		play  []any
		kind  error
		says  string
		shown []string // what arrived before
	}{
		{name: "no end", play: []any{says(0, "x")}, kind: api.ErrCut, says: "response cut off: the stream ended before the response was complete", shown: []string{"BlockEnd", "Cut"}},
		{name: "nothing", play: []any{}, kind: api.ErrCut, says: "response cut off"},
		{name: "two ends", play: []any{done, done}, kind: api.ErrProtocol, says: "api.Finish after the end of the response", shown: []string{"Cut"}},
		{name: "more after the end", play: []any{done, says(0, "x")}, kind: api.ErrProtocol, says: "api.BlockEnd after the end of the response", shown: []string{"Cut"}},
		{name: "an error after the end", play: []any{done, &api.Error{Kind: api.ErrFiltered}}, kind: api.ErrFiltered, says: "content filtered", shown: []string{"Cut"}},
		{name: "a retry after the end", play: []any{done, api.Retry{}, done}, kind: api.ErrProtocol, says: "api.Retry after the end", shown: []string{"Cut"}},
		{name: "a block too far", play: []any{says(1, "x"), done}, kind: api.ErrProtocol, says: "block 1 after 0 blocks"},
		{name: "a block twice", play: []any{says(0, "x"), says(0, "y"), done}, kind: api.ErrProtocol, says: "block 0 after 1 blocks", shown: []string{"BlockEnd", "Cut"}},
		{name: "a negative block", play: []any{says(-1, "x"), done}, kind: api.ErrProtocol, says: "block -1 after 0 blocks"},
		{name: "a tool result", play: []any{api.BlockEnd{Block: content.ToolResult{CallID: "a", Content: content.Words("1")}}, done}, kind: api.ErrProtocol, says: "block 0 is a tool result"},
		{name: "a pointer to a tool result", play: []any{api.BlockEnd{Block: &content.ToolResult{}}, done}, kind: api.ErrProtocol, says: "block 0 is a tool result"},
		{name: "no block", play: []any{api.BlockEnd{}, done}, kind: content.ErrBlock, says: "is nil"},
		{name: "a nil pointer", play: []any{api.BlockEnd{Block: (*content.Text)(nil)}, done}, kind: api.ErrProtocol, says: "is nil"},
		{name: "a broken block", play: []any{api.BlockEnd{Block: content.Image{}}, done}, kind: api.ErrProtocol, says: "block 0: block 0 (image): its source"},
		{name: "no event", play: []any{nil}, kind: api.ErrProtocol, says: "unknown event <nil>"},
		{name: "a pointer", play: []any{&done}, kind: api.ErrProtocol, says: "unknown event *api.Finish"},
		{name: "repairs too late", play: []any{says(0, "x"), api.Repaired{}, done}, kind: api.ErrProtocol, says: "api.Repaired is not the first event", shown: []string{"BlockEnd", "Cut"}},
		{name: "repairs twice", play: []any{api.Repaired{}, api.Repaired{}, done}, kind: api.ErrProtocol, says: "api.Repaired is not the first event", shown: []string{"Repaired"}},
		{name: "an event beside an error", play: []any{func() (api.Event, error) { return done, &api.Error{Kind: api.ErrAuth} }}, kind: api.ErrAuth, says: "not authorized"},
		{name: "more after an error", play: []any{&api.Error{Kind: api.ErrAuth}, says(0, "x"), done, io.EOF}, kind: api.ErrAuth, says: "not authorized"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := script(test.play)
			events, err := collect(t, api.NewClient(p, &api.ClientOptions{Attempts: 1}).Stream(t.Context(), request))
			require.ErrorIs(t, err, test.kind)
			require.ErrorContains(t, err, test.says)
			require.Equal(t, test.shown, kinds(events))
			require.Equal(t, 1, p.requests)
			_, err = api.NewClient(script(test.play), &api.ClientOptions{Attempts: 1}).Send(t.Context(), request)
			require.ErrorIs(t, err, test.kind)
		})
	}
}

func TestClientCleansTheTextOfEvents(t *testing.T) {
	p := script([]any{api.BlockEnd{Block: &content.Text{Text: "a\xff"}}, done})
	events, err := collect(t, api.NewClient(p, nil).Stream(t.Context(), request))
	require.NoError(t, err)
	require.Equal(t, api.BlockEnd{Block: content.Text{Text: "a\uFFFD"}}, events[0])
}

func TestFoldHasNoResponseBeforeTheEnd(t *testing.T) {
	var fold api.Fold
	_, err := fold.Response()
	require.ErrorIs(t, err, api.ErrCut)
	require.NoError(t, fold.Add(says(0, "x")))
	require.ErrorIs(t, fold.Add(says(5, "y")), api.ErrProtocol)
	_, err = fold.Response()
	require.ErrorIs(t, err, api.ErrCut)
	require.NoError(t, fold.Add(done), "a refused event changed nothing")
	answer, err := fold.Response()
	require.NoError(t, err)
	require.Equal(t, "x", answer.Blocks.Text())
}

func TestFoldBeginsAnewWithARetry(t *testing.T) {
	var fold api.Fold
	for _, e := range []api.Event{api.Repaired{Repairs: []api.RepairNote{{}}}, says(0, "x"), api.Retry{}, api.Repaired{}, says(0, "y"), done} {
		require.NoError(t, fold.Add(e))
	}
	answer, err := fold.Response()
	require.NoError(t, err)
	require.Equal(t, "y", answer.Blocks.Text())
	require.Empty(t, answer.Repairs)
}

func TestSendFuncReturnsTheResponseThatItsEventsMake(t *testing.T) {
	late := func(play ...any) []any { return append(play, errors.New("connection reset")) }
	for name, plays := range map[string][][]any{
		"whole":                     {good},
		"cut off":                   {late(says(0, "Hel"))},
		"failed after its end":      {late(says(0, "Hello"), done)},
		"whole after a retry":       {{says(0, "Hel"), busy}, good},
		"nothing arrived":           {overload},
		"cut off after two retries": {{says(0, "Hel"), busy}, {says(0, "He"), busy}, {says(0, "H"), busy}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var fold api.Fold
				response, err := api.NewClient(script(plays...), &api.ClientOptions{Attempts: 3}).SendFunc(t.Context(), request, fold.Add)
				if err != nil {
					require.Equal(t, fold.Partial(), response)
					return
				}
				whole, err := fold.Response()
				require.NoError(t, err)
				require.Equal(t, whole, response)
			})
		})
	}
}

func TestSendFuncEndsWithTheErrorOfItsFunction(t *testing.T) {
	enough := errors.New("enough")
	p := script([]any{says(0, "a"), says(1, "b"), done})
	seen := 0
	response, err := api.NewClient(p, nil).SendFunc(t.Context(), request, func(api.Event) error {
		seen++
		return enough
	})
	require.ErrorIs(t, err, enough)
	require.Zero(t, response)
	require.Equal(t, 1, seen, "nothing comes after the error")
	require.Equal(t, 1, p.requests, "the request is not sent again")
}

func TestResponseIsNoEvent(t *testing.T) {
	for _, v := range []any{api.Repaired{}, api.Retry{}, api.Delta{}, api.BlockEnd{}, api.Finish{}, api.Cut{}} {
		require.Implements(t, (*api.Event)(nil), v)
	}
	for _, v := range []any{api.Response{}, &api.Response{}} {
		require.NotImplements(t, (*api.Event)(nil), v)
	}
}
