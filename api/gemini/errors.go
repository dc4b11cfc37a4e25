package gemini

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/auth"
	json "github.com/goccy/go-json/v2"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/internal/roundtrip"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/wire"
)

// explain converts an error of the SDK. It returns nil if the connection failed.
func explain(err error) *api.Error {
	var refused *auth.Error
	if errors.As(err, &refused) && !refused.Temporary() {
		return &api.Error{Kind: api.ErrAuth, API: API, Err: err} // the server refused to give a token
	}
	return nil
}

// protocol returns an error about a response that differs from the API's documentation.
func protocol(format string, args ...any) error { return roundtrip.Protocol(API, format, args...) }

// status is an error in the API's form: a google.rpc.Status in an "error".
type status struct {
	Error struct {
		Status  string      `json:"status"`
		Message string      `json:"message"`
		Details []jsonx.Raw `json:"details"`
	} `json:"error"`
}

// detail has the members Plait reads from the details of an error, of any type.
type detail struct {
	Reason     string `json:"reason"`     // of an ErrorInfo
	RetryDelay string `json:"retryDelay"` // of a RetryInfo
	RequestID  string `json:"requestId"`  // of a RequestInfo
}

// newError decodes the API's error in body, possibly a list with one error. Parameter http is the status; 200 for an
// error inside a stream.
func newError(http int, header http.Header, body []byte) *api.Error {
	e := &api.Error{
		API: API, Status: http, RetryAfter: wire.RetryAfter(header, time.Now()),
		Body: string(body[:min(len(body), wire.MaxError)]),
	}

	var s status
	_ = json.Unmarshal(chunksOf(body)[0], &s, jsonx.Lenient) // a body of any other kind is kept in Body
	e.Type, e.Message = s.Error.Status, s.Error.Message

	// The details may have a reason, a longer delay and the ID of the request.
	reason := ""
	for _, raw := range s.Error.Details {
		var d detail
		if json.Unmarshal(raw, &d, jsonx.Lenient) != nil {
			continue // a detail of another form
		}

		if delay, err := time.ParseDuration(d.RetryDelay); err == nil && delay > e.RetryAfter {
			e.RetryAfter = delay
		}
		reason = cmp.Or(reason, d.Reason)
		e.RequestID = cmp.Or(e.RequestID, d.RequestID)
	}

	e.RequestID = cmp.Or(e.RequestID, header.Get("X-Request-Id"))
	e.Kind = kindOf(e, reason)
	return e
}

// kindOf returns the kind of an error. Some messages and reasons are more precise than the API's type, and the type is
// more precise than the HTTP status.
func kindOf(e *api.Error, reason string) error {
	message := strings.ToLower(e.Message)
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(message, part) })
	}

	// The API uses these types for many errors. Only the message and the reason distinguish them.
	if e.Type == "" || e.Type == "INVALID_ARGUMENT" || e.Type == "FAILED_PRECONDITION" {
		switch {
		case strings.HasPrefix(reason, "API_KEY_"), has("api key not valid", "api key expired", "api key not found"):
			return api.ErrAuth
		case has("exceeds the maximum number of tokens", "input token count", "request payload size exceeds"):
			return api.ErrContextTooLong
		case has("responsible ai", "prohibited content", "safety policies", "content policy"):
			return api.ErrFiltered
		}
	}

	// The type is that of a rate limit, but waiting does not help.
	if has("credits are depleted", "billing account is disabled", "requires billing to be enabled") {
		return api.ErrQuota
	}
	if kind := kinds[e.Type]; kind != nil {
		return kind
	}
	if kind := roundtrip.KindOf(e.Status); kind != nil {
		return kind
	}
	return api.ErrServer
}

// kinds maps the API's types of errors to kinds.
var kinds = map[string]error{
	"INVALID_ARGUMENT": api.ErrInvalidRequest, "FAILED_PRECONDITION": api.ErrInvalidRequest,
	"OUT_OF_RANGE":  api.ErrInvalidRequest,
	"UNIMPLEMENTED": api.ErrInvalidRequest, "ALREADY_EXISTS": api.ErrInvalidRequest,
	"UNAUTHENTICATED": api.ErrAuth, "PERMISSION_DENIED": api.ErrAuth, "NOT_FOUND": api.ErrNotFound,
	"RESOURCE_EXHAUSTED": api.ErrRateLimited, "UNAVAILABLE": api.ErrOverloaded,
	"INTERNAL": api.ErrServer, "UNKNOWN": api.ErrServer, "ABORTED": api.ErrServer, "CANCELLED": api.ErrServer,
	"DEADLINE_EXCEEDED": api.ErrServer, "DATA_LOSS": api.ErrServer,
}
