package store

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/plait-dev/plait/internal/bell"
	"github.com/plait-dev/plait/node"
)

// Memory returns a driver that keeps conversations in memory. They are lost when the program ends.
func Memory() Driver {
	return &memory{conversations: map[string]*shelf{}}
}

// memory is the driver in memory.
type memory struct {
	news bell.Bells // by key

	mu            sync.RWMutex      // guards the fields below and everything in the shelves
	conversations map[string]*shelf // by key; each has a head
}

// shelf is one conversation. The slices in it are never changed, and are copied before they leave the driver.
type shelf struct {
	heads   map[string]Head
	records map[node.ID]stored
	next    int // the index of the next record
}

// stored is a record and its index in the order of storing. A record has a higher index than all its links.
type stored struct {
	Record
	index int
}

func (m *memory) Append(ctx context.Context, a AppendRequest) (Head, error) {
	if err := ctx.Err(); err != nil {
		return Head{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()

	// A new conversation is entered into m.conversations after the checks: a refused append must not make one.
	s := m.conversations[a.Conversation]
	if s == nil {
		s = &shelf{heads: map[string]Head{}, records: map[node.ID]stored{}}
	}
	h, changed, err := a.Apply(s.head(a.Head), s.record)
	if err != nil {
		return Head{}, err
	}

	s.add(changed)
	s.heads[a.Head] = h
	m.conversations[a.Conversation] = s
	m.news.Ring(a.Conversation)
	return h.clone(), nil
}

// record returns a stored record, or nil.
func (s *shelf) record(id node.ID) (*Record, error) {
	if r, have := s.records[id]; have {
		return &r.Record, nil
	}
	return nil, nil
}

// head returns a copy of a head, or nil.
func (s *shelf) head(name string) *Head {
	if h, have := s.heads[name]; have {
		h = h.clone()
		return &h
	}
	return nil
}

// add stores checked records.
func (s *shelf) add(records []Record) {
	for _, r := range records {
		index := s.next
		if old, have := s.records[r.ID]; have {
			index = old.index // changed: the index stays below those of its children
		} else {
			s.next++
		}
		s.records[r.ID] = stored{r.clone(), index}
	}
}

func (m *memory) Head(ctx context.Context, conversation, name string) (Head, error) {
	if err := ctx.Err(); err != nil {
		return Head{}, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()

	if s := m.conversations[conversation]; s != nil && s.heads[name].Version > 0 {
		return s.heads[name].clone(), nil
	}
	return Head{}, fmt.Errorf("store: %s: head %s: %w", quoted(conversation), quoted(name), ErrNotStored)
}

func (m *memory) Heads(ctx context.Context, conversation string, page Page) ([]Head, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()

	s := m.conversations[conversation]
	if s == nil {
		return nil, nil
	}
	var heads []Head
	for _, name := range page.of(maps.Keys(s.heads)) {
		heads = append(heads, s.heads[name].clone())
	}
	return heads, nil
}

func (m *memory) Conversations(ctx context.Context, page Page) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	return page.of(maps.Keys(m.conversations)), nil
}

// of returns the names of the page, sorted.
func (p Page) of(names iter.Seq[string]) []string {
	var list []string
	for name := range names {
		if strings.HasPrefix(name, p.Prefix) && name > p.After {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list[:min(len(list), p.Max())]
}

func (m *memory) Read(ctx context.Context, conversation string, from, have []node.ID) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		// The records are collected under the lock and yielded without it: a slow caller holds up nobody.
		records, err := m.reached(ctx, conversation, from, have)
		for _, r := range records {
			if err = ctx.Err(); err != nil {
				break
			}
			r := r.clone()
			r.Outline = nil
			if !yield(r, nil) {
				return
			}
		}
		if err != nil {
			yield(Record{}, err)
		}
	}
}

// reached returns the records for Read.
func (m *memory) reached(ctx context.Context, conversation string, from, have []node.ID) ([]stored, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()

	// Without the conversation, each record in from is missing.
	s := m.conversations[conversation]
	if s == nil {
		s = &shelf{}
	}

	leftOut := map[node.ID]bool{}
	for _, id := range have {
		leftOut[id] = true
	}

	records, missing := s.reach(from, leftOut)
	if missing != (node.ID{}) {
		return nil, &RecordError{conversation, missing, ErrNotStored}
	}
	return records, nil
}

// reach returns the records within reach of from, in the order of storing. It leaves out the records in seen, does not
// follow their links, and adds the others to seen. If a record is not stored, it returns the ID in missing.
func (s *shelf) reach(from []node.ID, seen map[node.ID]bool) (records []stored, missing node.ID) {
	stack := slices.Clone(from)
	for len(stack) > 0 {
		id := stack[len(stack)-1]
		stack = stack[:len(stack)-1]

		// Before the look at seen: a record in both from and have must be stored too.
		r, have := s.records[id]
		if !have {
			return nil, id
		}

		if !seen[id] {
			seen[id] = true
			records = append(records, r)
			stack = append(stack, r.Links...)
		}
	}
	// A record is stored after all its links, so the order of storing is also the order of Read.
	slices.SortFunc(records, func(a, b stored) int { return a.index - b.index })
	return records, node.ID{}
}

func (m *memory) Open(ctx context.Context, conversation, name string, _ []node.ID) (o Opened, err error) {
	if o.Head, err = m.Head(ctx, conversation, name); err != nil {
		return Opened{}, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()

	if s := m.conversations[conversation]; s != nil {
		for id, r := range s.records {
			if r.Outline != nil {
				o.Outlined = append(o.Outlined, id)
			}
		}
	}
	return o, nil
}

func (m *memory) Records(ctx context.Context, conversation string, ids []node.ID) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		records, err := m.named(ctx, conversation, ids)
		for _, r := range records {
			if !yield(r.clone(), nil) {
				return
			}
		}
		if err != nil {
			yield(Record{}, err)
		}
	}
}

// named returns the records for Records.
func (m *memory) named(ctx context.Context, conversation string, ids []node.ID) ([]stored, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()

	s := m.conversations[conversation]
	if s == nil {
		s = &shelf{}
	}
	var records []stored
	seen := map[node.ID]bool{}
	for _, id := range ids {
		r, have := s.records[id]
		if !have {
			return nil, &RecordError{conversation, id, ErrNotStored}
		}
		if !seen[id] {
			seen[id] = true
			records = append(records, r)
		}
	}
	slices.SortFunc(records, func(a, b stored) int { return a.index - b.index })
	return records, nil
}

func (m *memory) RemoveHead(ctx context.Context, conversation, name string, version uint64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()

	var current Head
	s := m.conversations[conversation]
	if s != nil {
		current = s.heads[name].clone()
	}

	// A missing head has version 0. Removing it is a conflict, even with version 0.
	if current.Version == 0 || current.Version != version {
		current.Name = name
		return &ConflictError{Conversation: conversation, Head: name, Expect: version, Current: current}
	}

	// A conversation without a head does not exist.
	delete(s.heads, name)
	if len(s.heads) == 0 {
		delete(m.conversations, conversation)
	}
	m.news.Ring(conversation)
	return nil
}

func (m *memory) Delete(ctx context.Context, conversation string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()

	delete(m.conversations, conversation)
	m.news.Ring(conversation)
	return nil
}

func (m *memory) Prune(ctx context.Context, conversation string, dryRun bool) (Pruned, error) {
	if err := ctx.Err(); err != nil {
		return Pruned{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.conversations[conversation]
	if s == nil {
		return Pruned{}, nil
	}

	// Mark all records within reach of the heads. Nothing is missing: Append refuses heads with unknown records.
	reached := map[node.ID]bool{}
	for _, h := range s.heads {
		_, _ = s.reach(h.Nodes, reached)
	}

	// Count the rest, and remove it.
	var p Pruned
	for id, r := range s.records {
		if !reached[id] {
			p.Records, p.Bytes = p.Records+1, p.Bytes+int64(len(r.Line))
			if !dryRun {
				delete(s.records, id)
			}
		}
	}
	return p, nil
}

func (m *memory) Watch(ctx context.Context, conversation string) iter.Seq2[Head, error] {
	return func(yield func(Head, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(Head{}, err)
			return
		}

		// Register before the first look at the heads: a move in between would be lost.
		wake, stop := m.news.Listen(conversation)
		defer stop()

		seen := map[string]Head{} // each head as it was yielded last
		for {
			for _, h := range m.movedSince(conversation, seen) {
				if !yield(h, nil) {
					return
				}
			}

			select {
			case <-wake:
			case <-ctx.Done():
				yield(Head{}, ctx.Err())
				return
			}
		}
	}
}

// movedSince returns all heads with a difference from seen, and updates seen.
func (m *memory) movedSince(conversation string, seen map[string]Head) []Head {
	m.mu.RLock()
	defer m.mu.RUnlock()

	s := m.conversations[conversation]
	if s == nil {
		s = &shelf{}
	}

	// Removed heads come with version 0.
	var heads []Head
	for name := range seen {
		if s.heads[name].Version == 0 {
			heads = append(heads, Head{Name: name})
			delete(seen, name)
		}
	}

	for name, h := range s.heads {
		if !h.equal(seen[name]) {
			heads = append(heads, h.clone())
			seen[name] = h
		}
	}
	slices.SortFunc(heads, func(a, b Head) int { return strings.Compare(a.Name, b.Name) })
	return heads
}

// equal compares all fields: a head may have its earlier version again after it was removed and made anew.
func (h Head) equal(o Head) bool {
	return h.Name == o.Name && h.Version == o.Version && slices.Equal(h.Nodes, o.Nodes) && bytes.Equal(h.Header, o.Header)
}

func (h Head) clone() Head {
	h.Nodes, h.Header = slices.Clone(h.Nodes), bytes.Clone(h.Header)
	return h
}

func (r Record) clone() Record {
	r.Links, r.Line, r.Outline = slices.Clone(r.Links), bytes.Clone(r.Line), bytes.Clone(r.Outline)
	return r
}
