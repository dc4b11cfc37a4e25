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
	// ErrUnbound: the program declares a tool without a function, by passing a content.Tool to dag.DAG.Tools or
	// [Agent.Tools]. Use [DeferredTool], [NewTool] or [Agent.Handler]. A declaration in a loaded conversation is no
	// error: see [Agent.Tools]. An [UnboundError] names the tool.
	ErrUnbound = errors.New("declared tools have no implementation")
	// ErrAnswered: the conversation ends with a whole response of a model (content.StopEndTurn), and no queue holds a
	// message. Any other text of the assistant, written by hand or cut off, is for the model to continue.
	ErrAnswered = errors.New("executor: the conversation ends with the model's response: append a user message first")
	// ErrInvalidLimit: a limit is negative or not finite. A [LimitError] names it.
	ErrInvalidLimit = errors.New("is negative or not finite")
	// ErrOwner: a tool that belongs to somebody else, such as an MCP server, would replace another owner's, or the
	// program's own. See [Tool]. An [OwnerError] names the tool.
	ErrOwner = errors.New("a tool of another owner has its name")
	// ErrRejected: a hook rejected the conversation's last message. The hook's error is in the chain too.
	ErrRejected = errors.New("executor: the message was rejected")
)

// LimitError names a field of [Limits] with an invalid value. Its chain holds ErrInvalidLimit.
type LimitError struct {
	// Field is the field's name: "Cost".
	Field string
	// Value is its value.
	Value float64
}

// Error names the field and its value.
func (e *LimitError) Error() string {
	return fmt.Sprintf("executor: Limits.%s: %v %v", e.Field, e.Value, ErrInvalidLimit)
}

// Unwrap returns ErrInvalidLimit.
func (e *LimitError) Unwrap() error { return ErrInvalidLimit }

// OwnerError names a tool that would replace one of another owner. Its chain holds ErrOwner.
type OwnerError struct {
	// Name is the tool's name.
	Name string
}

// Error names the tool.
func (e *OwnerError) Error() string {
	return fmt.Sprintf("executor: the tool %s: %v", e.Name, ErrOwner)
}

// Unwrap returns ErrOwner.
func (e *OwnerError) Unwrap() error { return ErrOwner }

// UnboundError names the tools declared without a function. Its chain holds ErrUnbound.
type UnboundError struct {
	// Names lists the tools' names, in the order of their declaration.
	Names []string
}

// Error names the tools.
func (e *UnboundError) Error() string {
	return "executor: " + ErrUnbound.Error() + ": " + strings.Join(e.Names, ", ") + " (give them to the conversation with Tools)"
}

// Unwrap returns ErrUnbound.
func (e *UnboundError) Unwrap() error { return ErrUnbound }
