package main

import (
	"fmt"
	"io"
	"iter"
	"strings"

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
	response flow
	width    int  // of a row of notes, in cells
	color    bool // of notes
	repairs  repairLog
	unbound  repairLog
	thinking bool // a note about it was printed
	streamed bool // text of the response was printed as it arrived
}

// defaultWidth is the width of rows where the terminal's is unknown.
const defaultWidth = 80

func newScreen(s *streams) *screen {
	c := &screen{streams: s, response: flow{out: s.out}, color: colorOf(s.err)}
	c.fit()
	return c
}

// fit adapts to the current width of the terminal.
func (s *screen) fit() {
	_, s.response.width = terminalOf(s.out)
	_, s.width = terminalOf(s.err)
	if s.width == 0 {
		s.width = defaultWidth
	}
}

// show prints the events of a run, and returns its conversation and its error.
func (s *screen) show(events iter.Seq2[executor.Event, error]) (dag.DAG, error) {
	s.fit()
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

		case executor.ToolEnd:
			sign := "→"
			if e.Execution.IsError {
				sign = "✗"
			}
			s.row("  %s %s %s", e.Execution.Tool, sign, describe.Text(e.Execution.Result))

		case executor.End:
			after, failure = e.DAG, err
		}
	}

	s.response.end()
	return after, failure
}

// delta prints a piece of a response. For thinking, it prints only a notice.
func (s *screen) delta(e executor.MessageDelta) {
	if d, ok := e.Event.(api.Delta); ok && d.Kind == api.DeltaThinking && !s.thinking {
		s.thinking = true
		s.note("thinking …")
	}
	if text := e.Text(); text != "" {
		s.streamed = true
		s.response.write(text)
	}
}

// messageEnd prints a response without deltas, and the reason if a response ended early.
func (s *screen) messageEnd(n *node.Node) {
	if n != nil {
		m, _ := n.Message()
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
	fmt.Fprintln(s.err, "Run "+row+"?")
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

// flow writes text arriving in pieces. It breaks lines between words, and makes the text harmless. A word is written
// when it is complete: a character must not be separated from its marks.
type flow struct {
	out    io.Writer
	width  int    // in cells; 0 breaks no lines
	word   string // the part of a word received so far
	column int    // the column of the next word
	code   bool   // the line is in a block of code
	table  bool   // the line is a row of a table
}

// write appends a piece of text.
func (f *flow) write(text string) {
	f.word += text
	for {
		at := strings.IndexAny(f.word, " \t\n\r")
		if at < 0 {
			break
		}
		// A line break of two characters may arrive in two pieces.
		if f.word[at] == '\r' && at == len(f.word)-1 {
			return
		}

		word, space := f.word[:at], f.word[at:at+1]
		if strings.HasPrefix(f.word[at:], "\r\n") {
			space = "\r\n"
		}
		f.word = f.word[at+len(space):]
		f.put(word)
		f.space(space)
	}

	// Text without spaces must not wait for one. The last cluster may still get marks.
	const longest = 40
	if len(f.word) > longest {
		last := lastCluster(f.word)
		f.put(f.word[:last])
		f.word = f.word[last:]
	}
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

// put writes a word, on the next line if this one has no room for it.
func (f *flow) put(word string) {
	if word == "" {
		return
	}
	// The first word of a line shows whether the line is in a block of code or a table.
	if f.column == 0 {
		f.table = strings.HasPrefix(word, "|")
		if strings.HasPrefix(word, "```") {
			f.code = !f.code
		}
	}

	cells := safetext.Width(word)
	// Lines of code and of tables stay whole.
	if f.column > 0 && f.column+cells >= f.width && f.width > 0 && !f.code && !f.table {
		_, _ = io.WriteString(f.out, "\n")
		f.column = 0
	}
	_, _ = io.WriteString(f.out, safetext.Block(word))
	f.column += cells
}

// space writes white space.
func (f *flow) space(text string) {
	const tab = 8
	switch text {
	case " ":
		f.column++
	case "\t":
		f.column += tab - f.column%tab
	default:
		f.column, f.table = 0, false
	}
	_, _ = io.WriteString(f.out, safetext.Block(text))
}

// end writes the last word and ends the line. It also closes an open block of code, for the next response.
func (f *flow) end() {
	f.put(strings.TrimSuffix(f.word, "\r"))
	f.word, f.code, f.table = "", false, false
	if f.column > 0 {
		_, _ = io.WriteString(f.out, "\n")
		f.column = 0
	}
}
