package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
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

// find returns the conversation that ends in what is named: a node's id or digest, or the beginning of one that no other has.
func find(d dag.DAG, name string) (dag.DAG, error) {
	const least = 4
	prefix := strings.ToLower(strings.TrimPrefix(name, "sha256:"))
	if len(prefix) < least {
		return dag.DAG{}, fmt.Errorf("%q is too short to name a node: %d digits at least", name, least)
	}
	var found []*node.Node
	for _, n := range d.WithChildren() {
		if strings.HasPrefix(n.ID().String(), prefix) || strings.HasPrefix(strings.TrimPrefix(n.Digest().String(), "sha256:"), prefix) {
			found = append(found, n)
		}
	}
	switch len(found) {
	case 0:
		return dag.DAG{}, fmt.Errorf("no node is %q", name)
	case 1:
		return d.WithHeads(found[0]), nil
	}
	return dag.DAG{}, fmt.Errorf("%q names %d nodes", name, len(found))
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

