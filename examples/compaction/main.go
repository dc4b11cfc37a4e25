// Command compaction holds a conversation of forty questions within a small context window: whenever the messages take
// more than the budget, a model summarizes the middle. Everything stays in the graph. The models are scripted.
//
//	go run ./examples/compaction
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/plait-dev/plait/api"
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

func run(ctx context.Context, out io.Writer) error {
	model := apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
		return apitest.Say(strings.Repeat("word ", 40))
	}).Always())
	summarizer := apitest.NewScript(apitest.Say("They talked about numbers.").Always())

	window := executor.Compaction{Budget: 1000, Policy: executor.Summarise(summarizer, "Summarize in one sentence.")}
	agent := executor.Agent{Provider: model}
	d := dag.New().System("You know a lot about numbers.")

	// Compact after the question is added: it is part of the next request too.
	for i := range 40 {
		var err error
		if d, err = window.Compact(ctx, d.User(fmt.Sprintf("Tell me about the number %d.", i+1))); err != nil {
			return err
		}
		if d, err = agent.Run(ctx, d); err != nil {
			return err
		}
	}

	// Nothing was lost: the summaries and the messages they replace are all nodes.
	compactions := 0
	for _, n := range d.Nodes() {
		if _, ok := n.Payload().(node.Compaction); ok {
			compactions++
		}
	}

	longest := 0
	for _, req := range model.Requests() {
		longest = max(longest, len(req.Messages))
	}
	fmt.Fprintf(out, "%d messages in the graph, at most %d in a request, %d summaries\n\n", messages(d), longest, compactions)

	// These are messages to send, with a summary in place of the middle.
	for _, m := range d.Messages()[:4] {
		fmt.Fprintf(out, "%-9s %.60s\n", m.Role, m.Blocks.Text())
	}
	return nil
}

// messages counts all messages of the graph, sent or not.
func messages(d dag.DAG) (count int) {
	for _, n := range d.Nodes() {
		if _, ok := n.Message(); ok {
			count++
		}
	}
	return count
}
