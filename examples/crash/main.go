// Command crash kills itself in the middle of two tool calls, and finishes the run when it is started again. The model,
// the card and the post office are simulated: they are files in a folder.
//
//	go run ./examples/crash   # ends with "signal: killed"
//	go run ./examples/crash   # finishes
//
// The agent saves each step in a journal. After the crash
//
//   - the price is not looked up again: its result is in the journal;
//   - the card is charged again, with the same key: the money is taken only once;
//   - the letter is in doubt: nobody knows whether it was posted, and posting it again might send two. A hook decides.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

func main() {
	folder := filepath.Join(os.TempDir(), "plait-crash")
	if len(os.Args) > 1 {
		folder = os.Args[1]
	}
	if err := run(context.Background(), folder, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run is the program: the same at the first start and after a crash.
func run(ctx context.Context, folder string, out io.Writer) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	journal, err := dag.OpenJournal(filepath.Join(folder, "journal.jsonl"), nil)
	if err != nil {
		return err
	}
	defer journal.Close()

	d := journal.DAG()
	if d.Len() == 0 {
		fmt.Fprintln(out, "the first start")
		d = dag.New().User("Order the lamp, and write to my aunt.")
	} else {
		fmt.Fprintln(out, "started again, with open calls:")
		for _, call := range d.OpenCalls() {
			fmt.Fprintln(out, "  "+call.Name)
		}
	}

	w := &world{folder: folder, out: out, charged: make(chan struct{})}
	agent := executor.Agent{
		Provider: apitest.NewScript(model(d)...),
		Tools: []dag.Tool{
			executor.WithEffect(executor.Func("look_up_price", "Looks up a price.", w.lookUp), executor.EffectReadOnly),
			executor.WithEffect(executor.Func("charge_card", "Charges the card.", w.charge), executor.EffectIdempotent),
			executor.Func("post_letter", "Posts a letter.", w.post), // nothing is known: it may run once
		},
		Save:  func(_ context.Context, d dag.DAG) error { return journal.Append(d) },
		Hooks: []executor.Hook{{InDoubt: w.inDoubt}},
		Log:   slog.New(slog.DiscardHandler),
	}
	d, err = agent.Run(ctx, d)
	if err != nil {
		return err
	}
	fmt.Fprint(out, "\n", d, "\n")
	return errors.Join(journal.Close(), os.RemoveAll(folder)) // the next start is a first one
}

// model returns the rest of the scripted model's responses.
func model(d dag.DAG) []apitest.Turn {
	turns := []apitest.Turn{
		apitest.Call(apitest.Use("look_up_price", nil)),
		apitest.Call(apitest.Use("charge_card", nil), apitest.Use("post_letter", nil)),
		apitest.Say("The lamp is paid. Please look whether the letter was posted: I cannot tell."),
	}

	// After a crash, the script has only the responses that are not in the journal.
	said := 0
	for _, m := range d.Messages() {
		if m.Role == "assistant" {
			said++
		}
	}
	return turns[said:]
}

// world is the state changed by tools. It outlives the program, as the world does.
type world struct {
	folder  string
	out     io.Writer
	charged chan struct{} // closed when the card is charged
}

type none struct{}

func (w *world) lookUp(context.Context, none) (string, error) {
	fmt.Fprintln(w.out, "looking up the price")
	return "30 euros", nil
}

// charge asks the card service. The service charges only once for each key.
func (w *world) charge(ctx context.Context, _ none) (string, error) {
	key := executor.IdempotencyKey(ctx)
	ledger := filepath.Join(w.folder, "ledger")
	keys, err := os.ReadFile(ledger)
	switch {
	case strings.Contains(string(keys), key):
		fmt.Fprintln(w.out, "charging the card: charged before, with this key")
		return "charged", nil
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return "", err
	}

	fmt.Fprintln(w.out, "charging the card: 30 euros")
	if err := os.WriteFile(ledger, []byte(key), 0o600); err != nil {
		return "", err
	}
	close(w.charged)
	<-ctx.Done() // the service is slow to answer
	return "", ctx.Err()
}

// post posts the letter, and then the power fails.
func (w *world) post(context.Context, none) (string, error) {
	<-w.charged
	fmt.Fprintln(w.out, "posting the letter")

	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		return "", err
	}
	select {} // the signal is on its way
}

// inDoubt decides about the letter. It could also look at the post office and return executor.UseResult, ask a person
// with executor.AskApproval, or post a second letter with executor.ExecuteAgain.
func (w *world) inDoubt(_ context.Context, call executor.Call) (executor.Decision, error) {
	fmt.Fprintln(w.out, "in doubt:", call.Name)
	return executor.Deny("the post office does not know"), nil
}
