package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// maxPruned is the number of records that one transaction of Prune removes. It locks the conversation or, with SQLite,
// the whole database.
const maxPruned = 1000

// maxPlans is the number of plans made without a lock, for one transaction. After these, Prune plans under the lock.
const maxPlans = 3

// Prune implements store.Driver. It plans the removal in a snapshot, without a lock, and removes in small transactions.
// Before it removes records, a transaction checks the heads. If one has moved, Prune plans again. After each
// transaction it rests for as long as the transaction took: other writers get their turn.
func (d *Driver) Prune(ctx context.Context, conversation string, dryRun bool) (total store.Pruned, err error) {
	if err := check(ctx, conversation); err != nil {
		return store.Pruned{}, err
	}

	plan, err := d.planPruning(ctx, conversation)
	if err == nil && plan != nil && dryRun {
		err = d.db.Read(ctx, func(tx Tx) (err error) {
			total, err = plan.count(ctx, tx, plan.unreached)
			return err
		})
	}
	if err != nil || dryRun {
		return total, err
	}

	for plans := 1; plan != nil; {
		// The transaction may be run again, so the plan and the total change only after its commit.
		var next *pruning
		var removed store.Pruned
		began := time.Now()
		err := d.write(ctx, func(tx Tx) (err error) {
			if next, err = plan.locked(ctx, tx, conversation, d.dialect.Lock, plans == maxPlans); err != nil || next == nil {
				return err
			}
			next, removed, err = next.step(ctx, tx)
			return err
		})

		// Plan again. The last of maxPlans is made under the lock, so a busy conversation cannot put Prune off for
		// ever.
		if err == errHeadMoved {
			plans++
			if plan, err = d.planPruning(ctx, conversation); err != nil {
				return store.Pruned{}, err
			}
			continue
		}
		if err != nil {
			return store.Pruned{}, err
		}

		total = store.Pruned{Records: total.Records + removed.Records, Bytes: total.Bytes + removed.Bytes}
		plan, plans = next, 1
		if removed != (store.Pruned{}) {
			if err := rest(ctx, time.Since(began)); err != nil {
				return store.Pruned{}, err
			}
		}
	}
	return total, nil
}

// rest waits for d, or until the context is done.
func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// errHeadMoved ends a transaction of Prune with an outdated plan.
var errHeadMoved = errors.New("a head has moved")

// pruning is a plan for removing from a conversation. It is immutable.
type pruning struct {
	conv int64
	// heads are the heads and their versions at the time of the plan. Each append moves a head, so the plan is right as
	// long as these are the same.
	heads string
	// unreached are the unreachable records, the newest first. In this order, no remaining record is ever linked to a
	// removed one.
	unreached []node.ID
}

// planPruning returns a plan, or nil if there is nothing to remove.
func (d *Driver) planPruning(ctx context.Context, conversation string) (plan *pruning, err error) {
	err = d.db.Snapshot(ctx, func(tx Tx) error {
		plan, err = headsForPruning(ctx, tx, conversation, "")
		if err != nil || plan == nil {
			return err
		}
		plan.unreached, err = unreached(ctx, tx, conversation, plan.conv)
		return err
	})
	if plan != nil && len(plan.unreached) == 0 {
		plan = nil
	}
	return plan, err
}

// headsForPruning returns a plan without records, or nil if there is no such conversation. lock is "" or Dialect.Lock.
func headsForPruning(ctx context.Context, tx Tx, conversation, lock string) (*pruning, error) {
	var p pruning
	found, err := first(ctx, tx, `SELECT num FROM plait_conversations WHERE name = $1`+lock, []any{conversation}, &p.conv)
	if err != nil || !found {
		return nil, err
	}

	// The number, not the name: it differs if a head was removed and made again with the same version.
	err = each(ctx, tx, `SELECT num, version FROM plait_heads WHERE conv = $1 ORDER BY num`, []any{p.conv},
		func(scan func(...any) error) error {
			var num, version int64
			err := scan(&num, &version)
			p.heads += fmt.Sprintf("%d:%d ", num, version)
			return err
		})
	return &p, err
}

// locked locks the conversation against moves of heads. It returns p, or nil if the conversation was removed. If a head
// has moved, it returns errHeadMoved, or with plan a new plan.
func (p *pruning) locked(ctx context.Context, tx Tx, conversation, lock string, plan bool) (*pruning, error) {
	now, err := headsForPruning(ctx, tx, conversation, lock)
	if err != nil || now == nil {
		return nil, err
	}

	if now.conv == p.conv && now.heads == p.heads {
		return p, nil
	}
	if !plan {
		return nil, errHeadMoved
	}
	now.unreached, err = unreached(ctx, tx, conversation, now.conv)
	return now, err
}

// step removes the first records of the plan. It returns the rest of the plan, or nil.
func (p *pruning) step(ctx context.Context, tx Tx) (next *pruning, removed store.Pruned, err error) {
	n := min(len(p.unreached), maxPruned)
	if removed, err = p.count(ctx, tx, p.unreached[:n]); err != nil {
		return nil, removed, err
	}
	err = p.inParts(`DELETE FROM plait_nodes WHERE conv = $1 AND id IN (…)`, p.unreached[:n],
		func(query string, args []any) error {
			_, err := tx.Exec(ctx, query, args...)
			return err
		})
	if err != nil {
		return nil, removed, err
	}

	// Another version of the row: see Dialect.ShareUnpruned.
	_, err = tx.Exec(ctx, `UPDATE plait_conversations SET name = name WHERE num = $1`, p.conv)
	if err != nil || n == len(p.unreached) {
		return nil, removed, err
	}

	// The rest is a new plan: the transaction may be run again with this one.
	return &pruning{conv: p.conv, heads: p.heads, unreached: p.unreached[n:]}, removed, nil
}

// count returns the number and the size of records.
func (p *pruning) count(ctx context.Context, tx Tx, ids []node.ID) (found store.Pruned, err error) {
	err = p.inParts(`SELECT COUNT(*), COALESCE(SUM(LENGTH(line)), 0) FROM plait_nodes WHERE conv = $1 AND id IN (…)`, ids,
		func(query string, args []any) error {
			var records, size int64
			_, err := first(ctx, tx, query, args, &records, &size)
			found.Records, found.Bytes = found.Records+int(records), found.Bytes+size
			return err
		})
	return found, err
}

// inParts calls f with a query for some of the records at a time. It replaces the … of the query by their parameters.
func (p *pruning) inParts(query string, ids []node.ID, f func(query string, args []any) error) error {
	for len(ids) > 0 {
		n := rowsOf(len(ids))
		if err := f(inQuery(query, n), append([]any{p.conv}, idArgs(ids[:n])...)); err != nil {
			return err
		}
		ids = ids[n:]
	}
	return nil
}

// unreached returns the unreachable records, the newest first.
func unreached(ctx context.Context, tx Tx, conversation string, conv int64) ([]node.ID, error) {
	// The walk is used for its set of wanted records alone.
	w := newWalk(conversation, nil)
	err := each(ctx, tx, `SELECT name, version, nodes, header FROM plait_heads WHERE conv = $1`, []any{conv},
		func(scan func(...any) error) error {
			var name string
			var version int64
			var nodes, header []byte
			if err := scan(&name, &version, &nodes, &header); err != nil {
				return err
			}
			h, err := readHead(conversation, name, version, nodes, header)
			for _, id := range h.Nodes {
				w.want(id)
			}
			return err
		})
	if err != nil {
		return nil, err
	}

	// From the newest to the oldest, all links to a record come before it. So one pass finds whether anything reaches
	// it.
	var list []node.ID
	err = each(ctx, tx, `SELECT id, links FROM plait_nodes WHERE conv = $1 ORDER BY seq DESC`, []any{conv},
		func(scan func(...any) error) error {
			var packed, links []byte
			if err := scan(&packed, &links); err != nil {
				return err
			}

			id, err := unpackID(packed)
			if err != nil {
				return err
			}
			if !w.wanted[id] {
				list = append(list, id)
				return nil
			}

			delete(w.wanted, id)
			ids, err := unpackIDs(links)
			for _, id := range ids {
				w.want(id)
			}
			return err
		})
	return list, err
}
