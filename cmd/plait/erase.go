package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plait-dev/plait/executor/durable"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/postgres"
	"github.com/plait-dev/plait/store/sqlite"
)

// eraseFlags are the flags of plait erase.
type eraseFlags struct {
	prefix    string
	full, dry bool
}

func eraseCommand(s *streams) *cobra.Command {
	var f eraseFlags
	cmd := &cobra.Command{
		Use:   "erase DATABASE [KEY…]",
		Short: "Erase conversations with everything the database has about them",
		Long: `Removes conversations with their heads, inbox, runs and jobs, and then from the
files of the database: SQLite's are written anew, and its log of changes is
emptied; on PostgreSQL, VACUUM frees the space, and with --full the tables are
written anew. Other programs wait meanwhile. What the command cannot reach is
printed.

To erase single messages and keep the conversation, use plait redact, and then
plait erase DATABASE without a KEY.`,
		Example: `  plait erase sessions.db alice/42
  plait erase sessions.db --prefix alice/ --dry-run
  plait erase 'postgres://host/name' --prefix alice/ --full`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("name a DATABASE")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			return s.withEngine(args[0], func(e *durable.Engine) error { return s.erase(e, args[0], args[1:], f) })
		},
	}

	cmd.Flags().StringVar(&f.prefix, "prefix", "", "also every conversation whose key begins with `TEXT`")
	cmd.Flags().BoolVar(&f.full, "full", false, "on PostgreSQL, VACUUM FULL: no content stays in free space")
	cmd.Flags().BoolVar(&f.dry, "dry-run", false, "list what would be erased, and change nothing")
	return cmd
}

// erase erases conversations of a database, and then scrubs its files.
func (s *streams) erase(e *durable.Engine, file string, keys []string, f eraseFlags) error {
	db, err := s.existing(file)
	if err != nil {
		return err
	}
	if f.prefix != "" {
		found, err := s.keysWith(db, f.prefix)
		if err != nil {
			return err
		}
		keys = append(keys, found...)
	}
	slices.Sort(keys)

	var done []string
	for _, key := range slices.Compact(keys) {
		if f.dry {
			done = append(done, safetext.Row(key)+": would be erased")
			continue
		}
		erased, err := e.Erase(s.ctx, key)
		if err != nil {
			return err
		}
		what := "erased"
		if !erased.Stored {
			what = "not stored"
		}
		done = append(done, fmt.Sprintf("%s: %s, %s, %s", safetext.Row(key), what,
			describe.Count(erased.Runs, "run"), describe.Count(erased.Jobs, "job")))
	}
	if f.dry {
		return s.report(strings.Join(done, "\n"))
	}

	// Everything is removed: an error now is about the files alone.
	if err := s.scrub(e, db, f.full); err != nil {
		return fmt.Errorf("the conversations are removed, but not yet from the files of the database (run the command again): %w", err)
	}
	return s.report(strings.Join(append(append(done, "not reached:"), unreached(db, f.full)...), "\n"))
}

// keysWith returns the keys with a prefix: of conversations, and of those that were deleted and have runs.
func (s *streams) keysWith(db database, prefix string) (keys []string, err error) {
	for key, err := range store.New(db).Conversations(s.ctx, prefix) {
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}

	err = db.View(s.ctx, func(tx store.Tx) error {
		rows, err := tx.Query(s.ctx, `SELECT DISTINCT conversation FROM plait_index`)
		if err != nil {
			return err
		}
		for rows.Next() {
			var key string
			if err := rows.Scan(&key); err != nil {
				return errors.Join(err, rows.Close())
			}
			if strings.HasPrefix(key, prefix) {
				keys = append(keys, key)
			}
		}
		return errors.Join(rows.Err(), rows.Close())
	})
	return keys, err
}

// scrub removes what was deleted from the files of a database.
func (s *streams) scrub(e *durable.Engine, db database, full bool) error {
	switch db := db.(type) {
	case *sqlite.DB:
		return db.Scrub(s.ctx)
	case *postgres.DB:
		return db.Scrub(s.ctx, full, e.JobTable())
	}
	return nil
}

// unreached returns the places that scrub does not reach, and that may hold the content still, each on an indented line.
func unreached(db database, full bool) []string {
	places := []string{
		"backups and other copies of the database, and files made from the conversations",
		"logs, traces, and what model providers and tools have received",
		"other conversations that quote these",
		"the memory of processes that have a conversation open",
	}
	if _, is := db.(*postgres.DB); is {
		places = append(places, "the server's log of changes (pg_wal) until it is recycled, its archive, and replicas",
			"the server's text logs, if it logs statements")
		if !full {
			places = append(places, "free space in the tables until it is overwritten (--full writes them anew)")
		}
	}
	for i := range places {
		places[i] = "  " + places[i]
	}
	return places
}
