package describe

import (
	"iter"
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/safetext"
)

// Form is how a part of what a node says is laid out.
type Form string

// The forms. Each kind of block has one of them.
const (
	Said     Form = "said"     // words: Text is shown as it is
	Thought  Form = "thought"  // thinking: Text is shown as thinking, or not at all
	Asked    Form = "asked"    // a tool call: Name is the tool, JSON the arguments
	Returned Form = "returned" // a tool result: Content is what it holds
	Shown    Form = "shown"    // everything else: Word stands for it, Text or JSON is what it holds
)

// Part is one part of what a node says.
type Part struct {
	Form Form
	// Name is the tool of a call.
	Name string
	// ID is the provider's id of a call, or of the call that a result answers.
	ID string
	// Text is what is said or thought, or the text of a document.
	Text string
	// JSON is the arguments of a call, or a block that Plait does not interpret.
	JSON content.JSON
	// Source is where the bytes of an image or a document are.
	Source content.Source
	// Content is what a result holds, and Failed whether its call failed.
	Content content.Blocks
	Failed  bool
	// Extra is what the block holds for one API beyond the fields above.
	Extra content.Extra
	// Signature and Hidden are those of thinking; they say nothing to a person.
	Signature, Hidden string

	label [2]string // joined by Label, so that who asks for no label pays for none
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
		return Part{Form: Said, label: [2]string{"text"}, Text: b.Text, Extra: b.Extra}
	case content.Thinking:
		return Part{Form: Thought, label: [2]string{"thinking"}, Text: b.Text, Signature: b.Signature, Hidden: b.Redacted, Extra: b.Extra}
	case content.ToolUse:
		return Part{Form: Asked, label: [2]string{"call of ", b.Name}, Name: b.Name, ID: b.ID, JSON: b.Input, Extra: b.Extra}
	case content.CutToolUse:
		return Part{Form: Shown, label: [2]string{"cut-off call of ", b.Name}, JSON: b.Input}
	case content.ToolResult:
		return Part{Form: Returned, label: [2]string{"result"}, ID: b.CallID, Content: b.Content, Failed: b.IsError, Extra: b.Extra}
	case content.Image:
		return Part{Form: Shown, label: [2]string{"image"}, Source: b.Source, Extra: b.Extra}
	case content.Document:
		return Part{Form: Shown, label: [2]string{"document ", b.Title}, Text: b.Source.Text, Source: b.Source, Extra: b.Extra}
	case content.Opaque:
		return Part{Form: Shown, label: [2]string{b.API, " block"}, JSON: b.JSON}
	case content.Unknown:
		return Part{Form: Shown, label: [2]string{"unknown block"}, JSON: b.JSON}
	}
	panic("describe: a variant of content.Block that part does not know")
}

// Label names the part: "text", "image", "document Report", "call of get_weather", "anthropic block".
func (p Part) Label() string { return strings.TrimSpace(p.label[0] + p.label[1]) }

// Word returns a word in brackets for p: "[image image/png]", "[document Report application/pdf]", "[anthropic block]", "[thinking]".
func (p Part) Word() string { return p.WordWith("") }

// WordWith returns the word with a detail at its end: "[image image/png, 68 bytes]".
func (p Part) WordWith(detail string) string {
	s := p.Source
	word := strings.Join(strings.Fields(p.Label()+" "+s.MediaType+" "+s.URL+" "+s.FileID), " ")
	return "[" + word + detail + "]"
}

// Text returns blocks as text, one below the other: a text as it is, and a word in brackets for a block that has none.
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
