package viz

import (
	"math"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/internal/testkit/racetest"
)

func TestEscapeWritesEverythingThatMermaidWouldObey(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", " "},
		{" \n ", " "},
		{"plain words, really? yes! (it's ok) a/b", "plain words, really? yes! (it's ok) a/b"},
		{"日本語 עברית 👩‍👩‍👧", "日本語 עברית 👩‍👩‍👧"},
		{`say "hi"`, "say #34;hi#34;"},
		{"<b>&amp;</b>", "#lt;b#gt;#amp;amp#59;#lt;/b#gt;"},
		{"`x` # ; \\ $ * ~", "#96;x#96; #35; #59; #92; #36; #42; #126;"},
		{"[]{}|%@^", "#91;#93;#123;#125;#124;#37;#64;#94;"},
		{"a\nb", "a\nb"},
		{"snake_case _x_ a__b", "snake_case #95;x#95; a#95;#95;b"},
		{"a: b", "a: b"},
		{"a:b a:  b a:", "a#58;b a#58;#160;#160;b a#58;"},
		{"a: \nb", "a#58;#160;\nb"},
		{"- item", "#45; item"},
		{"a - b", "a - b"},
		{"\u00a0 - item", "\u00a0 #45; item"},
		{"  + item", "#160;#160;#43; item"},
		{"a\n===", "a\n#61;=="},
		{"1. one 2. two", "1#46; one 2. two"},
		{"12) x", "12#41; x"},
		{"3.14", "3#46;14"},
		{"see www.example.com", "see www#46;example.com"},
		{"direction LR", "#100;irection LR"},
		{"redirection", "re#100;irection"},
		{" a  b ", "#160;a#160;#160;b#160;"},
		{"bad \xff utf8", "bad \uFFFD utf8"},
		{"ﬂ°lt¶ß", "fl°lt¶\u200bß"},
		{"aﬂ_b", "afl_b"},
	} {
		require.Equal(t, c.want, escape(c.text), "%q", c.text)
	}
}

// inert matches a label that only shows text: what is active stands in escapes, and nothing else looks like one.
var inert = regexp.MustCompile("^([^<>&`\"\\\\\\[\\]{}|%$*~@^#;]|#(lt|gt|amp|[0-9]+);)+$")

// TestEscapeAndClipAreLinear compares what a text and one of eight times its length allocate. What is quadratic in time alone takes hours
// for the long texts.
func TestEscapeAndClipAreLinear(t *testing.T) {
	racetest.SkipCounting(t)
	const short, long = 1 << 15, 1 << 18
	for _, s := range []string{"#", "direction ", "a: ", "  ", "1.", "\n", "e\u0301", "👩‍", "¶ß", "w.", "\r\n", "\x00", "\xff"} {
		var escaped, clipped [2]uint64
		for i, n := range []int{short, long} {
			text := strings.Repeat(s, n)
			shown := safetext.Clip(text, 1<<30, 1<<30)
			escaped[i] = allocated(func() { escape(shown) })
			clipped[i] = allocated(func() { safetext.Clip(text, 1<<30, len(text)/8) })
		}
		const slack = 64 << 10 // for what others allocate meanwhile
		require.LessOrEqual(t, escaped[1], 16*escaped[0]+slack, "escape %q", s)
		require.LessOrEqual(t, clipped[1], 16*clipped[0]+slack, "clip %q", s)
	}
}

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func FuzzLabel(f *testing.F) {
	for _, s := range append(hostile, "", "\xff\xfe", "¶ß", "👩‍👩‍👧", "e\u0301", strings.Repeat("a b\n", 100)) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		full := safetext.Clip(s, math.MaxInt, math.MaxInt)
		for _, text := range []string{full, safetext.Clip(s, 3, 120), s} {
			label := escape(text)
			if !utf8.ValidString(label) || !inert.MatchString(label) || strings.Contains(label, "direction") {
				t.Fatalf("escape(%q) = %q", text, label)
			}
		}
		require.True(t, utf8.ValidString(full))
		short := safetext.Clip(s, 3, 120)
		require.LessOrEqual(t, strings.Count(short, "\n"), 2)
		require.True(t, utf8.ValidString(short))
		require.Equal(t, short, safetext.Clip(short, 3, 121), "what was cut once is not cut again")
	})
}
