package openai

import (
	"cmp"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/jsonx/write"
)

// keepTools keeps the tool definitions acceptable to the API.
func (b *chatBuilder) keepTools(tools []content.Tool) {
	for _, t := range tools {
		fit, why, ok := chatTarget().Tool(t)
		switch {
		// The rules for switching already refused it, for the reason in why.
		case !ok:
		case b.has(sentName(fit)):
			ok, why = false, "it is declared twice"
		case len(b.tools) == maxChatTools:
			ok, why = false, "there are more than the API accepts"
		}

		if !ok {
			b.note(api.RepairTool, "the tool %q is left out: %s", t.Name, why)
			continue
		}

		if why != "" {
			b.note(api.RepairTool, "the tool %q: %s", t.Name, why)
		}
		b.tools = append(b.tools, completed(fit, b.note))
	}
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

func (b *chatBuilder) appendTools(dst []byte) []byte {
	if len(b.tools) == 0 {
		return dst
	}

	dst = append(write.Name(dst, "tools"), '[')
	for _, t := range b.tools {
		dst = appendTool(write.Comma(dst), t)
	}
	return append(dst, ']')
}

func appendTool(dst []byte, t content.Tool) []byte {
	further := t.Extra.For(ChatAPI)
	if t.Server() {
		return append(dst, further...)
	}

	dst = append(append(dst, `{"type":"function","function":{`...), write.OptString(nil, "name", t.Name)...)
	dst = write.OptString(dst, "description", t.Description)
	dst = append(write.Name(dst, "parameters"), t.Schema...)
	return append(appendFurther(dst, further, "type", "name", "description", "parameters"), "}}"...)
}
