package sqlstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// Head implements store.Driver.
func (d *Driver) Head(ctx context.Context, conversation, name string) (store.Head, error) {
	if err := check(ctx, conversation, name); err != nil {
		return store.Head{}, err
	}

	var h store.Head
	err := d.db.Read(ctx, func(tx Tx) (err error) {
		_, _, h, err = openHead(ctx, tx, conversation, name, "")
		return err
	})
	if err == nil && h.Version == 0 {
		err = noHead(conversation, name)
	}
	return h, err
}

// The rows of openQuery have a kind: the head, the newest records, or the IDs of the records with an outline. The first
// row of a UNION decides the types of its columns, so it is a record.
const (
	kindHead = iota
	kindRecord
	kindOutlined
)

var openQuery = fmt.Sprintf(`SELECT * FROM (%s) AS newest
	UNION ALL SELECT %d, h.version, h.nodes, h.header, NULL, NULL FROM plait_heads h
		JOIN plait_conversations c ON c.num = h.conv WHERE c.name = $1 AND h.name = $2
	UNION ALL SELECT %d, 0, id, NULL, NULL, NULL FROM plait_nodes
		WHERE conv = (SELECT num FROM plait_conversations WHERE name = $1) AND outline IS NOT NULL
	ORDER BY kind, seq DESC`, newestRecords(fmt.Sprint(kindRecord, ` AS kind, seq`)), kindHead, kindOutlined)

// Open implements store.Driver.
func (d *Driver) Open(
	ctx context.Context, conversation, name string, have []node.ID,
) (o store.Opened, err error) {
	if err := check(ctx, conversation, name); err != nil {
		return o, err
	}

	var records []store.Record
	err = d.db.Read(ctx, func(tx Tx) error {
		o, records = store.Opened{}, nil
		return each(ctx, tx, openQuery, []any{conversation, name}, func(scan func(...any) error) (err error) {
			var kind, number int64 // seq, or the version of the head
			var a, b, sum, line []byte
			if err := scan(&kind, &number, &a, &b, &sum, &line); err != nil {
				return err
			}

			switch kind {
			case kindHead:
				o.Head, err = readHead(conversation, name, number, a, b)
			case kindRecord:
				var r store.Record
				r, err = unpackRecord(a, b, sum, line)
				records = append(records, r)
			case kindOutlined:
				var id node.ID
				id, err = unpackID(a)
				o.Outlined = append(o.Outlined, id)
			}
			return err
		})
	})
	if err == nil && o.Head.Version == 0 {
		err = noHead(conversation, name)
	}
	if err != nil {
		return store.Opened{}, err
	}
	o.Records = within(conversation, records, o.Head.Nodes, have)
	return o, nil
}

// noHead is the error of a missing head.
func noHead(conversation, name string) error {
	return fmt.Errorf("store: %q: head %q: %w", conversation, name, store.ErrNotStored)
}

// Heads implements store.Driver.
func (d *Driver) Heads(ctx context.Context, conversation string, page store.Page) ([]store.Head, error) {
	if err := page.Check(); err != nil {
		return nil, err
	}
	if err := check(ctx, conversation); err != nil {
		return nil, err
	}

	return names(ctx, d.db, page, `SELECT h.name, h.version, h.nodes, h.header FROM plait_heads h
		JOIN plait_conversations c ON c.num = h.conv WHERE c.name = $1 AND h.name >= $2 ORDER BY h.name LIMIT $3`,
		[]any{conversation}, func(scan func(...any) error) (string, store.Head, error) {
			var name string
			var version int64
			var nodes, header []byte
			if err := scan(&name, &version, &nodes, &header); err != nil {
				return "", store.Head{}, err
			}
			h, err := readHead(conversation, name, version, nodes, header)
			return name, h, err
		})
}

// Conversations implements store.Driver.
func (d *Driver) Conversations(ctx context.Context, page store.Page) ([]string, error) {
	if err := page.Check(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}

	return names(ctx, d.db, page, `SELECT name FROM plait_conversations WHERE name >= $1 ORDER BY name LIMIT $2`, nil,
		func(scan func(...any) error) (name string, again string, err error) {
			err = scan(&name)
			return name, name, err
		})
}

// names returns the values of a query, one page by name. The query has two parameters after args: the first name, and
// the limit. scanned reads one row and returns its name and its value.
func names[T any](ctx context.Context, db DB, page store.Page, query string, args []any,
	scanned func(scan func(...any) error) (string, T, error)) ([]T, error) {
	// One row more than the limit, because the first may be After itself.
	limit := page.Max()
	args = append(args, max(page.Prefix, page.After), int64(limit)+1)

	var list []T
	err := db.Read(ctx, func(tx Tx) error {
		list = nil
		return each(ctx, tx, query, args, func(scan func(...any) error) error {
			name, value, err := scanned(scan)

			// Names without the prefix come after those with it, and are dropped here.
			if err == nil && name > page.After && strings.HasPrefix(name, page.Prefix) && len(list) < limit {
				list = append(list, value)
			}
			return err
		})
	})
	return list, err
}

// RemoveHead implements store.Driver.
func (d *Driver) RemoveHead(ctx context.Context, conversation, name string, version uint64) error {
	if err := check(ctx, conversation, name); err != nil {
		return err
	}

	err := d.write(ctx, func(tx Tx) error {
		// The lock keeps appends away: none may add a head or a record while the conversation is removed.
		conv, num, current, err := openHead(ctx, tx, conversation, name, d.dialect.Lock)
		if err != nil {
			return err
		}

		// A missing head has version 0. Removing it is a conflict, even with version 0.
		if current.Version == 0 || current.Version != version {
			current.Name = name
			return &store.ConflictError{Conversation: conversation, Head: name, Expect: version, Current: current}
		}
		if _, err := tx.Exec(ctx, `DELETE FROM plait_heads WHERE num = $1`, num); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM plait_inbox WHERE conv = $1 AND head = $2`, conv, name); err != nil {
			return err
		}
		if err := endRuns(ctx, tx, d.dialect, conversation, name, "the head was removed"); err != nil {
			return err
		}

		// A conversation without a head does not exist.
		more, err := first(ctx, tx, `SELECT num FROM plait_heads WHERE conv = $1 LIMIT 1`, []any{conv}, &num)
		if err != nil || more {
			return err
		}
		return remove(ctx, tx, conv)
	})
	if err == nil {
		d.news.Ring(conversation)
	}
	return err
}

// Delete implements store.Driver.
func (d *Driver) Delete(ctx context.Context, conversation string) error {
	if err := check(ctx, conversation); err != nil {
		return err
	}

	err := d.write(ctx, func(tx Tx) error {
		// The lock keeps appends away, as in RemoveHead.
		var conv int64
		found, err := first(ctx, tx, `SELECT num FROM plait_conversations WHERE name = $1`+d.dialect.Lock,
			[]any{conversation}, &conv)
		if err != nil || !found {
			return err
		}
		if err := endRuns(ctx, tx, d.dialect, conversation, "", "the conversation was deleted"); err != nil {
			return err
		}
		return remove(ctx, tx, conv)
	})
	if err == nil {
		d.news.Ring(conversation)
	}
	return err
}

// endRuns ends the unfinished run of a head, or with head "" those of all heads: nothing is asked for a removed head.
func endRuns(ctx context.Context, tx Tx, dialect Dialect, conversation, head, reason string) error {
	query := `UPDATE plait_index SET state = 'cancelled', busy = 0, job = 0, reason = $1, changed = ` + dialect.Now + `
		WHERE conversation = $2 AND busy = 1`
	args := []any{reason, conversation}
	if head != "" {
		query, args = query+` AND head = $3`, append(args, head)
	}
	_, err := tx.Exec(ctx, query, args...)
	return err
}

// remove removes a conversation with all rows of all tables for it. The conversation must be locked.
func remove(ctx context.Context, tx Tx, conv int64) error {
	// In this order, because of the foreign keys.
	for _, statement := range []string{
		`DELETE FROM plait_heads WHERE conv = $1`,
		`DELETE FROM plait_nodes WHERE conv = $1`,
		`DELETE FROM plait_conversations WHERE num = $1`,
	} {
		if _, err := tx.Exec(ctx, statement, conv); err != nil {
			return err
		}
	}
	return nil
}
