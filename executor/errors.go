package executor

import (
	"errors"
	"strings"
)

// Errors that a run returns before it does anything.
var (
	// ErrNoProvider: the Agent has no Provider.
	ErrNoProvider = errors.New("executor: the agent has no provider")
	// ErrUnbound: a tool is declared that nothing can run. An [UnboundError] says which.
	ErrUnbound = errors.New("declared tools cannot be run")
	// ErrAnswered: the conversation ends with a whole answer of a model (content.StopEndTurn), and no queue has anything to say. Other
	// words of the assistant, written by hand or cut off, are for the model to go on with.
	ErrAnswered = errors.New("executor: the conversation ends with the model's answer: say something first")
	// ErrRejected: a hook rejected the message that the conversation ends in. The hook's error is in the chain too.
	ErrRejected = errors.New("executor: the message was rejected")
)

// UnboundError names the tools that a conversation declares and that nothing can run: a definition was declared without a
// function, or the conversation was loaded and not given its tools again. Its chain holds ErrUnbound.
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
