// Package pausing tells package durable which save of package executor is the last one before a pause.
//
// The pause of a durable run is one transaction: the conversation, the continuation and its calls. The engine therefore
// leaves the nodes of that save to the transaction right after it. Other programs save them in executor.Agent.Save.
package pausing

import "context"

type key struct{}

// Mark returns a context for a save after which the run pauses.
func Mark(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, true) }

// Marked reports whether the run pauses after the save with this context.
func Marked(ctx context.Context) bool { return ctx.Value(key{}) != nil }
