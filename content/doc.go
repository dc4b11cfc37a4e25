// Package content defines the content of a conversation: blocks of text, images, documents, thinking, tool calls and
// tool results. It also defines the terms shared by all other packages: roles, stop reasons, usage and tool
// definitions.
//
// The smallest whole program:
//
//	picture := content.Image{Source: content.Source{URL: url}}
//	blocks, err := content.Of(content.Text{Text: "What is in this picture?"}, picture)
//	if err != nil {
//		return err // content.ErrBlock, with the block's index and the reason
//	}
//	fmt.Println(blocks.Len(), blocks.Text())
//
// # Blocks are values
//
// A [Block] is one of the variants listed there. Each is a plain struct of strings: it can be compared, copied and
// shared, and a holder of one cannot change another's copy. A list of blocks is a [Blocks]. [Of] makes the list and
// checks it once; the list cannot change afterwards.
//
// JSON inside a block (a tool call's arguments, a provider's own fields) is a [JSON]: the text itself, exactly as it
// was written. It is never decoded and encoded again on its way back to a model, because prompt caches and signatures
// depend on its bytes.
//
// # Concurrency
//
// Everything in this package is immutable and safe for concurrent use.
//
// # Errors
//
// [ErrBlock] marks a block that cannot be part of a conversation; the text has its index and the reason.
// [ErrJSON] marks text that is not JSON. Text is never rejected: bytes that are not UTF-8 are replaced by U+FFFD when a
// list is made, so that the list in memory equals the list in a saved file.
package content
