package otel

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/plait-dev/plait/executor"
)

// w3c encodes a run's trace in its attributes.
var w3c propagation.TraceContext

// Attributes returns the names of the attributes (executor.WithAttributes) that keep the trace of a run over its
// pauses, for executor.ContinuationCodec.Keys and durable.Engine.Attributes.
func Attributes() []string { return w3c.Fields() }

// keepTrace returns ctx with its span among the attributes of the run.
func keepTrace(ctx context.Context) context.Context {
	carrier := propagation.MapCarrier{}
	w3c.Inject(ctx, carrier)
	if len(carrier) == 0 {
		return ctx
	}

	attributes := map[string]any{}
	for _, name := range w3c.Fields() {
		if value := carrier.Get(name); value != "" {
			attributes[name] = value
		}
	}
	return executor.WithAttributes(ctx, attributes)
}

// resumed returns ctx with the parent for a run's span. There are two candidates: the span of the paused run, from the
// attributes, and the current span in ctx. If only one exists, it is the parent. If both are in one trace, the current
// span is the parent and the paused one a link; in different traces it is the other way around.
func resumed(ctx context.Context) (context.Context, []trace.Link) {
	carrier := propagation.MapCarrier{}
	for _, name := range w3c.Fields() {
		if value, ok := executor.Attributes(ctx)[name].(string); ok {
			carrier.Set(name, value)
		}
	}

	paused := trace.SpanContextFromContext(w3c.Extract(context.Background(), carrier))
	current := trace.SpanContextFromContext(ctx)
	switch {
	case !paused.IsValid():
		return ctx, nil
	case !current.IsValid():
		return trace.ContextWithRemoteSpanContext(ctx, paused), nil
	case current.TraceID() == paused.TraceID():
		return ctx, []trace.Link{{SpanContext: paused}}
	}
	return trace.ContextWithRemoteSpanContext(ctx, paused), []trace.Link{{SpanContext: current}}
}
