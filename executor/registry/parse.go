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
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/internal/wire"
)

// ErrCall is in the chain of every error of [ParseCall].
var ErrCall = errors.New("not a tool call that can be carried out")

// CallError says what is wrong with a tool call, and where. Its chain holds [ErrCall].
type CallError struct {
	// Tool is the name of the tool that is called, where it could be read for certain.
	Tool string
	// Path is the member that is wrong, such as "function.arguments"; "root" for the call as a whole.
	Path string
	// Reason says what is wrong with it. It can be shown as it is.
	Reason string
}

// Error says what is wrong, and where.
func (e *CallError) Error() string { return ErrCall.Error() + ": " + e.Path + ": " + e.Reason }

// Unwrap returns ErrCall.
func (e *CallError) Unwrap() error { return ErrCall }

// ParseCall reads a tool call in any of the shapes in which providers and their libraries write one:
//
//	{"id":…,"type":"function","function":{"name":…,"arguments":…}}      OpenAI Chat Completions, and most that imitate it
//	{"type":"function_call","call_id":…,"name":…,"arguments":…}         OpenAI Responses
//	{"type":"tool_use","id":…,"name":…,"input":{…}}                     Anthropic
//	{"functionCall":{"id":…,"name":…,"args":{…}}}                       Gemini
//	{"name":…,"arguments":…}                                            MCP
//	{"name":…,"args":{…}}, with the type "tool_call" or without         LangChain
//
// Only the name is needed. Arguments are an object; where the member is called "arguments" also a string that holds
// one. None, an empty string and null are {}. Members that are null count as absent, and further members are passed
// over; but where a call has no arguments it may have none, because the arguments could be in there.
//
// The call must be valid by content.JSON.Valid: a name that stands twice in an object is refused, at any depth, in the
// arguments too. An object that can be read as two different calls is refused, and so is a type that is none of these.
// The error is a *CallError.
//
// The Call's Input is the arguments byte for byte, and its Index is 0.
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
		return executor.Call{}, wrongMember("", "type", "\"%s\" is none of function, function_call, tool_call and tool_use", safetext.Escape(kind, mostName))
	}
	readings, err := readCall(outer, kind)
	if err != nil {
		return executor.Call{}, err
	}
	for _, other := range readings[1:] {
		if !sameCall(readings[0], other) {
			return executor.Call{}, &CallError{Path: "root", Reason: "it can be read as two calls that differ"}
		}
	}
	return readings[0], nil
}

// argsOfType is which member holds the arguments of a call whose name stands beside its type. Without a type it is any
// of them.
var argsOfType = map[string]string{
	"": "", "function": "arguments", "function_call": "arguments", "tool_use": "input", "tool_call": "args",
}

// argsMembers are all members that hold arguments.
var argsMembers = []string{"arguments", "input", "args"}

// readCall reads the call in every way in which it can be read. There is one at least.
func readCall(outer []wire.Member, kind string) (readings []executor.Call, err error) {
	read := func(some []executor.Call, e error) {
		readings = append(readings, some...)
		if err == nil {
			err = e
		}
	}
	if inner, _ := wire.Take(outer, "function"); inner != "" {
		read(readInner(outer, inner, kind, "function"))
	}
	if inner, _ := wire.Take(outer, "functionCall"); inner != "" {
		read(readInner(outer, inner, kind, "functionCall"))
	}
	if slices.ContainsFunc(outer, func(m wire.Member) bool { return m.Name == "name" || slices.Contains(argsMembers, m.Name) }) {
		read(readFlat(outer, kind))
	}
	if err == nil && len(readings) == 0 {
		err = &CallError{Path: "root", Reason: "it has none of the members function, functionCall and name"}
	}
	return readings, err
}

// readInner reads a call that is the value of a member.
func readInner(outer []wire.Member, inner content.JSON, kind, member string) ([]executor.Call, error) {
	args, ids := "arguments", outer
	if !inner.IsObject() {
		return nil, wrongMember("", member, "%s", notAnObject(inner))
	}
	list := presentMembers(inner)
	if member == "functionCall" {
		args, ids = "args", list
	}
	if kind != "" && (kind != "function" || member != "function") {
		return nil, wrongMember("", member, "it is no member of a %s", kind)
	}
	return readMembers(list, ids, member+".", []string{args})
}

// readFlat reads a call whose name is a member of the object itself.
func readFlat(outer []wire.Member, kind string) ([]executor.Call, error) {
	if kind == "" {
		return readMembers(outer, outer, "", argsMembers)
	}
	for _, m := range outer {
		if slices.Contains(argsMembers, m.Name) && m.Name != argsOfType[kind] {
			return nil, wrongMember("", m.Name, "it is no member of a %s", kind)
		}
	}
	return readMembers(outer, outer, "", []string{argsOfType[kind]})
}

// readMembers reads a call whose name is in list and whose id is in ids: once for each of the members args that it has.
func readMembers(list, ids []wire.Member, path string, args []string) (readings []executor.Call, err error) {
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

	for _, member := range args {
		value, _ := wire.Take(list, member)
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

// nothingElse refuses a call without arguments that has members of which nobody knows whether they are arguments.
func nothingElse(list []wire.Member, path string) error {
	for _, m := range list {
		if !slices.Contains([]string{"name", "id", "call_id", "type", "function", "functionCall"}, m.Name) {
			where := path + cmp.Or(safetext.Escape(m.Name, mostName), `""`)
			return wrongMember("", where, "the call has no arguments but this member, which is none that holds them")
		}
	}
	return nil
}

// argumentsOf is the arguments in a member's value.
func argumentsOf(value content.JSON, path string, quoted bool) (content.JSON, error) {
	if text, isText := wire.Text(value); isText && quoted {
		if value = content.JSON(text); strings.TrimSpace(text) == "" || strings.TrimSpace(text) == "null" {
			return "{}", nil
		}
	}
	if reason := notAnObject(value); reason != "" {
		return "", wrongMember("", path, "%s", reason)
	}
	return value, nil
}

// idOf is the id that a result has to name.
func idOf(list []wire.Member) (string, error) {
	for _, member := range []string{"call_id", "id"} {
		if id, err := textMember(list, "", member); id != "" || err != nil {
			return id, err
		}
	}
	return "", nil
}

// presentMembers is the members of a valid object that are not null.
func presentMembers(object content.JSON) []wire.Member {
	list, _ := wire.Members(object) // it is valid
	return slices.DeleteFunc(list, func(m wire.Member) bool { return m.Value == "null" })
}

// textMember is the string in a member; "" where there is none.
func textMember(list []wire.Member, path, name string) (string, error) {
	value, _ := wire.Take(list, name)
	text, isText := wire.Text(value)
	if value != "" && !isText {
		return "", wrongMember("", path+name, "it must be a string, is %s", jsonType(value))
	}
	return text, nil
}

// sameCall reports whether both say the same, however the arguments are written.
func sameCall(a, b executor.Call) bool {
	return a.Name == b.Name && a.ID == b.ID && a.Input.Canonical() == b.Input.Canonical()
}

// wrongMember is an error about one member.
func wrongMember(tool, path, format string, args ...any) error {
	return &CallError{Tool: tool, Path: path, Reason: fmt.Sprintf(format, args...)}
}

// withTool is err with the tool's name.
func withTool(err error, tool string) error {
	var refused *CallError
	if errors.As(err, &refused) {
		refused.Tool = tool
	}
	return err
}

// notAnObject says why j is no valid JSON object; "" where it is one.
func notAnObject(j content.JSON) string {
	if j.IsObject() {
		return ""
	}
	dec := jsontext.NewDecoder(strings.NewReader(string(j)))
	if err := dec.SkipValue(); err != nil {
		return "it is not valid JSON: " + syntax(err)
	}
	if _, err := dec.ReadToken(); err != io.EOF {
		return "it is not valid JSON: there is more behind its end"
	}
	return "it must be an object, is " + jsonType(j)
}

func syntax(err error) string {
	if errors.Is(err, io.EOF) {
		return "it is empty"
	}
	return safetext.Escape(strings.TrimPrefix(err.Error(), "jsontext: "), 200)
}

// jsonType is the type of a valid value.
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
