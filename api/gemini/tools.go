package gemini

import (
	"slices"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/jsonx/write"
)

// keepTools keeps the acceptable definitions, in the API's form.
func (b *builder) keepTools(tools []content.Tool) {
	for _, def := range tools {
		t, why, ok := target().Tool(def)
		if ok && t.Server() {
			ok, why = b.keepServer(t)
		} else if ok && b.declared(t.Name) {
			ok, why = false, "it is declared twice"
		}

		switch {
		case !ok:
			b.note(api.RepairTool, "the tool %q is left out: %s", def.Name, why)
			continue
		case why != "":
			b.note(api.RepairTool, "the tool %q: %s", def.Name, why)
		}

		// keepServer has already kept a tool run by the API.
		if !t.Server() {
			b.functions = append(b.functions, t)
		}
	}
}

// keepServer keeps a tool run by the API itself. Its Extra is an entry of "tools".
func (b *builder) keepServer(t content.Tool) (ok bool, why string) {
	// The API has no member "type". It is in the Extra for other readers.
	list, _ := jsonx.Members(t.Extra.For(API)) // it was checked
	_, list = jsonx.Take(list, "type")
	entry := jsonx.Object(list)

	switch {
	case len(list) == 0, slices.ContainsFunc(list, notOurs):
		return false, "it is not an entry for the API's tools"
	case slices.Contains(b.servers, entry):
		return false, "it is declared twice"
	}
	b.servers = append(b.servers, entry)
	return true, ""
}

// notOurs reports whether a member cannot belong to a server tool's entry: the value of an entry is the tool's own
// configuration.
func notOurs(m jsonx.Member) bool {
	return m.Name == "functionDeclarations" ||
		!strings.HasPrefix(string(m.Value), "{") && !strings.HasPrefix(string(m.Value), "[")
}

// keepApart drops the tools run by the API if the model does not accept them next to functions.
func (b *builder) keepApart() {
	if b.older() && len(b.functions) > 0 && len(b.servers) > 0 {
		b.servers = nil
		b.note(api.RepairTool, "the API's own tools are left out: the model does not accept them together with functions")
	}
}

// appendTools appends all functions as one entry, and each tool run by the API as another.
func (b *builder) appendTools(dst []byte) []byte {
	if len(b.functions)+len(b.servers) == 0 {
		return dst
	}

	dst = append(write.Name(dst, "tools"), '[')
	if len(b.functions) > 0 {
		dst = append(dst, `{"functionDeclarations":[`...)
		for _, t := range b.functions {
			dst = appendFunction(write.Comma(dst), t)
		}
		dst = append(dst, "]}"...)
	}

	for _, entry := range b.servers {
		dst = append(write.Comma(dst), entry...)
	}
	return append(dst, ']')
}

// appendFunction appends the declaration of a function.
func appendFunction(dst []byte, t content.Tool) []byte {
	dst = write.OptString(append(dst, '{'), "name", t.Name)
	dst = write.OptString(dst, "description", t.Description)
	dst = append(write.Name(dst, "parametersJsonSchema"), t.Schema...)
	further, _ := jsonx.Members(t.Extra.For(API)) // none without an Extra
	return append(appendFurther(dst, further, "name", "description", "parameters", "parametersJsonSchema"), '}')
}
