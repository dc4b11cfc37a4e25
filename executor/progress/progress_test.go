package progress_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/progress"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // a model here calls a tool that is not there
	goleak.VerifyTestMain(m)
}

// wait is the arguments of a tool that takes its time.
type wait struct {
	Seconds float64 `json:"seconds"`
	Say     string  `json:"say"`
	Fail    bool    `json:"fail"`
}

func slow(name string) executor.Tool {
	return executor.Func(name, "Waits.", func(ctx context.Context, in wait) (string, error) {
		if in.Say != "" {
			if err := executor.Progress(ctx, in.Say); err != nil {
				return "", err
			}
		}
		select {
		case <-time.After(time.Duration(in.Seconds * float64(time.Second))):
		case <-ctx.Done():
			return "", ctx.Err()
		}
		if in.Fail {
			return "", errors.New("no luck")
		}
		return "done", nil
	})
}

func conversation(tools ...executor.Tool) dag.DAG {
	d := dag.New()
	for _, t := range tools {
		d = d.Tools(t)
	}
	return d.User("go")
}

// frames is what a terminal showed, one line after the other.
func frames(out string) []string { return strings.Split(out, "\r\x1b[K")[1:] }

// watcher is [progress.Watch], or [progress.OnTerminal].
type watcher func(io.Writer, iter.Seq2[executor.Event, error], *progress.Options) iter.Seq2[executor.Event, error]

func play(t *testing.T, watch watcher, o *progress.Options, model api.Provider, d dag.DAG) string {
	t.Helper()
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		seen := 0
		for event, err := range watch(&out, executor.Stream(t.Context(), model, d), o) {
			seen++
			if _, last := event.(executor.End); last {
				require.NoError(t, err)
			}
		}
		require.Greater(t, seen, 5, "the events go through")
	})
	return out.String()
}

func TestALineIsDrawnAgainInPlace(t *testing.T) {
	model := apitest.NewScript(
		apitest.Call(apitest.Use("first", wait{Seconds: 2.5, Say: "half\nway"}), apitest.Use("second", wait{Seconds: 1.2})),
		apitest.Say("Both are done."),
	)
	out := play(t, progress.OnTerminal, nil, model, conversation(slow("first"), slow("second")))
	require.Equal(t, []string{
		"0s",
		"turn 1 · 0s · waiting for the model",
		"turn 1 · 0s · answering",
		"turn 1 · 0s",
		"turn 1 · 0s · first 0s",
		"turn 1 · 0s · first 0s, second 0s",
		"turn 1 · 0s · first 0s (half…), second 0s",
		"turn 1 · 1s · first 1s (half…), second 1s",
		"turn 1 · 1s · first 1s (half…)",
		"turn 1 · 2s · first 2s (half…)",
		"turn 1 · 2s",
		"turn 2 · 2s · waiting for the model",
		"turn 2 · 2s · answering",
		"turn 2 · 2s",
		"",
	}, frames(out))
}

func TestLinesWhereNothingIsDrawnAgain(t *testing.T) {
	model := apitest.NewScript(
		apitest.Call(apitest.Use("first", wait{Seconds: 2.5}), apitest.Use("second", wait{Seconds: 1, Fail: true})).Usage(content.Usage{Input: 1200, Output: 34}),
		apitest.Say("Done."),
	)
	out := play(t, progress.Watch, nil, model, conversation(slow("first"), slow("second")))
	require.Equal(t, `turn 1
turn 1: second 1s failed: no luck
turn 1: first 2s
turn 2
stop: end_turn · 2 turns · 1,234 tokens · 2s
`, out)
}

func TestTokensAndCostAreShownAsTheyGrow(t *testing.T) {
	model := apitest.NewScript(
		apitest.Call(apitest.Use("first", wait{Seconds: 1.5})).Usage(content.Usage{Input: 1_000_000}).As("script", "m-1"),
		apitest.Say("Done.").Usage(content.Usage{Output: 500_000}).As("script", "m-1"),
	)
	o := &progress.Options{Prices: api.Prices{"m-1": {Input: 3, Output: 10}}}
	shown := frames(play(t, progress.OnTerminal, o, model, conversation(slow("first"))))
	require.Contains(t, shown, "turn 1 · 1s · first 1s · 1,000,000 tokens · cost 3.0000")
	require.Contains(t, shown, "turn 2 · 1s · waiting for the model · 1,000,000 tokens · cost 3.0000", "none is counted twice")
	require.Contains(t, shown, "turn 2 · 1s · 1,500,000 tokens · cost 8.0000")
}

func TestASilentModelIsShownWithItsTime(t *testing.T) {
	model := apitest.NewScript(
		apitest.Call(apitest.Use("first", wait{Seconds: 0.5})).Wait(12500*time.Millisecond),
		apitest.Fail(&api.Error{Kind: api.ErrOverloaded, RetryAfter: 20 * time.Second}),
		apitest.Say("Done.").Wait(11500*time.Millisecond),
	)
	shown := frames(play(t, progress.OnTerminal, nil, model, conversation(slow("first"))))
	require.Contains(t, shown, "turn 1 · 9s · waiting for the model")
	require.Contains(t, shown, "turn 1 · 10s · no response for 10s")
	require.Contains(t, shown, "turn 1 · 12s · no response for 12s")
	require.Contains(t, shown, "turn 2 · 32s · retrying in 20s", "the wait between attempts is announced")
	require.Contains(t, shown, "turn 2 · 43s · no response for 10s", "counted from the next attempt")
	require.NotContains(t, strings.Join(shown, "\n"), "no response for 13s")
}

func TestBreakingOutOfTheLoopClearsTheLine(t *testing.T) {
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		model := apitest.NewScript(apitest.Call(apitest.Use("first", wait{Seconds: 100})))
		for event := range progress.OnTerminal(&out, executor.Stream(t.Context(), model, conversation(slow("first"))), nil) {
			if _, started := event.(executor.ToolStart); started {
				break
			}
		}
	})
	shown := frames(out.String())
	require.Equal(t, "turn 1 · 0s · first 0s", shown[len(shown)-2])
	require.Empty(t, shown[len(shown)-1], "the line is gone")
}

func TestTheLineIsGoneWhenTheLoopPanics(t *testing.T) {
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		require.Panics(t, func() {
			for range progress.OnTerminal(&out, executor.Stream(t.Context(), apitest.NewScript(apitest.Say("x")), conversation()), nil) {
				panic("no")
			}
		})
	})
	require.True(t, strings.HasSuffix(out.String(), "\r\x1b[K"))
}

func TestTextOfOthersCannotDriveTheTerminal(t *testing.T) {
	attack := "\x1b[2J\x1b]8;;https://example.com\x07\u009b31m\u202e漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字"
	for _, watch := range []watcher{progress.OnTerminal, progress.Watch} {
		model := apitest.NewScript(
			apitest.Call(apitest.Use("first", wait{Seconds: 1.5, Say: attack}), apitest.Use(attack, nil)),
			apitest.Say("Done."),
		)
		out := play(t, watch, &progress.Options{Width: 50}, model, conversation(slow("first")))
		require.Contains(t, out, "␛[2J")
		for line := range strings.Lines(strings.ReplaceAll(out, "\r\x1b[K", "\n")) {
			line = strings.TrimSuffix(line, "\n")
			require.LessOrEqual(t, safetext.Width(line), 50)
			for _, r := range line {
				require.False(t, unicode.IsControl(r) || unicode.Is(unicode.Cf, r), "%q in %q", r, line)
			}
		}
	}
}

func TestASubAgentIsANoteOfItsCall(t *testing.T) {
	inner := apitest.NewScript(apitest.Call(apitest.Use("search", wait{Seconds: 1.5})), apitest.Say("Found."))
	research := executor.SubAgent("research", "Looks things up.", executor.Agent{Provider: inner, Tools: []dag.Tool{slow("search")}})
	model := apitest.NewScript(apitest.Call(apitest.Use("research", executor.Task{Task: "Find it."})), apitest.Say("Done."))
	shown := frames(play(t, progress.OnTerminal, nil, model, conversation(research)))
	require.Contains(t, shown, "turn 1 · 1s · research 1s (search)")
	require.Contains(t, shown, "turn 1 · 1s · research 1s (turn 2)")
}

func TestFailedRunIsNamed(t *testing.T) {
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		var failed error
		for _, err := range progress.Watch(&out, executor.Stream(t.Context(), apitest.NewScript(apitest.Fail(errors.New("broken"))), conversation()), nil) {
			failed = err
		}
		require.Error(t, failed)
	})
	require.Equal(t, "turn 1\nstop: error · 1 turn · 0s\n", out.String())
}

func TestPausedRunNamesWhatItWaitsFor(t *testing.T) {
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		agent := executor.Agent{Provider: apitest.NewScript(apitest.Call(apitest.Use("first", wait{}))), Hooks: []executor.Hook{executor.RequireApproval()}}
		for range progress.Watch(&out, agent.Stream(t.Context(), conversation(slow("first"))), nil) {
		}
	})
	require.Equal(t, "turn 1\npaused: 1 call waiting · 1 turn · 0s\n", out.String())
}

func TestOnlyTerminalsAreDrawnOnAgain(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	for range progress.Watch(file, executor.Stream(t.Context(), apitest.NewScript(apitest.Say("x")), conversation()), nil) {
	}
	out, err := os.ReadFile(file.Name())
	require.NoError(t, err)
	require.Contains(t, string(out), "turn 1\n")
	require.NotContains(t, string(out), "\x1b")
}

// The progress of a run, where the output is no terminal.
func ExampleWatch() {
	model := apitest.NewScript(
		apitest.Call(apitest.Use("get_weather", nil)).Usage(content.Usage{Input: 900, Output: 100}),
		apitest.Say("It rains."),
	)
	weather := executor.Func("get_weather", "Says how the weather is.", func(context.Context, struct{}) (string, error) { return "rain", nil })
	d := dag.New().Tools(weather).User("How is the weather?")

	var out strings.Builder
	for event := range progress.Watch(&out, executor.Stream(context.Background(), model, d), nil) {
		if end, ok := event.(executor.End); ok {
			fmt.Println(end.DAG.Text())
		}
	}
	fmt.Print(out.String())
	// Output:
	// It rains.
	// turn 1
	// turn 1: get_weather 0s
	// turn 2
	// stop: end_turn · 2 turns · 1,000 tokens · 0s
}
