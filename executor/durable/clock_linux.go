package durable

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootTime returns the time since the machine was booted. Unlike the monotonic clock of package time, it advances while
// the machine is suspended.
func bootTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return time.Duration(time.Now().UnixNano())
	}
	return time.Duration(t.Nano())
}
