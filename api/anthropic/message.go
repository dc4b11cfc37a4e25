package anthropic

import (
	"net/http"

	json "github.com/goccy/go-json/v2"
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/roundtrip"
)

// message is a response. In a stream, message_start holds the beginning of one.
type message struct {
	Type       string      `json:"type"`
	ID         string      `json:"id"`
	Model      string      `json:"model"`
	Content    []jsonx.Raw `json:"content"`
	StopReason string      `json:"stop_reason"`
	StopWord   jsonx.Raw   `json:"stop_sequence"`
	Usage      usage       `json:"usage"`

	Role    jsonx.Raw `json:"role"`   // always the assistant
	Further jsonx.Raw `json:",embed"` // all others, for api.Finish.Details
}

// usage is the API's token counts. A stream reports them several times. Each report is complete for the members it has.
type usage struct {
	Input      *int64 `json:"input_tokens"`
	Output     *int64 `json:"output_tokens"`
	CacheRead  *int64 `json:"cache_read_input_tokens"`
	CacheWrite *int64 `json:"cache_creation_input_tokens"`
	Details    struct {
		Thinking *int64 `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// update copies the counts present in u to total.
func (u usage) update(total *content.Usage) {
	for _, count := range []struct {
		to   *int64
		from *int64
	}{
		{&total.Input, u.Input},
		{&total.Output, u.Output},
		{&total.CacheRead, u.CacheRead},
		{&total.CacheWrite, u.CacheWrite},
		{&total.Reasoning, u.Details.Thinking},
	} {
		if count.from != nil {
			*count.to = *count.from
		}
	}
}

// decodeMessage reads a response sent whole, not streamed.
func decodeMessage(data []byte, header http.Header) ([]content.Block, api.Finish, error) {
	var m message
	if err := json.Unmarshal(data, &m, jsonx.Lenient); err != nil {
		return nil, api.Finish{}, protocol("the response is not a message: %w", err)
	}

	switch m.Type {
	case "message":
	case "error":
		return nil, api.Finish{}, newError(http.StatusOK, header, data)
	default:
		return nil, api.Finish{}, protocol("the response has type %q and is not a message", m.Type)
	}

	blocks := make([]content.Block, len(m.Content))
	for i, raw := range m.Content {
		b, err := decodeBlock(content.JSON(raw))
		if err != nil {
			return nil, api.Finish{}, protocol("block %d of the response: %w", i, err)
		}
		blocks[i] = b
	}

	finish := api.Finish{API: API, Model: m.Model, ResponseID: m.ID, Stop: stopOf(m.StopReason, m.StopWord)}
	m.Usage.update(&finish.Usage)
	var details roundtrip.Details
	details.Add(m.Further)
	finish.Details = details.JSON()

	// Only the last block can have been cut off.
	if n := len(blocks); n > 0 {
		blocks[n-1] = withContainer(cutCall(blocks[n-1], finish.Stop), finish.Stop, details.Get(containerMember))
	}
	return blocks, finish, nil
}

// cutCall returns the last block of a response. If the response was cut off at a tool call, before any of its arguments
// was written, the call has no arguments. An empty object would look as if the model had meant it.
func cutCall(last content.Block, stop content.Stop) content.Block {
	if call, ok := last.(content.ToolUse); ok && call.Input == "{}" &&
		(stop == content.StopMaxTokens || stop == content.StopContext) {
		call.Input = ""
		return call
	}
	return last
}

// protocol returns an error about a response that differs from the API's documentation.
func protocol(format string, args ...any) error { return roundtrip.Protocol(API, format, args...) }
