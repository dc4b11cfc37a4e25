package openai

import (
	"cmp"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/jsonx/write"
)

// fitChat converts a definition for Chat Completions.
func fitChat(def content.Tool) (content.Tool, string, bool) {
	t, why, ok := chatTarget().Tool(def)
	if !ok {
		return t, why, false
	}
	t, listed := completed(t)
	return t, also(why, listed), true
}

// sentName returns the tool name sent to the API: the definition of a custom tool has a name of its own.
func sentName(t content.Tool) string {
	if !t.Server() {
		return t.Name
	}

	list, _ := jsonx.Members(t.Extra.For(ChatAPI)) // checked when the tool was accepted
	inner, err := jsonx.Members(value(list, "custom"))
	if err != nil {
		return t.Name
	}
	return cmp.Or(firstText(inner, "name"), t.Name)
}

func appendTool(dst []byte, _ int, t content.Tool) []byte {
	further := t.Extra.For(ChatAPI)
	if t.Server() {
		return append(dst, further...)
	}

	dst = append(append(dst, `{"type":"function","function":{`...), write.OptString(nil, "name", t.Name)...)
	dst = write.OptString(dst, "description", t.Description)
	dst = append(write.Name(dst, "parameters"), t.Schema...)
	return append(appendFurther(dst, further, "type", "name", "description", "parameters"), "}}"...)
}
