package gemini

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/testkit/providertest"
)

// cassettes reads every recorded file of the API, and those exchanges of the cross-provider files that are its.
func cassettes(t testing.TB) []providertest.Cassette {
	return providertest.Cassettes(t, "gemini", "generateContent")
}

// recording is a request of a cassette, imported.
type recording struct {
	model    string
	options  Options
	dag      dag.DAG
	messages []content.Message
}

// importRequest imports a request. What Import puts into the options of the request goes into those of the provider, as a program would
// have it.
func importRequest(t testing.TB, e providertest.Exchange) recording {
	t.Helper()
	req, err := Import([]byte(e.Request.Body))
	require.NoError(t, err)
	model, method, ok := strings.Cut(e.Request.Path[strings.Index(e.Request.Path, "/models/")+len("/models/"):], ":")
	require.True(t, ok, e.Request.Path)
	r := recording{
		model: model, messages: req.Messages, dag: dag.New(), options: Options{Options: req.Options, NoStream: !strings.HasPrefix(method, "stream")},
	}
	for _, prompt := range req.System {
		r.dag = r.dag.System(prompt)
	}
	for _, def := range req.Tools {
		r.dag = r.dag.Tools(def)
	}
	for _, m := range req.Messages {
		if m.Role == content.User {
			r.dag = r.dag.User("", m.Blocks.Slice()...)
		} else {
			r.dag = r.dag.Assistant("", m.Blocks.Slice()...)
		}
	}
	require.NoError(t, r.dag.Err())
	return r
}

func readAll(t testing.TB, r io.Reader) string {
	b, err := io.ReadAll(r)
	require.NoError(t, err)
	return string(b)
}

func hello() api.Request {
	return api.Request{Messages: []content.Message{{Role: content.User, Blocks: content.Words("Hello")}}}
}
