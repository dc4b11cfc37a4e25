package durable

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/plait-dev/plait/internal/pgtest"
)

func TestMain(m *testing.M) {
	childMain()
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := pgtest.Stop(); err != nil {
			println(err.Error())
			code = 1
		}
		os.Exit(code)
	}))
}
