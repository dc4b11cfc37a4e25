package sqlstore

import (
	"cmp"
	"context"
	"io/fs"
	"iter"
	"slices"
	"time"

	"github.com/plait-dev/plait/store"
)

// Watch implements store.Driver. It yields changes of this program at once, and those of other programs at the next
// poll.
func (d *Driver) Watch(ctx context.Context, conversation string) iter.Seq2[store.Head, error] {
	return func(yield func(store.Head, error) bool) {
		more := true // false after a break: then yield must not be called again
		err := d.watch(ctx, conversation, func(h store.Head) bool {
			more = yield(h, nil)
			return more
		})
		if more {
			yield(store.Head{}, err)
		}
	}
}

func (d *Driver) watch(ctx context.Context, conversation string, yield func(store.Head) bool) error {
	if err := check(ctx, conversation); err != nil {
		return err
	}

	// Listen before the first look: no change can be missed between them.
	wake, stop := d.news.Listen(conversation)
	defer stop()
	poll := time.NewTicker(d.poll)
	defer poll.Stop()

	seen := map[string]sight{}
	for {
		moved, err := d.movedSince(ctx, conversation, seen)
		if err != nil {
			return err
		}
		for _, h := range moved {
			if !yield(h) {
				return nil
			}
		}

		// A wake-up comes only from this program. The moves of other programs are found at the next poll.
		select {
		case <-wake:
		case <-poll.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-d.db.Done():
			return fs.ErrClosed
		}
	}
}

// sight identifies a head as it was yielded last. num differs if the head was removed and made again.
type sight struct{ num, version int64 }

// movedSince returns the heads that differ from seen, sorted by name, and updates seen. A head comes twice if it was
// removed and made again.
func (d *Driver) movedSince(ctx context.Context, conversation string, seen map[string]sight) ([]store.Head, error) {
	var moved []store.Head
	now := map[string]sight{}
	err := d.db.Snapshot(ctx, func(tx Tx) error {
		moved = nil // the transaction may be run again
		clear(now)

		err := each(ctx, tx, `SELECT h.name, h.num, h.version FROM plait_heads h
			JOIN plait_conversations c ON c.num = h.conv WHERE c.name = $1`, []any{conversation},
			func(scan func(...any) error) error {
				var name string
				var s sight
				err := scan(&name, &s.num, &s.version)
				now[name] = s
				return err
			})
		if err != nil {
			return err
		}

		// First, removed heads. A head of the same name may exist again.
		for name, s := range seen {
			if now[name].num != s.num {
				moved = append(moved, store.Head{Name: name})
			}
		}

		// Then new and moved heads.
		for name, s := range now {
			if s == seen[name] {
				continue
			}
			_, _, h, err := openHead(ctx, tx, conversation, name, "")
			if err != nil {
				return err
			}
			moved = append(moved, h)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}

	// Only now: a transaction may fail or run again, and seen must not change before its success.
	clear(seen)
	for name, s := range now {
		seen[name] = s
	}
	slices.SortFunc(moved, func(a, b store.Head) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	})
	return moved, nil
}
