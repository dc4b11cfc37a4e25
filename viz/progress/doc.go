// Package progress shows how far a run is while it goes on: one line on a terminal that is drawn again in place.
//
//	turn 3 · 12s · get_weather 4s, research 11s (search) · 1,240 tokens
//
// [Watch] stands between a run's events and whoever ranges over them:
//
//	for event, err := range progress.Watch(os.Stderr, agent.Stream(ctx, d), nil) { … }
//
// Names of tools and what they report are untrusted text: they are made harmless and cut, and cannot drive the terminal.
//
// # Concurrency
//
// While the events are ranged over, a goroutine draws the time once a second. It has ended when the range has, however that ends.
//
// # Errors
//
// What goes wrong with the output is not told: a run does not fail because nobody sees it.
package progress
