// Package node holds one immutable vertex of a conversation graph: a [Node] with its [Payload], its parents in order, its id,
// its time, its metadata and its digest.
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
// A node has two names. Its [ID] says which node it is: unique, ordered by time, given when it is made. Its [Digest] says what
// it says: two nodes have the same digest exactly when their kind, their content and their parents' digests are the same. The
// rule is written down at [Node.Digest].
//
// [Redact] erases what nodes say and leaves them their names and their places; [Node.Redacted] tells it of a node.
//
// # Concurrency
//
// A Node never changes and is safe for concurrent use.
//
// # Errors
//
// [ErrPayload] marks a payload that cannot be a node, [ErrParse] a saved node that cannot be read; [FieldError] names the
// field. [ErrDigest] and [ErrRedaction] mark what [Node.Verify] finds.
package node
