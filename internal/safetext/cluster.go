package safetext

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Signs inside a cluster, joining its characters.
const (
	joiner    = '\u200d' // joins two emoji
	nonJoiner = '\u200c'
	emojiSign = '\ufe0f' // shows the character before it as an emoji
)

// maxMarks is the maximum number of marks in one cluster. No script needs more. Further marks are dropped.
const maxMarks = 8

// loneMark is the base for a mark without a character.
const loneMark = "\u25cc"

// Cluster returns the first cluster of s as it is shown, its width in cells, and its size in s. The text is s[:size] if
// nothing has to change. It never contains a line break or a tab: these too are shown by their pictures.
func Cluster(s string) (text string, width, size int) {
	// Most text is ASCII. A mark of the character would begin with a byte that is not.
	r, size := utf8.DecodeRuneInString(s)
	if r >= ' ' && r < 0x7f && (size == len(s) || s[size] < utf8.RuneSelf) {
		return s[:size], 1, size
	}
	if r == ' ' || unicode.Is(unicode.Zs, r) {
		return " ", 1, size
	}
	if n := flagSize(s); n > 0 {
		return s[:n], 2, n
	}

	// The text is the base, then s from the end of the base to keep: only the end of a cluster is ever dropped.
	base, from, keep := "", 0, size
	if shown := visible(r); isMark(r) {
		base, width, keep, size = loneMark, 1, 0, 0
	} else {
		width = runeCells(shown)
		if shown != r || r == utf8.RuneError && size == 1 {
			base, from = string(shown), size
		}
	}

	for marks := 0; size < len(s); marks++ {
		next, n := utf8.DecodeRuneInString(s[size:])
		spacing := unicode.Is(unicode.Mc, next) // it takes a cell beside the character; other marks take none
		switch {
		case standsAlone(next):
			return base + s[from:keep], width, size
		case next == joiner && marks < maxMarks:
			// A joiner counts as one mark together with the joined character.
			joined, m := utf8.DecodeRuneInString(s[size+n:])
			if !unicode.IsPrint(joined) || joined == ' ' || joined == utf8.RuneError {
				return base + s[from:keep], width, size + n // the joiner joins nothing and is dropped
			}
			n, width = n+m, width+runeCells(joined)
		case next == emojiSign:
			width = max(width, 2)
		case spacing && marks < maxMarks:
			width++
		case regional(r) && regional(next) && marks == 0:
			// Two regional letters are a flag.
			return s[:size+n], 2, size + n
		case skin(next) && marks < maxMarks:
			width += 2
		case next != nonJoiner && !isMark(next) && !jamo(next):
			// The next cluster begins here.
			return base + s[from:keep], width, size
		}

		size += n
		if marks < maxMarks {
			keep = size
		}
	}
	return base + s[from:keep], width, size
}

// Width returns the width of a line in terminal cells.
func Width(line string) int {
	used := 0
	for line != "" {
		_, width, size := Cluster(line)
		used, line = used+width, line[size:]
	}
	return used
}

// visible returns the character to show for r.
func visible(r rune) rune {
	switch {
	case r < ' ':
		return 0x2400 + r
	case r == 0x7f:
		return '\u2421'
	case unicode.IsPrint(r):
		return r
	}
	return utf8.RuneError
}

func isMark(r rune) bool { return r >= 0x300 && unicode.Is(unicode.M, r) }

// standsAlone reports whether r is in a common range of characters that begin a cluster. It saves a search of the
// tables.
func standsAlone(r rune) bool {
	return r < 0x300 || r >= 0x3400 && r <= 0xA48F || r >= 0xAC00 && r <= 0xD7A3
}

// flags are the three flags written with tags. Other tags are hidden text.
var flags = []string{
	"\U0001F3F4\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F", // England
	"\U0001F3F4\U000E0067\U000E0062\U000E0073\U000E0063\U000E0074\U000E007F", // Scotland
	"\U0001F3F4\U000E0067\U000E0062\U000E0077\U000E006C\U000E0073\U000E007F", // Wales
}

// flagSize returns the size of the flag at the beginning of s, or 0.
func flagSize(s string) int {
	for _, flag := range flags {
		if strings.HasPrefix(s, flag) {
			return len(flag)
		}
	}
	return 0
}

func regional(r rune) bool { return r >= 0x1F1E6 && r <= 0x1F1FF }

func skin(r rune) bool { return r >= 0x1F3FB && r <= 0x1F3FF }

// jamo reports whether r is a vowel or a final consonant, and so joins the Hangul syllable before it.
func jamo(r rune) bool { return r >= 0x1160 && r <= 0x11FF || r >= 0xD7B0 && r <= 0xD7FB }

func runeCells(r rune) int {
	if r >= 0x1100 && unicode.Is(wide, r) {
		return 2
	}
	return 1
}

// wide holds the characters with a width of two cells: East Asian Width W or F. Blocks with few narrow characters are
// listed whole: a row may come out shorter than possible, but never longer.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x1100, 0x115F, 1}, {0x231A, 0x231B, 1}, {0x2329, 0x232A, 1}, {0x23E9, 0x23EC, 1}, {0x23F0, 0x23F3, 3},
		{0x25FD, 0x25FE, 1}, {0x2614, 0x2615, 1}, {0x2630, 0x2637, 1}, {0x2648, 0x2653, 1}, {0x267F, 0x267F, 1},
		{0x268A, 0x268F, 1}, {0x2693, 0x26A1, 14}, {0x26AA, 0x26AB, 1}, {0x26BD, 0x26BE, 1}, {0x26C4, 0x26C5, 1},
		{0x26CE, 0x26D4, 6}, {0x26EA, 0x26EA, 1}, {0x26F2, 0x26F3, 1}, {0x26F5, 0x26FA, 5}, {0x26FD, 0x26FD, 1},
		{0x2705, 0x2705, 1}, {0x270A, 0x270B, 1}, {0x2728, 0x2728, 1}, {0x274C, 0x274E, 2}, {0x2753, 0x2755, 1},
		{0x2757, 0x2757, 1}, {0x2795, 0x2797, 1}, {0x27B0, 0x27BF, 15}, {0x2B1B, 0x2B1C, 1}, {0x2B50, 0x2B55, 5},
		{0x2E80, 0x303E, 1}, {0x3040, 0x3247, 1}, {0x3250, 0xA4CF, 1}, {0xA960, 0xA97F, 1}, {0xAC00, 0xD7A3, 1},
		{0xF900, 0xFAFF, 1}, {0xFE10, 0xFE19, 1}, {0xFE30, 0xFE6F, 1}, {0xFF01, 0xFF60, 1}, {0xFFE0, 0xFFE6, 1},
	},
	R32: []unicode.Range32{
		{0x16FE0, 0x18DFF, 1}, {0x1AFF0, 0x1B2FF, 1}, {0x1D300, 0x1D376, 1}, {0x1F004, 0x1F004, 1}, {0x1F0CF, 0x1F0CF, 1},
		{0x1F18E, 0x1F18E, 1}, {0x1F191, 0x1F19A, 1}, {0x1F200, 0x1F64F, 1}, {0x1F680, 0x1F6FF, 1}, {0x1F7E0, 0x1F7FF, 1},
		{0x1F900, 0x1FAFF, 1}, {0x20000, 0x3FFFD, 1},
	},
}
