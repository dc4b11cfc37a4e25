// Command replay asks of a recorded run: is it still true? First with the recorded answers of the model and today's tools, one of which
// somebody has changed: where do the two runs part? Then the other way round, with the recorded results and another model: what does it
// answer, and which of its calls were never recorded? Nothing is asked of a real model or tool. The models are scripted ones.
//
//	go run ./examples/replay
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Item is the arguments of the tool.
type Item struct {
	Item string `json:"item"`
}

// stock is how many there are of an item, by the given table.
func stock(table map[string]int) executor.Tool {
	return executor.Func("stock", "How many there are of an item.", func(_ context.Context, in Item) (string, error) {
		n, ok := table[in.Item]
		if !ok {
			return "", fmt.Errorf("nothing is called %q", in.Item)
		}
		return fmt.Sprint(n), nil
	})
}

func run(ctx context.Context, out io.Writer) error {
	monday := stock(map[string]int{"bolts": 40, "nuts": 38, "washers": 7})
	clerk := apitest.NewScript(
		apitest.Call(apitest.Use("stock", Item{"bolts"}), apitest.Use("stock", Item{"nuts"})),
		apitest.Call(apitest.Use("stock", Item{"washers"})),
		apitest.Say("Order nuts and washers."),
	)
	ids := node.Counting(time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)) // so that it prints the same each time
	recorded, err := executor.Run(ctx, clerk, dag.New().WithSource(ids).Tools(monday).User("What do we have to order?"))
	if err != nil {
		return err
	}
	if err := withOtherTools(ctx, out, recorded); err != nil {
		return err
	}
	return withAnotherModel(ctx, out, recorded)
}

// withOtherTools carries out the recorded calls with today's tools, up to the first that says something else.
func withOtherTools(ctx context.Context, out io.Writer, recorded dag.DAG) error {
	today := stock(map[string]int{"bolts": 40, "nut": 38, "washers": 7}) // somebody renamed an item
	calls, err := executor.ReplayTools(ctx, executor.Agent{}, recorded.Tools(today), true, nil)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "The recorded answers, with today's tools:")
	for _, c := range calls {
		sign := "  same  "
		if !c.Same {
			sign = "  PARTED"
		}
		fmt.Fprintln(out, sign, c)
	}
	parted := calls[len(calls)-1]
	fmt.Fprintf(out, "They part here:\n%v\n", recorded.At(parted.Message.ID()))
	return nil
}

// withAnotherModel asks another model the same, and gives it the recorded results.
func withAnotherModel(ctx context.Context, out io.Writer, recorded dag.DAG) error {
	trainee := apitest.NewScript(
		apitest.Call(apitest.Use("stock", Item{"bolts"}), apitest.Use("stock", Item{"washer"})),
		apitest.Say("Order washers."),
	)
	tape := executor.NewRecording(recorded)
	agent := executor.Agent{Provider: trainee, Handler: tape.Handle, Strategy: executor.Sequential()}
	again, err := agent.Run(ctx, tape.Start())
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "\nThe recorded results, with another model:")
	for _, miss := range tape.Missed() {
		fmt.Fprintln(out, " ", miss)
	}
	_, err = fmt.Fprintln(out, dag.Diff(recorded, again))
	return err
}
