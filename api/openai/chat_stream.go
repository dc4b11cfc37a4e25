package openai

import (
	"cmp"
	"errors"
	"iter"
	"net/http"

	json "github.com/goccy/go-json/v2"
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/internal/roundtrip"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
)

// completion is a whole response or a chunk of a stream, in the form of the API. Members only passed on by Plait stay
// raw: an unexpected form of one must not fail the whole response.
type completion struct {
	ID      jsonx.Raw `json:"id"`
	Model   jsonx.Raw `json:"model"`
	Choices []choice  `json:"choices"`
	Usage   jsonx.Raw `json:"usage"`

	// Members neither used nor kept: the kind of the document, its time, padding, an empty error.
	Object  jsonx.Raw `json:"object"`
	Created jsonx.Raw `json:"created"`
	Padding jsonx.Raw `json:"obfuscation"`
	Error   jsonx.Raw `json:"error"`

	Further jsonx.Raw `json:",embed"` // all others, for api.Finish.Details
}

// choice is one of the alternative responses of a completion.
type choice struct {
	Index   jsonx.Raw `json:"index"`
	Delta   jsonx.Raw `json:"delta"`
	Message jsonx.Raw `json:"message"`
	Reason  jsonx.Raw `json:"finish_reason"`
	Usage   jsonx.Raw `json:"usage"`
	Chances jsonx.Raw `json:"logprobs"`
	Further jsonx.Raw `json:",embed"` // all others, for api.Finish.Details
}

// chatDecoder decodes a response, streamed or whole.
type chatDecoder struct {
	header   http.Header
	finish   api.Finish
	answer   *chatAnswer
	details  roundtrip.Details
	logprobs tree // they arrive with the deltas, in pieces
	ended    bool // a finish_reason was received: the response is complete
}

func newChatDecoder(header http.Header) *chatDecoder {
	return &chatDecoder{header: header, finish: api.Finish{API: ChatAPI}, answer: newChatAnswer()}
}

// streamedChat yields the events of a response sent as server-sent events. The response is complete once the model's
// finish_reason was received, whether or not "[DONE]" follows. Chunks after it, such as the usage, are still read.
func streamedChat(res *http.Response, _ call) iter.Seq2[api.Event, error] {
	return roundtrip.Streamed(roundtrip.Events(res.Body), newChatDecoder(res.Header))
}

// wholeChat yields the events of a response sent as one JSON document.
func wholeChat(res *http.Response, _ call) iter.Seq2[api.Event, error] {
	return roundtrip.Whole(ChatAPI, res, func(body []byte) ([]content.Block, api.Finish, error) {
		d := newChatDecoder(res.Header)
		if err := d.takeWhole(body); err != nil {
			return nil, api.Finish{}, err
		}
		blocks, finish := d.end()
		return blocks, finish, nil
	})
}

// Take decodes the next chunk and returns the events to show.
func (d *chatDecoder) Take(data []byte) ([]api.Event, error) {
	before := d.finish
	out, err := d.chunk(data)
	if err == nil && d.finish != before {
		out = append(out, api.Cut{Finish: d.finish})
	}
	return out, err
}

// Ended reports false: chunks after the end of the response are read, too.
func (d *chatDecoder) Ended() bool { return false }

// End returns the last events of the response.
func (d *chatDecoder) End(broken error) ([]api.Event, error) {
	if !d.ended {
		return nil, roundtrip.Cut(ChatAPI, broken)
	}
	blocks, finish := d.end()
	var out []api.Event
	for i, b := range blocks {
		out = append(out, api.BlockEnd{Index: i, Block: b})
	}
	return append(out, finish), nil
}

// chunk is Take without the facts about the response so far.
func (d *chatDecoder) chunk(data []byte) ([]api.Event, error) {
	c, err := d.read(data, roundtrip.ErrNotJSON)
	if err != nil {
		return nil, err
	}

	for _, choice := range c.Choices {
		if !choice.first() {
			continue
		}

		// A missing delta is fine, as is null: the last chunks of some servers have none.
		shown, err := d.answer.add(mended(content.JSON(choice.Delta)), false)
		if err != nil && len(choice.Delta) > 0 && choice.Delta.Kind() != 'n' {
			return nil, roundtrip.Protocol(ChatAPI, "a chunk of the stream: %w", err)
		}

		d.close(choice)
		return d.deltas(shown), nil
	}
	return nil, nil
}

// errNotJSON is the error of a whole response that is not JSON.
var errNotJSON = errors.New("the response is not JSON")

// takeWhole decodes a whole response.
func (d *chatDecoder) takeWhole(data []byte) error {
	c, err := d.read(data, errNotJSON)
	if err != nil {
		return err
	}

	for _, choice := range c.Choices {
		if !choice.first() {
			continue
		}

		if _, err := d.answer.add(mended(content.JSON(choice.Message)), true); err != nil {
			return roundtrip.Protocol(ChatAPI, "the message of the response: %w", err)
		}
		d.close(choice)
		return nil
	}

	return roundtrip.Protocol(ChatAPI, "the response has no message")
}

// read decodes the common parts of chunks and whole responses. notJSON is the error for data other than JSON.
func (d *chatDecoder) read(data []byte, notJSON error) (completion, error) {
	var c completion
	err := json.Unmarshal(data, &c, jsonx.Lenient)
	switch {
	case err != nil && !content.JSON(data).Valid():
		return c, roundtrip.Protocol(ChatAPI, "%w: %w", notJSON, err)
	// Before the other members: an error may have any form around it, such as a list.
	case isError(data):
		return c, newError(ChatAPI, http.StatusOK, d.header, data)
	case err != nil:
		return c, roundtrip.Protocol(ChatAPI, "the response is not a completion: %w", err)
	}

	d.finish.ResponseID = cmp.Or(d.finish.ResponseID, textOf(content.JSON(c.ID)))
	d.finish.Model = cmp.Or(d.finish.Model, textOf(content.JSON(c.Model)))
	d.count(c.Usage)
	d.details.Add(c.Further)
	return c, nil
}

// count reads a usage.
func (d *chatDecoder) count(usage jsonx.Raw) {
	d.finish.Usage = usageOf(d.finish.Usage, usage)
	d.details.AddUsage(usage, "prompt_tokens", "completion_tokens", "total_tokens", "prompt_cache_hit_tokens",
		"prompt_cache_miss_tokens", "prompt_tokens_details.cached_tokens", "prompt_tokens_details.cache_write_tokens",
		"completion_tokens_details.reasoning_tokens")
}

// first reports whether c is the first of several choices. The others are ignored.
func (c choice) first() bool {
	return len(c.Index) == 0 || c.Index.Kind() == 'n' || string(c.Index) == "0"
}

// close reads the members of a choice beside its message.
func (d *chatDecoder) close(c choice) {
	d.count(c.Usage)
	d.details.Add(c.Further)
	d.logprobs.add("logprobs", content.JSON(c.Chances), 0)
	if reason := textOf(content.JSON(c.Reason)); reason != "" {
		d.finish.Stop, d.ended = stopOf(reason), true
		if d.finish.Stop == content.StopRefusal {
			d.details.Set("finish_reason", jsonx.Quote(reason)) // a filter, not the model
		}
	}
}

// deltas returns the events for pieces.
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

// end returns the blocks and the end of the response.
func (d *chatDecoder) end() ([]content.Block, api.Finish) {
	stop := d.finish.Stop
	if d.logprobs.nonEmpty() {
		d.details.Set("logprobs", d.logprobs.json())
	}
	d.finish.Usage.Incomplete = d.finish.Usage.Incomplete || pricedTier(&d.details)
	d.finish.Details = d.details.JSON()

	// The API reports "stop" also after a forced call and after a refusal.
	if stop == content.StopEndTurn {
		switch {
		case len(d.answer.calls) > 0:
			d.finish.Stop = content.StopToolUse
		case d.answer.refusal.nonEmpty():
			d.finish.Stop = content.StopRefusal
		}
	}

	// Tool calls of a response cut off early may lack their arguments.
	return d.answer.blocks(stop != content.StopMaxTokens && stop != content.StopRefusal), d.finish
}

// stopOf converts the API's finish_reason to a stop reason. An unknown one is kept as it is.
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

// pricedTier reports whether a response was served at another price than that of its tokens.
func pricedTier(d *roundtrip.Details) bool {
	tier := textOf(d.Get("service_tier"))
	return tier == "flex" || tier == "priority"
}

// usageOf converts the API's usage. The API counts cached tokens, read and written, as part of the prompt, and thinking
// as part of the completion. If raw is absent or cannot be decoded, usageOf returns before.
func usageOf(before content.Usage, raw jsonx.Raw) content.Usage {
	var u struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
		Hit        int64 `json:"prompt_cache_hit_tokens"` // from DeepSeek
		Details    struct {
			Cached  int64 `json:"cached_tokens"`
			Written int64 `json:"cache_write_tokens"`
			Audio   int64 `json:"audio_tokens"`
		} `json:"prompt_tokens_details"`
		Said struct {
			Reasoning int64 `json:"reasoning_tokens"`
			Audio     int64 `json:"audio_tokens"`
		} `json:"completion_tokens_details"`
	}
	if len(raw) == 0 || raw.Kind() != '{' || json.Unmarshal(raw, &u, jsonx.Lenient) != nil {
		return before
	}

	read, written := max(u.Details.Cached, u.Hit, 0), max(u.Details.Written, 0)
	return content.Usage{
		Input: max(u.Prompt-read-written, 0), Output: max(u.Completion, 0),
		CacheRead: read, CacheWrite: written, Reasoning: max(u.Said.Reasoning, 0),
		Incomplete: u.Details.Audio > 0 || u.Said.Audio > 0, // audio has a price of its own
	}
}
