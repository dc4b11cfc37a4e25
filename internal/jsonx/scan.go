package jsonx

import (
	"iter"
	"strings"

	"github.com/plait-dev/plait/content"
)

// scanMembers returns the members of s. The text must be a valid object, because only the ends of names and values are
// looked for.
func scanMembers(s string) []Member {
	var list []Member
	i := afterSpace(s, 0) + 1 // after the brace
	for i = afterSpace(s, i); s[i] != '}'; i = afterSpace(s, i) {
		if s[i] == ',' {
			i++
			continue
		}

		end := afterString(s, i)
		m := Member{Name: s[i+1 : end-1]}
		if strings.IndexByte(m.Name, '\\') >= 0 {
			m.Name, _ = Text(content.JSON(s[i:end])) // a valid string
		}

		begin := afterSpace(s, afterSpace(s, end)+1) // after the colon
		i = afterValue(s, begin)
		m.Value = content.JSON(s[begin:i])
		list = append(list, m)
	}
	return list
}

// scanItems yields the items of s. The text must be a valid array.
func scanItems(s string) iter.Seq[content.JSON] {
	return func(yield func(content.JSON) bool) {
		i := afterSpace(s, 0) + 1 // after the bracket
		for i = afterSpace(s, i); s[i] != ']'; i = afterSpace(s, i) {
			if s[i] == ',' {
				i++
				continue
			}

			begin := i
			i = afterValue(s, begin)
			if !yield(content.JSON(s[begin:i])) {
				return
			}
		}
	}
}

// afterSpace returns the index of the first byte from i on other than white space.
func afterSpace(s string, i int) int {
	for s[i] == ' ' || s[i] == '\t' || s[i] == '\n' || s[i] == '\r' {
		i++
	}
	return i
}

// afterString returns the index after the string at i.
func afterString(s string, i int) int {
	for i++; ; i++ {
		i += strings.IndexAny(s[i:], `"\`)
		if s[i] == '"' {
			return i + 1
		}
		i++ // the escaped byte
	}
}

// afterValue returns the index after the value at i.
func afterValue(s string, i int) int {
	for depth := 0; ; {
		switch s[i] {
		case '"':
			i = afterString(s, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ' ', '\t', '\n', '\r', ',', ':':
			i++
			continue // inside brackets
		default: // a number, true, false or null
			i += strings.IndexAny(s[i:], " \t\n\r,}]")
		}

		if depth == 0 {
			return i
		}
	}
}
