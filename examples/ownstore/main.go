// Command ownstore keeps a conversation in a table of its own, through database/sql: store.go is the whole store.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log"
	"os"

	_ "modernc.org/sqlite"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/store"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	db, err := open(ctx, ":memory:")
	if err != nil {
		return err
	}
	defer db.Close()
	s := store.New(db)

	// Each request opens the conversation, and saves each step.
	for _, question := range []string{"What is a store?", "And a head?"} {
		c, err := s.Conversation(ctx, "user-17")
		if err != nil {
			return err
		}
		agent := executor.Agent{Provider: apitest.NewScript(apitest.Say("Look at the manual.")), Save: c.Append}
		if _, err := agent.Run(ctx, c.DAG().User(question)); err != nil {
			return err
		}
	}

	c, err := s.Conversation(ctx, "user-17")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, c.DAG())
	return err
}

// open opens a database. SQLite has one writer at a time, and a database in memory one connection.
func open(ctx context.Context, name string) (table, error) {
	db, err := sql.Open("sqlite", name)
	if err != nil {
		return table{}, err
	}
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(ctx, schema)
	return table{db}, err
}
