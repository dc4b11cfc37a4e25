package safetext_test

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/internal/testkit/racetest"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
)

const (
	england  = "\U0001F3F4\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F"
	wales    = "\U0001F3F4\U000E0067\U000E0062\U000E0077\U000E006C\U000E0073\U000E007F"
	scotland = "\U0001F3F4\U000E0067\U000E0062\U000E0073\U000E0063\U000E0074\U000E007F"
	family   = "👩\u200d👩\u200d👧\u200d👦"
)

// shapes are texts and what each function makes of them.
var shapes = map[string]struct{ text, line, row, block, escape string }{
	"plain":             {"two words", "two words", "two words", "two words", "two words"},
	"nothing":           {"", "", "", "", ""},
	"spaces":            {"  a  b ", "a b", "  a  b ", "  a  b ", "  a  b "},
	"lines and tabs":    {"\ta\n\nb\n", "a b", "␉a␊␊b␊", "\ta\n\nb\n", `\ta\n\nb\n`},
	"carriage returns":  {"a\r\nb\rc", "a b c", "a␍␊b␍c", "a\nb\nc", `a\r\nb\rc`},
	"line separators":   {"a\vb\fc\u0085d\u2028e\u2029f", "a b c d e f", "a␋b␌c�d�e�f", "a\nb\nc\nd\ne\nf", `a\vb\fc\u0085d\u2028e\u2029f`},
	"other spaces":      {"a\u00a0b\u3000c\u2003d", "a b c d", "a b c d", "a b c d", `a\u00a0b\u3000c\u2003d`},
	"escape sequences":  {"\x1b[31mred\x07", "␛[31mred␇", "␛[31mred␇", "␛[31mred␇", `\x1b[31mred\a`},
	"NUL and DEL":       {"a\x00b\x7f", "a␀b␡", "a␀b␡", "a␀b␡", `a\x00b\x7f`},
	"C1 controls":       {"\u009b31m", "�31m", "�31m", "�31m", `\u009b31m`},
	"overrides":         {"\u202egnp.exe\u202c", "�gnp.exe�", "�gnp.exe�", "�gnp.exe�", `\u202egnp.exe\u202c`},
	"isolates":          {"\u2066a\u2069\u200e\u200f\u061c", "�a����", "�a����", "�a����", `\u2066a\u2069\u200e\u200f\u061c`},
	"invisible":         {"\ufeffa\u200b\u00adb", "�a��b", "�a��b", "�a��b", `\ufeffa\u200b\u00adb`},
	"noncharacters":     {"\ufffe\U0010ffff", "��", "��", "��", `\ufffe\U0010ffff`},
	"private use":       {"\ue000", "�", "�", "�", `\ue000`},
	"not UTF-8":         {"a\xffb\xc3", "a�b�", "a�b�", "a�b�", `a\xffb\xc3`},
	"surrogates":        {"\xed\xa0\x80", "���", "���", "���", `\xed\xa0\x80`},
	"U+FFFD":            {"\ufffd", "\ufffd", "\ufffd", "\ufffd", "\ufffd"},
	"accent":            {"e\u0301", "e\u0301", "e\u0301", "e\u0301", "e\u0301"},
	"lone mark":         {"\u0301 \u0301", "◌\u0301 ◌\u0301", "◌\u0301 ◌\u0301", "◌\u0301 ◌\u0301", `\u0301 \u0301`},
	"mark on a control": {"\x1b\u0301", "␛\u0301", "␛\u0301", "␛\u0301", `\x1b\u0301`},
	"family":            {family, family, family, family, family},
	"dangling joiner":   {"a\u200d", "a", "a", "a", `a\u200d`},
	"joined garbage":    {"a\u200d\xff", "a�", "a�", "a�", `a\u200d\xff`},
	"joined override":   {"a\u200d\u202e", "a�", "a�", "a�", `a\u200d\u202e`},
	"joiner alone":      {"\u200d\u200c", "�\u200c", "�\u200c", "�\u200c", `\u200d\u200c`},
	"Persian":           {"می\u200cخواهم", "می\u200cخواهم", "می\u200cخواهم", "می\u200cخواهم", "می\u200cخواهم"},
	"flags":             {"🇯🇵🇫🇷🇯", "🇯🇵🇫🇷🇯", "🇯🇵🇫🇷🇯", "🇯🇵🇫🇷🇯", "🇯🇵🇫🇷🇯"},
	"flag of Scotland":  {scotland, scotland, scotland, scotland, scotland},
	"hidden tags":       {"🏴\U000E0068\U000E0069", "🏴��", "🏴��", "🏴��", `🏴\U000e0068\U000e0069`},
	"Hangul":            {"\u1112\u1161\u11ab한", "\u1112\u1161\u11ab한", "\u1112\u1161\u11ab한", "\u1112\u1161\u11ab한", "\u1112\u1161\u11ab한"},
}

func TestHostileTextIsShownByOneRule(t *testing.T) {
	for name, c := range shapes {
		require.Equal(t, c.line, safetext.Line(c.text, 1000), "Line: %s", name)
		require.Equal(t, c.row, safetext.Row(c.text), "Row: %s", name)
		require.Equal(t, c.block, safetext.Block(c.text), "Block: %s", name)
		require.Equal(t, c.escape, safetext.Escape(c.text, 1000), "Escape: %s", name)
	}
}

func TestMarksThatPileUpAreNotShown(t *testing.T) {
	heap := "e" + strings.Repeat("\u0301", 50) + "x"
	kept := "e" + strings.Repeat("\u0301", 8) + "x"
	require.Equal(t, kept, safetext.Line(heap, 10))
	require.Equal(t, kept, safetext.Block(heap))
	require.Equal(t, kept, safetext.Clip(heap, 1, 10))
	require.Equal(t, "e"+strings.Repeat(`\u0301`, 50)+"x", safetext.Escape(heap, 1000))
}

func TestLineFitsItsCells(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		width int
		want  string
	}{
		"fits":            {"abc", 3, "abc"},
		"too long":        {"abcd", 3, "ab…"},
		"no room":         {"abc", 1, "…"},
		"none at all":     {"abc", 0, "…"},
		"wide":            {"日本語", 5, "日本…"},
		"wide, even":      {"日本語", 4, "日…"},
		"space":           {"ab cd", 4, "ab…"},
		"spaces after it": {"abc \n", 3, "abc"},
		"accents":         {"e\u0301e\u0301e\u0301", 2, "e\u0301…"},
		"flags":           {"🇯🇵🇫🇷", 3, "🇯🇵…"},
	} {
		got := safetext.Line(c.text, c.width)
		require.Equal(t, c.want, got, name)
		require.LessOrEqual(t, safetext.Width(got), max(c.width, 1), name)
	}
}

func TestClipCutsLinesAndClusters(t *testing.T) {
	for name, c := range map[string]struct {
		text            string
		lines, clusters int
		want            string
	}{
		"fits":            {"abc", 3, 3, "abc"},
		"too long":        {"abcd", 3, 3, "abc…"},
		"too many lines":  {"a\nb\nc\nd", 3, 120, "a\nb\nc…"},
		"blank lines":     {"\n a\n \n\nb \n", 3, 120, " a\nb"},
		"no dangling gap": {"ab cd", 3, 3, "ab…"},
		"tab":             {"\ta\tb", 1, 9, "  a  b"},
		"nothing fits":    {"abc", 0, 9, "…"},
		"family":          {family + "x", 3, 1, family + "…"},
		"hostile":         {"\x1b[2J\u202e\r\nb", 2, 9, "␛[2J�\nb"},
	} {
		require.Equal(t, c.want, safetext.Clip(c.text, c.lines, c.clusters), name)
	}
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
		require.Equal(t, c.want, safetext.Clip(c.text, c.lines, c.chars), name)
	}
}

func TestClipTakesAnyLimits(t *testing.T) {
	for _, limit := range []int{11, 1 << 30, math.MaxInt/32 + 1, math.MaxInt} {
		require.Equal(t, "  a tab\nand", safetext.Clip("\ta tab\nand", limit, limit))
		require.Equal(t, "x", safetext.Clip("x", 1, limit))
		require.Equal(t, "x", safetext.Clip("x", limit, 1))
		require.Equal(t, "", safetext.Clip("", limit, limit))
	}
}

func TestClipReadsNoMoreThanItShows(t *testing.T) {
	heap := "e" + strings.Repeat("\u0301", 1<<20)
	require.Less(t, len(safetext.Clip(heap, 3, 120)), 10_000, "a heap of marks is no character")

	long := strings.Repeat("word ", 1<<20)
	require.Less(t, allocated(func() { safetext.Clip(long, 3, 120) }), uint64(100_000))
}

func TestCutKeepsClustersWhole(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		limit int
		want  string
	}{
		"fits":                  {"abc", 3, "abc"},
		"too long":              {"abcd", 3, "abc"},
		"two bytes":             {"aéé", 2, "a"},
		"one rune":              {"é", 1, ""},
		"negative":              {"abcd", -1, ""},
		"rune":                  {"aé", 2, "a"},
		"accent":                {"ae\u0301x", 3, "a"},
		"accent that fits":      {"ae\u0301x", 4, "ae\u0301"},
		"family":                {"a" + family, 20, "a"},
		"flag of Scotland":      {"a" + scotland + "b", 20, "a"},
		"flag that fits":        {"a" + scotland + "b", 29, "a" + scotland},
		"flags":                 {"🇯🇵🇫🇷x", 12, "🇯🇵"},
		"longer than the limit": {"e" + strings.Repeat("\u0301", 50), 6, "e\u0301\u0301"},
		"not UTF-8":             {"\xff\xfe\xfd", 2, "\xff\xfe"},
		"long marks":            {"a e" + strings.Repeat("\u0301", 500), 600, "a "},
	} {
		require.Equal(t, c.want, safetext.Head(c.text, c.limit), name)
		if c.want != c.text {
			c.want += fmt.Sprintf("… (%d bytes)", len(c.text))
		}
		require.Equal(t, c.want, safetext.Cut(c.text, c.limit), name)
	}
}

func TestQuoteIsAGoString(t *testing.T) {
	require.Equal(t, `"say \"hi\" \\ \x1b\n"`, safetext.Quote("say \"hi\" \\ \x1b\n", 100))
	require.Equal(t, `"abc"… (4 bytes)`, safetext.Quote("abcd", 3))
	require.Equal(t, `""`, safetext.Quote("", 3))
	require.Equal(t, `abc… (4 bytes)`, safetext.Escape("abcd", 3))
}

func TestWidthCountsCells(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "abc": 3, "日本": 4, "e\u0301": 1, "👍🏽": 4, "🇯🇵": 2, scotland: 2, "❤\ufe0f": 2, "\x1b": 1, "\xff": 1, "\u0301": 1,
		"한": 2, "\u1112\u1161\u11ab": 2,
	} {
		require.Equal(t, want, safetext.Width(text), "%q", text)
	}
}

// TestLongTextCostsNoMoreThanItsLength compares what a text of 2 MB, or 10 with PLAIT_LONG, and one of an eighth allocate, and what functions with a limit allocate.
func TestLongTextCostsNoMoreThanItsLength(t *testing.T) {
	racetest.SkipCounting(t)
	long := seedtest.Rounds(1<<20, 10<<20)
	for _, part := range []string{"a", " ", "\n", "\t", "é", "日本", "e\u0301", "\u0301", "\u200d", "👩\u200d", "🇯", "\x00", "\xff", "\u202e", "🏴\U000E0067"} {
		text := strings.Repeat(part, long/len(part))
		eighth := text[:len(text)/8/len(part)*len(part)]
		for name, clean := range map[string]func(string) string{"Row": safetext.Row, "Block": safetext.Block} {
			few, many := allocated(func() { clean(eighth) }), allocated(func() { clean(text) })
			require.LessOrEqual(t, many, 16*few+1<<20, "%s of %q", name, part)
		}
		for name, cut := range limited(100) {
			var got string
			require.LessOrEqual(t, allocated(func() { got = cut(text) }), uint64(1<<20), "%s of %q", name, part)
			require.LessOrEqual(t, len(got), 100*40, "%s of %q", name, part)
		}
	}
}

func limited(limit int) map[string]func(string) string {
	return map[string]func(string) string{
		"Line":   func(s string) string { return safetext.Line(s, limit) },
		"Clip":   func(s string) string { return safetext.Clip(s, limit, limit) },
		"Escape": func(s string) string { return safetext.Escape(s, limit) },
		"Quote":  func(s string) string { return safetext.Quote(s, limit) },
		"Cut":    func(s string) string { return safetext.Cut(s, limit) },
	}
}

func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func FuzzText(f *testing.F) {
	for _, c := range shapes {
		f.Add(c.text, 3)
	}
	f.Add(strings.Repeat("\u0301", 20)+"\u200d"+family, 9)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		const all = 1 << 30
		limit = int(uint(limit) % 200)
		whole := map[string]func(string) string{
			"Line":   func(s string) string { return safetext.Line(s, all) },
			"Row":    safetext.Row,
			"Block":  safetext.Block,
			"Clip":   func(s string) string { return safetext.Clip(s, all, all) },
			"Escape": func(s string) string { return safetext.Escape(s, all) },
		}
		for name, clean := range whole {
			text := clean(s)
			require.NoError(t, shown(text, name == "Block" || name == "Clip", name == "Block"), "%s(%q) = %q", name, s, text)
			require.Equal(t, text, clean(text), "%s is idempotent: %q", name, s)
		}

		line := safetext.Line(s, limit)
		require.LessOrEqual(t, safetext.Width(line), max(limit, 1), "%q", s)
		require.Equal(t, line, safetext.Line(line, limit), "%q", s)
		require.LessOrEqual(t, strings.Count(safetext.Clip(s, limit, all), "\n"), max(limit-1, 0), "%q", s)
		require.NoError(t, shown(safetext.Clip(s, limit, limit), true, false))

		head := safetext.Head(s, limit)
		require.LessOrEqual(t, len(head), limit)
		require.True(t, strings.HasPrefix(s, head))
		if text, _, size := safetext.Cluster(s); len(s) > limit && size <= limit && limit > 0 {
			require.NotEmpty(t, head, "%q begins with %q, which fits", s, text)
		}
		require.NoError(t, shown(safetext.Quote(s, limit), false, false))
	})
}

// shown returns an error if text holds what a terminal obeys or does not show.
func shown(text string, lines, tabs bool) error {
	text = strings.NewReplacer(england, "", scotland, "", wales, "").Replace(text)
	if !utf8.ValidString(text) {
		return fmt.Errorf("it is not UTF-8")
	}
	for _, r := range text {
		switch {
		case r == '\n' && lines, r == '\t' && tabs, r == '\u200c', r == '\u200d', unicode.IsPrint(r):
		default:
			return fmt.Errorf("it holds %q", r)
		}
	}
	return nil
}

func TestAroundShowsTheOffset(t *testing.T) {
	const s = "0123456789äbcdefghij"
	require.Equal(t, s, safetext.Around(s, 5, len(s)))
	require.Equal(t, "01234567…", safetext.Around(s, 0, 8))
	require.Equal(t, "…6789äbc…", safetext.Around(s, 8, 8))
	require.Equal(t, "…cdefghij", safetext.Around(s, len(s), 8))
	require.Equal(t, "…äbcdefg…", safetext.Around(s, 12, 7), "a rune is not cut in two")
}

func TestNamesThatLookAlikeHaveOneForm(t *testing.T) {
	for _, name := range []string{
		"read_file", "Read-File", "read.file", "read file", "read\u00a0file", "re\u200bad_file", "read_file\u202e", "\ufeffread_file",
		"read_fi\u0301le", "ｒead＿file", "read_file\x00", "read_\U000e0041file",
	} {
		require.Equal(t, "read_file", safetext.Name(name), "%q", name)
	}
	require.Equal(t, "kiss", safetext.Name("\u212ai\u017f\u017f"))
	for _, name := range []string{"readfile", "read__file", "read_files", "reed_file", "日本"} {
		require.NotEqual(t, "read_file", safetext.Name(name), "%q", name)
	}
	require.Equal(t, "日本", safetext.Name("日本"))
}
