package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// desk is agents that hand a conversation to each other. Each has a prompt, tools, hooks and limits of its own. Nobody
// but the conversation keeps who has it, so a loaded one continues with the right agent.
type desk struct {
	first  string
	agents map[string]executor.Agent
}

const handOffTo = "hand_off_to_"

// handOff returns the tool by which an agent hands the conversation to another one.
func handOff(to, when string) dag.Tool {
	def := content.Tool{Name: handOffTo + to, Description: "Hands the conversation over. " + when, Schema: `{"type":"object"}`}
	tool := executor.NewTool(def, func(context.Context, executor.Call) (executor.Result, error) {
		return executor.Result{Content: content.Words(to + " has the conversation now.")}, nil
	})
	return executor.WithEffect(tool, executor.EffectReadOnly) // after a crash, it is executed again
}

// handedOff is a hook that ends a run after a hand-off, whatever other calls its message has.
var handedOff = executor.Hook{Next: func(_ context.Context, turn executor.Turn) (executor.Turn, error) {
	for _, e := range turn.Executions {
		if receiver(e) != "" {
			turn.Stop = content.StopTerminated
		}
	}
	return turn, nil
}}

// receiver returns the agent that an execution hands the conversation to, or "".
func receiver(e node.ToolExecution) string {
	if to, ok := strings.CutPrefix(e.Tool, handOffTo); ok && e.State == node.ExecutionFinished && !e.IsError {
		return to
	}
	return ""
}

// owner returns who has the conversation: the receiver of the last hand-off, or the agent of the last run.
func (k desk) owner(d dag.DAG) string {
	for _, n := range slices.Backward(d.Nodes()) {
		execution, _ := n.Payload().(node.ToolExecution)
		start, _ := n.Payload().(node.RunStart)
		for _, name := range []string{receiver(execution), start.Agent} {
			if _, ok := k.agents[name]; ok {
				return name
			}
		}
	}
	return k.first
}

// run runs the conversation with the agent that has it, and with those it is handed to. With replies, it resumes a run
// that has paused.
func (k desk) run(ctx context.Context, d dag.DAG, replies ...executor.Reply) (dag.DAG, error) {
	for range 10 { // agents that hand it back and forth end here
		name := k.owner(d)
		agent := k.agents[name]
		agent.Name, agent.Hooks = name, append(slices.Clone(agent.Hooks), handedOff)
		if len(d.OpenCalls()) == 0 {
			d = d.WithdrawTools(foreign(d, agent)...)
		}

		var err error
		if len(replies) > 0 {
			d, err = agent.Resume(ctx, d, replies...)
		} else {
			d, err = agent.Run(ctx, d)
		}
		if err != nil || k.owner(d) == name {
			return d, err
		}
		replies = nil
	}
	return d, fmt.Errorf("nobody keeps the conversation")
}

// foreign returns the names of the declared tools that an agent does not have.
func foreign(d dag.DAG, agent executor.Agent) (names []string) {
	for _, def := range d.ToolDefs() {
		if !slices.ContainsFunc(agent.Tools, func(t dag.Tool) bool { return t.Definition().Name == def.Name }) {
			names = append(names, def.Name)
		}
	}
	return names
}

type Order struct {
	ID string `json:"id"`
}

func handoff(ctx context.Context, out io.Writer) error {
	refund := executor.Func("refund", "Pays an order back.", func(_ context.Context, in Order) (string, error) { return in.ID + " refunded", nil })
	support := desk{first: "reception", agents: map[string]executor.Agent{
		"reception": {
			System: "Find out what the customer wants.",
			Tools:  []dag.Tool{handOff("refunds", "For money back.")},
			Provider: apitest.NewScript(
				apitest.Call(apitest.Use(handOffTo+"refunds", nil))),
		},
		"refunds": {
			System: "Refund what was not delivered.",
			Tools:  []dag.Tool{refund},
			Limits: executor.Limits{Calls: 1},
			Provider: apitest.NewScript(
				apitest.Call(apitest.Use("refund", Order{"A-7"})),
				apitest.Say("A-7 is refunded."),
				apitest.Say("You are welcome.")),
		},
	}}

	d, err := support.run(ctx, dag.New().User("A-7 never came."))
	if err != nil {
		return err
	}
	d, err = support.run(ctx, d.User("Thanks!")) // refunds still has it
	fmt.Fprintln(out, d)
	return err
}
