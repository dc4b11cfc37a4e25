// Command service is a chat service over HTTP. Each session is a journal in a folder, so that a restart loses nothing.
//
//	ANTHROPIC_API_KEY=… go run ./examples/service -addr localhost:8080 -dir sessions
//	curl -N localhost:8080/sessions/a -d '{"text": "Hello"}'     # server-sent events: text, tool, done, error
//	curl localhost:8080/sessions/a                               # the conversation as a page
//
// Without a key, a scripted model answers.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/anthropic"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/viz/page"
)

func main() {
	addr := flag.String("addr", "localhost:8080", "address to listen on")
	dir := flag.String("dir", "sessions", "folder of the sessions")
	flag.Parse()

	if err := serve(*addr, *dir); err != nil {
		log.Fatal(err)
	}
}

// serve runs the service until an interrupt.
func serve(addr, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	s := newService(model(), dir)
	server := &http.Server{Addr: addr, Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { server.Close() }) // ends the requests, and so the runs
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return s.close()
}

// model returns Claude if there is a key, and a scripted model otherwise. The client limits what all sessions ask at a time.
func model() api.Provider {
	var provider api.Provider = apitest.NewScript(apitest.Func(echo).Always())
	if os.Getenv("ANTHROPIC_API_KEY") != "" {
		provider = anthropic.New("claude-sonnet-4-5", nil)
	}
	return api.NewClient(provider, &api.ClientOptions{MaxConcurrent: 8})
}

func echo(req api.Request) apitest.Turn {
	last := req.Messages[len(req.Messages)-1].Blocks
	if last.ToolResults() == nil && last.Text() == "What time is it?" {
		return apitest.Call(apitest.Use("now", struct{}{}))
	}
	return apitest.Say(fmt.Sprintf("Message %d: %s", len(req.Messages), last.Text()))
}

// service holds the sessions that were used since it started.
type service struct {
	agent executor.Agent
	dir   string

	mu       sync.Mutex
	sessions map[string]*session // guarded by mu
}

// session is one conversation. One run at a time continues it.
type session struct {
	running sync.Mutex
	journal *dag.Journal
}

func newService(model api.Provider, dir string) *service {
	now := func(context.Context, struct{}) (string, error) { return time.Now().UTC().Format(time.RFC3339), nil }
	return &service{
		agent: executor.Agent{
			Provider: model,
			System:   "You answer in a chat. Be brief.",
			Tools:    []dag.Tool{executor.Func("now", "Returns the time.", now)},
			Limits:   executor.Limits{Turns: 10},
		},
		dir:      dir,
		sessions: map[string]*session{},
	}
}

func (s *service) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /sessions/{id}", s.post)
	mux.HandleFunc("GET /sessions/{id}", s.get)
	return mux
}

// sessionID is what an id may look like: it becomes the name of a file.
var sessionID = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)

// session opens the journal of a session. If there is none, it creates one or returns fs.ErrNotExist.
func (s *service) session(id string, create bool) (*session, error) {
	if !sessionID.MatchString(id) {
		return nil, fmt.Errorf("the session's id must match %s", sessionID)
	}
	s.mu.Lock()
	defer s.mu.Unlock()

	if open := s.sessions[id]; open != nil {
		return open, nil
	}
	path := filepath.Join(s.dir, id+".jsonl")
	if _, err := os.Stat(path); err != nil && !create {
		return nil, err
	}
	journal, err := dag.OpenJournal(path, nil)
	if err != nil {
		return nil, err
	}
	s.sessions[id] = &session{journal: journal}
	return s.sessions[id], nil
}

// post adds a user message to a session, runs the agent, and streams what it does.
func (s *service) post(w http.ResponseWriter, r *http.Request) {
	var message struct{ Text string }
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&message); err != nil || message.Text == "" {
		http.Error(w, `the body must be {"text": "…"}`, http.StatusBadRequest)
		return
	}
	session, err := s.session(r.PathValue("id"), true)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}

	// A second message waits for the first one's answer.
	session.running.Lock()
	defer session.running.Unlock()

	agent := s.agent
	agent.Save = func(_ context.Context, d dag.DAG) error { return session.journal.Append(d) }

	// The run ends with the request: a client that hangs up cancels it, and what arrived until then is kept.
	w.Header().Set("Content-Type", "text/event-stream")
	for event, err := range agent.Stream(r.Context(), session.journal.DAG().User(message.Text)) {
		switch e := event.(type) {
		case executor.MessageDelta:
			send(w, "text", e.Text())
		case executor.ToolEnd:
			send(w, "tool", e.Execution.Tool)
		case executor.End:
			if err != nil {
				send(w, "error", err.Error())
			} else {
				send(w, "done", e.DAG.Text())
			}
		}
	}
}

// send writes one server-sent event. The data is JSON, so that it has no line breaks.
func send(w http.ResponseWriter, event, text string) {
	if text == "" {
		return
	}
	data, _ := json.Marshal(text) // a string always has a JSON form
	fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, data)
	_ = http.NewResponseController(w).Flush() // a client that hung up is noticed by the request's context
}

// get shows a session as a page, also while a run continues it.
func (s *service) get(w http.ResponseWriter, r *http.Request) {
	session, err := s.session(r.PathValue("id"), false)
	if errors.Is(err, fs.ErrNotExist) {
		http.NotFound(w, r)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if err := page.Write(w, session.journal.DAG(), nil); err != nil {
		log.Println(err)
	}
}

// close closes the journals. It waits for runs that are still at it.
func (s *service) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()

	var errs []error
	for _, session := range s.sessions {
		session.running.Lock()
		errs = append(errs, session.journal.Close())
		session.running.Unlock()
	}
	return errors.Join(errs...)
}
