package executor_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plait-dev/plait/internal/testkit/goldentest"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// spelled writes a value with all its exported fields that are not zero.
func spelled(value any) string {
	switch v := value.(type) {
	case nil:
		return "nil"
	case *node.Node:
		if v == nil {
			return "nil"
		}
		return v.Kind() + " " + v.ID().String()
	case dag.DAG:
		var heads []string
		for _, h := range v.Heads() {
			heads = append(heads, spelled(h))
		}
		return fmt.Sprintf("%d nodes to %s", v.Len(), strings.Join(heads, " and "))
	case node.ID:
		return v.String()
	case content.Blocks:
		return string(v.Append(nil))
	case node.List[*node.Node]:
		return spelled(v.Slice())
	case time.Time:
		return v.Sub(epoch).String()
	case time.Duration:
		return v.String()
	case error:
		return fmt.Sprintf("error(%v)", v)
	}

	v := reflect.ValueOf(value)
	switch v.Kind() {
	case reflect.Struct:
		var fields []string
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && !v.Field(i).IsZero() {
				fields = append(fields, f.Name+": "+spelled(v.Field(i).Interface()))
			}
		}
		return v.Type().Name() + "{" + strings.Join(fields, ", ") + "}"
	case reflect.Slice:
		var items []string
		for i := range v.Len() {
			items = append(items, spelled(v.Index(i).Interface()))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case reflect.Pointer:
		return spelled(v.Elem().Interface())
	}
	return fmt.Sprintf("%v", value)
}

// withoutIDs replaces IDs by numbers in the order in which they appear: those of a sub-agent are random.
func withoutIDs(lines []string) []string {
	id := regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	numbers := map[string]string{}
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = id.ReplaceAllStringFunc(line, func(id string) string {
			if numbers[id] == "" {
				numbers[id] = fmt.Sprint("#", len(numbers)+1)
			}
			return numbers[id]
		})
	}
	return out
}

// requireGolden compares lines with a golden file.
func requireGolden(t *testing.T, name string, lines []string) {
	t.Helper()
	goldentest.Require(t, name, strings.Join(lines, "\n")+"\n")
}

// TestEventsDescribeTheWholeRun holds every field of the events of a run and of its resumption.
func TestEventsDescribeTheWholeRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		count := executor.Func("count", "Counts.", func(ctx context.Context, in struct{ To int }) (executor.Result, error) {
			if err := executor.Progress(ctx, fmt.Sprint("up to ", in.To)); err != nil {
				return executor.Result{}, err
			}
			if in.To == 0 {
				return executor.Result{}, errors.New("nothing to count")
			}
			return executor.Result{
				Content: content.Words("one, two, three, four"), Usage: content.Usage{Input: 3, Output: 1}, Details: `{"steps":4}`,
			}, nil
		})
		helper := executor.SubAgent("helper", "Helps.", executor.Agent{
			Provider: apitest.NewScript(apitest.Say("I did it.").As("inner-api", "inner").Usage(content.Usage{Input: 7, Output: 2})),
		})
		model := apitest.NewScript(
			apitest.Say("Hm.").Fail(&api.Error{Kind: api.ErrOverloaded, RetryAfter: 2 * time.Second}).As("outer-api", "outer"),
			apitest.Say("Well.").Think("Let me see.", "sig").Call(
				apitest.Use("count", content.JSON(`{"To":4}`)), apitest.Use("coun.t", content.JSON(`{"To":0}`)),
				apitest.Use("helper", content.JSON(`{"task":"t"}`)),
				apitest.Use("far", content.JSON(`{"x":1}`)), apitest.Use("gone", content.JSON("{}")),
				content.ToolUse{ID: "cut", Name: "count", Input: `{"To":1,}`},
			).Usage(content.Usage{Input: 100, Output: 20, CacheRead: 5}).
				Repaired(api.RepairNote{Kind: "id", Message: 2, Detail: "an id"}).
				As("outer-api", "outer"),
			apitest.Say("Done.").Usage(content.Usage{Input: 200, Output: 10}).As("outer-api", "outer"),
		)

		steering, followUps := executor.NewQueue(), executor.NewQueue()
		require.NoError(t, steering.Add("And faster."))
		require.NoError(t, steering.Add("Rude words."))
		agent := executor.Agent{
			Provider: model, Strategy: executor.Sequential(), Steering: steering, FollowUps: followUps,
			Hooks: []executor.Hook{
				executor.OutputLimit{MaxBytes: 18, KeepFull: true}.Hook(),
				{
					Prepare: func(_ context.Context, call executor.Call) (executor.Call, error) {
						call.Name = strings.ReplaceAll(call.Name, ".", "")
						return call, nil
					},
					Input: func(_ context.Context, m content.Message) (content.Message, error) {
						if m.Blocks.Text() == "Rude words." {
							return m, errors.New("that is rude")
						}
						return m, nil
					},
				},
			},
			Prices: api.Prices{"outer": {Input: 1000, Output: 2000, CacheRead: 500}, "inner": {Input: 10, Output: 20}},
		}
		far := executor.DeferredTool(content.Tool{Name: "far", Schema: `{"type":"object"}`})
		d := dag.New().WithSource(node.Counting(epoch)).Tools(count, helper, far).User("Go.")

		var lines []string
		tell := func(events func(func(executor.Event, error) bool)) (end executor.End, failure error) {
			for event, err := range events {
				line := spelled(event)
				if err != nil {
					line += " beside " + spelled(err)
				}
				lines = append(lines, line)
				if e, ok := event.(executor.End); ok {
					end, failure = e, err
				}
			}
			lines = append(lines, "")
			return end, failure
		}
		ctx := executor.WithAttributes(t.Context(), map[string]any{"tenant": "acme"})
		end, err := tell(agent.Stream(ctx, d))
		require.ErrorIs(t, err, executor.ErrPaused)
		_, err = tell(agent.ResumeStream(ctx, end.DAG, executor.Failed(end.DAG.Pending()[0], "too far")))
		require.NoError(t, err)
		requireGolden(t, "events.txt", withoutIDs(lines))
	})
}
