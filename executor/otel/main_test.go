package otel_test

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/otel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// collector keeps what a hook records.
type collector struct {
	spans   *tracetest.InMemoryExporter
	tracers *sdktrace.TracerProvider
	reader  *sdkmetric.ManualReader
	hook    executor.Hook
}

// collect returns a collector, and makes its hook with the options.
func collect(t *testing.T, o otel.Options) *collector {
	c := &collector{spans: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
	c.tracers = sdktrace.NewTracerProvider(sdktrace.WithSyncer(c.spans))
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(c.reader))
	t.Cleanup(func() {
		_ = c.tracers.Shutdown(context.Background())
		_ = meters.Shutdown(context.Background())
	})
	o.TracerProvider, o.MeterProvider = c.tracers, meters
	c.hook = otel.Hook(&o)
	return c
}

// agent returns an agent that is traced.
func (c *collector) agent(model api.Provider, tools ...dag.Tool) executor.Agent {
	return executor.Agent{Provider: model, Tools: tools, Hooks: []executor.Hook{c.hook}}
}

// tree returns the spans as one line each, indented below their parents, in the order in which they began.
func (c *collector) tree() string { return treeOf(c.spans.GetSpans()) }

func treeOf(spans tracetest.SpanStubs) string {
	sort.SliceStable(spans, func(i, j int) bool { return spans[i].StartTime.Before(spans[j].StartTime) })
	known := map[string]bool{}
	for _, s := range spans {
		known[s.SpanContext.SpanID().String()] = true
	}

	var b strings.Builder
	var write func(parent, indent string)
	write = func(parent, indent string) {
		for _, s := range spans {
			above := s.Parent.SpanID().String()
			if !known[above] {
				above = ""
			}
			if above != parent {
				continue
			}
			fmt.Fprintln(&b, indent+s.Name)
			write(s.SpanContext.SpanID().String(), indent+"  ")
		}
	}
	write("", "")
	return b.String()
}

// span returns the only span of that name.
func (c *collector) span(t *testing.T, name string) tracetest.SpanStub {
	t.Helper()
	var found []tracetest.SpanStub
	for _, s := range c.spans.GetSpans() {
		if s.Name == name {
			found = append(found, s)
		}
	}
	require.Len(t, found, 1, "spans %q of\n%s", name, c.tree())
	return found[0]
}

// values returns the attributes of a span.
func values(s tracetest.SpanStub) map[string]any { return mapOf(s.Attributes) }

func mapOf(attributes []attribute.KeyValue) map[string]any {
	values := map[string]any{}
	for _, a := range attributes {
		values[string(a.Key)] = a.Value.AsInterface()
	}
	return values
}

// metrics returns what was measured, by name.
func (c *collector) metrics(t *testing.T) map[string]metricdata.Metrics {
	t.Helper()
	var data metricdata.ResourceMetrics
	require.NoError(t, c.reader.Collect(context.Background(), &data))
	found := map[string]metricdata.Metrics{}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			found[m.Name] = m
		}
	}
	return found
}

type none struct{}

func call(name string) content.ToolUse { return apitest.Use(name, content.JSON("{}")) }

func say(text string) executor.Tool {
	return executor.Func("say", "Says it.", func(context.Context, none) (string, error) { return text, nil })
}

// texts returns the string attributes of a span and of its events.
func texts(s tracetest.SpanStub) []string {
	attributes := s.Attributes
	for _, event := range s.Events {
		attributes = append(attributes, event.Attributes...)
	}
	var all []string
	for _, a := range attributes {
		if a.Value.Type() == attribute.STRING {
			all = append(all, a.Value.AsString())
		}
	}
	return append(all, s.Status.Description)
}
