package mcp_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/mcp"
)

// leftOut returns the tools that are left out, and the name of the limit or the text of the reason for each.
func leftOut(t *testing.T, s *mcp.Server) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, err := range s.LeftOut() {
		var limit *mcp.LimitError
		name, reason := "", err.Error()
		if rest, named := strings.CutPrefix(reason, "tool "); named {
			quoted, err := strconv.QuotedPrefix(rest)
			require.NoError(t, err)
			reason = rest[len(quoted)+2:]
			name, err = strconv.Unquote(quoted)
			require.NoError(t, err)
		}
		if errors.As(err, &limit) {
			reason = limit.Limit
		}
		all[name] = reason
	}
	return all
}

func TestListOfAServerEndsAtItsLimits(t *testing.T) {
	for name, c := range map[string]struct {
		limits mcp.Limits
		tools  int
		reason string
	}{
		"endless pages":       {mcp.Limits{}, 0, "Pages"},
		"endless tools":       {mcp.Limits{Tools: 120}, 120, "Tools"},
		"endless definitions": {mcp.Limits{List: 1 << 20}, 63, "List"},
		"one cursor":          {mcp.Limits{}, 2, "the list of tools is cut off: the server repeats the cursor of a page, or it is too long"},
		"a long cursor":       {mcp.Limits{}, 1, "the list of tools is cut off: the server repeats the cursor of a page, or it is too long"},
	} {
		t.Run(name, func(t *testing.T) {
			overEach(t, name, func(t *testing.T, dial mcp.Dial) {
				s := connect(t, dial, &mcp.Options{Limits: c.limits})
				require.Len(t, s.Tools(), c.tools)
				require.Equal(t, map[string]string{"": c.reason}, leftOut(t, s))
				if len(c.reason) < 10 {
					require.ErrorIs(t, s.LeftOut()[0], dag.ErrLimit)
				}
			})
		})
	}
}

func TestToolOverALimitIsLeftOutAndNamed(t *testing.T) {
	overEach(t, "oversize", func(t *testing.T, dial mcp.Dial) {
		s := connect(t, dial, &mcp.Options{Limits: mcp.Limits{List: 16 << 20}})
		require.Equal(t, []string{"good", "good_too"}, names(s))
		require.Equal(t, map[string]string{"huge": "Description", "deep": "SchemaDepth", "large": "Schema"}, leftOut(t, s))
	})
}

func TestDeepResultFailsNothing(t *testing.T) {
	overEach(t, "deep result", func(t *testing.T, dial mcp.Dial) {
		s := connect(t, dial, nil)
		result := run(t, s, apitest.Use("dig", nil))[0]
		require.False(t, result.IsError, result.Result.Text())
		require.Equal(t, "dug", result.Result.Text())
	})
}

func TestBottomlessResultIsAnError(t *testing.T) {
	overEach(t, "abyss", func(t *testing.T, dial mcp.Dial) {
		s := connect(t, dial, nil)
		result := run(t, s, apitest.Use("fall", nil))[0]
		require.True(t, result.IsError)
		require.NotContains(t, result.Result.Text(), "exceeded timeout")
	})
}

func TestEndlessResultIsAnError(t *testing.T) {
	overEach(t, "endless result", func(t *testing.T, dial mcp.Dial) {
		wrote.Store(0)
		s := connect(t, dial, &mcp.Options{Limits: mcp.Limits{Message: 1 << 20}})
		result := run(t, s, apitest.Use("talk", nil))[0]
		require.True(t, result.IsError)
		require.Less(t, len(result.Result.Text()), 1000)
		require.Less(t, wrote.Load(), int64(endless/8), "the rest is not read")
	})
}

func TestServerThatNeverAnswersEndsWithTheTimeout(t *testing.T) {
	overEach(t, "never", func(t *testing.T, dial mcp.Dial) {
		s := connect(t, dial, nil)
		model := apitest.NewScript(apitest.Call(apitest.Use("wait", nil)), apitest.Say("Done."))
		d, err := executor.Agent{Provider: model, Tools: s.Tools(), ToolTimeout: 100 * time.Millisecond}.Run(t.Context(), dag.New().User("Go."))
		require.NoError(t, err)
		require.Contains(t, executions(d)[0].Result.Text(), "exceeded timeout")
	})
}

func TestFloodOfProgressIsDropped(t *testing.T) {
	overEach(t, "progress", func(t *testing.T, dial mcp.Dial) {
		s := connect(t, dial, &mcp.Options{Limits: mcp.Limits{Progress: 7}})
		model := apitest.NewScript(apitest.Call(apitest.Use("work", nil)), apitest.Say("Done."))
		updates := 0
		var d dag.DAG
		for event, err := range (executor.Agent{Provider: model, Tools: s.Tools()}).Stream(t.Context(), dag.New().User("Go.")) {
			require.NoError(t, err)
			switch e := event.(type) {
			case executor.ToolUpdate:
				updates++
			case executor.End:
				d = e.DAG
			}
		}
		require.LessOrEqual(t, updates, 7)
		require.Equal(t, "worked", executions(d)[0].Result.Text())
	})
}

func TestRequestsOfAServerAreLimited(t *testing.T) {
	var answered atomic.Int32
	server := newServer()
	addRaw(server, "nag", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		answered.Add(int32(len(r.Params.InputResponses)))
		return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"more": &sdk.ElicitParams{
			Message: "More?", RequestedSchema: map[string]any{"type": "object"},
		}}}, nil
	})
	yes := func(context.Context, *sdk.ElicitParams) (*sdk.ElicitResult, error) {
		return &sdk.ElicitResult{Action: "accept", Content: map[string]any{}}, nil
	}
	s := connect(t, inMemory(t, server), &mcp.Options{Elicit: yes, Limits: mcp.Limits{Requests: 3}})
	result := run(t, s, apitest.Use("nag", nil))[0]
	require.True(t, result.IsError)
	require.Contains(t, result.Result.Text(), "Limits.Requests")
	require.EqualValues(t, 3, answered.Load())
}

func TestRecursiveSchemaOfAServerHangsNoRun(t *testing.T) {
	overEach(t, "recursive", func(t *testing.T, dial mcp.Dial) {
		s := connect(t, dial, nil)
		require.Empty(t, s.LeftOut())
		arguments := content.JSON(strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40))
		result := run(t, s, content.ToolUse{ID: "c", Name: "recurse", Input: arguments})[0]
		require.True(t, result.IsError, "the arguments are refused, in a time in which the test ends")
		require.NotContains(t, result.Result.Text(), "the server's")
	})
}
