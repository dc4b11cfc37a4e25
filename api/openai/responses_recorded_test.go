package openai

import (
	"reflect"
	"testing"

	json "github.com/goccy/go-json/v2"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/stretchr/testify/require"
)

// responsesRecording is a request of a cassette, imported.
type responsesRecording struct {
	model    string
	options  Options
	dag      dag.DAG
	messages []content.Message
}

// importResponses imports a request. What ImportResponses puts into the options of the request goes into those of the provider, as a
// program would have it.
func importResponses(t testing.TB, body string) responsesRecording {
	t.Helper()
	req, model, err := ImportResponses([]byte(body))
	require.NoError(t, err)
	r := responsesRecording{
		model: model, messages: req.Messages, dag: dag.New(), options: Options{Options: req.Options, NoStream: !asksForStream(t, body)},
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

func decoded(t testing.TB, body string) map[string]any {
	t.Helper()
	var r map[string]any
	require.NoError(t, json.Unmarshal([]byte(body), &r, jsonx.Lenient), body)
	return r
}

func sameValue(a, b any) bool { return reflect.DeepEqual(a, b) }
