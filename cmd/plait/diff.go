package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/plait-dev/plait/dag"
)

func diffCommand(s *streams) *cobra.Command {
	var before, after, color string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Show where two conversations diverge, and what differs",
		Long: `Compares the content of the conversations in two FILEs; IDs, times and metadata
do not count. The exit code is 1 if there are differences.`,
		Example: `  plait diff before.json after.json
  plait diff talk.json talk.json --old first-try --new second-try`,
		Args: takes("two FILEs", 2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			inColor, err := colored(color, s.out)
			if err != nil {
				return err
			}
			if args[0] == std && args[1] == std {
				return fmt.Errorf("only one input can be standard input: A and B cannot both be -")
			}

			a, err := s.loadAt(args[0], before)
			if err != nil {
				return err
			}
			b, err := s.loadAt(args[1], after)
			if err != nil {
				return err
			}
			return s.diff(dag.Diff(a, b), inColor, asJSON)
		},
	}

	cmd.Flags().StringVar(&before, "old", "", "compare A at this `NODE`")
	cmd.Flags().StringVar(&after, "new", "", "compare B at this `NODE`")
	colorFlag(cmd, &color)
	jsonFlag(cmd, &asJSON)
	return cmd
}

// diff prints a difference. The exit code reports whether there is one.
func (s *streams) diff(found dag.Difference, color, asJSON bool) error {
	var err error
	if asJSON {
		err = s.printJSON(found)
	} else {
		err = found.Write(s.out, &dag.DiffOptions{Color: color})
	}
	if err == nil && !found.Equal() {
		return &exitError{code: exitFinding}
	}
	return err
}
