package node

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/plait-dev/plait/internal/safetext"
)

// CallKey identifies a tool call: the message with the call, and the index of its block among the blocks of that
// message. No other call has the same key, in any conversation. The provider's own ID of a call is data: it may be
// empty, reused or used twice.
type CallKey struct {
	Message ID
	Index   int
}

// String returns the key as MESSAGE-ID/INDEX.
func (k CallKey) String() string { return k.Message.String() + "/" + strconv.Itoa(k.Index) }

// ParseCallKey parses the form returned by String.
func ParseCallKey(text string) (CallKey, error) {
	message, index, _ := strings.Cut(text, "/")
	id, err := parseID(message)
	if err == nil {
		k := CallKey{Message: id}
		if k.Index, err = strconv.Atoi(index); err == nil && k.Index >= 0 && k.String() == text {
			return k, nil
		}
	}
	return CallKey{}, fmt.Errorf("not the key of a call: %s is not a message's ID, a slash and an index", safetext.Quote(text, 80))
}

// MarshalText returns the form of String.
func (k CallKey) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText parses the form of String.
func (k *CallKey) UnmarshalText(text []byte) (err error) {
	*k, err = ParseCallKey(string(text))
	return err
}

// Call returns the key of the call that the node executes. It is false for a node that is no execution, and for an
// execution without a single parent.
func (n *Node) Call() (key CallKey, ok bool) {
	e, is := n.Payload().(ToolExecution)
	if !is || n.NumParents() != 1 {
		return CallKey{}, false
	}
	return CallKey{Message: n.Parent(0).ID(), Index: e.Index}, true
}
