package openai

import (
	"testing"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/testkit/providertest"
	"github.com/stretchr/testify/require"
)

func chatCassettes(t testing.TB) []providertest.Cassette {
	return providertest.Cassettes(t, "openai-chat", "chat")
}

// recording is a request of a cassette, imported.
type recording struct {
	model    string
	options  Options
	dag      dag.DAG
	system   []string
	tools    []dag.Tool
	messages []content.Message
}

// importChat imports a request. What ImportChat puts into the options of the request goes into those of the provider, as a program
// would have it.
func importChat(t testing.TB, body string) recording {
	t.Helper()
	req, model, err := ImportChat([]byte(body))
	require.NoError(t, err)
	r := recording{model: model, system: req.System, messages: req.Messages}
	r.options = Options{Options: req.Options, Audio: true, NoStream: !asksForStream(t, body)}
	for _, def := range req.Tools {
		r.tools = append(r.tools, def)
	}
	r.dag = r.begin(r.messages)
	return r
}

func asksForStream(t testing.TB, body string) bool {
	list, err := jsonx.Members(content.JSON(body))
	require.NoError(t, err)
	return value(list, "stream") == "true"
}

// begin is a conversation with the request's tools and system prompts in which messages were said.
func (r recording) begin(messages []content.Message) dag.DAG {
	d := dag.New().Tools(r.tools...)
	for _, prompt := range r.system {
		d = d.System(prompt)
	}
	for _, m := range messages {
		if m.Role == content.User {
			d = d.User("", m.Blocks.Slice()...)
		} else {
			d = d.Assistant("", m.Blocks.Slice()...)
		}
	}
	return d
}
