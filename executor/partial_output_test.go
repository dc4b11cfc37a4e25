package executor_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

// A page shows the steps of a plan while the model writes them.
func ExamplePartialOutput() {
	type plan struct {
		Title string   `json:"title"`
		Steps []string `json:"steps"`
	}
	model := apitest.NewScript(apitest.Say(`{"title": "Bread", "steps": ["mix", "wait", "bake"]}`))
	agent := executor.WithOutput[plan](executor.Agent{Provider: model})

	var d dag.DAG
	steps := 0
	show := func(p plan) {
		if len(p.Steps) > steps {
			steps = len(p.Steps)
			fmt.Println(p.Title, "has a step", steps)
		}
	}
	events := agent.Stream(context.Background(), dag.New().User("How do I make bread?"))
	for event, err := range executor.PartialOutput(events, show) {
		if end, ok := event.(executor.End); ok {
			d = end.DAG
			fmt.Println("error:", err)
		}
	}
	whole, err := executor.FinalOutput[plan](d)
	fmt.Println(whole, err)
	// Output:
	// Bread has a step 1
	// Bread has a step 2
	// Bread has a step 3
	// error: <nil>
	// {Bread [mix wait bake]} <nil>
}

func TestPartialOutputShowsAResponseAsFarAsItIsKnown(t *testing.T) {
	type plan struct {
		Steps []string `json:"steps"`
	}
	agent := executor.WithOutput[plan](executor.Agent{Provider: apitest.NewScript(
		apitest.Say(`{"steps":["wake up",`).Fail(&api.Error{Kind: api.ErrInvalidRequest}),
	)})
	var shown []plan
	show := func(p plan) { shown = append(shown, p) }
	for range executor.PartialOutput(agent.Stream(t.Context(), ask()), show) {
	}
	require.Equal(t, plan{Steps: []string{"wake up"}}, shown[len(shown)-1])

	// A response in another form is followed by a second one, which begins anew.
	agent = executor.WithOutput[plan](executor.Agent{Provider: apitest.NewScript(
		apitest.Say(`{"steps":["one"],"more":1}`), apitest.Say(`{"steps":["two"]}`).Always(),
	)})
	shown = nil
	var end dag.DAG
	for event, err := range executor.PartialOutput(agent.Stream(t.Context(), ask()), show) {
		require.NoError(t, err)
		if e, ok := event.(executor.End); ok {
			end = e.DAG
		}
	}
	final, err := executor.FinalOutput[plan](end)
	require.NoError(t, err)
	require.Equal(t, plan{Steps: []string{"two"}}, final)
	require.Equal(t, final, shown[len(shown)-1])

	for range executor.PartialOutput(agent.Stream(t.Context(), ask()), show) {
		break // the run is stopped and joined
	}
}
