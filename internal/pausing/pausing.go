// Package pausing marks the last save of package executor before a pause, for package durable.
//
// The pause of a durable run is one transaction: the conversation, the continuation and its calls. The engine therefore
// skips the marked save: the transaction right after it saves its nodes. Other programs save them in
// executor.Agent.Save.
package pausing

import "context"

type key struct{}

// Mark returns a context for the last save before a pause.
func Mark(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, true) }

// Marked reports whether the run pauses after the save with this context.
func Marked(ctx context.Context) bool { return ctx.Value(key{}) != nil }
