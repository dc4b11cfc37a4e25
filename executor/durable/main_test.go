package durable

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/plait-dev/plait/internal/testkit/pgtest"
	_ "github.com/plait-dev/plait/internal/testkit/quick"
	"github.com/plait-dev/plait/internal/testkit/racetest"
)

func TestMain(m *testing.M) {
	childMain()

	// Most tests wait, for the end of a heartbeat or for the next look of River at what is due. Under the race detector
	// they compute, and a process would be too late for its heartbeat.
	flag.Parse()
	if !racetest.Enabled {
		_ = flag.Set("test.parallel", "16")
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := pgtest.Stop(); err != nil {
			println(err.Error())
			code = 1
		}
		os.Exit(code)
	}))
}
