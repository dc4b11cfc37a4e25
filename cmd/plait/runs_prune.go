package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/plait-dev/plait/executor/durable"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/store"
)

func pruneRunsCommand(s *streams) *cobra.Command {
	var age string
	var dry bool
	cmd := &cobra.Command{
		Use:   "prune DATABASE --older-than AGE",
		Short: "Remove runs that ended long ago, and nodes that no head reaches",
		Long: `Removes the durable runs that ended AGE ago, and from each conversation the
nodes that no head or ref reaches. Runs that have not ended, heads, and what
these need are kept. Other programs may use the database meanwhile.`,
		Example: `  plait runs prune sessions.db --older-than 30d --dry-run
  plait runs prune sessions.db --older-than 30d`,
		Args: oneFile,
		RunE: func(_ *cobra.Command, args []string) error {
			older, err := parseAge(age)
			if err != nil {
				return err
			}
			return s.withEngine(args[0], func(e *durable.Engine) error {
				done, err := s.pruneRuns(e, args[0], time.Now().Add(-older), dry)
				if err != nil {
					return err
				}
				return s.report(done)
			})
		},
	}

	cmd.Flags().StringVar(&age, "older-than", "", "how long ago a run must have ended: `AGE` is 30d, 12h\nor 90m; 0 is all that have ended")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "count what would be removed, and change nothing")
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

// pruneRuns removes the runs that ended before a time, and the unreachable nodes of all conversations.
func (s *streams) pruneRuns(e *durable.Engine, file string, before time.Time, dry bool) (done string, err error) {
	const batch = 1000
	runs := 0
	for n := batch; n == batch && !(dry && runs > 0); runs += n {
		limit := batch
		if dry {
			limit = math.MaxInt32
		}
		if n, err = e.Prune(s.ctx, before, limit, dry); err != nil {
			return "", err
		}
	}

	all, err := s.store(file, false)
	if err != nil {
		return "", err
	}
	var gone store.Pruned
	for key, err := range all.Conversations(s.ctx, "") {
		if err != nil {
			return "", err
		}
		pruned, err := all.Prune(s.ctx, key, dry)
		if err != nil {
			return "", err
		}
		gone.Records, gone.Bytes = gone.Records+pruned.Records, gone.Bytes+pruned.Bytes
	}
	return describe.Count(runs, "old run") + "\n" + outOfReach(gone), nil
}
