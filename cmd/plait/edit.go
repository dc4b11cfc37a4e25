package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

func forkCommand(s *streams) *cobra.Command {
	var at, name, output string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "fork FILE [--at NODE] [--name NAME]",
		Short: "Go back to a node, to go on from there; or name a place",
		Long: `Writes the conversation that ends in NODE, or where FILE ends, with all that has
a name. FILE stays as it is, unless -o names it: then its end needs a name, so
that nothing is lost.

With --name the end that is written is named NAME, which is a NODE from then on.
A name that is there already is moved.`,
		Example: `  plait fork talk.json --name first-try -o talk.json
  plait fork talk.json --at 3f2a -o talk.json
  plait log talk.json --node first-try`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if at == "" && name == "" {
				return errors.New("say where by --at, or name the end by --name")
			}
			d, err := s.loadAt(args[0], at)
			if err != nil {
				return err
			}
			if name != "" {
				d = d.WithRef(name)
			}
			if d.Err() == nil && at != "" && sameFile(args[0], output) {
				if err := s.keepsEnd(args[0], d); err != nil {
					return err
				}
			}
			if at != "" && d.Metadata().Get(pauseKey) != "" {
				d = d.WithMetadata(pauseKey, nil) // the pause is that of another end
			}
			if err := d.Err(); err != nil {
				return err
			}
			if err := s.save(output, d); err != nil {
				return err
			}
			if asJSON && output != std && d.Len() > 0 {
				return s.printJSON(rows(d, false)[d.Len()-1])
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&at, "at", "", "the `NODE` to go back to")
	completeNode(s, cmd, "at")
	cmd.Flags().StringVar(&name, "name", "", "the `NAME` of the end")
	outputFlag(cmd, &output)
	jsonFlag(cmd, &asJSON)
	return cmd
}

// sameFile reports whether two names are of one file.
func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// keepsEnd makes sure that what is written in place of a file still holds its end.
func (s *streams) keepsEnd(name string, now dag.DAG) error {
	before, err := s.load(name)
	if err != nil {
		return err
	}
	for _, head := range before.Heads() {
		if _, err := now.Find(head.ID().String()); err != nil {
			return fmt.Errorf("%s would lose its end: name it first (plait fork %[1]s --name NAME -o %[1]s), or write another file", name)
		}
	}
	return nil
}

// strategies are what can become of branches that are merged.
var strategies = []string{string(dag.MergeJoin), string(dag.MergeAnswer), string(dag.MergePick)}

func mergeCommand(s *streams) *cobra.Command {
	var how, output string
	var at []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "merge FILE… [--at NODE]…",
		Short: "Make one conversation of several",
		Long: `Makes one conversation of those in the FILEs, in their order, or of several ends
of one FILE, each named by --at. STRATEGY is

  join    what they say comes one after the other
  answer  the first goes on; the last answers of the others are told to it
  pick    the first goes on; the others are kept, and the model sees nothing of
          them`,
		Example: `  plait merge talk.json other.json -o both.json
  plait merge talk.json --at first-try --at second-try --strategy answer`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(strategies, how) {
				return fmt.Errorf("--strategy %q is none of %s", how, strings.Join(strategies, ", "))
			}
			branches, err := s.branches(args, at)
			if err != nil {
				return err
			}
			d := dag.Merge(dag.MergeStrategy(how), branches...)
			if d.Err() == nil && d.Metadata().Get(pauseKey) != "" {
				d = d.WithMetadata(pauseKey, nil) // its calls are closed
			}
			if err := d.Err(); err != nil {
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
	cmd.Flags().StringVar(&how, "strategy", string(dag.MergeJoin), "the `STRATEGY`: "+strings.Join(strategies, ", "))
	cmd.Flags().StringArrayVar(&at, "at", nil, "a `NODE` of the one FILE, where a conversation ends;\nonce for each")
	completeNode(s, cmd, "at")
	_ = cmd.RegisterFlagCompletionFunc("strategy", cobra.FixedCompletions(strategies, cobra.ShellCompDirectiveNoFileComp))
	outputFlag(cmd, &output)
	jsonFlag(cmd, &asJSON)
	return cmd
}

// branches are the conversations that are merged.
func (s *streams) branches(files, at []string) ([]dag.Branch, error) {
	if len(at) > 0 && len(files) > 1 {
		return nil, errors.New("--at names ends of one FILE, and there are several")
	}
	var list []dag.Branch
	for _, name := range files {
		if name == std && slices.Contains(files[len(list)+1:], std) {
			return nil, errors.New("standard input can be read once")
		}
		d, err := s.load(name)
		if err != nil {
			return nil, err
		}
		for _, end := range at {
			branch, err := find(d, end)
			if err != nil {
				return nil, err
			}
			list = append(list, dag.Branch{Name: end, DAG: branch})
		}
		if len(at) == 0 {
			list = append(list, dag.Branch{Name: strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)), DAG: d})
		}
	}
	return list, nil
}

func pruneCommand(s *streams) *cobra.Command {
	var output string
	var dry, asJSON bool
	cmd := &cobra.Command{
		Use:   "prune FILE",
		Short: "Drop what neither the end nor a name reaches",
		Long: `Drops the nodes in FILE that neither its end nor a name (fork --name) reaches,
such as what a file held whose end was moved, and tells which. FILE is replaced,
unless -o names another; with -, the conversation goes to standard output and
the report to standard error.`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := s.load(args[0])
			if err != nil {
				return err
			}
			gone := d.Unreachable()
			if dry {
				return s.report(s.out, gone, asJSON)
			}
			return s.replace(args[0], output, d.Prune(), gone, asJSON)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "tell what would be dropped, and change nothing")
	replaceFlag(cmd, &output)
	jsonFlag(cmd, &asJSON)
	return cmd
}

func redactCommand(s *streams) *cobra.Command {
	var output string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "redact FILE NODE…",
		Short: "Erase what nodes say; their places and digests stay",
		Long: `Erases the content of each NODE from FILE, which is replaced, unless -o names
another. What leads to them and follows them stays valid, and verify says that
they are redacted. Copies of FILE, and what a model or a log was given, are not
reached. A run that waits in FILE cannot be resumed after.`,
		Args: cobra.MinimumNArgs(2),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return s.nodeNames(args[0]), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := s.load(args[0])
			if err != nil {
				return err
			}
			erased := redacted{}
			for _, name := range args[1:] {
				n, err := nodeOf(d, name)
				if err != nil {
					return err
				}
				erased.Redacted = append(erased.Redacted, n.ID())
			}
			d = d.Redact(erased.Redacted...)
			if d.Err() == nil && d.Metadata().Get(pauseKey) != "" {
				d = d.WithMetadata(pauseKey, nil) // it repeats arguments
			}
			return s.replace(args[0], output, d, erased, asJSON)
		},
	}
	replaceFlag(cmd, &output)
	jsonFlag(cmd, &asJSON)
	return cmd
}

// redacted is what redact reports.
type redacted struct {
	Redacted []node.ID `json:"redacted"`
}

func (r redacted) String() string {
	if len(r.Redacted) == 1 {
		return "1 node is redacted"
	}
	return fmt.Sprintf("%d nodes are redacted", len(r.Redacted))
}

// replaceFlag is where a command writes that replaces its FILE.
func replaceFlag(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVarP(name, "output", "o", "", "the `FILE` to write, in place of the one that is read")
	_ = cmd.MarkFlagFilename("output", "json")
}

// replace writes a conversation in place of the one that was read, and then reports.
func (s *streams) replace(name, output string, d dag.DAG, what fmt.Stringer, asJSON bool) error {
	if err := d.Err(); err != nil {
		return err
	}
	if output == "" {
		output = name
	}
	if err := s.save(output, d); err != nil {
		return err
	}
	if output == std {
		return s.report(s.err, what, asJSON)
	}
	return s.report(s.out, what, asJSON)
}

func (s *streams) report(to io.Writer, what fmt.Stringer, asJSON bool) error {
	if asJSON {
		return (&streams{out: to}).printJSON(what)
	}
	_, err := fmt.Fprintln(to, printable(what.String()))
	return err
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
