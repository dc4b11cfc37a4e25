package executor_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/executor"
)

// Whatever is cut says so, and all of it stays inside the limit, however the texts are divided.
func TestOutputLimitNoticeFitsTheLimitForSeveralTexts(t *testing.T) {
	const marker = "[truncated]"
	words := []string{"a", "0123456789", "one\ntwo", "äöü€𝄞äöü€𝄞", "\n\n\n", "", "0123456789012345678901234567890123456789"}
	for bytes := range 45 {
		for lines := range 5 {
			for _, a := range words {
				for _, b := range words {
					said, err := content.Of(content.Text{Text: a}, content.Text{Text: b})
					require.NoError(t, err)
					hook := executor.OutputLimit{MaxBytes: bytes, MaxLines: lines, KeepFull: true}.Hook()
					got, err := hook.After(t.Context(), executor.Call{}, executor.Result{Content: said})
					require.NoError(t, err)
					n, rows, all := 0, 0, ""
					for _, block := range got.Content.All() {
						text := block.(content.Text).Text
						require.True(t, utf8.ValidString(text))
						n, all = n+len(text), all+text
						rows += strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1
					}
					what := fmt.Sprintf("%d bytes, %d lines: %q, %q: %q", bytes, lines, a, b, all)
					if got.Full.Len() == 0 {
						require.Equal(t, a+b, all, what)
					} else {
						mark := marker
						if bytes > 0 {
							mark = marker[:min(bytes, len(marker))]
						}
						require.True(t, strings.HasSuffix(all, mark), what)
					}
					require.True(t, bytes == 0 || n <= bytes, what)
					require.True(t, lines == 0 || rows <= lines, what)
				}
			}
		}
	}
}

func TestZeroOutputLimitCutsNothing(t *testing.T) {
	said := content.Words(strings.Repeat("line\n", 10000))
	got, err := executor.OutputLimit{KeepFull: true}.Hook().After(t.Context(), executor.Call{}, executor.Result{Content: said})
	require.NoError(t, err)
	require.Equal(t, said, got.Content)
	require.Zero(t, got.Full.Len(), "nothing was cut")
}

func TestOutputLimitDoesNotCountTheFinalLineBreak(t *testing.T) {
	hook := executor.OutputLimit{MaxLines: 2}.Hook()
	for text, want := range map[string]string{"a\nb": "a\nb", "a\nb\n": "a\nb\n", "a\nb\nc": "a\n[truncated]"} {
		got, err := hook.After(t.Context(), executor.Call{}, executor.Result{Content: content.Words(text)})
		require.NoError(t, err)
		require.Equal(t, want, got.Content.Text())
	}
}
