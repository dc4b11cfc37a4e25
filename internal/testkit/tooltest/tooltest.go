// Package tooltest has the shared tools and registry for tests of the executor and of its registry.
package tooltest

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/registry"
)

// Func returns a tool that accepts any object and calls fn. Unlike executor.Func it has no schema to check arguments
// against, and fn gets the whole call.
func Func(name string, fn func(ctx context.Context, call executor.Call) (any, error)) executor.Tool {
	return executor.NewTool(content.Tool{Name: name, Schema: `{"type":"object"}`},
		func(ctx context.Context, call executor.Call) (executor.Result, error) {
			out, err := fn(ctx, call)
			if err != nil {
				return executor.Result{}, err
			}
			return executor.ResultOf(out)
		})
}

// Returning returns a tool that accepts any object and returns out.
func Returning(name string, out any) executor.Tool {
	return Func(name, func(context.Context, executor.Call) (any, error) { return out, nil })
}

// Registry returns a registry of the tools, without a log.
func Registry(t testing.TB, tools ...executor.Tool) *registry.Registry {
	t.Helper()
	r := &registry.Registry{Log: slog.New(slog.DiscardHandler)}
	require.NoError(t, r.Register(tools...))
	return r
}

// Exponential is a small schema that a hostile server may declare: it refers to itself in two ways in each of two
// alternatives. A checker that forgets its verdicts takes 4 times as long for each level of [Nested].
const Exponential content.JSON = `{"type":"object","properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"anyOf":[` +
	`{"anyOf":[{"$ref":"#/$defs/m"},{"$ref":"#/$defs/m"}]},{"$ref":"#/$defs/m"}]},"m":{"type":"object",` +
	`"properties":{"a":{"$ref":"#/$defs/n"}},"required":["a"]}}}`

// Nested returns arguments with objects in objects, depth levels of {"a":…}. They do not fit Exponential, which only the
// innermost level shows.
func Nested(depth int) content.JSON {
	return content.JSON(strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth))
}
