package mcp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/plait-dev/plait/internal/safetext"
)

// errOrigin: a redirect, or the server itself, leads to another scheme, host or port than the endpoint. The request was
// not sent. An [originError] names both.
var errOrigin = errors.New("the server leads to another origin")

// originError reports a request that was not sent. Its chain holds errOrigin.
type originError struct {
	// From is the origin of the endpoint, as in "https://example.com". To is the other one, which is hostile text.
	From, To string
}

// Error names both origins, escaped.
func (e *originError) Error() string {
	return fmt.Sprintf("%v: %s leads to %s", errOrigin, safetext.Escape(e.From, 200), safetext.Escape(e.To, 200))
}

// Unwrap returns errOrigin.
func (e *originError) Unwrap() error { return errOrigin }

// Dial returns the transport of a new connection. It is called for the first connection, and again after a connection
// was lost. The limits of [Limits] are added to the transports of the SDK.
type Dial func() (sdk.Transport, error)

// Command returns a Dial for a program that serves on its standard input and output. Its standard error is discarded.
// For more control, write a Dial with an sdk.CommandTransport.
func Command(name string, args ...string) Dial {
	return func() (sdk.Transport, error) {
		return &sdk.CommandTransport{Command: exec.Command(name, args...)}, nil
	}
}

// URLOptions are the settings of [URL]. The zero value is ready to use.
type URLOptions struct {
	// Client sends the requests. Use it to add a header with a token, for example. Defaults to http.DefaultClient.
	Client *http.Client
	// OAuth gets a token when the server asks for one. Defaults to none.
	OAuth *OAuth
}

// URL returns a Dial for a server behind HTTP (the protocol's streamable transport). All requests go to the scheme, host
// and port of the endpoint: a redirect that leads elsewhere fails.
func URL(endpoint string, o *URLOptions) Dial {
	if o == nil {
		o = &URLOptions{}
	}
	transport := sdk.StreamableClientTransport{Endpoint: endpoint, HTTPClient: o.Client}
	if o.OAuth == nil {
		return func() (sdk.Transport, error) { fresh := transport; return &fresh, nil }
	}

	a := newAuthorizer(endpoint, o.OAuth)
	transport.OAuthHandler = a
	return func() (sdk.Transport, error) {
		a.begin()
		fresh := transport
		return &fresh, nil
	}
}

// Guard returns a transport of the SDK with the limits of messages and redirects. [Connect] does so with what a Dial
// returns; a transport of the program's own that wraps one of the SDK's calls Guard for that one. The given transport
// stays as it is. A transport of another type is returned without limits.
func (l Limits) Guard(transport sdk.Transport) sdk.Transport {
	return l.guard(transport, new(atomic.Pointer[originError]))
}

// guard is Guard. refused receives the last request that was not sent.
func (l Limits) guard(transport sdk.Transport, refused *atomic.Pointer[originError]) sdk.Transport {
	l = l.withDefaults()
	switch t := transport.(type) {
	case *sdk.CommandTransport:
		return &programTransport{t, l.Message}
	case *sdk.IOTransport:
		return l.lines(t.Reader, t.Writer)
	case *sdk.LoggingTransport:
		return &sdk.LoggingTransport{Transport: l.guard(t.Transport, refused), Writer: t.Writer}
	case *sdk.StreamableClientTransport:
		guarded := *t
		guarded.HTTPClient = l.guardedClient(t.Endpoint, t.HTTPClient, refused)
		guarded.HTTPClient.Transport.(*originTransport).authorizer, _ = t.OAuthHandler.(*authorizer)
		guarded.MaxEventSize = l.event(t.MaxEventSize)
		return &guarded
	case *sdk.SSEClientTransport:
		guarded := *t
		guarded.HTTPClient = l.guardedClient(t.Endpoint, t.HTTPClient, refused)
		guarded.MaxEventSize = l.event(t.MaxEventSize)
		return &guarded
	}
	return transport
}

// event returns the limit of an event: the transport's own one if it is lower.
func (l Limits) event(own int) int {
	if own <= 0 {
		return l.Message
	}
	return min(own, l.Message)
}

// lines returns the transport of messages over a reader and a writer. The guard limits them in place of the SDK.
func (l Limits) lines(r io.ReadCloser, w io.WriteCloser) *sdk.IOTransport {
	return &sdk.IOTransport{Reader: newGuard(r, byMessage, l.Message), Writer: w, MaxLineLength: -1}
}

// programTransport is an sdk.CommandTransport whose messages are limited.
type programTransport struct {
	*sdk.CommandTransport
	message int
}

// Connect starts the program.
func (t *programTransport) Connect(ctx context.Context) (sdk.Connection, error) {
	out, err := t.Command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	in, err := t.Command.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := t.Command.Start(); err != nil {
		return nil, err
	}

	patience := t.TerminateDuration
	if patience <= 0 {
		patience = 5 * time.Second
	}

	// The connection is closed by the program's input. Its output ends with the program.
	limits := Limits{Message: t.message}
	return limits.lines(io.NopCloser(out), &program{in, t.Command, patience}).Connect(ctx)
}

// program is the standard input of a started program. Closing it ends the program.
type program struct {
	io.WriteCloser
	cmd      *exec.Cmd
	patience time.Duration
}

// Close closes the input and waits for the program. A program that does not end gets SIGTERM, and is killed then.
func (p *program) Close() error {
	if err := p.WriteCloser.Close(); err != nil {
		return fmt.Errorf("closing the input of the server: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- p.cmd.Wait() }()

	// Where a signal cannot be sent, as on Windows, the program is killed at once.
	for _, end := range []func() error{
		func() error { return p.cmd.Process.Signal(syscall.SIGTERM) },
		p.cmd.Process.Kill,
	} {
		select {
		case err := <-ended:
			return err
		case <-time.After(p.patience):
		}
		if end() != nil {
			_ = p.cmd.Process.Kill()
		}
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(p.patience):
		return errors.New("the server's program does not end")
	}
}

// guardedClient returns a client that sends requests to the endpoint's origin only, and limits what it reads.
func (l Limits) guardedClient(endpoint string, client *http.Client, refused *atomic.Pointer[originError]) *http.Client {
	if client == nil {
		client = http.DefaultClient
	}
	guarded := *client
	guarded.Transport = &originTransport{
		origin: originOf(endpoint), base: client.Transport, message: l.Message, refused: refused,
	}
	guarded.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if err := over("Redirects", len(via), l.Redirects); err != nil {
			return err
		}
		if client.CheckRedirect != nil {
			return client.CheckRedirect(r, via)
		}
		return nil
	}
	return &guarded
}

// originTransport sends requests to one origin. Whatever leads elsewhere, a redirect or an address in a message, is
// refused before the base adds a token.
type originTransport struct {
	origin  string
	base    http.RoundTripper // nil for the default
	message int
	refused *atomic.Pointer[originError]

	authorizer *authorizer // nil without OAuth
}

// RoundTrip sends a request, and limits the body of its response.
func (t *originTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if to := originOf(r.URL.String()); to != t.origin {
		err := &originError{From: t.origin, To: to}
		t.refused.Store(err)
		return nil, err
	}
	base := t.base
	if base == nil {
		base = http.DefaultTransport
	}
	response, err := base.RoundTrip(r)
	if err != nil {
		return nil, err
	}

	// A stream of events has no end, so its lines are limited. Anything else is read whole, whatever its status.
	form := whole
	media, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	if response.StatusCode/100 == 2 && strings.EqualFold(strings.TrimSpace(media), "text/event-stream") {
		form = byLine
	}
	body := newGuard(response.Body, form, t.message)
	response.Body = body

	// A server may repeat a token, which no error and no conversation may have.
	if t.authorizer != nil {
		body.clean = t.authorizer.secrets.Text
		if err := t.authorizer.tried(r.Header.Get("Authorization"), response); err != nil {
			return nil, errors.Join(err, response.Body.Close())
		}
	}
	return response, nil
}

// originOf returns the scheme, host and port of a URL, in one form for each origin.
func originOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	scheme, port := strings.ToLower(u.Scheme), u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[scheme]
	}
	return scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// framing is how a guard divides what it reads.
type framing int

const (
	byMessage framing = iota // JSON values with a line break after each
	byLine                   // the lines of a stream of events
	whole                    // one JSON value up to the end
)

// guard is a reader of JSON that limits the size and the nesting of each frame. It passes a frame on when it has all of
// it: a decoder that begins again at each byte would take time quadratic in the size of a frame that comes slowly.
type guard struct {
	source io.Closer
	reader *bufio.Reader
	form   framing
	most   int                 // the maximum size of a frame, in bytes
	clean  func(string) string // changes the text of each frame; may be nil

	rest []byte // what is left of the frame
	err  error  // of the reader, after the rest
}

func newGuard(source io.ReadCloser, form framing, most int) *guard {
	return &guard{source: source, reader: bufio.NewReaderSize(source, 32<<10), form: form, most: most}
}

func (g *guard) Close() error { return g.source.Close() }

func (g *guard) Read(p []byte) (int, error) {
	if len(g.rest) == 0 && g.err == nil {
		g.fill()
	}
	if len(g.rest) == 0 {
		return 0, g.err
	}
	n := copy(p, g.rest)
	g.rest = g.rest[n:]
	return n, nil
}

// fill reads the next frame. A frame over the limit is dropped, and is the end.
func (g *guard) fill() {
	defer func() {
		if g.clean != nil {
			g.rest = []byte(g.clean(string(g.rest)))
		}
	}()
	g.rest = nil
	var shape flattener
	for size := 0; ; {
		chunk, err := g.reader.ReadSlice('\n')
		size += len(chunk)
		if g.err = over("Message", size, g.most); g.err != nil {
			g.rest = nil
			return
		}
		g.rest = shape.append(g.rest, chunk)

		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			g.err = err
			return
		case g.form == byLine, g.form == byMessage && shape.depth == 0:
			return
		}
	}
}

// maxNesting is how deep the JSON of a message is nested at most. The SDK's decoder takes 1,000, and its scanner for
// the output of programs overflows the stack.
const maxNesting = 500

// flattener empties the objects and arrays of a JSON text that are nested deeper than maxNesting. The text comes in
// parts.
type flattener struct {
	depth    int
	inString bool
	escaped  bool // the last byte was a backslash in a string
}

// append appends a part of the text to out.
func (f *flattener) append(out, part []byte) []byte {
	for _, b := range part {
		kept := f.depth <= maxNesting
		switch {
		case b == '\n':
			// A string has no line breaks. After broken text, begin anew.
			f.inString, f.escaped, kept = false, false, true
		case f.inString:
			f.inString = f.escaped || b != '"'
			f.escaped = b == '\\' && !f.escaped
		case b == '"':
			f.inString = true
		case b == '{' || b == '[':
			f.depth++
		case (b == '}' || b == ']') && f.depth > 0:
			f.depth--
			kept = f.depth <= maxNesting
		}
		if kept {
			out = append(out, b)
		}
	}
	return out
}
