package openai

import (
	"slices"
	"strings"

	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/api/internal/roundtrip"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/jsonx/write"
)

// clientCall is a kind of call of the API's own tools that the program executes. It becomes a content.ToolUse with a name of
// its own, an object as arguments, and the type of the item in its Extra. So it is open until it has a result, as the
// call of a function is.
type clientCall struct {
	name   string // of the tool
	answer string // the type of the result
	id     string // the member with the ID of the call, and
	of     string // that of the result
}

var clientCalls = map[string]clientCall{
	"computer_call":        {"computer", "computer_call_output", "call_id", "call_id"},
	"shell_call":           {"shell", "shell_call_output", "call_id", "call_id"},
	"local_shell_call":     {"local_shell", "local_shell_call_output", "call_id", "id"},
	"apply_patch_call":     {"apply_patch", "apply_patch_call_output", "call_id", "call_id"},
	"tool_search_call":     {"tool_search", "tool_search_output", "call_id", "call_id"},
	"mcp_approval_request": {"mcp_approval_request", "mcp_approval_response", "id", "approval_request_id"},
}

// clientAnswer returns the kind of call with a type of result.
func clientAnswer(answer string) (clientCall, bool) {
	for _, c := range clientCalls {
		if c.answer == answer {
			return c, true
		}
	}
	return clientCall{}, false
}

// answered returns the ID of the call with a result. The result of a local shell has the call's ID as its own, and at
// compatible servers as that of the call.
func (c clientCall) answered(of, callID string) string {
	if c.of == "id" && callID != "" {
		return callID
	}
	return of
}

// aboutCall are the members of such a call that are not arguments.
var aboutCall = []string{"id", "status", "created_by", "execution", "environment", "call_id", "caller"}

// ranElsewhere reports whether the API itself executes a call: a search with this execution, a shell in a container.
func ranElsewhere(list []jsonx.Member) bool {
	execution, _, _ := jsonx.TakeText(list, "execution")
	environment, _ := jsonx.Take(list, "environment")
	where, _ := jsonx.Members(environment) // none without an environment
	kind := memberType(where)
	return execution == "server" || kind != "" && kind != "local"
}

// clientCall returns the call in an item that the program executes, or nil.
func (d *itemDecoder) clientCall(kind string, list []jsonx.Member) []content.Block {
	c := clientCalls[kind]
	id, rest, _ := jsonx.TakeText(list, c.id)
	if id == "" || ranElsewhere(list) {
		return nil
	}

	extra, input := roundtrip.Header{{Name: "type", Value: jsonx.Quote(kind)}}, roundtrip.Header{}
	for _, m := range rest {
		if slices.Contains(aboutCall, m.Name) {
			extra = append(extra, m)
		} else {
			input = append(input, m)
		}
	}
	return []content.Block{content.ToolUse{
		ID: id, Name: c.name, Input: jsonx.Object(input), Extra: itemExtra(extra, ownNote{After: d.after}),
	}}
}

// clientCall writes a call that the program executes.
func (w *itemWriter) clientCall(kind string, call content.ToolUse) {
	list, note := extraOf(call.Extra)
	c := clientCalls[kind]
	w.dst = write.String(append(w.dst, '{'), "type", kind)
	w.dst = write.String(w.dst, c.id, call.ID)
	input, _ := jsonx.Members(call.Input) // repaired to be an object
	w.dst = roundtrip.AppendMembers(w.dst, input, append([]string{"type"}, aboutCall...)...)
	w.dst = roundtrip.AppendMembers(w.dst, list, "type", c.id, w.loses(note))
	w.dst = append(w.dst, '}')
}

// blankPNG is sent in place of the screenshot that the API requires, if a result has none.
const blankPNG = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="

// isClientCall reports whether a call has the form of one of the API's own tools.
func isClientCall(call content.ToolUse) bool {
	list, _ := extraOf(call.Extra)
	_, ok := clientCalls[memberType(list)]
	return ok
}

// needsItemID reports whether the API requires the ID of a call's item.
func needsItemID(kind string) bool { return kind == "computer_call" || kind == "local_shell_call" }

// asFunction returns a call of the API's own tool as that of a function.
func asFunction(call content.ToolUse) content.ToolUse {
	call.Extra = content.Extra{}
	return call
}

const asFunctionWhy = "a call of the API's own tool is sent as that of a function"

// unthought finds calls of the API's own tools in m whose reasoning is not sent. The API refuses their item's ID then,
// and the items without it.
func unthought(i int, m content.Message) []dialect.Pruned {
	var found []dialect.Pruned
	thoughts := map[string]bool{}
	for j, b := range m.Blocks.All() {
		if t, ok := b.(content.Thinking); ok {
			thoughts[thoughtID(t)] = true
		}
		call, ok := b.(content.ToolUse)
		if n := noteOf(call.Extra); ok && isClientCall(call) && n.After != nil && !thoughts[*n.After] {
			found = append(found, dialect.Pruned{Message: i, Block: j, With: asFunction(call), Why: asFunctionWhy})
		}
	}
	return found
}

// clientResult writes the result of such a call. Members of the result's Extra replace those made of its content.
func (w *itemWriter) clientResult(kind string, r content.ToolResult) {
	c := clientCalls[kind]
	text := r.Content.Text()
	given, _ := extraOf(r.Extra)

	// A result that came from the API's form goes back as it came, unless its content was changed since.
	came := memberType(given) == c.answer
	if came && string(importClientResult(given).Content.Append(nil)) != string(r.Content.Append(nil)) {
		given, came = slices.DeleteFunc(given, func(m jsonx.Member) bool { return m.Name != "caller" }), false
	}

	made := roundtrip.Header{}
	rest := "" // what the form has no place for
	switch kind {
	case "computer_call":
		made.Set("output", screenshot(r.Content))
		rest = text
	case "shell_call":
		made.Set("output", shellOutput(text, r.IsError))
	case "local_shell_call":
		made.Set("output", jsonx.Quote(text))
	case "apply_patch_call":
		status := content.JSON(`"completed"`)
		if r.IsError {
			status = `"failed"`
		}
		made.Set("status", status)
		made.Set("output", jsonx.Quote(text))
	case "tool_search_call":
		made.Set("execution", `"client"`)
		made.Set("status", `"completed"`)
		made.Set("tools", foundTools(text))
		if made[len(made)-1].Value == "[]" {
			rest = text
		}
	case "mcp_approval_request":
		approve, reason := approved(text)
		made.Set("approve", approve)
		if approve == "false" && reason != "" {
			made.Set("reason", jsonx.Quote(reason))
		}
	}

	if came {
		made, rest = nil, ""
	}
	for _, m := range given {
		_, made = jsonx.Take(made, m.Name)
	}
	w.item()
	w.dst = write.String(append(w.dst, '{'), "type", c.answer)
	w.dst = write.String(w.dst, c.of, r.CallID)
	w.dst = roundtrip.AppendMembers(w.dst, append(made, given...), "type", c.of)
	w.dst = append(w.dst, '}')

	if strings.TrimSpace(rest) != "" {
		w.user(content.Text{Text: rest})
	}
}

// screenshot returns the output of a computer: the first image.
func screenshot(blocks content.Blocks) content.JSON {
	for _, b := range blocks.All() {
		if image, ok := b.(content.Image); ok {
			w := itemWriter{dst: []byte(`{"type":"computer_screenshot"`)}
			w.source(image.Source, "image_url", "image_url")
			return content.JSON(append(w.dst, '}'))
		}
	}
	return `{"type":"computer_screenshot","image_url":"` + blankPNG + `"}`
}

// shellOutput returns the output of commands. A list in the API's form is sent as it is.
func shellOutput(text string, failed bool) content.JSON {
	if items, err := jsonx.Items(content.JSON(text)); err == nil && len(items) > 0 && items[0].IsObject() {
		return content.JSON(text)
	}
	out, problem, code := text, "", "0"
	if failed {
		out, problem, code = "", text, "1"
	}
	return `[{"stdout":` + jsonx.Quote(out) + `,"stderr":` + jsonx.Quote(problem) + `,"outcome":{"type":"exit","exit_code":` + content.JSON(code) + `}}]`
}

// foundTools returns the definitions in the result of a search, in the API's form.
func foundTools(text string) content.JSON {
	if items, err := jsonx.Items(content.JSON(text)); err == nil && len(items) > 0 && items[0].IsObject() {
		return content.JSON(text)
	}
	return "[]"
}

// approved reads the answer to a request for approval: {"approve": true}, or {"approve": false, "reason": "…"}. Any
// other text refuses: a tool that knows nothing of approvals must not give one.
func approved(text string) (approve content.JSON, reason string) {
	list, err := jsonx.Members(content.JSON(text))
	if err != nil {
		return "false", text
	}
	reason, _, _ = jsonx.TakeText(list, "reason")
	if given, _ := jsonx.Take(list, "approve"); given == "true" {
		return "true", ""
	}
	return "false", reason
}

// importClientResult reads the result of such a call. Its members are kept in Extra, so that it goes back as it came.
func importClientResult(list []jsonx.Member) content.ToolResult {
	kind := memberType(list)
	c, _ := clientAnswer(kind)
	id, rest, _ := jsonx.TakeText(list, c.of)
	other, _, _ := jsonx.TakeText(list, "call_id")
	r := content.ToolResult{CallID: c.answered(id, other), Extra: importExtra(rest)}

	// What a model of another API reads.
	output, _ := jsonx.Take(list, "output")
	text, isText := jsonx.Text(output)
	inner, _ := jsonx.Members(output)
	if s, _, ok := takeSource(inner, "image_url", "image_url"); ok {
		r.Content, _ = content.Of(content.Image{Source: s})
		return r
	}
	if !isText {
		for _, name := range []string{"output", "tools", "approve"} {
			if j, _ := jsonx.Take(list, name); j != "" {
				text = string(j)
				break
			}
		}
	}
	r.Content = content.Words(text)
	return r
}
