//go:build !linux

package durable

import "time"

// bootTime returns the wall clock, because the monotonic clock stands still while the machine is suspended. If somebody
// sets the clock, a beat may seem too old: the process then waits for its next one.
func bootTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
