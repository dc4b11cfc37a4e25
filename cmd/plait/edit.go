package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

func forkCommand(s *streams) *cobra.Command {
	var at, name, output string
	cmd := &cobra.Command{
		Use:   "fork FILE [--at NODE] [--name NAME]",
		Short: "Start a branch at a node, or name a head",
		Long: `Writes the conversation whose head is NODE, or that of FILE, with all refs. FILE
is not changed, unless -o names it: then its head needs a ref, so that nothing
is lost.

With --name the head that is written gets the ref NAME, which is a NODE from
then on. A ref that exists already is moved.`,
		Example: `  plait fork talk.json --name first-try -o talk.json
  plait fork talk.json --at 3f2a -o talk.json
  plait log talk.json --node first-try`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if at == "" && name == "" {
				return errors.New("name a node with --at, or a ref with --name")
			}
			d, err := s.loadAt(args[0], at)
			if err != nil {
				return err
			}

			if cmd.Flags().Changed("name") { // an empty name is an error of WithRef
				d = d.WithRef(name)
			}

			// Nothing else names the old head once the file is replaced.
			if d.Err() == nil && at != "" && sameFile(args[0], output) {
				if err := s.checkHeadsKept(args[0], d); err != nil {
					return err
				}
			}

			if err := d.Err(); err != nil {
				return err
			}

			return s.save(output, d)
		},
	}

	cmd.Flags().StringVar(&at, "at", "", "the `NODE` to start the branch at")
	cmd.Flags().StringVar(&name, "name", "", "the `NAME` of the head, a ref")
	outputFlag(cmd, &output)
	return cmd
}

// sameFile reports whether two names refer to the same file.
func sameFile(a, b string) bool {
	// A conversation in a database has no file of its own, so Stat does not find its name.
	if a == b && stored(a) {
		return true
	}
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// checkHeadsKept returns an error if the new version of a file does not reach the heads of the old one.
func (s *streams) checkHeadsKept(name string, now dag.DAG) error {
	before, err := s.load(name)
	if err != nil {
		return err
	}

	if !reachesHeads(now, before) {
		return fmt.Errorf("%s would lose its head: give it a ref first (plait fork %[1]s --name NAME -o %[1]s), or write another file", name)
	}
	return nil
}

// reachesHeads reports whether the heads and refs of d reach the heads of another conversation.
func reachesHeads(d, of dag.DAG) bool {
	return !slices.ContainsFunc(of.Heads(), func(head *node.Node) bool {
		_, err := d.Find(head.ID().String())
		return err != nil
	})
}

func pruneCommand(s *streams) *cobra.Command {
	var output string
	var dry bool
	cmd := &cobra.Command{
		Use:   "prune FILE",
		Short: "Remove nodes that no head or ref reaches",
		Long: `Removes the nodes in FILE that no head or ref (fork --name) reaches, such as
those after a head that was moved, and lists them. FILE is replaced, unless -o
names another; with -, the conversation goes to standard output and the report
to standard error.`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			// A database is pruned in place: its unreachable nodes are not part of the loaded conversation.
			if stored(args[0]) && output == "" {
				what, err := s.pruneStored(args[0], dry)
				if err != nil {
					return err
				}
				return s.report(what)
			}

			d, err := s.load(args[0])
			if err != nil {
				return err
			}

			gone := d.Unreachable().String()
			if dry {
				return s.report(gone)
			}
			return s.replace(args[0], output, d.Prune(), gone)
		},
	}

	cmd.Flags().BoolVar(&dry, "dry-run", false, "list what would be removed, and change nothing")
	replaceFlag(cmd, &output)
	return cmd
}

func redactCommand(s *streams) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "redact FILE NODE…",
		Short: "Erase the content of nodes; their IDs and positions are kept",
		Long: `Erases the content of each NODE from FILE, which is replaced, unless -o names
another. The nodes before and after them stay valid, and verify lists them as
redacted. Copies of FILE, and what was sent to a model or written to a log, are
not changed. A run that is paused in FILE cannot be resumed afterwards.`,
		Args: takes("FILE and at least one NODE", 2, math.MaxInt),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := s.load(args[0])
			if err != nil {
				return err
			}

			var erased []node.ID
			for _, name := range args[1:] {
				n, err := nodeOf(d, name)
				if err != nil {
					return err
				}
				erased = append(erased, n.ID())
			}

			what := fmt.Sprintf("%d nodes are redacted", len(erased))
			if len(erased) == 1 {
				what = "1 node is redacted"
			}
			return s.replace(args[0], output, d.Redact(erased...), what)
		},
	}

	replaceFlag(cmd, &output)
	return cmd
}

// replaceFlag registers the flag for a command's output file. Its default is the input file.
func replaceFlag(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVarP(name, "output", "o", "", "the `FILE` to write, in place of the one that is read")
	_ = cmd.MarkFlagFilename("output", "json")
}

// replace writes a conversation in place of the original, and prints what was done.
func (s *streams) replace(name, output string, d dag.DAG, what string) error {
	if err := d.Err(); err != nil {
		return err
	}
	if output == "" {
		output = name
	}

	if err := s.save(output, d); err != nil {
		return err
	}

	// Standard output has the conversation, so the report goes to standard error.
	if output == std {
		s.say("%s", what)
		return nil
	}
	return s.report(what)
}

// report prints what was done.
func (s *streams) report(what string) error {
	_, err := fmt.Fprintln(s.out, safetext.Block(what))
	return err
}
