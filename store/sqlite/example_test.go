package sqlite_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/sqlite"
)

// A conversation outlives the program that wrote it.
func ExampleOpen() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "plait-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "sessions.db")

	db, err := sqlite.Open(ctx, path, nil)
	if err != nil {
		log.Fatal(err)
	}
	n, err := node.New(node.Counting(time.Unix(0, 0)), node.System{Text: "Be brief."}, node.Meta{})
	if err != nil {
		log.Fatal(err)
	}
	line := n.Append(nil)
	record := store.Record{ID: n.ID(), Line: line, Sum: store.SumOf(line)}
	_, err = db.Append(ctx, store.Append{Conversation: "user 42", Head: "main", Records: []store.Record{record}, To: []node.ID{n.ID()}})
	if err != nil {
		log.Fatal(err)
	}
	if err := db.Close(); err != nil {
		log.Fatal(err)
	}

	// Another program, later.
	db, err = sqlite.Open(ctx, path, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	head, err := db.Head(ctx, "user 42", "main")
	if err != nil {
		log.Fatal(err)
	}
	for r, err := range db.Read(ctx, "user 42", head.To, nil) {
		if err != nil {
			log.Fatal(err)
		}
		n, err := node.Parse(r.Line, nil)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(head.Name, head.Version, n.Payload().(node.System).Text)
	}

	// Output:
	// main 1 Be brief.
}
