package contextedit_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/contextedit"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // a model here calls tools with bad arguments
	goleak.VerifyTestMain(m)
}

type page struct {
	Number int `json:"number"`
}

// load is a tool whose results take about 500 tokens.
func load() executor.Tool {
	return executor.Func("load", "Loads a page.", func(_ context.Context, in page) (string, error) {
		return fmt.Sprintf("page %d: %s", in.Number, strings.Repeat("word ", 400)), nil
	})
}

// reader is a model that loads as many pages, two at a time, and then answers.
func reader(pages int) *apitest.Script {
	return apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
		loaded := 0
		for _, m := range req.Messages {
			loaded += len(m.Blocks.ToolUses())
		}
		if loaded >= pages {
			return apitest.Say("Done.")
		}
		return apitest.Call(apitest.Use("load", page{loaded + 1}), apitest.Use("load", page{loaded + 2}))
	}).Always())
}

func begin() dag.DAG {
	return dag.New().Tools(load(), contextedit.ReadResult()).User("Read everything.")
}

// tokens returns the tokens of the results in a request.
func tokens(req api.Request) (sum int64) {
	for _, m := range req.Messages {
		if len(m.Blocks.ToolResults()) > 0 {
			sum += api.EstimateTokens(api.Request{Messages: []content.Message{m}})
		}
	}
	return sum
}

// steps returns after how many requests the beginning changed.
func steps(requests []api.Request) (n int) {
	for i, req := range requests[1:] {
		for j, m := range requests[i].Messages {
			if !m.Blocks.Equal(req.Messages[j].Blocks) {
				n++
				break
			}
		}
	}
	return n
}

func TestOldResultsAreLeftOutInSteps(t *testing.T) {
	model := reader(80)
	edit := contextedit.Results{Budget: 10_000, Keep: 3_000}
	d, err := executor.Agent{Provider: model, Hooks: []executor.Hook{edit.Hook()}}.Run(t.Context(), begin())
	require.NoError(t, err)
	require.Empty(t, d.Validate())

	requests := model.Requests()
	require.Len(t, requests, 41)
	for i, req := range requests {
		notes := int64(2 * i * 40) // tokens of the notes, at most
		require.LessOrEqual(t, tokens(req), 10_000+notes, "request %d", i)
		require.Len(t, req.Messages, 1+2*i, "no message is missing")
		for j, m := range req.Messages {
			require.Len(t, m.Blocks.ToolResults(), 2*(1-j%2)*min(j, 1), "each call has its result")
		}
	}
	require.InDelta(t, 5, steps(requests), 1, "a step frees 7,000 tokens of 40,000")

	// Nothing is lost, and the same is sent when the conversation was saved and loaded.
	saved, err := d.MarshalJSON()
	require.NoError(t, err)
	var loaded dag.DAG
	require.NoError(t, loaded.UnmarshalJSON(saved))
	require.Equal(t, fmt.Sprint(d.Messages()), fmt.Sprint(loaded.Messages()))
	results := 0
	for _, n := range loaded.Nodes() {
		if m, ok := n.Message(); ok {
			results += strings.Count(m.Blocks.String(), "page ")
		}
	}
	require.GreaterOrEqual(t, results, 80)
}

func TestModelReadsAResultAgain(t *testing.T) {
	var read string
	model := apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
		last := req.Messages[len(req.Messages)-1]
		for _, m := range req.Messages {
			_, name, found := strings.Cut(m.Blocks.String(), `read_result returns it: \"`)
			if name, _, _ = strings.Cut(name, `\"`); found && read == "" {
				read = name
				return apitest.Call(apitest.Use("read_result", map[string]string{"result": name}))
			}
		}
		if read != "" {
			require.Contains(t, last.Blocks.ToolResults()[0].Content.Text(), "page 1: word")
			return apitest.Say("Done.")
		}
		return apitest.Call(apitest.Use("load", page{len(req.Messages)/2 + 1}))
	}).Always())

	edit := contextedit.Results{Budget: 2_000}
	_, err := executor.Agent{Provider: model, Hooks: []executor.Hook{edit.Hook()}}.Run(t.Context(), begin())
	require.NoError(t, err)
	require.NotEmpty(t, read)
}

func TestBadNamesOfResultsAreErrorsForTheModel(t *testing.T) {
	tool := contextedit.ReadResult()
	ask := func(ctx context.Context, input string) error {
		_, err := tool.Call(ctx, executor.Call{Name: "read_result", Input: content.JSON(input)})
		return err
	}
	require.ErrorContains(t, ask(t.Context(), `{"result":"00000000/0"}`), "hook")

	model := apitest.NewScript(
		apitest.Call(apitest.Use("load", page{1})),
		apitest.Func(func(req api.Request) apitest.Turn {
			return apitest.Call(
				apitest.Use("read_result", map[string]string{"result": "00000000/0"}),
				apitest.Use("read_result", map[string]string{"result": ""}),
				apitest.Use("read_result", map[string]string{"result": "00000000/99999999999999999999"}),
				apitest.Use("read_result", map[string]string{"result": "/-1"}))
		}),
		apitest.Say("Done."))
	d, err := executor.Agent{Provider: model, Hooks: []executor.Hook{contextedit.Results{Budget: 100}.Hook()}}.Run(t.Context(), begin())
	require.NoError(t, err)
	for _, r := range d.Messages()[4].Blocks.ToolResults() {
		require.True(t, r.IsError, r.Content.Text())
	}
}

func TestConversationsThatCannotBeEditedStayAsTheyAre(t *testing.T) {
	edit := contextedit.Results{Budget: 1}
	for name, d := range map[string]dag.DAG{
		"empty":      dag.New(),
		"an error":   dag.New().SetSystem("", ""),
		"open calls": dag.New().User("Hi.").Assistant("", apitest.Use("load", page{1})),
		"one result": dag.New().User("Hi.").Assistant("", apitest.Use("load", page{1})).
			CloseTools(node.ToolExecution{Result: content.Words(strings.Repeat("word ", 400))}),
	} {
		require.Equal(t, d.Heads(), edit.Edit(d).Heads(), name)
		require.Equal(t, d.Err(), edit.Edit(d).Err(), name)
	}
}
