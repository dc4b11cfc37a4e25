package sqlstore

import (
	"context"
	"errors"

	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// errDryRun undoes the transaction of a dry run.
var errDryRun = errors.New("dry run")

// Prune implements store.Driver.
func (d *Driver) Prune(ctx context.Context, conversation string, dryRun bool) (store.Pruned, error) {
	if err := check(ctx, conversation); err != nil {
		return store.Pruned{}, err
	}

	var p store.Pruned
	err := d.db.Write(ctx, func(tx Tx) (err error) {
		if p, err = d.prune(ctx, tx, conversation); err == nil && dryRun {
			err = errDryRun
		}
		return err
	})
	if err == errDryRun {
		err = nil
	}
	if err != nil {
		return store.Pruned{}, err
	}
	return p, nil
}

// prune is Prune in a transaction. It locks the conversation, so that no head moves meanwhile.
func (d *Driver) prune(ctx context.Context, tx Tx, conversation string) (store.Pruned, error) {
	var p store.Pruned
	var conv int64
	found, err := first(ctx, tx, `SELECT num FROM plait_conversations WHERE name = $1`+d.dialect.Lock,
		[]any{conversation}, &conv)
	if err != nil || !found {
		return p, err
	}

	unreached, err := unreached(ctx, tx, conversation, conv)
	if err != nil {
		return p, err
	}

	// First the query that counts, then those that delete.
	for _, query := range []string{
		`SELECT COUNT(*), COALESCE(SUM(LENGTH(line)), 0) FROM plait_nodes WHERE conv = $1 AND id IN (…)`,
		`DELETE FROM plait_uses WHERE conv = $1 AND id IN (…)`,
		`DELETE FROM plait_nodes WHERE conv = $1 AND id IN (…)`,
	} {
		for rest := idArgs(unreached); len(rest) > 0; {
			n := rowsOf(len(rest))
			args := append([]any{conv}, rest[:n]...)
			rest = rest[n:]

			if query[0] != 'S' { // not the SELECT
				if _, err := tx.Exec(ctx, inQuery(query, n), args...); err != nil {
					return p, err
				}
				continue
			}

			var records, size int64
			if _, err := first(ctx, tx, inQuery(query, n), args, &records, &size); err != nil {
				return p, err
			}
			p.Records, p.Bytes = p.Records+int(records), p.Bytes+size
		}
	}
	return p, pruneBlobs(ctx, tx, conv, &p)
}

// pruneBlobs removes the blobs that no record needs, and counts them.
func pruneBlobs(ctx context.Context, tx Tx, conv int64, p *store.Pruned) error {
	const unused = ` FROM plait_blobs WHERE conv = $1 AND NOT EXISTS (
		SELECT 1 FROM plait_uses WHERE plait_uses.conv = plait_blobs.conv AND plait_uses.sum = plait_blobs.sum)`

	var blobs, size int64
	_, err := first(ctx, tx, `SELECT COUNT(*), COALESCE(SUM(LENGTH(data)), 0)`+unused, []any{conv}, &blobs, &size)
	if err != nil {
		return err
	}
	p.Blobs, p.Bytes = p.Blobs+int(blobs), p.Bytes+size

	_, err = tx.Exec(ctx, `DELETE`+unused, conv)
	return err
}

// unreached returns the records that no head reaches, the newest first.
func unreached(ctx context.Context, tx Tx, conversation string, conv int64) ([]node.ID, error) {
	// The walk is used for its set of wanted records alone.
	w := newWalk(conversation, nil)
	err := each(ctx, tx, `SELECT nodes FROM plait_heads WHERE conv = $1`, []any{conv}, func(scan func(...any) error) error {
		var nodes []byte
		if err := scan(&nodes); err != nil {
			return err
		}
		ids, err := unpackIDs(nodes)
		for _, id := range ids {
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
