package registry

import (
	"errors"
	"io"
	"strings"

	"github.com/goccy/go-json/jsontext"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/safetext"
)

// callError reports an invalid member of a tool call.
type callError struct {
	path   string // such as "function.arguments"; "root" for the call as a whole
	reason string // safe to print
}

// Error returns the path and the reason.
func (e *callError) Error() string {
	return "not a tool call that can be executed: " + e.path + ": " + e.reason
}

// parseCall reads a tool call in the form of the Chat Completions API. The Input is the arguments byte for byte. With an
// error, the Call has the tool's name, if that could be read.
func parseCall(data []byte) (call executor.Call, err error) {
	root := content.JSON(data)
	if reason := notAnObject(root); reason != "" {
		return call, &callError{"root", reason}
	}
	outer, _ := jsonx.Members(root) // no error: the object is valid

	function, _ := jsonx.Take(outer, "function")
	if function == "" {
		return call, &callError{"root", `it has no member "function"`}
	}
	if reason := notAnObject(function); reason != "" {
		return call, &callError{"function", reason}
	}
	inner, _ := jsonx.Members(function)

	if call.Name, err = textMember(inner, "function.", "name"); err != nil {
		return call, err
	}
	if call.Name == "" {
		return call, &callError{"function.name", "it is missing or empty"}
	}
	if call.ID, err = textMember(outer, "", "id"); err != nil {
		return call, err
	}

	// The arguments are a string with the JSON. Some servers send the object itself.
	value, _ := jsonx.Take(inner, "arguments")
	if text, quoted := jsonx.Text(value); quoted {
		value = content.JSON(text)
	}
	if text := strings.TrimSpace(string(value)); text == "" || text == "null" {
		value = "{}"
	}
	if reason := notAnObject(value); reason != "" {
		return call, &callError{"function.arguments", reason}
	}
	call.Input = value
	return call, nil
}

// textMember returns the string in a member, or "" if there is none.
func textMember(list []jsonx.Member, path, name string) (string, error) {
	value, _ := jsonx.Take(list, name)
	text, isText := jsonx.Text(value)
	if value != "" && value != "null" && !isText {
		return "", &callError{path + name, "it must be a string, is " + jsonType(value)}
	}
	return text, nil
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
