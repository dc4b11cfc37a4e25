package node

import (
	"errors"
	"fmt"
)

// Again returns a node that says what n says after other parents: with n's payload and metadata, a new id and a new time. It is for
// whoever replaces a node before n. Unlike [New] it takes a payload of a kind that this version does not know, as it was read; other
// fields that a newer version wrote do not come along. Of a redacted node it repeats what is left, and the digest is of that. An error
// has ErrPayload in its chain.
func (n *Node) Again(src Source, parents ...*Node) (*Node, error) {
	again := &Node{id: src.ID(), payload: n.payload, time: src.Time(), meta: n.meta}
	if err := errors.Join(checkTime(again.time), again.adopt(parents)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPayload, err)
	}
	return again, nil
}
