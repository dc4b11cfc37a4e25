package plait_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/viz"
	"github.com/stretchr/testify/require"
)

// This is the README's quick start. Its pieces stand in the README line by line, and what they print stands there too: see
// TestDocumentsShowCompiledCode and TestREADMEShowsWhatItsCodePrints.

type Forecast struct {
	City string `json:"city" jsonschema:"the city's name"`
}

func lookup(ctx context.Context, in Forecast) (string, error) {
	known := map[string]string{"Tokyo": "22°C", "Paris": "18°C"}
	if degrees, ok := known[in.City]; ok {
		return degrees, nil
	}
	return "", fmt.Errorf("no station in %s", in.City)
}

func quickStart(ctx context.Context, model api.Provider) (dag.DAG, error) {
	weather := executor.Func("get_weather", "Current weather for one city.", lookup)

	d := dag.New().
		System("Answer briefly. Call tools in parallel when you can.").
		Tools(weather).
		User("Weather in Tokyo, Paris and Atlantis?")

	d, err := executor.Run(ctx, model, d) // d is valid even when err is not nil
	fmt.Println(d)                        // the graph, as a terminal log
	return d, err
}

func goOn(ctx context.Context, model api.Provider, d dag.DAG, path string) error {
	weather := executor.Func("get_weather", "Current weather for one city.", lookup)

	if err := d.Save(path); err != nil {
		return err
	}
	saved, err := dag.Load(path) // what was declared is there; Tools gives it what runs it
	if err != nil {
		return err
	}
	a, err := executor.Run(ctx, model, saved.Tools(weather).User("And in Fahrenheit?"))
	if err != nil {
		return err
	}
	b := a.Back(1).User("And which one is warmer?") // a fork: a is untouched, and nothing is copied
	fmt.Println(a.Text(), b.Len())
	return viz.Mermaid(os.Stdout, d, nil)
}

// scripted plays the part of a real model: it asks for three cities at once, and then answers.
func scripted() api.Provider {
	return apitest.NewScript(
		apitest.Say("I will look up all three.").Call(
			apitest.Use("get_weather", Forecast{"Tokyo"}),
			apitest.Use("get_weather", Forecast{"Paris"}),
			apitest.Use("get_weather", Forecast{"Atlantis"})),
		apitest.Say("Tokyo has 22°C and Paris 18°C. Nothing is known of Atlantis."),
		apitest.Say("Tokyo has 72°F and Paris 64°F."),
	)
}

var update = flag.Bool("update", false, "write what code prints into the documents that show it")

func TestREADMEShowsWhatItsCodePrints(t *testing.T) {
	var err error
	synctest.Test(t, func(t *testing.T) { // time stands still, so that no duration is printed
		ctx, model := t.Context(), scripted()
		var d dag.DAG
		printed(t, func() { d, err = quickStart(ctx, model) })
		require.NoError(t, err)

		drawing := printed(t, func() { err = goOn(ctx, model, d, filepath.Join(t.TempDir(), "weather.json")) })
		require.NoError(t, err)
		said, picture, _ := strings.Cut(drawing, "\n")
		require.Equal(t, "Tokyo has 72°F and Paris 64°F. 12", said)
		shows(t, "README.md", "mermaid", 0, picture)
	})
}

// shows requires the document's block of that language, counted from 0, to be want, or makes it so.
func shows(t *testing.T, document, language string, block int, want string) {
	t.Helper()
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllSubmatchIndex(text, -1)
	require.Greater(t, len(blocks), block, "blocks of %s in %s", language, document)
	at := blocks[block]

	if *update {
		text = slices.Concat(text[:at[2]], []byte(want), text[at[3]:])
		require.NoError(t, os.WriteFile(document, text, 0o644))
		return
	}
	require.Equal(t, string(text[at[2]:at[3]]), want, "run the test with -update")
}

// printed returns what fn prints to standard output.
func printed(t *testing.T, f func()) string {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "stdout"))
	require.NoError(t, err)
	defer file.Close()
	stdout := os.Stdout
	os.Stdout = file
	defer func() { os.Stdout = stdout }()
	f()
	_, err = file.Seek(0, io.SeekStart)
	require.NoError(t, err)
	text, err := io.ReadAll(file)
	require.NoError(t, err)
	return string(text)
}
