package anthropic

import (
	"errors"
	"net/http"
	"strings"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"
	json "github.com/goccy/go-json/v2"
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/internal/roundtrip"
	"github.com/plait-dev/plait/internal/wire"
)

// explain returns the error that an error of the SDK is; nil where the connection failed.
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
		return &api.Error{Kind: api.ErrAuth, API: API, Err: err} // nobody was asked
	}
	return nil
}

// newError is the API's error in body. Status is 200 for one that came inside a stream.
func newError(status int, header http.Header, body []byte) *api.Error {
	var envelope struct {
		Error struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
		Message   string `json:"message"` // of a gateway, or of Bedrock
		RequestID string `json:"request_id"`
	}
	_ = json.Unmarshal(body, &envelope, wire.Lenient) // a body that is no JSON is kept as it is
	e := &api.Error{
		API: API, Status: status, Type: envelope.Error.Type, Message: envelope.Error.Message,
		RequestID: header.Get("Request-Id"), RetryAfter: wire.RetryAfter(header, time.Now()),
		Body: string(body[:min(len(body), wire.MaxError)]),
	}
	if e.Message == "" {
		e.Message = envelope.Message
	}
	for _, id := range []string{envelope.RequestID, header.Get("X-Request-Id"), header.Get("X-Amzn-Requestid")} {
		if e.RequestID == "" {
			e.RequestID = id
		}
	}
	e.Kind = kindOf(e)
	return e
}

// kindOf tells the kind of an error by its status and, where that does not tell, by its type and words.
func kindOf(e *api.Error) error {
	said := strings.ToLower(e.Message)
	switch {
	case e.Type == "overloaded_error", e.Status == 529:
		return api.ErrOverloaded
	case e.Status == http.StatusRequestEntityTooLarge, e.Type == "request_too_large", e.Type == "exceed_context_size_error", tooLong(said):
		return api.ErrContextTooLong
	case strings.Contains(said, "content filter"):
		return api.ErrFiltered
	}
	if kind := roundtrip.KindOf(e.Status); kind != nil {
		return kind
	}
	return kindOfType(e.Type)
}

func tooLong(said string) bool {
	return strings.Contains(said, "prompt is too long") || strings.Contains(said, "exceed context limit") ||
		strings.Contains(said, "input is too long") || strings.Contains(said, "exceeds the available context size")
}

// kindOfType tells the kind of an error inside a stream; those of Bedrock end in "Exception".
func kindOfType(kind string) error {
	switch kind {
	case "authentication_error", "permission_error", "billing_error":
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
