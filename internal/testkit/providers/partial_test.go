package providers

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
)

// TestConversationContinuesFromEveryCut cuts an answer with thinking, text and calls behind a tool phase, at many bytes
// or at each with PLAIT_LONG. A run that goes on from it, with a user message or without, makes requests that the strict
// fake takes.
func TestConversationContinuesFromEveryCut(t *testing.T) {
	t.Parallel()
	call := content.ToolUse{ID: "call_1", Name: "get_weather", Input: `{"city":"Tokyo"}`}
	for _, p := range providers {
		t.Run(p.name, func(t *testing.T) {
			length, step := 1<<20, 31
			if seedtest.Long() {
				step = 1
			}
			parts := 0
			for at := 0; at < length; at += step {
				for _, words := range []string{"", "Well?"} {
					n, kept := p.goesOn(t, at, words, call)
					length, parts = n, parts+kept
				}
			}
			require.Greater(t, parts, 3, "answers that were cut off and kept")
		})
	}
}

// goesOn cuts the answer behind a tool phase at a byte and goes on. It returns the length of that answer and how many parts of it were kept.
func (p provider) goesOn(t *testing.T, at int, words string, call content.ToolUse) (length, kept int) {
	second := call
	second.ID = "call_2"
	said := []content.Block{content.Text{Text: " Let me \n\n look. "}, second}
	if p.name == "anthropic" {
		said = append([]content.Block{content.Thinking{Text: "Hm.", Signature: "s1"}}, said...)
	}
	fake := p.fake(p.says(call), p.says(said...), p.says(content.Text{Text: "So it is."}), p.says(content.Text{Text: "Bye."}))
	requests := 0
	server := direct(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests++; requests != 2 {
			fake.ServeHTTP(w, r)
			return
		}
		whole := httptest.NewRecorder()
		fake.ServeHTTP(whole, r)
		body, _ := io.ReadAll(whole.Result().Body)
		length = len(body)
		w.Header().Set("Content-Type", whole.Result().Header.Get("Content-Type"))
		w.Write(body[:min(at, len(body))])
	}))

	agent := executor.Agent{
		Provider: api.NewClient(p.at(server, api.Options{}, false), &api.ClientOptions{Attempts: 1}),
		Handler:  func(context.Context, executor.Call) (any, error) { return "Sun.", nil }, Limits: executor.Limits{Turns: 3},
	}
	tool := content.Tool{Name: "get_weather", Description: "The weather.", Schema: `{"type":"object","properties":{"city":{"type":"string"}}}`}
	d, err := agent.Run(t.Context(), dag.New().Tools(tool).User("The weather?"))
	if err == nil {
		return length, 0 // nothing but the last words to the wire were missing
	}
	require.Empty(t, d.OpenCalls(), "cut at %d", at)
	for _, n := range d.Nodes() {
		if m, ok := n.Message(); ok && m.Answer.Stop == content.StopCut {
			kept++
			require.Empty(t, m.Blocks.ToolUses(), "cut at %d", at)
		}
	}

	if words != "" {
		d = d.User(words)
	}
	d, err = agent.Run(t.Context(), d)
	require.NoError(t, err, "cut at %d", at)
	d, err = agent.Run(t.Context(), d.User("Bye."))
	require.NoError(t, err, "cut at %d", at)
	require.Empty(t, d.OpenCalls())
	require.Empty(t, fake.Refused(), "cut at %d", at)
	require.Equal(t, "Bye.", d.Messages()[len(d.Messages())-1].Blocks.Text())
	return length, kept
}
