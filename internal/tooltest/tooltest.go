// Package tooltest has the shared tools and registry for tests of the executor and of its registry.
package tooltest

import (
	"context"
	"log/slog"
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
