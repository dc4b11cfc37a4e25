package fake

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"

	"github.com/plait-dev/plait/api"
)

// API is a strict fake of a model's API: an http.Handler, for httptest.NewServer. [Anthropic], [OpenAIChat], [OpenAICompatible],
// [OpenAIResponses] and [Gemini] return one. It checks every request, refuses a bad one in the API's own words, and answers the
// others with its prepared replies: as JSON or, if the request asks for a stream, as server-sent events. It is safe for
// concurrent use.
type API struct {
	dialect dialect
	mu      sync.Mutex
	replies []Reply
	bodies  [][]byte
	refused []error
}

// dialect is what the APIs do differently.
type dialect interface {
	// address refuses a request to another place, by another method or without a key, with an *api.Error.
	address(r *http.Request) error
	// check refuses a request for its body, with an *api.Error.
	check(r *http.Request, body []byte) error
	// remember is told the body of each reply that is given, and that of the request that it answers.
	remember(request []byte, answer string)
	// refuse is how the API says that a request is invalid.
	refuse(message string) *api.Error
	// streams reports whether the request asks for a stream.
	streams(r *http.Request, body []byte) bool
	// silence is the body of an answer that says nothing.
	silence() string
	// stream is the answer as a stream. One that is cut breaks off before its last block ends. An answer that is none of the
	// API's is a mistake in a test and panics.
	stream(request []byte, answer string, cut bool) string
	// header sets the headers that every response has.
	header(h http.Header)
}

func newFake(d dialect, replies []Reply) *API {
	return &API{dialect: d, replies: slices.Clone(replies)}
}

// Reply is what an [API] answers a request with. The zero value is an answer of the API that says nothing.
type Reply struct {
	// Status is the HTTP status. Defaults to 200.
	Status int
	// Header is added to the response's header.
	Header http.Header
	// Body is the answer as the API gives it when no stream is asked for: what the model says, or an error. A body that begins
	// with "event:" or "data:" is a stream already and is sent as it is. Defaults to an answer that says nothing.
	Body string
	// Cut breaks a stream off before its last block ends, as a broken connection does.
	Cut bool
}

// Bodies returns the body of every request until now, in order, the refused ones too.
func (f *API) Bodies() [][]byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	bodies := make([][]byte, len(f.bodies))
	for i, b := range f.bodies {
		bodies[i] = slices.Clone(b)
	}
	return bodies
}

// Refused returns why requests were refused until now, in order. A test of a program that must never send an invalid request
// wants it empty.
func (f *API) Refused() []error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.refused)
}

// Gave has the fake take reply for one that it gave to a request with that body, so that a conversation can go on which another fake, or
// the API itself, had a part in: what the API checks of its own answers (see [Anthropic], [OpenAIResponses]) is checked of this
// one too.
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
	reply, err := f.next(r, body)
	var refusal *api.Error
	if errors.As(err, &refusal) {
		reply = Reply{Status: refusal.Status, Body: refusal.Body}
	}
	f.write(w, r, body, reply)
}

// next records the request and takes the reply to it.
func (f *API) next(r *http.Request, body []byte) (Reply, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bodies = append(f.bodies, body)
	err := f.dialect.address(r)
	if err == nil {
		err = f.dialect.check(r, body)
	}
	if err == nil && len(f.replies) == 0 {
		err = f.dialect.refuse(fmt.Sprintf("the fake has no reply left: this is request %d", len(f.bodies)))
	}
	if err != nil {
		f.refused = append(f.refused, err)
		return Reply{}, err
	}
	reply := f.replies[0]
	f.replies = f.replies[1:]
	f.dialect.remember(body, reply.Body)
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
	if reply.Status == http.StatusOK && !isStream(reply.Body) && f.dialect.streams(r, request) {
		reply.Body = f.dialect.stream(request, reply.Body, reply.Cut)
	}
	contentType := "application/json"
	if isStream(reply.Body) {
		contentType = "text/event-stream; charset=utf-8"
	}
	w.Header().Set("content-type", contentType)
	w.WriteHeader(reply.Status)
	_, _ = io.WriteString(w, reply.Body) // a client that is gone is no concern of the fake
}

func isStream(body string) bool {
	return strings.HasPrefix(body, "event:") || strings.HasPrefix(body, "data:")
}

// refusal is the error of a request that an API refuses, and the body that it answers with.
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

// quoted is s as a JSON string.
func quoted(s string) string {
	b, _ := jsontext.AppendQuote(nil, s) // the error only tells of bytes that it replaced by U+FFFD
	return string(b)
}

func text(v jsontext.Value) string {
	var s string
	_ = json.Unmarshal(v, &s) // what is no string is empty
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

// parsed reads a part of an answer that was prepared for a fake. One of another shape is a mistake in a test and panics.
func parsed(v []byte, into any) {
	if err := json.Unmarshal(v, into); err != nil {
		panic("fake: the answer is none of this API: " + err.Error())
	}
}

// written is v as JSON, members of maps sorted.
func written(v any) []byte {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic("fake: " + err.Error())
	}
	return b
}

// sse is a stream of server-sent events under construction.
type sse struct{ strings.Builder }

// event adds a named event.
func (s *sse) event(name string, data any) {
	fmt.Fprintf(s, "event: %s\ndata: %s\n\n", name, written(data))
}

// data adds an event without a name.
func (s *sse) data(data any) { fmt.Fprintf(s, "data: %s\n\n", written(data)) }
