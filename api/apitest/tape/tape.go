package tape

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/plait-dev/plait/api"
)

// Errors of a [Tape].
var (
	// ErrMissing: a request is not on the tape, or not the next one.
	ErrMissing = errors.New("not on the tape")
	// ErrUnused: the tape holds unused recordings.
	ErrUnused = errors.New("left on the tape")
	// ErrUnusable: a tape cannot be read, written or recorded.
	ErrUnusable = errors.New("unusable tape")
)

// Mode selects whether a [Tape] is recorded or played.
type Mode string

// The modes.
const (
	// Auto plays the tape. If the environment variable PLAIT_RECORD is 1, it records the tape:
	//
	//	PLAIT_RECORD=1 go test -run TestWeather ./weather
	//
	// If the variable CI is set as well, opening the tape is an error: CI must not record a tape by accident.
	Auto Mode = ""
	// Play and Record do not depend on the environment.
	Play   Mode = "play"
	Record Mode = "record"
)

// Options are the options of a [Tape].
type Options struct {
	// Mode selects whether the tape is recorded or played. Defaults to Auto.
	Mode Mode
	// Next sends the requests while the tape is recorded. Defaults to http.DefaultTransport.
	Next http.RoundTripper
	// Secrets lists further texts to keep off the tape, in any position. Empty ones are ignored. Defaults to none.
	Secrets []string
	// Header lists further headers of requests and responses to record. Opening the tape fails if a name suggests a
	// secret. Defaults to none.
	Header []string
	// AnyOrder accepts requests in another order than they were recorded in, for requests made at the same time. Each
	// recording still answers one request. Defaults to false.
	AnyOrder bool
}

// Tape records the requests of an HTTP client and their responses, and plays them back. With it, a test of a real
// provider runs without the network, the same way each time. It is an http.RoundTripper: every SDK accepts it in an
// http.Client.
//
// While a tape plays, each request must equal the next recording:
//
//   - The method, and the path and the query of the URL, must be the same.
//   - The body must be the same. JSON is compared as JSON.
//
// Any other request fails with ErrMissing. The error names the nearest recording and the first difference. It is also
// an *[api.Error], of a kind no [api.Client] retries.
//
// A tape is one JSON file, made to be read and to be kept beside the test. Its bytes depend only on the recorded
// traffic:
//
//   - Only a few headers are recorded: those with a meaning for a provider or a test, and Options.Header.
//   - A response is recorded as far as the program read it. When played, it breaks off there.
//   - A request without a response is not recorded.
//
// Secrets are replaced by REDACTED. These are secrets:
//
//   - headers and URL parameters with names that suggest keys, tokens, cookies, organizations, projects and the like
//   - the project in a path
//   - Options.Secrets
//
// They are removed from the URLs, the headers and the bodies of all recordings. A secret repeated by a model in a
// streamed response arrives in pieces and is not found there.
//
// A Tape is safe for concurrent use. For requests at the same time, see Options.AnyOrder.
type Tape struct {
	path string
	o    Options
	head headers

	mu      sync.Mutex // guards the fields below
	closed  bool
	scrub   scrubber
	tracks  []*track // in the order of their requests
	missing []error  // of the requests without a recording
}

// track is one request with its response. The mutex of its tape guards it.
type track struct {
	request  taped
	response taped

	played bool  // while playing: the track was used
	whole  bool  // while recording: the response was read to its end
	length int64 // while recording: the content length of the response
}

// taped is a request or a response.
type taped struct {
	method, url string
	status      int
	header      http.Header
	body        []byte
	cut         bool // the response breaks off after body
}

// maxTaped is the maximum size of a body in bytes.
const maxTaped = 32 << 20

// Open opens the tape in the file at path. The caller must close it.
func Open(path string, o *Options) (*Tape, error) {
	t := &Tape{path: path}
	if o != nil {
		t.o = *o
	}
	if t.o.Next == nil {
		t.o.Next = http.DefaultTransport
	}

	var err error
	if t.head, err = keptHeaders(t.o.Header); err != nil {
		return nil, err
	}
	if t.o.Mode, err = t.o.Mode.settled(); err != nil {
		return nil, err
	}

	// Recording replaces the file as a whole, so an existing one is not read.
	t.scrub.Accounts = true
	t.scrub.Add(t.o.Secrets...)
	if t.Recording() {
		return t, nil
	}
	t.tracks, err = readTape(path)
	return t, err
}

// TB is the part of testing.TB used by [New]. A program that records or plays outside of tests does not link package
// testing.
type TB interface {
	Helper()
	Cleanup(f func())
	Error(args ...any)
	Fatal(args ...any)
}

// New is like [Open] for a test: it fails the test if the tape cannot be opened, and closes the tape at the end of the
// test.
func New(t TB, path string, o *Options) *Tape {
	t.Helper()
	tape, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tape.Close(); err != nil {
			t.Error(err)
		}
	})
	return tape
}

// settled returns Play or Record. For Auto it reads the environment.
func (m Mode) settled() (Mode, error) {
	switch m {
	case Auto:
	case Play, Record:
		return m, nil
	default:
		return "", fmt.Errorf("%w: %q is not a mode", ErrUnusable, string(m))
	}

	// Only Auto depends on the environment, and on CI only if the variable asks for a recording.
	setting := os.Getenv("PLAIT_RECORD")
	if setting == "" {
		return Play, nil
	}
	record, err := strconv.ParseBool(setting)
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: PLAIT_RECORD is %q, not 1 to record or 0 to play", ErrUnusable, setting)
	case !record:
		return Play, nil
	case os.Getenv("CI") != "":
		return "", fmt.Errorf("%w: PLAIT_RECORD is set, and so is CI: tapes are not recorded there", ErrUnusable)
	}
	return Record, nil
}

// Recording reports whether the tape is recorded. Recording needs a real API key.
func (t *Tape) Recording() bool { return t.o.Mode == Record }

// Client returns an HTTP client that uses the tape.
func (t *Tape) Client() *http.Client { return &http.Client{Transport: t} }

// RoundTrip returns the response from the tape or, while recording, from Next.
func (t *Tape) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := bodyOf(req)
	if err != nil {
		return nil, err
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	if t.Recording() {
		return t.record(req, body)
	}
	return t.play(req, body)
}

// bodyOf reads and closes the body of a request.
func bodyOf(req *http.Request) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	defer req.Body.Close()

	body, err := io.ReadAll(io.LimitReader(req.Body, maxTaped+1))
	if err == nil && len(body) > maxTaped {
		err = fmt.Errorf("%w: a request of more than %d bytes", ErrUnusable, maxTaped)
	}
	return body, err
}

// record sends the request with Next and records it with its response.
func (t *Tape) record(req *http.Request, body []byte) (*http.Response, error) {
	// Add the track before sending: the tape is in the order of the requests, not of the responses.
	made, err := t.begin(req, body)
	if err != nil {
		return nil, err
	}

	res, err := t.o.Next.RoundTrip(passedOn(req, body))
	if err == nil {
		if err = unencoded("response", res.Header); err != nil {
			res.Body.Close()
		}
	}

	t.mu.Lock()
	defer t.mu.Unlock()

	// A request without a response is not recorded.
	if err != nil {
		t.drop(made)
		return nil, err
	}

	t.scrub.Header(res.Header, accountName())
	made.response = taped{status: res.StatusCode, header: t.head.of(res.Header)}
	made.length = res.ContentLength
	res.Body = &recorder{res.Body, t, made}
	return res, nil
}

// begin appends a track for the request to the tape.
func (t *Tape) begin(req *http.Request, body []byte) (*track, error) {
	if err := unencoded("request", req.Header); err != nil {
		return nil, err
	}

	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, fmt.Errorf("%w: it was closed", ErrUnusable)
	}

	// Collect the secrets here. They are removed when the file is written: other recordings may have them, too.
	t.scrub.Request(req)

	made := &track{request: taped{method: methodOf(req), url: req.URL.String(), header: t.head.of(req.Header),
		body: body}}
	t.tracks = append(t.tracks, made)
	return made, nil
}

func (t *Tape) drop(gone *track) {
	for i, made := range t.tracks {
		if made == gone {
			t.tracks = append(t.tracks[:i:i], t.tracks[i+1:]...)
			return
		}
	}
}

// passedOn returns the request to send. Its body can be read again, and it does not ask for compression. The transport
// may still compress, but decodes the response itself, for secrets to be found in it.
func passedOn(req *http.Request, body []byte) *http.Request {
	out := req.Clone(req.Context())
	out.Header.Del("Accept-Encoding")
	if req.Body == nil {
		return out
	}

	out.ContentLength, out.TransferEncoding = int64(len(body)), nil
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	out.Body, _ = out.GetBody()
	return out
}

func unencoded(what string, h http.Header) error {
	if encoding := h.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return fmt.Errorf("%w: the %s is encoded as %q: secrets in it cannot be found", ErrUnusable, what,
			encoding)
	}
	return nil
}

func methodOf(req *http.Request) string {
	if req.Method == "" {
		return http.MethodGet
	}
	return req.Method
}

// recorder records a response body while the consumer reads it.
type recorder struct {
	io.ReadCloser
	tape  *Tape
	track *track
}

func (r *recorder) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.tape.mu.Lock()
	defer r.tape.mu.Unlock()

	// Close has written the file, so the rest cannot be recorded.
	if r.tape.closed {
		return n, err
	}
	if len(r.track.response.body)+n > maxTaped {
		return 0, fmt.Errorf("%w: a response of more than %d bytes", ErrUnusable, maxTaped)
	}

	r.track.response.body = append(r.track.response.body, p[:n]...)
	r.track.whole = r.track.whole || err == io.EOF
	return n, err
}

// play returns the response from the tape.
func (t *Tape) play(req *http.Request, body []byte) (*http.Response, error) {
	t.mu.Lock()
	defer t.mu.Unlock()

	// Remove the secrets as for the recording: with another key, the request is still the same.
	t.scrub.Request(req)
	request := t.scrub.taped(taped{method: methodOf(req), url: req.URL.String(), body: body})

	for _, made := range t.tracks {
		if made.played {
			continue
		}
		if same(made.request, request) {
			made.played = true
			return made.response.answer(req), nil
		}

		// Only the next recording may match.
		if !t.o.AnyOrder {
			break
		}
	}

	err := &api.Error{Kind: api.ErrProtocol, API: "tape",
		Err: fmt.Errorf("%s: %w: %s", t.path, ErrMissing, t.nearest(request))}
	t.missing = append(t.missing, err.Err)
	return nil, err
}

// answer returns the recorded response.
func (r taped) answer(req *http.Request) *http.Response {
	res := &http.Response{
		Status: strings.TrimSpace(strconv.Itoa(r.status) + " " + http.StatusText(r.status)), StatusCode: r.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: r.header.Clone(), ContentLength: -1, Request: req,
		Body: &player{ctx: req.Context(), rest: r.body, end: io.EOF},
	}
	if res.Header == nil {
		res.Header = http.Header{}
	}
	if r.cut {
		res.Body.(*player).end = fmt.Errorf("%w: the recording ends here", io.ErrUnexpectedEOF)
	}
	return res
}

// player is the body of a recorded response.
type player struct {
	ctx  context.Context
	mu   sync.Mutex
	rest []byte // not yet read
	end  error  // after rest
}

func (p *player) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	if len(p.rest) == 0 {
		return 0, p.end
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

func (p *player) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rest, p.end = nil, http.ErrBodyReadAfterClose
	return nil
}

// Close closes the tape.
//
// While recording, it writes the file as a whole: an existing file is kept until the new one is complete. While
// playing, it reports unused recordings with ErrUnused, and again the requests without a recording. A second Close does
// nothing.
func (t *Tape) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	t.closed = true
	if t.Recording() {
		return t.write()
	}
	return errors.Join(append(t.missing, t.left())...)
}

// left returns an error about the unused recordings, or nil.
func (t *Tape) left() error {
	var first *track
	left := 0
	for _, made := range t.tracks {
		if made.played {
			continue
		}
		if left++; first == nil {
			first = made
		}
	}
	if first == nil {
		return nil
	}
	return fmt.Errorf("%s: %w: %d of %d recordings, the first of them %s %s",
		t.path, ErrUnused, left, len(t.tracks), first.request.method, shown(resource(first.request.url)))
}

// write writes the recordings to the file.
func (t *Tape) write() error {
	// A request may still be without a response.
	t.tracks = slices.DeleteFunc(t.tracks, func(made *track) bool { return made.response.status == 0 })
	if len(t.tracks) == 0 {
		return fmt.Errorf("%w: %s: nothing was recorded", ErrUnusable, t.path)
	}

	// The end of a body is also known from its length, if the response had one.
	for _, made := range t.tracks {
		made.response.cut = !made.whole && int64(len(made.response.body)) != made.length
		made.request, made.response = t.scrub.taped(made.request), t.scrub.taped(made.response)
	}

	// Requests made at the same time have no order of their own. Sorted, they give the same file each time.
	if t.o.AnyOrder {
		sortTracks(t.tracks)
	}
	return writeTape(t.path, t.tracks, &t.scrub)
}
