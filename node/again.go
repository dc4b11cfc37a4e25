package node

import (
	"errors"
	"fmt"
)

// Again returns a copy of n with other parents: with n's payload and metadata, a new ID and a new time. Use it after a
// node before n was replaced.
//
// Unlike [New] it accepts a payload of an unknown kind. Other fields of a newer version are not copied. The copy of a
// redacted node has the remaining content, and is not redacted. An error has ErrPayload in its chain.
func (n *Node) Again(src Source, parents ...*Node) (*Node, error) {
	// The payload was checked when n was made.
	again := newNode()
	again.payload = n.Payload()
	again.setMeta(n.Meta())
	if err := errors.Join(src.stamp(again), again.adopt(parents)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPayload, err)
	}
	return again, nil
}
