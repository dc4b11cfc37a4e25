package sqlstore

import (
	"context"

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
		d.news.notify(conversation)
	}
	return nil
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
