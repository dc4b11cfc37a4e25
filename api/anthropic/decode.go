package anthropic

import (
	"strings"

	"github.com/plait-dev/plait/content"
)

// decodeBlock returns the block that the API means by raw. What Plait models is a Text, a Thinking and so on, and every member
// beyond those it models goes into Extra; anything else is an Opaque, byte for byte.
func decodeBlock(raw content.JSON) (content.Block, error) {
	list, err := members(raw)
	if err != nil {
		return nil, err
	}
	if b := known(list); b != nil {
		return b, nil
	}
	return content.Opaque{API: API, JSON: raw}, nil
}

// known returns the block that list describes, or nil where a block of ours could not hold all of it.
func known(list []member) content.Block {
	kind, rest, _ := takeText(list, "type")
	switch kind {
	case "text":
		if said, rest, ok := takeText(rest, "text"); ok {
			return content.Text{Text: said, Extra: extra(rest)}
		}
	case "thinking":
		return knownThinking(rest)
	case "redacted_thinking":
		if data, rest, ok := takeText(rest, "data"); ok && data != "" {
			return content.Thinking{Redacted: data, Extra: ours(rest)}
		}
	case "image":
		if source, rest := take(rest, "source"); source != "" {
			if s, ok := knownSource(source); ok {
				return content.Image{Source: s, Extra: extra(rest)}
			}
		}
	case "document":
		return knownDocument(rest)
	case "tool_use":
		return knownToolUse(rest)
	case "tool_result":
		return knownToolResult(rest)
	}
	return nil
}

func knownThinking(rest []member) content.Block {
	thought, rest, ok := takeText(rest, "thinking")
	if !ok {
		return nil
	}
	signature, rest, _ := takeText(rest, "signature")
	return content.Thinking{Text: thought, Signature: signature, Extra: ours(rest)}
}

func knownDocument(rest []member) content.Block {
	source, rest := take(rest, "source")
	s, ok := knownSource(source)
	if !ok {
		return nil
	}
	title, rest, _ := takeText(rest, "title")
	return content.Document{Source: s, Title: title, Extra: extra(rest)}
}

func knownToolUse(rest []member) content.Block {
	id, rest, ok := takeText(rest, "id")
	name, rest, named := takeText(rest, "name")
	if !ok || !named {
		return nil
	}
	input, rest := take(rest, "input")
	return content.ToolUse{ID: id, Name: name, Input: input, Extra: extra(rest)}
}

func knownToolResult(rest []member) content.Block {
	id, rest, ok := takeText(rest, "tool_use_id")
	if !ok {
		return nil
	}
	failed, rest := take(rest, "is_error")
	said, rest := take(rest, "content")
	blocks, ok := knownContent(said)
	if !ok {
		return nil
	}
	return content.ToolResult{CallID: id, Content: blocks, IsError: failed == "true", Extra: extra(rest)}
}

// knownContent reads content that is absent, a string, or an array of blocks.
func knownContent(j content.JSON) (content.Blocks, bool) {
	if j == "" || j == "null" {
		return content.Blocks{}, true
	}
	if said, ok := text(j); ok {
		return content.Words(said), true
	}
	var raw []rawJSON
	if err := j.Decode(&raw); err != nil {
		return content.Blocks{}, false
	}
	list := make([]content.Block, len(raw))
	for i, r := range raw {
		b, err := decodeBlock(content.JSON(r))
		if err != nil {
			return content.Blocks{}, false
		}
		list[i] = b
	}
	blocks, err := content.Of(list...)
	return blocks, err == nil
}

// knownSource reads a source that holds nothing but what content.Source does.
func knownSource(j content.JSON) (content.Source, bool) {
	list, err := members(j)
	if err != nil {
		return content.Source{}, false
	}
	kind, list, _ := takeText(list, "type")
	var s content.Source
	var ok bool
	switch kind {
	case "base64":
		s.MediaType, list, _ = takeText(list, "media_type")
		s.Data, list, ok = takeText(list, "data")
		ok = ok && s.Data != ""
	case "text":
		s.MediaType, list, _ = takeText(list, "media_type")
		s.Text, list, ok = takeText(list, "data")
		ok = ok && s.Text != "" && s.MediaType == plainText
	case "url":
		s.URL, list, ok = takeText(list, "url")
		ok = ok && s.URL != ""
	case "file":
		s.FileID, list, ok = takeText(list, "file_id")
		ok = ok && s.FileID != ""
	}
	return s, ok && len(list) == 0
}

// extra keeps the members that no field holds.
func extra(rest []member) content.Extra {
	if len(rest) == 0 {
		return content.Extra{}
	}
	return content.Extra{API: API, JSON: object(rest)}
}

// ours is extra for thinking, which always says which API can read its signature.
func ours(rest []member) content.Extra {
	return content.Extra{API: API, JSON: object(rest)}
}

// stopOf maps the API's stop reason.
func stopOf(reason string) content.Stop {
	switch reason {
	case "":
		return content.StopUnknown
	case "model_context_window_exceeded":
		return content.StopContext
	}
	return content.Stop(reason) // the other words are the same, and new ones are kept
}

// isServerCall reports whether a block of that type is a call that the provider itself carries out, and isServerResult whether it
// is the result of one.
func isServerCall(kind string) bool   { return strings.HasSuffix(kind, "_tool_use") }
func isServerResult(kind string) bool { return strings.HasSuffix(kind, "_tool_result") }
