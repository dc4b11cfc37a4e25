package otel_test

import (
	"bufio"
	"cmp"
	"context"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/otel"
)

// definition is a span or a metric of the conventions.
type definition struct {
	form     string // the kind of a span; the instrument and the unit of a metric
	types    map[string]string
	required []string
	recorded map[string]bool // the attributes that were recorded
}

// conventions reads the definitions, by "span OPERATION" and "metric NAME".
func conventions(t *testing.T) map[string]*definition {
	t.Helper()
	file, err := os.Open("testdata/genai-v0.1.0.txt")
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()

	all := map[string]*definition{}
	var current *definition
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) == 0 || fields[0] == "#":
			continue
		case fields[0] == "span", fields[0] == "metric":
			current = &definition{form: strings.Join(fields[2:], " "), types: map[string]string{}, recorded: map[string]bool{}}
			all[fields[0]+" "+fields[1]] = current
			continue
		}

		current.types[fields[0]] = fields[1]
		if fields[2] == "required" {
			current.required = append(current.required, fields[0])
		}
	}
	return all
}

// check fails for attributes that the definition does not have, have another type there, or are missing.
func (d *definition) check(t *testing.T, name string, attributes []attribute.KeyValue) {
	t.Helper()
	values := mapOf(attributes)
	for _, key := range d.required {
		require.Contains(t, values, key, name)
	}
	for _, a := range attributes {
		key := string(a.Key)
		if strings.HasPrefix(key, "plait.") {
			continue
		}
		want, known := d.types[key]
		require.True(t, known, "%s has %s, which is not in the conventions", name, key)
		require.Equal(t, map[string]attribute.Type{
			"string": attribute.STRING, "any": attribute.STRING, "int": attribute.INT64, "double": attribute.FLOAT64,
			"boolean": attribute.BOOL, "string[]": attribute.STRINGSLICE,
		}[want], a.Value.Type(), "%s of %s is a %s", key, name, want)
		d.recorded[key] = true
	}
}

// TestEverythingRecordedIsOfTheConventions runs agents in all ways that lead to other attributes.
func TestEverythingRecordedIsOfTheConventions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := collect(t, otel.Options{Agent: "weather", Content: true})
		runEverything(t, c)

		all := conventions(t)
		for _, s := range c.spans.GetSpans() {
			operation := values(s)["gen_ai.operation.name"].(string)
			d := all["span "+operation]
			require.NotNil(t, d, operation)
			require.Equal(t, d.form, s.SpanKind.String())
			d.check(t, s.Name, s.Attributes)
			checkEvents(t, all, s.Events)
		}
		for name, m := range c.metrics(t) {
			d := all["metric "+name]
			require.NotNil(t, d, name)
			instrument, points := pointsOf(t, m)
			require.Equal(t, d.form, instrument+" "+m.Unit, name)
			for _, attributes := range points {
				d.check(t, name, attributes)
			}
		}

		for name, d := range all {
			for key := range d.types {
				require.True(t, d.recorded[key], "%s of %s is never recorded", key, name)
			}
		}
	})
}

// checkEvents fails for events that are neither of the conventions nor of this module's own, and for attributes that no
// definition has. The events of the conventions are log records, which this module does not write.
func checkEvents(t *testing.T, all map[string]*definition, events []trace.Event) {
	t.Helper()
	for _, e := range events {
		require.Contains(t, []string{"plait.retry", "plait.pause", "plait.denied"}, e.Name)
		for _, a := range e.Attributes {
			key := string(a.Key)
			if strings.HasPrefix(key, "plait.") {
				continue
			}
			known := ""
			for _, d := range all {
				known = cmp.Or(d.types[key], known)
			}
			require.Equal(t, "string", known, "%s has %s, which is not in the conventions", e.Name, key)
			require.Equal(t, attribute.STRING, a.Value.Type())
		}
	}
}

// pointsOf returns the instrument of a metric, and the attributes of its points.
func pointsOf(t *testing.T, m metricdata.Metrics) (instrument string, points [][]attribute.KeyValue) {
	t.Helper()
	add := func(set attribute.Set) { points = append(points, set.ToSlice()) }
	switch data := m.Data.(type) {
	case metricdata.Histogram[float64]:
		instrument = "histogram"
		for _, p := range data.DataPoints {
			add(p.Attributes)
		}
	case metricdata.Histogram[int64]:
		instrument = "histogram"
		for _, p := range data.DataPoints {
			add(p.Attributes)
		}
	case metricdata.Sum[int64]:
		require.True(t, data.IsMonotonic)
		instrument = "counter"
		for _, p := range data.DataPoints {
			add(p.Attributes)
		}
	default:
		t.Fatalf("%s is a %T", m.Name, m.Data)
	}
	return instrument, points
}

// named is a provider that knows its model.
type named struct{ *apitest.Script }

func (named) Model() string { return "requested" }

// runEverything runs agents whose requests and calls succeed, fail, are retried, pause and end early.
func runEverything(t *testing.T, c *collector) {
	t.Helper()
	usage := content.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Reasoning: 5}
	fails := executor.Func("fails", "Fails.", func(context.Context, none) (string, error) { return "", os.ErrInvalid })
	helper := executor.SubAgent("helper", "Helps.", executor.Agent{Provider: slow{}})
	helping := apitest.Use("helper", executor.Task{Task: "Go."})
	model := apitest.NewScript(
		apitest.Say("Half").Fail(&api.Error{Kind: api.ErrRateLimited, API: "anthropic"}),
		apitest.Call(call("say"), call("fails"), call("invented"), helping).Usage(usage),
		apitest.Say("Done."))
	agent := c.agent(named{model}, say("hi"), fails, helper)
	temperature := 0.5
	agent.System = "Be brief."
	agent.Options = api.Options{
		MaxTokens: 9, Temperature: &temperature, StopSequences: []string{"END"}, Output: api.Output[struct{ A int }](),
	}
	_, err := agent.Run(t.Context(), dag.New().User("Go."))
	require.NoError(t, err)

	failing := apitest.NewScript(apitest.Fail(&api.Error{Kind: api.ErrAuth, API: "gemini"}))
	_, err = c.agent(failing).Run(t.Context(), dag.New().User("Go."))
	require.ErrorIs(t, err, api.ErrAuth)
	cut := c.agent(apitest.NewScript(apitest.Say("Ha").Hang()))
	cut.Limits.Time = time.Second
	_, err = cut.Run(t.Context(), dag.New().User("Go."))
	require.NoError(t, err)

	d, continuation := pause(t, c, otel.Attributes())
	resume(t.Context(), t, c, d, continuation)
}
