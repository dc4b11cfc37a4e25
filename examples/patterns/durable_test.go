package main

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/durable"
	"github.com/plait-dev/plait/store/sqlite"
)

// A durable run has one agent. After a hand-off, the next run is started with the agent that the conversation names; any
// process can do that, and may do it twice: the run has an ID of its own.
func (k desk) startNext(ctx context.Context, engine *durable.Engine, conversation string, hop int) (string, error) {
	c, err := engine.Store().Conversation(ctx, conversation)
	if err != nil {
		return "", err
	}
	name := k.owner(c.DAG())
	return engine.Start(ctx, durable.StartRequest{
		Run: fmt.Sprint(conversation, " hop ", hop), Agent: name, Conversation: conversation,
		Add: func(d dag.DAG) dag.DAG { return d.WithdrawTools(foreign(d, k.agents[name])...) },
	})
}

func TestDurableRunsHandOver(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	db, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "runs.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()

	receiver := apitest.NewScript(apitest.Say("It is here now."))
	k := desk{first: "a", agents: map[string]executor.Agent{
		"a": {Name: "a", Tools: []dag.Tool{handOff("b", "")}, Hooks: []executor.Hook{handedOff},
			Provider: apitest.NewScript(apitest.Call(apitest.Use(handOffTo+"b", nil)))},
		"b": {Name: "b", System: "You are b.", Hooks: []executor.Hook{handedOff}, Provider: receiver},
	}}
	engine, err := durable.Open(ctx, db, &durable.Options{Agents: k.agents})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	served := make(chan error, 1)
	go func() { served <- engine.Serve(ctx) }()

	run, err := engine.Start(ctx, durable.StartRequest{Agent: k.first, Conversation: "ada", Text: "Hello"})
	for hop := range 2 {
		if err == nil {
			_, err = engine.Wait(ctx, run)
		}
		if err == nil && hop == 0 {
			run, err = k.startNext(ctx, engine, "ada", hop)
		}
	}
	if err != nil {
		t.Fatal(err)
	}

	c, err := engine.Store().Conversation(ctx, "ada")
	if err != nil {
		t.Fatal(err)
	}
	if last, _ := c.DAG().LastRun(); last.Start.Agent != "b" || c.DAG().Text() != "It is here now." {
		t.Errorf("%s ran last:\n%v", last.Start.Agent, c.DAG())
	}
	if sent := receiver.Requests()[0]; len(sent.Tools) > 0 {
		t.Errorf("b was sent %v", sent.Tools)
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
