package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
)

func TestScriptKeepsTheRulesOfAProvider(t *testing.T) {
	Run(t, func(_ *testing.T, s Scenario) api.Provider { return sends(apitest.NewScript(scenes(s)...), nil) })
}

// sender is a provider that sends requests in a form of its own. It forgets what forget does to the options.
type sender struct {
	api.Provider
	forget   func(*api.Options)
	recorder *Recorder
}

func sends(p api.Provider, forget func(*api.Options)) api.Provider {
	r := &Recorder{}
	return r.Of(sender{p, forget, r})
}

func (s sender) Stream(ctx context.Context, req api.Request) events {
	in := s.Provider.Stream(ctx, req)
	return func(yield func(api.Event, error) bool) {
		o := req.Options
		if s.forget != nil {
			s.forget(&o)
		}
		var said []string
		for _, m := range req.Messages {
			said = append(said, string(m.Blocks.Append(nil)))
		}
		body, err := json.Marshal(map[string]any{
			"system": req.System, "tools": fmt.Sprint(req.Tools), "messages": said, "max": o.MaxTokens, "temperature": o.Temperature, "stop": o.StopSequences,
			"choice": o.ToolChoice, "one": o.OneCall, "thinking": o.Thinking, "budget": o.Thinking.Tokens(), "output": o.Output.JSON,
			"cache": o.Cache, "body": o.Body,
		})
		if err != nil {
			yield(nil, err)
			return
		}
		s.recorder.Record(body, o.Header)
		in(yield)
	}
}

func TestTheSuiteFindsOptionsThatDoNotArrive(t *testing.T) {
	for _, o := range optionRules {
		sentence := "each option arrives, or is noted: " + o.name
		inSuite := slices.ContainsFunc(rules, func(r rule) bool { return r.sentence == sentence })
		require.True(t, inSuite, "Run checks the option %s", o.name)

		forgets := sends(apitest.NewScript(scenes(Answers)...), func(set *api.Options) { *set = api.Options{} })
		require.Error(t, o.arrives(t.Context(), forgets), o.name)

		notes := sends(apitest.NewScript(apitest.Say("Hello there.").Always(), apitest.Say("x")), nil)
		require.NoError(t, o.arrives(t.Context(), notes), o.name)

		noted := sends(apitest.NewScript(apitest.Say("Hello there."), apitest.Say("Hello there.").Repaired(api.RepairNote{Kind: "option"})), func(set *api.Options) { *set = api.Options{} })
		require.NoError(t, o.arrives(t.Context(), noted), o.name)

		wrong := sends(apitest.NewScript(apitest.Say("Hello there."), apitest.Say("Hello there.").Repaired(api.RepairNote{Kind: "tool"})), func(set *api.Options) { *set = api.Options{} })
		require.Error(t, o.arrives(t.Context(), wrong), "a note about something else: %s", o.name)
	}
}

func TestTheSuiteFindsAConversationThatDoesNotArrive(t *testing.T) {
	r := &Recorder{}
	deaf := r.Of(spoiled{apitest.NewScript(scenes(Answers)...), func(_ context.Context, _ api.Request, in events) events {
		return func(yield func(api.Event, error) bool) {
			r.Record([]byte(`{"system":"Answer briefly.","tools":["get_weather","The weather.","city"]}`), nil)
			in(yield)
		}
	}})
	require.ErrorContains(t, conversationArrives(t.Context(), deaf), `a text of the user is not in the body: send "Hello"`)

	anonymous := r.Of(spoiled{apitest.NewScript(scenes(Answers)...), func(_ context.Context, _ api.Request, in events) events {
		return func(yield func(api.Event, error) bool) {
			r.Record([]byte(`["Answer briefly.","get_weather","The weather.","city","Hello","I will look.",
				{"Oslo":"callOslo1"},"rain","And now?"]`), nil)
			in(yield)
		}
	}})
	require.ErrorContains(t, conversationArrives(t.Context(), anonymous), `the ID "callOslo1" is in the body 1 times`)
	silent := r.Of(apitest.NewScript(scenes(Answers)...))
	require.ErrorContains(t, conversationArrives(t.Context(), silent), "the provider sent no request")
	require.ErrorIs(t, conversationArrives(t.Context(), apitest.NewScript(scenes(Answers)...)), errNotRecorded)
}

func scenes(s Scenario) []apitest.Turn {
	hello := apitest.Say("Hello there.").Always()
	busy := &api.Error{Kind: api.ErrOverloaded, API: "script", Status: 529}
	switch s {
	case Answers:
		return []apitest.Turn{hello}
	case Calls:
		return []apitest.Turn{apitest.Say("Let me see.").Call(apitest.Use("get_weather", map[string]string{"city": "Tokyo"})).Always()}
	case FailsOnce:
		return []apitest.Turn{apitest.Fail(busy), hello}
	case Breaks:
		return []apitest.Turn{apitest.Say("Hello").Fail(&api.Error{Kind: api.ErrCut, API: "script"}).Always()}
	case Hangs:
		return []apitest.Turn{apitest.Hang().Always()}
	}
	panic("a scenario that is not played here: " + string(s))
}

// spoiled is a provider that spoils what a good one yields.
type spoiled struct {
	api.Provider
	spoil func(ctx context.Context, req api.Request, events iter.Seq2[api.Event, error]) iter.Seq2[api.Event, error]
}

func (s spoiled) Stream(ctx context.Context, req api.Request) iter.Seq2[api.Event, error] {
	return s.spoil(ctx, req, s.Provider.Stream(ctx, req))
}

type events = iter.Seq2[api.Event, error]

// each maps the events of a stream, each to any number of others.
func each(fn func(api.Event, error, func(api.Event, error) bool) bool) func(context.Context, api.Request, events) events {
	return func(_ context.Context, _ api.Request, in events) events {
		return func(yield func(api.Event, error) bool) {
			for e, err := range in {
				if !fn(e, err, yield) {
					return
				}
			}
		}
	}
}

// TestTheSuiteFindsEveryBreach makes sure that each rule can fail, and that the suite does not fail a good provider.
func TestTheSuiteFindsEveryBreach(t *testing.T) {
	is := func(e api.Event, want api.Event) bool {
		switch want.(type) {
		case api.Finish:
			_, ok := e.(api.Finish)
			return ok
		case api.BlockEnd:
			_, ok := e.(api.BlockEnd)
			return ok
		}
		return false
	}
	for breach, test := range map[string]struct {
		sentence string
		spoil    func(context.Context, api.Request, events) events
	}{
		"it always says that it repaired": {"a good request is not repaired", func(_ context.Context, _ api.Request, in events) events {
			return func(yield func(api.Event, error) bool) {
				if yield(api.Repaired{Repairs: []api.RepairNote{{}}}, nil) {
					in(yield)
				}
			}
		}},
		"it says last that it repaired": {"at most one Repaired comes first", each(func(e api.Event, err error, yield func(api.Event, error) bool) bool {
			if is(e, api.Finish{}) && !yield(api.Repaired{Repairs: []api.RepairNote{{}}}, nil) {
				return false
			}
			return yield(e, err)
		})},
		"it gives only deltas": {"everything that was said is in BlockEnd events", each(func(e api.Event, err error, yield func(api.Event, error) bool) bool {
			return is(e, api.BlockEnd{}) || yield(e, err)
		})},
		"it counts blocks from 1": {"a tool call comes whole", each(func(e api.Event, err error, yield func(api.Event, error) bool) bool {
			if b, ok := e.(api.BlockEnd); ok {
				e = api.BlockEnd{Index: b.Index + 1, Block: b.Block}
			}
			return yield(e, err)
		})},
		"its deltas are of something else": {"everything that was said is in BlockEnd events", each(func(e api.Event, err error, yield func(api.Event, error) bool) bool {
			if d, ok := e.(api.Delta); ok {
				d.Text = "x"
				e = d
			}
			return yield(e, err)
		})},
		"it never ends": {"one Finish comes last", each(func(e api.Event, err error, yield func(api.Event, error) bool) bool {
			return is(e, api.Finish{}) || yield(e, err)
		})},
		"it ends twice": {"one Finish comes last", each(func(e api.Event, err error, yield func(api.Event, error) bool) bool {
			return yield(e, err) && (!is(e, api.Finish{}) || yield(e, err))
		})},
		"its errors are of no type": {"an error comes last, and is an *Error", each(func(e api.Event, err error, yield func(api.Event, error) bool) bool {
			if err != nil {
				err = errors.New(err.Error())
			}
			return yield(e, err)
		})},
		"it goes on after an error": {"an error comes last, and is an *Error", each(func(e api.Event, err error, yield func(api.Event, error) bool) bool {
			return yield(e, err) && (err == nil || yield(api.Finish{}, nil))
		})},
		"a broken answer ends well": {"a broken answer is ErrCut", each(func(e api.Event, err error, yield func(api.Event, error) bool) bool {
			if err != nil {
				return yield(api.Finish{API: "x", Stop: content.StopEndTurn}, nil)
			}
			return yield(e, err)
		})},
		"it calls a stall something else": {"a provider that sends nothing for longer than Options.Idle is ErrStalled", each(func(e api.Event, err error, yield func(api.Event, error) bool) bool {
			if err != nil {
				err = &api.Error{Kind: api.ErrTransport}
			}
			return yield(e, err)
		})},
		"it hides the context's error": {"the error of a cancelled request is the context's", each(func(e api.Event, err error, yield func(api.Event, error) bool) bool {
			if errors.Is(err, context.Canceled) {
				err = &api.Error{Kind: api.ErrTransport}
			}
			return yield(e, err)
		})},
		"it hides the deadline": {"the error of a deadline is the context's", each(func(e api.Event, err error, yield func(api.Event, error) bool) bool {
			if errors.Is(err, context.DeadlineExceeded) {
				err = &api.Error{Kind: api.ErrTransport}
			}
			return yield(e, err)
		})},
		"it says that all is well when the context has ended": {"a context that has ended already is an error", each(func(e api.Event, err error, yield func(api.Event, error) bool) bool {
			if err != nil {
				return yield(api.Finish{}, nil)
			}
			return yield(e, err)
		})},
		"it goes on after it was left": {"a request can be left at any event", each(func(e api.Event, err error, yield func(api.Event, error) bool) bool {
			yield(e, err)
			return true
		})},
		"it changes the options": {"a request is not changed", func(_ context.Context, req api.Request, in events) events {
			return func(yield func(api.Event, error) bool) {
				req.Options.Header["X-Test"][0] = "2"
				in(yield)
			}
		}},
		"it changes the request": {"a request is not changed", func(_ context.Context, req api.Request, in events) events {
			return func(yield func(api.Event, error) bool) {
				req.Messages[0].Role = content.Assistant
				in(yield)
			}
		}},
	} {
		t.Run(breach, func(t *testing.T) { require.Error(t, broke(t, test.sentence, test.spoil)) })
	}
}

// broke checks a good provider, which must pass, and what spoil makes of it.
func broke(t *testing.T, sentence string, spoil func(context.Context, api.Request, events) events) (failure error) {
	for _, r := range rules {
		if r.sentence == sentence {
			require.NoError(t, r.check(t.Context(), apitest.NewScript(scenes(r.scenario)...)))
			defer func() {
				if p := recover(); p != nil {
					failure = errors.New("panic")
				}
			}()
			return r.check(t.Context(), spoiled{apitest.NewScript(scenes(r.scenario)...), spoil})
		}
	}
	t.Fatalf("no rule says %q", sentence)
	return nil
}

// again makes a new request each time its sequence is ranged over.
type again struct{ api.Provider }

func (a again) Stream(ctx context.Context, req api.Request) events {
	return func(yield func(api.Event, error) bool) { a.Provider.Stream(ctx, req)(yield) }
}

// exclusive accepts the first request only.
type exclusive struct{ taken *atomic.Bool }

func (x exclusive) Stream(ctx context.Context, req api.Request) events {
	if x.taken.Swap(true) {
		return apitest.NewScript(apitest.Fail(&api.Error{Kind: api.ErrProtocol, Message: "one at a time"})).Stream(ctx, req)
	}
	return apitest.NewScript(scenes(Calls)...).Stream(ctx, req)
}

func TestTheSuiteFindsProvidersThatAskTooOften(t *testing.T) {
	ctx := t.Context()
	require.Error(t, singleUse(ctx, again{apitest.NewScript(scenes(Answers)...)}))
	require.Error(t, notRetried(ctx, api.NewClient(apitest.NewScript(scenes(FailsOnce)...), &api.ClientOptions{MinWait: time.Nanosecond})))
	require.Error(t, concurrent(ctx, exclusive{new(atomic.Bool)}))
}

// uncomparable is a provider with a slice: == panics for it.
type uncomparable struct {
	api.Provider
	_ []int
}

func TestTheSuiteTakesAProviderThatCannotBeCompared(t *testing.T) {
	Run(t, func(_ *testing.T, s Scenario) api.Provider {
		return uncomparable{Provider: apitest.NewScript(scenes(s)...)}
	})
}

func TestTheSuiteSkipsWhatCannotBeHad(t *testing.T) {
	Run(t, func(*testing.T, Scenario) api.Provider { return nil })
}
