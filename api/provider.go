package api

import (
	"context"
	"iter"
	"sync/atomic"
	"time"

	"github.com/plait-dev/plait/content"
)

// Request is a request to a model. A provider does not change it.
type Request struct {
	// System are the system prompts, in order.
	System []string
	// Tools are the tools the model may call.
	Tools []content.Tool
	// Messages is the conversation, in order. It need not keep the provider's rules: the provider repairs it.
	Messages []content.Message
	// Options control the response. They take precedence over the provider's own options.
	Options Options
}

// Provider is a model behind an API.
//
// Stream sends the request and yields the events of the response. Package conformance checks each of these rules:
//
//   - At most one [Repaired] comes first, and only if the request had to be repaired.
//   - [Delta] events are pieces of an unfinished block. They are for display only.
//   - [BlockEnd] events have the whole blocks, in order, with indexes 0, 1, 2 … Together they are the whole content.
//   - One [Finish] comes last if the request succeeds.
//   - Otherwise one error comes last, with a nil event. It is an *[Error], or has ctx.Err() in its chain if the context
//     ended the request. If a part of the response arrived, one [Cut] may come right before the error, with the known
//     facts about the response: the model, the usage.
//   - A response that breaks off before its end is [ErrCut].
//   - A silence longer than Options.Idle is [ErrStalled].
//   - Stream does not retry: [Client] does. A panic in Stream is not recovered: unlike a tool, a provider is a part of
//     the program.
//   - A provider made of others, such as [Fallback], yields a [Retry] when it changes to another one.
//   - If the consumer stops early, or the context ends, the request is stopped. The sequence returns only after
//     everything it started has ended.
//   - The sequence can be ranged over once. Ranging over it again sends nothing, and yields an error or nothing; [Once]
//     ensures this.
//   - Each option of the request is sent, or a note of kind "option" in Repaired reports the missing option.
//
// To write a provider for an API with JSON over HTTP, use dialect.Provider, which keeps these rules. For another one:
//
//   - [Options.Over] merges the options of a request with the provider's own, and [Options.Check] refuses invalid ones.
//   - Package api/dialect turns any list of messages into a request acceptable to the API.
//   - [Once] makes a sequence single-use.
//   - Return an [Error] of one of its kinds: a [Client] and [Fallback] understand them.
//   - conformance.Run checks all of the rules above. docs/guides/own-provider.md leads to whole providers.
type Provider interface {
	Stream(ctx context.Context, req Request) iter.Seq2[Event, error]
}

// Once returns a single-use sequence: ranging over it again only yields an error with ErrProtocol in its chain. It
// prevents sending, and paying for, a request twice by mistake.
func Once(events iter.Seq2[Event, error]) iter.Seq2[Event, error] {
	var used atomic.Bool
	return func(yield func(Event, error) bool) {
		if used.Swap(true) {
			yield(nil, protocol("the events of one request were ranged over twice"))
			return
		}
		events(yield)
	}
}

// Event is an event of a response. It is sealed: the variants are [Repaired], [Retry], [Delta], [BlockEnd],
// [Finish] and [Cut].
type Event interface{ event() }

// Repaired reports how a request was changed to keep the provider's rules.
type Repaired struct {
	Repairs []RepairNote
}

// Retry reports a failed attempt, to be repeated. All events of the response up to now are void.
type Retry struct {
	// Attempt is the number of the failed attempt, from 1.
	Attempt int
	// Wait is the time until the next one.
	Wait time.Duration
	// Err is why it failed.
	Err error
	// Cut describes the received part of its response, which was paid for. It is zero if nothing arrived.
	Cut Cut
}

// DeltaKind is the kind of a [Delta].
type DeltaKind string

// The kinds of pieces.
const (
	DeltaText     DeltaKind = "text"
	DeltaThinking DeltaKind = "thinking"
	DeltaInput    DeltaKind = "input" // a tool call's arguments
)

// Delta is a piece of an unfinished block.
type Delta struct {
	// Index is the index of the block in the response.
	Index int
	Kind  DeltaKind
	// Tool is the name of the tool, for a piece of a tool call.
	Tool string
	Text string
}

// BlockEnd is a whole block.
type BlockEnd struct {
	Index int
	Block content.Block
}

// Finish is the end of a response.
type Finish struct {
	// API names the provider's API, such as "anthropic".
	API string
	// Model and ResponseID are as the provider returned them.
	Model      string
	ResponseID string
	// Stop is why the model stopped. If the provider gives no reason, a [Fold] sets content.StopUnknown.
	Stop  content.Stop
	Usage content.Usage
	// Latency is the time from the request to the end of the response, without failed attempts and the waits between
	// them. A [Client] sets it if the provider does not.
	Latency time.Duration
	// Details is an object with all that the server reported about the response beyond the other fields, unchanged: a
	// fingerprint, the server's own timings, log probabilities. It is empty if there was nothing.
	Details content.JSON
}

// Cut describes a response that broke off. It comes right before the error. A [Client] yields one if any part of the
// response arrived, with content.StopCut as Stop and an incomplete Usage. [Fold.Partial] returns it with the blocks.
type Cut struct {
	Finish
}

func (Repaired) event() {}
func (Retry) event()    {}
func (Delta) event()    {}
func (BlockEnd) event() {}
func (Finish) event()   {}
func (Cut) event()      {}

// Response is a model's whole response. It is no [Event].
type Response struct {
	//lint:ignore U1000 it hides the method of Finish
	event struct{} // hides the method of Finish, which makes an Event
	Finish
	// Blocks is its content.
	Blocks content.Blocks
	// Repairs are the changes made to keep the provider's rules.
	Repairs []RepairNote
}
