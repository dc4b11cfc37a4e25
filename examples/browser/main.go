// Command browser shows a run in a browser while it happens: text as it arrives, three tools with their progress, each
// node when it is complete. A viewer can type another message at any node, and run it beside the first. The program
// needs no network and no key, because the model is scripted, with the delays of a real one. Ctrl-C ends it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"os/signal"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/viz/page/live"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	p := program{out: os.Stdout, word: 150 * time.Millisecond}
	if err := p.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// program shows a run and then waits until its context ends.
type program struct {
	out  io.Writer
	word time.Duration // the model's delay for each word
}

func (p program) run(ctx context.Context) error {
	tool := executor.Func("get_weather", "Current weather for ONE city. Call it once for each city.", p.lookup)
	agent := executor.Agent{Provider: slow{model(), p.word}, Tools: []dag.Tool{tool}}
	d := dag.New().
		System("You help with weather. Call tools in parallel when possible.").
		Tools(tool).
		User("What's the weather in Tokyo, Paris and New York?")

	// Run is for the messages that a viewer types. Watch, below, shows the run of this program.
	s := live.New(d, &live.Options{Title: "The weather", Run: agent.Stream})
	defer s.Close()
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}

	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	fmt.Fprintf(p.out, "Open %s in a browser; Ctrl-C ends it.\n", s.URL(l.Addr()))

	for event, err := range s.Watch(agent.Stream(ctx, d)) {
		if end, ok := event.(executor.End); ok && err == nil {
			fmt.Fprintln(p.out, end.DAG.Text())
		}
	}

	// The page stays open after the run, until Ctrl-C.
	select {
	case <-ctx.Done():
		return nil
	case err := <-served:
		return err
	}
}

// Forecast is the input of the tool.
type Forecast struct {
	City string `json:"city" jsonschema:"the city's name"`
}

var celsius = map[string]int{"Tokyo": 22, "Paris": 18, "New York": 25}

// lookup is the tool. It is slow and reports its progress.
func (p program) lookup(ctx context.Context, in Forecast) (string, error) {
	for _, step := range []string{"finding the station", "calling it", "reading the thermometer"} {
		err := executor.Progress(ctx, step+" in "+in.City)
		if err := errors.Join(err, pause(ctx, time.Duration(len(in.City))*p.word)); err != nil {
			return "", err
		}
	}

	degrees, known := celsius[in.City]
	if !known {
		return "", fmt.Errorf("there is no station in %s", in.City)
	}
	return fmt.Sprintf("%d°C", degrees), nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// model returns a scripted model. It looks up three cities for a question and sums up the results.
func model() api.Provider {
	return apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
		// The last message is a question, or has the results of all three calls.
		found := req.Messages[len(req.Messages)-1].Blocks.ToolResults()
		if len(found) == 0 {
			var calls []content.ToolUse
			for _, city := range []string{"Tokyo", "Paris", "New York"} {
				calls = append(calls, apitest.Use("get_weather", Forecast{City: city}))
			}
			return apitest.Say("I look up all three at once, and tell you as soon as I know.").Call(calls...)
		}

		answer := "I found: "
		for i, result := range found {
			if i > 0 {
				answer += ", "
			}
			answer += result.Content.Text()
		}
		return apitest.Say(answer + ".")
	}).Always())
}

// slow delays each word of a model.
type slow struct {
	api.Provider
	word time.Duration
}

func (s slow) Stream(ctx context.Context, req api.Request) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		for event, err := range s.Provider.Stream(ctx, req) {
			if _, word := event.(api.Delta); word {
				if pause(ctx, s.word) != nil {
					yield(nil, ctx.Err())
					return
				}
			}

			if !yield(event, err) {
				return
			}
		}
	}
}
