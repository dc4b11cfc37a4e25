// Package blockcodec gives the packages above content its codec and its check of single blocks. A node refers to
// results in other nodes, and a response arrives block by block. Package content exports only lists, because users save
// and make lists.
//
// The types come from content, and content imports this package. So each variable is an any. Package content sets them
// before any of its importers is initialized. An importer asserts the type once:
//
//	var appendBlock = blockcodec.Append.(func(dst []byte, b content.Block) []byte)
package blockcodec

var (
	// Append appends the saved form of one block to dst. It is a func(dst []byte, b content.Block) []byte.
	Append any

	// Parse reads the saved form of one block. A block of an unknown type becomes a content.Unknown. Parse does not
	// check the block's fields, as content.Of does, and does not retain saved. It is a
	// func(saved []byte) (content.Block, error).
	Parse any

	// AppendCanonical appends the form of a list used to compute digests. It differs from the saved form in two ways:
	//
	//   - JSON is in canonical form.
	//   - The ID of each tool call and tool result is replaced by the return value of ref, because a provider's IDs are
	//     not part of the content.
	//
	// The arguments of ref are whether the ID belongs to a result, the ID, and how many earlier blocks of the same kind
	// have it. It is a func(b content.Blocks, dst []byte, ref func(result bool, id string, earlier int) string) []byte.
	AppendCanonical any

	// Check returns a block in the form of the blocks in a list, or the error of content.Of for it. It is a func(b
	// content.Block) (content.Block, error).
	Check any

	// List returns a list of blocks from Check or ReadPlain. It does not check them again, and keeps the slice. It is a
	// func(checked []content.Block) content.Blocks.
	List any

	// ReadPlain reads one block in exactly the form of Append. If the reader's text has another form, or the block is
	// of a rare kind, the reader fails. In a result only the blocks of a tool result are accepted. It is a func(r
	// *plain.Reader, inResult bool) content.Block.
	ReadPlain any
)
