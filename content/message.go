package content

import "math"

// Role is the author of a [Message].
type Role string

// The roles. System prompts are not messages. Tool results are in messages of the user.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Valid reports whether r is one of the roles.
func (r Role) Valid() bool { return r == User || r == Assistant }

// Message is a message of the user or the assistant.
type Message struct {
	Role   Role
	Blocks Blocks
}

// NoResult is the text sent to a model for a tool call without a result.
const NoResult = "No result: the tool call was not completed."

// GoOn is the text of a user message added to a request if an API requires one and the conversation has none.
const GoOn = "Continue."

// OutcomeUnknown is the text sent to a model for a started tool call without a result, after a crash for example.
const OutcomeUnknown = "The outcome of this tool call is unknown: it was started, and the program stopped before it had the " +
	"result. It may have had its effects, or some of them. Find out before you call it again."

// Stop is a stop reason: why a response or a run ended. It is one of the constants below, or a provider's own value
// that matches none of them, unchanged.
type Stop string

// Stop reasons of a response.
const (
	StopEndTurn   Stop = "end_turn"      // the model finished its response
	StopToolUse   Stop = "tool_use"      // the model waits for tool results
	StopMaxTokens Stop = "max_tokens"    // the response reached the limit on output tokens
	StopSequence  Stop = "stop_sequence" // the model wrote one of the request's stop sequences
	StopPause     Stop = "pause_turn"    // a provider's server tools need another request to continue
	StopRefusal   Stop = "refusal"       // the model or a filter declined
	StopContext   Stop = "context_limit" // the context window is full
	StopUnknown   Stop = "unknown"       // the provider gave no reason
	StopCut       Stop = "cut_off"       // the response broke off before it had a stop reason
)

// Stop reasons of a run.
const (
	StopCancelled  Stop = "cancelled"             // the context was cancelled
	StopDeadline   Stop = "deadline"              // the context's deadline passed
	StopError      Stop = "error"                 // the provider failed for good
	StopMaxTurns   Stop = "max_turns"             // the limit on model calls was reached
	StopTokenLimit Stop = "token_limit"           // the limit on tokens was reached
	StopTimeLimit  Stop = "time_limit"            // the limit on wall time was reached
	StopCostLimit  Stop = "cost_limit"            // the limit on cost was reached
	StopCallLimit  Stop = "tool_call_limit"       // the limit on tool calls was reached
	StopLoop       Stop = "loop"                  // the model repeated a call, or the run made no progress
	StopHook       Stop = "stopped"               // a hook ended the run
	StopTerminated Stop = "terminated"            // every tool result requested the end of the run
	StopApproval   Stop = "awaiting_approval"     // calls wait for approval
	StopResults    Stop = "awaiting_tool_results" // deferred calls wait for their results
)

// Normal reports whether s is a regular reason to stop: the model finished or waits for tools, or a hook or the tools
// ended the run. Any other reason, including a provider's own, deserves a person's attention. "" is normal: nothing
// stopped yet.
func (s Stop) Normal() bool {
	switch s {
	case "", StopEndTurn, StopToolUse, StopSequence, StopPause, StopUnknown, StopHook, StopTerminated:
		return true
	}
	return false
}

// Usage counts tokens, in the same form for all providers. The zero value is no usage. Sums and differences saturate at
// the bounds of int64.
type Usage struct {
	// Input is the number of request tokens neither read from nor written to a cache.
	Input int64 `json:"input,omitzero"`
	// Output is the number of tokens written by the model, including thinking.
	Output int64 `json:"output,omitzero"`
	// CacheRead and CacheWrite are the numbers of request tokens read from and written to a prompt cache.
	CacheRead  int64 `json:"cache_read,omitzero"`
	CacheWrite int64 `json:"cache_write,omitzero"`
	// CacheWriteLong is the number of CacheWrite tokens written for longer than usual, at a price of their own: for an
	// hour at Anthropic.
	CacheWriteLong int64 `json:"cache_write_long,omitzero"`
	// Reasoning is the number of Output tokens spent on thinking, if the provider reports it.
	Reasoning int64 `json:"reasoning,omitzero"`
	// Incomplete reports that more was used than these counts show: a response was cut off, its provider did not report
	// tokens, or it charges for more than tokens, such as searches, another speed or another kind of input.
	Incomplete bool `json:"incomplete,omitzero"`
}

// Total returns the number of all tokens of the request and the response.
func (u Usage) Total() int64 { return plus(plus(u.Input, u.Output), plus(u.CacheRead, u.CacheWrite)) }

// Plus returns the sum of u and v. It is incomplete if either of them is.
func (u Usage) Plus(v Usage) Usage {
	sum := u.each(v, plus)
	sum.Incomplete = u.Incomplete || v.Incomplete
	return sum
}

// Minus returns the difference u - v. It is incomplete if only u is.
func (u Usage) Minus(v Usage) Usage {
	more := u.each(v, minus)
	more.Incomplete = u.Incomplete && !v.Incomplete
	return more
}

// each applies of to each pair of counts.
func (u Usage) each(v Usage, of func(a, b int64) int64) Usage {
	return Usage{
		Input: of(u.Input, v.Input), Output: of(u.Output, v.Output),
		CacheRead: of(u.CacheRead, v.CacheRead), CacheWrite: of(u.CacheWrite, v.CacheWrite),
		CacheWriteLong: of(u.CacheWriteLong, v.CacheWriteLong), Reasoning: of(u.Reasoning, v.Reasoning),
	}
}

// plus returns a + b, saturated at the bounds of int64.
func plus(a, b int64) int64 {
	switch {
	case b > 0 && a > math.MaxInt64-b:
		return math.MaxInt64
	case b < 0 && a < math.MinInt64-b:
		return math.MinInt64
	}
	return a + b
}

// minus returns a - b, saturated at the bounds of int64.
func minus(a, b int64) int64 {
	switch {
	case b < 0 && a > math.MaxInt64+b:
		return math.MaxInt64
	case b > 0 && a < math.MinInt64+b:
		return math.MinInt64
	}
	return a - b
}
