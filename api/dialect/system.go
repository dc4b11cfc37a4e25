package dialect

import (
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
)

// SystemMessage returns a system message in the middle of a conversation, as a block of a user message. Instructions
// are usually system prompts (api.Request.System), which come before the conversation. A system message keeps its place
// after the blocks before it. OpenAI's APIs and Anthropic's newest models have a form for it. For another API, and for
// Anthropic unless name is "anthropic", it becomes a text of the user, with a note.
func SystemMessage(name, text string) content.Opaque {
	message := []jsonx.Member{{Name: "role", Value: `"system"`}, {Name: "content", Value: jsonx.Quote(text)}}
	switch name {
	case "openai-responses":
		message = append([]jsonx.Member{{Name: "type", Value: `"message"`}}, message...)
	case "anthropic":
		message[1].Value = `[{"type":"text","text":` + jsonx.Quote(text) + `}]`
	}
	return content.Opaque{API: name, JSON: jsonx.Object(message)}
}

// SystemText returns the text of a system message in the form of any API, and reports whether b is one.
func SystemText(b content.Opaque) (string, bool) {
	list, _ := jsonx.Members(b.JSON) // none for anything but an object
	role, list, _ := jsonx.TakeText(list, "role")
	if role != "system" && role != "developer" {
		return "", false
	}
	said, _ := jsonx.Take(list, "content")
	if text, ok := jsonx.Text(said); ok {
		return text, true
	}

	var texts []string
	items, err := jsonx.Items(said)
	for _, item := range items {
		part, _ := jsonx.Members(item)
		if text, _, ok := jsonx.TakeText(part, "text"); ok {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n"), err == nil && said != ""
}
