package openai

import (
	"strings"

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
// would refuse these IDs.
func withFitIDs(b content.Block) (content.Block, string) {
	var fit content.Block
	changed := false
	switch said := b.(type) {
	case content.Text:
		// A text has no item ID of its own: its message's is in the ownNote.
		said.Extra.JSON, changed = fitIDs(said.Extra, "")
		fit = said
	case content.Thinking:
		said.Extra.JSON, changed = fitIDs(said.Extra, reasoningIDs)
		fit = said
	case content.ToolUse:
		prefix := callIDs
		list, _ := extraOf(said.Extra)
		if _, client := clientCalls[memberType(list)]; client {
			prefix = "" // each kind has its own, and a program does not make them
		} else if memberType(list) == customCall {
			prefix = customIDs
		}
		said.Extra.JSON, changed = fitIDs(said.Extra, prefix)
		fit = said
	}

	if !changed {
		return b, ""
	}
	return fit, "an item's ID does not have the format of the API"
}

// fitIDs returns the content of an Extra without malformed IDs, and reports whether it changed. The IDs are the item's
// own (unless prefix is ""), its message's if it is a part of one, and the reasoning's before it.
func fitIDs(e content.Extra, prefix string) (content.JSON, bool) {
	list, err := jsonx.Members(e.For(ResponsesAPI))
	if err != nil {
		return e.JSON, false // an Extra without members has no IDs
	}

	changed := false
	if id, rest := jsonx.Take(list, "id"); prefix != "" && misfits(id, prefix) {
		list, changed = rest, true
	}

	for i, m := range list {
		if m.Name == own {
			list[i].Value = fitNote(m.Value)
			changed = changed || list[i].Value != m.Value
		}
	}

	if !changed {
		return e.JSON, false
	}
	return jsonx.Object(list), true
}

// fitNote is fitIDs for an ownNote.
func fitNote(note content.JSON) content.JSON {
	list, err := jsonx.Members(note)
	if err != nil {
		return note
	}

	changed := false
	for i, m := range list {
		switch m.Name {
		case "after":
			// The reasoning loses its ID as well: "" still refers to it.
			if misfits(m.Value, reasoningIDs) {
				list[i].Value, changed = `""`, true
			}
		case "item":
			item, _ := jsonx.Members(m.Value)
			if id, rest := jsonx.Take(item, "id"); misfits(id, messageIDs) {
				list[i].Value, changed = jsonx.Object(rest), true
			}
		}
	}

	if !changed {
		return note
	}
	return jsonx.Object(list)
}

// misfits reports whether id is a text without the prefix. The API refuses such an ID.
func misfits(id content.JSON, prefix string) bool {
	text, ok := jsonx.Text(id)
	return ok && text != "" && !strings.HasPrefix(text, prefix)
}
