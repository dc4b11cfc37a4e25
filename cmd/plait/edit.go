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
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify FILE",
		Short: "Check that every node says what its digest says, and that the conversation is whole",
		Args:  oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := s.load(args[0])
			if err != nil {
				return err
			}
			return s.verify(d, asJSON)
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

// finding is one thing that is wrong.
type finding struct {
	Node string `json:"node"`
	What string `json:"what"`
}

func (s *streams) verify(d dag.DAG, asJSON bool) error {
	list := []finding{}
	nodes := d.WithChildren()
	for _, n := range nodes {
		if err := n.Verify(); err != nil {
			list = append(list, finding{n.ID().String(), err.Error()})
		}
	}
	for _, f := range d.Validate() {
		list = append(list, finding{f.Node.ID().String(), f.String()})
	}
	if asJSON {
		if err := s.printJSON(struct {
			Nodes    int       `json:"nodes"`
			Findings []finding `json:"findings"`
		}{len(nodes), list}); err != nil {
			return err
		}
	} else {
		for _, f := range list {
			fmt.Fprintln(s.out, printable(f.What))
		}
		fmt.Fprintf(s.out, "%d nodes, %d findings\n", len(nodes), len(list))
	}
	if len(list) > 0 {
		return &exitError{code: exitFinding}
	}
	return nil
}
