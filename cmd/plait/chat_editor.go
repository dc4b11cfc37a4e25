package main

import (
	"slices"
	"strings"

	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"

	"github.com/plait-dev/plait/internal/safetext"
)

// lineEditor is the text that the user writes. It moves and deletes by what a reader sees as one character.
type lineEditor struct {
	area textarea.Model

	past   []string // sent messages, the oldest first
	recall int      // index in past of the message that is shown; len(past) for the draft
	draft  string   // what was being written when the first message was recalled
}

func newEditor() *lineEditor {
	area := textarea.New()
	area.ShowLineNumbers = false
	area.SetPromptFunc(2, func(line textarea.PromptInfo) string {
		if line.LineNumber == 0 {
			return "> "
		}
		return "  "
	})
	area.SetStyles(textarea.Styles{})

	// The terminal draws the cursor: a drawn one would separate a character from its marks.
	area.SetVirtualCursor(false)
	area.DynamicHeight = true
	area.MaxContentHeight = 1 << 20
	area.Focus()
	return &lineEditor{area: area}
}

// fit adapts to the size of the terminal.
func (e *lineEditor) fit(width, height int) {
	e.area.MaxHeight = max(height/3, 1)
	e.area.SetWidth(max(width, 4))
}

// text returns what was written. It is what is shown.
func (e *lineEditor) text() string { return e.area.Value() }

func (e *lineEditor) set(text string) { e.area.SetValue(text) }

// press handles a key.
func (e *lineEditor) press(key tea.KeyPressMsg) tea.Cmd {
	times := 1
	switch key.String() {
	case "ctrl+j", "alt+enter", "shift+enter":
		e.area.InsertString("\n")
		return nil
	case "up":
		if e.area.Line() == 0 && e.area.LineInfo().RowOffset == 0 {
			e.remembered(-1)
			return nil
		}
	case "down":
		if e.area.Line() == e.area.LineCount()-1 && e.area.LineInfo().RowOffset+1 >= e.area.LineInfo().Height {
			e.remembered(1)
			return nil
		}
	case "left", "ctrl+b", "backspace", "ctrl+h":
		times, _ = e.around()
	case "right", "ctrl+f", "delete", "ctrl+d":
		_, times = e.around()
	case "tab":
		e.complete()
		return nil
	}
	if key.Text != "" {
		key.Text = visible(key.Text)
	}

	// A cluster is several runes to the text area.
	var cmd tea.Cmd
	for range max(times, 1) {
		e.area, cmd = e.area.Update(key)
	}
	e.snap()
	return cmd
}

// paste inserts a pasted text, without what is invisible in it or would control the terminal.
func (e *lineEditor) paste(text string) {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	e.area.InsertString(safetext.Block(text))
}

// visible removes the characters of a key that change how others are read, such as writing directions.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		const joiner, nonJoiner = '\u200d', '\u200c'
		if shown := safetext.Block("x" + string(r)); r != joiner && r != nonJoiner && !strings.HasSuffix(shown, string(r)) {
			return -1
		}
		return r
	}, text)
}

// line returns the runes of the line of the cursor.
func (e *lineEditor) line() string {
	return strings.Split(e.area.Value(), "\n")[e.area.Line()]
}

// clusters returns the indexes of the runes at which the clusters of a line begin, and its length.
func clusters(line string) []int {
	at, starts := 0, []int{0}
	for line != "" {
		_, _, size := safetext.Cluster(line)
		at += len([]rune(line[:size]))
		starts, line = append(starts, at), line[size:]
	}
	return starts
}

// around returns the number of runes in the clusters before and after the cursor. It is 0 at the ends of the line.
func (e *lineEditor) around() (before, after int) {
	starts := clusters(e.line())
	at, _ := slices.BinarySearch(starts, e.area.Column())
	if at > 0 {
		before = e.area.Column() - starts[at-1]
	}
	if at+1 < len(starts) {
		after = starts[at+1] - e.area.Column()
	}
	return before, after
}

// snap moves the cursor out of a cluster, to its beginning.
func (e *lineEditor) snap() {
	starts := clusters(e.line())
	if at, found := slices.BinarySearch(starts, e.area.Column()); !found {
		e.area.SetCursorColumn(starts[max(at-1, 0)])
	}
}

// remember adds a message to what the arrow keys go back to.
func (e *lineEditor) remember(text string) {
	if text != "" && (len(e.past) == 0 || e.past[len(e.past)-1] != text) {
		e.past = append(e.past, text)
	}
	e.recall = len(e.past)
}

// remembered shows an earlier or later message.
func (e *lineEditor) remembered(step int) {
	to := e.recall + step
	if to < 0 || to > len(e.past) {
		return
	}
	if e.recall == len(e.past) {
		e.draft = e.text()
	}

	e.recall = to
	if to == len(e.past) {
		e.set(e.draft)
	} else {
		e.set(e.past[to])
	}
}

// complete completes the name of a command.
func (e *lineEditor) complete() {
	line := e.text()
	found := slices.DeleteFunc(commandNames(), func(name string) bool { return !strings.HasPrefix(name, line) })
	if len(found) == 1 && strings.HasPrefix(line, "/") {
		e.set(found[0] + " ")
	}
}
