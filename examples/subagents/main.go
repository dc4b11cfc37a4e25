// Command subagents lets one agent call others: a reviewer calls three specialists at the same time, and one of these
// calls a specialist of its own. One stream yields all their events, each with the path of calls to its agent. At the
// end the conversations form a tree under the reviewer's, and their tokens are added up. The tree is drawn as
// subagents.mmd. The models are scripted.
//
//	go run ./examples/subagents
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/viz"
)

func main() {
	if err := run(context.Background(), os.Stdout, "subagents.mmd"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, drawing string) error {
	reader := executor.Func("read_file", "Reads a source file.", read)
	security := agent(securitySays,
		executor.SubAgent("advisories", "Knows every security advisory.", agent(advisoriesSay)))
	reviewer := agent(reviewerSays,
		executor.SubAgent("security", "Finds holes.", security),
		executor.SubAgent("speed", "Finds what is slow.", agent(speedSays, reader)),
		executor.SubAgent("style", "Finds what is hard to read.", agent(styleSays, reader)),
	)

	for event, err := range reviewer.Stream(ctx, dag.New().User("Review login.go.")) {
		var path []executor.Call
		if child, ok := event.(executor.Child); ok { // an event of a sub-agent, at any depth
			path, event = child.Path, child.Event
		}

		switch e := event.(type) {
		case executor.MessageEnd:
			if e.Node == nil {
				continue // the model failed; the error of End has the reason
			}
			if said, _ := e.Node.Message(); said.Role == content.Assistant {
				fmt.Fprintf(out, "%-34s %s\n", who(path), words(said.Blocks))
			}
		case executor.End:
			own, asked := e.Stop.Usage.Total(), e.Stop.ToolUsage.Total()
			fmt.Fprintf(out, "%-34s ■ %d tokens, and %d by those it asked\n", who(path), own, asked)

			// The end without a path is that of the reviewer, and so of the whole run.
			if len(path) == 0 {
				fmt.Fprintf(out, "\n%v\n\n", e.DAG)
				if err := errors.Join(err, draw(drawing, e.DAG)); err != nil {
					return err
				}
				fmt.Fprintf(out, "Drawn as %s.\n", drawing)
			}
		}
	}
	return nil
}

// agent returns an agent with a scripted model.
func agent(says []apitest.Turn, tools ...dag.Tool) executor.Agent {
	return executor.Agent{Provider: apitest.NewScript(says...), Tools: tools}
}

// who returns the name of the agent at the end of a path of calls.
func who(path []executor.Call) string {
	name := "reviewer"
	for _, call := range path {
		name += " › " + call.Name
	}
	return name
}

// words returns a message on one line: its text, and the names of the called tools.
func words(said content.Blocks) string {
	text := said.Text()
	for _, call := range said.ToolUses() {
		text += " → " + call.Name
	}
	return strings.TrimSpace(text)
}

func draw(file string, d dag.DAG) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(viz.Mermaid(f, d, nil), f.Close())
}

// File is the arguments of read_file.
type File struct {
	Name string `json:"name"`
}

func read(context.Context, File) (string, error) {
	return "if user.Password == password { return grant(user) }", nil
}

// The responses of the models, each with a delay and its tokens.
var (
	reviewerSays = []apitest.Turn{
		after(0, 300, 60, apitest.Say("Three pairs of eyes.").Call(ask("security"), ask("speed"), ask("style"))),
		after(0, 700, 90,
			apitest.Say("Compare the password in constant time, and hash it first. Nothing else stands out.")),
	}
	securitySays = []apitest.Turn{
		after(100, 200, 20, apitest.Call(ask("advisories"))),
		after(100, 260, 30,
			apitest.Say("The comparison leaks time (CWE-208), and the password is stored in plain text.")),
	}
	advisoriesSay = []apitest.Turn{
		after(200, 900, 40, apitest.Say("CWE-208: a comparison that stops early tells how much of it was right.")),
	}
	speedSays = []apitest.Turn{
		after(150, 180, 15, apitest.Call(apitest.Use("read_file", File{"login.go"}))),
		after(300, 220, 20, apitest.Say("Nothing here is slow.")),
	}
	styleSays = []apitest.Turn{
		after(220, 180, 15, apitest.Call(apitest.Use("read_file", File{"login.go"}))),
		after(300, 240, 20, apitest.Say("It reads well.")),
	}
)

func ask(agent string) content.ToolUse {
	return apitest.Use(agent, executor.Task{Task: "Look at login.go."})
}

func after(ms time.Duration, in, out int64, t apitest.Turn) apitest.Turn {
	return t.Wait(ms * time.Millisecond).Usage(content.Usage{Input: in, Output: out})
}
