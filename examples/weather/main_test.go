package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// inFolder makes the program for files in a folder of their own, at a time that stands still.
func inFolder(dir string) program {
	still := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return program{
		model: model(), out: os.Stdout, file: filepath.Join(dir, "weather.json"), drawing: filepath.Join(dir, "weather.mmd"),
		source: node.Source{Now: func() time.Time { return still }},
	}
}

func Example() {
	dir, err := os.MkdirTemp("", "weather")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	back, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	if err := os.Chdir(dir); err != nil {
		panic(err)
	}
	defer os.Chdir(back)
	for range 2 { // the second run goes on where the first one stopped
		if err := inFolder("").run(context.Background()); err != nil {
			panic(err)
		}
		fmt.Println("----")
	}
	// Output:
	// ◆ system    You help with weather. Call tools in parallel when possible.
	// ◆ tools     get_weather
	// ○ user      What's the weather in Tokyo, Paris and New York?
	// ● assistant I look up all three at once. → get_weather ×3
	// ├─┬─╮
	// ▪ │ │ get_weather(city: "Tokyo") → 22°C
	// │ ▪ │ get_weather(city: "Paris") → 18°C
	// │ │ ▪ get_weather(city: "New York") → 25°C
	// ├─┴─╯
	// ◇ results   3
	// ● assistant It is 22°C in Tokyo, 18°C in Paris and 25°C in New York.
	// ■ stop      end_turn · 2 turns · 3 tool calls
	//
	// Answer: It is 22°C in Tokyo, 18°C in Paris and 25°C in New York.
	//
	// Saved as weather.json and drawn as weather.mmd. Run it again to continue.
	// ----
	// Continuing the conversation of 11 nodes in weather.json.
	//
	// ◆ system    You help with weather. Call tools in parallel when possible.
	// ◆ tools     get_weather
	// ○ user      What's the weather in Tokyo, Paris and New York?
	// ● assistant I look up all three at once. → get_weather ×3
	// ├─┬─╮
	// ▪ │ │ get_weather(city: "Tokyo") → 22°C
	// │ ▪ │ get_weather(city: "Paris") → 18°C
	// │ │ ▪ get_weather(city: "New York") → 25°C
	// ├─┴─╯
	// ◇ results   3
	// ● assistant It is 22°C in Tokyo, 18°C in Paris and 25°C in New York.
	// ■ stop      end_turn · 2 turns · 3 tool calls
	// ○ user      And in Fahrenheit? Which one is the warmest?
	// ● assistant I ask again, in Fahrenheit. → get_weather ×3
	// ├─┬─╮
	// ▪ │ │ get_weather(city: "Tokyo", unit: "fahrenheit") → 72°F
	// │ ▪ │ get_weather(city: "Paris", unit: "fahrenheit") → 64°F
	// │ │ ▪ get_weather(city: "New York", unit: "fahrenheit") → 77°F
	// ├─┴─╯
	// ◇ results   3
	// ● assistant Tokyo has 72°F, Paris 64°F and New York 77°F: New York is the warmest.
	// ■ stop      end_turn · 2 turns · 3 tool calls
	//
	// Answer: Tokyo has 72°F, Paris 64°F and New York 77°F: New York is the warmest.
	//
	// Saved as weather.json and drawn as weather.mmd. Run it again to continue.
	// ----
}

func TestSecondRunContinuesTheSavedConversation(t *testing.T) {
	p := inFolder(t.TempDir())
	var printed strings.Builder
	p.out = &printed
	var before dag.DAG
	for run := 1; run <= 3; run++ {
		if err := p.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		d, err := dag.Load(p.file)
		if err != nil {
			t.Fatal(err)
		}
		if run > 1 && (!strings.Contains(printed.String(), "Continuing the conversation") || !d.Contains(d.Node(before.Head().ID()))) {
			t.Errorf("run %d does not go on with the last one", run)
		}
		if n := d.Len(); n != 2+run*9 {
			t.Errorf("run %d: the conversation has %d nodes", run, n)
		}
		drawing, err := os.ReadFile(p.drawing)
		if err != nil || !strings.Contains(string(drawing), "flowchart TD\n") {
			t.Errorf("run %d drew %.20q, %v", run, drawing, err)
		}
		before = d
		printed.Reset()
	}
}

func TestBrokenFileIsAnErrorAndIsKept(t *testing.T) {
	p := inFolder(t.TempDir())
	if err := os.WriteFile(p.file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.run(t.Context()); err == nil {
		t.Error("a broken file is no error")
	}
	if kept, _ := os.ReadFile(p.file); string(kept) != "{" {
		t.Errorf("the file holds %q", kept)
	}
}
