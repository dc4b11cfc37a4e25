package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/safetext"
)

// ui is what a person at a terminal sees below the chat: the end of a response under way, what the chat waits for, the
// editor, and a line about the model. What is printed goes above it, and scrolls as in any program.
//
// The methods are called by the goroutine of the chat. They send messages to view, which has the state.
type ui struct {
	program *tea.Program
	view    *view
	ended   chan struct{} // closed when the program has ended
}

// input is what the user sent.
type input struct {
	text string
	err  error // io.EOF after Ctrl-D, errInterrupted after Ctrl-C
}

// startUI shows the editor. interrupts gets a signal when Ctrl-C is pressed during a response.
func startUI(in *os.File, out io.Writer, interrupts chan<- os.Signal, color bool) *ui {
	u := &ui{ended: make(chan struct{})}
	u.view = &view{editor: newEditor(), color: color, interrupts: interrupts}
	u.program = tea.NewProgram(u.view, tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler())

	// Nothing is printed before the editor is on the screen: the program would print it at the wrong place.
	ready := make(chan struct{})
	u.view.drawn = sync.OnceFunc(func() { close(ready) })
	go func() {
		defer close(u.ended)
		_, _ = u.program.Run()
	}()

	select {
	case <-ready:
	case <-u.ended:
	}
	return u
}

// close removes the editor and leaves the terminal as it was.
func (u *ui) close() {
	u.do(func() { u.view.closed = true })
	u.program.Quit()
	<-u.ended
}

// do changes the state of the view.
func (u *ui) do(change func()) { u.program.Send(change) }

// print prints lines above the editor.
func (u *ui) print(text string) {
	for _, part := range u.view.parts(text) {
		u.program.Send(tea.Println(part)())
	}
}

// parts splits lines into parts that fit above the editor: what does not fit would push some of it up. The terminal
// breaks a line of ASCII itself, so that a name is copied without a line break. Other lines may take more rows
// than their width suggests.
func (v *view) parts(text string) []string {
	columns, most := v.columns(), max(v.rows()/3, 1)
	rows := func(line string) int { return 1 + max(ansi.StringWidth(line)-1, 0)/columns }
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		plain := ansi.Strip(line)
		if ansi.StringWidth(line) != len(plain) || rows(line) > most {
			line = ansi.Hardwrap(line, columns, true)
		}
		lines = append(lines, strings.Split(line, "\n")...)
	}

	var parts []string
	for at := 0; at < len(lines); {
		end, taken := at+1, rows(lines[at])
		for end < len(lines) && taken+rows(lines[end]) <= most {
			taken += rows(lines[end])
			end++
		}
		part := strings.Join(lines[at:end], "\n")
		if part == "" {
			part = " " // the program ignores an empty text
		}
		parts, at = append(parts, part), end
	}
	return parts
}

// read waits for what the user sends. The user sees the question, if there is one.
func (u *ui) read(ctx context.Context, interrupts <-chan os.Signal, question string) (string, error) {
	// A Ctrl-C too late for the last response is no answer.
	select {
	case <-interrupts:
	default:
	}

	reply := make(chan input, 1)
	u.do(func() { u.view.await(question, reply) })
	var in input
	select {
	case in = <-reply:
	case <-u.ended:
		in.err = io.EOF
	case <-ctx.Done():
		in.err = errInterrupted
	case <-interrupts:
		in.err = errInterrupted
	}
	u.do(func() { u.view.await("", nil) })
	if in.err == nil {
		u.echo(question, in.text)
	}
	return in.text, in.err
}

// echo keeps what the user sent above the editor.
func (u *ui) echo(question, text string) {
	prompt := question
	if prompt == "" {
		prompt = "> "
	}
	rows := strings.Split(safetext.Block(text), "\n")
	if u.view.color {
		prompt = "\x1b[1m" + prompt + "\x1b[0m"
	}
	u.print("\n" + prompt + strings.Join(rows, "\n  "))
}

// pick lets the user choose one of several choices. It returns errNoChoice if the user chooses none. With free set,
// the user may write another one.
func (u *ui) pick(ctx context.Context, title string, choices []choice, free bool) (string, error) {
	reply := make(chan input, 1)
	u.do(func() { u.view.picker = &picker{title: title, choices: choices, free: free, reply: reply} })
	defer u.do(func() { u.view.picker = nil })
	select {
	case in := <-reply:
		return in.text, in.err
	case <-u.ended:
	case <-ctx.Done():
	}
	return "", errNoChoice
}

// view is the state of the editor and of the rows around it. Only the program's goroutine uses it, save for the size.
type view struct {
	editor *lineEditor
	picker *picker // nil unless the user chooses
	color  bool

	width, height atomic.Int64 // of the terminal, in cells
	drawn         func()       // is called when the editor is on the screen
	closed        bool         // nothing is drawn

	live   []string  // the last rows of a response under way
	busy   string    // what the chat waits for; "" if for the user
	since  time.Time // begin of busy
	beat   int       // moves the sign of a busy chat
	status string    // model, context, tokens, cost

	question string       // what the user is asked; "" for a message
	reply    chan<- input // nil while nothing is asked
	aside    string       // the draft of a message, while a question is asked
	queue    []string     // messages sent during a response
	eof      bool         // Ctrl-D was pressed during a response
	escaped  time.Time    // when Escape was pressed

	interrupts chan<- os.Signal
	folded     []string // whole outputs of the last calls
}

// columns and rows return the size of the terminal. A terminal that does not know it reports 0.
func (v *view) columns() int { return max(int(v.width.Load()), 10) }
func (v *view) rows() int    { return max(int(v.height.Load()), 6) }

// drawn reports that the program has drawn the first frames: it draws 60 a second.
type drawn struct{}

const firstFrames = 50 * time.Millisecond

// tick moves what shows that the chat is busy.
type tick struct{}

func (v *view) Init() tea.Cmd { return nil }

// Update handles a key, a change of the size, or a change by the chat.
func (v *view) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch m := msg.(type) {
	case func():
		busy := v.busy
		m()
		if busy == "" && v.busy != "" {
			return v, v.tock()
		}
	case tick:
		if v.busy == "" {
			return v, nil
		}
		v.beat++
		return v, v.tock()
	case tea.WindowSizeMsg:
		v.width.Store(int64(m.Width))
		v.height.Store(int64(m.Height))
		v.editor.fit(m.Width-1, m.Height)
		return v, tea.Tick(firstFrames, func(time.Time) tea.Msg { return drawn{} })
	case drawn:
		v.drawn()
	case tea.PasteMsg:
		if v.picker == nil {
			v.editor.paste(m.Content)
		}
	case tea.KeyPressMsg:
		if v.picker != nil {
			v.picker.press(m)
			return v, nil
		}
		return v, v.press(m)
	}

	return v, nil
}

func (v *view) tock() tea.Cmd {
	const pace = 100 * time.Millisecond
	return tea.Tick(pace, func(time.Time) tea.Msg { return tick{} })
}

// chatKeys are the keys for commands.
var chatKeys = map[string]string{"ctrl+r": "/resume ?", "ctrl+s": "/model ?"}

// press handles a key outside a picker.
func (v *view) press(key tea.KeyPressMsg) tea.Cmd {
	name := key.String()
	if command := chatKeys[name]; command != "" {
		v.command(command)
		return nil
	}

	switch name {
	case "enter":
		v.enter()
	case "ctrl+c":
		v.interrupt()
	case "esc", "alt+esc":
		v.escape(name == "alt+esc")
	case "ctrl+d":
		if v.editor.text() != "" {
			return v.editor.press(key)
		}
		if v.eof = v.reply == nil; !v.eof {
			v.send(input{err: io.EOF})
		}
	case "ctrl+o":
		return v.unfold()
	case "ctrl+z":
		return tea.Suspend
	default:
		return v.editor.press(key)
	}
	return nil
}

// enter sends what was written, or keeps it until the response has ended.
func (v *view) enter() {
	text := v.editor.text()
	// A line that ends in a backslash continues in the next one.
	if begun, continued := strings.CutSuffix(text, `\`); continued && v.question == "" {
		v.editor.set(begun + "\n")
		return
	}

	switch {
	case (v.reply == nil || v.question != "") && strings.TrimSpace(text) == "":
		return // nothing is no answer to a question
	case v.reply == nil:
		v.queue = append(v.queue, text)
	default:
		v.send(input{text: text})
	}
	if v.question == "" {
		v.editor.remember(text)
	}
	v.editor.set("")
}

// send sends an input to the chat.
func (v *view) send(in input) {
	v.reply <- in
	v.reply = nil
}

// command sends a command, after the response under way. What was written stays.
func (v *view) command(line string) {
	switch {
	case v.question != "":
	case v.reply == nil:
		v.queue = append(v.queue, line)
	default:
		v.send(input{text: line})
	}
}

// interrupt stops a response, or drops what was written.
func (v *view) interrupt() {
	if v.reply != nil {
		v.editor.set("")
		v.send(input{err: errInterrupted})
		return
	}
	v.unqueue()
	select {
	case v.interrupts <- os.Interrupt:
	default:
	}
}

// escape stops a response. Pressed twice, it shows the messages to go back to.
func (v *view) escape(double bool) {
	const twice = 700 * time.Millisecond
	if v.busy != "" {
		v.interrupt()
		return
	}
	if double || time.Since(v.escaped) < twice {
		v.command("/back ?")
		v.escaped = time.Time{}
		return
	}
	v.escaped = time.Now()
}

// unqueue returns queued messages to the editor.
func (v *view) unqueue() {
	if len(v.queue) == 0 {
		return
	}
	text := strings.Join(v.queue, "\n")
	if written := v.editor.text(); written != "" {
		text += "\n" + written
	}
	v.queue = nil
	v.editor.set(text)
}

// unfold prints the whole outputs of the last calls.
func (v *view) unfold() tea.Cmd {
	if len(v.folded) == 0 {
		return nil
	}
	var prints []tea.Cmd
	for _, part := range v.parts(strings.Join(v.folded, "\n")) {
		prints = append(prints, tea.Println(part))
	}
	v.folded = nil
	return tea.Sequence(prints...)
}

// await begins to wait for a reply. A nil reply ends it. A message sent before is the reply, but never to a question.
func (v *view) await(question string, reply chan<- input) {
	// A draft of a message must not become the answer to a question.
	if question != "" && v.question == "" {
		v.aside = v.editor.text()
		v.editor.set("")
	}
	if question == "" && v.question != "" {
		v.editor.set(v.aside)
		v.aside = ""
	}

	v.question, v.reply = question, reply
	if reply != nil {
		v.busy = ""
	}
	switch {
	case reply == nil || question != "":
	case len(v.queue) > 0:
		text := v.queue[0]
		v.queue = v.queue[1:]
		v.send(input{text: text})
	case v.eof:
		v.send(input{err: io.EOF})
	}
}

// View draws the rows below the chat.
func (v *view) View() tea.View {
	if v.closed {
		return tea.NewView("")
	}
	var rows []string
	rows = append(rows, v.live[max(0, len(v.live)-v.rows()/3):]...)
	if v.busy != "" {
		const signs = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
		moving := []rune(signs)
		seconds := int(time.Since(v.since).Seconds())
		rows = append(rows, v.dim(fmt.Sprintf("%c %s · %d s · Ctrl-C stops", moving[v.beat%len(moving)], v.busy, seconds)))
	}

	const shown = 3
	for _, text := range v.queue[:min(len(v.queue), shown)] {
		rows = append(rows, v.dim("sent next: "+text))
	}
	if more := len(v.queue) - shown; more > 0 {
		rows = append(rows, v.dim(fmt.Sprintf("and %s", describe.Count(more, "more message"))))
	}

	if v.picker != nil {
		rows = append(rows, v.picker.rows(v)...)
		return tea.NewView(strings.Join(rows, "\n"))
	}
	if v.question != "" {
		rows = append(rows, v.question)
	}

	above := len(rows)
	rows = append(rows, v.editor.area.View())
	if v.status != "" {
		rows = append(rows, v.dim(v.status))
	}
	drawn := tea.NewView(strings.Join(rows, "\n"))
	if drawn.Cursor = v.editor.area.Cursor(); drawn.Cursor != nil {
		drawn.Cursor.Y += above
	}
	return drawn
}

// dim returns a row of a remark.
func (v *view) dim(text string) string {
	text = safetext.Line(text, v.columns()-1)
	if v.color {
		text = "\x1b[2m" + text + "\x1b[0m"
	}
	return text
}
