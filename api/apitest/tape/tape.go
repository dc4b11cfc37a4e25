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
	"testing"

	"github.com/plait-dev/plait/api"
)

// Errors of a [Tape].
var (
	// ErrMissing: a request is not on the tape, or not the next one.
	ErrMissing = errors.New("not on the tape")
	// ErrUnused: the tape holds recordings that no request used.
	ErrUnused = errors.New("left on the tape")
	// ErrUnusable: a tape cannot be read, written or recorded.
	ErrUnusable = errors.New("unusable tape")
)

// Mode is whether a [Tape] is recorded or played.
type Mode string

// The modes.
const (
	// Auto plays the tape, and records it where the environment variable PLAIT_RECORD is 1:
	//
	//	PLAIT_RECORD=1 go test -run TestWeather ./weather
	//
	// Where the variable CI is set as well, opening the tape is an error, so that nothing is ever recorded there by accident.
	Auto Mode = ""
	// Play and Record do what they say, whatever the environment says.
	Play   Mode = "play"
	Record Mode = "record"
)

// Options are the options of a [Tape].
type Options struct {
	// Mode says whether the tape is recorded or played. Defaults to Auto.
	Mode Mode
	// Next answers requests while the tape is recorded. Defaults to http.DefaultTransport.
	Next http.RoundTripper
	// Secrets is further texts that must not be on the tape, wherever they stand. Empty ones are none. Defaults to none.
	Secrets []string
	// Header names further headers that are recorded, of requests and responses. One whose name tells of a secret is refused.
	// Defaults to none.
	Header []string
	// AnyOrder lets requests come in another order than they were recorded, as those do that are made at the same time. Each
	// recording still answers one request. Defaults to false.
	AnyOrder bool
}

// Tape records what an HTTP client asks and is answered, and plays it back, so that a test of a real provider runs without the
// network, the same way each time. It is an http.RoundTripper: every SDK takes it in an http.Client.
//
// While it plays, each request is answered by the next recording, to which it must be equal: in its method, in the path and the
// query of its URL, and in its body, where that is JSON as JSON. Another request is an error with ErrMissing in its chain, which
// names the recording that is nearest, and the first difference. It is an *[api.Error] too, which no [api.Client] retries.
//
// What is recorded is put into one JSON file, to be read and to be kept beside the test. Its bytes depend on nothing but what was
// said. Of the headers it holds the few that mean something; a response that the consumer left before its end is kept as far as it
// was read, and breaks off there when it is played. A request that got no response is not recorded.
//
// Secrets are replaced by REDACTED: what headers hold whose names tell of keys, tokens, cookies, organizations, projects and the
// like, what such parameters of URLs hold, the project in a path, and the further Secrets of the options. They are looked for in
// the URLs, the headers and the bodies of all recordings. A secret that a model repeats comes piece by piece in a streamed answer,
// and is not found there.
//
// A Tape is safe for concurrent use. See Options.AnyOrder for requests that are made at the same time.
type Tape struct {
	path string
	o    Options
	head headers

	mu      sync.Mutex
	closed  bool
	scrub   scrubber
	tracks  []*track
	missing []error
}

// track is one request with its response.
type track struct {
	request  taped
	response taped

	played bool // while playing
	whole  bool // while recording: the response was read to its end
	length int64
}

// taped is a request or a response.
type taped struct {
	method, url string
	status      int
	header      http.Header
	body        []byte
	cut         bool
}

// most is how many bytes a body may have.
const mostTaped = 32 << 20

// Open opens the tape in the file at path. It must be closed.
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
	t.scrub.add(t.o.Secrets...)
	if t.Recording() {
		return t, nil
	}
	t.tracks, err = readTape(path)
	return t, err
}

// New is [Open] for a test: it fails the test where the tape cannot be opened, and closes the tape at the test's end.
func New(t testing.TB, path string, o *Options) *Tape {
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

// settled is the mode with the environment asked.
func (m Mode) settled() (Mode, error) {
	switch m {
	case Auto:
	case Play, Record:
		return m, nil
	default:
		return "", fmt.Errorf("%w: %q is no mode", ErrUnusable, string(m))
	}
	asked := os.Getenv("PLAIT_RECORD")
	if asked == "" {
		return Play, nil
	}
	record, err := strconv.ParseBool(asked)
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: PLAIT_RECORD is %q: say 1 to record, 0 to play", ErrUnusable, asked)
	case !record:
		return Play, nil
	case os.Getenv("CI") != "":
		return "", fmt.Errorf("%w: PLAIT_RECORD is set, and so is CI: tapes are not recorded there", ErrUnusable)
	}
	return Record, nil
}

// Recording reports whether the tape is recorded: then a test needs a real key.
func (t *Tape) Recording() bool { return t.o.Mode == Record }

// Client returns an HTTP client that uses the tape.
func (t *Tape) Client() *http.Client { return &http.Client{Transport: t} }

// RoundTrip answers the request: from the tape, or while recording, as Next does.
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

// bodyOf reads the body of a request, and closes it.
func bodyOf(req *http.Request) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	defer req.Body.Close()
	body, err := io.ReadAll(io.LimitReader(req.Body, mostTaped+1))
	if err == nil && len(body) > mostTaped {
		err = fmt.Errorf("%w: a request of more than %d bytes", ErrUnusable, mostTaped)
	}
	return body, err
}

// record passes the request on and keeps it with its response.
func (t *Tape) record(req *http.Request, body []byte) (*http.Response, error) {
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
	if err != nil {
		t.drop(made)
		return nil, err
	}
	t.scrub.header(res.Header, accountName)
	made.response = taped{status: res.StatusCode, header: t.head.of(res.Header)}
	made.length = res.ContentLength
	res.Body = &recorder{res.Body, t, made}
	return res, nil
}

// begin gives the request its place on the tape.
func (t *Tape) begin(req *http.Request, body []byte) (*track, error) {
	if err := unencoded("request", req.Header); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, fmt.Errorf("%w: it was closed", ErrUnusable)
	}
	t.scrub.request(req)
	made := &track{request: taped{method: methodOf(req), url: req.URL.String(), header: t.head.of(req.Header), body: body}}
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

// passedOn is the request as it is sent: with its body anew, and without a wish for compression, which the transport then sees to
// itself, so that the tape gets what it can look for secrets in.
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
		return fmt.Errorf("%w: the %s is encoded as %q, so that no secret can be found in it", ErrUnusable, what, encoding)
	}
	return nil
}

func methodOf(req *http.Request) string {
	if req.Method == "" {
		return http.MethodGet
	}
	return req.Method
}

// recorder keeps what is read of a response.
type recorder struct {
	io.ReadCloser
	tape  *Tape
	track *track
}

func (r *recorder) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.tape.mu.Lock()
	defer r.tape.mu.Unlock()
	if r.tape.closed {
		return n, err
	}
	if len(r.track.response.body)+n > mostTaped {
		return 0, fmt.Errorf("%w: a response of more than %d bytes", ErrUnusable, mostTaped)
	}
	r.track.response.body = append(r.track.response.body, p[:n]...)
	r.track.whole = r.track.whole || err == io.EOF
	return n, err
}

// play answers from the tape.
func (t *Tape) play(req *http.Request, body []byte) (*http.Response, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.scrub.request(req)
	asked := t.scrub.taped(taped{method: methodOf(req), url: req.URL.String(), body: body})
	for _, made := range t.tracks {
		if made.played {
			continue
		}
		if same(made.request, asked) {
			made.played = true
			return made.response.answer(req), nil
		}
		if !t.o.AnyOrder {
			break
		}
	}
	err := &api.Error{Kind: api.ErrProtocol, API: "tape", Err: fmt.Errorf("%s: %w: %s", t.path, ErrMissing, t.nearest(asked))}
	t.missing = append(t.missing, err.Err)
	return nil, err
}

// answer is the response that was recorded.
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

// player is a body that was recorded.
type player struct {
	ctx  context.Context
	mu   sync.Mutex
	rest []byte
	end  error
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

// Close ends the tape. One that was recorded is written, in one go: a file that was there before is kept until the new one is
// whole. Of one that was played the recordings are reported that nobody asked for, with ErrUnused in the chain, and once more
// the requests that were not on it. A second Close does nothing.
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

// left is an error that says what was not played; nil when all was.
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

// write puts the recordings into the file.
func (t *Tape) write() error {
	t.tracks = slices.DeleteFunc(t.tracks, func(made *track) bool { return made.response.status == 0 }) // still asking
	if len(t.tracks) == 0 {
		return fmt.Errorf("%w: %s: nothing was recorded", ErrUnusable, t.path)
	}
	for _, made := range t.tracks {
		made.response.cut = !made.whole && int64(len(made.response.body)) != made.length
		made.request, made.response = t.scrub.taped(made.request), t.scrub.taped(made.response)
	}
	if t.o.AnyOrder {
		sortTracks(t.tracks)
	}
	return writeTape(t.path, t.tracks, &t.scrub)
}
