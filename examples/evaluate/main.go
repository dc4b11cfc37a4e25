// Command evaluate runs an agent on 200 cases, twenty at a time, and lets a judge decide about each answer. It prints
// the share of correct answers by topic, and the first failures. The models are scripted.
//
//	go run ./examples/evaluate
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Case is a question with the required content of its answer.
type Case struct{ Topic, Question, Want string }

// cases returns 100 sums and 100 products.
func cases() (all []Case) {
	for i := range 100 {
		a, b := i%10, i/10
		all = append(all,
			Case{"sums", fmt.Sprintf("%d + %d", a, b), fmt.Sprint(a + b)},
			Case{"products", fmt.Sprintf("%d × %d", a, b), fmt.Sprint(a * b)})
	}
	return all
}

// Verdict is the judge's output.
type Verdict struct {
	Correct bool   `json:"correct"`
	Reason  string `json:"reason"`
}

func run(ctx context.Context, out io.Writer) error {
	agent := executor.Agent{Provider: student, System: "Answer with a number."}
	grader := executor.Agent{Provider: judge, System: "Is the answer correct?"}
	all := cases()

	evaluate := func(ctx context.Context, c Case) (Verdict, error) {
		d, err := agent.Run(ctx, dag.New().User(c.Question))
		if err != nil {
			return Verdict{}, err
		}
		v, _, err := executor.RunFor[Verdict](ctx, grader,
			dag.New().User(fmt.Sprintf("Question: %s\nExpected: %s\nAnswer: %s", c.Question, c.Want, d.Text())))
		return v, err
	}

	// Each yields the results in the order of the cases, so i is the index of the case.
	correct, total := map[string]int{}, map[string]int{}
	var failures []string
	i := 0
	for v, err := range executor.Each(ctx, 20, slices.Values(all), evaluate) {
		c := all[i]
		i++
		total[c.Topic]++
		switch {
		case err != nil: // the case failed, not the evaluation
			failures = append(failures, fmt.Sprintf("%s: %v", c.Question, err))
		case v.Correct:
			correct[c.Topic]++
		default:
			failures = append(failures, fmt.Sprintf("%s: %s", c.Question, v.Reason))
		}
	}

	for _, topic := range []string{"sums", "products"} {
		fmt.Fprintf(out, "%-8s %3d of %d\n", topic, correct[topic], total[topic])
	}
	fmt.Fprintf(out, "%d failures, the first:\n  %s\n", len(failures), strings.Join(failures[:min(3, len(failures))], "\n  "))
	return nil
}

// student adds well, and multiplies numbers above five by adding them.
var student = apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
	var a, b int
	var sign string
	fmt.Sscan(req.Messages[0].Blocks.Text(), &a, &sign, &b)
	if sign == "×" && a <= 5 {
		return apitest.Say(fmt.Sprint(a * b))
	}
	return apitest.Say(fmt.Sprint(a + b))
}).Always())

// judge compares the two last lines.
var judge = apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
	lines := strings.Split(req.Messages[0].Blocks.Text(), "\n")
	want, got := strings.TrimPrefix(lines[1], "Expected: "), strings.TrimPrefix(lines[2], "Answer: ")
	if want == got {
		return apitest.Say(`{"correct":true,"reason":""}`)
	}
	return apitest.Say(fmt.Sprintf(`{"correct":false,"reason":"it is %s, not %s"}`, want, got))
}).Always())
