package anthropic

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
)

const (
	plainText = "text/plain"
	pdf       = "application/pdf"
	// maxImage is the most bytes of base64 that an image may have.
	maxImage = 5 << 20
	maxName  = 64
)

var (
	idPattern       = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	serverIDPattern = regexp.MustCompile(`^srvtoolu_[a-zA-Z0-9_]+$`)
)

// rules is what the API accepts.
func rules(prefill bool) api.Rules {
	return api.Rules{
		Accept:    accept,
		ID:        idPattern.MatchString,
		CallsLast: true,
		EndsOpen: func(m content.Message) bool {
			last := m.Blocks.At(m.Blocks.Len() - 1)
			switch b := last.(type) {
			case content.Opaque:
				return resumable(b)
			case content.Text:
				return prefill
			}
			return false
		},
	}
}

// resumable reports whether an answer that ends in b was paused there and can be gone on with.
func resumable(b content.Opaque) bool {
	call, ok := serverCallOf(b)
	return ok && call.whole
}

// accept is api.Rules.Accept.
func accept(role content.Role, b content.Block, nested bool) (content.Block, string) {
	switch b := b.(type) {
	case content.Text:
		return acceptText(role, b, nested)
	case content.Image:
		return acceptImage(role, b)
	case content.Document:
		return acceptDocument(role, b)
	case content.Thinking:
		return acceptThinking(b)
	case content.ToolUse:
		return acceptToolUse(b)
	case content.ToolResult:
		return acceptToolResult(b)
	case content.Opaque:
		return acceptOpaque(role, b, nested)
	}
	return nil, "a block that the API has no form for"
}

func acceptText(role content.Role, b content.Text, nested bool) (content.Block, string) {
	if role == content.User && !nested && blank(b.Text) {
		return nil, "a text of nothing but space"
	}
	return b, ""
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

func acceptThinking(b content.Thinking) (content.Block, string) {
	switch {
	case b.Extra.API != "" && b.Extra.API != API:
		return nil, "thinking that only " + b.Extra.API + " can read"
	case b.Signature == "" && b.Redacted == "":
		return nil, "thinking without a signature"
	}
	return b, ""
}

var badInName = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

func acceptToolUse(b content.ToolUse) (content.Block, string) {
	var why []string
	if name := toolName(b.Name); name != b.Name {
		why = append(why, fmt.Sprintf("the tool's name %q became %q", b.Name, name))
		b.Name = name
	}
	if !b.Input.IsObject() {
		b.Input = wrapped(b.Input)
		why = append(why, "the arguments of "+b.Name+" were no object")
	}
	return b, strings.Join(why, "; ")
}

func toolName(name string) string {
	switch {
	case name == "":
		return "unnamed"
	case len(name) <= maxName && !badInName.MatchString(name):
		return name
	}
	name = badInName.ReplaceAllString(name, "_")
	return name[:min(len(name), maxName)]
}

// wrapped puts arguments that are no object into one.
func wrapped(input content.JSON) content.JSON {
	switch {
	case blank(string(input)):
		return "{}"
	case input.Valid():
		return object([]member{{"input", input}})
	}
	return object([]member{{"input", quote(string(input))}})
}

// acceptToolResult sees to it that a failed call's result is text, and that a result does not hold space alone.
func acceptToolResult(b content.ToolResult) (content.Block, string) {
	silent, mixed := true, false
	for _, inner := range b.Content.All() {
		said, isText := inner.(content.Text)
		silent = silent && isText && blank(said.Text)
		mixed = mixed || !isText
	}
	switch {
	case silent && b.IsError:
		b.Content = content.Words("The tool failed.")
		return b, "an error result that says nothing"
	case silent && b.Content.Len() > 0:
		b.Content = content.Blocks{}
		return b, "a result of nothing but space"
	case mixed && b.IsError:
		b.Content, _ = content.Of(append([]content.Block{content.Text{Text: "The tool failed:"}}, b.Content.Slice()...)...)
		b.IsError = false
		return b, "an error result that is more than text is not marked as an error"
	}
	return b, ""
}

func acceptImage(role content.Role, b content.Image) (content.Block, string) {
	if role == content.Assistant {
		return instead("image", b.Source, "", "the assistant's side cannot show images")
	}
	switch s := b.Source; {
	case s.Text != "":
		return instead("image", s, "", "an image cannot be text")
	case s.URL != "":
		if !strings.HasPrefix(s.URL, "https://") {
			return instead("image", s, "", "its URL is not https")
		}
	case s.Data != "":
		if why := badBase64(s.Data); why != "" {
			return instead("image", s, "", why)
		}
		if len(s.Data) > maxImage {
			return instead("image", s, "", fmt.Sprintf("it has %d bytes of base64, more than 5 MB", len(s.Data)))
		}
		kind := http.DetectContentType(head(s.Data))
		switch kind {
		case "image/jpeg", "image/png", "image/gif", "image/webp":
		default:
			return instead("image", s, "", "it is none of jpeg, png, gif and webp")
		}
		if kind != s.MediaType {
			why := fmt.Sprintf("an image of type %q is sent as %s, which it is", s.MediaType, kind)
			b.Source.MediaType = kind
			return b, why
		}
	}
	return b, ""
}

// head is the first bytes of valid base64, enough to tell what they are.
func head(data string) []byte {
	b, _ := base64.StdEncoding.DecodeString(data[:min(len(data), 64)])
	return b
}

func acceptDocument(role content.Role, b content.Document) (content.Block, string) {
	if role == content.Assistant {
		return instead("document", b.Source, b.Title, "the assistant's side cannot show documents")
	}
	s := b.Source
	switch {
	case s.URL != "" && !strings.HasPrefix(s.URL, "https://"):
		return instead("document", s, b.Title, "its URL is not https")
	case s.Text != "" && blank(s.Text):
		return instead("document", s, b.Title, "it holds nothing but space")
	case s.Data == "":
		return b, ""
	}
	if why := badBase64(s.Data); why != "" {
		return instead("document", s, b.Title, why)
	}
	if http.DetectContentType(head(s.Data)) == pdf {
		if s.MediaType != pdf {
			b.Source.MediaType = pdf
			return b, fmt.Sprintf("a document of type %q is sent as a PDF, which it is", s.MediaType)
		}
		return b, ""
	}
	if words, ok := readable(s); ok {
		b.Source = content.Source{MediaType: plainText, Text: words}
		return b, "a document of type " + s.MediaType + " is sent as plain text"
	}
	return instead("document", s, b.Title, "its type is neither PDF nor text")
}

// readable returns the text of a document that is text of some kind.
func readable(s content.Source) (string, bool) {
	kind := strings.ToLower(s.MediaType)
	if !strings.HasPrefix(kind, "text/") && !strings.Contains(kind, "json") && !strings.Contains(kind, "xml") && !strings.Contains(kind, "yaml") {
		return "", false
	}
	data, err := base64.StdEncoding.DecodeString(s.Data)
	return string(data), err == nil && utf8.Valid(data) && !blank(string(data))
}

// badBase64 says why s is not standard base64; "" when it is.
func badBase64(s string) string {
	body := strings.TrimRight(s, "=")
	if len(s)%4 != 0 || len(s)-len(body) > 2 || body == "" {
		return "its data is not base64"
	}
	for i := 0; i < len(body); i++ {
		c := body[i]
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '+' && c != '/' {
			return "its data is not base64"
		}
	}
	if _, err := base64.StdEncoding.Strict().DecodeString(s[len(s)-4:]); err != nil {
		return "its data is not base64"
	}
	return ""
}

// instead is the text that stands in the place of what the API would refuse.
func instead(what string, s content.Source, title, why string) (content.Block, string) {
	label := what
	if title != "" {
		label += " " + quoted(title)
	}
	if s.MediaType != "" {
		label += " (" + s.MediaType + ")"
	}
	if s.URL != "" && len(s.URL) <= 2048 && !strings.HasPrefix(s.URL, "data:") {
		label += " " + s.URL
	}
	return content.Text{Text: "[" + label + " left out: " + why + "]"}, what + " left out: " + why
}

func quoted(s string) string { return `"` + s + `"` }

// opaqueKind is the type of a block that is only carried.
func opaqueKind(b content.Opaque) string {
	var tag struct {
		Type string `json:"type"`
	}
	_ = b.JSON.Decode(&tag) // a type that is no string is none
	return tag.Type
}

// acceptOpaque takes the API's own blocks where they may stand. One that is of a type that Plait models is taken as if it were
// written as such.
func acceptOpaque(role content.Role, b content.Opaque, nested bool) (content.Block, string) {
	if b.API != API {
		return nil, "a block that only " + b.API + " can read"
	}
	kind := opaqueKind(b)
	switch decoded, err := decodeBlock(b.JSON); decoded.(type) {
	case content.Opaque:
	case content.Text, content.Image, content.Document, content.Thinking:
		if t, ok := decoded.(content.Text); ok && t.Text == "" {
			return nil, "an empty text"
		}
		if _, ok := decoded.(content.Thinking); ok && (nested || role == content.User) {
			return nil, "thinking of the user's side"
		}
		taken, why := accept(role, decoded, nested)
		if why == "" {
			why = "an opaque " + kind + " is sent as one that Plait reads"
		}
		return taken, why
	default:
		if err != nil {
			return nil, "a block that is not JSON"
		}
		return nil, "an opaque " + kind
	}
	if !mayStand(kind, role, nested) || kind == "document" && !inline(b) {
		return nil, "a block of type " + quoted(kind) + " cannot stand here"
	}
	return b, ""
}

// mayStand reports whether a block of that type, which Plait only carries, may stand on that side or inside a tool result.
func mayStand(kind string, role content.Role, nested bool) bool {
	switch kind {
	case "", "text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image":
		return false
	case "document", "search_result":
		return role == content.User
	case "tool_reference":
		return nested
	case "container_upload":
		return role == content.User && !nested
	}
	return role == content.Assistant && !nested
}

// inline reports whether a document is one of the kind that holds blocks, the only one that Plait does not read.
func inline(b content.Opaque) bool {
	var document struct {
		Source struct {
			Type    string  `json:"type"`
			Content rawJSON `json:"content"`
		} `json:"source"`
	}
	return b.JSON.Decode(&document) == nil && document.Source.Type == "content" && document.Source.Content != nil
}
