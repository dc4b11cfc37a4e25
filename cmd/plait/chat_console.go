package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/safetext"
)

// console reads the user's input: with an editor if standard input and standard error are a terminal, and line by line
// otherwise.
type console struct {
	lines      *bufio.Reader // without a terminal
	out        io.Writer
	interrupts <-chan os.Signal
	ui         *ui // nil without a terminal
	asked      int // questions since the last message
}

// newConsole begins to read. At a terminal, streams print above the editor until the console is closed.
func newConsole(s *streams, interrupts chan os.Signal) *console {
	c := &console{out: s.err, interrupts: interrupts}
	in, _ := s.in.(*os.File)
	shown, _ := terminalOf(s.err)
	if in == nil || !shown || !term.IsTerminal(int(in.Fd())) || os.Getenv("TERM") == "dumb" {
		c.lines = bufio.NewReader(s.in)
		return c
	}

	c.ui = startUI(in, s.err, interrupts, colorOf(s.err))
	s.err = &printer{ui: c.ui, Writer: s.err}
	if terminal, _ := terminalOf(s.out); terminal {
		s.out = &printer{ui: c.ui, Writer: s.out}
	}
	return c
}

// printer prints the lines of a terminal above the editor.
type printer struct {
	io.Writer // the terminal
	ui        *ui
	begun     string // a line without its end
}

func (p *printer) Write(text []byte) (int, error) {
	p.begun += string(text)
	if end := strings.LastIndexByte(p.begun, '\n') + 1; end > 0 {
		p.ui.print(p.begun[:end])
		p.begun = p.begun[end:]
	}
	return len(text), nil
}

// editing reports whether a person types at a terminal.
func (c *console) editing() bool { return c.ui != nil }

// close leaves the terminal and the streams as they were.
func (c *console) close(s *streams) {
	if !c.editing() {
		return
	}
	c.ui.close()
	for _, out := range []*io.Writer{&s.out, &s.err} {
		if p, ok := (*out).(*printer); ok {
			*out = p.Writer
		}
	}
}

// remember makes the messages of a conversation the history of the arrow keys.
func (c *console) remember(d dag.DAG) {
	for _, m := range d.Messages() {
		if text := m.Blocks.Text(); m.Role == content.User && text != "" {
			c.ui.do(func() { c.ui.view.editor.remember(safetext.Block(text)) })
		}
	}
}

// message reads a message. A line ending in a backslash and the next one belong together.
func (c *console) message(ctx context.Context) (string, error) {
	c.asked = 0
	if c.editing() {
		return c.ui.read(ctx, c.interrupts, "")
	}

	var lines []string
	for {
		line, err := c.read(ctx)
		if errors.Is(err, io.EOF) && len(lines) > 0 {
			return strings.Join(lines, "\n"), nil
		}
		if err != nil {
			return "", err
		}
		begun, continued := strings.CutSuffix(line, `\`)
		lines = append(lines, begun)
		if !continued {
			return strings.Join(lines, "\n"), nil
		}
	}
}

// ask reads an answer to a question.
func (c *console) ask(ctx context.Context, question string) (string, error) {
	var line string
	var err error
	if c.asked++; c.editing() {
		// The same question again would look as if the answer had not arrived.
		if c.asked > 1 {
			question = fmt.Sprintf("%d: %s", c.asked, question)
		}
		line, err = c.ui.read(ctx, c.interrupts, question)
	} else {
		_, _ = io.WriteString(c.out, question)
		line, err = c.read(ctx)
		_, _ = io.WriteString(c.out, "\n")
	}
	return strings.TrimSpace(line), err
}

// read reads a line without a terminal. It returns io.EOF at the end of the input, and errInterrupted after Ctrl-C or at
// the end of ctx.
func (c *console) read(ctx context.Context) (string, error) {
	// A Ctrl-C too late for the last response is no answer to this question.
	select {
	case <-c.interrupts:
	default:
	}

	// The goroutine may outlive this call and read one more line. No input is lost: the program ends after a signal.
	type result struct {
		line string
		err  error
	}
	done := make(chan result, 1)
	go func() {
		line, err := c.lines.ReadString('\n')
		if errors.Is(err, io.EOF) && line != "" {
			err = nil
		}
		done <- result{strings.TrimRight(line, "\r\n"), err}
	}()

	select {
	case r := <-done:
		return r.line, r.err
	case <-ctx.Done():
	case <-c.interrupts:
	}
	return "", errInterrupted
}
