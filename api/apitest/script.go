package apitest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/internal/idle"
	"github.com/plait-dev/plait/content"
)

// ErrScriptOver is in the chain of the error of a [Script] without turns left.
var ErrScriptOver = errors.New("the script has no response left")

// Script is an offline model: an [api.Provider] that responds to each request with the next of its prepared turns, and
// records the requests. It keeps all rules of api.Provider, and is safe for concurrent use.
//
// Like a model's API, a Script refuses invalid requests, with api.ErrInvalidRequest and without using a turn:
//
//   - Options refused by api.Options.Check,
//   - a tool refused by content.Tool.Check,
//   - two tools with one name,
//   - a tool choice without a suitable declared tool.
//
// It accepts any messages, because providers repair those.
type Script struct {
	mu       sync.Mutex // guards the fields below
	turns    []Turn     // the turns not yet used
	requests []api.Request
}

// NewScript returns a model that responds with turns, in order. A request after the last one fails with ErrScriptOver,
// an error no Client retries.
func NewScript(turns ...Turn) *Script { return &Script{turns: slices.Clone(turns)} }

// Requests returns the requests received up to now, in order. They are copies: later changes by the caller do not
// affect them.
func (s *Script) Requests() []api.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Left returns the number of turns not yet used. A turn with [Turn.Always] is never used up and counts as one.
func (s *Script) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.turns)
}

// Stream yields the events of the next turn. See [api.Provider].
func (s *Script) Stream(ctx context.Context, req api.Request) iter.Seq2[api.Event, error] {
	var once sync.Once
	return func(yield func(api.Event, error) bool) {
		// Not api.Once: this error names the script as its API.
		first := false
		once.Do(func() { first = true })
		if !first {
			yield(nil, &api.Error{Kind: api.ErrProtocol, API: scriptAPI,
				Message: "the events of one request were ranged over twice"})
			return
		}
		if err := ctx.Err(); err != nil {
			yield(nil, err)
			return
		}

		turn, n, err := s.next(req)
		if err != nil {
			yield(nil, err)
			return
		}
		turn.play(ctx, n, req, yield)
	}
}

const scriptAPI = "script"

// next records the request and returns the turn for it. N is the number of the request, from 1.
func (s *Script) next(req api.Request) (turn Turn, n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	// Record a refused request, too. Only the slices are copied: blocks cannot change.
	s.requests = append(s.requests, api.Request{
		System: slices.Clone(req.System), Tools: slices.Clone(req.Tools), Messages: slices.Clone(req.Messages),
		Options: cloneOptions(req.Options),
	})
	n = len(s.requests)

	if err := refuse(req); err != nil {
		return Turn{}, n, err
	}
	if len(s.turns) == 0 {
		return Turn{}, n, &api.Error{
			Kind: ErrScriptOver, API: scriptAPI, Message: fmt.Sprintf("this is request %d", n),
		}
	}

	turn = s.turns[0]
	if !turn.always {
		s.turns = s.turns[1:]
	}
	return turn, n, nil
}

// cloneOptions returns a deep copy of o.
func cloneOptions(o api.Options) api.Options {
	o.StopSequences, o.Header = slices.Clone(o.StopSequences), maps.Clone(o.Header)
	for name, values := range o.Header {
		o.Header[name] = slices.Clone(values)
	}

	if o.Temperature != nil {
		t := *o.Temperature
		o.Temperature = &t
	}
	return o
}

// Turn is a prepared response of a [Script]. It is made by [Say], [Call], [Answer], [Fail], [Hang] or [Func]; its
// methods return a changed copy. The zero value is a response without content.
type Turn struct {
	blocks  []content.Block
	finish  api.Finish             // see finished for the defaults
	repairs []api.RepairNote       // nil for no Repaired event
	wait    time.Duration          // before the first event
	err     error                  // after the blocks
	hangs   bool                   // after the blocks, before err
	always  bool                   // the turn is not used up
	fn      func(api.Request) Turn // if not nil, returns the turn to play
}

// Say returns a turn with a text.
func Say(text string) Turn { return Answer(content.Text{Text: text}) }

// Call returns a turn with tool calls. A call without an ID gets an ID unique in the script: "call_2_1" is the first
// call in the response to the script's second request.
func Call(calls ...content.ToolUse) Turn { return Turn{}.Call(calls...) }

// Use returns a tool call for [Call]. Input is encoded as JSON; nil is {}, no arguments. A content.JSON is used
// unchanged, even if it is not valid JSON. If input cannot be encoded, Use panics: it is a mistake in a test.
func Use(tool string, input any) content.ToolUse {
	if input == nil {
		return content.ToolUse{Name: tool, Input: "{}"}
	}
	if j, ok := input.(content.JSON); ok {
		return content.ToolUse{Name: tool, Input: j}
	}

	j, err := content.ToJSON(input)
	if err != nil {
		panic(err)
	}
	return content.ToolUse{Name: tool, Input: j}
}

// Answer returns a turn with the blocks, unchanged.
func Answer(blocks ...content.Block) Turn { return Turn{blocks: blocks} }

// Fail returns a turn that fails with err and has no content.
func Fail(err error) Turn { return Turn{err: err} }

// Hang returns a turn without any events until the context ends or Options.Idle is over; the error follows.
func Hang() Turn { return Turn{hangs: true} }

// Func returns a turn that calls fn with the request and plays the returned turn.
func Func(fn func(api.Request) Turn) Turn { return Turn{fn: fn} }

// Call appends tool calls to the response. A call without an ID gets an ID unique in the script.
func (t Turn) Call(calls ...content.ToolUse) Turn {
	t.blocks = slices.Clone(t.blocks)
	for _, c := range calls {
		if c.ID == "" {
			c.ID = autoID
		}
		t.blocks = append(t.blocks, c)
	}
	return t
}

// autoID is a placeholder for an ID, set when the turn is played.
const autoID = "\x00auto"

// Think inserts thinking before everything else in the response.
func (t Turn) Think(text, signature string) Turn {
	t.blocks = slices.Insert(slices.Clone(t.blocks), 0,
		content.Block(content.Thinking{Text: text, Signature: signature}))
	return t
}

// Stop sets the stop reason. Defaults to content.StopToolUse for a response with a call, otherwise to
// content.StopEndTurn.
func (t Turn) Stop(reason content.Stop) Turn {
	t.finish.Stop = reason
	return t
}

// Usage sets the usage of the response, also of one that breaks off. Defaults to none.
func (t Turn) Usage(u content.Usage) Turn {
	t.finish.Usage = u
	return t
}

// As sets the names of the API and the model in the response. Defaults to "script" for both.
func (t Turn) As(api, model string) Turn {
	t.finish.API, t.finish.Model = api, model
	return t
}

// Repaired makes the turn begin with an api.Repaired event with these notes.
func (t Turn) Repaired(notes ...api.RepairNote) Turn {
	t.repairs = notes
	return t
}

// Wait makes the turn begin after d. It fails if the context ends or Options.Idle is over before.
func (t Turn) Wait(d time.Duration) Turn {
	t.wait = d
	return t
}

// Fail makes the turn fail with err after its blocks.
func (t Turn) Fail(err error) Turn {
	t.err = err
	return t
}

// Hang makes the turn wait after its blocks until the context ends or Options.Idle is over, and then fail.
func (t Turn) Hang() Turn {
	t.hangs = true
	return t
}

// Always makes the turn respond to all further requests, too.
func (t Turn) Always() Turn {
	t.always = true
	return t
}

// play yields the events of the turn as the response to request n.
func (t Turn) play(ctx context.Context, n int, req api.Request, yield func(api.Event, error) bool) {
	// A function may itself return a turn of Func.
	for t.fn != nil {
		t = t.fn(req)
	}

	if err := idleFor(ctx, t.wait, req.Options.Idle); err != nil {
		yield(nil, err)
		return
	}
	if t.repairs != nil && !yield(api.Repaired{Repairs: t.repairs}, nil) {
		return
	}

	// IDs are unique in the conversation and the same in each run of a test.
	calls := 0
	for i, block := range t.blocks {
		if call, ok := block.(content.ToolUse); ok {
			calls++
			if call.ID == autoID {
				call.ID = fmt.Sprintf("call_%d_%d", n, calls)
			}
			block = call
		}

		for _, delta := range deltas(i, block) {
			if !yield(delta, nil) {
				return
			}
			if err := ctx.Err(); err != nil {
				t.breakOff(n, yield, err)
				return
			}
		}
		if !yield(api.BlockEnd{Index: i, Block: block}, nil) {
			return
		}
	}

	// All blocks were yielded. Now end the response.
	err := ctx.Err()
	if t.hangs {
		err = idleFor(ctx, math.MaxInt64, req.Options.Idle)
	}
	switch {
	case err != nil:
		t.breakOff(n, yield, err)
	case t.err != nil:
		t.breakOff(n, yield, t.err)
	default:
		yield(t.finished(n, calls), nil)
	}
}

// breakOff yields err. If the turn has blocks, a Cut with its model and usage comes first.
func (t Turn) breakOff(n int, yield func(api.Event, error) bool, err error) {
	known := t.finished(n, 0)
	known.Stop = content.StopCut
	if len(t.blocks) == 0 || yield(api.Cut{Finish: known}, nil) {
		yield(nil, err)
	}
}

// idleFor waits for d. It returns an error if the context ends, or the limit is over, before.
func idleFor(ctx context.Context, d, limit time.Duration) error {
	if d <= 0 {
		return nil
	}
	if limit == 0 {
		limit = idle.Default
	}

	// A limit below 0 is none. A limit shorter than the wait ends it with an error.
	var stalled error
	if limit > 0 && limit < d {
		message := "nothing received for " + idle.Seconds(limit)
		d, stalled = limit, &api.Error{Kind: api.ErrStalled, API: scriptAPI, Message: message}
	}

	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return stalled
	case <-ctx.Done():
		return ctx.Err()
	}
}

// finished returns the end of the response, with defaults.
func (t Turn) finished(n, calls int) api.Finish {
	f := t.finish
	f.ResponseID = fmt.Sprintf("response_%d", n)
	if f.API == "" {
		f.API, f.Model = scriptAPI, "script"
	}

	if f.Stop == "" && calls > 0 {
		f.Stop = content.StopToolUse
	} else if f.Stop == "" {
		f.Stop = content.StopEndTurn
	}
	return f
}

// deltas returns the deltas of a block: one for each word of a text, one for all arguments of a call.
func deltas(index int, block content.Block) []api.Event {
	var kind api.DeltaKind
	var text string
	switch b := block.(type) {
	case content.Text:
		kind, text = api.DeltaText, b.Text
	case content.Thinking:
		kind, text = api.DeltaThinking, b.Text
	case content.ToolUse:
		return []api.Event{api.Delta{Index: index, Kind: api.DeltaInput, Tool: b.Name, Text: string(b.Input)}}
	}

	// The pieces keep their spaces: together they must be the text.
	var events []api.Event
	for piece := range strings.SplitAfterSeq(text, " ") {
		if piece != "" {
			events = append(events, api.Delta{Index: index, Kind: kind, Text: piece})
		}
	}
	return events
}
