package gptname_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/gptname"
)

func TestGenerationIsThatOfTheName(t *testing.T) {
	for model, want := range map[string]int{
		"gpt-5.6": 506, "gpt-5.6-mini-2026-07-01": 506, "gpt-5.10": 510, "gpt-6": 600, "gpt-5": 500, "gpt-5-2025-08-07": 500,
		"gpt-4o": 400, "gpt-4.1-mini": 401, "ft:gpt-4o:acme": 400, "openai/gpt-5.6": 506, "o3-mini": 0, "chatgpt-4o-latest": 0,
		"gpt-99999999999999999999.9999": 10099,
	} {
		got, ok := gptname.Generation(model)
		require.True(t, ok, model)
		require.Equal(t, want, got, model)
	}

	for _, model := range []string{"", "gpt-oss-120b", "llama-3", "deepseek-chat", "other/gpt-5.6"} {
		_, ok := gptname.Generation(model)
		require.False(t, ok, model)
	}
}
