// Command progress shows the progress of tools while they run: three downloads at the same time, each with a bar. A
// tool reports its progress with executor.Progress, and the loop over the run draws it: on a terminal one line for each
// tool, redrawn at each report; elsewhere one line for each report. The model and the downloads are simulated.
//
//	go run ./examples/progress
//	go run ./examples/progress | cat
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

func main() {
	info, err := os.Stdout.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	if err := run(context.Background(), &board{out: os.Stdout, terminal: terminal}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, b *board) error {
	fetch := func(name string) content.ToolUse { return apitest.Use("download", File{name}) }
	model := apitest.NewScript(
		apitest.Say("I fetch all three.").Call(fetch("maps.zip"), fetch("photos.zip"), fetch("songs.zip")),
		apitest.Say("Maps and photos are here. The songs broke off halfway; shall I try again?"),
	)
	d := dag.New().
		Tools(executor.Func("download", "Downloads a file.", download)).
		User("Get me the maps, the photos and the songs.")

	for event, err := range executor.Stream(ctx, model, d) {
		switch e := event.(type) {
		case executor.TurnStart:
			b.lines, b.at = 0, map[int]int{} // the calls of each response get lines of their own
		case executor.ToolStart:
			b.draw(e.Call, "waiting")
		case executor.ToolUpdate:
			// A report reaches the loop as text, here the JSON of a Progress.
			var p Progress
			if content.JSON(e.Content.Text()).Decode(&p) == nil {
				b.draw(e.Call, p.String())
			}
		case executor.ToolEnd:
			mark := "✓ "
			if e.Execution.IsError {
				mark = "✗ "
			}
			b.draw(executor.Call{Index: e.Execution.Index, Input: e.Execution.Input}, mark+e.Execution.Result.Text())
		case executor.End:
			fmt.Fprintf(b.out, "\n%s\n", e.DAG.Text())
			return err
		}
	}
	return nil
}

// File is the arguments of the tool.
type File struct {
	Name string `json:"name"`
}

// Progress is the tool's report. It is sent as JSON.
type Progress struct {
	Done  int `json:"done"`
	Total int `json:"total"`
}

// String returns the progress as a bar.
func (p Progress) String() string {
	const width = 24
	full := width * p.Done / max(p.Total, 1)
	return fmt.Sprintf("%s%s %d of %d MB", strings.Repeat("█", full), strings.Repeat("░", width-full), p.Done, p.Total)
}

// remote describes the simulated downloads: the size in megabytes, how many of them arrive, and the time for each.
var remote = map[string]struct {
	size, comes int
	pace        time.Duration
}{
	"maps.zip":   {4, 4, 300 * time.Millisecond},
	"photos.zip": {3, 3, 500 * time.Millisecond},
	"songs.zip":  {2, 1, 700 * time.Millisecond},
}

func download(ctx context.Context, in File) (string, error) {
	file := remote[in.Name]
	for done := 1; done <= file.comes; done++ {
		select {
		case <-time.After(file.pace):
		case <-ctx.Done():
			return "", ctx.Err()
		}
		if err := executor.Progress(ctx, Progress{done, file.size}); err != nil {
			return "", err
		}
	}

	if file.comes < file.size {
		return "", errors.New("the connection was lost")
	}
	return fmt.Sprintf("%d MB saved", file.size), nil
}

// board draws a line for each tool call of a response.
type board struct {
	out      io.Writer
	terminal bool
	lines    int         // lines drawn for this response
	at       map[int]int // the line of each call, by its index
}

func (b *board) draw(call executor.Call, state string) {
	var file File
	_ = call.Input.Decode(&file)
	line := fmt.Sprintf("%-14q %s", file.Name, state) // quoted: a model's text could contain escape sequences

	own, drawn := b.at[call.Index]
	up := b.lines - own
	if !b.terminal || !drawn {
		fmt.Fprintln(b.out, line)
		b.at[call.Index] = b.lines
		b.lines++
		return
	}

	// Move up to the line of the call, replace it, and move back down.
	fmt.Fprintf(b.out, "\x1b[%dA\r\x1b[K%s\x1b[%dB\r", up, line, up)
}
