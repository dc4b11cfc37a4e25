package store

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// Apply makes the checks of [Driver.Append], and returns what to store in the same transaction: the head after the
// append, and the records that are new or changed, in order.
//
// Current is the head as it is, or nil. Stored returns the record that is stored, or nil; Apply returns its errors as
// they are.
func (a AppendRequest) Apply(current *Head, stored func(node.ID) (*Record, error)) (Head, []Record, error) {
	if err := a.Check(); err != nil {
		return Head{}, nil, err
	}
	old := Head{Name: a.Head}
	if current != nil {
		old = *current
	}
	if old.Version != a.Expect {
		return Head{}, nil, &ConflictError{Conversation: a.Conversation, Head: a.Head, Expect: a.Expect, Current: old}
	}

	// A record may refer to earlier records of the same append.
	s := applied{stored: stored, batch: map[node.ID]bool{}}
	for _, r := range a.Records {
		refused, err := s.add(r, a.Replace)
		if refused != nil {
			err = &RecordError{a.Conversation, r.ID, refused}
		}
		if err != nil {
			return Head{}, nil, err
		}
	}
	for _, id := range a.Nodes {
		if have, err := s.has(id); err != nil {
			return Head{}, nil, err
		} else if !have {
			return Head{}, nil, &RecordError{a.Conversation, id, ErrNotStored}
		}
	}

	h := Head{Name: a.Head, Version: a.Expect + 1, Nodes: slices.Clone(a.Nodes), Header: old.Header}
	if a.Header != nil {
		h.Header = bytes.Clone(a.Header)
	}
	return h, s.changed, nil
}

// applied is an append in the middle of [AppendRequest.Apply].
type applied struct {
	stored func(node.ID) (*Record, error)

	batch   map[node.ID]bool // the records of the append up to now
	changed []Record
}

// add checks a record and adds it to changed, unless it is stored as it is. Refused is why it cannot be stored.
func (s *applied) add(r Record, replace bool) (refused, err error) {
	old, err := s.stored(r.ID)
	if err != nil {
		return nil, err
	}
	s.batch[r.ID] = true

	// A stored record keeps its links and its outline. Replace may change its line.
	if old != nil {
		switch outlined := old.Outline == nil && r.Outline != nil; {
		case !slices.Equal(old.Links, r.Links), old.Sum != r.Sum && !replace:
			return dag.ErrDuplicateID, nil
		case old.Sum == r.Sum && !outlined:
			return nil, nil
		case !outlined:
			r.Outline = old.Outline
		}
	}

	for _, id := range r.Links {
		if have, err := s.has(id); err != nil {
			return nil, err
		} else if !have {
			return fmt.Errorf("%w: %s", node.ErrParent, id), nil
		}
	}
	s.changed = append(s.changed, r)
	return nil, nil
}

// has reports whether a record is stored, or comes before in the append.
func (s *applied) has(id node.ID) (bool, error) {
	if s.batch[id] {
		return true, nil
	}
	r, err := s.stored(id)
	return r != nil, err
}
