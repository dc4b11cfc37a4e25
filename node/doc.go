// Package node holds one immutable vertex of a conversation graph: a [Node] with its [Payload], its parents in order,
// its ID, its time and its metadata.
//
// The smallest whole program:
//
//	hello, err := node.New(node.Source{}, node.System{Text: "Answer briefly."}, node.Meta{})
//	ask, err := node.New(node.Source{}, node.Message{Role: content.User, Blocks: content.Words("Why?")}, node.Meta{}, hello)
//	fmt.Println(ask.Kind(), ask.Parents()[0] == hello)
//
// Most programs never call New: package dag builds conversations and package executor runs them.
//
// # Identity
//
// The [ID] of a node is its only name. It is unique, ordered by time, and assigned when the node is made.
//
// [Node.Digest] compares content in memory: two nodes have the same digest exactly if their kind, their content and
// their parents' digests are the same. A saved node has no digest, because who has one can find erased content by
// guessing. It has a checksum of its line, for [Node.Verify].
//
// [Redact] erases the content of nodes; their IDs and positions are kept. [Node.Redacted] reports it.
//
// # Concurrency
//
// A Node never changes and is safe for concurrent use.
//
// # Errors
//
// [ErrPayload] marks an invalid payload or parent. [ErrParse] marks a saved node that cannot be read; a [FieldError]
// names the field. [ErrSum], [ErrNoSum] and [ErrRedaction] are errors of [Node.Verify].
package node
