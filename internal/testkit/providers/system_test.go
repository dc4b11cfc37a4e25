package providers

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/anthropic"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/api/openai"
	"github.com/plait-dev/plait/content"
)

// inLine are a request of each API with a system message between the others, and the parts of its body, in order.
var inLine = map[string]struct{ body, before, system, after string }{
	"anthropic": {
		`{"model":"m","max_tokens":99,"messages":[{"role":"user","content":"one"},{"role":"system","content":[{"type":"text","text":"Be brief."},{"type":"tool_removal","tool":{"type":"tool_reference","name":"f"}}],"clear_at":"never"},{"role":"user","content":"two"}]}`,
		`one`, `{"role":"system","content":[{"type":"text","text":"Be brief."},{"type":"tool_removal","tool":{"type":"tool_reference","name":"f"}}],"clear_at":"never"}`, `two`,
	},
	"openai-chat": {
		`{"model":"m","messages":[{"role":"user","content":"one"},{"role":"developer","content":"Be brief."},{"role":"user","content":"two","name":"bob"}]}`,
		`one`, `{"role":"developer","content":"Be brief."}`, `"two","name":"bob"`,
	},
	"openai-responses": {
		`{"model":"m","input":[{"role":"user","content":"one"},{"type":"message","role":"developer","content":"Be brief."},{"role":"user","content":"two"}]}`,
		`one`, `{"type":"message","role":"developer","content":"Be brief."}`, `two`,
	},
}

// TestSystemMessageKeepsItsPlace sends a system message back to its API where it was, and to each other API in that
// API's form, or as a text with a note.
func TestSystemMessageKeepsItsPlace(t *testing.T) {
	for _, from := range providers {
		given, ok := inLine[from.name]
		if !ok {
			continue // it has no form for it
		}
		req, err := from.parse([]byte(given.body))
		require.NoError(t, err)
		require.Empty(t, req.System)

		for _, to := range providers {
			body, notes, err := to.body(req)
			require.NoError(t, err)
			require.NoError(t, strictly(to.name, body), "%s to %s", from.name, to.name)
			text, system := string(body), given.system
			if from.name != to.name {
				system = "Be brief."
				if strings.HasPrefix(to.name, "openai") {
					system = `"role":"system","content":"Be brief."`
				}
				require.Contains(t, strings.Join(notesOf(notes), "\n"), "a system message in the line", "%s to %s", from.name, to.name)
			} else {
				require.Empty(t, notes)
			}
			one, at, two := strings.Index(text, "one"), strings.Index(text, system), strings.Index(text, "two")
			require.True(t, 0 < one && one < at && at < two, "%s to %s: %s", from.name, to.name, text)
			if from.name == to.name {
				require.Contains(t, text, given.after)
			}
		}
	}
}

// strictly checks a body with the strict fake of an API.
func strictly(name string, body []byte) error {
	switch name {
	case "anthropic":
		return fake.CheckAnthropic(body)
	case "openai-chat":
		return fake.CheckOpenAIChat(body)
	case "openai-responses":
		return fake.CheckOpenAIResponses(body)
	}
	return fake.CheckGemini("gemini-3-test", body)
}

func TestASystemMessageOfAProgramIsInTheFormOfTheAPI(t *testing.T) {
	for name, body := range map[string]func(api.Request) ([]byte, []api.RepairNote, error){
		"anthropic":        func(r api.Request) ([]byte, []api.RepairNote, error) { return anthropic.Body(r, "m", nil) },
		"openai-chat":      func(r api.Request) ([]byte, []api.RepairNote, error) { return openai.ChatBody(r, "gpt-5", nil) },
		"openai-responses": func(r api.Request) ([]byte, []api.RepairNote, error) { return openai.ResponsesBody(r, "gpt-5", nil) },
	} {
		blocks, err := content.Of(content.Text{Text: "Hi"}, dialect.SystemMessage(name, "Be brief."), content.Text{Text: "Go on"})
		require.NoError(t, err)
		sent, notes, err := body(api.Request{Messages: []content.Message{{Role: content.User, Blocks: blocks}}})
		require.NoError(t, err)
		require.Empty(t, notes, name)
		require.Contains(t, string(sent), `"role":"system"`, name)
		require.NoError(t, strictly(name, sent), name)
	}
}
