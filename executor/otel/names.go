package otel

import (
	"context"
	"errors"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/safetext"
)

// Attributes of the conventions that are missing in semconv v1.41.0, the last version with GenAI, or have another name
// there.
const cacheWriteKey = attribute.Key("gen_ai.usage.cache_write.input_tokens")

var modalityUnknown = attribute.String("gen_ai.token.modality", "unknown")

// Attributes of Plait's own.
const (
	runIDKey        = attribute.Key("plait.run.id")
	stopReasonKey   = attribute.Key("plait.stop_reason")
	pauseReasonKey  = attribute.Key("plait.pause.reason")
	pauseCallsKey   = attribute.Key("plait.pause.calls")
	retryAttemptKey = attribute.Key("plait.retry.attempt")
	retryWaitKey    = attribute.Key("plait.retry.wait")
)

// longest is the maximum length of a name, an ID or an error's text in a span, in characters.
const longest = 200

// clean returns a text of a model, a provider or a program on one line, without control characters.
func clean(s string) string { return safetext.Line(s, longest) }

// spanName returns the name of a span: its operation, and the name of the model, tool or agent, which may be "".
func spanName(operation attribute.KeyValue, with string) string {
	return strings.TrimSpace(operation.Value.AsString() + " " + with)
}

// providerName returns the well-known name of a provider for the name of its API.
func providerName(name string) attribute.KeyValue {
	switch name {
	case "anthropic":
		return semconv.GenAIProviderNameAnthropic
	case "openai-chat", "openai-responses":
		return semconv.GenAIProviderNameOpenAI
	case "gemini":
		return semconv.GenAIProviderNameGCPGenAI // which of Google's endpoints is not known
	case "":
		return semconv.GenAIProviderNameKey.String("unknown")
	}
	return semconv.GenAIProviderNameKey.String(clean(name))
}

// finishReason returns the word of the conventions for a stop reason, or the stop reason.
func finishReason(stop content.Stop) string {
	switch stop {
	case content.StopEndTurn, content.StopSequence:
		return "stop"
	case content.StopToolUse:
		return "tool_call"
	case content.StopMaxTokens, content.StopContext:
		return "length"
	case content.StopRefusal:
		return "content_filter"
	case content.StopCut:
		return "error"
	}
	return string(stop)
}

// usageAttributes returns a usage as attributes. Input includes cached tokens.
func usageAttributes(u content.Usage) []attribute.KeyValue {
	attributes := []attribute.KeyValue{
		semconv.GenAIUsageInputTokens(int(allInput(u))), semconv.GenAIUsageOutputTokens(int(u.Output)),
	}
	if u.CacheRead > 0 {
		attributes = append(attributes, semconv.GenAIUsageCacheReadInputTokens(int(u.CacheRead)))
	}
	if u.CacheWrite > 0 {
		attributes = append(attributes, cacheWriteKey.Int64(u.CacheWrite))
	}
	if u.Reasoning > 0 {
		attributes = append(attributes, semconv.GenAIUsageReasoningOutputTokens(int(u.Reasoning)))
	}
	return attributes
}

// kinds are the kinds of an error of a provider. The first that matches counts.
var kinds = []error{
	api.ErrRateLimited, api.ErrOverloaded, api.ErrServer, api.ErrTransport, api.ErrCut, api.ErrStalled,
	api.ErrContextTooLong, api.ErrInvalidRequest, api.ErrAuth, api.ErrQuota, api.ErrNotFound, api.ErrFiltered, api.ErrProtocol,
	api.ErrNothing,
}

// errorType returns the error.type of an error: one of a small number of words.
func errorType(err error) string {
	switch {
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	}
	for _, kind := range kinds {
		if errors.Is(err, kind) {
			return strings.ReplaceAll(kind.Error(), " ", "_")
		}
	}
	return semconv.ErrorType(err).Value.AsString()
}

// apiOf returns the name of an error's API, or "".
func apiOf(err error) string {
	var failure *api.Error
	if errors.As(err, &failure) {
		return failure.API
	}
	return ""
}
