package store

import (
	"context"
	"errors"
	"iter"
)

// Main is the name of the head opened by [Store.Conversation].
const Main = "main"

// Store keeps conversations with a driver: in a database, or in memory. Several programs may use one database. A Store
// is safe for concurrent use.
type Store struct{ driver Driver }

// New returns a store on a driver. The program closes the driver's database, not the store.
func New(driver Driver) *Store { return &Store{driver} }

// Conversation opens the conversation with this key at head "main". A new conversation is empty, and stored by its
// first append. Errors:
//
//   - ErrName for a key rejected by [CheckName];
//   - *RecordError for a damaged record;
//   - errors of the driver.
func (s *Store) Conversation(ctx context.Context, key string) (*Conversation, error) {
	c, err := s.Head(ctx, key, Main)
	if errors.Is(err, errNoHead) {
		return s.at(key, Main, &nodes{}), nil
	}
	return c, err
}

// Head opens a conversation at the head with this name. If there is no such head, the error holds ErrNotStored. Its
// other errors are the same as for [Store.Conversation].
func (s *Store) Head(ctx context.Context, key, name string) (*Conversation, error) {
	c := s.at(key, name, &nodes{})
	if err := c.open(ctx, nil, true); err != nil {
		return nil, err
	}
	return c, nil
}

// at returns a conversation at a head, with nothing read yet.
func (s *Store) at(key, name string, n *nodes) *Conversation {
	return &Conversation{store: s, key: key, name: name, nodes: n, head: Head{Name: name}}
}

// Conversations yields all keys of conversations with this prefix, sorted. It reads them in pages, so it may miss a
// conversation made or deleted meanwhile. An error ends the sequence.
func (s *Store) Conversations(ctx context.Context, prefix string) iter.Seq2[string, error] {
	list := func(p Page) ([]string, error) { return s.driver.Conversations(ctx, p) }
	return paged(prefix, list, func(key string) string { return key })
}

// Heads yields the heads of a conversation with this prefix in their names, sorted by name. Like [Store.Conversations],
// it reads pages, and an error ends the sequence.
func (s *Store) Heads(ctx context.Context, key, prefix string) iter.Seq2[Head, error] {
	list := func(p Page) ([]Head, error) {
		if err := CheckName(key); err != nil {
			return nil, err
		}
		return s.driver.Heads(ctx, key, p)
	}
	return paged(prefix, list, func(h Head) string { return h.Name })
}

// paged yields the items of list, page by page. name returns the name of an item.
func paged[T any](prefix string, list func(Page) ([]T, error), name func(T) string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		page := Page{Prefix: prefix}
		for {
			var part []T
			err := page.Check()
			if err == nil {
				part, err = list(page)
			}
			if err != nil {
				var none T
				yield(none, err)
				return
			}

			for _, item := range part {
				if !yield(item, nil) {
					return
				}
			}
			if len(part) < page.Max() {
				return // the last page
			}
			// The next page begins after the last name. An offset would shift if an earlier item was added or removed.
			page.After = name(part[len(part)-1])
		}
	}
}

// Delete removes a conversation with all its heads. It does nothing if there is none. If a run appends to the
// conversation afterwards, it gets a *ConflictError, and its new nodes are not kept.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := CheckName(key); err != nil {
		return err
	}
	return s.driver.Delete(ctx, key)
}

// Prune removes the unreachable nodes of a conversation, such as the nodes of a removed head. A node is reachable from
// a head or a ref. Prune returns how much it removed. With dryRun it removes nothing, and returns how much it would
// remove. For a driver without Prune the error is errors.ErrUnsupported.
func (s *Store) Prune(ctx context.Context, key string, dryRun bool) (Pruned, error) {
	if err := CheckName(key); err != nil {
		return Pruned{}, err
	}
	return s.driver.Prune(ctx, key, dryRun)
}
