package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/plait-dev/plait/dag"
)

func forkCommand(s *streams) *cobra.Command {
	var at, output string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "fork FILE --at NODE",
		Short: "Go back to a node, to go on from there",
		Long:  "Writes the conversation that ends in NODE. FILE stays as it is.",
		Args:  oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := s.loadAt(args[0], at)
			if err != nil {
				return err
			}
			if err := s.save(output, d); err != nil {
				return err
			}
			if asJSON && output != std {
				return s.printJSON(rows(d, false)[d.Len()-1])
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&at, "at", "", "the node")
	_ = cmd.MarkFlagRequired("at")
	outputFlag(cmd, &output)
	jsonFlag(cmd, &asJSON)
	return cmd
}

func verifyCommand(s *streams) *cobra.Command {
	var asJSON, strict bool
	cmd := &cobra.Command{
		Use:   "verify FILE",
		Short: "Check that every node says what its digest says",
		Long: `Recomputes the digest of every node in FILE, and names each node that does not
say what its digest says: the exit code is 1 then. Nodes whose content was
erased, and nodes of kinds that this version does not know, cannot be checked,
and are named too.

With --strict, what would have to be repaired before a model takes the
conversation (a call without a result, an empty message, …) is a finding as
well.`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := s.load(args[0])
			if err != nil {
				return err
			}
			return s.verify(d, strict, asJSON)
		},
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "report what sending would repair, too")
	jsonFlag(cmd, &asJSON)
	return cmd
}

func (s *streams) verify(d dag.DAG, strict, asJSON bool) error {
	v := d.Verify()
	if strict {
		v.Findings = append(v.Findings, d.Validate()...)
	}
	if asJSON {
		if err := s.printJSON(v); err != nil {
			return err
		}
	} else {
		fmt.Fprintln(s.out, printable(v.String()))
	}
	if !v.OK() {
		return &exitError{code: exitFinding}
	}
	return nil
}
