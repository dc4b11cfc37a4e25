package gemini

import (
	"slices"
	"strings"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/wire"
)

const thoughtSignature = "thoughtSignature"

// data is the members that say what a part is: each part has one of them.
var data = []string{
	"text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult", "toolCall", "toolResponse",
}

// beside is members of a part that only describe it.
var beside = []string{"thought", thoughtSignature, "videoMetadata", "mediaResolution", "partMetadata"}

// about is the members of a candidate that are kept in the Extra of its last block, and never sent.
var about = []string{"groundingMetadata", "citationMetadata", "urlContextMetadata"}

// decodePart returns the block that the API means by a part; nil for a text that says nothing. What Plait models is a Text, a
// Thinking and so on, and every member beyond those it models goes into Extra; anything else is an Opaque, byte for byte.
func decodePart(raw content.JSON) (content.Block, error) {
	list, err := wire.Members(raw)
	if err != nil {
		if raw, err = mended(raw, err); err != nil {
			return nil, err
		}
		list, _ = wire.Members(raw)
	}
	b, ok := known(list)
	if !ok {
		return content.Opaque{API: API, JSON: raw}, nil
	}
	return b, nil
}

// mended is an object with a lone surrogate or a repeated name in it, written anew without.
func mended(raw content.JSON, why error) (content.JSON, error) {
	var v map[string]any
	if json.Unmarshal([]byte(raw), &v, wire.Lenient) != nil || v == nil {
		return "", why
	}
	b, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return "", err
	}
	return content.JSON(b), nil
}

// known returns the block that list describes; it is not ok where a block of ours could not hold all of it.
func known(list []wire.Member) (content.Block, bool) {
	if thought, rest := wire.Take(list, "thought"); thought == "false" {
		list = rest
	}
	kinds := 0
	for _, m := range list {
		if slices.Contains(data, m.Name) {
			kinds++
		}
	}
	if kinds != 1 {
		return nil, false
	}
	if said, rest, ok := wire.TakeText(list, "text"); ok {
		return knownText(said, rest)
	}
	if call, rest := wire.Take(list, "functionCall"); call != "" {
		return knownCall(call, rest)
	}
	return knownMedia(list)
}

func knownText(said string, rest []wire.Member) (content.Block, bool) {
	thought, further := wire.Take(rest, "thought")
	switch {
	case thought == "true":
		signature, further, _ := wire.TakeText(further, thoughtSignature)
		if said == "" && signature == "" && len(further) == 0 {
			return nil, true
		}
		return content.Thinking{Text: said, Signature: signature, Extra: content.Extra{API: API, JSON: wire.Object(further)}}, true
	case thought != "":
		return nil, false
	case said == "":
		return nil, len(rest) == 0
	}
	return content.Text{Text: said, Extra: extra(rest)}, true
}

// knownCall reads a call. What the call holds that Plait does not model is kept in the Extra as well, as a functionCall without the
// rest.
func knownCall(call content.JSON, rest []wire.Member) (content.Block, bool) {
	list, err := wire.Members(call)
	if err != nil {
		return nil, false
	}
	name, list, ok := wire.TakeText(list, "name")
	if !ok {
		return nil, false
	}
	id, list, _ := wire.TakeText(list, "id")
	args, list := wire.Take(list, "args")
	if args == "" || args == "null" {
		args = "{}"
	}
	if len(list) > 0 {
		rest = append(rest[:len(rest):len(rest)], wire.Member{Name: "functionCall", Value: wire.Object(list)})
	}
	return content.ToolUse{ID: id, Name: name, Input: args, Extra: extra(rest)}, true
}

func knownMedia(list []wire.Member) (content.Block, bool) {
	inline, rest := wire.Take(list, "inlineData")
	s, ok := knownSource(inline, "data")
	if inline == "" {
		inline, rest = wire.Take(list, "fileData")
		s, ok = knownSource(inline, "fileUri")
	}
	switch {
	case !ok:
		return nil, false
	case strings.HasPrefix(s.MediaType, "image/"):
		return content.Image{Source: s, Extra: extra(rest)}, true
	}
	return content.Document{Source: s, Extra: extra(rest)}, true
}

// knownSource reads inlineData or fileData that holds nothing but what content.Source does.
func knownSource(j content.JSON, place string) (content.Source, bool) {
	list, err := wire.Members(j)
	if err != nil {
		return content.Source{}, false
	}
	var s content.Source
	s.MediaType, list, _ = wire.TakeText(list, "mimeType")
	where, list, ok := wire.TakeText(list, place)
	if place == "data" {
		s.Data = standard(where)
	} else {
		s.URL = where
	}
	return s, ok && where != "" && len(list) == 0
}

// standard is base64 of either alphabet in the standard one.
func standard(data string) string {
	if !strings.ContainsAny(data, "-_") || !isBase64(data) {
		return data
	}
	data = strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(data), "=")
	return data + strings.Repeat("=", (4-len(data)%4)%4)
}

// extra keeps the members that no field holds.
func extra(rest []wire.Member) content.Extra {
	if len(rest) == 0 {
		return content.Extra{}
	}
	return content.Extra{API: API, JSON: wire.Object(rest)}
}

// furtherOf is the members that an Extra adds to a part: not those that say what the part is, and not those about an answer.
func furtherOf(e content.Extra) []wire.Member {
	further := e.For(API)
	if further == "" || further == "{}" {
		return nil
	}
	list, _ := wire.Members(further) // it was checked when the block was made
	return slices.DeleteFunc(list, func(m wire.Member) bool { return slices.Contains(data, m.Name) || slices.Contains(about, m.Name) })
}

// signatureOf is the signature in an Extra, as it came; "" where there is none.
func signatureOf(e content.Extra) content.JSON {
	list, _ := wire.Members(e.For(API)) // none where there is no Extra
	signature, _ := wire.Take(list, thoughtSignature)
	if signature == `""` || signature == "null" {
		return ""
	}
	return signature
}
