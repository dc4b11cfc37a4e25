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
	"github.com/plait-dev/plait/internal/roundtrip"
	"github.com/plait-dev/plait/internal/wire"
)

// explain returns the error that an error of the SDK is; nil where the connection failed.
func explain(err error) *api.Error {
	var refused *auth.Error
	if errors.As(err, &refused) && !refused.Temporary() {
		return &api.Error{Kind: api.ErrAuth, API: API, Err: err} // no token was given
	}
	return nil
}

func protocol(format string, args ...any) error { return roundtrip.Protocol(API, format, args...) }

// status is an error as the API writes it: google.rpc.Status in an "error".
type status struct {
	Error struct {
		Status  string     `json:"status"`
		Message string     `json:"message"`
		Details []wire.Raw `json:"details"`
	} `json:"error"`
}

// detail is what is read of the details of an error, whatever its type.
type detail struct {
	Reason     string `json:"reason"`     // of an ErrorInfo
	RetryDelay string `json:"retryDelay"` // of a RetryInfo
	RequestID  string `json:"requestId"`  // of a RequestInfo
}

// newError is the API's error in body, which may be a list with one error in it. HTTP is 200 for one that came inside a stream.
func newError(http int, header http.Header, body []byte) *api.Error {
	e := &api.Error{
		API: API, Status: http, RetryAfter: wire.RetryAfter(header, time.Now()), Body: string(body[:min(len(body), wire.MaxError)]),
	}
	var s status
	_ = json.Unmarshal(chunksOf(body)[0], &s, wire.Lenient) // a body that is no JSON is kept as it is
	e.Type, e.Message = s.Error.Status, s.Error.Message
	reason := ""
	for _, raw := range s.Error.Details {
		var d detail
		if json.Unmarshal(raw, &d, wire.Lenient) != nil {
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

// kindOf tells the kind of an error by its words where they say more than its status, then by the API's word for it, then by the
// HTTP status.
func kindOf(e *api.Error, reason string) error {
	said := strings.ToLower(e.Message)
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(said, part) })
	}
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
	if kind := kinds[e.Type]; kind != nil {
		return kind
	}
	if kind := roundtrip.KindOf(e.Status); kind != nil {
		return kind
	}
	return api.ErrServer
}

// kinds is the API's words for its errors.
var kinds = map[string]error{
	"INVALID_ARGUMENT": api.ErrInvalidRequest, "FAILED_PRECONDITION": api.ErrInvalidRequest, "OUT_OF_RANGE": api.ErrInvalidRequest,
	"UNIMPLEMENTED": api.ErrInvalidRequest, "ALREADY_EXISTS": api.ErrInvalidRequest,
	"UNAUTHENTICATED": api.ErrAuth, "PERMISSION_DENIED": api.ErrAuth, "NOT_FOUND": api.ErrNotFound,
	"RESOURCE_EXHAUSTED": api.ErrRateLimited, "UNAVAILABLE": api.ErrOverloaded,
	"INTERNAL": api.ErrServer, "UNKNOWN": api.ErrServer, "ABORTED": api.ErrServer, "CANCELLED": api.ErrServer,
	"DEADLINE_EXCEEDED": api.ErrServer, "DATA_LOSS": api.ErrServer,
}
