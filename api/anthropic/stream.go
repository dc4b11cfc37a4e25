package anthropic

import (
	"iter"
	"net/http"

	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"
	json "github.com/goccy/go-json/v2"
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/internal/roundtrip"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/wire"
)

// streamed yields the events of a response of server-sent events, or of Bedrock's stream. It stops at the end of the
// response, and ignores anything the server sends afterward.
func streamed(res *http.Response) iter.Seq2[api.Event, error] {
	res.Body = wire.WithEnd(res.Body)
	events := func(yield func([]byte, error) bool) {
		stream := ssestream.NewDecoder(res) // by the content type
		for stream.Next() {
			if data := stream.Event().Data; !blank(string(data)) && !yield(data, nil) {
				return
			}
		}
		if err := stream.Err(); err != nil {
			yield(nil, err)
		}
	}
	return roundtrip.Streamed(events, &decoder{header: res.Header})
}

// cut returns the error of a response that ends early.
func cut(err error) error { return roundtrip.Cut(API, err) }

// event is any event of the stream.
type event struct {
	Type    string    `json:"type"`
	Index   int       `json:"index"`
	Message message   `json:"message"`
	Block   jsonx.Raw `json:"content_block"`
	Delta   jsonx.Raw `json:"delta"`
	Usage   usage     `json:"usage"`
	Further jsonx.Raw `json:",embed"` // all others
}

// decoder assembles a streamed response. The zero value is ready to use.
type decoder struct {
	header  http.Header
	finish  api.Finish
	tokens  tokens
	details roundtrip.Details
	blocks  []*assembly
	// The number of blocks yielded. They are yielded in order.
	given int
	// A block is of a server tool, or made by one, so the end of the stream may name a container.
	served bool
	// Set by message_stop.
	ended bool
}

// Take decodes the next event of the stream, and returns the events to emit.
func (d *decoder) Take(data []byte) ([]api.Event, error) {
	out, err := d.event(data)
	if err != nil {
		out = append(out, d.held()...)
	}
	return out, err
}

// Ended reports whether the last event was decoded.
func (d *decoder) Ended() bool { return d.ended }

// End returns what arrived of a response that broke off.
func (d *decoder) End(broken error) ([]api.Event, error) { return d.held(), cut(broken) }

// event is Take without the block that waits for the end of the response.
func (d *decoder) event(data []byte) ([]api.Event, error) {
	// Text other than JSON may be an event cut off early. Anything else breaks the protocol.
	var e event
	if err := json.Unmarshal(data, &e, jsonx.Lenient); err != nil {
		if !content.JSON(data).Valid() {
			return nil, protocol("%w: %w", roundtrip.ErrNotJSON, err)
		}
		return nil, protocol("an event of the stream: %w", err)
	}

	switch e.Type {
	case "message_start":
		d.finish = api.Finish{
			API: API, Model: e.Message.Model, ResponseID: e.Message.ID,
			Stop: stopOf(e.Message.StopReason, e.Message.StopWord),
		}
		d.count(e.Message.Usage)
		d.details.Add(e.Message.Further)

		// The finish so far, in case the response breaks off.
		return []api.Event{api.Cut{Finish: d.finish}}, nil
	case "content_block_start":
		return d.start(e)
	case "content_block_delta":
		return d.delta(e)
	case "content_block_stop":
		return d.stop(e)
	case "message_delta":
		err := d.messageDelta(e)
		return []api.Event{api.Cut{Finish: d.finish}}, err
	case "message_stop":
		d.details.Add(e.Further)
		return d.end()
	case "error":
		return nil, newError(http.StatusOK, d.header, data)
	}
	return nil, nil // a ping, or an event of a newer API
}

// start begins a block.
func (d *decoder) start(e event) ([]api.Event, error) {
	if e.Index != len(d.blocks) {
		return nil, protocol("block %d begins after %d blocks", e.Index, len(d.blocks))
	}

	a, err := assemble(content.JSON(e.Block))
	if err != nil {
		return nil, protocol("block %d: %w", e.Index, err)
	}
	d.blocks = append(d.blocks, a)
	caller, _ := jsonx.Take(a.members, "caller")
	d.served = d.served || isServerCall(a.kind) || isServerResult(a.kind) || caller != ""
	return d.ready(false)
}

// delta adds to a block.
func (d *decoder) delta(e event) ([]api.Event, error) {
	a, err := d.open(e.Index)
	if err != nil {
		return nil, err
	}

	kind, piece, err := a.add(content.JSON(e.Delta))
	if err != nil {
		return nil, protocol("block %d: %w", e.Index, err)
	}

	if kind == "" || piece == "" {
		return nil, nil
	}
	return []api.Event{api.Delta{Index: e.Index, Kind: kind, Tool: a.tool, Text: piece}}, nil
}

// stop marks a block as complete.
func (d *decoder) stop(e event) ([]api.Event, error) {
	a, err := d.open(e.Index)
	if err != nil {
		return nil, err
	}
	a.done = true
	return d.ready(false)
}

// open returns block i. The block must be open.
func (d *decoder) open(i int) (*assembly, error) {
	if i < 0 || i >= len(d.blocks) || d.blocks[i].done {
		return nil, protocol("block %d is not open", i)
	}
	return d.blocks[i], nil
}

// messageDelta updates the usage and the stop reason.
func (d *decoder) messageDelta(e event) error {
	d.count(e.Usage)

	var delta struct {
		StopReason string    `json:"stop_reason"`
		StopWord   jsonx.Raw `json:"stop_sequence"`
		Further    jsonx.Raw `json:",embed"`
	}
	if len(e.Delta) > 0 {
		if err := json.Unmarshal(e.Delta, &delta, jsonx.Lenient); err != nil {
			return protocol("the end of the stream: %w", err)
		}
	}

	// A fact about the whole response is in the event or, as the container, in its delta.
	d.details.Add(e.Further)
	d.details.Add(delta.Further)

	if delta.StopReason != "" {
		d.finish.Stop = stopOf(delta.StopReason, delta.StopWord)
	}
	return nil
}

// count updates the usage.
func (d *decoder) count(u usage) {
	u.update(&d.tokens)
	d.finish.Usage = d.tokens.total()
	d.details.AddUsage(u.Further)
}

// ready returns the complete blocks, in order. The last one is kept until the end of the response if the end decides
// about it: whether a call without arguments is complete, and which container a server tool used.
func (d *decoder) ready(end bool) ([]api.Event, error) {
	var out []api.Event
	for ; d.given < len(d.blocks); d.given++ {
		a, last := d.blocks[d.given], d.given == len(d.blocks)-1
		if !end && (!a.done || last && (a.emptyCall() || d.served)) {
			break
		}

		b, err := a.block()
		if err != nil {
			return out, protocol("block %d: %w", d.given, err)
		}

		// Only the last block of a response can have been cut off.
		if last && end {
			b = withContainer(cutCall(b, d.finish.Stop), d.finish.Stop, d.details.Get(containerMember))
		}
		out = append(out, api.BlockEnd{Index: d.given, Block: b})
	}
	return out, nil
}

// held returns the complete block that waits for the end of a response that broke off.
func (d *decoder) held() []api.Event {
	if d.given == len(d.blocks) || !d.blocks[d.given].done {
		return nil
	}
	b, err := d.blocks[d.given].block()
	if err != nil {
		return nil
	}
	d.given++
	return []api.Event{api.BlockEnd{Index: d.given - 1, Block: b}}
}

// end returns the last events of the response.
func (d *decoder) end() ([]api.Event, error) {
	out, err := d.ready(true)
	if err != nil {
		return out, err
	}

	// A compatible server leaves out message_start if the response ends without content. Its stop reason is still sent.
	if d.finish == (api.Finish{}) && len(d.blocks) == 0 {
		return out, protocol("the stream ends before message_start")
	}
	if d.finish.API == "" {
		d.finish.API, d.finish.Usage.Incomplete = API, true // the beginning has the tokens of the request
	}

	d.finish.Details = d.details.JSON()
	d.ended = true
	return append(out, d.finish), nil
}
