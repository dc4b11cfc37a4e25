package roundtrip

import "github.com/plait-dev/plait/content"

// Extra returns the Extra of a block. It is zero for a block that cannot have one.
func Extra(b content.Block) content.Extra {
	switch b := b.(type) {
	case content.Text:
		return b.Extra
	case content.Image:
		return b.Extra
	case content.Document:
		return b.Extra
	case content.Thinking:
		return b.Extra
	case content.ToolUse:
		return b.Extra
	case content.ToolResult:
		return b.Extra
	}
	return content.Extra{}
}

// WithExtra returns a block with another Extra. A block that cannot have one is returned as it is.
func WithExtra(b content.Block, e content.Extra) content.Block {
	switch b := b.(type) {
	case content.Text:
		b.Extra = e
		return b
	case content.Image:
		b.Extra = e
		return b
	case content.Document:
		b.Extra = e
		return b
	case content.Thinking:
		b.Extra = e
		return b
	case content.ToolUse:
		b.Extra = e
		return b
	case content.ToolResult:
		b.Extra = e
		return b
	}
	return b
}
