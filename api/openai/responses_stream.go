package openai

import (
	"iter"
	"maps"
	"net/http"
	"slices"

	json "github.com/goccy/go-json/v2"
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/internal/roundtrip"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
)

// streamedResponse yields the events of a response sent as server-sent events. It stops at the end of the response. The
// server's further events are not read.
func streamedResponse(res *http.Response, c call) iter.Seq2[api.Event, error] {
	return roundtrip.Streamed(roundtrip.Events(res.Body), &responseDecoder{header: res.Header, limit: c.limit})
}

// responseEvent holds the members Plait reads of any event.
type responseEvent struct {
	Type     string    `json:"type"`
	Output   *int      `json:"output_index"` // some compatible servers send none
	ItemID   jsonx.Raw `json:"item_id"`
	Content  int       `json:"content_index"`
	Summary  int       `json:"summary_index"`
	Item     jsonx.Raw `json:"item"`
	Delta    jsonx.Raw `json:"delta"`
	Response jsonx.Raw `json:"response"`
}

// responseDecoder decodes a streamed response. The zero value is ready to use.
type responseDecoder struct {
	header  http.Header
	limit   int // see call
	items   itemDecoder
	indexes map[string]int       // the indexes of items by their IDs, for servers without output_index
	count   int                  // the number of items with an index
	names   map[int]string       // the tool names of calls, by the index of the call
	waiting map[int]content.JSON // items that ended before an item in front of them
	open    map[int]bool         // items that began and did not end
	next    int                  // the index of the first item not yielded yet
	blocks  []content.Block      // the blocks of the items before it
	thought [2]int               // the item and the part of the last thinking delta
	ended   bool                 // the last event was decoded
}

// Ended reports whether the last event was decoded.
func (d *responseDecoder) Ended() bool { return d.ended }

// End returns the error of a stream without its last event.
func (d *responseDecoder) End(broken error) ([]api.Event, error) {
	return nil, roundtrip.Cut(ResponsesAPI, broken)
}

// Take decodes the next event of the stream and returns the events to yield.
func (d *responseDecoder) Take(data []byte) ([]api.Event, error) {
	var e responseEvent
	if err := json.Unmarshal(data, &e, jsonx.Lenient); err != nil {
		if !content.JSON(data).Valid() {
			return nil, roundtrip.Protocol(ResponsesAPI, "%w: %w", roundtrip.ErrNotJSON, err)
		}
		if isError(data) {
			return nil, newError(ResponsesAPI, http.StatusOK, d.header, data)
		}
		return nil, roundtrip.Protocol(ResponsesAPI, "an event of the stream: %w", err)
	}

	switch e.Type {
	case "response.created", "response.in_progress":
		var r response
		if json.Unmarshal(e.Response, &r, jsonx.Lenient) != nil {
			return nil, nil // the last event repeats it
		}
		return []api.Event{r.cut()}, nil
	case itemAdded:
		return nil, d.begin(e)
	case itemDone:
		return d.end(e)
	case "response.output_text.delta", "response.refusal.delta":
		return d.delta(api.DeltaText, e), nil
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return d.delta(api.DeltaThinking, e), nil
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
		return d.delta(api.DeltaInput, e), nil
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		return d.finish(e, data)
	}

	if isError(data) {
		return nil, newError(ResponsesAPI, http.StatusOK, d.header, data)
	}
	return nil, nil // progress, or an event of a newer API
}

// index returns the index of an event's item: the event's output_index or, if the server sends none, the index of the
// item with the same ID. An item with a new ID gets the next index.
func (d *responseDecoder) index(e responseEvent) int {
	if e.Output != nil {
		d.count = max(d.count, *e.Output+1)
		return *e.Output
	}

	id := textOf(content.JSON(e.ItemID))
	if item, err := jsonx.Members(content.JSON(e.Item)); err == nil && id == "" {
		id = firstText(item, "id")
	}
	if i, known := d.indexes[id]; known {
		return i
	}

	// An event with an unknown ID belongs to an open item unless it begins one: to the first if it ends an item,
	// otherwise to the last.
	if open := slices.Sorted(maps.Keys(d.open)); len(open) > 0 && e.Type != itemAdded {
		if e.Type == itemDone {
			return open[0]
		}
		return open[len(open)-1]
	}

	i := d.count
	d.count++
	if id != "" {
		if d.indexes == nil {
			d.indexes = map[string]int{}
		}
		d.indexes[id] = i
	}
	return i
}

// The types of the events that begin and end an item.
const (
	itemAdded = "response.output_item.added"
	itemDone  = "response.output_item.done"
)

// begin records the beginning of an item.
func (d *responseDecoder) begin(e responseEvent) error {
	at := d.index(e)
	_, waits := d.waiting[at]
	if at < d.next || d.open[at] || waits {
		return roundtrip.Protocol(ResponsesAPI, "item %d begins twice", at)
	}

	if d.open == nil {
		d.open, d.names = map[int]bool{}, map[int]string{}
	}
	d.open[at] = true

	var call struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(e.Item, &call, jsonx.Lenient) // only calls have a name
	d.names[at] = call.Name
	return nil
}

// end records a complete item, and returns the blocks of all complete items without an incomplete one in front.
func (d *responseDecoder) end(e responseEvent) ([]api.Event, error) {
	at := d.index(e)
	if _, twice := d.waiting[at]; twice || at < d.next {
		return nil, roundtrip.Protocol(ResponsesAPI, "item %d ends twice", at)
	}

	if d.waiting == nil {
		d.waiting = map[int]content.JSON{}
	}
	delete(d.open, at)
	d.waiting[at] = content.JSON(e.Item)

	// An item waits until all items in front of it are complete.
	var out []api.Event
	for {
		item, ok := d.waiting[d.next]
		if !ok {
			return out, nil
		}
		delete(d.waiting, d.next)
		events, err := d.give(item)
		if out = append(out, events...); err != nil {
			return out, err
		}
	}
}

// give returns the blocks of the next item.
func (d *responseDecoder) give(item content.JSON) ([]api.Event, error) {
	blocks, err := d.items.blocks(item)
	if err != nil {
		return nil, roundtrip.Protocol(ResponsesAPI, "item %d: %w", d.next, err)
	}

	d.next++
	var out []api.Event
	for _, b := range blocks {
		out = append(out, api.BlockEnd{Index: len(d.blocks), Block: b})
		d.blocks = append(d.blocks, b)
	}
	return out, nil
}

// delta returns the delta for a fragment of an open item. Each part of a message is a block of its own; the parts of a
// summary are one block, separated by paragraph.
func (d *responseDecoder) delta(kind api.DeltaKind, e responseEvent) []api.Event {
	piece, _ := jsonx.Text(content.JSON(e.Delta))
	if piece == "" || len(d.open) == 0 || e.Content < 0 {
		return nil
	}

	at := d.index(e)
	if !d.open[at] {
		return nil
	}

	// Incomplete items in front count as one block each: their final number is not known yet.
	shown := api.Delta{Index: len(d.blocks) + at - d.next, Kind: kind, Text: piece}
	switch kind {
	case api.DeltaText:
		shown.Index += e.Content
	case api.DeltaInput:
		shown.Tool = d.names[at]
	case api.DeltaThinking:
		now := [2]int{at, e.Summary + e.Content}
		if d.thought[0] == now[0] && d.thought[1] != now[1] {
			shown.Text = paragraph + piece
		}
		d.thought = now
	}
	return []api.Event{shown}
}

// finish decodes the last event, with the whole response in it. Its items replace those not yielded yet. The argument
// data holds the event.
func (d *responseDecoder) finish(e responseEvent, data []byte) ([]api.Event, error) {
	var r response
	if err := json.Unmarshal(e.Response, &r, jsonx.Lenient); err != nil {
		return nil, roundtrip.Protocol(ResponsesAPI, "the end of the stream: %w", err)
	}

	// Some servers leave out the status. The type of the event ends in it.
	if r.Status == "" {
		r.Status = e.Type[len("response."):]
	}
	if err := r.failed(d.header, e.Response); err != nil {
		return []api.Event{r.cut()}, err
	}

	rest, err := d.rest(r.Output)
	if err != nil {
		return nil, err
	}

	var out []api.Event
	for _, item := range rest {
		events, err := d.give(item)
		if out = append(out, events...); err != nil {
			return out, err
		}
	}

	// Some servers report their timings beside the response.
	var details roundtrip.Details
	details.Add(data, "type", "response", "sequence_number")

	finish, err := r.finish(d.blocks, d.limit, details)
	if err != nil {
		return out, err
	}

	d.ended = true
	return append(out, finish), nil
}

// rest returns the items not yielded yet: those in output or, if a server sends none there, the waiting ones.
func (d *responseDecoder) rest(output []jsonx.Raw) ([]content.JSON, error) {
	var rest []content.JSON
	if len(output) > 0 {
		// Output has all items, but those before next were yielded already.
		for _, item := range output[min(d.next, len(output)):] {
			rest = append(rest, content.JSON(item))
		}
		return rest, nil
	}

	if len(d.open) > 0 {
		return nil, roundtrip.Protocol(ResponsesAPI, "the stream ends with %d incomplete items", len(d.open))
	}

	for _, i := range slices.Sorted(maps.Keys(d.waiting)) {
		rest = append(rest, d.waiting[i])
	}
	return rest, nil
}
