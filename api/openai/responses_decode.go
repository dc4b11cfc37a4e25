package openai

import (
	"iter"
	"net/http"
	"strconv"
	"strings"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/internal/roundtrip"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
)

// own is the member of an Extra for the ownNote. It is never sent.
const own = "plait"

// ownNote holds facts about an item that have no member in it. It is recorded with the block made of the item, or of a
// part of it.
type ownNote struct {
	// Item holds the further members of the text's message. It is the same for all texts of a message.
	Item jsonx.Raw `json:"item"`
	// Part is the index of the text in the message.
	Part int `json:"part"`
	// After is the ID of the reasoning directly before the item. It is nil if the model did not reason, and for
	// reasoning after another item. The API accepts the item's ID only together with this reasoning.
	After *string `json:"after"`
}

// json returns n in the form it is stored in, or "" if n is empty.
func (n ownNote) json() content.JSON {
	var list []jsonx.Member
	if n.Item != nil {
		list = append(list, jsonx.Member{Name: "item", Value: content.JSON(n.Item)})
	}
	if n.Part > 0 {
		list = append(list, jsonx.Member{Name: "part", Value: content.JSON(strconv.Itoa(n.Part))})
	}
	if n.After != nil {
		list = append(list, jsonx.Member{Name: "after", Value: jsonx.Quote(*n.After)})
	}
	if len(list) == 0 {
		return ""
	}
	return jsonx.Object(list)
}

// customCall is the type of a call of a custom tool, with any text as input. It is stored in the call's Extra.
const customCall = "custom_tool_call"

// itemDecoder converts the items of a response to blocks. The items must be passed in order. The zero value is ready to
// use.
type itemDecoder struct {
	after *string // the ID of the last reasoning; nil before the first
	run   bool    // the last item was reasoning
}

// blocks returns the blocks of an item: one for each part of a message, otherwise one. Known items become a Text, a
// Thinking or a ToolUse with all further members in its Extra. Any other item becomes an Opaque, byte for byte.
func (d *itemDecoder) blocks(raw content.JSON) ([]content.Block, error) {
	raw = mended(raw)
	list, err := jsonx.Members(raw)
	if err != nil {
		return nil, err
	}

	// own is Plait's name in an Extra. A server must not be able to set it.
	kind, rest, _ := jsonx.TakeText(list, "type")
	_, rest = jsonx.Take(rest, own)

	var said []content.Block

	// Reasoning that follows other reasoning directly depends on it.
	run := d.run
	d.run = kind == "reasoning"

	switch kind {
	case "message":
		said = d.message(rest)
	case "reasoning":
		said = d.reasoning(rest, run)
	case "function_call":
		said = d.call(rest)
	case customCall:
		said = d.customCall(rest)
	default:
		if _, ok := clientCalls[kind]; ok {
			said = d.clientCall(kind, rest)
		}
	}

	if said == nil {
		said = []content.Block{content.Opaque{API: ResponsesAPI, JSON: raw}}
	}
	return said, nil
}

// mended returns raw without lone surrogates. A model cut off inside a character leaves one.
func mended(raw content.JSON) content.JSON {
	if raw.Valid() {
		return raw
	}
	v := jsontext.Value(raw)
	if v.Format(jsontext.AllowInvalidUTF8(true)) != nil {
		return raw
	}
	return content.JSON(v)
}

// message returns a text for each part, or nil if texts cannot hold the whole message.
func (d *itemDecoder) message(list []jsonx.Member) []content.Block {
	role, list, _ := jsonx.TakeText(list, "role")
	j, list := jsonx.Take(list, "content")
	parts, err := jsonx.Items(j)
	if role != "assistant" && role != "" || !strings.HasPrefix(string(j), "[") || err != nil {
		return nil
	}

	// Each text keeps the message's own members, to send the message back as it came.
	note := ownNote{Item: jsonx.Raw(jsonx.Object(list)), After: d.after}
	var blocks []content.Block
	words := ""
	for i, part := range parts {
		note.Part = i
		text, ok := textPart(part, note)
		if !ok {
			return nil
		}
		words += text.Text
		blocks = append(blocks, text)
	}

	if words == "" {
		return nil // kept as an Opaque: empty texts are not sent, but this message can be
	}
	return blocks
}

// textPart converts a message part: text of the model, or a refusal.
func textPart(part content.JSON, note ownNote) (content.Text, bool) {
	list, err := jsonx.Members(part)
	if err != nil {
		return content.Text{}, false
	}

	kind, rest, _ := jsonx.TakeText(list, "type")
	var words string
	ok := false
	switch kind {
	case "output_text":
		words, rest, ok = jsonx.TakeText(rest, "text")
	case "refusal":
		// The type in the Extra marks the text as a refusal.
		words, rest, ok = jsonx.TakeText(rest, "refusal")
		rest = append([]jsonx.Member{{Name: "type", Value: `"refusal"`}}, rest...)
	}

	// A server must not be able to set Plait's own member.
	_, rest = jsonx.Take(rest, own)
	return content.Text{Text: words, Extra: itemExtra(rest, note)}, ok
}

// itemExtra keeps members without a field in the block, and the note.
func itemExtra(rest []jsonx.Member, note ownNote) content.Extra {
	if noted := note.json(); noted != "" {
		rest = append(rest[:len(rest):len(rest)], jsonx.Member{Name: own, Value: noted})
	}
	if len(rest) == 0 {
		return content.Extra{}
	}
	return content.Extra{API: ResponsesAPI, JSON: jsonx.Object(rest)}
}

// reasoning returns a Thinking with the encrypted content as Signature. Its Text is the summary or, without one, the
// reasoning itself, as returned by open-weight models.
func (d *itemDecoder) reasoning(list []jsonx.Member, run bool) []content.Block {
	t, note := content.Thinking{}, ownNote{}

	// Reasoning right after other reasoning depends on it, like any other item.
	if run {
		note.After = d.after
	}
	id, _, _ := jsonx.TakeText(list, "id")
	d.after = &id

	if sealed, rest, ok := jsonx.TakeText(list, "encrypted_content"); ok && sealed != "" {
		t.Signature, list = sealed, rest
	}

	summary, rest := jsonx.Take(list, "summary")
	shown, _ := jsonx.Take(list, "content")
	if t.Text = summaryWords(summary); t.Text == "" {
		t.Text = summaryWords(shown)
	}

	// A summary that can be derived from the text is not stored twice.
	if sameJSON(summary, summaryOf(t.Text)) {
		list = rest
	}
	if t.Extra = itemExtra(list, note); t.Extra.API == "" {
		t.Extra = content.Extra{API: ResponsesAPI, JSON: "{}"} // records the only API able to read it
	}
	return []content.Block{t}
}

// summaryOf returns a summary of one part with text, or without parts if text is empty.
func summaryOf(text string) content.JSON {
	if text == "" {
		return "[]"
	}
	return `[{"type":"summary_text","text":` + jsonx.Quote(text) + `}]`
}

// paragraph separates the parts of a summary.
const paragraph = "\n\n"

// summaryWords returns the texts of the parts, joined by paragraph.
func summaryWords(parts content.JSON) string {
	var list []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal([]byte(parts), &list, jsonx.Lenient) != nil {
		return ""
	}

	var texts []string
	for _, part := range list {
		texts = append(texts, part.Text)
	}
	return strings.Join(texts, paragraph)
}

func sameJSON(a, b content.JSON) bool { return a == b || a != "" && a.Canonical() == b.Canonical() }

// call returns a tool call, or nil if its ID or name is missing.
func (d *itemDecoder) call(list []jsonx.Member) []content.Block {
	id, name, list := callNames(list)
	if id == "" || name == "" {
		return nil
	}

	arguments, list, _ := jsonx.TakeText(list, "arguments")
	return []content.Block{content.ToolUse{
		ID: id, Name: name, Input: content.JSON(arguments), Extra: itemExtra(list, ownNote{After: d.after}),
	}}
}

// callNames takes the ID and the name of a call out of its members. If a server sends no call_id, the ID of the item is
// used.
func callNames(list []jsonx.Member) (id, name string, rest []jsonx.Member) {
	id, rest, _ = jsonx.TakeText(list, "call_id")
	if id == "" {
		id, _, _ = jsonx.TakeText(rest, "id")
	}
	name, rest, _ = jsonx.TakeText(rest, "name")
	return id, name, rest
}

// customCall returns a call of a custom tool with its input as a JSON string, or nil if a member is missing.
func (d *itemDecoder) customCall(list []jsonx.Member) []content.Block {
	id, name, list := callNames(list)
	input, list := jsonx.Take(list, "input")
	if id == "" || name == "" || !strings.HasPrefix(string(input), `"`) {
		return nil
	}

	list = append([]jsonx.Member{{Name: "type", Value: jsonx.Quote(customCall)}}, list...)
	return []content.Block{content.ToolUse{
		ID: id, Name: name, Input: input, Extra: itemExtra(list, ownNote{After: d.after}),
	}}
}

// response is a response in the form of the API. In a stream, response.created holds the beginning of it, and the last
// event holds all of it.
type response struct {
	Object     string      `json:"object"`
	ID         string      `json:"id"`
	Model      string      `json:"model"`
	Status     string      `json:"status"`
	Error      jsonx.Raw   `json:"error"`
	Output     []jsonx.Raw `json:"output"`
	Usage      jsonx.Raw   `json:"usage"`
	Incomplete struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Further jsonx.Raw `json:",embed"` // all others
}

// echoed lists members of a response not kept in api.Finish.Details: they repeat the request or the defaults of the
// API, or are read elsewhere.
var echoed = []string{
	"background", "completed_at", "conversation", "created_at", "frequency_penalty", "include", "input", "instructions",
	"max_output_tokens", "max_tool_calls", "metadata", "output_text", "parallel_tool_calls", "presence_penalty",
	"previous_response_id", "prompt", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "reasoning",
	"safety_identifier", "store", "stream", "temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p",
	"truncation", "user",
}

// responseUsage is the API's usage. Input includes the cached tokens, read and written.
type responseUsage struct {
	Input        int64 `json:"input_tokens"`
	Output       int64 `json:"output_tokens"`
	InputDetails struct {
		Cached  int64 `json:"cached_tokens"`
		Written int64 `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	OutputDetails struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
}

// usage returns the counts. A usage in another form than the API's has none.
func (r response) usage() content.Usage {
	var u responseUsage
	if len(r.Usage) == 0 || json.Unmarshal(r.Usage, &u, jsonx.Lenient) != nil {
		return content.Usage{}
	}
	cached, written := u.InputDetails.Cached, u.InputDetails.Written
	return content.Usage{
		Input: max(0, u.Input-cached-written), CacheRead: cached, CacheWrite: written,
		Output: u.Output, Reasoning: u.OutputDetails.Reasoning,
	}
}

// cut returns the facts reported by the API before the end of the response.
func (r response) cut() api.Cut {
	return api.Cut{Finish: api.Finish{API: ResponsesAPI, Model: r.Model, ResponseID: r.ID, Usage: r.usage()}}
}

// finish returns the end of a response with these blocks. A response of limit tokens or more was cut off, even if its
// status reports otherwise. A limit of 0 is none. Further facts about the response are in details.
func (r response) finish(blocks []content.Block, limit int, details roundtrip.Details) (api.Finish, error) {
	f := r.cut().Finish
	details.Add(r.Further, echoed...)
	details.AddUsage(r.Usage, "input_tokens", "output_tokens", "total_tokens", "input_tokens_details.cached_tokens",
		"input_tokens_details.cache_write_tokens", "output_tokens_details.reasoning_tokens")
	f.Usage.Incomplete = f.Usage.Incomplete || pricedTier(&details)
	f.Details = details.JSON()

	switch r.Status {
	case "completed":
		f.Stop = responseStop(blocks)
		if limit > 0 && f.Usage.Output >= int64(limit) {
			f.Stop = content.StopMaxTokens
		}
	case "incomplete":
		if f.Stop = incompleteStop(r.Incomplete.Reason); f.Stop == content.StopRefusal {
			details.Set("incomplete_details", `{"reason":`+jsonx.Quote(r.Incomplete.Reason)+`}`)
			f.Details = details.JSON()
		}
	case "queued", "in_progress":
		// A server answers before the model does. A later request may succeed.
		return f, &api.Error{Kind: api.ErrServer, API: ResponsesAPI, Status: http.StatusOK, Type: r.Status,
			Message: "the response is not finished"}
	default:
		return f, roundtrip.Protocol(ResponsesAPI, "the response has the status %q", r.Status)
	}
	return f, nil
}

// responseStop returns the stop reason of a completed response with these blocks.
func responseStop(blocks []content.Block) content.Stop {
	stop := content.StopEndTurn
	for _, b := range blocks {
		switch b := b.(type) {
		case content.ToolUse:
			return content.StopToolUse
		case content.Text:
			if list, _ := extraOf(b.Extra); memberType(list) == "refusal" {
				stop = content.StopRefusal
			}
		}
	}
	return stop
}

// incompleteStop converts the API's reason for an incomplete response. An unknown one is kept as it is.
func incompleteStop(reason string) content.Stop {
	switch reason {
	case "max_output_tokens", "max_tokens":
		return content.StopMaxTokens
	case "content_filter":
		return content.StopRefusal
	case "":
		return content.StopUnknown
	}
	return content.Stop(reason)
}

// failed returns the error of a failed or cancelled response, and nil for any other. The argument data holds the
// response.
func (r response) failed(header http.Header, data []byte) error {
	switch r.Status {
	case "failed", "cancelled":
		e := newError(ResponsesAPI, http.StatusOK, header, data)
		if e.Type == "" {
			e.Type = r.Status
		}
		return e
	}
	return nil
}

// wholeResponse yields the events of a response sent as one JSON document.
func wholeResponse(res *http.Response, c call) iter.Seq2[api.Event, error] {
	return roundtrip.Whole(ResponsesAPI, res, func(body []byte) ([]content.Block, api.Finish, error) {
		return decodeResponse(body, res.Header, c.limit)
	})
}

// decodeResponse decodes a whole response.
func decodeResponse(data []byte, header http.Header, limit int) ([]content.Block, api.Finish, error) {
	// A response with an error in it is not an error document: failed reads it below.
	if isError(data) {
		var r response
		if json.Unmarshal(data, &r, jsonx.Lenient) != nil || r.Object != "response" {
			return nil, api.Finish{}, newError(ResponsesAPI, http.StatusOK, header, data)
		}
	}

	var r response
	if err := json.Unmarshal(data, &r, jsonx.Lenient); err != nil {
		return nil, api.Finish{}, roundtrip.Protocol(ResponsesAPI, "the body is not a response: %w", err)
	}
	if err := r.failed(header, data); err != nil {
		return nil, api.Finish{}, err
	}

	var items itemDecoder
	var blocks []content.Block
	for i, raw := range r.Output {
		list, err := items.blocks(content.JSON(raw))
		if err != nil {
			return nil, api.Finish{}, roundtrip.Protocol(ResponsesAPI, "item %d of the response: %w", i, err)
		}
		blocks = append(blocks, list...)
	}

	finish, err := r.finish(blocks, limit, roundtrip.Details{})
	return blocks, finish, err
}
