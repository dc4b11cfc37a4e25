package safetext

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The signs around a text that takes its direction from its own letters. No other direction sign is ever shown.
const (
	isolate    = "\u2068"
	isolateEnd = "\u2069"
)

// FromRight reports whether a line of text reads from right to left: the first of its letters with a direction decides.
// A line without letters, such as a number, reads from left to right.
func FromRight(line string) bool {
	for _, r := range line {
		if isFromRight(r) {
			return true
		}
		if unicode.IsLetter(r) {
			return false
		}
	}
	return false
}

// HasFromRight reports whether a text has a letter that reads from right to left.
func HasFromRight(text string) bool { return strings.ContainsFunc(text, isFromRight) }

// Isolate returns a text for a row with other texts. If it has letters that read from right to left, U+2068 and U+2069
// enclose it: programs that reorder such letters then leave the rest of the row where it is. It must be one line.
func Isolate(text string) string {
	if !HasFromRight(text) {
		return text
	}
	return isolate + text + isolateEnd
}

// isFromRight reports whether r is a letter of a script that is written from right to left. Unicode reserves blocks for
// these scripts.
func isFromRight(r rune) bool {
	switch {
	case r < 0x590 || r == utf8.RuneError:
		return false
	case r <= 0x8FF, r >= 0xFB1D && r <= 0xFDFF, r >= 0xFE70 && r <= 0xFEFC, r >= 0x10800 && r <= 0x10FFF, r >= 0x1E800 && r <= 0x1EFFF:
		return unicode.IsLetter(r)
	}
	return false
}
