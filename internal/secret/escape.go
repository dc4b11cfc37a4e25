package secret

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// escapes lists the ways in which a secret may be escaped.
var escapes = []escape{{`\`, jsonEscape}, {"%", urlEscape}, {"\r\n", lineBreak}}

// escape is one way to escape characters.
type escape struct {
	marks string // each escaped character begins with one of these bytes
	// first returns the character escaped at the beginning of a text, and the length of its escaped form. For an invalid
	// one it returns the mark and 1.
	first func(text string) (plain string, length int)
}

// decode returns the text without escapes and, for each byte of it, the span in text.
func (e escape) decode(text string) (decoded string, spans []span) {
	if !strings.ContainsAny(text, e.marks) {
		return text, nil
	}

	var b strings.Builder
	for i := 0; i < len(text); {
		plain, length := text[i:i+1], 1
		if strings.IndexByte(e.marks, text[i]) >= 0 {
			plain, length = e.first(text[i:])
		}

		// The bytes of one character have one span: a secret has whole characters.
		for range len(plain) {
			spans = append(spans, span{i, i + length})
		}
		b.WriteString(plain)
		i += length
	}
	return b.String(), spans
}

// jsonEscape decodes the escape of a string in JSON at the beginning of text.
func jsonEscape(text string) (plain string, length int) {
	if len(text) > 1 {
		if i := strings.IndexByte(`"\/bfnrt`, text[1]); i >= 0 {
			return "\"\\/\b\f\n\r\t"[i : i+1], 2
		}
	}

	r := jsonUnit(text)
	if r < 0 {
		return text[:1], 1
	}

	// A character beyond 16 bits is a pair of escapes.
	if utf16.IsSurrogate(r) {
		if pair := utf16.DecodeRune(r, jsonUnit(text[6:])); pair != utf8.RuneError {
			return string(pair), 12
		}
	}
	return string(r), 6
}

// jsonUnit returns the value of the \uXXXX at the beginning of text, or -1 if there is none.
func jsonUnit(text string) rune {
	if len(text) < 6 || text[:2] != `\u` {
		return -1
	}
	unit, err := strconv.ParseUint(text[2:6], 16, 16)
	if err != nil {
		return -1
	}
	return rune(unit)
}

// urlEscape decodes the %XX at the beginning of text.
func urlEscape(text string) (plain string, length int) {
	if len(text) < 3 {
		return text[:1], 1
	}
	b, err := strconv.ParseUint(text[1:3], 16, 8)
	if err != nil {
		return text[:1], 1
	}
	return string([]byte{byte(b)}), 3
}

// lineBreak removes a line break and the indentation after it: a long key may be wrapped.
func lineBreak(text string) (plain string, length int) {
	return "", len(text) - len(strings.TrimLeft(text, "\r\n \t"))
}
