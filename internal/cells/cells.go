// Package cells counts how much room text takes in the cells of a terminal or of a font whose letters have one width, and
// makes it harmless to show.
//
// Text of models and tools is hostile until then: an escape sequence drives a terminal, an override of the writing direction
// makes a row read as something else.
package cells

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// OneLine returns s on one line, in at most that many cells of a terminal; "…" ends it where it was cut. White space is one
// space; a control character is shown by its picture, and what has no picture by U+FFFD. No cluster is cut in two.
func OneLine(s string, cells int) string {
	var out strings.Builder
	used, fit := 0, 0 // fit: how much of out leaves a cell for the ellipsis
	gap := ""
	for s != "" {
		text, width, size := Cluster(s)
		s = s[size:]
		if text == " " {
			if out.Len() > 0 {
				gap = " "
			}
			continue
		}
		width += len(gap)
		if used+width > cells {
			return out.String()[:fit] + "…"
		}
		out.WriteString(gap)
		out.WriteString(text)
		used, gap = used+width, ""
		if used < cells {
			fit = out.Len()
		}
	}
	return out.String()
}

// Of is how many cells a line takes.
func Of(s string) int {
	used := 0
	for s != "" {
		_, width, size := Cluster(s)
		used, s = used+width, s[size:]
	}
	return used
}

// Signs that hold a cluster together.
const (
	joiner    = '\u200d' // between emoji
	nonJoiner = '\u200c'
	emojiSign = '\ufe0f' // what stands before it is drawn as an emoji
)

// maxMarks is how many marks of one cluster are kept. No script needs more; text that piles them up is left without the rest.
const maxMarks = 8

// Cluster returns the first cluster of s as it is shown, its width in cells, and its size in s. A cluster is a character with
// the marks, modifiers and joined emoji that belong to it, or a pair of regional indicators.
func Cluster(s string) (text string, width, size int) {
	r, size := utf8.DecodeRuneInString(s)
	if r >= ' ' && r < 0x7f && (size == len(s) || s[size] < utf8.RuneSelf) {
		return s[:size], 1, size
	}
	if unicode.IsSpace(r) {
		return " ", 1, size
	}
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Mc) {
		text, width = "\u25cc", 1 // a mark that stands alone gets a circle to stand on
		size = 0
	} else {
		r = Visible(r)
		text, width = string(r), runeCells(r)
	}
	for marks := 0; size < len(s); marks++ {
		next, n := utf8.DecodeRuneInString(s[size:])
		more := s[size : size+n]
		switch {
		case next == joiner && marks < maxMarks:
			joined, m := utf8.DecodeRuneInString(s[size+n:])
			if !unicode.IsPrint(joined) || joined == ' ' {
				return text, width, size + n
			}
			more, n, width = s[size:size+n+m], n+m, width+runeCells(joined)
		case next == emojiSign:
			width = max(width, 2)
		case unicode.In(next, unicode.Mc):
			width++
		case regional(r) && regional(next) && marks == 0:
			return text + more, 2, size + n
		case skin(next) && marks < maxMarks:
			width += 2
		case next != nonJoiner && !unicode.In(next, unicode.Mn, unicode.Me) && !jamo(next):
			return text, width, size
		}
		size += n
		if marks < maxMarks {
			text += more
		} else if unicode.In(next, unicode.Mc) {
			width--
		}
	}
	return text, width, size
}

// Visible returns what is shown for r.
func Visible(r rune) rune {
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

func regional(r rune) bool { return r >= 0x1F1E6 && r <= 0x1F1FF }

func skin(r rune) bool { return r >= 0x1F3FB && r <= 0x1F3FF }

// jamo reports whether r is a vowel or a final consonant that joins the Hangul syllable before it.
func jamo(r rune) bool { return r >= 0x1160 && r <= 0x11FF || r >= 0xD7B0 && r <= 0xD7FB }

func runeCells(r rune) int {
	if r >= 0x1100 && unicode.Is(wide, r) {
		return 2
	}
	return 1
}

// wide is what takes two cells: the characters whose East Asian Width is W or F. Blocks that are wide but for a few characters
// are listed whole, so that a row may come out shorter than it could be and never longer.
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
