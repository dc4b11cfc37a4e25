package sqlite_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/sqlite"
)

// A conversation outlives the program that wrote it: each call of chat opens the file anew.
func ExampleOpen() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "plait-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	model := apitest.NewScript(apitest.Say("Red."), apitest.Say("Blue."))
	chat := func(path, text string) error {
		db, err := sqlite.Open(ctx, path, nil) // or postgres.Open; store.Memory() in tests
		if err != nil {
			return err
		}
		defer db.Close()
		sessions := store.New(db)

		c, err := sessions.Conversation(ctx, "user 42")
		if err != nil {
			return err
		}
		agent := executor.Agent{Provider: model, Save: c.Append}
		d, err := agent.Run(ctx, c.DAG().User(text))
		for _, m := range d.Messages() {
			fmt.Printf("%s: %s\n", m.Role, m.Blocks.Text())
		}
		return err
	}

	for _, text := range []string{"Name a color.", "Another one."} {
		if err := chat(filepath.Join(dir, "sessions.db"), text); err != nil {
			log.Fatal(err)
		}
		fmt.Println()
	}
	// Output:
	// user: Name a color.
	// assistant: Red.
	//
	// user: Name a color.
	// assistant: Red.
	// user: Another one.
	// assistant: Blue.
}
