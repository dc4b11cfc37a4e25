package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plait-dev/plait/dag"
)

func diffCommand(s *streams) *cobra.Command {
	var before, after, color string
	var asJSON bool
	when := []string{"auto", "always", "never"}
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Show where two conversations diverge, and what differs",
		Long: `Compares the content of the conversations in two FILEs; IDs, times and metadata
do not count. The exit code is 1 if there are differences.`,
		Example: `  plait diff before.json after.json
  plait diff talk.json talk.json --old first-try --new second-try`,
		Args: takes("two FILEs", 2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(when, color) {
				return fmt.Errorf("--color %q is not one of %s", color, strings.Join(when, ", "))
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
			return s.diff(dag.Diff(a, b), color == "always" || color == "auto" && wantsColor(s.out), asJSON)
		},
	}

	cmd.Flags().StringVar(&before, "old", "", "compare A at this `NODE`")
	completeNode(s, cmd, "old")
	cmd.Flags().StringVar(&after, "new", "", "compare B at this `NODE`")
	cmd.Flags().StringVar(&color, "color", "auto", "`WHEN` to use colors: "+strings.Join(when, ", ")+";\nauto: on a terminal, without NO_COLOR")
	_ = cmd.RegisterFlagCompletionFunc("color", cobra.FixedCompletions(when, cobra.ShellCompDirectiveNoFileComp))
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

// wantsColor reports whether out is a terminal and the environment does not disable colors.
func wantsColor(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
