package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/plait-dev/plait/store"
)

func pruneRunsCommand(s *streams) *cobra.Command {
	var age string
	var dry, asJSON bool
	cmd := &cobra.Command{
		Use:   "prune DATABASE --older-than AGE",
		Short: "Remove runs that ended long ago, and nodes that no head reaches",
		Long: `Removes the durable runs that ended AGE ago, with their calls and
results, and from each conversation the nodes that no head or ref reaches.
Runs that have not ended, heads, and what these need are kept. Other programs
may use the database meanwhile.`,
		Example: `  plait runs prune sessions.db --older-than 30d --dry-run
  plait runs prune sessions.db --older-than 30d`,
		Args: oneFile,
		RunE: func(_ *cobra.Command, args []string) error {
			older, err := parseAge(age)
			if err != nil {
				return err
			}
			db, err := s.existing(args[0])
			if err != nil {
				return err
			}

			done, err := store.Retention{OlderThan: older, DryRun: dry}.Apply(s.ctx, db)
			if err != nil {
				return err
			}
			return s.report(s.out, retainedReport{
				done.Runs, done.Calls, done.RunBytes, done.Nodes, done.Blobs, done.NodeBytes,
			}, asJSON)
		},
	}

	cmd.Flags().StringVar(&age, "older-than", "", "how long ago a run must have ended: `AGE` is 30d, 12h\nor 90m; 0 is all that have ended")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "count what would be removed, and change nothing")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// parseAge parses a duration, possibly in days.
func parseAge(text string) (time.Duration, error) {
	const maxDays = 100_000
	if text == "" {
		return 0, fmt.Errorf("name an age: --older-than 30d")
	}

	// A Duration has no unit for days.
	if days, found := strings.CutSuffix(text, "d"); found {
		if n, err := strconv.ParseUint(days, 10, 32); err == nil && n <= maxDays {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return d, nil
	}
	return 0, fmt.Errorf("--older-than %q is not an age such as 30d, 12h or 90m", text)
}

// retainedReport is the output of runs prune.
type retainedReport struct {
	Runs      int   `json:"runs"`
	Calls     int   `json:"calls"`
	RunBytes  int64 `json:"run_bytes"`
	Nodes     int   `json:"nodes"`
	Blobs     int   `json:"blobs"`
	NodeBytes int64 `json:"node_bytes"`
}

func (r retainedReport) String() string {
	return fmt.Sprintf("%s with %s (%d bytes)\n%s", count(r.Runs, "old run"), count(r.Calls, "call"), r.RunBytes,
		prunedReport{r.Nodes, r.Blobs, r.NodeBytes})
}

// count returns a number with its noun.
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
