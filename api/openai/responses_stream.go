package openai

import (
	"errors"
	"iter"
	"maps"
	"net/http"
	"slices"

	json "github.com/goccy/go-json/v2"
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/roundtrip"
	"github.com/plait-dev/plait/internal/wire"
)

// streamedResponse yields the events of an answer that comes as server-sent events. It ends after the answer's end, whatever the
// server sends then.
func streamedResponse(res *http.Response, c call) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		d := responseDecoder{header: res.Header, limit: c.limit}
		var broken error
		for data, err := range sse(res) {
			if err != nil {
				yield(nil, roundtrip.Cut(ResponsesAPI, err))
				return
			}
			if broken != nil {
				yield(nil, broken)
				return
			}
			out, err := d.take(data)
			for _, e := range out {
				if !yield(e, nil) {
					return
				}
			}
			switch {
			case errors.Is(err, errNoEvent):
				broken = err // the rest of it may be what is missing
			case err != nil:
				yield(nil, err)
				return
			case d.ended:
				return
			}
		}
		yield(nil, roundtrip.Cut(ResponsesAPI, broken))
	}
}

var errNoEvent = errors.New("an event of the stream is not JSON")

// responseEvent is any event of the stream.
type responseEvent struct {
	Type     string   `json:"type"`
	Output   *int     `json:"output_index"` // some compatible servers send none
	ItemID   wire.Raw `json:"item_id"`
	Content  int      `json:"content_index"`
	Summary  int      `json:"summary_index"`
	Item     wire.Raw `json:"item"`
	Delta    wire.Raw `json:"delta"`
	Response wire.Raw `json:"response"`
}

// responseDecoder puts a streamed answer together. The zero value is ready to use.
type responseDecoder struct {
	header  http.Header
	limit   int // see call
	items   itemDecoder
	indexes map[string]int       // of items, by their ids
	count   int                  // the number of items that have an index
	names   map[int]string       // of tools, by the index of the call
	waiting map[int]content.JSON // items that ended before those in front of them
	open    map[int]bool         // items that began and did not end
	next    int                  // the index of the first item that did not end
	said    []content.Block      // by the items before it
	thought [2]int               // the item, and its part, that thinking was shown of
	ended   bool
}

// take returns what the next event of the stream means.
func (d *responseDecoder) take(data []byte) ([]api.Event, error) {
	var e responseEvent
	if err := json.Unmarshal(data, &e, wire.Lenient); err != nil {
		if !content.JSON(data).Valid() {
			return nil, roundtrip.Protocol(ResponsesAPI, "%w: %w", errNoEvent, err)
		}
		if isError(data) {
			return nil, newError(ResponsesAPI, http.StatusOK, d.header, data)
		}
		return nil, roundtrip.Protocol(ResponsesAPI, "an event of the stream: %w", err)
	}
	switch e.Type {
	case "response.created", "response.in_progress":
		var r response
		if json.Unmarshal(e.Response, &r, wire.Lenient) != nil {
			return nil, nil // the last event tells it again
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
		return d.finish(e)
	}
	if isError(data) {
		return nil, newError(ResponsesAPI, http.StatusOK, d.header, data)
	}
	return nil, nil // progress, or what a newer API says beside the answer
}

// index returns the index of the item that an event is about: the event's output_index or, where a server sends none, that of the
// item with the same id. An item whose id is new gets the next index.
func (d *responseDecoder) index(e responseEvent) int {
	if e.Output != nil {
		d.count = max(d.count, *e.Output+1)
		return *e.Output
	}

	id := textOf(content.JSON(e.ItemID))
	if item, err := wire.Members(content.JSON(e.Item)); err == nil && id == "" {
		id = firstText(item, "id")
	}
	if i, known := d.indexes[id]; known {
		return i
	}

	// An event that continues an item, under an id that did not begin one, is about the only item that can be meant.
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

// The events at the beginning and at the end of an item.
const (
	itemAdded = "response.output_item.added"
	itemDone  = "response.output_item.done"
)

// begin takes the beginning of an item.
func (d *responseDecoder) begin(e responseEvent) error {
	at := d.index(e)
	_, waits := d.waiting[at]
	if at < d.next || d.open[at] || waits {
		return roundtrip.Protocol(ResponsesAPI, "item %d begins a second time", at)
	}

	if d.open == nil {
		d.open, d.names = map[int]bool{}, map[int]string{}
	}
	d.open[at] = true

	var call struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(e.Item, &call, wire.Lenient) // an item without a name has none
	d.names[at] = call.Name
	return nil
}

// end takes a whole item, and yields its blocks once those in front of it have ended.
func (d *responseDecoder) end(e responseEvent) ([]api.Event, error) {
	at := d.index(e)
	if _, twice := d.waiting[at]; twice || at < d.next {
		return nil, roundtrip.Protocol(ResponsesAPI, "item %d ends a second time", at)
	}

	if d.waiting == nil {
		d.waiting = map[int]content.JSON{}
	}
	delete(d.open, at)
	d.waiting[at] = content.JSON(e.Item)

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

// give yields the blocks of the next item.
func (d *responseDecoder) give(item content.JSON) ([]api.Event, error) {
	blocks, err := d.items.blocks(item)
	if err != nil {
		return nil, roundtrip.Protocol(ResponsesAPI, "item %d: %w", d.next, err)
	}
	d.next++
	var out []api.Event
	for _, b := range blocks {
		out = append(out, api.BlockEnd{Index: len(d.said), Block: b})
		d.said = append(d.said, b)
	}
	return out, nil
}

// delta shows a piece of an item that is open. The parts of a message are blocks of their own, those of a summary are not.
func (d *responseDecoder) delta(kind api.DeltaKind, e responseEvent) []api.Event {
	piece, _ := wire.Text(content.JSON(e.Delta))
	if piece == "" || len(d.open) == 0 || e.Content < 0 {
		return nil
	}
	at := d.index(e)
	if !d.open[at] {
		return nil
	}

	shown := api.Delta{Index: len(d.said) + at - d.next, Kind: kind, Text: piece}
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

// finish takes the last event, which holds the whole answer. Its items are the truth for all that were not given yet.
func (d *responseDecoder) finish(e responseEvent) ([]api.Event, error) {
	var r response
	if err := json.Unmarshal(e.Response, &r, wire.Lenient); err != nil {
		return nil, roundtrip.Protocol(ResponsesAPI, "the end of the stream: %w", err)
	}
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
	finish, err := r.finish(d.said, d.limit)
	if err != nil {
		return out, err
	}
	d.ended = true
	return append(out, finish), nil
}

// rest is the items that were not given yet: those of the whole answer, or, where a server leaves them out there, those that waited.
func (d *responseDecoder) rest(output []wire.Raw) ([]content.JSON, error) {
	var rest []content.JSON
	if len(output) > 0 {
		for _, item := range output[min(d.next, len(output)):] {
			rest = append(rest, content.JSON(item))
		}
		return rest, nil
	}
	if len(d.open) > 0 {
		return nil, roundtrip.Protocol(ResponsesAPI, "the stream ends with %d items that did not end", len(d.open))
	}
	for _, i := range slices.Sorted(maps.Keys(d.waiting)) {
		rest = append(rest, d.waiting[i])
	}
	return rest, nil
}
