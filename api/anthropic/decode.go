package anthropic

import (
	"fmt"
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
)

// decodeBlock decodes a block. A known block becomes a Text, a Thinking and so on, with its other members in Extra. Any
// other block becomes an Opaque, byte for byte.
func decodeBlock(raw content.JSON) (content.Block, error) {
	list, err := jsonx.Members(raw)
	if err != nil {
		return nil, err
	}
	if b := known(list); b != nil {
		return b, nil
	}
	return content.Opaque{API: API, JSON: raw}, nil
}

// known returns the block described by list, or nil if no block of Plait can hold all of it.
func known(list []jsonx.Member) content.Block {
	kind, rest, _ := jsonx.TakeText(list, "type")

	switch kind {
	case "text":
		if text, rest, ok := jsonx.TakeText(rest, "text"); ok {
			return content.Text{Text: text, Extra: extra(rest)}
		}
	case "thinking":
		return knownThinking(rest)
	case "redacted_thinking":
		if data, rest, ok := jsonx.TakeText(rest, "data"); ok && data != "" {
			return content.Thinking{Redacted: data, Extra: ours(rest)}
		}
	case "image":
		if source, rest := jsonx.Take(rest, "source"); source != "" {
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

func knownThinking(rest []jsonx.Member) content.Block {
	thought, rest, ok := jsonx.TakeText(rest, "thinking")
	if !ok {
		return nil
	}
	signature, rest, _ := jsonx.TakeText(rest, "signature")
	return content.Thinking{Text: thought, Signature: signature, Extra: ours(rest)}
}

func knownDocument(rest []jsonx.Member) content.Block {
	source, rest := jsonx.Take(rest, "source")
	s, ok := knownSource(source)
	if !ok {
		return nil
	}
	title, rest, _ := jsonx.TakeText(rest, "title")
	return content.Document{Source: s, Title: title, Extra: extra(rest)}
}

// toolsetName is the member of a call with the toolset of its tool.
const toolsetName = "toolset_name"

func knownToolUse(rest []jsonx.Member) content.Block {
	id, rest, ok := jsonx.TakeText(rest, "id")
	name, rest, named := jsonx.TakeText(rest, "name")
	if !ok || !named {
		return nil
	}
	input, rest := jsonx.Take(rest, "input")

	// The name of a toolset's tool is only known together with the toolset: a program may have a tool of the same name.
	if toolset, _, _ := jsonx.TakeText(rest, toolsetName); toolset != "" {
		name = toolset + "_" + name
	}
	return content.ToolUse{ID: id, Name: name, Input: input, Extra: extra(rest)}
}

func knownToolResult(rest []jsonx.Member) content.Block {
	id, rest, ok := jsonx.TakeText(rest, "tool_use_id")
	if !ok {
		return nil
	}

	failed, rest := jsonx.Take(rest, "is_error")
	inner, rest := jsonx.Take(rest, "content")
	blocks, err := importContent(inner)
	if err != nil {
		return nil
	}
	return content.ToolResult{CallID: id, Content: blocks, IsError: failed == "true", Extra: extra(rest)}
}

// importContent reads content: missing, null, a string, or an array of blocks.
func importContent(j content.JSON) (content.Blocks, error) {
	if j == "" {
		return content.Blocks{}, nil
	}
	if text, ok := jsonx.Text(j); ok {
		return content.Words(text), nil
	}

	raw, err := jsonx.Items(j)
	if err != nil {
		return content.Blocks{}, err
	}

	list := make([]content.Block, len(raw))
	for i, r := range raw {
		b, err := decodeBlock(r)
		if err != nil {
			return content.Blocks{}, fmt.Errorf("block %d: %w", i, err)
		}
		list[i] = b
	}
	return content.Of(list...)
}

// knownSource reads a source. It is not ok if the source has more than a content.Source can hold.
func knownSource(j content.JSON) (content.Source, bool) {
	list, err := jsonx.Members(j)
	if err != nil {
		return content.Source{}, false
	}

	kind, list, _ := jsonx.TakeText(list, "type")
	var s content.Source
	var ok bool
	switch kind {
	case "base64":
		s.MediaType, list, _ = jsonx.TakeText(list, "media_type")
		s.Data, list, ok = jsonx.TakeText(list, "data")
		ok = ok && s.Data != ""
	case "text":
		s.MediaType, list, _ = jsonx.TakeText(list, "media_type")
		s.Text, list, ok = jsonx.TakeText(list, "data")
		// appendSource writes this type for every text.
		ok = ok && s.Text != "" && s.MediaType == "text/plain"
	case "url":
		s.URL, list, ok = jsonx.TakeText(list, "url")
		ok = ok && s.URL != ""
	case "file":
		s.FileID, list, ok = jsonx.TakeText(list, "file_id")
		ok = ok && s.FileID != ""
	}

	return s, ok && len(list) == 0
}

// extra returns an Extra with the members that have no field.
func extra(rest []jsonx.Member) content.Extra {
	if len(rest) == 0 {
		return content.Extra{}
	}
	return content.Extra{API: API, JSON: jsonx.Object(rest)}
}

// ours returns the Extra of thinking. Its API is always set, because only this API can read the signature.
func ours(rest []jsonx.Member) content.Extra {
	return content.Extra{API: API, JSON: jsonx.Object(rest)}
}

// stopOf maps the API's stop reason. Some compatible servers report "end_turn" even if the model wrote a stop sequence,
// and name the sequence in another member.
func stopOf(reason string, sequence jsonx.Raw) content.Stop {
	switch reason {
	case "":
		return content.StopUnknown
	case "end_turn":
		if len(sequence) > 0 && sequence.Kind() == '"' {
			return content.StopSequence
		}
	case "model_context_window_exceeded":
		return content.StopContext
	case "compaction": // pause_after_compaction: another request continues
		return content.StopPause
	}
	return content.Stop(reason) // the other reasons have the same names; new ones are kept
}

// isServerCall reports whether the type is a call executed by the provider itself. isServerResult reports whether it is
// the result of one.
func isServerCall(kind string) bool   { return strings.HasSuffix(kind, "_tool_use") }
func isServerResult(kind string) bool { return strings.HasSuffix(kind, "_tool_result") }
