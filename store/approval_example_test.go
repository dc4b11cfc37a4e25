package store_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/store"
)

type letter struct {
	To string `json:"to"`
}

// approve runs a session on with a person's decision. It needs nothing but what is stored: running the conversation as
// it is asks for approval again, and returns a continuation.
func approve(ctx context.Context, s *store.Store, agent executor.Agent, key, question string, yes bool) (dag.DAG, error) {
	c, err := s.Conversation(ctx, key)
	if err != nil {
		return dag.DAG{}, err
	}
	agent.Save = c.Append
	if len(c.DAG().OpenCalls()) == 0 {
		return c.DAG(), errors.New("nothing waits for approval") // without this, Run would send a request
	}

	d, err := agent.Run(ctx, c.DAG())
	var paused *executor.PausedError
	if !errors.As(err, &paused) {
		return d, err
	}
	if paused.Continuation.Message.String() != question {
		return d, errors.New("the question is an old one")
	}

	replies := map[string]executor.Reply{}
	for _, call := range paused.Continuation.Pending {
		replies[call.ID] = executor.Declined("The user declined.")
		if yes {
			replies[call.ID] = executor.Approved()
		}
	}
	return agent.Resume(ctx, d, paused.Continuation, replies)
}

// A run that paused for approval is resumed by a later request, perhaps after a restart. Only the conversation is
// stored.
func Example_approval() {
	ctx, sessions := context.Background(), store.New(store.Memory(), nil)
	send := func(_ context.Context, l letter) (string, error) { return "sent to " + l.To, nil }
	agent := executor.Agent{
		Provider: apitest.NewScript(
			apitest.Call(apitest.Use("send", letter{"Bob"})),
			apitest.Say("It is sent.")),
		Tools: []dag.Tool{executor.Func("send", "Sends a letter.", send)},
		Hooks: []executor.Hook{executor.RequireApproval("send")},
	}

	// The first request ends with a question for the user.
	c, _ := sessions.Conversation(ctx, "ann")
	first := agent
	first.Save = c.Append
	_, err := first.Run(ctx, c.DAG().User("Write to Bob."))
	var paused *executor.PausedError
	if !errors.As(err, &paused) {
		fmt.Println(err)
		return
	}
	question := paused.Continuation.Message.String()
	fmt.Println(paused.Continuation.Pending[0].Tool, paused.Continuation.Pending[0].Call.Input)

	d, err := approve(ctx, sessions, agent, "ann", question, true)
	fmt.Println(d.Text(), err)
	_, err = approve(ctx, sessions, agent, "ann", question, true) // a second click
	fmt.Println(err)
	// Output:
	// send {"to":"Bob"}
	// It is sent. <nil>
	// nothing waits for approval
}
