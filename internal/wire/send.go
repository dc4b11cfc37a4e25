package wire

import (
	"io"
	"net/http"
	"sync"
)

// Parts is a request body in several parts. Requests can share parts without copying them. It is an io.ReadCloser.
// [Parts.Send] sets the length of the request.
type Parts struct {
	parts [][]byte

	mu   sync.Mutex // guards rest and at
	rest [][]byte   // the parts with unread bytes
	at   int        // the number of read bytes of rest[0]
}

// NewParts returns the body made of parts. The caller must not change them afterwards.
func NewParts(parts ...[]byte) *Parts { return &Parts{parts: parts, rest: parts} }

// Len returns the length of the body in bytes.
func (p *Parts) Len() int {
	n := 0
	for _, part := range p.parts {
		n += len(part)
	}
	return n
}

// Bytes returns a copy of the whole body in one slice.
func (p *Parts) Bytes() []byte {
	dst := make([]byte, 0, p.Len())
	for _, part := range p.parts {
		dst = append(dst, part...)
	}
	return dst
}

// Read implements io.Reader. It continues after the last byte read.
func (p *Parts) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	for len(p.rest) > 0 {
		if left := p.rest[0][p.at:]; len(left) > 0 {
			n := copy(b, left)
			p.at += n
			return n, nil
		}
		p.rest, p.at = p.rest[1:], 0
	}
	return 0, io.EOF
}

// Close does nothing: the parts are memory.
func (p *Parts) Close() error { return nil }

// Send sets p as the body of req, with its length: it is sent in one piece and can be sent again. An http.Transport may
// then repeat the request if a kept-alive connection turns out to be closed before any byte of a response was received:
// servers close idle connections at any time.
func (p *Parts) Send(req *http.Request) {
	// The transport repeats a POST only if it has this header. An empty list is not sent (see http.Transport).
	const idempotencyKey = "Idempotency-Key"
	if _, given := req.Header[idempotencyKey]; !given {
		req.Header[idempotencyKey] = []string{}
	}

	req.Body = NewParts(p.parts...)
	req.ContentLength = int64(p.Len())
	req.TransferEncoding = nil
	req.GetBody = func() (io.ReadCloser, error) { return NewParts(p.parts...), nil }
}

// Sized calls Send if the body of req is still a *Parts. If something else replaced the body, Sized does nothing.
func Sized(req *http.Request) {
	if p, ok := req.Body.(*Parts); ok {
		p.Send(req)
	}
}
