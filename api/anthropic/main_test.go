package anthropic

import (
	"testing"

	"go.uber.org/goleak"

	_ "github.com/plait-dev/plait/internal/testkit/quick"
)

// TestMain sees to it that no test leaves a goroutine. The one that is let pass begins when a package is imported that the SDK's
// vertex imports.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}
