package node_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
)

func ExampleNew() {
	var src node.Source // the system's clock, and random UUIDv7s
	system, err := node.New(src, node.System{Text: "Answer briefly."}, node.Meta{})
	if err != nil {
		fmt.Println(err)
	}
	ask, err := node.New(src, node.Message{Role: content.User, Blocks: content.Words("Why?")}, node.Meta{}, system)
	fmt.Println(ask.Kind(), ask.Depth(), ask.Parent(0) == system, err)

	_, err = node.New(src, node.Message{Role: "narrator"}, node.Meta{})
	fmt.Println(errors.Is(err, node.ErrPayload), err)
	// Output:
	// message 1 true <nil>
	// true invalid node: role: "narrator" is neither user nor assistant
}

// Two nodes that say the same after the same have the same digest, whoever said it and when.
func ExampleNode_Digest() {
	say := func(text string) *node.Node {
		n, _ := node.New(node.Source{}, node.Message{Role: content.User, Blocks: content.Words(text)}, node.Meta{})
		return n
	}
	one, other := say("Hello"), say("Hello")
	fmt.Println(one.ID() == other.ID(), one.Digest() == other.Digest())
	fmt.Println(one.Digest() == say("Goodbye").Digest())
	// Output:
	// false true
	// false
}

// A saved node is one line of JSON. A node that was read is written byte for byte as it was, also where it holds what this
// version does not know.
func ExampleParse() {
	src := node.Counting(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	n, _ := node.New(src, node.System{Text: "Answer briefly."}, node.Meta{})
	line := n.Append(nil)
	fmt.Println(string(line[:101]) + "…")

	again, err := node.Parse(line, func(node.ID) *node.Node { return nil })
	fmt.Println(again.Payload().(node.System).Text, again.Verify(), err)
	// Output:
	// {"id":"019b7ca9-8c88-7000-8000-000000000001","parents":[],"kind":"system","time":"2026-01-02T03:04:05…
	// Answer briefly. <nil> <nil>
}

func ExampleMeta() {
	meta, err := node.Meta{}.With("reviewed", true)
	fmt.Println(meta.Get("reviewed"), meta.Get("other") == "", err)
	// Output: true true <nil>
}
