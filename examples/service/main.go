// Command service is a chat service over HTTP. Its sessions and their runs are in an SQLite database: a message that was
// accepted is answered, whatever happens to the process or the connection.
//
//	ANTHROPIC_API_KEY=… go run ./examples/service -addr localhost:8080 -db sessions.db
//	curl -N localhost:8080/sessions/a -d '{"text": "Hello"}'     # server-sent events: accepted, text, tool, done, …
//	curl -N localhost:8080/sessions/a/events                     # follow the answer again, after a lost connection
//	curl localhost:8080/sessions/a                               # the conversation as a page
//
// A message to a session that is being answered is read by the model before its next request. kill.sh kills the service
// under load, and checks that nothing accepted is lost.
//
// Without a key, a scripted model answers.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
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
	"github.com/plait-dev/plait/executor/durable"
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

// agent is the name of the agent in the database.
const agent = "chat"

// grace is how long runs may take after an interrupt. A later one continues at the next start.
const grace = 10 * time.Second

// serve runs the service until ctx ends.
func serve(ctx context.Context, listener net.Listener, file string, model api.Provider) (err error) {
	defer listener.Close()
	db, err := sqlite.Open(ctx, file, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	engine, err := durable.Open(ctx, db, &durable.Options{
		Agents: map[string]executor.Agent{agent: chat(model)}, ShutdownTimeout: grace,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()

	// Responses follow their runs until these have ended, and no longer than the engine serves.
	following, leave := context.WithCancel(context.Background())
	defer leave()
	server := &http.Server{
		Handler:           (&service{engine}).handler(),
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return following },
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	go func() {
		served <- engine.Serve(ctx) // after ctx, it waits for the runs under way
		stop()
		time.AfterFunc(time.Second, leave) // and the responses get their last events
	}()

	select {
	case err = <-failed:
		stop()
	case <-ctx.Done():
		err = server.Shutdown(context.Background())
	}
	return errors.Join(err, <-served)
}

// chat returns the agent.
func chat(model api.Provider) executor.Agent {
	now := func(context.Context, struct{}) (string, error) { return time.Now().UTC().Format(time.RFC3339), nil }
	return executor.Agent{
		Provider: model,
		System:   "You answer in a chat. Be brief.",
		Tools:    []dag.Tool{executor.WithEffect(executor.Func("now", "Returns the time.", now), executor.EffectReadOnly)},
		Limits:   executor.Limits{Turns: 10},
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
type service struct{ engine *durable.Engine }

func (s *service) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /sessions/{id}", s.post)
	mux.HandleFunc("GET /sessions/{id}/events", s.events)
	mux.HandleFunc("GET /sessions/{id}", s.get)
	return mux
}

// post accepts a message for a session, and streams the answer. The answer does not need the connection.
func (s *service) post(w http.ResponseWriter, r *http.Request) {
	var message struct{ Text string }
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&message); err != nil || message.Text == "" {
		http.Error(w, `the body must be {"text": "…"}`, http.StatusBadRequest)
		return
	}
	run, err := s.accept(r.Context(), r.PathValue("id"), message.Text)
	if err != nil {
		refuse(w, err)
		return
	}
	s.follow(w, r, run)
}

// accept starts a run with a message, or leaves it for the run that is under way. It returns the ID of the run.
func (s *service) accept(ctx context.Context, session, text string) (run string, err error) {
	for {
		run, err = s.engine.Start(ctx, durable.StartRequest{Agent: agent, Conversation: session, Text: text})
		var busy *durable.RunError
		if !errors.Is(err, durable.ErrBusy) || !errors.As(err, &busy) {
			return run, err
		}
		_, err = s.engine.Send(ctx, session, "", text)
		if !errors.Is(err, durable.ErrNotBusy) { // otherwise it has ended meanwhile
			return busy.Run, err
		}
	}
}

// events streams what happens to the last run of a session from now on.
func (s *service) events(w http.ResponseWriter, r *http.Request) {
	runs, err := s.engine.Runs(r.Context(), durable.RunsRequest{Conversation: r.PathValue("id"), Limit: 1})
	switch {
	case err != nil:
		refuse(w, err)
	case len(runs) == 0:
		refuse(w, store.ErrNotStored)
	default:
		s.follow(w, r, runs[0].ID)
	}
}

// follow streams the events of a run as server-sent events. "begin" means that the pieces of text before it are void: the
// run continues from its last step, because its process was lost.
func (s *service) follow(w http.ResponseWriter, r *http.Request, run string) {
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(event, text string) {
		data, _ := json.Marshal(text) // a string always has a JSON form
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, data)
		_ = http.NewResponseController(w).Flush() // ignored: if a client hangs up, the context of the request ends
	}

	send("accepted", run)
	begun := false
	for event, err := range s.engine.Follow(r.Context(), run) {
		switch e := event.(type) {
		case executor.RunStart:
			if begun {
				send("begin", "")
			}
			begun = true
		case executor.MessageDelta:
			if text := e.Text(); text != "" {
				send("text", text)
			}
		case executor.ToolEnd:
			send("tool", e.Execution.Tool)
		case executor.End:
			if err != nil {
				send("error", err.Error())
			} else {
				send("done", e.DAG.Text())
			}
		}
	}
}

// get shows a session as a page, also while a run continues it.
func (s *service) get(w http.ResponseWriter, r *http.Request) {
	c, err := s.engine.Store().Head(r.Context(), r.PathValue("id"), store.Main)
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
