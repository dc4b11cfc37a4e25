// Package quick makes the tests of a package that allocates much quicker by a tenth to a quarter: the garbage collector
// works less often. GOGC in the environment goes before it.
//
//	import _ "github.com/plait-dev/plait/internal/testkit/quick"
package quick

import (
	"os"
	"runtime/debug"
)

func init() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}
