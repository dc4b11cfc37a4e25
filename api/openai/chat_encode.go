package openai

import (
	"strconv"
	"strings"

	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/api/internal/roundtrip"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/jsonx/write"
	"github.com/plait-dev/plait/internal/servers"
	"github.com/plait-dev/plait/internal/wire"
)

// chatSupport holds the differences between models behind the API in the requests they accept.
type chatSupport struct {
	thinking, audio bool   // the model accepts them
	endsOpen        bool   // the conversation may end with a text of the assistant
	thought         string // the member for thinking sent back; "" is the original one
	files           servers.Files
	plain           bool // only functions and their calls, and parts known to Plait
	shortIDs        bool // the IDs of calls must have nine letters and digits
}

// chatEncodings holds the encodings of conversations: an encoding is identified by its address.
var chatEncodings wire.Cache[chatSupport, *dialect.Encoding]

func (s chatSupport) encoding() *dialect.Encoding {
	return &dialect.Encoding{Rules: chatRules(s), Append: appendChat}
}

// appendChat writes a message in the form of the API. A user message becomes one message of role "tool" for each tool
// result, and one of role "user" with everything else.
func appendChat(dst []byte, m content.Message, _ int) []byte {
	if m.Role == content.Assistant {
		return appendAssistant(dst, m)
	}

	var u userParts
	begin := len(dst)

	// Results come first: the API wants them right after the calls.
	for _, b := range m.Blocks.All() {
		if r, ok := b.(content.ToolResult); ok {
			dst = u.appendResult(another(dst, begin), r)
		}
	}

	// A system message is a message of its own. The name of a user begins one.
	end := func() {
		if len(u.blocks) > 0 {
			dst = appendParts(append(another(dst, begin), `{"role":"user"`...), u.blocks)
			dst = append(write.OptString(dst, "name", u.name), '}')
		}
		u.blocks, u.name = nil, ""
	}
	for _, b := range m.Blocks.All() {
		o, _ := b.(content.Opaque)
		switch name := userName(o); {
		case isChatSystem(o):
			end()
			dst = append(another(dst, begin), o.JSON...)
		case name != "":
			end()
			u.name = name
		default:
			if _, ok := b.(content.ToolResult); !ok {
				u.blocks = append(u.blocks, b)
			}
		}
	}
	end()
	return dst
}

// isChatSystem reports whether a block is a system message between the others.
func isChatSystem(o content.Opaque) bool {
	if o.API != ChatAPI {
		return false
	}
	_, ok := dialect.SystemText(o)
	return ok
}

// userName returns the name of a user, in the block before the user's content. It returns "" for any other block.
func userName(o content.Opaque) string {
	if o.API != ChatAPI {
		return ""
	}
	list, _ := jsonx.Members(o.JSON) // checked when the block was made
	if len(list) != 1 {
		return ""
	}
	name, _, _ := jsonx.TakeText(list, "name")
	return name
}

// another appends a comma if anything was written since begin.
func another(dst []byte, begin int) []byte {
	if len(dst) > begin {
		dst = append(dst, ',')
	}
	return dst
}

// userParts collects the content of a user message: all of it but the texts of tool results.
type userParts struct {
	blocks []content.Block
	name   string // of the user
	shown  int    // the number of attachments of tool results so far
}

// appendResult writes a tool result. A tool message can only hold text: images and documents move to the next user
// message, and a text in the result refers to them. A failed call is marked by a text, too.
func (u *userParts) appendResult(dst []byte, r content.ToolResult) []byte {
	dst = write.String(append(dst, `{"role":"tool"`...), "tool_call_id", r.CallID)

	var texts []content.Block
	for _, b := range r.Content.All() {
		if t, ok := b.(content.Text); ok {
			texts = append(texts, t)
			continue
		}

		// The result and the text before the attachment share a label, for the model to match them.
		u.shown++
		name := "attachment " + strconv.Itoa(u.shown)
		texts = append(texts, content.Text{Text: "[" + name + ": see the user's message after the results]"})
		u.blocks = append(u.blocks, content.Text{Text: "[" + name + ", of the result of " + r.CallID + ":]"}, b)
	}

	if r.IsError {
		texts = failed(texts)
	}

	dst = appendParts(dst, texts)
	if further := r.Extra.For(ChatAPI); further != "" {
		dst = appendFurther(dst, further, "role", "tool_call_id", "content")
	}
	return append(dst, '}')
}

// failed returns the texts of a failed call's result. The first begins with "Error", in upper or lower case; if it does
// not, "Error: " is prepended.
func failed(texts []content.Block) []content.Block {
	if len(texts) == 0 {
		return []content.Block{content.Text{Text: "Error"}}
	}

	first := texts[0].(content.Text)
	if !strings.HasPrefix(strings.ToLower(first.Text), "error") {
		first.Text = "Error: " + first.Text
	}
	return append([]content.Block{first}, texts[1:]...)
}

// appendParts writes the content of a message: a string for one plain text or none, otherwise a list of parts.
func appendParts(dst []byte, blocks []content.Block) []byte {
	if len(blocks) == 0 {
		return write.String(dst, "content", "")
	}
	if t, ok := blocks[0].(content.Text); ok && len(blocks) == 1 && t.Extra.For(ChatAPI) == "" {
		return write.String(dst, "content", t.Text)
	}

	dst = append(write.Name(dst, "content"), '[')
	begin := len(dst)
	for _, b := range blocks {
		dst = appendPart(another(dst, begin), b)
	}
	return append(dst, ']')
}

// appendPart writes a content part.
func appendPart(dst []byte, b content.Block) []byte {
	switch b := b.(type) {
	case content.Text:
		dst = write.String(append(dst, `{"type":"text"`...), "text", b.Text)
		dst = appendFurther(dst, b.Extra.For(ChatAPI), "type", "text", "audio", "annotations", "refusal")
	case content.Image:
		dst = appendImage(dst, b)
	case content.Document:
		dst = appendDocument(dst, b)
	case content.Opaque:
		return append(dst, b.JSON...)
	}
	return append(dst, '}')
}

func appendImage(dst []byte, b content.Image) []byte {
	further, _ := jsonx.Members(b.Extra.For(ChatAPI)) // checked when the block was made
	detail, further := jsonx.Take(further, "detail")

	// The detail belongs inside image_url, the other members beside it.
	dst = append(write.Name(append(dst, `{"type":"image_url"`...), "image_url"), '{')
	if b.Source.URL != "" {
		dst = write.String(dst, "url", b.Source.URL)
	} else {
		dst = write.String(dst, "url", dataURL(b.Source))
	}

	if detail != "" {
		dst = append(write.Name(dst, "detail"), detail...)
	}

	return roundtrip.AppendMembers(append(dst, '}'), further, "type", "image_url")
}

func appendDocument(dst []byte, b content.Document) []byte {
	further := b.Extra.For(ChatAPI)

	if strings.HasPrefix(b.Source.MediaType, "audio/") {
		dst = append(write.Name(append(dst, `{"type":"input_audio"`...), "input_audio"), '{')
		dst = write.String(
			write.String(dst, "data", b.Source.Data), "format", audioFormat(b.Source.MediaType),
		)
		return appendFurther(append(dst, '}'), further, "type", "input_audio")
	}

	dst = append(write.Name(append(dst, `{"type":"file"`...), "file"), '{')
	if b.Source.FileID != "" {
		dst = write.OptString(write.String(dst, "file_id", b.Source.FileID), "filename", b.Title)
		return appendFurther(append(dst, '}'), further, "type", "file")
	}

	name := b.Title
	if name == "" {
		name = "document.pdf" // the API requires a name
	}
	dst = write.String(write.String(dst, "filename", name), "file_data", dataURL(b.Source))
	return appendFurther(append(dst, '}'), further, "type", "file")
}

func dataURL(s content.Source) string { return "data:" + s.MediaType + ";base64," + s.Data }

// audioFormat returns the API's name for an audio media type.
func audioFormat(mediaType string) string {
	if mediaType == "audio/mpeg" {
		return "mp3"
	}
	return strings.TrimPrefix(mediaType, "audio/")
}

// appendFurther writes the members of an Extra except those named in but.
func appendFurther(dst []byte, further content.JSON, but ...string) []byte {
	if further == "" || further == "{}" {
		return dst
	}
	list, _ := jsonx.Members(further) // checked when the block was made
	return roundtrip.AppendMembers(dst, list, but...)
}
