package executor

import (
	"errors"
	"fmt"
	"strings"
)

// Errors that a run returns before it does anything.
var (
	// ErrNoProvider: the Agent has no Provider, or it is a nil pointer.
	ErrNoProvider = errors.New("executor: the agent has no provider")
	// ErrNoContext: the context is nil.
	ErrNoContext = errors.New("executor: the context is nil")
	// ErrUnbound: the program declares a tool that has no function: a content.Tool given to dag.DAG.Tools or
	// [Agent.Tools], where [DeferredTool], [NewTool] or [Agent.Handler] is meant. A tool that a loaded conversation
	// declares and the program does not have is no error: see [Agent.Tools]. An [UnboundError] names it.
	ErrUnbound = errors.New("declared tools have no implementation")
	// ErrAnswered: the conversation ends with a whole answer of a model (content.StopEndTurn), and no queue holds
	// a message. Any other text of the assistant, written by hand or cut off, is for the model to continue.
	ErrAnswered = errors.New("executor: the conversation ends with the model's response: append a user message first")
	// ErrInvalidLimit: a limit is negative or not finite. A [LimitError] names it.
	ErrInvalidLimit = errors.New("is negative or not finite")
	// ErrRejected: a hook rejected the message that the conversation ends in. The hook's error is in the chain too.
	ErrRejected = errors.New("executor: the message was rejected")
)

// LimitError names the member of [Limits] that nothing can be compared with. Its chain holds ErrInvalidLimit.
type LimitError struct {
	// Field is the member's name: "Cost".
	Field string
	// Value is what it was set to.
	Value float64
}

// Error names the member and its value.
func (e *LimitError) Error() string {
	return fmt.Sprintf("executor: Limits.%s: %v %v", e.Field, e.Value, ErrInvalidLimit)
}

// Unwrap returns ErrInvalidLimit.
func (e *LimitError) Unwrap() error { return ErrInvalidLimit }

// UnboundError names the tools that were declared without a function. Its chain holds ErrUnbound.
type UnboundError struct {
	// Names is the tools' names, in the order of their declaration.
	Names []string
}

// Error names the tools.
func (e *UnboundError) Error() string {
	return "executor: " + ErrUnbound.Error() + ": " + strings.Join(e.Names, ", ") + " (give them to the conversation with Tools)"
}

// Unwrap returns ErrUnbound.
func (e *UnboundError) Unwrap() error { return ErrUnbound }
