package openai

import (
	"cmp"
	"errors"
	"io"
	"iter"
	"net/http"

	json "github.com/goccy/go-json/v2"
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/roundtrip"
	"github.com/plait-dev/plait/internal/wire"
)

// completion is an answer as the API writes it, or a chunk of one. What Plait only passes on is read as it is: a server that
// writes it in another form must not cost an answer.
type completion struct {
	ID      wire.Raw `json:"id"`
	Model   wire.Raw `json:"model"`
	Choices []choice `json:"choices"`
	Usage   wire.Raw `json:"usage"`
}

type choice struct {
	Index   wire.Raw `json:"index"`
	Delta   wire.Raw `json:"delta"`
	Message wire.Raw `json:"message"`
	Reason  wire.Raw `json:"finish_reason"`
	Usage   wire.Raw `json:"usage"`
}

// chatDecoder puts an answer together, streamed or whole.
type chatDecoder struct {
	header http.Header
	finish api.Finish
	answer *chatAnswer
	ended  bool // the model came to an end
}

func newChatDecoder(header http.Header) *chatDecoder {
	return &chatDecoder{header: header, finish: api.Finish{API: ChatAPI}, answer: newChatAnswer()}
}

// streamedChat yields the events of an answer that comes as server-sent events. The model's end is the answer's, whether or not
// "[DONE]" follows; what comes between, the usage, is still read.
func streamedChat(res *http.Response, _ call) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		d := newChatDecoder(res.Header)
		var broken error
		for data, err := range sse(res) {
			if err == nil && broken != nil {
				yield(nil, broken) // another event followed, so that it was not cut off
				return
			}
			var shown []api.Event
			if err == nil {
				before := d.finish
				if shown, err = d.take(data); d.finish != before {
					shown = append(shown, api.Cut{Finish: d.finish})
				}
			}
			var failure *api.Error
			if broken = err; errors.As(err, &failure) && !errors.Is(err, errNoEvent) {
				yield(nil, err)
				return
			}
			for _, e := range shown {
				if !yield(e, nil) {
					return
				}
			}
		}
		if !d.ended {
			yield(nil, roundtrip.Cut(ChatAPI, broken))
			return
		}
		d.end(yield)
	}
}

// wholeChat yields the events of an answer that comes at once.
func wholeChat(res *http.Response, _ call) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		data, err := io.ReadAll(res.Body)
		if err != nil {
			yield(nil, roundtrip.Cut(ChatAPI, err))
			return
		}
		d := newChatDecoder(res.Header)
		if err := d.takeWhole(data); err != nil {
			yield(nil, err)
			return
		}
		d.end(yield)
	}
}

// take goes on with the next chunk, and returns what it shows.
func (d *chatDecoder) take(data []byte) ([]api.Event, error) {
	c, err := d.read(data)
	if err != nil {
		return nil, err
	}
	for _, choice := range c.Choices {
		if !choice.first() {
			continue
		}
		shown, err := d.answer.add(mended(content.JSON(choice.Delta)), false)
		if err != nil && len(choice.Delta) > 0 && choice.Delta.Kind() != 'n' {
			return nil, roundtrip.Protocol(ChatAPI, "a chunk of the stream: %w", err)
		}
		d.close(choice)
		return d.deltas(shown), nil
	}
	return nil, nil
}

// takeWhole reads a whole answer.
func (d *chatDecoder) takeWhole(data []byte) error {
	c, err := d.read(data)
	if err != nil {
		return err
	}
	for _, choice := range c.Choices {
		if !choice.first() {
			continue
		}
		if _, err := d.answer.add(mended(content.JSON(choice.Message)), true); err != nil {
			return roundtrip.Protocol(ChatAPI, "the answer's message: %w", err)
		}
		d.close(choice)
		return nil
	}
	return roundtrip.Protocol(ChatAPI, "the answer has no message")
}

// read reads what chunks and whole answers have in common.
func (d *chatDecoder) read(data []byte) (completion, error) {
	var c completion
	if err := json.Unmarshal(data, &c, wire.Lenient); err != nil {
		if !content.JSON(data).Valid() {
			return c, roundtrip.Protocol(ChatAPI, "%w: %w", errNoEvent, err)
		}
		return c, roundtrip.Protocol(ChatAPI, "the answer is no completion: %w", err)
	}
	if isError(data) {
		return c, newError(ChatAPI, http.StatusOK, d.header, data)
	}
	d.finish.ResponseID = cmp.Or(d.finish.ResponseID, textOf(content.JSON(c.ID)))
	d.finish.Model = cmp.Or(d.finish.Model, textOf(content.JSON(c.Model)))
	d.finish.Usage = usageOf(d.finish.Usage, c.Usage)
	return c, nil
}

// first reports whether c is the first of the answers that were asked for, the only one that is read.
func (c choice) first() bool {
	return len(c.Index) == 0 || c.Index.Kind() == 'n' || string(c.Index) == "0"
}

// close takes what a choice says of the end.
func (d *chatDecoder) close(c choice) {
	d.finish.Usage = usageOf(d.finish.Usage, c.Usage)
	if reason := textOf(content.JSON(c.Reason)); reason != "" {
		d.finish.Stop, d.ended = stopOf(reason), true
	}
}

func (d *chatDecoder) deltas(shown []piece) []api.Event {
	var out []api.Event
	for _, p := range shown {
		delta := api.Delta{Index: d.answer.place(p), Kind: p.kind, Text: p.text}
		if p.call != nil {
			delta.Tool = p.call.name
		}
		out = append(out, delta)
	}
	return out
}

// end yields the blocks and the end of the answer.
func (d *chatDecoder) end(yield func(api.Event, error) bool) {
	stop := d.finish.Stop
	for i, b := range d.answer.blocks(stop != content.StopMaxTokens && stop != content.StopRefusal) {
		if !yield(api.BlockEnd{Index: i, Block: b}, nil) {
			return
		}
	}
	if stop == content.StopEndTurn { // also said where a call was forced, or in the place of an answer
		switch {
		case len(d.answer.calls) > 0:
			d.finish.Stop = content.StopToolUse
		case d.answer.refusal.says():
			d.finish.Stop = content.StopRefusal
		}
	}
	yield(d.finish, nil)
}

// stopOf maps the API's finish_reason. New words are kept.
func stopOf(reason string) content.Stop {
	switch reason {
	case "stop":
		return content.StopEndTurn
	case "tool_calls", "function_call":
		return content.StopToolUse
	case "length":
		return content.StopMaxTokens
	case "content_filter":
		return content.StopRefusal
	}
	return content.Stop(reason)
}

// usageOf is what the API counts: the tokens of the request include those that a cache had or was given, and those of the answer
// include thinking. A usage that cannot be read, or none, leaves what was counted before.
func usageOf(before content.Usage, raw wire.Raw) content.Usage {
	var u struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
		Hit        int64 `json:"prompt_cache_hit_tokens"` // DeepSeek's
		Details    struct {
			Cached  int64 `json:"cached_tokens"`
			Written int64 `json:"cache_write_tokens"`
		} `json:"prompt_tokens_details"`
		Said struct {
			Reasoning int64 `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	}
	if len(raw) == 0 || raw.Kind() != '{' || json.Unmarshal(raw, &u, wire.Lenient) != nil {
		return before
	}
	read, written := max(u.Details.Cached, u.Hit, 0), max(u.Details.Written, 0)
	return content.Usage{
		Input: max(u.Prompt-read-written, 0), Output: max(u.Completion, 0),
		CacheRead: read, CacheWrite: written, Reasoning: max(u.Said.Reasoning, 0),
	}
}
