package otel

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/plait-dev/plait/content"
)

// metrics holds the instruments that this package records.
type metrics struct {
	requestDuration, firstChunk, runDuration, callDuration metric.Float64Histogram
	inputPerRequest, outputPerRequest                      metric.Int64Histogram
	runRequests, runCalls                                  metric.Int64Histogram
	input, output, cacheRead, cacheWrite, reasoning        metric.Int64Counter
}

// Bounds of histograms, as recommended by the conventions.
var (
	seconds    = powers(0.01, 2, 14) // of a request or a call
	runSeconds = powers(0.1, 2, 13)
	tokens     = powers(1, 4, 14)
	counts     = powers(1, 2, 8)
)

// powers returns n bounds, each factor times the one before.
func powers(first, factor float64, n int) []float64 {
	bounds := make([]float64, n)
	for i := range bounds {
		bounds[i] = first
		first *= factor
	}
	return bounds
}

func newMetrics(m metric.Meter) metrics {
	const requests = "gen_ai.client.inference."
	return metrics{
		requestDuration: duration(m, requests+"duration", "Duration of a request to a model.", seconds),
		firstChunk:      duration(m, requests+"time_to_first_chunk", "Time until the first piece of a response.", seconds),
		runDuration:     duration(m, "gen_ai.invoke_agent.duration", "Duration of an agent's run.", runSeconds),
		callDuration:    duration(m, "gen_ai.execute_tool.duration", "Duration of a tool call.", seconds),

		inputPerRequest:  count(m, requests+"operation.input_tokens", "{token}", "Input tokens of a request.", tokens),
		outputPerRequest: count(m, requests+"operation.output_tokens", "{token}", "Output tokens of a request.", tokens),
		runRequests: count(m, "gen_ai.invoke_agent.inference_calls", "{inference_call}",
			"Requests to a model in an agent's run.", counts),
		runCalls: count(m, "gen_ai.invoke_agent.tool_calls", "{tool_call}", "Tool calls in an agent's run.", counts),

		input:      counter(m, "input_tokens", "Input tokens, cached ones included."),
		output:     counter(m, "output_tokens", "Output tokens, reasoning included."),
		cacheRead:  counter(m, "cache_read.input_tokens", "Input tokens read from a cache."),
		cacheWrite: counter(m, "cache_write.input_tokens", "Input tokens written to a cache."),
		reasoning:  counter(m, "reasoning.output_tokens", "Output tokens spent on reasoning."),
	}
}

func duration(m metric.Meter, name, description string, bounds []float64) metric.Float64Histogram {
	h, err := m.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description),
		metric.WithExplicitBucketBoundaries(bounds...))
	report(err)
	return h
}

func count(m metric.Meter, name, unit, description string, bounds []float64) metric.Int64Histogram {
	h, err := m.Int64Histogram(name, metric.WithUnit(unit), metric.WithDescription(description),
		metric.WithExplicitBucketBoundaries(bounds...))
	report(err)
	return h
}

func counter(m metric.Meter, name, description string) metric.Int64Counter {
	c, err := m.Int64Counter("gen_ai.client.inference.usage."+name,
		metric.WithUnit("{token}"), metric.WithDescription(description))
	report(err)
	return c
}

// report passes an error of a meter to the program's otel.ErrorHandler.
func report(err error) {
	if err != nil {
		otel.Handle(err)
	}
}

// tokens records the usage of a request. The histograms have the attributes failed, with the request's error.
func (m *metrics) tokens(ctx context.Context, u content.Usage, measured, failed []attribute.KeyValue) {
	set := metric.WithAttributes(failed...)
	m.inputPerRequest.Record(ctx, allInput(u), set)
	m.outputPerRequest.Record(ctx, u.Output, set)

	// Usage is not split by modality.
	set = metric.WithAttributes(append(measured[:len(measured):len(measured)], modalityUnknown)...)
	m.input.Add(ctx, allInput(u), set)
	m.output.Add(ctx, u.Output, set)
	for counter, n := range map[metric.Int64Counter]int64{
		m.cacheRead: u.CacheRead, m.cacheWrite: u.CacheWrite, m.reasoning: u.Reasoning,
	} {
		if n > 0 {
			counter.Add(ctx, n, set)
		}
	}
}

// allInput returns the input tokens with those read from and written to a cache.
func allInput(u content.Usage) int64 { return u.Input + u.CacheRead + u.CacheWrite }
