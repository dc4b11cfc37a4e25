package agui

import (
	"encoding/json"
	"errors"
	"log/slog"
	"mime"
	"net/http"

	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/store"
)

// maxBody is the maximum size of a request, in bytes.
const maxBody = 16 << 20

// Options are the options of [Handler].
type Options struct {
	// Store keeps the conversations. Defaults to one in memory.
	Store *store.Store
	// Thread returns the key of the conversation for a request's thread. An error refuses the request with status 403.
	// Defaults to the thread's ID itself, which gives every client access to every thread.
	Thread func(r *http.Request, threadID string) (key string, err error)
	// SubAgents also sends the texts, thinking and calls of sub-agents, as events with the ID of the sub-agent's run.
	// These messages are not part of the thread, and a snapshot leaves them out. Defaults to false: only the result of
	// a sub-agent is sent, because its messages may not be meant for the user.
	SubAgents bool
	// Log gets the error of each run that fails. Defaults to none.
	Log *slog.Logger
}

// Handler returns a handler for the requests of AG-UI clients. It runs the agent and streams its events. The agent's
// Save is called before the handler's own. The handler is safe for concurrent use. If two runs continue one thread at
// the same time, one of them fails.
func Handler(agent executor.Agent, o *Options) http.Handler {
	h := &handler{agent: agent}
	if o != nil {
		h.Options = *o
	}
	if h.Store == nil {
		h.Store = store.New(store.Memory(), nil)
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
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "use POST", http.StatusMethodNotAllowed)
		return
	}

	// A browser asks before a page of another site may send this type (CORS), so the page cannot use the user's
	// cookies.
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		http.Error(w, "use Content-Type: application/json", http.StatusUnsupportedMediaType)
		return
	}

	in, ok := read(w, r)
	if !ok {
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
	s := &stream{handler: h, in: in, w: w, flush: http.NewResponseController(w).Flush, agents: map[string]*speaker{}}
	s.main = &speaker{stream: s}
	defer s.keepAlive()()
	s.run(r.Context(), conversation)
}

// read returns the body of a request. It responds to an invalid request itself, and returns false.
func read(w http.ResponseWriter, r *http.Request) (in input, ok bool) {
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&in); err != nil {
		status := http.StatusBadRequest
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			status = http.StatusRequestEntityTooLarge
		}
		http.Error(w, "the body is no RunAgentInput", status)
		return in, false
	}

	if in.ThreadID == "" || in.RunID == "" {
		http.Error(w, "threadId and runId are required", http.StatusBadRequest)
		return in, false
	}
	return in, true
}
