// Command steering changes the task of an agent while it works. The agent translates a book, one slow chapter after
// another. In the middle of the second chapter the user changes their mind (steering). A further question was queued at
// the start for the end of the run (a follow-up). Calls that have not begun are skipped; each still gets a result. Both
// messages are sent exactly once. The model is scripted.
//
//	go run ./examples/steering
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// The user's messages: at the beginning, during the run, and at the end.
const (
	task     = "Translate all five chapters."
	change   = "Stop after this one, I rewrote the others."
	followUp = "Thank you! What would be a good French title?"
)

// Chapter is the arguments of the tool.
type Chapter struct {
	Chapter int `json:"chapter"`
}

// translate takes half a second per chapter.
func translate(ctx context.Context, in Chapter) (string, error) {
	select {
	case <-time.After(500 * time.Millisecond):
		return fmt.Sprintf("chapter %d is in French now", in.Chapter), nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func run(ctx context.Context, out io.Writer) error {
	var steering, followUps executor.Queue
	agent := executor.Agent{
		Provider:       apitest.NewScript(model...),
		Strategy:       executor.Sequential(),
		Steering:       &steering,
		FollowUps:      &followUps,
		SkipOnSteering: true,
	}

	d := dag.New().Tools(executor.Func("translate", "Translates a chapter into French.", translate)).User(task)
	if err := followUps.Add(followUp); err != nil {
		return err
	}

	fmt.Fprintf(out, "user       %s\n           (and has this ready for the end: %s)\n", task, followUp)

	for event, err := range agent.Stream(ctx, d) {
		switch e := event.(type) {
		case executor.ToolStart:
			fmt.Fprintf(out, "  begin    %s %s\n", e.Call.Name, e.Call.Input)
			if e.Call.Index == 2 { // a real program may call Add on any goroutine, at any time
				fmt.Fprintf(out, "           (the user, meanwhile: %s)\n", change)
				if err := steering.Add(change); err != nil {
					return err
				}
			}
		case executor.ToolEnd:
			fmt.Fprintf(out, "  end      %s\n", e.Execution.Result.Text())
		case executor.MessageEnd:
			if e.Node == nil {
				continue // the model failed; the error of End has the reason
			}
			if said, _ := e.Node.Message(); said.Blocks.Text() != "" {
				fmt.Fprintf(out, "%-10s %s\n", said.Role, said.Blocks.Text())
			}
		case executor.End:
			fmt.Fprintf(out, "\n%v\n", e.DAG)
			return err
		}
	}
	return nil
}

// model holds the responses of the scripted model.
var model = []apitest.Turn{
	apitest.Say("I begin with the first.").Call(chapters(5)...),
	apitest.Say("Two chapters are translated. I leave the other three alone."),
	apitest.Say("\"Le fil du temps\"."),
}

func chapters(n int) (calls []content.ToolUse) {
	for i := range n {
		calls = append(calls, apitest.Use("translate", Chapter{i + 1}))
	}
	return calls
}
