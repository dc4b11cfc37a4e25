package conformance_test

import (
	"net/http/httptest"
	"testing"

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
	return sent.Of(toy{url: server.URL, http: server.Client()})
}
