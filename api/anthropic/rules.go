package anthropic

import (
	"strings"
	"sync"

	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/pattern"
)

var (
	target = sync.OnceValue(func() dialect.Target {
		t, _ := dialect.TargetOf(API)
		return t
	})
	serverIDPattern = pattern.Of(`^srvtoolu_[a-zA-Z0-9_]+$`)
)

// rules returns the rules of the API, or of a compatible server, for conversations.
func rules(kind variant) dialect.Rules {
	accepter := accepter{target: kind.files.In(target()), plain: kind.plain}
	accepter.target.UnsignedThinking = kind.unsigned

	// Calls come last, because newer models refuse text after a call.
	return dialect.Rules{
		Accept:    accepter.accept,
		ID:        accepter.target.FitsID,
		CallsLast: true,
		EndsOpen: func(m content.Message) bool {
			// A paused call of a server tool can be continued, a text only with Prefill.
			last := m.Blocks.At(m.Blocks.Len() - 1)
			switch b := last.(type) {
			case content.Opaque:
				return resumable(b) || opaqueKind(b) == "compaction" // paused after it
			case content.Text:
				return kind.prefill
			}
			return false
		},
		Prune:  prune,
		ItemID: itemID,
		Waits:  waits,
	}
}

// resumable reports whether a response with b at its end was paused there and can be continued.
func resumable(b content.Opaque) bool {
	call, ok := serverCallOf(b)
	return ok && call.whole
}

// accepter implements dialect.Rules.Accept for this API.
type accepter struct {
	target dialect.Target
	plain  bool // see variant
}

// accept is the table of the API's rules for each kind of block. If a row does not return, the rules for switching
// providers decide.
func (a accepter) accept(role content.Role, block content.Block, nested bool) (content.Block, string) {
	switch b := block.(type) {
	case content.Text, content.Image, content.Document, content.ToolUse:
	case content.Thinking:
		if b.Stale {
			return nil, "thinking that belongs to an earlier transcript, which has changed"
		}
	case content.ToolResult:
		if fit, why := acceptToolResult(b); why != "" {
			return fit, why
		}
	case content.Opaque:
		if b.API == API {
			return a.opaque(role, b, nested)
		}
	case content.CutToolUse, content.Unknown: // never sent
	}
	return a.target.Accept(role, block, nested)
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// acceptToolResult changes results the API would refuse: results of white space, and error results with other blocks
// than text. The latter lose the error mark and begin with a text about the failure.
func acceptToolResult(b content.ToolResult) (content.ToolResult, string) {
	// A result without content is silent, too.
	silent, mixed := true, false
	for _, inner := range b.Content.All() {
		text, isText := inner.(content.Text)
		silent = silent && isText && blank(text.Text)
		mixed = mixed || !isText
	}

	switch {
	case silent && b.IsError:
		b.Content = content.Words("The tool failed.")
		return b, "an error result without text"
	case silent && b.Content.Len() > 0:
		b.Content = content.Blocks{}
		return b, "a result of white space"
	case mixed && b.IsError:
		b.Content, _ = content.Of(append([]content.Block{content.Text{Text: "The tool failed:"}},
			b.Content.Slice()...)...)
		b.IsError = false
		return b, "an error result with more than text is not marked as an error"
	}
	return b, ""
}

func quoted(s string) string { return `"` + s + `"` }

// opaqueKind returns the type of an opaque block.
func opaqueKind(b content.Opaque) string {
	var tag struct {
		Type string `json:"type"`
	}
	_ = b.JSON.Decode(&tag) // any other type than a string is ""
	return tag.Type
}

// isSystem reports whether a block is a system message between the others.
func isSystem(b content.Opaque) bool {
	var message struct {
		Role    string    `json:"role"`
		Content jsonx.Raw `json:"content"`
	}
	return b.API == API && b.JSON.Decode(&message) == nil && message.Role == system && message.Content != nil
}

// opaque accepts the API's own blocks in the positions allowed by the API. A block known to Plait is decoded, and
// treated as such.
func (a accepter) opaque(role content.Role, b content.Opaque, nested bool) (content.Block, string) {
	kind := opaqueKind(b)
	if isSystem(b) {
		if role != content.User || nested || a.plain {
			return a.target.Accept(role, content.Opaque{API: "none", JSON: b.JSON}, nested)
		}
		return b, ""
	}

	// A block of a known type must keep the rules for the type.
	switch decoded, err := decodeBlock(b.JSON); decoded.(type) {
	case content.Opaque:
	case content.Text, content.Image, content.Document, content.Thinking:
		if t, ok := decoded.(content.Text); ok && t.Text == "" {
			return nil, "an empty text block"
		}
		if _, ok := decoded.(content.Thinking); ok && (nested || role == content.User) {
			return nil, "thinking in a user message"
		}
		accepted, why := a.accept(role, decoded, nested)
		if why == "" {
			why = "an opaque " + kind + " is sent as a block that Plait knows"
		}
		return accepted, why
	default:
		if err != nil {
			return nil, "a block that is not JSON"
		}
		return nil, "an opaque " + kind
	}

	if !mayStand(kind, role, nested) || kind == "document" && !inline(b) {
		return nil, "a block of type " + quoted(kind) + " is not allowed here"
	}
	if a.plain {
		return a.target.Accept(role, content.Opaque{API: "none", JSON: b.JSON}, nested)
	}
	return b, ""
}

// mayStand reports whether the API allows a block of a type without a model in Plait, for a role or inside a tool
// result.
func mayStand(kind string, role content.Role, nested bool) bool {
	switch kind {
	case "", "text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image":
		return false
	case "document", "search_result":
		return role == content.User
	case "tool_reference":
		return nested
	case "container_upload": // also in a response (ContainerUploadBlock of the SDK, and its ToParam)
		return !nested
	}
	return role == content.Assistant && !nested
}

// inline reports whether a document has a source of blocks. Plait models all other sources.
func inline(b content.Opaque) bool {
	var document struct {
		Source struct {
			Type    string    `json:"type"`
			Content jsonx.Raw `json:"content"`
		} `json:"source"`
	}
	return b.JSON.Decode(&document) == nil && document.Source.Type == "content" && document.Source.Content != nil
}
