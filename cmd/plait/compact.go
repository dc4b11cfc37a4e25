package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/contextedit"
	"github.com/plait-dev/plait/internal/describe"
)

// compacter is the command compact.
type compacter struct {
	runner
	budget, keep int
	output       string
}

func compactCommand(s *streams) *cobra.Command {
	c := &compacter{runner: runner{streams: s, leavesOut: true}}
	cmd := &cobra.Command{
		Use:   "compact FILE --budget N",
		Short: "Leave old messages out of the requests; they stay in FILE",
		Long: `Leaves the results of old tool calls out of the requests, if results take more
than N tokens. With --model, that model writes a summary in place of the middle
of the conversation, if its messages take more than N tokens.

What is replaced stays in FILE. Tokens are estimated.`,
		Example: `  plait compact talk.json --budget 50000
  plait compact talk.json --budget 50000 --model claude-haiku-4-5 -o b.json`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error { return c.compact(cmd.Context(), args[0]) },
	}

	f := cmd.Flags()
	f.IntVar(&c.budget, "budget", 0, "the tokens of the results, or of all messages: `N`")
	f.IntVar(&c.keep, "keep", 0, "how many of the newest ones stay: `N` (default half\nof the budget)")
	_ = cmd.MarkFlagRequired("budget")
	c.endpointFlags(cmd)
	replaceFlag(cmd, &c.output)
	return cmd
}

func (c *compacter) compact(ctx context.Context, name string) (err error) {
	if c.budget <= 0 || c.keep < 0 {
		return errors.New("--budget must be positive, and --keep not negative")
	}
	if err := c.begin(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.end()) }()

	d, err := c.load(name)
	if err != nil {
		return err
	}
	if waiting := len(d.OpenCalls()); waiting > 0 {
		return fmt.Errorf("%s: %s, and a summary cannot come before their results", name, describe.CallsWait(waiting))
	}
	shorter, err := c.shorten(ctx, d)
	if err != nil {
		return err
	}
	return c.replace(name, c.output, shorter, compacted(tokensOf(d), tokensOf(shorter)))
}

// shorten returns the conversation within the budget, or unchanged.
func (c *compacter) shorten(ctx context.Context, d dag.DAG) (dag.DAG, error) {
	if c.model == "" {
		return contextedit.Results{Budget: c.budget, Keep: c.keep}.Edit(d), nil
	}

	agent, _, err := c.agent(d)
	if err != nil {
		return d, err
	}
	window := executor.Compaction{Budget: c.budget, Keep: c.keep, Policy: executor.Summarise(agent.Provider, "")}
	return window.Compact(ctx, d)
}

// compacted returns how many tokens a conversation takes in a request, before and after.
func compacted(before, after int64) string {
	if before == after {
		return fmt.Sprintf("the messages take about %s: nothing was left out", describe.Count(before, "token"))
	}
	return fmt.Sprintf("the messages take about %s (before: %s)", describe.Count(after, "token"), describe.Number(before))
}

func tokensOf(d dag.DAG) int64 { return api.EstimateTokens(api.Request{Messages: d.Messages()}) }
