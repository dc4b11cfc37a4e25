// Package conformance is the test suite for providers of models. The test of a provider calls [Run] with a model that
// behaves as a [Scenario] describes:
//
//	func TestProvider(t *testing.T) {
//		conformance.Run(t, func(t *testing.T, s conformance.Scenario) api.Provider {
//			sent := &conformance.Recorder{Next: fakeServer(s)} // or a strict fake, such as fake.Anthropic
//			server := httptest.NewServer(sent)
//			t.Cleanup(server.Close)
//			return sent.Of(newProvider(server.URL, server.Client()))
//		})
//	}
//
// [Run] checks that the provider keeps the rules of api.Provider, and with a [Recorder] also the requests it sends.
//
// # Concurrency
//
// A [Recorder] is safe for concurrent use. Run makes requests at the same time in one of its subtests.
//
// # Errors
//
// A broken rule fails its subtest.
package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
)

// Scenario is the behavior of the model behind a provider under test. See [Run].
type Scenario string

// The scenarios.
const (
	// Answers: the model responds to every request with the text "Hello there.", and ends its turn.
	Answers Scenario = "answers"
	// Calls: the model responds to every request with the text "Let me see." and then a call of the tool "get_weather"
	// with the arguments {"city":"Tokyo"}.
	Calls Scenario = "calls"
	// FailsOnce: the model's API refuses the first request because it is overloaded, and accepts the next ones as in
	// Answers.
	FailsOnce Scenario = "fails once"
	// Breaks: the response to every request breaks off after a part of the text "Hello there.", without an end.
	Breaks Scenario = "breaks"
	// Hangs: the model sends nothing, and the request stays open until it is stopped.
	Hangs Scenario = "hangs"
)

// Run checks that a provider keeps the rules of [api.Provider], with one subtest for each rule. NewProvider returns a
// provider for the scenario:
//
//   - It may return nil if the provider cannot be put into the scenario. The subtest is then skipped.
//   - It receives the subtest's t, and may skip rules by name if they do not apply to the provider. For example, a
//     provider without Options has no Options.Idle.
//   - It returns Recorder.Of(provider) to enable the subtests about the requests. They read the requests from the
//     [Recorder]; without one they are skipped, with a message.
//
// Use goleak in TestMain to check that no goroutine outlives a stream.
func Run(t *testing.T, newProvider func(t *testing.T, s Scenario) api.Provider) {
	for _, r := range rules {
		t.Run(r.sentence, func(t *testing.T) {
			p := newProvider(t, r.scenario)
			if p == nil {
				t.Skipf("SKIPPED: no provider whose model %s", r.scenario)
			}

			// A provider with an endless stream fails here, and does not hang. A busy machine may take long.
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			err := r.check(ctx, p)
			if errors.Is(err, errNotRecorded) {
				t.Skipf("SKIPPED: %v", err)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// rule is one rule of the comment on api.Provider.
type rule struct {
	sentence string
	scenario Scenario
	check    func(ctx context.Context, p api.Provider) error
}

var rules = []rule{
	{"a good request is not repaired", Answers, notRepaired},
	{"at most one Repaired comes first", Answers, repairedFirst},
	{"everything that was said is in BlockEnd events", Answers, saysHello},
	{"a tool call comes whole", Calls, comesWhole},
	{"one Finish comes last", Calls, finishLast},
	{"an error comes last, and is an *Error", FailsOnce, errorLast},
	{"Stream does not retry", FailsOnce, notRetried},
	{"a broken answer is ErrCut", Breaks, isCut},
	{"what arrived of a broken answer is a part of it", Breaks, isPart},
	{"a provider that sends nothing for longer than Options.Idle is ErrStalled", Hangs, isStalled},
	{"the error of a cancelled request is the context's", Hangs, cancelled},
	{"the error of a deadline is the context's", Hangs, deadline},
	{"a context that has ended already is an error", Answers, endedBefore},
	{"a request can be left at any event", Calls, leftAnywhere},
	{"the sequence is for one use", Answers, singleUse},
	{"a request is not changed", Calls, unchanged},
	{"requests can be made at the same time", Calls, concurrent},
	{"system prompts, tools and messages arrive", Answers, conversationArrives},
}

func init() {
	for _, o := range optionRules {
		rules = append(rules, rule{"each option arrives, or is noted: " + o.name, Answers, o.arrives})
	}
}

func greeting() api.Request {
	return api.Request{
		System: []string{"Answer briefly."},
		Tools: []content.Tool{{Name: "get_weather", Description: "The weather.",
			Schema: `{"type":"object","properties":{"city":{"type":"string"}}}`}},
		Messages: []content.Message{{Role: content.User, Blocks: content.Words("Hello")}},
	}
}

// broken returns a request unacceptable to any API without repair: it has a call without a result, and a result without
// a call.
func broken() api.Request {
	req := greeting()
	call, _ := content.Of(content.ToolUse{ID: "a", Name: "get_weather", Input: `{"city":`})
	stray, _ := content.Of(content.ToolResult{CallID: "b", Content: content.Words("22°C")}, content.Text{Text: "Well?"})
	req.Messages = append(req.Messages, content.Message{Role: content.Assistant, Blocks: call},
		content.Message{Role: content.User, Blocks: stray})
	return req
}

// take ranges over a stream and checks the rules common to all streams. It returns the events, the error of the stream,
// and an error for the first broken rule.
func take(stream iter.Seq2[api.Event, error]) (events []api.Event, failure, wrong error) {
	// The loop continues after the end, to notice a further event.
	blocks, end, cut := 0, false, false
	shown := map[int]string{} // the deltas of each text block, joined
	for e, err := range stream {
		switch {
		case cut && err == nil:
			return events, failure, fmt.Errorf("the stream yields a %T after an api.Cut: yield the error next, and end", e)
		case failure != nil || end:
			return events, failure, fmt.Errorf("the stream goes on after its end, with %T and %v: return after an error, and after api.Finish", e, err)
		case err != nil && e != nil:
			return events, err, fmt.Errorf("the stream yields a %T beside an error: yield nil with it: %w", e, err)
		case err != nil:
			failure = err
			continue
		}

		switch e := e.(type) {
		case api.Repaired:
			if len(events) > 0 {
				return events, failure, errors.New("an api.Repaired comes after other events: yield it first")
			}

		case api.Delta:
			if e.Index < blocks {
				return events, failure, fmt.Errorf("an api.Delta has Index %d, whose api.BlockEnd came before: count Index up at each BlockEnd", e.Index)
			}
			if e.Kind == api.DeltaText {
				shown[e.Index] += e.Text
			}

		case api.BlockEnd:
			if e.Index != blocks {
				return events, failure, fmt.Errorf("an api.BlockEnd has Index %d after %d blocks: number them from 0, in order", e.Index, blocks)
			}
			// A text need not have deltas. If it has, they must add up to it.
			if t, ok := e.Block.(content.Text); ok && shown[blocks] != "" && shown[blocks] != t.Text {
				return events, failure, fmt.Errorf("the deltas of text block %d make %q, but its BlockEnd has %q: they must be the same text", blocks, shown[blocks], t.Text)
			}
			blocks++

		case api.Retry:
			// A provider made of several others may retry: all earlier events are void.
			blocks, shown = 0, map[int]string{}
			clear(events)
			events = events[:0]
			continue

		case api.Finish:
			end = true
		case api.Cut:
			if cut = true; e.API == "" {
				return events, failure, errors.New("an api.Cut has no API: set it to the name of your API")
			}
		default:
			return events, failure, fmt.Errorf("a provider yields api.Repaired, Delta, BlockEnd, Cut, Finish or Retry, not a %T", e)
		}

		events = append(events, e)
	}

	// Without an error, a stream that breaks off looks like a complete response.
	if failure == nil && !end {
		wrong = errors.New("the stream ends without api.Finish or an error: yield one; for a connection that broke off, an *api.Error of kind api.ErrCut")
	}
	return events, failure, wrong
}

// answered is like take, and reports a failed request as an error.
func answered(ctx context.Context, p api.Provider, req api.Request) ([]api.Event, error) {
	events, failure, wrong := take(p.Stream(ctx, req))
	return events, errors.Join(wrong, failure)
}

// refused is like take, and requires the request to fail. Failure is the error of the stream.
func refused(stream iter.Seq2[api.Event, error]) (failure, wrong error) {
	_, failure, wrong = take(stream)
	if failure == nil && wrong == nil {
		wrong = errors.New("the stream ends without an error, where the server failed or the context ended: yield the error last")
	}
	return failure, wrong
}

func folded(events []api.Event) (api.Response, error) {
	var fold api.Fold
	for _, e := range events {
		if err := fold.Add(e); err != nil {
			return api.Response{}, err
		}
	}
	return fold.Response()
}

func notRepaired(ctx context.Context, p api.Provider) error {
	events, err := answered(ctx, p, greeting())
	if err != nil {
		return err
	}
	if r, ok := events[0].(api.Repaired); ok {
		return fmt.Errorf("a request that needs no repair is reported as repaired: %v", r.Repairs)
	}
	return nil
}

func repairedFirst(ctx context.Context, p api.Provider) error {
	events, err := answered(ctx, p, broken())
	if err != nil {
		return fmt.Errorf("a request with an open call and a result of no call failed; dialect.Repair makes it valid: %w", err)
	}
	if r, ok := events[0].(api.Repaired); ok && len(r.Repairs) == 0 {
		return errors.New("an api.Repaired has no Repairs: yield it only if dialect.Repair returns notes")
	}
	return nil
}

func saysHello(ctx context.Context, p api.Provider) error {
	events, err := answered(ctx, p, greeting())
	if err != nil {
		return err
	}
	answer, err := folded(events)
	if err == nil && answer.Blocks.Text() != "Hello there." {
		err = fmt.Errorf("the response has the text %q; the server sent \"Hello there.\"", answer.Blocks.Text())
	}
	return err
}

func comesWhole(ctx context.Context, p api.Provider) error {
	events, err := answered(ctx, p, greeting())
	if err != nil {
		return err
	}
	answer, err := folded(events)
	if err != nil {
		return err
	}

	// An API may write the arguments with other white space: compare their canonical form.
	calls := answer.Blocks.ToolUses()
	if len(calls) != 1 || calls[0].Name != "get_weather" || calls[0].Input.Canonical() != `{"city":"Tokyo"}` ||
		answer.Blocks.Text() != "Let me see." {
		return fmt.Errorf("the response is %s; the server sent the text \"Let me see.\" and a call of get_weather with {\"city\":\"Tokyo\"}", answer.Blocks.Append(nil))
	}
	return nil
}

func finishLast(ctx context.Context, p api.Provider) error {
	events, err := answered(ctx, p, greeting())
	if err != nil {
		return err
	}
	if end := events[len(events)-1].(api.Finish); end.API == "" || end.Stop != content.StopToolUse {
		return fmt.Errorf("the api.Finish needs an API, and content.StopToolUse as Stop for a response with a call; it is %+v", end)
	}
	return nil
}

func errorLast(ctx context.Context, p api.Provider) error {
	failure, wrong := refused(p.Stream(ctx, greeting()))
	if wrong != nil {
		return wrong
	}
	var e *api.Error
	switch {
	case !errors.As(failure, &e):
		return fmt.Errorf("a failed request needs an *api.Error, with a Kind such as api.ErrOverloaded; it is %w", failure)
	case !api.Retryable(failure):
		return fmt.Errorf("the server was overloaded: set Kind to api.ErrOverloaded, so that a client retries; it is %w", failure)
	case strings.TrimSpace(e.API) == "":
		return fmt.Errorf("the *api.Error has no API: set it to the name of your API: %w", failure)
	}
	return nil
}

func notRetried(ctx context.Context, p api.Provider) error {
	// The API refuses only the first request: a provider that retries succeeds here.
	if _, wrong := refused(p.Stream(ctx, greeting())); wrong != nil {
		return wrong
	}

	_, err := answered(ctx, p, greeting())
	return err
}

func isCut(ctx context.Context, p api.Provider) error {
	failure, wrong := refused(p.Stream(ctx, greeting()))
	if wrong == nil && !errors.Is(failure, api.ErrCut) {
		wrong = fmt.Errorf("the connection closed before the end of the response: the error needs the Kind api.ErrCut; it is %w", failure)
	}
	return wrong
}

// isPart checks the result of [api.Fold.Partial] for a response that breaks off.
func isPart(ctx context.Context, p api.Provider) error {
	events, failure, wrong := take(p.Stream(ctx, greeting()))
	if wrong != nil || failure == nil {
		return cmp.Or(wrong, errors.New("the stream ends without an error, where the response broke off: yield one of kind api.ErrCut"))
	}

	// The part received before the failure must be a beginning of the response, marked as cut off.
	var fold api.Fold
	for _, e := range events {
		if err := fold.Add(e); err != nil {
			return err
		}
	}

	part := fold.Partial()
	switch {
	case !strings.HasPrefix("Hello there.", part.Blocks.Text()):
		return fmt.Errorf("the deltas before the failure make %q, which is no beginning of \"Hello there.\"", part.Blocks.Text())
	case part.Blocks.Len() > 0 && part.Stop != content.StopCut:
		return fmt.Errorf("the part of a response that broke off has the stop reason %q: yield no api.Finish before the error", part.Stop)
	}
	return nil
}

// isStalled sets a short Options.Idle, and a much longer deadline. The deadline is still before the end of the test.
func isStalled(ctx context.Context, p api.Provider) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req := greeting()
	req.Options.Idle = 20 * time.Millisecond
	failure, wrong := refused(p.Stream(ctx, req))
	if wrong == nil && !errors.Is(failure, api.ErrStalled) {
		wrong = fmt.Errorf("the server sent nothing for longer than Options.Idle: the error needs the Kind api.ErrStalled; it is %w", failure)
	}
	return wrong
}

var errStop = errors.New("stopped by the test")

func cancelled(ctx context.Context, p api.Provider) error {
	for i, asked := range []api.Provider{p, api.NewClient(p, nil)} {
		ofClient := i == 1 // not asked != p: a provider may not be comparable
		ctx, cancel := context.WithCancelCause(ctx)
		stop := time.AfterFunc(20*time.Millisecond, func() { cancel(errStop) })
		failure, wrong := refused(asked.Stream(ctx, greeting()))
		stop.Stop()
		cancel(nil)
		if wrong != nil {
			return wrong
		}

		// A provider must return the error of the context, a Client also the cause.
		if !errors.Is(failure, context.Canceled) {
			return fmt.Errorf("the context was canceled: wrap its error (%%w), so that errors.Is finds context.Canceled; it is %w", failure)
		}
		if ofClient && !errors.Is(failure, errStop) {
			return fmt.Errorf("behind an api.Client, errors.Is does not find the cause of the cancellation: %w", failure)
		}
	}
	return nil
}

func deadline(ctx context.Context, p api.Provider) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	failure, wrong := refused(p.Stream(ctx, greeting()))
	if wrong == nil && !errors.Is(failure, context.DeadlineExceeded) {
		wrong = fmt.Errorf("the context's deadline passed: wrap its error (%%w), so that errors.Is finds context.DeadlineExceeded; it is %w", failure)
	}
	return wrong
}

func endedBefore(ctx context.Context, p api.Provider) error {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	failure, wrong := refused(p.Stream(ctx, greeting()))
	if wrong == nil && !errors.Is(failure, context.Canceled) {
		wrong = fmt.Errorf("the context was canceled: wrap its error (%%w), so that errors.Is finds context.Canceled; it is %w", failure)
	}
	return wrong
}

// leftAnywhere leaves the stream after each event. If the provider then yields another event, it panics here.
func leftAnywhere(ctx context.Context, p api.Provider) error {
	// A first request shows how many events there are.
	events, err := answered(ctx, p, greeting())
	if err != nil {
		return err
	}

	for n := range events {
		seen := 0
		for _, err := range p.Stream(ctx, greeting()) {
			if err != nil {
				return err
			}
			if seen++; seen > n {
				break
			}
		}
	}
	return nil
}

func singleUse(ctx context.Context, p api.Provider) error {
	stream := p.Stream(ctx, greeting())
	if _, failure, wrong := take(stream); failure != nil || wrong != nil {
		return errors.Join(failure, wrong)
	}
	for e := range stream {
		if e != nil {
			return fmt.Errorf("a second range over the stream yields a %T: wrap the sequence in api.Once", e)
		}
	}
	return nil
}

func unchanged(ctx context.Context, p api.Provider) error {
	// The request needs repairs, which a provider must make in a copy.
	asked := func() api.Request {
		req := broken()
		req.Options = api.Options{StopSequences: []string{"END"}, Header: http.Header{"X-Test": {"1"}}}
		return req
	}

	// Two requests share no slice or map: a change to one does not show in the other.
	req, before := asked(), asked()
	if _, err := answered(ctx, p, req); err != nil {
		return err
	}

	same := slices.Equal(req.Options.StopSequences, before.Options.StopSequences) &&
		maps.EqualFunc(req.Options.Header, before.Options.Header, slices.Equal[[]string]) &&
		slices.Equal(req.System, before.System) && slices.Equal(req.Tools, before.Tools) &&
		slices.EqualFunc(req.Messages, before.Messages,
			func(a, b content.Message) bool { return a.Role == b.Role && a.Blocks.Equal(b.Blocks) })
	if !same {
		return errors.New("the provider changed the caller's request: change a copy")
	}
	return nil
}

func concurrent(ctx context.Context, p api.Provider) error {
	failures := make([]error, 8)
	var wg sync.WaitGroup
	for i := range failures {
		wg.Go(func() { failures[i] = comesWhole(ctx, p) })
	}
	wg.Wait()
	return errors.Join(failures...)
}
