package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/postgres"
)

// Two programs move one head. One of them wins, and the other learns where the head is.
func ExampleOpen() {
	ctx := context.Background()
	db, err := postgres.Open(ctx, "postgres://plait@db.example.com/sessions?pool_max_conns=32", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	head, err := db.Head(ctx, "user 42", "main")
	if err != nil {
		log.Fatal(err)
	}
	_, err = db.Append(ctx, store.AppendRequest{
		Conversation: "user 42", Head: "main", Expect: head.Version, Nodes: []node.ID{head.Nodes[0]},
	})
	var conflict *store.ConflictError
	if errors.As(err, &conflict) {
		fmt.Println("another program was faster; the head has version", conflict.Current.Version)
	}
}
