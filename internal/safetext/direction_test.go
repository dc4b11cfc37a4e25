package safetext

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFirstLetterDecidesTheDirection(t *testing.T) {
	for _, text := range []string{"שלום", "مرحبا abc", "12. שלום", "(«آزمون»)", "🙂 שלום", "\u0301ש", "ܫܠܡܐ", "ހެލޯ", "ߒߞߏ", "𞤀𞤣", "יִ", "ﷺ"} {
		require.True(t, FromRight(text), text)
	}
	for _, text := range []string{"", "abc", "12 34", "abc שלום", "漢字 שלום", "हिन्दी", "ไทย", "→ 5", "٣٤", "\xff"} {
		require.False(t, FromRight(text), text)
	}
}

func TestIsolateEnclosesOnlyWhatMayReorderItsRow(t *testing.T) {
	require.Equal(t, "\u2068abc שלום\u2069", Isolate("abc שלום"))
	require.Equal(t, "漢字 → 5", Isolate("漢字 → 5"))
}
