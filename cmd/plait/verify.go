package main

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor/durable"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store/sqlite"
)

func verifyCommand(s *streams) *cobra.Command {
	var asJSON, mend bool
	cmd := &cobra.Command{
		Use:   "verify FILE…",
		Short: "Check the checksum of every node",
		Long: `Checks the checksum of every node in each FILE, and prints a line with the
counts for each FILE and a line for each node whose checksum is wrong. Nodes
whose content was erased, and nodes of kinds that this version does not know,
are checked and listed. Nodes without a checksum are listed too; if nothing in a
FILE can be checked, that is a finding.

A database without a key is checked as a whole: every record, head and row
of the inbox by its sum, the index of runs by the conversations and the jobs,
and then every conversation at each head. --mend first makes again what is
derived: the index of runs, and by what long conversations are opened.

Calls that wait for results are listed, and are no findings.

Exit codes:
  0  no finding
  1  a finding in at least one FILE
  2  a FILE cannot be read; the others are checked nevertheless`,
		Example: `  plait verify talk.json
  plait verify sessions.db
  plait verify --json sessions/*.json | jq '.files[] | select(.ok == false)'`,
		Args: someFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := readOnce(args); err != nil {
				return err
			}
			if mend {
				if err := s.mend(args); err != nil {
					return err
				}
			}
			return s.verify(args, asJSON)
		},
	}

	cmd.Flags().BoolVar(&mend, "mend", false, "first make again what a database derives from the rest")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// mend makes again what is derived in each database.
func (s *streams) mend(files []string) error {
	for _, name := range files {
		if name == std || !isDatabase(name) {
			continue
		}
		db, err := s.existing(name)
		if err != nil {
			return err
		}
		if err := db.Repair(s.ctx); err != nil {
			return err
		}

		// The index of runs needs the jobs, which the store does not know.
		err = s.withEngine(name, func(e *durable.Engine) error {
			differences, err := e.Reindex(s.ctx)
			for _, line := range differences {
				s.say("mended: %s", plain(errors.New(line)))
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// verifyReport is the output of verify --json.
type verifyReport struct {
	// OK reports whether every file could be read and none has a finding.
	OK    bool           `json:"ok"`
	Files []verifiedFile `json:"files"`
}

// verifiedFile is the report on one file.
type verifiedFile struct {
	File string `json:"file"`
	OK   bool   `json:"ok"`
	// Error is the reason why the file cannot be read, or "".
	Error string `json:"error,omitempty"`
	// Problems are those of a database as a whole.
	Problems []string      `json:"problems,omitempty"`
	Nodes    int           `json:"nodes"`
	Checked  int           `json:"checked"`
	Findings []dag.Finding `json:"findings"`
	Waiting  []dag.Finding `json:"waiting"`
	Redacted []node.ID     `json:"redacted"`
	Unknown  []node.ID     `json:"unknown"`
	Unsummed []node.ID     `json:"unsummed"`
}

// verify checks the files. If one cannot be read, the others are checked nevertheless.
func (s *streams) verify(files []string, asJSON bool) error {
	report := verifyReport{OK: true}
	unread, found := 0, 0
	several := len(files) > 1 || slices.ContainsFunc(files, isDatabase)
	for o := range s.verified(files) {
		if o.err != nil {
			// An unreadable file does not keep the others from being verified.
			unread++
			unreadable := reportOf(o.name, dag.Verification{})
			unreadable.OK, unreadable.Error = false, plain(o.err)
			report.Files = append(report.Files, unreadable)
			s.say("plait: %s", plain(o.err))
			continue
		}

		checked, line := o.report, o.line
		if checked == nil {
			v := o.dag.Verify()
			one := reportOf(o.name, v)
			checked, line = &one, v.String()
		}
		if !checked.OK {
			found++
		}
		report.Files = append(report.Files, *checked)
		if asJSON {
			continue
		}

		if several {
			line = safetext.Line(o.name, math.MaxInt) + ": " + line
		}
		if _, err := fmt.Fprintln(s.out, safetext.Block(strings.TrimRight(line, "\n"))); err != nil {
			return err
		}
	}

	report.OK = unread+found == 0
	if asJSON {
		if err := s.printJSON(report); err != nil {
			return err
		}
	} else if n := len(report.Files); several {
		summary := fmt.Sprintf("%d files: %d correct, %d with findings, %d cannot be read", n, n-found-unread, found, unread)
		if _, err := fmt.Fprintln(s.out, summary); err != nil {
			return err
		}
	}

	switch {
	case unread > 0:
		return &exitError{code: exitBad}
	case found > 0:
		return &exitError{code: exitFinding}
	}
	return nil
}

// checked is a conversation to verify, or the report and the line about a whole database.
type checked struct {
	opened
	report *verifiedFile
	line   string
}

// verified opens what verify checks: the files and, for a database without a key, the database and then all of its heads.
func (s *streams) verified(files []string) iter.Seq[checked] {
	return func(yield func(checked) bool) {
		for _, name := range files {
			if name == std || !isDatabase(name) {
				d, err := s.load(name)
				if !yield(checked{opened: opened{name, d, err}}) {
					return
				}
				continue
			}
			whole := s.checkDatabase(name)
			if !yield(whole) {
				return
			}

			// A database that cannot be opened is reported once.
			more := true
			if whole.err == nil {
				s.inDatabase(name, func(o opened) bool { more = yield(checked{opened: o}); return more })
			}
			if !more {
				return
			}
		}
	}
}

// checkDatabase checks a whole database.
func (s *streams) checkDatabase(name string) checked {
	c := checked{opened: opened{name: withoutPassword(name)}}
	db, err := s.database(name, false)
	if err == nil {
		err = db.Check(s.ctx)
	}
	if err == nil {
		err = s.withEngine(name, func(e *durable.Engine) error {
			differences, err := e.CheckIndex(s.ctx)
			if len(differences) > 0 {
				err = &sqlite.DamageError{Problems: differences}
			}
			return err
		})
	}

	report := reportOf(c.name, dag.Verification{})
	report.OK, c.report, c.line = true, &report, "the database is correct"
	var damage *sqlite.DamageError
	if errors.As(err, &damage) {
		report.OK, report.Problems = false, damage.Problems
		c.line = "the database is damaged\n  " + strings.Join(damage.Problems, "\n  ")
	} else if err != nil {
		c.err = err
	}
	return c
}

// reportOf returns the report on a file. No list in it is nil: in JSON each is a list.
func reportOf(name string, v dag.Verification) verifiedFile {
	return verifiedFile{
		File: name, OK: v.OK(), Nodes: v.Nodes, Checked: v.Checked,
		Findings: append([]dag.Finding{}, v.Findings...), Waiting: append([]dag.Finding{}, v.Waiting...),
		Redacted: ids(v.Redacted), Unknown: ids(v.Unknown), Unsummed: ids(v.Unsummed),
	}
}

// ids returns the IDs of nodes, in their order.
func ids(nodes []*node.Node) []node.ID {
	list := make([]node.ID, len(nodes))
	for i, n := range nodes {
		list[i] = n.ID()
	}
	return list
}
