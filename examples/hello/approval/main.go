// Command approval is a program of docs/first-hour.md: a person decides about a call.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

type Mail struct {
	To   string `json:"to" jsonschema:"the address"`
	Text string `json:"text"`
}

func send(ctx context.Context, in Mail) (string, error) { return "sent to " + in.To, nil }

func main() {
	ctx := context.Background()
	agent := executor.Agent{
		Provider: apitest.NewScript(apitest.Say("").Call(apitest.Use("send_mail", Mail{"ada@example.com", "I am late."})), apitest.Say("Done.")),
		Tools:    []dag.Tool{executor.Func("send_mail", "Sends a mail.", send)},
		Hooks:    []executor.Hook{executor.RequireApproval("send_mail")},
	}

	d, err := agent.Run(ctx, dag.New().User("Tell Ada that I am late."))
	for errors.Is(err, executor.ErrPaused) { // saved, d can wait: another process may Resume it next week
		var replies []executor.Reply
		for _, p := range d.Pending() {
			replies = append(replies, ask(p))
		}
		d, err = agent.Resume(ctx, d, replies...)
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(d)
}

func ask(p dag.Pending) executor.Reply {
	var word string
	fmt.Printf("%s %s? yes or no\n", p.Call.Name, p.Call.Input)
	if fmt.Scanln(&word); word == "yes" {
		return executor.Approved(p)
	}
	return executor.Declined(p, "not now")
}
