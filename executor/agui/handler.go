package agui

import (
	"encoding/json"
	"errors"
	"log/slog"
	"mime"
	"net/http"
	"time"

	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/webguard"
	"github.com/plait-dev/plait/store"
)

// Limits of a request.
const (
	maxBody  = 16 << 20    // bytes
	bodyTime = time.Minute // until it has arrived
)

// Options are the options of [Handler] and [Durable].
type Options struct {
	// Store keeps the conversations. Required by Handler; it has no effect on Durable.
	Store *store.Store
	// Hosts are the names by which clients reach the handler, without a port, such as "app.example.com". Defaults to
	// none: localhost and IP addresses are always accepted. "*" accepts every name: only for a program that checks
	// each user by something that a browser does not send by itself.
	Hosts []string
	// Origins are the other sites whose pages may send requests, such as "https://app.example.com". The program answers
	// the question of the browser before the request (CORS). List the handler's own site if a proxy changes the Host
	// header. Defaults to none: only the site in the Host header.
	Origins []string
	// Thread returns the key of the conversation for a request's thread. An error refuses the request with status 403.
	// Defaults to the thread's ID itself, which gives every client access to every thread.
	Thread func(r *http.Request, threadID string) (key string, err error)
	// ClientTools are the names of the agent's deferred tools whose calls the clients execute. It has an effect on
	// Durable only: an agent elsewhere cannot know the tools of a request. Defaults to none.
	ClientTools []string
	// Log gets the error of each run that fails. Defaults to none.
	Log *slog.Logger
}

// Handler returns a handler for the requests of AG-UI clients. It runs the agent and streams its events. The agent's
// Save is called before the handler's own. The handler is safe for concurrent use. If two runs continue one thread at
// the same time, one of them fails. Handler panics without a Store.
func Handler(agent executor.Agent, o *Options) http.Handler {
	h := newHandler(o)
	h.agent = agent
	if h.Store == nil {
		panic("agui: Handler needs Options.Store")
	}
	return h
}

func newHandler(o *Options) *handler {
	h := &handler{}
	if o != nil {
		h.Options = *o
	}
	if h.Thread == nil {
		h.Thread = func(_ *http.Request, threadID string) (string, error) { return threadID, nil }
	}
	if h.Log == nil {
		h.Log = slog.New(slog.DiscardHandler)
	}
	return h
}

type handler struct {
	Options
	agent executor.Agent
	runs  Runs // of Durable; nil for runs that end with their requests
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	webguard.LimitBody(w, r, bodyTime)
	in, no := h.read(w, r)
	if no != nil {
		webguard.LeaveBody(w, r)
		http.Error(w, no.Message, no.Status)
		return
	}

	key, err := h.Thread(r, in.ThreadID)
	if err != nil {
		http.Error(w, "no such thread", http.StatusForbidden)
		return
	}
	conversation, err := h.Store.Conversation(r.Context(), key)
	if errors.Is(err, store.ErrName) {
		http.Error(w, "the thread's ID is no name of a conversation", http.StatusBadRequest)
		return
	}
	if err != nil {
		h.Log.ErrorContext(r.Context(), "agui: a thread cannot be opened", "error", err)
		http.Error(w, "the thread cannot be opened", http.StatusInternalServerError)
		return
	}

	// The first event sends the status, so later errors are events too.
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	s := &stream{handler: h, in: in, out: webguard.NewStream(w)}
	defer s.keepAlive()()
	if h.runs != nil {
		s.follow(r.Context(), conversation)
	} else {
		s.run(r.Context(), conversation)
	}
}

// read returns the body of a request, or the reason to refuse the request.
func (h *handler) read(w http.ResponseWriter, r *http.Request) (in input, no *webguard.Refusal) {
	if no := (webguard.Guard{Remote: true, Hosts: h.Hosts, Origins: h.Origins}).Check(r); no != nil {
		no.Message += refusedBy[no.Code]
		return in, no
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return in, &webguard.Refusal{Status: http.StatusMethodNotAllowed, Message: "use POST"}
	}

	// A browser asks before a page of another site may send this type (CORS), so the page cannot use the user's
	// cookies.
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		return in, &webguard.Refusal{Status: http.StatusUnsupportedMediaType, Message: "use Content-Type: application/json"}
	}

	body, no := webguard.Body(w, r, maxBody)
	if no != nil {
		return in, no
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return in, &webguard.Refusal{Status: http.StatusBadRequest, Message: "the body is no RunAgentInput"}
	}
	if in.ThreadID == "" || in.RunID == "" {
		return in, &webguard.Refusal{Status: http.StatusBadRequest, Message: "threadId and runId are required"}
	}
	return in, nil
}

// refusedBy names the option that decides, by the code of a refusal.
var refusedBy = map[string]string{
	"wrong_host":   ": the program lists its names in agui.Options.Hosts",
	"cross_origin": ": the program lists the sites that it trusts in agui.Options.Origins",
}
