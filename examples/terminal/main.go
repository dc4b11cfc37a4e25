// Command terminal is an agent in a terminal. It streams each response, asks before it writes a file, and keeps the
// session in a journal, to continue it at the next start. Ctrl-C ends a response, not the session.
//
//	ANTHROPIC_API_KEY=… go run ./examples/terminal session.jsonl
//
// Without a key, a scripted model answers.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"os/signal"
	"strings"
	"unicode"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/anthropic"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

func main() {
	file := "session.jsonl"
	if len(os.Args) > 1 {
		file = os.Args[1]
	}

	if err := run(context.Background(), model(), file, ".", os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// model returns Claude if there is a key, and a scripted model otherwise.
func model() api.Provider {
	if os.Getenv("ANTHROPIC_API_KEY") != "" {
		return anthropic.New("claude-sonnet-4-5", nil)
	}
	return apitest.NewScript(apitest.Func(scripted).Always())
}

// scripted calls the tool when a user message mentions a note.
func scripted(req api.Request) apitest.Turn {
	last := req.Messages[len(req.Messages)-1].Blocks
	switch {
	case last.ToolResults() != nil:
		return apitest.Say("The tool returned: " + last.ToolResults()[0].Content.Text())
	case strings.Contains(last.Text(), "note"):
		return apitest.Say("I will write that down.").Call(apitest.Use("write_file", File{"note.txt", last.Text()}))
	}
	return apitest.Say("You said: " + last.Text())
}

// run continues the session in the journal at path. Files are written below dir.
func run(ctx context.Context, model api.Provider, path, dir string, in io.Reader, out io.Writer) error {
	journal, err := dag.OpenJournal(path, nil)
	if err != nil {
		return err
	}
	defer journal.Close()

	// A Root keeps every name from the model inside dir.
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()

	t := terminal{in: bufio.NewScanner(in), out: out}
	t.agent = executor.Agent{
		Provider: model,
		System:   "You help at a terminal. Be brief.",
		Tools:    []dag.Tool{executor.Func("write_file", "Writes a text file.", writer{root}.write)},
		Hooks:    []executor.Hook{executor.RequireApproval("write_file")},
		Save:     func(_ context.Context, d dag.DAG) error { return journal.Append(d) },
	}
	return t.chat(ctx, journal.DAG())
}

// File is the input of write_file.
type File struct {
	Name string `json:"name" jsonschema:"the file's name"`
	Text string `json:"text" jsonschema:"the whole new text"`
}

type writer struct{ root *os.Root }

func (w writer) write(_ context.Context, f File) (string, error) {
	if err := w.root.WriteFile(f.Name, []byte(f.Text), 0o600); err != nil {
		return "", err
	}
	return fmt.Sprintf("wrote %d bytes to %s", len(f.Text), f.Name), nil
}

// terminal is a session at a terminal.
type terminal struct {
	agent executor.Agent
	in    *bufio.Scanner
	out   io.Writer
}

// chat answers one line after the other, until the input ends.
func (t terminal) chat(ctx context.Context, d dag.DAG) error {
	if d.Len() > 0 {
		fmt.Fprintf(t.out, "Continuing a session of %d nodes.\n", d.Len())
	}

	for {
		line, ok := t.read("> ")
		if !ok {
			return t.in.Err()
		}
		if line != "" {
			d = t.respond(ctx, d.User(line))
		}
	}
}

// respond runs the agent, and asks the user about calls that need approval. It always returns a valid conversation.
func (t terminal) respond(ctx context.Context, d dag.DAG) dag.DAG {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()

	d, err := t.show(t.agent.Stream(ctx, d))
	for errors.Is(err, executor.ErrPaused) {
		d, err = t.show(t.agent.ResumeStream(ctx, d, t.approve(d.Pending())...))
	}
	if err != nil {
		fmt.Fprintf(t.out, "(stopped: %v)\n", err)
	}
	return d
}

// show prints the events of a run. The last event is an End, with the conversation.
func (t terminal) show(events iter.Seq2[executor.Event, error]) (d dag.DAG, err error) {
	for event, failure := range events {
		switch e := event.(type) {
		case executor.MessageDelta:
			fmt.Fprint(t.out, clean(e.Text()))
		case executor.MessageEnd:
			if m, _ := e.Node.Payload().(node.Message); m.Role == content.Assistant && m.Blocks.Text() != "" {
				fmt.Fprintln(t.out)
			}
		case executor.Retry:
			// The text so far is void, and is on the screen: the next attempt begins on a new line.
			fmt.Fprintln(t.out, "\n(the response broke off; trying again)")
		case executor.ToolEnd:
			fmt.Fprintf(t.out, "[%s] %s\n", clean(e.Execution.Tool), clean(e.Execution.Result.Text()))
		case executor.End:
			d, err = e.DAG, failure
		}
	}
	return d, err
}

// approve asks about each call. At the end of the input it declines.
func (t terminal) approve(pending []dag.Pending) (replies []executor.Reply) {
	for _, p := range pending {
		answer, _ := t.read(fmt.Sprintf("Run %s %s? [y/N] ", clean(p.Call.Name), clean(string(p.Call.Input))))
		if answer == "y" {
			replies = append(replies, executor.Approved(p))
		} else {
			replies = append(replies, executor.Declined(p, "the user declined"))
		}
	}
	return replies
}

// read prints the prompt and returns the next line. It reports false when the input has ended.
func (t terminal) read(prompt string) (string, bool) {
	fmt.Fprint(t.out, prompt)
	if !t.in.Scan() {
		fmt.Fprintln(t.out)
		return "", false
	}
	return strings.TrimSpace(t.in.Text()), true
}

// clean replaces control characters: a terminal would obey them. Models write anything.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}
