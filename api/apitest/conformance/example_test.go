package conformance_test

import (
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/conformance"
)

// The test of a provider needs no more than this: a model with the behavior of the scenario, and a Recorder in front of
// it.
func ExampleRun() {
	provider := func(t *testing.T, s conformance.Scenario) api.Provider {
		sent := &conformance.Recorder{Next: toyServer(s)} // or a strict fake, such as fake.Anthropic
		server := httptest.NewServer(sent)
		t.Cleanup(server.Close)
		return sent.Of(newToy(server.URL, server.Client()))
	}
	TestProvider := func(t *testing.T) { conformance.Run(t, provider) }

	fmt.Printf("%T\n", TestProvider) // go test runs it
	// Output: func(*testing.T)
}
