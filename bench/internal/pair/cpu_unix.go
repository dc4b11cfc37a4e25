//go:build unix

package pair

import (
	"syscall"
	"time"
)

// cpuTime returns the processor time used by all threads of the process, garbage collection included.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
