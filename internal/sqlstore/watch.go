package sqlstore

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"sync"
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
look:
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

		// The moves of this program ring the bell. Those of other programs are found by whichever watcher polls next, for
		// all.
		for {
			select {
			case <-wake:
				continue look
			case <-poll.C:
				if err := d.pollMoves(ctx); err != nil {
					return err
				}
			case <-ctx.Done():
				return ctx.Err()
			case <-d.db.Done():
				return fs.ErrClosed
			}
		}
	}
}

// polls are the looks of all watchers for heads moved by other programs: one in each interval, for every watched
// conversation.
type polls struct {
	mu   sync.Mutex // guards the fields below
	last time.Time
	seen map[string]string // the heads of each watched conversation at the last look, as headsOf describes them
}

// pollMoves rings the bells of the watched conversations that have changed, unless another watcher has just done so.
func (d *Driver) pollMoves(ctx context.Context) error {
	p := &d.polls
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.last) < d.poll*7/8 { // tickers are not exact
		return nil
	}

	names := d.news.Names()
	heads, err := d.headsOf(ctx, names)
	if err != nil {
		return err
	}
	now := map[string]string{}
	for _, name := range names {
		now[name] = heads[name] // "" for a missing conversation
		if before, known := p.seen[name]; !known || before != now[name] {
			d.news.Ring(name)
		}
	}
	p.seen, p.last = now, time.Now()
	return nil
}

// headsOf describes the heads of conversations: two descriptions differ if a head has moved, or was removed or made.
func (d *Driver) headsOf(ctx context.Context, names []string) (map[string]string, error) {
	const most = 512
	heads := map[string]string{}
	for part := range slices.Chunk(names, most) {
		// Few lengths, so that there are few statements: the last name is there several times.
		args, list := []any{}, []string{}
		for n := 1; len(args) < len(part); n *= 2 {
			for len(args) < n {
				args = append(args, part[min(len(args), len(part)-1)])
				list = append(list, fmt.Sprint("$", len(args)))
			}
		}

		err := d.db.Read(ctx, func(tx Tx) error {
			for _, name := range part {
				delete(heads, name) // the transaction may be run again
			}
			return each(ctx, tx, `SELECT c.name, h.num, h.version FROM plait_conversations c
				JOIN plait_heads h ON h.conv = c.num WHERE c.name IN (`+strings.Join(list, ", ")+`) ORDER BY h.num`, args,
				func(scan func(...any) error) error {
					var name string
					var s sight
					err := scan(&name, &s.num, &s.version)
					heads[name] += fmt.Sprintln(s.num, s.version)
					return err
				})
		})
		if err != nil {
			return nil, err
		}
	}
	return heads, nil
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
