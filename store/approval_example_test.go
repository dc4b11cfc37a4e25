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

// reply runs a session on with a person's decision. It needs nothing but what is stored, and the reply.
func reply(ctx context.Context, s *store.Store, agent executor.Agent, key string, decision []byte) (dag.DAG, error) {
	c, err := s.Conversation(ctx, key)
	if err != nil {
		return dag.DAG{}, err
	}
	var r executor.Reply
	if err := r.UnmarshalJSON(decision); err != nil {
		return dag.DAG{}, err
	}
	agent.Save = c.Append
	return agent.Resume(ctx, c.DAG(), r)
}

// A run that paused for approval is resumed by a later request, perhaps after a restart. Only the conversation is
// stored.
func Example_approval() {
	ctx, sessions := context.Background(), store.New(store.Memory())
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
	d, err := first.Run(ctx, c.DAG().User("Write to Bob."))
	if !errors.Is(err, executor.ErrPaused) {
		fmt.Println(err)
		return
	}
	call := d.Pending()[0]
	fmt.Println(call.Tool, call.Call.Input)

	// The user's decision names the call and what was shown.
	decision, _ := executor.Approved(call).MarshalJSON()
	d, err = reply(ctx, sessions, agent, "ann", decision)
	fmt.Println(d.Text(), err)
	_, err = reply(ctx, sessions, agent, "ann", decision) // a second click
	fmt.Println(errors.Is(err, executor.ErrUnknownCall))
	// Output:
	// send {"to":"Bob"}
	// It is sent. <nil>
	// true
}
