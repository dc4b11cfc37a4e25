// Command imported reads a session saved by Claude Code, prints how its parts were imported, and draws it as a page.
// Give it a session of your own, from ~/.claude/projects.
//
//	go run ./examples/imported [session.jsonl [page.html]]
package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"os"

	"github.com/plait-dev/plait/dag/sessions"
	"github.com/plait-dev/plait/viz/page"
)

//go:embed session.jsonl
var example []byte

func main() {
	session, file := io.Reader(bytes.NewReader(example)), "session.html"
	if len(os.Args) > 1 {
		f, err := os.Open(os.Args[1])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		defer f.Close()
		session = f
	}
	if len(os.Args) > 2 {
		file = os.Args[2]
	}
	if err := run(os.Stdout, session, file); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out io.Writer, session io.Reader, file string) error {
	in, err := sessions.Import(sessions.ClaudeCode, session, nil)
	if err != nil {
		return err
	}
	for _, note := range in.Notes { // nothing is dropped silently
		fmt.Fprintln(out, note)
	}

	// A file may hold several conversations. The main one is marked as current, or has the newest line.
	d := in.Main()
	fmt.Fprintf(out, "\n%v\n\n%d findings\n", d, len(d.Validate()))

	drawing, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := page.Write(drawing, d, nil); err != nil {
		drawing.Close()
		return err
	}
	return drawing.Close()
}
