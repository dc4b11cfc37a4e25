package executor_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// A journal gets each step of a run. After a crash in the second of two tool calls, the first is not executed again, and
// the second is executed with the same key.
func ExampleAgent_save() {
	dir, err := os.MkdirTemp("", "plait")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path, afterCrash := filepath.Join(dir, "talk.jsonl"), filepath.Join(dir, "after-crash.jsonl")

	// The second tool copies the journal when it runs for the first time: that is what a crash at this moment leaves on disk.
	paid := map[string]bool{}
	type none struct{}
	book := executor.Func("book_flight", "", func(context.Context, none) (string, error) {
		fmt.Println("booking the flight")
		return "booked", nil
	})
	pay := executor.WithEffect(executor.Func("pay", "", func(ctx context.Context, _ none) (string, error) {
		key := executor.IdempotencyKey(ctx)
		if paid[key] {
			fmt.Println("paid before, with this key")
			return "paid", nil
		}
		fmt.Println("paying")
		paid[key] = true
		text, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		return "paid", os.WriteFile(afterCrash, text, 0o600)
	}), executor.EffectIdempotent)
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
	// paid before, with this key
	// Done.
}

// The program ended while a tool ran, and nothing is known about a second execution. A hook decides what becomes of the call.
func ExampleHook_inDoubt() {
	type none struct{}
	pay := executor.Func("pay", "", func(context.Context, none) (string, error) {
		fmt.Println("paying")
		return "paid", nil
	})

	// What the journal of the program has: the call was started, and there is no result.
	d := dag.New().Tools(pay).User("Pay the bill.").Assistant("", apitest.Use("pay", nil)).
		AppendExecutions(node.ToolExecution{Index: 0, State: node.ExecutionStarted})

	agent := executor.Agent{
		Provider: apitest.NewScript(apitest.Say("I cannot tell whether the bill is paid.")),
		Log:      slog.New(slog.DiscardHandler),
		Hooks: []executor.Hook{{
			InDoubt: func(_ context.Context, call executor.Call) (executor.Decision, error) {
				fmt.Println("in doubt:", call.Name)
				return executor.Deny("the bank does not answer"), nil // or ExecuteAgain, AskApproval, UseResult
			},
		}},
	}
	d, err := agent.Run(context.Background(), d)
	if err != nil {
		panic(err)
	}
	fmt.Println(d.Messages()[2].Blocks.ToolResults()[0].Content.Text())
	fmt.Println(d.Text())
	// Output:
	// in doubt: pay
	// The outcome of this tool call is unknown: it was started, and the program stopped before it had the result. It may have had its effects, or some of them. Find out before you call it again. (the bank does not answer)
	// I cannot tell whether the bill is paid.
}
