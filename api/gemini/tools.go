package gemini

import (
	"slices"
	"strings"

	"github.com/plait-dev/plait/api/internal/roundtrip"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/jsonx/write"
)

// keepTools keeps the acceptable definitions, and separates functions from tools run by the API.
func (b *builder) keepTools(tools []content.Tool) {
	b.KeepTools(tools, 0, fit, func(t content.Tool) string {
		if t.Server() {
			return string(t.Extra.JSON) // no name of a function is an object
		}
		return t.Name
	})

	for _, t := range b.Tools {
		if t.Server() {
			b.servers = append(b.servers, t)
		} else {
			b.functions = append(b.functions, t)
		}
	}
	if b.older() && len(b.functions) > 0 && len(b.servers) > 0 {
		b.servers = nil
		b.Note("tool", "the API's own tools are left out: the model does not accept them together with functions")
	}
}

// fit converts a definition. The Extra of a tool run by the API becomes an entry of "tools".
func fit(def content.Tool) (content.Tool, string, bool) {
	t, why, ok := target().Tool(def)
	if !ok || !t.Server() {
		return t, why, ok
	}

	// The API has no member "type". It is in the Extra for other readers.
	list, _ := jsonx.Members(t.Extra.For(API)) // it was checked
	_, list = jsonx.Take(list, "type")
	if len(list) == 0 || slices.ContainsFunc(list, notOurs) {
		return t, "it is not an entry for the API's tools", false
	}
	t.Extra.JSON = jsonx.Object(list)
	return t, "", true
}

// notOurs reports whether a member cannot belong to a server tool's entry: the value of an entry is the tool's own
// configuration.
func notOurs(m jsonx.Member) bool {
	return m.Name == "functionDeclarations" ||
		!strings.HasPrefix(string(m.Value), "{") && !strings.HasPrefix(string(m.Value), "[")
}

// appendTools appends all functions as one entry, and each tool run by the API as another.
func (b *builder) appendTools(dst []byte) []byte {
	var entries []content.JSON
	if len(b.functions) > 0 {
		functions := roundtrip.AppendList([]byte{'{'}, "functionDeclarations", b.functions, appendFunction)
		entries = append(entries, content.JSON(append(functions, '}')))
	}
	for _, t := range b.servers {
		entries = append(entries, t.Extra.JSON)
	}
	return roundtrip.AppendList(dst, "tools", entries, func(dst []byte, _ int, entry content.JSON) []byte {
		return append(dst, entry...)
	})
}

// appendFunction appends the declaration of a function.
func appendFunction(dst []byte, _ int, t content.Tool) []byte {
	dst = write.OptString(append(dst, '{'), "name", t.Name)
	dst = write.OptString(dst, "description", t.Description)
	dst = append(write.Name(dst, "parametersJsonSchema"), t.Schema...)
	further, _ := jsonx.Members(t.Extra.For(API)) // none without an Extra
	return append(appendFurther(dst, further, "name", "description", "parameters", "parametersJsonSchema"), '}')
}
