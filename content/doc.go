// Package content holds what is said in a conversation: blocks of text, images, documents, thinking, tool calls and tool
// results, and the few words that every other package shares (roles, stop reasons, usage, tool definitions).
//
// The smallest whole program:
//
//	said, err := content.Of(content.Text{Text: "What is in this picture?"}, content.Image{Source: content.Source{URL: url}})
//	if err != nil {
//		return err // says which block and why
//	}
//	fmt.Println(said.Len(), said.Text())
//
// # Blocks are values
//
// A [Block] is one of the variants listed there. Each is a plain struct of strings, so that it can be compared, copied and
// shared, and nobody who holds one can change another's. A list of blocks is a [Blocks]: checked once, when it is made by
// [Of], and unchangeable from then on.
//
// JSON inside a block (a tool call's arguments, a provider's own fields) is a [JSON]: the text itself, exactly as it was
// written. It is never decoded and encoded again on its way back to a model, because prompt caches and signatures depend on
// its bytes.
//
// # Concurrency
//
// Everything here is immutable and safe for concurrent use.
//
// # Errors
//
// [ErrBlock] marks a block that cannot be part of a conversation; [BlockError] says which and why. [ErrJSON] marks text that
// is not JSON. Text is never refused: bytes that are not UTF-8 are replaced by U+FFFD when a list is made, so that what is in
// memory is what a file will hold.
package content
