package executor_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

// A journal gets each step of a run. After a crash between two tool calls, the first is not executed again.
func ExampleAgent_save() {
	dir, err := os.MkdirTemp("", "plait")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path, afterCrash := filepath.Join(dir, "talk.jsonl"), filepath.Join(dir, "after-crash.jsonl")

	// The second tool copies the journal when it runs for the first time: that is what a crash at this moment leaves on disk.
	crashed := false
	type none struct{}
	book := executor.Func("book_flight", "", func(context.Context, none) (string, error) {
		fmt.Println("booking the flight")
		return "booked", nil
	})
	pay := executor.Func("pay", "", func(context.Context, none) (string, error) {
		fmt.Println("paying")
		if crashed {
			return "paid", nil
		}
		crashed = true
		text, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		return "paid", os.WriteFile(afterCrash, text, 0o600)
	})
	agent := executor.Agent{
		Provider: apitest.NewScript(apitest.Call(apitest.Use("book_flight", nil), apitest.Use("pay", nil)), apitest.Say("Done.")),
		Tools:    []dag.Tool{book, pay},
		Strategy: executor.Sequential(),
	}

	journal, err := dag.OpenJournal(path, nil)
	if err != nil {
		panic(err)
	}
	defer journal.Close()
	agent.Save = func(_ context.Context, d dag.DAG) error { return journal.Append(d) }
	if _, err := agent.Run(context.Background(), dag.New().User("Book my flight and pay.")); err != nil {
		panic(err)
	}

	fmt.Println("after the crash:")
	journal, err = dag.OpenJournal(afterCrash, nil)
	if err != nil {
		panic(err)
	}
	defer journal.Close()
	for _, call := range journal.DAG().OpenCalls() {
		fmt.Println("still open:", call.Name)
	}
	agent.Provider = apitest.NewScript(apitest.Say("Done."))
	d, err := agent.Run(context.Background(), journal.DAG()) // executes what is open, and goes on
	if err != nil {
		panic(err)
	}
	fmt.Println(d.Text())
	// Output:
	// booking the flight
	// paying
	// after the crash:
	// still open: pay
	// paying
	// Done.
}
