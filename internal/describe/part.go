package describe

import (
	"bytes"
	"encoding/base64"
	"iter"
	"strings"

	"github.com/goccy/go-json/jsontext"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/safetext"
)

// Form is the layout of a part.
type Form string

// The forms. Each kind of block has one of them.
const (
	Said     Form = "said"     // text: Text is shown unchanged
	Thought  Form = "thought"  // thinking: Text is shown as thinking, or not at all
	Asked    Form = "asked"    // a tool call: Name is the tool, JSON the arguments
	Returned Form = "returned" // a tool result: Content is its content
	Shown    Form = "shown"    // everything else: shown by its Word; Text or JSON is the content
)

// Part describes one block of a node.
type Part struct {
	Form Form
	// Name is the tool of a call.
	Name string
	// ID is the provider's ID of a call, or the ID of a result's call.
	ID string
	// Text is a text, thinking, or the text of a document.
	Text string
	// JSON is the arguments of a call, or a block that Plait does not interpret.
	JSON content.JSON
	// Source locates the bytes of an image or a document.
	Source content.Source
	// Content is the content of a result. Failed reports whether its call failed.
	Content content.Blocks
	Failed  bool
	// Member is the member of the block's saved form with Text, JSON, Content or Source, such as "source.text". It is
	// "" if the block itself is the content. JSON that cannot be written unchanged is saved under Member with "_text".
	Member string
	// Extra holds the fields of the block that are specific to one API.
	Extra content.Extra
	// Signature and Hidden belong to thinking. They are not readable.
	Signature, Hidden string

	label [2]string // joined only by Label: a part without a label needs no string
}

// Parts yields a part for each of the blocks, in order.
func Parts(blocks content.Blocks) iter.Seq[Part] {
	return func(yield func(Part) bool) {
		for _, b := range blocks.All() {
			if !yield(part(b)) {
				return
			}
		}
	}
}

func part(b content.Block) Part {
	switch b := b.(type) {
	case content.Text:
		return Part{Form: Said, label: [2]string{"text"}, Text: b.Text, Member: "text", Extra: b.Extra}
	case content.Thinking:
		return Part{Form: Thought, label: [2]string{"thinking"}, Text: b.Text, Member: "text",
			Signature: b.Signature, Hidden: b.Redacted, Extra: b.Extra}
	case content.ToolUse:
		return Part{Form: Asked, label: [2]string{"call of ", b.Name}, Name: b.Name, ID: b.ID, JSON: b.Input,
			Member: "input", Extra: b.Extra}
	case content.CutToolUse:
		return Part{Form: Shown, label: [2]string{"cut-off call of ", b.Name}, JSON: b.Input, Member: "input"}
	case content.ToolResult:
		return Part{Form: Returned, label: [2]string{"result"}, ID: b.CallID, Content: b.Content, Failed: b.IsError,
			Member: "content", Extra: b.Extra}

	case content.Image:
		return Part{Form: Shown, label: [2]string{"image"}, Source: b.Source, Member: "source", Extra: b.Extra}
	case content.Document:
		return Part{Form: Shown, label: [2]string{"document ", b.Title}, Text: b.Source.Text, Source: b.Source,
			Member: "source.text", Extra: b.Extra}
	case content.Opaque:
		return Part{Form: Shown, label: [2]string{b.API, " block"}, JSON: b.JSON, Member: "json"}
	case content.Unknown:
		return Part{Form: Shown, label: [2]string{"unknown block"}, JSON: b.JSON}
	}
	panic("describe: a variant of content.Block that part does not know")
}

// Label returns the name of the part: "text", "image", "document Report", "call of get_weather", "anthropic block".
func (p Part) Label() string { return strings.TrimSpace(p.label[0] + p.label[1]) }

// Word returns the name of p in brackets: "[image image/png]", "[document Report application/pdf]", "[anthropic
// block]", "[thinking]".
func (p Part) Word() string { return p.WordWith("") }

// WordWith is like Word, with a detail at the end: "[image image/png, 68 bytes]".
func (p Part) WordWith(detail string) string {
	s := p.Source
	word := strings.Join(strings.Fields(p.Label()+" "+s.MediaType+" "+s.URL+" "+s.FileID), " ")
	return "[" + word + detail + "]"
}

// Size returns the size of an image or a document, such as "68 bytes". It returns "" if the conversation has only the
// address.
func Size(s content.Source) string {
	if s.Data == "" {
		return ""
	}
	padding := strings.Count(s.Data[max(len(s.Data)-2, 0):], "=")
	return Count(base64.StdEncoding.DecodedLen(len(s.Data))-padding, "byte")
}

// Text returns blocks as text, joined by line breaks. For a block without text, it has the block's Word.
func Text(blocks content.Blocks) string {
	var list []string
	for p := range Parts(blocks) {
		text := p.Text
		if text == "" && p.Form == Shown {
			text = safetext.Escape(p.Word(), 200)
		}
		if text != "" {
			list = append(list, text)
		}
	}
	return strings.Join(list, "\n")
}

// Arguments returns the arguments of a tool call on one line of at most limit characters. An object is formatted as
// "city: Tokyo, days: 3". Other text is returned as it is.
func Arguments(input content.JSON, limit int) string {
	const nameChars = 48
	clip := func(s string, chars int) string { return safetext.Clip(s, 1, chars) }

	// The arguments of other programs may repeat a name or hold invalid UTF-8. They are shown all the same.
	dec := jsontext.NewDecoder(bytes.NewBufferString(string(input)),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '{' {
		return clip(string(input), limit)
	}

	// Do not decode further members after the limit: they would be cut off.
	var b strings.Builder
	for dec.PeekKind() != '}' && b.Len() <= limit {
		key, err := dec.ReadToken()
		if err != nil {
			return clip(string(input), limit)
		}
		member := clip(key.String(), nameChars)

		value, err := dec.ReadValue()
		if err != nil {
			return clip(string(input), limit)
		}
		if value.Kind() == '"' {
			value, _ = jsontext.AppendUnquote(nil, value) // the error reports invalid UTF-8; it becomes U+FFFD
		}

		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(member + ": " + clip(string(value), limit))
	}

	if dec.PeekKind() != '}' {
		b.WriteString(", …")
	}
	return clip(b.String(), limit)
}
