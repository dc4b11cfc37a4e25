package toolsearch_test

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
	"github.com/plait-dev/plait/executor/toolsearch"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // models here call tools that are not there
	goleak.VerifyTestMain(m)
}

type city struct {
	City string `json:"city"`
}

// offices are tools for the weather of many cities, and one for open invoices.
func offices(n int) (tools []executor.Tool) {
	for i := range n {
		tools = append(tools, executor.Func(fmt.Sprintf("weather_%d", i), fmt.Sprintf("The weather at office %d.", i),
			func(_ context.Context, in city) (string, error) { return "22°C", nil }))
	}
	return append(tools, executor.Func("list_invoices", "Lists the open invoices of a customer.",
		func(context.Context, struct{}) (string, error) { return "two invoices", nil }))
}

func find(words string) content.ToolUse {
	return apitest.Use("find_tools", map[string]string{"words": words})
}

func names(req api.Request) (list []string) {
	for _, def := range req.Tools {
		list = append(list, def.Name)
	}
	return list
}

func TestWhatIsFoundIsDeclaredAndCanBeCalled(t *testing.T) {
	model := apitest.NewScript(
		apitest.Call(find("open INVOICES, of a customer"), find("weather office 77")),
		apitest.Call(apitest.Use("list_invoices", struct{}{})),
		apitest.Say("Two."))
	agent := toolsearch.Add(executor.Agent{Provider: model}, offices(500)...)
	d, err := agent.Run(t.Context(), dag.New().User("Which invoices are open?"))
	require.NoError(t, err)
	require.Empty(t, d.Validate())

	requests := model.Requests()
	require.Equal(t, []string{"find_tools"}, names(requests[0]))
	require.Contains(t, names(requests[1]), "list_invoices")
	require.Contains(t, names(requests[1]), "weather_77")
	require.Less(t, len(requests[1].Tools), 20)
	require.True(t, strings.HasPrefix(d.Messages()[2].Blocks.ToolResults()[0].Content.Text(), "list_invoices: Lists the open"))
	require.Equal(t, "two invoices", d.Messages()[4].Blocks.ToolResults()[0].Content.Text())
}

func TestFoundToolsAreThereAfterAPauseInAnotherProcess(t *testing.T) {
	later := executor.DeferredTool(content.Tool{Name: "ask_accountant", Description: "Asks the accountant.", Schema: `{"type":"object"}`})
	agent := func(turns ...apitest.Turn) executor.Agent {
		return toolsearch.Add(executor.Agent{Provider: apitest.NewScript(turns...)}, append(offices(20), later)...)
	}
	paused, err := agent(
		apitest.Call(find("accountant"), find("invoices")),
		apitest.Call(apitest.Use("ask_accountant", struct{}{})),
	).Run(t.Context(), dag.New().User("Ask."))
	require.ErrorIs(t, err, executor.ErrPaused)

	saved, err := paused.MarshalJSON()
	require.NoError(t, err)
	var loaded dag.DAG
	require.NoError(t, loaded.UnmarshalJSON(saved))
	again := agent(apitest.Call(apitest.Use("list_invoices", struct{}{})), apitest.Say("Done."))
	d, err := again.Resume(t.Context(), loaded, executor.Returned(loaded.Pending()[0], executor.Result{Content: content.Words("Yes.")}))
	require.NoError(t, err)
	require.Equal(t, "two invoices", d.Messages()[6].Blocks.ToolResults()[0].Content.Text())
}

func TestAToolThatWasNotFoundIsUnknown(t *testing.T) {
	model := apitest.NewScript(
		apitest.Call(apitest.Use("list_invoices", struct{}{}), find("zebra"), find(""), find("…\x00"), find(strings.Repeat("weather ", 1e5))),
		apitest.Say("Done."))
	d, err := toolsearch.Add(executor.Agent{Provider: model}, offices(30)...).Run(t.Context(), dag.New().User("Go."))
	require.NoError(t, err)
	results := d.Messages()[2].Blocks.ToolResults()
	require.True(t, results[0].IsError)
	for _, r := range results[1:4] {
		require.Equal(t, "No tool was found. Try other words.", r.Content.Text())
	}
	require.Len(t, strings.Split(strings.TrimSpace(results[4].Content.Text()), "\n"), 8)
}

func TestToolsAreFoundAgainAfterACompaction(t *testing.T) {
	model := apitest.NewScript(apitest.Call(find("invoices")), apitest.Say("Found."))
	d, err := toolsearch.Add(executor.Agent{Provider: model}, offices(3)...).Run(t.Context(), dag.New().User("Find."))
	require.NoError(t, err)
	var replaced []node.ID
	for _, n := range d.Nodes() {
		if n.Kind() != "tools" {
			replaced = append(replaced, n.ID())
		}
	}
	d = d.Append(node.Compaction{Summary: content.Words("Something was found."), Replaced: node.ListOf(replaced...)}).
		WithdrawTools("list_invoices")

	model = apitest.NewScript(apitest.Call(find("invoices")), apitest.Call(apitest.Use("list_invoices", struct{}{})), apitest.Say("Two."))
	d, err = toolsearch.Add(executor.Agent{Provider: model}, offices(3)...).Run(t.Context(), d.User("Again."))
	require.NoError(t, err)
	require.NotContains(t, names(model.Requests()[0]), "list_invoices")
	require.Contains(t, d.String(), "two invoices")
}

// foreign is a tool of somebody else.
type foreign struct{ executor.Tool }

func (foreign) Owner() any              { return "a server" }
func (f foreign) Unwrap() executor.Tool { return f.Tool }

func TestToolsThatCannotBeDeclaredAreReportedAtTheBeginning(t *testing.T) {
	broken := executor.NewTool(content.Tool{Name: "no spaces", Schema: `{}`}, nil)
	own := offices(0)[0]
	for name, agent := range map[string]executor.Agent{
		"nil":                    toolsearch.Add(executor.Agent{}, nil),
		"a bad name":             toolsearch.Add(executor.Agent{}, broken),
		"another owner's":        toolsearch.Add(executor.Agent{Tools: []dag.Tool{own}}, foreign{own}),
		"the search tool's name": toolsearch.Add(executor.Agent{}, foreign{executor.Func("find_tools", "Mine.", func(context.Context, struct{}) (string, error) { return "", nil })}),
	} {
		model := apitest.NewScript(apitest.Say("Hi."))
		agent.Provider = model
		_, err := agent.Run(t.Context(), dag.New().User("Go."))
		require.Error(t, err, name)
		require.Empty(t, model.Requests(), name)
	}
}

func TestTheLaterOfTwoToolsCounts(t *testing.T) {
	tool := func(text string) executor.Tool {
		return executor.Func("greet", "Greets.", func(context.Context, struct{}) (string, error) { return text, nil })
	}
	model := apitest.NewScript(apitest.Call(find("greets")), apitest.Call(apitest.Use("greet", struct{}{})), apitest.Say("Done."))
	d, err := toolsearch.Add(executor.Agent{Provider: model}, tool("first"), tool("second")).Run(t.Context(), dag.New().User("Go."))
	require.NoError(t, err)
	require.Equal(t, "second", d.Messages()[4].Blocks.ToolResults()[0].Content.Text())
}
