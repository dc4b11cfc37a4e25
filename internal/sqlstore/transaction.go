package sqlstore

import (
	"context"
	"errors"

	"github.com/plait-dev/plait/store"
)

// Update implements store.Transactor.
func (d *Driver) Update(ctx context.Context, f func(tx store.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}

	var moved []string
	err := d.write(ctx, func(tx Tx) error {
		t := &transaction{Tx: tx, driver: d}
		err := f(t)

		// The whole transaction is run again, whatever f made of the error.
		if t.again {
			return errAgain
		}
		moved = t.moved
		return err
	})
	if err != nil {
		return err
	}

	for _, conversation := range moved {
		d.news.Ring(conversation)
	}
	return nil
}

// GuardedAppender is a DB with a faster path for AppendIf.
type GuardedAppender interface {
	// AppendGuarded is OnceAppender.AppendOnce, and it also does nothing if the query has no row. The IDs in known may
	// be those of any stored records.
	AppendGuarded(ctx context.Context, a store.AppendRequest, known []byte, records [4][][]byte, to []byte,
		query string, args []any) (header []byte, done bool, err error)
}

// AppendIf implements store.Transactor.
func (d *Driver) AppendIf(
	ctx context.Context, a store.AppendRequest, query string, args ...any,
) (h store.Head, holds bool, err error) {
	if err := a.Check(); err != nil {
		return store.Head{}, false, err
	}

	// One statement if possible. Otherwise a transaction finds out why not.
	if guarded, ok := d.db.(GuardedAppender); ok {
		if known, usual := continues(a); usual {
			header, done, err := guarded.AppendGuarded(ctx, sealedHeader(a), known, columnsOf(a), headColumn(a), query, args)
			if err != nil {
				return store.Head{}, false, err
			}
			if done {
				d.news.Ring(a.Conversation)
				h, err := moved(a, header)
				return h, true, err
			}

			// The usual reason is that another writer was first.
			current, err := d.Head(ctx, a.Conversation, a.Head)
			if err == nil && current.Version != a.Expect {
				return store.Head{}, true, &store.ConflictError{
					Conversation: a.Conversation, Head: a.Head, Expect: a.Expect, Current: current,
				}
			}
		}
	}

	err = d.Update(ctx, func(tx store.Tx) error {
		rows, err := tx.Query(ctx, query, args...)
		if err != nil {
			return err
		}
		holds = rows.Next()
		if err := errors.Join(rows.Err(), rows.Close()); err != nil || !holds {
			return err
		}
		h, err = tx.Append(ctx, a)
		return err
	})
	return h, holds, err
}

// View implements store.Transactor.
func (d *Driver) View(ctx context.Context, f func(tx store.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return d.db.Read(ctx, func(tx Tx) error { return f(&transaction{Tx: tx, driver: d}) })
}

// transaction is a store.Tx.
type transaction struct {
	Tx
	driver *Driver
	moved  []string // the conversations with a moved head
	again  bool     // an append has met a change that requires another run of the transaction
}

// Append implements store.Tx.
func (t *transaction) Append(ctx context.Context, a store.AppendRequest) (store.Head, error) {
	if err := a.Check(); err != nil {
		return store.Head{}, err
	}

	h, err := t.driver.append(ctx, t.Tx, a)
	if err == errAgain {
		t.again = true
	}
	if err != nil {
		return store.Head{}, err
	}
	t.moved = append(t.moved, a.Conversation)
	return h, nil
}

// Head implements store.Tx.
func (t *transaction) Head(ctx context.Context, conversation, name string) (store.Head, error) {
	if err := check(ctx, conversation, name); err != nil {
		return store.Head{}, err
	}
	_, _, h, err := openHead(ctx, t.Tx, conversation, name, "")
	if err == nil && h.Version == 0 {
		err = noHead(conversation, name)
	}
	return h, err
}

// Now implements store.Tx.
func (t *transaction) Now() string { return t.driver.dialect.Now }
