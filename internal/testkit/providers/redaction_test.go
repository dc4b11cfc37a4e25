package providers

import (
	"math/rand/v2"
	"testing"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// checks is the strict rules of each API.
var checks = map[string]func([]byte) error{
	"anthropic": fake.CheckAnthropic, "openai-chat": fake.CheckOpenAIChat, "openai-responses": fake.CheckOpenAIResponses,
	"gemini": func(body []byte) error { return fake.CheckGemini("gemini-3-test", body) },
}

func sent(p provider, d dag.DAG) ([]byte, error) {
	t := d.Transcript()
	body, _, err := p.body(api.Request{System: t.System, Tools: t.Tools, Messages: t.Messages})
	if err == nil {
		err = checks[p.name](body)
	}
	return body, err
}

// TestRedactedConversationsAreValidRequests redacts every single message, and some at random, and asks the strict rules
// of all APIs.
func TestRedactedConversationsAreValidRequests(t *testing.T) {
	require.Zero(t, redacted(t, "by hand", byHand(t)))
}

func TestRedactedRecordingsAreValidRequests(t *testing.T) {
	refused, all := 0, conversations(t)
	for _, c := range all {
		if d, _, _, ok := begin(t, c); ok && notTaken[c.name] == "" {
			refused += redacted(t, c.name, d)
		}
	}
	require.LessOrEqual(t, 100*refused, len(all), "conversations that an API refuses as they were recorded")
}

// redacted tries redactions of d, and returns how many APIs refuse it as it is.
func redacted(t *testing.T, name string, d dag.DAG) (refused int) {
	seed := seedtest.First(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	nodes := d.Nodes()
	var picks [][]node.ID
	for i := 0; i < len(nodes) && len(nodes) < 20; i++ {
		picks = append(picks, []node.ID{nodes[i].ID()})
	}
	for range 3 {
		var some []node.ID
		for _, n := range nodes {
			if rnd.IntN(3) == 0 {
				some = append(some, n.ID())
			}
		}
		picks = append(picks, some)
	}
	for _, p := range providers {
		if _, err := sent(p, d); err != nil {
			refused++
			continue
		}
		for _, ids := range picks {
			got := d.Redact(ids...)
			require.NoError(t, got.Err())
			body, err := sent(p, got)
			require.NoError(t, err, "%s to %s, without %v, PLAIT_SEED=%d: %s", name, p.name, ids, seed, body)
		}
	}
	return refused
}

// byHand is a conversation with thinking, server tools, executions and a call that was cut off.
func byHand(t *testing.T) dag.DAG {
	d := dag.New().System("Be brief.").
		Tools(content.Tool{Name: "f", Description: "d", Schema: `{"type":"object"}`},
			content.Tool{Name: "web_search", Extra: content.Extra{API: "anthropic", JSON: `{"type":"web_search_20250305","name":"web_search"}`}}).
		User("One?", content.Image{Source: content.Source{URL: "https://example.com/a.png"}}).
		Assistant("", content.Thinking{Text: "Hm.", Signature: "c2lnbmVk", Extra: content.Extra{API: "anthropic", JSON: `{}`}},
			content.Opaque{API: "anthropic", JSON: `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"q":"x"}}`},
			content.Opaque{API: "anthropic", JSON: `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`},
			content.Text{Text: "I call."}, content.ToolUse{ID: "a", Name: "f", Input: `{"x":1}`}, content.ToolUse{ID: "b", Name: "f", Input: `{"cut`}).
		CloseTools(node.ToolExecution{Index: 4, Result: content.Words("A")}).
		Assistant("", content.Thinking{Text: "So.", Signature: "c2lnbmVk", Extra: content.Extra{API: "anthropic", JSON: `{}`}}, content.Text{Text: "Two."}).
		User("And?").
		Assistant("", content.Opaque{API: "anthropic", JSON: `{"type":"server_tool_use","id":"srvtoolu_2","name":"web_search","input":{"q":"x"}}`}).
		Assistant("", content.Opaque{API: "anthropic", JSON: `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_2","content":[]}`}, content.Text{Text: "Found."}).
		User("Thanks.")
	require.NoError(t, d.Err())
	return d
}
