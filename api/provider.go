package api

import (
	"context"
	"iter"
	"sync/atomic"
	"time"

	"github.com/plait-dev/plait/content"
)

// Request is what a model is asked. A provider does not change it.
type Request struct {
	// System is the system prompts, in order.
	System []string
	// Tools is the tools the model may call.
	Tools []content.Tool
	// Messages is the conversation, in order. It need not keep the provider's rules: the provider repairs it.
	Messages []content.Message
	// Options say how the model is to answer. They go before those that the provider was made with.
	Options Options
}

// Provider is a model behind an API.
//
// Stream sends the request and yields what comes back. Its rules, each of which package apitest checks:
//
//   - At most one [Repaired] comes first, and only when the request had to be repaired.
//   - [Delta] events show a block that is being written; [BlockEnd] gives each block whole, in order, its indexes 0, 1, 2 …
//     Deltas are for display only: everything that was said is in the BlockEnd events.
//   - One [Finish] comes last when all went well.
//   - Otherwise one error comes last, with a nil event. Where a part of the answer arrived before, one [Cut] may come right before the
//     error, with what is known of it: the model, the usage. It is an *[Error], or has the context's error in its chain when the
//     context ended the request. An answer that breaks off before its end is [ErrCut].
//   - A provider that sends nothing for longer than Options.Idle is [ErrStalled].
//   - Stream does not retry: [Client] does. Nor is a panic of it recovered: unlike a tool, a provider is a part of the program.
//   - A provider made of others, such as [Fallback], yields a [Retry] where it goes on to another one.
//   - When the consumer breaks off, or the context ends, the request is stopped, and everything that Stream started has ended
//     before it returns.
//   - The sequence can be ranged over once. Ranging over it again asks the model nothing, and yields an error or nothing; [Once]
//     sees to it.
//   - Each option of the request arrives in what is sent, or a note of kind [RepairOption] in Repaired reports that it does not.
//
// For whoever writes a provider:
//
//   - [Options.Over] puts the options of a request before those that the provider was made with, and [Options.Check] refuses
//     those that make no sense.
//   - Package api/dialect makes a request that the API accepts of any list of messages.
//   - [Once] makes the sequence one for a single use.
//   - [Error] and its kinds are the errors that a [Client] and [Fallback] understand.
//   - apitest.Run checks all of the rules above. The examples of package apitest have a whole
//     provider, in api/apitest/example_provider_test.go ("go doc" shows no examples).
type Provider interface {
	Stream(ctx context.Context, req Request) iter.Seq2[Event, error]
}

// Once returns the sequence for a single use: ranging over it again yields nothing but an error with ErrProtocol in its chain,
// so that a request is never made, and paid, twice by mistake.
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

// Event is what happens while a model answers. It is sealed: the variants are [Repaired], [Retry], [Delta], [BlockEnd],
// [Finish] and [Cut].
type Event interface{ event() }

// Repaired says how a request was changed to keep the provider's rules.
type Repaired struct {
	Repairs []RepairNote
}

// Retry says that a request failed and will be made again. What was shown of the answer until now is void.
type Retry struct {
	// Attempt is the number of the attempt that failed, from 1.
	Attempt int
	// Wait is the time until the next one.
	Wait time.Duration
	// Err is why it failed.
	Err error
	// Cut is what is known of its answer, of which a part arrived: it was paid for. It is zero where nothing arrived.
	Cut Cut
}

// DeltaKind says what a [Delta] is a piece of.
type DeltaKind string

// The kinds of pieces.
const (
	DeltaText     DeltaKind = "text"
	DeltaThinking DeltaKind = "thinking"
	DeltaInput    DeltaKind = "input" // a tool call's arguments
)

// Delta is a piece of a block that is being written.
type Delta struct {
	// Index is the block's place in the answer.
	Index int
	Kind  DeltaKind
	// Tool is the name of the tool, where the piece is one of a tool call.
	Tool string
	Text string
}

// BlockEnd is a whole block.
type BlockEnd struct {
	Index int
	Block content.Block
}

// Finish is the end of an answer.
type Finish struct {
	// API names the provider's API, such as "anthropic".
	API string
	// Model and ResponseID are as the provider gave them.
	Model      string
	ResponseID string
	// Stop is why the model stopped; content.StopUnknown, once folded, where the provider gives no reason.
	Stop  content.Stop
	Usage content.Usage
	// Latency is the time from the request to the end of the answer, without failed attempts and the waits between them. A
	// [Client] sets it where the provider does not.
	Latency time.Duration
}

// Cut is what is known of an answer that broke off. It comes right before the error. A [Client] yields one where any part of the answer
// arrived; Stop is content.StopCut then, and Usage is incomplete. [Fold.Partial] returns it with the blocks.
type Cut struct {
	Finish
}

func (Repaired) event() {}
func (Retry) event()    {}
func (Delta) event()    {}
func (BlockEnd) event() {}
func (Finish) event()   {}

// Response is a model's whole answer.
type Response struct {
	Finish
	// Blocks is what was said.
	Blocks content.Blocks
	// Repairs says how the request was changed to keep the provider's rules.
	Repairs []RepairNote
}
