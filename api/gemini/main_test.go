package gemini

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	_ "github.com/plait-dev/plait/internal/testkit/quick"
)

// TestMain sees to it that no test leaves a goroutine, and that nothing of the environment gets into one. The goroutine that is let
// pass begins when a package is imported that the SDK imports.
func TestMain(m *testing.M) {
	for _, name := range []string{
		"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_ENTERPRISE", "GOOGLE_CLOUD_PROJECT",
		"GOOGLE_CLOUD_LOCATION", "GOOGLE_CLOUD_REGION", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL",
	} {
		os.Unsetenv(name)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}
