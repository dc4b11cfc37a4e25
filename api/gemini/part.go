package gemini

import (
	"slices"
	"strings"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
)

const thoughtSignature = "thoughtSignature"

// data are the members with the content of a part. Each part has one of them.
var data = []string{
	"text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode",
	"codeExecutionResult", "toolCall", "toolResponse",
}

// beside are the members that only describe a part.
var beside = []string{"thought", thoughtSignature, "videoMetadata", "mediaResolution", "partMetadata"}

// about are the members of a candidate kept in the Extra of its last block, and never sent. If there is no such block,
// they are in api.Finish.Details.
var about = []string{"groundingMetadata", "citationMetadata", "urlContextMetadata"}

// decodePart decodes a part. A known part becomes a Text, a Thinking and so on, with its other members in Extra. Any
// other part becomes an Opaque, byte for byte. An empty text is nil.
func decodePart(raw content.JSON) (content.Block, error) {
	raw, list, err := objectOf(raw)
	if err != nil {
		return nil, err
	}

	// Another part may be new in the API: it is sent back as it came.
	b, ok := known(list)
	if !ok {
		return content.Opaque{API: API, JSON: raw}, nil
	}
	return b, nil
}

// objectOf returns an object and its members, both without lone surrogates and repeated names: they are no reason to
// fail the whole response.
func objectOf(raw content.JSON) (content.JSON, []jsonx.Member, error) {
	list, err := jsonx.Members(raw)
	if err == nil {
		return raw, list, nil
	}

	if raw, err = mended(raw, err); err != nil {
		return "", nil, err
	}
	list, _ = jsonx.Members(raw)
	return raw, list, nil
}

// mended rewrites an object without its lone surrogates and repeated names. It returns why if it is not an object.
func mended(raw content.JSON, why error) (content.JSON, error) {
	var v map[string]any
	if json.Unmarshal([]byte(raw), &v, jsonx.Lenient) != nil || v == nil {
		return "", why
	}
	b, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	return content.JSON(b), err
}

// known returns the block described by list. It is not ok if no block of Plait can hold all of it.
func known(list []jsonx.Member) (content.Block, bool) {
	// False is the default, and carries no information.
	if thought, rest := jsonx.Take(list, "thought"); thought == "false" {
		list = rest
	}

	kinds := 0
	for _, m := range list {
		if slices.Contains(data, m.Name) {
			kinds++
		}
	}

	// A part without data, or with two kinds of it, fits no block.
	if kinds != 1 {
		return nil, false
	}

	if text, rest, ok := jsonx.TakeText(list, "text"); ok {
		return knownText(text, rest)
	}
	if call, rest := jsonx.Take(list, "functionCall"); call != "" {
		return knownCall(call, rest)
	}
	return knownMedia(list)
}

// knownText returns a Text or a Thinking; nil for an empty one.
func knownText(text string, rest []jsonx.Member) (content.Block, bool) {
	thought, further := jsonx.Take(rest, "thought")
	switch {
	case thought == "true":
		signature, further, _ := jsonx.TakeText(further, thoughtSignature)
		if text == "" && signature == "" && len(further) == 0 {
			return nil, true
		}
		return content.Thinking{
			Text: text, Signature: signature, Extra: content.Extra{API: API, JSON: jsonx.Object(further)},
		}, true
	case thought != "":
		return nil, false
	case text == "":
		// With other members, such as a signature, an empty text is kept as an Opaque.
		return nil, len(rest) == 0
	}
	return content.Text{Text: text, Extra: extra(rest)}, true
}

// knownCall reads a call. Unknown members of the call are kept in the Extra too, as a functionCall without the others.
func knownCall(call content.JSON, rest []jsonx.Member) (content.Block, bool) {
	list, err := jsonx.Members(call)
	if err != nil {
		return nil, false
	}

	name, list, ok := jsonx.TakeText(list, "name")
	if !ok {
		return nil, false
	}
	id, list, _ := jsonx.TakeText(list, "id")

	// The API leaves out the arguments of a call without any.
	args, list := jsonx.Take(list, "args")
	if args == "" || args == "null" {
		args = "{}"
	}

	if len(list) > 0 {
		rest = append(rest[:len(rest):len(rest)], jsonx.Member{Name: "functionCall", Value: jsonx.Object(list)})
	}
	return content.ToolUse{ID: id, Name: name, Input: args, Extra: extra(rest)}, true
}

// knownMedia reads a part with a file.
func knownMedia(list []jsonx.Member) (content.Block, bool) {
	inline, rest := jsonx.Take(list, "inlineData")
	s, ok := knownSource(inline, "data")
	if inline == "" {
		inline, rest = jsonx.Take(list, "fileData")
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

// knownSource reads inlineData or fileData, with the content in the member named member. It is not ok if it has more
// than a content.Source can hold.
func knownSource(j content.JSON, member string) (content.Source, bool) {
	list, err := jsonx.Members(j)
	if err != nil {
		return content.Source{}, false
	}

	var s content.Source
	s.MediaType, list, _ = jsonx.TakeText(list, "mimeType")
	value, list, ok := jsonx.TakeText(list, member)
	if member == "data" {
		s.Data = standard(value)
	} else {
		s.URL = value
	}
	return s, ok && value != "" && len(list) == 0
}

// standard converts base64 of the URL alphabet to the standard alphabet.
func standard(data string) string {
	if !strings.ContainsAny(data, "-_") || !isBase64(data) {
		return data
	}
	data = strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(data), "=")
	return data + strings.Repeat("=", (4-len(data)%4)%4)
}

// extra returns an Extra with the members that have no field.
func extra(rest []jsonx.Member) content.Extra {
	if len(rest) == 0 {
		return content.Extra{}
	}
	return content.Extra{API: API, JSON: jsonx.Object(rest)}
}

// furtherOf returns the members added by an Extra to a part: neither the part's content nor information about a
// response.
func furtherOf(e content.Extra) []jsonx.Member {
	further := e.For(API)
	if further == "" || further == "{}" {
		return nil
	}
	list, _ := jsonx.Members(further) // it was checked when the block was made
	return slices.DeleteFunc(list, func(m jsonx.Member) bool {
		return isAnyOf(m, data) || isAnyOf(m, about)
	})
}

// isAnyOf reports whether m is a member with one of the names, under either of its names.
func isAnyOf(m jsonx.Member, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return isNamed(m, name) })
}

// signatureOf returns the signature in an Extra, as JSON; "" for none.
func signatureOf(e content.Extra) content.JSON {
	list, _ := jsonx.Members(e.For(API)) // none without an Extra
	for _, m := range list {
		if isNamed(m, thoughtSignature) && m.Value != `""` && m.Value != "null" {
			return m.Value
		}
	}
	return ""
}
