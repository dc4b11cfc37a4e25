package main

import (
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/store"
)

func listCommand(s *streams) *cobra.Command {
	var prefix string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list DATABASE",
		Short: "List the conversations of a database",
		Long: `Lists the conversations in an SQLite database, sorted by key, with a line for
each head: how often it was appended to, and when last. A conversation is a
FILE of the other commands as DATABASE#KEY, and another head of it than main
as DATABASE#KEY#HEAD.`,
		Example: `  plait list sessions.db
  plait list sessions.db --prefix alice/
  plait log 'sessions.db#alice/42'`,
		Args: oneFile,
		RunE: func(_ *cobra.Command, args []string) error { return s.list(args[0], prefix, asJSON) },
	}

	cmd.Flags().StringVar(&prefix, "prefix", "", "only keys that begin with `TEXT`")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// listedConversation is a conversation in the output of list --json.
type listedConversation struct {
	Key   string       `json:"key"`
	Heads []listedHead `json:"heads"`
}

// listedHead is a head in the output of list --json.
type listedHead struct {
	Name    string `json:"name"`
	Version uint64 `json:"version"`
	// Changed is the time of the head's newest node, or nil if its ID has none.
	Changed *time.Time `json:"changed"`
}

// list prints the conversations of a database.
func (s *streams) list(file, prefix string, asJSON bool) error {
	db, err := s.existing(file)
	if err != nil {
		return err
	}
	all := store.New(db)

	// Not nil: JSON has an empty list, not null.
	found := []listedConversation{}
	for key, err := range all.Conversations(s.ctx, prefix) {
		if err != nil {
			return err
		}
		c := listedConversation{Key: key, Heads: []listedHead{}}
		for h, err := range all.Heads(s.ctx, key, "") {
			if err != nil {
				return err
			}
			c.Heads = append(c.Heads, listedHead{h.Name, h.Version, lastChange(h)})
		}
		found = append(found, c)
	}

	if asJSON {
		return s.printJSON(map[string]any{"conversations": found})
	}

	w := tabwriter.NewWriter(s.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "key\thead\tversion\tchanged")
	for _, c := range found {
		for _, h := range c.Heads {
			when := "-"
			if h.Changed != nil {
				when = h.Changed.Format(time.DateTime)
			}
			fmt.Fprintf(w, "%s\t%s\t%d\t%s\n", safetext.Row(c.Key), safetext.Row(h.Name), h.Version, when)
		}
	}
	return w.Flush()
}

// lastChange returns the time of the newest node at a head, or nil if no ID has a time. Only IDs of version 7 have one.
// No node is read.
func lastChange(h store.Head) *time.Time {
	var times []time.Time
	for _, id := range h.Nodes {
		if id.Version() == 7 {
			times = append(times, timeOf(id))
		}
	}
	if len(times) == 0 {
		return nil
	}
	newest := slices.MaxFunc(times, time.Time.Compare)
	return &newest
}

// timeOf returns the time in an ID of version 7: its first 48 bits are milliseconds.
func timeOf(id uuid.UUID) time.Time {
	var milliseconds int64
	for _, b := range id[:6] {
		milliseconds = milliseconds<<8 | int64(b)
	}
	return time.UnixMilli(milliseconds).UTC()
}
