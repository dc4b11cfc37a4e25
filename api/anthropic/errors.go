package anthropic

import (
	"errors"
	"net/http"
	"strings"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"
	json "github.com/goccy/go-json/v2"
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/internal/roundtrip"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/wire"
)

// explain converts an error of the SDK. It returns nil if the connection failed.
func explain(err error) *api.Error {
	var theirs *sdk.Error
	if errors.As(err, &theirs) {
		var header http.Header
		if theirs.Response != nil {
			header = theirs.Response.Header
		}
		return newError(theirs.StatusCode, header, []byte(theirs.RawJSON()))
	}

	if errors.Is(err, errNoKey) || strings.Contains(strings.ToLower(err.Error()), "credentials") {
		return &api.Error{Kind: api.ErrAuth, API: API, Err: err} // no request was sent
	}
	return nil
}

// newError decodes the API's error in body. Status is 200 for an error inside a stream.
func newError(status int, header http.Header, body []byte) *api.Error {
	var envelope struct {
		Error struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
		Message   string `json:"message"` // of a gateway, or of Bedrock
		RequestID string `json:"request_id"`
	}
	_ = json.Unmarshal(body, &envelope, jsonx.Lenient) // a body of any other kind is kept in Body

	e := &api.Error{
		API: API, Status: status, Type: envelope.Error.Type, Message: envelope.Error.Message,
		RequestID: header.Get("Request-Id"), RetryAfter: wire.RetryAfter(header, time.Now()),
		Body: string(body[:min(len(body), wire.MaxError)]),
	}

	if e.Message == "" {
		e.Message = envelope.Message
	}

	// Gateways and Bedrock report the ID of a request in other places.
	for _, id := range []string{envelope.RequestID, header.Get("X-Request-Id"), header.Get("X-Amzn-Requestid")} {
		if e.RequestID == "" {
			e.RequestID = id
		}
	}

	e.Kind = kindOf(e)
	return e
}

// kindOf returns the kind of an error. Some types and messages are more precise than the status; otherwise the status
// decides, and the type if there is no kind for it.
func kindOf(e *api.Error) error {
	message := strings.ToLower(e.Message)
	switch {
	case e.Type == "overloaded_error", e.Status == 529:
		// 529 is the API's own status for an overload.
		return api.ErrOverloaded
	case e.Status == http.StatusRequestEntityTooLarge, e.Type == "request_too_large",
		e.Type == "exceed_context_size_error", tooLong(message):
		return api.ErrContextTooLong
	case e.Type == "billing_error", strings.Contains(message, "credit balance is too low"):
		// The API reports an account without credit as an invalid request.
		return api.ErrQuota
	case strings.Contains(message, "content filter"):
		return api.ErrFiltered
	case roundtrip.RefusesInput(message):
		return api.ErrInvalidRequest
	}

	if kind := roundtrip.KindOf(e.Status); kind != nil {
		return kind
	}
	return kindOfType(e.Type)
}

// tooLong reports whether an error message, in lower case, is about the length of the prompt.
func tooLong(message string) bool {
	return strings.Contains(message, "prompt is too long") || strings.Contains(message, "exceed context limit") ||
		strings.Contains(message, "input is too long") ||
		strings.Contains(message, "exceeds the available context size")
}

// kindOfType returns the kind of an error inside a stream, by its type. The types of Bedrock end in "Exception".
func kindOfType(kind string) error {
	switch kind {
	case "authentication_error", "permission_error":
		return api.ErrAuth
	case "not_found_error":
		return api.ErrNotFound
	case "rate_limit_error", "throttlingException", "ThrottlingException":
		return api.ErrRateLimited
	case "invalid_request_error", "validationException", "ValidationException":
		return api.ErrInvalidRequest
	}
	return api.ErrServer
}
