package anthropic

import (
	"net/http"
	"slices"

	json "github.com/goccy/go-json/v2"
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/internal/roundtrip"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
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
	Cached struct {
		Hour *int64 `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
	Further jsonx.Raw `json:",embed"` // all others
}

// tokens are the counts of a response so far, as the API reports them.
type tokens struct {
	counted content.Usage
	// Iterations of the API's own that counted lacks, such as the compaction of the conversation.
	beside content.Usage
	// Something has a price of its own.
	priced bool
}

// total returns all tokens of the response.
func (t tokens) total() content.Usage {
	all := t.counted.Plus(t.beside)
	all.Incomplete = all.Incomplete || t.priced
	return all
}

// update copies the counts present in u to t.
func (u usage) update(t *tokens) {
	for _, count := range []struct {
		to   *int64
		from *int64
	}{
		{&t.counted.Input, u.Input},
		{&t.counted.Output, u.Output},
		{&t.counted.CacheRead, u.CacheRead},
		{&t.counted.CacheWrite, u.CacheWrite},
		{&t.counted.CacheWriteLong, u.Cached.Hour},
		{&t.counted.Reasoning, u.Details.Thinking},
	} {
		if count.from != nil {
			*count.to = *count.from
		}
	}

	var further struct {
		Requests   map[string]any `json:"server_tool_use"`
		Tier       string         `json:"service_tier"`
		Speed      string         `json:"speed"`
		Place      string         `json:"inference_geo"`
		Iterations []struct {
			Type string `json:"type"`
			usage
		} `json:"iterations"`
	}
	if len(u.Further) == 0 || json.Unmarshal(u.Further, &further, jsonx.Lenient) != nil {
		return // in another form than the API's
	}

	// Only the fetches of pages cost nothing beside their tokens.
	for name, n := range further.Requests {
		t.priced = t.priced || n != 0.0 && name != "web_fetch_requests"
	}
	t.priced = t.priced || !slices.Contains([]string{"", "standard", "batch"}, further.Tier) ||
		!slices.Contains([]string{"", "standard"}, further.Speed) ||
		!slices.Contains([]string{"", "global", "not_available"}, further.Place)

	if len(further.Iterations) == 0 {
		return
	}
	t.beside = content.Usage{}
	for _, i := range further.Iterations {
		switch i.Type {
		case "message": // the top-level counts include it
		case "compaction":
			var own tokens
			i.usage.update(&own)
			t.beside = t.beside.Plus(own.counted)
		default:
			t.priced = true // of another model
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
	var tokens tokens
	m.Usage.update(&tokens)
	finish.Usage = tokens.total()
	var details roundtrip.Details
	details.Add(m.Further)
	details.AddUsage(m.Usage.Further)
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
