package roundtrip

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/jsonx/write"
)

// Builder is a request body under construction: the steps that all APIs share. A provider embeds it, and adds the form
// of its API.
type Builder struct {
	// Further are the members of Options.Body that were not taken out.
	Further []jsonx.Member
	// Tools are the definitions to send, in the API's form.
	Tools []content.Tool
	Notes []api.RepairNote
}

// Note records a change about no single message.
func (b *Builder) Note(kind string, format string, args ...any) {
	b.Notes = append(b.Notes, api.RepairNote{Kind: kind, Message: -1, Detail: fmt.Sprintf(format, args...)})
}

// Take removes a member from Options.Body and returns it, or "" if there is none.
func (b *Builder) Take(name string) content.JSON {
	var value content.JSON
	value, b.Further = jsonx.Take(b.Further, name)
	return value
}

// LeaveOut removes the named members from Options.Body, each with a note: the request has its own.
func (b *Builder) LeaveOut(names ...string) {
	b.Further = slices.DeleteFunc(b.Further, func(m jsonx.Member) bool {
		own := slices.Contains(names, m.Name)
		if own {
			b.Note("option", "%q in Options.Body is left out", m.Name)
		}
		return own
	})
}

// KeepTools keeps the acceptable definitions, at most limit; 0 is no limit. Fit returns a definition in the API's form
// and the reason for a change, or false and the reason to leave the tool out: "" if another one declares it. No two
// tools have the same key.
func (b *Builder) KeepTools(
	tools []content.Tool, limit int, fit func(content.Tool) (content.Tool, string, bool), key func(content.Tool) string,
) {
	seen := map[string]bool{}
	for _, def := range tools {
		t, why, ok := fit(def)
		switch {
		case !ok:
		case seen[key(t)]:
			ok, why = false, "it is declared twice"
		case limit > 0 && len(b.Tools) == limit:
			ok, why = false, fmt.Sprintf("the API accepts %d tools", limit)
		}

		switch {
		case !ok && why == "":
			continue
		case !ok:
			b.Note("tool", "the tool %q is left out: %s", def.Name, why)
			continue
		case why != "":
			b.Note("tool", "the tool %q: %s", def.Name, why)
		}
		seen[key(t)] = true
		b.Tools = append(b.Tools, t)
	}
}

// Choice returns the tool choice to send, among tools. It is ToolsAuto, with a note, if the choice cannot be sent
// because it needs a tool that is missing. The tool is the chosen one, by its declared name, or zero.
func (b *Builder) Choice(choice api.ToolChoice, tools []content.Tool) (api.ToolChoice, content.Tool) {
	if choice == api.ToolsAuto {
		return choice, content.Tool{}
	}

	name := choice.Tool()
	at := slices.IndexFunc(tools, func(t content.Tool) bool { return t.Name == name })
	switch {
	case len(tools) == 0:
		b.Note("option", "ToolChoice is left out: there are no tools")
	case name == "":
		return choice, content.Tool{}
	case at >= 0:
		return choice, tools[at]
	default:
		b.Note("option", "ToolChoice is left out: there is no tool %q", name)
	}
	return api.ToolsAuto, content.Tool{}
}

// System returns the system prompts without blank ones.
func (b *Builder) System(prompts []string) []string {
	return slices.DeleteFunc(slices.Clone(prompts), func(s string) bool {
		blank := strings.TrimSpace(s) == ""
		if blank && s != "" {
			b.Note("dropped", "a system prompt of white space")
		}
		return blank
	})
}

// Stops returns the list of stop sequences, at most limit; "" for none.
func (b *Builder) Stops(stops []string, limit int) content.JSON {
	if len(stops) > limit {
		b.Note("option", "only the first %d of %d stop sequences are sent", limit, len(stops))
		stops = stops[:limit]
	}
	if len(stops) == 0 {
		return ""
	}

	dst := []byte{'['}
	for _, s := range stops {
		dst = append(write.Comma(dst), jsonx.Quote(s)...)
	}
	return content.JSON(append(dst, ']'))
}

// Form returns the schema of a response, reduced by dialect.Target.Form, and notes the keywords that were dropped.
func (b *Builder) Form(form content.JSON, dropped []string) content.JSON {
	if len(dropped) > 0 {
		b.Note("option", "the schema of Output is sent without %s", strings.Join(dropped, ", "))
	}
	return form
}

// Header returns a list with the members of Options.Body behind it. They replace members of the same name.
func (b *Builder) Header(list Header) Header { return over(list, b.Further) }

// Header is a list of members that control a response.
type Header []jsonx.Member

// Set appends a member. An empty value appends nothing.
func (h *Header) Set(name string, value content.JSON) {
	if value != "" {
		*h = append(*h, jsonx.Member{Name: name, Value: value})
	}
}

// SetTemperature appends a temperature; nil appends nothing.
func (h *Header) SetTemperature(t *float64) {
	if t != nil {
		h.Set("temperature", content.JSON(strconv.FormatFloat(*t, 'g', -1, 64)))
	}
}

// SetInt appends a number above 0.
func (h *Header) SetInt(name string, n int) {
	if n > 0 {
		h.Set(name, content.JSON(strconv.Itoa(n)))
	}
}

// Over returns the object ours with the members of theirs added. A member of both is taken from theirs. If theirs is
// not an object, it replaces ours.
func Over(ours, theirs content.JSON) content.JSON {
	if ours == "" || theirs == "" {
		return ours + theirs
	}

	list, _ := jsonx.Members(ours)
	further, err := jsonx.Members(theirs)
	if err != nil {
		return theirs
	}
	return jsonx.Object(over(list, further))
}

// over returns list and further. A member of both is taken from further.
func over(list, further []jsonx.Member) []jsonx.Member {
	for _, m := range further {
		_, list = jsonx.Take(list, m.Name)
	}
	return append(list, further...)
}

// AppendMembers appends members, except those with a name in but.
func AppendMembers(dst []byte, list []jsonx.Member, but ...string) []byte {
	for _, m := range list {
		if !slices.Contains(but, m.Name) {
			dst = append(write.Name(dst, m.Name), m.Value...)
		}
	}
	return dst
}

// AppendList appends a member with a list of definitions. Without any it appends nothing.
func AppendList[T any](dst []byte, name string, list []T, item func(dst []byte, i int, item T) []byte) []byte {
	if len(list) == 0 {
		return dst
	}
	dst = append(write.Name(dst, name), '[')
	for i, one := range list {
		dst = item(write.Comma(dst), i, one)
	}
	return append(dst, ']')
}
