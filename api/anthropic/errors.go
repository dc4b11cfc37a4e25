package anthropic

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"
	json "github.com/goccy/go-json/v2"
	"github.com/plait-dev/plait/api"
)

// maxErrorBody is how much of an error's body is kept.
const maxErrorBody = 64 << 10

// failure returns the error that a consumer of the stream gets for err.
func failure(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		if cause := context.Cause(ctx); cause != ended {
			return fmt.Errorf("anthropic: %w: %w", ended, cause)
		}
		return fmt.Errorf("anthropic: %w", ended)
	}
	var ours *api.Error
	if errors.As(err, &ours) {
		return err
	}
	var theirs *sdk.Error
	if errors.As(err, &theirs) {
		var header http.Header
		if theirs.Response != nil {
			header = theirs.Response.Header
		}
		return newError(theirs.StatusCode, header, []byte(theirs.RawJSON()))
	}
	if strings.Contains(strings.ToLower(err.Error()), "credentials") {
		return &api.Error{Kind: api.ErrAuth, API: API, Err: err} // the SDK found no key, and asked nobody
	}
	return &api.Error{Kind: api.ErrTransport, API: API, Err: err}
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
	_ = json.Unmarshal(body, &envelope, lenient) // a body that is no JSON is kept as it is
	e := &api.Error{
		API: API, Status: status, Type: envelope.Error.Type, Message: envelope.Error.Message,
		RequestID: header.Get("Request-Id"), RetryAfter: retryAfter(header, time.Now()),
		Body: string(body[:min(len(body), maxErrorBody)]),
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
	case e.Status == http.StatusRequestEntityTooLarge, e.Type == "request_too_large", tooLong(said):
		return api.ErrContextTooLong
	case strings.Contains(said, "content filter"):
		return api.ErrFiltered
	}
	if kind := kindOfStatus(e.Status); kind != nil {
		return kind
	}
	return kindOfType(e.Type)
}

func tooLong(said string) bool {
	return strings.Contains(said, "prompt is too long") || strings.Contains(said, "exceed context limit") ||
		strings.Contains(said, "input is too long")
}

func kindOfStatus(status int) error {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusPaymentRequired, status == http.StatusForbidden:
		return api.ErrAuth
	case status == http.StatusNotFound:
		return api.ErrNotFound
	case status == http.StatusTooManyRequests:
		return api.ErrRateLimited
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status >= 500:
		return api.ErrServer
	case status >= 400:
		return api.ErrInvalidRequest
	}
	return nil
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

// retryAfter is how long the headers ask to wait: in milliseconds, in seconds, or until a time.
func retryAfter(header http.Header, now time.Time) time.Duration {
	if wait := wait(header.Get("Retry-After-Ms"), time.Millisecond); wait > 0 {
		return wait
	}
	after := header.Get("Retry-After")
	if at, err := http.ParseTime(after); err == nil {
		return max(0, at.Sub(now))
	}
	return wait(after, time.Second)
}

// wait reads a number of units; 0 for anything else.
func wait(s string, unit time.Duration) time.Duration {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || !(n > 0) {
		return 0
	}
	return time.Duration(math.Min(n*float64(unit), math.MaxInt64/2))
}
