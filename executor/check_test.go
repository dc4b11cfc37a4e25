package executor_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/testkit/tooltest"
)

// unreached is a tool with a schema, which no call may reach.
func unreached(t *testing.T, schema content.JSON) executor.Tool {
	return executor.NewTool(content.Tool{Name: "act", Schema: schema}, func(context.Context, executor.Call) (executor.Result, error) {
		t.Error("a call with wrong arguments was executed")
		return executor.Result{}, nil
	})
}

func TestArgumentsThatNestDeepAreCheckedInTimeByAnySchema(t *testing.T) {
	tool := unreached(t, tooltest.Exponential)
	for _, depth := range []int{40, 400, 4000} {
		a := executor.Agent{Provider: once(apitest.Use("act", tooltest.Nested(depth))), Tools: []dag.Tool{tool}}
		d, err := a.Run(t.Context(), dag.New().User("Go."))
		require.NoError(t, err)
		require.Contains(t, outcomes(t, d)[0], "  - a: fits none of 2 alternatives (", "depth %d", depth)
	}
}

func TestCheckOfArgumentsEndsWithTheRun(t *testing.T) {
	// The check of this list takes about a second, until it ends at its limit of steps.
	schema := `{"type":"object","properties":{"a":{"items":{"anyOf":[` + strings.Repeat(`{"type":"null"},`, 5000) + `{}]}}}}`
	use := apitest.Use("act", content.JSON(fmt.Sprintf(`{"a":[1%s]}`, strings.Repeat(",1", 20_000))))
	a := executor.Agent{Provider: once(use), Tools: []dag.Tool{unreached(t, content.JSON(schema))}}

	d, err := a.Run(t.Context(), dag.New().User("Go."))
	require.NoError(t, err)
	require.Contains(t, outcomes(t, d)[0], "is too complex to check")

	ctx, cancel := context.WithCancel(t.Context())
	a.Provider = once(use)
	a.Hooks = []executor.Hook{{Prepare: func(_ context.Context, c executor.Call) (executor.Call, error) {
		go cancel() // the check begins meanwhile
		return c, nil
	}}}
	d, err = a.Run(ctx, dag.New().User("Go."))
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []string{"error: Operation cancelled before the tool was started."}, outcomes(t, d))
}
