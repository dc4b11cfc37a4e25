// Package safetext makes the text of models, tools and files harmless to show, and cuts it. All of Plait uses it: the
// same text looks the same in the log, in a drawing and in an error.
//
// Such text is hostile: an escape sequence controls a terminal, an override of the writing direction changes how a row
// reads, a line break forges a row.
//
// # What is shown
//
// A cluster is one character to a reader: a character with its marks, modifiers and joined emoji, a flag, a Hangul
// syllable. These rules hold for [Line], [Row], [Block] and [Clip]:
//
//   - A printable character is kept (unicode.IsPrint).
//   - A control character below U+0020, and U+007F, becomes its picture, such as ␛.
//   - Every other space becomes a plain space.
//   - Everything else becomes U+FFFD: other control characters, writing directions, invisible and private characters,
//     tags, unassigned code points, each byte of invalid UTF-8.
//   - At most eight marks of a cluster are kept. A mark without a character is shown on ◌.
//   - A joiner is kept inside a cluster and dropped at its end. The tags of the flags of England, Scotland and Wales
//     are kept.
//
// Error texts and notes must be exact. For them, [Escape] and [Quote] drop and replace nothing: they write the
// characters named above as escapes of a Go string.
//
// # Where text is cut
//
// Text is cut between two clusters:
//
//   - [Line] and [Clip] are limited to the size of a row or a box. They mark a cut with "…".
//   - [Escape], [Quote] and [Cut] are limited to a number of bytes. They mark a cut with "… (N bytes)", N being the
//     size of the whole.
//
// Every function takes time linear in the input it reads. Functions with a limit read little more than they return.
package safetext

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const ellipsis = "…"

// UTF8 returns s in the form for storing: each byte of invalid UTF-8 is replaced by U+FFFD.
func UTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// Name returns the form of a name that is compared with others. Names have the same form if they differ by letter case,
// separators, full width, marks or invisible characters alone.
func Name(s string) string {
	const fullwidth, ascii, size = 0xFF01, 0x21, 94
	return strings.Map(func(r rune) rune {
		if r >= fullwidth && r < fullwidth+size {
			r += ascii - fullwidth
		}
		switch {
		case r == ' ' || unicode.IsSpace(r) || unicode.IsPunct(r):
			return '_'
		case !unicode.IsPrint(r) || isMark(r):
			return -1
		}
		// By way of the upper case, because ſ and the sign of Kelvin have no lower case of their own.
		return unicode.ToLower(unicode.ToUpper(r))
	}, s)
}

// Line returns s on one line of at most width terminal cells, including the "…" of a cut. A run of white space and line
// breaks becomes one space, and is left out at both ends.
func Line(s string, width int) string {
	if len(s) <= width && isTidy(s) {
		return s
	}

	var out strings.Builder
	used, fit := 0, 0 // fit: how much of out leaves a cell for the ellipsis
	gap := ""
	for s != "" {
		if n := spaceSize(s); n > 0 {
			if s = s[n:]; used > 0 {
				gap = " "
			}
			continue
		}

		// A gap is written only before a cluster, and only if the cluster still fits.
		text, cells, size := Cluster(s)
		s = s[size:]
		cells += len(gap)
		if used+cells > width {
			return out.String()[:fit] + ellipsis
		}

		out.WriteString(gap)
		out.WriteString(text)
		used, gap = used+cells, ""
		if used < width {
			fit = out.Len()
		}
	}
	return out.String()
}

// Row returns s on one line with every character at its position: spaces are kept, and line breaks and tabs become
// pictures.
func Row(s string) string {
	if isPlain(s) {
		return s
	}

	var out strings.Builder
	for s != "" {
		text, _, size := Cluster(s)
		out.WriteString(text)
		s = s[size:]
	}
	return out.String()
}

// Block returns s with its lines, spaces and tabs. Every kind of line break becomes "\n".
func Block(s string) string {
	var out strings.Builder
	for s != "" {
		// Most text is plain: write it a run at a time.
		if n := plainSize(s); n > 0 {
			out.WriteString(s[:n])
			s = s[n:]
			continue
		}

		if n := breakSize(s); n > 0 {
			out.WriteByte('\n')
			s = s[n:]
			continue
		}
		if s[0] == '\t' {
			out.WriteByte('\t')
			s = s[1:]
			continue
		}

		text, _, size := Cluster(s)
		out.WriteString(text)
		s = s[size:]
	}
	return out.String()
}

// Clip returns the beginning of s: at most so many lines, with at most so many clusters in total. Blank lines and
// spaces at the ends of lines are left out, and a tab becomes two spaces.
func Clip(s string, lines, clusters int) string {
	if len(s) <= clusters && lines > 0 && isPlain(s) {
		return strings.TrimRight(s, " ")
	}

	var out strings.Builder
	inLine := false
	gap := 0 // pending spaces: written only if something follows them on the line
	for s != "" {
		if n := breakSize(s); n > 0 {
			inLine, gap, s = false, 0, s[n:]
			continue
		}
		if n := spaceSize(s); n > 0 {
			if gap++; s[0] == '\t' {
				gap++
			}
			s = s[n:]
			continue
		}

		// Spaces at the end of a line cost nothing, and those before a cluster count with it.
		if clusters <= gap || lines <= 0 && !inLine {
			return out.String() + ellipsis
		}
		if !inLine {
			if inLine = true; out.Len() > 0 {
				out.WriteByte('\n')
			}
			lines--
		}

		for ; gap > 0; gap-- {
			out.WriteByte(' ')
			clusters--
		}

		text, _, size := Cluster(s)
		out.WriteString(text)
		clusters, s = clusters-1, s[size:]
	}
	return out.String()
}

// Escape returns the first limit bytes of s on one line, for an error text. An unsafe character becomes an escape of a
// Go string, such as \n, \u202e or \xff. Spaces, quotes and backslashes are kept: escaping twice changes nothing more.
func Escape(s string, limit int) string {
	head := Head(s, limit)
	return escape(head, false) + rest(head, s)
}

// Quote returns the first limit bytes of s as a Go string in double quotes. The mark of a cut follows the closing
// quote.
func Quote(s string, limit int) string {
	head := Head(s, limit)
	return `"` + escape(head, true) + `"` + rest(head, s)
}

// Cut returns s, or its first limit bytes and the mark of a cut. It escapes nothing.
func Cut(s string, limit int) string {
	head := Head(s, limit)
	return head + rest(head, s)
}

// rest returns the mark of a cut after the head of s, or "" if head is all of s.
func rest(head, s string) string {
	if len(head) == len(s) {
		return ""
	}
	return ellipsis + " (" + strconv.Itoa(len(s)) + " bytes)"
}

// Around returns about limit bytes of s around a byte offset, with "…" at each cut end. It cuts between runes and
// escapes nothing.
func Around(s string, offset, limit int) string {
	if len(s) <= limit {
		return s
	}

	// Start a little before the offset, for context.
	from := max(0, min(offset-limit/4, len(s)-limit))
	to := from + limit
	for from > 0 && !utf8.RuneStart(s[from]) {
		from--
	}
	for to < len(s) && !utf8.RuneStart(s[to]) {
		to--
	}

	part := s[from:to]
	if from > 0 {
		part = ellipsis + part
	}
	if to < len(s) {
		part += ellipsis
	}
	return part
}

// Head returns the whole clusters in the first limit bytes of s, without a mark. A first cluster longer than limit is
// cut between two runes. Head escapes nothing.
func Head(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	limit = max(limit, 0)

	// Look far enough beyond the limit to see whether the last cluster ends there. The longest sequence to see whole is
	// a flag.
	window := s[:min(len(s), limit+len(flags[0]))]
	end := 0
	for {
		_, _, size := Cluster(window[end:])
		if end+size > limit {
			break
		}
		end += size
	}

	// The first cluster alone is too long: cut it between two runes.
	if end == 0 {
		for end = limit; end > 0 && !utf8.RuneStart(s[end]); {
			end--
		}
	}
	return s[:end]
}

func escape(s string, quotes bool) string {
	var out strings.Builder
	var buf []byte
	for s != "" {
		text, _, size := Cluster(s)
		if text == s[:size] {
			if quotes && (text == `"` || text == `\`) {
				out.WriteByte('\\')
			}
			out.WriteString(text)
			s = s[size:]
			continue
		}

		// If a cluster has to change, only its first character is kept; the others are escaped.
		for i := 0; i < size; {
			r, n := utf8.DecodeRuneInString(s[i:])
			switch {
			case r == utf8.RuneError && n == 1:
				buf = append(buf[:0], `\x`...)
				buf = append(buf, "0123456789abcdef"[s[i]>>4], "0123456789abcdef"[s[i]&15])
			case i == 0 && unicode.IsPrint(r) && !isMark(r):
				buf = append(buf[:0], s[:n]...)
			default:
				buf = strconv.AppendQuoteRuneToASCII(buf[:0], r)
				buf = buf[1 : len(buf)-1]
			}
			out.Write(buf)
			i += n
		}
		s = s[size:]
	}
	return out.String()
}

// isPlain reports whether s is printable ASCII. The rules leave such text unchanged.
func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// isTidy reports whether s is plain, without a space at its ends and without two in a row.
func isTidy(s string) bool {
	return isPlain(s) && !strings.Contains(s, "  ") && !strings.HasPrefix(s, " ") && !strings.HasSuffix(s, " ")
}

// plainSize returns the size of the plain beginning of s. The last character is excluded if the next one may be its
// mark.
func plainSize(s string) int {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return max(i-1, 0)
		}
		if s[i] < ' ' || s[i] > '~' {
			return i
		}
	}
	return len(s)
}

// spaceSize returns the size of the white space at the beginning of s, or 0.
func spaceSize(s string) int {
	if r, size := utf8.DecodeRuneInString(s); unicode.IsSpace(r) {
		return size
	}
	return 0
}

// breakSize returns the size of the line break at the beginning of s, or 0.
func breakSize(s string) int {
	if strings.HasPrefix(s, "\r\n") {
		return 2
	}
	switch r, size := utf8.DecodeRuneInString(s); r {
	case '\n', '\v', '\f', '\r', '\u0085', '\u2028', '\u2029':
		return size
	}
	return 0
}
