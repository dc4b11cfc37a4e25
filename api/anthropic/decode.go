package anthropic

import (
	"fmt"
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/wire"
)

// decodeBlock decodes a block. A block that Plait models becomes a Text, a Thinking and so on, with its other members
// in Extra. Any other block becomes an Opaque, byte for byte.
func decodeBlock(raw content.JSON) (content.Block, error) {
	list, err := wire.Members(raw)
	if err != nil {
		return nil, err
	}
	if b := known(list); b != nil {
		return b, nil
	}
	return content.Opaque{API: API, JSON: raw}, nil
}

// known returns the block that list describes, or nil if no block of Plait can hold all of it.
func known(list []wire.Member) content.Block {
	kind, rest, _ := wire.TakeText(list, "type")

	switch kind {
	case "text":
		if text, rest, ok := wire.TakeText(rest, "text"); ok {
			return content.Text{Text: text, Extra: extra(rest)}
		}
	case "thinking":
		return knownThinking(rest)
	case "redacted_thinking":
		if data, rest, ok := wire.TakeText(rest, "data"); ok && data != "" {
			return content.Thinking{Redacted: data, Extra: ours(rest)}
		}
	case "image":
		if source, rest := wire.Take(rest, "source"); source != "" {
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

func knownThinking(rest []wire.Member) content.Block {
	thought, rest, ok := wire.TakeText(rest, "thinking")
	if !ok {
		return nil
	}
	signature, rest, _ := wire.TakeText(rest, "signature")
	return content.Thinking{Text: thought, Signature: signature, Extra: ours(rest)}
}

func knownDocument(rest []wire.Member) content.Block {
	source, rest := wire.Take(rest, "source")
	s, ok := knownSource(source)
	if !ok {
		return nil
	}
	title, rest, _ := wire.TakeText(rest, "title")
	return content.Document{Source: s, Title: title, Extra: extra(rest)}
}

func knownToolUse(rest []wire.Member) content.Block {
	id, rest, ok := wire.TakeText(rest, "id")
	name, rest, named := wire.TakeText(rest, "name")
	if !ok || !named {
		return nil
	}
	input, rest := wire.Take(rest, "input")
	return content.ToolUse{ID: id, Name: name, Input: input, Extra: extra(rest)}
}

func knownToolResult(rest []wire.Member) content.Block {
	id, rest, ok := wire.TakeText(rest, "tool_use_id")
	if !ok {
		return nil
	}

	failed, rest := wire.Take(rest, "is_error")
	inner, rest := wire.Take(rest, "content")
	blocks, err := importContent(inner)
	if err != nil {
		return nil
	}

	return content.ToolResult{CallID: id, Content: blocks, IsError: failed == "true", Extra: extra(rest)}
}

// importContent reads content that is missing, a string, or an array of blocks.
func importContent(j content.JSON) (content.Blocks, error) {
	if j == "" || j == "null" {
		return content.Blocks{}, nil
	}
	if text, ok := wire.Text(j); ok {
		return content.Words(text), nil
	}

	var raw []wire.Raw
	if err := j.Decode(&raw); err != nil {
		return content.Blocks{}, err
	}

	list := make([]content.Block, len(raw))
	for i, r := range raw {
		b, err := decodeBlock(content.JSON(r))
		if err != nil {
			return content.Blocks{}, fmt.Errorf("block %d: %w", i, err)
		}
		list[i] = b
	}
	return content.Of(list...)
}

// knownSource reads a source. It is not ok if the source has more than a content.Source can hold.
func knownSource(j content.JSON) (content.Source, bool) {
	list, err := wire.Members(j)
	if err != nil {
		return content.Source{}, false
	}

	kind, list, _ := wire.TakeText(list, "type")
	var s content.Source
	var ok bool
	switch kind {
	case "base64":
		s.MediaType, list, _ = wire.TakeText(list, "media_type")
		s.Data, list, ok = wire.TakeText(list, "data")
		ok = ok && s.Data != ""
	case "text":
		s.MediaType, list, _ = wire.TakeText(list, "media_type")
		s.Text, list, ok = wire.TakeText(list, "data")
		ok = ok && s.Text != "" && s.MediaType == "text/plain"
	case "url":
		s.URL, list, ok = wire.TakeText(list, "url")
		ok = ok && s.URL != ""
	case "file":
		s.FileID, list, ok = wire.TakeText(list, "file_id")
		ok = ok && s.FileID != ""
	}

	return s, ok && len(list) == 0
}

// extra returns an Extra with the members that no field holds.
func extra(rest []wire.Member) content.Extra {
	if len(rest) == 0 {
		return content.Extra{}
	}
	return content.Extra{API: API, JSON: wire.Object(rest)}
}

// ours returns the Extra of thinking. Its API is always set, because only that API can read the signature.
func ours(rest []wire.Member) content.Extra {
	return content.Extra{API: API, JSON: wire.Object(rest)}
}

// stopOf maps the API's stop reason. Some compatible servers report "end_turn" even if the model wrote a stop sequence,
// and name the sequence in another member.
func stopOf(reason string, sequence wire.Raw) content.Stop {
	switch reason {
	case "":
		return content.StopUnknown
	case "end_turn":
		if len(sequence) > 0 && sequence.Kind() == '"' {
			return content.StopSequence
		}
	case "model_context_window_exceeded":
		return content.StopContext
	}
	return content.Stop(reason) // the other reasons have the same names; new ones are kept
}

// isServerCall reports whether a block of that type is a call that the provider itself executes. isServerResult reports
// whether it is the result of one.
func isServerCall(kind string) bool   { return strings.HasSuffix(kind, "_tool_use") }
func isServerResult(kind string) bool { return strings.HasSuffix(kind, "_tool_result") }
