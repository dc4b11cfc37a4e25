package openai

import (
	"bytes"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	json "github.com/goccy/go-json/v2"
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/internal/roundtrip"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/wire"
)

// errorInfo is an error as the provider describes it, independent of its JSON form.
type errorInfo struct{ kind, code, message string }

// readError finds the description of an error in a response body or in an event of a stream. OpenAI's own forms are
//
//	{"error":{"message":…,"type":…,"param":…,"code":…}}
//	{"type":"error","code":…,"message":…,"param":…}
//
// Compatible servers have others: a string as "error"; no "error" around the members; "detail" or "status" as member
// names; a list around everything.
func readError(body []byte) errorInfo {
	outer, err := jsonx.Members(content.JSON(unlisted(body)))
	if err != nil {
		return errorInfo{}
	}

	value, _ := jsonx.Take(outer, "error")
	if words, ok := jsonx.Text(value); ok {
		s := membersOf(outer)
		s.message = words
		return s
	}
	if inner, err := jsonx.Members(value); err == nil {
		return membersOf(inner)
	}

	s := membersOf(outer)
	// In an event of a stream, the type is the event's type and not the error's.
	if s.kind == "error" {
		s.kind = ""
	}
	return s
}

// unlisted returns the first item of a list. It returns any other body as it is.
func unlisted(body []byte) []byte {
	var list []jsonx.Raw
	if !bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) || json.Unmarshal(body, &list, jsonx.Lenient) != nil ||
		len(list) == 0 {
		return body
	}
	return list[0]
}

// membersOf returns the description in the members of an error.
func membersOf(list []jsonx.Member) errorInfo {
	s := errorInfo{
		kind:    firstText(list, "type", "status"),
		code:    firstText(list, "code", "statusCode"),
		message: firstText(list, "message", "detail", "error_description"),
	}

	if inner, err := jsonx.Members(value(list, "innererror")); err == nil && s.code == "" {
		s.code = firstText(inner, "code")
	}
	return s
}

// firstText returns the first non-empty member with one of the names: a string, or a number as it was written.
func firstText(list []jsonx.Member, names ...string) string {
	for _, name := range names {
		j := value(list, name)
		if words, ok := jsonx.Text(j); ok && words != "" {
			return words
		}
		if _, err := strconv.ParseInt(string(j), 10, 32); err == nil {
			return string(j)
		}
	}
	return ""
}

// value returns the named member, or "".
func value(list []jsonx.Member, name string) content.JSON {
	j, _ := jsonx.Take(list, name)
	return j
}

// newError returns the provider's error in body. Status is 200 for an error inside a stream.
func newError(name string, status int, header http.Header, body []byte) *api.Error {
	words := readError(body)
	e := &api.Error{
		API: name, Status: status, Type: words.kind, Message: words.message,
		RequestID: requestID(header), RetryAfter: retryAfter(header, time.Now()),
		Body: string(body[:min(len(body), wire.MaxError)]),
	}

	// A code is more specific than a type, except a number: compatible servers may repeat the HTTP status as the code.
	if _, err := strconv.Atoi(words.code); words.code != "" && (err != nil || words.kind == "") {
		e.Type = words.code
	}

	e.Kind = kindOf(status, words)
	if e.RetryAfter == 0 && e.Kind == api.ErrRateLimited {
		e.RetryAfter = askedWait(e.Message)
	}
	return e
}

// askedWait returns the wait in a message such as "Please try again in 3.5s." Inside a stream, no header has it.
func askedWait(message string) time.Duration {
	_, after, found := strings.Cut(message, "try again in ")
	if !found {
		return 0
	}
	word, _, _ := strings.Cut(after, " ")
	d, err := time.ParseDuration(strings.TrimRight(word, ".,;"))
	if err != nil {
		return 0
	}
	return max(0, d)
}

func requestID(header http.Header) string {
	for _, name := range []string{"X-Request-Id", "Apim-Request-Id", "X-Ms-Request-Id"} {
		if id := header.Get(name); id != "" {
			return id
		}
	}
	return ""
}

// kindOf returns the kind of an error. The code and the type decide first, then the message, then the status.
func kindOf(status int, s errorInfo) error {
	if n, err := strconv.Atoi(s.code); err == nil && status == http.StatusOK && n >= 400 && n < 600 {
		status = n // compatible servers put the status into the error of a stream
	}

	for _, word := range []string{s.code, s.kind} {
		if kind := kinds[strings.ToLower(word)]; kind != nil && !vague(word, status) {
			return kind
		}
	}

	words := strings.ToLower(s.message)
	switch {
	case roundtrip.RefusesInput(words):
		return api.ErrInvalidRequest
	case status < 500 && hasAny(words,
		"maximum context length", "context window", "context length", "context size", "prompt is too long"):
		return api.ErrContextTooLong
	case status < 500 && hasAny(words, "content management policy", "content filter", "safety system"):
		return api.ErrFiltered
	}
	return kindOfStatus(status, s)
}

// vague reports whether a code or type is less specific than the status or the message.
func vague(word string, status int) bool {
	switch strings.ToLower(word) {
	case "invalid_request_error", "invalid_argument", "badrequesterror",
		"server_error", "api_error", "internal_error", "internal_server_error":
		return status != http.StatusOK
	}
	return false
}

// kinds maps codes and types of errors, in lower case.
var kinds = map[string]error{
	"context_length_exceeded": api.ErrContextTooLong, "exceed_context_size_error": api.ErrContextTooLong,
	"request_too_large": api.ErrContextTooLong,

	"insufficient_quota": api.ErrQuota, "billing_hard_limit_reached": api.ErrQuota, "billing_not_active": api.ErrQuota,
	"insufficient_credits": api.ErrQuota, "insufficient_balance": api.ErrQuota,
	"access_terminated": api.ErrAuth, "account_deactivated": api.ErrAuth, "invalid_api_key": api.ErrAuth,
	"authentication_error": api.ErrAuth, "invalid_authentication": api.ErrAuth, "permission_denied": api.ErrAuth,
	"unauthenticated": api.ErrAuth, "permission_error": api.ErrAuth,

	"rate_limit_exceeded": api.ErrRateLimited, "rate_limit_error": api.ErrRateLimited,
	"too_many_requests": api.ErrRateLimited, "resource_exhausted": api.ErrRateLimited, "rate_limit": api.ErrRateLimited,

	"content_filter": api.ErrFiltered, "content_policy_violation": api.ErrFiltered,
	"responsibleaipolicyviolation": api.ErrFiltered, "image_content_policy_violation": api.ErrFiltered,
	"moderation_blocked": api.ErrFiltered, "bio_policy": api.ErrFiltered, "misalignment_policy_violation": api.ErrFiltered,

	"model_not_found": api.ErrNotFound, "deploymentnotfound": api.ErrNotFound, "not_found_error": api.ErrNotFound,
	"previous_response_not_found": api.ErrNotFound, "not_found": api.ErrNotFound,

	"overloaded": api.ErrOverloaded, "overloaded_error": api.ErrOverloaded, "engine_overloaded": api.ErrOverloaded,
	"server_is_overloaded": api.ErrOverloaded, "slow_down": api.ErrOverloaded, "service_unavailable": api.ErrOverloaded,
	"unavailable": api.ErrOverloaded, "capacity_exceeded": api.ErrOverloaded, "unavailable_error": api.ErrOverloaded,

	"server_error": api.ErrServer, "internal_error": api.ErrServer, "internal_server_error": api.ErrServer,
	"api_error": api.ErrServer, "internal": api.ErrServer, "vector_store_timeout": api.ErrServer,

	"invalid_request_error": api.ErrInvalidRequest, "invalid_prompt": api.ErrFiltered, // flagged as against the usage policy
	"invalid_argument": api.ErrInvalidRequest, "invalid_encrypted_content": api.ErrInvalidRequest,
	"badrequesterror": api.ErrInvalidRequest, "data_residency_mismatch": api.ErrInvalidRequest,

	// A retry would find the same image.
	"empty_image_file": api.ErrInvalidRequest, "failed_to_download_image": api.ErrInvalidRequest,
	"image_file_not_found": api.ErrInvalidRequest, "image_file_too_large": api.ErrInvalidRequest,
	"image_parse_error": api.ErrInvalidRequest, "image_too_large": api.ErrInvalidRequest, "image_too_small": api.ErrInvalidRequest,
}

// kindOfStatus returns the kind for a status or, inside a stream, for the prefix of the code or type.
func kindOfStatus(status int, s errorInfo) error {
	if kind := roundtrip.KindOf(status); kind != nil {
		return kind
	}
	if strings.HasPrefix(s.code, "invalid_") || strings.HasPrefix(s.code, "unsupported_") ||
		strings.HasPrefix(s.kind, "invalid_") {
		return api.ErrInvalidRequest // inside a stream
	}
	return api.ErrServer
}

func hasAny(words string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(words, part) })
}

// retryAfter returns how long to wait before a retry, as the headers request it. Without such a request it is the time
// until an exhausted rate limit resets.
func retryAfter(header http.Header, now time.Time) time.Duration {
	if wait := wire.RetryAfter(header, now); wait > 0 {
		return wait
	}

	var longest time.Duration
	for _, limit := range []string{"Requests", "Tokens"} {
		if header.Get("X-Ratelimit-Remaining-"+limit) == "0" {
			longest = max(longest, reset(header.Get("X-Ratelimit-Reset-"+limit)))
		}
	}
	return longest
}

// reset parses a duration such as "6m0s", "20ms" or "1d2h", or a number of seconds. It returns 0 for anything else.
func reset(s string) time.Duration {
	// time.ParseDuration knows no days.
	var days time.Duration
	if n, rest, ok := strings.Cut(s, "d"); ok {
		if whole, err := strconv.Atoi(n); err == nil && whole >= 0 && whole < 1000 {
			days, s = time.Duration(whole)*24*time.Hour, rest
		}
	}

	if d, err := time.ParseDuration(s); err == nil {
		return max(0, days+min(d, math.MaxInt64-days)) // the sum must not overflow
	}
	if n, err := strconv.ParseFloat(s, 64); err == nil && n > 0 {
		return time.Duration(math.Min(n*float64(time.Second), math.MaxInt64/2))
	}
	return days
}

// isError reports whether an event of a stream, or a whole response, is an error: it has a non-empty "error", or its
// type or object is "error". Of a list, the first item counts. Compatible servers send "error":null in normal responses.
func isError(data []byte) bool {
	var e struct {
		Type   jsonx.Raw `json:"type"`
		Object jsonx.Raw `json:"object"`
		Error  jsonx.Raw `json:"error"`
	}
	if json.Unmarshal(unlisted(data), &e, jsonx.Lenient) != nil {
		return false
	}

	switch string(e.Error) {
	case "", "null", "{}", `""`, "false":
		return string(e.Type) == `"error"` || string(e.Object) == `"error"`
	}
	return true
}
