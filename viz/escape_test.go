package viz

import (
	"math"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
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
	} {
		require.Equal(t, c.want, escape(c.text), "%q", c.text)
	}
}

func TestPlainLeavesWhatCanBeShown(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"a\r\nb\rc\vd\fe\u0085f\u2028g\u2029h", "a\nb\nc\nd\ne\nf\ng\nh"},
		{"a\tb", "a  b"},
		{"a\x00b\x07c\x7fd\u009be", "abcde"},
		{"\x1b[31mred", "␛[31mred"},
		{"\ufeffa\u200eb\u200fc\u202ed\u2066e\u2069f\u061cg", "abcdefg"},
		{"a\ufffeb\U0001ffffc\ufdd0d\ufdefe", "a\ufffdb\ufffdc\ufffdd\ufffde"},
		{"a\xffb", "a\ufffdb"},
		{"ﬂ°lt¶ß", "fl°lt¶\u200bß"},
		{"¶\x01ß", "¶\u200bß"},
		{"\n\n a \n\n", " a "},
	} {
		got, more := plain(c.text, 1000)
		require.Equal(t, c.want, got, "%q", c.text)
		require.False(t, more)
	}
	got, more := plain("abcdef", 3)
	require.Equal(t, "abc", got)
	require.True(t, more)
}

func TestClipCutsBetweenCharactersOnly(t *testing.T) {
	for name, c := range map[string]struct {
		text         string
		lines, chars int
		want         string
	}{
		"fits":             {"abc", 3, 3, "abc"},
		"too long":         {"abcd", 3, 3, "abc…"},
		"too many lines":   {"a\nb\nc\nd", 3, 120, "a\nb\nc…"},
		"exactly the rows": {"a\nb\nc\n\n", 3, 120, "a\nb\nc"},
		"blank lines":      {"a\n \n\nb", 3, 120, "a\nb"},
		"no dangling gap":  {"ab cd", 3, 3, "ab…"},
		"multi-byte":       {"日本語", 3, 2, "日本…"},
		"accents":          {"e\u0301e\u0301e\u0301", 3, 2, "e\u0301e\u0301…"},
		"family":           {"👩‍👩‍👧‍👦x", 3, 1, "👩‍👩‍👧‍👦…"},
		"skin tone":        {"👍🏽x", 3, 1, "👍🏽…"},
		"flags":            {"🇯🇵🇫🇷", 3, 1, "🇯🇵…"},
		"flag of Scotland": {"🏴󠁧󠁢󠁳󠁣󠁴󠁿x", 3, 1, "🏴󠁧󠁢󠁳󠁣󠁴󠁿…"},
		"variation":        {"❤️x", 3, 1, "❤️…"},
		"Hangul":           {"\u1112\u1161\u11abx", 3, 1, "\u1112\u1161\u11ab…"},
		"Devanagari":       {"किx", 3, 1, "कि…"},
		"line at limit":    {"abc\nd", 3, 3, "abc…"},
		"nothing":          {"", 3, 3, ""},
	} {
		require.Equal(t, c.want, clip(c.text, c.lines, c.chars), name)
	}
}

func TestClipTakesAnyLimits(t *testing.T) {
	for _, limit := range []int{11, 1 << 30, math.MaxInt/maxCluster + 1, math.MaxInt} {
		require.Equal(t, "  a tab\nand", clip("\ta tab\nand", limit, limit))
		require.Equal(t, "x", clip("x", 1, limit))
		require.Equal(t, "x", clip("x", limit, 1))
		require.Equal(t, "", clip("", limit, limit))
	}
}

func TestClipReadsNoMoreThanItShows(t *testing.T) {
	heap := "e" + strings.Repeat("\u0301", 1<<20)
	require.Less(t, len(clip(heap, 3, 120)), 10_000, "a heap of marks is no character")

	long := strings.Repeat("word ", 1<<20)
	allocated := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			clip(long, 3, 120)
		}
	}).AllocedBytesPerOp()
	require.Less(t, allocated, int64(100_000))
}

// inert matches a label that only shows text: what is active stands in escapes, and nothing else looks like one.
var inert = regexp.MustCompile("^([^<>&`\"\\\\\\[\\]{}|%$*~@^#;]|#(lt|gt|amp|[0-9]+);)+$")

// TestEscapeAndClipAreLinear compares what a text and one of eight times its length allocate. What is quadratic in time alone takes hours
// for the long texts.
func TestEscapeAndClipAreLinear(t *testing.T) {
	const short, long = 1 << 16, 1 << 19
	for _, s := range []string{"#", "direction ", "a: ", "  ", "1.", "\n", "e\u0301", "👩‍", "¶ß", "w.", "\r\n", "\x00", "\xff"} {
		var escaped, clipped [2]uint64
		for i, n := range []int{short, long} {
			text := strings.Repeat(s, n)
			plain, _ := plain(text, 1<<30)
			escaped[i] = allocated(func() { escape(plain) })
			clipped[i] = allocated(func() { clip(text, 1<<30, len(text)/8) })
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
		full, _ := plain(s, len(s)*2+1)
		for _, text := range []string{full, clip(s, 3, 120), s} {
			label := escape(text)
			if !utf8.ValidString(label) || !inert.MatchString(label) || strings.Contains(label, "direction") {
				t.Fatalf("escape(%q) = %q", text, label)
			}
		}
		require.True(t, utf8.ValidString(full))
		short := clip(s, 3, 120)
		require.LessOrEqual(t, strings.Count(short, "\n"), 2)
		require.True(t, utf8.ValidString(short))
		require.Equal(t, short, clip(short, 3, 121), "what was cut once is not cut again")
	})
}
