package conformance_test

import (
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/conformance"
)

func TestTheExampleProviderKeepsTheRules(t *testing.T) { conformance.Run(t, toyScenario) }

// toyScenario returns the provider of Example_provider with a server behind it. The test of another provider needs no
// more than this.
func toyScenario(t *testing.T, s conformance.Scenario) api.Provider {
	sent := &conformance.Recorder{Next: toyServer(s)}
	server := httptest.NewServer(sent)
	t.Cleanup(server.Close)
	return sent.Of(newToy(server.URL, server.Client()))
}

// TestAProviderOfOnesOwnTakes60Lines counts the lines of code of both example providers.
func TestAProviderOfOnesOwnTakes60Lines(t *testing.T) {
	for _, name := range []string{"example_provider_test.go", "example_stream_test.go"} {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		_, code, _ := strings.Cut(string(text), "// begin provider\n")
		code, _, ended := strings.Cut(code, "// end provider\n")
		require.True(t, ended, name)

		lines := 0
		for line := range strings.Lines(code) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
				lines++
			}
		}
		require.Greater(t, lines, 20, name)
		require.LessOrEqual(t, lines, 60, name)
	}
}
