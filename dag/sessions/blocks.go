package sessions

import (
	"fmt"
	"strings"

	"github.com/goccy/go-json/jsontext"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
)

// The names of the APIs with blocks in these formats, as in node.Answer.API.
const (
	anthropicAPI = "anthropic"
	responsesAPI = "openai-responses"
	chatAPI      = "openai-chat"
	geminiAPI    = "gemini"
)

// place is the position of blocks in the file, for errors and notes, with the rules for them.
type place struct {
	im    *importer
	line  int
	where string
	// foreign is the API of a content.Opaque made of an unknown block.
	foreign string
	// inner is set for the content of a tool result. It cannot hold calls, results or thinking.
	inner bool
}

func (p place) note(kind, format string, args ...any) {
	p.im.note(p.line, p.where, kind, format, args...)
}

// opaque keeps a block as it is, because it is unknown or does not have the shape of its type.
func (p place) opaque(raw content.JSON, api, why string) content.Block {
	p.note(noteOpaque, "%s: %s", why, excerpt(raw))

	// The JSON of an Opaque must be an object. No API reads the one made here, so it is not marked as an API's.
	if !raw.IsObject() {
		api = string(p.im.format)
		raw = jsonx.Object([]jsonx.Member{{Name: "value", Value: raw}})
	}
	return content.Opaque{API: api, JSON: raw}
}

// list reads the content of a message. It is absent, a string, or a list of blocks.
func (p place) list(j content.JSON, decode func(place, content.JSON) content.Block) (content.Blocks, error) {
	if j == "" || j == "null" {
		return content.Blocks{}, nil
	}
	if s, ok := jsonx.Text(j); ok {
		return content.Words(s), nil
	}

	raw, ok := items(j)
	if !ok {
		return content.Blocks{}, p.im.errorf(p.line, p.where, errShape, "content is neither a string nor a list: %s", excerpt(j))
	}
	return p.blocks(raw, decode)
}

// blocks decodes a list of blocks.
func (p place) blocks(raw []content.JSON, decode func(place, content.JSON) content.Block) (content.Blocks, error) {
	list := make([]content.Block, 0, len(raw))
	for i, r := range raw {
		at := p
		at.where = strings.TrimPrefix(fmt.Sprintf("%s, block %d", p.where, i), ", ")
		list = append(list, at.fit(r, decode(at, r)))
	}

	blocks, err := content.Of(list...)
	if err != nil {
		return content.Blocks{}, p.im.errorf(p.line, p.where, errShape, "%v", err)
	}
	return blocks, nil
}

// fit returns the block, or an opaque one if the position does not allow it or it is invalid.
func (p place) fit(raw content.JSON, b content.Block) content.Block {
	if p.inner {
		switch b.(type) {
		case content.ToolUse, content.CutToolUse, content.ToolResult, content.Thinking:
			return p.opaque(raw, p.foreign, "it is inside a tool result")
		}
	}
	if _, err := content.Of(b); err != nil {
		return p.opaque(raw, p.foreign, err.Error())
	}
	return b
}

// extra returns the remaining members as an Extra.
func extra(api string, rest []jsonx.Member) content.Extra {
	if len(rest) == 0 {
		return content.Extra{}
	}
	return content.Extra{API: api, JSON: jsonx.Object(rest)}
}

// anthropicBlock reads a block of Anthropic's API. The result is the same as in package anthropic: the block is sent
// back byte for byte.
func anthropicBlock(p place, raw content.JSON) content.Block {
	list, err := object(raw)
	if err != nil {
		return p.opaque(raw, p.foreign, "it is not an object")
	}

	kind, rest, _ := jsonx.TakeText(list, "type")
	if b := knownAnthropic(p, kind, rest); b != nil {
		return b
	}

	// A tool executed by Anthropic itself. Only its own API accepts these blocks.
	if strings.HasSuffix(kind, "_tool_use") || strings.HasSuffix(kind, "_tool_result") {
		p.note(noteOpaque, "a tool of the provider: %s", kind)
		return content.Opaque{API: anthropicAPI, JSON: raw}
	}
	return p.opaque(raw, p.foreign, fmt.Sprintf("a block of type %q", kind))
}

// knownAnthropic returns the block of this type with these members, or nil if no block of package content can hold all
// of them.
func knownAnthropic(p place, kind string, list []jsonx.Member) content.Block {
	switch kind {
	case "text":
		if s, rest, ok := jsonx.TakeText(list, "text"); ok {
			return content.Text{Text: s, Extra: extra(anthropicAPI, rest)}
		}

	case "thinking":
		return anthropicThinking(list)

	case "redacted_thinking":
		if data, rest, ok := jsonx.TakeText(list, "data"); ok && data != "" {
			// Set the Extra even if it is empty: it marks whose data this is.
			return content.Thinking{Redacted: data, Extra: content.Extra{API: anthropicAPI, JSON: jsonx.Object(rest)}}
		}

	case "image":
		if source, rest := jsonx.Take(list, "source"); source != "" {
			if src, ok := anthropicSource(source); ok {
				return content.Image{Source: src, Extra: extra(anthropicAPI, rest)}
			}
		}

	case "document":
		source, rest := jsonx.Take(list, "source")
		if src, ok := anthropicSource(source); ok {
			title, rest, _ := jsonx.TakeText(rest, "title")
			return content.Document{Source: src, Title: title, Extra: extra(anthropicAPI, rest)}
		}

	case "tool_use":
		return anthropicCall(p, list)
	case "tool_result":
		return anthropicResult(p, list)
	}
	return nil
}

// anthropicThinking reads thinking. Only thinking with a signature is marked as Anthropic's: no other API can read the
// signature.
func anthropicThinking(list []jsonx.Member) content.Block {
	s, rest, ok := jsonx.TakeText(list, "thinking")
	if !ok {
		return nil
	}

	signature, rest, _ := jsonx.TakeText(rest, "signature")
	if signature == "" {
		return content.Thinking{Text: s, Extra: extra(anthropicAPI, rest)}
	}
	return content.Thinking{Text: s, Signature: signature, Extra: content.Extra{API: anthropicAPI, JSON: jsonx.Object(rest)}}
}

// anthropicCall reads a tool call, or returns nil if it has no ID or no name.
func anthropicCall(p place, list []jsonx.Member) content.Block {
	id, rest, ok := jsonx.TakeText(list, "id")
	name, rest, named := jsonx.TakeText(rest, "name")
	if !ok || !named {
		return nil
	}

	input, rest := jsonx.Take(rest, "input")
	if input == "null" {
		p.note(noteChanged, "the call's input is null; it became no arguments")
		input = ""
	}
	return content.ToolUse{ID: id, Name: name, Input: input, Extra: extra(anthropicAPI, rest)}
}

// anthropicResult reads a tool result, or returns nil if it is invalid or inside another one.
func anthropicResult(p place, list []jsonx.Member) content.Block {
	id, rest, ok := jsonx.TakeText(list, "tool_use_id")
	if !ok || p.inner {
		return nil
	}

	failed, rest := jsonx.Take(rest, "is_error")
	body, rest := jsonx.Take(rest, "content")

	p.inner = true
	blocks, err := p.list(body, anthropicBlock)
	if err != nil {
		return nil
	}
	return content.ToolResult{CallID: id, Content: blocks, IsError: failed == "true", Extra: extra(anthropicAPI, rest)}
}

// anthropicSource reads a source. It reports false if content.Source cannot hold all of it.
func anthropicSource(j content.JSON) (content.Source, bool) {
	list, err := object(j)
	if err != nil {
		return content.Source{}, false
	}

	kind, list, _ := jsonx.TakeText(list, "type")
	var s content.Source
	switch kind {
	case "base64":
		s.MediaType, list, _ = jsonx.TakeText(list, "media_type")
		s.Data, list, _ = jsonx.TakeText(list, "data")
	case "text":
		s.MediaType, list, _ = jsonx.TakeText(list, "media_type")
		s.Text, list, _ = jsonx.TakeText(list, "data")
		if s.MediaType != "text/plain" {
			return s, false
		}
	case "url":
		s.URL, list, _ = jsonx.TakeText(list, "url")
	case "file":
		s.FileID, list, _ = jsonx.TakeText(list, "file_id")
	}

	// Any other member would be lost.
	return s, len(list) == 0 && s.Data+s.Text+s.URL+s.FileID != ""
}

// anthropicJSON returns a block for Anthropic's API, or nil. Its inverse is anthropicBlock.
func (x *exporter) anthropicJSON(b content.Block, c *called) any {
	switch b := b.(type) {
	case content.Text:
		return x.with(fields{"type": "text", "text": b.Text}, b.Extra, anthropicAPI)
	case content.Image:
		if source := x.anthropicSource(b.Source); source != nil {
			return x.with(fields{"type": "image", "source": source}, b.Extra, anthropicAPI)
		}
	case content.Document:
		if source := x.anthropicSource(b.Source); source != nil {
			document := fields{"type": "document", "source": source}
			if b.Title != "" {
				document["title"] = b.Title
			}
			return x.with(document, b.Extra, anthropicAPI)
		}

	case content.Thinking:
		switch {
		case b.Extra.API != anthropicAPI:
		case b.Redacted != "":
			return x.with(fields{"type": "redacted_thinking", "data": b.Redacted}, b.Extra, anthropicAPI)
		case b.Signature != "":
			return x.with(fields{"type": "thinking", "thinking": b.Text, "signature": b.Signature}, b.Extra, anthropicAPI)
		}
	case content.ToolUse:
		call := fields{"type": "tool_use", "id": c.id, "name": b.Name, "input": x.object(b.Input)}
		return x.with(call, b.Extra, anthropicAPI)
	case content.Opaque:
		if b.API == anthropicAPI {
			return jsontext.Value(b.JSON)
		}
	}
	return nil
}

// anthropicSource returns a source for Anthropic's API, or nil. A file ID is nil, because another user cannot read the file.
func (x *exporter) anthropicSource(s content.Source) any {
	switch {
	case s.Data != "":
		return fields{"type": "base64", "media_type": s.MediaType, "data": s.Data}
	case s.Text != "":
		return fields{"type": "text", "media_type": "text/plain", "data": s.Text}
	case s.URL != "":
		x.lose(LossExtra, min(len(s.MediaType), 1))
		return fields{"type": "url", "url": s.URL}
	}
	return nil
}

// reasoningItem reads a reasoning item of OpenAI's Responses API, or returns nil if it is none. The result is the same
// as in package openai.
func reasoningItem(list []jsonx.Member) content.Block {
	kind, list, _ := jsonx.TakeText(list, "type")
	if kind != "reasoning" {
		return nil
	}

	var t content.Thinking
	t.Signature, list, _ = jsonx.TakeText(list, "encrypted_content")
	summary, rest := jsonx.Take(list, "summary")
	t.Text = partsText(summary)
	if t.Text == "" {
		shown, _ := jsonx.Take(list, "content")
		t.Text = partsText(shown)
	}

	// A summary derived from the text is not kept a second time.
	if plain := plainSummary(t.Text); summary == "" || summary.Canonical() == plain.Canonical() {
		list = rest
	}

	t.Extra = content.Extra{API: responsesAPI, JSON: jsonx.Object(list)}
	return t
}

// reasoningJSON returns thinking of the Responses API as a reasoning item, or "" for other thinking.
func reasoningJSON(t content.Thinking) content.JSON {
	if t.Extra.API != responsesAPI || t.Redacted != "" {
		return ""
	}
	list, _ := object(t.Extra.JSON)
	item := []jsonx.Member{{Name: "type", Value: `"reasoning"`}}
	if !has(list, "summary") {
		item = append(item, jsonx.Member{Name: "summary", Value: plainSummary(t.Text)})
	}
	if t.Signature != "" {
		item = append(item, jsonx.Member{Name: "encrypted_content", Value: jsonx.Quote(t.Signature)})
	}
	return jsonx.Object(append(item, list...))
}

// plainSummary returns the summary of thinking with this text, or without any.
func plainSummary(text string) content.JSON {
	if text == "" {
		return "[]"
	}
	return `[{"type":"summary_text","text":` + jsonx.Quote(text) + `}]`
}

// partsText joins the texts in a list of parts.
func partsText(parts content.JSON) string {
	raw, _ := items(parts)
	var texts []string
	for _, one := range raw {
		if list, err := object(one); err == nil {
			texts = append(texts, text(list, "text"))
		}
	}
	return strings.Join(texts, "\n\n")
}
