package live

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/webguard"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz"
)

const maxBody = 1 << 20 // bytes of a request

// refusal is the response to a rejected request.
type refusal struct {
	status  int
	Code    string `json:"error"`
	Message string `json:"message"`
}

func refuse(status int, code, message string) *refusal { return &refusal{status, code, message} }

func unknownNode(id string) *refusal {
	return refuse(http.StatusNotFound, "unknown_node", fmt.Sprintf("the conversation has no node %.80q", id))
}

func (r *refusal) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(r.status)
	_ = json.NewEncoder(w).Encode(r)
}

// endpoint handles one path.
type endpoint struct {
	method string // GET includes HEAD
	open   bool   // no token is needed
	answer func(*Server, http.ResponseWriter, *http.Request) *refusal
}

var endpoints = map[string]endpoint{
	"":        {http.MethodGet, true, (*Server).home},
	"events":  {http.MethodGet, false, (*Server).events},
	"request": {http.MethodGet, false, (*Server).request},
	"copy":    {http.MethodGet, false, (*Server).copy},
	"fork":    {http.MethodPost, false, (*Server).postFork},
	"answer":  {http.MethodPost, false, (*Server).postAnswer},
	"stop":    {http.MethodPost, false, (*Server).postStop},
}

// ServeHTTP answers a request. Below a path of a site, the server needs http.StripPrefix, and the path must end in "/".
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.serve(w, r, func() *refusal { return s.answer(w, r) })
}

// serve writes the headers, and the response of answer or its refusal.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, answer func() *refusal) {
	h := w.Header()
	h.Set("Content-Security-Policy", s.policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")

	webguard.LimitBody(w, r, bodyTime)
	if no := answer(); no != nil {
		webguard.LeaveBody(w, r)
		no.write(w)
	}
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request) *refusal {
	if no := s.stranger(r); no != nil {
		return no
	}

	e, ok := s.endpoints[strings.TrimPrefix(r.URL.Path, "/")]
	if !ok {
		return refuse(http.StatusNotFound, "no_such_path", "no such path")
	}
	if no := s.check(w, r, e); no != nil {
		return no
	}
	return e.answer(s, w, r)
}

// check returns the reason why a request may not use an endpoint, or nil.
func (s *Server) check(w http.ResponseWriter, r *http.Request, e endpoint) *refusal {
	if r.Method != e.method && (r.Method != http.MethodHead || e.method != http.MethodGet) {
		w.Header().Set("Allow", e.method)
		return refuse(http.StatusMethodNotAllowed, "wrong_method", "the method is "+e.method)
	}

	if !e.open && !s.knows(r) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		return refuse(http.StatusUnauthorized, "no_token",
			"the token is missing or wrong: open the page by the address that the program printed")
	}

	if r.ContentLength != 0 && e.method == http.MethodGet {
		return refuse(http.StatusBadRequest, "bad_body", "a GET request has no body")
	}
	return nil
}

// stranger rejects requests from other machines, for other hosts, and from pages of other sites, on all paths.
func (s *Server) stranger(r *http.Request) *refusal {
	return refused(webguard.Guard{Remote: s.options.Remote, Hosts: s.options.Hosts}.Check(r))
}

func refused(no *webguard.Refusal) *refusal {
	if no == nil {
		return nil
	}
	return refuse(no.Status, no.Code, no.Message)
}

// knows reports whether the request has the token. Its time does not depend on the token.
func (s *Server) knows(r *http.Request) bool {
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")

	// Compare digests: ConstantTimeCompare returns early for texts of different lengths.
	want, got := sha256.Sum256([]byte(s.options.Token)), sha256.Sum256([]byte(given))
	return subtle.ConstantTimeCompare(want[:], got[:]) == 1 && ok
}

// home sends the page, without a conversation.
func (s *Server) home(w http.ResponseWriter, _ *http.Request) *refusal {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(s.page)
	return nil
}

// events streams events until the client leaves or the server is closed.
func (s *Server) events(w http.ResponseWriter, r *http.Request) *refusal {
	w.Header().Set("Content-Type", "text/event-stream")
	if r.Method == http.MethodHead {
		return nil
	}

	l := &listener{out: webguard.NewStream(w), wake: make(chan struct{}, 1), behind: true, seen: s.seen(r.Header.Get("Last-Event-ID"))}
	if no := s.add(l); no != nil {
		return no
	}
	defer s.remove(l)

	webguard.Listen(w)
	l.rouse()

	// A sign of life lets both sides notice a dead connection.
	signs := time.NewTicker(webguard.Beat)
	defer signs.Stop()

	for {
		var events iter.Seq[[]byte]
		select {
		case <-r.Context().Done():
			return nil
		case <-s.ctx.Done():
			return nil
		case <-signs.C:
			events = slices.Values([][]byte{[]byte(":\n\n")})
		case <-l.wake:
			events = s.take(l)
		}

		for event := range events {
			if l.out.Write(event) != nil {
				return nil
			}
		}
	}
}

// request sends the body of the request for a response.
func (s *Server) request(w http.ResponseWriter, r *http.Request) *refusal {
	n, no := find(s.DAG(), r.URL.Query().Get("node"))
	if no != nil {
		return no
	}

	const unknown = "no_request"
	m, ok := n.Message()
	switch {
	case !ok || m.Role != content.Assistant:
		return refuse(http.StatusNotFound, unknown, "the node is not a response of a model")
	case s.options.Request == nil:
		return refuse(http.StatusNotFound, unknown, "the program that serves this page does not show requests")
	}

	// Request is a function of the program: attempt turns a panic into an error.
	var body []byte
	err := attempt("the request", func() (err error) {
		body, err = s.options.Request(s.DAG().WithHeads(n.Parents()...), n)
		return err
	})
	if err != nil {
		return refuse(http.StatusNotFound, unknown, err.Error())
	}

	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
	return nil
}

// copy sends the conversation in another format.
func (s *Server) copy(w http.ResponseWriter, r *http.Request) *refusal {
	// Write to memory first: after the first byte of a response, its status cannot change.
	var b strings.Builder
	var err error
	switch form := r.URL.Query().Get("as"); form {
	case "mermaid":
		err = viz.Mermaid(&b, s.DAG(), nil)
	case "json":
		err = s.DAG().Write(&b)
	default:
		return refuse(http.StatusBadRequest, "unknown_form", fmt.Sprintf("%.80q is not one of mermaid, json", form))
	}

	if err != nil {
		return refuse(http.StatusUnprocessableEntity, "cannot_copy", err.Error())
	}

	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, b.String())
	return nil
}

// find returns the node with that ID in d or in the conversation of a sub-agent.
func find(d dag.DAG, id string) (*node.Node, *refusal) {
	want, err := uuid.Parse(id)
	if err != nil {
		return nil, unknownNode(id)
	}

	for _, n := range d.WithChildren() {
		if n.ID() == want {
			return n, nil
		}
	}
	return nil, unknownNode(id)
}

func (s *Server) postFork(w http.ResponseWriter, r *http.Request) *refusal {
	var asked struct {
		At, Text     string
		Edit, Result *string
		Failed       bool
	}
	if no := read(w, r, &asked); no != nil {
		return no
	}

	// A blank text counts as none. Only a fork without an edit or a result always needs one.
	at, err := uuid.Parse(asked.At)
	if strings.TrimSpace(asked.Text) == "" {
		asked.Text = ""
	}
	change := withText(asked.Text)
	switch {
	case err != nil:
		return unknownNode(asked.At)
	case asked.Edit != nil:
		change = withEdit(*asked.Edit, asked.Text)
	case asked.Result != nil:
		change = withResult(*asked.Result, asked.Failed)
	case asked.Text == "":
		return refuse(http.StatusBadRequest, "no_text", "\"text\" is empty")
	}

	if no := s.fork(at, change); no != nil {
		return no
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

func (s *Server) postStop(w http.ResponseWriter, r *http.Request) *refusal {
	if no := read(w, r, &struct{}{}); no != nil {
		return no
	}
	if no := s.halt(); no != nil {
		return no
	}

	w.WriteHeader(http.StatusAccepted)
	return nil
}

// read decodes the body of a request, a JSON object. See webguard.Body for what else is refused.
func read(w http.ResponseWriter, r *http.Request, into any) *refusal {
	body, no := webguard.Body(w, r, maxBody)
	if no != nil {
		return refused(no)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return refuse(http.StatusBadRequest, "bad_body", "the body is not the expected JSON object: "+err.Error())
	}
	return nil
}
