package otel

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// call is a tool call under way.
type call struct {
	ctx      context.Context
	span     trace.Span
	began    time.Time
	measured []attribute.KeyValue // nil for a tool that is not declared: a model may invent any number of names
}

// beginCall starts the span of a tool call.
func (r *run) beginCall(ctx context.Context, e executor.ToolStart) context.Context {
	name := clean(e.Ran.Name)
	description, declared := r.declared[e.Ran.Name]
	attributes := []attribute.KeyValue{semconv.GenAIOperationNameExecuteTool, semconv.GenAIToolName(name)}
	c := &call{began: time.Now()}
	if declared {
		c.measured = attributes
	}

	// The span has more attributes than the metrics: appending must leave c.measured alone.
	attributes = append(attributes[:2:2], semconv.GenAIToolType("function"))
	attributes = append(attributes, r.conversation...)
	if e.Call.ID != "" {
		attributes = append(attributes, semconv.GenAIToolCallID(clean(e.Call.ID)))
	}
	if r.content && description != "" {
		attributes = append(attributes, semconv.GenAIToolDescription(description))
	}
	if r.content {
		attributes = append(attributes, semconv.GenAIToolCallArgumentsKey.String(string(e.Ran.Input)))
	}

	c.ctx, c.span = r.spans.Start(ctx, spanName(semconv.GenAIOperationNameExecuteTool, name),
		trace.WithSpanKind(trace.SpanKindInternal), trace.WithTimestamp(c.began), trace.WithAttributes(attributes...))
	r.calls[e.Call.Index] = c
	return c.ctx
}

// endCall ends the span of a tool call.
func (r *run) endCall(e node.ToolExecution) {
	c := r.calls[e.Index]
	if c == nil {
		return
	}
	delete(r.calls, e.Index)

	// A call in doubt has an error result too, so look at its state first.
	failure, text := "", ""
	failed := e.IsError && e.State != node.ExecutionDenied
	switch {
	case e.State == node.ExecutionDenied:
		c.span.AddEvent("plait.denied")
	case e.State == node.ExecutionInDoubt:
		failure = "in_doubt"
	case failed && c.measured == nil: // Agent.Handler can execute a call of an undeclared tool
		failure = "unknown_tool"
	case failed:
		failure = "tool_error"
	}
	if r.content && failed {
		text = e.Result.Text()
	} else if r.content {
		c.span.SetAttributes(resultContent(e.Result))
	}
	r.finish(c, failure, text)
}

// endCalls ends the spans of the calls under way.
func (r *run) endCalls(failure string) {
	for index, c := range r.calls {
		delete(r.calls, index)
		r.finish(c, failure, "")
	}
}

// finish ends the span of c.
func (r *run) finish(c *call, failure, text string) {
	ended, measured := time.Now(), c.measured
	if failure != "" {
		setError(c.span, failure, text)
		measured = append(measured, semconv.ErrorTypeKey.String(failure))
	}
	c.span.End(trace.WithTimestamp(ended))

	// The name of an undeclared tool is in no metric. A call of it that Agent.Handler has executed is counted.
	if c.measured != nil || failure == "" {
		r.executions++
	}
	if c.measured != nil {
		r.metrics.callDuration.Record(c.ctx, ended.Sub(c.began).Seconds(), metric.WithAttributes(measured...))
	}
}
