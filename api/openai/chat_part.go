package openai

import (
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
)

// decodePart returns the block for a content part of the user. If no block can hold the part completely, it becomes an
// Opaque, byte for byte.
func decodePart(raw content.JSON) content.Block {
	list, err := jsonx.Members(raw)
	if err == nil {
		if b := knownPart(list); b != nil {
			return b
		}
	}
	return content.Opaque{API: ChatAPI, JSON: raw}
}

// knownPart returns the block for a content part, or nil if no block can hold all of it.
func knownPart(list []jsonx.Member) content.Block {
	kind, list, _ := jsonx.TakeText(list, "type")

	// A part, except text, has its content in a member named after its type.
	inner, rest := jsonx.Take(list, kind)

	switch kind {
	case "text":
		if text, rest, ok := jsonx.TakeText(list, "text"); ok && text != "" {
			return content.Text{Text: text, Extra: extra(rest)}
		}
	case "image_url":
		return knownImage(inner, rest)
	case "input_audio":
		return knownAudio(inner, rest)
	case "file":
		return knownFile(inner, rest)
	}
	return nil
}

func knownImage(image content.JSON, rest []jsonx.Member) content.Block {
	list, err := jsonx.Members(image)
	if err != nil {
		return nil
	}

	// The detail goes to the block's Extra. A block has no room for other members beside the URL.
	url, list, _ := jsonx.TakeText(list, "url")
	detail, list := jsonx.Take(list, "detail")
	if detail != "" {
		rest = append([]jsonx.Member{{Name: "detail", Value: detail}}, rest...)
	}

	if s, ok := dataSource(url); ok && len(list) == 0 {
		return content.Image{Source: s, Extra: extra(rest)}
	}
	if url == "" || len(list) > 0 {
		return nil
	}
	return content.Image{Source: content.Source{URL: url}, Extra: extra(rest)}
}

func knownAudio(audio content.JSON, rest []jsonx.Member) content.Block {
	list, err := jsonx.Members(audio)
	if err != nil {
		return nil
	}

	// The block has no room for members beside these two.
	data, list, _ := jsonx.TakeText(list, "data")
	format, list, _ := jsonx.TakeText(list, "format")
	if data == "" || format == "" || len(list) > 0 {
		return nil
	}

	// The API's name for audio/mpeg: see audioFormat.
	if format == "mp3" {
		format = "mpeg"
	}
	return content.Document{Source: content.Source{MediaType: "audio/" + format, Data: data}, Extra: extra(rest)}
}

func knownFile(file content.JSON, rest []jsonx.Member) content.Block {
	list, err := jsonx.Members(file)
	if err != nil {
		return nil
	}

	name, list, _ := jsonx.TakeText(list, "filename")
	data, list, _ := jsonx.TakeText(list, "file_data")
	id, list, _ := jsonx.TakeText(list, "file_id")

	source, ok := dataSource(data)
	if data == "" && id != "" {
		source, ok = content.Source{FileID: id}, true
	}

	// A Source holds either the bytes or the ID of a file.
	if !ok || len(list) > 0 || data != "" && id != "" {
		return nil
	}

	return content.Document{Source: source, Title: name, Extra: extra(rest)}
}

// dataSource parses a base64 data: URL.
func dataSource(url string) (content.Source, bool) {
	head, data, ok := strings.Cut(url, ",")
	kind, base64 := strings.CutSuffix(head, ";base64")
	kind, isData := strings.CutPrefix(kind, "data:")
	if !ok || !base64 || !isData || data == "" {
		return content.Source{}, false
	}
	return content.Source{MediaType: kind, Data: data}, true
}
