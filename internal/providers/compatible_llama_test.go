package providers

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/openai"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

// reported returns the members of the details of the only response in a conversation.
func reported(t *testing.T, d dag.DAG) map[string]json.RawMessage {
	t.Helper()
	for _, n := range d.Nodes() {
		if m, ok := n.Message(); ok && m.Role == content.Assistant {
			var details map[string]json.RawMessage
			require.NoError(t, json.Unmarshal([]byte(m.Answer.Details), &details), "%s", m.Answer.Details)
			return details
		}
	}
	t.Fatal("no response")
	return nil
}

// TestTimingsOfAServerAreSavedWithTheResponse runs a turn over each API that the real server reports its timings in, and saves and loads it
// (H13). Over Messages, and in whole responses over Responses, the server reports none.
func TestTimingsOfAServerAreSavedWithTheResponse(t *testing.T) {
	l := startLlama(t, "-c", "4096")
	chat := openai.Options{Options: api.Options{Body: `{"logprobs":true,"top_logprobs":2}`}}
	whole := chat
	whole.NoStream = true

	for name, test := range map[string]struct {
		provider api.Provider
		members  []string
	}{
		"chat":                    {openai.NewChat("tiny", l.openAI(openai.Options{})), []string{"timings", "system_fingerprint"}},
		"chat, with logprobs":     {openai.NewChat("tiny", l.openAI(chat)), []string{"timings", "system_fingerprint", "logprobs"}},
		"chat, logprobs, at once": {openai.NewChat("tiny", l.openAI(whole)), []string{"timings", "system_fingerprint", "logprobs"}},
		"responses":               {l.responses(openai.Options{}), []string{"timings"}},
	} {
		a := executor.Agent{Provider: test.provider, Options: api.Options{MaxTokens: 6}}
		d, err := a.Run(t.Context(), dag.New().User("Hello"))
		require.NoError(t, err, name)

		path := filepath.Join(t.TempDir(), "talk.json")
		require.NoError(t, d.Save(path), name)
		d, err = dag.Load(path)
		require.NoError(t, err, name)

		details := reported(t, d)
		for _, member := range test.members {
			require.Contains(t, details, member, name)
		}
		require.Len(t, details, len(test.members), "%s: %v", name, details)

		var timings struct {
			Tokens int64 `json:"predicted_n"`
		}
		require.NoError(t, json.Unmarshal(details["timings"], &timings), name)
		require.Positive(t, timings.Tokens, name)
	}
}
