package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// The sizes of one transaction of Prune. It locks the conversation or, with SQLite, the whole database.
const (
	maxPrunedRecords = 1000
	maxPrunedBlobs   = 100
)

// maxPlans is the number of plans made without a lock, for one transaction. After these, Prune plans under the lock.
const maxPlans = 3

// Prune implements store.Driver. It plans the removal in a snapshot, without a lock, and removes in small transactions.
// Before it removes records, a transaction checks the heads. If one has moved, Prune plans again. After each
// transaction it rests for as long as the transaction took: other writers get their turn.
func (d *Driver) Prune(ctx context.Context, conversation string, dryRun bool) (total store.Pruned, err error) {
	if err := check(ctx, conversation); err != nil {
		return store.Pruned{}, err
	}

	plan, would, err := d.planPruning(ctx, conversation, dryRun)
	if err != nil || dryRun {
		return would, err
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
			if plan, _, err = d.planPruning(ctx, conversation, false); err != nil {
				return store.Pruned{}, err
			}
			continue
		}
		if err != nil {
			return store.Pruned{}, err
		}

		total = store.Pruned{
			Records: total.Records + removed.Records, Blobs: total.Blobs + removed.Blobs, Bytes: total.Bytes + removed.Bytes,
		}
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
	// after is the sum of the last removed blob. Blobs are removed by their sums, after the records.
	after []byte
}

// planPruning returns a plan, or nil if there is nothing to remove. With count it also returns the counts of the plan.
func (d *Driver) planPruning(ctx context.Context, conversation string, count bool) (
	plan *pruning, would store.Pruned, err error,
) {
	err = d.db.Snapshot(ctx, func(tx Tx) error {
		p, err := headsForPruning(ctx, tx, conversation, "")
		if err != nil || p == nil {
			return err
		}
		if p.unreached, err = unreached(ctx, tx, conversation, p.conv); err != nil {
			return err
		}

		// Unused blobs may exist even if all records are reachable: after records were replaced, or after an
		// interrupted Prune.
		blobs := false
		if len(p.unreached) == 0 {
			blobs, err = first(ctx, tx, `SELECT LENGTH(sum) FROM plait_blobs WHERE conv = $1 AND `+unneeded+` LIMIT 1`,
				[]any{p.conv}, new(int64))
		}
		if err == nil && count {
			would, err = p.count(ctx, tx)
		}
		if blobs || len(p.unreached) > 0 {
			plan = p
		}
		return err
	})
	return plan, would, err
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

	// Whether a blob is needed does not depend on the heads.
	if now.conv == p.conv && (now.heads == p.heads || len(p.unreached) == 0) {
		return p, nil
	}

	if !plan {
		return nil, errHeadMoved
	}
	now.unreached, err = unreached(ctx, tx, conversation, now.conv)
	return now, err
}

// step removes the first records of the plan or, if it has none, blobs. It returns the rest of the plan, or nil.
func (p *pruning) step(ctx context.Context, tx Tx) (next *pruning, removed store.Pruned, err error) {
	// The records are removed: now remove the unused blobs.
	if len(p.unreached) == 0 {
		last, err := p.removeBlobs(ctx, tx, &removed)
		if last == nil {
			return nil, removed, err
		}
		return &pruning{conv: p.conv, heads: p.heads, after: last}, removed, err
	}

	// The rest is a new plan: the transaction may be run again with this one.
	n := min(len(p.unreached), maxPrunedRecords)
	if err := p.countRecords(ctx, tx, p.unreached[:n], &removed); err != nil {
		return nil, removed, err
	}
	for _, query := range []string{
		`DELETE FROM plait_uses WHERE conv = $1 AND id IN (…)`,
		`DELETE FROM plait_nodes WHERE conv = $1 AND id IN (…)`,
	} {
		if err := p.inParts(query, idArgs(p.unreached[:n]), execute(ctx, tx)); err != nil {
			return nil, removed, err
		}
	}

	// Another version of the row: see Dialect.ShareUnpruned.
	if _, err := tx.Exec(ctx, `UPDATE plait_conversations SET name = name WHERE num = $1`, p.conv); err != nil {
		return nil, removed, err
	}
	return &pruning{conv: p.conv, heads: p.heads, unreached: p.unreached[n:]}, removed, nil
}

// unneeded selects the unused blobs.
const unneeded = `NOT EXISTS (
	SELECT 1 FROM plait_uses WHERE plait_uses.conv = plait_blobs.conv AND plait_uses.sum = plait_blobs.sum)`

// removeBlobs removes the next unused blobs. It returns the last sum, or nil if there are no more.
func (p *pruning) removeBlobs(ctx context.Context, tx Tx, removed *store.Pruned) (last []byte, err error) {
	// The blobs up to p.after were looked at by earlier transactions.
	var sums []any
	err = each(ctx, tx, `SELECT sum, LENGTH(data) FROM plait_blobs WHERE conv = $1 AND sum > $2 AND `+unneeded+`
		ORDER BY sum LIMIT $3`, []any{p.conv, notNull(p.after), int64(maxPrunedBlobs)},
		func(scan func(...any) error) error {
			var sum []byte
			var size int64
			err := scan(&sum, &size)
			sums, last = append(sums, sum), sum
			removed.Blobs, removed.Bytes = removed.Blobs+1, removed.Bytes+size
			return err
		})
	if err == nil {
		err = p.inParts(`DELETE FROM plait_blobs WHERE conv = $1 AND sum IN (…)`, sums, execute(ctx, tx))
	}
	// Fewer blobs than asked for are the last ones.
	if len(sums) < maxPrunedBlobs {
		last = nil
	}
	return last, err
}

// count counts the removals of the plan, without removing anything.
func (p *pruning) count(ctx context.Context, tx Tx) (found store.Pruned, err error) {
	if err := p.countRecords(ctx, tx, p.unreached, &found); err != nil {
		return found, err
	}

	// A blob is removed only if all of its records are removed.
	gone := map[node.ID]bool{}
	for _, id := range p.unreached {
		gone[id] = true
	}
	needed := map[string]bool{} // sums of blobs
	err = each(ctx, tx, `SELECT sum, id FROM plait_uses WHERE conv = $1`, []any{p.conv}, func(scan func(...any) error) error {
		var sum, packed []byte
		if err := scan(&sum, &packed); err != nil {
			return err
		}
		id, err := unpackID(packed)
		if !gone[id] {
			needed[string(sum)] = true
		}
		return err
	})
	if err != nil {
		return found, err
	}

	// All others are counted, also blobs that no record uses since a replacement.
	err = each(ctx, tx, `SELECT sum, LENGTH(data) FROM plait_blobs WHERE conv = $1`, []any{p.conv},
		func(scan func(...any) error) error {
			var sum []byte
			var size int64
			err := scan(&sum, &size)
			if !needed[string(sum)] {
				found.Blobs, found.Bytes = found.Blobs+1, found.Bytes+size
			}
			return err
		})
	return found, err
}

// countRecords adds the number and the size of records.
func (p *pruning) countRecords(ctx context.Context, tx Tx, ids []node.ID, found *store.Pruned) error {
	return p.inParts(`SELECT COUNT(*), COALESCE(SUM(LENGTH(line)), 0) FROM plait_nodes WHERE conv = $1 AND id IN (…)`,
		idArgs(ids), func(query string, args []any) error {
			var records, size int64
			_, err := first(ctx, tx, query, args, &records, &size)
			found.Records, found.Bytes = found.Records+int(records), found.Bytes+size
			return err
		})
}

// inParts calls f with a query for some of the values at a time. It replaces the … of the query by their parameters.
func (p *pruning) inParts(query string, values []any, f func(query string, args []any) error) error {
	for len(values) > 0 {
		n := rowsOf(len(values))
		if err := f(inQuery(query, n), append([]any{p.conv}, values[:n]...)); err != nil {
			return err
		}
		values = values[n:]
	}
	return nil
}

func execute(ctx context.Context, tx Tx) func(query string, args []any) error {
	return func(query string, args []any) error {
		_, err := tx.Exec(ctx, query, args...)
		return err
	}
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
