package plait_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/viz"
)

// The ideas of docs/concepts.md: each function's lines stand there, and the picture below them is the drawing of what it
// returns.

func conversations(_ context.Context, _ api.Provider) (dag.DAG, error) {
	d := dag.New().
		System("Answer briefly.").
		User("Where is Paris?").
		Assistant("In France.").
		User("And Tokyo?").
		Assistant("In Japan.")
	return d, nil
}

func forks(_ context.Context, model api.Provider) (dag.DAG, error) {
	question := dag.New().User("Name a city.")
	first := question.Assistant("Paris.")
	second := question.Assistant("Tokyo.").User("Why that one?")
	both := first.Join(second)
	return both, nil
}

func toolPhases(ctx context.Context, model api.Provider) (dag.DAG, error) {
	weather := executor.Func("get_weather", "Current weather for one city.", lookup)
	d := dag.New().Tools(weather).User("Weather in Tokyo and Paris?")
	d, err := executor.Run(ctx, model, d)
	return d, err
}

func subAgents(ctx context.Context, model api.Provider) (dag.DAG, error) {
	research := executor.SubAgent("research", "Finds out about a city.", executor.Agent{Provider: model})
	agent := executor.Agent{Provider: model, Tools: []dag.Tool{research}}
	d, err := agent.Run(ctx, dag.New().User("Tell me about Tokyo."))
	return d, err
}

func merges(_ context.Context, model api.Provider) (dag.DAG, error) {
	question := dag.New().User("Write a title.")
	short := question.Assistant("Weather")
	long := question.Assistant("A Study of the Weather in Two Cities")
	d := dag.Merge(dag.Branch{Name: "short", DAG: short}, dag.Branch{Name: "long", DAG: long}).
		User("Something in between.")
	return d, d.Err()
}

func edits(_ context.Context, model api.Provider) (dag.DAG, error) {
	d := dag.New().User("Where is Pariss?").Assistant("I do not know Pariss.")
	edited := d.Back(1).User("Where is Paris?")
	return d.Join(edited), edited.Err()
}

func pauses(ctx context.Context, model api.Provider) (dag.DAG, error) {
	send := executor.Func("send_mail", "Sends a mail.", sendMail)
	agent := executor.Agent{Provider: model, Tools: []dag.Tool{send}, Hooks: []executor.Hook{executor.RequireApproval("send_mail")}}
	d, err := agent.Run(ctx, dag.New().User("Write to Ada that I am late."))

	if errors.Is(err, executor.ErrPaused) { // ask somebody, now or next week, here or in another process
		d, err = agent.Resume(ctx, d, executor.Declined(d.Pending()[0], "not today"))
	}
	return d, err
}

type mail struct{ To, Text string }

func sendMail(context.Context, mail) (string, error) { return "sent", nil }

func TestConceptsShowWhatTheirCodeDraws(t *testing.T) {
	for i, idea := range []struct {
		run    func(context.Context, api.Provider) (dag.DAG, error)
		script []apitest.Turn
	}{
		{run: conversations},
		{run: forks},
		{run: toolPhases, script: []apitest.Turn{
			apitest.Call(apitest.Use("get_weather", Forecast{"Tokyo"}), apitest.Use("get_weather", Forecast{"Paris"})),
			apitest.Say("22°C and 18°C."),
		}},
		{run: subAgents, script: []apitest.Turn{
			apitest.Call(apitest.Use("research", map[string]string{"task": "Tokyo"})),
			apitest.Say("The largest city of Japan."),
			apitest.Say("Tokyo is the largest city of Japan."),
		}},
		{run: merges},
		{run: edits},
		{run: pauses, script: []apitest.Turn{
			apitest.Call(apitest.Use("send_mail", mail{"Ada", "I am late."})),
			apitest.Say("I did not write to her."),
		}},
	} {
		synctest.Test(t, func(t *testing.T) { // time stands still, so that no duration is printed
			d, err := idea.run(t.Context(), apitest.NewScript(idea.script...))
			require.NoError(t, err)
			require.Empty(t, d.Validate())
			var picture strings.Builder
			require.NoError(t, viz.Mermaid(&picture, d, nil))
			shows(t, "docs/concepts.md", "mermaid", i, picture.String())
		})
	}
}
