package openai

import (
	"net/http/httptest"
	"testing"

	"github.com/openai/openai-go/v3/option"
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	_ "github.com/plait-dev/plait/internal/testkit/quick"
	"go.uber.org/goleak"
)

// TestMain sees to it that no test leaves a goroutine.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// localSDK lets the SDK talk to a local server. What the environment says is overruled.
func localSDK(server *httptest.Server) []option.RequestOption {
	return []option.RequestOption{
		option.WithBaseURL(server.URL + "/v1"), option.WithAPIKey("test-key"), option.WithHTTPClient(server.Client()),
		option.WithHeaderDel("OpenAI-Organization"), option.WithHeaderDel("OpenAI-Project"),
	}
}

func hello() api.Request {
	return api.Request{Messages: []content.Message{{Role: content.User, Blocks: content.Words("Hello")}}}
}

func must(blocks ...content.Block) content.Blocks {
	made, err := content.Of(blocks...)
	if err != nil {
		panic(err)
	}
	return made
}
