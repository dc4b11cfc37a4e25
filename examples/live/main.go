// Command live asks a real model, Claude, GPT or Gemini, for the weather in three cities. It takes the model's name,
// and needs the key of its provider in ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY. The conversation is saved
// as live.json; the next start continues it, with the same model or with another one.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/anthropic"
	"github.com/plait-dev/plait/api/gemini"
	"github.com/plait-dev/plait/api/openai"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

const usage = `This program talks to a real model. Give it the model's name, and the key of its provider:

	ANTHROPIC_API_KEY=... go run ./examples/live claude-sonnet-4-5
	OPENAI_API_KEY=...    go run ./examples/live gpt-5
	GEMINI_API_KEY=...    go run ./examples/live gemini-2.5-flash

Started again, also with another model, it continues the same conversation. With OPENAI_BASE_URL set it talks to a server that
is compatible with OpenAI's Chat Completions.

Without a key, go run ./examples/weather does the same on a scripted model.`

func main() {
	if len(os.Args) != 2 {
		fail(usage)
	}
	model, key := named(os.Args[1])
	if os.Getenv(key) == "" {
		fail(key + " is not set.\n\n" + usage)
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, model, "live.json")
	stop()
	if err != nil {
		fail(err)
	}
}

// named returns the named model, and the environment variable with its key.
func named(model string) (api.Provider, string) {
	switch {
	case strings.HasPrefix(model, "claude"):
		return anthropic.New(model, nil), "ANTHROPIC_API_KEY"
	case strings.HasPrefix(model, "gemini"):
		return gemini.New(model, nil), "GEMINI_API_KEY"
	case os.Getenv("OPENAI_BASE_URL") != "":
		return openai.NewChat(model, nil), "OPENAI_API_KEY"
	}
	return openai.NewResponses(model, nil), "OPENAI_API_KEY"
}

func fail(why any) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(1)
}

// Forecast is the input of the tool.
type Forecast struct {
	City string `json:"city" jsonschema:"the city's name"`
	Unit string `json:"unit,omitempty" enum:"celsius,fahrenheit" jsonschema:"defaults to celsius"`
}

// lookup is the tool. Its weather is made up.
func lookup(_ context.Context, in Forecast) (string, error) {
	if in.Unit == "fahrenheit" {
		return "72°F in " + in.City, nil
	}
	return "22°C in " + in.City, nil
}

// run starts the conversation in the file, or continues it. After any error, the conversation so far is saved.
func run(ctx context.Context, model api.Provider, file string) error {
	tool := executor.Func("get_weather", "Current weather for ONE city. Call it once for each city.", lookup)

	// A file holds the definition of a tool and not its function, so a loaded conversation gets its tools again.
	d, err := dag.Load(file)
	switch {
	case err == nil:
		d = d.Tools(tool).User("And in Fahrenheit? Which one is the warmest?")
	case errors.Is(err, fs.ErrNotExist):
		d = dag.New().System("You help with weather. Call tools in parallel when possible.").Tools(tool).
			User("What's the weather in Tokyo, Paris and New York?")
	default:
		return err
	}

	d, err = executor.Run(ctx, model, d)
	fmt.Println(d)
	return errors.Join(err, d.Save(file))
}
