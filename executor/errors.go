package executor

import (
	"errors"
	"strings"
)

// Errors that a run returns before it does anything.
var (
	// ErrAnswered: the conversation ends with a whole response of a model (content.StopEndTurn), and no queue holds a
	// message. Any other text of the assistant, written by hand or cut off, is for the model to continue.
	ErrAnswered = errors.New("executor: the conversation ends with the model's response: append a user message first")
	// ErrOwner: a tool that belongs to somebody else, such as an MCP server, would replace another owner's, or the
	// program's own. See [Tool]. The text names the tool.
	ErrOwner = errors.New("a tool of another owner has its name")
	// ErrRejected: a hook rejected the conversation's last message. The hook's error is in the chain too.
	ErrRejected = errors.New("executor: the message was rejected")
)

// Errors of a program that gives too little.
var (
	errNoProvider = errors.New("executor: the agent has no provider") // or it is a nil pointer
	errNoContext  = errors.New("executor: the context is nil")
)

// UnboundError names tools without a function: the program passes a content.Tool to dag.DAG.Tools or [Agent.Tools]. Use
// [DeferredTool], [NewTool] or [Agent.Handler]. A declaration in a loaded conversation is no error: see [Agent.Tools].
type UnboundError struct {
	// Names lists the tools' names, in the order of their declaration.
	Names []string
}

// Error names the tools.
func (e *UnboundError) Error() string {
	return "executor: declared tools have no implementation: " + strings.Join(e.Names, ", ") +
		" (give them to the conversation with Tools)"
}
