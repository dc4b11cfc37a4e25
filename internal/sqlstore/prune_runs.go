package sqlstore

import (
	"context"

	"github.com/plait-dev/plait/store"
)

// PruneRuns implements store.Runs. It looks for the runs without a lock, and then locks only those.
func (d *Driver) PruneRuns(ctx context.Context, p store.PruneRunsRequest) (pruned store.PrunedRuns, err error) {
	var nums []any // the runs to remove, by plait_runs.num
	var last string
	var before int64 // the limit for the time of the last change
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

	// An ended run does not change any more, so the list is still right.
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

// countRuns counts runs with their pauses and calls.
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

	// The size is the total of the payloads of pauses and calls.
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

// removeRuns removes ended runs, and counts them. It leaves out a run if another program has removed it, or is removing
// it.
func (t *runsTx) removeRuns(nums []any) (removed store.PrunedRuns, err error) {
	// An ended run never changes again, so only its existence is checked.
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
