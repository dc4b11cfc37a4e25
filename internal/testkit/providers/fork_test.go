package providers

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/jsonx"
)

// marker is what Anthropic's API takes as the end of a cached prefix. It moves, and is no part of the prompt.
var marker = regexp.MustCompile(`,?"cache_control":\{[^}]*\}`)

// The request of a fork begins, byte for byte, with the request that led to its call: a prompt cache has all of it.
func TestForkKeepsThePrefixOfItsAgent(t *testing.T) {
	each(t, func(t *testing.T, p provider, noStream bool) {
		model := p.fake(
			p.says(content.Text{Text: "Let me look."}, content.ToolUse{ID: "call_a", Name: "look", Input: `{}`}),
			p.says(content.ToolUse{ID: "call_b", Name: "fork", Input: `{"task":"Look left."}`}),
			p.says(content.Text{Text: "Nothing there."}), // the fork's
			p.says(content.Text{Text: "Done."}),
		)
		look := executor.Func("look", "Looks.", func(context.Context, struct{}) (string, error) { return "grass", nil })
		agent := executor.Agent{
			Provider: p.at(direct(t, model), api.Options{Cache: api.CacheShort}, noStream), System: "Be brief.",
			Tools: []dag.Tool{look, executor.Fork("fork", "Looks somewhere.", executor.Limits{Turns: 2})},
		}
		d, err := agent.Run(t.Context(), dag.New().User("What is around?"))
		require.NoError(t, err)
		require.Equal(t, "Done.", d.Text())
		require.Empty(t, model.Refused())
		bodies := model.Bodies()
		require.Len(t, bodies, 4)

		before, fork := map[string]jsonx.Raw{}, map[string]jsonx.Raw{}
		require.NoError(t, content.JSON(bodies[1]).Decode(&before))
		require.NoError(t, content.JSON(bodies[2]).Decode(&fork))
		prompt := func(body map[string]jsonx.Raw) string {
			items := marker.ReplaceAllString(string(body[p.items]), "")
			delete(body, p.items)
			return items
		}

		// The task may be a part of the last message, beside the tool's result.
		prefix := strings.TrimRight(prompt(before), "]}")
		whole := prompt(fork)
		require.True(t, strings.HasPrefix(whole, prefix), "%s\n%s", prefix, whole)
		require.Contains(t, strings.TrimPrefix(whole, prefix), "Look left.")
		require.Equal(t, before, fork, "tools, system prompt and options")
	})
}
