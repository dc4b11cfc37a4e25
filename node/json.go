package node

import (
	"fmt"

	json "github.com/goccy/go-json/v2"
)

// MarshalJSON returns the saved form, as [Node.Append] does: the node names its parents by their IDs. JSON inside it,
// such as arguments, is without spaces and with the fewest escapes: an encoder that removed them would make the checksum
// wrong. The error for the zero value is ErrPayload.
func (n *Node) MarshalJSON() ([]byte, error) {
	if n.Payload() == nil {
		return nil, fmt.Errorf("%w: it has no payload", ErrPayload)
	}
	return n.appendPortable(nil), nil
}

// UnmarshalJSON always returns an error, ErrParse: a node is read with the nodes that it refers to, by [Parse]. A
// conversation, dag.DAG, reads all of its nodes.
func (n *Node) UnmarshalJSON([]byte) error {
	return fmt.Errorf("%w: use Parse, which gets the nodes that it refers to", ErrParse)
}

// MarshalJSON returns the items as an array.
func (l List[T]) MarshalJSON() ([]byte, error) {
	if l.Len() == 0 {
		return []byte("[]"), nil
	}
	return json.Marshal(l.shared())
}

// UnmarshalJSON reads an array of items.
func (l *List[T]) UnmarshalJSON(data []byte) error {
	var items []T
	err := json.Unmarshal(data, &items)
	if err == nil {
		*l = ListOf(items...)
	}
	return err
}

// MarshalJSON returns the body as it was read.
func (u Unknown) MarshalJSON() ([]byte, error) { return u.body.MarshalJSON() }
