package fake

import (
	"fmt"
	"maps"
	"net/http"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/pattern"
)

// OpenAIResponses returns a strict fake of OpenAI's Responses API. It checks requests with [CheckOpenAIResponses] and
// answers with replies, in order. A request after the last reply is refused.
//
// It remembers its responses: an item produced after reasoning must not be sent back, under its ID, without the same
// reasoning. The IDs of [OpenAIResponse] are numbered anew, over all replies: the API refuses two items with one ID.
func OpenAIResponses(replies ...Reply) *API {
	return newFake(openAIResponses{led: map[string]string{}}, replies)
}

// fakeItemID matches the ID of an item from OpenAIResponse. A text cannot contain it: its quotes are escaped.
var fakeItemID = pattern.Of(`"id":"(msg|rs|fc)_fake[0-9]+"`)

// OpenAIResponse returns a reply with output items:
//
//   - a message for each text
//   - a function call for each tool call
//   - a reasoning item for thinking, with its text as the summary, and its signature or redacted data as the encrypted
//     content
//   - content.Opaque for every other item of the API
//
// Any other kind of block is a mistake in a test and panics.
func OpenAIResponse(blocks ...content.Block) Reply {
	items := []any{}
	for i, b := range blocks {
		items = append(items, responsesItem(i, b))
	}
	return Reply{Body: fmt.Sprintf(`{"id":"resp_fake","object":"response","created_at":1700000000,"status":"completed","error":null,`+
		`"incomplete_details":null,"instructions":null,"model":"gpt-fake","output":%s,"parallel_tool_calls":true,`+
		`"previous_response_id":null,"store":false,"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":0},`+
		`"output_tokens":5,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":15}}`, written(items))}
}

const responsesAPI = "openai-responses"

// responsesItem returns block i as an output item.
func responsesItem(i int, b content.Block) any {
	// Each ID has the prefix of its type: the API refuses an item sent back under another one.
	switch b := b.(type) {
	case content.Text:
		part := map[string]any{"type": "output_text", "text": b.Text, "annotations": []any{}, "logprobs": []any{}}
		return extended(map[string]any{
			"id": fmt.Sprintf("msg_fake%d", i), "type": "message", "role": "assistant", "status": "completed", "content": []any{part},
		}, b.Extra, responsesAPI)

	case content.Thinking:
		item := map[string]any{"id": fmt.Sprintf("rs_fake%d", i), "type": "reasoning", "summary": []any{}}
		if b.Text != "" {
			item["summary"] = []any{map[string]any{"type": "summary_text", "text": b.Text}}
		}
		if sealed := b.Signature + b.Redacted; sealed != "" {
			item["encrypted_content"] = sealed
		}
		return extended(item, b.Extra, responsesAPI)

	case content.ToolUse:
		return extended(map[string]any{
			"id": fmt.Sprintf("fc_fake%d", i), "type": "function_call", "status": "completed", "call_id": b.ID, "name": b.Name,
			"arguments": string(b.Input),
		}, b.Extra, responsesAPI)
	case content.Opaque:
		return jsontext.Value(b.JSON)
	}
	panic(fmt.Sprintf("fake: an assistant message of this API cannot contain a %T", b))
}

// openAIResponses is the dialect of the Responses API.
type openAIResponses struct {
	led map[string]string // by the ID of an item: the ID of the reasoning right before it
}

func (openAIResponses) address(r *http.Request) error {
	return openAIAddress(responsesAPI, "/responses", r)
}

func (d openAIResponses) check(_ *http.Request, body []byte) error {
	if err := CheckOpenAIResponses(body); err != nil {
		return err
	}
	return d.accompanied(body)
}

// responsesHead is the ID and the type of an item.
type responsesHead struct {
	ID   string `json:"id"`
	Type string `json:"type"`
}

// remember records the items of a response produced after reasoning.
func (d openAIResponses) remember(_ []byte, answer string) {
	var response struct {
		Output []responsesHead `json:"output"`
	}
	if json.Unmarshal([]byte(answer), &response) != nil {
		return // a stream, or an error
	}

	// The API knows the pair by the ID of the item: one sent back without its ID needs no reasoning.
	for i, item := range response.Output {
		if item.ID != "" && i > 0 && response.Output[i-1].Type == "reasoning" {
			d.led[item.ID] = response.Output[i-1].ID
		}
	}
}

// accompanied checks that items produced after reasoning are sent back with it.
func (d openAIResponses) accompanied(body []byte) error {
	request := withoutNulls(body) // check has accepted it
	input := request["input"]
	var items []responsesHead

	// With a stored conversation the reasoning may be stored too.
	if request["previous_response_id"] != nil || request["conversation"] != nil {
		return nil
	}
	if input.Kind() != '[' || json.Unmarshal(input, &items) != nil {
		return nil
	}

	there := map[string]bool{}
	for _, item := range items {
		if reasoning := d.led[item.ID]; reasoning != "" && !there[reasoning] {
			return refuseOpenAI(responsesAPI, http.StatusBadRequest, "input", "",
				fmt.Sprintf("Item '%s' of type '%s' was provided without its "+
					"required 'reasoning' item: '%s'.", item.ID, item.Type, reasoning))
		}
		there[item.ID] = true
	}
	return nil
}

func (openAIResponses) refuse(message string) *api.Error {
	return refuseOpenAI(responsesAPI, http.StatusBadRequest, "", "", message)
}

func (openAIResponses) streams(_ *http.Request, body []byte) bool { return asksToStream(body) }

func (openAIResponses) silence() string { return OpenAIResponse().Body }

func (openAIResponses) header(h http.Header) { h.Set("x-request-id", "req_fake") }

// responsesStream builds a stream of the API's events.
type responsesStream struct {
	sse
	sequence int
	item     map[string]any // members of every event about the current item
	cut      bool           // leave the current item unfinished
}

func (openAIResponses) stream(_ []byte, answer string, cut bool) string {
	var response map[string]jsontext.Value
	parsed([]byte(answer), &response)
	var items []jsontext.Value
	parsed(response["output"], &items)

	var s responsesStream
	s.event("response.created", map[string]any{"response": begun(response)})
	s.event("response.in_progress", map[string]any{"response": begun(response)})

	for i, item := range items {
		s.cut = cut && i == len(items)-1
		s.output(i, item)
	}

	// The last event has the whole response, and its status in the name: completed, incomplete or failed.
	if !cut {
		s.event("response."+text(response["status"]), map[string]any{"response": response})
	}
	return s.String()
}

// begun returns the response in the form of its first events.
func begun(response map[string]jsontext.Value) map[string]any {
	head := map[string]any{}
	for name, v := range response {
		head[name] = v
	}
	head["status"], head["output"], head["usage"] = "in_progress", []any{}, nil
	return head
}

func (s *responsesStream) event(name string, members map[string]any) {
	members["type"], members["sequence_number"] = name, s.sequence
	s.sequence++
	s.sse.event(name, members)
}

// about appends an event about the current item.
func (s *responsesStream) about(name string, members map[string]any) {
	for k, v := range s.item {
		members[k] = v
	}
	s.event(name, members)
}

// output sends one output item in small pieces, as the API does.
func (s *responsesStream) output(i int, v jsontext.Value) {
	var item map[string]jsontext.Value
	parsed(v, &item)
	s.item = map[string]any{"output_index": i, "item_id": text(item["id"])}

	switch text(item["type"]) {
	case "message":
		s.began(i, item, "content")
		s.parts("content", item["content"])
	case "reasoning":
		s.began(i, item, "summary")
		s.parts("summary", item["summary"])
	case "function_call":
		s.began(i, item, "arguments")
		s.pieces("response.function_call_arguments", "arguments", text(item["arguments"]))
	case "custom_tool_call":
		s.began(i, item, "input")
		s.pieces("response.custom_tool_call_input", "input", text(item["input"]))
	case "code_interpreter_call":
		s.began(i, item, "code")
		s.about("response.code_interpreter_call.in_progress", map[string]any{})
		s.pieces("response.code_interpreter_call_code", "code", text(item["code"]))
		s.progress("code_interpreter_call", "interpreting", "completed")
	case "web_search_call", "file_search_call":
		s.began(i, item, "")
		s.progress(text(item["type"]), "in_progress", "searching", "completed")
	default:
		s.began(i, item, "")
	}

	// The last event of an item repeats all of it.
	if !s.cut {
		s.event("response.output_item.done", map[string]any{"output_index": i, "item": v})
	}
}

// began sends an item without the member to be sent in pieces.
func (s *responsesStream) began(i int, item map[string]jsontext.Value, later string) {
	head := map[string]any{}
	for name, v := range item {
		head[name] = v
	}

	// Not every type of item has a status.
	if _, ok := head["status"]; ok {
		head["status"] = "in_progress"
	}

	// A text begins empty, and so does a list of parts.
	switch later {
	case "":
	case "arguments", "input", "code":
		head[later] = ""
	default:
		head[later] = []any{}
	}
	s.event("response.output_item.added", map[string]any{"output_index": i, "item": head})
}

// progress sends the progress of a tool of the API. If the stream is cut, the last step is left out.
func (s *responsesStream) progress(kind string, steps ...string) {
	if s.cut {
		steps = steps[:len(steps)-1]
	}
	for _, step := range steps {
		s.about("response."+kind+"."+step, map[string]any{})
	}
}

// pieces sends a text in pieces, then its annotations, then the whole text.
func (s *responsesStream) pieces(event, member, whole string, annotations ...jsontext.Value) {
	for _, piece := range split(whole) {
		s.about(event+".delta", map[string]any{"delta": piece})
	}

	for _, list := range annotations {
		for i, annotation := range repeated(list) {
			s.about(event+".annotation.added", map[string]any{"annotation": annotation, "annotation_index": i})
		}
	}

	if !s.cut {
		s.about(event+".done", map[string]any{member: whole})
	}
}

// parts sends the parts of a message or of a summary.
func (s *responsesStream) parts(member string, list jsontext.Value) {
	var parts []map[string]jsontext.Value
	parsed(list, &parts)

	// Of a cut item, only the last part is unfinished.
	last := s.cut
	for i, part := range parts {
		s.cut = last && i == len(parts)-1
		s.part(member, i, part)
	}
	s.cut = last
}

func (s *responsesStream) part(member string, i int, part map[string]jsontext.Value) {
	// All events about this part have its index. Later events about the item do not.
	s.item[member+"_index"] = i
	defer delete(s.item, member+"_index")

	// The events of a summary have names of their own.
	kind := text(part["type"])
	field, place := "text", "response.content_part"
	event := "response." + kind
	switch {
	case member == "summary":
		place, event = "response.reasoning_summary_part", "response.reasoning_summary_text"
	case kind == "refusal":
		field = "refusal"
	}

	s.about(place+".added", map[string]any{"part": emptied(part, field)})
	s.pieces(event, field, text(part[field]), part["annotations"])
	if !s.cut {
		s.about(place+".done", map[string]any{"part": part})
	}
}

// emptied returns a part in the form of its first event.
func emptied(part map[string]jsontext.Value, member string) map[string]jsontext.Value {
	empty := maps.Clone(part)
	empty[member] = jsontext.Value(`""`)
	if _, ok := empty["annotations"]; ok {
		empty["annotations"] = jsontext.Value(`[]`)
	}
	return empty
}
