// Command live is examples/weather on Anthropic's real API. It needs a key in ANTHROPIC_API_KEY, and takes the model's name from
// ANTHROPIC_MODEL if it is set. The conversation is saved as live.json and drawn as live.mmd; when it is started again it goes
// on where it stopped.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/plait-dev/plait/api/anthropic"
	"github.com/plait-dev/plait/examples/internal/weather"
)

const noKey = `This program talks to Anthropic's API and needs a key:

	export ANTHROPIC_API_KEY=sk-ant-...
	go run ./examples/live

Without one, go run ./examples/weather does the same on a scripted model.`

func main() {
	if os.Getenv("ANTHROPIC_API_KEY") == "" {
		fmt.Fprintln(os.Stderr, noKey)
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	model := anthropic.New(cmp.Or(os.Getenv("ANTHROPIC_MODEL"), "claude-sonnet-4-5"), nil)
	p := weather.Program{Model: model, Out: os.Stdout, File: "live.json", Drawing: "live.mmd"}
	if err := p.Run(ctx); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
