package sqlstore

import (
	"context"

	"github.com/plait-dev/plait/store"
)

// PruneRuns implements store.Runs. It looks for the runs without a lock, and then locks only those.
func (d *Driver) PruneRuns(ctx context.Context, p store.PruneRunsRequest) (pruned store.PrunedRuns, err error) {
	var nums []any // the runs to remove, by plait_runs.num
	var last string
	var before int64 // the time before which they must have changed last
	err = d.readRuns(ctx, func(t *runsTx) error {
		nums = nil
		if err := t.readClock(); err != nil {
			return err
		}

		before = t.now.Add(-max(p.OlderThan, 0)).UnixNano()
		err := each(ctx, t.tx, `SELECT num, id FROM plait_runs WHERE id > $1 AND busy = 0 AND changed <= $2 ORDER BY id LIMIT $3`,
			[]any{p.After, before, int64(p.Max())}, func(scan func(...any) error) error {
				var num int64
				err := scan(&num, &last)
				nums = append(nums, num)
				return err
			})
		if err == nil && p.DryRun {
			pruned, err = t.countRuns(nums)
		}
		return err
	})

	// A run that has ended does not change any more, so the list still holds.
	if err == nil && len(nums) > 0 && !p.DryRun {
		err = d.write(ctx, func(tx Tx) (err error) {
			t := &runsTx{d: d, ctx: ctx, tx: tx}
			pruned, err = t.removeRuns(nums)
			return err
		})
	}
	if err != nil {
		return store.PrunedRuns{}, err
	}
	pruned.Last = last
	return pruned, nil
}

// countRuns counts runs with what belongs to them.
func (t *runsTx) countRuns(nums []any) (found store.PrunedRuns, err error) {
	if len(nums) == 0 {
		return found, nil
	}

	sum := func(query string, args []any, count *int) error {
		var n, size int64
		_, err := first(t.ctx, t.tx, query, args, &n, &size)
		*count, found.Bytes = *count+int(n), found.Bytes+size
		return err
	}

	// The size is that of the payloads, which pauses and calls have.
	query, args := withList(`SELECT COUNT(*), 0 FROM plait_runs WHERE `, nil, `num IN `, nums)
	if err := sum(query, args, &found.Runs); err != nil {
		return found, err
	}

	var pauses int
	query, args = withList(`SELECT COUNT(*), COALESCE(SUM(LENGTH(payload)), 0) FROM plait_pauses WHERE `, nil, `run IN `, nums)
	if err := sum(query, args, &pauses); err != nil {
		return found, err
	}
	query, args = withList(`SELECT COUNT(*), COALESCE(SUM(LENGTH(payload) + COALESCE(LENGTH(result), 0)), 0)
		FROM plait_tasks WHERE `, nil, `run IN `, nums)
	return found, sum(query, args, &found.Calls)
}

// removeRuns removes runs that have ended, and counts them. It leaves out runs that another program has removed, or is
// removing.
func (t *runsTx) removeRuns(nums []any) (removed store.PrunedRuns, err error) {
	// A run that has ended never changes again, so only its existence is checked.
	var present []any
	query, args := withList(`SELECT num FROM plait_runs WHERE busy = 0`, nil, ` AND num IN `, nums)
	err = each(t.ctx, t.tx, query+t.d.dialect.Skip, args, func(scan func(...any) error) error {
		var num int64
		err := scan(&num)
		present = append(present, num)
		return err
	})
	if err != nil || len(present) == 0 {
		return removed, err
	}

	if removed, err = t.countRuns(present); err != nil {
		return removed, err
	}
	// In this order, because of the foreign keys.
	for _, from := range []string{`plait_tasks WHERE run`, `plait_pauses WHERE run`, `plait_runs WHERE num`} {
		query, args := withList(`DELETE FROM `+from, nil, ` IN `, present)
		if _, err := t.exec(query, args...); err != nil {
			return removed, err
		}
	}
	return removed, nil
}
