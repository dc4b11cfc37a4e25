package fake

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/internal/jsonx"
)

// API is a strict fake of a model's API: an http.Handler, for httptest.NewServer. [Anthropic], [OpenAIChat],
// [OpenAICompatible], [OpenAIResponses] and [Gemini] return one.
//
// It checks every request and refuses an invalid one with the API's own error text. It answers the others with its
// prepared replies: as JSON or, if the request asks for a stream, as server-sent events. It is safe for concurrent use.
//
// It has the API for batches too, with a reply for each request of a batch, in their order. The first look at a batch
// finds it in progress, and the second one ended.
type API struct {
	dialect dialect
	mu      sync.Mutex // guards the fields below and calls of dialect.check and dialect.remember
	replies []Reply    // not yet used
	bodies  [][]byte   // of all requests
	refused []error
	batches batches
	items   int // of OpenAIResponses, in all replies
}

// dialect is the part of a fake specific to the API.
type dialect interface {
	// address returns an *api.Error for a request with a wrong path or method, or without a key.
	address(r *http.Request) error
	// check returns an *api.Error for a request with an invalid body.
	check(r *http.Request, body []byte) error
	// remember records the bodies of a request and of its reply.
	remember(request []byte, answer string)
	// refuse returns the API's error for an invalid request.
	refuse(message string) *api.Error
	// streams reports whether the request asks for a stream.
	streams(r *http.Request, body []byte) bool
	// silence returns the body of a response without content.
	silence() string
	// stream returns a response as a stream. If cut is set, the stream breaks off before its last block ends. A
	// response with the shape of another API is a mistake in a test and panics.
	stream(request []byte, answer string, cut bool) string
	// header sets the headers common to all responses.
	header(h http.Header)
}

func newFake(d dialect, replies []Reply) *API {
	return &API{dialect: d, replies: slices.Clone(replies)}
}

// Reply is the response of an [API] to a request. The zero value is a successful response without content.
type Reply struct {
	// Status is the HTTP status. Defaults to 200.
	Status int
	// Header is added to the response's header.
	Header http.Header
	// Body is the response in its form without a stream: a message of the model, or an error. A body beginning with
	// "event:" or "data:" is already a stream and is sent unchanged. Defaults to a response without content.
	Body string
	// Cut breaks a stream off before its last block ends, like a broken connection.
	Cut bool
	// Batch is how the request ends in a batch, if it gets no response: "expired" or "canceled".
	Batch string

	always bool                       // the reply is not used up
	fn     func(request []byte) Reply // if not nil, returns the reply
}

// Func returns a reply that calls fn with the body of the request and becomes the reply it returns. With [Reply.Always]
// it suits requests in any order, such as those of executor.Each:
//
//	model := fake.Anthropic(fake.Func(func(request []byte) fake.Reply { … }).Always())
//
// fn may be called by several goroutines at the same time.
func Func(fn func(request []byte) Reply) Reply { return Reply{fn: fn} }

// Always returns the reply as one to all further requests, too.
func (r Reply) Always() Reply {
	r.always = true
	return r
}

// Bodies returns the body of every request so far, in order, including the refused ones.
func (f *API) Bodies() [][]byte {
	f.mu.Lock()
	defer f.mu.Unlock()

	bodies := make([][]byte, len(f.bodies))
	for i, b := range f.bodies {
		bodies[i] = slices.Clone(b)
	}
	return bodies
}

// Refused returns the errors of the refused requests so far, in order. To test that a program never sends an invalid
// request, require it to be empty.
func (f *API) Refused() []error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.refused)
}

// Gave makes the fake treat reply as its own response to a request with the given body. It is for a conversation with
// responses of another fake, or of the API itself: the API's checks of its own responses (see [Anthropic],
// [OpenAIResponses]) then include this one. The reply must have the IDs of the response as it was sent.
func (f *API) Gave(request []byte, reply Reply) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dialect.remember(request, reply.Body)
}

// ServeHTTP answers one request.
func (f *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}

	if f.serveBatch(w, r, body) {
		return
	}
	reply, err := f.next(r, body)
	var refusal *api.Error
	if errors.As(err, &refusal) {
		reply = Reply{Status: refusal.Status, Body: refusal.Body}
	}
	f.write(w, r, body, reply)
}

// next records the request and returns its reply.
func (f *API) next(r *http.Request, body []byte) (Reply, error) {
	reply, err := f.take(r, body)
	if err != nil {
		return Reply{}, err
	}

	// The function may use the fake, and may itself return a reply of Func.
	for reply.fn != nil {
		reply = reply.fn(slices.Clone(body))
	}

	f.mu.Lock()
	defer f.mu.Unlock()
	reply.Body = fakeItemID().ReplaceAllStringFunc(reply.Body, func(id string) string {
		f.items++
		return strings.TrimRight(id, `0123456789"`) + strconv.Itoa(f.items-1) + `"`
	})
	f.dialect.remember(body, reply.Body)
	return reply, nil
}

// take records the request and takes the reply prepared for it.
func (f *API) take(r *http.Request, body []byte) (Reply, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bodies = append(f.bodies, body)

	err := f.dialect.address(r)
	if err == nil {
		err = f.dialect.check(r, body)
	}

	// A request after the last reply is refused too.
	if err == nil && len(f.replies) == 0 {
		err = f.dialect.refuse(fmt.Sprintf("the fake has no reply left: this is request %d", len(f.bodies)))
	}

	// A refused request uses up no reply.
	if err != nil {
		f.refused = append(f.refused, err)
		return Reply{}, err
	}

	reply := f.replies[0]
	if !reply.always {
		f.replies = f.replies[1:]
	}
	return reply, nil
}

// write sends the reply to a request.
func (f *API) write(w http.ResponseWriter, r *http.Request, request []byte, reply Reply) {
	f.dialect.header(w.Header())
	for name, values := range reply.Header {
		w.Header()[http.CanonicalHeaderKey(name)] = values
	}

	if reply.Status == 0 {
		reply.Status = http.StatusOK
	}
	if reply.Body == "" {
		reply.Body = f.dialect.silence()
	}

	// Prepared replies are not streams: make one if the request asks for it.
	if reply.Status == http.StatusOK && !isStream(reply.Body) && f.dialect.streams(r, request) {
		reply.Body = f.dialect.stream(request, reply.Body, reply.Cut)
	}

	contentType := "application/json"
	if isStream(reply.Body) {
		contentType = "text/event-stream; charset=utf-8"
	}
	w.Header().Set("content-type", contentType)
	w.WriteHeader(reply.Status)
	_, _ = io.WriteString(w, reply.Body) // an error means a closed connection
}

func isStream(body string) bool {
	return strings.HasPrefix(body, "event:") || strings.HasPrefix(body, "data:")
}

// refusal returns the error for a request refused by an API, with the body of the response.
func refusal(name string, status int, kind, message, body string) *api.Error {
	e := &api.Error{Kind: api.ErrInvalidRequest, API: name, Status: status, Type: kind, Message: message, Body: body}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		e.Kind = api.ErrAuth
	case http.StatusNotFound:
		e.Kind = api.ErrNotFound
	}
	return e
}

// asksToStream reports whether the body of a request has "stream": true.
func asksToStream(body []byte) bool {
	var request struct {
		Stream bool `json:"stream"`
	}
	return json.Unmarshal(body, &request) == nil && request.Stream
}

// quoted returns s as a JSON string.
func quoted(s string) string { return string(jsonx.Quote(s)) }

func text(v jsontext.Value) string {
	var s string
	_ = json.Unmarshal(v, &s) // "" if v is not a string
	return s
}

// split cuts s into pieces of a few characters.
func split(s string) []string {
	var pieces []string
	for runes := []rune(s); len(runes) > 0; {
		n := min(7, len(runes))
		pieces, runes = append(pieces, string(runes[:n])), runes[n:]
	}
	return pieces
}

// parsed decodes a part of a prepared response. A part of another shape is a mistake in a test and panics.
func parsed(v []byte, into any) {
	if err := json.Unmarshal(v, into); err != nil {
		panic("fake: the answer is none of this API: " + err.Error())
	}
}

// written returns v as JSON, with the members of maps sorted.
func written(v any) []byte {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic("fake: " + err.Error())
	}
	return b
}

// sse is a stream of server-sent events under construction.
type sse struct{ strings.Builder }

// event appends a named event.
func (s *sse) event(name string, data any) {
	fmt.Fprintf(s, "event: %s\ndata: %s\n\n", name, written(data))
}

// data appends an event without a name.
func (s *sse) data(data any) { fmt.Fprintf(s, "data: %s\n\n", written(data)) }
