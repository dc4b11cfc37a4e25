package gemini

import (
	"cmp"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
)

var target = sync.OnceValue(func() dialect.Target {
	t, _ := dialect.TargetOf(API)
	return t
})

// rules returns the rules of the API for conversations.
func rules() dialect.Rules {
	return dialect.Rules{Accept: accept, ID: target().FitsID, NoID: true, UserFirst: true}
}

// accept is the table of the API's rules for each kind of block. If a row does not return, the rules for switching
// providers decide.
func accept(role content.Role, block content.Block, nested bool) (content.Block, string) {
	switch b := block.(type) {
	case content.Text:
		if role == content.User && !nested && b.Text != "" {
			return b, "" // even if it is white space: only this API accepts such a text
		}
	case content.Document:
		if role == content.User && !nested && isText(b) {
			return b, ""
		}
	case content.Image, content.ToolUse, content.ToolResult:
	case content.Thinking:
		if b.Extra.API == "" || b.Redacted != "" {
			return nil, "thinking that only another API can read"
		}
		if b.Extra.API == API {
			return acceptThinking(b)
		}
	case content.Opaque:
		if b.API == API {
			return acceptOwn(role, b, nested)
		}
	case content.CutToolUse, content.Unknown: // never sent
	}

	return target().Accept(role, block, nested)
}

// acceptThinking accepts thinking of this API, unless it is empty or its signature is malformed.
func acceptThinking(b content.Thinking) (content.Block, string) {
	switch {
	case !isBase64(b.Signature):
		return nil, "a thinking block whose signature is not base64"
	case b.Text == "" && b.Signature == "" && len(furtherOf(b.Extra)) == 0:
		return nil, "empty thinking"
	}
	return b, ""
}

// isBase64 reports whether s is base64 of either alphabet, as the API accepts it.
func isBase64(s string) bool {
	s = strings.TrimRight(s, "=")
	bad := strings.IndexFunc(s, func(c rune) bool {
		return (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && !strings.ContainsRune("+/-_", c)
	})
	return bad < 0 && len(s)%4 != 1
}

// textFiles are the types of text accepted by the API as files, according to Google (ai.google.dev, "Document
// understanding"; cloud.google.com, "Document understanding", supported MIME types). Text of other types is sent as
// text.
var textFiles = []string{
	"text/plain", "text/html", "text/css", "text/csv", "text/xml", "text/rtf",
	"text/markdown", "text/md", "text/javascript", "text/x-python",
}

// isText reports whether a document is a text accepted by the API as a file. A document with a title is not: it is sent
// as text, to keep the title.
func isText(b content.Document) bool {
	if b.Source.Data == "" || b.Title != "" || !slices.Contains(textFiles, b.Source.MediaType) {
		return false
	}

	data, err := base64.StdEncoding.Strict().DecodeString(b.Source.Data)
	return err == nil && utf8.Valid(data) && strings.TrimSpace(string(data)) != "" &&
		!strings.ContainsAny(b.Source.Data, "\r\n") &&
		strings.HasPrefix(http.DetectContentType(data), "text/")
}

// emptyText is the part of an empty user message, in a request with nothing but a system instruction. Import keeps it,
// because the API requires a content.
const emptyText content.JSON = `{"text":""}`

// acceptOwn accepts the API's own parts in the positions allowed by the API. A part known to Plait is decoded, and
// treated as such.
func acceptOwn(role content.Role, o content.Opaque, nested bool) (content.Block, string) {
	const instead = "an opaque part is sent as a block that Plait knows"

	b, err := decodePart(o.JSON)
	if err != nil {
		return nil, "an invalid part"
	}

	// A part known to Plait keeps the rules for its type. Only an Opaque stays as it is.
	switch b := b.(type) {
	case nil:
		if role == content.User && !nested && o.JSON == emptyText {
			return o, ""
		}
		return nil, "an empty part"
	case content.ToolUse:
		return nil, "an opaque functionCall"
	case content.Thinking:
		if role == content.User || nested {
			return nil, "thinking in a user message"
		}
	case content.Opaque:
		if why := misplaced(role, b, nested); why != "" {
			return nil, why
		}
		return acceptFile(role, o)
	}

	accepted, why := accept(role, b, nested)
	return accepted, cmp.Or(why, instead)
}

// acceptFile accepts an opaque part. If it is a file with members unknown to Plait, the file itself must be acceptable
// to the API.
func acceptFile(role content.Role, o content.Opaque) (content.Block, string) {
	list, _ := jsonx.Members(o.JSON) // it was checked when the block was made
	for _, kind := range []string{"inlineData", "fileData"} {
		file, _ := jsonx.Take(list, kind)
		if file == "" {
			continue
		}

		// Judge the file by its known members.
		inside, _ := jsonx.Members(file)
		inside = slices.DeleteFunc(inside, func(m jsonx.Member) bool { return !slices.Contains(fileMembers, m.Name) })
		b, ok := knownMedia([]jsonx.Member{{Name: kind, Value: jsonx.Object(inside)}})
		if !ok {
			return nil, "a file part without a file"
		}

		if accepted, why := accept(role, b, false); why != "" {
			return accepted, why
		}
	}
	return o, ""
}

var fileMembers = []string{"mimeType", "data", "fileUri"}

// misplaced returns the reason if an unknown part cannot be sent; "" if it can. A part must have one kind of data.
func misplaced(role content.Role, o content.Opaque, nested bool) string {
	list, _ := jsonx.Members(o.JSON) // it was checked when the block was made

	kind, value := "", content.JSON("")
	for _, m := range list {
		switch {
		case m.Name == "text" && m.Value != `""`, slices.Contains(about, m.Name):
			return "an invalid part"
		case slices.Contains(beside, m.Name):
		case kind != "":
			return "a part with two kinds of data"
		default:
			kind, value = m.Name, m.Value
		}
	}

	signature, _ := jsonx.Take(list, thoughtSignature)
	text, isString := jsonx.Text(signature)
	switch {
	case signature != "" && (!isString || !isBase64(text)):
		return "a part whose signature is not base64"
	case kind == "text" && signature == "":
		return "a part with an empty text"
	case kind != "text" && !value.IsObject():
		return "an invalid part"
	case kind == "functionCall" || kind == "functionResponse":
		return "an opaque " + kind
	case nested, role == content.User && kind != "inlineData" && kind != "fileData":
		return "a part of kind " + kind + " is not allowed here"
	}
	return ""
}
