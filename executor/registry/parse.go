package registry

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/goccy/go-json/jsontext"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/safetext"
)

// ErrCall is in the chain of every error of [ParseCall].
var ErrCall = errors.New("not a tool call that can be executed")

// CallError reports an invalid member of a tool call. Its chain holds [ErrCall].
type CallError struct {
	// Tool is the name of the called tool, if it could be read reliably.
	Tool string
	// Path is the invalid member, such as "function.arguments"; "root" for the call as a whole.
	Path string
	// Reason describes the problem. It is safe to print.
	Reason string
}

// Error returns the path and the reason.
func (e *CallError) Error() string { return ErrCall.Error() + ": " + e.Path + ": " + e.Reason }

// Unwrap returns ErrCall.
func (e *CallError) Unwrap() error { return ErrCall }

// ParseCall reads a tool call in any of the formats used by providers and their libraries:
//
//	{"id":…,"type":"function","function":{"name":…,"arguments":…}}      OpenAI Chat Completions, and imitations
//	{"type":"function_call","call_id":…,"name":…,"arguments":…}         OpenAI Responses
//	{"type":"tool_use","id":…,"name":…,"input":{…}}                     Anthropic
//	{"functionCall":{"id":…,"name":…,"args":{…}}}                       Gemini
//	{"name":…,"arguments":…}                                            MCP
//	{"name":…,"args":{…}}, with the type "tool_call" or without         LangChain
//
// The rules are:
//
//   - Only the name is required.
//   - Arguments are an object. A member with the name "arguments" may also be a string that holds an object. Missing
//     arguments, an empty string and null become {}.
//   - A member with the value null counts as absent. Further members are ignored, but a call without arguments must not
//     have any: they could hold the arguments.
//   - The call must be valid according to content.JSON.Valid: a duplicate name in an object is refused at any depth,
//     including the arguments.
//   - An object that can be read as two different calls is refused, and so is any other type.
//
// The Call's Input is the arguments byte for byte, and its Index is 0. Every error is a *CallError.
func ParseCall(data []byte) (executor.Call, error) {
	root := content.JSON(data)
	if reason := notAnObject(root); reason != "" {
		return executor.Call{}, &CallError{Path: "root", Reason: reason}
	}

	outer := presentMembers(root)
	kind, err := textMember(outer, "", "type")
	if err != nil {
		return executor.Call{}, err
	}
	if _, known := argsOfType[kind]; !known {
		return executor.Call{}, wrongMember("", "type",
			"\"%s\" is none of function, function_call, tool_call and tool_use", safetext.Escape(kind, maxName))
	}

	// Formats overlap, so read the call in each one that fits.
	readings, err := readCall(outer, kind)
	if err != nil {
		return executor.Call{}, err
	}

	// An object in several formats is accepted if all of them give the same call.
	for _, other := range readings[1:] {
		if !sameCall(readings[0], other) {
			return executor.Call{}, &CallError{Path: "root", Reason: "it can be read as two different calls"}
		}
	}
	return readings[0], nil
}

// argsOfType maps the type of a flat call, with its name beside the type, to the member for the arguments. Without a
// type it may be any of argsMembers.
var argsOfType = map[string]string{
	"": "", "function": "arguments", "function_call": "arguments", "tool_use": "input", "tool_call": "args",
}

// argsMembers lists all members for arguments.
var argsMembers = []string{"arguments", "input", "args"}

// readCall reads the call in every possible format. Without an error there is at least one reading.
func readCall(outer []jsonx.Member, kind string) (readings []executor.Call, err error) {
	read := func(some []executor.Call, e error) {
		readings = append(readings, some...)
		if err == nil {
			err = e
		}
	}

	// An object may have the members of several formats. An error in one of them refuses the call.
	if inner, _ := jsonx.Take(outer, "function"); inner != "" {
		read(readInner(outer, inner, kind, "function"))
	}
	if inner, _ := jsonx.Take(outer, "functionCall"); inner != "" {
		read(readInner(outer, inner, kind, "functionCall"))
	}

	// Arguments without a name count as a flat call, so that the error is about the missing name.
	if slices.ContainsFunc(outer, func(m jsonx.Member) bool {
		return m.Name == "name" || slices.Contains(argsMembers, m.Name)
	}) {
		read(readFlat(outer, kind))
	}

	if err == nil && len(readings) == 0 {
		err = &CallError{Path: "root", Reason: "it has none of the members function, functionCall and name"}
	}
	return readings, err
}

// readInner reads a call in the value of a member: "function" or "functionCall".
func readInner(outer []jsonx.Member, inner content.JSON, kind, member string) ([]executor.Call, error) {
	args, ids := "arguments", outer
	if !inner.IsObject() {
		return nil, wrongMember("", member, "%s", notAnObject(inner))
	}

	// Gemini has the ID inside, OpenAI outside.
	list := presentMembers(inner)
	if member == "functionCall" {
		args, ids = "args", list
	}
	if kind != "" && (kind != "function" || member != "function") {
		return nil, wrongMember("", member, "a %s has no such member", kind)
	}
	return readMembers(list, ids, member+".", []string{args})
}

// readFlat reads a call with its name in the object itself.
func readFlat(outer []jsonx.Member, kind string) ([]executor.Call, error) {
	if kind == "" {
		return readMembers(outer, outer, "", argsMembers)
	}
	for _, m := range outer {
		if slices.Contains(argsMembers, m.Name) && m.Name != argsOfType[kind] {
			return nil, wrongMember("", m.Name, "a %s has no such member", kind)
		}
	}
	return readMembers(outer, outer, "", []string{argsOfType[kind]})
}

// readMembers reads a call with its name in list and its ID in ids. It returns one reading for each member of args, and
// one for a call without arguments.
func readMembers(list, ids []jsonx.Member, path string, args []string) (readings []executor.Call, err error) {
	call := executor.Call{Input: "{}"}
	if call.Name, err = textMember(list, path, "name"); err != nil {
		return nil, err
	}
	if call.Name == "" {
		return nil, wrongMember("", path+"name", "it is missing or empty")
	}
	if call.ID, err = idOf(ids); err != nil {
		return nil, withTool(err, call.Name)
	}

	// One reading for each member: if several have arguments, they must agree (see ParseCall).
	for _, member := range args {
		value, _ := jsonx.Take(list, member)
		if value == "" {
			continue
		}
		if call.Input, err = argumentsOf(value, path+member, member == "arguments"); err != nil {
			return nil, withTool(err, call.Name)
		}
		readings = append(readings, call)
	}

	if len(readings) > 0 {
		return readings, nil
	}
	return []executor.Call{call}, withTool(nothingElse(list, path), call.Name)
}

// nothingElse refuses a call without arguments if it has unknown members: they could hold the arguments.
func nothingElse(list []jsonx.Member, path string) error {
	for _, m := range list {
		if !slices.Contains([]string{"name", "id", "call_id", "type", "function", "functionCall"}, m.Name) {
			where := path + cmp.Or(safetext.Escape(m.Name, maxName), `""`)
			return wrongMember("", where, "a call without arguments cannot have this member")
		}
	}
	return nil
}

// argumentsOf returns the arguments in a member's value. If quoted is set, the value may be a string with the JSON.
func argumentsOf(value content.JSON, path string, quoted bool) (content.JSON, error) {
	if text, isText := jsonx.Text(value); isText && quoted {
		if value = content.JSON(text); strings.TrimSpace(text) == "" || strings.TrimSpace(text) == "null" {
			return "{}", nil
		}
	}
	if reason := notAnObject(value); reason != "" {
		return "", wrongMember("", path, "%s", reason)
	}
	return value, nil
}

// idOf returns the ID for the tool result.
func idOf(list []jsonx.Member) (string, error) {
	for _, member := range []string{"call_id", "id"} {
		if id, err := textMember(list, "", member); id != "" || err != nil {
			return id, err
		}
	}
	return "", nil
}

// presentMembers returns the members of a valid object without those that are null.
func presentMembers(object content.JSON) []jsonx.Member {
	list, _ := jsonx.Members(object) // no error: the object is valid
	return slices.DeleteFunc(list, func(m jsonx.Member) bool { return m.Value == "null" })
}

// textMember returns the string in a member, or "" if there is none.
func textMember(list []jsonx.Member, path, name string) (string, error) {
	value, _ := jsonx.Take(list, name)
	text, isText := jsonx.Text(value)
	if value != "" && !isText {
		return "", wrongMember("", path+name, "it must be a string, is %s", jsonType(value))
	}
	return text, nil
}

// sameCall reports whether a and b are the same call. Arguments are compared in canonical form.
func sameCall(a, b executor.Call) bool {
	return a.Name == b.Name && a.ID == b.ID && a.Input.Canonical() == b.Input.Canonical()
}

// wrongMember returns a *CallError about one member.
func wrongMember(tool, path, format string, args ...any) error {
	return &CallError{Tool: tool, Path: path, Reason: fmt.Sprintf(format, args...)}
}

// withTool sets the tool's name in err.
func withTool(err error, tool string) error {
	var refused *CallError
	if errors.As(err, &refused) {
		refused.Tool = tool
	}
	return err
}

// notAnObject returns the reason why j is no valid JSON object, or "".
func notAnObject(j content.JSON) string {
	if j.IsObject() {
		return ""
	}

	dec := jsontext.NewDecoder(strings.NewReader(string(j)))
	if err := dec.SkipValue(); err != nil {
		return "it is not valid JSON: " + syntax(err)
	}
	if _, err := dec.ReadToken(); err != io.EOF {
		return "it is not valid JSON: more data after the value"
	}
	return "it must be an object, is " + jsonType(j)
}

// syntax returns the text of a decoder's error, safe to print.
func syntax(err error) string {
	if errors.Is(err, io.EOF) {
		return "it is empty"
	}
	return safetext.Escape(strings.TrimPrefix(err.Error(), "jsontext: "), 200)
}

// jsonType returns the type of a valid value, with its article.
func jsonType(j content.JSON) string {
	switch jsontext.Value(j).Kind() {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 'n':
		return "null"
	}
	return "a boolean"
}
