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
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/wire"
)

// ErrScriptOver is in the chain of the error that a [Script] answers with when it has no turn left.
var ErrScriptOver = errors.New("the script has no answer left")

// Script is an offline model: an [api.Provider] that answers each request with the next of its prepared turns, and remembers
// what it was asked. It keeps the rules of api.Provider to the letter, and is safe for concurrent use.
//
// A Script refuses what a model's API would refuse, with api.ErrInvalidRequest, and without using up a turn: Options that do not pass
// api.Options.Check, a tool that does not pass content.Tool.Check, two tools of one name, and a tool choice that no declared tool can
// meet. It takes any messages, because providers repair those.
type Script struct {
	mu       sync.Mutex
	turns    []Turn
	requests []api.Request
}

// NewScript returns a model that answers with turns, in order. A request beyond the last one fails with ErrScriptOver, and is
// not retried.
func NewScript(turns ...Turn) *Script { return &Script{turns: slices.Clone(turns)} }

// Requests returns what the model was asked until now, in order. Later changes to a request by whoever made it do not show.
func (s *Script) Requests() []api.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Left returns how many turns were not asked for yet. A turn that answers [Turn.Always] counts as one.
func (s *Script) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.turns)
}

// Stream answers with the next turn. See [api.Provider].
func (s *Script) Stream(ctx context.Context, req api.Request) iter.Seq2[api.Event, error] {
	var once sync.Once
	return func(yield func(api.Event, error) bool) {
		first := false
		once.Do(func() { first = true })
		if !first {
			yield(nil, &api.Error{Kind: api.ErrProtocol, API: scriptAPI, Message: "the events of one request were ranged over twice"})
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

// next records the request and takes the turn that answers it.
func (s *Script) next(req api.Request) (turn Turn, n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, api.Request{
		System: slices.Clone(req.System), Tools: slices.Clone(req.Tools), Messages: slices.Clone(req.Messages),
		Options: sameOptions(req.Options),
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

// sameOptions is a copy of o that shares nothing with it that can change.
func sameOptions(o api.Options) api.Options {
	o.StopSequences, o.Metadata, o.Header = slices.Clone(o.StopSequences), maps.Clone(o.Metadata), o.Header.Clone()
	if o.Temperature != nil {
		t := *o.Temperature
		o.Temperature = &t
	}
	return o
}

// Turn is one prepared answer of a [Script]. It is made by [Say], [Call], [Answer], [Fail], [Hang] or [Func]; its methods
// return a changed copy. The zero value says nothing and ends well.
type Turn struct {
	blocks  []content.Block
	finish  api.Finish
	repairs []api.RepairNote
	wait    time.Duration
	err     error
	hangs   bool
	always  bool
	fn      func(api.Request) Turn
}

// Say answers with a text.
func Say(text string) Turn { return Answer(content.Text{Text: text}) }

// Call answers with tool calls. A call without an id gets one that no other call of the script has:
// "call_2_1" is the first call of the answer to the script's second request.
func Call(calls ...content.ToolUse) Turn { return Turn{}.Call(calls...) }

// Use returns a tool call for [Call]. Input is encoded as JSON; nil is no arguments, {}; a content.JSON is taken as it is,
// whatever it holds. An input that cannot be encoded is a mistake in a test and panics.
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

// Answer answers with the blocks, exactly as they are.
func Answer(blocks ...content.Block) Turn { return Turn{blocks: blocks} }

// Fail fails with err before anything is said.
func Fail(err error) Turn { return Turn{err: err} }

// Hang says nothing until the context ends, or the time of Options.Idle is over.
func Hang() Turn { return Turn{hangs: true} }

// Func answers with the turn that fn makes of the request.
func Func(fn func(api.Request) Turn) Turn { return Turn{fn: fn} }

// Call adds tool calls to the answer. A call without an id gets one that no other call of the script has.
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

// autoID stands for an id that is made when the turn is played.
const autoID = "\x00auto"

// Think puts thinking before everything else of the answer.
func (t Turn) Think(text, signature string) Turn {
	t.blocks = slices.Insert(slices.Clone(t.blocks), 0, content.Block(content.Thinking{Text: text, Signature: signature}))
	return t
}

// Stop sets why the model stops. Defaults to content.StopToolUse when the answer holds a call, else to content.StopEndTurn.
func (t Turn) Stop(reason content.Stop) Turn {
	t.finish.Stop = reason
	return t
}

// Usage sets the tokens that the answer reports, also one that breaks off. Defaults to none.
func (t Turn) Usage(u content.Usage) Turn {
	t.finish.Usage = u
	return t
}

// As sets the names of the API and the model that answer. Defaults to "script" for both.
func (t Turn) As(api, model string) Turn {
	t.finish.API, t.finish.Model = api, model
	return t
}

// Repaired lets the turn begin by reporting repairs of the request.
func (t Turn) Repaired(notes ...api.RepairNote) Turn {
	t.repairs = notes
	return t
}

// Wait lets the turn begin after d, or fail when the context ends, or the time of Options.Idle is over, before.
func (t Turn) Wait(d time.Duration) Turn {
	t.wait = d
	return t
}

// Fail fails with err after the blocks of the answer.
func (t Turn) Fail(err error) Turn {
	t.err = err
	return t
}

// Hang waits, after the blocks of the answer, until the context ends, or the time of Options.Idle is over.
func (t Turn) Hang() Turn {
	t.hangs = true
	return t
}

// Always lets the turn answer this request and all further ones.
func (t Turn) Always() Turn {
	t.always = true
	return t
}

// play yields the events of the turn as the answer to request n.
func (t Turn) play(ctx context.Context, n int, req api.Request, yield func(api.Event, error) bool) {
	for t.fn != nil {
		t = t.fn(req)
	}
	if err := silence(ctx, t.wait, req.Options.Idle); err != nil {
		yield(nil, err)
		return
	}
	if t.repairs != nil && !yield(api.Repaired{Repairs: t.repairs}, nil) {
		return
	}
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
	err := ctx.Err()
	if t.hangs {
		err = silence(ctx, math.MaxInt64, req.Options.Idle)
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

// breakOff fails with err. Where something was said before, the model and the usage of the turn are reported first.
func (t Turn) breakOff(n int, yield func(api.Event, error) bool, err error) {
	known := t.finished(n, 0)
	known.Stop = content.StopCut
	if len(t.blocks) == 0 || yield(api.Cut{Finish: known}, nil) {
		yield(nil, err)
	}
}

// silence waits for d, or fails when the context ends or idle is over before.
func silence(ctx context.Context, d, idle time.Duration) error {
	if d <= 0 {
		return nil
	}
	if idle == 0 {
		idle = wire.Idle
	}
	var over error
	if idle > 0 && idle < d {
		d, over = idle, &api.Error{Kind: api.ErrStalled, API: scriptAPI, Message: "nothing received for " + wire.Seconds(idle)}
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return over
	case <-ctx.Done():
		return ctx.Err()
	}
}

// finished is the end of the answer, with defaults.
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

// deltas shows a block being written: words one by one, a call's arguments at once.
func deltas(index int, block content.Block) []api.Event {
	var kind api.DeltaKind
	var words string
	switch b := block.(type) {
	case content.Text:
		kind, words = api.DeltaText, b.Text
	case content.Thinking:
		kind, words = api.DeltaThinking, b.Text
	case content.ToolUse:
		return []api.Event{api.Delta{Index: index, Kind: api.DeltaInput, Tool: b.Name, Text: string(b.Input)}}
	}
	var events []api.Event
	for piece := range strings.SplitAfterSeq(words, " ") {
		if piece != "" {
			events = append(events, api.Delta{Index: index, Kind: kind, Text: piece})
		}
	}
	return events
}
