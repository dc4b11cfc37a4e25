package dag

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ErrLimit marks a file with a part larger than the size limit, or nested deeper than Plait's own files.
var ErrLimit = errors.New("over a size limit")

// maxNesting is the maximum nesting of a value in a file. Plait writes a value that is nested deeper as a string.
const maxNesting = 512

// scanner splits a stream of JSON into values, and holds only one of them in memory. It finds the end of a value
// without checking that the value is valid.
type scanner struct {
	r        io.Reader
	limit    int // maximum size of one value, in bytes
	buf      []byte
	pos, end int   // buf[pos:end] was read and is not taken yet
	offset   int64 // offset of buf[pos] in the stream
	line     int   // line of buf[pos], from 1
	err      error // the last error of r
}

func newScanner(r io.Reader, limit int) *scanner {
	return &scanner{r: r, limit: limit, buf: make([]byte, min(4<<10, limit+1)), line: 1}
}

// large is the size of a large buffer, and the most that is read at once, in bytes.
const large = 256 << 10

// fill reads more. It overwrites the bytes returned before.
func (s *scanner) fill() error {
	if s.err != nil {
		return s.err
	}
	if s.end == len(s.buf) {
		s.makeRoom()
	}

	// Read in moderate pieces: they are still in the processor's cache when they are scanned.
	room := s.buf[s.end:min(len(s.buf), s.end+large)]
	for range 100 { // an io.Reader may return no bytes and no error, but not for ever
		n, err := s.r.Read(room)
		s.end += n

		// A Reader may return bytes together with an error: keep the error for the next call.
		s.err = err
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}

	s.err = io.ErrNoProgress
	return s.err
}

// makeRoom moves the rest of the buffer to its beginning or doubles the buffer: small for small files, large for large
// ones.
func (s *scanner) makeRoom() {
	to := s.buf
	if s.pos == 0 || len(s.buf) < large {
		// Nothing can be dropped, or the buffer is still small: double it, up to one byte more than the limit.
		to = make([]byte, min(2*len(s.buf), max(s.limit+1, len(s.buf)+1)))
	}
	s.end = copy(to, s.buf[s.pos:s.end])
	s.buf, s.pos = to, 0
}

// take returns the next n bytes of the buffer.
func (s *scanner) take(n int) []byte {
	b := s.buf[s.pos : s.pos+n]
	s.pos += n
	s.offset += int64(n)
	s.line += bytes.Count(b, []byte{'\n'})
	return b
}

// peek returns the next byte that is not space, without taking it, or io.ErrUnexpectedEOF.
func (s *scanner) peek() (byte, error) {
	for {
		b := s.buf[s.pos:s.end]
		rest := bytes.TrimLeft(b, " \t\r\n")
		s.take(len(b) - len(rest))
		if len(rest) > 0 {
			return rest[0], nil
		}
		if err := s.fill(); err != nil {
			return 0, early(err)
		}
	}
}

func early(err error) error {
	if err == io.EOF {
		return fmt.Errorf("%w: it ends early: %w", ErrFormat, io.ErrUnexpectedEOF)
	}
	return err
}

// expect takes and returns the next byte that is not space. It returns an error if the byte is not in want.
func (s *scanner) expect(want string) (byte, error) {
	c, err := s.peek()
	if err != nil {
		return 0, err
	}
	if strings.IndexByte(want, c) < 0 {
		return 0, fmt.Errorf("%w: %q where one of %q was expected", ErrFormat, c, want)
	}
	s.take(1)
	return c, nil
}

// value returns the next value. It is valid until the next call.
func (s *scanner) value() ([]byte, error) {
	if _, err := s.peek(); err != nil {
		return nil, err
	}

	// After fill, the scan continues where it stopped: no byte is scanned twice.
	var state valueState
	for {
		n, ended, err := state.scan(s.buf[s.pos:s.end])
		switch {
		case err != nil:
			return nil, err
		case n > s.limit:
			return nil, fmt.Errorf("%w: a value of more than %d bytes", ErrLimit, s.limit)
		case ended:
			return s.take(n), nil
		}

		if err := s.fill(); err != nil {
			return nil, early(err)
		}
	}
}

// valueState is the state of a scan through a value.
type valueState struct {
	at     int // offset in the value
	depth  int // of arrays and objects
	quoted bool
}

// scan continues in b, which begins with the value. It returns the offset it has reached, and whether the value ends
// there.
func (v *valueState) scan(b []byte) (n int, ended bool, err error) {
	for v.at < len(b) {
		// Inside a string, only its end matters.
		if v.quoted {
			if v.skipString(b); !v.quoted && v.depth == 0 {
				return v.at, true, nil
			}
			continue
		}

		// A number or a word ends before the next mark, a list or an object at its last bracket.
		switch b[v.at] {
		case '"':
			v.quoted = true
		case '{', '[':
			if v.depth++; v.depth > maxNesting {
				return v.at, false, fmt.Errorf("%w: it nests deeper than %d", ErrLimit, maxNesting)
			}
		case '}', ']':
			if v.depth--; v.depth == 0 {
				return v.at + 1, true, nil
			}

			// The bracket ends the list or object around the value.
			if v.depth < 0 {
				return v.at, true, nil
			}
		case ',', ':', ' ', '\t', '\r', '\n':
			if v.depth == 0 {
				return v.at, true, nil
			}
		}
		v.at++
	}
	return v.at, false, nil
}

// skipString advances past the end of a string, or to the end of b. A quote ends the string if an even number of
// backslashes precedes it.
func (v *valueState) skipString(b []byte) {
	quote := bytes.IndexByte(b[v.at:], '"')
	if quote < 0 {
		v.at = len(b)
		return
	}
	end := v.at + quote
	v.at, v.quoted = end+1, false

	// Each backslash before the quote inverts whether the quote is escaped.
	for ; end > 0 && b[end-1] == '\\'; end-- {
		v.quoted = !v.quoted
	}
}

// text returns the next line, without its line break. complete is false for a last line without one. The line is valid
// until the next call. It returns io.EOF if there are no more lines.
func (s *scanner) text() (line []byte, complete bool, err error) {
	for at := 0; ; {
		b := s.buf[s.pos:s.end]
		i := bytes.IndexByte(b[at:], '\n')
		size := len(b) // of the line, as far as it is known
		if i >= 0 {
			size = at + i
		}

		if size > s.limit {
			return nil, false, fmt.Errorf("%w: a line of more than %d bytes", ErrLimit, s.limit)
		}
		if i >= 0 {
			return bytes.TrimSuffix(s.take(size+1), []byte{'\n'}), true, nil
		}

		// The line does not end here: search only the bytes that come next.
		at = size
		if err := s.fill(); err == io.EOF && at > 0 {
			return s.take(at), false, nil
		} else if err != nil {
			return nil, false, err
		}
	}
}
