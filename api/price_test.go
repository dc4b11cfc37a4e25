package api_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
)

func ExamplePrices() {
	prices := api.Prices{"claude-sonnet-4-5": {Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75}}
	used := content.Usage{Input: 1000, Output: 500, CacheRead: 20_000}
	for _, model := range []string{"claude-sonnet-4-5-20250929", "claude-haiku-4-5"} {
		if cost, known := prices.Cost(model, used); known {
			fmt.Printf("%s: %.4f\n", model, cost)
		} else {
			fmt.Println(model + ": not known")
		}
	}
	// Output:
	// claude-sonnet-4-5-20250929: 0.0165
	// claude-haiku-4-5: not known
}

func TestPriceIsThatOfTheNameOrOfItsSnapshot(t *testing.T) {
	prices := api.Prices{
		"gpt-5": {Input: 1}, "gpt-5-mini": {Input: 2}, "gpt-5-2025-01-01": {Input: 3}, "claude-sonnet-4-5": {Input: 4},
		"gemini-2.5-pro": {Input: 5}, "models/own": {Input: 6}, "": {Input: 7}, "free": {},
	}
	for model, input := range map[string]float64{
		"gpt-5": 1, "gpt-5-mini": 2, "gpt-5-2025-01-01": 3, "gpt-5-2025-08-07": 1, "gpt-5-mini-2025-08-07": 2, "gpt-5-latest": 1, "gpt-5-001": 1,
		"claude-sonnet-4-5-20250929": 4, "claude-sonnet-4-5@20250929": 4, "models/gemini-2.5-pro": 5, "models/gemini-2.5-pro-002": 5,
		"publishers/google/models/gemini-2.5-pro": 5, "models/own": 6, "": 7, "free": 0, "free-20260101": 0,
		"gpt-5-nano": -1, "gpt-5-mini-high": -1, "gpt": -1, "gpt-5-": -1, "gpt-5-0613": -1, "gpt-5-20250807-preview": -1, "gpt-5-1": -1,
		"gpt-5-latest-latest": -1, "gpt-5-2025-08-07-001": -1, "GPT-5": -1, "claude-sonnet-4": -1, "openai/gpt-5": -1, "own": -1,
		"claude-sonnet-4-5@latest": -1, "gpt-5-12345678": -1, "unknown": -1,
	} {
		price, known := prices.Of(model)
		require.Equal(t, input >= 0, known, model)
		require.Equal(t, max(input, 0), price.Input, model)
	}
	_, known := api.Prices(nil).Cost("gpt-5", content.Usage{})
	require.False(t, known)
}

func TestEveryKindOfTokenIsPaidOnce(t *testing.T) {
	p := api.Price{Input: 1, Output: 10, CacheRead: 100, CacheWrite: 1000}
	require.Equal(t, 1111.0, p.Cost(content.Usage{Input: 1e6, Output: 1e6, CacheRead: 1e6, CacheWrite: 1e6, Reasoning: 1e6}), "reasoning is a part of the output")
	require.Equal(t, 3.0, api.Price{Input: 1}.Cost(content.Usage{Input: 1e6, CacheRead: 1e6, CacheWrite: 1e6}), "a cache without a price is no present")
	require.Zero(t, api.Price{}.Cost(content.Usage{Input: 1e6, Output: 1e6}))
	require.Zero(t, p.Cost(content.Usage{}))
}
