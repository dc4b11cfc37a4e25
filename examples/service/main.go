// Command service is a chat service over HTTP. Its sessions are in an SQLite database: a crash at any moment loses
// nothing acknowledged, and after the next start each session continues.
//
//	ANTHROPIC_API_KEY=… go run ./examples/service -addr localhost:8080 -db sessions.db
//	curl -N localhost:8080/sessions/a -d '{"text": "Hello"}'     # server-sent events: text, tool, done, conflict, error
//	curl localhost:8080/sessions/a                               # the conversation as a page
//
// If two messages continue one session at once, one of them is refused with 409, and its nodes are kept.
//
// Without a key, a scripted model answers.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/anthropic"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/sqlite"
	"github.com/plait-dev/plait/viz/page"
)

func main() {
	addr := flag.String("addr", "localhost:8080", "address to listen on")
	file := flag.String("db", "sessions.db", "database of the sessions")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second interrupt ends the program at once

	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening on http://%s\n", listener.Addr())

	if err := serve(ctx, listener, *file, model()); err != nil {
		log.Fatal(err)
	}
}

// grace is the time limit for runs after an interrupt. Then they are canceled, and save their state.
const grace = 10 * time.Second

// serve runs the service until ctx ends and the runs under way have ended too.
func serve(ctx context.Context, listener net.Listener, file string, model api.Provider) (err error) {
	defer listener.Close()
	db, err := sqlite.Open(ctx, file, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	// Runs may outlive ctx by the grace period: Shutdown waits for them, and cancel ends the late ones.
	runs, cancel := context.WithCancel(context.Background())
	defer cancel()
	server := &http.Server{
		Handler:           newService(model, db).handler(),
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return runs },
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()

	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		timer := time.AfterFunc(grace, cancel)
		defer timer.Stop()
		return server.Shutdown(context.Background())
	}
}

// model returns Claude if there is a key, and a scripted model otherwise. The client limits the requests of all
// sessions together.
func model() api.Provider {
	var provider api.Provider = apitest.NewScript(apitest.Func(echo).Always())
	if os.Getenv("ANTHROPIC_API_KEY") != "" {
		provider = anthropic.New("claude-sonnet-4-5", nil)
	}
	return api.NewClient(provider, &api.ClientOptions{MaxConcurrent: 8})
}

func echo(req api.Request) apitest.Turn {
	last := req.Messages[len(req.Messages)-1].Blocks
	if last.ToolResults() == nil && strings.HasSuffix(last.Text(), "What time is it?") {
		return apitest.Call(apitest.Use("now", struct{}{}))
	}
	return apitest.Say(fmt.Sprintf("Message %d: %s", len(req.Messages), last.Text()))
}

// service has no state of its own: any number of processes may serve one database.
type service struct {
	agent    executor.Agent
	sessions *store.Store
}

func newService(model api.Provider, driver store.Driver) *service {
	now := func(context.Context, struct{}) (string, error) { return time.Now().UTC().Format(time.RFC3339), nil }
	return &service{
		agent: executor.Agent{
			Provider: model,
			System:   "You answer in a chat. Be brief.",
			Tools:    []dag.Tool{executor.Func("now", "Returns the time.", now)},
			Limits:   executor.Limits{Turns: 10},
		},
		sessions: store.New(driver, nil),
	}
}

func (s *service) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /sessions/{id}", s.post)
	mux.HandleFunc("GET /sessions/{id}", s.get)
	return mux
}

// post adds a user message to a session, runs the agent, and streams its progress.
func (s *service) post(w http.ResponseWriter, r *http.Request) {
	var message struct{ Text string }
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&message); err != nil || message.Text == "" {
		http.Error(w, `the body must be {"text": "…"}`, http.StatusBadRequest)
		return
	}

	c, err := s.sessions.Conversation(r.Context(), r.PathValue("id"))
	if err != nil {
		refuse(w, err)
		return
	}
	agent := s.agent
	agent.Save = c.Append

	// A crash may have cut off tool calls. Known results are kept. For the other calls, the model reads that they have
	// no result, or that their effect is unknown.
	d := c.DAG()
	if closed := d.CloseTools(); closed.Err() == nil {
		d = closed
	}

	// The run ends with the request: a client hanging up cancels it, and everything received until then is kept.
	out := &events{w: w, session: r.URL.EscapedPath()}
	for event, err := range agent.Stream(r.Context(), d.User(message.Text)) {
		switch e := event.(type) {
		case executor.MessageDelta:
			if text := e.Text(); text != "" {
				out.send("text", text)
			}
		case executor.ToolEnd:
			out.send("tool", e.Execution.Tool)
		case executor.End:
			out.end(e.DAG, err)
		}
	}
}

// get shows a session as a page, also while a run continues it. With ?head= it shows the branch kept after a conflict.
func (s *service) get(w http.ResponseWriter, r *http.Request) {
	c, err := s.sessions.Head(r.Context(), r.PathValue("id"), cmp.Or(r.FormValue("head"), store.Main))
	if err != nil {
		refuse(w, err)
		return
	}

	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if err := page.Write(w, c.DAG(), nil); err != nil {
		log.Println(err)
	}
}

// refuse answers a request if its session cannot be opened.
func refuse(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, store.ErrName):
		http.Error(w, err.Error(), http.StatusBadRequest)
	case errors.Is(err, store.ErrNotStored):
		http.Error(w, "there is no such session", http.StatusNotFound)
	default:
		log.Println(err)
		http.Error(w, "the session cannot be read", http.StatusInternalServerError)
	}
}

// events is the response to a message: server-sent events, or a status with a text if the run fails before the first.
type events struct {
	w       http.ResponseWriter
	session string // the path of the session
	begun   bool   // the status is sent
}

// send writes one event. The data is JSON, and so has no line breaks.
func (e *events) send(event, text string) {
	if !e.begun {
		e.w.Header().Set("Content-Type", "text/event-stream")
		e.begun = true
	}
	data, _ := json.Marshal(text) // a string always has a JSON form
	fmt.Fprintf(e.w, "event: %s\ndata: %s\n\n", event, data)
	_ = http.NewResponseController(e.w).Flush() // ignored: if a client hangs up, the context of the request ends
}

// end reports how the run ended. Only "done" is the acknowledgment: everything is on disk then.
func (e *events) end(d dag.DAG, err error) {
	if err == nil {
		e.send("done", d.Text())
		return
	}

	event, status, text := "error", http.StatusInternalServerError, err.Error()
	var conflict *store.ConflictError
	if errors.As(err, &conflict) {
		event, status = "conflict", http.StatusConflict
		text = "another message was sent to this session at the same time, and the session continues from that one"
		if conflict.KeptHead != "" {
			text += "; yours is kept: " + e.session + "?head=" + url.QueryEscape(conflict.KeptHead)
		}
	}

	// After the first event, the status is sent, and the failure is an event like the others.
	if e.begun {
		e.send(event, text)
	} else {
		http.Error(e.w, text, status)
	}
}
