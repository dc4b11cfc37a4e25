// Package wire sends requests and receives responses for all providers: bodies with limits and timeouts, and the
// headers of retries.
package wire

import (
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"
)

// MaxError is the number of bytes kept of an error response's body.
const MaxError = 64 << 10

// maxAnswer is the largest response in bytes: far more than a model writes, but little enough for the memory of a
// machine.
const maxAnswer = 256 << 20

// ErrTooLong is the error for a response with more bytes than any model writes.
var ErrTooLong = errors.New("the response is larger than any model writes")

// Bounded returns a body with a limit: Read returns ErrTooLong after maxAnswer bytes.
func Bounded(body io.ReadCloser) io.ReadCloser { return BoundedTo(body, maxAnswer) }

// BoundedTo returns a body with a limit: Read returns ErrTooLong after limit bytes.
func BoundedTo(body io.ReadCloser, limit int64) io.ReadCloser {
	return &bounded{ReadCloser: body, left: limit}
}

type bounded struct {
	io.ReadCloser
	left int64 // bytes left to read
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, ErrTooLong
	}

	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// WithEnd returns a body of server-sent events with an empty line appended: the last event counts even if the server
// did not end it.
func WithEnd(body io.ReadCloser) io.ReadCloser { return &lastLine{ReadCloser: body, rest: "\n\n"} }

// lastLine appends rest to a body.
type lastLine struct {
	io.ReadCloser
	rest string // the unread rest
}

func (l *lastLine) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	if err != io.EOF || n > 0 {
		if err == io.EOF {
			err = nil // the next Read returns it again
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

// RetryAfter returns how long to wait before a retry, as the headers request it: in milliseconds, in seconds, or until
// a time. It returns 0 if they contain no such request.
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

// wait parses s as a number of units. It returns 0 for anything else.
func wait(s string, unit time.Duration) time.Duration {
	n, err := strconv.ParseFloat(s, 64)
	// The negation excludes NaN as well.
	if err != nil || !(n > 0) {
		return 0
	}

	// Not MaxInt64: a float64 rounds it up to more than a Duration can hold.
	return time.Duration(math.Min(n*float64(unit), math.MaxInt64/2))
}
