// Package progress shows the progress of a run: one line on a terminal, redrawn in place.
//
//	turn 3 · 12s · get_weather 4s, research 11s (search) · 1,240 tokens
//
// [Watch] wraps the events of a run:
//
//	for event, err := range progress.Watch(os.Stderr, agent.Stream(ctx, d), nil) { … }
//
// The names of tools and their reported progress are untrusted text: both are cleaned and cut, and cannot control the
// terminal.
//
// # Concurrency
//
// During the range over the events, a goroutine redraws the time once a second. It has ended when the range ends, also
// after a break or a panic.
//
// # Errors
//
// Errors of the output are ignored: a run does not fail because its progress cannot be shown.
package progress
