package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/plait-dev/plait/bench/internal/peer"
	"github.com/plait-dev/plait/bench/internal/probe"
)

// probed are the libraries of docs/robustness.md, in the order of its columns.
var probed = []string{"plait", "eino", "adk", "fantasy", "genkit", "trpc"}

const robustnessHead = `# What breaks, and what does not

What each library does in its default settings when something goes wrong: the output of

` + "```sh\ngo run ./bench -robustness > docs/robustness.md\n```" + `

which runs the same [probes](../bench/internal/probe/probes.go) against each of them, each in a process of its own, with
a scripted model. A cell is **bold** where a result is lost, where the run hangs or ends the process, or where the next
request is one that an API refuses. A request of Plait is judged where it leaves, in the form of Anthropic's API; those
of the others where the library gives them to its model, so a provider behind it may still repair one; Gemini's API,
which is adk's own, needs no IDs. A test holds the column of Plait.

`

const robustnessFoot = `
Not in the table, because each would need a program of its own: a consumer that leaves a stream, one agent for many
goroutines, a server of MCP that changes its tools, a hostile file ([security](security.md)), and a process that is
killed ([guarantees](guarantees.md)).
`

// robustness writes docs/robustness.md.
func robustness(out io.Writer) error {
	if _, err := io.WriteString(out, robustnessHead); err != nil {
		return err
	}
	row := func(cells ...string) { fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | ")) }
	head := []string{"When"}
	for _, name := range probed {
		head = append(head, titleOf(name))
	}
	row(head...)
	fmt.Fprintln(out, "|"+strings.Repeat("---|", len(head)))

	for _, p := range probe.All {
		cells := []string{p.Name}
		for _, name := range probed {
			o, err := probeOf(name, p.Name)
			if err != nil {
				return err
			}
			cells = append(cells, cell(o))
		}
		row(cells...)
	}
	_, err := io.WriteString(out, robustnessFoot)
	return err
}

func cell(o probe.Outcome) string {
	if o.Good || o.Text == probe.NotTried {
		return o.Text
	}
	return "**" + o.Text + "**"
}

// titleOf returns the name of a library with its version.
func titleOf(name string) string {
	i := slices.IndexFunc(libraries, func(l library) bool { return l.name == name })
	if i < 0 {
		return "Plait"
	}
	return name + " " + libraries[i].version
}

// probeOf runs one probe in a process of its own, which may end or hang.
func probeOf(name, question string) (probe.Outcome, error) {
	const patience = 3 * time.Minute
	p, err := start(name)
	if err != nil {
		return probe.Outcome{}, err
	}
	p.cmd.Stderr = nil // of a process that ends
	hung := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	defer hung.Stop()

	reply, err := p.ask(peer.Ask{Measure: "probe", Probe: question})
	// The process may have goroutines that never end.
	_ = p.cmd.Process.Kill()
	ended := p.close()
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return probe.Outcome{Text: "the process ends"}, nil
	case err != nil:
		return probe.Outcome{}, errors.Join(fmt.Errorf("%s, %q: %w", name, question, err), ended)
	}
	return reply.Outcome, nil
}
