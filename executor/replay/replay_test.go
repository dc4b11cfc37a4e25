package replay_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/replay"
	"github.com/plait-dev/plait/node"
)

type celsius struct {
	City string `json:"city"`
}

// thermometer is a tool that says what degrees says.
func thermometer(degrees func(city string) (string, error)) executor.Tool {
	return executor.Func("get_weather", "", func(_ context.Context, in celsius) (string, error) { return degrees(in.City) })
}

func inCity(city string) content.ToolUse { return apitest.Use("get_weather", celsius{city}) }

func ask(tools ...dag.Tool) dag.DAG { return dag.New().Tools(tools...).User("Go.") }

// outcomes are the results of the conversation's last message with any.
func outcomes(t *testing.T, d dag.DAG) (list []string) {
	t.Helper()
	for _, m := range d.Messages() {
		if len(m.Blocks.ToolResults()) > 0 {
			list = nil
		}
		for _, r := range m.Blocks.ToolResults() {
			text := r.Content.Text()
			if r.IsError {
				text = "error: " + text
			}
			list = append(list, text)
		}
	}
	return list
}

func tool(name string, fn func(ctx context.Context) (any, error)) executor.Tool {
	return executor.Func(name, "", func(ctx context.Context, _ struct{}) (any, error) { return fn(ctx) })
}

// recorded is a run with two tool phases.
func recorded(t testing.TB) dag.DAG {
	model := apitest.NewScript(
		apitest.Call(inCity("Paris"), inCity("Tokyo")), apitest.Call(inCity("Paris")), apitest.Say("18 °C in Paris, 22 °C in Tokyo."),
	)
	degrees := map[string]string{"Paris": "18 °C", "Tokyo": "22 °C"}
	d, err := executor.Run(context.Background(), model, ask(thermometer(func(city string) (string, error) { return degrees[city], nil })))
	require.NoError(t, err)
	return d
}

// A call is found by the index of its block, which counts the texts before it too; the agent may have tools of its own.
func TestToolsReplaysCallsAfterATextWithTheAgentsTools(t *testing.T) {
	same := thermometer(func(string) (string, error) { return "18 °C", nil })
	d := dag.New().Tools(same).User("Go.").Assistant("Let me look.", inCity("Paris"))
	d, err := executor.ExecuteTools(t.Context(), d)
	require.NoError(t, err)

	changed := thermometer(func(string) (string, error) { return "19 °C", nil })
	agent := executor.Agent{System: "Be brief.", Tools: []dag.Tool{changed}}
	all, err := replay.Tools(t.Context(), agent, reopened(t, d), false, nil)
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, `get_weather{"city":"Paris"} → 19 °C, recorded → 18 °C`, all[0].String())
}

func TestToolsFindsWhatChanged(t *testing.T) {
	d := recorded(t)
	ran := 0
	changed := thermometer(func(city string) (string, error) {
		if ran++; city == "Tokyo" {
			return "", errors.New("no station")
		}
		return "18 °C", nil
	})
	agent := executor.Agent{Strategy: executor.Sequential()}

	all, err := replay.Tools(t.Context(), agent, d.Tools(changed), false, nil)
	require.NoError(t, err)
	require.Len(t, all, 3)
	require.Equal(t, []bool{true, false, true}, []bool{all[0].Same, all[1].Same, all[2].Same})
	require.Equal(t, `get_weather{"city":"Tokyo"} → ✗ no station, recorded → 22 °C`, all[1].String())
	require.Equal(t, `get_weather{"city":"Paris"} → 18 °C`, all[2].String())
	require.Equal(t, 3, ran)

	all, err = replay.Tools(t.Context(), agent, d.Tools(changed), true, nil)
	require.NoError(t, err)
	require.Len(t, all, 2, "it stops at the first")
	require.Equal(t, 5, ran, "no phase after it is carried out")

	all, err = replay.Tools(t.Context(), agent, d.Tools(changed), true, func(was, is node.ToolExecution) bool { return was.Tool == is.Tool })
	require.NoError(t, err)
	require.Len(t, all, 3, "by the rule nothing changed")

	_, err = replay.Tools(t.Context(), agent, d.User("", nil), false, nil)
	require.Error(t, err)
	_, err = replay.Tools(t.Context(), agent, reopened(t, d), false, nil)
	require.ErrorAs(t, err, new(*executor.UnboundError))
}

// reopened is the conversation without its tools.
func reopened(t testing.TB, d dag.DAG) dag.DAG { return dag.New().WithHeads(d.Heads()...) }

func TestAnotherModelRunsAgainstTheRecording(t *testing.T) {
	d := recorded(t)
	tape := replay.NewRecording(reopened(t, d))
	require.Len(t, tape.Start().Messages(), 1)
	other := apitest.NewScript(
		apitest.Call(apitest.Use("get_weather", content.JSON(` { "city" : "Tokyo" } `)), inCity("Pariz"), apitest.Use("get_time", nil)), apitest.Say("22 °C in Tokyo."),
	)
	again, err := executor.Agent{Provider: other, Handler: tape.Handle, Strategy: executor.Sequential()}.Run(t.Context(), tape.Start())
	require.NoError(t, err)
	require.Equal(t, []string{
		"22 °C", `error: the call was not recorded: get_weather{"city":"Pariz"}; the nearest is get_weather{"city":"Paris"}`,
		"error: the call was not recorded: get_time{}",
	}, outcomes(t, again))
	missed := tape.Missed()
	require.Len(t, missed, 2)
	require.ErrorAs(t, missed[0], new(*replay.NotRecordedError))
	require.Nil(t, missed[1].Nearest)
}

func TestACallRecordedSeveralTimesGivesItsResultsInOrder(t *testing.T) {
	n := 0
	counts := tool("counts", func(context.Context) (any, error) { n++; return n, nil })
	model := apitest.NewScript(apitest.Call(apitest.Use("counts", content.JSON("{}"))), apitest.Call(apitest.Use("counts", content.JSON("{}"))), apitest.Say("Two."))
	d, err := executor.Run(t.Context(), model, ask(counts))
	require.NoError(t, err)
	tape := replay.NewRecording(d)
	for _, want := range []string{"1", "2", "2"} {
		got, err := tape.Handle(t.Context(), executor.Call{Name: "counts", Input: "{}"})
		require.NoError(t, err)
		require.Equal(t, want, got.(executor.Result).Content.Text())
	}
}

func TestARecordedFailureFailsAgain(t *testing.T) {
	broken := tool("broken", func(context.Context) (any, error) { return nil, errors.New("it is broken") })
	d, err := executor.Run(t.Context(), apitest.NewScript(apitest.Call(apitest.Use("broken", content.JSON("{}"))), apitest.Say("Done.")), ask(broken))
	require.NoError(t, err)
	tape := replay.NewRecording(d)
	got, err := tape.Handle(t.Context(), executor.Call{Name: "broken", Input: "{}"})
	require.NoError(t, err)
	require.Equal(t, executor.Result{Content: content.Words("it is broken"), IsError: true}, got)
}

func TestTheNearestRecordedCallHasMostInCommon(t *testing.T) {
	var calls []content.ToolUse
	for _, city := range []string{"Paris, France", "Paris, Texas", "London, Texas", "X"} {
		calls = append(calls, inCity(city))
	}
	model := apitest.NewScript(apitest.Call(append(calls, apitest.Use("counts", content.JSON("{}")))...), apitest.Say("Done."))
	other := tool("counts", func(context.Context) (any, error) { return 1, nil })
	d, err := executor.Run(t.Context(), model, ask(thermometer(func(string) (string, error) { return "18 °C", nil }), other))
	require.NoError(t, err)

	for asked, nearest := range map[string]string{
		"Paris":      "Paris, France",
		"Paris, Fra": "Paris, France", "Paris, Te": "Paris, Texas", "Bonn, Texas": "London, Texas", "Paris, Texas, USA": "Paris, Texas",
		"Y": "Paris, France", "": "Paris, France", "XX": "X",
	} {
		tape := replay.NewRecording(d)
		_, err := tape.Handle(t.Context(), executor.Call{Name: "get_weather", Input: inCity(asked).Input})
		var miss *replay.NotRecordedError
		require.ErrorAs(t, err, &miss, asked)
		require.Equal(t, inCity(nearest).Input, miss.Nearest.Input, asked)
		require.Equal(t, []*replay.NotRecordedError{miss}, tape.Missed())
	}
}

// A recorded run is carried out again with a tool that has changed: where do they part?
func ExampleTools() {
	degrees := map[string]string{"Paris": "18 °C", "Tokyo": "22 °C"}
	lookup := func(city string) (string, error) { return degrees[city], nil }
	model := apitest.NewScript(apitest.Call(inCity("Paris"), inCity("Tokyo")), apitest.Say("18 °C and 22 °C."))
	d, _ := executor.Run(context.Background(), model, dag.New().Tools(thermometer(lookup)).User("Weather?"))

	degrees["Tokyo"] = "71 °F" // somebody changed the tool
	calls, err := replay.Tools(context.Background(), executor.Agent{}, d, true, nil)
	for _, c := range calls {
		fmt.Println(c)
	}
	fmt.Println(err)
	// Output:
	// get_weather{"city":"Paris"} → 18 °C
	// get_weather{"city":"Tokyo"} → 71 °F, recorded → 22 °C
	// <nil>
}

// Another model is asked the same, and its tool calls get the recorded results.
func ExampleNewRecording() {
	degrees := func(string) (string, error) { return "18 °C", nil }
	model := apitest.NewScript(apitest.Call(inCity("Paris")), apitest.Say("18 °C."))
	d, _ := executor.Run(context.Background(), model, dag.New().Tools(thermometer(degrees)).User("Weather in Paris?"))

	tape := replay.NewRecording(d)
	other := apitest.NewScript(apitest.Call(inCity("Paris, France")), apitest.Call(inCity("Paris")), apitest.Say("It is 18 °C."))
	again, err := executor.Agent{Provider: other, Handler: tape.Handle}.Run(context.Background(), tape.Start())
	fmt.Println(again.Text(), err)
	for _, miss := range tape.Missed() {
		fmt.Println(miss)
	}
	// Output:
	// It is 18 °C. <nil>
	// the call was not recorded: get_weather{"city":"Paris, France"}; the nearest is get_weather{"city":"Paris"}
}

// A rule of one's own for calls that were not recorded letter for letter: here the nearest of the same tool will do, where it begins the
// same.
func ExampleRecording_Handle() {
	degrees := func(string) (string, error) { return "18 °C", nil }
	model := apitest.NewScript(apitest.Call(inCity("Paris")), apitest.Say("18 °C."))
	d, _ := executor.Run(context.Background(), model, dag.New().Tools(thermometer(degrees)).User("Weather in Paris?"))

	tape := replay.NewRecording(d)
	tolerant := func(ctx context.Context, call executor.Call) (any, error) {
		result, err := tape.Handle(ctx, call)
		var miss *replay.NotRecordedError
		if errors.As(err, &miss) && miss.Nearest != nil && strings.HasPrefix(string(call.Input), `{"city":"Paris`) {
			return executor.Result{Content: miss.Nearest.Result}, nil
		}
		return result, err
	}
	other := apitest.NewScript(apitest.Call(inCity("Paris, France"), inCity("Tokyo")), apitest.Say("18 °C in Paris; I do not know Tokyo."))
	again, err := executor.Agent{Provider: other, Handler: tolerant}.Run(context.Background(), tape.Start())
	for _, m := range again.Messages() {
		for _, r := range m.Blocks.ToolResults() {
			fmt.Println(r.Content.Text())
		}
	}
	fmt.Println(again.Text(), err)
	// Output:
	// 18 °C
	// the call was not recorded: get_weather{"city":"Tokyo"}; the nearest is get_weather{"city":"Paris"}
	// 18 °C in Paris; I do not know Tokyo. <nil>
}
