package gemini

import (
	"path"
	"strings"
	"sync"

	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/jsonx/write"
)

// noSignature is the signature provided by Google for calls without a thoughtSignature:
// "skip_thought_signature_validator", in base64.
const noSignature = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="

// signed adds a signature to the first call of a step if it has none. unsigned does not.
var (
	unsigned = sync.OnceValue(func() *dialect.Encoding { return encoding(false) })
	signed   = sync.OnceValue(func() *dialect.Encoding { return encoding(true) })
)

// encoding returns the encoding of conversations. With sign, the first call of a step gets a signature.
func encoding(sign bool) *dialect.Encoding {
	return &dialect.Encoding{
		Rules: rules(),
		Append: func(dst []byte, m content.Message, _ int) []byte {
			if m.Role == content.User {
				return appendUser(dst, m.Blocks.Slice())
			}
			return appendModel(dst, m, sign)
		},
		AppendAnswer: func(dst []byte, calls []content.ToolUse, m content.Message, _ int) []byte {
			return appendAnswer(dst, calls, m)
		},
	}
}

// encodingOf returns the encoding for a model.
func encodingOf(model string) *dialect.Encoding {
	if generationOf(model) >= firstSigned {
		return signed()
	}
	return unsigned()
}

// appendUser appends a content of the user.
func appendUser(dst []byte, blocks []content.Block) []byte {
	dst = append(dst, `{"role":"user","parts":[`...)
	for _, b := range blocks {
		dst = appendPart(write.Comma(dst), b)
	}
	return append(dst, "]}"...)
}

// appendModel appends a content of the model. With sign, its first call gets noSignature if it has no signature.
func appendModel(dst []byte, m content.Message, sign bool) []byte {
	dst = append(dst, `{"role":"model","parts":[`...)
	for _, b := range m.Blocks.All() {
		call, isCall := b.(content.ToolUse)
		if isCall && sign {
			// Only the first call of a step must be signed.
			if sign = false; signatureOf(call.Extra) == "" {
				dst = appendCall(write.Comma(dst), call, noSignature)
				continue
			}
		}
		dst = appendPart(write.Comma(dst), b)
	}
	return append(dst, "]}"...)
}

// appendAnswer appends the results of calls as one content. The rest of the message follows as another one: the user's
// own blocks, and images and documents in results, because a functionResponse cannot hold them.
func appendAnswer(dst []byte, calls []content.ToolUse, m content.Message) []byte {
	var rest []content.Block
	dst = append(dst, `{"role":"user","parts":[`...)
	for i, b := range m.Blocks.All() {
		r, ok := b.(content.ToolResult)
		if !ok {
			rest = append(rest, b)
			continue
		}

		media := mediaOf(r)
		dst = appendResult(write.Comma(dst), calls[i].Name, r, len(media) > 0) // results come first, in call order
		if len(media) > 0 {
			// A text names the tool, because the media are no longer inside its result.
			rest = append(append(rest, content.Text{Text: "[Returned by " + calls[i].Name + ":]"}), media...)
		}
	}

	dst = append(dst, "]}"...)
	if len(rest) == 0 {
		return dst
	}
	return appendUser(write.Comma(dst), rest)
}

// mediaOf returns the blocks of a result, without its texts.
func mediaOf(r content.ToolResult) []content.Block {
	var media []content.Block
	for _, b := range r.Content.All() {
		if _, isText := b.(content.Text); !isText {
			media = append(media, b)
		}
	}
	return media
}

// appendResult appends a result. Members of its Extra are added to the functionResponse.
func appendResult(dst []byte, name string, r content.ToolResult, media bool) []byte {
	dst = append(dst, `{"functionResponse":{`...)
	dst = write.OptString(write.OptString(dst, "id", r.CallID), "name", name)
	dst = append(write.Name(dst, "response"), responseOf(r, media)...)
	return append(appendFurther(dst, furtherOf(r.Extra), inResponse...), "}}"...)
}

// inResponse are the members an Extra of a result cannot add.
var inResponse = append([]string{"id", "name", "response"}, beside...)

// responseOf returns the result of the tool as an object, the form required by the API.
func responseOf(r content.ToolResult, media bool) content.JSON {
	// An object is sent as it is. An error is always a text, because only the member "error" marks it.
	text := r.Content.Text()
	object := content.JSON(text)
	switch {
	case r.IsError && text == "":
		text = "The tool failed."
	case r.IsError:
	case object.IsObject():
		return object
	case text == "" && media:
		// Images and documents follow in the next content (see appendAnswer).
		text = "It is shown below."
	}

	name := "output"
	if r.IsError {
		name = "error"
	}
	return jsonx.Object([]jsonx.Member{{Name: name, Value: jsonx.Quote(text)}})
}

// appendPart appends a block returned by accept.
func appendPart(dst []byte, block content.Block) []byte {
	var e content.Extra
	switch b := block.(type) {
	case content.Text:
		dst, e = write.String(append(dst, '{'), "text", b.Text), b.Extra
	case content.Thinking:
		dst, e = write.String(append(dst, '{'), "text", b.Text), b.Extra
		dst = write.OptString(append(dst, `,"thought":true`...), thoughtSignature, b.Signature)
	case content.Image:
		dst, e = appendSource(append(dst, '{'), b.Source), b.Extra
	case content.Document:
		dst, e = appendSource(append(dst, '{'), b.Source), b.Extra
	case content.ToolUse:
		return appendCall(dst, b, "")
	case content.Opaque:
		return append(dst, b.JSON...)
	}

	return append(appendFurther(dst, furtherOf(e)), '}')
}

// appendCall appends a call. A signature other than "" replaces the one of its Extra.
func appendCall(dst []byte, call content.ToolUse, signature string) []byte {
	dst = append(dst, `{"functionCall":{`...)
	dst = write.OptString(write.OptString(dst, "id", call.ID), "name", call.Name)
	dst = append(write.Name(dst, "args"), call.Input...)

	further, _ := jsonx.Members(call.Extra.For(API)) // none without an Extra
	inside, _ := jsonx.Take(further, "functionCall")
	list, _ := jsonx.Members(inside)
	dst = append(appendFurther(dst, list, "id", "name", "args"), '}')

	if signature != "" {
		dst = write.OptString(dst, thoughtSignature, signature)
		return append(appendFurther(dst, furtherOf(call.Extra), thoughtSignature), '}')
	}
	return append(appendFurther(dst, furtherOf(call.Extra)), '}')
}

// appendSource appends inlineData or fileData.
func appendSource(dst []byte, s content.Source) []byte {
	if s.URL == "" {
		dst = write.String(append(write.Name(dst, "inlineData"), '{'), "mimeType", s.MediaType)
		return append(write.String(dst, "data", s.Data), '}')
	}

	if s.MediaType == "" {
		s.MediaType = typeByName[strings.ToLower(path.Ext(s.URL))]
	}
	dst = write.OptString(append(write.Name(dst, "fileData"), '{'), "mimeType", s.MediaType)
	return append(write.String(dst, "fileUri", s.URL), '}')
}

// typeByName maps the extension of a file's name to its media type, for sources without one. The API requires the type
// of files stored elsewhere.
var typeByName = map[string]string{
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp",
	".heic": "image/heic", ".heif": "image/heif",
	".pdf": "application/pdf", ".mp4": "video/mp4", ".webm": "video/webm", ".mov": "video/quicktime",
	".mp3": "audio/mpeg", ".wav": "audio/wav",
}

// appendFurther appends members, except those with a name in but, under either of their names.
func appendFurther(dst []byte, list []jsonx.Member, but ...string) []byte {
	for _, m := range list {
		if !isAnyOf(m, but) {
			dst = append(write.Name(dst, m.Name), m.Value...)
		}
	}
	return dst
}
