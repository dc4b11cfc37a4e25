// Command live is examples/weather on a real model: Claude, GPT or Gemini. It takes the model's name, and needs the key of its
// provider in ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY. The conversation is saved as live.json and drawn as live.mmd;
// when the program is started again it goes on where it stopped, with the same model or with another one.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/anthropic"
	"github.com/plait-dev/plait/api/gemini"
	"github.com/plait-dev/plait/api/openai"
	"github.com/plait-dev/plait/examples/internal/weather"
)

const usage = `This program talks to a real model. Give it the model's name, and the key of its provider:

	ANTHROPIC_API_KEY=... go run ./examples/live claude-sonnet-4-5
	OPENAI_API_KEY=...    go run ./examples/live gpt-5
	GEMINI_API_KEY=...    go run ./examples/live gemini-2.5-flash

Started again, also with another model, it goes on with the same conversation. With OPENAI_BASE_URL set it talks to a server that
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
	defer stop()
	p := weather.Program{Model: model, Out: os.Stdout, File: "live.json", Drawing: "live.mmd"}
	if err := p.Run(ctx); err != nil {
		stop()
		fail(err)
	}
}

// named returns the model of that name, and which environment variable holds the key.
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
