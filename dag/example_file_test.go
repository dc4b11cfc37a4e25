package dag_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

func ExampleDAG_Save() {
	dir, err := os.MkdirTemp("", "plait")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "talk.json")

	d := dag.New().System("Answer briefly.").User("What is a DAG?").Assistant("A graph without cycles.")
	if err := d.Save(path); err != nil {
		panic(err)
	}
	loaded, err := dag.Load(path)
	if err != nil {
		panic(err) // a *dag.LoadError: it names the file, the line, the node and the field
	}
	fmt.Println(dag.Equal(d, loaded))
	fmt.Println(loaded.User("And a tree?").Len())
	// Output:
	// true
	// 4
}

func ExampleDAG_Write() {
	source := node.Counting(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) // so that the output is always the same
	d := dag.New().WithSource(source).User("Hi.")
	if err := d.Write(os.Stdout); err != nil {
		panic(err)
	}
	// Output:
	// {"format":"plait","version":1,"created":"2026-01-02T03:04:05Z","heads":["019b7ca9-8c88-7000-8000-000000000001"],"nodes":[
	// {"id":"019b7ca9-8c88-7000-8000-000000000001","parents":[],"kind":"message","time":"2026-01-02T03:04:05Z","body":{"role":"user","blocks":[{"type":"text","text":"Hi."}]},"sum":"sha256:5f7168cd4c9709ee5c2604409b047c26f8046e9b907fb6d9069e24db305f134f"}
	// ]}
}

func ExampleDAG_MarshalJSON() {
	type ticket struct {
		Customer string
		Talk     dag.DAG
	}
	source := node.Counting(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) // so that the output is always the same
	data, err := json.Marshal(ticket{"c-17", dag.New().WithSource(source).User("Hi.")})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%.80s…\n", data)

	var loaded ticket
	if err := json.Unmarshal(data, &loaded); err != nil {
		panic(err) // a *dag.LoadError in its chain: it names the node and the field
	}
	fmt.Println(loaded.Customer, loaded.Talk.Assistant("Hello.").Len())
	// Output:
	// {"Customer":"c-17","Talk":{"format":"plait","version":1,"created":"2026-01-02T03…
	// c-17 2
}

func ExampleDAG_WithMetadata() {
	d := dag.New().User("Hi.").WithMetadata("customer", "c-17").WithMetadata("tags", []string{"support", "beta"})
	for key, value := range d.Metadata().All() {
		fmt.Println(key, value)
	}
	// Output:
	// customer "c-17"
	// tags ["support","beta"]
}

func ExampleJournal() {
	dir, err := os.MkdirTemp("", "plait")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "talk.jsonl")

	j, err := dag.OpenJournal(path, nil)
	if err != nil {
		panic(err)
	}
	d := j.DAG().User("What is a DAG?")
	if err := j.Append(d); err != nil { // when it returns nil, d is on disk
		panic(err)
	}
	if err := j.Append(d.Assistant("A graph without cycles.")); err != nil { // writes the new node only
		panic(err)
	}
	if err := j.Close(); err != nil {
		panic(err)
	}

	f, _ := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	fmt.Fprint(f, `{"id":"019b7c`) // the program crashed while it was writing
	f.Close()

	j, err = dag.OpenJournal(path, nil)
	if err != nil {
		panic(err)
	}
	defer j.Close()
	fmt.Println(j.DAG().Text()) // the incomplete append was never reported as done: it is cut
	// Output:
	// A graph without cycles.
}
