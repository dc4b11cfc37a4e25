package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

// notebook is what an agent keeps between conversations: a table, a folder of files, or a vector store in a program.
type notebook struct {
	sync.Mutex
	lines []string
}

type Note struct {
	Text string `json:"text" jsonschema:"one sentence that will still be true next month"`
}

func (n *notebook) remember(_ context.Context, in Note) (string, error) {
	n.Lock()
	defer n.Unlock()
	n.lines = append(n.lines, in.Text)
	return "noted", nil
}

// prompt is the agent's Instructions: it is called when a run begins. A long memory is searched here for what the last
// message is about.
func (n *notebook) prompt(context.Context, dag.DAG) (string, error) {
	n.Lock()
	defer n.Unlock()
	return "Remember what will matter later.\nKnown of this user:\n" + strings.Join(n.lines, "\n"), nil
}

// memory lets an agent keep notes in one conversation and use them in another.
func memory(ctx context.Context, out io.Writer) error {
	notes := &notebook{}
	agent := executor.Agent{
		Instructions: notes.prompt,
		Tools:        []dag.Tool{executor.Func("remember", "Keeps a note about the user.", notes.remember)},
		Provider: apitest.NewScript(
			apitest.Call(apitest.Use("remember", Note{"Ada eats no meat."})), apitest.Say("I will remember that."),
			apitest.Say("The place with the mushrooms.")),
	}

	first, err := agent.Run(ctx, dag.New().User("I eat no meat."))
	if err != nil {
		return err
	}
	second, err := agent.Run(ctx, dag.New().User("Where shall I eat?"))
	fmt.Fprintf(out, "%v\n\n%v\n", first, second)
	return err
}
