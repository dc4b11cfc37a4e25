package content

import "math"

// Role is who speaks in a [Message].
type Role string

// The roles. System prompts are not messages; tool results are said by the user's side.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Valid reports whether r is one of the roles.
func (r Role) Valid() bool { return r == User || r == Assistant }

// Message is one turn of one side.
type Message struct {
	Role   Role
	Blocks Blocks
}

// NoResult is what a model is told of a tool call that got no result.
const NoResult = "No result: the tool call was not completed."

// Stop is why a model, or a run, stopped. Beside the constants, a provider's own word that none of them fits is kept as it is.
type Stop string

// Reasons that a model gives.
const (
	StopEndTurn   Stop = "end_turn"      // the model said all it wanted to say
	StopToolUse   Stop = "tool_use"      // the model waits for tool results
	StopMaxTokens Stop = "max_tokens"    // the answer was cut off by the limit on output tokens
	StopSequence  Stop = "stop_sequence" // the model wrote one of the request's stop sequences
	StopPause     Stop = "pause_turn"    // a provider's server tools need another request to go on
	StopRefusal   Stop = "refusal"       // the model or a filter declined
	StopContext   Stop = "context_limit" // the context window is full
	StopUnknown   Stop = "unknown"       // the provider gave none
	StopCut       Stop = "cut_off"       // none: the answer broke off before its end, and this is what arrived of it
)

// Reasons of a run's own.
const (
	StopCancelled  Stop = "cancelled"             // the context was cancelled
	StopDeadline   Stop = "deadline"              // the context's deadline passed
	StopError      Stop = "error"                 // the provider failed for good
	StopMaxTurns   Stop = "max_turns"             // the limit on model calls was reached
	StopTokenLimit Stop = "token_limit"           // the limit on tokens was reached
	StopTimeLimit  Stop = "time_limit"            // the limit on wall time was reached
	StopCostLimit  Stop = "cost_limit"            // the limit on cost was reached
	StopCallLimit  Stop = "tool_call_limit"       // the limit on tool calls was reached
	StopLoop       Stop = "loop"                  // the model repeated a call
	StopHook       Stop = "stopped"               // a hook ended the run
	StopTerminated Stop = "terminated"            // every tool result asked to end the run
	StopApproval   Stop = "awaiting_approval"     // calls wait for somebody's approval
	StopResults    Stop = "awaiting_tool_results" // calls wait for results from outside
)

// Normal reports whether a model or a run stopped in the course of things: it said all it wanted, waits for tools, was ended by a hook or by
// the tools. After any other reason, one that only a provider knows among them, a person should look. "" is normal: nothing stopped yet.
func (s Stop) Normal() bool {
	switch s {
	case "", StopEndTurn, StopToolUse, StopSequence, StopPause, StopUnknown, StopHook, StopTerminated:
		return true
	}
	return false
}

// Usage counts tokens in one shape for all providers. The zero value is no usage. Sums and differences stay within an int64: one that
// would be larger or smaller is the largest or smallest number instead.
type Usage struct {
	// Input is the tokens of the request that were neither read from nor written to a cache.
	Input int64 `json:"input,omitzero"`
	// Output is all tokens the model wrote, thinking included.
	Output int64 `json:"output,omitzero"`
	// CacheRead and CacheWrite are the tokens of the request that a prompt cache had, and that it was given.
	CacheRead  int64 `json:"cache_read,omitzero"`
	CacheWrite int64 `json:"cache_write,omitzero"`
	// Reasoning is how many of the Output tokens were thinking, where the provider says so.
	Reasoning int64 `json:"reasoning,omitzero"`
	// Incomplete reports that more tokens were used than are counted here: an answer was cut off, or its provider did not report them.
	Incomplete bool `json:"incomplete,omitzero"`
}

// Total is every token of the request and the answer.
func (u Usage) Total() int64 { return plus(plus(u.Input, u.Output), plus(u.CacheRead, u.CacheWrite)) }

// Plus returns the sum of both. It is incomplete where one of them is.
func (u Usage) Plus(v Usage) Usage {
	sum := u.each(v, plus)
	sum.Incomplete = u.Incomplete || v.Incomplete
	return sum
}

// Minus returns what u has more than v. It is incomplete where only u is.
func (u Usage) Minus(v Usage) Usage {
	more := u.each(v, minus)
	more.Incomplete = u.Incomplete && !v.Incomplete
	return more
}

func (u Usage) each(v Usage, of func(a, b int64) int64) Usage {
	return Usage{
		Input: of(u.Input, v.Input), Output: of(u.Output, v.Output),
		CacheRead: of(u.CacheRead, v.CacheRead), CacheWrite: of(u.CacheWrite, v.CacheWrite),
		Reasoning: of(u.Reasoning, v.Reasoning),
	}
}

func plus(a, b int64) int64 {
	switch {
	case b > 0 && a > math.MaxInt64-b:
		return math.MaxInt64
	case b < 0 && a < math.MinInt64-b:
		return math.MinInt64
	}
	return a + b
}

func minus(a, b int64) int64 {
	switch {
	case b < 0 && a > math.MaxInt64+b:
		return math.MaxInt64
	case b > 0 && a < math.MinInt64+b:
		return math.MinInt64
	}
	return a - b
}
