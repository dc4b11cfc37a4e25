package openai

import (
	"strings"

	"github.com/plait-dev/plait/api/internal/roundtrip"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
)

// The prefixes of item IDs. Compatible servers and edited conversations may have other IDs; the API refuses them.
const (
	messageIDs   = "msg"
	reasoningIDs = "rs"
	callIDs      = "fc"
	customIDs    = "ctc"
)

// withFitIDs returns b without malformed item IDs, and the reason for the change, or "" if b is unchanged. The API
// would refuse these IDs: the item's own, its message's if it is a part of one, and the reasoning's before it.
func withFitIDs(b content.Block) (content.Block, string) {
	list, note := extraOf(roundtrip.Extra(b))
	prefix := "" // none: a text's ID is its message's, in the note
	switch b.(type) {
	case content.Thinking:
		prefix = reasoningIDs
	case content.ToolUse:
		prefix = callIDs
		if kind := memberType(list); kind == customCall {
			prefix = customIDs
		} else if _, client := clientCalls[kind]; client {
			prefix = "" // each kind has its own, and a program does not make them
		}
	}

	changed := false
	if id, rest := jsonx.Take(list, "id"); prefix != "" && misfits(id, prefix) {
		list, changed = rest, true
	}

	// The reasoning loses its ID as well: "" still refers to it.
	if note.After != nil && misfits(jsonx.Quote(*note.After), reasoningIDs) {
		note.After, changed = new(string), true
	}
	item, _ := jsonx.Members(content.JSON(note.Item)) // nil if b is not a part of a message
	if id, _ := jsonx.Take(item, "id"); misfits(id, messageIDs) {
		note, changed = note.withoutID(), true
	}

	if !changed {
		return b, ""
	}
	return withNote(b, list, note), "an item's ID does not have the format of the API"
}

// withoutID returns a note about a part of a message without the message's ID.
func (n ownNote) withoutID() ownNote {
	item, _ := jsonx.Members(content.JSON(n.Item)) // it was an object in the response
	_, item = jsonx.Take(item, "id")
	n.Item = jsonx.Raw(jsonx.Object(item))
	return n
}

// withNote returns a block of this API with other further members and another note.
func withNote(b content.Block, further []jsonx.Member, note ownNote) content.Block {
	e := itemExtra(further, note)
	if e.API == "" {
		e = content.Extra{API: ResponsesAPI, JSON: "{}"}
	}
	return roundtrip.WithExtra(b, e)
}

// misfits reports whether id is a text without the prefix. The API refuses such an ID.
func misfits(id content.JSON, prefix string) bool {
	text, ok := jsonx.Text(id)
	return ok && text != "" && !strings.HasPrefix(text, prefix)
}
