package safetext

import (
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// armorMark begins an escape of Armor: it is followed by a byte as two hexadecimal digits.
const armorMark = '\x1a'

// Armor returns s in a form safe for every database and every JSON decoder: valid UTF-8 without NUL. Unarmor returns s
// again. Almost every s is its own form. Different texts have different forms.
func Armor(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 && strings.IndexByte(s, armorMark) < 0 {
		return s
	}

	// The mark itself is escaped too. So each mark in the result begins an escape, and Unarmor returns s exactly.
	var to strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && size == 1 || r == 0 || r == armorMark {
			to.WriteByte(armorMark)
			to.WriteString(hex.EncodeToString([]byte{s[0]}))
		} else {
			to.WriteString(s[:size])
		}
		s = s[size:]
	}
	return to.String()
}

// Unarmor returns the original of a text from Armor. In any other text, invalid escapes are kept as they are.
func Unarmor(s string) string {
	if strings.IndexByte(s, armorMark) < 0 {
		return s
	}

	var to strings.Builder
	for {
		before, after, found := strings.Cut(s, string(armorMark))
		to.WriteString(before)
		if !found {
			return to.String()
		}

		var b []byte
		if len(after) >= 2 {
			b, _ = hex.DecodeString(after[:2])
		}

		// No escape: the mark stays as it is.
		if len(b) != 1 {
			to.WriteByte(armorMark)
			s = after
			continue
		}

		to.WriteByte(b[0])
		s = after[2:]
	}
}
