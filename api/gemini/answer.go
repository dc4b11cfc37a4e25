package gemini

import (
	"slices"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
)

// chunk is a piece of a streamed response. A whole response is one chunk.
type chunk struct {
	Candidates []candidate `json:"candidates"`
	Prompt     jsonx.Raw   `json:"promptFeedback"` // read by noteFeedback
	Usage      jsonx.Raw   `json:"usageMetadata"`
	Model      string      `json:"modelVersion"`
	ID         string      `json:"responseId"`
	Error      jsonx.Raw   `json:"error"`
	Further    jsonx.Raw   `json:",embed"` // all others, for api.Finish.Details
}

type candidate struct {
	Index   int `json:"index"`
	Content struct {
		Parts []jsonx.Raw `json:"parts"`
	} `json:"content"`
	FinishReason  string    `json:"finishReason"`
	FinishMessage string    `json:"finishMessage"`
	Grounding     jsonx.Raw `json:"groundingMetadata"`
	Citations     jsonx.Raw `json:"citationMetadata"`
	URLContext    jsonx.Raw `json:"urlContextMetadata"`
	Further       jsonx.Raw `json:",embed"` // all others, for api.Finish.Details
}

// first returns the first candidate; all others are ignored. It is not ok if the chunk has no piece of it.
func (c chunk) first() (candidate, bool) {
	for _, one := range c.Candidates {
		if one.Index == 0 {
			return one, true
		}
	}
	return candidate{}, false
}

// isError reports whether the chunk is an error.
func (c chunk) isError() bool { return len(c.Error) > 0 && c.Error.Kind() != 'n' }

// usage is the API's token counts. Each chunk of a stream reports the total so far.
type usage struct {
	Prompt     *int64 `json:"promptTokenCount"`
	Cached     *int64 `json:"cachedContentTokenCount"`
	Candidates *int64 `json:"candidatesTokenCount"`
	Thoughts   *int64 `json:"thoughtsTokenCount"`
	ToolUse    *int64 `json:"toolUsePromptTokenCount"`
	// Tokens by the kind of their content.
	Asked   []modality `json:"promptTokensDetails"`
	Written []modality `json:"candidatesTokensDetails"`
}

type modality struct {
	Kind  string `json:"modality"`
	Count int64  `json:"tokenCount"`
}

// update copies the counts present in later to u.
func (u *usage) update(later usage) {
	for _, count := range []struct{ to, from **int64 }{
		{&u.Prompt, &later.Prompt}, {&u.Cached, &later.Cached}, {&u.Candidates, &later.Candidates},
		{&u.Thoughts, &later.Thoughts}, {&u.ToolUse, &later.ToolUse},
	} {
		if *count.from != nil {
			*count.to = *count.from
		}
	}
	if later.Asked != nil {
		u.Asked = later.Asked
	}
	if later.Written != nil {
		u.Written = later.Written
	}
}

// priced reports whether there are tokens with another price than text has: audio, and pictures made by the model.
func (u usage) priced() bool {
	audio := func(m modality) bool { return m.Count > 0 && m.Kind == "AUDIO" }
	made := func(m modality) bool { return m.Count > 0 && m.Kind != "TEXT" }
	return slices.ContainsFunc(u.Asked, audio) || slices.ContainsFunc(u.Written, made)
}

// total converts the counts. In the API's, the prompt includes the tokens read from the cache, and the candidates do
// not include the thoughts.
func (u usage) total() content.Usage {
	n := func(p *int64) int64 {
		const limit = 1 << 50 // keeps sums in range
		if p == nil {
			return 0
		}
		return min(max(*p, 0), limit)
	}

	return content.Usage{
		Input: max(n(u.Prompt)-n(u.Cached), 0) + n(u.ToolUse), CacheRead: n(u.Cached),
		Output: n(u.Candidates) + n(u.Thoughts), Reasoning: n(u.Thoughts),
		Incomplete: u.priced(),
	}
}

// stopOf maps the API's finish reason. The API has none of its own for tool calls.
func stopOf(reason string, calls bool) content.Stop {
	switch reason {
	case "", "FINISH_REASON_UNSPECIFIED":
		return content.StopUnknown
	case "STOP":
		if calls {
			return content.StopToolUse
		}
		return content.StopEndTurn
	case "MAX_TOKENS":
		return content.StopMaxTokens
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR", "JAILBREAK",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		return content.StopRefusal
	}
	return content.Stop(reason) // OTHER and the like, and new ones
}

// failedReason returns the error of a response with nothing to continue from, or nil for any other finish reason.
func failedReason(reason, message string) error {
	e := &api.Error{Kind: api.ErrServer, API: API, Status: 200, Type: reason, Message: message}
	switch {
	case strings.HasPrefix(reason, "MALFORMED_"), reason == "UNEXPECTED_TOOL_CALL":
		return e
	case reason == "MISSING_THOUGHT_SIGNATURE":
		e.Kind = api.ErrInvalidRequest // a retry would fail the same way
		return e
	}
	return nil
}
