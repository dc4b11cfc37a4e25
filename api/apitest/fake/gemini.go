package fake

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/goccy/go-json/jsontext"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
)

// Gemini returns a strict fake of the Gemini API, at the paths of Google AI and of Vertex AI. It checks requests with
// [CheckGemini] and answers with replies, in order. A request after the last reply is refused.
func Gemini(replies ...Reply) *API { return newFake(gemini{}, replies) }

// GeminiContent returns a reply with one content: a part for each text, thought and tool call, and content.Opaque for
// every other part of the API. The Extra of a block is merged into its part: {"thoughtSignature":"…"}. The finish
// reason is STOP. Any other kind of block is a mistake in a test and panics.
func GeminiContent(blocks ...content.Block) Reply {
	parts := []any{}
	for _, b := range blocks {
		parts = append(parts, geminiPart(b))
	}
	return Reply{Body: fmt.Sprintf(`{"candidates":[{"content":{"parts":%s,"role":"model"},"finishReason":"STOP","index":0}],`+
		`"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"totalTokenCount":15},"modelVersion":"gemini-fake",`+
		`"responseId":"fake"}`, written(parts))}
}

const geminiAPI = "gemini"

func geminiPart(b content.Block) any {
	switch b := b.(type) {
	case content.Text:
		return extended(map[string]any{"text": b.Text}, b.Extra, geminiAPI)
	case content.Thinking:
		part := map[string]any{"text": b.Text, "thought": true}
		if b.Signature != "" {
			part["thoughtSignature"] = b.Signature
		}
		return extended(part, b.Extra, geminiAPI)
	case content.ToolUse:
		// The API accepts calls without an ID, and matches their responses by name.
		call := map[string]any{"name": b.Name, "args": jsontext.Value(b.Input)}
		if b.ID != "" {
			call["id"] = b.ID
		}
		return extended(map[string]any{"functionCall": call}, b.Extra, geminiAPI)
	case content.Opaque:
		return jsontext.Value(b.JSON)
	}
	panic(fmt.Sprintf("fake: a model message of this API cannot contain a %T", b))
}

// GeminiFailure returns a reply with an error of the API, such as 503, "UNAVAILABLE", "The model is overloaded."
func GeminiFailure(status int, kind, message string) Reply {
	return Reply{Status: status, Body: geminiError(status, kind, message)}
}

func geminiError(status int, kind, message string) string {
	return fmt.Sprintf(`{"error":{"code":%d,"message":%s,"status":%s}}`, status, quoted(message), quoted(kind))
}

func refuseGemini(status int, kind, message string) *api.Error {
	return refusal(geminiAPI, status, kind, message, geminiError(status, kind, message))
}

// gemini is the dialect of the Gemini API.
type gemini struct{}

// geminiTarget returns the model and the method at the end of a path: …/models/MODEL:METHOD.
func geminiTarget(path string) (model, method string, ok bool) {
	_, model, ok = strings.Cut(path, "/models/")
	if !ok {
		return "", "", false
	}
	model, method, ok = strings.Cut(model, ":")
	return model, method, ok && model != "" && !strings.Contains(model, "/")
}

func (gemini) address(r *http.Request) error {
	_, method, ok := geminiTarget(r.URL.Path)
	switch {
	case !ok, method != "generateContent" && method != "streamGenerateContent":
		return refuseGemini(http.StatusNotFound, "NOT_FOUND",
			"The requested URL "+r.URL.Path+" was not found on this server.")
	case r.Method != http.MethodPost:
		return refuseGemini(http.StatusNotFound, "NOT_FOUND",
			"The requested URL "+r.URL.Path+" was not found on this server.")
	case method == "streamGenerateContent" && r.URL.Query().Get("alt") != "sse":
		// This is a limit of the fake, in its own words.
		return refuseGemini(http.StatusBadRequest, "INVALID_ARGUMENT",
			"This fake streams server-sent events only: ask for them with alt=sse.")
	case r.Header.Get("x-goog-api-key") == "" && r.Header.Get("Authorization") == "" && r.URL.Query().Get("key") == "":
		return refuseGemini(http.StatusForbidden, "PERMISSION_DENIED",
			"Method doesn't allow unregistered callers (callers without "+
				"established identity). Please use API Key or other form of API consumer identity to call this API.")
	}
	return nil
}

func (gemini) check(r *http.Request, body []byte) error {
	model, _, _ := geminiTarget(r.URL.Path)
	return CheckGemini(model, body)
}

func (gemini) refuse(message string) *api.Error {
	return refuseGemini(http.StatusBadRequest, "INVALID_ARGUMENT", message)
}

func (gemini) remember([]byte, string) {}

func (gemini) streams(r *http.Request, _ []byte) bool {
	_, method, _ := geminiTarget(r.URL.Path)
	return method == "streamGenerateContent"
}

func (gemini) silence() string { return GeminiContent().Body }

func (gemini) header(http.Header) {}

// stream sends each part in a chunk of its own, and a text in several. The last chunk has the finish reason and the
// other members of the candidate.
func (gemini) stream(_ []byte, answer string, cut bool) string {
	var response map[string]any
	var typed struct {
		Candidates []map[string]jsontext.Value `json:"candidates"`
	}
	parsed([]byte(answer), &response)
	parsed([]byte(answer), &typed)

	// A refused prompt has no candidates.
	var s sse
	if len(typed.Candidates) == 0 {
		s.data(response)
		return s.String()
	}

	candidate := typed.Candidates[0]
	if candidate["content"] == nil { // only a finish reason
		s.data(response)
		return s.String()
	}

	chunks := geminiChunks(candidate["content"])
	for i, content := range chunks {
		one := map[string]any{"index": 0, "content": content}
		if i == len(chunks)-1 && !cut {
			for name, v := range candidate {
				one[name] = v
			}
			one["content"] = content
		}
		response["candidates"] = []any{one}
		s.data(response)
	}
	return s.String()
}

// geminiChunks splits a content into several.
func geminiChunks(v jsontext.Value) []any {
	var content struct {
		Parts []map[string]jsontext.Value `json:"parts"`
		Role  string                      `json:"role"`
	}
	parsed(v, &content)

	chunks := []any{}
	for _, part := range content.Parts {
		for _, piece := range geminiPieces(part) {
			chunks = append(chunks, map[string]any{"parts": []any{piece}, "role": content.Role})
		}
	}

	// The finish reason needs a chunk, also without parts.
	if len(chunks) == 0 {
		chunks = append(chunks, map[string]any{"role": content.Role})
	}
	return chunks
}

// geminiPieces splits a part into several: a text in pieces, with its signature in the last one.
func geminiPieces(part map[string]jsontext.Value) []any {
	whole, ok := part["text"]
	if !ok {
		return []any{part}
	}

	var pieces []any
	for _, piece := range split(text(whole)) {
		one := map[string]any{"text": piece}
		if thought, ok := part["thought"]; ok {
			one["thought"] = thought
		}
		pieces = append(pieces, one)
	}

	// An empty text may still have a signature.
	if len(pieces) == 0 {
		return []any{part}
	}

	last := pieces[len(pieces)-1].(map[string]any)
	for name, v := range part {
		if name != "text" {
			last[name] = v
		}
	}
	return pieces
}
