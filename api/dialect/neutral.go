package dialect

import (
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/safetext"
)

// maxLabel is how much of a name or a title a label or a note shows.
const maxLabel = 100

// maxNeutral is the maximum size of a text made from another provider's block, in bytes.
const maxNeutral = 4000

// neutral returns the readable text of a provider's own block, for other providers: its type and its text members, such
// as
//
//	[web_search_call: action: query: weather in Oslo]
//
// It returns "" if the block has no text readable by another model.
func neutral(b content.Opaque) string {
	list, err := jsonx.Members(b.JSON)
	if err != nil {
		return ""
	}

	kind, list, _ := jsonx.TakeText(list, "type")
	_, list = jsonx.Take(list, "thoughtSignature")
	if kind == "" && len(list) == 1 {
		// The one member of a Gemini part, beside its signature, is its type.
		kind = list[0].Name
		if inner, err := jsonx.Members(list[0].Value); err == nil {
			list = inner
		}
	}

	var n neutralText
	n.members(list, 0)
	if len(n.parts) == 0 {
		return ""
	}

	text := strings.Join(n.parts, "\n")
	if head := safetext.Head(text, maxNeutral); len(head) < len(text) {
		text = head + "…"
	}
	if kind == "" {
		kind = b.API
	}
	return "[" + safetext.Line(kind, maxLabel) + ": " + text + "]"
}

// neutralText collects the readable text of a block.
type neutralText struct {
	parts []string
	size  int // of parts, in bytes
}

// readableMembers are the members of providers' own blocks with text readable by a person.
var readableMembers = map[string]bool{
	"name": true, "input": true, "arguments": true, "args": true, "response": true, "action": true, "query": true, "queries": true, "code": true, "text": true, "title": true,
	"url": true, "content": true, "output": true, "outputs": true, "result": true, "results": true, "stdout": true, "stderr": true,
	"error_code": true, "logs": true, "language": true, "outcome": true, "command": true, "commands": true, "refusal": true, "error": true,
	"source": true, "sources": true, "message": true, "path": true, "filename": true, "snippet": true,
}

// members adds the readable members of list.
func (n *neutralText) members(list []jsonx.Member, depth int) {
	for _, m := range list {
		if readableMembers[m.Name] {
			n.value(m.Name, m.Value, depth)
		}
	}
}

// value adds the text in j, the value of the member name. Inputs of tools are added as JSON.
func (n *neutralText) value(name string, j content.JSON, depth int) {
	// Text beyond maxNeutral would be cut off anyway.
	if depth > 8 || n.size > maxNeutral {
		return
	}

	switch j[0] {
	case '"':
		if text, ok := jsonx.Text(j); ok {
			n.add(name, text)
		}
	case '{':
		if name == "input" || name == "arguments" || name == "args" {
			n.add(name, string(j))
			return
		}
		if list, err := jsonx.Members(j); err == nil {
			n.members(list, depth+1)
		}
	case '[':
		items, err := jsonx.Items(j)
		if err != nil {
			return
		}
		for _, item := range items {
			n.value(name, item, depth+1)
		}
	}
}

// add adds a text, after the name of its member unless that is generic.
func (n *neutralText) add(name, text string) {
	// Keep a little more than maxNeutral, to make the cut of the whole visible.
	text = strings.TrimSpace(safetext.Block(safetext.Head(text, maxNeutral+100)))

	// A long text without a space is data.
	if text == "" || len(text) > 512 && !strings.ContainsAny(text, " \n") {
		return
	}

	if name != "text" && name != "content" {
		text = name + ": " + text
	}
	n.parts = append(n.parts, text)
	n.size += len(text)
}
