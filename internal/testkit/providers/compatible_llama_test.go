package providers

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/anthropic"
	"github.com/plait-dev/plait/api/compatible"
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

// named returns models of the real server's three APIs that know what server it is.
func (l llama) named(o api.Options) map[string]api.Provider {
	known := openai.Options{Server: compatible.LlamaCPP, Options: o}
	return map[string]api.Provider{
		"chat":      openai.NewChat("tiny", l.openAI(known)),
		"responses": l.responses(known),
		"messages":  l.messages(anthropic.Options{Server: compatible.LlamaCPP, Options: o}),
	}
}

// TestReasoningGoesBackToItsServer sends a turn's reasoning back to the real server with a template that reads the reasoning of a tool
// loop, and counts the tokens of the prompt (H14). Without the server's name, it goes back over Chat alone.
func TestReasoningGoesBackToItsServer(t *testing.T) {
	l := startLlama(t, "-c", "8192", "--chat-template-file", "templates/google-gemma-4-31B-it.jinja")
	const thought = "a b c d e f g h i j k l m n o p"
	after := "rs_1"

	for name, b := range map[string]struct {
		thinking content.Thinking
		call     content.Extra
	}{
		"chat": {thinking: content.Thinking{Text: thought, Extra: content.Extra{API: openai.ChatAPI, JSON: `{"field":"reasoning_content"}`}}},
		"responses": {
			thinking: content.Thinking{Text: thought, Extra: content.Extra{API: openai.ResponsesAPI, JSON: `{"id":"rs_1"}`}},
			call:     content.Extra{API: openai.ResponsesAPI, JSON: content.JSON(`{"plait":{"after":"` + after + `"}}`)},
		},
		"messages": {thinking: content.Thinking{Text: thought, Extra: content.Extra{API: anthropic.API, JSON: "{}"}}},
	} {
		prompt := func(p api.Provider, thinks bool) int64 {
			blocks := []content.Block{content.ToolUse{ID: "call_1", Name: "ls", Input: "{}", Extra: b.call}}
			if thinks {
				blocks = append([]content.Block{b.thinking}, blocks...)
			}
			said, err := content.Of(blocks...)
			require.NoError(t, err)
			result, err := content.Of(content.ToolResult{CallID: "call_1", Content: content.Words("a")})
			require.NoError(t, err)

			req := asks("Look.", api.Options{MaxTokens: 2})
			req.Tools = []content.Tool{{Name: "ls", Schema: `{"type":"object","properties":{}}`}}
			req.Messages = append(req.Messages, content.Message{Role: content.Assistant, Blocks: said}, content.Message{Role: content.User, Blocks: result})
			answer, err := send(t, p, req)
			require.NoError(t, err, name)
			return answer.Usage.Total() - answer.Usage.Output
		}

		known, plain := l.named(api.Options{})[name], l.all()[name]
		require.Greater(t, prompt(known, true), prompt(known, false)+10, "%s: the reasoning is in the prompt", name)
		if name != "chat" {
			require.Equal(t, prompt(plain, false), prompt(plain, true), "%s: a server without a name may refuse it", name)
		}
	}
}

// TestReasoningOfATurnIsAcceptedInTheNext runs two turns over each API with a template that has the model reason: the second request is
// accepted, and the reasoning was not left out.
func TestReasoningOfATurnIsAcceptedInTheNext(t *testing.T) {
	l := startLlama(t, "-c", "8192", "--chat-template-file", "templates/llama-cpp-deepseek-r1.jinja", "--reasoning-format", "deepseek", "-l", "32025+7")
	for name, p := range l.named(api.Options{MaxTokens: 400}) {
		thought := 0
		for n := 0; n < 10 && thought == 0; n++ {
			req := asks(fmt.Sprint("hello ", n), api.Options{})
			first, err := send(t, p, req)
			require.NoError(t, err, name)
			for _, b := range first.Blocks.All() {
				if _, thinks := b.(content.Thinking); thinks && first.Blocks.Len() > 1 {
					thought++
				}
			}

			req.Messages = append(req.Messages, content.Message{Role: content.Assistant, Blocks: first.Blocks}, content.Message{Role: content.User, Blocks: content.Words("and?")})
			second, err := send(t, p, req)
			require.NoError(t, err, name)
			for _, r := range second.Repairs {
				require.NotContains(t, r.Detail, "without a signature", name)
				require.NotContains(t, r.Detail, "encrypted", name)
			}
		}
		require.Positive(t, thought, "%s: no turn had reasoning and an answer", name)
	}
}

// TestWhatTheServerIgnoresIsEnforced asks the real server for what it would ignore, over each API (H7, H15).
func TestWhatTheServerIgnoresIsEnforced(t *testing.T) {
	l := startLlama(t, "-c", "4096")
	tools := []content.Tool{
		{Name: "ls", Schema: `{"type":"object","properties":{"p":{"type":"string"}},"required":["p"]}`},
		{Name: "cat", Schema: `{"type":"object","properties":{"p":{"type":"string"}},"required":["p"]}`},
	}
	called := func(p api.Provider, o api.Options) (names []string) {
		o.MaxTokens = 60
		for n := range 4 {
			req := asks(fmt.Sprint("hello ", n), o)
			req.Tools = tools
			answer, err := send(t, p, req)
			require.NoError(t, err)
			for _, call := range answer.Blocks.ToolUses() {
				names = append(names, call.Name)
			}
		}
		return names
	}

	for name, p := range l.named(api.Options{}) {
		one := called(p, api.Options{ToolChoice: api.OneTool("cat")})
		require.NotContains(t, one, "ls", name)
		require.Contains(t, one, "cat", name)
		require.Empty(t, called(p, api.Options{ToolChoice: api.ToolsNone}), name)

		// The schema of a response is a prompt where the server would ignore it.
		answer, err := send(t, p, asks("hello", api.Options{MaxTokens: 60, Output: api.Output[struct{ A int }]()}))
		require.NoError(t, err, name)
		noted := false
		for _, r := range answer.Repairs {
			noted = noted || strings.Contains(r.Detail, "the schema of Output is a system prompt")
		}
		require.Equal(t, name != "chat", noted, name)
		if name == "chat" {
			var out struct{ A int }
			require.NoError(t, json.Unmarshal([]byte(answer.Blocks.Text()), &out), "%s", answer.Blocks.Text())
		}
	}

	// Without the server's name, it does as it likes.
	require.Contains(t, called(l.all()["chat"], api.Options{ToolChoice: api.OneTool("cat")}), "ls")
	require.NotEmpty(t, called(l.all()["messages"], api.Options{ToolChoice: api.ToolsNone}))
}
