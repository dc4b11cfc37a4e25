// Command replay checks a recorded run against a changed program. First it replays the recorded responses of the model
// with today's tools, one of them changed, and shows the first call with a different result. Then it replays the
// recorded results with another model, and shows its answer and its calls without a recorded result. No real model or
// tool is called. The models are scripted.
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
	"github.com/plait-dev/plait/executor/replay"
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

// stock returns a tool for looking up the number of an item in the given table.
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
	ids := node.Counting(time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)) // fixed IDs and times: the same output each time
	recorded, err := executor.Run(ctx, clerk, dag.New().WithSource(ids).Tools(monday).User("What do we have to order?"))
	if err != nil {
		return err
	}

	if err := withOtherTools(ctx, out, recorded); err != nil {
		return err
	}
	return withAnotherModel(ctx, out, recorded)
}

// withOtherTools executes the recorded calls with today's tools, up to the first call with a different result.
func withOtherTools(ctx context.Context, out io.Writer, recorded dag.DAG) error {
	today := stock(map[string]int{"bolts": 40, "nut": 38, "washers": 7}) // somebody renamed an item
	calls, err := replay.Tools(ctx, executor.Agent{}, recorded.Tools(today), true, nil)
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

// withAnotherModel sends the same request to another model, and answers its calls with the recorded results.
func withAnotherModel(ctx context.Context, out io.Writer, recorded dag.DAG) error {
	trainee := apitest.NewScript(
		apitest.Call(apitest.Use("stock", Item{"bolts"}), apitest.Use("stock", Item{"washer"})),
		apitest.Say("Order washers."),
	)
	// The tape answers in place of the tools. A call that was not recorded gets an error as its result.
	tape := replay.NewRecording(recorded)
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
