package png

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/unicode/bidi"

	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
)

// TestLinesAreOrderedByTheBidirectionalAlgorithm compares lines with their order in Chromium. In the results, words that
// read from right to left stand in brackets, as they are stored.
func TestLinesAreOrderedByTheBidirectionalAlgorithm(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"שלום עולם.", "[שלום עולם.]"},
		{"שלום, 123 ועוד 45.6%.", "[.]45.6%[ ועוד ]123[שלום, ]"},
		{"abc שלום 12 def", "abc 12[שלום ] def"},
		{"abc שלום 12, 13 def", "abc 13[, ]12[שלום ] def"},
		{"مرحبا بالعالم 2024/05/06", "2024/05/06[مرحبا بالعالم ]"},
		{"خطأ في main.go:12 (panic)", "main.go:12 (panic)[خطأ في ]"},
		{"run(שלום)", "run([שלום])"},
		{"(abc) שלום", "(abc) [שלום]"},
		{"الجذر x < y", "x < y[الجذر ]"},
		{"ab ١٢ ٣٤ cd", "ab ٣٤[ ]١٢ cd"},
		{"א[a]b", "b[]]a[א[]"},
		{"a (ב c) ד", "a ([ב] c) [ד]"},
		{"e = mc2", "e = mc2"},
	} {
		var got strings.Builder
		right := safetext.FromRight(c.line)
		for _, p := range pieces(c.line, right) {
			if p.fromRight {
				got.WriteString("[" + p.text + "]")
			} else {
				got.WriteString(p.text)
			}
		}
		require.Equal(t, c.want, got.String())
	}
}

// TestLevelsAgreeWithText: x/text computes the direction of each character, without the level.
func TestLevelsAgreeWithText(t *testing.T) {
	// Without brackets: x/text compares each closing one with itself, and so finds no pair. The cases above have some.
	letters := []rune("abאבسل12٣٤+-,.:/$%<>! \u0301\u064b")
	random := rand.New(rand.NewPCG(seedtest.First(t), 0))
	for range seedtest.Rounds(20_000, 1_000_000) {
		line := []rune{letters[random.IntN(2)]}
		if random.IntN(2) == 0 {
			line[0] = letters[2+random.IntN(4)]
		}
		right := safetext.FromRight(string(line))
		for range random.IntN(12) {
			line = append(line, letters[random.IntN(len(letters))])
		}

		var p bidi.Paragraph
		_, err := p.SetString(string(line))
		require.NoError(t, err)
		order, err := p.Order()
		require.NoError(t, err)
		var want []bool
		for i := range order.NumRuns() {
			run := order.Run(i)
			for range []rune(run.String()) {
				want = append(want, run.Direction() == bidi.RightToLeft)
			}
		}

		var got []bool
		for _, level := range levels(line, right) {
			got = append(got, level%2 == 1)
		}
		require.Equal(t, want, got, "%q", string(line))
	}
}
