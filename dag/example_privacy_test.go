package dag_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

func ExampleDAG_Verify() {
	source := node.Counting(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) // so that the output is always the same
	d := dag.New().WithSource(source).User("Send 10 euros.").Assistant("Done.")
	var saved strings.Builder
	if err := d.Write(&saved); err != nil {
		panic(err)
	}
	fmt.Println(d.Verify())

	forged, err := dag.Read(strings.NewReader(strings.Replace(saved.String(), "10 euros", "99 euros", 1)))
	if err != nil {
		panic(err)
	}
	v := forged.Verify()
	for _, f := range v.Findings {
		fmt.Println(v.OK(), f.Node, f.Kind)
	}
	// Output:
	// 2 nodes: 2 checked, 0 redacted, 0 unknown, 0 findings
	// false message 00000001 wrong checksum
}

// A customer asks that what they said be erased. Everything else stays as it was, and the conversation goes on.
func ExampleDAG_Redact() {
	source := node.Counting(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	d := dag.New().WithSource(source).
		User("I am Ada, born in 1815.").
		Assistant("", content.ToolUse{ID: "a", Name: "find_customer", Input: `{"born":1815}`}).
		CloseTools(node.ToolExecution{Result: content.Words("customer 17")}).
		Assistant("Welcome.")
	nodes := d.Nodes()
	clean := d.Redact(nodes[0].ID(), nodes[1].ID())
	fmt.Println(clean)
	fmt.Println(clean.Verify())
	fmt.Println(clean.User("Thanks.").Err())
	// Output:
	// ○ user      [redacted]
	// ● assistant → find_customer
	// ▪ find_customer() → customer 17
	// ● assistant Welcome.
	// 5 nodes: 5 checked, 3 redacted, 0 unknown, 0 findings
	// message 00000001: redacted
	// message 00000002: redacted
	// tool_execution 00000003: redacted
	// <nil>
}

// To see what would go is the dry run: Unreachable changes nothing.
func ExampleDAG_Prune() {
	source := node.Counting(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	d := dag.New().WithSource(source).User("What is a DAG?").Assistant("A graph.")
	var saved strings.Builder
	if err := d.Join(d.Back(1).User("What is a tree?")).Write(&saved); err != nil {
		panic(err)
	}
	onlyFirst := strings.Replace(saved.String(), `,"019b7ca9-8c88-7000-8000-000000000003"]`, "]", 1)

	loaded, err := dag.Read(strings.NewReader(onlyFirst))
	if err != nil {
		panic(err)
	}
	fmt.Println(loaded.Unreachable())
	fmt.Println(loaded.Prune().Unreachable())
	// Output:
	// 1 node out of reach, 262 bytes
	// message 00000003
	// 0 nodes out of reach, 0 bytes
}

func ExampleRewriteJournal() {
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
	d := j.DAG().User("I am Ada.").Assistant("Welcome.")
	if err := j.Append(d); err != nil {
		panic(err)
	}

	clean := d.Redact(d.Nodes()[0].ID())
	fmt.Println(j.Append(clean) != nil) // a *node.FieldError with ErrNotErased in its chain: nothing is ever erased by appending
	if err := j.Close(); err != nil {
		panic(err)
	}
	if err := dag.RewriteJournal(path, clean); err != nil {
		panic(err)
	}
	text, _ := os.ReadFile(path)
	fmt.Println(strings.Contains(string(text), "Ada"))
	// Output:
	// true
	// false
}
