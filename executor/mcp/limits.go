package mcp

import (
	"fmt"

	"github.com/plait-dev/plait/dag"
)

// Limits are limits for what a server may send. A field that is 0 or less has its default.
//
// The limits of messages and redirects hold for connections over a program's output and over HTTP, also if the Dial is
// the program's own; a transport of the program's own making has to limit messages itself ([Limits.Guard]).
type Limits struct {
	// Message is the maximum size of one message, such as a page of the list or a result, in bytes. A longer one ends
	// the connection, and the call fails. Defaults to 16 MiB.
	Message int
	// Redirects is how many redirects of HTTP a request follows. Each must lead to the same scheme, host and port; any
	// other one fails the request. Defaults to 5.
	Redirects int

	// Pages is how many pages of the list are read. The list also ends at a cursor that comes again. What follows is
	// left out. Defaults to 100.
	Pages int
	// Tools is how many tools of the list are read, with those that are left out. What follows is left out. Defaults to
	// 1,000.
	Tools int
	// List is the maximum size of all definitions in the list together, in bytes. What follows is left out. Defaults to
	// 8 MiB.
	List int
	// Description is the maximum size of a tool's description, in bytes. A tool with a longer one is left out. Defaults
	// to 16 KiB.
	Description int
	// Schema is the maximum size of a tool's schema, in bytes. A tool with a larger one is left out. Defaults to 256 KiB.
	Schema int
	// SchemaDepth is how deep the JSON of a tool's schema may be nested. A tool with a deeper one is left out. Defaults
	// to 64.
	SchemaDepth int

	// Progress is how many notifications of progress a call passes on to the run. Further ones are dropped, as are
	// those that come faster than the run takes them. Defaults to 1,000.
	Progress int
	// Requests is how many questions to a person (elicitation) the server may send for each call of its tools.
	// Further ones are refused. Defaults to 100.
	Requests int
}

// withDefaults returns l with a default in place of each field that is 0 or less.
func (l Limits) withDefaults() Limits {
	for _, f := range []struct {
		limit *int
		value int
	}{
		{&l.Message, 16 << 20}, {&l.Redirects, 5},
		{&l.Pages, 100}, {&l.Tools, 1000}, {&l.List, 8 << 20},
		{&l.Description, 16 << 10}, {&l.Schema, 256 << 10}, {&l.SchemaDepth, 64},
		{&l.Progress, 1000}, {&l.Requests, 100},
	} {
		if *f.limit <= 0 {
			*f.limit = f.value
		}
	}
	return l
}

// limitError reports which of the [Limits] was exceeded. Its chain holds dag.ErrLimit.
type limitError struct {
	// Limit is the name of the field of [Limits].
	Limit string
	// Max is its value.
	Max int
}

// Error names the limit and its value.
func (e *limitError) Error() string {
	return fmt.Sprintf("the server sent more than Limits.%s allows: %d", e.Limit, e.Max)
}

// Unwrap returns dag.ErrLimit.
func (e *limitError) Unwrap() error { return dag.ErrLimit }

// over returns a limitError if size is over the limit, and nil otherwise.
func over(limit string, size, most int) error {
	if size <= most {
		return nil
	}
	return &limitError{limit, most}
}
