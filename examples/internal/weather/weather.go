// Package weather is the program that examples/weather runs on a scripted model and examples/live on a real one: it asks for the
// weather in three cities, and saves and draws the conversation. When it is started again it goes on where it stopped.
package weather

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz"
)

// Forecast is what the tool is asked. Its fields become the schema of the tool's arguments.
type Forecast struct {
	City string `json:"city" jsonschema:"the city's name"`
	Unit string `json:"unit,omitempty" enum:"celsius,fahrenheit" jsonschema:"celsius where it is left out"`
}

// celsius is the weather.
var celsius = map[string]int{"Tokyo": 22, "Paris": 18, "New York": 25}

// Lookup is the tool: a plain function.
func Lookup(_ context.Context, in Forecast) (string, error) {
	degrees, known := celsius[in.City]
	if !known {
		return "", fmt.Errorf("there is no station in %s", in.City)
	}
	if in.Unit == "fahrenheit" {
		return fmt.Sprintf("%d°F", (degrees*18+5)/10+32), nil // rounded
	}
	return fmt.Sprintf("%d°C", degrees), nil
}

// The questions of the first run, and of every further one.
const (
	First = "What's the weather in Tokyo, Paris and New York?"
	Next  = "And in Fahrenheit? Which one is the warmest?"
)

// Program is the program. Every field must be set but Source.
type Program struct {
	// Model answers.
	Model api.Provider
	// Out is where the program prints.
	Out io.Writer
	// File is where the conversation is saved, and Drawing where it is drawn.
	File, Drawing string
	// Source gives times and ids. Defaults to the system's.
	Source node.Source
}

// Run begins a conversation, or goes on with the one that File holds.
func (p Program) Run(ctx context.Context) error {
	tool := executor.Func("get_weather", "Current weather for ONE city. Call it once for each city.", Lookup)

	d, err := dag.Load(p.File)
	switch {
	case err == nil:
		fmt.Fprintf(p.Out, "%s holds a conversation of %d nodes. Going on with it.\n\n", p.File, d.Len())
		d = d.WithSource(p.Source).Tools(tool).User(Next) // a loaded conversation is given its tools again
	case errors.Is(err, fs.ErrNotExist):
		d = dag.New().WithSource(p.Source).
			System("You help with weather. Call tools in parallel when possible.").
			Tools(tool).
			User(First)
	default:
		return err
	}

	d, failure := executor.Run(ctx, p.Model, d) // d is valid beside any failure: it is shown and saved all the same
	fmt.Fprintln(p.Out, d)
	fmt.Fprintf(p.Out, "\nAnswer: %s\n", d.Text())
	if err := errors.Join(failure, d.Save(p.File), p.draw(d)); err != nil {
		return err
	}
	fmt.Fprintf(p.Out, "\nSaved as %s and drawn as %s. Run it again to go on.\n", p.File, p.Drawing)
	return nil
}

func (p Program) draw(d dag.DAG) error {
	f, err := os.Create(p.Drawing)
	if err != nil {
		return err
	}
	return errors.Join(viz.Mermaid(f, d, nil), f.Close())
}
