package fake

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/goccy/go-json/jsontext"
)

// geminiContent is the content of one role: one content, or several in a row.
type geminiContent struct {
	role             string
	calls, responses []geminiCall
	words            bool // it has parts other than calls and responses
	late             bool // a response comes after such a part
}

// geminiCall is a function call, or the response to one.
type geminiCall struct {
	id, name string
	signed   bool
}

// geminiData lists the data members of a part. A part has exactly one of them.
var geminiData = []string{"text", "inline_data", "file_data", "function_call", "function_response", "executable_code",
	"code_execution_result", "tool_call", "tool_response"}

var (
	geminiPartMembers = geminiMembers{"text": gString, "inline_data": geminiBlob, "file_data": geminiFile, "function_call": nil,
		"function_response": nil, "thought": gBool, "thought_signature": gBytes, "video_metadata": nil, "part_metadata": gStruct,
		"media_resolution": nil, "media_processing": nil,
		"executable_code": gMessage("ExecutableCode",
			geminiMembers{"id": gString, "language": gString, "code": gString}),
		"code_execution_result": gMessage("CodeExecutionResult",
			geminiMembers{"id": gString, "outcome": gString, "output": gString}),
		"tool_call": gMessage("ToolCall",
			geminiMembers{"id": gString, "tool_type": gString, "args": gStruct}),
		"tool_response": gMessage("ToolResponse",
			geminiMembers{"id": gString, "tool_type": gString, "response": gStruct}),
	}
	geminiFile = gMessage("FileData", geminiMembers{"file_uri": gString, "mime_type": gString, "display_name": gString})
)

// contents checks each content by itself and returns the facts for checking several together.
func (c *geminiCheck) contents(v jsontext.Value) []geminiContent {
	list := repeated(v)
	if len(list) == 0 {
		c.field("contents", "contents is not specified")
	}

	var contents []geminiContent
	for i, v := range list {
		path := fmt.Sprintf("contents[%d]", i)
		o := c.message(path, "Content", v, geminiMembers{"role": gString, "parts": nil})

		// The API accepts a content without a role, or with the role "function", as the user's.
		turn := geminiContent{role: text(o["role"])}
		switch turn.role {
		case "user", "model":
		case "function", "":
			turn.role = "user"
		default:
			c.fail("Please use a valid role: user, model.")
		}

		parts := repeated(o["parts"])
		if len(parts) == 0 {
			c.field(path+".parts", "contents.parts must not be empty.")
		}

		for j, v := range parts {
			turn.add(c.part(fmt.Sprintf("%s.parts[%d]", path, j), v))
		}
		contents = append(contents, turn)
	}
	return contents
}

func (s *geminiContent) add(kind string, call geminiCall) {
	switch kind {
	case "function_call":
		s.calls = append(s.calls, call)
	case "function_response":
		s.responses = append(s.responses, call)
		s.late = s.late || s.words
	default:
		s.words = true
	}
}

// part checks one part. It returns the kind of its data, and the call if it is a call or a response.
func (c *geminiCheck) part(path string, v jsontext.Value) (kind string, call geminiCall) {
	o := c.message(path, "Part", v, geminiPartMembers)
	for _, name := range geminiData {
		if o[name] == nil {
			continue
		}
		if kind != "" {
			c.fail("Invalid value at '%s' (oneof), oneof field 'data' is already set. Cannot set '%s'", path, name)
		}
		kind = name
	}

	switch kind {
	case "":
		c.field(path+".data", "required oneof field 'data' must have one initialized field")
	case "function_call":
		call = c.call(path+"."+kind, "FunctionCall", o[kind],
			geminiMembers{"id": gString, "name": gString, "args": gStruct})
	case "function_response":
		call = c.call(path+"."+kind, "FunctionResponse", o[kind],
			geminiMembers{"id": gString, "name": gString, "response": gStruct,
				"parts": gList(gMessage("FunctionResponsePart",
					geminiMembers{"inline_data": geminiBlob, "file_data": geminiFile})),
				"will_continue": gBool, "scheduling": gString})
	}

	// The signature is a member of the part, beside the call.
	call.signed = text(o["thought_signature"]) != ""
	return kind, call
}

func (c *geminiCheck) call(path, kind string, v jsontext.Value, known geminiMembers) geminiCall {
	o := c.message(path, kind, v, known)
	name := text(o["name"])
	if name == "" {
		c.field(path+".name", "Name cannot be empty.")
	} else if !geminiName.MatchString(name) {
		c.field(path+".name",
			"Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), underscores (_), "+
				"dots (.), colons (:), or dashes (-), with a maximum length of 64.")
	}
	return geminiCall{id: text(o["id"]), name: name}
}

var geminiTypes = []string{"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif", "application/pdf", "application/x-javascript",
	"application/x-python"}

// geminiBlob checks bytes: they are not empty and of an accepted type.
func geminiBlob(c *geminiCheck, path string, v jsontext.Value) {
	o := c.message(path, "Blob", v, geminiMembers{"data": gBytes, "mime_type": gString, "display_name": gString})
	mediaType := text(o["mime_type"])
	family, _, _ := strings.Cut(mediaType, "/")
	if !slices.Contains(geminiTypes, mediaType) && !slices.Contains([]string{"audio", "video", "text"}, family) {
		c.fail("Unsupported MIME type: %s", mediaType)
	}

	// The first three types are the images that DetectContentType knows: it does not know HEIC and HEIF.
	data, _ := geminiBytes(text(o["data"])) // gBytes has refused invalid base64
	found := http.DetectContentType(data)
	switch {
	case len(data) == 0:
		c.field(path+".data", "data must not be empty.")
	case slices.Contains(geminiTypes[:3], mediaType) && !strings.HasPrefix(found, "image/"):
		c.fail("Unable to process input image. Please retry or report in https://developers.generativeai.google/guide/troubleshooting")
	case mediaType == "application/pdf" && found != mediaType:
		c.fail("The document has no pages.")
	}
}

const (
	geminiCallTurn     = "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
	geminiResponseTurn = "Please ensure that function response turn comes immediately after a function call turn."
	geminiEqual        = "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn."
)

// turns checks the relations between contents. The API joins contents of one role in a row.
func (c *geminiCheck) turns(contents []geminiContent) {
	if len(contents) == 0 {
		return
	}
	if contents[len(contents)-1].role == "model" {
		c.fail("Please ensure that multiturn requests end with a user role or a function response.")
	}

	var before geminiContent
	for i, turn := range joined(contents) {
		switch {
		// Only the model calls, and a conversation cannot begin with a call.
		case len(turn.calls) > 0 && (turn.role != "model" || i == 0):
			c.fail(geminiCallTurn)
		// Responses are the user's, come right after calls, and before any other part.
		case len(turn.responses) > 0 && (turn.role == "model" || len(before.calls) == 0 || turn.late):
			c.fail(geminiResponseTurn)
		// Every call needs its response in the next turn.
		case len(turn.responses) != len(before.calls):
			c.fail(geminiEqual)
		}
		c.matched(before.calls, turn.responses)
		before = turn
	}
}

// joined returns the contents, with those of one role in a row merged.
func joined(contents []geminiContent) []geminiContent {
	var turns []geminiContent
	for _, next := range contents {
		if n := len(turns); n == 0 || turns[n-1].role != next.role {
			turns = append(turns, geminiContent{role: next.role})
		}

		// A response is late, too, if an earlier content of the turn has other parts.
		t := &turns[len(turns)-1]
		t.late = t.late || next.late || t.words && len(next.responses) > 0
		t.calls, t.responses = append(t.calls, next.calls...), append(t.responses, next.responses...)
		t.words = t.words || next.words
	}
	return turns
}

// matched checks that each response belongs to a call: the one with its ID, or else the next one with its name.
func (c *geminiCheck) matched(calls, responses []geminiCall) {
	open := map[string][]geminiCall{}
	for _, call := range calls {
		open[call.name] = append(open[call.name], call)
	}

	for _, response := range responses {
		list := open[response.name]
		i := slices.IndexFunc(list, func(call geminiCall) bool {
			return call.id == response.id || call.id == "" || response.id == ""
		})
		if i < 0 {
			c.fail("Please ensure that each function response part has the id and the name of a function call part of the function call turn: '%s'.",
				response.name)
			return
		}
		list[i] = list[0] // keep a skipped call open
		open[response.name] = list[1:]
	}
}

// signed checks that the first call of each step after the user's last text has a thought signature.
func (c *geminiCheck) signed(contents []geminiContent) {
	// Find the beginning of the current turn. Text beside responses begins no new turn.
	from := 0
	for i, turn := range contents {
		if turn.role == "user" && turn.words && len(turn.responses) == 0 {
			from = i
		}
	}

	// Of several calls in one content, the model signs only the first.
	for i := from; i < len(contents); i++ {
		if calls := contents[i].calls; len(calls) > 0 && !calls[0].signed {
			c.fail("Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing "+
				"thought_signature may lead to degraded model performance. Additional data, function call `default_api:%s` , position %d. Please "+
				"refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.",
				calls[0].name, i+1)
		}
	}
}
