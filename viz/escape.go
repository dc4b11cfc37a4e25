package viz

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A text becomes a Mermaid label in two steps, always in this order: [safetext.Clip] removes characters that cannot be
// shown, and cuts the text to the size of a box. [escape] writes the result for Mermaid, which then shows every
// character and interprets none.
//
// Line breaks stay raw newlines and never become <br/>: with one "<", Mermaid sends the whole label through an HTML
// sanitizer, and that turns some of our escapes back into syntax.

// escape writes plain text as the inside of a quoted Mermaid label. Mermaid 10.9 to 12.3 shows exactly that text, at
// any security level: nothing in it can end the label, run, fetch, link, format or draw. Mermaid uses two signs for its
// own escapes. They cannot be shown: "ﬂ" becomes "fl", and a zero width space goes between "¶" and "ß". The result
// holds no "<", "&", "`" or `"`, so it is also harmless in a Markdown fence and inside <pre>.
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
		case r == 'ﬂ': // Mermaid uses "ﬂ°" itself, for the start of an escape
			b.WriteString("fl")
			r = 'l'
		case r == 'ß' && prev == '¶': // and "¶ß" for its end
			b.WriteString("\u200bß")
		case r == ' ' && (blank(prev) || blank(first(rest))):
			b.WriteString("#160;") // Mermaid drops a plain space here
		case active(prev, r, rest, head):
			b.WriteByte('#')
			b.WriteString(strconv.Itoa(int(r)))
			b.WriteByte(';')
		default:
			b.WriteRune(r)
		}

		// Some signs are active only at the beginning of a line, or after certain others.
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
	case ':': // "style …:…#…;" loses its last character unless an unescaped space follows
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

// lineHead is the state of a line for Markdown, up to some rune.
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
