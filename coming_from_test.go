package plait_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/store"
)

// The right columns of docs/coming-from: what one does with every library, in order. See
// TestComingFromPagesShowCompiledCode.

type Weather struct {
	City    string `json:"city"`
	Degrees int    `json:"degrees"`
}

func comingFrom(ctx context.Context, model api.Provider, path string) error {
	weather := executor.Func("get_weather", "Current weather for one city.", lookup)
	agent := executor.Agent{Provider: model, System: "Answer briefly.", Tools: []dag.Tool{weather}}
	d, err := agent.Run(ctx, dag.New().User("Weather in Tokyo?"))
	if err != nil {
		return err
	}
	d, err = agent.Run(ctx, d.User("And in Paris?"))
	if err != nil {
		return err
	}

	for event, err := range agent.Stream(ctx, d.User("And in Oslo?")) {
		if end, ok := event.(executor.End); ok && err == nil {
			d = end.DAG
		}
	}
	forecast, d, err := executor.RunFor[Weather](ctx, agent, d.User("Tomorrow?"))
	if err != nil || forecast.Degrees != 20 {
		return errors.Join(err, errors.New("no forecast"))
	}

	if err := d.Save(path); err != nil {
		return err
	}
	d, err = dag.Load(path)
	if err != nil {
		return err
	}
	conversation, err := store.New(store.Memory()).Conversation(ctx, "ada")
	if err != nil {
		return err
	}
	agent.Save = conversation.Append

	expert := executor.Agent{Provider: apitest.NewScript(apitest.Say("22°C."))}
	research := executor.SubAgent("research", "Finds out about a city.", expert)
	mail := executor.Func("send_mail", "Sends a mail.", sendMail)
	agent.Tools = append(agent.Tools, research, mail)
	agent.Limits = executor.Limits{Turns: 10, Tokens: 50_000}
	agent.Hooks = []executor.Hook{{Before: deny}, executor.RequireApproval("send_mail")}
	d, err = agent.Run(ctx, d.User("Ask around, and mail it."))
	if !errors.Is(err, executor.ErrPaused) {
		return errors.Join(err, errors.New("no pause"))
	}
	d, err = agent.Resume(ctx, d, executor.Approved(d.Pending()[0]))
	if err != nil {
		return err
	}

	run, _ := d.LastRun()
	if run.Stop.Turns != 2 || run.Stop.Reason != "end_turn" {
		return errors.New("no totals")
	}
	return nil
}

func deny(ctx context.Context, call executor.Call) (executor.Decision, error) {
	if call.Name == "research" && strings.Contains(string(call.Input), "Atlantis") {
		return executor.Deny("there is no such city"), nil
	}
	return executor.Allow(), nil
}

func TestComingFromCodeRuns(t *testing.T) {
	model := apitest.NewScript(
		apitest.Call(apitest.Use("get_weather", Forecast{"Tokyo"})), apitest.Say("22°C."),
		apitest.Say("18°C."),
		apitest.Say("9°C."),
		apitest.Say(`{"city":"Oslo","degrees":20}`),
		apitest.Call(
			apitest.Use("research", map[string]string{"task": "Atlantis"}),
			apitest.Use("send_mail", mail{"ada@example.com", "20°C"})),
		apitest.Say("Sent."))
	require.NoError(t, comingFrom(t.Context(), model, filepath.Join(t.TempDir(), "talk.json")))
	require.Zero(t, model.Left())
}

var inlineCode = regexp.MustCompile("`([^`]+)`")

// TestComingFromPagesShowCompiledCode holds that each page has the ten things side by side, that the code of the right
// column is compiled (above), and that the page leads to the documentation of the other library.
func TestComingFromPagesShowCompiledCode(t *testing.T) {
	source := read(t, []string{"coming_from_test.go"})
	pages, err := filepath.Glob("docs/coming-from/*.md")
	require.NoError(t, err)
	require.Len(t, pages, 8)
	for _, page := range pages {
		if filepath.Base(page) == "README.md" {
			continue
		}
		text, err := os.ReadFile(page)
		require.NoError(t, err)

		rows, prose := 0, 0
		for line := range strings.Lines(string(text)) {
			cells := strings.Split(strings.Trim(line, "|\n"), "|")
			if len(cells) != 3 || strings.HasPrefix(line, "|---") || strings.Contains(line, "| Plait |") {
				prose += len(strings.Fields(line))
				continue
			}
			rows++
			for _, code := range inlineCode.FindAllStringSubmatch(cells[2], -1) {
				shown := strings.ReplaceAll(regexp.QuoteMeta(code[1]), "…", ".*") // "…" stands for what is left out of a line
				require.Regexp(t, shown, source, "%s", page)
			}
		}
		require.GreaterOrEqual(t, rows, 10, page)
		require.LessOrEqual(t, prose, 350, page)
		require.Regexp(t, `\]\(https://`, string(text), page)
	}
}
