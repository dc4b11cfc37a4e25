package gemini

import (
	"testing"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/stretchr/testify/require"
)

// TestTheToolThatIsChosenIsTheOneOfThatName declares a tool whose name the API refuses beside one whose name is like it.
func TestTheToolThatIsChosenIsTheOneOfThatName(t *testing.T) {
	refused := weather
	refused.Name = "get weather"
	req := hello()
	req.Tools = []content.Tool{refused, weather}
	req.Options.ToolChoice = api.OneTool("get_weather")
	body, notes := requireBody(t, req, "gemini-x", nil)
	require.Contains(t, body, `"allowedFunctionNames":["get_weather"]`)
	require.Len(t, notes, 1, "the name is refused")

	req.Options.ToolChoice = api.OneTool("get weather")
	body, notes = requireBody(t, req, "gemini-x", nil)
	require.NotContains(t, body, "toolConfig")
	require.Len(t, notes, 2)
	require.Equal(t, api.RepairOption, notes[1].Kind)
}

func TestACachePolicyOfAnotherProviderIsNoted(t *testing.T) {
	for _, policy := range []api.Cache{"own", "forever", api.CacheLong} {
		req := hello()
		req.Options.Cache = policy
		_, notes := requireBody(t, req, "gemini-x", nil)
		require.Equal(t, []api.RepairNote{{Kind: api.RepairOption, Message: -1, Detail: `Cache "` + string(policy) + `" is left out: the API caches by itself`}}, notes)
	}
}
