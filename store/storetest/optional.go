package storetest

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// The methods that a driver may do without. A case that needs one ends as skipped.

func (t *driverTest) Prune(ctx context.Context, conversation string, dryRun bool) (store.Pruned, error) {
	pruned, err := t.Driver.Prune(ctx, conversation, dryRun)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("SKIPPED: the driver has no Prune")
	}
	return pruned, err
}

func (t *driverTest) Records(ctx context.Context, conversation string, ids []node.ID) iter.Seq2[store.Record, error] {
	records := t.Driver.Records(ctx, conversation, ids)
	if records == nil {
		t.Skip("SKIPPED: the driver has no Records")
	}
	return records
}

func (t *driverTest) Watch(ctx context.Context, conversation string) iter.Seq2[store.Head, error] {
	heads := t.Driver.Watch(ctx, conversation)
	if heads == nil {
		t.Skip("SKIPPED: the driver has no Watch")
	}
	return heads
}

// Read is Driver.Read. For a driver without it, it reads the records of Open.
func (t *driverTest) Read(
	ctx context.Context, conversation string, from, have []node.ID,
) iter.Seq2[store.Record, error] {
	if records := t.Driver.Read(ctx, conversation, from, have); records != nil {
		return records
	}
	return func(yield func(store.Record, error) bool) {
		reached, err := t.reached(ctx, conversation, from, have)
		for _, r := range reached {
			if !yield(r, nil) {
				return
			}
		}
		if err != nil {
			yield(store.Record{}, err)
		}
	}
}

// reached returns what Read yields, from the records of Open.
func (t *driverTest) reached(ctx context.Context, conversation string, from, have []node.ID) ([]store.Record, error) {
	heads, err := t.Heads(ctx, conversation, store.Page{Limit: 1})
	var all []store.Record
	if err == nil && len(heads) > 0 {
		var o store.Opened
		o, err = t.Open(ctx, conversation, heads[0].Name, nil)
		all = o.Records
	}
	if err != nil {
		return nil, err
	}

	// Links come first, so one walk from the newest record finds all that is within reach.
	wanted := map[node.ID]bool{}
	for _, id := range from {
		wanted[id] = true
	}
	var reached []store.Record
	for _, r := range slices.Backward(all) {
		if wanted[r.ID] && !slices.Contains(have, r.ID) {
			for _, id := range r.Links {
				wanted[id] = true
			}
			r.Outline = nil
			reached = append(reached, r)
		}
		delete(wanted, r.ID)
	}
	for id := range wanted {
		return nil, &store.RecordError{Conversation: conversation, ID: id, Err: store.ErrNotStored}
	}
	slices.Reverse(reached)
	return reached, nil
}
