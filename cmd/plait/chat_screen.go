package main

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// screen prints a chat: responses to standard output, everything else to standard error.
type screen struct {
	*streams
	response responseWriter
	ui       *ui  // nil without a terminal
	width    int  // of a row of notes, in cells
	color    bool // of notes
	repairs  repairLog
	unbound  repairLog
	thinking bool // a note about it was printed
	streamed bool // text of the response was printed as it arrived

	running []string            // the names of the calls under way
	used    func(*node.Message) // is given each response; may be nil
}

// responseWriter is where the text of a response goes.
type responseWriter interface {
	write(piece string)
	end()
}

// defaultWidth is the width of rows where the terminal's is unknown.
const defaultWidth = 80

func newScreen(s *streams) *screen {
	c := &screen{streams: s, response: &flow{out: s.out}, color: colorOf(s.err)}
	if p, ok := s.err.(*printer); ok {
		c.ui = p.ui
	}

	// Markdown is drawn where a person reads it. A file or a pipe gets it as it is.
	if p, ok := s.out.(*printer); ok {
		c.response = &markdown{
			color: colorOf(s.out),
			print: func(rows []string) { p.ui.print(strings.Join(rows, "\n")) },
			show:  func(rows []string) { p.ui.do(func() { p.ui.view.live = rows }) },
		}
	}
	c.fit()
	return c
}

// busy shows what the chat waits for.
func (s *screen) busy(text string) {
	if s.ui == nil {
		return
	}
	v := s.ui.view
	s.ui.do(func() {
		if v.busy != text {
			v.busy, v.since = text, time.Now()
		}
	})
}

// waitForCalls shows the calls under way.
func (s *screen) waitForCalls() {
	switch len(s.running) {
	case 0:
		s.busy("waiting for the model")
	case 1:
		s.busy(s.running[0])
	default:
		s.busy(describe.Count(len(s.running), "call"))
	}
}

// fit adapts to the current width of the terminal.
func (s *screen) fit() {
	if drawn, ok := s.response.(*markdown); ok {
		_, width := terminalOf(s.out)
		drawn.fit(width)
	}
	_, s.width = terminalOf(s.err)
	if s.width == 0 {
		s.width = defaultWidth
	}
}

// show prints the events of a run, and returns its conversation and its error.
func (s *screen) show(events iter.Seq2[executor.Event, error]) (dag.DAG, error) {
	s.fit()
	s.busy("waiting for the model") // until the user is asked
	var after dag.DAG
	var failure error
	for event, err := range events {
		switch e := event.(type) {
		case executor.RunStart:
			// Each run of the chat lists them: print each name once.
			for _, name := range e.Unbound {
				if s.unbound.add(name) {
					s.note("the tool %s is not there; the model does not see it", name)
				}
			}

		case executor.MessageDelta:
			s.delta(e)

		case executor.Repaired:
			// Each request repeats the repairs of those before it.
			for _, note := range e.Repairs {
				if s.repairs.add(note.String()) {
					s.note("repaired: %s", note)
				}
			}

		case executor.Retry:
			s.note("the request failed and is sent again: %s", plain(e.Err))
			// The text of the failed attempt is not the response: it is printed anew.
			s.streamed = false

		case executor.MessageEnd:
			s.messageEnd(e.Node)

		case executor.ToolStart:
			s.row("▸ %s(%s)", e.Ran.Name, describe.Arguments(e.Ran.Input, s.width))
			s.running = append(s.running, e.Ran.Name)
			s.waitForCalls()

		case executor.ToolEnd:
			s.toolEnd(e.Execution)

		case executor.End:
			after, failure = e.DAG, err
		}
	}

	s.response.end()
	return after, failure
}

// toolEnd prints a row about a result. A terminal keeps the whole result, for Ctrl-O, and shows changes of files.
func (s *screen) toolEnd(x node.ToolExecution) {
	sign := "→"
	switch {
	case x.State == node.ExecutionDenied:
		sign = "⊘"
	case x.IsError:
		sign = "✗"
	}
	s.row("  %s %s %s", x.Tool, sign, describe.Text(x.Result))
	if at := slices.Index(s.running, x.Tool); at >= 0 {
		s.running = slices.Delete(s.running, at, at+1)
	}
	s.waitForCalls()
	if s.ui == nil {
		return
	}

	text := x.Result.Text()
	if lines := strings.Split(safetext.Block(text), "\n"); isDiff(text) {
		s.diff(lines)
	}
	const kept = 1 << 20 // bytes
	whole := x.Tool + " " + sign + "\n" + safetext.Block(safetext.Cut(text, kept))
	s.ui.do(func() { s.ui.view.folded = append(s.ui.view.folded, whole) })
}

// diff prints the lines of a diff in color. Of a long one, it prints the beginning.
func (s *screen) diff(lines []string) {
	const shown = 40
	for _, line := range lines[:min(len(lines), shown)] {
		line = safetext.Line(strings.ReplaceAll(line, "\t", "    "), s.width-3)
		if s.color {
			line = "\x1b[" + diffStyle(line) + "m" + line + "\x1b[0m"
		}
		fmt.Fprintln(s.err, "  "+line)
	}
	if more := len(lines) - shown; more > 0 {
		s.note("  … %s", describe.Count(more, "more line"))
	}
}

// delta prints a piece of a response. For thinking, it prints only a notice.
func (s *screen) delta(e executor.MessageDelta) {
	if d, ok := e.Event.(api.Delta); ok && d.Kind == api.DeltaThinking && !s.thinking {
		s.thinking = true
		s.note("thinking …")
	}
	if text := e.Text(); text != "" {
		s.streamed = true
		s.busy("the model answers")
		s.response.write(text)
	}
}

// messageEnd prints a response without deltas, and the reason if a response ended early.
func (s *screen) messageEnd(n *node.Node) {
	if n != nil {
		m, _ := n.Message()
		if m.Role == content.Assistant && s.used != nil {
			s.used(&m)
		}
		if m.Role == content.Assistant && !s.streamed {
			s.response.write(m.Blocks.Text())
		}
		s.response.end()

		// The chat reports an interrupted response itself.
		if m.Role == content.Assistant && m.Answer.Stop != content.StopCut {
			for _, text := range describe.Of(n).Notes(false) {
				s.note("%s", text)
			}
		}
	}
	s.response.end()
	s.thinking, s.streamed = false, false
}

// call prints a call with its arguments, for approval. Very long arguments are cut, with their size.
func (s *screen) call(call executor.Call) {
	const shown = 20_000 // bytes
	s.response.end()
	row := safetext.Line(call.Name, s.width) + " " + safetext.Row(safetext.Cut(string(call.Input), shown))
	if safetext.Width(row) >= s.width {
		row = safetext.Line(call.Name, s.width) + "\n" + strings.TrimSuffix(safetext.Block(safetext.Cut(indentedJSON(call.Input), shown)), "\n")
	}

	// The text that an edit replaces is compared, where a person reads it.
	found, rest := edits(call.Input)
	if s.ui == nil || len(found) == 0 {
		fmt.Fprintln(s.err, "Run "+row+"?")
		return
	}
	others, _ := json.Marshal(rest)
	fmt.Fprintln(s.err, "Run "+safetext.Line(call.Name, s.width)+" "+safetext.Row(safetext.Cut(string(others), shown))+"?")
	for _, e := range found {
		s.edit(e)
	}
}

// edit prints all lines of an edit: what a person approves must be seen.
func (s *screen) edit(e edit) {
	for _, line := range e.lines() {
		text := safetext.Row(line)
		if s.color {
			text = "\x1b[" + diffStyle(line) + "m" + text + "\x1b[0m"
		}
		fmt.Fprintln(s.err, "  "+text)
	}
}

// note prints a remark of the command.
func (s *screen) note(format string, args ...any) {
	s.dim(safetext.Block(fmt.Sprintf(format, args...)))
}

// row prints a remark on one row, cut to the width of the terminal. The last cell stays free.
func (s *screen) row(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	indent := text[:len(text)-len(strings.TrimLeft(text, " "))]
	s.dim(indent + safetext.Line(text, s.width-1-len(indent)))
}

// problem prints an error in the same form as the error at the end of the command.
func (s *screen) problem(err error) {
	s.response.end()
	fmt.Fprintln(s.err, safetext.Block("plait: "+plain(err)))
}

func (s *screen) dim(text string) {
	s.response.end()
	if s.color {
		text = "\x1b[2m" + strings.ReplaceAll(text, "\n", "\x1b[0m\n\x1b[2m") + "\x1b[0m"
	}
	fmt.Fprintln(s.err, text)
}

// flow writes text arriving in pieces, and makes it harmless. The last character of a piece waits for the next one: it
// must not be separated from its marks, nor the two characters of a line break.
type flow struct {
	out  io.Writer
	last string // the waiting character
	open bool   // the line has text
}

// write appends a piece of text.
func (f *flow) write(text string) {
	text = f.last + text
	done := strings.TrimSuffix(text[:lastCluster(text)], "\r")
	f.last = text[len(done):]
	f.put(done)
}

// lastCluster returns the index of the last cluster of a text.
func lastCluster(text string) int {
	at := 0
	for {
		_, _, size := safetext.Cluster(text[at:])
		if at+size >= len(text) {
			return at
		}
		at += size
	}
}

func (f *flow) put(text string) {
	if text == "" {
		return
	}
	_, _ = io.WriteString(f.out, safetext.Block(text))
	f.open = !strings.HasSuffix(text, "\n")
}

// end writes the last character and ends the line.
func (f *flow) end() {
	f.put(strings.TrimSuffix(f.last, "\r"))
	f.last = ""
	if f.open {
		_, _ = io.WriteString(f.out, "\n")
		f.open = false
	}
}
