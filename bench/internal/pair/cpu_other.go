//go:build !unix

package pair

import "time"

var began = time.Now()

// cpuTime returns wall time, because the system has no getrusage. The figures hold only for an idle machine.
func cpuTime() time.Duration { return time.Since(began) }
