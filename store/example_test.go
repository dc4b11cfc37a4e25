package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/store"
)

// check stops an example at an error.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

// A chat over HTTP. Any number of processes may serve it if the driver is that of a database.
func Example_service() {
	sessions := store.New(store.Memory())
	model := apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
		return apitest.Say(fmt.Sprintf("That was message %d.", len(req.Messages)))
	}).Always())

	chat := func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		c, err := sessions.Conversation(r.Context(), r.PathValue("session"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		agent := executor.Agent{Provider: model, Save: c.Append}
		d, err := agent.Run(r.Context(), c.DAG().User(string(text)))
		if errors.Is(err, store.ErrMoved) {
			http.Error(w, "another message is being answered", http.StatusConflict)
			return
		}
		fmt.Fprintln(w, d.Text())
	}

	mux := http.NewServeMux()
	mux.HandleFunc("POST /sessions/{session}", chat)
	for _, text := range []string{"Hello", "How are you?"} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("POST", "/sessions/a", strings.NewReader(text)))
		fmt.Print(w.Body)
	}
	// Output:
	// That was message 1.
	// That was message 3.
}

// Two requests continue the same conversation at once. The second is refused, and loses nothing.
func ExampleConversation_Append() {
	ctx := context.Background()
	s := store.New(store.Memory())
	first, err := s.Conversation(ctx, "talk")
	check(err)
	second, err := s.Conversation(ctx, "talk")
	check(err)

	check(first.Append(ctx, first.DAG().User("Hello")))
	err = second.Append(ctx, second.DAG().User("Hi"))
	var conflict *store.ConflictError
	if !errors.As(err, &conflict) {
		panic(err)
	}

	// The nodes of the second are at a head of their own. Here they are merged.
	main, err := s.Conversation(ctx, "talk")
	check(err)
	kept, err := main.Head(ctx, conflict.KeptHead)
	check(err)
	check(main.Append(ctx, dag.Merge(dag.Branch{DAG: main.DAG()}, dag.Branch{DAG: kept.DAG()})))
	check(kept.Remove(ctx))

	for _, m := range main.DAG().Transcript().Messages {
		fmt.Println(m.Blocks.Text())
	}
	// Output:
	// Hello
	// Hi
}

// A fork is a further head of the conversation. It stores one row, whatever the length.
func ExampleConversation_Fork() {
	ctx := context.Background()
	s := store.New(store.Memory())
	c, err := s.Conversation(ctx, "talk")
	check(err)
	check(c.Append(ctx, dag.New().User("Name a color.").Assistant("Red.")))

	fork, err := c.Fork(ctx, "another color")
	check(err)
	check(fork.Append(ctx, c.DAG().Back(1).User("Name a color that is not red.").Assistant("Blue.")))

	for h, err := range s.Heads(ctx, "talk", "") {
		check(err)
		head, err := s.Head(ctx, "talk", h.Name)
		check(err)
		fmt.Println(h.Name+":", head.DAG().Text())
	}
	// Output:
	// another color: Blue.
	// main: Red.
}

// A page that shows a conversation follows it while a run in another process continues it.
func ExampleConversation_Watch() {
	ctx := context.Background()
	s := store.New(store.Memory())
	writer, err := s.Conversation(ctx, "talk")
	check(err)
	check(writer.Append(ctx, writer.DAG().User("Count to two.")))
	reader, err := s.Conversation(ctx, "talk")
	check(err)

	for d, err := range reader.Watch(ctx) {
		check(err)
		fmt.Println(d.Len(), "nodes")
		switch d.Len() {
		case 1:
			check(writer.Append(ctx, d.Assistant("One.")))
		case 2:
			check(writer.Append(ctx, d.Assistant("Two.")))
		default:
			return
		}
	}
	// Output:
	// 1 nodes
	// 2 nodes
	// 3 nodes
}

// A rewind leaves nodes behind. They stay until they are pruned.
func ExampleStore_Prune() {
	ctx := context.Background()
	s := store.New(store.Memory())
	c, err := s.Conversation(ctx, "talk")
	check(err)
	check(c.Append(ctx, dag.New().User("Hello").Assistant("Hi").User("Wrong window").Assistant("What?")))
	check(c.Append(ctx, c.DAG().Back(1)))

	for _, dryRun := range []bool{true, false, true} {
		pruned, err := s.Prune(ctx, "talk", dryRun)
		check(err)
		fmt.Println(pruned.Records, "nodes")
	}
	// Output:
	// 2 nodes
	// 2 nodes
	// 0 nodes
}

// Content that was redacted is erased from the store too.
func ExampleConversation_Rewrite() {
	ctx := context.Background()
	s := store.New(store.Memory())
	c, err := s.Conversation(ctx, "talk")
	check(err)
	check(c.Append(ctx, dag.New().User("My number is 555-0100.").Assistant("Thanks.")))

	check(c.Rewrite(ctx, c.DAG().Redact(c.DAG().Nodes()[0].ID())))

	c, err = s.Conversation(ctx, "talk")
	check(err)
	fmt.Println(c.DAG())
	// Output:
	// ○ user      [redacted]
	// ● assistant Thanks.
}

// Keys are chosen by the program. With a prefix for each user, the conversations of one can be listed.
func ExampleStore_Conversations() {
	ctx := context.Background()
	s := store.New(store.Memory())
	for _, key := range []string{"ann/holiday", "bob/work", "ann/garden"} {
		c, err := s.Conversation(ctx, key)
		check(err)
		check(c.Append(ctx, dag.New().User("Hello")))
	}

	for key, err := range s.Conversations(ctx, "ann/") {
		check(err)
		fmt.Println(key)
	}
	// Output:
	// ann/garden
	// ann/holiday
}
