package otel

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/plait-dev/plait/executor"
)

// scope names this library to OpenTelemetry.
const scope = "github.com/plait-dev/plait/executor/otel"

// Options are the options of [Hook].
type Options struct {
	// Agent is the name of the agent, gen_ai.agent.name. Sub-agents have the names of their tools. Defaults to none.
	Agent string
	// TracerProvider makes the spans. Defaults to the program's own (otel.GetTracerProvider).
	TracerProvider trace.TracerProvider
	// MeterProvider makes the metrics. Defaults to the program's own (otel.GetMeterProvider).
	MeterProvider metric.MeterProvider
	// Content also records contents: system prompts, messages, declarations of tools, arguments, results, and the texts
	// of errors. Each request's span has its whole conversation. Images and documents are recorded without their bytes.
	// Defaults to false, because all of it may be private.
	Content bool
}

// Hook returns a hook that traces and measures the runs of an agent and of its sub-agents. It is safe for any number of
// agents and concurrent runs. If a run has several such hooks, the first one traces it.
func Hook(o *Options) executor.Hook {
	var options Options
	if o != nil {
		options = *o
	}
	if options.TracerProvider == nil {
		options.TracerProvider = otel.GetTracerProvider()
	}
	if options.MeterProvider == nil {
		options.MeterProvider = otel.GetMeterProvider()
	}

	t := &tracer{
		agent: options.Agent, content: options.Content,
		spans:   options.TracerProvider.Tracer(scope),
		metrics: newMetrics(options.MeterProvider.Meter(scope)),
	}
	return executor.Hook{Observe: t.observe}
}

// tracer traces the runs of an agent. It never changes.
type tracer struct {
	agent   string
	content bool
	spans   trace.Tracer
	metrics metrics
}

type runKey struct{}

// runIn returns the innermost traced run of ctx, or nil.
func runIn(ctx context.Context) *run {
	r, _ := ctx.Value(runKey{}).(*run)
	return r
}

// observe is the Hook.Observe of t. It finds the run in ctx, where begin has put it.
func (t *tracer) observe(ctx context.Context, event executor.Event, err error) context.Context {
	if start, begins := event.(executor.RunStart); begins {
		return t.begin(ctx, start)
	}
	if r := runIn(ctx); r != nil && r.tracer == t {
		return r.observe(ctx, event, err)
	}
	return ctx
}
