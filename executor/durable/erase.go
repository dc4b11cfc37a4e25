package durable

import (
	"context"

	"github.com/plait-dev/plait/store"
)

// Erased counts what [Engine.Erase] has removed.
type Erased struct {
	// Stored reports whether there was a conversation.
	Stored bool
	// Runs and Jobs are the rows of the index and the jobs of River.
	Runs, Jobs int
}

// JobTable returns the name of River's table of jobs in statements.
func (e *Engine) JobTable() string { return e.queue.dialect().jobs }

// Erase removes a conversation with everything that the database has about it: its heads, its inbox, its runs in the
// index, whose reasons may quote it, and the jobs of River with their errors. A run under way ends, as with
// store.Store.Delete. What was removed is still in the files of the database, until Scrub of sqlite.DB or postgres.DB
// has returned nil.
func (e *Engine) Erase(ctx context.Context, conversation string) (erased Erased, err error) {
	if err := store.CheckName(conversation); err != nil {
		return Erased{}, err
	}
	if err := e.ready(ctx); err != nil {
		return Erased{}, err
	}
	heads, err := e.db.Heads(ctx, conversation, store.Page{Limit: 1})
	if err != nil {
		return Erased{}, err
	}

	// The conversation first: afterwards no process makes a job or a run for it.
	if err := e.db.Delete(ctx, conversation); err != nil {
		return Erased{}, err
	}
	err = e.db.Update(ctx, func(tx store.Tx) error {
		erased = Erased{Stored: len(heads) > 0}
		d := e.queue.dialect()
		jobs, err := tx.Exec(ctx, `DELETE FROM `+d.jobs+` WHERE kind IN `+kinds+` AND `+d.conversation+` = $1`, conversation)
		if err != nil {
			return err
		}
		runs, err := tx.Exec(ctx, `DELETE FROM plait_index WHERE conversation = $1`, conversation)
		erased.Runs, erased.Jobs = int(runs), int(jobs)
		return err
	})
	return erased, err
}
