package viz

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The way of a text into a Mermaid label has three steps, always in this order: [plain] leaves only what can be shown,
// [clip] cuts it to the size of a box, [escape] writes it so that Mermaid shows it letter for letter and obeys none of it.
//
// Line breaks stay raw newlines and never become <br/>: one "<" sends Mermaid's whole label through an HTML sanitiser, whose
// output turns some of our escapes back into syntax.

// maxCluster is the number of runes kept together as one character. Unicode's stream-safe format allows a letter 30
// marks; a longer sequence of marks is cut like any other text.
const maxCluster = 32

// plain returns the first limit runes of s that can be shown: valid UTF-8 without control characters and invisible
// writing directions. Every kind of line break becomes "\n", and newlines around the text are removed. More reports
// whether s continues after the limit.
func plain(s string, limit int) (text string, more bool) {
	var b strings.Builder
	var prev rune
	n := 0

	put := func(r rune) {
		if r == 'ß' && prev == '¶' { // Mermaid uses "¶ß" itself, for the end of an escape
			b.WriteRune('\u200b') // Mermaid uses "¶ß" itself, for the end of an escape
		}
		if r == '\n' && n == 0 {
			return
		}
		b.WriteRune(r)
		prev = r
		n++
	}

	for i, r := range s {
		if n >= limit {
			more = true
			break
		}

		switch {
		// The second half of "\r\n".
		case r == '\n' && i > 0 && s[i-1] == '\r':
		case r == '\n', r == '\r', r == '\v', r == '\f', r == '\u0085', r == '\u2028', r == '\u2029':
			put('\n')
		case r == '\t':
			put(' ')
			put(' ')
		case r == '\x1b':
			put('␛')
		case r == 'ﬂ': // Mermaid uses "ﬂ°" itself, for the start of an escape
			put('f')
			put('l')
		case unicode.IsControl(r), invisible(r):
		// Noncharacters.
		case r&0xfffe == 0xfffe, r >= 0xfdd0 && r <= 0xfdef:
			put(utf8.RuneError)
		default:
			put(r)
		}
	}

	return strings.TrimRight(b.String(), "\n"), more
}

// invisible reports whether r only changes the direction of the text around it, or is a byte order mark.
func invisible(r rune) bool {
	return r == '\ufeff' || r == '\u061c' || r == '\u200e' || r == '\u200f' ||
		r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}

// clip returns s as plain text of at most the given lines and characters. A character is what a reader takes for one:
// a letter with its marks, a flag, a family of emoji. Blank lines are left out. A text that was cut ends in "…".
func clip(s string, lines, chars int) string {
	if len(s) <= chars && lines > 0 && isSimple(s) {
		return strings.TrimRight(s, " ")
	}

	// Keep the limit of runes below from overflowing. No text has more characters: plain makes two of one at most.
	chars, lines = min(chars, 2*len(s)), min(lines, 2*len(s))
	text, more := plain(s, chars*maxCluster+lines)

	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimRightFunc(line, unicode.IsSpace)
		if line == "" {
			continue
		}

		if lines == 0 || chars == 0 {
			more = true
			break
		}

		if b.Len() > 0 {
			b.WriteByte('\n')
		}

		end := 0
		for end < len(line) && chars > 0 {
			end += cluster(line[end:])
			chars--
		}
		b.WriteString(line[:end])
		lines--

		if end < len(line) {
			more = true
			break
		}
	}

	if more {
		return strings.TrimRightFunc(b.String(), unicode.IsSpace) + "…"
	}
	return b.String()
}

// isSimple reports whether s is one line of printable ASCII, the most common case: one character for each byte, and
// every one is shown.
func isSimple(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// cluster returns the length in bytes of the first character of s, which is not empty.
func cluster(s string) int {
	prev, end := utf8.DecodeRuneInString(s)
	flag := regional(prev)

	for n := 1; end < len(s) && n < maxCluster; n++ {
		r, size := utf8.DecodeRuneInString(s[end:])
		switch {
		case unicode.Is(unicode.M, r), r == '\u200c', r == '\u200d', prev == '\u200d':
		case r >= 0x1f3fb && r <= 0x1f3ff: // skin tones
		case r >= 0xe0020 && r <= 0xe007f: // tags, as in the flag of Scotland
		case r >= 0x1160 && r <= 0x11ff: // vowels and finals of a Hangul syllable
		case flag && n == 1 && regional(r):
		default:
			return end
		}
		prev, end = r, end+size
	}
	return end
}

func regional(r rune) bool { return r >= 0x1f1e6 && r <= 0x1f1ff }

// escape writes plain text as the inside of a quoted Mermaid label. Mermaid 10.9 to 12.3 shows exactly that text, at
// any security level: nothing in it can end the label, run, fetch, link, format or draw. The result holds no "<",
// "&", "`" or `"`, so it is also harmless in a Markdown fence and inside <pre>.
func escape(text string) string {
	if strings.TrimSpace(text) == "" {
		return " " // Mermaid refuses an empty label
	}

	var b strings.Builder
	b.Grow(len(text) + len(text)/4)

	var head lineHead
	prev := '\n'
	for rest := text; rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		rest = rest[size:]
		switch {
		case r == '<':
			b.WriteString("#lt;") // these three by name: hosts without HTML labels decode only names
		case r == '>':
			b.WriteString("#gt;")
		case r == '&':
			b.WriteString("#amp;")
		case r == ' ' && (blank(prev) || blank(first(rest))):
			b.WriteString("#160;") // Mermaid drops a plain space here
		case active(prev, r, rest, head):
			b.WriteByte('#')
			b.WriteString(strconv.Itoa(int(r)))
			b.WriteByte(';')
		default:
			b.WriteRune(r)
		}

		head = head.after(r)
		prev = r
	}

	return b.String()
}

// active reports whether Mermaid gives r a meaning of its own at this position.
func active(prev, r rune, rest string, head lineHead) bool {
	switch r {
	case '"', '#', ';', '`', '\\', '$', '*', '~', '[', ']', '{', '}', '|', '%', '@', '^':
		return true
	case '_':
		return !alphanumeric(prev) || !alphanumeric(first(rest))
	case ':': // "style …:…#…;" loses its last character unless a space follows that is not escaped
		return first(rest) != ' ' || blank(first(rest[1:]))
	case '-', '+', '=': // lists and underlines of Markdown
		return head == lineStart
	case ')': // numbered lists
		return head == lineDigits
	case '.': // numbered lists, and www.example.com
		return head == lineDigits || prev == 'w' || prev == 'W'
	case 'd': // "direction LR" is a statement even inside quotes
		return strings.HasPrefix(rest, "irection")
	}
	return false
}

// lineHead is the state of a line up to some rune, as far as Markdown is concerned.
type lineHead int

const (
	lineStart  lineHead = iota // nothing but spaces
	lineDigits                 // nothing but digits, after spaces
	lineBody                   // anything else
)

func (h lineHead) after(r rune) lineHead {
	switch {
	case r == '\n':
		return lineStart
	case h == lineStart && unicode.IsSpace(r): // a no-break space, too
		return lineStart
	case r >= '0' && r <= '9' && h != lineBody:
		return lineDigits
	}
	return lineBody
}

// first returns the first rune of s, or a newline if s is empty.
func first(s string) rune {
	if s == "" {
		return '\n'
	}
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

func blank(r rune) bool { return r == ' ' || r == '\n' }

func alphanumeric(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}
