//go:build !unix

package pair

import "time"

var began = time.Now()

// cpuTime returns wall time where the system has no getrusage: figures are then those of an idle machine or of none.
func cpuTime() time.Duration { return time.Since(began) }
