// Package plain reads JSON in exactly the form of package write: the members in their order, without spaces, strings
// with the fewest escapes. It is a fast way to read Plait's own files. A caller reads any other form with a JSON
// decoder.
//
// Values from a [Reader] can be written again, byte for byte. So the text need not be kept beside the values.
package plain

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/plait-dev/plait/internal/jsonx/write"
)

// Reader reads a text from its beginning to its end. After the first mismatch the text is at its end, Failed reports
// true, and the values have no meaning.
type Reader struct {
	text   []byte
	at     int // index of the next byte
	failed bool
}

// Read returns a reader of text. The values do not refer to text.
func Read(text []byte) Reader {
	r := Reader{text: text}
	r.FailIf(!printable(text))
	return r
}

// Text returns text as a string with the same memory. The memory must not be changed any more.
func Text(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }

// printable reports whether text is UTF-8 without control characters. Strings need no further check.
func printable(text []byte) bool {
	const spaces, highBits = 0x2020202020202020, 0x8080808080808080
	rest := text
	for ; len(rest) >= 8; rest = rest[8:] {
		// The high bit of each byte below a space is set by the subtraction, but was not set before.
		if word := binary.LittleEndian.Uint64(rest); (word-spaces)&^word&highBits != 0 {
			return false
		}
	}

	for _, c := range rest {
		if c < ' ' {
			return false
		}
	}
	return utf8.Valid(text)
}

// Failed reports whether the text was not in the expected form.
func (r *Reader) Failed() bool { return r.failed }

// FailIf records a mismatch if one was found.
func (r *Reader) FailIf(found bool) {
	if found {
		r.fail()
	}
}

func (r *Reader) fail() { r.failed, r.at = true, len(r.text) }

// Done reports whether the whole text was read without a mismatch.
func (r *Reader) Done() bool { return !r.failed && r.at == len(r.text) }

// Has reads the given text if it comes next, and reports whether it does.
func (r *Reader) Has(text string) bool {
	if rest := r.text[r.at:]; len(rest) < len(text) || string(rest[:len(text)]) != text {
		return false
	}
	r.at += len(text)
	return true
}

// Expect reads the given text. Anything else is a mismatch.
func (r *Reader) Expect(text string) {
	if !r.Has(text) {
		r.fail()
	}
}

// Member reads the name of a member, with the comma before it and the colon after it, if it comes next. It reports
// whether it does.
func (r *Reader) Member(name string) bool {
	// The first member of an object has no comma before it.
	at := r.at
	if at > 0 && r.text[at-1] != '{' {
		if at == len(r.text) || r.text[at] != ',' {
			return false
		}
		at++
	}

	end := at + len(name) + 3 // with two quotes and a colon
	if end > len(r.text) || r.text[at] != '"' || string(r.text[at+1:end-2]) != name || r.text[end-2] != '"' || r.text[end-1] != ':' {
		return false
	}
	r.at = end
	return true
}

// Item reads up to the next item of an array, and reports whether there is one. After the last one it reads the
// bracket.
func (r *Reader) Item() bool {
	switch {
	case r.failed || r.Has("]"):
		return false
	case r.text[r.at-1] == '[':
		return true
	case r.Has(","):
		return true
	}
	r.fail()
	return false
}

// String reads a string.
func (r *Reader) String() string {
	r.Expect(`"`)
	begin, escapes := r.at, 0 // escapes counts the bytes that disappear when escapes are resolved
	rest := r.text[begin:]
	quote := bytes.IndexByte(rest, '"')
	for i := 0; ; {
		if quote < 0 {
			r.fail()
			return ""
		}
		// Search from mark to mark: most strings are long and have no escapes.
		backslash := bytes.IndexByte(rest[i:quote], '\\')
		if backslash < 0 {
			break
		}

		i += backslash
		size := escapeSize(rest[i:])
		if size == 0 {
			r.fail()
			return ""
		}
		escapes += size - 1
		if i += size; i > quote { // the quote was escaped
			quote = bytes.IndexByte(rest[i:], '"')
			if quote >= 0 {
				quote += i
			}
		}
	}

	// Without an escape the bytes are the string.
	r.at = begin + quote + 1
	if escapes == 0 {
		return string(rest[:quote])
	}
	return unescaped(rest[:quote], quote-escapes)
}

// escapeSize returns the size of the escape at the beginning of s, or 0 if package write has no such escape.
func escapeSize(s []byte) int {
	if len(s) < 2 {
		return 0
	}
	switch s[1] {
	case '"', '\\', 'b', 'f', 'n', 'r', 't':
		return 2
	}

	// Other control characters have six bytes, with digits in lower case.
	if len(s) < 6 || string(s[1:4]) != "u00" || s[4] != '0' && s[4] != '1' {
		return 0
	}

	// A character with an escape of two bytes is never written with six.
	digit := bytes.IndexByte([]byte("0123456789abcdef"), s[5])
	if digit < 0 || s[4] == '0' && bytes.IndexByte([]byte("\b\f\n\r\t"), byte(digit)) >= 0 {
		return 0
	}
	return 6
}

// unescaped returns s with its escapes resolved. Size is the length of the result.
func unescaped(s []byte, size int) string {
	dst := make([]byte, 0, size)
	for {
		i := bytes.IndexByte(s, '\\')
		if i < 0 {
			dst = append(dst, s...)
			return Text(dst)
		}

		dst = append(dst, s[:i]...)
		switch c := s[i+1]; c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			// Only a control character has this form: \u00 and two digits.
			dst, _ = hex.AppendDecode(dst, s[i+4:i+6])
			i += 4
		default:
			dst = append(dst, c)
		}
		s = s[i+2:]
	}
}

// OptString reads an optional member with a string, in the form of write.OptString.
func (r *Reader) OptString(name string) string {
	if !r.Member(name) {
		return ""
	}
	s := r.String()
	r.FailIf(s == "")
	return s
}

// OptTrue reads an optional member: true, or absent for false.
func (r *Reader) OptTrue(name string) bool {
	if !r.Member(name) {
		return false
	}
	r.Expect("true")
	return true
}

// Int reads an integer.
func (r *Reader) Int() int64 {
	begin := r.at
	for r.at < len(r.text) && (r.text[r.at] == '-' || r.text[r.at] >= '0' && r.text[r.at] <= '9') {
		r.at++
	}

	// Accept only the form of package write: no leading zero, for example.
	digits := r.text[begin:r.at]
	n, err := strconv.ParseInt(string(digits), 10, 64)
	var again [20]byte
	r.FailIf(err != nil || !bytes.Equal(strconv.AppendInt(again[:0], n, 10), digits))
	return n
}

// OptInt reads an optional member with an integer: absent for 0.
func (r *Reader) OptInt(name string) int64 {
	if !r.Member(name) {
		return 0
	}
	n := r.Int()
	r.FailIf(n == 0)
	return n
}

// OptJSON reads a member in the form of write.JSON: a JSON value, or a string with text other than JSON.
func (r *Reader) OptJSON(name string) string {
	if r.Member(name) {
		return r.value()
	}
	if !r.Member(name + "_text") {
		return ""
	}
	s := r.String()
	r.FailIf(s == "" || write.Inline(s))
	return s
}

// value reads a JSON value.
func (r *Reader) value() string {
	size := valueSize(r.text[r.at:])
	s := string(r.text[r.at : r.at+size])
	r.at += size
	r.FailIf(!write.Inline(s))
	return s
}

// valueSize returns the size of the JSON value at the beginning of s. For anything else, the size has no meaning.
func valueSize(s []byte) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			// Brackets and commas inside a string mean nothing.
			for i++; i < len(s) && s[i] != '"'; i++ {
				if s[i] == '\\' {
					i++
				}
			}
			if depth == 0 {
				return min(i+1, len(s))
			}

		case '{', '[':
			depth++

		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
			if depth < 0 {
				return i
			}

		case ',', ' ':
			if depth == 0 {
				return i
			}
		}
	}
	return len(s)
}

// UUID reads a UUID.
func (r *Reader) UUID() (id [16]byte) {
	r.Expect(`"`)
	r.digits(id[:4])
	for _, part := range [][]byte{id[4:6], id[6:8], id[8:10], id[10:]} {
		r.Expect("-")
		r.digits(part)
	}
	r.Expect(`"`)
	return id
}

// Hash reads the lower-case hexadecimal digits of a hash.
func (r *Reader) Hash() (hash [32]byte) {
	r.digits(hash[:])
	return hash
}

// digits reads lower-case hexadecimal digits, two for each byte of dst.
func (r *Reader) digits(dst []byte) {
	end := r.at + 2*len(dst)
	if end > len(r.text) {
		r.fail()
		return
	}

	s, bad := r.text[r.at:end], byte(0)
	for i := range dst {
		high, low := digitValues[s[2*i]], digitValues[s[2*i+1]]
		dst[i], bad = high<<4|low, bad|high|low
	}
	r.at = end
	r.FailIf(bad >= 16)
}

// digitValues holds the value of each lower-case hexadecimal digit, and 16 for other bytes.
var digitValues = func() (values [256]byte) {
	for c := range values {
		values[c] = 16
	}
	for i, c := range []byte("0123456789abcdef") {
		values[c] = byte(i)
	}
	return values
}()

// OptTime reads an optional member with a time: absent for the zero time. The time is in UTC.
func (r *Reader) OptTime(name string) time.Time {
	if !r.Member(name) {
		return time.Time{}
	}

	end := r.at + 1
	for end < len(r.text) && r.text[end] != '"' {
		end++
	}
	if end >= len(r.text) {
		r.fail()
		return time.Time{}
	}

	// Accept only the form of package write: the time must be written back byte for byte.
	t, err := time.Parse(time.RFC3339Nano, string(r.text[r.at+1:end]))
	t = t.UTC()
	var again [40]byte
	same := bytes.Equal(write.Time(again[:0], t), r.text[r.at:end+1])
	r.at = end + 1
	r.FailIf(err != nil || t.IsZero() || !same)
	return t
}
