package anthropic

import (
	"net/http"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/testkit/providertest"
	"github.com/stretchr/testify/require"
)

// cassettes reads every recorded file of the API, and those exchanges of the cross-provider files that are its.
func cassettes(t testing.TB) []providertest.Cassette {
	return providertest.Cassettes(t, "anthropic", "messages")
}

// recording is a request of a cassette, imported.
type recording struct {
	model    string
	options  Options
	dag      dag.DAG
	messages []content.Message
}

// importRequest imports a request. What Import puts into the options of the request goes into those of the provider, as a program
// would have it.
func importRequest(t testing.TB, body string) recording {
	t.Helper()
	req, model, err := Import([]byte(body))
	require.NoError(t, err)
	r := recording{
		model: model, dag: dag.New(), messages: req.Messages, options: Options{Options: req.Options, NoStream: !asksForStream(t, body)},
	}
	r.dag = r.dag.Tools(asTools(req.Tools)...)
	for _, prompt := range req.System {
		r.dag = r.dag.System(prompt)
	}
	for _, m := range req.Messages {
		switch m.Role {
		case content.User:
			r.dag = r.dag.User("", m.Blocks.Slice()...)
		case content.Assistant:
			r.dag = r.dag.Assistant("", m.Blocks.Slice()...)
		default:
			t.Fatalf("a message of role %q", m.Role)
		}
	}
	last := r.messages[len(r.messages)-1]
	if _, said := last.Blocks.At(last.Blocks.Len() - 1).(content.Text); said && last.Role == content.Assistant {
		r.options.Prefill = true
	}
	require.NoError(t, r.dag.Err())
	return r
}

func asTools(defs []content.Tool) []dag.Tool {
	var tools []dag.Tool
	for _, def := range defs {
		tools = append(tools, def)
	}
	return tools
}

func asksForStream(t testing.TB, body string) bool {
	list, err := jsonx.Members(content.JSON(body))
	require.NoError(t, err)
	stream, _ := jsonx.Take(list, "stream")
	return stream == "true"
}

// localSDK lets the SDK talk to the server, with nothing of the environment.
func localSDK(url string, client *http.Client) []option.RequestOption {
	return []option.RequestOption{
		option.WithoutEnvironmentDefaults(), option.WithAPIKey("test-key"), option.WithBaseURL(url), option.WithHTTPClient(client),
	}
}
