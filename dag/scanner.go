package dag

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ErrLimit is in the chain of an error about a file that would take more memory to read than the limit allows, or that nests
// deeper than anything Plait writes.
var ErrLimit = errors.New("beyond a limit of what is read")

// maxNesting is how deep a value in a file may nest. Plait writes what nests deeper as a string.
const maxNesting = 512

// scanner cuts a stream of JSON into its values, and holds no more of it than one. It only finds where a value ends; whether
// the value is valid is for its decoder to say.
type scanner struct {
	r        io.Reader
	limit    int // the most bytes of one value
	buf      []byte
	pos, end int   // buf[pos:end] was read and is not taken yet
	offset   int64 // of buf[pos] in the stream
	line     int   // of buf[pos], from 1
	err      error // what r returned last
}

func newScanner(r io.Reader, limit int) *scanner {
	return &scanner{r: r, limit: limit, buf: make([]byte, min(4<<10, limit+1)), line: 1}
}

// fill reads more. What was returned before is overwritten.
func (s *scanner) fill() error {
	if s.err != nil {
		return s.err
	}
	if s.end == len(s.buf) {
		s.makeRoom()
	}
	for range 100 {
		n, err := s.r.Read(s.buf[s.end:])
		s.end += n
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

// makeRoom begins small, because most files are, and reads large ones in large pieces.
func (s *scanner) makeRoom() {
	to := s.buf
	if s.pos == 0 || len(s.buf) < 256<<10 {
		to = make([]byte, min(2*len(s.buf), max(s.limit+1, len(s.buf)+1)))
	}
	s.end = copy(to, s.buf[s.pos:s.end])
	s.buf, s.pos = to, 0
}

// take gives out the next n bytes.
func (s *scanner) take(n int) []byte {
	b := s.buf[s.pos : s.pos+n]
	s.pos += n
	s.offset += int64(n)
	s.line += bytes.Count(b, []byte{'\n'})
	return b
}

// peek returns the next byte that is not space; io.ErrUnexpectedEOF when there is none.
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

// expect takes the next byte that is not space, which must be one of want, and returns it.
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

// value takes the next value. It is good until the next call.
func (s *scanner) value() ([]byte, error) {
	if _, err := s.peek(); err != nil {
		return nil, err
	}
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

// valueState is how far a value was scanned.
type valueState struct {
	at, depth int
	quoted    bool
}

// scan goes on in b, which begins where the value does. It returns how far it came, and whether the value ends there.
func (v *valueState) scan(b []byte) (n int, ended bool, err error) {
	for v.at < len(b) {
		if v.quoted {
			if v.skipString(b); !v.quoted && v.depth == 0 {
				return v.at, true, nil
			}
			continue
		}
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

// skipString goes on behind the end of a string, or to the end of b. It looks only at quotes: a quote ends the string when an
// even number of backslashes stands before it.
func (v *valueState) skipString(b []byte) {
	quote := bytes.IndexByte(b[v.at:], '"')
	if quote < 0 {
		v.at = len(b)
		return
	}
	end := v.at + quote
	backslashes := end - len(bytes.TrimRight(b[:end], `\`))
	v.at, v.quoted = end+1, backslashes%2 == 1
}

// text takes the next line, without its end. complete is false for a last line that has none. It is good until the next call;
// io.EOF says that there is none.
func (s *scanner) text() (line []byte, complete bool, err error) {
	for at := 0; ; {
		b := s.buf[s.pos:s.end]
		if i := bytes.IndexByte(b[at:], '\n'); i >= 0 {
			return bytes.TrimSuffix(s.take(at+i+1), []byte{'\n'}), true, nil
		}
		if at = len(b); at > s.limit {
			return nil, false, fmt.Errorf("%w: a line of more than %d bytes", ErrLimit, s.limit)
		}
		if err := s.fill(); err == io.EOF && at > 0 {
			return s.take(at), false, nil
		} else if err != nil {
			return nil, false, err
		}
	}
}
