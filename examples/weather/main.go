// Command weather asks a model for the weather in three cities: three tool calls run at the same time, their results
// come together in one message, and the model answers. It needs no network and no key, because the model is scripted;
// examples/live uses a real one. The conversation is saved as weather.json and drawn as weather.mmd. The next start
// continues it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz"
)

func main() {
	p := program{model: model(), out: os.Stdout, file: "weather.json", drawing: "weather.mmd"}
	if err := p.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Forecast is the input of the tool. Its fields become the schema.
type Forecast struct {
	City string `json:"city" jsonschema:"the city's name"`
	Unit string `json:"unit,omitempty" enum:"celsius,fahrenheit" jsonschema:"defaults to celsius"`
}

var celsius = map[string]int{"Tokyo": 22, "Paris": 18, "New York": 25}

// lookup is the tool: a plain function.
func lookup(_ context.Context, in Forecast) (string, error) {
	degrees, known := celsius[in.City]
	if !known {
		return "", fmt.Errorf("there is no station in %s", in.City)
	}

	if in.Unit == "fahrenheit" {
		return fmt.Sprintf("%d°F", (degrees*18+5)/10+32), nil // rounded
	}
	return fmt.Sprintf("%d°C", degrees), nil
}

type program struct {
	model         api.Provider
	out           io.Writer
	file, drawing string
	source        node.Source // of IDs and time; the zero value is the system's
}

// run starts a conversation, or continues the saved one.
func (p program) run(ctx context.Context) error {
	tool := executor.Func("get_weather", "Current weather for ONE city. Call it once for each city.", lookup)

	d, err := dag.Load(p.file)
	switch {
	case err == nil:
		fmt.Fprintf(p.out, "Continuing the conversation of %d nodes in %s.\n\n", d.Len(), p.file)
		d = d.WithSource(p.source).Tools(tool).User("And in Fahrenheit? Which one is the warmest?") // the file has no functions
	case errors.Is(err, fs.ErrNotExist):
		d = dag.New().WithSource(p.source).
			System("You help with weather. Call tools in parallel when possible.").
			Tools(tool).
			User("What's the weather in Tokyo, Paris and New York?")
	default:
		return err
	}

	// The conversation is valid after any error, so it is shown and saved.
	d, failure := executor.Run(ctx, p.model, d)
	fmt.Fprintf(p.out, "%v\n\nAnswer: %s\n", d, d.Text())
	if err := errors.Join(failure, d.Save(p.file), p.draw(d)); err != nil {
		return err
	}
	fmt.Fprintf(p.out, "\nSaved as %s and drawn as %s. Run it again to continue.\n", p.file, p.drawing)
	return nil
}

func (p program) draw(d dag.DAG) error {
	f, err := os.Create(p.drawing)
	if err != nil {
		return err
	}
	return errors.Join(viz.Mermaid(f, d, nil), f.Close())
}

// model is a scripted model. It answers both questions.
func model() api.Provider { return apitest.NewScript(apitest.Func(answer).Always()) }

func answer(req api.Request) apitest.Turn {
	last := req.Messages[len(req.Messages)-1].Blocks
	var found []string
	for _, result := range last.ToolResults() {
		found = append(found, result.Content.Text())
	}

	// The unit of the results shows which of the two questions they are for.
	switch {
	case len(found) == 3 && strings.HasSuffix(found[0], "F"):
		return apitest.Say(fmt.Sprintf("Tokyo has %s, Paris %s and New York %s: New York is the warmest.", found[0], found[1], found[2]))
	case len(found) == 3:
		return apitest.Say(fmt.Sprintf("It is %s in Tokyo, %s in Paris and %s in New York.", found[0], found[1], found[2]))
	case strings.Contains(last.Text(), "Fahrenheit"):
		return apitest.Say("I ask again, in Fahrenheit.").Call(calls("fahrenheit")...)
	}
	return apitest.Say("I look up all three at once.").Call(calls("")...)
}

func calls(unit string) (list []content.ToolUse) {
	for _, city := range []string{"Tokyo", "Paris", "New York"} {
		list = append(list, apitest.Use("get_weather", Forecast{City: city, Unit: unit}))
	}
	return list
}
