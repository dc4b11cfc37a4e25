package main

import (
	"context"
	"fmt"
	"io"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

// debate lets two agents answer each other, and a third decide. Each debater has a conversation of its own, in which
// the other's words are the user's. The judge's holds both: they are in one file and one drawing.
func debate(ctx context.Context, out io.Writer) error {
	names := []string{"tea", "coffee"}
	debaters := []executor.Agent{
		{System: "Argue for tea.", Provider: apitest.NewScript(apitest.Say("Tea keeps you calm."), apitest.Say("Calm work has fewer faults."))},
		{System: "Argue for coffee.", Provider: apitest.NewScript(apitest.Say("Coffee keeps you awake."), apitest.Say("Asleep, nobody works."))},
	}
	judge := executor.Agent{System: "Who is right?", Provider: apitest.NewScript(apitest.Say("Coffee, by a cup."))}

	sides := []dag.DAG{dag.New(), dag.New()}
	said, minutes := "Tea or coffee at work?", dag.New()
	for turn := range 4 {
		i := turn % 2
		d, err := debaters[i].Run(ctx, sides[i].User(said))
		if err != nil {
			return err
		}
		sides[i], said = d, d.Text()
		minutes = minutes.User(names[i] + ": " + said)
	}

	for i, side := range sides {
		minutes = minutes.SubGraph(names[i], side)
	}
	d, err := judge.Run(ctx, minutes)
	fmt.Fprintln(out, d)
	return err
}
