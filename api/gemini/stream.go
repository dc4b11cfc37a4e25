package gemini

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"

	json "github.com/goccy/go-json/v2"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/internal/roundtrip"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
)

// streamed yields the events of a response of server-sent events. After the finish reason, an early end of the stream
// does not matter.
func streamed(res *http.Response) iter.Seq2[api.Event, error] {
	return roundtrip.Streamed(roundtrip.Events(res.Body), &decoder{header: res.Header})
}

// whole yields the events of a response that is not streamed: one chunk, or a list of chunks. If a response with
// another content type looks like server-sent events, it is read as such.
func whole(res *http.Response) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		body, err := io.ReadAll(res.Body)
		if err != nil {
			yield(nil, cut(err))
			return
		}

		// The content type may be missing or wrong, so the beginning of the body decides.
		if first := bytes.TrimSpace(body); len(first) > 0 && first[0] != '{' && first[0] != '[' &&
			bytes.Contains(body, []byte("data:")) {
			res.Body = io.NopCloser(bytes.NewReader(body))
			streamed(res)(yield)
			return
		}

		chunks := chunksOf(body)
		d := &decoder{header: res.Header, whole: true, apart: len(chunks) == 1}
		events := func(yield func([]byte, error) bool) {
			for _, one := range chunks {
				if !yield(one, nil) {
					return
				}
			}
		}
		roundtrip.Streamed(events, d)(yield)
	}
}

// chunksOf returns the items of a list, or the body itself.
func chunksOf(body []byte) [][]byte {
	var list []jsonx.Raw
	if !bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) || json.Unmarshal(body, &list, jsonx.Lenient) != nil {
		return [][]byte{body}
	}

	chunks := make([][]byte, len(list))
	for i, one := range list {
		chunks[i] = one
	}
	return chunks
}

// cut returns the error of a response that ends early.
func cut(err error) error { return roundtrip.Cut(API, err) }

// decoder assembles a response from its chunks.
type decoder struct {
	header http.Header
	// The response came at once, so nothing of it can be missing.
	whole bool
	// Each part is complete, as the model made it: none continues the one before.
	apart bool

	finish       api.Finish
	usage        usage
	reason       string // the finish reason
	message      string // the explanation of reason
	blocked      string // why the request was refused
	hasCandidate bool   // there was a candidate
	calls        bool   // there was a tool call
	about        []jsonx.Member
	details      roundtrip.Details

	open  content.Block // the last block, still able to grow; nil at the beginning
	text  strings.Builder
	index int // of the open block
}

// Take decodes the next chunk, and returns the events to emit.
func (d *decoder) Take(data []byte) ([]api.Event, error) {
	var c chunk
	if err := json.Unmarshal(data, &c, jsonx.Lenient); err != nil {
		if jsonx.Raw(data).IsValid(jsonx.Lenient) {
			if isErrorList(data) {
				return nil, newError(http.StatusOK, d.header, data)
			}
			return nil, protocol("a chunk of the stream: %w", err)
		}
		return nil, protocol("%w: %w", roundtrip.ErrNotJSON, err)
	}

	if c.isError() {
		return nil, newError(http.StatusOK, d.header, data)
	}

	d.note(c)

	// The finish so far, in case the response breaks off.
	out := []api.Event{d.cut()}

	// A chunk may have only usage, or only the feedback on the prompt.
	one, ok := c.first()
	if !ok {
		return out, nil
	}

	d.hasCandidate = true
	d.noteCandidate(one)
	for _, raw := range one.Content.Parts {
		events, err := d.part(content.JSON(raw))
		if out = append(out, events...); err != nil {
			return out, protocol("a part of the response: %w", err)
		}
	}
	return out, nil
}

// cut returns the known facts about the response so far.
func (d *decoder) cut() api.Cut {
	known := d.finish
	known.API, known.Usage = API, d.usage.total()
	return api.Cut{Finish: known}
}

// isErrorList reports whether data is a list with an error at its beginning. Some errors of the API have this form.
func isErrorList(data []byte) bool {
	var list []chunk
	return json.Unmarshal(data, &list, jsonx.Lenient) == nil && len(list) > 0 && list[0].isError()
}

// note keeps everything in a chunk except its candidates.
func (d *decoder) note(c chunk) {
	var counts usage
	if json.Unmarshal(c.Usage, &counts, jsonx.Lenient) == nil {
		d.usage.update(counts)
		d.details.AddUsage(c.Usage, "promptTokenCount", "cachedContentTokenCount", "candidatesTokenCount", "thoughtsTokenCount",
			"toolUsePromptTokenCount", "totalTokenCount")
	}
	for _, field := range []struct {
		to   *string
		from string
	}{{&d.finish.Model, c.Model}, {&d.finish.ResponseID, c.ID}} {
		if field.from != "" {
			*field.to = field.from
		}
	}

	d.details.Add(c.Further)
	if len(c.Prompt) > 0 {
		d.noteFeedback(content.JSON(c.Prompt))
	}
}

// noteFeedback keeps the API's feedback on the prompt.
func (d *decoder) noteFeedback(feedback content.JSON) {
	feedback, list, err := objectOf(feedback)
	if err != nil {
		return // null
	}

	d.details.Set("promptFeedback", feedback)
	if reason, _, _ := jsonx.TakeText(list, "blockReason"); reason != "" {
		d.blocked = reason
	}
}

// noteCandidate keeps everything in a candidate except its parts.
func (d *decoder) noteCandidate(c candidate) {
	if c.FinishReason != "" {
		d.reason, d.message = c.FinishReason, c.FinishMessage
	}
	if stopOf(c.FinishReason, false) == content.StopRefusal {
		d.details.Set("finishReason", jsonx.Quote(c.FinishReason)) // the stop reason does not say which filter
	}
	if c.FinishMessage != "" {
		d.details.Set("finishMessage", jsonx.Quote(c.FinishMessage))
	}
	d.details.Add(c.Further)

	for i, value := range []jsonx.Raw{c.Grounding, c.Citations, c.URLContext} {
		if len(value) == 0 {
			continue
		}

		j, list, err := objectOf(content.JSON(value))
		if err != nil || len(list) == 0 {
			continue // an empty one does not replace an earlier one
		}

		_, d.about = jsonx.Take(d.about, about[i])
		d.about = append(d.about, jsonx.Member{Name: about[i], Value: j})
	}
}

// part adds a part to the response.
func (d *decoder) part(raw content.JSON) ([]api.Event, error) {
	if isPiece(raw) {
		return nil, errors.New("a call comes in pieces: leave streamFunctionCallArguments out of the request")
	}

	b, err := decodePart(raw)
	if err != nil || b == nil {
		return nil, err
	}

	if d.grow(b) {
		return d.show(b), nil
	}

	// The part begins a block. Its text grows in d.text, because joining strings would copy it for each piece.
	out := d.close()
	d.open = b
	d.text.Reset()
	switch b := b.(type) {
	case content.Text:
		d.text.WriteString(b.Text)
	case content.Thinking:
		d.text.WriteString(b.Text)
	case content.ToolUse:
		d.calls = true
	}
	return append(out, d.show(b)...), nil
}

// isPiece reports whether a part is a piece of a call. Vertex AI streams calls so if streamFunctionCallArguments is set.
// The first piece looks like a call without arguments, and must not be executed.
func isPiece(part content.JSON) bool {
	list, _ := jsonx.Members(part)
	value, _ := jsonx.Take(list, "functionCall")
	call, _ := jsonx.Members(value) // none for another part
	continues, _ := jsonx.Take(call, "willContinue")
	pieces, _ := jsonx.Take(call, "partialArgs")
	return continues == "true" || pieces != ""
}

// grow adds b to the open block, and reports whether it could. Both must be text, or both thinking, without other
// members than a signature of b.
func (d *decoder) grow(b content.Block) bool {
	switch open := d.open.(type) {
	case content.Text:
		// A text of a whole response is complete. Only the signature of an empty text still belongs to it.
		text, signature, ok := plain(b)
		if !ok || open.Extra != (content.Extra{}) || d.apart && text != "" {
			return false
		}

		d.text.WriteString(text)
		open.Extra = signature
		d.open = open
		return true
	case content.Thinking:
		// A signature ends the thinking: it is for the text before it.
		more, ok := b.(content.Thinking)
		if !ok || open.Signature != "" || open.Extra.JSON != "{}" || more.Extra.JSON != "{}" ||
			d.apart && more.Text != "" {
			return false
		}

		d.text.WriteString(more.Text)
		open.Signature = more.Signature
		d.open = open
		return true
	}
	return false
}

// plain returns the text of b, and an Extra with its signature, if it has one. It is not ok if b has anything else.
func plain(b content.Block) (text string, signature content.Extra, ok bool) {
	var list []jsonx.Member
	switch b := b.(type) {
	case content.Text:
		text, signature = b.Text, b.Extra
		list, _ = jsonx.Members(b.Extra.JSON) // none without an Extra
	case content.Opaque: // an empty text
		list, _ = jsonx.Members(b.JSON)
		if _, list, ok = jsonx.TakeText(list, "text"); !ok {
			return "", signature, false
		}
		signature = extra(list)
	default:
		return "", signature, false
	}
	return text, signature, len(list) == 0 || len(list) == 1 && list[0].Name == thoughtSignature
}

// show returns the delta for a block or a piece of one; none if it has no text.
func (d *decoder) show(b content.Block) []api.Event {
	delta := api.Delta{Index: d.index}
	switch b := b.(type) {
	case content.Text:
		delta.Kind, delta.Text = api.DeltaText, b.Text
	case content.Thinking:
		delta.Kind, delta.Text = api.DeltaThinking, b.Text
	case content.ToolUse:
		delta.Kind, delta.Tool, delta.Text = api.DeltaInput, b.Name, string(b.Input)
	}

	if delta.Text == "" {
		return nil
	}
	return []api.Event{delta}
}

// close ends the open block.
func (d *decoder) close() []api.Event {
	if d.open == nil {
		return nil
	}

	// The text of an open block grows in d.text.
	switch b := d.open.(type) {
	case content.Text:
		b.Text = d.text.String()
		d.open = b
	case content.Thinking:
		b.Text = d.text.String()
		d.open = b
	}

	end := api.BlockEnd{Index: d.index, Block: d.open}
	d.index++
	d.open = nil
	return []api.Event{end}
}

// Ended reports false: the usage may come after the finish reason.
func (d *decoder) Ended() bool { return false }

// End returns the last events of the response.
func (d *decoder) End(broken error) ([]api.Event, error) {
	switch {
	case broken != nil && d.whole:
		return nil, broken
	case broken != nil && d.reason == "":
		return nil, cut(broken)
	}
	if err := d.complete(); err != nil {
		return nil, err
	}

	d.keepAbout()
	out := d.close()

	d.finish.API = API
	d.finish.Details = d.details.JSON()
	d.finish.Usage = d.usage.total()

	// A refused request has no candidate, and so no finish reason.
	if d.finish.Stop = stopOf(d.reason, d.calls); d.reason == "" && d.blocked != "" {
		d.finish.Stop = content.StopRefusal
	}

	return append(out, d.finish), nil
}

// complete returns the error of a response without a proper end, or nil.
func (d *decoder) complete() error {
	switch {
	case d.reason != "":
		return failedReason(d.reason, d.message)
	case d.blocked != "", d.whole && d.hasCandidate:
		return nil
	case d.whole:
		return protocol("the response has no candidate")
	}
	return cut(nil)
}

// keepAbout adds the API's information about the response to the Extra of its last block. If there is no such block, or
// if it is an Opaque, which has no Extra, the information is added to the details.
func (d *decoder) keepAbout() {
	if len(d.about) == 0 {
		return
	}

	if _, opaque := d.open.(content.Opaque); opaque || d.open == nil {
		for _, m := range d.about {
			d.details.Set(m.Name, m.Value)
		}
		return
	}
	further, _ := jsonx.Members(roundtrip.Extra(d.open).JSON) // none without an Extra
	d.open = roundtrip.WithExtra(d.open, content.Extra{API: API, JSON: jsonx.Object(append(further, d.about...))})
}
