package dialect

import (
	"strings"
	"unicode"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/wire"
)

// mostNeutral is how many bytes of a foreign block are told to another provider.
const mostNeutral = 4000

// neutral is what a block of one provider's own says to the others: its type and the words in it, such as
//
//	[web_search_call: action: query: weather in Oslo]
//
// It is "" where the block says nothing that another model could read.
func neutral(b content.Opaque) string {
	list, err := wire.Members(b.JSON)
	if err != nil {
		return ""
	}
	kind, list, _ := wire.TakeText(list, "type")
	if kind == "" && len(list) == 1 { // Gemini's parts are named by their one member
		kind = list[0].Name
		if inner, err := wire.Members(list[0].Value); err == nil {
			list = inner
		}
	}
	var n neutralWords
	n.members(list, 0)
	if len(n.words) == 0 {
		return ""
	}
	said := strings.Join(n.words, "\n")
	if len(said) > mostNeutral {
		said = strings.ToValidUTF8(said[:mostNeutral], "") + "…"
	}
	if kind == "" {
		kind = b.API
	}
	return "[" + short(kind) + ": " + said + "]"
}

// tame is text of another model's without what a reader does not see: control characters, and those that turn or hide other text.
// Line breaks and tabs stay, and so do the joiners of letters and emoji.
func tame(text string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == '\n' || c == '\t' || c == '\u200c' || c == '\u200d':
			return c
		case unicode.IsControl(c) || unicode.Is(unicode.Cf, c):
			return -1
		}
		return c
	}, text)
}

// short is a word of another's for a label or a note: on one line, and not long.
func short(word string) string {
	const most = 100
	if len(word) > most {
		word = strings.ToValidUTF8(word[:most], "") + "…"
	}
	return strings.Join(strings.Fields(tame(word)), " ")
}

type neutralWords struct {
	words []string
	size  int
}

// telling is the members of the providers' own blocks that a person could read.
var telling = map[string]bool{
	"name": true, "input": true, "arguments": true, "action": true, "query": true, "queries": true, "code": true, "text": true, "title": true,
	"url": true, "content": true, "output": true, "outputs": true, "result": true, "results": true, "stdout": true, "stderr": true,
	"error_code": true, "logs": true, "language": true, "outcome": true, "command": true, "commands": true, "refusal": true, "error": true,
	"source": true, "sources": true, "message": true, "path": true, "filename": true, "snippet": true,
}

func (n *neutralWords) members(list []wire.Member, depth int) {
	for _, m := range list {
		if telling[m.Name] {
			n.value(m.Name, m.Value, depth)
		}
	}
}

// value adds what j says. Inputs of tools are shown as they are; long words without a space are data, not words.
func (n *neutralWords) value(name string, j content.JSON, depth int) {
	if depth > 8 || n.size > mostNeutral {
		return
	}
	switch j[0] {
	case '"':
		if said, ok := wire.Text(j); ok {
			n.add(name, said)
		}
	case '{':
		if name == "input" || name == "arguments" {
			n.add(name, string(j))
			return
		}
		if list, err := wire.Members(j); err == nil {
			n.members(list, depth+1)
		}
	case '[':
		var items []wire.Raw
		if j.Decode(&items) != nil {
			return
		}
		for _, item := range items {
			n.value(name, content.JSON(item), depth+1)
		}
	}
}

func (n *neutralWords) add(name, said string) {
	if len(said) > mostNeutral {
		said = strings.ToValidUTF8(said[:mostNeutral], "") + "…"
	}
	said = strings.TrimSpace(tame(said))
	if said == "" || len(said) > 512 && !strings.ContainsAny(said, " \n") {
		return
	}
	if name != "text" && name != "content" {
		said = name + ": " + said
	}
	n.words = append(n.words, said)
	n.size += len(said)
}
