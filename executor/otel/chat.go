package otel

import (
	"cmp"
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// chat is a request with its retries. A whole response decides its outcome. After a cut-off or an empty response, the
// next event of the run decides it. The methods for events accept a nil chat.
type chat struct {
	ctx   context.Context
	span  trace.Span
	began time.Time
	first time.Time // of the first piece of the response; zero if none arrived
	ended time.Time // zero as long as it is under way

	model  string       // the requested model; "" if it is not known
	api    string       // from the error of an attempt; the response has its own
	answer *node.Answer // nil if nothing arrived
	usage  content.Usage
}

// beginChat starts the span of a request. model is the requested model, or "".
func (r *run) beginChat(ctx context.Context, req api.Request, model string) context.Context {
	// A second request in one turn means that the provider refused the first one as too long.
	refused := errorType(api.ErrContextTooLong)
	r.endChat(refused, "")
	r.declare(req.Tools)
	r.requests++

	c := &chat{began: time.Now(), model: clean(model)}
	attributes := append(requestAttributes(req.Options), semconv.GenAIOperationNameChat)
	attributes = append(attributes, r.conversation...)
	if c.model != "" {
		attributes = append(attributes, semconv.GenAIRequestModel(c.model))
	}
	if r.content {
		attributes = append(attributes, requestContent(req)...)
	}
	c.ctx, c.span = r.spans.Start(ctx, spanName(semconv.GenAIOperationNameChat, c.model),
		trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(c.began), trace.WithAttributes(attributes...))
	r.chat = c
	return c.ctx
}

// requestAttributes returns the options of a request for which the conventions have attributes.
func requestAttributes(o api.Options) []attribute.KeyValue {
	var attributes []attribute.KeyValue
	if o.MaxTokens > 0 {
		attributes = append(attributes, semconv.GenAIRequestMaxTokens(o.MaxTokens))
	}
	if o.Temperature != nil {
		attributes = append(attributes, semconv.GenAIRequestTemperature(*o.Temperature))
	}
	if len(o.StopSequences) > 0 {
		attributes = append(attributes, semconv.GenAIRequestStopSequences(o.StopSequences...))
	}
	if o.Output.JSON != "" {
		attributes = append(attributes, semconv.GenAIOutputTypeJSON)
	}
	return attributes
}

// delta records the first piece of a response. Only a provider that streams sends an api.Delta.
func (c *chat) delta(event api.Event) {
	if c == nil || !c.first.IsZero() {
		return
	}
	if _, streams := event.(api.Delta); streams {
		c.first = time.Now()
		c.span.SetAttributes(
			semconv.GenAIRequestStream(true), semconv.GenAIResponseTimeToFirstChunk(c.first.Sub(c.began).Seconds()))
	}
}

// retry records a failed attempt and its tokens.
func (c *chat) retry(e api.Retry) {
	if c == nil {
		return
	}
	c.api, c.usage = apiOf(e.Err), c.usage.Plus(e.Cut.Usage)
	c.span.AddEvent("plait.retry", trace.WithAttributes(
		retryAttemptKey.Int(e.Attempt), retryWaitKey.Float64(e.Wait.Seconds()),
		semconv.ErrorTypeKey.String(errorType(e.Err))))
}

// answer records the response to a request; n is nil for an empty one. It ends the span unless the response is cut off
// or empty.
func (r *run) answer(n *node.Node) {
	c := r.chat
	if c == nil || !c.ended.IsZero() {
		return // a message of the user
	}
	c.ended = time.Now()
	if n == nil {
		return
	}

	message, _ := n.Message()
	c.answer, c.usage = &message.Answer, c.usage.Plus(message.Answer.Usage)
	if r.content {
		c.span.SetAttributes(answerContent(message))
	}
	if message.Answer.Stop != content.StopCut {
		r.endChat("", "")
	}
}

// take records the usage of an empty response from the TurnEnd, because there is no message with it.
func (c *chat) take(e executor.TurnEnd) {
	if c != nil && c.answer == nil {
		c.usage = e.Usage // those of failed attempts included
	}
}

// endChat ends the span of the last request, if it is open. failure is the error.type of a failed request, or "".
func (r *run) endChat(failure, text string) {
	c := r.chat
	if c == nil {
		return
	}
	r.chat = nil
	if c.ended.IsZero() {
		c.ended = time.Now()
	}

	// Some of the metrics have the error.type too. The bounds keep measured as it is when failed gets it.
	measured := append(r.describe(c), semconv.GenAIOperationNameChat)
	failed := measured[:len(measured):len(measured)]
	if failure != "" {
		setError(c.span, failure, text)
		failed = append(failed, semconv.ErrorTypeKey.String(failure))
		if c.answer == nil {
			c.span.SetAttributes(semconv.GenAIResponseFinishReasons("error"))
		}
	}
	c.span.End(trace.WithTimestamp(c.ended))

	r.usage = r.usage.Plus(c.usage)
	r.metrics.requestDuration.Record(c.ctx, c.ended.Sub(c.began).Seconds(), metric.WithAttributes(failed...))
	if !c.first.IsZero() {
		r.metrics.firstChunk.Record(c.ctx, c.first.Sub(c.began).Seconds(), metric.WithAttributes(measured...))
	}
	r.metrics.tokens(c.ctx, c.usage, measured, failed)
}

// describe sets the attributes of a response on its span. It returns the attributes for the metrics.
func (r *run) describe(c *chat) []attribute.KeyValue {
	c.span.SetAttributes(usageAttributes(c.usage)...)

	// Without a response, the API is known from the error of an attempt, or from the response before.
	if c.answer == nil {
		r.api = cmp.Or(c.api, r.api)
		c.span.SetAttributes(providerName(r.api))
		return []attribute.KeyValue{providerName(r.api)}
	}

	r.api = cmp.Or(c.answer.API, c.api, r.api)
	measured := []attribute.KeyValue{providerName(r.api)}
	if model := clean(c.answer.Model); model != "" {
		// If the program named no model, the span has the name of the one that responded.
		c.span.SetName(spanName(semconv.GenAIOperationNameChat, cmp.Or(c.model, model)))
		measured = append(measured, semconv.GenAIResponseModel(model))
	}
	c.span.SetAttributes(measured...)

	c.span.SetAttributes(semconv.GenAIResponseFinishReasons(finishReason(c.answer.Stop)))
	if c.answer.ResponseID != "" {
		c.span.SetAttributes(semconv.GenAIResponseID(clean(c.answer.ResponseID)))
	}
	return measured
}
