package openai

import (
	"strings"

	"github.com/plait-dev/plait/api/internal/roundtrip"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/jsonx/write"
)

// appendItems appends the items of a repaired message. It implements dialect.Encoding.Append.
func (k keeping) appendItems(dst []byte, m content.Message, end int) []byte {
	return k.appendAnswers(dst, nil, m, end)
}

// appendAnswers is appendItems for a message with the results of calls. It implements dialect.Encoding.AppendAnswer.
func (k keeping) appendAnswers(dst []byte, calls []content.ToolUse, m content.Message, _ int) []byte {
	w := itemWriter{dst: dst, calls: calls, inWords: k == keepOpen}
	for _, b := range m.Blocks.All() {
		if m.Role == content.Assistant {
			w.assistant(b)
		} else {
			w.user(b)
		}
	}
	w.close()
	return w.dst
}

// itemWriter writes the items of one message. A message item stays open until the next block outside it.
type itemWriter struct {
	dst      []byte
	inWords  bool              // reasoning has its text as content, the only form read by some servers
	begun    bool              // an item was written
	open     string            // closes the open message item; "" if none is open
	note     ownNote           // of the last part of an open assistant message
	thought  map[string]bool   // the IDs of the reasoning written so far
	calls    []content.ToolUse // the calls still without a result
	messages map[string]bool   // the further members of the message items so far
}

// item begins a new item and closes an open message item.
func (w *itemWriter) item() {
	w.close()
	if w.begun {
		w.dst = append(w.dst, ',')
	}
	w.begun = true
}

func (w *itemWriter) close() {
	w.dst, w.open = append(w.dst, w.open...), ""
}

// assistant writes a block of an assistant message.
func (w *itemWriter) assistant(b content.Block) {
	switch b := b.(type) {
	case content.Text:
		w.assistantText(b)
	case content.Thinking:
		w.item()
		w.reasoning(b)
	case content.ToolUse:
		w.item()
		w.call(b)
	case content.Opaque:
		w.item()
		w.dst = append(w.dst, b.JSON...)
	}
}

// assistantText writes a text of the assistant. If the text was a part of a message, it joins the message's parts
// before it.
func (w *itemWriter) assistantText(t content.Text) {
	list, note := extraOf(t.Extra)
	switch {
	case t.Extra.For(ResponsesAPI) == "": // a text of Plait or of another API
		w.item()
		w.dst = write.String(append(w.dst, `{"type":"message","role":"assistant"`...), "content", t.Text)
		w.dst = append(w.dst, '}')
		return

	// The next part of the open message.
	case w.open != "" && note.Item != nil && string(note.Item) == string(w.note.Item) && note.Part > w.note.Part:
		w.dst = write.Comma(w.dst)
	default:
		w.item()
		w.dst = append(w.dst, `{"type":"message","role":"assistant"`...)
		item, _ := jsonx.Members(content.JSON(note.Item)) // nil if the text was not a part of a message
		lost := w.loses(note)
		w.dst = roundtrip.AppendMembers(w.dst, item, "type", "role", "content", lost)
		if lost == "" {
			w.see(note)
		}
		w.dst = append(write.Name(w.dst, "content"), '[')
		w.open = "]}"
	}
	w.note = note

	kind, text := "output_text", "text"
	if memberType(list) == "refusal" {
		kind, text = "refusal", "refusal"
	}

	w.dst = write.OptString(append(w.dst, '{'), "type", kind)
	w.dst = write.String(w.dst, text, t.Text)
	w.dst = roundtrip.AppendMembers(w.dst, list, "type", text)
	w.dst = append(w.dst, '}')
}

// see records a message item written with its ID.
func (w *itemWriter) see(n ownNote) {
	if n.Item == nil {
		return
	}
	if w.messages == nil {
		w.messages = map[string]bool{}
	}
	w.messages[string(n.Item)] = true
}

// loses returns "id" if the item must be written without its ID, and "" otherwise. The API refuses the ID if the
// reasoning before the item is not sent, or if earlier parts of the message were written as an item of their own.
func (w *itemWriter) loses(n ownNote) string {
	if w.messages[string(n.Item)] || n.After != nil && !w.thought[*n.After] {
		return "id"
	}
	return ""
}

// extra writes the further members of a block except those named in but.
func (w *itemWriter) extra(e content.Extra, but ...string) {
	list, _ := extraOf(e)
	w.dst = roundtrip.AppendMembers(w.dst, list, but...)
}

func (w *itemWriter) reasoning(t content.Thinking) {
	if w.thought == nil {
		w.thought = map[string]bool{}
	}
	w.thought[thoughtID(t)] = true

	// The block has no summary of its own if the text gives the same one.
	list, _ := extraOf(t.Extra)
	w.dst = append(w.dst, `{"type":"reasoning"`...)
	if summary, _ := jsonx.Take(list, "summary"); summary == "" {
		w.dst = append(write.Name(w.dst, "summary"), summaryOf(t.Text)...)
	}

	// Reasoning that came with a content of its own keeps it.
	if words, _ := jsonx.Take(list, "content"); w.inWords && !strings.HasPrefix(string(words), "[") {
		w.dst = write.OptString(append(w.dst, `,"content":[{"type":"reasoning_text"`...), "text", t.Text)
		w.dst = append(w.dst, "}]"...)
		_, list = jsonx.Take(list, "content")
	}

	if t.Signature != "" {
		w.dst = write.OptString(w.dst, "encrypted_content", t.Signature)
		_, list = jsonx.Take(list, "encrypted_content")
	}

	w.dst = roundtrip.AppendMembers(w.dst, list, "type")
	w.dst = append(w.dst, '}')
}

func (w *itemWriter) call(c content.ToolUse) {
	list, note := extraOf(c.Extra)
	if _, ok := clientCalls[memberType(list)]; ok {
		w.clientCall(memberType(list), c)
		return
	}
	kind, input, written := "function_call", "arguments", jsonx.Quote(string(c.Input))
	if memberType(list) == customCall {
		kind, input, written = customCall, "input", c.Input
	}

	w.dst = write.OptString(append(w.dst, '{'), "type", kind)
	w.dst = write.String(w.dst, "call_id", c.ID)
	w.dst = write.String(w.dst, "name", c.Name)
	w.dst = append(write.Name(w.dst, input), written...)
	w.dst = roundtrip.AppendMembers(w.dst, list, "type", "call_id", "name", input, w.loses(note))
	w.dst = append(w.dst, '}')
}

// user writes a block of a user message.
func (w *itemWriter) user(b content.Block) {
	if o, ok := b.(content.Opaque); ok && !isPart(itemType(o)) {
		w.item()
		w.dst = append(w.dst, o.JSON...)
		return
	}

	if r, ok := b.(content.ToolResult); ok {
		w.result(r)
		return
	}

	// All other blocks in a row are parts of one message item.
	if w.open != "" {
		w.dst = write.Comma(w.dst)
	} else {
		w.item()
		w.dst = append(w.dst, `{"type":"message","role":"user","content":[`...)
		w.open = "]}"
	}
	w.inputPart(b)
}

// inputPart writes a part of a user message or of a tool result.
func (w *itemWriter) inputPart(b content.Block) {
	switch b := b.(type) {
	case content.Text:
		w.dst = write.String(append(w.dst, `{"type":"input_text"`...), "text", b.Text)
		if noteOf(b.Extra).Item == nil { // not a text of the assistant: its members do not fit here
			w.extra(b.Extra, "type", "text")
		}
	case content.Image:
		w.image(b)
	case content.Document:
		w.document(b)
	case content.Opaque:
		w.dst = append(w.dst, b.JSON...)
		return
	}
	w.dst = append(w.dst, '}')
}

func (w *itemWriter) image(b content.Image) {
	w.dst = append(w.dst, `{"type":"input_image"`...)
	list, _ := extraOf(b.Extra)
	if detail, _ := jsonx.Take(list, "detail"); detail == "" {
		w.dst = write.OptString(w.dst, "detail", "auto")
	}

	w.source(b.Source, "image_url", "image_url")
	w.dst = roundtrip.AppendMembers(w.dst, list, "type", "image_url", "file_id")
}

func (w *itemWriter) document(b content.Document) {
	w.dst = append(w.dst, `{"type":"input_file"`...)
	if b.Source.Data != "" {
		name := b.Title
		if name == "" {
			name = "document" + extensions[b.Source.MediaType]
		}
		w.dst = write.OptString(w.dst, "filename", name)
	}

	w.source(b.Source, "file_data", "file_url")
	w.extra(b.Extra, "type", "filename", "file_data", "file_url", "file_id")
}

// extensions maps media types to file name extensions. The API requires a file name for inline data.
var extensions = map[string]string{
	"application/pdf": ".pdf", "text/plain": ".txt", "text/markdown": ".md", "text/html": ".html", "text/csv": ".csv",
	"application/json": ".json", "application/rtf": ".rtf", "application/vnd.oasis.opendocument.text": ".odt",
	"application/msword": ".doc", "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx",
	"application/vnd.ms-powerpoint":                                             ".ppt",
	"application/vnd.openxmlformats-officedocument.presentationml.presentation": ".pptx",
	"application/vnd.ms-excel":                                                  ".xls",
	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":         ".xlsx",
}

// source writes a source: a data URL with the bytes, a URL, or the ID of a file.
func (w *itemWriter) source(s content.Source, data, url string) {
	switch {
	case s.FileID != "":
		w.dst = write.OptString(w.dst, "file_id", s.FileID)
	case s.URL != "":
		w.dst = write.OptString(w.dst, url, s.URL)
	default:
		w.dst = write.OptString(w.dst, data, dataURL(s))
	}
}

// result writes the result of the next call, in the form for its kind of call.
func (w *itemWriter) result(r content.ToolResult) {
	// Results are in the order of the calls, so the next call is the one of r.
	kind := "function_call_output"
	if len(w.calls) > 0 {
		list, _ := extraOf(w.calls[0].Extra)
		w.calls = w.calls[1:]
		r.Extra = withCaller(r.Extra, list)
		if _, ok := clientCalls[memberType(list)]; ok {
			w.clientResult(memberType(list), r)
			return
		}
		if memberType(list) == customCall {
			kind = "custom_tool_call_output"
		}
	}

	w.item()
	w.dst = write.OptString(append(w.dst, '{'), "type", kind)
	w.dst = write.String(w.dst, "call_id", r.CallID)
	w.output(r)
	w.extra(r.Extra, "type", "call_id", "output")
	w.dst = append(w.dst, '}')
}

// withCaller adds the caller of a call to the members of its result, if a program of the model made the call: the API
// continues the program with it (github.com/openai/openai-agents-python, pull request 3833).
func withCaller(e content.Extra, call []jsonx.Member) content.Extra {
	const caller = "caller"
	by, _ := jsonx.Take(call, caller)
	about, _ := jsonx.Members(by) // none for null
	list, _ := extraOf(e)
	if has, _ := jsonx.Take(list, caller); memberType(about) != "program" || has != "" {
		return e
	}
	return content.Extra{API: ResponsesAPI, JSON: jsonx.Object(append(list, jsonx.Member{Name: caller, Value: by}))}
}

// output writes the result of a tool: a string for one plain text or nothing, otherwise a list of parts. A failed call
// is marked by a text.
func (w *itemWriter) output(r content.ToolResult) {
	blocks := r.Content.Slice()
	if r.IsError {
		blocks = markedFailed(blocks)
	}

	// The API requires an output, so no content becomes an empty text.
	if len(blocks) == 0 {
		blocks = []content.Block{content.Text{}}
	}

	w.dst = write.Name(w.dst, "output")
	if t, ok := blocks[0].(content.Text); ok && len(blocks) == 1 && t.Extra.For(ResponsesAPI) == "" {
		w.dst = append(w.dst, jsonx.Quote(t.Text)...)
		return
	}

	w.dst = append(w.dst, '[')
	for _, b := range blocks {
		w.dst = write.Comma(w.dst)
		w.inputPart(b)
	}
	w.dst = append(w.dst, ']')
}

// markedFailed returns the blocks of a failed call's result, with a text in front. The text begins with "Error".
func markedFailed(blocks []content.Block) []content.Block {
	if len(blocks) > 0 {
		if _, ok := blocks[0].(content.Text); ok {
			return failed(blocks)
		}
	}
	return append([]content.Block{content.Text{Text: "Error"}}, blocks...)
}
