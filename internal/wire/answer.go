package wire

import (
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"
)

// MaxError is how many bytes of an error's body are kept.
const MaxError = 64 << 10

// maxAnswer is the most bytes that an answer may have: far more than a model writes, far less than fills a machine.
const maxAnswer = 256 << 20

// ErrTooLong marks an answer of more bytes than any model writes.
var ErrTooLong = errors.New("the answer is too long")

// Bounded returns a body that ends with ErrTooLong where it goes on for too long.
func Bounded(body io.ReadCloser) io.ReadCloser { return BoundedTo(body, maxAnswer) }

// BoundedTo returns a body that ends with ErrTooLong after that many bytes.
func BoundedTo(body io.ReadCloser, most int64) io.ReadCloser {
	return &bounded{ReadCloser: body, left: most}
}

type bounded struct {
	io.ReadCloser
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, ErrTooLong
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// WithEnd returns a body of server-sent events whose last event counts also without the blank line that should end it.
func WithEnd(body io.ReadCloser) io.ReadCloser { return &lastLine{ReadCloser: body, rest: "\n\n"} }

// lastLine ends a body with rest.
type lastLine struct {
	io.ReadCloser
	rest string
}

func (l *lastLine) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	if err != io.EOF || n > 0 {
		if err == io.EOF {
			err = nil // it comes again
		}
		return n, err
	}
	if l.rest == "" {
		return 0, io.EOF
	}
	n = copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// RetryAfter is how long the headers ask to wait: in milliseconds, in seconds, or until a time; 0 when they do not say.
func RetryAfter(header http.Header, now time.Time) time.Duration {
	if wait := wait(header.Get("Retry-After-Ms"), time.Millisecond); wait > 0 {
		return wait
	}
	after := header.Get("Retry-After")
	if at, err := http.ParseTime(after); err == nil {
		return max(0, at.Sub(now))
	}
	return wait(after, time.Second)
}

// wait reads a number of units; 0 for anything else.
func wait(s string, unit time.Duration) time.Duration {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || !(n > 0) {
		return 0
	}
	return time.Duration(math.Min(n*float64(unit), math.MaxInt64/2))
}
