package main

import (
	"context"
	"fmt"
	"io"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

// Review is what the evaluator answers.
type Review struct {
	Good   bool   `json:"good"`
	Advice string `json:"advice"`
}

// optimizer lets an evaluator judge a text, and its author write it again, three times at most.
func optimizer(ctx context.Context, out io.Writer) error {
	author := executor.Agent{Provider: apitest.NewScript(apitest.Say("Our bolts are good."), apitest.Say("Our bolts hold 900 kg."))}
	evaluator := executor.Agent{Provider: apitest.NewScript(
		apitest.Say(`{"good":false,"advice":"Give a number."}`), apitest.Say(`{"good":true,"advice":""}`))}

	d := dag.New().User("Write a line about our bolts.")
	for range 3 {
		var err error
		if d, err = author.Run(ctx, d); err != nil {
			return err
		}
		review, _, err := executor.RunFor[Review](ctx, evaluator, dag.New().System("Is this concrete?").User(d.Text()))
		if err != nil {
			return err
		}
		if review.Good {
			break
		}
		d = d.User(review.Advice)
	}
	_, err := fmt.Fprintln(out, d)
	return err
}
