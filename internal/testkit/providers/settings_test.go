package providers

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/content"
)

// TestSettingsCarryOver makes a request with every setting for each API, imports it, and sends it to each other one: the
// settings that both have are the same there, and the members of the first alone are noted.
func TestSettingsCarryOver(t *testing.T) {
	half := 0.5
	weather := content.Tool{Name: "get_weather", Schema: `{"type":"object","properties":{"city":{"type":"string"}}}`}
	given := api.Options{
		MaxTokens: 500, Temperature: &half, StopSequences: []string{"END"}, ToolChoice: api.OneTool("get_weather"),
		Output: api.Schema{Name: "report", JSON: `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`},
	}
	checks := map[string]func([]byte) error{
		"anthropic": fake.CheckAnthropic, "openai-chat": fake.CheckOpenAIChat, "openai-responses": fake.CheckOpenAIResponses, "gemini": func(body []byte) error { return fake.CheckGemini("gemini-test", body) },
	}
	for _, from := range providers {
		req := api.Request{Tools: []content.Tool{weather}, Messages: []content.Message{{Role: content.User, Blocks: content.Words("Hi")}}, Options: given}
		req.Options.Body = `{"seed_of_its_own":1}`
		body, _, err := from.body(req)
		require.NoError(t, err)
		imported, err := from.parse(body)
		require.NoError(t, err)
		had, others := dialect.Settings(from.name, imported.Options.Body)
		require.Equal(t, []string{"seed_of_its_own"}, others, from.name)

		for _, to := range providers {
			sent, notes, err := to.body(imported)
			require.NoError(t, err)
			again, err := to.parse(sent)
			require.NoError(t, err)
			has, others := dialect.Settings(to.name, again.Options.Body)

			require.Equal(t, 500, has.MaxTokens, "%s to %s", from.name, to.name)
			require.Equal(t, &half, has.Temperature)
			require.Equal(t, api.OneTool("get_weather"), has.ToolChoice)
			require.Equal(t, given.Output.JSON.Canonical(), has.Output.JSON.Canonical())
			if from.name != "openai-responses" && to.name != "openai-responses" { // it has no stop sequences
				require.Equal(t, had.StopSequences, has.StopSequences)
			}

			if from.name == to.name {
				require.Equal(t, []string{"seed_of_its_own"}, others)
				continue
			}
			require.Empty(t, others)
			require.Contains(t, notesOf(notes), "option: of Options.Body, which is in the form of "+from.name+", are left out: seed_of_its_own")
			require.NoError(t, checks[to.name](sent))
		}
	}
}

func notesOf(notes []api.RepairNote) (list []string) {
	for _, n := range notes {
		list = append(list, n.String())
	}
	return list
}

func TestThinkingCarriesOver(t *testing.T) {
	for _, from := range providers {
		for level, sees := range map[api.Thinking]api.Thinking{api.ThinkLow: api.ThinkLow, api.ThinkOff: api.ThinkOff} {
			req := api.Request{Messages: []content.Message{{Role: content.User, Blocks: content.Words("Hi")}}, Options: api.Options{Thinking: level}}
			body, _, err := from.body(req)
			require.NoError(t, err)
			imported, err := from.parse(body)
			require.NoError(t, err)
			had, _ := dialect.Settings(from.name, imported.Options.Body)
			require.Equal(t, sees, had.Thinking, from.name)

			for _, to := range providers {
				sent, _, err := to.body(imported)
				require.NoError(t, err)
				again, err := to.parse(sent)
				require.NoError(t, err)
				has, _ := dialect.Settings(to.name, again.Options.Body)
				require.Equal(t, sees, has.Thinking, "%s to %s: %s", from.name, to.name, sent)
			}
		}
	}
}
