package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/safetext"
)

// console reads the user's input: with an editable line if standard input and standard error are a terminal, and line
// by line otherwise.
type console struct {
	lines      *bufio.Reader // without a terminal
	out        io.Writer
	interrupts <-chan os.Signal

	tty   *os.File // nil without a terminal
	edit  *term.Terminal
	keys  *keyboard
	past  *history
	color bool
}

func newConsole(s *streams, interrupts <-chan os.Signal) *console {
	c := &console{out: s.err, interrupts: interrupts, past: &history{}, color: colorOf(s.err)}
	in, _ := s.in.(*os.File)
	shown, _ := terminalOf(s.err)
	if in == nil || !shown || !term.IsTerminal(int(in.Fd())) || os.Getenv("TERM") == "dumb" {
		c.lines = bufio.NewReader(s.in)
		return c
	}

	c.tty, c.keys = in, &keyboard{in: in}
	c.reset()
	return c
}

// reset begins with an empty line.
func (c *console) reset() {
	c.edit = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{c.keys, c.out}, "")
	c.edit.History = c.past
	c.edit.AutoCompleteCallback = completeCommand
	c.keys.interrupted = false
}

// editing reports whether a person types at a terminal.
func (c *console) editing() bool { return c.tty != nil }

// close leaves the terminal as it was.
func (c *console) close() {
	if c.editing() {
		c.edit.SetBracketedPasteMode(false)
	}
}

// remember makes the messages of a conversation the history of the arrow keys.
func (c *console) remember(d dag.DAG) {
	for _, m := range d.Messages() {
		text := m.Blocks.Text()
		if m.Role == content.User && text != "" && !strings.Contains(text, "\n") {
			c.past.Add(safetext.Row(text))
		}
	}
}

// message reads a message. Pasted lines belong together, and so do a line ending in a backslash and the next one.
func (c *console) message(ctx context.Context) (string, error) {
	var lines []string
	prompt := "> "
	for {
		line, err := c.read(ctx, prompt)
		if errors.Is(err, io.EOF) && len(lines) > 0 && !c.editing() {
			return strings.Join(lines, "\n"), nil
		}
		pasted := errors.Is(err, term.ErrPasteIndicator)
		if err != nil && !pasted {
			return "", err
		}

		// A pasted line is taken as it is, with a backslash at its end.
		begun, continued := strings.CutSuffix(line, `\`)
		if pasted || continued {
			if pasted {
				begun = line
			}
			lines = append(lines, begun)
			prompt = "… "
			continue
		}
		return strings.Join(append(lines, line), "\n"), nil
	}
}

// ask reads an answer to a question. The arrow keys do not go back to it.
func (c *console) ask(ctx context.Context, question string) (string, error) {
	c.past.off = true
	defer func() { c.past.off = false }()
	if !c.editing() {
		_, _ = io.WriteString(c.out, question)
		defer func() { _, _ = io.WriteString(c.out, "\n") }()
	}

	line, err := c.read(ctx, question)
	if errors.Is(err, term.ErrPasteIndicator) {
		err = nil
	}
	return strings.TrimSpace(line), err
}

// read reads a line. It returns io.EOF at the end of the input, errInterrupted after Ctrl-C or at the end of ctx, and
// term.ErrPasteIndicator beside a pasted line.
func (c *console) read(ctx context.Context, prompt string) (string, error) {
	// A Ctrl-C too late for the last response is no answer to this question.
	select {
	case <-c.interrupts:
	default:
	}

	readLine := c.readPlain
	if c.editing() {
		before, err := term.MakeRaw(int(c.tty.Fd()))
		if err != nil {
			return "", err
		}
		defer func() { _ = term.Restore(int(c.tty.Fd()), before) }()
		c.prepare(prompt)
		readLine = c.readEdited
	}

	// The goroutine may outlive this call and read one more line. No input is lost: the program ends after a signal.
	type result struct {
		line string
		err  error
	}
	done := make(chan result, 1)
	go func() {
		line, err := readLine()
		done <- result{line, err}
	}()

	select {
	case r := <-done:
		return r.line, r.err
	case <-ctx.Done():
	case <-c.interrupts:
	}

	// What is printed next begins on a line of its own.
	if c.editing() {
		_, _ = io.WriteString(c.out, "\r\n")
	}
	return "", errInterrupted
}

// prepare fits the editable line to the terminal as it is now.
func (c *console) prepare(prompt string) {
	if width, height, err := term.GetSize(int(c.tty.Fd())); err == nil && width > 0 {
		_ = c.edit.SetSize(width, height)
	}
	if c.color {
		prompt = "\x1b[1m" + prompt + "\x1b[0m"
	}
	c.edit.SetPrompt(prompt)
	c.edit.SetBracketedPasteMode(true)
}

func (c *console) readEdited() (string, error) {
	line, err := c.edit.ReadLine()

	// Ctrl-C is io.EOF to the terminal, as Ctrl-D is.
	if errors.Is(err, io.EOF) && c.keys.interrupted {
		c.reset()
		_, _ = io.WriteString(c.out, "\r\n")
		return "", errInterrupted
	}
	if errors.Is(err, io.EOF) {
		_, _ = io.WriteString(c.out, "\r\n")
	}
	return line, err
}

func (c *console) readPlain() (string, error) {
	line, err := c.lines.ReadString('\n')
	if errors.Is(err, io.EOF) && line != "" {
		err = nil
	}
	return strings.TrimRight(line, "\r\n"), err
}

// keyboard notices Ctrl-C among the keys of a terminal.
type keyboard struct {
	in          io.Reader
	interrupted bool
}

func (k *keyboard) Read(p []byte) (int, error) {
	const ctrlC = 3
	n, err := k.in.Read(p)
	if bytes.IndexByte(p[:n], ctrlC) >= 0 {
		k.interrupted = true
	}
	return n, err
}

// history is a term.History.
type history struct {
	lines []string // the oldest first
	off   bool     // lines are not added
}

func (h *history) Add(line string) {
	if h.off || line == "" || h.Len() > 0 && h.At(0) == line {
		return
	}
	h.lines = append(h.lines, line)
}

func (h *history) Len() int { return len(h.lines) }

func (h *history) At(i int) string { return h.lines[len(h.lines)-1-i] }

// completeCommand completes the name of a command after Tab.
func completeCommand(line string, at int, key rune) (string, int, bool) {
	if key != '\t' {
		return "", 0, false
	}

	found := slices.DeleteFunc(commandNames(), func(name string) bool { return !strings.HasPrefix(name, line) })
	if len(found) != 1 || at != len(line) || !strings.HasPrefix(line, "/") {
		return line, at, true
	}
	return found[0] + " ", len(found[0]) + 1, true
}
